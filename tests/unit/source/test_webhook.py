"""Push webhooks: signatures, limits, and that a delivery triggers a poll and nothing else.

In scope: the endpoint over a real loopback socket.  Out of scope: what the poll does.
"""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.source.webhook import BODY_LIMIT_BYTES, SECRET_KEPT_S, is_signed, webhook_app

SECRET = b"hook-secret-for-tests"
SOURCE = NamespacedName("tenant", "network")
PUSH = b'{"ref": "refs/heads/main"}'


def signed(body: bytes, secret: bytes = SECRET) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


@dataclass
class HandClock:
    now_s: float = 100.0

    def boot_s(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return datetime(2026, 11, 2, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class Endpoint:
    url: str
    clock: HandClock
    triggered: list[NamespacedName] = field(default_factory=list)
    reads: int = 0

    async def post(self, body: bytes = PUSH, path: str = "/hooks/tenant/network", **headers: str) -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                self.url + path, data=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
            ) as reply,
        ):
            return reply.status


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    clock = HandClock()
    found = Endpoint("", clock)

    async def secret_of(source: NamespacedName) -> bytes | None:
        found.reads += 1
        return SECRET if source == SOURCE else None

    runner = web.AppRunner(webhook_app(secret_of=secret_of, trigger=found.triggered.append, clock=clock))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}"
    yield found
    await runner.cleanup()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"X_Hub_Signature_256": f"sha256={signed(PUSH)}", "X_GitHub_Event": "push"}, id="github"),
        pytest.param({"X_Gitea_Signature": signed(PUSH), "X_Gitea_Event": "push"}, id="gitea"),
        pytest.param({"X_Forgejo_Signature": signed(PUSH), "X_Forgejo_Event": "push"}, id="forgejo"),
        pytest.param({"X_Gitlab_Token": SECRET.decode(), "X_Gitlab_Event": "Push Hook"}, id="gitlab"),
    ],
)
async def test_a_signed_push_of_each_vendor_triggers_a_poll(endpoint: Endpoint, headers: dict[str, str]) -> None:
    assert await endpoint.post(**headers) == 202
    assert endpoint.triggered == [SOURCE]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="unsigned"),
        pytest.param(
            {"X_Hub_Signature_256": f"sha256={signed(PUSH, b'other')}", "X_GitHub_Event": "push"}, id="wrong-key"
        ),
        pytest.param({"X_Hub_Signature_256": f"sha256={signed(b'other')}", "X_GitHub_Event": "push"}, id="other-body"),
        pytest.param({"X_Gitlab_Token": "wrong", "X_Gitlab_Event": "Push Hook"}, id="wrong-token"),
        pytest.param({"X_Hub_Signature_256": "sha256=\u00fc", "X_GitHub_Event": "push"}, id="not-ascii"),
    ],
)
async def test_H20_a_delivery_without_a_valid_signature_triggers_nothing(
    endpoint: Endpoint, headers: dict[str, str]
) -> None:
    assert await endpoint.post(**headers) == 401
    assert endpoint.triggered == []


@pytest.mark.parametrize("header", ["X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token"])
def test_H20_header_bytes_that_are_no_text_are_a_wrong_signature_and_no_failure(header: str) -> None:
    assert not is_signed({header: b"sha256=\xff\xfe".decode(errors="surrogateescape")}, body=PUSH, secret=SECRET)


async def test_H20_a_flood_of_unsigned_deliveries_reads_the_secret_once_in_a_while(endpoint: Endpoint) -> None:
    for _ in range(2):
        answers = await asyncio.gather(*(endpoint.post() for _ in range(20)))
        assert set(answers) == {401}
    assert endpoint.reads == 1
    endpoint.clock.now_s += SECRET_KEPT_S
    assert await endpoint.post(X_Gitea_Signature=signed(PUSH), X_Gitea_Event="push") == 202
    assert endpoint.reads == 2


async def test_H20_an_unknown_source_answers_like_a_wrong_signature(endpoint: Endpoint) -> None:
    headers = {"X_Gitea_Signature": signed(PUSH), "X_Gitea_Event": "push"}
    assert await endpoint.post(path="/hooks/tenant/other", **headers) == 401


async def test_H20_a_source_without_a_secret_is_never_matched_by_an_empty_signature(endpoint: Endpoint) -> None:
    assert await endpoint.post(path="/hooks/tenant/other", X_Gitlab_Token="", X_Gitlab_Event="Push Hook") == 401


async def test_H20_a_malformed_body_with_a_valid_signature_is_only_a_hint(endpoint: Endpoint) -> None:
    body = b'{"ref": '
    assert await endpoint.post(body, X_Gitea_Signature=signed(body), X_Gitea_Event="push") == 202
    assert endpoint.triggered == [SOURCE]


async def test_H20_a_replayed_delivery_costs_at_most_one_poll_a_second(endpoint: Endpoint) -> None:
    headers = {"X_Gitea_Signature": signed(PUSH), "X_Gitea_Event": "push"}
    for _ in range(20):
        assert await endpoint.post(**headers) == 202
    assert endpoint.triggered == [SOURCE]
    endpoint.clock.now_s += 1.0
    await endpoint.post(**headers)
    assert endpoint.triggered == [SOURCE, SOURCE]


async def test_H20_a_push_right_after_another_one_is_polled_when_the_second_is_over(endpoint: Endpoint) -> None:
    headers = {"X_Gitea_Signature": signed(PUSH), "X_Gitea_Event": "push"}
    await endpoint.post(**headers)
    await endpoint.post(**headers)
    assert endpoint.triggered == [SOURCE]
    endpoint.clock.now_s += 1.0
    async with asyncio.timeout(10.0):
        while len(endpoint.triggered) < 2:
            await asyncio.sleep(0.01)
    assert endpoint.triggered == [SOURCE, SOURCE]


async def test_H20_a_body_above_the_limit_is_refused_before_it_is_read(endpoint: Endpoint) -> None:
    host, port = endpoint.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /hooks/tenant/network HTTP/1.1\r\nHost: test\r\nContent-Length: 1073741824\r\n"
        b"X-Gitea-Event: push\r\n\r\n" + b"x" * 1024
    )
    await writer.drain()
    status = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    assert b" 413 " in status
    assert endpoint.triggered == []


async def test_H20_a_chunked_body_is_cut_off_at_the_limit(endpoint: Endpoint) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 64 * BODY_LIMIT_BYTES:
            sent += 65536
            yield b"x" * 65536

    async with aiohttp.ClientSession() as session:
        try:
            async with session.post(f"{endpoint.url}/hooks/tenant/network", data=endless()) as reply:
                assert reply.status == 413
        except aiohttp.ClientError:
            pass  # the server closed while the client was still writing
    assert sent < 32 * BODY_LIMIT_BYTES
    assert endpoint.triggered == []


async def test_an_event_that_is_no_push_is_acknowledged_and_left_alone(endpoint: Endpoint) -> None:
    assert await endpoint.post(X_Gitea_Signature=signed(PUSH), X_Gitea_Event="issues") == 200
    assert endpoint.triggered == []

"""Requests over a real socket: what is sent, what is repeated, what is never repeated.

In scope: verbs, headers, retries, lost replies, credentials, body limits.  Tested elsewhere: the meaning of answers
(test_answers.py), watches (test_watch.py), the same against a real server (tests/cluster).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from gitops_ctl.core.errors import Conflict, InternalError, NotFound, RateLimited, ReplyLost, Unavailable
from gitops_ctl.kube.answers import Gone, KindNotServed, ServerRefused, Unauthenticated
from gitops_ctl.kube.config import Credentials
from gitops_ctl.kube.exchange import Limits, resource_of, retry_delay
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import JumpingClock
from tests.support.kube_server import KubeServer, hang, lose_reply, reply, status_object

PATH = "/api/v1/namespaces/default/configmaps/a"
COLLECTION = "/api/v1/namespaces/default/configmaps"
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        yield running


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def client(server: KubeServer, clock: JumpingClock) -> AsyncIterator[KubeClient]:
    async with KubeClient(server.config(), component="test", clock=clock, draw=lambda: 0.5) as made:
        yield made


async def test_H10_an_apply_sends_the_raw_bytes_with_the_apply_media_type_and_every_option(
    server: KubeServer, client: KubeClient
) -> None:
    server.on("PATCH", PATH, reply(200, BODY))
    raw = b'{"apiVersion":"v1", "kind":"ConfigMap","metadata":{"name":"a"}}'
    await client.apply(PATH, raw, manager="gitops-ctl", force=True, account="system:serviceaccount:default:app")
    seen = server.requests[0]
    assert seen.body == raw
    assert seen.headers["Content-Type"] == "application/apply-patch+yaml"
    assert seen.query == {"fieldManager": "gitops-ctl", "force": "true", "fieldValidation": "Strict"}
    assert seen.headers["Impersonate-User"] == "system:serviceaccount:default:app"
    assert seen.headers["User-Agent"].startswith("gitops-ctl/")
    assert seen.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "account", ["", "alice", "system:admin", "system:serviceaccount:default:", "system:serviceaccount:a:b\r\nX: y"]
)
async def test_nobody_but_a_service_account_is_impersonated(
    server: KubeServer, client: KubeClient, account: str
) -> None:
    with pytest.raises(InternalError):
        await client.apply(PATH, BODY, manager="m", account=account)
    with pytest.raises(InternalError):
        [event async for event in client.watch(COLLECTION, resource_version="1", timeout_s=1, account=account)]
    assert server.requests == []


async def test_H10_a_plain_apply_does_not_force_and_a_dry_run_says_so(server: KubeServer, client: KubeClient) -> None:
    server.on("PATCH", PATH, reply(200, BODY))
    await client.apply(PATH, BODY, manager="m")
    await client.apply(PATH, BODY, manager="m", dry_run=True)
    assert "force" not in server.requests[0].query
    assert server.requests[1].query["dryRun"] == "All"
    assert dict(client.calls) == {("apply", "configmaps"): 1, ("dry-run", "configmaps"): 1}


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_H11_an_apply_is_repeated_after_the_wait_that_the_server_asked_for(
    server: KubeServer, client: KubeClient, clock: JumpingClock, code: int
) -> None:
    busy = reply(code, status_object(code), headers={"Retry-After": "7"})
    server.on("PATCH", PATH, busy, busy, reply(200, BODY))
    await client.apply(PATH, BODY, manager="m")
    assert server.count("PATCH", PATH) == 3
    assert clock.slept == [7.0 * 1.05, 7.0 * 1.05]


async def test_H11_a_storm_of_429_ends_after_five_attempts_with_the_wait_in_the_error(
    server: KubeServer, client: KubeClient, clock: JumpingClock
) -> None:
    server.on("PATCH", PATH, reply(429, status_object(429, retryAfterSeconds=3)))
    with pytest.raises(RateLimited) as caught:
        await client.apply(PATH, BODY, manager="m")
    assert caught.value.retry_after_s == 3.0
    assert server.count("PATCH", PATH) == 5
    assert sum(clock.slept) >= 12.0


def test_H11_without_a_named_wait_the_delay_is_drawn_below_a_doubling_limit() -> None:
    assert [retry_delay(n, retry_after_s=None, draw=1.0) for n in range(1, 8)] == [0.5, 1, 2, 4, 8, 10, 10]
    assert retry_delay(3, retry_after_s=None, draw=0.0) == 0.0


async def test_S22_an_apply_whose_reply_was_lost_is_repeated_and_succeeds(
    server: KubeServer, client: KubeClient
) -> None:
    server.on("PATCH", PATH, lose_reply(), reply(200, BODY))
    assert await client.apply(PATH, BODY, manager="m") == BODY
    assert server.count("PATCH", PATH) == 2


async def test_S22_an_apply_that_never_gets_a_reply_says_that_it_may_have_happened(
    server: KubeServer, client: KubeClient
) -> None:
    server.on("PATCH", PATH, lose_reply())
    with pytest.raises(ReplyLost):
        await client.apply(PATH, BODY, manager="m")


@pytest.mark.parametrize("answer", [lose_reply(), reply(500, status_object(500)), reply(504, status_object(504))])
async def test_S22_a_create_without_a_clear_answer_is_never_sent_again(
    server: KubeServer, client: KubeClient, answer: object
) -> None:
    server.on("POST", COLLECTION, answer)  # type: ignore[arg-type]
    with pytest.raises(ReplyLost):
        await client.create(COLLECTION, BODY)
    assert server.count("POST", COLLECTION) == 1


async def test_S22_a_delete_whose_reply_was_lost_counts_the_404_after_it_as_success(
    server: KubeServer, client: KubeClient
) -> None:
    server.on("DELETE", PATH, lose_reply(), reply(404, status_object(404, "NotFound", kind="configmaps")))
    assert await client.delete(PATH, uid="u1") is None
    assert json.loads(server.requests[1].body)["preconditions"] == {"uid": "u1"}


async def test_a_delete_that_finalizers_hold_returns_the_object(server: KubeServer, client: KubeClient) -> None:
    server.on("DELETE", PATH, reply(200, BODY))
    assert await client.delete(PATH) == BODY


async def test_a_delete_of_a_kind_that_is_not_served_says_nothing_about_the_object(
    server: KubeServer, client: KubeClient
) -> None:
    with pytest.raises(KindNotServed):
        await client.delete("/apis/example.net/v1/things/a")
    assert len(server.requests) == 1


async def test_a_refused_apply_is_sent_once(server: KubeServer, client: KubeClient) -> None:
    text = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    server.on("PATCH", PATH, reply(500, status_object(500, "", text)))
    with pytest.raises(ServerRefused):
        await client.apply(PATH, BODY, manager="m")
    assert server.count("PATCH", PATH) == 1


async def test_a_server_that_is_not_there_is_unavailable_and_not_a_lost_reply(clock: JumpingClock) -> None:
    async with KubeServer() as gone:
        config = gone.config()
    async with KubeClient(config, component="test", clock=clock) as client:
        with pytest.raises(Unavailable):
            await client.create(COLLECTION, BODY)


async def test_a_request_that_hangs_ends_at_its_deadline(server: KubeServer) -> None:
    released = asyncio.Event()
    server.on("PATCH", PATH, hang(released))
    limits = Limits(attempts=1, timeout_s=0.1)
    async with KubeClient(server.config(), component="test", limits=limits) as client:
        with pytest.raises(ReplyLost):
            await client.apply(PATH, BODY, manager="m")
    released.set()


async def test_after_401_the_credential_is_read_again_once(server: KubeServer, clock: JumpingClock) -> None:
    tokens = iter(["Bearer second", "Bearer third"])

    async def read() -> str:
        return next(tokens)

    config = replace(server.config(), credentials=Credentials("Bearer first", read=read))
    server.on("GET", PATH, reply(401, status_object(401)), reply(200, BODY), reply(401, status_object(401)))
    async with KubeClient(config, component="test", clock=clock) as client:
        assert await client.get(PATH) == BODY
        with pytest.raises(Unauthenticated):
            await client.get(PATH)
    sent = [seen.headers["Authorization"] for seen in server.requests]
    assert sent == ["Bearer first", "Bearer second", "Bearer second", "Bearer third"]


async def test_H15_a_token_is_renewed_by_the_boot_clock_when_the_wall_clock_jumps(
    server: KubeServer, clock: JumpingClock
) -> None:
    async def read() -> str:
        return "Bearer new"

    config = replace(server.config(), credentials=Credentials("Bearer old", read=read, period_s=60, due_s=1060))
    server.on("GET", PATH, reply(200, BODY))
    async with KubeClient(config, component="test", clock=clock) as client:
        clock.wall_offset = timedelta(hours=1)
        await client.get(PATH)
        clock.wall_offset = timedelta(hours=-1)
        clock.now_s += 60
        await client.get(PATH)
    assert [seen.headers["Authorization"] for seen in server.requests] == ["Bearer old", "Bearer new"]


async def test_the_credential_is_not_in_any_text(server: KubeServer, clock: JumpingClock) -> None:
    config = replace(server.config(), credentials=Credentials("Bearer s3cr3t"))
    async with KubeServer() as gone:
        address = gone.url
    async with KubeClient(replace(config, host=address), component="test", clock=clock) as client:
        with pytest.raises(Unavailable) as caught:
            await client.get(PATH)
    assert "s3cr3t" not in f"{caught.value!r} {caught.value.__cause__!r} {config!r}"


async def test_redirects_are_not_followed(server: KubeServer, client: KubeClient) -> None:
    server.on("GET", PATH, reply(302, {}, headers={"Location": "/elsewhere"}))
    with pytest.raises(Exception, match="302"):
        await client.get(PATH)
    assert [seen.path for seen in server.requests] == [PATH]


async def test_an_answer_over_the_limit_is_not_read(server: KubeServer, clock: JumpingClock) -> None:
    server.on("GET", PATH, reply(200, {"data": "x" * (5 * 1024 * 1024)}))
    limits = Limits(attempts=1)
    async with KubeClient(server.config(), component="test", clock=clock, limits=limits) as client:
        with pytest.raises(Unavailable, match="longer than"):
            await client.get(PATH)


async def test_pages_of_one_list_are_joined_and_stamped(server: KubeServer, client: KubeClient) -> None:
    def page(name: str, token: str) -> dict[str, object]:
        metadata = {"resourceVersion": "50", "continue": token}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": metadata,
            "items": [{"metadata": {"name": name}}],
        }

    server.on("GET", COLLECTION, reply(200, page("a", "next")), reply(200, page("b", "")))
    listed = await client.list_all(COLLECTION, label_selector="app=x")
    assert [(item["kind"], item["metadata"]["name"]) for item in listed.items] == [
        ("ConfigMap", "a"),
        ("ConfigMap", "b"),
    ]  # type: ignore[index, call-overload]
    assert [seen.query.get("continue") for seen in server.requests] == [None, "next"]
    assert "resourceVersion" not in server.requests[0].query


@pytest.mark.parametrize("code", [410, 400], ids=["expired", "broken token"])
async def test_a_list_that_loses_its_snapshot_begins_again_and_at_last_without_pages(
    server: KubeServer, client: KubeClient, code: int
) -> None:
    first = {"kind": "ConfigMapList", "metadata": {"resourceVersion": "1", "continue": "t"}, "items": []}
    whole = {"kind": "ConfigMapList", "metadata": {"resourceVersion": "9"}, "items": [BODY]}
    lost = reply(code, status_object(code, "Expired"))
    server.on("GET", COLLECTION, reply(200, first), lost, reply(200, first), lost, reply(200, whole))
    listed = await client.list_all(COLLECTION)
    assert listed.resource_version == "9"
    assert "limit" not in server.requests[-1].query


async def test_a_broken_token_is_gone_for_whoever_reads_pages(server: KubeServer, client: KubeClient) -> None:
    first = {"kind": "ConfigMapList", "metadata": {"resourceVersion": "1", "continue": "t"}, "items": []}
    server.on("GET", COLLECTION, reply(200, first), reply(400, status_object(400, "BadRequest")))
    with pytest.raises(Gone):
        [page async for page in client.list_pages(COLLECTION)]


async def test_a_failed_test_of_a_json_patch_is_a_lost_compare_and_swap(server: KubeServer, client: KubeClient) -> None:
    server.on("PATCH", PATH, reply(422, status_object(422, "Invalid")))
    with pytest.raises(Conflict):
        await client.patch_json(PATH, [{"op": "test", "path": "/data/x", "value": "1"}])


async def test_find_tells_a_missing_object_from_a_missing_kind(server: KubeServer, client: KubeClient) -> None:
    server.on("GET", PATH, reply(404, status_object(404, "NotFound", kind="configmaps")))
    assert await client.find(PATH) is None
    with pytest.raises(NotFound):
        await client.find("/apis/example.net/v1/things/a")


async def test_no_more_requests_than_the_limit_are_in_flight(server: KubeServer) -> None:
    released = asyncio.Event()
    server.on("GET", PATH, hang(released))
    async with KubeClient(server.config(), component="test", concurrency=3) as client:
        calls = [asyncio.create_task(client.get(PATH)) for _ in range(10)]
        async with asyncio.timeout(5):
            while len(server.requests) < 3:
                await asyncio.sleep(0.001)
        assert client.calls["get", "configmaps"] == 3
        released.set()
        await asyncio.gather(*calls)
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces/default/configmaps/a", "configmaps"),
        ("/api/v1/namespaces/default", "namespaces"),
        ("/api/v1/namespaces/default/status", "namespaces/status"),
        ("/apis/apps/v1/namespaces/x/deployments/d/status", "deployments/status"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x", "clusterroles"),
        ("/apis", "/apis"),
        ("/readyz", "/readyz"),
    ],
)
def test_calls_are_counted_by_resource(path: str, resource: str) -> None:
    assert resource_of(path) == resource

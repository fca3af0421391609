"""Each scripted fault of a request does what the script says, as often as it says, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.doubles.apiserver import FakeApiServer, Fault

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def http(server: FakeApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url, headers={"User-Agent": "author/1"}) as session:
        yield session


def config_map(name: str, value: str = "1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": value}}


async def status(http: aiohttp.ClientSession, path: str = MAPS, **query: str) -> int:
    async with http.get(path, params=query) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize(
    ("fault", "options", "code", "reason"),
    [
        (Fault.FORBIDDEN, {}, 403, "Forbidden"),
        (Fault.NOT_FOUND, {}, 404, "NotFound"),
        (Fault.EXPIRED_STATUS, {}, 410, "Expired"),
        (Fault.RATE_LIMITED, {}, 429, "TooManyRequests"),
        (Fault.SERVER_ERROR, {}, 500, "InternalError"),
        (Fault.SERVER_ERROR, {"code": 503}, 503, "InternalError"),
    ],
)
async def test_a_refusal_hits_the_named_requests_alone(
    server: FakeApiServer, http: aiohttp.ClientSession, fault: Fault, options: dict[str, Any], code: int, reason: str
) -> None:
    server.script(verb="list", resource="configmaps", at=2, count=2, fault=fault, **options)
    assert await status(http, "/api/v1/secrets") == 200
    assert [await status(http) for _ in range(4)] == [200, code, code, 200]
    assert server.faults.struck == [("list", "configmaps", fault)] * 2
    assert [entry.code for entry in server.api.audit if entry.resource == "configmaps"] == [200, code, code, 200]
    server.script(verb="list", resource="configmaps", fault=fault, **options)
    async with http.get(MAPS) as answer:
        assert (await answer.json())["reason"] == reason


async def test_a_storm_of_429_can_name_its_wait(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    server.script(fault=Fault.RATE_LIMITED, retry_after_s=7)
    async with http.get(MAPS) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert (await answer.json())["details"] == {"retryAfterSeconds": 7}


async def test_a_lost_reply_has_done_its_work(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    server.script(verb="create", fault=Fault.LOST_REPLY)
    with pytest.raises(aiohttp.ClientConnectionError):
        await http.post(MAPS, json=config_map("one"))
    assert await status(http, f"{MAPS}/one") == 200


async def test_another_writer_gets_in_first(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    async with http.post(MAPS, json=config_map("one")) as answer:
        made = await answer.json()
    server.script(verb="update", fault=Fault.CONFLICT)
    async with http.put(f"{MAPS}/one", json={**made, "data": {"a": "2"}}) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (409, "Conflict")
    server.script(verb="create", fault=Fault.CONFLICT)
    async with http.post(MAPS, json=config_map("two")) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (409, "AlreadyExists")


async def test_unauthorized_lasts_until_another_credential_is_shown(
    server: FakeApiServer, http: aiohttp.ClientSession
) -> None:
    server.script(verb="list", fault=Fault.UNAUTHORIZED)
    seen = []
    for token in ("old", "old", "new", "old"):
        async with http.get(MAPS, headers={"Authorization": f"Bearer {token}"}) as answer:
            seen.append(answer.status)
    assert seen == [401, 401, 200, 401]


async def test_an_object_goes_between_two_pages_and_the_token_with_it(
    server: FakeApiServer, http: aiohttp.ClientSession
) -> None:
    for name in ("a", "b", "c"):
        await (await http.post(MAPS, json=config_map(name))).read()
    async with http.get(MAPS, params={"limit": "2"}) as answer:
        token = (await answer.json())["metadata"]["continue"]
    server.script(verb="list", fault=Fault.DELETE_DURING_LIST)
    assert await status(http, limit="2", **{"continue": token}) == 410
    assert await status(http, f"{MAPS}/c") == 404


async def test_a_stall_answers_after_its_time(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    server.script(verb="get", fault=Fault.STALL, seconds=30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await status(http, f"{MAPS}/one")
    assert await status(http, f"{MAPS}/one") == 404


@pytest.mark.parametrize(("keep", "code"), [(True, 200), (False, 404)])
async def test_a_restart_drops_connections_and_may_lose_the_store(
    server: FakeApiServer, http: aiohttp.ClientSession, keep: bool, code: int
) -> None:
    await (await http.post(MAPS, json=config_map("one"))).read()
    async with http.get(MAPS, params={"watch": "1"}) as stream:
        await stream.content.readline()
        server.script(verb="create", fault=Fault.RESTART, keep=keep)
        with pytest.raises(aiohttp.ClientConnectionError):
            await http.post(MAPS, json=config_map("two"))
        assert await asyncio.wait_for(stream.content.readline(), 5) == b""
    assert await status(http, f"{MAPS}/one") == code


async def test_a_restarted_server_listens_where_it_was(server: FakeApiServer) -> None:
    before = server.url
    async with aiohttp.ClientSession(before) as http:
        await (await http.post(MAPS, json=config_map("one"))).read()
    await server.restart()
    assert server.url == before
    async with aiohttp.ClientSession(before) as http:
        assert await status(http, f"{MAPS}/one") == 200


async def test_failing_groups_are_stale_in_discovery_and_503_in_the_older_form(
    server: FakeApiServer, http: aiohttp.ClientSession
) -> None:
    server.api.stale_groups = frozenset({"apps"})
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    async with http.get("/apis", headers=accept) as answer:
        versions = {
            item["metadata"]["name"]: item["versions"][0] for item in (await answer.json(content_type=None))["items"]
        }
    assert versions["apps"] == {"version": "v1", "freshness": "Stale"}
    assert versions["batch"]["freshness"] == "Current"
    assert await status(http, "/apis/apps/v1") == 503
    assert await status(http, "/apis/batch/v1") == 200


async def test_a_new_kind_can_be_slow_to_start(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    from tests.contract.widgets import definition

    server.api.lag, server.api.initialising = 2, 2
    await (
        await http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=definition("e.example.net"))
    ).read()
    path = "/apis/e.example.net/v1/namespaces/default/widgets"
    assert [await status(http, path) for _ in range(5)] == [404, 404, 429, 429, 200]

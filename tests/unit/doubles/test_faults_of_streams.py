"""Each scripted fault of a watch does what the script says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.doubles.apiserver import FakeApiServer, Fault

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer(bookmark_s=0.05) as running:
        yield running


@pytest.fixture
async def http(server: FakeApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url, read_bufsize=8_000_000) as session:
        yield session


async def write(http: aiohttp.ClientSession, name: str) -> str:
    """Create a ConfigMap; its version."""
    async with http.post(MAPS, json={"metadata": {"name": name}}) as answer:
        return str((await answer.json())["metadata"]["resourceVersion"])


@asynccontextmanager
async def watch(http: aiohttp.ClientSession, version: str, **query: str) -> AsyncIterator[aiohttp.ClientResponse]:
    async with http.get(MAPS, params={"watch": "1", "resourceVersion": version, **query}) as stream:
        yield stream


async def line_of(stream: aiohttp.ClientResponse, *, seconds: float = 5.0) -> bytes:
    return await asyncio.wait_for(stream.content.readline(), seconds)


async def event_of(stream: aiohttp.ClientResponse) -> tuple[str, str]:
    event: dict[str, Any] = json.loads(await line_of(stream))
    return event["type"], event["object"].get("metadata", {}).get("name", "")


async def test_expired_in_the_stream_is_one_error_event(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    server.script(verb="watch", fault=Fault.EXPIRED_IN_STREAM)
    async with watch(http, version) as stream:
        assert stream.status == 200
        event = json.loads(await line_of(stream))
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await line_of(stream) == b""


async def test_a_stream_can_end_at_once(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    server.script(verb="watch", resource="configmaps", count=2, fault=Fault.CLOSE_AT_ONCE)
    for _ in range(2):
        async with watch(http, version) as stream:
            assert (stream.status, await line_of(stream)) == (200, b"")
    await write(http, "two")
    async with watch(http, version) as stream:
        assert await event_of(stream) == ("ADDED", "two")


async def test_a_slow_stream_sends_byte_by_byte(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    await write(http, "two")
    server.script(verb="watch", fault=Fault.SLOW_STREAM)
    async with watch(http, version) as stream:
        assert await asyncio.wait_for(stream.content.readany(), 5) == b"{"
        with pytest.raises(TimeoutError):
            await line_of(stream, seconds=0.2)


@pytest.mark.parametrize("fault", [Fault.HALF_OPEN, Fault.FUTURE_VERSION])
async def test_a_silent_stream_has_no_events_and_no_bookmarks(
    server: FakeApiServer, http: aiohttp.ClientSession, fault: Fault
) -> None:
    version = await write(http, "one")
    server.script(verb="watch", fault=fault, events=0)
    async with watch(http, version, allowWatchBookmarks="true") as stream:
        await write(http, "two")
        with pytest.raises(TimeoutError):
            await line_of(stream, seconds=0.3)
    async with watch(http, version, allowWatchBookmarks="true") as stream:
        assert await event_of(stream) == ("ADDED", "two")
        assert (await event_of(stream))[0] == "BOOKMARK"


async def test_a_stream_can_fall_silent_after_some_events(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    server.script(verb="watch", fault=Fault.HALF_OPEN, events=1)
    async with watch(http, version) as stream:
        await write(http, "two")
        assert await event_of(stream) == ("ADDED", "two")
        await write(http, "three")
        with pytest.raises(TimeoutError):
            await line_of(stream, seconds=0.3)


async def test_a_restored_store_is_silent_for_who_knows_the_future(
    server: FakeApiServer, http: aiohttp.ClientSession
) -> None:
    await write(http, "one")
    backup = server.api.snapshot()
    for name in ("two", "three", "four"):
        version = await write(http, name)
    server.api.restore(backup)
    async with watch(http, version, allowWatchBookmarks="true") as stream:
        await write(http, "x")
        with pytest.raises(TimeoutError):
            await line_of(stream, seconds=0.3)
    async with http.get(MAPS) as answer:
        assert [item["metadata"]["name"] for item in (await answer.json())["items"]] == ["one", "x"]


async def test_events_can_come_twice_after_a_resume(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    version = await write(http, "two")
    server.script(verb="watch", fault=Fault.DUPLICATE_EVENTS, events=2)
    async with watch(http, version) as stream:
        await write(http, "three")
        assert [await event_of(stream) for _ in range(3)] == [("ADDED", "one"), ("ADDED", "two"), ("ADDED", "three")]


async def test_a_line_can_be_cut(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    await write(http, "two")
    server.script(verb="watch", fault=Fault.CUT_LINE)
    async with watch(http, version) as stream:
        with pytest.raises((aiohttp.ClientPayloadError, json.JSONDecodeError)):
            json.loads(await line_of(stream))


async def test_a_line_can_be_very_long(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    await write(http, "two")
    server.script(verb="watch", fault=Fault.BIG_LINE)
    async with watch(http, version) as stream:
        line = await line_of(stream)
    assert len(line) > 2_000_000
    assert json.loads(line)["object"]["metadata"]["name"] == "two"


async def test_bookmarks_come_when_nothing_happens(http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    async with watch(http, version, allowWatchBookmarks="true") as stream:
        event = json.loads(await line_of(stream))
    assert (event["type"], event["object"]["metadata"]) == ("BOOKMARK", {"resourceVersion": version})


async def test_open_streams_can_be_closed(server: FakeApiServer, http: aiohttp.ClientSession) -> None:
    version = await write(http, "one")
    async with watch(http, version) as stream:
        server.drop_watches()
        assert await line_of(stream) == b""

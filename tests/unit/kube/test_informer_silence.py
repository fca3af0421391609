"""Streams that stay open and say nothing, or nearly nothing.

In scope: half-open connections, slow streams, a server restored from a backup, the safety list.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest
from aiohttp import web

from tests.support.kube_clock import TickingClock
from tests.support.kube_informer import FAST, PATH, a_list, an_object, bookmark, event, until, watching
from tests.support.kube_server import KubeServer, line, reply, stream

WATCH = "WATCH GET"


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer() as running:
        yield running


async def test_H08_a_stream_that_falls_silent_is_closed_and_resumed_from_the_last_version(server: KubeServer) -> None:
    hold = asyncio.Event()
    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(
        WATCH,
        PATH,
        stream(bookmark("11"), hold=hold),
        stream(event("ADDED", an_object("b", version="12")), bookmark("12"), hold=hold),
        stream(hold=hold),
    )
    async with watching(server) as found:
        await until(lambda: found.names == {"a", "b"})
        assert server.count("GET", PATH) == 1
        assert found.informer.counts["silent"] == 1
        hold.set()
    assert [seen.query["resourceVersion"] for seen in server.requests if "watch" in seen.query][:2] == ["10", "11"]


async def test_H08_two_silent_streams_in_a_row_end_in_a_full_list(server: KubeServer) -> None:
    hold = asyncio.Event()
    server.on("GET", PATH, reply(200, a_list(an_object("a"))), reply(200, a_list(an_object("b"))))
    server.on(WATCH, PATH, stream(hold=hold))
    async with watching(server) as found:
        await until(lambda: found.names == {"b"})
        hold.set()
    asked = ["watch" if "watch" in seen.query else "list" for seen in server.requests]
    assert asked[:4] == ["list", "watch", "watch", "list"]
    assert found.changes == [("added", "a"), ("deleted", "a"), ("added", "b")]


async def test_H08_bytes_without_a_complete_line_are_silence_too(server: KubeServer) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.01)
        except ConnectionError:
            return response

    server.on("GET", PATH, reply(200, a_list(an_object("a"))))
    server.on(WATCH, PATH, drip)
    clock = TickingClock()
    async with watching(server, clock=clock) as found:
        await until(lambda: found.informer.counts["silent"] >= 1)
    assert found.informer.counts["silent"] >= 1


async def test_H08_everything_is_listed_again_after_some_hours_and_what_was_missed_is_counted(
    server: KubeServer,
) -> None:
    hold = asyncio.Event()
    server.on("GET", PATH, reply(200, a_list(an_object("a"))), reply(200, a_list(an_object("a"), an_object("b"))))
    server.on(WATCH, PATH, stream(bookmark("11")), stream(hold=hold))
    timing = replace(FAST, safety_s=(0.0, 0.0))
    async with watching(server, timing=timing) as found:
        await until(lambda: found.names == {"a", "b"})
        hold.set()
    assert found.informer.counts["safety_found"] >= 1


async def test_a_flood_of_events_lets_other_tasks_run_in_between(server: KubeServer) -> None:
    hold = asyncio.Event()
    flood = b"".join(line(event("ADDED", an_object(f"o{n}", version=str(n + 11)))) for n in range(10_000))
    server.on("GET", PATH, reply(200, a_list()))
    server.on(WATCH, PATH, stream(flood, hold=hold))
    sizes: list[int] = []
    async with watching(server, timing=replace(FAST, idle_s=60.0)) as found:
        async with asyncio.timeout(30):
            while len(found.informer.cache) < 10_000:
                sizes.append(len(found.informer.cache))
                await asyncio.sleep(0)
        hold.set()
    steps = [after - before for before, after in pairwise([*sizes, 10_000])]
    assert max(steps) <= 3000

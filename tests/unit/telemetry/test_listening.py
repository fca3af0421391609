"""Connections that are opened and say nothing cost neither file descriptors nor answers (fault H20)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from aiohttp import web

from gitops_ctl.telemetry.endpoints import Endpoints, health_app
from gitops_ctl.telemetry.listening import Bounds

PATIENCE_S = 30.0
Connect = Callable[[], Awaitable[asyncio.StreamReader]]


@asynccontextmanager
async def _served(app: web.Application, *, bounds: Bounds) -> AsyncIterator[tuple[str, Connect]]:
    """Its address, and what opens a connection that stays open to the end of the test unless the server closes it."""
    async with AsyncExitStack() as stack:
        address = (await stack.enter_async_context(Endpoints({"app": (app, "127.0.0.1:0")}, bounds=bounds))).addresses[
            "app"
        ]
        host, _, port = address.rpartition(":")

        async def connect(said: bytes = b"POST /hooks/a/b HTTP/1.1\r\nHost: a") -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.callback(writer.close)
            writer.write(said)
            return reader

        yield address, connect


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    """Once it ends; a connection that is cut off may end with an error."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    except ConnectionError:
        return True


async def _healthy(address: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/healthz") as answer:
        return answer.status


async def test_H20_a_connection_that_never_ends_its_request_is_closed() -> None:
    async with _served(health_app(is_ready=lambda: True), bounds=Bounds(10, 0.2)) as (address, connect):
        assert await _is_closed(await connect())
        assert await _healthy(address) == 200


async def test_H20_too_many_connections_are_closed_at_once_and_the_others_served() -> None:
    async with _served(health_app(is_ready=lambda: True), bounds=Bounds(5, 3600.0)) as (_, connect):
        held = [await connect() for _ in range(5)]
        further = [await connect() for _ in range(20)]
        assert all([await _is_closed(each) for each in further])
        assert not any(each.at_eof() for each in held)


async def test_a_place_is_free_again_when_its_connection_has_ended() -> None:
    async with _served(health_app(is_ready=lambda: True), bounds=Bounds(1, 3600.0)) as (address, _):
        for _ in range(5):
            async with asyncio.timeout(PATIENCE_S):
                while await _status_or_none(address) != 200:
                    await asyncio.sleep(0)


async def _status_or_none(address: str) -> int | None:
    """None while the connection before has not ended at the server's side."""
    try:
        return await _healthy(address)
    except aiohttp.ClientError:
        return None


async def test_a_large_answer_arrives_whole() -> None:
    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 10_000_000)

    app = web.Application()
    app.router.add_get("/large", large)
    async with (
        _served(app, bounds=Bounds()) as (address, _),
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/large") as answer,
    ):
        assert len(await answer.read()) == 10_000_000

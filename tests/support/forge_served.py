"""A forge's double over HTTP on loopback, for readers that nobody here wrote."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web


class Served:
    """A double over HTTP on loopback, for readers that nobody here wrote; a context manager of asyncio.

    Args:
        double: has `answer(method, url, headers, body)`.
        base: address that the double believes in.
    """

    def __init__(self, double: Any, *, base: str) -> None:
        self._double = double
        self._base = urlsplit(base)
        self.url = ""

    async def __aenter__(self) -> "Served":
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}{self._base.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        url = f"{self._base.scheme}://{self._base.netloc}{request.raw_path}"
        answer = self._double.answer(request.method, url, dict(request.headers), await request.read())
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))

    async def read(self, reader: Any) -> Any:
        """Run a blocking reader beside the server."""
        return await asyncio.to_thread(reader)

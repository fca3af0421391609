"""A TCP proxy in front of a real API server whose connections a test can hold."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class HoldingProxy:
    """Forwards both ways while `open` is set; while it is not, bytes wait, as with a server that stalls.

    `hold_present` makes the connections of now half-open for good; later ones work.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self.open = asyncio.Event()
        self.open.set()
        self.port = 0
        self._present = self._gate()
        self._tasks: set[asyncio.Task[None]] = set()

    @staticmethod
    def _gate() -> asyncio.Event:
        gate = asyncio.Event()
        gate.set()
        return gate

    def hold_present(self) -> None:
        self._present.clear()
        self._present = self._gate()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink, self._present))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        try:
            while data := await source.read(65536):
                await self.open.wait()
                await gate.wait()
                sink.write(data)
                await sink.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            sink.close()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def holding_proxy(host: str, port: int) -> AsyncIterator[HoldingProxy]:
    proxy = HoldingProxy(host, port)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()

"""What the manager serves: whether it is alive and ready, its metrics, and applications of other rooms, each on its own address."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from aiohttp import web

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.telemetry.listening import Bounds, listen


def health_app(*, is_ready: Callable[[], bool]) -> web.Application:
    """`/healthz` answers while the loop turns; `/readyz` answers 200 when the process can lead or leads."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_request: web.Request) -> web.Response:
        ready = is_ready()
        return web.Response(status=200 if ready else 503, text="ok\n" if ready else "not ready\n")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


class Measured(Protocol):
    """What has a text exposition: `Metrics`, `WorkerMetrics`."""

    def render(self) -> bytes: ...


def metrics_app(metrics: Measured, *, refresh: Callable[[], None]) -> web.Application:
    """`/metrics`; `refresh` sets the gauges from the caches just before they are read, so that none goes stale."""

    async def scrape(_request: web.Request) -> web.Response:
        refresh()
        return web.Response(body=metrics.render(), content_type="text/plain", charset="utf-8")

    app = web.Application()
    app.router.add_get("/metrics", scrape)
    return app


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`.

    Raises:
        TerminalError: another form.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise TerminalError(f"{text!r} is not <host>:<port>", code=ErrorCode.USAGE, hint="write 127.0.0.1:8081")
    return host.strip("[]"), int(port)


class Endpoints:
    """An async context manager that serves each application on its address.  `addresses` has the ports in use."""

    def __init__(self, apps: Mapping[str, tuple[web.Application, str]], *, bounds: Bounds = Bounds()) -> None:
        """`apps`: name to application and `host:port`; port 0 takes a free one.  `bounds` hold for each of them."""
        self._bounds = bounds
        self._apps = apps
        self._runners: list[web.AppRunner] = []
        self._servers: list[asyncio.Server] = []
        self.addresses: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            TerminalError: an address is wrong or taken.
        """
        for name, (app, address) in self._apps.items():
            host, port = parse_address(address)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            self._runners.append(runner)
            assert runner.server is not None
            try:
                server, found = await listen(runner.server, host=host, port=port, bounds=self._bounds)
            except OSError as error:
                await self.__aexit__(None, None, None)
                raise TerminalError(
                    f"cannot listen on {address}: {error.strerror}", code=ErrorCode.LOCAL_SYSTEM, subject=name
                ) from error
            self._servers.append(server)
            self.addresses[name] = f"{found[0]}:{found[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for runner in self._runners:
            await runner.cleanup()
        self._servers.clear()
        self._runners.clear()

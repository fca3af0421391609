"""A proxy in front of a real forge that spoils chosen exchanges: what networks and other proxies do to us.

    async with FaultProxy(gitea.url, ca_file=gitea.ca_file, certificate=gitea.certificate) as proxy:
        proxy.spoil("drop-after", method="POST", path=r"/pulls$")      # carried out, and the answer is lost
        adapter = forge_adapter("gitea", base_url=proxy.url, ...)
    assert proxy.forwarded("POST", r"/pulls$") == 1

Kinds: `drop-before` and `drop-after` (the forge has, or has not, carried it out), `status` (an answer of the proxy's own), `slow` (the body comes
in drops), `cut` (half of the body, as if it were all), `broken` (half of the announced body), `redirect`, `limit` (429), `twice` (the forge
gets the request two times), `flood` (a body without end).
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

_HOP = {
    "connection",
    "transfer-encoding",
    "content-length",
    "host",
    "keep-alive",
    "content-encoding",
    "accept-encoding",
}


@dataclass
class Fault:
    """One thing that happens to the next `times` matching requests, after the first `skip` of them."""

    kind: str
    method: str
    path: re.Pattern[str]
    times: int = 1
    skip: int = 0
    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"<html>Bad Gateway</html>"
    pause_s: float = 0.2

    def takes(self, method: str, path: str) -> bool:
        if self.times <= 0 or self.method not in ("", method) or not self.path.search(path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class FaultProxy:
    """Forwards to `target`; a context manager of asyncio.

    Args:
        target: address of the forge.
        ca_file: authority of the forge, None for plain HTTP.
        certificate: files of certificate and key to serve TLS with, None for plain HTTP.
    """

    def __init__(
        self, target: str, *, ca_file: Path | None = None, certificate: tuple[Path, Path] | None = None
    ) -> None:
        self._target = target.rstrip("/")
        self._trust = ssl.create_default_context(cafile=str(ca_file)) if ca_file else False
        self._serving: ssl.SSLContext | None = None
        if certificate:
            self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._serving.load_cert_chain(*certificate)
        self._faults: list[Fault] = []
        self._forwarded: list[tuple[str, str]] = []
        self.received: list[tuple[str, str]] = []
        self.url = ""

    def spoil(self, kind: str, *, method: str = "", path: str = "", **members: object) -> Fault:
        """Spoil the next request of that method whose path (with its query) the expression finds; the first fault that fits is taken."""
        fault = Fault(kind, method, re.compile(path), **members)  # type: ignore[arg-type]
        self._faults.append(fault)
        return fault

    def heal(self) -> None:
        """Forget all faults."""
        self._faults.clear()

    def forwarded(self, method: str = "", path: str = "") -> int:
        """How many such requests the forge got."""
        return sum(method in ("", asked) and bool(re.search(path, place)) for asked, place in self._forwarded)

    async def __aenter__(self) -> "FaultProxy":
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._serving).start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._serving else 'http'}://127.0.0.1:{port}"
        self._session = aiohttp.ClientSession(auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.raw_path
        self.received.append((method, path))
        body = await request.read()
        fault = next((each for each in self._faults if each.takes(method, path)), None)
        if fault is None:
            return _response(*await self._forward(request, body))
        if fault.kind in ("status", "limit", "redirect"):
            return _own_answer(fault, path)
        if fault.kind in ("drop-after", "twice"):
            await self._forward(request, body)
        if fault.kind.startswith("drop"):
            return _dropped(request)
        return await self._spoiled(fault, request, body)

    async def _spoiled(self, fault: Fault, request: web.Request, body: bytes) -> web.StreamResponse:
        """Faults in the middle of an answer."""
        status, headers, content = await self._forward(request, body)
        if fault.kind == "twice":
            return _response(status, headers, content)
        if fault.kind == "cut":
            return _response(status, headers, content[: len(content) // 2])
        response = web.StreamResponse(status=status, headers=headers)
        if fault.kind != "flood":
            response.content_length = len(content)
        await response.prepare(request)
        try:
            match fault.kind:
                case "broken":
                    await response.write(content[: len(content) // 2])
                    return _dropped(request)
                case "slow":
                    for start in range(0, len(content), 16):
                        await response.write(content[start : start + 16])
                        await asyncio.sleep(fault.pause_s)
                case "flood":
                    for _ in range(4096):
                        await response.write(b" " * 65536)
                case _:
                    raise AssertionError(f"no such fault: {fault.kind}")
        except ConnectionError:
            pass
        return response

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self._forwarded.append((request.method, request.raw_path))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with self._session.request(
            request.method,
            self._target + request.raw_path,
            headers=headers,
            data=body,
            ssl=self._trust,
            allow_redirects=False,
        ) as reply:
            content = await reply.read()
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in _HOP}
            return reply.status, kept, content


def _response(status: int, headers: Mapping[str, str], content: bytes) -> web.Response:
    return web.Response(status=status, headers=dict(headers), body=content)


def _own_answer(fault: Fault, path: str) -> web.Response:
    """What the forge never said."""
    known = {
        "status": (fault.status, {}, fault.body),
        "limit": (429, {"Retry-After": "30"}, b'{"message": "slow down"}'),
        "redirect": (302, {"Location": f"https://elsewhere.example.net{path}"}, b""),
    }
    status, headers, body = known[fault.kind]
    return web.Response(status=status, headers={**headers, **fault.headers}, body=body)


def _dropped(request: web.Request) -> web.Response:
    """End the connection without another byte."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()

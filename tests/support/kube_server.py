"""A tiny API server that says what a test tells it to.

Answers are given per method and path and used in their order; the last one stays.  It knows nothing about Kubernetes: it is for
tests of the transport and of single faults.

Example:
    async with KubeServer() as server:
        server.on("GET", "/api/v1/pods", reply(429, status_object(429), headers={"Retry-After": "1"}), reply(200, {...}))
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gitops_ctl.kube.config import ClusterConfig

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def status_object(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or f"status {code}",
        "details": details,
    }


def reply(status: int, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
    """A JSON answer, or plain text when `body` is a string."""

    async def answer(_: web.Request) -> web.StreamResponse:
        if isinstance(body, str):
            return web.Response(status=status, text=body, headers=headers)
        return web.Response(
            status=status, body=json.dumps(body or {}).encode(), content_type="application/json", headers=headers
        )

    return answer


def lose_reply() -> Answer:
    """The request is taken, and the connection is cut without an answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


def hang(released: asyncio.Event) -> Answer:
    """No answer until `released` is set."""

    async def answer(_: web.Request) -> web.StreamResponse:
        await released.wait()
        return web.Response(status=200, body=b"{}", content_type="application/json")

    return answer


def stream(*chunks: bytes | dict[str, Any], hold: asyncio.Event | None = None, cut: bool = False) -> Answer:
    """A watch: events or raw chunks, then the end; after `hold` is set, or by cutting the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk if isinstance(chunk, bytes) else line(chunk))
        if hold is not None:
            await hold.wait()
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


class KubeServer:
    """See the module."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.url = ""
        self._answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
        self._runner: web.AppRunner | None = None

    def on(self, method: str, path: str, *answers: Answer) -> None:
        self._answers[method, path] = list(answers)

    def count(self, method: str, path: str, *, watch: bool = False) -> int:
        return sum(
            1
            for seen in self.requests
            if (seen.method, seen.path) == (method, path) and ("watch" in seen.query) == watch
        )

    def config(self) -> ClusterConfig:
        return ClusterConfig(self.url)

    async def __aenter__(self) -> "KubeServer":
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        key = (f"WATCH {request.method}" if "watch" in request.query else request.method, request.path)
        answers = self._answers.get(key) or self._answers.get((request.method, request.path))
        if not answers:
            return web.Response(status=404, text="404 page not found")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(request)

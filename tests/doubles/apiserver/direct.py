"""The product's client on the double without sockets: for simulations, where every request is a point at which a process may die.

Only the last step of the client is replaced, the one that would open a connection: paths, queries, deadlines, retries and the
mapping of errors are those of the product.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, cast
from urllib.parse import parse_qsl

import aiohttp
import msgspec

from gitops_ctl.core.clock import Clock
from gitops_ctl.kube.answers import classify
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.exchange import Call, Exchange, Limits, resource_of
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver.answers import ApiError, Tree
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.request import Answer, Request
from tests.doubles.apiserver.streams import Streams
from tests.doubles.apiserver.watch import Watch

Side: TypeAlias = Literal["before", "after"]
Point: TypeAlias = Callable[[Call, Side], None]


def _ignore(_: Call, __: Side) -> None:
    """No fault."""


class DirectExchange(Exchange):
    """An exchange whose server is an object in memory.

    `point` is called before and after the effect of each request; what it raises happens there.  An error raised after the
    effect leaves the effect in place, as a lost reply or a crash does.
    """

    def __init__(self, api: ApiServer, streams: Streams, *, point: Point, like: Exchange) -> None:
        super().__init__(like.config, component="direct", clock=like.clock, draw=like.draw, limits=like.limits)
        self._agent = like._agent
        self._api = api
        self._streams = streams
        self._point = point

    async def __aenter__(self) -> Self:
        self._streams.attach()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._streams.detach()

    async def _once(self, call: Call, authorization: str) -> bytes:
        async with self._slots:
            self.calls[call.verb, resource_of(call.path)] += 1
            await asyncio.sleep(0)
            self._point(call, "before")
            answer = self._api.handle(self._request(call))
            self._point(call, "after")
        if answer.code < 300:
            return _bytes(answer)
        raise self._error(answer, call)

    async def _open_watch_once(self, call: Call, authorization: str) -> aiohttp.ClientResponse:
        self.calls[call.verb, resource_of(call.path)] += 1
        await asyncio.sleep(0)
        self._point(call, "before")
        request = self._request(call)
        try:
            watch = self._api.open_watch(request)
        except ApiError as error:
            self._api.record(request, None, "watch", error.code)
            text = error.message if error.plain else error.body()
            raise self._error(Answer(error.code, text, error.headers), call) from error
        return cast("aiohttp.ClientResponse", _Response(watch, request, self._streams))

    def _request(self, call: Call) -> Request:
        headers = {"content-type": call.media, "accept": call.accept, "user-agent": self._agent}
        if call.account:
            headers["impersonate-user"] = call.account
        query = dict(parse_qsl(call.query.removeprefix("?"), keep_blank_values=True))
        return Request(call.method, call.path, query, headers, call.body or b"")

    @staticmethod
    def _error(answer: Answer, call: Call) -> Exception:
        wait = answer.headers.get("Retry-After", "")
        error = classify(
            answer.code, _bytes(answer), subject=call.subject, retry_after_s=float(wait) if wait.isdecimal() else None
        )
        assert isinstance(error, Exception)
        return error


def _bytes(answer: Answer) -> bytes:
    return answer.body.encode() if isinstance(answer.body, str) else msgspec.json.encode(answer.body)


class _Response:
    """As much of a response as the client reads of a watch."""

    status = 200

    def __init__(self, watch: Watch, request: Request, streams: Streams) -> None:
        self._events = streams.events(watch, request.query)
        self._closed = False
        self.content = self

    async def readany(self) -> bytes:
        """The next line, nothing at the end."""
        if self._closed:
            return b""
        event: Tree | None = await anext(self._events, None)
        return b"" if event is None else msgspec.json.encode(event) + b"\n"

    def close(self) -> None:
        self._closed = True


def direct_client(
    api: ApiServer,
    *,
    component: str,
    clock: Clock,
    point: Point = _ignore,
    limits: Limits | None = None,
    draw: Callable[[], float] = lambda: 0.5,
) -> KubeClient:
    """The product's client of `api`; enter it like any other.  Several clients may share one server."""
    client: Any = KubeClient(
        ClusterConfig("http://127.0.0.1:1"), component=component, clock=clock, limits=limits, draw=draw
    )
    client._exchange = DirectExchange(api, Streams(api), point=point, like=client._exchange)
    client.dedicated = lambda *, component, limits: direct_client(
        api, component=component, clock=clock, point=point, limits=limits, draw=draw
    )
    made: KubeClient = client
    return made

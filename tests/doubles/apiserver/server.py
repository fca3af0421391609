"""The HTTP side of the double: real sockets on loopback, streams, and the faults of the script."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from tests.doubles.apiserver import answers
from tests.doubles.apiserver.answers import ApiError, Tree
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.faults import Entry, Fault, Script
from tests.doubles.apiserver.request import Answer, Request, Target, target_of
from tests.doubles.apiserver.streams import Streams

BIG = 2_000_000
STREAM_FAULTS = frozenset(
    {Fault.SLOW_STREAM, Fault.HALF_OPEN, Fault.FUTURE_VERSION, Fault.DUPLICATE_EVENTS, Fault.CUT_LINE, Fault.BIG_LINE}
)


class FakeApiServer:
    """`async with FakeApiServer() as server:` serves on `server.url` until the block ends.

    Attributes:
        api: rules and store; tests may read and write the store directly.
        faults: the script, and what has struck so far.
    """

    def __init__(self, api: ApiServer | None = None, *, bookmark_s: float = 60.0) -> None:
        self.api = api if api is not None else ApiServer()
        self.faults = Script()
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._streams = Streams(self.api, bookmark_s=bookmark_s)

    async def __aenter__(self) -> "FakeApiServer":
        self._streams.attach()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()
        self._streams.detach()

    def script(self, *, verb: str = "*", resource: str = "*", at: int = 1, count: int = 1, **how: Any) -> Entry:
        """Add a fault: the requests number `at` to `at + count - 1` that match, counted from now.

        `how` has `fault` and the options of that fault, see `faults.Entry`.
        """
        entry = Entry(verb=verb, resource=resource, at=at, count=count, **how)
        self.faults.entries.append(entry)
        return entry

    async def restart(self, *, keep: bool = True) -> None:
        """Drop all connections and listen again on the same port; without `keep` the store is lost."""
        await self._close()
        if not keep:
            self.api.reset()
        await self._listen()

    def drop_watches(self) -> None:
        """Close every open stream, as a server does when its time is over."""
        self._streams.drop()

    # -- listening -----------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        app = web.Application(client_max_size=8_000_000)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def _close(self) -> None:
        self.drop_watches()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    # -- requests ------------------------------------------------------------------------------------------------

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        request = Request(
            method=http.method,
            path=http.path,
            query=dict(http.query.items()),
            headers=_headers(http),
            body=await http.read(),
        )
        target = _target(request)
        verb = target.verb(request) if target.name or target.plural else request.method.lower()
        entry = self.faults.next(verb, target.plural)
        if entry is not None:
            response = await self._before(entry, http, request, target)
            if response is not None:
                return response
        if self.api.is_watch(request):
            return await self._watch(http, request, entry)
        answer = self.api.handle(request)
        if entry is not None and entry.fault is Fault.LOST_REPLY:
            return _hang_up(http)
        return _response(answer)

    async def _before(
        self, entry: Entry, http: web.Request, request: Request, target: Target
    ) -> web.StreamResponse | None:
        """The faults that strike before the request is carried out; None to carry it out."""
        error = self._refusal(entry, request, target)
        if error is not None:
            self.api.record(request, target, target.verb(request), error.code)
            return _response(Answer(error.code, error.body(), error.headers))
        if entry.fault is Fault.STALL:
            await asyncio.sleep(entry.seconds)
        elif entry.fault is Fault.RESTART:
            if not entry.keep:
                self.api.reset()
            self.drop_watches()
            return _hang_up(http)
        elif entry.fault is Fault.CONFLICT:
            self._write_first(request, target)
        elif entry.fault is Fault.DELETE_DURING_LIST:
            self._delete_one(request, target)
        elif entry.fault in (Fault.CLOSE_AT_ONCE, Fault.EXPIRED_IN_STREAM):
            return await self._short_stream(http, entry)
        return None

    @staticmethod
    def _refusal(entry: Entry, request: Request, target: Target) -> ApiError | None:
        """The answer of the faults that refuse; None for the others."""
        subject = answers.Named(target.group, target.plural, target.name)
        plain: dict[Fault, Callable[[], ApiError]] = {
            Fault.FORBIDDEN: lambda: _denied(request, target),
            Fault.NOT_FOUND: lambda: answers.not_found(subject),
            Fault.EXPIRED_STATUS: lambda: answers.expired("The resourceVersion for the provided list is too old."),
            Fault.RATE_LIMITED: lambda: answers.rate_limited(entry.retry_after_s),
            Fault.SERVER_ERROR: lambda: ApiError(entry.code, "an error on the server", "InternalError", {}),
        }
        if entry.fault is Fault.UNAUTHORIZED:
            return _unauthorized(entry, request)
        make = plain.get(entry.fault)
        return None if make is None else make()

    def _write_first(self, request: Request, target: Target) -> None:
        """Somebody else writes the object just before; creates it when it is about to be created."""
        collection, key = (target.group, target.plural), (target.namespace, target.name)
        found = self.api.store.get(collection, key)
        if found is not None:
            metadata = {**found["metadata"], "annotations": {**found["metadata"].get("annotations", {})}}
            metadata["annotations"]["example.net/other-writer"] = str(self.api.store.version)
            self.api.store.put(collection, key, {**found, "metadata": metadata})
        elif request.method == "POST":
            self.api.handle(Request("POST", request.path, {}, request.headers, request.body))

    def _delete_one(self, request: Request, target: Target) -> None:
        """The last object of the list goes, and the token with it."""
        collection = (target.group, target.plural)
        found = self.api.store.all(collection, target.namespace)
        if found:
            self.api.store.remove(collection, found[-1][0])
        if "continue" in request.query:
            self.api.store.compact()

    # -- streams -------------------------------------------------------------------------------------------------

    async def _short_stream(self, http: web.Request, entry: Entry) -> web.StreamResponse:
        response = await _opened(http)
        if entry.fault is Fault.EXPIRED_IN_STREAM:
            error = answers.expired("too old resource version: 1 (2)")
            await response.write(_line({"type": "ERROR", "object": error.body()}))
        await response.write_eof()
        return response

    async def _watch(self, http: web.Request, request: Request, entry: Entry | None) -> web.StreamResponse:
        try:
            watch = self.api.open_watch(request)
        except ApiError as error:
            self.api.record(request, _target(request), "watch", error.code)
            return _response(Answer(error.code, error.message if error.plain else error.body(), error.headers))
        response = await _opened(http)
        fault = entry if entry is not None and entry.fault in STREAM_FAULTS else None
        if fault is not None and fault.fault is Fault.DUPLICATE_EVENTS:
            watch.repeat(fault.events)
        with suppress(ConnectionError):
            async for event in self._streams.events(watch, request.query, fault=fault):
                if not await _send(response, event, fault):
                    return _hang_up(http, response)
            await response.write_eof()
        return response


def _denied(request: Request, target: Target) -> ApiError:
    return answers.denied(
        user=request.user or "test",
        verb=target.verb(request),
        group=target.group,
        resource=target.plural,
        namespace=target.namespace,
        name=target.name,
    )


def _unauthorized(entry: Entry, request: Request) -> ApiError | None:
    """401 for as long as the same credential is shown."""
    shown = request.headers.get("authorization", "")
    if entry.credential is None:
        entry.credential = shown
    entry.count += 1  # the old credential stays refused
    return answers.unauthorized() if shown == entry.credential else None


def _headers(http: web.Request) -> Mapping[str, str]:
    """Header names in lower case; a name that is there several times is joined."""
    return {name.lower(): ",".join(http.headers.getall(name)) for name in http.headers}


def _target(request: Request) -> Target:
    try:
        return target_of(request.path)
    except ApiError:
        return Target("", "", request.path.strip("/").split("/")[0])


def _response(answer: Answer) -> web.Response:
    if isinstance(answer.body, str):
        return web.Response(status=answer.code, text=answer.body, headers=answer.headers)
    headers = {"Content-Type": "application/json", **answer.headers}
    body = json.dumps(answer.body, separators=(",", ":"), ensure_ascii=False).encode()
    return web.Response(status=answer.code, body=body, headers=headers)


def _line(event: Tree) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


async def _opened(http: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(http)
    return response


async def _send(response: web.StreamResponse, event: Tree, fault: Entry | None) -> bool:
    """Write one event in the way of the fault; False when the connection is to be cut."""
    kind = fault.fault if fault is not None else None
    line = _line(event)
    if kind is Fault.BIG_LINE and event["type"] != "BOOKMARK":
        shown = dict(event["object"])
        shown["metadata"] = {**shown["metadata"], "annotations": {"example.net/padding": "x" * BIG}}
        await response.write(_line({**event, "object": shown}))
        return True
    if kind is Fault.CUT_LINE:
        await response.write(line[: len(line) // 2])
        return False
    if kind is Fault.SLOW_STREAM:
        for byte in line:
            await response.write(bytes([byte]))
            await asyncio.sleep(1.0)
        return True
    await response.write(line)
    return True


def _hang_up(http: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection without a proper end."""
    if http.transport is not None:
        http.transport.abort() if response is None else http.transport.close()
    return response if response is not None else web.Response()

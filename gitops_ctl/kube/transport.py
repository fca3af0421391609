"""The verbs of the Kubernetes API over one client, on plain JSON trees.

Objects travel as trees or as bytes that are already JSON; nothing is ever passed through typed models, which would drop the
fields of newer servers (H10).  Every method maps failures to our errors (`kube.answers`), keeps the deadlines of
`kube.exchange` and can act as a ServiceAccount: `account` is impersonated by a header, never by another session.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.core.errors import Conflict, NotFound, Unavailable
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, objects_at, text_at
from gitops_ctl.kube.answers import Gone, KindNotServed, ServerRefused, classify
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.exchange import JSON, Call, Exchange, Limits, translated
from gitops_ctl.kube.lines import LineSplitter, ProtocolFailed

PAGE_SIZE: Final = 500
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
LIST_PAGE_S: Final = 60.0
LIST_LIMIT_BYTES: Final = 64 * 1024 * 1024
IDLE_S: Final = 75.0
"""Bookmarks come every 60 s, so a stream that is silent for longer is half open (H08)."""

WRITE_VERBS: Final = frozenset({"create", "apply", "patch", "update", "delete"})
"""Verbs of `KubeClient.calls` that change the cluster; a dry run is counted as `dry-run`."""

_APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"

T = TypeVar("T")
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a list; all pages of one list have the same version, that of the snapshot."""

    items: Sequence[JsonObject]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A whole list, in the server's order, and the version to watch from."""

    items: Sequence[T]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event; a BOOKMARK's object has nothing but its version."""

    type: EventType
    object: JsonObject


class StreamSilent(Unavailable):
    """Nothing came for longer than the server may be silent."""


class _Line(msgspec.Struct):
    # Any: the tree of an object; `JsonObject` is an alias that msgspec cannot build.
    type: str
    object: dict[str, Any]


_LINE_DECODER: Final = msgspec.json.Decoder(_Line)
_TREE_DECODER: Final = msgspec.json.Decoder(dict[str, Any])
_encode: Final = msgspec.json.Encoder().encode


class KubeClient:
    """One cluster, one identity, and any number of impersonated accounts.  An async context manager."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        component: str,
        clock: Clock | None = None,
        concurrency: int = 32,
        limits: Limits | None = None,
        draw: Callable[[], float] | None = None,
    ) -> None:
        """`component` stands in the user agent, so that audit and metrics of the server tell our parts apart."""
        self._config = config
        self._exchange = Exchange(
            config,
            component=component,
            clock=clock or SystemClock(),
            draw=draw or random.SystemRandom().random,
            limits=limits or Limits(concurrency=concurrency),
        )

    async def __aenter__(self) -> Self:
        await self._exchange.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exchange.__aexit__(kind, error, trace)

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """Requests sent so far by (verb, resource); each attempt counts."""
        return self._exchange.calls

    @property
    def clock(self) -> Clock:
        return self._exchange.clock

    def draw(self) -> float:
        """A random number in [0, 1), for jitter."""
        return self._exchange.draw()

    def dedicated(self, *, component: str, limits: Limits) -> "KubeClient":
        """Another client of the same cluster with connections of its own; the caller enters it."""
        return KubeClient(self._config, component=component, clock=self.clock, limits=limits, draw=self._exchange.draw)

    async def get(self, path: str, *, account: str | None = None, accept: str = JSON) -> JsonObject:
        """The object at `path`.

        Raises:
            NotFound: no such object; KindNotServed: no such kind.
        """
        limit = LIST_LIMIT_BYTES if accept != JSON else 4 * 1024 * 1024
        return self._tree(
            await self._exchange.perform(Call("get", "GET", path, account=account, accept=accept, limit_bytes=limit))
        )

    async def find(self, path: str, *, account: str | None = None, metadata_only: bool = False) -> JsonObject | None:
        """The object at `path`, or None when it is not there.  A kind that is not served is still an error.

        With `metadata_only` the server sends nothing else of it.
        """
        try:
            return await self.get(path, account=account, accept=METADATA_ONLY.format("") if metadata_only else JSON)
        except KindNotServed:
            raise
        except NotFound:
            return None

    async def list_pages(
        self,
        path: str,
        *,
        limit: int = PAGE_SIZE,
        label_selector: str | None = None,
        field_selector: str | None = None,
        account: str | None = None,
        accept: str = JSON,
    ) -> AsyncIterator[Page]:
        """Pages of one snapshot; `limit=0` asks for everything at once.  Items have `apiVersion` and `kind`.

        Raises:
            Gone: the server forgot the snapshot half way; every page of this list must be thrown away.
        """
        token = ""
        while True:
            query = _query(
                limit=str(limit) if limit else "",
                labelSelector=label_selector or "",
                fieldSelector=field_selector or "",
                **{"continue": token},
            )
            call = Call(
                "list",
                "GET",
                path,
                query,
                account=account,
                accept=accept,
                timeout_s=LIST_PAGE_S,
                limit_bytes=LIST_LIMIT_BYTES,
            )
            try:
                tree = self._tree(await self._exchange.perform(call))
            except ServerRefused as error:
                if token:  # a broken token is answered with 400, not 410
                    raise Gone(error.message, subject=error.subject) from error
                raise
            yield Page(_stamped(tree), text_at(tree, "metadata", "resourceVersion"))
            token = text_at(tree, "metadata", "continue")
            if not token:
                return

    async def collect(
        self,
        path: str,
        *,
        keep: Callable[[JsonObject], T],
        label_selector: str | None = None,
        account: str | None = None,
        metadata_only: bool = False,
    ) -> Listed[T]:
        """What `keep` makes of each object of the whole list; begins again when the snapshot is lost.

        The third time it asks without pages: a busy store can forget every snapshot before its last page is read.  With `metadata_only` the
        server sends nothing else of an object.
        """
        accept = METADATA_ONLY.format("List") if metadata_only else JSON
        for limit in (PAGE_SIZE, PAGE_SIZE, 0):
            items: list[T] = []
            version = ""
            try:
                pages = self.list_pages(
                    path, limit=limit, account=account, label_selector=label_selector, accept=accept
                )
                async for page in pages:
                    items.extend(map(keep, page.items))
                    version = page.resource_version
                return Listed(items, version)
            except Gone:
                if limit == 0:
                    raise
        raise AssertionError("the last round returns or raises")

    async def list_all(self, path: str, *, label_selector: str | None = None, account: str | None = None) -> Page:
        """The whole list as trees."""
        listed = await self.collect(path, keep=_whole, label_selector=label_selector, account=account)
        return Page(listed.items, listed.resource_version)

    async def watch(  # noqa: PLR0913  each is a parameter of the request
        self,
        path: str,
        *,
        resource_version: str,
        timeout_s: float,
        idle_s: float = IDLE_S,
        label_selector: str | None = None,
        field_selector: str | None = None,
        account: str | None = None,
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after `resource_version`, until the server ends the stream after `timeout_s`.  Close it with `aclosing`.

        Raises:
            Gone: the version is too old, whether the server says so as a status or as an event.
            StreamSilent: no complete line for `idle_s`, however many bytes came.
            ProtocolFailed: a line is too long or no JSON.
            TransientError: the stream broke; resume from the last version.
        """
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(int(timeout_s)),
            labelSelector=label_selector or "",
            fieldSelector=field_selector or "",
        )
        accept = METADATA_ONLY.format("") if metadata_only else JSON
        call = Call("watch", "GET", path, query, account=account, accept=accept)
        response = await self._exchange.open_watch(call)
        try:
            async for line in self._lines(response, call, idle_s=idle_s):
                yield _event_of(line, call)
        finally:
            response.close()

    async def _lines(self, response: aiohttp.ClientResponse, call: Call, *, idle_s: float) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        last_s = self.clock.boot_s()
        while True:
            try:
                async with asyncio.timeout(max(0.0, last_s + idle_s - self.clock.boot_s())):
                    chunk = await response.content.readany()
            except TimeoutError as error:
                raise StreamSilent(f"silent for {idle_s:g} s", subject=call.subject) from error
            except (aiohttp.ClientError, OSError) as error:
                raise translated(error, call) from error
            if not chunk:
                return
            for line in splitter.feed(chunk):
                yield line
                last_s = self.clock.boot_s()
            await asyncio.sleep(0)  # a full buffer is read without waiting: let the other tasks run in between

    async def create(
        self,
        path: str,
        body: bytes | JsonObject,
        *,
        manager: str = "",
        dry_run: bool = False,
        account: str | None = None,
    ) -> JsonObject:
        """POST to a collection.  Never repeated: after ReplyLost, read and compare.

        Raises:
            AlreadyExists: the name is taken.  ReplyLost: it may have been created.
        """
        verb = "dry-run" if dry_run else "create"
        query = _write_query(manager, dry_run=dry_run)
        call = Call(verb, "POST", path, query, _bytes(body), account=account, safe=dry_run)
        return self._tree(await self._exchange.perform(call))

    async def apply(  # noqa: PLR0913  each is a parameter of the request
        self,
        path: str,
        body: bytes | JsonObject,
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        account: str | None = None,
        subresource: str = "",
    ) -> JsonObject:
        """Server-side apply; safe to repeat.  The answer is the whole object, also of a dry run.

        Raises:
            FieldConflict: other managers own fields and `force` is False.
            ServerRefused: the content is wrong; `fields` and `immutable_fields` say where.
        """
        target = f"{path}/{subresource}" if subresource else path
        query = _write_query(manager, force=force, dry_run=dry_run)
        verb = "dry-run" if dry_run else "apply"
        return self._tree(
            await self._exchange.perform(Call(verb, "PATCH", target, query, _bytes(body), _APPLY, account=account))
        )

    async def patch_json(
        self,
        path: str,
        ops: Sequence[JsonObject],
        *,
        manager: str = "",
        dry_run: bool = False,
        account: str | None = None,
        subresource: str = "",
    ) -> JsonObject:
        """JSON patch; begin `ops` with a `test`, so that it is safe to repeat.

        Raises:
            Conflict: a test failed.
        """
        try:
            return await self._patch(path, _encode(ops), _JSON_PATCH, (manager, dry_run, account, subresource))
        except ServerRefused as error:
            if error.status == 422 and not error.fields:  # how a failed test is answered; a broken rule names its field
                raise Conflict(error.message, subject=error.subject) from error
            raise

    async def patch_merge(
        self,
        path: str,
        body: bytes | JsonObject,
        *,
        manager: str = "",
        dry_run: bool = False,
        account: str | None = None,
        subresource: str = "",
    ) -> JsonObject:
        """Merge patch: members that are null are removed, lists are replaced."""
        return await self._patch(path, _bytes(body), _MERGE_PATCH, (manager, dry_run, account, subresource))

    async def _patch(
        self, path: str, body: bytes, media: str, options: tuple[str, bool, str | None, str]
    ) -> JsonObject:
        manager, dry_run, account, subresource = options
        target = f"{path}/{subresource}" if subresource else path
        query = _write_query(manager, dry_run=dry_run)
        verb = "dry-run" if dry_run else "patch"
        return self._tree(
            await self._exchange.perform(Call(verb, "PATCH", target, query, body, media, account=account))
        )

    async def replace(
        self,
        path: str,
        body: bytes | JsonObject,
        *,
        manager: str = "",
        dry_run: bool = False,
        account: str | None = None,
        subresource: str = "",
    ) -> JsonObject:
        """PUT of a whole object with `metadata.resourceVersion`: a compare-and-swap.

        Raises:
            Conflict: somebody wrote in between.
        """
        target = f"{path}/{subresource}" if subresource else path
        verb = "dry-run" if dry_run else "update"
        query = _write_query(manager, dry_run=dry_run)
        return self._tree(await self._exchange.perform(Call(verb, "PUT", target, query, _bytes(body), account=account)))

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
        account: str | None = None,
    ) -> JsonObject | None:
        """Delete with preconditions; safe to repeat.  None when the object is gone, else the object that finalizers hold.

        Raises:
            Conflict: the object has another uid or version than the preconditions say.
            KindNotServed: the kind cannot be seen, so nothing is known about the object.
        """
        preconditions = {
            key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value is not None
        }
        options: dict[str, JsonValue] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if dry_run:
            options["dryRun"] = ["All"]
        call = Call("dry-run" if dry_run else "delete", "DELETE", path, "", _encode(options), account=account)
        try:
            answer = self._tree(await self._exchange.perform(call))
        except KindNotServed:
            raise
        except NotFound:
            return None
        return None if text_at(answer, "kind") == "Status" else answer

    def _tree(self, data: bytes) -> JsonObject:
        try:
            return _TREE_DECODER.decode(data)
        except msgspec.MsgspecError as error:
            raise ProtocolFailed("the answer is no JSON object") from error


def _whole(tree: JsonObject) -> JsonObject:
    return tree


def _bytes(body: bytes | JsonObject) -> bytes:
    return body if isinstance(body, bytes) else _encode(body)


def _query(**members: str) -> str:
    given = {name: value for name, value in members.items() if value}
    return f"?{urlencode(given)}" if given else ""


@lru_cache(maxsize=256)
def _write_query(manager: str, *, force: bool = False, dry_run: bool = False) -> str:
    return _query(
        fieldManager=manager,
        force="true" if force else "",
        dryRun="All" if dry_run else "",
        fieldValidation="Strict",
    )


def _stamped(tree: JsonObject) -> Sequence[JsonObject]:
    """The items of a list; those of built-in kinds come without their kind."""
    version = text_at(tree, "apiVersion")
    kind = text_at(tree, "kind").removesuffix("List")
    items = objects_at(tree, "items")
    return [item if "kind" in item else {"apiVersion": version, "kind": kind, **item} for item in items]


def _event_of(line: bytes, call: Call) -> WatchEvent:
    try:
        event = _LINE_DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise ProtocolFailed("a watch line is no event", subject=call.subject) from error
    match event.type:
        case "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" as kind:
            return WatchEvent(kind, event.object)
        case "ERROR":
            raise classify(int_at(event.object, "code"), _encode(event.object), subject=call.subject)
        case _:
            raise ProtocolFailed(f"unknown event type {event.type[:40]!r}", subject=call.subject)

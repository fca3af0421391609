"""Keeps a cache of one kind in step with the API server: list, watch, compare, begin again.

Rules that make it hold (H08, H09, H17, H18, gitops.md, section 13):
  * Every full list goes through a comparison that produces the deletes that a gap has hidden.
  * Back-off is reset by a healthy stream only: one that brought an event or a bookmark, or lived for 30 s.  A server that
    closes every stream at once, or answers 410 to each, therefore never causes a storm.
  * Silence for 75 s ends a stream; two silent streams in a row end in a full list, because a server that was restored from
    a backup accepts our version and says nothing.
  * A kind that is not served, or may not be read, is not known: the cache stays, but `usable` is False.
"""

import asyncio
import enum
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from sys import intern
from typing import Any, Final, Generic, TypeVar

import structlog

from gitops_ctl.core.errors import Forbidden, GitopsError, Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import Gone, KindNotServed
from gitops_ctl.kube.cache import Cache, Change, Entry, changes_of_event, diff_relist, is_mass_removal
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import IDLE_S, KubeClient, StreamSilent, WatchEvent

T = TypeVar("T")
Handler = Callable[[Change[T]], None]

_YIELD_EVERY: Final = 500
_LOG_EVERY_S: Final = 60.0

log = structlog.get_logger(__name__)


class StreamClosedEarly(Unavailable):
    """The server ended a stream before it said anything."""


class State(enum.Enum):
    """Where an informer is."""

    LISTING = "Listing"
    WATCHING = "Watching"
    BACKOFF = "Backoff"
    ABSENT = "Absent"
    FORBIDDEN = "Forbidden"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; tests scale them."""

    idle_s: float = IDLE_S
    healthy_s: float = 30.0
    backoff_s: float = 0.8
    backoff_cap_s: float = 30.0
    absent_s: float = 5.0
    absent_cap_s: float = 60.0
    stream_s: tuple[float, float] = (300.0, 540.0)
    safety_s: tuple[float, float] = (6 * 3600.0, 12 * 3600.0)
    confirm_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Health:
    """For metrics and the readiness page; `error` is what the last attempt ended with."""

    state: State
    error: GitopsError | None = None
    failures: int = 0


def backoff_delay(failures: int, *, first_s: float, cap_s: float, draw: float) -> float:
    """Seconds after that many failures in a row (from 1): doubled each time, drawn between half and the whole."""
    whole: float = min(cap_s, first_s * 2.0 ** min(failures - 1, 30))
    return whole * (0.5 + 0.5 * draw)


class Informer(Generic[T]):
    """One kind, or the part of it that a selector names.  `run` does the work until it is cancelled.

    Attributes:
        cache: what is known; read-only for others.
        synced: set while a full list has been handed to the handlers and the kind can be seen.
        settled: set when the first attempt is over, whatever came out: wait for it before a start is called complete.
        listed_s: when the last list that is in the cache began, on the boot clock; for read-your-writes.
        suspect: the last list lacked more than half of the cache and no second list has agreed yet.
        on_lost: called when a kind that was seen can be seen no longer; its last events may never have come.
        counts: lists, watches, relists, what a safety list found, errors of handlers.
    """

    def __init__(  # noqa: PLR0913  what an informer may be told
        self,
        client: KubeClient,
        resource: Resource,
        *,
        trim: Callable[[JsonObject], T],
        selector: str | None = None,
        namespace: str = "",
        timing: Timing | None = None,
        metadata_only: bool = False,
    ) -> None:
        """`trim` keeps what others need of an object, and never raises.  `selector` is a label selector.

        With `metadata_only` the server sends no more than the metadata: what stands in a Secret never comes here.
        """
        self.resource = resource
        self.cache: Cache[T] = Cache()
        self.synced = asyncio.Event()
        self.settled = asyncio.Event()
        self.listed_s = -math.inf
        self.suspect = False
        self.health = Health(State.LISTING)
        self.counts: Counter[str] = Counter()
        self._client = client
        self._path = resource.path(namespace)
        self._selector = selector
        self._trim = trim
        self._metadata_only = metadata_only
        self._timing = timing or Timing()
        self.on_lost: Callable[[], None] = lambda: None
        self._handlers: list[tuple[Handler[T], Callable[[NamespacedName], None] | None]] = []
        self._version: str | None = None
        self._silent_streams = 0
        self._safety_due_s = 0.0
        self._list_ended_s = -math.inf
        self._logged_s = -_LOG_EVERY_S

    @property
    def usable(self) -> bool:
        """Whether a planner may conclude from the absence of an object."""
        return self.synced.is_set() and not self.suspect

    def add_handler(self, handler: Handler[T], *, rescue: Callable[[NamespacedName], None] | None = None) -> None:
        """Call `handler` for each change, at once for what is cached already.

        A handler enqueues a key and nothing else.  When it raises, the error is counted and `rescue` gets the key.
        """
        self._handlers.append((handler, rescue))
        for key, entry in list(self.cache.entries().items()):
            self._tell(Change("added", key, None, entry), (handler, rescue))

    def relist(self) -> None:
        """Read everything again when the present stream ends."""
        self._version = None

    async def run(self) -> None:
        """List and watch until cancelled; no error of the API server ends it."""
        try:
            while True:
                await self._round()
        finally:
            self.health = Health(State.STOPPED)

    async def _round(self) -> None:
        try:
            await self._attempt()
        except Gone as error:
            self._version = None
            await self._back_off(State.BACKOFF, error)
        except KindNotServed as error:
            self._lose_sight()
            await self._back_off(State.ABSENT, error)
        except Forbidden as error:
            self._lose_sight()
            await self._back_off(State.FORBIDDEN, error)
        except GitopsError as error:
            await self._back_off(State.BACKOFF, error)

    async def _attempt(self) -> None:
        """A list when one is needed, then one stream; returns when the server ended a healthy one."""
        now_s = self._client.clock.boot_s()
        safety = self._version is not None and now_s >= self._safety_due_s
        if self._version is None or safety:
            if self.health.state not in (State.ABSENT, State.FORBIDDEN):  # it stays that until a list says otherwise
                self._set(State.LISTING)
            await self._list(safety=safety)
        if self.suspect:
            await self._client.clock.sleep(self._timing.confirm_s)
            self._version = None
            return
        self._set(State.WATCHING)
        await self._watch()

    def _set(self, state: State) -> None:
        self.health = Health(state, self.health.error, self.health.failures)

    def _lose_sight(self) -> None:
        self._version = None
        if self.synced.is_set():
            self.synced.clear()
            self.on_lost()

    async def _back_off(self, state: State, error: GitopsError) -> None:
        timing, before = self._timing, self.health.failures
        first_s, cap_s = (
            (timing.absent_s, timing.absent_cap_s)
            if state is State.ABSENT
            else (timing.backoff_s, timing.backoff_cap_s)
        )
        if isinstance(error, Gone):
            # The first relist is at once, the next not before the first step, even if an event came in between.
            drawn_s = backoff_delay(before, first_s=first_s, cap_s=cap_s, draw=self._client.draw()) if before else 0.0
            delay_s = max(drawn_s, self._list_ended_s + first_s - self._client.clock.boot_s())
        else:
            delay_s = backoff_delay(before + 1, first_s=first_s, cap_s=cap_s, draw=self._client.draw())
        self.health = Health(state, error, before + 1)
        self.counts[type(error).__name__] += 1
        if state is not State.BACKOFF:
            self.settled.set()
        self._log(error)
        await self._client.clock.sleep(delay_s)

    def _log(self, error: GitopsError) -> None:
        now_s = self._client.clock.boot_s()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            log.warning(
                "watch failed",
                path=self._path,
                state=self.health.state.value,
                code=error.code.name,
                error=error.message,
            )

    async def _list(self, *, safety: bool) -> None:
        self.counts["list"] += 1
        began_s = self._client.clock.boot_s()
        listed = await self._client.collect(
            self._path, keep=self._keep, label_selector=self._selector, metadata_only=self._metadata_only
        )
        changes = diff_relist(cached=self.cache.entries(), listed=dict(listed.items))
        suspect = is_mass_removal(changes, cached=len(self.cache))
        if safety:
            self.counts["safety_found"] += len(changes)
        self.suspect = self.suspect or suspect  # before the handlers run: what they wake must see it
        for count, change in enumerate(changes, start=1):
            self._change(change)
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        self.suspect = suspect
        self._version = listed.resource_version
        self._silent_streams = 0
        low_s, high_s = self._timing.safety_s
        self.listed_s = began_s
        self._list_ended_s = self._client.clock.boot_s()
        self._safety_due_s = self._list_ended_s + low_s + (high_s - low_s) * self._client.draw()
        self.synced.set()
        self.settled.set()

    def _keep(self, tree: JsonObject) -> tuple[NamespacedName, Entry[T]]:
        key = NamespacedName(intern(text_at(tree, "metadata", "namespace")), text_at(tree, "metadata", "name"))
        uid, version = text_at(tree, "metadata", "uid"), text_at(tree, "metadata", "resourceVersion")
        known = self.cache.entry(key)
        if known is not None and known.uid == uid and known.version == version:
            return key, known  # the same object is held once, also while a list is compared
        return key, Entry(uid, version, self._trim(tree))

    async def _watch(self) -> None:
        self.counts["watch"] += 1
        low_s, high_s = self._timing.stream_s
        began_s = self._client.clock.boot_s()
        alive = False
        stream = self._client.watch(
            self._path,
            resource_version=self._version or "",
            timeout_s=low_s + (high_s - low_s) * self._client.draw(),
            idle_s=self._timing.idle_s,
            label_selector=self._selector,
            metadata_only=self._metadata_only,
        )
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if not alive:
                        alive = True
                        self._recovered()
                    self._take(event)
        except StreamSilent:
            self._count_silence(alive=alive)
        finally:
            if self._client.clock.boot_s() - began_s >= self._timing.healthy_s:
                self._recovered()
        if not alive and self._client.clock.boot_s() - began_s < self._timing.healthy_s:
            raise StreamClosedEarly("the server closed the stream at once", subject=f"watch {self._path}")

    def _count_silence(self, *, alive: bool) -> None:
        self._silent_streams = 1 if alive else self._silent_streams + 1
        self.counts["silent"] += 1
        if self._silent_streams >= 2:
            self._version = None

    def _recovered(self) -> None:
        self.health = Health(State.WATCHING)

    def _take(self, event: WatchEvent) -> None:
        tree = event.object
        version = text_at(tree, "metadata", "resourceVersion")
        self._silent_streams = 0
        if event.type != "BOOKMARK":
            key, seen = self._keep(tree)
            changes = changes_of_event(self.cache.entry(key), key=key, deleted=event.type == "DELETED", seen=seen)
            for change in changes:
                self._change(change)
        if self._version is not None:  # None: somebody asked for a list
            self._version = version or self._version

    def _change(self, change: Change[T]) -> None:
        self.cache.change(change)
        for registered in self._handlers:
            self._tell(change, registered)

    def _tell(self, change: Change[T], registered: tuple[Handler[T], Callable[[NamespacedName], None] | None]) -> None:
        handler, rescue = registered
        try:
            handler(change)
        except Exception:  # a handler must not stop the cache; its key is enqueued all the same
            self.counts["handler_errors"] += 1
            log.exception("handler failed", path=self._path, key=str(change.key))
            if rescue is not None:
                rescue(change.key)


@asynccontextmanager
async def running(*informers: Informer[Any]) -> AsyncIterator[None]:
    """Runs informers beside the body; they have ended when this returns."""
    tasks = [asyncio.create_task(one.run(), name=f"informer {one.resource.plural}") for one in informers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

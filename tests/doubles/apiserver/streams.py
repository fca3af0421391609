"""The life of a watch: events as they happen, bookmarks when it is silent, an end when its time is over."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from tests.doubles.apiserver.answers import Tree
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.faults import Entry, Fault
from tests.doubles.apiserver.store import Change
from tests.doubles.apiserver.watch import Watch

LEAD_S = 2.0  # the last bookmark comes this long before the end of a stream


class Streams:
    """All open watches of a server.  Times are those of the running loop, so that a loop on virtual time works."""

    def __init__(self, api: ApiServer, *, bookmark_s: float = 60.0) -> None:
        self._api = api
        self._bookmark_s = bookmark_s
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()

    def attach(self) -> None:
        """Hear of every change from now on."""
        self._api.store.listeners.append(self._wake)

    def detach(self) -> None:
        if self._wake in self._api.store.listeners:
            self._api.store.listeners.remove(self._wake)

    def drop(self) -> None:
        """End every open stream."""
        self._stopping.set()
        self._stopping = asyncio.Event()

    def _wake(self, _: Change) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def events(
        self, watch: Watch, query: Mapping[str, str], *, fault: Entry | None = None
    ) -> AsyncIterator[Tree]:
        """Events and bookmarks of one watch until its time is over."""
        loop, stopping = asyncio.get_running_loop(), self._stopping
        timeout_s = float(query.get("timeoutSeconds") or 1800)
        end, bookmark_at = loop.time() + timeout_s, loop.time() + self._bookmark_s
        last = end - LEAD_S if timeout_s > LEAD_S else end - timeout_s / 2
        sent = 0
        while not stopping.is_set() and not watch.ended:
            changed = self._changed
            silent = self._is_silent(watch, fault, sent)
            for event in () if silent else watch.poll():
                sent += 1
                yield event
            now = loop.time()
            if now >= end or watch.ended:
                return
            if not silent and watch.bookmarks and now >= min(bookmark_at, last):
                yield watch.bookmark()
            last = float("inf") if now >= last else last
            bookmark_at = now + self._bookmark_s if now >= bookmark_at else bookmark_at
            await _first_of(changed, stopping, timeout_s=max(0.0, min(end, bookmark_at, last) - loop.time()))

    @staticmethod
    def _is_silent(watch: Watch, fault: Entry | None, sent: int) -> bool:
        """From the future nothing comes, and a half-open stream ends without saying so."""
        if fault is not None and fault.fault is Fault.HALF_OPEN:
            return sent >= fault.events
        return watch.is_ahead or (fault is not None and fault.fault is Fault.FUTURE_VERSION)


async def _first_of(*events: asyncio.Event, timeout_s: float) -> None:
    """Return when one of the events is set, or after the time."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()

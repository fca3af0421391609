"""The work queue for tasks: waits for keys, pre-empts a pass that waits, measures.

An urgent add sets an event that the running pass of that key listens to: a health wait or a back-off inside a pass ends at
once when something newer is there (H01, H02).
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from gitops_ctl.core.clock import Clock
from gitops_ctl.kube.workqueue import Lane, WorkQueue

K = TypeVar("K", bound=Hashable)
Observe = Callable[[str, float], None]


class QueueClosed(Exception):
    """Nothing more is handed out."""


class AsyncQueue(Generic[K]):
    """One queue on one event loop.

    `observe` gets controller-runtime's names without their prefix: `adds_total` and `retries_total` count,
    `queue_duration_seconds` and `work_duration_seconds` are seconds of one key.
    """

    def __init__(self, queue: WorkQueue[K], *, clock: Clock, observe: Observe = lambda _name, _value: None) -> None:
        self._queue = queue
        self.clock = clock
        self._observe = observe
        self._waiting: list[asyncio.Future[None]] = []
        self._urgent: dict[K, asyncio.Event] = {}
        self._began_s: dict[K, float] = {}
        self.closed = asyncio.Event()

    def add(self, key: K, *, lane: Lane = Lane.FRESH, urgent: bool = False) -> None:
        """Run `key` as soon as a worker is free; `urgent` also wakes the pass of `key` that waits now."""
        self._queue.add(key, now_s=self.clock.boot_s(), lane=lane)
        self._observe("adds_total", 1.0)
        if urgent and (event := self._urgent.get(key)) is not None:
            event.set()
        self._wake()

    def add_after(self, key: K, delay_s: float, *, lane: Lane = Lane.RESYNC) -> None:
        """Run `key` after `delay_s`, unless it is to run earlier anyway."""
        self._queue.add_after(key, delay_s, now_s=self.clock.boot_s(), lane=lane)
        self._wake()

    def fail(self, key: K, *, at_least_s: float = 0.0) -> float:
        """Run `key` again after its back-off; returns the seconds until then."""
        self._observe("retries_total", 1.0)
        delay_s = self._queue.fail(key, now_s=self.clock.boot_s(), at_least_s=at_least_s)
        self._wake()
        return delay_s

    def forget(self, key: K) -> None:
        """Begin the back-off of `key` anew."""
        self._queue.forget(key)

    def drop(self, key: K) -> None:
        """Nothing is to run for `key` any more."""
        self._queue.drop(key)

    async def get(self) -> K:
        """The next key; call `done` with it.

        Raises:
            QueueClosed: the queue was closed.
        """
        while not self._queue.closed:
            now_s = self.clock.boot_s()
            if (key := self._queue.take(now_s=now_s)) is not None:
                self._urgent[key] = asyncio.Event()
                self._began_s[key] = now_s
                self._observe("queue_duration_seconds", self._queue.waited_s)
                return key
            await self._wait(self._queue.next_due_s, now_s)
        raise QueueClosed

    def done(self, key: K) -> None:
        """The pass of `key` is over."""
        now_s = self.clock.boot_s()
        del self._urgent[key]
        self._observe("work_duration_seconds", now_s - self._began_s.pop(key))
        self._queue.done(key, now_s=now_s)
        self._wake()

    def preempted(self, key: K) -> asyncio.Event:
        """Set when something newer waits for the running pass of `key`.

        Raises:
            KeyError: no pass of `key` runs.
        """
        return self._urgent[key]

    async def pause(self, key: K, seconds: float) -> bool:
        """Wait inside a pass; True when it was cut short because something newer is there."""
        event = self.preempted(key)
        sleeping = asyncio.ensure_future(self.clock.sleep(seconds))
        waking = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()
        return event.is_set()

    def close(self) -> None:
        """Hand out nothing more; passes that run go on."""
        self._queue.close()
        self.closed.set()
        self._wake()

    def gauges(self) -> dict[str, float]:
        """`depth_<lane>`, `unfinished_work_seconds` and `longest_running_processor_seconds`, now."""
        now_s = self.clock.boot_s()
        running = [now_s - began_s for began_s in self._began_s.values()]
        depths = {f"depth_{lane.name.lower()}": float(self._queue.depth(lane)) for lane in Lane}
        return {
            **depths,
            "unfinished_work_seconds": sum(running),
            "longest_running_processor_seconds": max(running, default=0.0),
        }

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def _wait(self, due_s: float | None, now_s: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if due_s is None:
            await future
            return
        sleeping = asyncio.ensure_future(self.clock.sleep(due_s - now_s))
        try:
            await asyncio.wait({future, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            future.cancel()

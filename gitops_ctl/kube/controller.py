"""Runs one reconcile function per key.  Level-triggered: a key says that something may differ, never what.

A reconcile reads caches, acts, and ends in one of four ways.  It returns None: done until something changes.  It returns
seconds: look again then.  It raises, and the type decides: transient errors and lost compare-and-swaps come back after their
back-off, blocked ones at a slow pace (what they wait for usually wakes them earlier), terminal ones when the object or its
revision changes, bugs of ours slowly and with a traceback.  It is cancelled: only when the drain deadline is over.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, TerminalError, TransientError
from gitops_ctl.core.redact import redact_text
from gitops_ctl.kube.asyncqueue import AsyncQueue, QueueClosed
from gitops_ctl.kube.informer import Informer, running

K = TypeVar("K", bound=Hashable)
Reconcile = Callable[[K], Awaitable[float | None]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: how long blocked keys and bugs wait, and how long passes may go on after a stop."""

    blocked_s: float = 300.0
    bug_s: float = 30.0
    drain_s: float = 20.0


class Controller(Generic[K]):
    """Some workers on one queue.  `counts` has passes by how they ended, for metrics."""

    def __init__(
        self,
        name: str,
        queue: AsyncQueue[K],
        reconcile: Reconcile[K],
        *,
        workers: int = 4,
        pace: Pace | None = None,
    ) -> None:
        """`workers` is the number that the queue's tenant shares are counted from, too."""
        self.name = name
        self.queue = queue
        self.counts: Counter[str] = Counter()
        self._reconcile = reconcile
        self._workers = workers
        self._pace = pace or Pace()

    async def run(self) -> None:
        """Work until the queue is closed and drained; passes that are not over at the drain deadline are cancelled."""
        working = asyncio.ensure_future(self._work_all())
        closing = asyncio.ensure_future(self._drain_deadline())
        try:
            await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overdue = not working.done()
            working.cancel()
            closing.cancel()
            await asyncio.gather(working, closing, return_exceptions=True)
        if overdue:
            log.warning("drain deadline is over", controller=self.name)
        elif (error := working.exception()) is not None:
            raise error

    async def run_over(self, *informers: Informer[Any]) -> None:
        """Run the informers, and work once the first attempt of each is over; ends as `run` does."""
        async with running(*informers):
            awaited: set[asyncio.Future[Any]] = {
                asyncio.ensure_future(self.queue.closed.wait()),
                asyncio.gather(*(informer.settled.wait() for informer in informers)),
            }
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            for each in awaited:
                each.cancel()
            await self.run()

    async def _drain_deadline(self) -> None:
        await self.queue.closed.wait()
        await self.queue.clock.sleep(self._pace.drain_s)

    async def _work_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self._pass(key)
            finally:
                self.queue.done(key)

    async def _pass(self, key: K) -> None:
        try:
            again_s = await self._reconcile(key)
        except GitopsError as error:
            self._failed(key, error)
        except Exception:  # a bug in one pass must not end the other keys
            self.counts["bug"] += 1
            log.exception("reconcile failed", controller=self.name, key=str(key))
            self.queue.fail(key, at_least_s=self._pace.bug_s)
        else:
            self.counts["done"] += 1
            self.queue.forget(key)
            if again_s is not None:
                self.queue.add_after(key, again_s)

    def _failed(self, key: K, error: GitopsError) -> None:
        match error:
            case TransientError():
                self.counts["transient"] += 1
                self.queue.fail(key, at_least_s=error.retry_after_s or 0.0)
            case Conflict():
                self.counts["conflict"] += 1
                self.queue.fail(key)
            case BlockedError():
                self.counts["blocked"] += 1
                self.queue.add_after(key, self._pace.blocked_s)
            case TerminalError():
                self.counts["terminal"] += 1
                self.queue.forget(key)
            case _:
                self.counts["bug"] += 1
                log.error("reconcile failed", controller=self.name, key=str(key), exc_info=error)
                self.queue.fail(key, at_least_s=self._pace.bug_s)
        text = redact_text(f"{error.subject}: {error.message}")
        log.info("pass ended with an error", controller=self.name, key=str(key), code=error.code.name, error=text)

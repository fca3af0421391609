"""An event loop on virtual time: when nothing can run now, the time jumps to the next timer.  Hours of waiting take no time.

Work for threads runs on the loop, one piece at a time, so that a run is the same each time.  A loop that waits for nothing is an error.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
BEGIN_S = 1000.0
BEGIN = datetime(2026, 2, 1, tzinfo=UTC)


class Stuck(Exception):
    """Every task waits, and no timer is set: the loop would wait forever."""


class _JumpingSelector(selectors.PollSelector):
    """Never waits: asked to, it moves the time instead.  It shares nothing with a copy of its process."""

    jump: Callable[[float], None]

    def select(self, timeout: float | None = None) -> Any:
        if timeout == 0:
            return []  # whatever is ready runs first; nothing of the world comes through a socket
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck("nothing can run and nothing is due")
        if not ready and timeout:
            self.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time` moves only when every task waits."""

    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self) -> None:
        self.now_s = BEGIN_S
        selector = _JumpingSelector()
        selector.jump = self._jump
        super().__init__(selector)

    def _jump(self, seconds: float) -> None:
        self.now_s += seconds

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        # A timer that is due within the resolution is run now: whoever then looks at the clock must not find it a hair too early, and
        # wait again for no time at all, for ever.
        if self._scheduled and self._scheduled[0]._when - self.now_s < self._clock_resolution:
            self.now_s = max(self.now_s, self._scheduled[0]._when)
        super()._run_once()

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[override]
        done = self.create_future()

        def work() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(function(*arguments))
            except Exception as error:
                done.set_exception(error)

        self.call_soon(work)
        return done


class LoopClock:
    """The product's clock on a virtual loop."""

    def boot_s(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> datetime:
        return BEGIN + timedelta(seconds=self.boot_s())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop of its own; tasks that are left are an error of the caller."""
    loop = VirtualLoop()
    loop.set_exception_handler(lambda _loop, _context: None)  # a dead process leaves errors that nobody asks for
    try:
        return loop.run_until_complete(story)
    finally:
        loop.close()

"""Does something again and again for one device or leaf: when its time has come, and at once when somebody asks.

What fails is logged and done again; neither a failure nor a bug is the end, because nobody would look at the device any more.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError

log = structlog.get_logger(__name__)

LEAST_S: Final = 0.5
"""Between two turns, however often somebody asks."""
AFTER_BUG_S: Final = 30.0


class Duty:
    """One activity; its turns never overlap."""

    def __init__(
        self, name: str, turn: Callable[[], Awaitable[float | None]], *, clock: Clock, retry_s: float, told: str = ""
    ) -> None:
        """`turn` says in how many seconds the next one is due, None: when somebody asks.  `told` is about what, for the log."""
        self.name = name
        self._turn = turn
        self._clock = clock
        self._retry_s = retry_s
        self._told = told
        self._asked = asyncio.Event()
        self._stopping = False
        self._last_failure = ""

    def ask(self) -> None:
        """Begin another turn as soon as the present one is over."""
        self._asked.set()

    def stop(self) -> None:
        """End once the turn that runs is over."""
        self._stopping = True
        self._asked.set()

    async def run(self, *, delay_s: float = 0.0) -> None:
        """Go on until stopped or cancelled; the first turn begins after `delay_s`."""
        await self._clock.sleep(delay_s)
        while not self._stopping:
            self._asked.clear()
            wait_s = await self._once()
            if not self._stopping:
                await self._clock.sleep(LEAST_S)
                await self._rest(None if wait_s is None else wait_s - LEAST_S)

    async def _once(self) -> float | None:
        try:
            wait_s = await self._turn()
        except GitopsError as error:
            if str(error) != self._last_failure:
                log.warning("a turn failed", duty=self.name, about=self._told, error=str(error), code=error.code.label)
            self._last_failure = str(error)
            return self._retry_s
        except Exception:
            log.exception("a turn failed by a bug", duty=self.name, about=self._told)
            return AFTER_BUG_S
        self._last_failure = ""
        return wait_s

    async def _rest(self, seconds: float | None) -> None:
        if seconds is None:
            await self._asked.wait()
            return
        waiting = asyncio.ensure_future(self._asked.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()

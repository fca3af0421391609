"""Does something again and again: when its time has come, and at once when somebody asks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from gitops_ctl.core.clock import Clock

log = structlog.get_logger(__name__)

LEAST_S: Final = 0.5
"""Between two rounds, however often somebody asks."""


class Rounds:
    """One activity; rounds never overlap."""

    def __init__(self, round: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
        """`round` makes a failure part of what it finds; what it raises is a bug, logged, and does not end the rounds."""
        self._round = round
        self._clock = clock
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Begin another round as soon as the present one is over."""
        self._asked.set()

    async def run(self, every_s: Callable[[], float]) -> None:
        """Go on until cancelled; `every_s` is asked after each round."""
        while True:
            self._asked.clear()
            try:
                await self._round()
            except Exception:  # a bug in one round must not be the last one: nobody would look any more
                log.exception("a round failed")
            await self._clock.sleep(LEAST_S)
            await wait_for_either(self._asked, clock=self._clock, seconds=every_s() - LEAST_S)


async def wait_for_either(event: asyncio.Event, *, clock: Clock, seconds: float) -> None:
    """Return when the event is set or the time is over."""
    waiting = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        sleeping.cancel()

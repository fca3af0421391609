"""Does something again and again: when its time has come, and at once when somebody asks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gitops_ctl.core.clock import Clock

LEAST_S: Final = 0.5
"""Between two rounds, however often somebody asks."""


class Rounds:
    """One activity; rounds never overlap."""

    def __init__(self, round: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
        """`round` does not raise for what the outside does."""
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
            await self._round()
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

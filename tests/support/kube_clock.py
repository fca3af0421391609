"""A clock that a test moves.  Sleeping moves it, so that hours of back-off take no time."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta


class JumpingClock:
    """`sleep` jumps ahead at once and remembers for how long; the wall clock can be set to anything."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.wall_offset = timedelta()
        self.slept: list[float] = []

    def boot_s(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now_s) + self.wall_offset

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += max(0.0, seconds)
        await asyncio.sleep(0)


class SteppedClock(JumpingClock):
    """Sleepers wait until the test moves the time with `advance`."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = 0

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._number += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now_s + seconds, self._number, future))
        await future

    @property
    def sleepers(self) -> int:
        return sum(1 for _, _, future in self._sleepers if not future.done())

    async def advance(self, seconds: float, *, settle: int = 20) -> None:
        """Move on, waking each sleeper at its own moment; tasks get `settle` rounds of the loop after each."""
        end_s = self.now_s + seconds
        await self.settle(settle)
        while self._sleepers and self._sleepers[0][0] <= end_s:
            due_s, _, future = heapq.heappop(self._sleepers)
            self.now_s = max(self.now_s, due_s)
            if not future.done():
                future.set_result(None)
                await self.settle(settle)
        self.now_s = end_s
        await self.settle(settle)

    async def settle(self, rounds: int = 20) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)


class TickingClock(JumpingClock):
    """Goes on with the loop's time, and jumps over sleeps."""

    def boot_s(self) -> float:
        return self.now_s + asyncio.get_running_loop().time()

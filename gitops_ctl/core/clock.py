"""Two clocks, because they answer different questions.

`boot_s` goes on while the host is suspended and never jumps: durations, deadlines and leases are counted with it (H13, H15).
`wall` is UTC and may jump: it is for display, for times that an API asks for, and for not-after checks.
"""

import time
from datetime import UTC, datetime
from typing import Protocol

from gitops_ctl.core.moment import from_rfc3339, to_rfc3339

__all__ = ["Clock", "SystemClock", "from_rfc3339", "to_rfc3339"]


class Clock(Protocol):
    """Where a module gets its time from; injected, so that tests decide."""

    def boot_s(self) -> float:
        """Seconds since some fixed moment, counted through suspend."""
        ...

    def wall(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, at once when it is zero or less."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def boot_s(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415  commands that only read a checkout start without it

        await asyncio.sleep(max(0.0, seconds))

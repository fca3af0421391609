"""Two clocks, because they answer different questions.

`boot_s` goes on while the host is suspended and never jumps: durations, deadlines and leases are counted with it (H13, H15).
`wall` is UTC and may jump: it is for display, for times that an API asks for, and for not-after checks.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


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


def to_rfc3339(moment: datetime) -> str:
    """The form that Kubernetes stores: UTC, whole seconds, `Z`."""
    # Not strftime: it leaves out the zeros of early years, such as the server's zero time 0001-01-01T00:00:00Z.
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def from_rfc3339(text: str) -> datetime:
    """An aware UTC moment.

    Raises:
        ValueError: not RFC 3339, or without an offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no offset in {text!r}")
    return moment.astimezone(UTC)

"""Bytes per second as an average without a burst (rollouts.md, section 13.5).

The moment at which a chunk may go is the start plus all bytes up to its end, divided by the rate: so the first chunk waits too, and a pause
of somebody else is no loss.  A further attempt gets a pacer of its own, and thereby no credit.
"""

from gitops_ctl.core.clock import Clock


def release_s(total_bytes: int, *, rate: int) -> float:
    """Seconds after the start at which byte number `total_bytes` may have gone.

    Args:
        total_bytes: of all chunks up to and with the one that waits.
        rate: bytes per second, at least 1.
    """
    return total_bytes / rate


class Pacer:
    """Holds back the chunks of one attempt.

    Args:
        rate: bytes per second; None: nothing is held back.
        clock: durations are counted with it.
    """

    def __init__(self, rate: int | None, *, clock: Clock) -> None:
        if rate is not None and rate < 1:
            raise ValueError("a rate is at least one byte per second")
        self._rate = rate
        self._clock = clock
        self._began_s: float | None = None
        self._total = 0

    async def release(self, size: int) -> None:
        """Return when a chunk of this size may go; the first call is the start.  Cancelling the caller ends the wait."""
        if self._began_s is None:
            self._began_s = self._clock.boot_s()
        self._total += size
        if self._rate is None:
            return
        due_s = self._began_s + release_s(self._total, rate=self._rate)
        while (missing_s := due_s - self._clock.boot_s()) > 0:
            await self._clock.sleep(missing_s)

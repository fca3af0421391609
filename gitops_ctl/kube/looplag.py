"""Tells when the event loop was held up: a renewal, a deadline and every other task waited that long.

A page of 500 objects takes about 30 ms; more than a second means that something on the loop should be in a thread (H12).
"""

from collections.abc import Callable
from typing import Final

import structlog

from gitops_ctl.core.clock import Clock

LIMIT_S: Final = 1.0
PERIOD_S: Final = 0.5

log = structlog.get_logger(__name__)


async def watch_lag(
    clock: Clock,
    *,
    observe: Callable[[float], None] = lambda _: None,
    limit_s: float = LIMIT_S,
    period_s: float = PERIOD_S,
) -> None:
    """Measure until cancelled.  `observe` gets each lag in seconds; one over `limit_s` is logged as well."""
    while True:
        began_s = clock.boot_s()
        await clock.sleep(period_s)
        lag_s = max(0.0, clock.boot_s() - began_s - period_s)
        observe(lag_s)
        if lag_s > limit_s:
            log.warning("the event loop was held up", seconds=round(lag_s, 1))

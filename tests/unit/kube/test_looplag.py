"""A loop that is held up is noticed."""

import asyncio

from gitops_ctl.kube.looplag import watch_lag
from tests.support.kube_clock import SteppedClock


async def test_H12_a_held_up_loop_is_measured() -> None:
    clock, lags = SteppedClock(), []
    task = asyncio.create_task(watch_lag(clock, observe=lags.append))
    await clock.advance(0.5)
    clock.now_s += 3  # nothing ran for three seconds
    await clock.advance(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert lags[0] == 0
    assert 2.5 <= max(lags) <= 3.5

"""Deadlines that are counted by the injected clock."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from gitops_ctl.core.clock import Clock

T = TypeVar("T")


async def within(work: Coroutine[Any, Any, T], *, seconds: float, clock: Clock) -> T:
    """The result of `work`.

    Raises:
        TimeoutError: it was not there after `seconds`; the work is cancelled.
    """
    task, timer = asyncio.create_task(work), asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
        timer.cancel()
        await asyncio.gather(task, timer, return_exceptions=True)

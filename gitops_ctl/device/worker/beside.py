"""What goes on beside long work of a leaf: the gate is passed, so that pauses and stops are answered, and time is counted (rollouts.md, 13.1, 13.4).

A transfer goes on whatever the manager wishes, because the device has begun with it.  What has changed no device yet is ended.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.worker.gatepass import pass_gate
from gitops_ctl.device.worker.leafwork import Work

T = TypeVar("T")


class OutOfTime(Exception):
    """It took too long, and was ended."""


class GateClosed(Exception):
    """The manager lets nothing be claimed any more, or the leaf is another one: the next round judges it anew."""


async def answering(work: Work, *, ends: bool = False) -> None:
    """Say what was seen of the manager's wishes, again and again; with `ends` until nothing may be claimed any more."""
    leaf = work.leaf
    while True:
        await work.ports.clock.sleep(work.ports.poll_s)
        with suppress(GitopsError):
            fresh = await work.desk.leaf(leaf.namespace, leaf.name)
            if fresh is None or fresh.uid != leaf.uid:
                if ends:
                    return
                continue
            passed = await pass_gate(work.ports, work.desk, work.access, fresh)
            if ends and not (passed.is_ours and passed.gate.may_claim):
                return


async def while_allowed(work: Work, reading: Coroutine[Any, Any, T], *, seconds: float) -> T:
    """The result of work that changes no device.

    Raises:
        OutOfTime: it was not there after `seconds`; it is cancelled, as with every error here.
        GateClosed: nothing may be claimed any more.
    """
    task = asyncio.create_task(reading)
    gate, timer = asyncio.create_task(answering(work, ends=True)), asyncio.create_task(_slept(work, seconds))
    try:
        await asyncio.wait((task, gate, timer), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if timer.done():
            raise OutOfTime
        gate.result()
        raise GateClosed
    finally:
        for each in (task, gate, timer):
            each.cancel()
        await asyncio.gather(task, gate, timer, return_exceptions=True)


async def _slept(work: Work, seconds: float) -> None:
    clock = work.ports.clock
    until_s = clock.boot_s() + seconds
    while (left_s := until_s - clock.boot_s()) > 0:
        await clock.sleep(left_s)

"""Bytes go out as an average without a burst, also the first ones; cancelling ends a wait (rollouts.md, section 13.5)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.device.pacing import Pacer, release_s
from tests.support.kube_clock import JumpingClock, SteppedClock


async def test_already_the_first_chunk_waits() -> None:
    clock = JumpingClock()
    await Pacer(1000, clock=clock).release(500)
    assert clock.slept == [0.5]


async def test_without_a_rate_nothing_waits() -> None:
    clock = JumpingClock()
    pacer = Pacer(None, clock=clock)
    for _ in range(5):
        await pacer.release(10**9)
    assert clock.slept == []


@pytest.mark.property
@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=30), st.integers(1, 10**7))
def test_no_byte_leaves_before_its_moment_and_none_is_late(sizes: list[int], rate: int) -> None:
    async def run() -> None:
        clock = JumpingClock()
        pacer, total = Pacer(rate, clock=clock), 0
        for size in sizes:
            await pacer.release(size)
            total += size
            assert clock.now_s - 1000.0 == pytest.approx(release_s(total, rate=rate))

    asyncio.run(run())


async def test_a_pause_of_the_reader_is_made_up_for_and_a_new_attempt_has_no_credit() -> None:
    clock = JumpingClock()
    pacer = Pacer(1000, clock=clock)
    await pacer.release(1000)
    clock.now_s += 10
    clock.slept.clear()
    await pacer.release(1000)
    assert clock.slept == []
    await Pacer(1000, clock=clock).release(1000)
    assert clock.slept == [1.0]


async def test_a_sleep_that_ends_early_is_continued() -> None:
    class Hasty(JumpingClock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds if seconds < 0.1 else seconds / 2)

    clock = Hasty()
    await Pacer(1000, clock=clock).release(1000)
    assert clock.now_s == pytest.approx(1001.0)


async def test_cancelling_ends_the_wait() -> None:
    task = asyncio.create_task(Pacer(1, clock=SteppedClock()).release(10**9))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_rate_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Pacer(0, clock=JumpingClock())

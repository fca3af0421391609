"""The worker loop: what each kind of error does to a key, pre-emption of a waiting pass, and the drain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, InternalError, RateLimited, Refused, Unavailable
from gitops_ctl.kube.asyncqueue import AsyncQueue, QueueClosed
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.workqueue import Lane, WorkQueue
from tests.support.kube_clock import SteppedClock
from tests.support.kube_informer import until


def a_queue(clock: SteppedClock | SystemClock, *, workers: int = 4) -> AsyncQueue[str]:
    return AsyncQueue(WorkQueue(workers=workers), clock=clock)


@asynccontextmanager
async def running(
    reconcile: Callable[[str], Awaitable[float | None]],
    queue: AsyncQueue[str],
    *,
    workers: int = 4,
    drain_s: float = 20.0,
) -> AsyncIterator[Controller[str]]:
    controller = Controller("test", queue, reconcile, workers=workers, pace=Pace(drain_s=drain_s))
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        queue.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("error", "again_after_s"),
    [
        (Unavailable("x"), 0.5),
        (RateLimited("x", retry_after_s=9), 9),
        (Conflict("x"), 0.5),
        (BlockedError("x"), 300),
        (Refused("x"), None),
        (InternalError("x"), 30),
        (ValueError("a bug"), 30),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_the_type_of_the_error_decides_when_a_key_comes_back(
    error: Exception, again_after_s: float | None
) -> None:
    clock, passes = SteppedClock(), 0

    async def reconcile(_: str) -> None:
        nonlocal passes
        passes += 1
        raise error

    queue = a_queue(clock)
    async with running(reconcile, queue):
        queue.add("a")
        await clock.advance(0)
        assert passes == 1
        if again_after_s is None:
            await clock.advance(3600)
            assert passes == 1
        else:
            await clock.advance(again_after_s - 0.01)
            assert passes == 1
            await clock.advance(0.02)
            assert passes == 2


async def test_a_pass_may_ask_to_be_called_again() -> None:
    clock, seen = SteppedClock(), []

    async def reconcile(key: str) -> float | None:
        seen.append(key)
        return 60.0

    queue = a_queue(clock)
    async with running(reconcile, queue):
        queue.add("a")
        await clock.advance(59)
        assert seen == ["a"]
        await clock.advance(2)
        assert seen == ["a", "a"]


async def test_H04_a_failing_key_delays_no_healthy_one() -> None:
    clock, healthy = SteppedClock(), 0

    async def reconcile(key: str) -> None:
        nonlocal healthy
        if key.startswith("bad"):
            raise Unavailable("x")
        healthy += 1

    queue = a_queue(clock, workers=2)
    async with running(reconcile, queue, workers=2):
        for number in range(200):
            queue.add(f"bad{number}")
        await clock.advance(5, settle=300)
        queue.add("good")
        await clock.advance(0, settle=300)
        assert healthy == 1


async def test_H01_an_urgent_add_ends_the_wait_of_the_pass_that_runs() -> None:
    clock, cut_short = SteppedClock(), []

    async def reconcile(key: str) -> None:
        if not cut_short:
            cut_short.append(await queue.pause(key, 3600))

    queue = a_queue(clock)
    async with running(reconcile, queue) as controller:
        queue.add("a")
        await clock.advance(10)
        queue.add("a")
        await clock.advance(0)
        assert cut_short == []
        queue.add("a", urgent=True)
        await clock.advance(0)
        assert cut_short == [True]
        assert controller.counts["done"] == 2


async def test_a_wait_that_nothing_interrupts_takes_its_time() -> None:
    clock, results = SteppedClock(), []

    async def reconcile(key: str) -> None:
        results.append(await queue.pause(key, 5))

    queue = a_queue(clock)
    async with running(reconcile, queue):
        queue.add("a")
        await clock.advance(5)
    assert results == [False]


async def test_H14_a_stop_lets_running_passes_end_and_starts_no_other() -> None:
    clock, ended, go = SteppedClock(), [], asyncio.Event()

    async def reconcile(key: str) -> None:
        await go.wait()
        ended.append(key)

    queue = a_queue(clock, workers=1)
    controller = Controller("test", queue, reconcile, workers=1)
    task = asyncio.create_task(controller.run())
    queue.add("a")
    queue.add("b")
    await clock.advance(0)
    queue.close()
    await clock.advance(19)
    assert not task.done()
    go.set()
    await asyncio.wait_for(task, 5)
    assert ended == ["a"]


async def test_H14_a_pass_that_outlives_the_drain_deadline_is_cancelled() -> None:
    clock, cancelled = SteppedClock(), []

    async def reconcile(key: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(key)
            raise

    queue = a_queue(clock)
    controller = Controller("test", queue, reconcile)
    task = asyncio.create_task(controller.run())
    queue.add("a")
    await clock.advance(0)
    queue.close()
    await clock.advance(20)
    await asyncio.wait_for(task, 5)
    assert cancelled == ["a"]


async def test_a_closed_queue_wakes_whoever_waits() -> None:
    queue = a_queue(SystemClock())
    waiting = asyncio.create_task(queue.get())
    await until(lambda: not waiting.done())
    queue.close()
    with pytest.raises(QueueClosed):
        await asyncio.wait_for(waiting, 5)


async def test_a_delayed_key_wakes_a_waiting_worker_on_the_real_clock() -> None:
    queue = a_queue(SystemClock())
    waiting = asyncio.create_task(queue.get())
    queue.add_after("later", 0.02)
    assert await asyncio.wait_for(waiting, 5) == "later"


async def test_the_queue_measures_under_the_usual_names() -> None:
    clock, told = SteppedClock(), []
    queue = AsyncQueue[str](WorkQueue(workers=1), clock=clock, observe=lambda name, value: told.append((name, value)))
    queue.add("a", lane=Lane.RETRY)
    assert queue.gauges()["depth_retry"] == 1
    clock.now_s += 2
    key = await queue.get()
    clock.now_s += 3
    assert queue.gauges()["longest_running_processor_seconds"] == 3
    queue.done(key)
    assert told == [("adds_total", 1), ("queue_duration_seconds", 2), ("work_duration_seconds", 3)]


def test_every_error_of_ours_has_a_place_in_the_table() -> None:
    for kind in GitopsError.__subclasses__():
        assert kind.__name__ in {"TransientError", "BlockedError", "TerminalError", "InternalError"}

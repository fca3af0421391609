"""Leadership: at most one writer at any moment, whatever clocks, server and scheduler do.

In scope: the decision, the renewal loop, loss, release.  Tested elsewhere: real processes that are stopped (tests/cluster).
"""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.kube.lease import LeadershipLost, LeaseStep, LeaseTiming, SeenRecord, lease_step, micro_time
from tests.support.kube_clock import JumpingClock
from tests.support.kube_lease import LeaseStore, Process, pass_time


def seen(holder: str, *, first_seen_s: float = 100.0) -> SeenRecord:
    return SeenRecord(holder, 15.0, "2026-01-01T00:00:00.000000Z", "1", first_seen_s)


@pytest.mark.parametrize(
    ("record", "now_s", "step"),
    [
        (None, 100.0, LeaseStep.ACQUIRE),
        (seen(""), 100.0, LeaseStep.ACQUIRE),
        (seen("me"), 999.0, LeaseStep.RENEW),
        (seen("other"), 114.9, LeaseStep.WAIT),
        (seen("other"), 115.0, LeaseStep.ACQUIRE),
    ],
    ids=["no lease", "released", "mine", "held", "expired"],
)
def test_the_decision_uses_only_our_own_clock(record: SeenRecord | None, now_s: float, step: LeaseStep) -> None:
    assert lease_step(me="me", seen=record, now_s=now_s) is step


@pytest.mark.parametrize("values", [(15, 15, 2, 4), (15, 10, 2, 10), (10, 15, 2, 4), (15, 10, 10, 4)], ids=str)
def test_durations_in_the_wrong_order_are_refused(values: tuple[float, float, float, float]) -> None:
    duration_s, deadline_s, retry_s, call_s = values
    with pytest.raises(ValueError, match="order"):
        LeaseTiming(duration_s=duration_s, renew_deadline_s=deadline_s, retry_s=retry_s, call_s=call_s)


def test_times_have_six_digits() -> None:
    assert micro_time(JumpingClock().wall()) == "2026-01-01T00:16:40.000000Z"


async def test_one_of_two_leads_and_the_other_waits() -> None:
    store = LeaseStore()
    first, second = Process(store, "a"), Process(store, "b")
    history = await pass_time(first, second, seconds=60)
    assert history[-1] == ["a"]
    assert all(len(writers) <= 1 for writers in history)
    assert second.client.writes == 0
    await first.end()
    await second.end()


async def test_H12_a_stalled_server_ends_leadership_before_another_can_take_the_lease() -> None:
    store = LeaseStore()
    first, second = Process(store, "a"), Process(store, "b")
    await pass_time(first, second, seconds=20)
    first.client.mode = "stall"
    history = await pass_time(first, second, seconds=40)
    assert all(len(writers) <= 1 for writers in history)
    assert history[-1] == ["b"]
    last_a = max(number for number, writers in enumerate(history) if writers == ["a"])
    first_b = min(number for number, writers in enumerate(history) if writers == ["b"])
    assert (first_b - last_a) * 0.25 >= 3
    assert first.leader.lost.is_set()
    await first.end()
    await second.end()


async def test_H12_a_short_stall_ends_nothing() -> None:
    store = LeaseStore()
    process = Process(store, "a")
    await pass_time(process, seconds=10)
    process.client.mode = "stall"
    await pass_time(process, seconds=5)
    process.client.mode = "ok"
    assert (await pass_time(process, seconds=30))[-1] == ["a"]
    await process.end()


async def test_H12_a_renewal_whose_reply_was_lost_is_found_and_goes_on() -> None:
    store = LeaseStore()
    process = Process(store, "a")
    await pass_time(process, seconds=10)
    process.client.mode = "lost"
    await pass_time(process, seconds=4)
    process.client.mode = "ok"
    assert (await pass_time(process, seconds=30))[-1] == ["a"]
    await process.end()


async def test_H13_a_process_that_was_stopped_for_a_minute_writes_nothing_when_it_wakes_up() -> None:
    store = LeaseStore()
    first, second = Process(store, "a"), Process(store, "b")
    await pass_time(first, second, seconds=20)
    first.stopped = True
    await pass_time(first, second, seconds=60)
    assert second.may_write()
    first.stopped = False
    with pytest.raises(LeadershipLost):
        first.leader.require()
    assert first.leader.lost.is_set()
    writes = first.client.writes
    await pass_time(first, second, seconds=60)
    assert first.client.writes == writes
    assert second.may_write()
    await first.end()
    await second.end()


async def test_H13_a_stopped_process_does_not_go_on_as_leader_although_nobody_took_the_lease() -> None:
    process = Process(LeaseStore(), "a")
    await pass_time(process, seconds=20)
    process.stopped = True
    await pass_time(process, seconds=12)
    process.stopped = False
    assert not any(await pass_time(process, seconds=10))
    await process.end()


async def test_H13_an_answer_that_comes_after_the_deadline_brings_nothing_back() -> None:
    store = LeaseStore()
    process = Process(store, "a")
    await pass_time(process, seconds=10)
    process.client.mode = "slow"
    await pass_time(process, seconds=60)
    assert not process.may_write()
    process.client.answer.set()
    await pass_time(process, seconds=5)
    assert not process.may_write()
    assert process.leader.lost.is_set()
    await asyncio.wait_for(process.task, 5)


async def test_H13_leadership_is_counted_from_the_send_and_not_from_the_answer() -> None:
    process = Process(LeaseStore(), "a")
    await pass_time(process, seconds=10)
    process.client.mode = "slow"
    writes = process.client.writes
    while process.client.writes == writes:
        await pass_time(process, seconds=0.25)
    sent_s = process.clock.now_s
    await pass_time(process, seconds=3)
    process.client.mode = "stall"
    process.client.answer.set()
    while process.may_write():
        await pass_time(process, seconds=0.25)
    assert 9.5 <= process.clock.now_s - sent_s <= 10.25
    await process.end()


async def test_H13_a_process_that_lost_the_lease_does_not_lead_again() -> None:
    store = LeaseStore()
    process = Process(store, "a")
    await pass_time(process, seconds=10)
    process.client.mode = "stall"
    await pass_time(process, seconds=30)
    process.client.mode = "ok"
    assert not any(await pass_time(process, seconds=60))
    await asyncio.wait_for(process.task, 5)
    with pytest.raises(RuntimeError):
        await process.leader.run()


async def test_H13_the_renewal_waits_for_no_other_request_and_ends_before_the_deadline() -> None:
    process = Process(LeaseStore(), "a")
    limits = process.client.limits
    assert (limits.attempts, limits.concurrency) == (1, 1)
    assert limits.timeout_s < process.leader.timing.renew_deadline_s < process.leader.timing.duration_s
    await process.end()


async def test_H14_a_standby_that_stops_writes_nothing() -> None:
    store = LeaseStore()
    first, standby = Process(store, "a"), Process(store, "b")
    await pass_time(first, standby, seconds=20)
    await standby.end()
    await standby.leader.release()
    assert standby.client.writes == 0
    await first.end()


async def test_H14_a_leader_that_stops_releases_the_lease_and_the_standby_takes_it_at_once() -> None:
    store = LeaseStore()
    first, standby = Process(store, "a"), Process(store, "b")
    await pass_time(first, standby, seconds=20)
    with pytest.raises(RuntimeError):
        await first.leader.release()
    await first.end()
    await first.leader.release()
    assert not first.may_write()
    assert store.lease is not None
    assert store.lease["spec"]["holderIdentity"] == ""
    assert store.lease["spec"]["leaseDurationSeconds"] == 1
    assert (await pass_time(standby, seconds=3))[-1] == ["b"]
    assert store.lease["spec"]["leaseTransitions"] == 1
    await standby.end()


@pytest.mark.parametrize("hours", [1, -1])
async def test_H15_a_jump_of_the_wall_clock_changes_nothing(hours: int) -> None:
    store = LeaseStore()
    first, second = Process(store, "a"), Process(store, "b")
    await pass_time(first, second, seconds=20)
    first.clock.wall_offset = timedelta(hours=hours)
    assert (await pass_time(first, second, seconds=30))[-1] == ["a"]
    second.clock.wall_offset = timedelta(hours=hours)
    assert (await pass_time(first, second, seconds=30))[-1] == ["a"]
    await first.end()
    await second.end()


ACTIONS = st.tuples(
    st.sampled_from([0, 1]),
    st.sampled_from(["ok", "stall", "lost", "delay", "stop", "go", "late-writes", "wall"]),
    st.sampled_from([0.5, 2.0, 5.0, 12.0, 20.0]),
)


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(
    st.lists(ACTIONS, max_size=10),
    st.floats(min_value=0.9, max_value=1.1),
    st.floats(min_value=0.9, max_value=1.1),
)
def test_H13_there_are_never_two_writers_even_with_drifting_clocks(
    script: list[tuple[int, str, float]], rate_a: float, rate_b: float
) -> None:
    asyncio.run(_never_two(script, (rate_a, rate_b)))


async def _never_two(script: list[tuple[int, str, float]], rates: tuple[float, float]) -> None:
    store = LeaseStore()
    processes = [Process(store, name, rate=rate) for name, rate in zip("ab", rates, strict=True)]
    try:
        for who, action, seconds in [(0, "ok", 5.0), *script, (0, "ok", 5.0), (1, "ok", 20.0)]:
            process = processes[who]
            match action:
                case "stop" | "go":
                    process.stopped = action == "stop"
                case "late-writes":
                    store.apply_delayed()
                case "wall":
                    process.clock.wall_offset += timedelta(hours=1)
                case mode:
                    process.client.mode = mode
            for writers in await pass_time(*processes, seconds=seconds, step_s=0.5):
                assert len(writers) <= 1
    finally:
        for process in processes:
            await process.end()

"""Which key runs next: single rules by example, and the laws by a state machine.

In scope: the pure queue.  Tested elsewhere: waiting, pre-emption and the worker loop (test_controller.py).
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gitops_ctl.kube.workqueue import Lane, TokenBucket, WorkQueue


def drain(queue: WorkQueue[str], *, now_s: float) -> list[str]:
    """Keys in the order in which one worker gets them."""
    order = []
    while (key := queue.take(now_s=now_s)) is not None:
        order.append(key)
        queue.done(key, now_s=now_s)
    return order


def test_a_key_that_is_added_while_in_flight_runs_again_and_never_twice_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    queue.add("a", now_s=0)
    assert queue.take(now_s=0) == "a"
    queue.add("a", now_s=1)
    queue.add("a", now_s=1)
    assert queue.take(now_s=1) is None
    queue.done("a", now_s=2)
    assert drain(queue, now_s=2) == ["a"]


def test_now_beats_later_and_the_earlier_of_two_delays_counts() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    queue.add_after("a", 10, now_s=0)
    queue.add_after("a", 5, now_s=0)
    queue.add_after("a", 20, now_s=0)
    assert queue.next_due_s == 5
    queue.add("a", now_s=1)
    assert drain(queue, now_s=1) == ["a"]
    assert drain(queue, now_s=100) == []


def test_failures_wait_longer_each_time_up_to_five_minutes_until_a_success() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    assert [queue.fail("a", now_s=0) for _ in range(12)] == [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    queue.forget("a")
    assert queue.fail("a", now_s=0) == 0.5


def test_what_the_other_side_asked_for_replaces_a_shorter_delay_only() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    assert queue.fail("a", now_s=0, at_least_s=30) == 30
    assert queue.fail("b", now_s=0, at_least_s=0.1) == 0.5


def test_the_jitter_is_at_most_a_fifth() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4, draw=lambda: 1.0)
    assert queue.fail("a", now_s=0) == pytest.approx(0.6)


def test_fresh_changes_run_before_retries_and_those_before_resyncs() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    queue.add("resync", now_s=0, lane=Lane.RESYNC)
    queue.add("retry", now_s=0, lane=Lane.RETRY)
    queue.add("fresh", now_s=0)
    queue.add("promoted", now_s=0, lane=Lane.RESYNC)
    queue.add("promoted", now_s=0)
    assert [queue.depth(lane) for lane in Lane] == [2, 1, 1]
    assert drain(queue, now_s=0) == ["fresh", "promoted", "retry", "resync"]


def test_tenants_take_turns() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4, tenant_of=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1", "c1"):
        queue.add(key, now_s=0)
    assert drain(queue, now_s=0) == ["a1", "b1", "c1", "a2", "a3"]


def test_H04_one_tenant_holds_at_most_half_of_the_workers() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4, tenant_of=lambda key: key[0])
    for number in range(20):
        queue.add(f"a{number}", now_s=0)
    assert [queue.take(now_s=0) for _ in range(4)] == ["a0", "a1", None, None]
    queue.add("b0", now_s=1)
    assert queue.take(now_s=1) == "b0"


def test_H04_a_storm_of_failures_does_not_delay_fresh_changes() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    delays = [queue.fail(f"bad{number}", now_s=0) for number in range(300)]
    assert delays[99] == 0.5
    assert delays[299] == pytest.approx(20.0)
    queue.add("good", now_s=1)
    assert queue.take(now_s=1) == "good"


def test_a_token_bucket_refills_with_time_and_not_with_a_clock_that_stands() -> None:
    bucket = TokenBucket(rate=5, burst=2)
    assert [bucket.take(now_s=0) for _ in range(3)] == [True, True, False]
    assert [bucket.take(now_s=0.4), bucket.take(now_s=0.4), bucket.take(now_s=0.4)] == [True, True, False]


def test_a_closed_queue_hands_out_nothing_and_lets_passes_end() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    for key in ("a", "b"):
        queue.add(key, now_s=0)
    queue.add_after("c", 1, now_s=0)
    assert queue.take(now_s=0) == "a"
    queue.add("a", now_s=0)
    queue.close()
    queue.done("a", now_s=1)
    queue.add("d", now_s=1)
    assert (queue.take(now_s=9), len(queue), queue.in_flight) == (None, 0, frozenset())


def test_a_dropped_key_runs_no_more() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    queue.add("a", now_s=0)
    queue.fail("b", now_s=0)
    for key in ("a", "b"):
        queue.drop(key)
    assert drain(queue, now_s=1000) == []
    assert queue.failures("b") == 0


def test_the_time_in_the_queue_is_told() -> None:
    queue: WorkQueue[str] = WorkQueue(workers=4)
    queue.add("a", now_s=10)
    queue.take(now_s=12.5)
    assert queue.waited_s == 2.5


KEYS = st.sampled_from([f"{tenant}{number}" for tenant in "abc" for number in range(4)])


class QueueMachine(RuleBasedStateMachine):
    """Against a model that knows only: what must run again, what runs now, and when delayed keys are due."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue(workers=3, tenant_of=lambda key: key[0])
        self.now_s = 0.0
        self.owed: set[str] = set()
        self.running: set[str] = set()
        self.due: dict[str, float] = {}

    @rule(key=KEYS, lane=st.sampled_from(list(Lane)))
    def add(self, key: str, lane: Lane) -> None:
        self.queue.add(key, now_s=self.now_s, lane=lane)
        self.owed.add(key)
        self.due.pop(key, None)

    @rule(key=KEYS, delay_s=st.floats(min_value=0.1, max_value=50))
    def add_after(self, key: str, delay_s: float) -> None:
        self.queue.add_after(key, delay_s, now_s=self.now_s)
        if key not in self.owed:
            self.due[key] = min(self.due.get(key, float("inf")), self.now_s + delay_s)

    @rule(key=KEYS)
    def fail(self, key: str) -> None:
        delay_s = self.queue.fail(key, now_s=self.now_s)
        if key not in self.owed:
            self.due[key] = min(self.due.get(key, float("inf")), self.now_s + delay_s)

    @rule(seconds=st.floats(min_value=0, max_value=30))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @rule()
    def take(self) -> None:
        key = self.queue.take(now_s=self.now_s)
        for late in [name for name, due_s in self.due.items() if due_s <= self.now_s]:
            self.owed.add(late)
            del self.due[late]
        able = {name for name in self.owed - self.running if self._held(name[0]) < 2}
        if key is None:
            assert not able
            return
        assert key in able
        self.owed.discard(key)
        self.running.add(key)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.queue.done(key, now_s=self.now_s)
        self.running.discard(key)

    def _held(self, tenant: str) -> int:
        return sum(1 for key in self.running if key[0] == tenant)

    @invariant()
    def in_flight_is_what_runs(self) -> None:
        assert self.queue.in_flight == self.running

    @invariant()
    def nothing_is_lost_or_invented(self) -> None:
        assert len(self.queue) == len(self.owed) + len(self.due)

    def teardown(self) -> None:
        """Every change that was added runs in the end, each key once, when passes end and time goes on."""
        for key in sorted(self.running):
            self.queue.done(key, now_s=self.now_s)
        left = self.owed | set(self.due)
        assert sorted(drain(self.queue, now_s=self.now_s + 1000)) == sorted(left)


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.property
class TestQueueLaws(QueueMachine.TestCase):  # type: ignore[misc, name-defined]
    """No lost key, no key twice at once, no tenant over its share, whatever the order of events."""

"""Laws of the transition machine under any order of events (topology-scheduling.md, 8.3).

A small Kueue stands beside it: it sees the queue when it likes, admits by what it saw, and writes its counters in one update.
"""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.scheduling.migration import Desired, Unsettled, decide
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import EMPTY_HOLD, PHASE, SAVED_POLICY, WANTED_POLICY, Managed, Queue, Usage, quotas_of
from gitops_ctl.scheduling.queue_plan import Refusal
from tests.support.scheduling_queue import NOW, TAS, plan

pytestmark = pytest.mark.property

PLANS = st.sampled_from([plan(), plan(a=2), plan(a=1), plan(a=2, b=2), plan(b=2), plan(b=1, c=3)])
REFUSED = Refusal("NonConservedQuota", "why")
POLICIES = st.sampled_from(["", "None", "Hold", "HoldAndDrain"])
OWN_EVENTS = st.one_of(
    st.just(("reconcile", None)),
    st.just(("reconcile", None)),
    st.just(("lost", None)),
    st.just(("observe", None)),
    st.just(("admit", None)),
    st.just(("finish", None)),
    st.tuples(st.just("plan"), PLANS),
    st.just(("refuse", None)),
    st.tuples(st.just("settled"), st.booleans()),
    st.tuples(st.just("wanted"), st.sampled_from(["None", "Hold", "HoldAndDrain"])),
)
EDITS = st.tuples(st.just("edit"), POLICIES)
EVENTS = st.lists(st.one_of(OWN_EVENTS, EDITS), max_size=40)
OPTIONS = st.builds(Options, drain_when_no_flavors=st.booleans(), hold_before_drop=st.booleans())


@dataclass
class World:
    """One queue, the plan that it shall have, and a Kueue that has seen some earlier version of it."""

    options: Options
    managed: Managed = field(default_factory=lambda: Managed("Hold", (), (), {EMPTY_HOLD: "true"}))
    wanted: str = "None"
    plan: object = field(default_factory=plan)
    settled: bool = True
    generation: int = 1
    seen: tuple[int, Managed] = (0, Managed("Hold"))
    counted: dict = field(default_factory=dict)
    reserved: list = field(default_factory=list)

    def queue(self):
        generation, observed = self.seen
        lists = {name: self.counted.get(name, 0) > 0 for name in quotas_of(observed.groups)}
        is_current = generation == self.generation
        usage = Usage(
            is_current=is_current,
            is_stopped=is_current and not observed.is_open,
            reserving=sum(self.counted.values()),
            admitted=sum(self.counted.values()),
            reserved=lists,
            used=lists,
        )
        annotations = {WANTED_POLICY: self.wanted, **self.managed.marks}
        return Queue("q", "uid", "7", {}, annotations, False, self.managed, usage)

    def decide(self):
        unsettled = None if self.settled else Unsettled("n", "x", 40.0)
        return decide(self.queue(), Desired(self.plan, unsettled), now=NOW, options=self.options)

    def change(self, managed):
        spec_changed = (managed.policy, managed.groups, managed.checks) != (
            self.managed.policy,
            self.managed.groups,
            self.managed.checks,
        )
        self.generation += spec_changed
        self.managed = managed

    def reconcile(self):
        found = self.decide()
        assert self.decide() == found
        if found.write is not None:
            self.judge(found.write)
            self.change(found.write)
        # Whatever happened before: after a look an empty queue is not open.
        assert self.managed.groups or not self.managed.is_open
        return found

    def judge(self, write):
        """What no write may do."""
        switched = write.groups != self.managed.groups
        if PHASE in self.managed.marks and switched:
            assert not self.reserved, "a switch with a live reservation"
            assert write.policy == "HoldAndDrain"
        if PHASE in self.managed.marks and PHASE not in write.marks:
            assert write.groups == self.plan.groups, "released on another plan"
            assert not self.reserved, "released while an old reservation lives"
        if switched and not isinstance(self.plan, Refusal):
            assert write.groups == self.plan.groups, "a plan is switched whole"
        if switched:
            assert self.settled
        if switched and self.options.hold_before_drop:
            gone = quotas_of(self.managed.groups).keys() - quotas_of(write.groups).keys()
            assert not gone & set(self.reserved), "a flavor in use was dropped"

    def event(self, name, value):
        match name:
            case "reconcile":
                self.reconcile()
            case "lost":
                self.decide()  # killed before the write
            case "observe":
                self.seen = (self.generation, self.managed)
                self.counted = {flavor: self.reserved.count(flavor) for flavor in self.reserved}
            case "admit":
                self.admit()
            case "finish":
                if self.reserved:
                    self.reserved.pop()
            case "plan":
                self.plan = value
            case "refuse":
                self.plan = REFUSED
            case "settled":
                self.settled = value
            case "wanted":
                self.wanted = value
            case "edit":
                self.change(replace(self.managed, policy=value))

    def admit(self):
        observed = self.seen[1]
        if observed.is_open:
            for flavor, quota in quotas_of(observed.groups).items():
                if self.reserved.count(flavor) < quota:
                    self.reserved.append(flavor)
                    return


def serving(options, **given):
    """A queue that is open on two flavors, as Kueue has seen it."""
    managed = Managed("None", plan(a=2, b=2).groups, (), {TAS: "true"})
    return World(options, managed=managed, plan=plan(a=2, b=2), seen=(1, managed), **given)


def fresh(options):
    """A queue as it is created: held, without groups."""
    return World(options)


STARTS = st.sampled_from([fresh, serving])


@settings(max_examples=150, deadline=None)
@given(STARTS, OPTIONS, EVENTS)
def test_nothing_is_switched_or_released_over_a_reservation_and_no_empty_queue_is_open(start, options, events):
    world = start(options)
    for name, value in events:
        world.event(name, value)


@settings(max_examples=150, deadline=None)
@given(STARTS, OPTIONS, EVENTS, PLANS)
def test_from_every_state_the_queue_reaches_its_plan_and_then_writes_nothing(start, options, events, last):
    world = start(options)
    for name, value in events:
        world.event(name, value)
    world.plan, world.settled = last, True
    for _ in range(15):
        world.event("observe", None)
        found = world.reconcile()
        world.reserved.clear()
    assert found.write is None
    assert (found.condition.status, found.condition.reason) == ("True", "Ready")
    assert world.managed.groups == last.groups
    # Only an empty plan may stay in its migration: held, until a flavor returns.
    assert PHASE not in world.managed.marks or (not last.groups and world.managed.policy == "HoldAndDrain")


@settings(max_examples=150, deadline=None)
@given(OPTIONS, st.lists(OWN_EVENTS, max_size=40), st.booleans())
def test_a_hold_of_an_administrator_survives_every_path(options, events, empty):
    world = World(
        options, managed=Managed("Hold", () if empty else plan(a=2).groups, (), {} if empty else {TAS: "true"})
    )
    for name, value in events:
        world.event(name, value)
        held = world.managed.policy == "Hold"
        assert held or (world.managed.policy, world.managed.marks.get(SAVED_POLICY)) == ("HoldAndDrain", "Hold")


@settings(max_examples=150, deadline=None)
@given(STARTS, st.lists(OWN_EVENTS, max_size=40), PLANS.filter(lambda one: one.groups))
def test_the_policy_of_git_comes_through_in_the_end_when_nobody_else_edits(start, events, last):
    world = start(Options())
    for name, value in events:
        world.event(name, value)
    world.plan, world.settled = last, True
    for _ in range(15):
        world.event("observe", None)
        world.reconcile()
        world.reserved.clear()
    assert world.managed.policy == world.wanted

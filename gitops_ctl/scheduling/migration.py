"""The next write of a queue: in place, or by hold, drain, switch and release (topology-scheduling.md, 7.6 and 8).

All state is on the queue, so every step can be repeated and a crash between two writes loses nothing: what follows is read from
the annotations, the live groups and what Kueue says it has observed.  The rows are tested from top to bottom.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import Condition, Status, listed
from gitops_ctl.core.duration import to_text
from gitops_ctl.core.moment import from_rfc3339, to_rfc3339
from gitops_ctl.scheduling.drain import ALLOW_DRAIN, DRAIN_WINDOW, dropped_flavors, evicts, is_approved, plan_digest
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import (
    EMPTY_HOLD,
    HOLD_AND_DRAIN,
    HOLD_RELEASE,
    PHASE,
    POLICIES,
    SAVED_POLICY,
    STARTED_AT,
    TAS_QUEUE,
    UNSET,
    Managed,
    Queue,
)
from gitops_ctl.scheduling.queue_holds import (
    carried_out,
    first_plan,
    held_while_empty,
    is_foreign,
    is_short_hold,
    released,
    saved_for_git,
    short_hold,
    without_short_hold,
)
from gitops_ctl.scheduling.queue_plan import RETRY_S, Plan, Refusal

CONDITION: Final = "TopologyReady"
DRAINING: Final = "draining"
SWITCHED: Final = "switched"
LOOK_S: Final = 5.0
APPROVAL_S: Final = 60.0
UNSETTLED_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The first Node of the pool that has not settled, and for how long the pool has not; `nodes` are all of them, where somebody asks."""

    node: str
    lacks: str
    since_s: float
    nodes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"node {self.node} lacks {self.lacks}"


@dataclass(frozen=True, slots=True)
class Desired:
    """What a queue should be.

    Attributes:
        unsettled: None when the Nodes of the pool have settled.
        checks: names of the AdmissionChecks.
        left: flavors that stay in the plan and that a Node has moved away from.
        has_nodes: whether any managed Node is in the pool (D40).
    """

    plan: Plan | Refusal
    unsettled: Unsettled | None = None
    checks: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    has_nodes: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """A Warning event; the same one is not repeated while its cause lasts."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What one pass over a queue does.

    Attributes:
        write: the whole set to apply, guarded by the resourceVersion; None when nothing is to be written.
        condition: the new TopologyReady; None leaves it as it is.
        requeue_s: seconds until the next look; None when only an event wakes the queue.
    """

    write: Managed | None = None
    condition: Condition | None = None
    requeue_s: float | None = None
    events: tuple[Event, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Case:
    queue: Queue
    desired: Desired
    now: datetime
    options: Options

    @property
    def managed(self) -> Managed:
        return self.queue.managed


def decide(queue: Queue, desired: Desired, *, now: datetime, options: Options) -> Decision:
    """The next step of a managed queue; the same input gives the same step.

    Args:
        now: wall clock, for the window of an approval and the age of a drain.
    """
    case = _Case(queue, desired, now, options)
    if queue.is_deleted:
        # Kueue never evicts on its own when a queue goes.  Once: what somebody sets after that is theirs to answer for.
        if queue.is_left_drained:
            return Decision()
        return _step(case, replace(queue.managed, policy=HOLD_AND_DRAIN), None, None)
    if PHASE in queue.managed.marks:
        return _with_nodes(case, _with_age(case, _migrating(case)))
    return _with_nodes(case, _with_origin(case, _steady(case)))


def _with_origin(case: _Case, found: Decision) -> Decision:
    """With a warning about a policy that neither Git nor one of our holds explains."""
    queue = case.queue
    foreign = is_foreign(found.write or queue.managed, queue)
    if not foreign:
        return found
    message = f"stopPolicy {foreign} did not come from Git, which wants {queue.wanted}; it stays"
    return replace(found, events=(*found.events, Event("NotFromGit", message)))


def _with_nodes(case: _Case, found: Decision) -> Decision:
    """With a warning when no managed Node is in the pool; status and reason stay."""
    if case.desired.has_nodes:
        return found
    message = "no managed Node matches the labels of the queue"
    event = Event("NoManagedNodes", message)
    if found.condition is None:
        return replace(found, events=(*found.events, event))
    text = "; ".join(part for part in (found.condition.message, message) if part)
    return replace(found, condition=replace(found.condition, message=text), events=(*found.events, event))


def is_draining(queue: Queue) -> bool:
    """Whether a migration is under way.  A queue that was switched to an empty plan rests drained until a flavor returns."""
    return PHASE in queue.managed.marks and bool(queue.managed.groups or not queue.usage.is_drained)


def drain_age_s(queue: Queue, *, now: datetime) -> float | None:
    """Seconds since the drain began; None when nobody knows."""
    try:
        started = from_rfc3339(queue.managed.marks.get(STARTED_AT, ""))
    except ValueError:
        return None
    return (now - started).total_seconds()


def _migrating(case: _Case) -> Decision:
    """The rows of 8.1 for any phase."""
    phase, saved = case.managed.marks[PHASE], case.managed.marks.get(SAVED_POLICY)
    is_known = phase in (DRAINING, SWITCHED) and saved in (*POLICIES, UNSET)
    # An edit of the policy never bypasses the hold, also while there is no plan to switch to (D26).
    kept = saved_for_git(case.queue) if is_known else case.managed
    held = replace(kept, policy=HOLD_AND_DRAIN) if is_known else kept
    if case.desired.unsettled is not None:
        return _step(case, held, _migration(case), LOOK_S)
    if isinstance(case.desired.plan, Refusal):
        return _step(case, held, _refused(case.desired.plan), RETRY_S)
    if not is_known:
        message = f"{PHASE} is {phase!r} and {SAVED_POLICY} is {saved!r}: correct the annotations"
        return _step(case, held, _condition("False", "InvalidMigrationState", message), RETRY_S)
    if case.managed.policy != HOLD_AND_DRAIN:
        return _step(case, replace(held, checks=case.desired.checks), _migration(case), LOOK_S)
    if not case.queue.usage.is_drained:
        return _step(case, held, _migration(case), LOOK_S)
    return _drained(case, held, case.desired.plan)


def _drained(case: _Case, held: Managed, plan: Plan) -> Decision:
    """Nothing is reserved any more: switch, stay empty, or release."""
    if case.managed.marks[PHASE] == DRAINING or case.managed.groups != plan.groups:
        switched = _with_plan(replace(held, marks=held.marks_with({PHASE: SWITCHED})), case, plan)
        return _step(case, switched, _migration(case), LOOK_S)
    if not plan.groups:
        return _step(case, held, _ready("the pool has no flavor: the queue stays held"), None)
    saved = held.marks[SAVED_POLICY]
    marks = held.marks_with({PHASE: None, SAVED_POLICY: None, STARTED_AT: None})
    return _step(case, replace(held, policy="" if saved == UNSET else saved, marks=marks), _ready(), None)


def _steady(case: _Case) -> Decision:
    """No migration: what is begun comes to its end, then the plan is followed."""
    begun = _begun(case)
    if begun is not None:
        return _step(case, begun, None, LOOK_S)
    plan = case.desired.plan
    if case.desired.unsettled is not None:
        return _step(case, held_while_empty(case.queue), _awaited(case.desired.unsettled), LOOK_S)
    if isinstance(plan, Refusal):
        return _step(case, held_while_empty(case.queue), _refused(plan), plan.retry_s)
    if not case.managed.groups:
        return _from_nothing(case, plan)
    return _change(case, plan) if plan.groups else _pool_lost(case, plan)


def _begun(case: _Case) -> Managed | None:
    """Carry out the policy of Git, release our hold, end a short hold that leads nowhere; None when there is nothing."""
    carried = carried_out(case.queue)
    if carried is not None:
        return carried
    if HOLD_RELEASE in case.managed.marks:
        return released(case.queue)
    calm = without_short_hold(case.managed)
    is_followed = isinstance(case.desired.plan, Plan) and case.desired.unsettled is None and case.managed.groups
    return None if calm == case.managed or is_followed else calm


def _from_nothing(case: _Case, plan: Plan) -> Decision:
    if not plan.groups:
        held = held_while_empty(case.queue)
        return _step(case, held, _ready("the pool has no flavor: the queue is held"), None)
    first = _with_plan(first_plan(case.queue), case, plan)
    return _step(case, first, _ready(), LOOK_S if HOLD_RELEASE in first.marks else None)


def _change(case: _Case, plan: Plan) -> Decision:
    """In place where nothing goes or all of it is idle; else by a drain (7.6)."""
    target = _with_plan(without_short_hold(case.managed), case, plan)
    going = dropped_flavors(case.managed.groups, plan.groups) | case.desired.left
    if not going:
        return _step(case, target, _ready(), None)
    if not case.queue.usage.is_current:
        return _awaiting_status()
    if not all(case.queue.usage.is_idle(name) for name in going):
        return _start(case, plan, going)
    is_due = case.options.hold_before_drop or is_short_hold(case.managed)
    if not is_due or case.queue.usage.is_stopped:
        return _step(case, target, _ready(), None)
    # A Workload admitted after the last status write is not counted yet: nothing new while we look again (B17).
    held = short_hold(case.managed) if case.managed.is_open else case.managed
    message = "the queue is held shortly, until Kueue says that nothing was reserved in between (hold-before-drop)"
    return _step(case, held, _condition("Unknown", "AwaitingQueueStatus", message), LOOK_S)


def _pool_lost(case: _Case, plan: Plan) -> Decision:
    """Held first even if nothing is reserved: a reservation could land between the look and the switch."""
    if not case.options.drain_when_no_flavors:
        if not case.queue.usage.is_current:
            return _awaiting_status()
        if case.queue.usage.is_anything_reserved:
            message = "the pool has no flavor: the last plan serves while anything is reserved (drain-when-no-flavors)"
            return _step(case, without_short_hold(case.managed), _ready(message), APPROVAL_S)
    return _start(case, plan, dropped_flavors(case.managed.groups, ()))


def _start(case: _Case, plan: Plan, going: frozenset[str]) -> Decision:
    if case.options.require_drain_approval:
        if not case.queue.usage.is_current:
            return _awaiting_status()
        if evicts(case.queue, going) and not is_approved(case.queue, plan.groups, now=case.now):
            return _step(case, without_short_hold(case.managed), _unapproved(case, plan, going), APPROVAL_S)
    saved = case.managed.marks.get(SAVED_POLICY, case.managed.policy or UNSET)
    marks = case.managed.marks_with({SAVED_POLICY: saved, PHASE: DRAINING, STARTED_AT: to_rfc3339(case.now)})
    return _step(case, replace(case.managed, policy=HOLD_AND_DRAIN, marks=marks), _migration(case), LOOK_S)


def _with_plan(managed: Managed, case: _Case, plan: Plan) -> Managed:
    """With the whole plan, in one update."""
    marks = managed.marks_with({TAS_QUEUE: "true", EMPTY_HOLD: None}) if plan.groups else managed.marks
    return replace(managed, groups=plan.groups, checks=case.desired.checks, marks=marks)


def _step(case: _Case, wanted: Managed, condition: Condition | None, requeue_s: float | None) -> Decision:
    return Decision(None if wanted == case.managed else wanted, condition, requeue_s)


def _with_age(case: _Case, found: Decision) -> Decision:
    age = drain_age_s(case.queue, now=case.now)
    is_done = found.write is not None and PHASE not in found.write.marks
    if age is None or age < case.options.drain_warn_after_s or is_done or case.queue.usage.is_drained:
        return found
    message = f"the drain began {to_text(age)} ago (drain-warn-after); {_numbers(case)}"
    return replace(found, events=(Event("DrainStuck", message),))


def _condition(status: Status, reason: str, message: str = "") -> Condition:
    return Condition(CONDITION, status, reason, message)


def _ready(message: str = "") -> Condition:
    return _condition("True", "Ready", message)


def _refused(refusal: Refusal) -> Condition:
    return _condition("False", refusal.reason, refusal.message)


def _awaiting_status() -> Decision:
    message = "Kueue has not written a status for the queue as it is now"
    return Decision(condition=_condition("Unknown", "AwaitingQueueStatus", message), requeue_s=LOOK_S)


def _awaited(unsettled: Unsettled) -> Condition | None:
    if unsettled.since_s < UNSETTLED_S:
        return None
    return _condition("Unknown", "AwaitingNodeProfiles", unsettled.text)


def _migration(case: _Case) -> Condition:
    started = case.managed.marks.get(STARTED_AT) or (to_rfc3339(case.now) if PHASE not in case.managed.marks else "")
    since = f"since {started}, " if started else ""
    unsettled = case.desired.unsettled
    node = f"; {unsettled.text}" if unsettled is not None and unsettled.since_s >= UNSETTLED_S else ""
    return _condition("False", "Migrating", f"{since}{_numbers(case)}{node}")


def _numbers(case: _Case) -> str:
    usage = case.queue.usage
    return f"{usage.reserving} Workloads reserve, {usage.admitted} are admitted"


def _unapproved(case: _Case, plan: Plan, going: frozenset[str]) -> Condition:
    digest = plan_digest(case.queue, plan.groups)
    # The digest comes first: a message may be cut, and without it nobody can agree.
    message = (
        f"to agree to a drain, annotate the queue with {ALLOW_DRAIN}: {digest}, or open a {DRAIN_WINDOW} "
        f"(require-drain-approval); it would take {listed(sorted(going))} away, {_numbers(case)}"
    )
    return _condition("False", "AwaitingDrainApproval", message)

"""What the executor does next for a cluster: one decision from the objects, the accepted revision and the time (cni-switch.md, section 6).

Pure.  A decision has at most one write that something else depends on: the cluster's record first (lock, consent, mode), then the
operation.  The caller writes it, reads again and asks again, until nothing is left to write.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.cni import lock, messages
from gitops_ctl.cni.drift import drift_of
from gitops_ctl.cni.messages import Place
from gitops_ctl.cni.mode import next_baseline
from gitops_ctl.cni.model import (
    Action,
    Authority,
    Cluster,
    Consumed,
    Introduction,
    Machine,
    Mode,
    Observed,
    Operation,
    Phase,
    Problem,
    Record,
    Request,
    Said,
    State,
    Steering,
)
from gitops_ctl.cni.plan_start import asked_for, unrecorded
from gitops_ctl.cni.steps import (
    SOMEWHERE,
    WORKER_CLOCK,
    Outcome,
    Verdict,
    View,
    asked,
    fresh_look,
    overdue,
    with_look,
    worker_limit,
    wound,
)
from gitops_ctl.cni.steps_cni import await_cni, preflight, verify_cni
from gitops_ctl.cni.steps_machines import resumed, switch_machines
from gitops_ctl.cni.steps_objects import probe, remove, restore
from gitops_ctl.core.conditions import cut

_LONGEST: Final = 1700
"""Characters of what happened, so that what to do still fits into the condition."""

Judge = Callable[[View, Observed], Outcome]


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the tables 6.2 and 6.3; `judge` is None for the step that sets the mode."""

    name: str
    phase: Phase
    judge: Judge | None


STEPS: Final[dict[Mode, tuple[Step, ...]]] = {
    Mode.REPLACED: (
        Step("replaced/1-preflight", Phase.PREFLIGHT, preflight),
        Step("replaced/2-await-cni", Phase.AWAITING, await_cni),
        Step("replaced/3-verify-cni", Phase.VERIFYING, verify_cni),
        Step("replaced/4-set-mode", Phase.SWITCHING, None),
        Step("replaced/5-switch-machines", Phase.SWITCHING, switch_machines),
        Step("replaced/6-remove-kube-proxy", Phase.REMOVING, remove),
        Step("replaced/7-probe-service", Phase.VERIFYING, probe),
    ),
    Mode.ENABLED: (
        Step("enabled/1-preflight", Phase.PREFLIGHT, preflight),
        Step("enabled/2-set-mode", Phase.SWITCHING, None),
        Step("enabled/3-switch-machines", Phase.SWITCHING, switch_machines),
        Step("enabled/4-verify-kube-proxy", Phase.VERIFYING, restore),
        Step("enabled/5-await-cni", Phase.AWAITING, await_cni),
        Step("enabled/6-verify-cni", Phase.VERIFYING, verify_cni),
    ),
}


@dataclass(frozen=True, slots=True)
class World:
    """What a decision is made from; `place` is where the values of Cilium are changed."""

    cluster: Cluster
    machines: tuple[Machine, ...]
    operations: tuple[Operation, ...]
    authority: Authority
    now: datetime
    place: Place = SOMEWHERE


@dataclass(frozen=True, slots=True)
class Decision:
    """What is written next, and when to look again by the time alone.

    Attributes:
        create: the consent that a new operation spends.
        record: the cluster's record, when it changes; written with a compare-and-swap.
        states: operations whose status changes.
        problem: what is told to people about the cluster: a value that does not come from Git.
    """

    create: Introduction | None = None
    record: Record | None = None
    states: tuple[tuple[Operation, State], ...] = ()
    wake: datetime | None = None
    problem: Problem | None = None


def plan(world: World) -> Decision:
    """The next decision."""
    cluster, operations = world.cluster, world.operations
    if cluster.deleted:
        return Decision()
    steering = world.authority.steering
    if lock.is_left_over(cluster, operations, break_lock=steering.break_lock):
        return Decision(record=replace(cluster.record, lock=None))
    found = asked_for(cluster, operations, world.authority)
    if isinstance(found, Introduction):
        return Decision(create=found)
    current = lock.turn(cluster, operations)
    others = tuple(_queued(one, cluster) for one in operations if not one.is_over and one is not current)
    decision = _current(world, current) if current is not None else _idle(world)
    problem = found if isinstance(found, Problem) else None
    return replace(decision, states=(*decision.states, *others), problem=problem)


def _idle(world: World) -> Decision:
    drift = drift_of(world.cluster, world.machines, world.operations, now=world.now)
    if drift == world.cluster.record.drift:
        return Decision()
    return Decision(record=replace(world.cluster.record, drift=drift))


def _queued(operation: Operation, cluster: Cluster) -> tuple[Operation, State]:
    """An operation that waits for another one."""
    held = cluster.record.lock
    message = messages.waits_for_lock(held) if held is not None else "waits for an earlier operation of the cluster"
    return operation, replace(operation.state, said=Said("Locked", message))


def _current(world: World, operation: Operation) -> Decision:
    record, authority = world.cluster.record, world.authority
    if not authority.revision and not authority.why:
        return Decision()  # this process has not looked at the sources yet
    if operation.state.phase is Phase.PENDING:
        return _pending(world, operation)
    if lock.is_held_by(record, operation):
        return _running(world, operation)
    if record.lock is None:
        return Decision(record=lock.taken(record, operation, now=world.now))
    said = Said("LockLost", messages.waits_for_lock(record.lock))
    return _only(world, operation, _paused(world, operation, said))


def _pending(world: World, operation: Operation) -> Decision:
    """From Pending to the first step: consent recorded, steering clean, lock taken, in this order."""
    record, state, steering = world.cluster.record, operation.state, world.authority.steering
    if not world.authority.revision:
        return _only(world, operation, replace(state, said=Said("NoAcceptedRevision", _frozen(world))))
    if lock.is_held_by(record, operation):
        begun = replace(operation, state=replace(state, steering=steering))
        return _only(world, operation, _entered(world, begun, STEPS[operation.target][0]))
    found, over = unrecorded(world.cluster, operation, world.authority), _turned(world, operation)
    if isinstance(found, Problem):
        over = replace(state, phase=Phase.CANCELLED, said=Said(found.reason, found.message))
    if over is not None:
        return _only(world, operation, over)
    if isinstance(found, Consumed):
        return Decision(record=replace(record, consumed=found))
    if (waits := _queue_reason(record, steering, live=world.cluster.steering)) is not None:
        return _only(world, operation, replace(state, said=waits))
    return Decision(record=lock.taken(replace(record, drift=None), operation, now=world.now))


def _queue_reason(record: Record, steering: Steering, *, live: Steering) -> Said | None:
    """Why a new operation may not take the lock yet; to keep it waiting, a value that authorises nothing is enough."""
    left = (("cancel", steering.cancel or live.cancel), ("breakLock", steering.break_lock or live.break_lock))
    for name, value in left:
        if value:
            return Said("SteeringLeft", messages.pending_steering(name))
    return Said("Locked", messages.waits_for_lock(record.lock)) if record.lock is not None else None


def _running(world: World, operation: Operation) -> Decision:
    state, steering = operation.state, world.authority.steering
    if not world.authority.revision:
        return _only(world, operation, _withdrawn(world, operation))
    if all(step.name != state.step for step in STEPS[operation.target]):
        return _only(world, operation, _found_again(world, operation))
    ended = _ended(world, operation)
    if ended is not None:
        return _only(world, operation, ended)
    acted = state.steering or Steering()
    if state.phase is Phase.PAUSED and steering.resume <= acted.resume:
        return _only(world, operation, replace(state, noted=_note(world, operation)))
    mirror = replace(steering, resume=max(steering.resume, acted.resume))
    if state.phase is Phase.PAUSED:
        again = replace(state, steering=mirror, rows=resumed(state.rows))
        return _only(world, operation, _entered(world, replace(operation, state=again), _step(operation)))
    state = replace(state, steering=mirror, noted=_note(world, operation))
    return _stepped(world, replace(operation, state=state))


def _found_again(world: World, operation: Operation) -> State:
    """The state when the name of the step is lost: from the first one on, since each begins by looking at what is live."""
    first = STEPS[operation.target][0]
    if operation.state.phase is Phase.PAUSED:
        return replace(operation.state, step=first.name)
    return _entered(world, operation, first)


def _ended(world: World, operation: Operation) -> State | None:
    """The end that people ask for, when it is honoured (section 6.6)."""
    steering, state = world.authority.steering, operation.state
    if steering.break_lock and state.phase is Phase.PAUSED:
        claims = sorted(operation.claims - frozenset(operation.receipts))
        said = Said("LockBroken", messages.lock_broken(operation, state.rows, claims))
        return _over(replace(state, steering=steering), Phase.CANCELLED, said)
    if not _may_cancel(world, operation):
        return None
    if steering.cancel:
        said = Said("Cancelled", "cancelled by a signed commit; nothing was touched")
        return _over(replace(state, steering=steering), Phase.CANCELLED, said)
    return _turned(world, operation)


def _turned(world: World, operation: Operation) -> State | None:
    """The end of an operation that touched nothing, once cluster or accepted revision name another mode (section 6.6).

    The revision alone is enough: a change back without a consent of its own is held, and never comes to the cluster.
    """
    for mode, where in ((world.cluster.mode, ""), (world.authority.mode, " in the accepted revision")):
        if mode is not None and mode is not operation.target:
            said = Said("TargetChanged", f"spec.cni.kubeProxy names {mode}{where} now; nothing was touched")
            return _over(operation.state, Phase.CANCELLED, said)
    return None


def _may_cancel(world: World, operation: Operation) -> bool:
    """Whether this operation has not set the mode of the cluster yet."""
    if operation.state.rows:
        return False
    steps = STEPS[operation.target]
    setting = next(number for number, step in enumerate(steps) if step.judge is None)
    here = steps.index(_step(operation))
    return here < setting or (here == setting and world.cluster.record.mode is not operation.target)


def _note(world: World, operation: Operation) -> str:
    steering = world.authority.steering
    if steering.cancel:
        return messages.cancel_refused(operation.target)
    return messages.break_refused() if steering.break_lock else ""


def _stepped(world: World, operation: Operation) -> Decision:
    """One step forward, or the wait for it."""
    step, view = _step(operation), _view(world, operation)
    if step.judge is None:
        if world.cluster.record.mode is not operation.target:
            return Decision(record=replace(world.cluster.record, mode=operation.target))
        return _only(world, operation, _advanced(world, operation, noted=""))
    seen, now = fresh_look(view), world.now
    if seen is None:
        return _only(world, operation, _unanswered(world, operation))
    state = operation.state
    baseline = next_baseline(state.baseline, seen.cilium, operation.target, now=now)
    operation = replace(operation, state=replace(state, baseline=baseline))
    outcome = step.judge(_view(world, operation), seen)
    if outcome.set_mode and world.cluster.record.mode is not operation.target:
        return Decision(record=replace(world.cluster.record, mode=operation.target))
    return _only(world, operation, _after(world, operation, outcome))


def _unanswered(world: World, operation: Operation) -> State:
    """The worker has not answered the question yet."""
    state = operation.state
    look = state.request(Action.OBSERVE)
    if look is None or not look.id.startswith(f"{state.step}/"):
        return _asking(world, operation, state)
    limit = worker_limit("it was asked to look at the cluster", name=WORKER_CLOCK)
    if overdue(state, [limit], now=world.now) is not None:
        return _paused(world, operation, Said(limit.reason, limit.message))
    return state if state.said.message else replace(state, said=Said("", "waits for the cluster worker to look"))


def _after(world: World, operation: Operation, outcome: Outcome) -> State:
    """The state that an outcome makes of the present one."""
    before, operation = operation, replace(operation, state=_judged(operation, outcome))
    match outcome.verdict:
        case Verdict.PASS:
            return _advanced(world, operation, noted=outcome.noted)
        case Verdict.BACK:
            return _entered(world, operation, _before(operation))
        case Verdict.FINISH:
            return _over(operation.state, Phase.SUCCEEDED, outcome.said)
        case Verdict.PAUSE:
            return _paused(world, operation, outcome.said)
        case Verdict.WAIT:
            return _waiting(world, operation, outcome, before=before)


def _judged(operation: Operation, outcome: Outcome) -> State:
    """The state with the machines and the requests of an outcome; what is claimed and has no receipt stays in any case."""
    state = operation.state
    listed = frozenset(request.id for request in outcome.asks)
    kept = [one for one in state.requests if one.action is Action.OBSERVE or _is_open(operation, one)]
    requests = (*(one for one in kept if one.id not in listed), *outcome.asks)
    return replace(state, requests=requests, rows=state.rows if outcome.rows is None else outcome.rows)


def _waiting(world: World, operation: Operation, outcome: Outcome, *, before: Operation) -> State:
    state, now = operation.state, world.now
    late = overdue(state, outcome.limits, now=now)
    if late is not None:
        return _paused(world, operation, Said(late.reason, late.message))
    waiting = replace(state, clocks=wound(state, outcome.limits, now=now), said=outcome.said)
    silent = overdue(state, [worker_limit("", name=WORKER_CLOCK)], now=now) is not None
    # A number that nobody used is gone with its request: the new question takes a higher one.
    dropped = any(_is_unused(before, one) and one not in waiting.requests for one in before.state.requests)
    return _asking(world, before, waiting) if outcome.look or silent or dropped else waiting


def _advanced(world: World, operation: Operation, *, noted: str) -> State:
    following = _next(operation)
    if following is not None:
        return _entered(world, operation, following)
    reason = "ProbeNotPossible" if noted.startswith("ProbeNotPossible") else "Succeeded"
    said = Said(reason, messages.succeeded(operation.target, noted=noted))
    return _over(operation.state, Phase.SUCCEEDED, said)


def _entered(world: World, operation: Operation, step: Step) -> State:
    """The first moment of a step, also of one that is done again: no clock has begun, and it has a question of its own.

    What was claimed stays until its receipt is taken in.
    """
    before = operation.state
    kept = tuple(one for one in before.requests if one.action.is_effect and one.id in operation.claims)
    message = "sets the mode of the cluster" if step.judge is None else "waits for the cluster worker to look"
    state = replace(
        before, phase=step.phase, step=step.name, clocks=(), requests=kept, said=Said("", message), noted=""
    )
    return _asking(world, operation, state) if step.judge is not None else state


def _asking(world: World, operation: Operation, state: State) -> State:
    """The state with a new question, numbered after everything that was ever asked."""
    everything = replace(state, requests=(*operation.state.requests, *state.requests))
    look = asked(_view(world, replace(operation, state=everything)), Action.OBSERVE)
    return with_look(state, look, now=world.now)


def _paused(world: World, operation: Operation, said: Said) -> State:
    """Nothing goes on by itself: clocks end, and a request that nobody claimed is taken back."""
    state = operation.state
    if state.phase is Phase.PAUSED:
        return state
    hint = messages.resume_hint(world.cluster, (state.steering or Steering()).resume)
    message = f"step {state.step} failed: {cut(said.message, limit=_LONGEST)}; {hint}"
    kept = _without_unclaimed(world, operation)
    return replace(kept, phase=Phase.PAUSED, clocks=(), said=Said(said.reason, message), noted="")


def _withdrawn(world: World, operation: Operation) -> State:
    """No accepted revision allows an effect: nothing new is asked, and what nobody claimed is taken back (section 17)."""
    kept = _without_unclaimed(world, operation)
    if kept.phase is Phase.PAUSED:
        return kept
    return replace(kept, said=Said("NoAcceptedRevision", _frozen(world)))


def _without_unclaimed(world: World, operation: Operation) -> State:
    """The state without effects that nobody has begun; numbers that are gone are never given again."""
    state = operation.state
    kept = tuple(one for one in state.requests if not one.action.is_effect or one.id in operation.claims)
    if len(kept) == len(state.requests):
        return state
    return _asking(world, operation, replace(state, requests=kept))


def _is_open(operation: Operation, request: Request) -> bool:
    """Whether the worker has begun, and its receipt is not here yet."""
    return request.action.is_effect and request.id in operation.claims and request.id not in operation.receipts


def _is_unused(operation: Operation, request: Request) -> bool:
    """Whether an effect was asked for and nobody has answered in any way."""
    return request.action.is_effect and request.id not in operation.claims and request.id not in operation.receipts


def _frozen(world: World) -> str:
    return f"no accepted revision allows an effect now ({world.authority.why}); nothing is undone"


def _over(state: State, phase: Phase, said: Said) -> State:
    return replace(state, phase=phase, clocks=(), requests=(), said=said, noted="")


def _step(operation: Operation) -> Step:
    """The step that an operation is in."""
    return next(step for step in STEPS[operation.target] if step.name == operation.state.step)


def _next(operation: Operation) -> Step | None:
    """The step after the present one; None after the last."""
    steps = STEPS[operation.target]
    number = steps.index(_step(operation)) + 1
    return steps[number] if number < len(steps) else None


def _before(operation: Operation) -> Step:
    """The step before the present one."""
    steps = STEPS[operation.target]
    return steps[steps.index(_step(operation)) - 1]


def _view(world: World, operation: Operation) -> View:
    return View(world.cluster, world.machines, operation, world.authority, world.now, world.place)


def _only(world: World, operation: Operation, state: State) -> Decision:
    """A decision about one operation, with the moment at which the first of its clocks runs out."""
    stored = next(one for one in world.operations if one.uid == operation.uid)
    deadlines = [clock.deadline for clock in state.clocks]
    return Decision(states=((stored, state),), wake=min(deadlines, default=None))

"""Carries out the applies of a plan: inventory first, then wave after wave, then the inventory again (gitops.md, sections 6 to 8).

A wave waits for nothing but what it needs: definitions until they are established, dependencies until they are healthy.  An
object whose need is not met is held, and the wave goes on without it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TransientError
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.documents.conditions import ConditionGuard
from gitops_ctl.sync.apply import Outage, Target, apply_wave, dry_run_wave
from gitops_ctl.sync.cluster import LiveCluster
from gitops_ctl.sync.digestview import view_of
from gitops_ctl.sync.drift import repaired
from gitops_ctl.sync.holding import ask_rules
from gitops_ctl.sync.model import (
    Applied,
    Apply,
    Desired,
    DesiredState,
    Entry,
    Health,
    HealthStatus,
    Held,
    Seen,
    Unseen,
    Why,
)
from gitops_ctl.sync.order import CRD, NAMESPACE, in_waves
from gitops_ctl.sync.unit import Memory

ESTABLISHED_S: Final = 10.0
"""How long a pass waits for a definition; then its custom resources are held and tried again."""

REPAIRS: Final = frozenset({Why.MISSING, Why.REPLACED, Why.DRIFTED})


@dataclass(slots=True)
class Pass:
    """One pass over one unit: what it may use, and what it has learned so far.

    Attributes:
        see: what is known of an object.
        go_on: False as soon as a newer revision waits or the process ends.
        require: raises when the manager may not write any more; asked before each batch of writes.
        conditions: evaluates the expressions of health checks.
        held: everything that waits, by object.
        entries: the inventory as it should be in the end.
    """

    memory: Memory
    state: DesiredState
    cluster: LiveCluster
    target: Target
    interval_s: float
    see: Callable[[ObjectId, GroupVersionKind], Seen]
    go_on: Callable[[], bool]
    require: Callable[[], None]
    conditions: ConditionGuard
    dry_run: bool = False
    held: dict[ObjectId, Held] = field(default_factory=dict)
    entries: dict[ObjectId, Entry] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    interrupted: bool = False

    @property
    def now_s(self) -> float:
        return self.target.clock.boot_s()

    async def save(self) -> None:
        """Make the stored inventory equal to `entries`."""
        memory = self.memory
        if memory.store is None or memory.record is None:
            raise RuntimeError("the inventory was not loaded")
        self.require()
        record, memory.record = memory.record, None
        memory.record = await memory.store.save(record, self.entries)


async def converge(run: Pass, applies: Sequence[Apply]) -> None:
    """Apply in waves.  Whatever ends it, the inventory afterwards is a superset of what may exist.

    Raises:
        TransientError: the API server is away.
    """
    if not applies:
        return
    for action in applies:
        run.entries.setdefault(action.id, Entry(action.id, action.desired.gvk.version, file=action.desired.file))
    await run.save()
    by_id = {action.id: action for action in applies}
    outage = Outage()
    try:
        for wave in in_waves({item: action.desired for item, action in by_id.items()}).waves:
            if not run.go_on():
                run.interrupted = True
                return
            await _wave(run, [by_id[desired.id] for desired in wave], outage)
    finally:
        _narrow(run, applies)
        await run.save()


async def _wave(run: Pass, actions: Sequence[Apply], outage: Outage) -> None:
    ready = [action for action in actions if not _hold_if_waiting(run, action)]
    asked = await ask_rules(ready, target=run.target)
    ready = _without(run, asked.ready, asked.held)
    if run.dry_run:
        ready = _without(run, ready, await dry_run_wave(ready, target=run.target))
    run.require()
    tried = len(run.applied)
    await apply_wave(ready, target=run.target, done=lambda item: _note(run, item), outage=outage)
    run.interrupted = run.interrupted or not run.go_on()
    definitions = [item.action.desired for item in run.applied[tried:] if item.view and item.id.group_kind == CRD]
    if definitions:
        await _await_definitions(run, definitions)


def _without(run: Pass, actions: Sequence[Apply], refused: Iterable[Applied]) -> list[Apply]:
    """The rest of a wave, after the refused ones were noted."""
    told = {item.id: item for item in refused}
    for item in told.values():
        _note(run, item)
    return [action for action in actions if action.id not in told]


def _hold_if_waiting(run: Pass, action: Apply) -> bool:
    reason = missing_need(run, action.desired)
    if reason:
        desired = action.desired
        run.held[action.id] = Held(action.id, ErrorCode.DEPENDENCY_NOT_READY, reason, desired.file, desired.line)
        run.memory.hold(
            run.held[action.id], digest=desired.digest, retry=True, now_s=run.now_s, interval_s=run.interval_s
        )
    return bool(reason)


def missing_need(run: Pass, desired: Desired) -> str:
    """Why an object cannot be applied yet; empty when nothing is missing."""
    for item in (*_implied(desired, run.state), *desired.depends_on):
        found = run.held.get(item)
        if found is not None:
            return f"waits for {item}, which is held ({found.why})"
    for item in desired.depends_on:
        other = run.state.objects.get(item)
        if other is None:
            return f"depends on {item}, which this unit does not declare"
        seen = run.see(item, other.gvk)
        if seen is None:
            return f"waits for {item}, which is not there yet"
        if not isinstance(seen, Unseen) and _status(seen.health, run) is not HealthStatus.CURRENT:
            return f"waits for {item}, which is {_status(seen.health, run)}: {seen.health.message}"
    return ""


def _status(health: Health, run: Pass) -> HealthStatus:
    return health.at(run.target.clock.wall().timestamp())


def _implied(desired: Desired, state: DesiredState) -> list[ObjectId]:
    """The namespace and the definition of an object, as far as the unit speaks of them."""
    found = [ObjectId(NAMESPACE.group, NAMESPACE.kind, "", desired.id.namespace)] if desired.id.namespace else []
    definition = state.definitions.get(desired.id.group_kind)
    return [*found, definition] if definition is not None else found


def _note(run: Pass, item: Applied) -> None:
    """Take the outcome of one apply into memory, cache and inventory."""
    memory, desired = run.memory, item.action.desired
    run.applied.append(item)
    if item.held is not None:
        run.held[item.id] = item.held
        memory.hold(item.held, digest=desired.digest, retry=item.retry, now_s=run.now_s, interval_s=run.interval_s)
        return
    memory.release(item.id)
    if item.view is None:
        run.entries.pop(item.id, None)
        return
    if run.cluster.is_watched(desired.gvk):
        run.cluster.note(item.id, item.view, uid=item.view.uid)
    else:
        memory.read[item.id] = item.view
    memory.before[item.id] = desired
    run.entries[item.id] = Entry(
        item.id, desired.gvk.version, item.view.uid, desired.digest, item.view.digest, desired.file, desired.keep
    )
    if item.action.why in REPAIRS:
        manager = ", ".join(item.took_from)
        memory.heats[item.id] = repaired(memory.heats.get(item.id), manager=manager, now_s=run.now_s)


def _narrow(run: Pass, applies: Sequence[Apply]) -> None:
    """Take out entries of objects that surely do not exist: never applied before, and refused with a clear answer.

    What is tried again by itself keeps its entry, so that waiting writes nothing.
    """
    refused = {item.id for item in run.applied if not item.transient and not item.retry}
    for action in applies:
        entry = run.entries.get(action.id)
        if entry is not None and not entry.uid and action.id in refused and not _may_be_ours(run, action.desired):
            del run.entries[action.id]


def _may_be_ours(run: Pass, desired: Desired) -> bool:
    """Whether an apply that nobody saw succeed may have: before a kill, or before its reply was lost (R05)."""
    seen = run.see(desired.id, desired.gvk)
    return seen is not None and (isinstance(seen, Unseen) or seen.owner == desired.owner.mark(desired.id))


async def _await_definitions(run: Pass, definitions: Sequence[Desired]) -> None:
    """Until they are established, then read discovery and begin to watch the new kinds (S09)."""
    deadline_s = run.now_s + ESTABLISHED_S
    open_ = list(definitions)
    while open_ and run.now_s < deadline_s and run.go_on():
        open_ = [desired for desired in open_ if not await _is_established(run, desired)]
        if open_:
            await run.target.clock.sleep(0.05)
    for desired in open_:
        text = "is not established yet"
        run.held[desired.id] = Held(desired.id, ErrorCode.DEPENDENCY_NOT_READY, text, desired.file, desired.line)
    await run.cluster.mapper.refresh()
    await run.cluster.need(run.memory.key, kinds_of(run.state, run.entries.values()))


async def _is_established(run: Pass, desired: Desired) -> bool:
    resource = await run.cluster.mapper.resource(desired.gvk)
    try:
        tree = await run.target.client.find(resource.path("", desired.id.name), account=run.target.account)
    except TransientError:
        return False
    return tree is not None and view_of(tree).health.status is HealthStatus.CURRENT


def kinds_of(state: DesiredState, entries: Iterable[Entry]) -> set[GroupVersionKind]:
    """Every kind that a unit has to see."""
    return {desired.gvk for desired in state.objects.values()} | {entry.gvk for entry in entries}

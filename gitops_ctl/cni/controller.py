"""The switch executor: reads a cluster's objects, asks the plan, and writes what it decides, one write at a time (cni-switch.md, section 6).

It never connects to a machine or to a target cluster (promise P5), and never writes a spec but those of the TalosOperations and Proposals
that it makes.  What decides about an effect is read anew from the API server in every round, so that nothing is planned from a cache that
has not seen the last write; statuses that remember are written with a compare-and-swap (fault H13).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, Protocol

import structlog

from gitops_ctl.api.names import FIELD_MANAGER_CNI, GROUP, ICHOR_GROUP, VERSION
from gitops_ctl.cni.messages import Place
from gitops_ctl.cni.model import KIND, Authority, Cluster, Machine, Observed, Operation, Phase, Problem, Record, State
from gitops_ctl.cni.pending import report_of
from gitops_ctl.cni.plan import Decision, World, plan
from gitops_ctl.cni.proposals import (
    cleanup_name,
    pull_request_of,
    values_name,
    with_link,
)
from gitops_ctl.cni.reading import cluster_of, machine_of, operation_of
from gitops_ctl.cni.writing import (
    cluster_ready,
    operation_name,
    operation_tree,
    owned_of,
    record_tree,
    state_tree,
)
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.conditions import merge_conditions
from gitops_ctl.core.errors import GitopsError, InternalError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, text_at
from gitops_ctl.forge.wanted import asked_of, is_watched, withdrawn
from gitops_ctl.kube.answers import AlreadyExists
from gitops_ctl.kube.events import Emit
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import swap_status, write_status
from gitops_ctl.kube.transport import KubeClient

CLUSTER: Final = Resource(GroupVersionKind(ICHOR_GROUP, VERSION, "TalosCluster"), "talosclusters", namespaced=True)
MACHINE: Final = Resource(GroupVersionKind(ICHOR_GROUP, VERSION, "TalosMachine"), "talosmachines", namespaced=True)
OPERATION: Final = Resource(
    GroupVersionKind(ICHOR_GROUP, VERSION, "TalosOperation"), "talosoperations", namespaced=True
)
PROPOSAL: Final = Resource(GroupVersionKind(GROUP, VERSION, "Proposal"), "proposals", namespaced=True)

UNSEEN_S: Final = 2.0
"""When a pass looks again after machines or operations could not be seen as a whole."""

ROUNDS: Final = 16
"""Writes of one pass; more than any way through the plan needs before it waits for somebody else."""

NOWHERE: Final = Place("the Application's or release's Helm values in Git")

log = structlog.get_logger(__name__)


class Asks(Protocol):
    """What Git says about a cluster; `authority.AuthorityReader`."""

    async def of(self, tree: JsonObject) -> Authority: ...


class Proposes(Protocol):
    """Which proposals are wanted, and where the values lie; `proposals_reading.ProposalDesk`."""

    async def place(self, cluster: Cluster, operation: Operation, observed: Observed) -> Place: ...

    async def wanted(self, cluster: Cluster, operation: Operation, authority: Authority) -> JsonObject | None: ...


@dataclass(frozen=True, slots=True)
class Caches:
    """What informers know; `usable` says whether the absence of a machine or of an operation means something."""

    usable: Callable[[], bool]
    machines: Callable[[NamespacedName], tuple[JsonObject, ...]]
    operations: Callable[[NamespacedName], tuple[JsonObject, ...]]
    proposal: Callable[[NamespacedName], JsonObject | None]


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a pass reaches the world through."""

    client: KubeClient
    caches: Caches
    authority: Asks
    proposals: Proposes
    clock: Clock
    emit: Emit
    require_leader: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round read."""

    tree: JsonObject
    operations: dict[str, JsonObject]
    machines: tuple[JsonObject, ...]
    world: World

    @property
    def now(self) -> datetime:
        return self.world.now


class SwitchController:
    """Reconciles TalosClusters."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._made: dict[NamespacedName, set[str]] = {}

    async def reconcile(self, key: NamespacedName) -> float | None:
        """One pass: rounds of reading, planning and writing until nothing is left to write; seconds until the next one.

        Raises:
            GitopsError: something could not be read or written; what was written stays, and the next pass goes on from there.
            LeadershipLost: this process may not write any more.
        """
        if not self._ports.caches.usable():
            return UNSEEN_S
        for _ in range(ROUNDS):
            tree = await self._ports.client.find(CLUSTER.path(key.namespace, key.name))
            if tree is None or text_at(tree, "metadata", "deletionTimestamp"):
                self._made.pop(key, None)
                return None
            seen = await self._read(key, tree)
            decision = plan(seen.world)
            if not await self._write(seen, decision):
                await self._settle(seen, decision)
                return _pause_s(seen, decision)
        raise InternalError(f"no rest after {ROUNDS} writes", subject=f"TalosCluster {key}")

    async def _read(self, key: NamespacedName, tree: JsonObject) -> _Round:
        machines = self._ports.caches.machines(key)
        operations = await self._operations(key, tree)
        parsed = tuple(found for item in operations.values() if (found := operation_of(item)) is not None)
        cluster = cluster_of(tree)
        world = World(
            cluster=cluster,
            machines=_in_order(machine_of(item) for item in machines),
            operations=parsed,
            authority=await self._ports.authority.of(tree),
            now=self._ports.clock.wall(),
            place=await self._place(cluster, parsed),
        )
        return _Round(tree, operations, machines, world)

    async def _operations(self, key: NamespacedName, tree: JsonObject) -> dict[str, JsonObject]:
        """By UID: finished ones as they are cached, all others as the server has them now, also those that are not cached yet."""
        cached = {text_at(item, "metadata", "name"): item for item in self._ports.caches.operations(key)}
        lock = object_at(tree, "status", "lock")
        names = set(cached) | self._made.setdefault(key, set())
        if text_at(lock, "kind") == KIND:
            names.add(text_at(lock, "holder"))
        found: dict[str, JsonObject] = {}
        for name in sorted(names):
            known = cached.get(name)
            parsed = operation_of(known) if known is not None else None
            if known is None or parsed is None or not parsed.is_over:
                known = await self._ports.client.find(OPERATION.path(key.namespace, name))
            if known is not None and text_at(known, "spec", "clusterRef", "name") == key.name:
                found[text_at(known, "metadata", "uid")] = known
        self._made[key] -= set(cached)
        return found

    async def _place(self, cluster: Cluster, operations: tuple[Operation, ...]) -> Place:
        """Where the values lie, looked up only while an operation waits for them."""
        for operation in operations:
            if operation.state.phase is Phase.AWAITING and operation.observed is not None:
                place = await self._ports.proposals.place(cluster, operation, operation.observed)
                stored = self._ports.caches.proposal(NamespacedName(cluster.key.namespace, values_name(operation)))
                return with_link(place, stored) if stored is not None else place
        return NOWHERE

    async def _write(self, seen: _Round, decision: Decision) -> bool:
        """Carry out what comes first in a decision; False when there was nothing to write."""
        self._ports.require_leader()
        if decision.create is not None:
            await self._create(seen, decision)
            return True
        if decision.record is not None:
            await self._write_record(seen, decision.record, problem=decision.problem)
            return True
        written = [await self._write_state(seen, operation, state) for operation, state in decision.states]
        return any(written)

    async def _create(self, seen: _Round, decision: Decision) -> None:
        introduced, cluster = decision.create, seen.world.cluster
        assert introduced is not None
        body = operation_tree(cluster, introduced=introduced, commit=seen.world.authority.revision)
        try:
            made = await self._ports.client.create(
                OPERATION.path(cluster.key.namespace), body, manager=FIELD_MANAGER_CNI
            )
        except AlreadyExists:
            log.info("the operation is there already", cluster=str(cluster.key))
        else:
            note = f"{introduced.person} consented to {cluster.mode} in {introduced.commit[:12]}"
            self._ports.emit(made, "Normal", "SwitchRequested", note)
        self._made.setdefault(cluster.key, set()).add(operation_name(cluster, introduced))

    async def _write_record(self, seen: _Round, record: Record, *, problem: Problem | None) -> None:
        status = self._cluster_status(seen, record, problem=problem)
        await self._apply_record(seen.tree, status)

    def _cluster_status(self, seen: _Round, record: Record, *, problem: Problem | None) -> JsonObject:
        cluster = replace(seen.world.cluster, record=record)
        lock = record.lock
        running = next((one for one in seen.world.operations if lock is not None and one.uid == lock.uid), None)
        generation = int_at(seen.tree, "metadata", "generation")
        ready = cluster_ready(cluster, problem=problem, running=running)
        conditions = merge_conditions(
            object_at(seen.tree, "status"), wanted=[ready], generation=generation, now=seen.now
        )
        return {**record_tree(record), "observedGeneration": generation, "conditions": conditions}

    async def _apply_record(self, tree: JsonObject, status: JsonObject) -> None:
        """A compare-and-swap of the executor's members; those of the worker beside them stay."""
        metadata: dict[str, JsonValue] = {
            name: text_at(tree, "metadata", name) for name in ("name", "namespace", "uid", "resourceVersion")
        }
        body: JsonObject = {
            "apiVersion": CLUSTER.gvk.api_version,
            "kind": CLUSTER.gvk.kind,
            "metadata": metadata,
            "status": status,
        }
        path = CLUSTER.path(text_at(tree, "metadata", "namespace"), text_at(tree, "metadata", "name"))
        await self._ports.client.apply(path, body, manager=FIELD_MANAGER_CNI, subresource="status")

    async def _write_state(self, seen: _Round, operation: Operation, state: State) -> bool:
        tree = seen.operations[operation.uid]
        state = replace(state, pull_request=self._pull_request(operation) or state.pull_request)
        status = state_tree(state, tree=tree, now=seen.now)
        owned = {**tree, "status": owned_of(object_at(tree, "status"))}
        if await swap_status(self._ports.client, OPERATION, owned, status, manager=FIELD_MANAGER_CNI) is None:
            return False
        if state.phase is not operation.state.phase:
            kind: Literal["Normal", "Warning"] = "Warning" if state.phase is Phase.PAUSED else "Normal"
            note = state.said.message or f"step {state.step}"
            reason = state.said.reason if state.phase in (Phase.PAUSED, Phase.CANCELLED) else state.phase.value
            self._ports.emit(tree, kind, reason or state.phase.value, note)
        return True

    def _pull_request(self, operation: Operation) -> JsonObject | None:
        key = NamespacedName(operation.key.namespace, values_name(operation))
        stored = self._ports.caches.proposal(key)
        return pull_request_of(stored) if stored is not None else None

    async def _settle(self, seen: _Round, decision: Decision) -> None:
        """What nothing else depends on: the condition of the cluster, its machines, and the proposals."""
        status = self._cluster_status(seen, seen.world.cluster.record, problem=decision.problem)
        stored = object_at(seen.tree, "status")
        if any(stored.get(name) != status.get(name) for name in ("conditions", "observedGeneration")):
            await self._apply_record(seen.tree, status)
            if decision.problem is not None:
                self._ports.emit(seen.tree, "Warning", decision.problem.reason, decision.problem.message)
        for tree in seen.machines:
            await self._report(seen, tree)
        for operation in seen.world.operations:
            await self._mirror(seen, operation)
            await self._propose(seen.world, operation)

    async def _mirror(self, seen: _Round, operation: Operation) -> None:
        """Follow the pull request, also when nothing else of the operation changes any more."""
        found = self._pull_request(operation)
        if found is None or found == operation.state.pull_request:
            return
        tree = seen.operations[operation.uid]
        owned = owned_of(object_at(tree, "status"))
        wanted = {**owned, "pullRequest": found}
        await swap_status(self._ports.client, OPERATION, {**tree, "status": owned}, wanted, manager=FIELD_MANAGER_CNI)

    async def _report(self, seen: _Round, tree: JsonObject) -> None:
        """Condition and reboot paths of one machine."""
        report = report_of(seen.world.cluster, machine_of(tree))
        generation = int_at(tree, "metadata", "generation")
        status: dict[str, JsonValue] = {
            "observedGeneration": generation,
            "conditions": merge_conditions(
                object_at(tree, "status"), wanted=[report.ready], generation=generation, now=seen.now
            ),
        }
        if report.reboot_paths:
            status["rebootPaths"] = list(report.reboot_paths)
        await write_status(self._ports.client, MACHINE, tree, status, manager=FIELD_MANAGER_CNI, foreign=("observed",))

    async def _propose(self, world: World, operation: Operation) -> None:
        """Ask for the pull request that an operation needs now, and take back those that nobody needs any more."""
        try:
            wanted = await self._ports.proposals.wanted(world.cluster, operation, world.authority)
        except GitopsError as error:
            log.info("proposal not made", operation=str(operation.key), code=error.code.label, error=error.message)
            return
        if wanted is not None:
            key = NamespacedName.of(wanted)
            stored = self._ports.caches.proposal(key)
            if stored is None or asked_of(stored) != wanted:
                await self._ports.client.apply(
                    PROPOSAL.path(key.namespace, key.name), wanted, manager=FIELD_MANAGER_CNI
                )
        for name in _obsolete(operation, wanted) if world.authority.revision else ():
            stored = self._ports.caches.proposal(NamespacedName(operation.key.namespace, name))
            if stored is not None and is_watched(stored):
                path = PROPOSAL.path(operation.key.namespace, name)
                await self._ports.client.apply(path, withdrawn(stored), manager=FIELD_MANAGER_CNI)


def _pause_s(seen: _Round, decision: Decision) -> float | None:
    """Seconds until the first clock runs out; None: only a change of something makes another pass."""
    return max(0.0, (decision.wake - seen.now).total_seconds()) if decision.wake is not None else None


def _in_order(machines: Iterable[Machine]) -> tuple[Machine, ...]:
    """Control planes first, each part by name."""
    return tuple(sorted(machines, key=lambda machine: (not machine.is_control_plane, machine.name)))


def _obsolete(operation: Operation, wanted: JsonObject | None) -> list[str]:
    """Names of proposals that an operation may have made and that it does not need any more."""
    asked = text_at(wanted, "metadata", "name") if wanted is not None else ""
    names = [values_name(operation)] if operation.is_over else []
    return [name for name in (*names, cleanup_name(operation)) if name != asked]

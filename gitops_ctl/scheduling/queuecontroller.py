"""The queue controller: one pass over a managed ClusterQueue (topology-scheduling.md, 7.4 to 9.2).

The queue is read anew in each pass, what is to happen is decided from that alone, and one server-side apply that carries the version
that was read makes it so.  A pass that lost against another writer begins again at once.  What is kept in memory here may be lost at any
moment: it says which Node counted for which flavor, since when a pool has not settled, and what has been told already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gitops_ctl.core.conditions import (
    LIST_LIMIT,
    MESSAGE_LIMIT,
    Condition,
    condition_of,
    cut,
    is_true,
    merge_conditions,
)
from gitops_ctl.core.errors import Conflict, NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at
from gitops_ctl.scheduling.caches import cluster_key
from gitops_ctl.scheduling.drain import left_flavors
from gitops_ctl.scheduling.migration import CONDITION, SWITCHED, Decision, Desired, Event, Unsettled, decide
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.queue import FIELD_MANAGER, PHASE, Managed, Queue, apply_tree, is_managed
from gitops_ctl.scheduling.queue_plan import Plan, Refusal, World, plan_queue, pool_nodes, usable_checks
from gitops_ctl.scheduling.resources import QUEUE
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.settled import Published, Settling, settling

ATTEMPTS: Final = 3
"""Passes in a row that may lose against another writer before the queue is looked at later."""
TOLD_S: Final = 10.0
"""Seconds between two messages of a drain that differ in their numbers only."""
MIGRATING: Final = "Migrating"
NOT_PROJECTED: Final = "LabelsNotProjected"


@dataclass
class _Memory:
    """What is known of one queue beyond the object itself."""

    uid: str
    members: Mapping[str, str] | None = None
    unsettled_since_s: float | None = None
    told_s: float = 0.0
    events: dict[str, str] = field(default_factory=dict)
    given_up: frozenset[tuple[str, str]] = frozenset()
    is_left_drained: bool = False


class QueueController:
    """One pass is one ClusterQueue."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._memories: dict[NamespacedName, _Memory] = {}

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Take the next step of a managed queue.

        Raises:
            Conflict: another writer was faster each time.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._pass(key)
            except Conflict:
                continue
        return await self._pass(key)

    async def _pass(self, key: NamespacedName) -> float | None:
        ports = self._ports
        if not ports.caches.may_judge("queues"):
            return None
        try:
            tree = await ports.client.get(QUEUE.path("", key.name))
        except NotFound:
            self._memories.pop(key, None)
            return None
        if not is_managed(tree):
            self._memories.pop(key, None)
            return None
        await ports.profiles.compute()
        queue = Queue.of(tree)
        memory = self._memory(key, queue.uid)
        queue = replace(queue, is_left_drained=queue.is_left_drained or memory.is_left_drained)
        desired = self._desired(queue, memory)
        decision = decide(queue, desired, now=ports.clock.wall(), options=ports.options)
        if decision.write is not None:
            ports.require()
            wanted = apply_tree(queue, decision.write)
            tree = await ports.client.apply(QUEUE.path("", key.name), wanted, manager=FIELD_MANAGER, force=True)
            memory.is_left_drained = queue.is_deleted
        await self._show(tree, decision.condition, memory)
        self._remember(queue, desired, decision, memory)
        self._tell(tree, decision.events, memory)
        return decision.requeue_s

    def _memory(self, key: NamespacedName, uid: str) -> _Memory:
        known = self._memories.get(key)
        if known is None or known.uid != uid:
            known = self._memories[key] = _Memory(uid)
        return known

    # -- what the queue should be ---------------------------------------------------------------------------------

    def _desired(self, queue: Queue, memory: _Memory) -> Desired:
        ports, caches = self._ports, self._ports.caches
        nodes = caches.labels_of_nodes()
        pool = pool_nodes(queue, nodes, options=ports.options)
        unsettled = self._unsettled(pool, memory)
        if unsettled is not None:
            # No plan is followed before the pool has settled, so none is made.
            return Desired(Plan((), {}), unsettled, checks=self._checks(), has_nodes=True)
        topologies = frozenset(key.name for key in caches.topologies.cache)
        world = World(caches.trees(caches.flavors), topologies, nodes)
        plan = plan_queue(queue, world, options=ports.options)
        left = frozenset[str]()
        if isinstance(plan, Plan):
            left = left_flavors(queue.managed.groups, plan.groups, before=memory.members, members=plan.members or {})
        return Desired(plan, None, self._checks(), left, has_nodes=bool(pool))

    def _unsettled(self, pool: Mapping[str, Labels], memory: _Memory) -> Unsettled | None:
        found = self._settling(pool)
        self._give_up(found, memory)
        now_s = self._ports.clock.boot_s()
        if not found.lacking:
            memory.unsettled_since_s = None
            return None
        if memory.unsettled_since_s is None:
            memory.unsettled_since_s = now_s
        node, lacks = found.lacking[0]
        return Unsettled(node, lacks, now_s - memory.unsettled_since_s)

    def _settling(self, pool: Mapping[str, Labels]) -> Settling:
        caches, profiles = self._ports.caches, self._ports.profiles
        living: dict[str, Labels] = {}
        due: dict[str, str] = {}
        for name in pool:
            key = cluster_key(name)
            seen = caches.nodes.cache.get(key)
            if seen is not None and not seen.is_deleted:  # one in deletion counts as settled
                living[name] = seen.labels
                due[name] = profiles.of(key, seen).name
        ready = {source.uid for source in profiles.sources if source.writes and source.ready[0] == "True"}
        published = [
            Published(feature.node, feature.labels, feature.awaited_until_s)
            for _, feature in caches.features.cache.items()
            if feature.source in ready
            and (labels := living.get(feature.node)) is not None
            and not feature.labels.items() <= labels.items()
        ]
        return settling(living, profiles=due, published=published, now_s=self._ports.clock.boot_s())

    def _give_up(self, found: Settling, memory: _Memory) -> None:
        """One Warning for each Node whose labels are waited for no longer; of many, for the first."""
        given_up = frozenset(found.given_up)
        new = sorted(given_up - memory.given_up)
        more = f" ({len(new) - LIST_LIMIT} more Nodes lack theirs)" if len(new) > LIST_LIMIT else ""
        for node, missing in new[:LIST_LIMIT]:
            regarding: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
            note = (
                f"{missing} is published and not on the Node after a minute; NFD may be configured to refuse it{more}"
            )
            self._ports.emit(regarding, "Warning", NOT_PROJECTED, note)
        memory.given_up = given_up

    def _checks(self) -> tuple[str, ...]:
        """The configured AdmissionChecks that exist and are Active: another one would make the queue inactive."""
        checks = self._ports.caches.checks.cache.items()
        active = (key.name for key, tree in checks if is_true(object_at(tree, "status"), "Active"))
        return usable_checks(active, options=self._ports.options)

    # -- what is told ---------------------------------------------------------------------------------------------

    async def _show(self, tree: JsonObject, wanted: Condition | None, memory: _Memory) -> None:
        """Write TopologyReady, and nothing else of the status, where it differs (D29)."""
        if wanted is None or not self._is_due(tree, wanted, memory):
            return
        ports = self._ports
        status, name = object_at(tree, "status"), text_at(tree, "metadata", "name")
        now = ports.clock.wall()
        entries = merge_conditions(status, wanted=[wanted], generation=int_at(tree, "metadata", "generation"), now=now)
        # With its uid: an apply to a name that is free would make a queue.
        body: JsonObject = {
            "apiVersion": QUEUE.gvk.api_version,
            "kind": QUEUE.gvk.kind,
            "metadata": {"name": name, "uid": text_at(tree, "metadata", "uid")},
            "status": {"conditions": entries},
        }
        ports.require()
        await ports.client.apply(QUEUE.path("", name), body, manager=FIELD_MANAGER, force=True, subresource="status")
        memory.told_s = ports.clock.boot_s()

    def _is_due(self, tree: JsonObject, wanted: Condition, memory: _Memory) -> bool:
        live = condition_of(object_at(tree, "status"), CONDITION) or {}
        shown = (text_at(live, "status"), text_at(live, "reason"), text_at(live, "message"))
        due = (wanted.status, wanted.reason, cut(wanted.message, limit=MESSAGE_LIMIT))
        if shown == due:
            return int_at(live, "observedGeneration") != int_at(tree, "metadata", "generation")
        only_numbers = shown[:2] == due[:2] and wanted.reason == MIGRATING
        return not only_numbers or self._ports.clock.boot_s() - memory.told_s >= TOLD_S

    def _tell(self, tree: JsonObject, events: tuple[Event, ...], memory: _Memory) -> None:
        """Each Warning once while its cause lasts."""
        for event in events:
            if event.reason not in memory.events:
                self._ports.emit(tree, "Warning", event.reason, event.message)
        memory.events = {event.reason: event.message for event in events}

    @staticmethod
    def _remember(queue: Queue, desired: Desired, decision: Decision, memory: _Memory) -> None:
        """Which Node counts for which flavor, once groups and plan agree (D37)."""
        plan = desired.plan
        if isinstance(plan, Refusal) or desired.unsettled is not None:
            return
        managed = decision.write or queue.managed
        if managed.groups == plan.groups and _follows(managed, decision):
            memory.members = plan.members


def _follows(managed: Managed, decision: Decision) -> bool:
    """Whether the queue serves by its plan, or has been switched to it."""
    if managed.marks.get(PHASE) == SWITCHED:
        return True
    return decision.condition is not None and decision.condition.status == "True"

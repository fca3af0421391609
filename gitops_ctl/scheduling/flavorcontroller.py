"""The flavor controller: ResourceFlavors follow the labels of the Nodes (topology-scheduling.md, 7.3).

A replacement comes first, the flavor that it replaces goes after it.  What is immutable is never rewritten: a drift is told, and stays.
"""

from typing import Final

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.scheduling.caches import cluster_key
from gitops_ctl.scheduling.flavor import (
    LOST_HARDWARE_S,
    MARK,
    Action,
    FlavorStep,
    retiring_siblings,
    step_for,
    step_without_contributors,
)
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.resources import FLAVOR
from gitops_ctl.scheduling.topology import is_marked

DRIFT: Final = "FlavorDrift"
REPLACEMENT_S: Final = 1.0
"""Seconds until the next look at a flavor whose replacement is not there yet."""


class FlavorController:
    """One pass is one flavor, by its name."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._told: dict[str, str] = {}
        self._unfed_since_s: dict[str, float] = {}

    def marked(self) -> tuple[str, ...]:
        """The names of all flavors that are ours or should be there."""
        caches = self._ports.caches
        live = (text_at(tree, "metadata", "name") for tree in caches.trees(caches.flavors) if is_marked(tree, MARK))
        return tuple(sorted({*live, *self._ports.contributions.names}))

    def replaced_by(self, name: str) -> tuple[str, ...]:
        """Flavors that can go now, because this one is there in their place."""
        ports = self._ports
        if not ports.caches.sees_flavors or name not in ports.contributions.names:
            return ()
        return retiring_siblings(name, ports.caches.trees(ports.caches.flavors), ports.contributions.names)

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Make, update or retire the flavor."""
        ports = self._ports
        if not ports.caches.may_judge("flavors"):
            return None
        live = ports.caches.flavors.cache.get(key)
        flavor = ports.contributions.flavor(key.name)
        if flavor is not None or live is None:
            self._unfed_since_s.pop(key.name, None)
        if flavor is not None:
            return await self._take(step_for(flavor, live), key.name, live)
        if live is None:
            self._told.pop(key.name, None)
            return None
        nodes = (seen.labels for _, seen in ports.caches.nodes.cache.items())
        step = step_without_contributors(live, nodes, is_missed=self._is_missed(key.name))
        if step.action is Action.DELETE and not self._is_replaced(key.name):
            return REPLACEMENT_S
        return await self._take(step, key.name, live)

    async def _take(self, step: FlavorStep, name: str, live: JsonObject | None) -> float | None:
        client, path = self._ports.client, FLAVOR.path("", name)
        if step.action in (Action.CREATE, Action.UPDATE, Action.DELETE, Action.RECREATE):
            self._ports.require()
        match step.action:
            case Action.CREATE if step.object is not None:
                await client.create(FLAVOR.path(), step.object, manager=FIELD_MANAGER)
            case Action.UPDATE if step.object is not None:
                await client.replace(path, step.object, manager=FIELD_MANAGER)
            case Action.DELETE | Action.RECREATE if live is not None:
                await client.delete(path, uid=text_at(live, "metadata", "uid"))
        self._tell(name, live, step.why if step.action is Action.DRIFT else "")
        return step.requeue_s

    def _is_missed(self, name: str) -> bool:
        """Whether a Node that fed the flavor feeds nothing now, for less than a minute since this was seen first."""
        now_s = self._ports.clock.boot_s()
        since_s = self._unfed_since_s.setdefault(name, now_s)
        return now_s - since_s < LOST_HARDWARE_S and self._ports.contributions.is_missed(name)

    def _is_replaced(self, name: str) -> bool:
        """Whether every flavor of the same hardware that should be there is there.

        One that is terminating is not waited for: it comes again after its queue has dropped it, and the queue has no sound plan
        while a flavor without Nodes is in its pool.
        """
        cache = self._ports.caches.flavors.cache
        return all(cluster_key(other) in cache for other in self._ports.contributions.replacements(name))

    def _tell(self, name: str, live: JsonObject | None, problem: str) -> None:
        """One Warning for a flavor that drifted, until it has not."""
        if not problem or live is None:
            self._told.pop(name, None)
        elif self._told.get(name) != problem:
            self._told[name] = problem
            self._ports.emit(live, "Warning", DRIFT, f"{problem}; delete the flavor, it is made again")

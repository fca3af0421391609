"""The Topology controller: one Kueue Topology for each profile in use, never rewritten (topology-scheduling.md, 6.1 and 7.1).

Creation is asked for by the profile controller, before a Node gets its label.  Retirement looks at the API server itself, because
what a cache does not show yet may be in use already.
"""

import asyncio
import math
from typing import Final

from gitops_ctl.core.errors import NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import AlreadyExists
from gitops_ctl.scheduling.caches import PROFILE_INDEX, cluster_key
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.profile import profile_name
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.resources import FLAVOR, NODE, TOPOLOGY
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.topology import (
    MARK,
    drift,
    is_marked,
    is_terminating,
    retirement_blocked,
    topology_name,
    topology_object,
)

DRIFT: Final = "TopologyDrift"
GOING_S: Final = 30.0
"""Seconds after which a Topology that nobody needs, and that could not go, is looked at again."""

UNSEEN_S: Final = 30.0
"""Seconds for which one that was made counts as there although the cache does not show it."""


class TopologyController:
    """`ensure` for whoever needs one; `reconcile` for one that changed or may not be needed any more."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._making = asyncio.Lock()
        self._made: dict[str, tuple[float, JsonObject]] = {}
        self._told: dict[str, str] = {}

    def gone(self, name: str) -> None:
        """A Topology was deleted."""
        self._made.pop(name, None)

    async def ensure(self, levels: tuple[str, ...]) -> str:
        """Have the Topology of these levels.

        Returns:
            Why it cannot be had, one sentence; empty when it is there.
        """
        name = topology_name(profile_name(levels))
        live = self._live(name)
        if live is None:
            async with self._making:  # many Nodes ask for the same one at once
                live = self._live(name) or await self._create(levels)
        problem = drift(live, levels)
        self._tell(live, problem)
        return problem

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Make a Topology again that a Node needs, or retire one that nobody needs."""
        ports, name = self._ports, key.name
        if not ports.caches.may_judge("profiles") or not ports.caches.may_judge("flavors"):
            return None
        live = ports.caches.topologies.cache.get(key)
        profile = name.removeprefix(topology_name(""))
        if self._is_needed(profile):
            levels = ports.profiles.levels_of(name)
            if live is None and levels:
                await self.ensure(levels)
            return None
        if live is None or not is_marked(live, MARK) or is_terminating(live):
            return None
        if self._is_due(profile):
            return GOING_S
        return await self._retire(name, profile)

    def _live(self, name: str) -> JsonObject | None:
        cached = self._ports.caches.topologies.cache.get(cluster_key(name))
        made_s, made = self._made.get(name, (-math.inf, None))
        return cached or (made if self._ports.clock.boot_s() - made_s < UNSEEN_S else None)

    async def _create(self, levels: tuple[str, ...]) -> JsonObject:
        wanted = topology_object(levels)
        name = text_at(wanted, "metadata", "name")
        self._ports.require()
        try:
            made = await self._ports.client.create(TOPOLOGY.path(), wanted, manager=FIELD_MANAGER)
        except AlreadyExists:
            made = await self._ports.client.get(TOPOLOGY.path("", name))
        self._made[name] = (self._ports.clock.boot_s(), made)
        return made

    def _is_needed(self, profile: str) -> bool:
        caches = self._ports.caches
        if caches.nodes.cache.by_index(PROFILE_INDEX, profile):
            return True
        name = topology_name(profile)
        return any(text_at(flavor, "spec", "topologyName") == name for flavor in caches.trees(caches.flavors))

    def _is_due(self, profile: str) -> bool:
        """Whether a Node is about to get the profile: its Topology comes first, and nothing else needs it yet."""
        ports = self._ports
        nodes = ports.caches.nodes.cache.items()
        return any(not seen.is_deleted and ports.profiles.of(key, seen).name == profile for key, seen in nodes)

    async def _retire(self, name: str, profile: str) -> float | None:
        client, path = self._ports.client, TOPOLOGY.path("", name)
        try:
            live = await client.get(path)
        except NotFound:
            return None
        nodes = await client.collect(
            NODE.path(), keep=labels_of, label_selector=f"{PROFILE}={profile}", metadata_only=True
        )
        flavors = await client.collect(FLAVOR.path(), keep=lambda tree: tree)
        if retirement_blocked(live, nodes=nodes.items, flavors=flavors.items):
            return GOING_S
        self._ports.require()
        await client.delete(path, uid=text_at(live, "metadata", "uid"))
        return None

    def _tell(self, live: JsonObject, problem: str) -> None:
        """One Warning for each Topology that has other levels, until it has the right ones."""
        name = text_at(live, "metadata", "name")
        if not problem:
            self._told.pop(name, None)
        elif self._told.get(name) != problem:
            self._told[name] = problem
            note = f"{problem}; no Node gets this profile until the Topology is deleted"
            self._ports.emit(live, "Warning", DRIFT, note)

"""The running worker: caches of its namespace, and one unit per TalosCluster (cni-switch.md, section 2.1)."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from gitops_ctl.api.watched import without_managers
from gitops_ctl.cni.worker.desk import CLUSTERS, MACHINES, OPERATIONS
from gitops_ctl.cni.worker.rounds import wait_for_either
from gitops_ctl.cni.worker.unit import ClusterUnit, Ports
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer, Timing, running

log = structlog.get_logger(__name__)

_AFTER_BUG_S: Final = 30.0


class WorkerRoom:
    """All TalosClusters of one namespace.  `run` until `stop`."""

    def __init__(self, ports: Ports, *, namespace: str, timing: Timing | None = None) -> None:
        self._ports = ports
        self._informers = {
            resource: Informer(ports.own, resource, trim=without_managers, namespace=namespace, timing=timing)
            for resource in (CLUSTERS, MACHINES, OPERATIONS)
        }
        self._units: dict[NamespacedName, tuple[ClusterUnit, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._stopping = False
        for resource, informer in self._informers.items():
            informer.add_handler(self._cluster_changed if resource is CLUSTERS else self._part_changed)

    @property
    def is_ready(self) -> bool:
        """Whether every kind of ours was read: before that nothing may be concluded from what is missing."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    @property
    def units(self) -> Sequence[ClusterUnit]:
        """One for each TalosCluster that is worked for."""
        return [unit for unit, _ in self._units.values()]

    async def run(self) -> None:
        """Work until `stop`; effects that run then are finished, within the time for that."""
        clock = self._ports.own.clock
        async with running(*self._informers.values()):
            try:
                while not self._stopping:
                    self._changed.clear()
                    if self.is_ready:
                        self._follow_clusters()
                    await wait_for_either(self._changed, clock=clock, seconds=1.0 if not self.is_ready else 60.0)
                for unit, _ in self._units.values():
                    unit.stop()
                if at_work := [task for _, task in self._units.values()]:
                    await asyncio.wait(at_work, timeout=self._ports.pace.drain_s)
            finally:
                tasks = [task for _, task in self._units.values()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Begin nothing new and end."""
        self._stopping = True
        self._changed.set()

    # The caches, as units see them.

    def cluster(self, key: NamespacedName) -> JsonObject | None:
        """The TalosCluster of that name."""
        return self._informers[CLUSTERS].cache.get(key)

    def machines(self, key: NamespacedName) -> Sequence[JsonObject]:
        """The TalosMachines of a cluster."""
        return [tree for _, tree in self._informers[MACHINES].cache.items() if _cluster_of(tree) == key]

    def operations(self, key: NamespacedName) -> Sequence[JsonObject]:
        """The TalosOperations of a cluster."""
        return [tree for _, tree in self._informers[OPERATIONS].cache.items() if _cluster_of(tree) == key]

    def _follow_clusters(self) -> None:
        present = set(self._informers[CLUSTERS].cache)
        for key in self._units.keys() - present:
            unit, task = self._units.pop(key)
            unit.stop()
            task.cancel()
        for key in present - self._units.keys():
            unit = ClusterUnit(key, ports=self._ports, world=self)
            self._units[key] = (unit, asyncio.create_task(self._keep(unit), name=f"cluster {key}"))

    async def _keep(self, unit: ClusterUnit) -> None:
        """Run one unit; a bug in it neither ends the others nor itself for good."""
        while True:
            try:
                return await unit.run()
            except Exception:
                log.exception("the worker of a cluster failed", cluster=str(unit.key))
            await self._ports.own.clock.sleep(_AFTER_BUG_S)

    def _cluster_changed(self, change: Change[JsonObject]) -> None:
        self._changed.set()
        self._wake(change.key)

    def _part_changed(self, change: Change[JsonObject]) -> None:
        for entry in (change.old, change.new):
            if entry is not None:
                self._wake(_cluster_of(entry.value))

    def _wake(self, key: NamespacedName) -> None:
        if key in self._units:
            self._units[key][0].wake()


def _cluster_of(tree: JsonObject) -> NamespacedName:
    return NamespacedName(text_at(tree, "metadata", "namespace"), text_at(tree, "spec", "clusterRef", "name"))

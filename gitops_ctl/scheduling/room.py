"""The running scheduling room: informers, queues and controllers put together; what the manager starts and stops.

From sources to NodeFeatures, from Node labels to profiles and Topologies, from both to flavors, from these to the plans of the queues: five
controllers that meet through the cluster only.  Kueue and Node Feature Discovery may come and go; whatever needs them waits, and
everything is looked at again when they are there (topology-scheduling.md, 2, 3.4, 7 and D17).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.events import Emit, silent
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.scheduling.caches import Caches, cluster_key
from gitops_ctl.scheduling.contributions import Contributions
from gitops_ctl.scheduling.flavorcontroller import FlavorController
from gitops_ctl.scheduling.migration import drain_age_s, is_draining
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.profilecontroller import ProfileController
from gitops_ctl.scheduling.profiles import Profiles
from gitops_ctl.scheduling.queuecontroller import QueueController
from gitops_ctl.scheduling.resources import KUEUE_GROUP, QUEUE
from gitops_ctl.scheduling.routes import Queues, Routes
from gitops_ctl.scheduling.sight import Sight
from gitops_ctl.scheduling.sourcecontroller import SourceController
from gitops_ctl.scheduling.sourceports import SourcePorts
from gitops_ctl.scheduling.topologycontroller import TopologyController

_WORKERS: Final[Mapping[str, int]] = {
    "topologysource": 4,
    "nodeprofile": 8,
    "topology": 1,
    "resourceflavor": 4,
    "clusterqueue": 2,
}

log = structlog.get_logger(__name__)


class SchedulingRoom:
    """Keeps profiles, Topologies, flavors and queues in step with sources and Nodes until `stop`."""

    def __init__(
        self,
        client: KubeClient,
        *,
        options: Options | None = None,
        emit: Emit = silent,
        require: Callable[[], None] = lambda: None,
        timing: Timing | None = None,
        pace: Pace | None = None,
    ) -> None:
        """`require` raises LeadershipLost when the manager may not write any more."""
        self.options = options or Options()
        self.caches = Caches(client, options=self.options, timing=timing)
        self._emit, self._pace = emit, pace or Pace(blocked_s=60.0)
        self._clock = client.clock
        self._told: str | None = None
        self._sight = Sight(client.clock, self.caches, wake=self._wake, say=self._say)
        profiles = Profiles(self.caches.nodes.cache, options=self.options, clock=client.clock)
        contributions = Contributions(options=self.options)
        ports = Ports(
            client=client,
            caches=self.caches,
            profiles=profiles,
            contributions=contributions,
            clock=client.clock,
            emit=emit,
            require=require,
            options=self.options,
        )
        self._topologies = TopologyController(ports)
        self._flavors = FlavorController(ports)
        self._profiles = ProfileController(ports, self._topologies)
        self._queues = QueueController(ports)
        self._sources = SourceController(self._source_ports(client, emit, require))
        self.work = Queues(*(self._work(client, name) for name in _WORKERS))
        self._routes = Routes(
            self.caches,
            self.work,
            profiles=profiles,
            contributions=contributions,
            topologies=self._topologies,
            options=self.options,
        )
        self._routes.connect()

    @property
    def queues(self) -> Mapping[str, AsyncQueue[NamespacedName]]:
        """Every queue of the room, for metrics."""
        return self.work.by_name

    @property
    def is_kueue_unsupported(self) -> bool:
        """Whether Kueue is there at versions that cannot be planned for (D17)."""
        return self.caches.kueue.problem is not None

    def drains(self) -> Mapping[str, float | None]:
        """Seconds since the drain of each queue in migration began, None where nobody knows."""
        now = self._clock.wall()
        return {
            key.name: drain_age_s(queue, now=now) for key, queue in self._routes.pools.items() if is_draining(queue)
        }

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        looking = asyncio.create_task(self._sight.run(), name="scheduling sight")
        working = asyncio.create_task(self._work_all(), name="scheduling work")
        try:
            await asyncio.wait({working, looking}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await working
        finally:
            working.cancel()
            looking.cancel()
            ended, _ = await asyncio.gather(looking, working, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _work_all(self) -> None:
        # A group, so that none of them outlives the others: neither a cancelled one nor one that failed.
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers():
                group.create_task(controller.run(), name=f"controller {controller.name}")

    def stop(self) -> None:
        """Begin no further pass."""
        for queue in self.queues.values():
            queue.close()

    def _controllers(self) -> tuple[Controller[NamespacedName], ...]:
        passes = {
            "topologysource": self._source,
            "nodeprofile": self._profiles.reconcile,
            "topology": self._topologies.reconcile,
            "resourceflavor": self._flavor,
            "clusterqueue": self._queues.reconcile,
        }
        return tuple(
            Controller(name, self.queues[name], passes[name], workers=workers, pace=self._pace)
            for name, workers in _WORKERS.items()
        )

    async def _flavor(self, key: NamespacedName) -> float | None:
        again_s = await self._flavors.reconcile(key)
        for name in self._flavors.replaced_by(key.name):
            self.work.flavors.add(cluster_key(name))
        return again_s

    async def _source(self, key: NamespacedName) -> float | None:
        return await self._sources.reconcile(key) if self.caches.may_judge("sources") else None

    # -- what can be seen -----------------------------------------------------------------------------------------

    def _wake(self, gained: set[str]) -> None:
        work, caches = self.work, self.caches
        flavors = (cluster_key(name) for name in self._flavors.marked())
        for needed, queue, keys in (
            ({"sources", "features"}, work.sources, caches.sources.cache),
            ({"profiles"}, work.nodes, caches.nodes.cache),
            ({"profiles", "flavors"}, work.topologies, caches.topologies.cache),
            ({"flavors"}, work.flavors, flavors),
            ({"queues"}, work.queues, caches.queues.cache),
        ):
            if needed & gained:
                for key in keys:
                    queue.add(key)

    def _say(self) -> None:
        kueue, nfd = self.caches.kueue, self.caches.nfd
        log.info("scheduling sees", kueue=kueue.state or "served", nfd=nfd.state or "served")
        if (kueue.problem and kueue.state) == self._told:
            return
        self._told = kueue.problem and kueue.state
        if kueue.problem is None:
            return
        definition: JsonObject = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{QUEUE.plural}.{KUEUE_GROUP}"},
        }
        note = f"Kueue cannot be used: {kueue.state}; {kueue.problem.fix}"
        log.warning("scheduling plans nothing", code=kueue.problem.label, error=note)
        self._emit(definition, "Warning", kueue.problem.reason, note)

    def _source_ports(self, client: KubeClient, emit: Emit, require: Callable[[], None]) -> SourcePorts:
        caches = self.caches
        return SourcePorts(
            client=client,
            nodes=lambda: caches.labels_of_nodes() if caches.nodes.usable else None,
            sources=lambda: caches.trees(caches.sources) if caches.sources.usable else None,
            features=lambda: caches.feature_trees() if caches.features.usable else None,
            clock=client.clock,
            emit=emit,
            require=require,
            options=self.options,
        )

    @staticmethod
    def _work(client: KubeClient, name: str) -> AsyncQueue[NamespacedName]:
        queue: WorkQueue[NamespacedName] = WorkQueue(workers=_WORKERS[name], draw=client.draw)
        return AsyncQueue(queue, clock=client.clock)

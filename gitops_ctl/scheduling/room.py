"""The running scheduling room: informers, queues and controllers put together; what the manager starts and stops.

From sources to NodeFeatures, from Node labels to profiles and Topologies, from both to flavors, from these to the plans of the queues: five
controllers that meet through the cluster only.  Kueue and Node Feature Discovery may come and go; whatever needs them waits, and
everything is looked at again when they are there (topology-scheduling.md, 2, 3.4, 7 and D17).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.scheduling.caches import Caches, cluster_key
from gitops_ctl.scheduling.contributions import Contributions
from gitops_ctl.scheduling.flavorcontroller import FlavorController
from gitops_ctl.scheduling.migration import drain_age_s
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.presence import KUEUE, Presence
from gitops_ctl.scheduling.profilecontroller import ProfileController
from gitops_ctl.scheduling.profiles import Profiles
from gitops_ctl.scheduling.queue import PHASE
from gitops_ctl.scheduling.queuecontroller import QueueController
from gitops_ctl.scheduling.resources import KUEUE_GROUP
from gitops_ctl.scheduling.routes import Queues, Routes
from gitops_ctl.scheduling.sourcecontroller import SourceController
from gitops_ctl.scheduling.sourceports import Emit, SourcePorts
from gitops_ctl.scheduling.topologycontroller import TopologyController

LOOK_S: Final = 1.0
"""Seconds between two looks at what can be seen."""
VERSIONS_S: Final = 60.0
"""Seconds between two looks at what is installed, where something is missing."""
_WORKERS: Final[Mapping[str, int]] = {
    "topologysource": 4,
    "nodeprofile": 8,
    "topology": 1,
    "resourceflavor": 4,
    "clusterqueue": 2,
}

log = structlog.get_logger(__name__)


def _silent(_tree: JsonObject, _kind: str, _reason: str, _note: str) -> None:
    return


def _free() -> None:
    return


class SchedulingRoom:
    """Keeps profiles, Topologies, flavors and queues in step with sources and Nodes until `stop`."""

    def __init__(
        self,
        client: KubeClient,
        *,
        options: Options | None = None,
        emit: Emit = _silent,
        require: Callable[[], None] = _free,
        timing: Timing | None = None,
        pace: Pace | None = None,
    ) -> None:
        """`require` raises LeadershipLost when the manager may not write any more."""
        self.options = options or Options()
        self.caches = Caches(client, options=self.options, timing=timing)
        self.presence = Presence(client, self.caches)
        self._clock, self._emit, self._pace = client.clock, emit, pace or Pace(blocked_s=60.0)
        profiles = Profiles(self.caches.nodes.cache, options=self.options)
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

    def drains(self) -> Mapping[str, float | None]:
        """Seconds since the drain of each queue in migration began, None where nobody knows."""
        now = self._clock.wall()
        return {
            key.name: drain_age_s(queue, now=now)
            for key, queue in self._routes.pools.items()
            if PHASE in queue.managed.marks
        }

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        watching = [
            asyncio.create_task(informer.run(), name=f"informer {informer.resource.plural}")
            for informer in self.caches.all
        ]
        looking = asyncio.create_task(self._look(), name="scheduling look")
        working = asyncio.create_task(self._work_all(), name="scheduling work")
        try:
            await asyncio.wait({working, looking}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await working
        finally:
            for task in (*watching, looking):
                task.cancel()
            ended = await asyncio.gather(looking, *watching, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]

    async def _work_all(self) -> None:
        await asyncio.gather(*(controller.run() for controller in self._controllers()))

    def stop(self) -> None:
        """Begin no further pass."""
        for queue in self.queues.values():
            queue.close()

    def _controllers(self) -> tuple[Controller[NamespacedName], ...]:
        passes = {
            "topologysource": self._sources.reconcile,
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

    # -- what can be seen -----------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Wake everything that can be judged from now on, and say what is missing."""
        seen: dict[str, bool] = {}
        versions_s = 0.0
        while True:
            now = self._sight()
            gained = {name for name, sees in now.items() if sees and not seen.get(name)}
            if now != seen or self._clock.boot_s() >= versions_s:
                if await self.presence.look():
                    self._say()
                versions_s = self._clock.boot_s() + VERSIONS_S
            seen = now
            if gained:
                self._wake(gained)
            await self._clock.sleep(LOOK_S)

    def _sight(self) -> dict[str, bool]:
        caches = self.caches
        return {
            "sources": caches.sees_sources,
            "features": caches.features.usable,
            "profiles": caches.sees_profiles,
            "flavors": caches.sees_flavors,
            "queues": caches.sees_queues,
        }

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
        state, problem = self.presence.state, self.presence.problem
        log.info("scheduling sees", **{name: text or "served" for name, text in state.items()})
        if problem is ErrorCode.KUEUE_VERSION_UNSUPPORTED:
            name = f"clusterqueues.{KUEUE_GROUP}"
            definition: JsonObject = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name},
            }
            note = f"Kueue cannot be used: {state[KUEUE]}; {problem.fix}"
            log.warning("scheduling plans nothing", code=problem.label, error=note)
            self._emit(definition, "Warning", problem.reason, note)

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

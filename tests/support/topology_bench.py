"""The two benches of the contract tests for Kueue and Node Feature Discovery: stand-ins on a server in memory, and the real ones."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.contract.client import Api, Reply
from tests.doubles.kueue import KueueStandIn
from tests.doubles.nfd import NfdStandIn
from tests.support.kueue import BASE, eviction_finished, is_observed
from tests.support.nfd import node_feature
from tests.support.topology_plane import WORKER_NAMESPACE, TopologyPlane

FEATURES = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces"


@dataclass
class Bench:
    """One server with both components.  Names of a test begin with `mark`, so that tests share a server.

    Attributes:
        real: the processes, None for the stand-ins.
        evicts: whether the bench finishes evictions, as a job controller would.
    """

    api: Api
    kueue: KueueStandIn | None = None
    nfd: NfdStandIn | None = None
    real: TopologyPlane | None = None
    mark: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}")
    evicts: bool = True

    def name(self, name: str) -> str:
        return f"{self.mark}-{name}"

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def until(self, what: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `what` holds; the stand-ins work, and evictions are finished."""

        async def holds() -> bool:
            for each in (self.nfd, self.kueue):
                if each is not None:
                    each.settle()
            if self.evicts:
                await self._finish_evictions()
            return await what()

        await self.api.until(holds)

    async def until_queue(self, name: str, what: Callable[[Any], bool]) -> Any:
        """The ClusterQueue, as soon as its status is current and `what` holds for it."""
        last: Any = None

        async def holds() -> bool:
            nonlocal last
            last = (await self.api.get(f"{BASE}/clusterqueues/{self.name(name)}")).body
            return is_observed(last) and what(last)

        try:
            await self.until(holds)
        except TimeoutError:
            raise AssertionError(last) from None
        return last

    async def until_workload(self, name: str, what: Callable[[Any], bool]) -> Any:
        """The Workload, as soon as `what` holds for it."""
        return await self.until_object(self.workload_path(name), what)

    async def until_object(self, path: str, what: Callable[[Any], bool]) -> Any:
        """Any object, as soon as `what` holds for it."""
        last: Any = None

        async def holds() -> bool:
            nonlocal last
            last = (await self.api.get(path)).body
            return what(last)

        try:
            await self.until(holds)
        except TimeoutError:
            raise AssertionError(last) from None
        return last

    async def _finish_evictions(self) -> None:
        listed = (await self.api.get(f"{BASE}/namespaces/default/workloads")).body["items"]
        for tree in listed:
            done = eviction_finished({**tree, "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"})
            if done is not None:
                await self.api.replace(f"{BASE}/namespaces/default/workloads/{tree['metadata']['name']}/status", done)

    # -- objects -----------------------------------------------------------------------------------------------------

    def workload_path(self, name: str) -> str:
        return f"{BASE}/namespaces/default/workloads/{self.name(name)}"

    async def make(self, path: str, tree: Any) -> Any:
        """Create an object."""
        made = await self.api.create(path, tree)
        assert made.status == 201, made.body
        return made.body

    async def node(self, name: str, labels: dict[str, str], *, cpu: int = 4, annotated: bool = True) -> str:
        """A ready Node; its name on the server."""
        full = self.name(name)
        if self.real is not None:
            self.real.add_node(full, labels, cpu=cpu, annotated=annotated)
            return full
        known = {"kubernetes.io/hostname": full, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        metadata: dict[str, Any] = {"name": full, "labels": {**known, **labels}}
        if annotated:
            metadata["annotations"] = {"example.net/made-by": "tests"}
        made = await self.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        room = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "Tests"}]
        status = {"allocatable": room, "capacity": room, "conditions": ready}
        done = await self.api.replace(f"/api/v1/nodes/{full}/status", {**made, "status": status})
        assert done.status == 200, done.body
        return full

    async def node_labels(self, node: str) -> dict[str, str]:
        """The labels of a Node that do not come from Kubernetes."""
        labels = (await self.api.get(f"/api/v1/nodes/{node}")).body["metadata"].get("labels", {})
        return {key: value for key, value in labels.items() if not key.startswith("kubernetes.io/")}

    def feature_path(self, name: str = "", *, namespace: str = WORKER_NAMESPACE) -> str:
        path = f"{FEATURES}/{namespace}/nodefeatures"
        return f"{path}/{self.name(name)}" if name else path

    async def feature(self, name: str, node: str, labels: dict[str, str], *, namespace: str = WORKER_NAMESPACE) -> Any:
        """Create a NodeFeature."""
        return await self.make(self.feature_path(namespace=namespace), node_feature(self.name(name), node, labels))

    async def merge(self, path: str, patch: Any) -> Reply:
        """A merge patch that is taken."""
        done = await self.api.merge(path, patch)
        assert done.status == 200, done.body
        return done

    def stop_nfd(self) -> None:
        """nfd-master is gone, until `start_nfd`."""
        if self.nfd is not None:
            self.nfd.away = True
        if self.real is not None:
            self.real.nfd.stop()

    def start_nfd(self) -> None:
        """It begins anew."""
        if self.nfd is not None:
            self.nfd.away = False
            self.nfd.restart()
        if self.real is not None:
            self.real.nfd.start()

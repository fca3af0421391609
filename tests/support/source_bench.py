"""The source controller on the API server in memory: what people, NFD and inventories do around it, and what it makes of that."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.topologysource import TopologySource
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.sourcecontroller import SourceController
from gitops_ctl.scheduling.sourceports import NODE_FEATURE, SOURCE, SourcePorts
from tests.doubles.apiserver import ApiServer
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.peer_crds import install, nfd_crds
from tests.support.kube_clock import JumpingClock

NAMESPACE = "gpustack-system"
SOURCES = ("worker.gpustack.ai", "topologysources")
FEATURES = ("nfd.k8s-sigs.io", "nodefeatures")
REGION, ZONE, RACK = "topology.gpustack.ai/region", "topology.gpustack.ai/zone", "topology.gpustack.ai/rack"
STANDARD_REGION, STANDARD_ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
HALL = {REGION: "north", ZONE: "hall7"}


@lru_cache
def first_store() -> Snapshot:
    """A server with the definitions, and nothing else."""
    api = ApiServer(seed=7, lag=0)
    crd: Any = crd_of(TopologySource)
    install(api, [crd, *nfd_crds()])
    return api.snapshot()


def config_map_arm(staleness: str = "1m", name: str = "hall", key: str = "snapshot.yaml") -> dict[str, Any]:
    reference = {"namespace": NAMESPACE, "name": name}
    return {"configMap": {"configMapRef": reference, "key": key, "maxStaleness": staleness}}


def snapshot(nodes: Mapping[str, Mapping[str, str]], revision: str = "r1") -> str:
    """The text of a revision."""
    lines = [
        f"  {node}: {{{', '.join(f'{key}: {value}' for key, value in one.items())}}}\n" for node, one in nodes.items()
    ]
    listed = "".join(lines) or "  {}\n"
    return f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: {revision}\nnodes:\n{listed}"


class SourceBench:
    """One cluster.

    Attributes:
        told: type, reason and note of every Event.
        leads: whether this process may write.
        unseen: parts of the cluster that informers have not seen: `nodes`, `sources`, `features`.
    """

    def __init__(self, client: KubeClient, api: ApiServer, clock: JumpingClock, options: Options) -> None:
        self.client, self.api, self.clock = client, api, clock
        self.told: list[tuple[str, str, str]] = []
        self.require: Callable[[], None] = lambda: None
        self.unseen: set[str] = set()
        self.ports = SourcePorts(
            client=client,
            nodes=lambda: self._seen(
                "nodes", {tree["metadata"]["name"]: labels_of(tree) for tree in self.all("nodes", "")}
            ),
            sources=lambda: self._seen("sources", tuple(self.all("topologysources", SOURCES[0]))),
            features=lambda: self._seen("features", tuple(self.all("nodefeatures", FEATURES[0]))),
            clock=clock,
            emit=lambda _tree, kind, reason, note: self.told.append((kind, reason, note)),
            require=self._require,
            options=options,
        )
        self.controller = SourceController(self.ports)

    def _seen(self, what: str, value: Any) -> Any:
        return None if what in self.unseen else value

    def _require(self) -> None:
        self.require()

    def restart(self, **changes: Any) -> None:
        """Another process with other ports or options takes over."""
        self.ports = replace(self.ports, **changes)
        self.controller = SourceController(self.ports)

    # -- what others do ------------------------------------------------------------------------------------------------

    async def node(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels or {})}}
        await self.client.create("/api/v1/nodes", tree)

    async def namespace(self) -> None:
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await self.client.create("/api/v1/namespaces", tree)

    async def config_map(self, text: str | None, name: str = "hall", key: str = "snapshot.yaml") -> None:
        """Write it, or delete it."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        if text is None:
            await self.client.delete(f"{path}/{name}")
            return
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text}}
        await self.client.apply(f"{path}/{name}", tree, manager="gitops-ctl", force=True)

    async def source(self, name: str = "first", *, levels: tuple[str, ...] = (REGION, ZONE), **arm: Any) -> Any:
        """Write a TopologySource; a member of its spec that is not given goes."""
        spec = {"nodeSelector": {}, "levels": list(levels), **(arm or config_map_arm())}
        tree = {"apiVersion": "worker.gpustack.ai/v1alpha1", "kind": "TopologySource", "metadata": {"name": name}}
        return await self.client.apply(SOURCE.path(name=name), {**tree, "spec": spec}, manager="gitops-ctl", force=True)

    async def edit_feature(self, name: str, change: Callable[[Any], None]) -> None:
        """Somebody edits a NodeFeature."""
        tree: Any = await self.client.get(NODE_FEATURE.path(NAMESPACE, name))
        change(tree)
        await self.client.replace(NODE_FEATURE.path(NAMESPACE, name), tree, manager="somebody")

    # -- passes, and what they left ------------------------------------------------------------------------------------

    async def look(self, name: str = "first", *, after: float = 0.0) -> float | None:
        """One pass, so many seconds later."""
        self.clock.now_s += after
        return await self.controller.reconcile(NamespacedName("", name))

    def all(self, plural: str, group: str = FEATURES[0]) -> list[Any]:
        return [tree for _, tree in self.api.store.all((group, plural))]

    @property
    def features(self) -> list[Any]:
        return self.all("nodefeatures")

    @property
    def labels(self) -> dict[str, Any]:
        """What NFD is asked to put on each Node."""
        marks = "nfd.node.kubernetes.io/node-name"
        return {labels_of(one).get(marks, ""): one["spec"]["labels"] for one in self.features}

    def tree(self, name: str = "first") -> Any:
        return self.api.store.get(SOURCES, ("", name))

    def status(self, name: str = "first") -> Any:
        return self.tree(name).get("status", {})

    def condition(self, kind: str = "Ready", name: str = "first") -> Any:
        return next((one for one in self.status(name).get("conditions", []) if one["type"] == kind), {})

    def words(self, name: str = "first") -> dict[str, str]:
        """Status and reason of each condition."""
        return {one["type"]: f"{one['status']} {one['reason']}" for one in self.status(name)["conditions"]}

    def writes(self, resource: str) -> list[Any]:
        """Requests of anybody that wrote objects of a kind."""
        return [one for one in self.api.audit if one.resource == resource and one.verb not in ("get", "list", "watch")]

"""A pool of Nodes whose topology is in Git, and the documents of it, for tests with the real components.

pool = Pool("one", {"n1": ("north", "hall-1", "r1"), ...})
pool.files(levels=2)          # region and zone
pool.files(levels=3)          # region, zone and rack
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import yaml

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.kube.transport import KubeClient
from tests.support.kueue import BASE, eviction_finished, local_queue
from tests.support.topology_plane import WORKER_NAMESPACE

LEVELS = tuple(f"topology.gpustack.ai/{name}" for name in ("region", "zone", "rack"))
SOURCES = "/apis/worker.gpustack.ai/v1alpha1/topologysources"
CPUS = 4

# By number of levels above the host name; from the published vectors, not from the product.
PROFILES = {0: "fnv64-87bf574bea2a4f23", 2: "fnv64-29c7d645fad688b1", 3: "fnv64-dde125aa4572179a"}


@dataclass(frozen=True)
class Pool:
    """Nodes with their places, from the coarsest level to the finest."""

    name: str
    nodes: Mapping[str, tuple[str, str, str]]

    @property
    def feature(self) -> str:
        return f"general.feature.gpustack.ai/generic-{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """What the Nodes carry before anybody describes them."""
        return {
            "gpustack.ai/managed": "true",
            self.feature: "true",
            f"{self.feature}.count": str(CPUS),
            "example.net/pool": self.name,
            "example.net/foreign": "stays",
        }

    def flavor(self, levels: int) -> str:
        """The flavor of these Nodes under the first so many levels."""
        return self.flavor_of(PROFILES[levels])

    def flavor_of(self, profile: str) -> str:
        """The flavor of these Nodes with a profile."""
        return f"gpustack--generic-{self.name}-linux-amd64-{CPUS}c-{profile}"

    def files(self, *, levels: int, source: bool = True) -> dict[str, str]:
        """The documents: the queue, and with `source` the source and its snapshot."""
        return {
            f"site/{self.name}-queue.yaml": _text(self.queue(), self._local_queue()),
            **({f"site/{self.name}-source.yaml": self._source(levels)} if source else {}),
        }

    def queue(self) -> dict[str, Any]:
        """A managed ClusterQueue as Git has it."""
        labels = {
            "resource.gpustack.ai/type": "instancetypes",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "feature.gpustack.ai/acceleratable": "false",
            self.feature: "true",
        }
        metadata = {"name": self.name, "labels": labels}
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": metadata,
            "spec": {"namespaceSelector": {}},
        }

    def _local_queue(self) -> dict[str, Any]:
        tree = local_queue(self.name, self.name)
        return {**tree, "metadata": {**tree["metadata"], "namespace": "default"}}

    def _source(self, levels: int) -> str:
        nodes = {name: dict(zip(LEVELS[:levels], places, strict=False)) for name, places in self.nodes.items()}
        snapshot = {"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": f"levels-{levels}", "nodes": nodes}
        block = "\n".join(f"    {line}" for line in yaml.safe_dump(snapshot).splitlines())
        reference = {"namespace": WORKER_NAMESPACE, "name": self.name}
        spec = {
            "nodeSelector": {"matchLabels": {"example.net/pool": self.name}},
            "levels": list(LEVELS[:levels]),
            "configMap": {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "10m"},
        }
        source = {
            "apiVersion": "worker.gpustack.ai/v1",
            "kind": "TopologySource",
            "metadata": {"name": self.name},
            "spec": spec,
        }
        head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {self.name}, namespace: {WORKER_NAMESPACE}}}\n"
        return f"{head}data:\n  snapshot.yaml: |\n{block}\n---\n{yaml.safe_dump(source)}"


@asynccontextmanager
async def evictions_finished(client: KubeClient, namespace: str = "default") -> AsyncIterator[None]:
    """Meanwhile whoever runs the Workloads of a namespace stops them when Kueue evicts them."""
    task = asyncio.create_task(_finish(client, f"{BASE}/namespaces/{namespace}/workloads"))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _finish(client: KubeClient, path: str) -> None:
    while True:
        for tree in (await client.list_all(path)).items:
            whole: dict[str, Any] = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", **tree}
            if (done := eviction_finished(whole)) is not None:
                with suppress(GitopsError):
                    await client.replace(f"{path}/{done['metadata']['name']}/status", done)
        await asyncio.sleep(0.1)


def _text(*trees: Any) -> str:
    return "---\n".join(yaml.safe_dump(tree, sort_keys=False) for tree in trees)

"""The source controller on a real API server: what only that shows (topology-scheduling.md, 1.2, 3.5, 5.1, 5.2)."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.topologysource import TopologySource
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import Conflict, NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.sourcecontroller import SourceController
from gitops_ctl.scheduling.sourceports import NODE_FEATURE, SOURCE, SourcePorts
from tests.doubles.peer_crds import nfd_crds
from tests.support.cluster import AuditLog
from tests.support.source_bench import HALL, REGION, ZONE, snapshot
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster

MANAGER = "gitops-ctl-scheduling"


async def install(client: KubeClient) -> None:
    """The definitions of TopologySources and NodeFeatures."""
    own: Any = crd_of(TopologySource)
    for tree in (own, *nfd_crds()):
        name = tree["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        await client.apply(path, tree, manager="tests", force=True)
    for path in (SOURCE.path(), NODE_FEATURE.path()):
        await until(lambda path=path: _is_served(client, path), what=path)


async def _is_served(client: KubeClient, path: str) -> bool:
    try:
        await client.get(f"{path}?limit=1")
    except NotFound:
        return False
    return True


class Plane:
    """One source of this test alone, with the Nodes that its informer would show; the worker namespace is the test's."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.name = f"hall-{secrets.token_hex(4)}"
        # Sources are seen by every test that runs now: this one chooses no Node of theirs.
        self.mark = {"tests.example.net/hall": self.name}
        self.nodes: Mapping[str, Mapping[str, str]] = {"node-a": self.mark, "node-b": self.mark}
        self.features: tuple[Any, ...] = ()
        self.told: list[str] = []
        self.controller = SourceController(
            SourcePorts(
                client=client,
                nodes=lambda: self.nodes,
                sources=lambda: (),
                features=lambda: self.features,
                clock=SystemClock(),
                emit=lambda _tree, _kind, reason, _note: self.told.append(reason),
                options=Options(worker_namespace=namespace, snapshot_drop_percent=100),
            )
        )

    async def publish(self, text: str) -> None:
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hall"}, "data": {"snapshot.yaml": text}}
        await self.client.apply(
            f"/api/v1/namespaces/{self.namespace}/configmaps/hall", tree, manager="gitops-ctl", force=True
        )

    async def source(self, version: str = "v1alpha1") -> Any:
        reference = {"namespace": self.namespace, "name": "hall"}
        arm = {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "1h"}
        tree = {
            "apiVersion": f"worker.gpustack.ai/{version}",
            "kind": "TopologySource",
            "metadata": {"name": self.name},
            "spec": {"nodeSelector": {"matchLabels": self.mark}, "levels": [REGION, ZONE], "configMap": arm},
        }
        path = f"/apis/worker.gpustack.ai/{version}/topologysources/{self.name}"
        return await self.client.apply(path, tree, manager="gitops-ctl", force=True)

    async def look(self) -> float | None:
        self.features = tuple((await self.client.list_all(NODE_FEATURE.path(self.namespace))).items)
        return await self.controller.reconcile(NamespacedName("", self.name))

    async def stored(self) -> list[Any]:
        return list((await self.client.list_all(NODE_FEATURE.path(self.namespace))).items)

    async def tree(self) -> Any:
        return await self.client.find(SOURCE.path(name=self.name))

    async def ready(self) -> str:
        conditions = (await self.tree()).get("status", {}).get("conditions", [])
        return str(next((one["reason"] for one in conditions if one["type"] == "Ready"), ""))


@pytest.fixture
async def plane(kube_admin: KubeClient, namespace: str) -> AsyncIterator[Plane]:
    await install(kube_admin)
    found = Plane(kube_admin, namespace)
    yield found
    if (tree := await found.tree()) is not None:
        await kube_admin.patch_merge(SOURCE.path(name=found.name), {"metadata": {"finalizers": None}})
        assert tree["metadata"]["uid"]
        await kube_admin.delete(SOURCE.path(name=found.name))


async def test_what_is_ours_is_written_under_our_name_and_what_is_not_ours_stays(plane: Plane) -> None:
    await plane.publish(snapshot({"node-a": HALL, "node-b": HALL}))
    await plane.source()
    await plane.look()
    assert (await plane.ready(), plane.told) == ("Observed", ["Observed"])
    tree = await plane.tree()
    owned = {(one["manager"], one.get("subresource", "")) for one in tree["metadata"]["managedFields"]}
    assert owned == {("gitops-ctl", ""), (MANAGER, ""), (MANAGER, "status")}
    assert tree["status"]["mutatedNodes"] == 2

    first = (await plane.stored())[0]
    path = NODE_FEATURE.path(plane.namespace, first["metadata"]["name"])
    body = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature"}
    theirs = {
        "metadata": {"name": first["metadata"]["name"], "labels": {"example.net/team": "network"}},
        "spec": {"labels": {"example.net/extra": "x"}},
    }
    await plane.client.apply(path, {**body, **theirs}, manager="somebody", force=True)
    await plane.client.patch_merge(path, {"metadata": {"ownerReferences": None}})
    await plane.look()
    repaired = await plane.client.get(path)
    assert repaired["spec"] == first["spec"]
    assert repaired["metadata"]["ownerReferences"] == first["metadata"]["ownerReferences"]
    assert repaired["metadata"]["labels"] == {**first["metadata"]["labels"], "example.net/team": "network"}
    assert (await plane.tree())["status"]["mutatedNodes"] == 1
    await plane.look()
    assert "mutatedNodes" not in (await plane.tree())["status"], "a counter that is zero is released and so removed"


async def test_a_status_that_was_planned_from_an_older_source_is_not_stored(plane: Plane) -> None:
    await plane.publish(snapshot({"node-a": HALL}))
    await plane.source()
    await plane.look()
    before = await plane.tree()
    get = plane.client.get

    async def slow(path: str, **options: Any) -> Any:
        if path.endswith("/configmaps/hall"):
            await plane.client.patch_merge(SOURCE.path(name=plane.name), {"metadata": {"labels": {"raced": "yes"}}})
        return await get(path, **options)

    plane.client.get = slow  # type: ignore[method-assign]
    try:
        with pytest.raises(Conflict):
            await plane.look()
    finally:
        plane.client.get = get  # type: ignore[method-assign]
    assert (await plane.tree())["status"] == before["status"]
    await plane.look()
    assert await plane.ready() == "Observed"


async def test_a_source_goes_after_its_features_which_are_more_than_a_page(
    plane: Plane, audit_log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitops_ctl.kube.transport.PAGE_SIZE", 5)
    plane.nodes = {f"gpu-{number:02}": plane.mark for number in range(12)}
    await plane.publish(snapshot(dict.fromkeys(plane.nodes, HALL)))
    await plane.source()
    await plane.look()
    assert len(plane.features) == 0
    assert (await plane.tree())["status"]["mutatedNodes"] == len(await plane.stored()) == 12
    foreign = {"metadata": {"name": "of-somebody"}, "spec": {"labels": {"example.net/rack": "x"}}}
    body = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", **foreign}
    await plane.client.create(NODE_FEATURE.path(plane.namespace), body)
    await plane.client.delete(SOURCE.path(name=plane.name))
    assert (await plane.tree())["metadata"]["finalizers"] == ["worker.gpustack.ai/topology-source"]
    audit_log.mark()
    assert await plane.controller.reconcile(NamespacedName("", plane.name)) is None
    assert await plane.tree() is None
    assert [one["metadata"]["name"] for one in await plane.stored()] == ["of-somebody"]
    pages = [
        one for one in audit_log.entries(verbs=("list",), namespace=plane.namespace) if "continue=" in one["requestURI"]
    ]
    assert pages, json.dumps([one["requestURI"] for one in audit_log.entries(verbs=("list",))][:10])


async def test_both_versions_are_one_source_and_one_owner(plane: Plane) -> None:
    """D1."""
    await plane.publish(snapshot({"node-a": HALL}))
    await plane.source("v1")
    await plane.look()
    assert await plane.ready() == "Observed"
    [feature] = await plane.stored()
    owner = {**feature["metadata"]["ownerReferences"][0], "apiVersion": "worker.gpustack.ai/v1"}
    path = NODE_FEATURE.path(plane.namespace, feature["metadata"]["name"])
    await plane.client.patch_merge(path, {"metadata": {"ownerReferences": [owner]}})
    await plane.publish(snapshot({}, "r2"))
    await plane.look()
    assert (await plane.stored(), await plane.ready()) == ([], "Observed")

"""Topology-aware scheduling under the shipped rights: an inventory becomes a plan, changes, and goes again.

The definitions of Kueue and Node Feature Discovery are there and their controllers are not: what those would do is done by hand.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from gitops_ctl.core.errors import NotFound
from tests.doubles.peer_crds import peer_crds
from tests.support.api_topology import WORKER_NAMESPACE, a_reference, in_config_map, on_webhook
from tests.support.manager_process import Managed
from tests.support.sync_cluster import until

LEVEL: Final = "topology.gpustack.ai/rack"
PROFILE: Final = "topology.gpustack.ai/profile"
KEY: Final = "general.feature.gpustack.ai/generic"
NODES: Final = "/api/v1/nodes"
SOURCES: Final = "/apis/worker.gpustack.ai/v1alpha1/topologysources"
KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
FEATURES: Final = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{WORKER_NAMESPACE}/nodefeatures"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WITHIN_S: Final = 120.0


@asynccontextmanager
async def peers_defined(managed: Managed) -> AsyncIterator[None]:
    """The kinds of both projects for the time of a test; managers of other tests never see them."""
    admin, definitions = managed.admin, peer_crds()
    names = [str(tree["metadata"]["name"]) for tree in definitions]
    try:
        for name, tree in zip(names, definitions, strict=True):
            await admin.apply(f"{_DEFINITIONS}/{name}", tree, manager="tests", force=True)
        for path in (f"{KUEUE}/clusterqueues", f"{KUEUE}/admissionchecks", FEATURES):
            await until(lambda path=path: _is_served(managed, path), what=f"{path} is served")
        yield
    finally:
        for path in (SOURCES, f"{KUEUE}/clusterqueues", f"{KUEUE}/resourceflavors", f"{KUEUE}/topologies", NODES):
            for tree in (await admin.list_all(path)).items:
                named: Any = tree
                place = f"{path}/{named['metadata']['name']}"
                await admin.patch_merge(place, {"metadata": {"finalizers": None}})
                await admin.delete(place)
        for name in names:
            await admin.delete(f"{_DEFINITIONS}/{name}")


async def _is_served(managed: Managed, path: str) -> bool:
    try:
        await managed.admin.list_all(path)
    except NotFound:
        return False
    return True


async def schedule_and_retire(managed: Managed) -> None:
    """Sources with a ConfigMap and a webhook, two Nodes, one managed queue: planned, changed, repaired, retired."""
    admin = managed.admin
    await _make_inventory(managed, ("rack-a", "rack-b"))
    for name in ("n1", "n2"):
        await admin.create(NODES, _node(name))
    await admin.apply(f"{KUEUE}/clusterqueues/pool", _queue(), manager="tests")
    await _until_features(managed, {"rack-a", "rack-b"})
    first = await _until_profile(managed, "n1", other="")
    await until(lambda: _has_flavor(managed, first), what="the first profile has a flavor", timeout_s=_WITHIN_S)
    await _project(managed, "n1", "rack-a")
    await _project(managed, "n2", "rack-b")
    await _until_profile(managed, "n1", other=first)
    await _until_profile(managed, "n2", other=first)
    await until(lambda: _is_planned(managed, 1), what="the queue has its plan", timeout_s=_WITHIN_S)
    await until(lambda: _has_gone(managed, first), what="the first profile is retired", timeout_s=_WITHIN_S)
    await until(lambda: _has_capacity(managed, "16"), what="the flavor counts both Nodes", timeout_s=_WITHIN_S)
    await admin.delete(f"{NODES}/n2")
    await until(lambda: _has_capacity(managed, "8"), what="the flavor counts one Node", timeout_s=_WITHIN_S)
    await _make_inventory(managed, ("rack-c",))  # the NodeFeature that stays has another value, the other one goes
    await _until_features(managed, {"rack-c"})
    await admin.delete(f"{SOURCES}/hall-7")
    await _until_features(managed, set())


async def _make_inventory(managed: Managed, racks: tuple[str, ...]) -> None:
    admin, place = managed.admin, f"/api/v1/namespaces/{WORKER_NAMESPACE}"
    lines = "".join(f"  n{number}: {{{LEVEL}: {rack}}}\n" for number, rack in enumerate(racks, start=1))
    text = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: {'-'.join(racks)}\nnodes:\n{lines}"
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hall-7", "namespace": WORKER_NAMESPACE},
    }
    await admin.apply(f"{place}/configmaps/hall-7", {**config_map, "data": {"snapshot.yaml": text}}, manager="tests")
    token: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": WORKER_NAMESPACE},
    }
    await admin.apply(f"{place}/secrets/token", {**token, "stringData": {"token": "planted"}}, manager="tests")
    away = on_webhook(
        url="https://127.0.0.1:9/", bearerTokenSecretRef=a_reference("token"), more={"levels": ["example.net/unused"]}
    )
    away["metadata"]["name"] = "away"
    for source in (in_config_map(more={"levels": [LEVEL]}), away):
        await admin.apply(f"{SOURCES}/{source['metadata']['name']}", source, manager="tests")


def _node(name: str) -> dict[str, Any]:
    labels = {
        "gpustack.ai/managed": "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        KEY: "true",
        f"{KEY}.count": "8",
    }
    return {"metadata": {"name": name, "labels": labels}}


def _queue() -> dict[str, Any]:
    labels = {
        "resource.gpustack.ai/type": "instancetypes",
        "feature.gpustack.ai/acceleratable": "false",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        KEY: "true",
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "pool", "labels": labels},
        "spec": {"namespaceSelector": {}},
    }


async def _project(managed: Managed, node: str, rack: str) -> None:
    """What nfd-master does."""
    await managed.admin.patch_merge(f"{NODES}/{node}", {"metadata": {"labels": {LEVEL: rack}}}, manager="nfd-master")


async def _until_features(managed: Managed, racks: set[str]) -> None:
    async def there() -> bool:
        found: Any = (await managed.admin.list_all(FEATURES)).items
        return {tree["spec"]["labels"][LEVEL] for tree in found} == racks

    await until(there, what=f"NodeFeatures say {sorted(racks)}", timeout_s=_WITHIN_S)


async def _until_profile(managed: Managed, node: str, *, other: str) -> str:
    async def profile() -> str:
        tree: Any = await managed.admin.get(f"{NODES}/{node}")
        found = str(tree["metadata"]["labels"].get(PROFILE, ""))
        return found if found != other else ""

    return str(await until(profile, what=f"{node} has another profile than {other!r}", timeout_s=_WITHIN_S))


async def _is_planned(managed: Managed, flavors: int) -> bool:
    tree: Any = await managed.admin.get(f"{KUEUE}/clusterqueues/pool")
    groups = tree["spec"].get("resourceGroups") or [{"flavors": []}]
    said = any(item["type"] == "TopologyReady" for item in tree.get("status", {}).get("conditions", ()))
    return len(groups[0]["flavors"]) == flavors and said


async def _has_flavor(managed: Managed, profile: str) -> bool:
    found: Any = (await managed.admin.list_all(f"{KUEUE}/resourceflavors")).items
    return any(str(tree["metadata"]["name"]).endswith(profile) for tree in found)


async def _has_capacity(managed: Managed, capacity: str) -> bool:
    found: Any = (await managed.admin.list_all(f"{KUEUE}/resourceflavors")).items
    return [tree["metadata"]["labels"].get(f"{KEY}.capacity") for tree in found] == [capacity]


async def _has_gone(managed: Managed, profile: str) -> bool:
    found: Any = [*(await managed.admin.list_all(f"{KUEUE}/topologies")).items]
    found += (await managed.admin.list_all(f"{KUEUE}/resourceflavors")).items
    return not any(str(tree["metadata"]["name"]).endswith(profile) for tree in found)

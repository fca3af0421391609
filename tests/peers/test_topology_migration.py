"""An inventory in Git on real Node Feature Discovery and Kueue: labels, admission, a change of the hierarchy that drains, and its end.

Everything that changes comes from a signed commit; manager and Kueue die in the middle of the drain (topology-scheduling.md, section 8.3).
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.kube.transport import KubeClient
from tests.doubles.kueue_objects import assigned_hosts, condition
from tests.peers.test_simulated_nodes import kwok
from tests.support.cluster import AuditLog
from tests.support.git_keys import SshKey
from tests.support.kueue import BASE, is_observed, reason, totals, workload
from tests.support.manager_process import USER, Managed, managed
from tests.support.product import people
from tests.support.sync_cluster import until
from tests.support.topology_plane import WORKER_NAMESPACE, TopologyPlane, topology_plane
from tests.support.topology_world import LEVELS, PROFILES, SOURCES, Pool, evictions_finished

__all__ = ["kwok", "people", "topology_plane"]
pytestmark = [pytest.mark.peers, pytest.mark.slow]

POOL = Pool(
    "gpu",
    {
        "gpu-1": ("north", "hall-1", "row-1"),
        "gpu-2": ("north", "hall-1", "row-2"),
        "gpu-3": ("north", "hall-2", "row-3"),
    },
)
QUEUE = f"{BASE}/clusterqueues/{POOL.name}"
WORKLOADS = f"{BASE}/namespaces/default/workloads"
FEATURES = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{WORKER_NAMESPACE}/nodefeatures"
ZONE = LEVELS[1]
PHASE = "topology.gpustack.ai/migration-phase"
REGION_ZONE, REGION_ZONE_RACK, NOTHING = 2, 3, 0


@pytest.fixture
async def lab(topology_plane: TopologyPlane, people: dict[str, SshKey], tmp_path: Path) -> AsyncIterator[Managed]:
    """The product as shipped with one tenant; its Nodes are there and nothing describes them."""
    for name in POOL.nodes:
        topology_plane.add_node(name, POOL.labels, cpu=4)
    async with managed(topology_plane.plane, "lab", tmp_path, keys=people) as made:
        await made.start()
        await made.until_leads("first")
        yield made


async def _queue(admin: KubeClient) -> Any:
    return await admin.find(QUEUE) or {}


async def _until_ready(admin: KubeClient, levels: int) -> Any:
    """The queue, as soon as it is served by exactly the flavor of so many levels."""

    async def ready() -> Any:
        tree = await _queue(admin)
        wanted = {POOL.flavor(levels)} if levels >= 0 else set()
        serves = set(totals(tree, "flavorsReservation")) == wanted and reason(tree, "Active") == "True/Ready"
        return tree if serves and is_observed(tree) and reason(tree, "TopologyReady") == "True/Ready" else None

    try:
        return await until(ready, what=f"the queue is ready with {levels} levels", timeout_s=120)
    except AssertionError as error:
        raise AssertionError(f"{error}; last {await _queue(admin)}") from None


async def _submit(admin: KubeClient, name: str, *, count: int) -> None:
    """Pods with a whole Node each, all in one zone."""
    tree = workload(name, POOL.name, count=count, required=ZONE, cpu="4")
    await admin.create(WORKLOADS, tree)


async def _until_admitted(admin: KubeClient, name: str) -> Any:
    async def admitted() -> Any:
        tree: Any = await admin.get(f"{WORKLOADS}/{name}")
        return tree if condition(tree, "Admitted") == "True" and condition(tree, "Evicted") != "True" else None

    try:
        return await until(admitted, what=f"{name} is admitted", timeout_s=120)
    except AssertionError as error:
        raise AssertionError(f"{error}: {await admin.get(f'{WORKLOADS}/{name}')}; {await _queue(admin)}") from None


def _placed(tree: Any) -> tuple[str, dict[str, int]]:
    """Flavor and pods by host."""
    (item,) = tree["status"]["admission"]["podSetAssignments"]
    return item["flavors"]["cpu"], assigned_hosts(item)


async def _labels(admin: KubeClient, node: str) -> dict[str, str]:
    tree: Any = await admin.get(f"/api/v1/nodes/{node}")
    return dict(tree["metadata"]["labels"])


async def test_a_hierarchy_from_git_places_workloads_and_changes_without_losing_one(
    lab: Managed, topology_plane: TopologyPlane
) -> None:
    admin, audit = lab.admin, AuditLog(topology_plane.plane.audit)
    await lab.push(POOL.files(levels=REGION_ZONE))
    queue = await _until_ready(admin, REGION_ZONE)
    uid = queue["metadata"]["uid"]
    await _check_labels_come_through_nfd_only(admin, audit)

    await _submit(admin, "three", count=3)
    await _submit(admin, "two", count=2)
    tree = await _until_admitted(admin, "two")
    assert _placed(tree) == (POOL.flavor(REGION_ZONE), {"gpu-1": 1, "gpu-2": 1})
    three: Any = await admin.get(f"{WORKLOADS}/three")
    assert reason(three, "QuotaReserved") == "False/Pending"

    await _check_the_rack_comes_with_a_drain(lab, topology_plane)
    queue = await _until_ready(admin, REGION_ZONE_RACK)
    assert queue["metadata"]["uid"] == uid
    assert not [key for key in queue["metadata"]["annotations"] if "migration" in key]
    assert queue["spec"]["stopPolicy"] == "None"
    async with evictions_finished(admin):
        tree = await _until_admitted(admin, "two")
    assert _placed(tree) == (POOL.flavor(REGION_ZONE_RACK), {"gpu-1": 1, "gpu-2": 1})

    async def retired() -> bool:
        paths = (
            f"{BASE}/resourceflavors/{POOL.flavor(REGION_ZONE)}",
            f"{BASE}/topologies/gpustack-{PROFILES[REGION_ZONE]}",
        )
        return all([await admin.find(path) is None for path in paths])

    await until(retired, what="the old flavor and its Topology are gone", timeout_s=60)
    await _check_the_end_of_the_source_leaves_foreign_labels(lab)


async def _check_labels_come_through_nfd_only(admin: KubeClient, audit: AuditLog) -> None:
    """Each Node has its places from nfd-master and its profile from the product; the product has written nothing else to a Node."""
    for node, places in POOL.nodes.items():
        tree: Any = await admin.get(f"/api/v1/nodes/{node}")
        labels = tree["metadata"]["labels"]
        assert [labels.get(level) for level in LEVELS] == [*places[:2], None]
        assert labels["topology.gpustack.ai/profile"] == PROFILES[REGION_ZONE]
        owned = {
            entry["manager"]: {key.removeprefix("f:") for key in entry["fieldsV1"]["f:metadata"].get("f:labels", {})}
            for entry in tree["metadata"]["managedFields"]
            if "f:metadata" in entry["fieldsV1"] and not entry.get("subresource")
        }
        assert owned["gitops-ctl-scheduling"] == {"topology.gpustack.ai/profile"}
        assert owned["nfd-master"] - {"."} == set(LEVELS[:2])
    writes = [event for event in audit.writes(user=USER) if event["objectRef"]["resource"] == "nodes"]
    assert {event["verb"] for event in writes} <= {"patch"}


async def _check_the_rack_comes_with_a_drain(lab: Managed, plane: TopologyPlane) -> None:
    """The workload is evicted, and nothing is switched before it has stopped, whoever dies meanwhile."""
    admin = lab.admin
    await lab.push(POOL.files(levels=REGION_ZONE_RACK))

    async def drains() -> bool:
        tree: Any = await admin.get(f"{WORKLOADS}/two")
        return reason(tree, "Evicted") == "True/ClusterQueueStopped"

    await until(drains, what="the workload is evicted", timeout_s=90)
    lab.processes[-1].end()
    plane.kueue.stop()
    plane.kueue.start()
    await lab.start("second")
    await lab.until_leads("second")

    async def migrates() -> bool:
        return reason(await _queue(admin), "TopologyReady") == "False/Migrating"

    await until(migrates, what="the second manager goes on", timeout_s=60)
    held: Any = await admin.get(QUEUE)
    assert held["metadata"]["annotations"][PHASE] == "draining"
    assert held["spec"]["stopPolicy"] == "HoldAndDrain"
    assert [each["name"] for group in held["spec"]["resourceGroups"] for each in group["flavors"]] == [
        POOL.flavor(REGION_ZONE)
    ]

    async with evictions_finished(admin):
        await _until_ready(admin, REGION_ZONE_RACK)


async def _check_the_end_of_the_source_leaves_foreign_labels(lab: Managed) -> None:
    admin = lab.admin
    await lab.push(delete=[f"site/{POOL.name}-source.yaml"])

    async def gone() -> bool:
        left = [set(await _labels(admin, node)) & set(LEVELS) for node in POOL.nodes]
        return not any(left) and await admin.find(f"{SOURCES}/{POOL.name}") is None

    async with evictions_finished(admin):
        await until(gone, what="the labels of the source are gone", timeout_s=90)
        assert not (await admin.list_all(FEATURES)).items
        for node in POOL.nodes:
            labels = await _labels(admin, node)
            assert labels.items() >= POOL.labels.items()
        await _until_ready(admin, NOTHING)

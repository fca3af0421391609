"""The full manager of Kueue: what only its webhooks refuse, what they let pass, and a Job that is drained by Kueue itself.

The source reads labels that Nodes have already, so that no Node Feature Discovery is needed here (topology-scheduling.md, sections 7.7 and 14.3).
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.kube.transport import KubeClient
from tests.doubles.kueue_objects import condition
from tests.support.git_keys import SshKey
from tests.support.kueue import BASE, cluster_queue, groups, is_observed, reason, totals
from tests.support.kueue_plane import KueuePlane, kueue_plane
from tests.support.manager_process import Managed, managed
from tests.support.product import people
from tests.support.sync_cluster import until
from tests.support.topology_world import CPUS, Pool

__all__ = ["kueue_plane", "people"]
pytestmark = [pytest.mark.peers, pytest.mark.slow]

REGION, ZONE, RACK = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "example.net/rack"
# From the published vectors; the last one is of three keys of ours and not among them.
PROFILE = "fnv64-570aeab478df5111"
POOL = Pool("hall", {name: ("north", "hall-1", f"row-{name[-1]}") for name in ("hall-1", "hall-2")})
QUEUE = f"{BASE}/clusterqueues/{POOL.name}"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
async def lab(kueue_plane: KueuePlane, people: dict[str, SshKey], tmp_path: Path) -> AsyncIterator[Managed]:
    """The product as shipped with one tenant, and Nodes that say where they are."""
    for name, places in POOL.nodes.items():
        kueue_plane.add_node(name, {**POOL.labels, **dict(zip((REGION, ZONE, RACK), places, strict=True))}, cpu=CPUS)
    async with managed(kueue_plane.plane, "lab", tmp_path, keys=people) as made:
        await made.start()
        await made.until_leads("first")
        yield made


def test_only_the_webhook_refuses_what_a_plan_must_never_be(kueue_plane: KueuePlane) -> None:
    """The definitions alone would store each of them."""
    plane = kueue_plane.plane
    (group,) = groups({"one": 1})["resourceGroups"]
    (other,) = groups({"two": 1})["resourceGroups"]
    memory = {"coveredResources": ["memory"], "flavors": [_flavor("one", "memory")]}
    many = [
        {
            "coveredResources": [f"example.net/r{n}"],
            "flavors": [_flavor(f"f{n}-{m}", f"example.net/r{n}") for m in range(64)],
        }
        for n in range(5)
    ]
    refused = {"resource in two groups": [group, other], "flavor in two groups": [group, memory], "320 flavors": many}
    for number, (what, wanted) in enumerate(refused.items()):
        tree = cluster_queue(f"refused-{number}", {}, resourceGroups=wanted)
        answer = plane.request("POST", f"{BASE}/clusterqueues", tree)
        assert answer.status == 403, what
        assert "vclusterqueue.kb.io" in answer.body["message"], what


def test_a_queue_with_nothing_but_a_hold_is_taken(kueue_plane: KueuePlane) -> None:
    """The first half of the creation of a managed queue."""
    tree = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "bare", "annotations": {"topology.gpustack.ai/empty-plan-hold": "true"}},
        "spec": {"stopPolicy": "Hold"},
    }
    path = f"{BASE}/clusterqueues/bare?fieldManager=gitops-ctl-scheduling&force=true"
    answer = kueue_plane.plane.request("PATCH", path, tree, content_type="application/apply-patch+yaml")
    assert answer.status == 201, answer.body
    assert answer.body["spec"]["stopPolicy"] == "Hold"


def _flavor(name: str, resource: str) -> dict[str, Any]:
    return {"name": name, "resources": [{"name": resource, "nominalQuota": "1"}]}


async def test_a_job_is_drained_and_comes_back_without_anybodys_help(lab: Managed) -> None:
    admin = lab.admin
    await lab.push({**POOL.files(levels=2, source=False), "site/hall-source.yaml": _source(REGION, ZONE)})
    queue = await _until_ready(admin, lambda names: names == {POOL.flavor_of(PROFILE)})
    await admin.create(JOBS, _job())
    await _until_runs(admin)

    await lab.push({"site/hall-source.yaml": _source(REGION, ZONE, RACK)})
    changed = await _until_ready(admin, lambda names: len(names) == 1 and names != {POOL.flavor_of(PROFILE)})
    assert changed["metadata"]["uid"] == queue["metadata"]["uid"]
    await _until_runs(admin)
    (flavor,) = totals(changed, "flavorsReservation")
    workloads = (await admin.list_all(f"{BASE}/namespaces/default/workloads")).items
    trees: list[Any] = [tree for tree in workloads if "hall" in str(tree["metadata"])]
    assert [tree["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for tree in trees] == [flavor]


def _source(*levels: str) -> str:
    spec = {"nodeSelector": {"matchLabels": {"example.net/pool": POOL.name}}, "levels": list(levels), "nodeLabels": {}}
    tree = {"apiVersion": "worker.gpustack.ai/v1", "kind": "TopologySource", "metadata": {"name": POOL.name}}
    return yaml.safe_dump({**tree, "spec": spec})


def _job() -> dict[str, Any]:
    """Two pods with a whole Node each, in one zone."""
    container = {"name": "main", "image": "example.net/main:1", "resources": {"requests": {"cpu": str(CPUS)}}}
    annotations = {"kueue.x-k8s.io/podset-required-topology": ZONE}
    pods = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "hall-job", "labels": {"kueue.x-k8s.io/queue-name": POOL.name}},
        "spec": {"parallelism": 2, "completions": 2, "suspend": True, "template": pods},
    }


async def _until_ready(admin: KubeClient, fits: Any) -> Any:
    """The queue, as soon as it is served by flavors that fit."""

    async def ready() -> Any:
        tree: Any = await admin.find(QUEUE) or {}
        serves = reason(tree, "Active") == "True/Ready" and fits(set(totals(tree, "flavorsReservation")))
        return tree if serves and is_observed(tree) and reason(tree, "TopologyReady") == "True/Ready" else None

    try:
        return await until(ready, what="the queue is ready", timeout_s=120)
    except AssertionError as error:
        raise AssertionError(f"{error}; last {await admin.find(QUEUE)}") from None


async def _until_runs(admin: KubeClient) -> None:
    """The Job is not suspended, and its Workload is admitted."""

    async def runs() -> bool:
        job: Any = await admin.get(f"{JOBS}/hall-job")
        workloads: list[Any] = list((await admin.list_all(f"{BASE}/namespaces/default/workloads")).items)
        return not job["spec"].get("suspend") and any(condition(tree, "Admitted") == "True" for tree in workloads)

    await until(runs, what="the Job runs", timeout_s=60)

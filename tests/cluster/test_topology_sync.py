"""A managed queue is created by a Sync on a real API server: two applies, two owners, one hold (topology-scheduling.md, 1.4, D5, D6, D35)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.cli.topologyrules import register_scheduling
from gitops_ctl.core.errors import NotFound
from gitops_ctl.scheduling.options import Options
from tests.doubles.peer_crds import kueue_crds
from tests.support.sync_cluster import Bench, document, sync_site, until  # noqa: F401

pytestmark = pytest.mark.cluster

KUEUE = "kueue.x-k8s.io/v1beta2"
WANTED = "topology.gpustack.ai/wanted-stop-policy"


@pytest.fixture
async def queues(site: Bench) -> AsyncIterator[Bench]:
    """The tenant, on a server that serves ClusterQueues; those of the test go afterwards."""
    register_scheduling(Options())
    (crd,) = (tree for tree in kueue_crds() if tree["spec"]["names"]["kind"] == "ClusterQueue")
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
    await site.admin.apply(path, crd, manager="tests", force=True)

    async def served() -> bool:
        try:
            await site.admin.list_all(site.path("clusterqueues", group=KUEUE, namespace=""))
        except NotFound:
            return False
        return True

    await until(served, what="queues are served")
    yield site
    await site.admin.delete(place(site))


def place(site: Bench) -> str:
    return site.path("clusterqueues", f"{site.namespace}-pool", group=KUEUE, namespace="")


def queue(site: Bench, **spec: Any) -> str:
    labels = {"resource.gpustack.ai/type": "instancetypes", "feature.gpustack.ai/acceleratable": "false"}
    metadata = {"name": f"{site.namespace}-pool", "labels": labels}
    tree = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": metadata}
    return document({**tree, "spec": {"namespaceSelector": {}, **spec}})


async def test_a_queue_exists_held_from_its_first_moment_and_its_two_owners_never_meet(queues: Bench) -> None:
    queues.push({"pool.yaml": queue(queues, stopPolicy="None")})
    await queues.sync()
    await queues.until_ready()
    tree: Any = await queues.admin.get(place(queues))
    owned = {
        entry["manager"]: (entry["operation"], sorted(entry["fieldsV1"].get("f:spec", {})))
        for entry in tree["metadata"]["managedFields"]
    }
    assert owned == {
        "gitops-ctl-scheduling": ("Apply", ["f:stopPolicy"]),
        "gitops-ctl": ("Apply", ["f:namespaceSelector"]),
    }
    assert tree["spec"]["stopPolicy"] == "Hold"
    assert tree["metadata"]["annotations"][WANTED] == "None"
    uid = tree["metadata"]["uid"]

    # What the scheduling controller does with its fields is no drift, and a new wish moves no policy.
    theirs = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": tree["metadata"]["name"]}}
    await queues.admin.apply(
        place(queues), {**theirs, "spec": {"stopPolicy": "HoldAndDrain"}}, manager="gitops-ctl-scheduling"
    )
    queues.push({"pool.yaml": queue(queues, stopPolicy="Hold")})
    await queues.until_ready()
    tree = await queues.admin.get(place(queues))
    assert (tree["spec"]["stopPolicy"], tree["metadata"]["uid"]) == ("HoldAndDrain", uid)
    assert tree["metadata"]["annotations"][WANTED] == "Hold"
    assert (await queues.status())["counts"].get("drifted", 0) == 0


async def test_a_queue_that_becomes_managed_never_opens_and_loses_no_groups(queues: Bench) -> None:
    """Its document lets go of both fields in one apply; another manager owns them before."""
    quota = {"name": "x", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    plain = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": f"{queues.namespace}-pool"}}
    spec = {"namespaceSelector": {}, "stopPolicy": "Hold", "resourceGroups": groups}
    queues.push({"pool.yaml": document({**plain, "spec": spec})})
    await queues.sync()
    await queues.until_ready()
    before: Any = await queues.admin.get(place(queues))
    queues.push({"pool.yaml": queue(queues, stopPolicy="Hold")})
    await queues.until_ready()
    after: Any = await queues.admin.get(place(queues))
    assert after["metadata"]["annotations"][WANTED] == "Hold"
    assert after["metadata"]["annotations"]["topology.gpustack.ai/applied-stop-policy"] == "Hold"
    assert (after["spec"]["stopPolicy"], after["spec"]["resourceGroups"]) == ("Hold", before["spec"]["resourceGroups"])
    # Neither field was another one for a moment: each change of the spec is a generation.
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    owned = {entry["manager"]: set(entry["fieldsV1"].get("f:spec", {})) for entry in after["metadata"]["managedFields"]}
    assert owned["gitops-ctl"] == {"f:namespaceSelector"}
    assert owned["gitops-ctl-scheduling"] == {"f:stopPolicy", "f:resourceGroups"}

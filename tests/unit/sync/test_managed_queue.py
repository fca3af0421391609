"""Managed queues and topology documents through a Sync: created held, carried, held, waited for (topology-scheduling.md, 1.4, 4.6, 9).

The whole room against the double with the definitions of Kueue.  The same step on a real server is in tests/cluster/test_topology_sync.py.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cli.topologyrules import register_scheduling
from gitops_ctl.scheduling.options import Options
from tests.doubles.apiserver import FakeApiServer, Request
from tests.doubles.peer_crds import install, kueue_crds
from tests.support.sync_cluster import Bench, document, fake_bench, until

pytestmark = pytest.mark.simulation

KUEUE = "kueue.x-k8s.io/v1beta2"
WORKER = "worker.gpustack.ai/v1alpha1"
MARK = "topology.gpustack.ai/empty-plan-hold"
WANTED = "topology.gpustack.ai/wanted-stop-policy"
SCHEDULING = "gitops-ctl-scheduling"
LABELS = {"resource.gpustack.ai/type": "instancetypes", "feature.gpustack.ai/acceleratable": "false"}


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    register_scheduling(Options())
    async with FakeApiServer() as made:
        install(made.api, kueue_crds())
        listing = Request("GET", f"/apis/{KUEUE}/clusterqueues", {}, {}, b"")
        await until(lambda: made.api.handle(listing).code == 200, what="queues are served")
        yield made


@pytest.fixture
async def site(server: FakeApiServer, tmp_path: Path) -> AsyncIterator[Bench]:
    """A tenant with a running room."""
    async with fake_bench(server, tmp_path) as made:
        await made.sync(targetNamespace="lab")
        yield made


def queue(*, name: str = "pool", labels: dict[str, str] | None = None, version: str = "v1beta2", **spec: Any) -> str:
    return document(
        {
            "apiVersion": f"kueue.x-k8s.io/{version}",
            "kind": "ClusterQueue",
            "metadata": {"name": name, "labels": LABELS if labels is None else labels},
            "spec": {"namespaceSelector": {}, **spec},
        }
    )


async def live(site: Bench, name: str = "pool") -> Any:
    return await site.get("clusterqueues", name, group=KUEUE, namespace="")


def owners(tree: Any) -> dict[str, str]:
    """Who applied the stop policy, the mark, and the wanted policy."""
    found = {}
    for entry in tree["metadata"]["managedFields"]:
        fields = entry["fieldsV1"]
        if "f:stopPolicy" in fields.get("f:spec", {}):
            found["policy"] = entry["manager"]
        for key in fields.get("f:metadata", {}).get("f:annotations", {}):
            if key.startswith("f:topology.gpustack.ai/"):
                found[key.removeprefix("f:topology.gpustack.ai/")] = entry["manager"]
    return found


def writes(server: FakeApiServer) -> list[tuple[str, int]]:
    return [
        (entry.verb, entry.code)
        for entry in server.api.audit
        if entry.resource == "clusterqueues"
        and entry.verb in ("patch", "create", "update", "apply")
        and not entry.dry_run
    ]


@pytest.mark.parametrize("wanted", [None, "None", "Hold", "HoldAndDrain"])
async def test_a_managed_queue_is_created_held_and_marked_whatever_git_wants(
    site: Bench, server: FakeApiServer, wanted: str | None
):
    site.push({"pool.yaml": queue(**({"stopPolicy": wanted} if wanted else {}))})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["stopPolicy"] == "Hold"
    noted = {key: value for key, value in tree["metadata"]["annotations"].items() if key.startswith("topology.")}
    assert noted == {MARK: "true", **({WANTED: wanted} if wanted else {})}
    by = owners(tree)
    assert (by["policy"], by["empty-plan-hold"]) == (SCHEDULING, SCHEDULING)
    assert by.get("wanted-stop-policy") == ("gitops-ctl" if wanted else None)
    assert tree["metadata"]["labels"].items() >= LABELS.items()
    assert [code for _, code in writes(server)] == [201, 200]


async def test_a_queue_in_an_older_version_is_created_held_too(site: Bench):
    site.push({"pool.yaml": queue(version="v1beta1")})
    await site.until_ready()
    assert (await live(site))["spec"]["stopPolicy"] == "Hold"


async def test_an_ordinary_queue_is_applied_as_it_is_written(site: Bench, server: FakeApiServer):
    site.push({"pool.yaml": queue(labels={"team": "net"}, stopPolicy="HoldAndDrain")})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["stopPolicy"] == "HoldAndDrain"
    assert owners(tree) == {"policy": "gitops-ctl"}
    assert [code for _, code in writes(server)] == [201]


async def test_killed_between_the_two_applies_the_next_pass_applies_the_rest_and_holds_no_second_time(
    site: Bench, server: FakeApiServer
):
    left = {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "pool", "annotations": {MARK: "true"}},
        "spec": {"stopPolicy": "Hold"},
    }
    path = site.path("clusterqueues", "pool", group=KUEUE, namespace="")
    await site.admin.apply(path, left, manager=SCHEDULING)
    first = len(writes(server))
    site.push({"pool.yaml": queue(stopPolicy="None")})
    await site.until_ready()
    tree = await live(site)
    assert len(writes(server)) == first + 1
    assert (tree["spec"]["stopPolicy"], owners(tree)["policy"]) == ("Hold", SCHEDULING)
    assert tree["metadata"]["annotations"][WANTED] == "None"


async def test_a_queue_that_is_there_is_not_held(site: Bench, server: FakeApiServer):
    path = site.path("clusterqueues", "pool", group=KUEUE, namespace="")
    theirs = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "pool"}, "spec": {}}
    await site.admin.apply(path, theirs, manager="somebody")
    site.push({"pool.yaml": queue(stopPolicy="Hold")})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["stopPolicy"] == "None"
    assert MARK not in tree["metadata"]["annotations"]
    assert tree["metadata"]["annotations"][WANTED] == "Hold"


async def test_a_queue_that_becomes_managed_keeps_its_hold_and_its_groups(site: Bench, server: FakeApiServer):
    """Its document lets go of both; neither goes for the moment until somebody carries the policy out."""
    quota = {"name": "x", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    site.push({"pool.yaml": queue(labels={"team": "net"}, stopPolicy="Hold", resourceGroups=groups)})
    await site.until_ready()
    stored: list[Any] = []
    server.api.store.listeners.append(lambda change: stored.append(change.new))
    site.push({"pool.yaml": queue(stopPolicy="Hold")})
    await site.until_ready()
    tree = await live(site)
    assert tree["metadata"]["labels"].items() >= LABELS.items()
    assert tree["metadata"]["annotations"][WANTED] == "Hold"
    assert tree["metadata"]["annotations"]["topology.gpustack.ai/applied-stop-policy"] == "Hold"
    assert owners(tree)["policy"] == SCHEDULING
    specs = [new["spec"] for new in stored if new is not None and new["kind"] == "ClusterQueue"]
    assert len(specs) >= 2
    assert {spec["stopPolicy"] for spec in specs} == {"Hold"}
    assert all(spec["resourceGroups"] == groups for spec in specs)


async def test_a_queue_of_kubectl_that_becomes_managed_keeps_its_hold(site: Bench, server: FakeApiServer):
    path = site.path("clusterqueues", "pool", group=KUEUE, namespace="")
    theirs = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "pool"}, "spec": {"stopPolicy": "Hold"}}
    await site.admin.create(site.path("clusterqueues", group=KUEUE, namespace=""), theirs, manager="kubectl-create")
    stored: list[Any] = []
    server.api.store.listeners.append(lambda change: stored.append(change.new))
    site.push({"pool.yaml": queue()})
    await site.until_ready()
    tree = await site.admin.get(path)
    assert {entry["manager"] for entry in tree["metadata"]["managedFields"]} == {"gitops-ctl", SCHEDULING}
    specs = [new["spec"] for new in stored if new is not None and new["kind"] == "ClusterQueue"]
    assert {spec["stopPolicy"] for spec in specs} == {"Hold"}
    assert "topology.gpustack.ai/applied-stop-policy" not in tree["metadata"]["annotations"]


async def test_a_queue_that_was_managed_before_is_taken_along_no_second_time(site: Bench, server: FakeApiServer):
    site.push({"pool.yaml": queue(stopPolicy="None")})
    await site.until_ready()
    first = len(writes(server))
    site.push({"pool.yaml": queue(stopPolicy="Hold")})
    await site.until_ready()
    assert len(writes(server)) == first + 1


async def test_a_stop_policy_that_moves_is_no_drift_and_a_wish_that_changes_moves_no_policy(site: Bench):
    site.push({"pool.yaml": queue(stopPolicy="None")})
    await site.until_ready()
    path = site.path("clusterqueues", "pool", group=KUEUE, namespace="")
    await site.admin.patch_merge(path, {"spec": {"stopPolicy": "HoldAndDrain"}}, manager="an-administrator")
    await site.request()
    status = await site.status()
    assert (status["counts"].get("drifted", 0), status.get("drift", [])) == (0, [])
    site.push({"pool.yaml": queue(stopPolicy="Hold")})
    await site.until_ready()
    tree = await live(site)
    assert tree["spec"]["stopPolicy"] == "HoldAndDrain"
    assert tree["metadata"]["annotations"][WANTED] == "Hold"


@pytest.mark.parametrize(
    "spec",
    [{"cohortName": "all"}, {"admissionChecksStrategy": {}}, {"resourceGroups": []}],
    ids=lambda spec: next(iter(spec)),
)
async def test_a_queue_that_says_what_the_controller_writes_is_held_and_the_rest_is_applied(
    site: Bench, spec: dict[str, Any]
):
    site.push({"pool.yaml": queue(**spec), "other.yaml": site.config_map("other")})
    (held,) = await site.until_held("DocumentInvalid")
    assert held["object"] == "ClusterQueue.kueue.x-k8s.io/pool"
    assert held["file"] == "pool.yaml"
    assert next(iter(spec)) in held["message"]
    assert await live(site) is None
    assert await site.get("configmaps", "other") is not None


async def test_a_managed_queue_whose_mark_goes_in_git_stays_as_it_is(site: Bench):
    site.push({"pool.yaml": queue(stopPolicy="None")})
    await site.until_ready()
    site.push({"pool.yaml": queue(labels={}, stopPolicy="None")})
    (held,) = await site.until_held("DocumentInvalid")
    assert "delete the queue instead" in held["message"]
    assert (await live(site))["metadata"]["labels"].items() >= LABELS.items()


async def test_nothing_is_pruned_while_a_managed_queue_would_lose_its_mark(site: Bench):
    await site.sync(targetNamespace="lab", prune={"enabled": True, "maxPercent": 100})
    site.push({"pool.yaml": queue(), "old.yaml": site.config_map("old")})
    await site.until_ready()
    site.push({"pool.yaml": queue(labels={})}, delete=["old.yaml"])
    await site.until_held("DocumentInvalid")
    await site.request()
    assert await site.get("configmaps", "old") is not None
    site.push({"pool.yaml": queue()})
    await site.until_ready()
    assert await site.get("configmaps", "old") is None


async def test_a_managed_queue_is_waited_for_until_its_plan_stands(site: Bench):
    await site.sync(targetNamespace="lab", wait=True, timeout="1h")
    site.push({"pool.yaml": queue()})

    async def waits() -> bool:
        return "has no condition TopologyReady yet" in str(await site.status())

    await until(waits, what="the Sync waits for the queue")
    await report(site, "False", "Migrating", "since 08:00")
    await until(lambda: _says(site, "since 08:00"), what="the Sync tells the message of the condition")
    await report(site, "True", "Ready", "")
    await site.until_ready()


async def _says(site: Bench, text: str) -> bool:
    await site.request()
    return text in str(await site.status())


async def report(site: Bench, status: str, reason: str, message: str) -> None:
    condition = {
        "type": "TopologyReady",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-30T08:00:00Z",
    }
    path = f"{site.path('clusterqueues', 'pool', group=KUEUE, namespace='')}/status"
    await site.admin.patch_merge(path, {"status": {"conditions": [condition]}}, manager=SCHEDULING)


SOURCE = {
    "apiVersion": WORKER,
    "kind": "TopologySource",
    "metadata": {"name": "hall-7"},
    "spec": {
        "nodeSelector": {},
        "levels": ["topology.gpustack.ai/region", "topology.gpustack.ai/zone"],
        "configMap": {
            "configMapRef": {"namespace": "gpustack-system", "name": "hall-7"},
            "key": "snapshot.yaml",
            "maxStaleness": "1h",
        },
    },
}
SNAPSHOT = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: hall-7, namespace: gpustack-system}}
data:
  snapshot.yaml: |
    apiVersion: topology.gpustack.ai/v1alpha1
    revision: {revision}
    nodes:
      gpu-n01: {{{labels}}}
"""
GOOD = "topology.gpustack.ai/region: north, topology.gpustack.ai/zone: hall7"


def snapshot(revision: str, labels: str = GOOD) -> str:
    return SNAPSHOT.format(revision=revision, labels=labels)


async def revision_of(site: Bench) -> str:
    tree = await site.get("configmaps", "hall-7", namespace="gpustack-system")
    return "" if tree is None else str(tree["data"]["snapshot.yaml"].partition("revision: ")[2].partition("\n")[0])


@pytest.fixture
async def hall(site: Bench) -> Bench:
    """A source and its first snapshot, applied."""
    await site.admin.create("/api/v1/namespaces", {"metadata": {"name": "gpustack-system"}})
    site.push({"source.yaml": document(SOURCE), "hall.yaml": snapshot("r1"), "old.yaml": site.config_map("old")})
    await site.until_ready()
    return site


async def test_a_bad_snapshot_stays_as_it_is_in_the_cluster_and_its_source_and_the_rest_go_on(hall: Bench):
    changed = {**SOURCE, "spec": {**SOURCE["spec"], "nodeSelector": {"matchLabels": {"a": "b"}}}}  # type: ignore[dict-item]
    hall.push(
        {
            "hall.yaml": snapshot("r2", "topology.gpustack.ai/zone: hall7"),
            "source.yaml": document(changed),
            "new.yaml": hall.config_map("new"),
        }
    )
    (held,) = await hall.until_held("DocumentInvalid")
    assert held["object"] == "ConfigMap/gpustack-system/hall-7"
    assert (held["file"], held["line"]) == ("hall.yaml", 9)
    assert "rule 12" in held["message"]
    assert await revision_of(hall) == "r1"
    assert await hall.get("configmaps", "new") is not None
    source = await hall.get("topologysources", "hall-7", group=WORKER, namespace="")
    assert source["spec"]["nodeSelector"] == {"matchLabels": {"a": "b"}}
    hall.push({"hall.yaml": snapshot("r3")})
    await hall.until_ready()
    assert await revision_of(hall) == "r3"


async def test_nothing_is_pruned_while_a_snapshot_is_bad(hall: Bench):
    await hall.sync(targetNamespace="lab", prune={"enabled": True, "maxPercent": 100})
    await hall.until_ready()
    hall.push({"hall.yaml": snapshot("r2", "x: y")}, delete=["old.yaml"])
    await hall.until_held("DocumentInvalid")
    await hall.request()
    assert await hall.get("configmaps", "old") is not None
    hall.push({"hall.yaml": snapshot("r3")})
    await hall.until_ready()
    assert await hall.get("configmaps", "old") is None


async def test_with_hold_unit_everything_waits_for_the_snapshot(hall: Bench):
    await hall.sync(targetNamespace="lab", onDocumentError="HoldUnit")
    await hall.until_ready()
    hall.push({"hall.yaml": snapshot("r2", "x: y"), "new.yaml": hall.config_map("new")})
    await hall.until_held("DocumentInvalid")
    await hall.request()
    assert await hall.get("configmaps", "new") is None


async def test_a_source_that_breaks_a_rule_stays_as_it_is_with_all_that_is_wrong(hall: Bench):
    spec: dict[str, Any] = {**SOURCE["spec"], "levels": ["kubernetes.io/hostname"]}  # type: ignore[dict-item]
    hall.push({"source.yaml": document({**SOURCE, "spec": spec}), "hall.yaml": snapshot("r2")})
    (held,) = await hall.until_held("DocumentInvalid")
    assert held["object"] == "TopologySource.worker.gpustack.ai/hall-7"
    assert "spec.levels[0]" in held["message"]
    source = await hall.get("topologysources", "hall-7", group=WORKER, namespace="")
    assert source["spec"]["levels"] == SOURCE["spec"]["levels"]  # type: ignore[index]
    assert await revision_of(hall) == "r2"  # no sound source refers to it, so only the controller judges it


async def test_an_empty_selector_and_an_empty_arm_reach_the_cluster(site: Bench):
    tree = {**SOURCE, "spec": {"nodeSelector": {}, "levels": ["example.net/rack"], "nodeLabels": {}}}
    site.push({"source.yaml": document(tree)})
    await site.until_ready()
    assert (await site.get("topologysources", "hall-7", group=WORKER, namespace=""))["spec"] == tree["spec"]
    await site.request()
    assert (await site.status())["counts"].get("drifted", 0) == 0


async def test_a_source_is_waited_for_until_its_newest_generation_is_ready(site: Bench):
    await site.sync(targetNamespace="lab", wait=True, timeout="1h")
    tree = {**SOURCE, "spec": {"nodeSelector": {}, "levels": ["example.net/rack"], "nodeLabels": {}}}
    site.push({"source.yaml": document(tree)})

    async def waits() -> bool:
        return "newest generation is not observed" in str(await site.status())

    await until(waits, what="the Sync waits for the source")
    path = f"{site.path('topologysources', 'hall-7', group=WORKER, namespace='')}/status"
    condition = {"type": "Ready", "status": "False", "reason": "Stale", "message": "in use until noon"}
    moment = {"lastTransitionTime": "2026-11-30T08:00:00Z"}
    await site.admin.patch_merge(path, {"status": {"observedGeneration": 1, "conditions": [{**condition, **moment}]}})
    await until(lambda: _says(site, "in use until noon"), what="the Sync tells why the source is not ready")
    good = {**condition, **moment, "status": "True", "reason": "Observed", "message": ""}
    await site.admin.patch_merge(path, {"status": {"conditions": [good]}})
    await site.until_ready()

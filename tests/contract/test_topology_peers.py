"""The stand-ins for Kueue and Node Feature Discovery say what the real ones say (topology-scheduling.md, sections 5.4, 7.7 and 14.4).

Each test runs twice: on the stand-ins, and on nfd-master v0.19.0 and Kueue v0.17.0.  What Kueue writes for people, and which of two equal
domains it takes, is nowhere asked for.
"""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.contract.client import Api
from tests.doubles.apiserver import FakeApiServer
from tests.doubles.kueue import KueueStandIn
from tests.doubles.kueue_objects import assigned_hosts, condition
from tests.doubles.nfd import LABELS, NfdStandIn
from tests.doubles.peer_crds import FILE, install, published, rendered
from tests.support.kueue import (
    BASE,
    ZONE,
    cluster_queue,
    flavor,
    groups,
    local_queue,
    reason,
    topology,
    totals,
    workload,
)
from tests.support.topology_bench import Bench
from tests.support.topology_plane import WORKER_NAMESPACE, TopologyPlane

pytestmark = pytest.mark.contract

NAMESPACES = "/api/v1/namespaces"
# The stand-ins are in no group: they need not wait for what is built last.
REAL = [pytest.mark.peers, pytest.mark.needs("nfd", "kueue")]


@pytest.fixture(params=["stand-in", pytest.param("real", marks=REAL)])
def real(request: pytest.FixtureRequest) -> TopologyPlane | None:
    """The real components on their control plane, None for the stand-ins."""
    return request.getfixturevalue("peer_plane") if request.param == "real" else None


@pytest.fixture
async def bench(real: TopologyPlane | None) -> AsyncIterator[Bench]:
    """Both components on one server, twice."""
    async with aiohttp.ClientSession(headers={"User-Agent": "contract/1"}) as session:
        if real is not None:
            yield Bench(Api(session, real.plane.url, tls=real.plane.ssl_context), real=real)
            return
        async with FakeApiServer() as server:
            server.api.lag = 0
            install(server.api)
            api = Api(session, server.url, fake=server)
            for name in ("node-feature-discovery", WORKER_NAMESPACE):
                await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            made = Bench(api, kueue=KueueStandIn(server.api), nfd=NfdStandIn(server.api))
            await api.until(lambda: _is_served(made))
            yield made


async def _is_served(bench: Bench) -> bool:
    paths = (f"{BASE}/{plural}" for plural in ("topologies", "resourceflavors", "clusterqueues", "admissionchecks"))
    spaced = (f"{BASE}/namespaces/default/{plural}" for plural in ("workloads", "localqueues"))
    replies = [await bench.api.get(path) for path in (*paths, *spaced, bench.feature_path())]
    return all(reply.status == 200 for reply in replies)


async def _zones(bench: Bench, *, hosts: tuple[str, ...] = ("a1", "a2", "b1")) -> None:
    """A pool in zones a and b, one CPU for each host, with Topology and flavor `one`."""
    pool = {"example.net/pool": bench.mark}
    for host in hosts:
        await bench.node(host, {**pool, ZONE: host[0]}, cpu=1)
    await bench.make(f"{BASE}/topologies", topology(bench.name("one"), ZONE))
    await bench.make(f"{BASE}/resourceflavors", flavor(bench.name("one"), pool, levels=bench.name("one")))


async def _queue(bench: Bench, quotas: dict[str, int], **spec: Any) -> None:
    named = {bench.name(name): cpus for name, cpus in quotas.items()}
    await bench.make(f"{BASE}/clusterqueues", cluster_queue(bench.name("queue"), named, **spec))
    await bench.make(f"{BASE}/namespaces/default/localqueues", local_queue(bench.name("local"), bench.name("queue")))


async def _submit(bench: Bench, name: str, **how: Any) -> None:
    tree = workload(bench.name(name), bench.name("local"), **how)
    await bench.make(f"{BASE}/namespaces/default/workloads", tree)


async def _set(bench: Bench, spec: dict[str, Any]) -> None:
    await bench.merge(f"{BASE}/clusterqueues/{bench.name('queue')}", {"spec": spec})


def _hosts(bench: Bench, tree: Any) -> dict[str, int]:
    (item,) = tree["status"]["admission"]["podSetAssignments"]
    return {host.removeprefix(f"{bench.mark}-"): count for host, count in assigned_hosts(item).items()}


def _admitted(tree: Any) -> bool:
    return condition(tree, "Admitted") == "True"


# -- Kueue: Active and the counters ----------------------------------------------------------------------------------


async def test_a_queue_lists_every_flavor_with_its_counters_once_it_is_observed(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    queue = await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "True/Ready")
    assert totals(queue, "flavorsReservation") == totals(queue, "flavorsUsage") == {bench.name("one"): "0"}
    resources = [each["resources"] for each in queue["status"]["flavorsReservation"]]
    assert resources == [[{"name": "cpu", "borrowed": "0", "total": "0"}]]
    assert queue["status"].get("reservingWorkloads", 0) == 0

    await _submit(bench, "job", count=2, cpu="1")
    queue = await bench.until_queue("queue", lambda tree: tree["status"].get("admittedWorkloads") == 1)
    assert totals(queue, "flavorsReservation") == totals(queue, "flavorsUsage") == {bench.name("one"): "2"}
    assert queue["status"]["reservingWorkloads"] == 1


async def test_the_first_reason_that_applies_is_told(bench: Bench) -> None:
    await bench.make(f"{BASE}/resourceflavors", flavor(bench.name("lost"), {"example.net/a": "b"}, levels="nowhere"))
    await _queue(bench, {"lost": 1, "missing": 1}, stopPolicy="Hold")
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/Stopped")
    await _set(bench, {"stopPolicy": "None"})
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/FlavorNotFound")
    await _set(bench, groups({bench.name("lost"): 1}))
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/TopologyNotFound")


async def test_a_check_that_is_missing_or_inactive_makes_a_queue_inactive(bench: Bench) -> None:
    await _zones(bench)
    check = bench.name("check")
    await _queue(bench, {"one": 3}, admissionChecksStrategy={"admissionChecks": [{"name": check}]})
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/AdmissionCheckNotFound")
    await _make_check(bench, active=False)
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/AdmissionCheckInactive")


async def test_a_condition_of_somebody_else_outlives_the_updates_of_kueue(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    path = f"{BASE}/clusterqueues/{bench.name('queue')}"
    since = "2031-04-02T06:00:00Z"
    entry = {"type": "TopologyReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": since}
    tree = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": bench.name("queue")}}
    reply = await bench.api.apply(f"{path}/status", {**tree, "status": {"conditions": [entry]}}, "topology")
    assert reply.status == 200, reply.body
    await _submit(bench, "job", cpu="1")
    queue = await bench.until_queue("queue", lambda tree: tree["status"].get("admittedWorkloads") == 1)
    assert reason(queue, "TopologyReady") == "True/Ready"


# -- Kueue: admission ------------------------------------------------------------------------------------------------


async def test_a_required_zone_holds_all_pods_or_nothing_is_admitted(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await _submit(bench, "large", count=3, required=ZONE, cpu="1")
    await bench.until_workload("large", lambda tree: reason(tree, "QuotaReserved") == "False/Pending")
    await _submit(bench, "fits", count=2, required=ZONE, cpu="1")
    tree = await bench.until_workload("fits", _admitted)
    assert _hosts(bench, tree) == {"a1": 1, "a2": 1}
    assert not _admitted((await bench.api.get(bench.workload_path("large"))).body)


async def test_a_workload_that_requires_nothing_may_spread(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await _submit(bench, "wide", count=3, cpu="1")
    tree = await bench.until_workload("wide", _admitted)
    assert _hosts(bench, tree) == {"a1": 1, "a2": 1, "b1": 1}


async def test_quota_that_is_used_up_keeps_a_workload_waiting(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 1})
    await _submit(bench, "two", count=2, cpu="1")
    await bench.until_workload("two", lambda tree: reason(tree, "QuotaReserved") == "False/Pending")
    await _set(bench, groups({bench.name("one"): 2}))
    await bench.until_workload("two", _admitted)


async def test_nodes_that_are_closed_or_lack_a_level_do_not_count(bench: Bench) -> None:
    await _zones(bench, hosts=("a1",))
    pool = {"example.net/pool": bench.mark}
    await bench.node("levelless", pool, cpu=1)
    closed = await bench.node("closed", {**pool, ZONE: "a"}, cpu=1)
    await bench.merge(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": True}})
    await _queue(bench, {"one": 9})
    await _submit(bench, "two", count=2, cpu="1")
    await bench.until_workload("two", lambda tree: reason(tree, "QuotaReserved") == "False/Pending")
    await bench.merge(f"/api/v1/nodes/{closed}", {"spec": {"unschedulable": None}})
    tree = await bench.until_workload("two", _admitted)
    assert _hosts(bench, tree) == {"a1": 1, "closed": 1}


async def test_a_resource_that_no_group_covers_is_refused(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await _submit(bench, "memory", cpu="1", memory="1Gi")
    await bench.until_workload("memory", lambda tree: reason(tree, "QuotaReserved") == "False/Pending")


async def test_a_queue_without_groups_admits_what_requests_nothing(bench: Bench) -> None:
    await _queue(bench, {})
    await _submit(bench, "asks", cpu="1")
    await bench.until_workload("asks", lambda tree: reason(tree, "QuotaReserved") == "False/Pending")
    await _submit(bench, "modest")
    await bench.until_workload("modest", _admitted)


async def test_a_plan_that_repeats_a_resource_is_stored_where_no_webhook_is(bench: Bench) -> None:
    (one,), (two,) = (groups({name: 1})["resourceGroups"] for name in ("one", "two"))
    tree = cluster_queue(bench.name("queue"), {}, resourceGroups=[one, two])
    await bench.make(f"{BASE}/clusterqueues", tree)
    borrowing = cluster_queue(bench.name("borrows"), {"one": 1})
    borrowing["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "1"
    assert (await bench.api.create(f"{BASE}/clusterqueues", borrowing)).status == 422


# -- Kueue: hold and drain -------------------------------------------------------------------------------------------


async def test_a_drain_evicts_and_counts_until_the_job_has_stopped_and_admits_again_afterwards(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await _submit(bench, "job", count=2, cpu="1")
    await bench.until_workload("job", _admitted)

    bench.evicts = False
    await _set(bench, {"stopPolicy": "HoldAndDrain"})
    await bench.until_workload("job", lambda tree: reason(tree, "Evicted") == "True/ClusterQueueStopped")
    queue = await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "False/Stopped")
    assert queue["status"]["reservingWorkloads"] == 1
    assert totals(queue, "flavorsReservation") == {bench.name("one"): "2"}

    bench.evicts = True
    await bench.until_queue("queue", lambda tree: tree["status"].get("reservingWorkloads", 0) == 0)
    queue = await bench.until_queue("queue", lambda tree: tree["status"].get("admittedWorkloads", 0) == 0)
    assert totals(queue, "flavorsReservation") == {bench.name("one"): "0"}
    await bench.until_workload("job", lambda tree: reason(tree, "QuotaReserved") == "False/Inadmissible")

    await _set(bench, {"stopPolicy": "None"})
    tree = await bench.until_workload("job", _admitted)
    assert condition(tree, "Evicted") == "False"


async def test_a_hold_keeps_what_runs_and_takes_reservations_that_wait_for_a_check(bench: Bench) -> None:
    await _zones(bench)
    await _make_check(bench, active=True)
    await _queue(bench, {"one": 3}, admissionChecksStrategy={"admissionChecks": [{"name": bench.name("check")}]})
    await _submit(bench, "runs", cpu="1")
    await bench.until_workload("runs", lambda tree: condition(tree, "QuotaReserved") == "True")
    await _check_ready(bench, "runs")
    await bench.until_workload("runs", _admitted)
    await _submit(bench, "waits", cpu="1")
    await bench.until_workload("waits", lambda tree: condition(tree, "QuotaReserved") == "True")

    await _set(bench, {"stopPolicy": "Hold"})
    tree = await bench.until_workload("waits", lambda tree: reason(tree, "QuotaReserved") == "False/Inadmissible")
    assert "admission" not in tree["status"]
    queue = await bench.until_queue("queue", lambda tree: tree["status"].get("reservingWorkloads") == 1)
    assert queue["status"]["admittedWorkloads"] == 1
    assert condition((await bench.api.get(bench.workload_path("runs"))).body, "Evicted") != "True"


async def _make_check(bench: Bench, *, active: bool) -> None:
    name = bench.name("check")
    tree = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": name}}
    made = await bench.make(f"{BASE}/admissionchecks", {**tree, "spec": {"controllerName": "example.net/check"}})
    if active:
        since = "2031-04-02T06:00:00Z"
        told = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": since}
        current = (await bench.api.get(f"{BASE}/admissionchecks/{name}")).body
        metadata = {"name": name, "resourceVersion": current["metadata"]["resourceVersion"]}
        body = {**made, "metadata": metadata, "status": {"conditions": [told]}}
        done = await bench.api.merge(f"{BASE}/admissionchecks/{name}/status", {"status": body["status"]})
        assert done.status == 200, done.body


async def _check_ready(bench: Bench, name: str) -> None:
    path = bench.workload_path(name)
    tree = await bench.until_object(path, lambda tree: tree["status"].get("admissionChecks"))
    checks = [{**each, "state": "Ready"} for each in tree["status"]["admissionChecks"]]
    await bench.merge(f"{path}/status", {"status": {"admissionChecks": checks}})


# -- Kueue: objects that others refer to -----------------------------------------------------------------------------


async def test_what_a_queue_refers_to_only_terminates_and_the_queue_stays_ready(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await bench.until_queue("queue", lambda tree: reason(tree, "Active") == "True/Ready")
    paths = [f"{BASE}/{plural}/{bench.name('one')}" for plural in ("resourceflavors", "topologies")]
    for path in paths:
        await bench.until_object(path, lambda tree: "kueue.x-k8s.io/resource-in-use" in tree["metadata"]["finalizers"])
        await bench.api.delete(path)
    await _submit(bench, "job", cpu="1")
    await bench.until_workload("job", _admitted)
    for path in paths:
        assert (await bench.api.get(path)).body["metadata"]["deletionTimestamp"]
    queue = await bench.until_queue("queue", lambda tree: tree["status"].get("admittedWorkloads") == 1)
    assert reason(queue, "Active") == "True/Ready"

    # Dropped in place although it is in use: the workload runs on, is counted, and nothing says on what.
    await _set(bench, {"resourceGroups": None})
    queue = await bench.until_queue("queue", lambda tree: not totals(tree, "flavorsReservation"))
    assert (queue["status"]["reservingWorkloads"], totals(queue, "flavorsUsage")) == (1, {})
    for path in paths:
        await bench.until(lambda path=path: bench.api.is_gone(path))  # type: ignore[misc]
    assert _admitted((await bench.api.get(bench.workload_path("job"))).body)


async def test_a_queue_that_is_deleted_stays_until_it_is_empty_and_evicts_nobody(bench: Bench) -> None:
    await _zones(bench)
    await _queue(bench, {"one": 3})
    await _submit(bench, "job", cpu="1")
    await bench.until_workload("job", _admitted)
    path = f"{BASE}/clusterqueues/{bench.name('queue')}"
    await bench.until_object(path, lambda tree: "kueue.x-k8s.io/resource-in-use" in tree["metadata"]["finalizers"])
    await bench.api.delete(path)
    assert condition((await bench.api.get(bench.workload_path("job"))).body, "Evicted") != "True"
    assert (await bench.api.get(path)).body["metadata"]["deletionTimestamp"]
    await bench.api.delete(bench.workload_path("job"))
    await bench.until(lambda: bench.api.is_gone(path))


# -- Node Feature Discovery ------------------------------------------------------------------------------------------

TG = "topology.gpustack.ai"


async def _until_labels(bench: Bench, node: str, wanted: dict[str, str]) -> None:
    async def shown() -> bool:
        return await bench.node_labels(node) == wanted

    await bench.until(shown)


async def _settled(bench: Bench) -> None:
    """Wait until a change after all others has had its effect."""
    node = await bench.node("fence", {})
    await bench.feature("fence", node, {f"{TG}/zone": "fence"})
    await _until_labels(bench, node, {f"{TG}/zone": "fence"})


async def test_labels_appear_and_are_remembered_in_an_annotation(bench: Bench) -> None:
    node = await bench.node("n", {"example.net/own": "1"})
    await bench.feature("f", node, {f"{TG}/zone": "a", f"{TG}/rack": "7", "bare": "x"})
    bare = "feature.node.kubernetes.io/bare"
    await _until_labels(bench, node, {"example.net/own": "1", f"{TG}/zone": "a", f"{TG}/rack": "7", bare: "x"})
    tree = await bench.until_object(f"/api/v1/nodes/{node}", lambda tree: LABELS in tree["metadata"]["annotations"])
    assert tree["metadata"]["annotations"][LABELS] == f"bare,{TG}/rack,{TG}/zone"


async def test_the_last_name_wins_after_the_objects_of_its_own_namespace(bench: Bench) -> None:
    node = await bench.node("n", {})
    await bench.feature("b", node, {f"{TG}/zone": "b", f"{TG}/rack": "b"})
    await bench.feature("a", node, {f"{TG}/zone": "a", f"{TG}/rack": "a", f"{TG}/hall": "a"})
    await bench.feature("z", node, {f"{TG}/hall": "z", f"{TG}/row": "z"}, namespace="node-feature-discovery")
    wanted = {f"{TG}/zone": "b", f"{TG}/rack": "b", f"{TG}/hall": "a", f"{TG}/row": "z"}
    await _until_labels(bench, node, wanted)


async def test_labels_go_with_their_object_and_foreign_ones_stay(bench: Bench) -> None:
    node = await bench.node("n", {"example.net/own": "1", "example.net/rack": "7"})
    await bench.feature("f", node, {f"{TG}/zone": "a", f"{TG}/rack": "7"})
    await _until_labels(
        bench, node, {"example.net/own": "1", "example.net/rack": "7", f"{TG}/zone": "a", f"{TG}/rack": "7"}
    )
    await bench.merge(bench.feature_path("f"), {"spec": {"labels": {f"{TG}/rack": None}}})
    await _until_labels(bench, node, {"example.net/own": "1", "example.net/rack": "7", f"{TG}/zone": "a"})
    await bench.api.delete(bench.feature_path("f"))
    await _until_labels(bench, node, {"example.net/own": "1", "example.net/rack": "7"})
    assert LABELS not in (await bench.api.get(f"/api/v1/nodes/{node}")).body["metadata"]["annotations"]


async def test_labels_of_kubernetes_and_unfit_values_are_left_out(bench: Bench) -> None:
    node = await bench.node("n", {})
    labels = {
        "topology.kubernetes.io/zone": "a",
        "kubernetes.io/zone": "a",
        "profile.node.kubernetes.io/p": "1",
        "sub.feature.node.kubernetes.io/p": "1",
        f"{TG}/bad": "not a value",
        f"{TG}/template": "@no.such.feature",
        f"{TG}/zone": "a",
    }
    await bench.feature("f", node, labels)
    allowed = ("profile.node.kubernetes.io/p", "sub.feature.node.kubernetes.io/p", f"{TG}/zone")
    await _until_labels(bench, node, {key: labels[key] for key in allowed})


async def test_a_node_without_any_annotation_waits_for_one(bench: Bench) -> None:
    node = await bench.node("n", {}, annotated=False)
    await bench.feature("f", node, {f"{TG}/zone": "a"})
    await _settled(bench)
    assert await bench.node_labels(node) == {}
    await bench.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"example.net/made-by": "tests"}}})
    await _until_labels(bench, node, {f"{TG}/zone": "a"})


async def test_a_change_of_other_metadata_goes_unnoticed(bench: Bench) -> None:
    node, other = await bench.node("n", {}), await bench.node("m", {})
    await bench.feature("f", node, {f"{TG}/zone": "a"})
    await _until_labels(bench, node, {f"{TG}/zone": "a"})
    moved = {"metadata": {"labels": {"nfd.node.kubernetes.io/node-name": other}}}
    await bench.merge(bench.feature_path("f"), moved)
    await _settled(bench)
    assert (await bench.node_labels(node), await bench.node_labels(other)) == ({f"{TG}/zone": "a"}, {})


async def test_a_node_that_comes_back_under_its_name_has_no_labels_until_its_object_changes(bench: Bench) -> None:
    node = await bench.node("n", {})
    await bench.feature("f", node, {f"{TG}/zone": "a"})
    await _until_labels(bench, node, {f"{TG}/zone": "a"})
    await bench.api.delete(f"/api/v1/nodes/{node}")
    await bench.until(lambda: bench.api.is_gone(f"/api/v1/nodes/{node}"))
    await bench.node("n", {})
    await _settled(bench)
    assert await bench.node_labels(node) == {}
    await bench.merge(bench.feature_path("f"), {"spec": {"labels": {f"{TG}/zone": "b"}}})
    await _until_labels(bench, node, {f"{TG}/zone": "b"})


async def test_what_was_deleted_while_it_was_away_leaves_its_labels_until_the_next_event(bench: Bench) -> None:
    node = await bench.node("n", {})
    await bench.feature("f", node, {f"{TG}/zone": "a", f"{TG}/rack": "7"})
    await _until_labels(bench, node, {f"{TG}/zone": "a", f"{TG}/rack": "7"})
    bench.stop_nfd()
    await bench.api.delete(bench.feature_path("f"))
    bench.start_nfd()
    await _settled(bench)
    assert await bench.node_labels(node) == {f"{TG}/zone": "a", f"{TG}/rack": "7"}
    await bench.feature("g", node, {f"{TG}/zone": "b"})
    await _until_labels(bench, node, {f"{TG}/zone": "b"})


# -- definitions -----------------------------------------------------------------------------------------------------


async def test_the_definitions_of_the_double_are_those_of_the_pinned_modules() -> None:
    assert FILE.read_text() == rendered(await published())

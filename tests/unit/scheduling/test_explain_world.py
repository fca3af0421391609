"""What stands around a Node and a queue (topology-scheduling.md, 9.3 and 12: B9 and B10)."""

from datetime import UTC, datetime

import pytest

from gitops_ctl.scheduling.explain_world import node_lines, queue_lines
from gitops_ctl.scheduling.forecast import Live
from gitops_ctl.scheduling.options import Options
from tests.support.scheduling_objects import (
    HOSTNAME,
    RACK,
    REGION,
    ZONE,
    ZONED,
    ZONED_FLAVOR,
    feature,
    flavors,
    local_queue,
    node,
    nodes,
    queue,
    source,
    topology,
    workload,
)

NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
HALL = {"region": "north", "zone": "hall7"}
DRAINING = {
    "topology.gpustack.ai/migration-phase": "draining",
    "topology.gpustack.ai/migration-stop-policy": "None",
    "topology.gpustack.ai/migration-started-at": "2031-04-02T05:20:00Z",
}


def live(**members):
    standing = nodes("a", "b")
    told = {
        "nodes": standing,
        "sources": (source(REGION, ZONE),),
        "features": (feature("a", **HALL), feature("b", **HALL)),
        "flavors": flavors(standing),
        "topologies": (topology(REGION, ZONE),),
        "queues": (queue(standing),),
        "local_queues": (local_queue(),),
    }
    return Live(**{**told, **members})


def about_node(name, cluster=None):
    return {line.what: line.text for line in node_lines(name, cluster or live(), now=NOW, options=Options())}


def about_queue(tree, cluster=None, *, options=None):
    lines = queue_lines(tree, cluster or live(), now=NOW, options=options or Options())
    return {line.what: line.text for line in lines}


def test_a_node_is_explained_with_revision_labels_flavor_and_queue():
    found = about_node("a")
    assert found["source hall"] == "counts: Ready"
    assert found["inventory"] == "ConfigMap of source hall, revision hall-7/1, applied 2031-04-02T05:30:00Z"
    assert found[f"level {REGION}"].startswith("north, by NodeFeature gpustack-topology-")
    assert found["profile"] == ZONED
    assert found["flavors"] == ZONED_FLAVOR
    assert found["queue pool"] == f"serves it by flavor {ZONED_FLAVOR}"


def test_a_label_that_nfd_has_not_carried_over_is_named():
    asked = live(features=(feature("a", **HALL, rack="r1"),))
    assert "asks for r1, the Node lacks it: see nfd-master" in about_node("a", asked)[f"label {RACK}"]
    other = live(features=(feature("a", region="south", zone="hall7"),))
    assert "asks for south: see nfd-master" in about_node("a", other)[f"level {REGION}"]


def test_a_level_that_somebody_else_set_is_said_to_be_theirs():
    assert "somebody else set" in about_node("a", live(features=()))[f"level {ZONE}"]


def test_a_source_with_a_bad_snapshot_says_so_beside_the_revision_in_use():
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Stale"},
        {"type": "Valid", "status": "False", "reason": "SnapshotInvalid", "message": "rule 8, line 4: node x"},
    ]
    found = about_node("a", live(sources=(source(REGION, ZONE, conditions=conditions),)))
    assert "Stale, and profiles are kept" in found["source hall"]
    assert found["inventory problem"] == "SnapshotInvalid: rule 8, line 4: node x"


def test_a_source_that_reads_labels_has_no_revision():
    reading = source(REGION, ZONE)
    reading["spec"] = {"nodeSelector": {}, "levels": [REGION, ZONE], "nodeLabels": {}}
    assert about_node("a", live(sources=(reading,)))["inventory"].startswith("the labels of the Node itself")


def test_a_node_in_no_pool_is_told():
    assert about_node("a", live(queues=()))["queue"] == "no managed queue has the Node in its pool"
    fresh = queue({"z": node("z", profile="fnv64-87bf574bea2a4f23")}, levels=(HOSTNAME,))
    assert "no flavor of it yet" in about_node("a", live(queues=(fresh,)))["queue pool"]


def test_an_unknown_node_is_no_explanation():
    with pytest.raises(KeyError):
        about_node("ghost")


def test_a_drain_is_explained_with_its_age_and_with_who_still_holds_quota():
    tree = queue(nodes("a", "b"), reserved=2, marks=DRAINING, policy="HoldAndDrain")
    stuck = (
        workload("train-1", queue="pool", flavor=ZONED_FLAVOR, evicted=True),
        workload("train-2", queue="pool", flavor=ZONED_FLAVOR),
        workload("other", queue="other"),
    )
    found = about_queue(tree, live(workloads=stuck))
    assert found["drain"] == "draining, age 40m"
    assert "2 Workloads reserve, 2 are admitted" in found["condition"]
    assert "the drain began 40m ago" in found["DrainStuck"]
    assert found["holds quota default/train-1"] == (
        f"since 2031-04-02T05:00:00Z (1h ago), flavors {ZONED_FLAVOR}, evicted (1h ago) and not gone"
    )
    assert "evicted" not in found["holds quota default/train-2"]
    assert found[f"usage {ZONED_FLAVOR}"] == "reserved 2 cpu, used 2 cpu"
    assert "holds quota default/other" not in found
    assert found["Active"].startswith("False/Stopped")
    assert found["stop policy"] == "HoldAndDrain; Git wants None, carried out None"


def test_a_queue_that_serves_says_what_its_plan_is():
    tree = queue(nodes("a", "b"))
    tree["status"]["conditions"].append(
        {"type": "TopologyReady", "status": "True", "reason": "Ready", "lastTransitionTime": "2031-04-02T05:59:00Z"}
    )
    found = about_queue(tree)
    assert found["TopologyReady"] == "True/Ready (1m ago)"
    assert found["pool"] == "2 managed Nodes: a, b"
    assert found[f"flavor {ZONED_FLAVOR}"] == "2 Nodes, quota 8"
    assert found["condition"] == "True/Ready"


def test_an_unsettled_node_is_named_with_what_it_lacks():
    wrong = {"a": node("a"), "b": node("b", profile="fnv64-87bf574bea2a4f23")}
    assert (
        f"node b lacks topology.gpustack.ai/profile={ZONED}"
        == about_queue(queue(nodes("a", "b")), live(nodes=wrong))["unsettled"]
    )
    both = {name: node(name, profile="fnv64-87bf574bea2a4f23") for name in ("a", "b")}
    found = about_queue(queue(nodes("a", "b")), live(nodes=both))
    assert (found["unsettled"].partition(" lacks ")[0], found["unsettled Nodes"]) == ("node a", "2: a, b")
    late = feature("a", **HALL, rack="r1", at="2031-04-02T05:59:30Z")
    found = about_queue(queue(nodes("a", "b")), live(features=(late,)))
    assert found["unsettled"] == f"node a lacks {RACK}=r1"
    going = {"a": node("a"), "b": node("b", profile="fnv64-87bf574bea2a4f23")}
    going["b"]["metadata"]["deletionTimestamp"] = "2031-04-02T05:59:00Z"
    assert "unsettled" not in about_queue(queue(nodes("a", "b")), live(nodes=going))


def test_what_waits_in_vain_is_named_with_the_reason():
    pending = (workload("big", requests=("cpu", "memory")), workload("racked", required=RACK))
    found = about_queue(queue(nodes("a", "b")), live(workloads=pending))
    assert "default/big" in found["resource memory"]
    assert f"no flavor of the queue has the level {RACK}" in found["workload default/racked"]


def test_a_host_name_that_equals_a_domain_is_warned_of():
    same = nodes("a", "b")
    same["a"]["metadata"]["labels"][HOSTNAME] = "north"
    found = about_queue(queue(nodes("a", "b")), live(nodes=same))
    assert "equal on a" in found["warning"]


def test_a_time_that_cannot_be_read_has_no_age():
    odd = workload("odd", queue="pool")
    odd["status"]["conditions"] = []
    found = about_queue(queue(nodes("a", "b")), live(workloads=(odd,)))
    assert found["holds quota default/odd"].startswith("since unknown")

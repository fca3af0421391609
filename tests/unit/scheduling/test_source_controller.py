"""Passes of the source controller on an API server (topology-scheduling.md, 3.3, 3.5, 5, 9.1; cases 31 to 43).

Each case runs with our defaults and with those of the reference.
"""

import pytest

from gitops_ctl.core.errors import BlockedError
from gitops_ctl.scheduling.nodefeature import feature_name
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.sourceports import SOURCE
from gitops_ctl.scheduling.wakes import woken_by_feature, woken_by_node
from tests.support.source_bench import (
    HALL,
    NAMESPACE,
    RACK,
    STANDARD_REGION,
    STANDARD_ZONE,
    ZONE,
    SourceBench,
    snapshot,
)

FINALIZER = "worker.gpustack.ai/topology-source"


@pytest.fixture
def bench(source_bench):
    return source_bench


async def published(bench: SourceBench, nodes=None, **arm):
    """A source whose first revision is applied."""
    await bench.config_map(snapshot(nodes or {"node-a": HALL}))
    await bench.source(**arm)
    await bench.look()
    assert bench.condition()["reason"] == "Observed"


async def test_case_31_a_read_only_source_counts_its_nodes_and_writes_nothing_else(bench):
    await bench.client.patch_merge("/api/v1/nodes/node-a", {"metadata": {"labels": {"pool": "gpu"}}})
    bench.api.audit.clear()
    spec = {"nodeSelector": {"matchLabels": {"pool": "gpu"}}, "nodeLabels": {}}
    await bench.source(**spec)
    assert await bench.look() is None
    assert bench.words() == {"Ready": "True Observed", "Valid": "True Observed", "OwnershipConflict": "False ReadOnly"}
    status = bench.status()
    assert (status["sourceKind"], status["selectedNodes"], status["observedGeneration"]) == ("NodeLabels", 1, 1)
    assert not {"mutatedNodes", "conflictedNodes", "lastSuccessfulRefreshTime"} & set(status)
    assert bench.writes("nodes") == []
    assert "finalizers" not in bench.tree()["metadata"]


async def test_case_32_a_rack_below_two_zones_is_no_tree(bench):
    for name, zone in (("c", "zone-a"), ("d", "zone-b")):
        await bench.node(name, {ZONE: zone, RACK: "rack-shared"})
    await bench.source(levels=(ZONE, RACK), nodeLabels={})
    await bench.look()
    assert bench.words()["Ready"] == bench.words()["Valid"] == "False InvalidHierarchy"
    assert "rack-shared" in bench.condition("Valid")["message"]
    assert [(kind, reason) for kind, reason, _ in bench.told] == [("Warning", "InvalidHierarchy")]


async def test_case_33_a_snapshot_becomes_a_node_feature_and_no_write_to_the_node(bench):
    await published(bench)
    uid = bench.tree()["metadata"]["uid"]
    [feature] = bench.features
    assert feature["metadata"]["name"] == feature_name(uid, "node-a")
    assert feature["metadata"]["namespace"] == NAMESPACE
    assert feature["metadata"]["labels"] == {
        "nfd.node.kubernetes.io/node-name": "node-a",
        "topology.gpustack.ai/source-uid": uid,
    }
    [owner] = feature["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "worker.gpustack.ai/v1alpha1",
        "kind": "TopologySource",
        "name": "first",
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    assert feature["spec"] == {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": HALL}
    assert bench.words() == {
        "Ready": "True Observed",
        "Valid": "True Observed",
        "OwnershipConflict": "False NoConflict",
    }
    status = bench.status()
    assert (status["lastSuccessfulRevision"], status["mutatedNodes"], status["selectedNodes"]) == ("r1", 1, 2)
    assert bench.writes("nodes") == []
    assert bench.told == [("Normal", "Observed", "revision r1 is applied")]
    assert woken_by_feature([bench.tree()], feature) == ("first",)


async def test_the_finalizer_is_there_before_anything_else_is_written(bench):
    await bench.config_map(snapshot({"node-a": HALL}))
    await bench.source()
    bench.api.audit.clear()
    await bench.look()
    written = [(one.resource, one.subresource, one.verb) for one in bench.api.audit if one.verb != "get"]
    assert written == [
        ("topologysources", "", "patch"),
        ("nodefeatures", "", "create"),
        ("topologysources", "status", "patch"),
    ]
    assert bench.tree()["metadata"]["finalizers"] == [FINALIZER]
    assert (bench.status()["observedGeneration"], bench.status()["sourceKind"]) == (1, "ConfigMap")


async def test_case_34_a_config_map_that_is_gone_expires(bench):
    await published(bench)
    await bench.config_map(None)
    assert await bench.look(after=30) == 30.0
    assert (bench.words()["Ready"], bench.labels) == ("False Stale", {"node-a": HALL})
    assert await bench.look(after=90) is None
    assert (bench.words()["Ready"], bench.words()["Valid"]) == ("False Expired", "False ConfigMapReadFailed")
    assert (bench.features, bench.status()["mutatedNodes"]) == ([], 1)
    assert bench.status()["lastSuccessfulRevision"] == "r1"


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        pytest.param({STANDARD_REGION: "north", STANDARD_ZONE: "z1"}, {"node-c": {RACK: "r1"}}, id="case 35: equal"),
        pytest.param({STANDARD_REGION: "north"}, {}, id="case 36: missing"),
        pytest.param({STANDARD_REGION: "north", STANDARD_ZONE: "z2"}, {}, id="case 37: different"),
    ],
)
async def test_cases_35_to_37_standard_levels_are_compared_and_never_published(live, wanted, bench):
    await bench.node("node-c", live)
    bench.api.audit.clear()
    await bench.config_map(snapshot({"node-c": {STANDARD_REGION: "north", STANDARD_ZONE: "z1", RACK: "r1"}}))
    await bench.source(levels=(STANDARD_REGION, STANDARD_ZONE, RACK))
    await bench.look()
    assert bench.labels == wanted
    assert bench.condition()["reason"] == ("Observed" if wanted else "SnapshotInvalid")
    assert labels_of(bench.api.store.get(("", "nodes"), ("", "node-c"))) == live
    assert bench.writes("nodes") == []


async def test_case_38_what_somebody_edited_is_repaired_and_what_is_theirs_stays(bench):
    await published(bench)
    name = bench.features[0]["metadata"]["name"]

    def edit(tree):
        tree["spec"]["labels"][ZONE] = "elsewhere"
        tree["spec"]["features"]["flags"] = {"cpu.extra": {"elements": {"x": {}}}}
        tree["metadata"]["ownerReferences"] = []
        tree["metadata"]["labels"]["example.net/team"] = "network"

    wanted = bench.features[0]
    await bench.edit_feature(name, edit)
    await bench.look()
    [feature] = bench.features
    assert feature["spec"] == wanted["spec"]
    assert feature["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"]
    assert feature["metadata"]["labels"] == {**wanted["metadata"]["labels"], "example.net/team": "network"}
    assert bench.status()["mutatedNodes"] == 1
    await bench.look()
    assert "mutatedNodes" not in bench.status()


async def test_case_39_two_sources_over_the_same_nodes_take_back_what_they_wrote_until_one_goes(bench):
    await published(bench)
    await bench.source("second")
    assert await bench.look() == 60.0
    assert (bench.features, bench.status()["mutatedNodes"], bench.status()["conflictedNodes"]) == ([], 1, 2)
    assert bench.words() == {
        "Ready": "False OwnershipConflict",
        "Valid": "True Observed",
        "OwnershipConflict": "True OverlappingSources",
    }
    assert "second" in bench.condition("OwnershipConflict")["message"]
    await bench.client.delete(SOURCE.path(name="second"))
    await bench.look()
    assert (bench.labels, bench.words()["Ready"]) == ({"node-a": HALL}, "True Observed")
    assert "conflictedNodes" not in bench.status()


async def test_case_40_a_node_feature_that_lost_its_owner_is_known_and_goes(bench):
    await published(bench)
    await bench.edit_feature(
        bench.features[0]["metadata"]["name"], lambda tree: tree["metadata"].pop("ownerReferences")
    )
    await bench.config_map(snapshot({}, "r2"))
    await bench.look()
    assert (bench.features, bench.words()["Ready"]) == ([], "True Observed")
    assert bench.status()["lastSuccessfulRevision"] == "r2"


async def test_case_41_both_sides_of_a_conflict_name_each_other(bench):
    await bench.config_map(snapshot({"node-a": HALL}))
    for name in ("first", "second", "third"):
        await bench.source(name, nodeSelector={"matchLabels": {"pool": "gpu"}}, configMap=_arm())
    await bench.node("node-c", {"pool": "gpu"})
    await bench.config_map(snapshot({"node-c": HALL}))
    for name in ("first", "second"):
        await bench.look(name)
        others = ", ".join(sorted({"first", "second", "third"} - {name}))
        assert bench.status(name)["conflictedNodes"] == 1
        assert bench.condition("OwnershipConflict", name)["message"].endswith(others)


def _arm():
    reference = {"namespace": NAMESPACE, "name": "hall"}
    return {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "1m"}


async def test_case_42_a_source_that_becomes_read_only_deletes_its_features_and_its_finalizer(bench):
    await published(bench)
    await bench.source(nodeLabels={})
    await bench.look()
    assert bench.features == []
    assert not bench.tree()["metadata"].get("finalizers")
    assert bench.words()["Ready"] == "True Observed"
    assert (bench.status()["sourceKind"], bench.status()["mutatedNodes"]) == ("NodeLabels", 1)


async def test_case_43_what_happens_to_nodes_wakes_the_sources_that_care(bench):
    await bench.source()
    await bench.source("labels", nodeLabels={})
    trees = bench.all("topologysources", "worker.gpustack.ai")
    node = bench.api.store.get(("", "nodes"), ("", "node-a"))
    labelled = {**node, "metadata": {**node["metadata"], "labels": {ZONE: "z1"}}}
    assert woken_by_node(trees, None, node) == woken_by_node(trees, node, None) == ("first", "labels")
    assert woken_by_node(trees, node, labelled) == ("labels",)


async def test_a_source_that_is_deleted_takes_its_features_along_and_no_others(bench):
    await published(bench)
    foreign = {"metadata": {"name": "of-somebody"}, "spec": {"labels": {"example.net/rack": "x"}}}
    tree = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", **foreign}
    await bench.client.create(f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{NAMESPACE}/nodefeatures", tree)
    await bench.client.delete(SOURCE.path(name="first"))
    assert bench.tree()["metadata"]["deletionTimestamp"]
    bench.unseen = {"nodes", "sources", "features"}
    assert await bench.look() is None
    assert bench.tree() is None
    assert [one["metadata"]["name"] for one in bench.features] == ["of-somebody"]
    assert await bench.look() is None


async def test_the_finalizer_goes_only_after_a_fresh_look_at_the_node_features(bench):
    """What the cache has not seen yet would stay for good."""
    await published(bench)
    await bench.client.delete(SOURCE.path(name="first"))
    bench.restart(features=lambda: ())
    await bench.look()
    assert (bench.features, bench.tree()) == ([], None)


async def test_a_source_can_go_when_node_feature_discovery_is_gone(bench):
    await published(bench)
    await bench.client.delete(SOURCE.path(name="first"))
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await bench.client.delete(f"{definitions}/nodefeatures.nfd.k8s-sigs.io")
    bench.api.collect()
    assert bench.features == []
    await bench.look()
    assert bench.tree() is None


async def test_an_object_of_somebody_else_is_not_touched_and_fails_the_pass(bench):
    await bench.config_map(snapshot({"node-a": HALL, "node-b": HALL}))
    source = await bench.source()
    name = feature_name(source["metadata"]["uid"], "node-a")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "uid-of-x", "controller": True}
    tree = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"labels": {"a": "b"}},
    }
    before = await bench.client.create(f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{NAMESPACE}/nodefeatures", tree)
    with pytest.raises(BlockedError, match=f"another owner: {name}"):
        await bench.look()
    assert before in bench.features
    assert bench.labels["node-b"] == HALL
    assert "lastSuccessfulRevision" not in bench.status()
    assert [(kind, reason) for kind, reason, _ in bench.told] == [("Warning", "Blocked")]

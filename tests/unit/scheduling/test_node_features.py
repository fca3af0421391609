"""NodeFeatures: names, ownership, the plan of a pass, conflicts (topology-scheduling.md, 5; cases 33, 35, 38, 40 and 41)."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.nodefeature import feature_name, is_owned, node_of, overlap_of, plan_features
from gitops_ctl.scheduling.source import TopologySource

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/topology/node-feature-names.json").read_text())
NAMESPACE = "gpustack-system"
RACK = "topology.gpustack.ai/rack"
REGION = "topology.gpustack.ai/region"
SOURCE = TopologySource("hall-7", "uid-1", "ConfigMap", (REGION, RACK), {})
LABELS = {REGION: "north", RACK: "r1"}


def source(name, *, kind="ConfigMap", levels=(REGION,), selector=None):
    return TopologySource(name, f"uid-of-{name}", kind, levels, selector or {})


def plan(features, desired):
    return plan_features(features, desired=desired, source=SOURCE, namespace=NAMESPACE)


def made(*nodes, labels=LABELS):
    """NodeFeatures as the first pass makes them."""
    return [copy.deepcopy(one) for one in plan([], dict.fromkeys(nodes, labels)).creates]


def carried_out(features, found):
    gone = {one["metadata"]["name"] for one in found.deletes}
    new = {one["metadata"]["name"]: one for one in found.updates}
    kept = [one for one in features if one["metadata"]["name"] not in gone]
    return [*(new.get(one["metadata"]["name"], one) for one in kept), *found.creates]


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["id"])
def test_names_are_those_of_the_vectors(vector):
    assert feature_name(vector["sourceUID"], vector["nodeName"]) == vector["name"]


@pytest.mark.parametrize("vector", VECTORS["negativeVectors"], ids=lambda vector: vector["id"])
def test_no_name_is_what_a_mistake_gives(vector):
    name = feature_name(vector["sourceUID"], vector["nodeName"])
    assert name == vector["correctName"] != vector["wrongName"]


def test_a_described_node_gets_one_node_feature_with_exactly_its_labels():
    """Cases 33 and 35: what is in the labels is decided before; here nothing is added."""
    (feature,) = made("node-a", labels={RACK: "r1"})
    assert feature == {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": feature_name("uid-1", "node-a"),
            "namespace": NAMESPACE,
            "labels": {
                "nfd.node.kubernetes.io/node-name": "node-a",
                "topology.gpustack.ai/source-uid": "uid-1",
            },
            "ownerReferences": [
                {
                    "apiVersion": "worker.gpustack.ai/v1alpha1",
                    "kind": "TopologySource",
                    "name": "hall-7",
                    "uid": "uid-1",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": {RACK: "r1"}},
    }


def test_a_node_without_labels_gets_none_and_loses_its_own():
    assert plan([], {"node-a": {}}).mutations == 0
    assert [node_of(one) for one in plan(made("node-a"), {"node-a": {}}).deletes] == ["node-a"]


def test_a_pass_over_what_is_right_writes_nothing():
    assert plan(made("a", "b"), {"a": LABELS, "b": LABELS}).mutations == 0


def test_an_absent_mapping_equals_an_empty_one():
    (feature,) = made("a")
    del feature["spec"]["features"]
    assert plan([feature], {"a": LABELS}).mutations == 0


def test_drift_is_repaired_and_what_others_added_to_the_metadata_stays():
    """Case 38."""
    (feature,) = made("a")
    feature["metadata"] |= {"resourceVersion": "7", "annotations": {"who": "else"}}
    feature["metadata"]["labels"]["extra"] = "kept"
    feature["spec"]["labels"] = {RACK: "edited", "added": "x"}
    feature["spec"]["features"]["flags"] = {"a": {}}
    feature["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other"}]
    found = plan([feature], {"a": LABELS})
    (repaired,) = found.updates
    assert found.mutations == 1
    assert repaired["spec"]["labels"] == LABELS
    assert repaired["spec"]["features"] == {"flags": {}, "attributes": {}, "instances": {}}
    assert repaired["metadata"]["labels"]["extra"] == "kept"
    assert repaired["metadata"]["annotations"] == {"who": "else"}
    assert repaired["metadata"]["resourceVersion"] == "7"
    assert [owner["uid"] for owner in repaired["metadata"]["ownerReferences"]] == ["other", "uid-1"]
    assert plan([repaired], {"a": LABELS}).mutations == 0


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: one["metadata"]["labels"].pop("topology.gpustack.ai/source-uid"),
        lambda one: one["metadata"]["ownerReferences"].clear(),
        lambda one: one["metadata"]["ownerReferences"][0].update(controller=False),
        lambda one: one["metadata"]["ownerReferences"][0].update(blockOwnerDeletion=True),
        lambda one: one["spec"]["labels"].clear(),
        lambda one: one["spec"]["labels"].update(more="x"),
        lambda one: one["spec"]["features"].update(instances={"a": {}}),
        lambda one: (one["metadata"]["ownerReferences"].clear(), one["metadata"]["labels"].clear()),
    ],
)
def test_every_edit_is_repaired_by_one_update(edit):
    (feature,) = made("a")
    edit(feature)
    found = plan([feature], {"a": LABELS})
    assert (len(found.updates), found.mutations) == (1, 1)
    assert plan(carried_out([feature], found), {"a": LABELS}).mutations == 0


def test_an_object_with_another_node_name_is_replaced():
    (feature,) = made("a")
    feature["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"] = "b"
    found = plan([feature], {"a": LABELS})
    assert (len(found.deletes), len(found.creates), found.mutations) == (1, 1, 2)


def test_a_stripped_owner_reference_does_not_hide_an_object():
    """Case 40: the revision names no node any more."""
    (feature,) = made("node-a")
    feature["metadata"]["ownerReferences"] = []
    assert is_owned(feature, "uid-1")
    assert [node_of(one) for one in plan([feature], {}).deletes] == ["node-a"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: one["metadata"].update(name="gpustack-topology-0000000000000000"),
        lambda one: one["metadata"]["labels"].update({"topology.gpustack.ai/source-uid": "uid-2"}),
        lambda one: one["metadata"]["labels"].pop("nfd.node.kubernetes.io/node-name"),
    ],
)
def test_without_a_controller_label_and_name_must_agree(edit):
    (feature,) = made("a")
    feature["metadata"]["ownerReferences"] = []
    edit(feature)
    assert not is_owned(feature, "uid-1")
    assert plan([feature], {}).deletes == ()


def test_the_controller_decides_and_either_version_of_the_kind_names_it():
    """D1."""
    (feature,) = made("a")
    feature["metadata"]["ownerReferences"][0]["apiVersion"] = "worker.gpustack.ai/v1"
    assert is_owned(feature, "uid-1")
    assert plan([feature], {"a": LABELS}).mutations == 0
    feature["metadata"]["ownerReferences"][0]["kind"] = "Other"
    assert not is_owned(feature, "uid-1")


def test_an_object_of_another_owner_is_neither_adopted_nor_touched():
    (feature,) = made("a")
    feature["metadata"]["ownerReferences"][0]["uid"] = "uid-2"
    found = plan([feature], {"a": LABELS, "b": LABELS})
    assert found.foreign == (feature["metadata"]["name"],)
    assert [node_of(one) for one in found.creates] == ["b"]
    assert (found.deletes, found.updates) == ((), ())


def test_features_of_others_are_left_alone():
    other = {
        "metadata": {"name": "node-a", "labels": {"nfd.node.kubernetes.io/node-name": "node-a"}},
        "spec": {"labels": {"x": "y"}},
    }
    assert plan([other], {}).mutations == 0


def test_two_writing_sources_with_a_common_level_and_node_conflict():
    """Case 41."""
    nodes = {"node-a": {"hall": "7"}, "node-b": {}}
    second = source("second", selector={"matchLabels": {"hall": "7"}})
    found = overlap_of(source("first"), [source("first"), second], nodes)
    assert (found.sources, found.nodes) == (("second",), ("node-a",))
    both = overlap_of(source("first"), [source("z"), second], nodes)
    assert (both.sources, both.nodes) == (("second", "z"), ("node-a", "node-b"))


@pytest.mark.parametrize(
    "other",
    [
        source("o", kind="NodeLabels"),
        source("o", levels=(RACK,)),
        source("o", selector={"matchLabels": {"hall": "8"}}),
    ],
)
def test_no_common_writer_level_or_node_is_no_conflict(other):
    nodes = {"node-a": {"hall": "7"}}
    assert overlap_of(source("first"), [other], nodes).nodes == ()
    assert overlap_of(other, [source("first")], nodes).nodes == ()


NODES = st.sampled_from(["a", "b", "c", "d"])
DESIRED = st.dictionaries(NODES, st.dictionaries(st.sampled_from([REGION, RACK]), st.sampled_from(["1", "2"])))
EDITS = st.lists(st.tuples(NODES, st.sampled_from(["strip", "label", "value", "delete", "move"])), max_size=6)


@pytest.mark.property
@given(DESIRED, DESIRED, EDITS)
def test_one_pass_repairs_everything_and_the_next_writes_nothing(before, after, edits):
    features = {node_of(one): copy.deepcopy(one) for one in plan([], before).creates}
    for node, edit in edits:
        if node not in features:
            continue
        one = features[node]
        match edit:
            case "strip":
                one["metadata"]["ownerReferences"] = []
            case "label":
                one["metadata"]["labels"]["more"] = "x"
            case "value":
                one["spec"]["labels"] = {"z": "z"}
            case "move":
                one["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"] = "z"
            case "delete":
                del features[node]
    live = list(features.values())
    result = carried_out(live, plan(live, after))
    again = plan(result, after)
    # An object without owner and with another node name is nobody's: it stays until its own node is described again.
    assert again.mutations == 0
    labels = {node_of(one): one["spec"]["labels"] for one in result if is_owned(one, "uid-1")}
    assert labels == {node: labels for node, labels in after.items() if labels}

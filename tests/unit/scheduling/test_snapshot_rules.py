"""The content and publish stages of a snapshot, and the drop guard (topology-scheduling.md, 4.2 to 4.5, 12; cases 26 to 30)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.drop_guard import ALLOW_NODE_DROP, drop_of, drop_problem
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot import Place, Snapshot, decode
from gitops_ctl.scheduling.snapshot_rules import (
    Reach,
    content_problems,
    publish_problems,
    publishable,
    tolerated_nodes,
)

REGION, ZONE, RACK = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.gpustack.ai/rack"
LEVELS = (REGION, ZONE, RACK)
NODE = {REGION: "north", ZONE: "a"}
REACH = Reach(LEVELS, selected={"node-a": NODE, "node-b": NODE}, existing=frozenset({"node-a", "node-b", "node-c"}))
BOTH = pytest.mark.parametrize("options", [Options(), Options.reference()], ids=["ours", "reference-defaults"])


def snapshot(nodes, *, api_version="topology.gpustack.ai/v1alpha1", revision="a"):
    return Snapshot(api_version, revision, nodes)


def rules(nodes, reach=REACH, options=None, **members):
    return [p.rule for p in content_problems(snapshot(nodes, **members), reach, options=options or Options())]


@BOTH
def test_two_nodes_of_one_zone_in_different_racks_are_accepted(options):
    """Case 26."""
    nodes = {"node-a": {**NODE, RACK: "r1"}, "node-b": {**NODE, RACK: "r2"}}
    assert rules(nodes, options=options) == []


@BOTH
def test_an_unknown_node_is_refused(options):
    """Case 27."""
    assert rules({"unknown": NODE}, options=options) == ["8"]


@BOTH
def test_a_level_without_its_coarser_one_is_refused(options):
    """Case 28."""
    assert rules({"node-a": {ZONE: "a"}}, options=options) == ["12"]


@BOTH
def test_a_rack_in_two_zones_is_refused(options):
    """Case 29."""
    nodes = {"node-a": {**NODE, RACK: "r1"}, "node-b": {REGION: "north", ZONE: "b", RACK: "r1"}}
    problems = content_problems(snapshot(nodes), REACH, options=options)
    assert [(problem.rule, problem.node, problem.level) for problem in problems] == [("13", "node-b", 2)]


@BOTH
def test_a_key_that_is_no_level_is_refused(options):
    """Case 30."""
    assert rules({"node-a": {**NODE, "topology.gpustack.ai/fabric": "f"}}, options=options) == ["9"]


def test_the_examples_of_the_contract_break_their_rules():
    """Section 4.4, judged as they are written."""
    decoded = decode("{apiVersion: topology.gpustack.ai/v1, revision: a, nodes: {}}").snapshot
    assert [p.rule for p in content_problems(decoded, REACH, options=Options())] == ["6"]
    decoded = decode("apiVersion: topology.gpustack.ai/v1alpha1\nrevision: '  '\nnodes: {}\n").snapshot
    assert [p.rule for p in content_problems(decoded, REACH, options=Options())] == ["7"]
    hall = Reach(("topology.gpustack.ai/hall", RACK, "feature.gpustack.ai/fabric.domain"))
    parted = {"n1": {hall.levels[0]: "A", RACK: "r1"}, "n2": {hall.levels[0]: "B", RACK: "r1"}}
    assert rules(parted, hall) == ["13"]
    assert rules({"n": {hall.levels[0]: "A", RACK: "r1", hall.levels[2]: "x"}}, hall) == ["10"]
    profile = Reach(("topology.gpustack.ai/profile",))
    assert rules({"n": {"topology.gpustack.ai/profile": "x"}}, profile) == ["10"]


def test_a_level_that_only_a_prefix_lets_the_source_write():
    reach = Reach(("datacenter.example/row",), write_prefix="datacenter.example/")
    assert rules({"n": {"datacenter.example/row": "r"}}, reach) == []
    assert rules({"n": {"datacenter.example/row": "r"}}, Reach(reach.levels)) == ["10"]


@pytest.mark.parametrize("value", ["", "-a", "a b", "a" * 64, "a\n", "é"])
def test_a_value_that_no_label_can_hold_is_refused(value):
    assert rules({"node-a": {**NODE, RACK: value}}) == ["11"]


def test_rule_13_looks_at_all_coarser_levels_in_the_declared_order():
    levels = ("topology.gpustack.ai/region", "topology.gpustack.ai/zone", RACK)
    nodes = {
        "a": {levels[0]: "north", levels[1]: "z", RACK: "r"},
        "b": {levels[0]: "south", levels[1]: "z", RACK: "r"},
    }
    assert rules(nodes, Reach(levels)) == ["13", "13"]


def test_without_a_cluster_only_names_that_no_label_can_hold_break_rule_8():
    """D4, D15."""
    assert rules({"anything": NODE}, Reach(LEVELS)) == []
    problems = content_problems(snapshot({"n" * 64: NODE}), Reach(LEVELS), options=Options())
    assert [problem.rule for problem in problems] == ["8"]
    assert "63" in problems[0].message


def test_missing_nodes_are_refused_behind_rule_7_by_default():
    """B3."""
    assert rules(None, revision=" ", api_version="x") == ["6", "7", "B3"]


def test_with_reference_defaults_missing_nodes_are_an_empty_inventory():
    assert rules(None, options=Options.reference()) == []
    assert publishable(snapshot(None), REACH) == {}


@BOTH
def test_empty_nodes_and_nodes_without_publishable_labels_are_accepted(options):
    """Section 4.3; cases 22 and 40."""
    for nodes in ({}, {"node-a": {}}, {"node-a": NODE}):
        assert rules(nodes, options=options) == []
        assert publishable(snapshot(nodes), REACH) == {}


def test_standard_region_and_zone_are_never_published():
    nodes = {"node-a": {**NODE, RACK: "r1"}, "node-b": NODE}
    assert publishable(snapshot(nodes), REACH) == {"node-a": {RACK: "r1"}}


def test_a_standard_zone_must_be_on_the_node_already():
    """Rule 14; cases 36 and 37."""
    other = {"node-a": {REGION: "north", ZONE: "z9"}, "node-b": NODE}
    problems = publish_problems(snapshot(other), REACH)
    assert [(problem.rule, problem.node, problem.level) for problem in problems] == [("14", "node-a", 1)]
    bare = Reach(LEVELS, selected={"node-a": {}}, existing=frozenset({"node-a"}))
    assert [p.level for p in publish_problems(snapshot({"node-a": NODE}), bare)] == [0, 1]
    assert publish_problems(snapshot({"node-a": NODE}), REACH) == ()


def test_nodes_that_do_not_exist_are_passed_over_on_request_and_unselected_ones_never():
    """B4."""
    tolerant = Options(tolerate_unknown_nodes=True)
    gone = snapshot({"gone": {**NODE, RACK: "r"}, "node-a": {**NODE, RACK: "r"}})
    assert content_problems(gone, REACH, options=tolerant) == ()
    assert tolerated_nodes(gone, REACH, options=tolerant) == ("gone",)
    assert tolerated_nodes(gone, REACH, options=Options()) == ()
    assert publishable(gone, REACH) == {"node-a": {RACK: "r"}}
    assert publish_problems(gone, REACH) == ()
    assert rules({"node-c": NODE}, options=tolerant) == ["8"]


def test_the_first_problem_is_chosen_by_rule_then_node_then_level():
    """D13."""
    nodes = {"z": {RACK: "-"}, "b": {ZONE: "-", RACK: "-"}, "node-a": {RACK: ""}}
    found = [
        (problem.rule, problem.node, problem.level)
        for problem in content_problems(snapshot(nodes), REACH, options=Options())
    ]
    assert found == [
        ("8", "b", 0),
        ("8", "z", 0),
        ("11", "b", 1),
        ("11", "b", 2),
        ("11", "node-a", 2),
        ("11", "z", 2),
        ("12", "b", 1),
        ("12", "b", 2),
        ("12", "node-a", 2),
        ("12", "z", 2),
    ]


def test_a_problem_stands_where_the_text_has_it():
    decoded = decode(f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: a\nnodes:\n  node-a:\n    {ZONE}: a\n")
    problems = content_problems(decoded.snapshot, REACH, options=Options())
    assert [(problem.rule, problem.place) for problem in problems] == [("12", Place(5, 5))]


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["1", "2", "", "-"])
NODES = st.dictionaries(NAMES, st.dictionaries(st.sampled_from([*LEVELS, "x/y"]), VALUES))


@pytest.mark.property
@given(NODES, st.randoms())
def test_the_order_of_a_map_changes_no_problem(nodes, random):
    shuffled = list(nodes.items())
    random.shuffle(shuffled)
    other = {node: dict(sorted(labels.items(), reverse=True)) for node, labels in shuffled}
    one = content_problems(snapshot(nodes), REACH, options=Options())
    assert [p.rank[:3] for p in one] == [
        p.rank[:3] for p in content_problems(snapshot(other), REACH, options=Options())
    ]


@pytest.mark.property
@given(NODES)
def test_an_accepted_snapshot_is_a_tree(nodes):
    if content_problems(snapshot(nodes), Reach(LEVELS), options=Options()):
        return
    parents = {}
    for labels in nodes.values():
        path = tuple(labels[level] for level in LEVELS if level in labels)
        assert len(path) == len(labels)
        for depth in range(len(path)):
            assert parents.setdefault((depth, path[depth]), path[:depth]) == path[:depth]


def names(count):
    return {f"n{number}" for number in range(count)}


@pytest.mark.parametrize(
    ("owned", "kept", "refused"),
    [(10, 5, False), (10, 4, True), (8, 4, False), (8, 3, True), (4, 0, False), (5, 0, True), (0, 0, False)],
)
def test_a_drop_is_refused_above_half_and_from_five_nodes_on(owned, kept, refused):
    """B2: exactly half, or fewer than five, passes."""
    drop = drop_of(names(owned), wanted=names(kept), existing=names(owned))
    problem = drop_problem(drop, consent="", options=Options())
    assert (problem is not None) == refused
    assert drop_problem(drop, consent="", options=Options.reference()) is None


def test_nodes_that_left_the_cluster_count_on_neither_side():
    drop = drop_of(names(10), wanted=set(), existing={"n0", "n1"})
    assert (drop.owned, drop.removed) == (2, ("n0", "n1"))
    assert drop_problem(drop, consent="", options=Options()) is None


def test_a_consent_fits_one_set_of_nodes():
    """D41; the digest is that of the names, each ended by a newline."""
    drop = drop_of({"b", "a"}, wanted=set(), existing={"a", "b"})
    assert drop.digest == "sha256:911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
    options = Options(snapshot_drop_nodes=1)
    problem = drop_problem(drop, consent="", options=options)
    assert f"{ALLOW_NODE_DROP}: {drop.digest}" in problem.message
    assert drop_problem(drop, consent=drop.digest, options=options) is None
    other = drop_of({"b", "c"}, wanted=set(), existing={"b", "c"})
    assert drop_problem(other, consent=drop.digest, options=options) is not None

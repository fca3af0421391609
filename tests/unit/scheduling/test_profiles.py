"""Profiles and Topologies (topology-scheduling.md, 6 and 7.1; cases 31 and 32)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import hierarchy_problem, normalised, profile_name, profile_of
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import (
    drift,
    levels_of,
    profile_in_flavor_name,
    retirement_blocked,
    topology_name,
    topology_object,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/topology/profiles.json").read_text())
HOSTNAME = "kubernetes.io/hostname"
REGION, ZONE, RACK = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.gpustack.ai/rack"
READY, STALE, EXPIRED = ("True", "Observed"), ("False", "Stale"), ("False", "Expired")
BOTH = pytest.mark.parametrize("options", [Options(), Options.reference()], ids=["ours", "reference-defaults"])


def source(name="s", *, levels=(REGION, ZONE, RACK), ready=READY, selector=None):
    return TopologySource(name, f"uid-{name}", "NodeLabels", levels, selector or {}, ready=ready)


def tiers(*numbers):
    return tuple(f"fabric.topograph.run/tier-{number}" for number in numbers)


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["id"])
def test_profiles_are_those_of_the_vectors(vector):
    levels = tuple(vector["levels"])
    assert profile_name(levels) == vector["profile"]
    assert topology_name(profile_name(levels)) == vector["topologyName"]
    assert topology_object(levels)["metadata"]["name"] == vector["topologyName"]


@pytest.mark.parametrize("vector", VECTORS["negativeVectors"], ids=lambda vector: vector["id"])
def test_no_profile_is_what_a_mistake_gives(vector):
    assert profile_name(tuple(vector["levels"])) == vector["correctProfile"]
    assert profile_name(tuple(vector["levels"])) != f"fnv64-{vector['wrongHash']}"


@BOTH
def test_a_node_has_the_levels_of_its_one_ready_source_up_to_the_first_gap(options):
    labels = {REGION: "north", ZONE: "a"}
    found = profile_of(labels, [source()], options=options)
    assert (found.levels, found.source, found.gap) == ((REGION, ZONE, HOSTNAME), "s", RACK)
    assert found.name == "fnv64-570aeab478df5111"
    assert profile_of({ZONE: "a", RACK: "r"}, [source()], options=options).levels == (HOSTNAME,)
    assert profile_of({REGION: "", ZONE: "a"}, [source()], options=options).levels == (HOSTNAME,)
    assert profile_of({**labels, RACK: "r"}, [source()], options=options).gap == ""


@BOTH
def test_no_source_and_several_sources_give_the_host_name_only(options):
    labels = {REGION: "north", ZONE: "a", RACK: "r"}
    other = source("other", selector={"matchLabels": {REGION: "south"}})
    assert profile_of(labels, [], options=options).name == "fnv64-87bf574bea2a4f23"
    ambiguous = profile_of(labels, [source("a"), source("b")], options=options)
    assert (ambiguous.levels, ambiguous.source) == ((HOSTNAME,), "")
    assert [candidate.counts for candidate in ambiguous.candidates] == [True, True]
    assert len(profile_of(labels, [source("a"), other], options=options).levels) == 4


def test_a_stale_source_keeps_its_profiles_until_it_expires():
    """B1."""
    labels = {REGION: "north"}
    found = profile_of(labels, [source(ready=STALE)], options=Options())
    assert found.levels == (REGION, HOSTNAME)
    assert "keep-profile-while-stale" in found.candidates[0].why
    assert profile_of(labels, [source(ready=EXPIRED)], options=Options()).levels == (HOSTNAME,)
    assert profile_of(labels, [source(ready=("", ""))], options=Options()).levels == (HOSTNAME,)


def misspecified(*, levels=(REGION, ZONE), selector=None, succeeded="2031-04-02T05:00:00Z", staleness="1h"):
    """Its reference leads into another namespace."""
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "InvalidSpec"}]}
    arm = {"configMapRef": {"namespace": "elsewhere", "name": "hall"}, "key": "k", "maxStaleness": staleness}
    spec = {"nodeSelector": selector or {}, "levels": list(levels), "configMap": arm}
    told = {**status, "lastSuccessfulRefreshTime": succeeded} if succeeded else status
    return TopologySource.of({"metadata": {"name": "s", "uid": "u"}, "spec": spec, "status": told})


def test_a_source_whose_spec_has_problems_keeps_its_profiles_while_it_still_chooses_soundly():
    labels = {REGION: "north", ZONE: "a"}
    found = profile_of(labels, [misspecified()], options=Options())
    assert found.levels == (REGION, ZONE, HOSTNAME)
    assert "keep-profile-while-stale" in found.candidates[0].why
    assert profile_of(labels, [misspecified()], options=Options.reference()).levels == (HOSTNAME,)
    for other in (
        misspecified(succeeded=""),
        misspecified(levels=(REGION, REGION)),
        misspecified(selector={"matchExpressions": [{"key": "x", "operator": "Near"}]}),
    ):
        assert profile_of(labels, [other], options=Options()).levels == (HOSTNAME,)


@pytest.mark.parametrize(
    ("staleness", "minutes", "keeps"), [("1h", 59, True), ("1h", 60, False), ("soon", 60 * 24 * 365, True)]
)
def test_a_source_whose_spec_has_problems_keeps_no_profile_once_its_last_revision_is_over(staleness, minutes, keeps):
    """As long as its NodeFeatures stay, which is for ever where nobody can tell (D9)."""
    now = datetime(2031, 4, 2, 5, tzinfo=UTC) + timedelta(minutes=minutes)
    found = profile_of({REGION: "north"}, [misspecified(staleness=staleness).at(now)], options=Options())
    assert found.levels == ((REGION, HOSTNAME) if keeps else (HOSTNAME,))
    assert found.candidates[0].counts == keeps


def test_a_source_that_is_over_is_no_rival_of_one_that_is_ready():
    over = misspecified().at(datetime(2031, 4, 2, 7, tzinfo=UTC))
    found = profile_of({REGION: "north"}, [over, source("new", levels=(REGION,))], options=Options())
    assert (found.levels, found.source) == ((REGION, HOSTNAME), "new")


def test_with_reference_defaults_a_stale_source_gives_the_host_name_at_once():
    found = profile_of({REGION: "north"}, [source(ready=STALE)], options=Options.reference())
    assert found.levels == (HOSTNAME,)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (tiers(0, 1, 2), tiers(2, 1, 0)),
        (tiers(1, 3, 2), tiers(2, 3, 1)),
        (tiers(3, 1, 2), tiers(3, 1, 2)),
        ((REGION, *tiers(1, 2), RACK, *tiers(0, 4)), (REGION, *tiers(2, 1), RACK, *tiers(4, 0))),
        (("fabric.topograph.run/tier-x", *tiers(0)), ("fabric.topograph.run/tier-x", *tiers(0))),
        (
            (*tiers(0), "fabric.topograph.run/tier-1a", *tiers(2)),
            (*tiers(0), "fabric.topograph.run/tier-1a", *tiers(2)),
        ),
        (tiers("-1", 0), tiers(0, "-1")),
        (tiers(9, 10), tiers(10, 9)),
        (("accelerator.topograph.run/domain", RACK), ("accelerator.topograph.run/domain", RACK)),
    ],
)
def test_runs_of_fabric_tiers_are_turned_around(declared, expected):
    assert normalised(declared) == expected


def test_fabric_tiers_are_sorted_on_request():
    """B8."""
    assert normalised(tiers(1, 3, 2), by_number=True) == tiers(3, 2, 1)
    assert profile_of(
        dict.fromkeys(tiers(1, 3, 2), "x"), [source(levels=tiers(1, 3, 2))], options=Options(sort_fabric_tiers=True)
    ).levels == (*tiers(3, 2, 1), HOSTNAME)


@pytest.mark.property
@given(st.lists(st.sampled_from([REGION, RACK, *tiers(0, 1, 2, 3, 10)]), unique=True).map(tuple))
def test_normalising_keeps_the_keys_and_sorting_is_stable(levels):
    for by_number in (False, True):
        once = normalised(levels, by_number=by_number)
        assert sorted(once) == sorted(levels)
    assert normalised(once, by_number=True) == once


@BOTH
def test_a_rack_in_two_zones_is_no_hierarchy(options):
    """Case 32."""
    zones = source(levels=(ZONE, RACK))
    nodes = {"a": {ZONE: "zone-a", RACK: "rack-shared"}, "b": {ZONE: "zone-b", RACK: "rack-shared"}}
    assert "node b" in hierarchy_problem(zones, nodes, options=options)
    assert hierarchy_problem(zones, {"a": nodes["a"]}, options=options) == ""


@BOTH
def test_a_level_behind_a_gap_is_no_hierarchy(options):
    """Section 6.3; an empty value is a gap, a missing end is none."""
    assert "coarser" in hierarchy_problem(source(), {"a": {REGION: "n", ZONE: "", RACK: "r"}}, options=options)
    assert hierarchy_problem(source(), {"a": {REGION: "n"}, "b": {}}, options=options) == ""


def test_only_selected_nodes_are_judged_on_the_normalised_levels():
    picky = source(levels=tiers(0, 1), selector={"matchLabels": {"a": "b"}})
    bad = dict.fromkeys(tiers(0), "x")
    assert hierarchy_problem(picky, {"n": bad}, options=Options()) == ""
    assert hierarchy_problem(picky, {"n": {**bad, "a": "b"}}, options=Options()).endswith(
        "coarser fabric.topograph.run/tier-1"
    )


def test_a_topology_is_made_once_and_its_drift_is_an_error():
    levels = (REGION, ZONE, HOSTNAME)
    topology = topology_object(levels)
    assert topology["metadata"]["labels"] == {"resource.gpustack.ai/type": "topology"}
    assert levels_of(topology) == levels
    assert drift(topology, levels) == ""
    assert "immutable level drift" in drift(topology, (ZONE, REGION, HOSTNAME))


def test_a_topology_retires_only_when_nobody_needs_it():
    profile = profile_name((HOSTNAME,))
    topology = topology_object((HOSTNAME,))
    flavor = {"metadata": {"name": "f"}, "spec": {"topologyName": topology_name(profile)}}
    assert retirement_blocked(topology, nodes=[{}], flavors=[]) == ""
    assert retirement_blocked(topology, nodes=[{"topology.gpustack.ai/profile": profile}], flavors=[]) != ""
    assert "ResourceFlavor f" in retirement_blocked(topology, nodes=[], flavors=[flavor])
    foreign = {**topology, "metadata": {"name": topology_name(profile)}}
    assert retirement_blocked(foreign, nodes=[], flavors=[]) != ""
    going = {**topology, "metadata": {**topology["metadata"], "deletionTimestamp": "2031-01-01T00:00:00Z"}}
    assert retirement_blocked(going, nodes=[], flavors=[]) != ""


def test_the_profile_stands_at_the_end_of_the_name_of_a_flavor():
    assert profile_in_flavor_name("gpustack--amd-linux-amd64-4c-fnv64-0109f115c79ca357") == "fnv64-0109f115c79ca357"
    for name in ("x-fnv64-0109F115c79ca357", "fnv64-0109f115c79ca357", "x-fnv64-0109f115c79ca357\n", "x"):
        assert profile_in_flavor_name(name) == ""

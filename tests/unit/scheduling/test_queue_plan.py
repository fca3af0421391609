"""The plan of a queue (topology-scheduling.md, 7.4 and 7.5): checks in their order, conservation, disjointness, order."""

import copy
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.quantity import quantity, text_of
from gitops_ctl.scheduling.queue import Managed, Queue, apply_tree, discriminators, groups_of, is_managed, quotas_of
from gitops_ctl.scheduling.queue_plan import (
    Plan,
    Refusal,
    World,
    plan_queue,
    pool_nodes,
    queues_of_flavor,
    usable_checks,
)

PROFILE = "topology.gpustack.ai/profile"
HOST, ZONED = "fnv64-87bf574bea2a4f23", "fnv64-570aeab478df5111"
GENERAL, ACCELERATOR = "general.feature.gpustack.ai/", "acceleratable.feature.gpustack.ai/"
ACCELERATABLE = "feature.gpustack.ai/acceleratable"
MARK = {"resource.gpustack.ai/type": "instancetypes"}
POOL = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", ACCELERATABLE: "false", f"{GENERAL}amd-25": "true"}
GPU_POOL = {**POOL, ACCELERATABLE: "true", f"{ACCELERATOR}nvidia-a10g": "true"}
TAS = "topology.gpustack.ai/tas-queue"


def node(cores=4, profile=HOST, key="amd-25", gpus=0, aKey="nvidia-a10g"):
    labels = {
        "gpustack.ai/managed": "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        f"{GENERAL}{key}": "true",
        f"{GENERAL}{key}.count": str(cores),
        PROFILE: profile,
    }
    if gpus:
        labels |= {ACCELERATABLE: "true", f"{ACCELERATOR}{aKey}": "true", f"{ACCELERATOR}{aKey}.count": str(gpus)}
    return {name: value for name, value in labels.items() if value}


def queue(pool=None, *, groups=(), annotations=None):
    return Queue.of(
        {
            "metadata": {
                "name": "q",
                "uid": "u",
                "labels": {**(pool or POOL), **MARK},
                "annotations": annotations or {},
            },
            "spec": {"resourceGroups": list(groups)},
        }
    )


def world(nodes, *, options=None, topologies=None, edit=None):
    flavors = [copy.deepcopy(flavor_object(one)) for one in flavors_of(nodes, options=options or Options()).values()]
    if edit:
        edit(flavors)
    known = {f"gpustack-{profile}" for profile in (HOST, ZONED)} if topologies is None else topologies
    return World(tuple(flavors), frozenset(known), nodes)


def planned(nodes, *, pool=None, options=None, **given):
    return plan_queue(queue(pool), world(nodes, options=options, **given), options=options or Options())


def refused(nodes, **given):
    found = planned(nodes, **given)
    assert isinstance(found, Refusal)
    return found.reason


GROUP = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4"}]}],
}


def test_a_plan_is_one_group_with_small_nodes_first():
    found = planned({"a": node(8), "b": node(8), "c": node(4), "d": node(4, ZONED)})
    (group,) = found.groups
    assert group.resources == ("cpu",)
    assert [(name.partition("amd64-")[2], quotas) for name, quotas in group.flavors] == [
        (f"4c-{ZONED}", (("cpu", Fraction(4)),)),
        (f"4c-{HOST}", (("cpu", Fraction(4)),)),
        (f"8c-{HOST}", (("cpu", Fraction(16)),)),
    ]
    assert found.members["d"].endswith(ZONED)


def test_an_accelerator_plan_counts_credits_as_integers():
    nodes = {f"n{number}": node(4, gpus=8) for number in range(3)}
    (group,) = planned(nodes, pool=GPU_POOL).groups
    assert group.resources == ("credits.gpustack.ai/nvidia",)
    assert [value for _, quotas in group.flavors for _, value in quotas] == [3 * 8 * 1_600_000]


def test_a_pool_without_living_flavors_has_an_empty_plan_where_the_groups_are_ours():
    """A terminating flavor counts as absent; no check looks at what stands there."""

    def ends(flavors):
        flavors[0]["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"

    assert planned({}) == Plan((), {})
    assert planned({"a": node()}, edit=ends) == Plan((), {})
    ours = queue(groups=[GROUP, GROUP], annotations={TAS: "true"})
    assert plan_queue(ours, world({}), options=Options()) == Plan((), {})


def test_groups_of_somebody_else_are_refused_also_while_no_flavor_lives():
    """An empty plan would drain the queue and take them away: a manager may start before its flavors exist."""

    def reason(*groups, **annotations):
        found = plan_queue(queue(groups=groups, annotations=annotations), world({}), options=Options())
        return (found.reason, found.retry_s) if isinstance(found, Refusal) else found

    assert reason(GROUP) == ("UnsupportedExistingObject", None)
    assert reason(GROUP, GROUP) == ("DuplicateCoveredResource", None)
    assert reason(GROUP, **{TAS: "false"}) == ("UnsupportedExistingObject", None)
    assert reason() == Plan((), {})
    # A migration was begun by a plan of ours, whatever became of the mark.
    assert reason(GROUP, **{"topology.gpustack.ai/migration-phase": "draining"}) == Plan((), {})


def test_flavors_of_other_pools_and_of_others_are_not_taken():
    def unmark(flavors):
        del flavors[0]["metadata"]["labels"]["resource.gpustack.ai/type"]

    assert planned({"a": node(key="intel-6")}) == Plan((), {})
    assert planned({"a": node()}, edit=unmark) == Plan((), {})


def test_existing_groups_that_repeat_a_resource_are_refused_first():
    """Checks 1 and 2."""
    twice = plan_queue(queue(groups=[GROUP, GROUP]), world({"a": node()}), options=Options())
    assert (twice.reason, twice.retry_s) == ("DuplicateCoveredResource", None)
    foreign = plan_queue(queue(groups=[GROUP]), world({"a": node()}), options=Options())
    assert foreign.reason == "UnsupportedExistingObject"
    ours = queue(groups=[GROUP], annotations={TAS: "true"})
    assert isinstance(plan_queue(ours, world({"a": node()}), options=Options()), Plan)


def test_sixty_four_flavors_are_planned_and_one_more_is_refused_with_both_numbers():
    """Check 3."""
    nodes = {f"n{number:02}": node(number + 1) for number in range(64)}
    assert len(planned(nodes).groups[0].flavors) == 64
    nodes["more"] = node(65)
    found = planned(nodes)
    assert (found.reason, found.retry_s) == ("TooManyFlavors", None)
    assert "65" in found.message
    assert "64" in found.message


def first(flavors):
    return flavors[0]


@pytest.mark.parametrize(
    "edit",
    [
        lambda flavors: first(flavors)["spec"]["nodeLabels"].pop(PROFILE),
        lambda flavors: first(flavors)["metadata"]["labels"].update({PROFILE: ZONED}),
        lambda flavors: first(flavors)["metadata"]["labels"].pop(PROFILE),
        lambda flavors: first(flavors)["spec"].pop("topologyName"),
        lambda flavors: first(flavors)["spec"].update(topologyName=f"gpustack-{ZONED}"),
    ],
)
def test_a_flavor_without_its_profile_or_topology_is_refused(edit):
    """Checks 4 and 5."""
    assert refused({"a": node()}, edit=edit) == "MissingTopology"


def test_a_topology_must_exist():
    """Check 6."""
    found = planned({"a": node()}, topologies=set())
    assert (found.reason, found.retry_s) == ("MissingTopology", 30.0)


def test_a_node_in_two_flavors_is_refused():
    """Check 7."""

    def widen(flavors):
        twin = copy.deepcopy(flavors[0])
        twin["metadata"]["name"] = "twin"
        flavors.append(twin)

    found = planned({"a": node()}, edit=widen)
    assert (found.reason, found.retry_s) == ("OverlappingSelectors", None)
    assert "node a" in found.message


def test_checks_4_to_7_run_flavor_by_flavor():
    """An overlap of the first two flavors is found before the missing Topology of the third."""

    def edit(flavors):
        twin = copy.deepcopy(flavors[0])
        twin["metadata"]["name"] = f"{twin['metadata']['name']}a"
        last = copy.deepcopy(flavors[0])
        last["metadata"]["name"] = "z"
        last["spec"]["topologyName"] = "other"
        flavors += [last, twin]

    assert refused({"a": node()}, edit=edit) == "OverlappingSelectors"


@pytest.mark.parametrize("capacity", ["3", "5", "", "x", "4.0", "\u0664"])
def test_the_capacity_must_be_what_the_nodes_have(capacity):
    """Check 8."""

    def edit(flavors):
        flavors[0]["metadata"]["labels"][f"{GENERAL}amd-25.capacity"] = capacity

    found = planned({"a": node()}, edit=edit)
    assert (found.reason, found.retry_s) == ("NonConservedQuota", 30.0)


def test_the_count_comes_from_the_selector():
    """Check 8."""

    def edit(flavors):
        flavors[0]["spec"]["nodeLabels"].pop(f"{GENERAL}amd-25.count")

    assert refused({"a": node()}, edit=edit) == "NonConservedQuota"


def test_every_profiled_node_of_the_pool_must_be_in_a_flavor():
    """Check 9; a Node without a profile, and one of another pool, are passed over."""

    def drop(flavors):
        flavors[:] = [one for one in flavors if one["metadata"]["name"].endswith(HOST)]

    nodes = {"a": node(), "b": node(profile=ZONED)}
    assert refused(nodes, edit=drop) == "NonConservedQuota"
    assert isinstance(planned({"a": node(), "b": node(profile="")}), Plan)
    assert isinstance(planned({"a": node(), "b": node(key="intel-6")}), Plan)


def test_a_node_is_not_waited_for_while_its_flavor_can_only_come_again_after_the_queue_has_dropped_it():
    nodes = {"a": node(), "b": node(profile=ZONED)}

    def ends(flavors):
        going = next(flavor for flavor in flavors if flavor["metadata"]["name"].endswith(ZONED))
        going["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"

    assert refused(nodes, edit=ends) == "NonConservedQuota"
    both = {"resourceGroups": apply_tree(queue(), Managed(groups=planned(nodes).groups))["spec"]["resourceGroups"]}
    serving = queue(groups=both["resourceGroups"], annotations={TAS: "true"})
    found = plan_queue(serving, world(nodes, edit=ends), options=Options())
    assert isinstance(found, Plan)
    assert found.groups == planned({"a": node()}).groups


def test_a_cpu_pool_holds_accelerated_nodes_only_with_mixing():
    nodes = {"a": node(), "b": node(gpus=8)}
    assert set(pool_nodes(queue(), nodes, options=Options())) == {"a", "b"}
    assert set(pool_nodes(queue(), nodes, options=Options(mixed_on_node=False))) == {"a"}
    assert set(pool_nodes(queue(GPU_POOL), nodes, options=Options(mixed_on_node=False))) == {"b"}
    assert planned(nodes).groups[0].flavors[0][1] == (("cpu", Fraction(8)),)
    # With mixing off somebody else marks the Nodes without an accelerator.
    plain = {"a": {**node(), "feature.gpustack.ai/cpu-only": "true"}, "b": node(gpus=8)}
    apart = planned(plain, options=Options(mixed_on_node=False))
    assert apart.groups[0].flavors[0][1] == (("cpu", Fraction(4)),)


def test_a_pool_with_two_resources_is_refused_after_the_checks():
    """B14."""
    two = {"a": node(gpus=2), "b": node(gpus=2, aKey="amd-mi300")}
    accelerated = {**POOL, ACCELERATABLE: "true"}
    assert refused(two, pool=accelerated) == "MixedPool"
    # A collapsed CPU pool has one resource whoever made the CPUs.
    collapsed = {ACCELERATABLE: "false", "kubernetes.io/os": "linux"}
    assert isinstance(planned({"a": node(), "b": node(key="intel-6")}, pool=collapsed), Plan)


def test_a_queue_needs_more_than_os_and_arch():
    def tree(labels):
        return {"metadata": {"labels": {**labels, **MARK}}}

    assert is_managed(tree(POOL))
    assert is_managed(tree({ACCELERATABLE: "false"}))
    assert not is_managed(tree({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}))
    assert not is_managed({"metadata": {"labels": POOL}})
    assert discriminators({**POOL, f"{GENERAL}amd-25.count": "4", "other": "x"}) == POOL


def test_a_flavor_wakes_the_queues_whose_pool_it_is_in():
    def tree(name, labels):
        return {"metadata": {"name": name, "labels": {**labels, **MARK}}}

    (flavor,) = world({"a": node()}).flavors
    collapsed = tree("collapsed", {ACCELERATABLE: "false", "kubernetes.io/os": "linux"})
    queues = [
        tree("pool", POOL),
        tree("gpu", GPU_POOL),
        tree("other", {f"{GENERAL}intel-6": "true"}),
        collapsed,
    ]
    assert queues_of_flavor(flavor, map(Queue.of, queues)) == ("collapsed", "pool")


def test_admission_checks_are_listed_in_the_configured_order_when_active():
    """D23."""
    options = Options(admission_checks=("b", "a", "gone"))
    assert usable_checks({"a", "b", "c"}, options=options) == ("b", "a")
    assert usable_checks({"a"}, options=Options()) == ()


def test_groups_come_back_as_they_were_written():
    found = planned({"a": node(8), "b": node(4)})
    tree = apply_tree(queue(), Managed(groups=found.groups, checks=("c",)))
    assert groups_of(tree) == found.groups
    assert tree["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "c"}]}
    assert "stopPolicy" not in tree["spec"]
    resources = tree["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert resources == [{"name": "cpu", "nominalQuota": "4"}]


LIMITED = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "x", "resources": [{"name": "cpu", "nominalQuota": "500m", "borrowingLimit": "2"}]}],
}
CHECKED = {"admissionChecks": [{"name": "c", "onFlavors": ["x"]}]}


def test_a_hold_changes_nothing_of_the_groups_and_checks_of_somebody_else():
    metadata = {"name": "q", "uid": "u", "resourceVersion": "1", "labels": {**POOL, **MARK}}
    spec = {"resourceGroups": [LIMITED], "admissionChecksStrategy": CHECKED, "cohortName": "all", "stopPolicy": "None"}
    live = Queue.of({"metadata": metadata, "spec": spec})
    held = replace(live.managed, policy="Hold")
    assert apply_tree(live, held)["spec"] == {
        "stopPolicy": "Hold",
        "resourceGroups": [LIMITED],
        "admissionChecksStrategy": CHECKED,
    }
    written = apply_tree(live, replace(held, groups=planned({"a": node(8)}).groups, checks=("d",)))["spec"]
    assert groups_of({"spec": written}) == planned({"a": node(8)}).groups
    assert written["admissionChecksStrategy"] == {"admissionChecks": [{"name": "d"}]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"),
        ("1600k", 1_600_000),
        ("1Ki", "1024"),
        ("1e3", "1k"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("+1.", 1),
    ],
)
def test_quantities_are_compared_by_value(one, other):
    assert quantity(one) == quantity(other) is not None


@pytest.mark.parametrize("text", ["", "1 ", "x", "1KI", "1ee3", True, None, 1.5, "1\n", "\u0661"])
def test_what_is_no_quantity_has_no_value(text):
    assert quantity(text) is None


def test_large_quotas_stay_exact():
    large = 2**53 + 1
    assert quantity(str(large)) == large
    assert text_of(Fraction(large)) == str(large)


NODES = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(8)]),
    st.builds(
        node,
        cores=st.sampled_from([4, 8, 16]),
        profile=st.sampled_from([HOST, ZONED, ""]),
        key=st.sampled_from(["amd-25", "intel-6"]),
        gpus=st.sampled_from([0, 1, 8]),
    ),
)
POOLS = st.sampled_from([POOL, GPU_POOL, {ACCELERATABLE: "true"}, {ACCELERATABLE: "false"}])


@pytest.mark.property
@given(NODES, POOLS)
def test_quotas_add_up_to_the_nodes_and_no_node_is_given_out_twice(nodes, pool):
    found = planned(nodes, pool=pool)
    assert isinstance(found, Plan)
    chosen = {
        name: labels for name, labels in pool_nodes(queue(pool), nodes, options=Options()).items() if PROFILE in labels
    }
    assert set(found.members) == set(chosen)
    is_gpu = pool.get(ACCELERATABLE) == "true"
    unit = 1_600_000 if is_gpu else 1
    prefix = ACCELERATOR if is_gpu else GENERAL
    counted = sum(
        int(value)
        for labels in chosen.values()
        for key, value in labels.items()
        if key.startswith(prefix) and key.endswith(".count")
    )
    assert sum(quotas_of(found.groups).values()) == counted * unit
    assert len(found.groups) <= 1


@pytest.mark.property
@given(NODES, st.randoms())
def test_the_order_of_the_world_changes_no_plan(nodes, random):
    def shuffle(flavors):
        random.shuffle(flavors)

    names = list(nodes)
    random.shuffle(names)
    assert planned({name: nodes[name] for name in names}, edit=shuffle) == planned(nodes)

"""Laws of the planner and of the transition machine for inputs that nobody made on purpose (topology-scheduling.md, 7.5, 8.1 and 8.3).

Flavors are edited by others, annotations come from anywhere: what is planned is sound all the same, and whatever stands on a queue, the
machine says what it does, and comes to rest or says what it waits for.
"""

import copy
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.migration import Desired, decide
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import (
    APPLIED_POLICY,
    EMPTY_HOLD,
    HOLD_RELEASE,
    PHASE,
    SAVED_POLICY,
    STARTED_AT,
    TAS_QUEUE,
    WANTED_POLICY,
    Managed,
    Queue,
    Usage,
    apply_tree,
    quotas_of,
)
from gitops_ctl.scheduling.queue_plan import Plan, World, plan_queue, pool_nodes
from tests.support.scheduling_queue import NOW, plan

pytestmark = pytest.mark.property

PROFILE = "topology.gpustack.ai/profile"
GENERAL = "general.feature.gpustack.ai/amd-25"
PROFILES = ("fnv64-87bf574bea2a4f23", "fnv64-29c7d645fad688b1")
POOL = {"resource.gpustack.ai/type": "instancetypes", "kubernetes.io/os": "linux", GENERAL: "true"}


def node(cores, profile, *, is_managed=True):
    hardware = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", GENERAL: "true", f"{GENERAL}.count": cores}
    marks = {"gpustack.ai/managed": "true"} if is_managed else {}
    return {**hardware, **marks, **({PROFILE: profile} if profile else {})}


NODES = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(6)]),
    st.builds(
        node,
        st.sampled_from(["1", "2", "04", ""]),
        st.sampled_from([*PROFILES, ""]),
        is_managed=st.sampled_from([True, True, False]),
    ),
)
EDITS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.sampled_from(["capacity", "count", "loosen", "profile", "topology", "terminating", "copy"]),
    ),
    max_size=4,
)


def edited(flavors, edits):
    """The flavors after somebody's hands."""
    found = [copy.deepcopy(flavor_object(one)) for one in flavors]
    for number, what in edits:
        if not found:
            break
        tree = found[number % len(found)]
        labels, selector = tree["metadata"]["labels"], tree["spec"]["nodeLabels"]
        match what:
            case "capacity":
                labels[f"{GENERAL}.capacity"] = str(number)
            case "count":
                selector[f"{GENERAL}.count"] = str(number % 3)
            case "loosen":
                selector.pop(PROFILE if number % 2 else f"{GENERAL}.count", None)
            case "profile":
                labels[PROFILE] = PROFILES[number % 2]
            case "topology":
                tree["spec"]["topologyName"] = f"gpustack-{PROFILES[number % 2]}"
            case "terminating":
                tree["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"
            case "copy":
                found.append({**copy.deepcopy(tree), "metadata": {**tree["metadata"], "name": f"copy-{number}"}})
    return tuple(found)


@settings(max_examples=200, deadline=None)
@given(NODES, NODES, EDITS)
def test_whatever_the_flavors_say_a_plan_is_whole_disjoint_and_counts_its_nodes(nodes, then, edits):
    queue = Queue.of({"metadata": {"name": "q", "uid": "u", "labels": POOL}})
    options = Options()
    # The flavors may be of Nodes as they were before.
    flavors = edited(flavors_of(then if edits else nodes, options=options).values(), edits)
    topologies = frozenset(f"gpustack-{profile}" for profile in PROFILES)
    found = plan_queue(queue, World(flavors, topologies, nodes), options=options)
    if not isinstance(found, Plan):
        assert found.message
        return
    selectors = {tree["metadata"]["name"]: tree["spec"]["nodeLabels"] for tree in flavors}
    chosen = {
        flavor: [name for name, labels in nodes.items() if selectors[flavor].items() <= labels.items()]
        for flavor in quotas_of(found.groups)
    }
    given_out = [name for names in chosen.values() for name in names]
    assert len(given_out) == len(set(given_out)), "a Node is given out twice"
    for flavor, quota in quotas_of(found.groups).items():
        assert quota == sum((Fraction(int(nodes[name][f"{GENERAL}.count"])) for name in chosen[flavor]), Fraction(0))
    if found.groups:
        due = {name for name, labels in pool_nodes(queue, nodes, options=options).items() if labels.get(PROFILE)}
        assert due <= set(given_out), "a Node of the pool is in no flavor"
        assert found.members == {name: flavor for flavor, names in chosen.items() for name in names}


WORDS = st.sampled_from(
    ["", "None", "Hold", "HoldAndDrain", "unset", "draining", "switched", "true", "pending", "nonsense"]
)
MARKS = st.dictionaries(
    st.sampled_from([PHASE, SAVED_POLICY, STARTED_AT, EMPTY_HOLD, APPLIED_POLICY, HOLD_RELEASE, TAS_QUEUE]), WORDS
)
PLANS = st.sampled_from([plan(), plan(a=2), plan(a=1, b=2), plan(b=2)])
STATES = st.builds(
    Managed,
    policy=st.sampled_from(["", "None", "Hold", "HoldAndDrain"]),
    groups=PLANS.map(lambda one: one.groups),
    marks=MARKS,
)
OPTIONS = st.builds(
    Options, drain_when_no_flavors=st.booleans(), hold_before_drop=st.booleans(), require_drain_approval=st.booleans()
)


def observed(managed, *, wanted, reserved=frozenset()):
    """A queue as Kueue has seen it, with a Workload in each of these flavors."""
    names = quotas_of(managed.groups)
    counted = {name: name in reserved for name in names}
    held = len(reserved & names.keys())
    usage = Usage(True, not managed.is_open, reserving=held, admitted=held, reserved=counted, used=counted)
    return Queue("q", "uid", "7", {}, {WANTED_POLICY: wanted, **managed.marks}, False, managed, usage)


@settings(max_examples=300, deadline=None)
@given(STATES, PLANS, OPTIONS, st.sampled_from(["None", "Hold", "HoldAndDrain", "nonsense"]))
def test_from_any_annotations_the_machine_comes_to_rest_or_says_what_it_waits_for(managed, due, options, wanted):
    for _ in range(12):
        found = decide(observed(managed, wanted=wanted), Desired(due), now=NOW, options=options)
        again = decide(observed(managed, wanted=wanted), Desired(due), now=NOW, options=options)
        assert found == again, "the same input gives the same step"
        if found.write is None:
            break
        managed = found.write
    assert found.write is None, "it never comes to rest"
    assert found.condition is not None
    said = (found.condition.status, found.condition.reason)
    if said == ("True", "Ready"):
        assert managed.groups == due.groups
        assert managed.groups or not managed.is_open, "an empty queue is open"
    else:
        # The spec is untouched then, whatever it says: somebody has to correct the annotations.
        assert said == ("False", "InvalidMigrationState")
        assert found.condition.message
        assert found.requeue_s is not None


@settings(max_examples=300, deadline=None)
@given(STATES, PLANS, OPTIONS, st.sets(st.sampled_from(["a", "b"])))
def test_while_something_is_reserved_in_it_no_flavor_leaves_a_queue(managed, due, options, busy):
    reserved = frozenset(busy) & quotas_of(managed.groups).keys()
    found = decide(observed(managed, wanted="None", reserved=reserved), Desired(due), now=NOW, options=options)
    write = found.write or managed
    assert reserved <= quotas_of(write.groups).keys()
    if PHASE in managed.marks and reserved:
        assert write.groups == managed.groups
        assert PHASE in write.marks


THEIRS = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "theirs", "resources": [{"name": "cpu", "nominalQuota": "4", "borrowingLimit": "1"}]}],
}


@settings(max_examples=300, deadline=None)
@given(NODES, EDITS, MARKS, OPTIONS, st.sampled_from(["", "None", "Hold", "HoldAndDrain"]))
def test_groups_of_somebody_else_stay_whatever_nodes_and_flavors_there_are(nodes, edits, marks, options, policy):
    marks = {key: value for key, value in marks.items() if key not in (TAS_QUEUE, PHASE)}
    metadata = {"name": "q", "uid": "u", "labels": POOL, "annotations": marks}
    spec = {"resourceGroups": [THEIRS], **({"stopPolicy": policy} if policy else {})}
    topologies = frozenset(f"gpustack-{profile}" for profile in PROFILES)
    world = World(edited(flavors_of(nodes, options=options).values(), edits), topologies, nodes)
    for _ in range(4):
        queue = Queue.of({"metadata": metadata, "spec": spec})
        found = decide(queue, Desired(plan_queue(queue, world, options=options)), now=NOW, options=options)
        assert found.condition is None or found.condition.reason == "UnsupportedExistingObject"
        if found.write is None:
            break
        tree = apply_tree(queue, found.write)
        assert tree["spec"]["resourceGroups"] == [THEIRS]
        assert PHASE not in found.write.marks
        metadata, spec = {**metadata, "annotations": tree["metadata"]["annotations"]}, tree["spec"]
    assert found.write is None


@settings(max_examples=100, deadline=None)
@given(STATES, STATES)
def test_one_apply_carries_the_whole_set_of_one_object_and_the_version_that_was_read(before, after):
    queue = replace(observed(before, wanted="None"), resource_version="41")
    tree = apply_tree(queue, after)
    metadata = tree["metadata"]
    assert (metadata["name"], metadata["uid"], metadata["resourceVersion"]) == ("q", "uid", "41")
    assert metadata["annotations"] == after.marks
    assert Queue.of(tree).managed == after

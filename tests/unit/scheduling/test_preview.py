"""What a change of the inventory would do (topology-scheduling.md, 6 to 8), from region and zone to region, zone and rack."""

from dataclasses import replace

from gitops_ctl.scheduling.explain import explain_queue
from gitops_ctl.scheduling.flavor import flavor_object, flavors_of
from gitops_ctl.scheduling.migration import Desired, decide
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.preview import Fate, Inventory, preview, projected
from gitops_ctl.scheduling.queue import PHASE, Managed, Queue, apply_tree
from gitops_ctl.scheduling.queue_plan import Plan, World, plan_queue
from gitops_ctl.scheduling.source import TopologySource
from tests.support.scheduling_queue import NOW, listed

REGION, ZONE, RACK = "topology.gpustack.ai/region", "topology.gpustack.ai/zone", "topology.gpustack.ai/rack"
GENERAL = "general.feature.gpustack.ai/amd-25"
HARDWARE = {
    "gpustack.ai/managed": "true",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    GENERAL: "true",
    f"{GENERAL}.count": "4",
}
ZONED, RACKED = "fnv64-29c7d645fad688b1", "fnv64-dde125aa4572179a"
POOL = {
    "resource.gpustack.ai/type": "instancetypes",
    "feature.gpustack.ai/acceleratable": "false",
    GENERAL: "true",
}
HALL = {REGION: "north", ZONE: "hall7"}


def source(*levels):
    return TopologySource("hall", "uid", "ConfigMap", levels, {}, ready=("True", "Observed"))


def inventory(labels, *levels):
    nodes = {name: {**HARDWARE, **own} for name, own in labels.items()}
    return Inventory(nodes, (source(*levels),))


def live_queue(world, *, reserved):
    """A queue that serves the plan of this world."""
    tree = {"metadata": {"name": "pool", "uid": "u", "generation": 1, "labels": POOL}}
    bare = Queue.of(tree)
    plan = plan_queue(bare, world, options=Options())
    served = apply_tree(bare, Managed("None", plan.groups, (), {"topology.gpustack.ai/tas-queue": "true"}))
    names = [name for group in plan.groups for name, _ in group.flavors]
    status = {
        "conditions": [{"type": "Active", "status": "True", "observedGeneration": 1}],
        "reservingWorkloads": reserved,
        "flavorsReservation": listed(dict.fromkeys(names, reserved)),
        "flavorsUsage": listed(dict.fromkeys(names, reserved)),
    }
    return Queue.of({**served, "metadata": {**served["metadata"], **tree["metadata"]}, "status": status})


def live(labels, profile):
    """Nodes as they are, with their profile."""
    return world_of(labels, profile).nodes


def world_of(labels, profile):
    nodes = {name: {**HARDWARE, **own, "topology.gpustack.ai/profile": profile} for name, own in labels.items()}
    flavors = tuple(flavor_object(one) for one in flavors_of(nodes, options=Options()).values())
    return World(flavors, frozenset({f"gpustack-{profile}"}), nodes)


def test_a_finer_level_changes_profiles_and_flavors_and_drains_what_is_busy():
    before = live({"a": HALL, "b": HALL}, ZONED)
    after = inventory({"a": {**HALL, RACK: "r1"}, "b": {**HALL, RACK: "r2"}}, REGION, ZONE, RACK)
    busy = live_queue(world_of({"a": HALL, "b": HALL}, ZONED), reserved=2)
    found = preview(before, after, [busy], options=Options())
    assert found.profiles == (("a", ZONED, RACKED), ("b", ZONED, RACKED))
    assert found.new_flavors == (f"gpustack--amd-25-linux-amd64-4c-{RACKED}",)
    assert found.gone_flavors == (f"gpustack--amd-25-linux-amd64-4c-{ZONED}",)
    assert [(one.queue, one.busy, one.workloads) for one in found.drained] == [("pool", found.gone_flavors, 2)]
    assert [change.refusal for change in found.queues] == [None]
    idle = live_queue(world_of({"a": HALL, "b": HALL}, ZONED), reserved=0)
    (change,) = preview(before, after, [idle], options=Options()).queues
    assert (change.fate, change.going, change.busy) == (Fate.IN_PLACE, found.gone_flavors, ())


def test_a_node_that_moves_between_flavors_drains_the_one_it_leaves():
    """D37."""
    before = live({"a": HALL, "b": HALL}, ZONED)
    after = inventory({"a": HALL, "b": {**HALL, RACK: "r1"}}, REGION, ZONE, RACK)
    busy = live_queue(world_of({"a": HALL, "b": HALL}, ZONED), reserved=1)
    found = preview(before, after, [busy], options=Options())
    assert found.profiles == (("b", ZONED, RACKED),)
    assert found.gone_flavors == ()
    assert [one.busy for one in found.drained] == [(f"gpustack--amd-25-linux-amd64-4c-{ZONED}",)]


def test_other_values_of_the_same_levels_change_nothing():
    before = live({"a": HALL}, ZONED)
    after = inventory({"a": {REGION: "south", ZONE: "hall8"}}, REGION, ZONE)
    busy = live_queue(world_of({"a": HALL}, ZONED), reserved=1)
    found = preview(before, after, [busy], options=Options())
    assert (found.profiles, found.new_flavors, found.gone_flavors, found.drained) == ((), (), (), ())


def test_a_queue_whose_pool_loses_every_flavor_is_drained_also_when_it_is_idle():
    idle = live_queue(world_of({"a": HALL}, ZONED), reserved=0)
    unmanaged = Inventory({"a": dict(HALL)}, (source(REGION, ZONE),))
    (change,) = preview(live({"a": HALL}, ZONED), unmanaged, [idle], options=Options()).queues
    assert (change.fate, change.after, change.busy) == (Fate.DRAIN, {}, ())


def test_without_drain_when_no_flavors_a_lost_pool_keeps_its_last_plan_while_anything_is_reserved():
    """D27: as the controller does it; a drain that has begun goes on all the same."""
    world, options = world_of({"a": HALL}, ZONED), Options(drain_when_no_flavors=False)
    unmanaged = Inventory({"a": dict(HALL)}, (source(REGION, ZONE),))

    def change_of(queue):
        (change,) = preview(world.nodes, unmanaged, [queue], options=options).queues
        return change

    busy = live_queue(world, reserved=2)
    kept = change_of(busy)
    assert (kept.fate, kept.after, kept.going, kept.workloads, kept.digest) == (Fate.KEPT, kept.before, (), 2, "")
    assert kept.before
    desired = Desired(Plan((), {}))
    assert decide(busy, desired, now=NOW, options=options).write is None
    idle = live_queue(world, reserved=0)
    assert change_of(idle).fate is Fate.DRAIN
    assert decide(idle, desired, now=NOW, options=options).write.policy == "HoldAndDrain"
    draining = replace(busy, managed=replace(busy.managed, marks={**busy.managed.marks, PHASE: "draining"}))
    assert change_of(draining).fate is Fate.DRAIN


def test_a_node_that_feeds_two_queues_moves_in_both():
    """A Node with an accelerator is in a CPU flavor, too; each queue looks at its own flavors only."""
    key = "acceleratable.feature.gpustack.ai/nvidia-a10"
    devices = {key: "true", f"{key}.count": "2", "feature.gpustack.ai/acceleratable": "true"}
    before = live({"a": {**HALL, **devices}, "b": HALL}, ZONED)
    after = inventory({"a": {**HALL, **devices, RACK: "r1"}, "b": HALL}, REGION, ZONE, RACK)
    busy = live_queue(world_of({"a": {**HALL, **devices}, "b": HALL}, ZONED), reserved=1)
    (change,) = preview(before, after, [busy], options=Options()).queues
    assert change.going == (f"gpustack--amd-25-linux-amd64-4c-{ZONED}",)
    assert change.fate is Fate.DRAIN


def test_a_queue_without_a_plan_is_refused_and_keeps_its_last_one():
    (change,) = preview(
        live({"a": HALL}, ZONED),
        inventory({"a": HALL}, REGION, ZONE),
        [Queue.of({"metadata": {"name": "old", "labels": POOL}, "spec": OTHER_GROUPS})],
        options=Options(),
    ).queues
    assert (change.fate, change.refusal.reason) == (Fate.REFUSED, "UnsupportedExistingObject")
    assert change.before == change.after


OTHER_GROUPS = {
    "resourceGroups": [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "foreign", "resources": [{"name": "cpu", "nominalQuota": "3"}]}],
        }
    ]
}


def test_flavors_that_exist_without_a_node_go():
    found = preview(
        live({"a": HALL}, ZONED), inventory({"a": HALL}, REGION, ZONE), [], flavors={"x"}, options=Options()
    )
    assert found.gone_flavors == ("x",)
    assert found.new_flavors == (f"gpustack--amd-25-linux-amd64-4c-{ZONED}",)


def test_labels_are_projected_as_nfd_does():
    nodes = {"a": {"own": "x", ZONE: "old", RACK: "r"}, "b": {"own": "y"}}
    found = projected(nodes, before={"a": {ZONE: "old", RACK: "r"}}, after={"a": {ZONE: "new"}})
    assert found == {"a": {"own": "x", ZONE: "new"}, "b": {"own": "y"}}


def test_a_queue_is_explained_with_its_flavors_and_with_its_refusal():
    """B10."""
    world = world_of({"a": HALL, "b": HALL}, ZONED)
    queue = live_queue(world, reserved=0)
    plan = plan_queue(queue, world, options=Options())
    assert isinstance(plan, Plan)
    lines = {line.what: line.text for line in explain_queue(queue, world, Desired(plan), now=NOW, options=Options())}
    assert lines["pool"] == "2 managed Nodes: a, b"
    assert lines[f"flavor gpustack--amd-25-linux-amd64-4c-{ZONED}"] == "2 Nodes, quota 8"
    assert lines["condition"] == "True/Ready"
    missing = World(world.flavors, frozenset(), world.nodes)
    refused = plan_queue(queue, missing, options=Options())
    lines = {
        line.what: line.text for line in explain_queue(queue, missing, Desired(refused), now=NOW, options=Options())
    }
    assert lines["plan"].startswith("refused, MissingTopology: ")
    assert lines[f"flavor gpustack--amd-25-linux-amd64-4c-{ZONED}"] == "2 Nodes, capacity 8", (
        "most wanted when there is no plan"
    )

"""Explanations of a Node and of a queue (topology-scheduling.md, 12: B9 and B10)."""

from dataclasses import replace

from gitops_ctl.scheduling.explain import explain_node, explain_queue, hostname_clashes
from gitops_ctl.scheduling.migration import Desired, Unsettled
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue_plan import World
from gitops_ctl.scheduling.source import TopologySource
from tests.support.scheduling_queue import NOW, PHASE, SAVED, STARTED, STOPPED, TAS, plan, queue

ZONE, RACK, HOSTNAME = "topology.kubernetes.io/zone", "topology.gpustack.ai/rack", "kubernetes.io/hostname"


def source(name="hall", *, ready=("True", "Observed"), selector=None):
    return TopologySource(name, f"uid-{name}", "NodeLabels", (ZONE, RACK), selector or {}, ready=ready)


def told(lines):
    return {line.what: line.text for line in lines}


def test_a_node_is_explained_from_its_sources_to_its_flavors():
    labels = {
        ZONE: "a",
        "gpustack.ai/managed": "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.gpustack.ai/profile": "fnv64-87bf574bea2a4f23",
    }
    other = source("other", selector={"matchLabels": {"x": "y"}})
    found = told(explain_node(labels, (source(), other, source("late", ready=("False", "Expired"))), options=Options()))
    assert found["source hall"] == "counts: Ready"
    assert found["source other"] == "does not count: its selector does not choose the Node"
    assert found["source late"] == "does not count: not Ready: Expired"
    assert found["first gap"] == f"the Node has no value for {RACK}"
    assert found["hash input"] == f"{ZONE}, {HOSTNAME}"
    assert found["profile"] == "fnv64-f7b1861ac0399767"
    assert found["label"] == "the Node still carries fnv64-87bf574bea2a4f23"
    assert found["topology"] == "gpustack-fnv64-f7b1861ac0399767"
    assert found["flavors"] == "none"
    assert "exactly one general key" in found["warning"]


def test_an_ambiguous_node_is_explained():
    found = told(explain_node({ZONE: "a"}, (source("a"), source("b")), options=Options()))
    assert found["levels"].startswith("2 sources count")
    assert found["label"] == "the Node does not carry it yet"
    assert found["hash input"] == HOSTNAME


def test_options_that_act_on_a_node_are_named():
    tiers = tuple(f"fabric.topograph.run/tier-{number}" for number in (1, 3, 2))
    key, device = "general.feature.gpustack.ai/amd-25", "acceleratable.feature.gpustack.ai/nvidia-a10"
    labels = {
        **dict.fromkeys(tiers, "x"),
        "gpustack.ai/managed": "true",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "feature.gpustack.ai/acceleratable": "true",
        **{key: "true", f"{key}.count": "4", device: "true", f"{device}.count": "2"},
    }
    fabric = replace(source(), levels=tiers)
    acting = told(explain_node(labels, (fabric,), options=Options(sort_fabric_tiers=True, mixed_on_node=False)))
    assert "(sort-fabric-tiers)" in acting["order"]
    assert "(mixed-on-node)" in acting["mixed"]
    assert told(explain_node(labels, (fabric,), options=Options())).keys().isdisjoint({"order", "mixed"})


EMPTY = World((), frozenset(), {})


def test_a_queue_that_waits_for_an_approval_says_what_goes():
    live = queue(marks={TAS: "true"}, reserved={"a": 1}, workloads=1, a=4, b=4)
    options = Options(require_drain_approval=True)
    found = told(explain_queue(live, EMPTY, Desired(plan(c=4)), now=NOW, options=options))
    assert found["pool"] == "no managed Node"
    assert found["dropped flavor a"] == "in use"
    assert found["dropped flavor b"] == "usage unknown"
    assert found["approval"].startswith("missing for sha256:")
    assert found["condition"].startswith("False/AwaitingDrainApproval: ")


def test_a_queue_in_a_drain_says_how_old_it_is():
    marks = {TAS: "true", PHASE: "draining", SAVED: "None", STARTED: "2031-04-02T05:00:00Z"}
    live = queue("HoldAndDrain", marks, active=STOPPED, workloads=2, a=4)
    desired = Desired(plan(b=4), unsettled=Unsettled("n1", "its profile", 31.0))
    found = told(explain_queue(live, EMPTY, desired, now=NOW, options=Options()))
    assert found["drain"] == "draining, age 1h"
    assert found["unsettled"] == "node n1 lacks its profile"
    assert "2 Workloads reserve" in found["DrainStuck"]
    lost = queue("HoldAndDrain", {**marks, STARTED: ""}, active=STOPPED, workloads=2, a=4)
    assert told(explain_queue(lost, EMPTY, desired, now=NOW, options=Options()))["drain"] == "draining, age unknown"


def test_a_policy_that_is_not_from_git_is_named():
    found = told(
        explain_queue(queue("Hold", {TAS: "true"}, a=4), EMPTY, Desired(plan(a=4)), now=NOW, options=Options())
    )
    assert "stopPolicy Hold" in found["NotFromGit"]


def test_a_host_name_that_is_also_a_domain_is_found():
    nodes = {"a": {HOSTNAME: "hall7", ZONE: "hall7"}, "b": {HOSTNAME: "b", ZONE: "hall7"}, "c": {}}
    assert hostname_clashes(nodes, ZONE) == ("a",)
    assert hostname_clashes(nodes, RACK) == ()

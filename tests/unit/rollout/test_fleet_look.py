"""The look over the whole fleet: who is a member, who is badly formed, and that nothing is judged twice."""

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.node import node_of
from gitops_ctl.rollout import fleetlook
from gitops_ctl.rollout.fleetlook import Ages, FleetMemo, Seen
from gitops_ctl.rollout.inventory import FleetBook
from tests.support.rollout_planning import NOW, SITE, changed, device, fleet, node, observed, policy_record, rollout

RISK = [
    {"name": "pair", "selector": {"matchLabels": {SITE: "site-a"}}, "maxConcurrentTransfers": 1, "maxUnavailable": 1}
]


def seen(trees, *, memo=None, policy=None, nodes=None, now=NOW, **more):
    memo = memo or FleetMemo()
    nodes = {one.name: one for one in map(node_of, map(node, trees) if nodes is None else nodes)}
    return memo.look(tuple(map(device_of, trees)), nodes, policy=(policy or policy_record()).policy, now=now, **more)


def test_members_stand_in_the_order_of_names_whatever_the_order_of_the_list():
    trees = [device("b"), device("a", namespace="prod"), device("c", namespace="lab")]
    look = seen(trees)
    assert [one.device_uid for one in look.members] == ["lab-c-uid", "a-uid", "b-uid"]
    assert seen(list(reversed(trees))) == look


def test_retired_devices_and_those_outside_the_fleet_are_no_members_and_block_nobody():
    retired = changed(device("edge-8"), "status", "retired", to={"rolloutName": "winter"})
    outside = changed(device("edge-9"), "metadata", "labels", "topology.cisco.vk/managed", to="no")
    broken = [changed(tree, "status", "nodeIdentity", to=None) for tree in (retired, outside)]
    look = seen([device("edge-1"), *broken], nodes=[node(device("edge-1"))])
    assert [one.device_uid for one in look.members] == ["edge-1-uid"]
    assert look.problems == ()


def test_the_first_badly_formed_device_is_named_with_its_check():
    trees = fleet(3)
    nodes = [node(tree) for tree in trees]
    nodes[1] = changed(nodes[1], "metadata", "annotations", "topology.cisco.vk/projection-hash", to="sha256:0")
    look = seen([*trees, device("edge-4")], nodes=nodes)
    assert [(one.device, one.check) for one in look.problems] == [
        ("prod/edge-2", "ProjectionStale"),
        ("prod/edge-4", "NodeBindingInvalid"),
    ]
    assert len(look.members) == 2


def test_age_is_looked_at_each_time_and_the_rest_is_not_judged_again(monkeypatch):
    judged = []
    real = fleetlook.standing_of
    monkeypatch.setattr(fleetlook, "standing_of", lambda *given: judged.append(given[0].name) or real(*given))
    memo, trees = FleetMemo(), fleet(3)
    trees[1] = changed(trees[1], "status", "healthObservation", to=observed(trees[1]["status"]["conditions"], age=200))
    assert [one.unavailable for one in seen(trees, memo=memo).members] == [False, False, False]
    assert [one.unavailable for one in seen(trees, memo=memo, ages=Ages(100)).members] == [False, True, False]
    assert judged == ["edge-1", "edge-2", "edge-3"]


def test_the_strict_plan_of_a_campaign_makes_no_other_member_unavailable():
    trees = fleet(3)
    for place in (0, 1):
        health = observed(trees[place]["status"]["conditions"], age=200)
        trees[place] = changed(trees[place], "status", "healthObservation", to=health)
    ages = Ages(300, 100, frozenset({"edge-1-uid"}))
    assert [one.unavailable for one in seen(trees, ages=ages).members] == [True, False, False]
    # A plan that asks for less than the policy loosens nothing.
    loose = Ages(100, 3600, frozenset({"edge-1-uid"}))
    assert [one.unavailable for one in seen(trees, ages=loose).members] == [True, True, False]


@pytest.mark.parametrize("what", ["device", "node", "policy"])
def test_a_new_version_of_device_node_or_policy_is_judged_again(what, monkeypatch):
    judged = []
    real = fleetlook.standing_of
    memo, trees = FleetMemo(), fleet(2)
    nodes = [node(tree) for tree in trees]
    seen(trees, memo=memo, nodes=nodes)
    monkeypatch.setattr(fleetlook, "standing_of", lambda *given: judged.append(given[0].name) or real(*given))
    later, beating, policy = list(trees), list(nodes), policy_record()
    if what == "device":
        later[0] = changed(trees[0], "metadata", "resourceVersion", to="42")
    elif what == "node":
        beating[0] = changed(nodes[0], "metadata", "resourceVersion", to="78")
    else:
        policy = policy_record(riskGroups=RISK)
    look = seen(later, memo=memo, nodes=beating, policy=policy)
    assert judged == (["edge-1", "edge-2"] if what == "policy" else ["edge-1"])
    assert len(look.members) == 2


def test_the_membership_hash_changes_with_memberships_only():
    trees = [*fleet(2), device("edge-3", zone="b")]
    policy = policy_record(riskGroups=RISK)
    memo = FleetMemo()
    before = seen(trees, memo=memo, policy=policy).membership_hash
    ill = [changed(trees[0], "status", "phase", to="Error"), *trees[1:]]
    assert seen(ill, memo=memo, policy=policy).membership_hash == before
    without = [*trees[:2]]
    assert seen(without, memo=memo, policy=policy).membership_hash == before
    assert seen(trees[1:], memo=memo, policy=policy).membership_hash != before


def test_the_digest_of_a_fleet_ignores_health_and_sees_bad_form():
    trees = fleet(2)
    before = seen(trees).digest
    ill = [changed(trees[0], "status", "phase", to="Error"), trees[1]]
    assert seen(ill).digest == before
    broken = [changed(trees[0], "status", "nodeIdentity", to=None), trees[1]]
    assert seen(broken, nodes=[node(tree) for tree in trees]).digest != before


class Shelf:
    """An inventory whose reads are counted; `versions` are those of the devices."""

    def __init__(self, trees):
        self.trees = {NamespacedName.of(tree): tree for tree in trees}
        self.versions = dict.fromkeys(self.trees, "1")
        self.reads = []
        self.usable = True

    def seen(self):
        return [Seen(key, ("uid", version, "node", "1")) for key, version in self.versions.items()]

    def read(self, key):
        self.reads.append(key.name)
        tree = self.trees[key]
        return device_of(tree), node_of(node(tree))

    def subscribe(self, **wakes):
        raise AssertionError("nobody asks for that here")


async def test_devices_of_a_plan_are_read_again_only_in_another_version():
    shelf, policy = Shelf(fleet(3)), policy_record().policy
    book = FleetBook(shelf, clock=SystemClock(), learned=lambda: None)
    first = await book.for_planning(policy, rollout())
    assert sorted(shelf.reads) == ["edge-1", "edge-1", "edge-2", "edge-2", "edge-3", "edge-3"], "to judge and to plan"
    shelf.reads.clear()
    again = await book.for_planning(policy, rollout())
    assert (again.devices, again.nodes) == (first.devices, first.nodes)
    assert shelf.reads == []
    shelf.versions[NamespacedName("prod", "edge-2")] = "2"
    await book.for_planning(policy, rollout())
    assert shelf.reads == ["edge-2", "edge-2"]
    book.forget()
    shelf.reads.clear()
    await book.for_planning(policy, rollout())
    assert len(shelf.reads) == 6

"""The fleet policy: what it says about a device, and its hashes (rollouts.md, section 7.2 and 7.3)."""

import copy
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import compact_json
from gitops_ctl.fleet.policy import (
    matches_fleet,
    parse_policy,
    protection_of,
    risk_groups_of,
    semantic_hash,
    semantic_input,
    structural_hash,
    structural_input,
    transfer_rate,
)
from tests.support.fleet_objects import CACHE, REDUNDANCY, SITE, a_policy, policy_tree
from tests.support.fleet_policies import DRAIN, by, group, protection
from tests.support.fleet_vectors import policy_text, published_hash, vector


def test_the_published_policy_is_read_and_gives_both_published_hashes():
    policy = parse_policy(policy_text())
    semantic, structural = vector("policy-semantic-hash"), vector("policy-structural-hash")
    assert compact_json(semantic_input(policy)) == compact_json(semantic["input"])
    assert compact_json(structural_input(policy)) == compact_json(structural["input"])
    assert semantic_hash(policy) == published_hash("policy-semantic-hash")
    assert structural_hash(policy) == published_hash("policy-structural-hash")


# ---- what it says about a device ----


def test_a_device_is_in_the_fleet_by_its_labels_alone():
    policy = a_policy()
    assert matches_fleet(policy, {names.MANAGED: "true"})
    assert not matches_fleet(policy, {names.MANAGED: "false"})


def test_the_first_protection_in_the_order_of_names_gives_the_reason():
    rules = [
        protection("b-singleton", reason="SingletonPath"),
        protection("a-critical", selector=by(names.ZONE, "zone-a")),
        protection("c", selector=by(names.ZONE, "zone-b")),
    ]
    policy = a_policy(disruptionProtections=rules)
    assert protection_of(policy, {SITE: "plant-1", names.ZONE: "zone-a"}) == "CriticalServiceProtected"
    assert protection_of(policy, {SITE: "plant-1"}) == "SingletonPathProtected"
    assert protection_of(policy, {names.ZONE: "zone-c"}) == ""


def test_risk_groups_overlap_and_are_sorted_by_name():
    policy = a_policy(
        riskGroups=[
            group("site"),
            group("cache", selector=by(CACHE, "c1")),
            group("zone", selector=by(names.ZONE, "z")),
        ]
    )
    assert risk_groups_of(policy, {SITE: "plant-1", CACHE: "c1"}) == ("cache", "site")
    assert risk_groups_of(policy, {SITE: "plant-2"}) == ()


MEGABYTES = 1_000_000


def test_the_rate_of_a_transfer_is_the_least_share_of_its_groups():
    two_slots = group("wide", maxConcurrentTransfers=2, maxAggregateTransferBytesPerSecond=20 * MEGABYTES)
    one_slot = group(
        "narrow", selector=by(CACHE, "c1"), maxConcurrentTransfers=1, maxAggregateTransferBytesPerSecond=8 * MEGABYTES
    )
    unpaced = group("unpaced", selector=by(names.ZONE, "z"))
    policy = a_policy(riskGroups=[two_slots, one_slot, unpaced])
    assert transfer_rate(policy, {SITE: "plant-1", CACHE: "c1", names.ZONE: "z"}) == 8 * MEGABYTES
    assert transfer_rate(policy, {SITE: "plant-1"}) == 10 * MEGABYTES
    assert transfer_rate(policy, {names.ZONE: "z"}) == 0
    assert transfer_rate(policy, {}) == 0


def test_a_share_is_rounded_down():
    policy = a_policy(riskGroups=[group(maxConcurrentTransfers=3, maxAggregateTransferBytesPerSecond=8)])
    assert transfer_rate(policy, {SITE: "plant-1"}) == 2


# ---- hashes ----


def test_a_disabled_drain_is_an_absent_one():
    absent, disabled = a_policy(), a_policy(workloadDrain={**DRAIN, "enabled": False})
    assert disabled.drain is None
    assert semantic_hash(disabled) == semantic_hash(absent)
    assert semantic_hash(a_policy(workloadDrain=DRAIN)) != semantic_hash(absent)


def test_optional_members_are_left_out_of_both_inputs_and_the_empty_lease_namespace_is_not():
    for tree in (semantic_input(a_policy()), structural_input(a_policy())):
        assert not tree.keys() & {"workloadDrain", "riskGroups", "disruptionProtections"}
        assert tree["configLeaseNamespace"] == ""


def test_protections_stand_directly_before_risk_groups_in_both_hashes():
    policy = a_policy(
        disruptionProtections=[protection("b"), protection("a")], riskGroups=[group()], workloadDrain=DRAIN
    )
    for tree in (semantic_input(policy), structural_input(policy)):
        members = list(tree)
        assert members[members.index("disruptionProtections") + 1] == "riskGroups"
        assert [rule["name"] for rule in tree["disruptionProtections"]] == ["a", "b"]
        assert list(tree["disruptionProtections"][0]) == ["name", "reason", "selector"]
    assert list(semantic_input(policy)) == list(names.POLICY_SEMANTIC_MEMBERS)
    assert list(structural_input(policy)) == list(names.POLICY_STRUCTURAL_MEMBERS)


NUMBERS_OF_THE_DAY = {
    "globalMaxConcurrentTransfers": 9,
    "globalMaxUnavailable": 9,
    "domainMaxConcurrentTransfers": {CACHE: 9},
    "domainMaxUnavailable": {names.ZONE: 9},
    "healthFreshnessSeconds": 90,
    "maxCampaignTargets": 9,
    "maxActiveReservations": 9,
    "maxLedgerBytes": 9000,
    "workloadDrain": DRAIN,
}
SHAPE = {
    "appHostingServiceAccountName": "other",
    "networkManagementServiceAccountName": "other",
    "configLeaseNamespace": "leases",
    "fleetSelector": by(names.MANAGED, "yes"),
    "requiredTopologyKeys": [names.REGION, names.ZONE, SITE, CACHE],
    "projectedTopologyKeys": [names.ZONE],
    "domainMaxConcurrentTransfers": {CACHE: 1, names.REGION: 1},
    "domainMaxUnavailable": {REDUNDANCY: 1},
    "ledgerName": "other",
    "riskGroups": [group()],
    "disruptionProtections": [protection()],
}


@pytest.mark.parametrize("member", NUMBERS_OF_THE_DAY)
def test_a_plain_number_changes_only_the_semantic_hash(member):
    old, new = a_policy(), a_policy(**{member: NUMBERS_OF_THE_DAY[member]})
    assert structural_hash(new) == structural_hash(old)
    assert semantic_hash(new) != semantic_hash(old)


@pytest.mark.parametrize("member", SHAPE)
def test_a_change_of_shape_changes_both_hashes(member):
    old, new = a_policy(), a_policy(**{member: SHAPE[member]})
    assert structural_hash(new) != structural_hash(old)
    assert semantic_hash(new) != semantic_hash(old)


@pytest.mark.parametrize("change", [{"maxUnavailable": 2}, {"maxConcurrentTransfers": 1}])
def test_a_number_of_a_risk_group_changes_both_hashes(change):
    old, new = a_policy(riskGroups=[group()]), a_policy(riskGroups=[group(**change)])
    assert structural_hash(new) != structural_hash(old)
    assert semantic_hash(new) != semantic_hash(old)


def reordered(value, random):
    """The same JSON value, members of objects in another order."""
    if isinstance(value, dict):
        return {key: reordered(value[key], random) for key in random.sample(list(value), len(value))}
    return [reordered(item, random) for item in value] if isinstance(value, list) else value


RICH = policy_tree(
    fleetSelector={
        "matchLabels": {names.MANAGED: "true", SITE: "plant-1"},
        "matchExpressions": [
            {"key": SITE, "operator": "In", "values": ["plant-1", "plant-2"]},
            {"key": "topology.cisco.vk/rack", "operator": "Exists"},
        ],
    },
    domainMaxUnavailable={names.ZONE: 1, REDUNDANCY: 2},
    workloadDrain={**DRAIN, "allowedNamespaces": ["b", "a"]},
    disruptionProtections=[protection("b"), protection("a", reason="SingletonPath")],
    riskGroups=[group("b"), group("a", selector=by(CACHE, "c"))],
)
SETS = ("requiredTopologyKeys", "projectedTopologyKeys", "disruptionProtections", "riskGroups")


@pytest.mark.property
@given(st.integers(0, 2**32))
def test_no_hash_depends_on_the_order_of_members_or_sets(seed):
    random = Random(seed)
    tree = reordered(RICH, random)
    for name in SETS:
        random.shuffle(tree[name])
    random.shuffle(tree["workloadDrain"]["allowedNamespaces"])
    policy, same = parse_policy(json.dumps(RICH)), parse_policy(json.dumps(tree))
    assert semantic_hash(policy) == semantic_hash(same)
    assert structural_hash(policy) == structural_hash(same)


def test_hashing_does_not_reorder_the_policy():
    policy = parse_policy(json.dumps(RICH))
    before = copy.deepcopy((policy.required_keys, policy.drain, policy.protections, policy.risk_groups))
    semantic_hash(policy)
    structural_hash(policy)
    assert (policy.required_keys, policy.drain, policy.protections, policy.risk_groups) == before
    assert [rule.name for rule in policy.protections] == ["b", "a"]
    assert policy.required_keys[0] == names.REGION

"""The fleet policy: every bound, each with its place (rollouts.md, section 7.1)."""

import json

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet import names
from gitops_ctl.fleet.policy import (
    parse_policy,
    semantic_hash,
)
from tests.support.fleet_objects import CACHE, REDUNDANCY, SITE, a_policy, policy_tree
from tests.support.fleet_policies import DRAIN, by, group, keys, protection
from tests.support.fleet_vectors import policy_text


def test_the_members_of_a_policy_are_what_was_written_in_the_order_in_which_it_was_written():
    policy = parse_policy(policy_text())
    assert policy.required_keys[:2] == (names.REGION, names.ZONE)
    assert policy.projected_keys[0] == names.REGION
    assert policy.drain is not None
    assert policy.drain.max_timeout_s == 3600
    assert policy.domain_keys == (CACHE, REDUNDANCY, names.REGION, names.ZONE)
    assert policy.risk_groups[0].bytes_per_transfer == 25_000_000


REFUSED = {
    # member: (changes, pointer, words)
    "an unknown member": ({"maxTargets": 3}, "/maxTargets", "'maxTargets' is no member of the document"),
    "another version": ({"version": "v2"}, "/version", "version must be 'v1', not 'v2'"),
    "no version": ({"version": ...}, "/version", "version is required"),
    "no app account": ({"appHostingServiceAccountName": ...}, "/appHostingServiceAccountName", "is required"),
    "an account that is no DNS label": (
        {"appHostingServiceAccountName": "a.b"},
        "/appHostingServiceAccountName",
        "must be a DNS label",
    ),
    "a network account that is no DNS label": (
        {"networkManagementServiceAccountName": "A"},
        "/networkManagementServiceAccountName",
        "must be a DNS label",
    ),
    "one account for both planes": (
        {"networkManagementServiceAccountName": "release-app-hosting"},
        "/networkManagementServiceAccountName",
        "must differ from",
    ),
    "a Lease namespace that is none": (
        {"configLeaseNamespace": "a/b"},
        "/configLeaseNamespace",
        "empty or a DNS label",
    ),
    "no fleet selector": ({"fleetSelector": ...}, "/fleetSelector", "fleetSelector is required"),
    "an empty fleet selector": ({"fleetSelector": {}}, "/fleetSelector", "must not be empty"),
    "an empty fleet selector with empty parts": (
        {"fleetSelector": {"matchLabels": {}, "matchExpressions": []}},
        "/fleetSelector",
        "must not be empty",
    ),
    "a foreign key in the fleet selector": (
        {"fleetSelector": by(names.ZONE, "a")},
        "/fleetSelector",
        "keys of topology",
    ),
    "a risk fact in the fleet selector": ({"fleetSelector": by(REDUNDANCY, "a")}, "/fleetSelector", "keys of topology"),
    "a flaw deep in the fleet selector": (
        {"fleetSelector": {"matchExpressions": [{"key": "topology.cisco.vk/x", "operator": "In", "values": []}]}},
        "/fleetSelector/matchExpressions/0/values",
        "needs values",
    ),
    "no required key": ({"requiredTopologyKeys": []}, "/requiredTopologyKeys", "1 to 16 entries, not 0"),
    "too many required keys": ({"requiredTopologyKeys": keys(17)}, "/requiredTopologyKeys", "1 to 16 entries, not 17"),
    "a required key twice": (
        {"requiredTopologyKeys": [names.ZONE, names.ZONE]},
        "/requiredTopologyKeys/1",
        "twice in requiredTopologyKeys",
    ),
    "a foreign required key": (
        {"requiredTopologyKeys": ["example.net/rack"]},
        "/requiredTopologyKeys/0",
        "no topology key",
    ),
    "a required key that is no label key": (
        {"requiredTopologyKeys": ["topology.cisco.vk/"]},
        "/requiredTopologyKeys/0",
        "no label key of at most 96 bytes",
    ),
    "a long required key": (
        {"requiredTopologyKeys": [f"topology.cisco.vk/{'k' * 63}", f"topology.cisco.vk/{'k' * 79}"]},
        "/requiredTopologyKeys/1",
        "no label key of at most 96 bytes",
    ),
    "a projected key that is not required": (
        {"projectedTopologyKeys": ["topology.cisco.vk/other"]},
        "/projectedTopologyKeys/0",
        "not among requiredTopologyKeys",
    ),
    "a projected risk fact": ({"projectedTopologyKeys": [REDUNDANCY]}, "/projectedTopologyKeys/0", "never projected"),
    "a projected locality": ({"projectedTopologyKeys": [SITE, CACHE]}, "/projectedTopologyKeys/1", "never projected"),
    "a projected key twice": ({"projectedTopologyKeys": [SITE, SITE]}, "/projectedTopologyKeys/1", "twice"),
    "no global transfers": ({"globalMaxConcurrentTransfers": ...}, "/globalMaxConcurrentTransfers", "is required"),
    "a domain key that is not required": (
        {"domainMaxUnavailable": {"topology.cisco.vk/other": 1}},
        "/domainMaxUnavailable/topology.cisco.vk~1other",
        "not among requiredTopologyKeys",
    ),
    "an empty map of transfers": (
        {"domainMaxConcurrentTransfers": {}},
        "/domainMaxConcurrentTransfers",
        "1 to 16 members",
    ),
    "an empty map of unavailability": ({"domainMaxUnavailable": {}}, "/domainMaxUnavailable", "1 to 16 members, not 0"),
    "a ledger name that is none": ({"ledgerName": "a_b"}, "/ledgerName", "must be a DNS subdomain"),
    "no ledger name": ({"ledgerName": ...}, "/ledgerName", "ledgerName is required"),
    "a drain without namespaces": (
        {"workloadDrain": {**DRAIN, "allowedNamespaces": []}},
        "/workloadDrain/allowedNamespaces",
        "1 to 16 entries",
    ),
    "a drain with a bad namespace": (
        {"workloadDrain": {**DRAIN, "allowedNamespaces": ["a", "b.c"]}},
        "/workloadDrain/allowedNamespaces/1",
        "must be a DNS label",
    ),
    "a drain without a timeout": (
        {"workloadDrain": {"enabled": True, "allowedNamespaces": ["a"]}},
        "/workloadDrain/maxTimeoutSeconds",
        "is required",
    ),
    "a drain that ends before its Pods may": (
        {"workloadDrain": {**DRAIN, "maxTimeoutSeconds": 719}},
        "/workloadDrain/maxTimeoutSeconds",
        "at least maxTerminationGraceSeconds \\+ 120",
    ),
    "an unknown member of the drain": (
        {"workloadDrain": {**DRAIN, "force": True}},
        "/workloadDrain/force",
        "no member",
    ),
    "an unknown member of a disabled drain": (
        {"workloadDrain": {"enabled": False, "force": True}},
        "/workloadDrain/force",
        "no member",
    ),
    "a protection without a reason": (
        {"disruptionProtections": [{"name": "core", "selector": by(SITE, "a")}]},
        "/disruptionProtections/0/reason",
        "reason is required",
    ),
    "an arbitrary reason": (
        {"disruptionProtections": [protection(reason="Important")]},
        "/disruptionProtections/0/reason",
        "CriticalService or SingletonPath, not 'Important'",
    ),
    "a protection twice": (
        {"disruptionProtections": [protection(), protection(reason="SingletonPath")]},
        "/disruptionProtections/1/name",
        "'core' is twice",
    ),
    "a protection of everything": (
        {"disruptionProtections": [protection(selector={})]},
        "/disruptionProtections/0/selector",
        "must not be empty",
    ),
    "a protection by a key that is not required": (
        {"disruptionProtections": [protection(selector=by("topology.cisco.vk/other", "a"))]},
        "/disruptionProtections/0/selector",
        "not among requiredTopologyKeys",
    ),
    "a protection with a blank name": (
        {"disruptionProtections": [protection("a b")]},
        "/disruptionProtections/0/name",
        "printable",
    ),
    "a protection with a long name": (
        {"disruptionProtections": [protection("a" * 63), protection("b" * 64)]},
        "/disruptionProtections/1/name",
        "1 to 63 printable",
    ),
    "a group twice": ({"riskGroups": [group(), group()]}, "/riskGroups/1/name", "'path-1' is twice in riskGroups"),
    "a group with a bad name": ({"riskGroups": [group("Path")]}, "/riskGroups/0/name", "must be a DNS label"),
    "a group with a long name": ({"riskGroups": [group("p" * 64)]}, "/riskGroups/0/name", "must be a DNS label"),
    "a group of everything": ({"riskGroups": [group(selector={})]}, "/riskGroups/0/selector", "must not be empty"),
    "a group by a key that is not required": (
        {"riskGroups": [group(selector=by("topology.cisco.vk/other", "a"))]},
        "/riskGroups/0/selector",
        "not among requiredTopologyKeys",
    ),
    "a group whose rate leaves nothing": (
        {"riskGroups": [group(maxAggregateTransferBytesPerSecond=1)]},
        "/riskGroups/0/maxAggregateTransferBytesPerSecond",
        "at least 1 byte",
    ),
    "a group without a limit": (
        {"riskGroups": [{"name": "a", "selector": by(SITE, "a"), "maxConcurrentTransfers": 1}]},
        "/riskGroups/0/maxUnavailable",
        "is required",
    ),
    "an unknown member of a group": ({"riskGroups": [group(weight=1)]}, "/riskGroups/0/weight", "no member"),
    "too many groups": ({"riskGroups": [group(f"g{n}") for n in range(17)]}, "/riskGroups", "0 to 16 entries, not 17"),
    "a map where a list belongs": ({"riskGroups": {}}, "/riskGroups", "must be a list"),
}


@pytest.mark.parametrize(("changes", "pointer", "words"), REFUSED.values(), ids=REFUSED)
def test_a_policy_that_breaks_a_rule_is_refused_at_its_place(changes, pointer, words):
    with pytest.raises(Refused, match=words) as refused:
        a_policy(**changes)
    assert refused.value.code is ErrorCode.FLEET_POLICY_INVALID
    assert refused.value.subject == f"policy.json#{pointer}"


NUMBERS = {
    "globalMaxConcurrentTransfers": (1, 100),
    "globalMaxUnavailable": (1, 100),
    "healthFreshnessSeconds": (30, 3600),
    "maxCampaignTargets": (1, 100),
    "maxActiveReservations": (1, 256),
    "maxLedgerBytes": (4096, 262144),
}
NESTED = {
    "/domainMaxConcurrentTransfers/topology.kubernetes.io~1zone": (1, 100),
    "/domainMaxUnavailable/topology.kubernetes.io~1zone": (1, 100),
    "/workloadDrain/maxTimeoutSeconds": (300, 7200),
    "/workloadDrain/maxPods": (1, 32),
    "/workloadDrain/maxTerminationGraceSeconds": (30, 600),
    "/riskGroups/0/maxConcurrentTransfers": (1, 100),
    "/riskGroups/0/maxUnavailable": (1, 100),
}
BOUNDS = {**{f"/{name}": bounds for name, bounds in NUMBERS.items()}, **NESTED}
ZERO_IS_THE_MOST = ("/maxCampaignTargets", "/maxActiveReservations", "/maxLedgerBytes")


def with_number(pointer, value):
    tree = policy_tree(
        domainMaxConcurrentTransfers={names.ZONE: 1},
        workloadDrain={**DRAIN, "maxTimeoutSeconds": 7200, "maxTerminationGraceSeconds": 60},
        riskGroups=[group()],
    )
    *steps, last = [step.replace("~1", "/") for step in pointer[1:].split("/")]
    place = tree
    for step in steps:
        place = place[int(step) if isinstance(place, list) else step]
    place[last] = value
    return json.dumps(tree)


@pytest.mark.parametrize(("pointer", "bounds"), BOUNDS.items(), ids=BOUNDS)
def test_a_number_is_accepted_at_its_bounds_and_refused_beyond(pointer, bounds):
    least, most = bounds
    parse_policy(with_number(pointer, least))
    parse_policy(with_number(pointer, most))
    for value in {least - 1, most + 1, -1} - ({0} if pointer in ZERO_IS_THE_MOST else set()):
        with pytest.raises(Refused, match=f"must be {least} to {most}, not {value}") as refused:
            parse_policy(with_number(pointer, value))
        assert refused.value.subject == f"policy.json#{pointer}"
    for value in ("1", True, [], {}):
        with pytest.raises(Refused, match="must be a whole number") as refused:
            parse_policy(with_number(pointer, value))
        assert refused.value.subject == f"policy.json#{pointer}"


@pytest.mark.parametrize("value", [0, None, ...], ids=("zero", "null", "absent"))
def test_a_limit_that_is_not_set_is_the_largest(value):
    policy = a_policy(maxCampaignTargets=value, maxActiveReservations=value, maxLedgerBytes=value)
    largest = a_policy(maxCampaignTargets=100, maxActiveReservations=256, maxLedgerBytes=262144)
    assert policy == largest
    assert semantic_hash(policy) == semantic_hash(largest)


def test_both_maps_together_have_at_most_sixteen_keys():
    required = keys(16)
    a_policy(
        requiredTopologyKeys=required,
        projectedTopologyKeys=[],
        domainMaxConcurrentTransfers=dict.fromkeys(required[:9], 1),
        domainMaxUnavailable=dict.fromkeys(required[7:], 1),
    )


@pytest.mark.parametrize(
    ("changed", "pointer", "words"),
    [
        (lambda text: text.replace('"version": "v1"', '"version": "v1", "version": "v1"'), "/version", "twice"),
        (lambda text: f"{text} {{}}", "", "after the object"),
        (lambda text: text.replace(": 300", ": 300.0"), "/healthFreshnessSeconds", "no whole number"),
        (lambda text: text.replace(": 300", ": NaN"), "/healthFreshnessSeconds", "NaN"),
        (lambda text: text.replace(": 300", f": {10**30}"), "/healthFreshnessSeconds", "too large"),
        (lambda text: text.replace("{", '{"x": "' + "y" * (1 << 20) + '",', 1), "", "1048576 are allowed"),
        (lambda text: "", "", "empty"),
    ],
    ids=("duplicate", "trailing data", "fraction", "NaN", "big number", "too long", "empty"),
)
def test_the_text_of_a_policy_is_strict_json(changed, pointer, words):
    with pytest.raises(Refused, match=words) as refused:
        parse_policy(changed(json.dumps(policy_tree())))
    assert refused.value.subject == f"policy.json#{pointer}"

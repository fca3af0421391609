"""The fleet policy: what it says about a device, and its two hashes (rollouts.md, section 7).

Hashing works on copies: the lists of a policy keep the order in which they were written.
"""

from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import ordered, sha256_of, sorted_map, without_empty
from gitops_ctl.fleet.policyreader import read_policy
from gitops_ctl.fleet.policytypes import FleetPolicy, Protection, RiskGroup, WorkloadDrain
from gitops_ctl.fleet.selector import Expression, Selector, selector_of
from gitops_ctl.fleet.strict import Malformed

__all__ = [
    "Expression",
    "FleetPolicy",
    "Protection",
    "RiskGroup",
    "Selector",
    "WorkloadDrain",
    "matches_fleet",
    "parse_policy",
    "protection_of",
    "risk_groups_of",
    "selector_of",
    "semantic_hash",
    "semantic_input",
    "structural_hash",
    "structural_input",
    "transfer_rate",
]

Labels = Mapping[str, str]

_OPTIONAL: Final = frozenset({"workloadDrain", "disruptionProtections", "riskGroups"})
"""Members of the hashes that are left out when empty; `configLeaseNamespace` is not among them."""


def parse_policy(text: str) -> FleetPolicy:
    """The policy in the text of the key `policy.json`.

    Raises:
        Refused: the text breaks a rule; the message says which, the subject is `policy.json` and the pointer of the place.
    """
    try:
        return read_policy(text)
    except Malformed as flaw:
        place = f"{names.POLICY_KEY}#{flaw.pointer}"
        raise Refused(flaw.why, code=ErrorCode.FLEET_POLICY_INVALID, subject=place) from flaw


def matches_fleet(policy: FleetPolicy, labels: Labels) -> bool:
    """Whether a device with these labels is in the fleet, in whatever namespace."""
    return policy.fleet_selector.matches(labels)


def protection_of(policy: FleetPolicy, labels: Labels) -> str:
    """`<reason>Protected` of the first rule, in the order of names, that protects the device; empty if none does."""
    matching = [rule for rule in policy.protections if rule.selector.matches(labels)]
    return f"{min(matching, key=lambda rule: rule.name).reason}Protected" if matching else ""


def risk_groups_of(policy: FleetPolicy, labels: Labels) -> tuple[str, ...]:
    """Names of all groups that the device belongs to, sorted."""
    return tuple(sorted(group.name for group in policy.risk_groups if group.selector.matches(labels)))


def transfer_rate(policy: FleetPolicy, labels: Labels) -> int:
    """Bytes per second that a transfer to the device may take: the least share of its groups; 0 = as fast as it goes."""
    shares = [
        group.bytes_per_transfer
        for group in policy.risk_groups
        if group.max_bytes_per_s and group.selector.matches(labels)
    ]
    return min(shares, default=0)


def semantic_hash(policy: FleetPolicy) -> str:
    """Over everything that the policy says."""
    return sha256_of(semantic_input(policy))


def structural_hash(policy: FleetPolicy) -> str:
    """Over what a frozen plan cannot survive a change of."""
    return sha256_of(structural_input(policy))


def semantic_input(policy: FleetPolicy) -> dict[str, JsonValue]:
    """What `semantic_hash` is taken over, members in their order."""
    return ordered(_members(policy), names.POLICY_SEMANTIC_MEMBERS)


def structural_input(policy: FleetPolicy) -> dict[str, JsonValue]:
    """What `structural_hash` is taken over: of the domain maps only the keys, of the other numbers those of risk groups."""
    keys: dict[str, JsonValue] = {
        "transferDomainKeys": sorted(policy.domain_transfers),
        "unavailableDomainKeys": sorted(policy.domain_unavailable),
    }
    return ordered({**_members(policy), **keys}, names.POLICY_STRUCTURAL_MEMBERS)


def _members(policy: FleetPolicy) -> dict[str, JsonValue]:
    tree: dict[str, JsonValue] = {
        "version": policy.version,
        "appHostingServiceAccountName": policy.app_hosting_account,
        "networkManagementServiceAccountName": policy.network_management_account,
        "configLeaseNamespace": policy.config_lease_namespace,
        "fleetSelector": policy.fleet_selector.canonical_tree(),
        "requiredTopologyKeys": sorted(policy.required_keys),
        "projectedTopologyKeys": sorted(policy.projected_keys),
        "globalMaxConcurrentTransfers": policy.max_concurrent_transfers,
        "globalMaxUnavailable": policy.max_unavailable,
        "domainMaxConcurrentTransfers": sorted_map(policy.domain_transfers),
        "domainMaxUnavailable": sorted_map(policy.domain_unavailable),
        "healthFreshnessSeconds": policy.health_freshness_s,
        "maxCampaignTargets": policy.max_campaign_targets,
        "maxActiveReservations": policy.max_active_reservations,
        "maxLedgerBytes": policy.max_ledger_bytes,
        "workloadDrain": _drain_tree(policy.drain) if policy.drain else {},
        "disruptionProtections": [_protection_tree(rule) for rule in sorted(policy.protections, key=lambda r: r.name)],
        "riskGroups": [_group_tree(group) for group in sorted(policy.risk_groups, key=lambda g: g.name)],
        "ledgerName": policy.ledger_name,
    }
    return without_empty(tree, keep=tree.keys() - _OPTIONAL)


def _drain_tree(drain: WorkloadDrain) -> dict[str, JsonValue]:
    return {
        "enabled": True,
        "allowedNamespaces": sorted(drain.allowed_namespaces),
        "maxTimeoutSeconds": drain.max_timeout_s,
        "maxPods": drain.max_pods,
        "maxTerminationGraceSeconds": drain.max_grace_s,
    }


def _protection_tree(rule: Protection) -> dict[str, JsonValue]:
    tree: dict[str, JsonValue] = {
        "name": rule.name,
        "reason": rule.reason,
        "selector": rule.selector.canonical_tree(),
    }
    return ordered(tree, names.PROTECTION_MEMBERS)


def _group_tree(group: RiskGroup) -> dict[str, JsonValue]:
    return {
        "name": group.name,
        "selector": group.selector.canonical_tree(),
        "maxConcurrentTransfers": group.max_concurrent_transfers,
        "maxUnavailable": group.max_unavailable,
        **({"maxAggregateTransferBytesPerSecond": group.max_bytes_per_s} if group.max_bytes_per_s else {}),
    }

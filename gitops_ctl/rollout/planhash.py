"""The plan hash: what it is taken over, and how large that may be (rollouts.md, sections 9.2, 9.3 and 10.2)."""

from collections.abc import Iterable
from typing import Final

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.encoding import compact_json, ordered, sha256_of, sorted_map
from gitops_ctl.rollout.planorder import ordered_plan

MOST_PLAN_BYTES: Final = 262144
"""Of the encoded input."""

SNAPSHOT_MEMBERS: Final = (
    *("name", "namespace", "uid", "resourceVersion", "semanticHash", "structuralHash", "maxTargets"),
    *("maxConcurrentTransfers", "maxUnavailable", "domains", "healthFreshnessSeconds", "ledgerNamespace"),
    *("ledgerName", "ledgerUID", "maxActiveReservations", "maxLedgerSizeBytes"),
)
DOMAIN_MEMBERS: Final = ("topologyKey", "maxConcurrentTransfers", "maxUnavailable")
TARGET_MEMBERS: Final = (
    *("deviceName", "deviceUID", "deviceGeneration", "physicalIdentity", "nodeName", "nodeUID", "driver"),
    *("imageFamily", "source", "qualificationCohort", "workerProtocolVersion", "projectionHash", "topology"),
    *("riskGroups", "maxTransferBytesPerSecond", "canaryCohort", "wave", "childName"),
)
SOURCE_MEMBERS: Final = ("catalystCenter", "name", "priority", "url", "sha256", "secretName", "secretUID")


def plan_hash_input(
    plan: JsonObject,
    *,
    campaign_uid: str,
    generation: int,
    policy: JsonObject,
    membership_hash: str,
    targets: Iterable[JsonObject],
) -> JsonObject:
    """What the plan hash is taken over.

    Args:
        plan: `spec.plan` as it is stored.
        generation: of the rollout when it was frozen.
        policy: the snapshot, members in their order.
        membership_hash: "" when the policy has no risk groups.
        targets: the frozen targets, members in their order.
    """
    tree: dict[str, JsonValue] = {
        "campaignUID": campaign_uid,
        "generation": generation,
        "plan": ordered_plan(plan),
        "policy": policy,
    }
    if membership_hash:
        tree["riskGroupMembershipHash"] = membership_hash
    tree["targets"] = list(targets)
    return tree


def hash_and_size(plan_input: JsonObject) -> tuple[str, int]:
    """`sha256:` and the hash of an input, and its encoded bytes."""
    encoded = compact_json(plan_input)
    return digest_bytes(encoded), len(encoded)


def published_hash_input(rollout: JsonObject) -> JsonObject:
    """The input of a rollout that has been frozen, from what it publishes; members get their order, whatever the store made of it."""
    frozen = object_at(rollout, "status", "frozenPlan")
    return plan_hash_input(
        object_at(rollout, "spec", "plan"),
        campaign_uid=text_at(rollout, "metadata", "uid"),
        generation=int_at(frozen, "campaignGeneration"),
        policy=ordered_snapshot(object_at(frozen, "policy")),
        membership_hash=text_at(frozen, "riskGroupMembershipHash"),
        targets=[ordered_target(target) for target in objects_at(frozen, "targets")],
    )


def ordered_snapshot(tree: JsonObject) -> JsonObject:
    """A published policy snapshot with its members in their order."""
    domains = [ordered(domain, DOMAIN_MEMBERS) for domain in objects_at(tree, "domains")]
    return ordered({**tree, "domains": domains}, SNAPSHOT_MEMBERS)


def ordered_target(tree: JsonObject) -> JsonObject:
    """A published target with its members in their order."""
    topology = [ordered(entry, ("key", "value")) for entry in objects_at(tree, "topology")]
    source = ordered(object_at(tree, "source"), SOURCE_MEMBERS)
    return ordered({**tree, "source": source, "topology": topology}, TARGET_MEMBERS)


def membership_hash(groups: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """The hash of which chassis is in which risk groups; devices in none are left out (section 10.3).

    Args:
        groups: canonical physical identity and group names, in any order.
    """
    members = sorted_map({identity: sorted(names) for identity, names in groups if names})
    return sha256_of([{"physicalID": identity, "groups": names} for identity, names in members.items()])

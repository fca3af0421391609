"""The hash of what a plan intends, beside the hash of the plan (S5 of rollouts.md, section 22).

The plan hash holds the campaign, its generation and when it was asked for, so two plans never have the same one.  This one is equal for
equal intent: for people and for reports of drift.  An approval always binds the plan hash.
"""

from collections.abc import Iterable

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet.encoding import sha256_of
from gitops_ctl.rollout.planorder import ordered_intent


def intent_hash_input(plan: JsonObject, *, semantic_hash: str, devices: Iterable[tuple[str, int]]) -> JsonObject:
    """What is hashed: the plan without who asked and when, the policy's meaning, and the devices.

    Args:
        plan: `spec.plan` with its defaults.
        devices: UID and generation of each target, in any order.
    """
    return {
        "plan": ordered_intent(plan),
        "policySemanticHash": semantic_hash,
        "targets": [{"deviceUID": uid, "deviceGeneration": generation} for uid, generation in sorted(devices)],
    }


def intent_hash(plan: JsonObject, *, semantic_hash: str, devices: Iterable[tuple[str, int]]) -> str:
    """`sha256:` and the hash of the intent."""
    return sha256_of(intent_hash_input(plan, semantic_hash=semantic_hash, devices=devices))

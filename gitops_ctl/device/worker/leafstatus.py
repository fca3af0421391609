"""The members of a leaf's status that its worker writes, as values (rollouts.md, section 4.3).  Pure.

Each function gives the members that change; nothing of the manager's is among them.  Markers and claims are only ever added.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import MESSAGE_LIMIT, Condition, condition_of, cut, merge_conditions
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.journalrecords import Claim, ClaimKey
from gitops_ctl.fleet import names
from gitops_ctl.fleet.gate import Gate
from gitops_ctl.fleet.leaf import STAGES, SUCCEEDED, Leaf

INSTALL_COMMIT: Final = "InstallCommit"
"""How the journal names the marker of the install commit."""

MARKERS: Final = {
    "PrimaryInstall": "primarySupervisorInstallRequested",
    "StandbyInstall": "standbySupervisorInstallRequested",
    "StandbyActivation": "standbySupervisorActivationRequested",
    "PrimaryActivation": "primarySupervisorActivationRequested",
    "RollbackActivation": "rollbackActivationRequested",
}
"""Written together with the claim of the stage."""
_PHASES: Final = {
    "PrimaryInstall": "Transferring",
    "StandbyInstall": "Transferring",
    "StandbyActivation": "Activating",
    "PrimaryActivation": "Activating",
    "RollbackActivation": "RollingBack",
}
_STARTS: Final = {
    "PrimaryInstall": ("installStartTime",),
    "StandbyInstall": ("installStartTime",),
    "StandbyActivation": ("activationControlStartTime",),
    "PrimaryActivation": ("activationControlStartTime", "activationStartTime"),
    "RollbackActivation": ("rollbackStartTime",),
}
"""Times that the first claim of the kind begins; the deadlines count from them."""
INSTALL_STAGES: Final = ("PrimaryInstall", "StandbyInstall")
"""Stages of which each adds the package on one supervisor."""
PRESENT_BEFORE: Final = "PresentBefore"
"""Of the condition Transferred: the device took no byte, because it had a package of that version."""
_CLAIM_MEMBERS: Final = ("stage", "reservationID", "policyEpoch", "controlRevision", "claimedAt")
_LONGEST_MESSAGE: Final = 256

Members = dict[str, JsonValue]


def conditions(leaf: Leaf, *wanted: Condition, now: datetime) -> Members:
    """The list of conditions with these in place of those of their types."""
    kinds = {one.type for one in wanted}
    kept = [one for one in objects_at(leaf.status, "conditions") if text_at(one, "type") not in kinds]
    fresh = merge_conditions(leaf.status, wanted=wanted, generation=leaf.generation, now=now)
    both: list[JsonObject] = sorted([*kept, *fresh], key=lambda one: text_at(one, "type"))
    return {"conditions": both}


def control(leaf: Leaf, gate: Gate, *, revision: str, now: datetime) -> Members:
    """`workerControl` as the gate says it; nothing while it stands there already, or while the manager has not spoken."""
    if not gate.publishes or leaf.admission is None or leaf.manager_control is None or not revision:
        return {}
    tree: dict[str, JsonValue] = {
        "observedAdmissionState": leaf.admission.state,
        "observedPolicyEpoch": leaf.admission.policy_epoch,
        "observedControlRevision": leaf.manager_control.revision,
        "observedWorkerConfigRevision": revision,
        "effectiveState": gate.effective_state,
        "message": cut(gate.message, limit=_LONGEST_MESSAGE),
    }
    seen = leaf.worker_control
    if seen is not None and tree == {
        "observedAdmissionState": seen.admission_state,
        "observedPolicyEpoch": seen.policy_epoch,
        "observedControlRevision": seen.control_revision,
        "observedWorkerConfigRevision": seen.worker_config_revision,
        "effectiveState": seen.effective_state,
        "message": seen.message,
    }:
        return {}
    return {"workerControl": {**tree, "updatedAt": to_rfc3339(now)}}


def begun(leaf: Leaf, *, now: datetime) -> Members:
    """The leaf is taken up."""
    return {
        "phase": "Resolving",
        "executionModel": names.EXECUTION_MODEL,
        "observedGeneration": leaf.generation,
        "startTime": to_rfc3339(now),
    }


def told(leaf: Leaf, reason: str, message: str, *, now: datetime) -> Members:
    """Why nothing goes on at the moment; nothing when it stands there already."""
    text = cut(message, limit=MESSAGE_LIMIT)
    stored = condition_of(leaf.status, "Ready") or {}
    if (text_at(stored, "reason"), text_at(stored, "message"), text_at(leaf.status, "message")) == (reason, text, text):
        return {}
    return {"message": text, **conditions(leaf, Condition("Ready", "False", reason, text), now=now)}


def claim_of(leaf: Leaf, stage: str, *, claimed_at: str) -> Claim:
    """The claim as the journal records it."""
    admission = leaf.admission
    return Claim(
        key=key_of(leaf, stage),
        physical_identity=admission.physical_identity if admission is not None else "",
        leaf_uid=leaf.uid,
        claimed_at=claimed_at,
        policy_epoch=admission.policy_epoch if admission is not None else 0,
        control_revision=leaf.manager_control.revision if leaf.manager_control is not None else 0,
    )


def key_of(leaf: Leaf, stage: str) -> ClaimKey:
    """What makes a claim of this leaf the same after a restore of the cluster."""
    bound = leaf.binding
    return ClaimKey(bound.device_uid, bound.plan_hash, bound.reservation_id, stage)


def claimed(leaf: Leaf, claim: Claim, *, now: datetime) -> Members:
    """The claim, its at-most-once marker, its phase and the times that begin with it; nothing is waited for any more."""
    stage = claim.key.stage
    goes_on = conditions(leaf, Condition("Ready", "False", "Progressing", f"{stage} is claimed"), now=now)
    return {"phase": _PHASES[stage], "message": "", **goes_on, **with_claims(leaf, (claim,))}


def with_claims(leaf: Leaf, claims: Iterable[Claim]) -> Members:
    """The claims beside those that the leaf has, in the order of the stage names, with markers and times."""
    entries: dict[str, JsonObject] = {
        text_at(one, "stage"): {name: one[name] for name in _CLAIM_MEMBERS if name in one}
        for one in objects_at(leaf.status, "managedMutationClaims")
    }
    members: Members = {}
    for claim in claims:
        stage = claim.key.stage
        entries[stage] = {
            "stage": stage,
            "reservationID": claim.key.reservation_id,
            "policyEpoch": claim.policy_epoch,
            "controlRevision": claim.control_revision,
            "claimedAt": claim.claimed_at,
        }
        members[MARKERS[stage]] = True
        if stage in INSTALL_STAGES:
            # What was sent for an install before says nothing about this one.
            total = int_at(leaf.status, "sourceSize")
            members["transferProgress"] = {"bytesTransferred": 0, "totalBytes": total, "percent": 0}
        starts = [name for name in _STARTS[stage] if not text_at(leaf.status, name)]
        members |= {name: claim.claimed_at for name in starts if name not in members}
    ordered: list[JsonValue] = [entries[stage] for stage in sorted(entries)]
    return members | {"managedMutationClaims": ordered}


def last_stage(leaf: Leaf) -> str:
    """The furthest stage that is claimed; empty without a claim."""
    found = {claim.stage for claim in leaf.claims}
    return next((stage for stage in reversed(STAGES) if stage in found), "")


def committed(leaf: Leaf, *, now: datetime) -> Members:
    """The running version was seen as committed, whoever asked for it."""
    requested = text_at(leaf.status, "installCommit", "requestedAt")
    tree: Members = {"state": "Committed", "observedAt": to_rfc3339(now)}
    return {"installCommit": tree | ({"requestedAt": requested} if requested else {})}


def ended(
    leaf: Leaf, phase: str, *, now: datetime, reason: str = "", message: str = "", settled: bool = False
) -> Members:
    """The end of the leaf.

    Args:
        settled: the outcome of its mutations is proven; without a claim there is nothing to prove.
    """
    members: Members = {"phase": phase, "completionTime": to_rfc3339(now), "message": cut(message, limit=MESSAGE_LIMIT)}
    if reason:
        members["failureReason"] = reason
    is_good = phase in SUCCEEDED
    ready = Condition("Ready", "True" if is_good else "False", reason or phase, message)
    if not settled or not leaf.claims:
        return members | conditions(leaf, ready, now=now)
    return members | conditions(leaf, ready, settled_condition(message), now=now)


def settled_condition(message: str, *, reason: str = "OutcomeVerified") -> Condition:
    """What became of the mutations is proven."""
    return Condition(names.MUTATION_SETTLED, "True", reason, message)

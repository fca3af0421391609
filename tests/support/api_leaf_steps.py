"""What a leaf may become, and what not (rollouts.md, sections 4.3 to 4.6 and 14)."""

from typing import Any

from tests.support.api import MOMENT, with_status
from tests.support.api_leaves import (
    EVIDENCE,
    a_claim,
    a_drain,
    a_drain_pod,
    a_manager_control,
    a_manager_invalidation,
    a_manager_recovery,
    a_prepared_invalidation,
    a_receipt,
    a_worker_drain,
    an_admission,
)
from tests.support.api_rollouts import LATER, OTHER_DIGEST, OTHER_LOCK, an_upgrade
from tests.support.api_step import Step

_LATEST = "2026-11-30T10:00:00Z"
_RENEWED = {**EVIDENCE, "networkEvidenceSampleSequence": 5, "networkEvidenceNotAfter": _LATEST}


def _leaf(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    tree = an_upgrade()
    return Step(
        f"leaf {name}",
        with_status(tree, **old),
        with_status(tree, **good),
        tuple(with_status(tree, **item) for item in bad),
        told,
    )


def _admitted(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    def of(members: dict[str, Any]) -> dict[str, Any]:
        return {"managerAdmission": an_admission(**members)}

    return _leaf(f"admission {name}", of(old), of(good), *(of(item) for item in bad), told=told)


_TRANSITION = {"state": "Revoked", "revocationReason": "PolicyEpochTransition"}
_REARMED = {"state": "Pending", "policyEpoch": 2, "topologyLockID": OTHER_LOCK, "policyResourceVersion": "18"}
_STATES = "an admission goes from Pending to Granted or Revoked to Settled"
_OTHER = {
    "protocolVersion": "rollout-byte-pacing-v1",
    "campaignUID": "other",
    "planHash": OTHER_DIGEST,
    "policyUID": "other",
    "ledgerUID": "other",
    "reservationID": "other",
    "leafUID": "other",
    "deviceUID": "other",
    "physicalIdentity": "other",
    "nodeUID": "other",
}

_ADMISSION_STEPS = (
    _admitted("of Pending", {"state": "Pending"}, {"state": "Granted"}, {"state": "Settled"}, told=_STATES),
    _admitted("is revoked", {"state": "Pending"}, {"state": "Revoked"}, {"state": "Settled"}, told=_STATES),
    _admitted("of Granted", {"state": "Granted"}, {"state": "Revoked"}, {"state": "Pending"}, told=_STATES),
    _admitted("is settled", {"state": "Granted"}, {"state": "Settled"}, {"state": "Pending"}, told=_STATES),
    _admitted(
        "of Revoked",
        {"state": "Revoked"},
        {"state": "Settled"},
        {"state": "Granted"},
        _REARMED,
        told=_STATES,
    ),
    _admitted(
        "is re-armed",
        _TRANSITION,
        _REARMED,
        {"state": "Granted", "policyEpoch": 2},
        {**_REARMED, "policyEpoch": 1},
        told=_STATES,
    ),
    _admitted(
        "of Settled",
        {"state": "Settled"},
        {"state": "Settled", "updatedAt": LATER},
        {"state": "Pending", "policyEpoch": 2},
        {"state": "Granted"},
        {"state": "Revoked"},
        told=_STATES,
    ),
    *(
        _admitted(
            f"keeps {member}",
            {"state": "Pending"},
            {"state": "Granted"},
            {"state": "Pending", member: other},
            {"state": "Pending", member: None},
            told=f"{member} must not change or go away once it is set",
        )
        for member, other in _OTHER.items()
    ),
    *(
        _admitted(
            f"keeps {member} within an epoch",
            _TRANSITION,
            _REARMED,
            {**_TRANSITION, member: other},
            {**_TRANSITION, member: other, "policyEpoch": 2},
            told=f"{member} changes only when a leaf is re-armed",
        )
        for member, other in (("policyResourceVersion", "18"), ("topologyLockID", OTHER_LOCK))
    ),
    _admitted("epoch", {"policyEpoch": 3}, {"policyEpoch": 3}, {"policyEpoch": 2}, told="policyEpoch must never fall"),
    _admitted(
        "revision",
        {"controlRevision": 3},
        {"controlRevision": 4},
        {"controlRevision": 2},
        {"state": "Settled", "controlRevision": None},
        told="controlRevision must never fall",
    ),
    _admitted(
        "evidence is renewed",
        EVIDENCE,
        _RENEWED,
        {**_RENEWED, "networkEvidenceNotAfter": MOMENT},
        {**_RENEWED, "networkEvidenceNotAfter": LATER},
        {"state": "Settled", **_RENEWED},
        {},
        told="network evidence is replaced only while Granted",
    ),
    _admitted(
        "evidence is cleared",
        {**_TRANSITION, **EVIDENCE},
        _REARMED,
        _TRANSITION,
        told="network evidence is replaced only while Granted",
    ),
)

_CONTROL_STEPS = (
    _leaf(
        "control revision",
        {"managerControl": a_manager_control(2, pause=True)},
        {"managerControl": a_manager_control(3)},
        {"managerControl": a_manager_control(1)},
        told="revision must never fall",
    ),
    _leaf(
        "control change",
        {"managerControl": a_manager_control(2, pause=True)},
        {"managerControl": a_manager_control(2, pause=True), "phase": "Pending"},
        {"managerControl": a_manager_control(2)},
        told="a change of the control needs a larger revision",
    ),
    _leaf(
        "cancel",
        {"managerControl": a_manager_control(2, cancel=True)},
        {"managerControl": a_manager_control(3, cancel=True)},
        {"managerControl": a_manager_control(3)},
        told="a cancelled leaf stays cancelled",
    ),
)

_CLAIMED = {"managedMutationClaims": [a_claim()]}
_MARKERS = (
    "stagingRequested",
    "primarySupervisorInstallRequested",
    "standbySupervisorInstallRequested",
    "primarySupervisorActivationRequested",
    "standbySupervisorActivationRequested",
    "rollbackActivationRequested",
)
_COMMITTED = {"state": "Committed", "requestedAt": MOMENT, "observedAt": LATER}
_REQUESTED = {"state": "Requested", "requestedAt": MOMENT}

_CLAIM_STEPS = (
    _leaf(
        "claim is history",
        _CLAIMED,
        {"managedMutationClaims": [a_claim(), a_claim("PrimaryActivation", claimedAt=LATER)]},
        {"managedMutationClaims": [a_claim(claimedAt=LATER)]},
        {"managedMutationClaims": [a_claim(policyEpoch=2)]},
        {"managedMutationClaims": [a_claim(reservationID="other")]},
        {"managedMutationClaims": [a_claim(controlRevision=1)]},
        told="a claim must not change",
    ),
    _leaf(
        "claim stays",
        _CLAIMED,
        {**_CLAIMED, "phase": "Transferring"},
        {},
        {"managedMutationClaims": [a_claim("StandbyInstall")]},
        told="a claim must not go away",
    ),
    *(
        _leaf(
            f"marker {marker}",
            {marker: True},
            {marker: True, "phase": "Failed"},
            {marker: False},
            {"phase": "Failed"},
            told=f"{marker} must not be taken back",
        )
        for marker in _MARKERS
    ),
    _leaf(
        "commit time",
        {"installCommit": _REQUESTED},
        {"installCommit": _COMMITTED},
        {"installCommit": {**_REQUESTED, "requestedAt": LATER}},
        told="requestedAt must not change or go away once it is set",
    ),
    _leaf(
        "commit is seen",
        {"installCommit": _COMMITTED},
        {"installCommit": _COMMITTED, "phase": "Succeeded"},
        {"installCommit": _REQUESTED},
        told="a commit stays committed",
    ),
    _leaf(
        "commit was requested",
        {"installCommit": _REQUESTED},
        {"installCommit": _REQUESTED, "phase": "Verifying"},
        {"installCommit": {"state": "Committed", "observedAt": LATER}},
        told="what was requested must not be taken back",
    ),
)

_OVER = {
    "preparedReceipt": a_receipt(),
    "managerAdmission": an_admission("Settled", controlRevision=1),
    "managerControl": a_manager_control(1, cancel=True),
    "managerInvalidation": a_manager_invalidation(),
}
_INVALIDATED = {**_OVER, "phase": "PreparedInvalidated", "preparedInvalidation": a_prepared_invalidation()}
_ONCE = "must not change or go away once it is set"


def _without(members: dict[str, Any], *names: str, **changed: Any) -> dict[str, Any]:
    return {**{key: value for key, value in members.items() if key not in names}, **changed}


_RECORD_STEPS = (
    _leaf(
        "receipt",
        {"preparedReceipt": a_receipt()},
        {"preparedReceipt": a_receipt(), "phase": "Prepared"},
        {},
        {"preparedReceipt": a_receipt(sourceSize=1)},
        told=f"preparedReceipt {_ONCE}",
    ),
    _leaf(
        "invalidation request",
        _OVER,
        _INVALIDATED,
        _without(_OVER, "managerInvalidation"),
        _without(_OVER, managerInvalidation=a_manager_invalidation(reason="another")),
        told=f"managerInvalidation {_ONCE}",
    ),
    _leaf(
        "invalidation evidence",
        _INVALIDATED,
        {**_INVALIDATED, "message": "done"},
        {**_INVALIDATED, "preparedInvalidation": a_prepared_invalidation(targetState="Absent")},
        told=f"preparedInvalidation {_ONCE}",
    ),
    _leaf(
        "invalidated for good",
        _INVALIDATED,
        {**_INVALIDATED, "message": "done"},
        {**_INVALIDATED, "phase": "Prepared"},
        told="an invalidated preparation stays invalidated",
    ),
    _leaf(
        "attestation",
        {"managerRecovery": a_manager_recovery()},
        {"managerRecovery": a_manager_recovery(), "phase": "Failed"},
        {},
        {"managerRecovery": a_manager_recovery(outcome="DeviceRetired")},
        told=f"managerRecovery {_ONCE}",
    ),
    *(
        _leaf(
            f"{member} stays",
            {**under, member: value},
            {**under, member: value, "phase": "Pending"},
            {**under, "phase": "Pending"},
            told=f"{member} must not go away",
        )
        for member, value, under in (
            ("managerAdmission", an_admission(), {}),
            ("managerControl", a_manager_control(), {}),
            ("managerDrain", a_drain(), {}),
            ("workerDrain", a_worker_drain(), {"managerDrain": a_drain()}),
            ("installCommit", _COMMITTED, {}),
        )
    ),
    Step(
        "leaf status stays",
        with_status(an_upgrade(), phase="Pending"),
        with_status(an_upgrade(), phase="Failed"),
        (an_upgrade(),),
        "the status must not be taken away",
    ),
    Step(
        "leaf spec",
        an_upgrade(),
        an_upgrade(rollbackOnFailure=True),
        (an_upgrade(targetVersion="17.18.04"), an_upgrade(rollbackOnFailure=False)),
        "must not change",
        "spec",
    ),
)


def _drained(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    def of(members: dict[str, Any]) -> dict[str, Any]:
        return {"managerDrain": a_drain(**members)}

    return _leaf(f"drain {name}", of(old), of(good), *(of(item) for item in bad), told=told)


def _pods(phase: str = "Selected", **members: Any) -> dict[str, Any]:
    return {"pods": [a_drain_pod(phase, **members)]}


_EXTENDED = {"state": "Recovering", "recoveryDeadline": _LATEST, "controlRevision": 1}

_DRAIN_STEPS = (
    _drained(
        "state",
        {},
        {"state": "Guarded"},
        {"state": "Evicting"},
        {"state": "Promoted"},
        told="a drain must neither go back",
    ),
    _drained(
        "recovers",
        {"state": "Evicting"},
        {"state": "Recovering"},
        {"state": "Guarded"},
        told="a drain must neither go back",
    ),
    _drained(
        "is over",
        {"state": "Settled"},
        {"state": "Settled"},
        {"state": "Recovering"},
        told="a drain must neither go back",
    ),
    _drained(
        "identity",
        {},
        {"updatedAt": LATER},
        {"nodeUID": "other"},
        {"drainDeadline": _LATEST},
        told="what a drain is about must not change",
    ),
    _drained(
        "revision",
        {"controlRevision": 2},
        {"controlRevision": 3},
        {"controlRevision": 1},
        told="controlRevision must never fall",
    ),
    _drained(
        "extension",
        {"state": "Recovering"},
        _EXTENDED,
        {**_EXTENDED, "controlRevision": 0},
        told="recoveryDeadline is extended only while Recovering",
    ),
    _drained(
        "Pods",
        {},
        _pods("Protected"),
        {"pods": []},
        {"pods": [a_drain_pod(uid="other")]},
        told="the Pods of a drain are those that it was published with",
    ),
    _drained(
        "Pod phase",
        _pods("Protected"),
        _pods("EvictionRequested"),
        _pods("Selected"),
        _pods("DeviceClean"),
        told="the phase of a Pod must neither go back nor skip",
    ),
    _drained(
        "Pod selection",
        {},
        _pods(protectedAt=MOMENT),
        _pods(eligibilityHash=OTHER_DIGEST),
        _pods(placementHash=OTHER_DIGEST),
        told="what a Pod was selected by must not change",
    ),
    *(
        _drained(
            f"Pod {member}",
            _pods(**{member: MOMENT}),
            _pods(**{member: MOMENT}),
            _pods(**{member: LATER}),
            _pods(),
            told=f"{member} {_ONCE}",
        )
        for member in ("protectedAt", "evictionRequestedAt", "deletionObservedAt", "releasedAt")
    ),
    _drained(
        "Pod inventory",
        _pods(deletionObservedInventoryRevision=3),
        _pods(deletionObservedInventoryRevision=3),
        _pods(deletionObservedInventoryRevision=4),
        told=f"deletionObservedInventoryRevision {_ONCE}",
    ),
    _drained(
        "Pod is clean",
        _pods(deviceCleanAt=MOMENT, deviceCleanInventoryRevision=2),
        _pods(deviceCleanAt=MOMENT, deviceCleanInventoryRevision=2),
        _pods(deviceCleanAt=LATER, deviceCleanInventoryRevision=2),
        told=f"deviceCleanAt {_ONCE}",
    ),
)


def _seen(**members: Any) -> dict[str, Any]:
    return {"managerDrain": a_drain(controlRevision=3), "workerDrain": a_worker_drain(**members)}


_INVENTORY_STEPS = (
    _leaf(
        "inventory",
        _seen(inventoryRevision=2),
        _seen(inventoryRevision=3, inventoryComplete=False),
        _seen(inventoryRevision=2, inventoryComplete=False),
        _seen(inventoryRevision=1),
        told="a change of the inventory needs a larger inventoryRevision",
    ),
    _leaf(
        "inventory revision of the control",
        _seen(observedControlRevision=2),
        _seen(observedControlRevision=3, inventoryRevision=2),
        _seen(observedControlRevision=1, inventoryRevision=2),
        told="observedControlRevision must never fall",
    ),
    _leaf(
        "inventory session",
        _seen(),
        _seen(inventoryRevision=2),
        _seen(inventoryRevision=2, observedPolicyEpoch=2),
        told="the session of the inventory must not change",
    ),
)

LEAF_STEPS = (*_ADMISSION_STEPS, *_CONTROL_STEPS, *_CLAIM_STEPS, *_RECORD_STEPS, *_DRAIN_STEPS, *_INVENTORY_STEPS)

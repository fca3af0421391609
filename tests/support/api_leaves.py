"""The status of leaves of a software rollout: single records, and a leaf with every member."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, a_condition, with_status
from tests.support.api_rollouts import (
    APPROVER,
    DEVICE_UID,
    HEX,
    LATER,
    LEAF_UID,
    LOCK,
    NODE_UID,
    PLANNER,
    RESERVATION,
    ROLLOUT_UID,
    SFTP,
    TOKEN,
    an_upgrade,
)

EVIDENCE = {
    "networkEvidenceHash": DIGEST,
    "networkEvidenceProducerRevision": DIGEST,
    "networkEvidenceWorkerPodUID": "pod-uid",
    "networkEvidenceSampleSequence": 4,
    "networkEvidenceNotAfter": LATER,
}


def without_nones(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def an_admission(state: str = "Granted", **members: Any) -> dict[str, Any]:
    """The manager's admission with all identities; members given as None are left out."""
    least = {
        "state": state,
        "protocolVersion": "rollout-v1",
        "campaignUID": ROLLOUT_UID,
        "planHash": DIGEST,
        "policyUID": "policy-uid",
        "policyResourceVersion": "17",
        "policyEpoch": 1,
        "ledgerUID": "ledger-uid",
        "reservationID": RESERVATION,
        "topologyLockID": LOCK,
        "leafUID": LEAF_UID,
        "deviceUID": DEVICE_UID,
        "deviceGeneration": 1,
        "physicalIdentity": "foc0000a1b2",
        "nodeUID": NODE_UID,
        "controlRevision": 0,
        "revocationReason": "CampaignCancelled" if state == "Revoked" else None,
        "updatedAt": MOMENT,
    }
    return without_nones({**least, **members})


def a_claim(stage: str = "PrimaryInstall", **members: Any) -> dict[str, Any]:
    """A claim of the worker."""
    least = {"reservationID": RESERVATION, "policyEpoch": 1, "controlRevision": 0, "claimedAt": MOMENT}
    return {"stage": stage, **least, **members}


def a_manager_control(revision: int = 0, **members: Any) -> dict[str, Any]:
    """The neutral control of a leaf."""
    return {"revision": revision, "updatedAt": MOMENT, "reason": "CampaignControl", **members}


def a_receipt(**members: Any) -> dict[str, Any]:
    """A receipt with every member; members given as None are left out."""
    least = {
        "protocolVersion": "prepare-v1",
        "upgradeUID": LEAF_UID,
        "deviceUID": DEVICE_UID,
        "nodeUID": NODE_UID,
        "physicalIdentity": "foc0000a1b2",
        "deviceGeneration": 1,
        "campaignUID": ROLLOUT_UID,
        "planHash": DIGEST,
        "managedProtocolVersion": "rollout-staged-activation-v1",
        "policyUID": "policy-uid",
        "policyResourceVersion": "17",
        "policyEpoch": 1,
        "workerRevision": DIGEST,
        "sourceDigest": DIGEST,
        "sourceSize": 1249368115,
        "sourceIdentityHash": DIGEST,
        "sourceSecretUID": "s-uid",
        "trustIdentityHash": DIGEST,
        "contentBinding": "source-digest-install-claim-v1",
        "targetVersion": "17.18.03",
        "validatedVersion": "17.18.03.0.5496",
        "runningVersion": "17.18.02.0.4112",
        "individualSupervisorInstall": True,
        "primarySupervisorInstalled": True,
        "standbySupervisorInstalled": True,
        "standbySupervisorID": "R1",
        "standbyRunningVersion": "17.18.02.0.4112",
        "installStartedAt": MOMENT,
        "stagingOperationID": TOKEN,
        "managedMutationClaims": [a_claim()],
        "preparedAt": LATER,
        "receiptHash": DIGEST,
    }
    return without_nones({**least, **members})


def a_manager_invalidation(**members: Any) -> dict[str, Any]:
    """The manager's request to give a preparation up."""
    least = {
        "receiptHash": DIGEST,
        "planHash": DIGEST,
        "campaignUID": ROLLOUT_UID,
        "controlRevision": 1,
        "requestedBy": PLANNER,
        "requestedAt": MOMENT,
        "reason": "not needed",
    }
    return {**least, **members}


def a_prepared_invalidation(**members: Any) -> dict[str, Any]:
    """The worker's answer."""
    least = {
        "requestHash": DIGEST,
        "nativeEvidenceHash": DIGEST,
        "observedAt": LATER,
        "workerRevision": DIGEST,
        "workerPodUID": "pod-uid",
        "runningVersion": "17.18.02.0.4112",
        "targetState": "Installed",
    }
    return {**least, **members}


def a_drain_pod(phase: str = "Selected", **members: Any) -> dict[str, Any]:
    """One Pod of a drain; members given as None are left out."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": "web", "generation": 1}
    budget = {
        **owner,
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "uid": "pdb-uid",
        "observedGeneration": 1,
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
        "disruptionsAllowed": 1,
    }
    least = {
        "namespace": "shop",
        "name": "web-1",
        "uid": "pod-1-uid",
        "eligibilityHash": DIGEST,
        "controller": {**owner, "uid": "rs-uid"},
        "pdbs": [budget],
        "terminationGracePeriodSeconds": 30,
        "phase": phase,
    }
    return without_nones({**least, **members})


def a_drain(state: str = "Preparing", **members: Any) -> dict[str, Any]:
    """The manager's drain; members given as None are left out."""
    least = {
        "protocolVersion": "pdb-drain-v1",
        "state": state,
        "sessionToken": TOKEN,
        "reservationID": RESERVATION,
        "policyEpoch": 1,
        "controlRevision": 0,
        "nodeUID": NODE_UID,
        "nodeUnschedulableBefore": False,
        "maintenanceTaintPresentBefore": False,
        "startedAt": MOMENT,
        "drainDeadline": LATER,
        "recoveryDeadline": LATER if state in ("Recovering", "Settled") else None,
        "updatedAt": MOMENT,
        "pods": [a_drain_pod()],
    }
    return without_nones({**least, **members})


def a_worker_drain(**members: Any) -> dict[str, Any]:
    """The worker's inventory for a drain."""
    least = {
        "protocolVersion": "pdb-drain-v1",
        "observedSessionToken": TOKEN,
        "observedPolicyEpoch": 1,
        "observedControlRevision": 0,
        "observedWorkerConfigRevision": DIGEST,
        "observedWorkerPodUID": "pod-uid",
        "inventoryRevision": 1,
        "inventoryObservedAt": MOMENT,
        "inventoryComplete": True,
        "remainingAuthorizedPodUIDs": ["pod-1-uid"],
        "foreignDeviceWorkloadCount": 0,
        "unknownDeviceWorkloadCount": 0,
        "updatedAt": MOMENT,
        "reason": "Observed",
        "message": "one Pod is left",
    }
    return {**least, **members}


def a_manager_recovery(**members: Any) -> dict[str, Any]:
    """What two persons attested about a leaf."""
    least = {
        "outcome": "OutcomeVerifiedByHand",
        "claims": [{"stage": "PrimaryInstall", "claimedAt": MOMENT}],
        "persons": [PLANNER, APPROVER],
        "commit": COMMIT,
        "recordedAt": LATER,
    }
    return {**least, **members}


def a_full_upgrade() -> dict[str, Any]:
    """An invalidated preparation with every member that one leaf can have."""
    clean = {
        "placementHash": DIGEST,
        "protectedAt": MOMENT,
        "evictionRequestedAt": MOMENT,
        "deletionObservedAt": MOMENT,
        "deletionObservedInventoryRevision": 1,
        "deviceCleanAt": LATER,
        "releasedAt": LATER,
        "deviceCleanInventoryRevision": 2,
    }
    pod = a_drain_pod("Complete", workloadController=a_drain_pod()["controller"], **clean)
    tree = an_upgrade(
        imageSource={"url": SFTP, "sha256": HEX, "urlSecretRef": {"name": "images"}},
        maxTransferBytesPerSecond=1000000,
        requireNetworkEvidence=True,
        strategy="PrepareOnly",
        rollbackOnFailure=True,
        maintenanceWindow={"notBefore": MOMENT, "notAfter": LATER},
        resumePolicy="Retry",
        maxRetries=3,
        installTimeoutSeconds=3600,
        rebootTimeoutSeconds=1800,
    )
    return with_status(
        tree,
        phase="PreparedInvalidated",
        executionModel="AtMostOnceV1",
        observedGeneration=1,
        conditions=[a_condition()],
        transferProgress={"bytesTransferred": 1, "totalBytes": 2, "percent": 50},
        **_worker_facts(),
        preparedReceipt=a_receipt(),
        workerControl={
            "observedAdmissionState": "Settled",
            "observedPolicyEpoch": 1,
            "observedControlRevision": 1,
            "observedWorkerConfigRevision": DIGEST,
            "effectiveState": "Settled",
            "updatedAt": MOMENT,
            "message": "done",
        },
        workerDrain=a_worker_drain(),
        managedMutationClaims=[a_claim()],
        preparedInvalidation=a_prepared_invalidation(),
        installCommit={"state": "Committed", "requestedAt": MOMENT, "observedAt": LATER},
        managerAdmission=an_admission(
            "Settled", protocolVersion="rollout-staged-activation-v1", controlRevision=1, **EVIDENCE
        ),
        managerControl=a_manager_control(1, pause=False, cancel=True),
        managerDrain=a_drain("Settled", pods=[pod]),
        managerInvalidation=a_manager_invalidation(),
        managerRecovery=a_manager_recovery(),
    )


def _worker_facts() -> dict[str, Any]:
    flags = (
        "stagingRequested",
        "individualSupervisorInstall",
        "primarySupervisorInstallRequested",
        "standbySupervisorInstallRequested",
        "primarySupervisorInstalled",
        "standbySupervisorInstalled",
        "primarySupervisorActivationRequested",
        "standbySupervisorActivationRequested",
        "standbySupervisorActivated",
        "noRebootActivationAccepted",
        "rollbackActivationRequested",
    )
    times = (
        "startTime",
        "installStartTime",
        "activationControlStartTime",
        "activationStartTime",
        "rollbackStartTime",
        "completionTime",
    )
    texts = {
        "sourceDigest": DIGEST,
        "sourceSize": 1249368115,
        "stagingOperationID": TOKEN,
        "inventoryState": "Installed",
        "runningVersion": "17.18.02",
        "previousVersion": "17.18.02",
        "validatedVersion": "17.18.03.0.5496",
        "failureReason": "InstallFailed",
        "message": "prepared",
        "retryCount": 0,
    }
    return {**texts, **dict.fromkeys(flags, True), **dict.fromkeys(times, MOMENT)}

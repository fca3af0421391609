"""Devices, software rollouts and leaves that are valid as they are, and each of them with every member."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, a_condition, with_status

LATER = "2026-11-30T09:00:00Z"
OTHER_DIGEST = "sha256:" + "1b" * 32
HEX = "0a" * 32
LOCK = "0a" * 16
OTHER_LOCK = "1b" * 16
RESERVATION = "55f6d2ef" * 4
TOKEN = "6f1d1f5e-7f1c-4a5e-9d2c-0d8f5b7a1c2e"
PLANNER, APPROVER = "network-author", "change-approver"
DEVICE_UID, NODE_UID, LEAF_UID, ROLLOUT_UID = "device-1-uid", "node-1-uid", "leaf-1-uid", "rollout-uid"
SFTP = "sftp://images.example.net/cat9k.bin"
HTTPS = "https://images.example.net/cat9k.bin"


def _object(group: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def a_device(*, name: str = "switch-1", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A CiscoDevice with the least that it needs; members given as None are left out."""
    return _object("cisco.vk", "CiscoDevice", name, namespace, {"driver": "XE", "address": "192.0.2.1", **spec})


def a_plan(**members: Any) -> dict[str, Any]:
    """A plan with the least that it needs, identity members included; members given as None are left out."""
    least = {
        "requestedBy": PLANNER,
        "requestedAt": MOMENT,
        "targets": {"selector": {"matchLabels": {"topology.cisco.vk/managed": "true"}}},
        "image": an_image(),
        "targetVersion": "17.18.03",
        "canaries": [{"name": "c9300", "devices": ["switch-1"]}],
    }
    return {key: value for key, value in {**least, **members}.items() if value is not None}


def an_image(*sources: dict[str, Any], **members: Any) -> dict[str, Any]:
    """An image; without `sources` one https source for all devices."""
    return {"sha256": HEX, "imageFamily": "cat9k", "sources": list(sources) or [an_https_source()], **members}


def an_https_source(**members: Any) -> dict[str, Any]:
    """A source for all devices."""
    return {"name": "everywhere", "priority": 10, "url": HTTPS, **members}


def a_rollout(
    *, name: str = "to-17-18", namespace: str = "team-a", plan: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A rollout with the least that it needs."""
    return _object(
        "ops.cisco.vk", "IOSXESoftwareRollout", name, namespace, {"plan": a_plan() if plan is None else plan, **spec}
    )


def an_upgrade(*, name: str = "to-17-18-switch-1-55f6d2ef", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A leaf with the least that it needs; members given as None are left out."""
    least = {
        "deviceRef": {"name": "switch-1"},
        "imageSource": {"url": HTTPS, "sha256": HEX},
        "targetVersion": "17.18.03",
    }
    return _object("ops.cisco.vk", "IOSXESoftwareUpgrade", name, namespace, {**least, **spec})


def a_policy_snapshot(**members: Any) -> dict[str, Any]:
    """The fleet policy in a frozen plan."""
    least = {
        "name": "fleet-topology-policy",
        "namespace": "gitops-ctl-system",
        "uid": "policy-uid",
        "resourceVersion": "17",
        "semanticHash": DIGEST,
        "structuralHash": DIGEST,
        "maxTargets": 10,
        "maxConcurrentTransfers": 2,
        "maxUnavailable": 2,
        "domains": [{"topologyKey": "topology.kubernetes.io/zone", "maxUnavailable": 1, "maxConcurrentTransfers": 1}],
        "healthFreshnessSeconds": 300,
        "ledgerNamespace": "gitops-ctl-system",
        "ledgerName": "fleet-topology-ledger",
        "ledgerUID": "ledger-uid",
        "maxActiveReservations": 8,
        "maxLedgerSizeBytes": 262144,
    }
    return {**least, **members}


def a_planned_target(**members: Any) -> dict[str, Any]:
    """One frozen target."""
    source = {"name": "north", "priority": 1, "url": SFTP, "sha256": HEX, "secretName": "images", "secretUID": "s-uid"}
    least = {
        "deviceName": "switch-1",
        "deviceUID": DEVICE_UID,
        "deviceGeneration": 1,
        "physicalIdentity": "foc0000a1b2",
        "nodeName": "switch-1",
        "nodeUID": NODE_UID,
        "driver": "XE",
        "imageFamily": "cat9k",
        "source": source,
        "qualificationCohort": "c9300",
        "workerProtocolVersion": "rollout-v1",
        "projectionHash": DIGEST,
        "topology": [{"key": "topology.kubernetes.io/zone", "value": "zone-a"}],
        "riskGroups": ["core-pair"],
        "maxTransferBytesPerSecond": 1000000,
        "canaryCohort": "c9300",
        "wave": 0,
        "childName": "to-17-18-switch-1-55f6d2ef",
    }
    return {**least, **members}


def a_frozen_plan(**members: Any) -> dict[str, Any]:
    """A frozen plan of one target."""
    least = {
        "hash": DIGEST,
        "encodedSizeBytes": 3000,
        "createdAt": MOMENT,
        "campaignGeneration": 1,
        "policy": a_policy_snapshot(),
        "riskGroupMembershipHash": DIGEST,
        "targets": [a_planned_target()],
    }
    return {**least, **members}


def a_target_status(**members: Any) -> dict[str, Any]:
    """One target of a campaign."""
    least = {
        "deviceName": "switch-1",
        "deviceUID": DEVICE_UID,
        "leafName": "to-17-18-switch-1-55f6d2ef",
        "leafUID": LEAF_UID,
        "phase": "Running",
        "reason": "ReservationGranted",
        "message": "installs",
        "lastTransitionTime": MOMENT,
    }
    return {**least, **members}


def a_recovery(**members: Any) -> dict[str, Any]:
    """The recovery of the only leaf."""
    claims = [{"stage": "PrimaryInstall", "claimedAt": MOMENT}]
    return {"leafUID": LEAF_UID, "claims": claims, "outcome": "DeviceRetired", "reason": "burnt", **members}


def a_recovery_status(**members: Any) -> dict[str, Any]:
    """What became of it."""
    least = {
        "leafUID": LEAF_UID,
        "deviceUID": DEVICE_UID,
        "outcome": "DeviceRetired",
        "state": "Held",
        "reason": "RecoveryNeedsTwoPersons",
        "persons": [PLANNER],
        "commit": COMMIT,
        "recordedAt": MOMENT,
    }
    return {**least, **members}


def an_approval(**members: Any) -> dict[str, Any]:
    """Approval of the frozen plan."""
    return {"planHash": DIGEST, "approvedBy": APPROVER, "approvedAt": MOMENT, **members}


def receipts() -> list[dict[str, Any]]:
    """The reference to the only receipt."""
    return [{"deviceUID": DEVICE_UID, "upgradeUID": LEAF_UID, "receiptHash": DIGEST}]


def an_activation(**members: Any) -> dict[str, Any]:
    """Approval of the activation."""
    return {**an_approval(), "receipts": receipts(), "notBefore": MOMENT, "notAfter": LATER, **members}


def an_invalidation(**members: Any) -> dict[str, Any]:
    """Invalidation of the preparation."""
    who = {"requestedBy": PLANNER, "requestedAt": MOMENT}
    return {"planHash": DIGEST, **who, "reason": "not needed", "receipts": receipts(), **members}


def a_control(revision: int = 1, **members: Any) -> dict[str, Any]:
    """A control block of a person."""
    return {"revision": revision, "requestedBy": PLANNER, "requestedAt": MOMENT, **members}


def full_plan() -> dict[str, Any]:
    """A plan with every member that one can have."""
    expression = {"key": "topology.cisco.vk/site", "operator": "In", "values": ["north"]}
    selector = {"matchLabels": {"topology.cisco.vk/managed": "true"}, "matchExpressions": [expression]}
    north = {
        "name": "north",
        "deviceSelector": selector,
        "priority": 1,
        "url": SFTP,
        "urlSecretRef": {"name": "images"},
    }
    drain = {
        "namespaces": ["shop"],
        "timeoutSeconds": 900,
        "maxPods": 4,
        "maxTerminationGraceSeconds": 60,
    }
    network = {
        "enabled": True,
        "requireCompleteEvidence": True,
        "requiredInterfaces": ["GigabitEthernet1/0/1"],
        "requiredNeighbors": ["core-1"],
        "requireInterfacesUp": True,
        "requireNeighborsFull": False,
        "minimumHeadroomPercent": 20,
    }
    domain = {"topologyKey": "topology.kubernetes.io/zone", "maxConcurrentTransfers": 1, "maxUnavailable": 1}
    return a_plan(
        targets={"selector": selector, "allowAll": False, "maxTargets": 10},
        image=an_image(north, an_https_source()),
        strategy="PrepareOnly",
        rollbackOnFailure=True,
        installTimeoutSeconds=3600,
        rebootTimeoutSeconds=1800,
        maintenanceWindow={"notBefore": MOMENT, "notAfter": LATER},
        pauseAfterCanary=True,
        budgets={"maxConcurrentTransfers": 1, "maxUnavailable": 1, "domains": [domain]},
        workloads={"policy": "Drain", "drain": drain},
        health={"maxObservationAgeSeconds": 300, "canarySoakSeconds": 600, "waveSoakSeconds": 300, "network": network},
    )


def a_full_rollout() -> dict[str, Any]:
    """A cancelled preparation with every block and the whole status."""
    counts = ("total", "planned", "admitted", "inProgress", "succeeded", "failed", "blocked", "cancelled")
    tree = a_rollout(
        plan=full_plan(),
        approval=an_approval(),
        activationApproval=an_activation(),
        preparationInvalidation=an_invalidation(),
        recovery=a_recovery(),
        control=a_control(3, pause=False, cancel=True, reason="enough"),
    )
    return with_status(
        tree,
        observedGeneration=1,
        phase="Cancelled",
        frozenPlan=a_frozen_plan(),
        intentHash=DIGEST,
        effectivePolicy={"epoch": 1, "policy": a_policy_snapshot(), "updatedAt": MOMENT},
        policyTransition={"epoch": 2, "policy": a_policy_snapshot(), "startedAt": MOMENT},
        approval={
            "planHash": DIGEST,
            "valid": True,
            "reason": "ExactPlanApproved",
            "validatedAt": MOMENT,
            "person": APPROVER,
            "commit": COMMIT,
        },
        activation={
            "planHash": DIGEST,
            "valid": True,
            "reason": "ActivationAuthorized",
            "validatedAt": MOMENT,
            "person": APPROVER,
            "commit": COMMIT,
            "authorizationHash": DIGEST,
        },
        control={
            "requestedRevision": 3,
            "effectiveRevision": 3,
            "pausePending": False,
            "paused": False,
            "cancellationPending": False,
            "cancelled": True,
        },
        counts=dict.fromkeys(counts, 1),
        targets=[a_target_status()],
        recoveries=[a_recovery_status(settledAt=LATER)],
        conditions=[a_condition()],
        message="cancelled",
    )

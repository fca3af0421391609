"""The status of CiscoDevices: single records, and a device with every member."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, a_condition, with_status
from tests.support.api_rollouts import (
    APPROVER,
    DEVICE_UID,
    LATER,
    LEAF_UID,
    LOCK,
    NODE_UID,
    PLANNER,
    RESERVATION,
    ROLLOUT_UID,
    TOKEN,
    a_device,
)


def a_node_identity(**members: Any) -> dict[str, Any]:
    """The binding of the only device to its Node."""
    least = {
        "nodeName": "switch-1",
        "nodeUID": NODE_UID,
        "deviceUID": DEVICE_UID,
        "physicalIdentity": "foc0000a1b2",
    }
    return {**least, **members}


def a_lock(state: str = "Active", **members: Any) -> dict[str, Any]:
    """The lock of the only campaign."""
    least = {
        "state": state,
        "policyEpoch": 1,
        "acquisitionID": LOCK,
        "campaignNamespace": "team-a",
        "campaignName": "to-17-18",
        "campaignUID": ROLLOUT_UID,
        "planHash": DIGEST,
        "reservationID": RESERVATION,
        "deviceUID": DEVICE_UID,
        "deviceGeneration": 1,
        "nodeUID": NODE_UID,
        "projectionHash": DIGEST,
        "acquiredAt": MOMENT,
    }
    return {**least, **members}


def a_session(phase: str = "Acknowledged", **members: Any) -> dict[str, Any]:
    """The session of the only leaf."""
    leaf = {"namespace": "team-a", "name": "to-17-18-switch-1-55f6d2ef", "uid": LEAF_UID}
    lease = {"namespace": "team-a", "name": "mutation", "uid": "lease-uid", "holder": f"software-upgrade/{LEAF_UID}"}
    least = {
        "phase": phase,
        "protocolVersion": "rollout-v1",
        "purpose": "SoftwareMutation",
        "sessionToken": TOKEN,
        "lease": lease,
        "operation": leaf,
        "deviceUID": DEVICE_UID,
        "nodeName": "switch-1",
        "nodeUID": NODE_UID,
        "requestedAt": MOMENT,
        "acknowledgedAt": MOMENT,
        "controlRevision": 0,
        "message": "guarded",
    }
    return {key: value for key, value in {**least, **members}.items() if value is not None}


def a_drain_session(phase: str = "Active", **members: Any) -> dict[str, Any]:
    """A session for a drain."""
    lease = {**a_session()["lease"], "holder": f"software-drain/{LEAF_UID}"}
    return a_session(
        phase, **{"protocolVersion": "pdb-drain-v1", "purpose": "WorkloadDrain", "lease": lease, **members}
    )


def a_retirement(**members: Any) -> dict[str, Any]:
    """The word of two persons."""
    least = {
        "rolloutName": "to-17-18",
        "rolloutUID": ROLLOUT_UID,
        "leafUID": LEAF_UID,
        "persons": [PLANNER, APPROVER],
        "commit": COMMIT,
        "at": MOMENT,
    }
    return {**least, **members}


def a_sample(**members: Any) -> dict[str, Any]:
    """A complete look at the network; members given as None are left out."""
    interface = {
        "name": "GigabitEthernet1/0/1",
        "operUp": True,
        "headroomPercent": 90,
        "capacityBitsPerSecond": 1000000000,
        "ingressBitsPerSecond": 1000,
        "egressBitsPerSecond": 1000,
        "rateSource": "statistics",
    }
    neighbor = {
        "identity": "cdp|core-1|GigabitEthernet1/0/1|",
        "id": "core-1",
        "interface": "GigabitEthernet1/0/1",
        "routingDomain": "default",
        "state": "discovered",
        "source": "cdp",
    }
    least = {
        "workerPodUID": "pod-uid",
        "collectionStartedAt": MOMENT,
        "collectionEndedAt": MOMENT,
        "sampleSequence": 1,
        "observedAt": MOMENT,
        "complete": True,
        "producerRevision": DIGEST,
        "deviceIdentityHash": DIGEST,
        "interfaces": [interface],
        "neighbors": [neighbor],
    }
    return {key: value for key, value in {**least, **members}.items() if value is not None}


def a_health(**members: Any) -> dict[str, Any]:
    """A snapshot of health; members given as None are left out."""
    observed = {"type": "TopologyReady", "status": "True", "observedGeneration": 1, "observedAt": MOMENT}
    least = {
        "observedAt": MOMENT,
        "nodeReadyHeartbeatTime": MOMENT,
        "deviceConditionsHash": DIGEST,
        "conditionObservations": [observed],
        "network": a_sample(),
        "acceptedNetwork": a_sample(),
    }
    return {key: value for key, value in {**least, **members}.items() if value is not None}


def a_preflight(**members: Any) -> dict[str, Any]:
    """What the checks for the only campaign gave."""
    least = {
        "rolloutUID": ROLLOUT_UID,
        "planHash": DIGEST,
        "observedAt": MOMENT,
        "workerPodUID": "pod-uid",
        "workerRevision": DIGEST,
        "result": "Warned",
        "imageSize": 1249368115,
        "runningVersion": "17.18.02",
        "checks": [{"name": "SavedConfiguration", "status": "Warn", "message": "unsaved changes"}],
    }
    return {**least, **members}


def a_full_device() -> dict[str, Any]:
    """A retired device with every member that one can have."""
    provisioning = {"certificateID": "ca-1", "secretRef": {"name": "gnoi-identity"}, "replaceTargetCABundle": True}
    tree = a_device(
        port=443,
        username="operator",
        credentialSecretRef={"name": "switch-1"},
        tls={"enabled": True, "insecureSkipVerify": False, "secretRef": {"name": "tls"}},
        netconfPort=830,
        gnoi={
            "port": 9339,
            "transportSecurity": "tls",
            "tls": {"secretRef": {"name": "gnoi"}},
            "certificateProvisioning": provisioning,
        },
        xe={"gnoi": {"certificateProvisioning": provisioning}},
        physicalIdentity="FOC0000A1B2",
        nodeName="switch-1",
        maxPods=16,
        taints=[{"key": "example.net/lab", "value": "true", "effect": "NoSchedule"}],
        labels={"example.net/hall": "7"},
        region="north",
        zone="zone-a",
    )
    partial = a_sample(complete=False, unknownReason="NoInterfaces")
    revision = {
        "desiredRevision": DIGEST,
        "observedRevision": DIGEST,
        "deploymentUID": "deployment-uid",
        "deploymentGeneration": 1,
        "podUID": "pod-uid",
        "podStartTime": MOMENT,
        "observedAt": MOMENT,
    }
    return with_status(
        tree,
        phase="Ready",
        conditions=[a_condition()],
        nodeIdentity=a_node_identity(),
        topologyProjection={
            "effectiveLabelHash": DIGEST,
            "sourceResourceVersion": "17",
            "lastSuccessfulTime": MOMENT,
        },
        healthObservation=a_health(network=partial, acceptedNetwork=partial),
        workerRevision={**revision, "readyHeartbeatTime": MOMENT},
        networkWorkerRevision={**revision, "podReadyTime": MOMENT},
        topologyLock=a_lock(),
        maintenanceSession=a_session(),
        workerReport={
            "podUID": "pod-uid",
            "observedRevision": DIGEST,
            "loadedAt": LATER,
            "materialValid": True,
            "message": "loaded",
            "imageSourceAllow": ["192.0.2.0/24"],
            "journal": {"id": TOKEN, "sequence": 3, "state": "Ready"},
        },
        preflight=[a_preflight()],
        retired=a_retirement(),
        legacyHandoff={"state": "Complete"},
        workerTopology="PerDevice",
        workerCapabilities=[{"name": "config"}],
        netAsCode={"stripe": "iosxe"},
    )

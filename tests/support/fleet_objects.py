"""A healthy device with its Node, a policy and a leaf, as trees; each function returns a fresh, deep structure to change."""

import json
from datetime import UTC, datetime, timedelta

from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.health import conditions_hash
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.fleet.projection import Projection, projected_labels

NOW = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
SITE = "topology.cisco.vk/site"
CACHE = "distribution.cisco.vk/cache-domain"
REDUNDANCY = "operations.cisco.vk/redundancy-domain"
REVISION = f"sha256:{'a' * 64}"
POD_UID = "pod-network-1"


def before(seconds):
    """The text of the moment so many seconds before NOW."""
    return to_rfc3339(NOW - timedelta(seconds=seconds))


def policy_tree(**changes):
    """A policy with every optional part left out."""
    tree = {
        "version": "v1",
        "appHostingServiceAccountName": "release-app-hosting",
        "networkManagementServiceAccountName": "release-network-management",
        "configLeaseNamespace": "",
        "fleetSelector": {"matchLabels": {names.MANAGED: "true"}},
        "requiredTopologyKeys": [names.REGION, names.ZONE, SITE, CACHE, REDUNDANCY],
        "projectedTopologyKeys": [names.REGION, names.ZONE, SITE],
        "globalMaxConcurrentTransfers": 2,
        "globalMaxUnavailable": 3,
        "domainMaxConcurrentTransfers": {CACHE: 1},
        "domainMaxUnavailable": {names.ZONE: 1},
        "healthFreshnessSeconds": 300,
        "maxCampaignTargets": 50,
        "maxActiveReservations": 60,
        "maxLedgerBytes": 65536,
        "ledgerName": "release-topology-ledger",
    }
    return {name: member for name, member in {**tree, **changes}.items() if member is not ...}


def a_policy(**changes):
    """The same, parsed."""
    return parse_policy(json.dumps(policy_tree(**changes)))


def device_labels(**changes):
    """Labels of a device in the fleet."""
    labels = {
        names.MANAGED: "true",
        names.REGION: "north",
        names.ZONE: "zone-a",
        SITE: "plant-1",
        CACHE: "cache-1",
        REDUNDANCY: "pair-1",
        names.IMAGE_FAMILY: "cat9k",
        names.COHORT: "c9300",
    }
    return {**labels, **changes}


def condition(kind, reason, generation=3, **changes):
    """One condition of a device."""
    tree = {
        "type": kind,
        "status": "True",
        "observedGeneration": generation,
        "lastTransitionTime": before(7200),
        "reason": reason,
        "message": f"{kind} holds",
    }
    return {**tree, **changes}


def device_tree(name="switch-1", *, policy=None, labels=None, spec=None):
    """A healthy device, everything observed 60 seconds ago; its Node is `node_tree(device)`."""
    declared = {"driver": "XE", "physicalIdentity": f"FOC-{name}".upper(), "address": "192.0.2.1", **(spec or {})}
    tree = {
        "apiVersion": "cisco.vk/v1alpha1",
        "kind": "CiscoDevice",
        "metadata": {
            "name": name,
            "namespace": "plant",
            "uid": f"device-{name}",
            "generation": 3,
            "resourceVersion": "100",
            "labels": device_labels() if labels is None else labels,
        },
        "spec": declared,
        "status": {
            "phase": "Ready",
            "conditions": [
                condition(names.NODE_IDENTITY_READY, "UIDBound"),
                condition(names.TOPOLOGY_READY, "ProjectionComplete"),
                condition(names.GNOI_READY, "Validated"),
                condition(names.MAINTENANCE_READY, "Idle"),
            ],
            "nodeIdentity": {
                "nodeName": declared.get("nodeName", name),
                "nodeUID": f"node-{name}",
                "deviceUID": f"device-{name}",
                "physicalIdentity": declared["physicalIdentity"].lower(),
            },
            "networkWorkerRevision": worker_revision("podReadyTime"),
            "workerRevision": worker_revision("readyHeartbeatTime"),
        },
    }
    projection = projected_labels(device_of(tree), policy or a_policy())
    assert isinstance(projection, Projection), projection
    tree["status"]["topologyProjection"] = {
        "effectiveLabelHash": projection.hash,
        "sourceResourceVersion": "90",
        "lastSuccessfulTime": before(3600),
    }
    return observed(tree)


def worker_revision(ready):
    """A proven worker revision."""
    return {
        "desiredRevision": REVISION,
        "observedRevision": REVISION,
        "deploymentUID": "deployment-1",
        "deploymentGeneration": 2,
        "podUID": POD_UID,
        "podStartTime": before(9000),
        ready: before(8990),
        "observedAt": before(60),
    }


def observed(device, *, seconds=60, heartbeat=None):
    """The device with a new observation of what it says now; other members of the observation stay."""
    status = device["status"]
    status["healthObservation"] = {
        **status.get("healthObservation", {}),
        "observedAt": before(seconds),
        "nodeReadyHeartbeatTime": before(seconds if heartbeat is None else heartbeat),
        "deviceConditionsHash": conditions_hash(status["phase"], status["conditions"]),
        "conditionObservations": [
            {
                "type": item["type"],
                "status": item["status"],
                "observedGeneration": item["observedGeneration"],
                "observedAt": before(seconds),
            }
            for item in status["conditions"]
            if item["type"] in names.REQUIRED_CONDITIONS
        ],
    }
    return device


def node_tree(device=None, *, policy=None):
    """The Node of that device, its heartbeat 60 seconds ago."""
    seen = device_of(device_tree(policy=policy) if device is None else device)
    projection = projected_labels(seen, policy or a_policy())
    assert isinstance(projection, Projection), projection
    ready = {"lastHeartbeatTime": before(60), "lastTransitionTime": before(7200)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": seen.node_name,
            "uid": seen.node_identity.node_uid,
            "resourceVersion": "101",
            "labels": dict(projection.labels),
            "annotations": {names.DEVICE_UID: seen.uid, names.PROJECTION_HASH: projection.hash},
        },
        "spec": {"taints": []},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Answers", **ready},
                {"type": names.MANAGED_WRITER, "status": "True", "reason": names.MANAGED_WRITER_REASON, **ready},
            ],
            "nodeInfo": {"machineID": seen.physical_identity, "systemUUID": "", "kernelVersion": "17.18.3"},
        },
    }


def pair(**options):
    """Device and Node, read."""
    tree = device_tree(**options)
    return device_of(tree), node_of(node_tree(tree, policy=options.get("policy")))


def sample_tree(**changes):
    """A complete sample of `switch-1`, 30 seconds old."""
    tree = {
        "workerPodUID": POD_UID,
        "collectionStartedAt": before(32),
        "collectionEndedAt": before(30),
        "sampleSequence": 7,
        "observedAt": before(30),
        "complete": True,
        "producerRevision": REVISION,
        "deviceIdentityHash": device_identity_hash("foc-switch-1"),
        "interfaces": [
            {"name": "TenGigabitEthernet1/1/1", "operUp": True, "headroomPercent": 80},
            {"name": "TenGigabitEthernet1/1/2", "operUp": True, "headroomPercent": 60},
        ],
        "neighbors": [
            neighbor("core-1", "TenGigabitEthernet1/1/1"),
            neighbor("core-2", "TenGigabitEthernet1/1/2"),
        ],
    }
    return {name: member for name, member in {**tree, **changes}.items() if member is not ...}


def neighbor(other, interface, state="full"):
    """One adjacency."""
    return {
        "identity": f"ospf|{other}|{interface}|",
        "id": other,
        "interface": interface,
        "routingDomain": "",
        "state": state,
        "source": "ospf",
    }


def leaf_tree(device=None, **status):
    """A Granted leaf of that device, bound completely, with neutral control; members of the status replace or, with `...`, remove."""
    seen = device_of(device_tree() if device is None else device)
    identity = {
        "campaignUID": "campaign-1",
        "planHash": f"sha256:{'b' * 64}",
        "ledgerUID": "ledger-1",
        "reservationID": "0123456789abcdef0123456789abcdef",
    }
    admission = {
        "state": "Granted",
        "protocolVersion": "rollout-v1",
        **identity,
        "policyUID": "policy-1",
        "policyResourceVersion": "55",
        "policyEpoch": 1,
        "topologyLockID": "c" * 32,
        "leafUID": "leaf-1",
        "deviceUID": seen.uid,
        "physicalIdentity": seen.node_identity.physical_identity,
        "nodeUID": seen.node_identity.node_uid,
        "deviceGeneration": seen.generation,
        "controlRevision": 0,
        "updatedAt": before(50),
    }
    base = {
        "phase": "Pending",
        "managerAdmission": admission,
        "managerControl": {
            "revision": 0,
            "pause": False,
            "cancel": False,
            "reason": "CampaignControl",
            "updatedAt": before(50),
        },
    }
    account = "system:serviceaccount:plant:release-network-management"
    return {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareUpgrade",
        "metadata": {
            "name": "campaign-switch-1-01234567",
            "namespace": "plant",
            "uid": "leaf-1",
            "generation": 1,
            "resourceVersion": "200",
            "annotations": {
                names.MANAGED: "true",
                names.CAMPAIGN_NAMESPACE: "plant",
                names.CAMPAIGN_NAME: "campaign",
                names.CAMPAIGN_UID: identity["campaignUID"],
                names.PLAN_HASH: identity["planHash"],
                names.LEDGER_UID: identity["ledgerUID"],
                names.RESERVATION_ID: identity["reservationID"],
                names.DEVICE_NAMESPACE: "plant",
                names.DEVICE_NAME: seen.name,
                names.DEVICE_UID: seen.uid,
                names.DEVICE_GENERATION: str(seen.generation),
                names.NODE_NAME: seen.node_name,
                names.NODE_UID: seen.node_identity.node_uid,
                names.WORKER_USERNAME: account,
                names.NETWORK_WORKER_USERNAME: account,
                names.WORKER_PROTOCOL: "rollout-v1",
                names.NETWORK_WORKER_POD_NAME: "network-0",
                names.NETWORK_WORKER_POD_UID: POD_UID,
            },
        },
        "spec": {"deviceRef": {"name": seen.name}, "targetVersion": "17.18.03", "strategy": "Reload"},
        "status": {name: member for name, member in {**base, **status}.items() if member is not ...},
    }


def claim(stage, **changes):
    """One claim of that leaf."""
    tree = {
        "stage": stage,
        "reservationID": "0123456789abcdef0123456789abcdef",
        "policyEpoch": 1,
        "controlRevision": 0,
        "claimedAt": before(40),
    }
    return {**tree, **changes}


SETTLED = {"type": names.MUTATION_SETTLED, "status": "True", "reason": "OutcomeVerified"}

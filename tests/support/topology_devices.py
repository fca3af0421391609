"""Trees of the managed topology for tests: a device, its Node, its worker, its Lease and its leaf, in their simplest good form."""

import json
from datetime import UTC, datetime
from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key, mutation_lease_name
from gitops_ctl.fleet.policy import FleetPolicy, parse_policy

Tree = dict[str, Any]
NOW = datetime(2026, 2, 1, tzinfo=UTC)
NAMESPACE, DEVICE_UID, NODE_UID, LEAF_UID = "campus", "device-uid-1", "node-uid-1", "leaf-uid-1"
APP_ACCOUNT, NETWORK_ACCOUNT = "fleet-app-hosting", "fleet-network-management"
REGION, ZONE = names.REGION, names.ZONE
POLICY: Tree = {
    "version": "v1",
    "appHostingServiceAccountName": APP_ACCOUNT,
    "networkManagementServiceAccountName": NETWORK_ACCOUNT,
    "configLeaseNamespace": "",
    "fleetSelector": {"matchLabels": {names.MANAGED: "true"}},
    "requiredTopologyKeys": [REGION, ZONE],
    "projectedTopologyKeys": [REGION, ZONE],
    "globalMaxConcurrentTransfers": 1,
    "globalMaxUnavailable": 1,
    "domainMaxConcurrentTransfers": {REGION: 1},
    "domainMaxUnavailable": {ZONE: 1},
    "healthFreshnessSeconds": 300,
    "maxCampaignTargets": 100,
    "maxActiveReservations": 256,
    "maxLedgerBytes": 262144,
    "ledgerName": "fleet-topology-ledger",
}


def policy_objects(namespace: str, *, name: str, **members: Any) -> tuple[Tree, Tree]:
    """The ConfigMaps of the policy, with other members, and of its ledger, which is empty."""
    text = {**POLICY, **members}
    annotations = {
        names.MANAGED_POLICY: "true",
        names.APP_HOSTING_ACCOUNT: text["appHostingServiceAccountName"],
        names.NETWORK_MANAGEMENT_ACCOUNT: text["networkManagementServiceAccountName"],
        names.CONFIG_LEASE_NAMESPACE: text["configLeaseNamespace"],
        names.ADMISSION_POLICY_PREFIX: "gitops-ctl",
    }

    def config_map(of: str, component: str, annotations: Tree, data: Tree) -> Tree:
        labels = {names.COMPONENT: component}
        metadata = {"name": of, "namespace": namespace, "labels": labels, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    return (
        config_map(name, names.COMPONENT_POLICY, annotations, {names.POLICY_KEY: json.dumps(text)}),
        config_map(text["ledgerName"], names.COMPONENT_LEDGER, {names.MANAGED_LEDGER: "true"}, {}),
    )


def policy(**members: Any) -> FleetPolicy:
    """The policy with other members."""
    return parse_policy(json.dumps({**POLICY, **members}))


def device(name: str = "access-1", *, status: Tree | None = None, **metadata: Any) -> Tree:
    """A device of the fleet, with the chassis FOC-<name>."""
    labels = {names.MANAGED: "true", REGION: "north", ZONE: "hall-1"}
    return {
        "apiVersion": "cisco.vk/v1alpha1",
        "kind": "CiscoDevice",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": DEVICE_UID,
            "generation": 1,
            "resourceVersion": "10",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            **metadata,
        },
        "spec": {
            "driver": "XE",
            "address": "192.0.2.1",
            "physicalIdentity": f"FOC-{name}",
            "credentialSecretRef": {"name": "login"},
            "maxPods": 16,
        },
        "status": status or {},
    }


def bound(tree: Tree, **status: Any) -> Tree:
    """The device with its Node recorded."""
    metadata = tree["metadata"]
    identity = {
        "nodeName": tree["spec"].get("nodeName", metadata["name"]),
        "nodeUID": NODE_UID,
        "deviceUID": metadata["uid"],
        "physicalIdentity": tree["spec"]["physicalIdentity"].lower(),
    }
    return {**tree, "status": {**tree["status"], "nodeIdentity": identity, **status}}


def node(name: str = "access-1", *, uid: str = NODE_UID, **annotations: str) -> Tree:
    """A virtual Node that nobody has bound."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid,
            "resourceVersion": "20",
            "labels": {names.NODE_TYPE: names.TYPE_VIRTUAL},
            "annotations": dict(annotations),
        },
        "spec": {},
        "status": {},
    }


def lease(holder: str = f"software-upgrade/{LEAF_UID}", *, name: str = "access-1", **request: str) -> Tree:
    """The mutation Lease with a good request; a member that is given as empty is left out."""
    asked = {
        "request-version": "rollout-v1",
        "session-token": "0123456789abcdef",
        "requested-at": "2026-02-01T00:00:00Z",
        "operation-namespace": NAMESPACE,
        "operation-name": "leaf-1",
        "operation-uid": LEAF_UID,
        "control-revision": "0",
        "purpose": "SoftwareMutation",
        **request,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": mutation_lease_name(NAMESPACE, name),
            "namespace": NAMESPACE,
            "uid": "lease-uid-1",
            "labels": {names.LEASE_DEVICE: device_key(NAMESPACE, name)},
            "annotations": {
                names.LEASE_PURPOSE: names.LEASE_MUTATION,
                **{f"{names.MAINTENANCE}{key}": value for key, value in asked.items() if value},
            },
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60} if holder else {},
    }


def leaf(*, admission: str = "Granted", **status: Any) -> Tree:
    """A leaf of the device, admitted."""
    return {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareUpgrade",
        "metadata": {
            "name": "leaf-1",
            "namespace": NAMESPACE,
            "uid": LEAF_UID,
            "annotations": {
                names.DEVICE_UID: DEVICE_UID,
                names.DEVICE_NAMESPACE: NAMESPACE,
                names.DEVICE_NAME: "access-1",
            },
        },
        "spec": {},
        "status": {"managerAdmission": {"state": admission}, **status},
    }


CLAIM: Tree = {"stage": "PrimaryInstall", "claimedAt": "2026-02-01T00:00:00Z"}
SETTLED: Tree = {"type": names.MUTATION_SETTLED, "status": "True", "reason": "OutcomeVerified"}


def deployment(account: str, *, digest: str, generation: int = 1, **status: int) -> Tree:
    """A complete Deployment of one plane."""
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
    return {
        "metadata": {"name": account, "namespace": NAMESPACE, "uid": f"{account}-uid", "generation": generation},
        "spec": {
            "replicas": 1,
            "template": {"metadata": {"annotations": {names.WORKER_TEMPLATE_DIGEST: digest}}},
        },
        "status": {**counts, **status},
    }


def pod(
    account: str, *, digest: str, labels: Any, uid: str = "pod-uid-1", ready: str = "True", **metadata: Any
) -> Tree:
    """A Pod of such a Deployment that is ready since NOW."""
    return {
        "metadata": {
            "name": f"{account}-x",
            "namespace": NAMESPACE,
            "uid": uid,
            "labels": dict(labels),
            "annotations": {names.WORKER_TEMPLATE_DIGEST: digest},
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"{account}-7c9f", "controller": True}],
            **metadata,
        },
        "spec": {"serviceAccountName": account},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-31T23:59:00Z",
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-31T23:59:30Z"}],
        },
    }

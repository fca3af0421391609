"""A small healthy fleet as the cluster stores it, and what a plan over it looks like; tests change what they are about."""

import copy
import json
from datetime import UTC, datetime, timedelta

from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.encoding import sha256_of, sorted_map
from gitops_ctl.fleet.health import conditions_hash
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.rollout.fleetlook import FleetMemo
from gitops_ctl.rollout.freeze import FreezeInput
from gitops_ctl.rollout.snapshot import PolicyRecord
from gitops_ctl.rollout.sources import SourceSecret

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
NAMESPACE = "prod"
REVISION = f"sha256:{'5' * 64}"
SHA256 = "a" * 64
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
SITE, CACHE = "topology.cisco.vk/site", "distribution.cisco.vk/cache-domain"
REDUNDANCY = "operations.cisco.vk/redundancy-domain"
COHORT, FAMILY = "operations.cisco.vk/qualification-cohort", "operations.cisco.vk/image-family"
PROJECTED = (REGION, ZONE, SITE)

POLICY = {
    "version": "v1",
    "appHostingServiceAccountName": "app-hosting",
    "networkManagementServiceAccountName": "network-management",
    "configLeaseNamespace": "",
    "fleetSelector": {"matchLabels": {"topology.cisco.vk/managed": "true"}},
    "requiredTopologyKeys": [REGION, ZONE, SITE, CACHE, REDUNDANCY],
    "projectedTopologyKeys": list(PROJECTED),
    "globalMaxConcurrentTransfers": 4,
    "globalMaxUnavailable": 4,
    "domainMaxConcurrentTransfers": {CACHE: 2},
    "domainMaxUnavailable": {ZONE: 2},
    "healthFreshnessSeconds": 300,
    "maxCampaignTargets": 100,
    "maxActiveReservations": 256,
    "maxLedgerBytes": 262144,
    "ledgerName": "topology-ledger",
}


def ago(seconds):
    """A time that many seconds before the present of the tests."""
    return to_rfc3339(NOW - timedelta(seconds=seconds))


def policy_map(**changed):
    """The ConfigMap of the policy; a member of None is left out."""
    policy = {name: value for name, value in {**POLICY, **changed}.items() if value is not None}
    annotations = {"topology.cisco.vk/managed-policy": "true", "topology.cisco.vk/ledger-uid": "ledger-uid"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "topology-policy",
            "namespace": "topology-system",
            "uid": "policy-uid",
            "resourceVersion": "900",
            "annotations": annotations,
        },
        "data": {"policy.json": json.dumps(policy)},
    }


def policy_record(*, version="900", **changed):
    """The policy as the planner gets it."""
    tree = policy_map(**changed)
    meta = tree["metadata"]
    return PolicyRecord(
        parse_policy(tree["data"]["policy.json"]),
        meta["name"],
        meta["namespace"],
        meta["uid"],
        version,
        "ledger-uid",
    )


def labels_of(name, zone="a", cohort="c9300", **more):
    """The labels of a device of that zone."""
    place = {REGION: "north", ZONE: zone, SITE: f"site-{zone}", CACHE: f"cache-{zone}", REDUNDANCY: f"pair-{name[-1]}"}
    return {"topology.cisco.vk/managed": "true", COHORT: cohort, FAMILY: "cat9k", **place, **more}


def condition(kind, reason="", *, status="True", generation=3):
    """One condition of a device."""
    return {
        "type": kind,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": ago(86400),
        "reason": reason or "Fine",
        "message": "",
    }


def device(name, *, namespace=NAMESPACE, labels=None, **more):
    """A CiscoDevice that may be upgraded; `more` gives arguments of `labels_of`."""
    carried = labels if labels is not None else labels_of(name, **more)
    required = ("GNOIConfigurationReady", "NodeIdentityReady", "TopologyReady")
    conditions = [condition(kind) for kind in required]
    uid = f"{name}-uid" if namespace == NAMESPACE else f"{namespace}-{name}-uid"
    revision = {
        "desiredRevision": REVISION,
        "observedRevision": REVISION,
        "deploymentUID": "deployment-uid",
        "deploymentGeneration": 1,
        "podUID": "pod-uid",
        "podStartTime": ago(86400),
        "observedAt": ago(60),
    }
    return {
        "apiVersion": "cisco.vk/v1alpha1",
        "kind": "CiscoDevice",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "generation": 3,
            "resourceVersion": "41",
            "labels": dict(carried),
        },
        "spec": {"driver": "XE", "physicalIdentity": f"FOC-{uid}", "address": "192.0.2.1"},
        "status": {
            "phase": "Ready",
            "conditions": conditions,
            "nodeIdentity": {
                "nodeName": name,
                "nodeUID": f"{uid}-node",
                "deviceUID": uid,
                "physicalIdentity": f"foc-{uid}",
            },
            "topologyProjection": {
                "effectiveLabelHash": sha256_of(sorted_map(node_labels(name, carried))),
                "sourceResourceVersion": "40",
                "lastSuccessfulTime": ago(3600),
            },
            "healthObservation": observed(conditions),
            "workerRevision": {**revision, "readyHeartbeatTime": ago(60)},
            "networkWorkerRevision": {**revision, "podReadyTime": ago(80000)},
            "workerReport": {
                "podUID": "pod-uid",
                "observedRevision": REVISION,
                "loadedAt": ago(80000),
                "materialValid": True,
                "journal": {"id": "journal-id", "sequence": 0, "state": "Ready"},
            },
        },
    }


def observed(conditions, phase="Ready", age=30):
    """The evidence for these conditions, that many seconds old."""
    return {
        "observedAt": ago(age),
        "nodeReadyHeartbeatTime": ago(age),
        "deviceConditionsHash": conditions_hash(phase, conditions),
        "conditionObservations": [
            {
                "type": one["type"],
                "status": one["status"],
                "observedGeneration": one["observedGeneration"],
                "observedAt": ago(age),
            }
            for one in conditions
        ],
    }


def node_labels(name, labels):
    """What is projected onto the Node of a device, with its identity."""
    identity = {
        "kubernetes.io/hostname": name,
        "platform": "cisco-ios-xe",
        "provider": "cisco-apphosting",
        "type": "virtual-kubelet",
    }
    return {**identity, **{key: labels[key] for key in PROJECTED if key in labels}}


def node(tree):
    """The Node of a device."""
    meta, status = tree["metadata"], tree["status"]
    name = tree["spec"].get("nodeName", meta["name"])
    labels = node_labels(name, meta["labels"])
    binding = {
        "managed": "true",
        "device-namespace": meta["namespace"],
        "device-name": meta["name"],
        "device-uid": meta["uid"],
        "node-uid": status["nodeIdentity"]["nodeUID"],
        "worker-username": "system:serviceaccount:prod:app-hosting",
        "network-worker-username": "system:serviceaccount:prod:network-management",
        "worker-protocol": "rollout-v1",
        "worker-observed-revision": REVISION,
        "projected-keys": ",".join(sorted(labels)),
        "projection-hash": status["topologyProjection"]["effectiveLabelHash"],
        "managed-taints": "",
    }
    times = {"lastHeartbeatTime": ago(20), "lastTransitionTime": ago(86400)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": status["nodeIdentity"]["nodeUID"],
            "resourceVersion": "77",
            "labels": labels,
            "annotations": {f"topology.cisco.vk/{key}": value for key, value in binding.items()},
        },
        "spec": {"taints": []},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", **times},
                {
                    "type": "CiscoVirtualKubeletManagedReady",
                    "status": "True",
                    "reason": "StatusOnlyRolloutV1",
                    **times,
                },
            ],
            "nodeInfo": {"machineID": tree["spec"]["physicalIdentity"], "systemUUID": "", "kernelVersion": "17.12.4"},
        },
    }


def source(name="north", *, priority=10, selector=None, url="https://images.example.net/cat9k.bin", secret=""):
    """One source of a plan."""
    tree = {"name": name, "priority": priority, "url": url}
    if selector is not None:
        tree["deviceSelector"] = selector
    return {**tree, "urlSecretRef": {"name": secret}} if secret else tree


def rollout(*, first=("edge-1",), sources=None, selector=None, **changed):
    """A stored rollout with its defaults; `changed` replaces members of the plan."""
    plan = {
        "requestedBy": "network-author",
        "requestedAt": ago(60),
        "targets": {
            "selector": {"matchLabels": {"topology.cisco.vk/managed": "true"}} if selector is None else selector,
            "allowAll": False,
            "maxTargets": 100,
        },
        "image": {"sha256": SHA256, "imageFamily": "cat9k", "sources": sources or [source()]},
        "targetVersion": "17.18.03",
        "strategy": "Reload",
        "rollbackOnFailure": True,
        "installTimeoutSeconds": 3600,
        "rebootTimeoutSeconds": 1800,
        "canaries": [{"name": "c9300", "devices": list(first)}],
        "pauseAfterCanary": True,
        "budgets": {"maxConcurrentTransfers": 2, "maxUnavailable": 2},
        "workloads": {"policy": "BlockIfRunning"},
        "health": {"maxObservationAgeSeconds": 300, "canarySoakSeconds": 600, "waveSoakSeconds": 300},
    }
    return {
        "apiVersion": "ops.cisco.vk/v1alpha1",
        "kind": "IOSXESoftwareRollout",
        "metadata": {"name": "spring", "namespace": NAMESPACE, "uid": "rollout-uid", "generation": 1},
        "spec": {"plan": {**plan, **changed}},
    }


SECRET = SourceSecret(
    "images",
    "secret-uid",
    "5",
    {"cisco.vk/purpose": "software-image-source"},
    allowed_scheme="sftp",
    allowed_host="images.example.net",
    allowed_port="22",
)


def given(devices=None, *, nodes=None, policy=None, plan=None, secrets=(), leaves=(), everywhere=None, now=NOW):
    """What the planner gets for these trees; `everywhere` are the devices of all namespaces."""
    devices = fleet() if devices is None else devices
    everywhere = devices if everywhere is None else everywhere
    nodes = [node(tree) for tree in everywhere] if nodes is None else nodes
    record = policy or policy_record()
    seen = {one.name: one for one in map(node_of, nodes)}
    return FreezeInput(
        rollout=plan or rollout(),
        policy=record,
        devices=tuple(map(device_of, devices)),
        nodes=seen,
        secrets={one.name: one for one in secrets},
        leaves=tuple(map(leaf_of, leaves)),
        fleet=FleetMemo().look(tuple(map(device_of, everywhere)), seen, policy=record.policy, now=now),
        now=now,
    )


def fleet(count=3, **more):
    """So many devices, `edge-1` first."""
    return [device(f"edge-{number}", **more) for number in range(1, count + 1)]


def changed(tree, *path, to):
    """A copy of an object with one member set; `to` of None removes it."""
    copied = copy.deepcopy(tree)
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    if to is None:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = to
    return copied

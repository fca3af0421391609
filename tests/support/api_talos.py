"""Documents of the Talos kinds that are valid as they are, and each of them with every member."""

from typing import Any

from tests.support.api import COMMIT, DIGEST, MOMENT, a_condition, with_status

ID = "replaced/5-switch-machines/cp-1#1"


def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def a_cluster(*, name: str = "north", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A TalosCluster with the least that it needs."""
    return _object("TalosCluster", name, namespace, {"talosconfigSecretRef": {"name": "talosconfig"}, **spec})


def a_machine(*, name: str = "cp-1", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A TalosMachine with the least that it needs."""
    least = {"clusterRef": {"name": "north"}, "address": "192.0.2.11", "role": "controlplane"}
    return _object("TalosMachine", name, namespace, {**least, **spec})


def an_operation(*, name: str = "north-1", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A TalosOperation with the least that it needs."""
    least = {"clusterRef": {"name": "north"}, "kind": "cni", "target": "replaced", "sourceCommit": COMMIT}
    return _object("TalosOperation", name, namespace, {**least, **spec})


def a_patch(*, name: str = "cni", namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A TalosConfigPatch with the least that it needs."""
    least = {"patch": "cluster: {}\n", "targets": {"clusterRef": {"name": "north"}}}
    return _object("TalosConfigPatch", name, namespace, {**least, **spec})


def full_talos_objects() -> dict[str, dict[str, Any]]:
    """One object of each Talos kind with every member that it can have."""
    return {
        "TalosCluster": _full_cluster(),
        "TalosMachine": _full_machine(),
        "TalosOperation": with_status(an_operation(), **_operation_status()),
        "TalosConfigPatch": a_patch(
            targets={"clusterRef": {"name": "north"}, "roles": ["controlplane"], "machines": ["cp-1"]}
        ),
    }


def _full_cluster() -> dict[str, Any]:
    values = {
        "sourceRef": {"name": "network"},
        "path": "clusters/north/cilium.yaml",
        "shape": "B",
        "object": {"kind": "HelmRelease", "name": "cilium", "namespace": "kube-system"},
        "documentIndex": 1,
        "keyPrefix": "cilium",
        "alsoSets": ["clusters/north/bootstrap.yaml"],
    }
    cni = {
        "kubeProxy": "replaced",
        "preset": "cilium",
        "handover": "git",
        "values": values,
        "proxyImage": "registry.example.net/kube-proxy:v{version}",
        "deniedVersions": [{"component": "cilium", "versions": ">=1.19.0 <1.19.5", "reason": "nodes leave the net"}],
        "maxParallelWorkers": 2,
        "consentCleanup": False,
        "operation": {"resume": 1, "cancel": False, "breakLock": False},
    }
    cluster = a_cluster(kubeconfigSecretRef={"name": "kubeconfig"}, contract="v1.14", cni=cni)
    return with_status(
        cluster,
        observedGeneration=1,
        cni={
            "kubeProxy": "enabled",
            "observedMode": "mixed",
            "observedAt": MOMENT,
            "consumedConsent": {"commit": COMMIT, "target": "replaced", "operationUID": "7f1c"},
            "drift": {"reason": "KubeProxyDrift", "message": "it came back", "since": MOMENT},
        },
        lock={"holder": "north-1", "operationUID": "7f1c", "kind": "cni", "since": MOMENT},
        conditions=[a_condition()],
    )


def _full_machine() -> dict[str, Any]:
    machine = a_machine(nodeName="cp-1", configSecretRef={"name": "cp-1"})
    observed = {
        "at": MOMENT,
        "version": "v1.14.0",
        "type": "controlplane",
        "hash": DIGEST,
        "kubeProxy": "enabled",
        "pending": [{"path": "KubeProxyConfig", "class": "kube-proxy"}],
    }
    return with_status(
        machine,
        observedGeneration=1,
        observed=observed,
        rebootPaths=["machine.install.disk"],
        conditions=[a_condition()],
    )


def _operation_status() -> dict[str, Any]:
    changed = {"group": "apps", "kind": "DaemonSet", "namespace": "kube-system", "name": "kube-proxy", "uid": "7f"}
    machine = {"name": "cp-1", "role": "controlplane", "state": "Done"}
    hashes = {"hashBefore": DIGEST, "hashWanted": DIGEST}
    request = {"id": ID, "action": "apply-mode", "machine": "cp-1", "mode": "replaced", **hashes}
    receipt = {"id": ID, "result": "Done", "at": MOMENT, "message": "applied", "hashApplied": DIGEST}
    progress = {**machine, **hashes, "hashApplied": DIGEST, "appliedAt": MOMENT, "message": "done"}
    return {
        "observedGeneration": 1,
        "phase": "SwitchingMachines",
        "step": "replaced/5-switch-machines",
        "operation": {"resume": 1, "cancel": False, "breakLock": False},
        "clocks": [{"name": "cni-change", "startedAt": MOMENT, "deadline": MOMENT}],
        "requests": [request],
        "claims": [{"id": ID, "worker": "worker-1", "at": MOMENT}],
        "receipts": [{**receipt, "warnings": ["none"]}],
        "observed": _observed(),
        "baseline": {"checksum": "abc", "generation": 3, "at": MOMENT},
        "machines": [progress],
        "removed": [{**changed, "at": MOMENT}],
        "restored": [{**changed, "at": MOMENT}],
        "conditions": [a_condition(type="Succeeded")],
        "pullRequest": {
            "url": "https://git.example.net/net/values/pulls/7",
            "number": 7,
            "state": "open",
            "headSha": COMMIT,
            "valuesHash": DIGEST,
        },
    }


def _observed() -> dict[str, Any]:
    counts = ("generation", "observedGeneration", "desired", "current", "updated", "ready", "available")
    roll_out = dict.fromkeys(counts, 5)
    return {
        "at": MOMENT,
        "request": ID,
        "cilium": {
            "present": True,
            "value": "true",
            "mode": "replaced",
            "agents": roll_out,
            "operator": roll_out,
            "checksum": "abc",
            "templateGeneration": 3,
            "templateWrittenAt": MOMENT,
            "configWrittenAt": MOMENT,
            "oldestAgentStart": MOMENT,
            "lagging": ["cilium-x2f5d"],
            "overrides": [{"object": "kube-system/canary", "value": "true", "nodes": ["w-1"]}],
            "version": "1.18.3",
            "serviceHost": "localhost",
            "servicePort": "7445",
        },
        "kubeProxy": {
            "present": True,
            "rollOut": roll_out,
            "pods": 5,
            "objects": [{"group": "apps", "kind": "DaemonSet", "namespace": "kube-system", "name": "kube-proxy"}],
            "missing": [{"group": "apps", "kind": "DaemonSet", "namespace": "kube-system", "name": "kube-proxy"}],
            "rendered": True,
            "lagging": ["kube-proxy-ab12c"],
        },
        "machines": [_seen_machine()],
        "service": {
            "result": "NotPossible",
            "reason": "ProbeNotPossible",
            "message": "outside",
            "at": MOMENT,
            "request": ID,
        },
        "kubernetesVersion": "v1.36.1",
        "problems": [{"reason": "CredentialNotMounted", "message": "Secret talosconfig, key talosconfig"}],
    }


def _seen_machine() -> dict[str, Any]:
    return {
        "name": "cp-1",
        "reachable": True,
        "problem": {"reason": "Unreachable", "message": "no route"},
        "version": "v1.14.0",
        "type": "controlplane",
        "nodeName": "cp-1",
        "contract": "v1.14",
        "kubeProxy": "enabled",
        "hashActive": DIGEST,
        "hashPersistent": DIGEST,
        "hashWanted": DIGEST,
        "pending": [{"path": "cluster.inlineManifests", "class": "safe"}],
        "kubePrism": {"healthy": True, "port": 7445},
        "gates": [{"name": "api", "passed": True, "message": "answered"}],
    }

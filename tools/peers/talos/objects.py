"""The objects that a control plane renders for kube-proxy, and the bookkeeping around them."""

import hashlib
from typing import Any

from tools.peers.talos.config import Proxy

INVENTORY = "talos-bootstrap-manifests-inventory"
ANNOTATION = "config.k8s.io/owning-inventory"
MANAGER = "talos"
MANIFEST = "10-kube-proxy"
_LABELS = {"tier": "node", "k8s-app": "kube-proxy"}


def checksum(proxy: Proxy) -> str:
    """Of the rendered kube-proxy configuration; empty in the older form."""
    if proxy.config is None:
        return ""
    return hashlib.sha256(proxy.file.encode()).hexdigest()


def kube_proxy(proxy: Proxy) -> list[dict[str, Any]]:
    """Everything of kube-proxy, in the order in which Talos lists it."""
    name = f"kube-proxy-config-{checksum(proxy)[:16]}"
    found: list[dict[str, Any]] = []
    if proxy.config is not None:
        found.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "kube-system", "labels": _LABELS},
                "data": {"config.conf": proxy.file},
            }
        )
    found.append(_daemon_set(proxy, config_map=name if proxy.config is not None else ""))
    found.append(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        }
    )
    found.append(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kube-proxy"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        }
    )
    return found


def inventory_key(tree: dict[str, Any]) -> str:
    """How an object is written in the inventory."""
    group = tree["apiVersion"].rpartition("/")[0]
    metadata = tree["metadata"]
    name = metadata["name"].replace(":", "__") if group == "rbac.authorization.k8s.io" else metadata["name"]
    return f"{metadata.get('namespace', '')}_{name}_{group}_{tree['kind']}"


def with_annotation(tree: dict[str, Any]) -> dict[str, Any]:
    """A copy that names its inventory."""
    metadata = tree["metadata"]
    return {**tree, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), ANNOTATION: INVENTORY}}}


def _daemon_set(proxy: Proxy, *, config_map: str) -> dict[str, Any]:
    arguments = [f"--{key}={value}" for key, value in sorted(proxy.extra_args.items())]
    volumes: list[dict[str, Any]] = [{"name": "kubeconfig", "configMap": {"name": "kubeconfig-in-cluster"}}]
    mounts: list[dict[str, Any]] = [{"name": "kubeconfig", "mountPath": "/etc/kubernetes", "readOnly": True}]
    if config_map:
        arguments = ["--config=/var/lib/kube-proxy/config.conf", *arguments]
        volumes.append({"name": "config", "configMap": {"name": config_map}})
        mounts.append({"name": "config", "mountPath": "/var/lib/kube-proxy", "readOnly": True})
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    "hostNetwork": True,
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": "kube-proxy",
                    "tolerations": [
                        {"effect": "NoSchedule", "operator": "Exists"},
                        {"effect": "NoExecute", "operator": "Exists"},
                    ],
                    "containers": [
                        {
                            "name": "kube-proxy",
                            "image": proxy.image,
                            "command": ["/usr/local/bin/kube-proxy", *arguments],
                            "securityContext": {"privileged": True},
                            "volumeMounts": mounts,
                        }
                    ],
                    "volumes": volumes,
                },
            },
        },
    }

"""The cluster worker in a local system: its rights, its mounted credentials, and its process (cni-switch.md, section 2.1).

What a chart and a kubelet do in a cluster is done here by hand, with the same rights and the same files.
"""

import sys
from pathlib import Path
from typing import Final

from gitops_ctl.api.names import ICHOR_GROUP
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.local.certificates import write_private
from gitops_ctl.local.controlplane import issue_kubeconfig
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervise import ProcessSpec

WORKER_ACCOUNT: Final = "gitops-ctl-worker"

_RBAC: Final = "rbac.authorization.k8s.io"
_KINDS: Final = ("talosclusters", "talosmachines", "talosoperations")


def worker_user(namespace: str) -> str:
    """The user name of the worker of a namespace; the admission policies list it under `workers`."""
    return f"system:serviceaccount:{namespace}:{WORKER_ACCOUNT}"


def worker_objects(namespace: str) -> tuple[JsonObject, ...]:
    """Account and rights of the worker of a namespace, in the order in which they can be applied."""
    metadata: JsonObject = {"name": WORKER_ACCOUNT, "namespace": namespace}
    subjects = [{"kind": "ServiceAccount", "name": WORKER_ACCOUNT, "namespace": namespace}]
    in_namespace = [
        {"apiGroups": [ICHOR_GROUP], "resources": list(_KINDS), "verbs": ["get", "list", "watch"]},
        {"apiGroups": [ICHOR_GROUP], "resources": [f"{kind}/status" for kind in _KINDS], "verbs": ["patch"]},
    ]
    which_cluster = [
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}
    ]

    def granted(kind: str, meta: JsonObject, rules: list[dict[str, list[str]]]) -> tuple[JsonObject, JsonObject]:
        role: JsonObject = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": meta, "rules": rules}
        reference = {"apiGroup": _RBAC, "kind": kind, "name": WORKER_ACCOUNT}
        binding: JsonObject = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": meta,
            "roleRef": reference,
            "subjects": subjects,
        }
        return role, binding

    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *granted("Role", metadata, in_namespace),
        *granted("ClusterRole", {"name": WORKER_ACCOUNT}, which_cluster),
    )


def mount_credentials(mounts: Path, *, cluster: str, talosconfig: bytes, kubeconfig: bytes | None = None) -> None:
    """Put the credentials of a TalosCluster where its worker looks for them; only their owner can read them."""
    folder = mounts / "clusters" / cluster
    write_private(folder / "talosconfig", talosconfig)
    if kubeconfig is not None:
        write_private(folder / "kubeconfig", kubeconfig)


def worker_process(  # noqa: PLR0913  each is an option of the command
    folder: SystemFolder,
    *,
    url: str,
    namespace: str,
    credentials: Path,
    clock: Clock,
    probe_port: int = 0,
    interval_s: float = 10.0,
) -> ProcessSpec:
    """The worker of a namespace with a kubeconfig of its own.

    Args:
        url: API server of the worker's own cluster, which was made in `folder`.
        credentials: where `mount_credentials` put the files.
        probe_port: port at which the Service `kubernetes` is asked; 0 for its own.
        interval_s: between two looks while an operation runs.
    """
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    kubeconfig = issue_kubeconfig(
        folder, f"worker-{namespace}", server=url, user=worker_user(namespace), groups=groups, clock=clock
    )
    options = (
        *(f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", f"--credentials-dir={credentials}"),
        *("--service-probe=on", f"--service-probe-port={probe_port}", f"--observation-interval={interval_s:g}"),
    )
    argv = (sys.executable, "-m", "gitops_ctl", "worker", "cluster", *options)
    return ProcessSpec(f"worker-{namespace}", argv, folder.logs / f"worker-{namespace}.log", grace_s=30.0)

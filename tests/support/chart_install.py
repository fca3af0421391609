"""The chart on a shared API server, confined to the namespaces of one test.

Names of cluster-scoped objects get a suffix and the bindings of the policies a namespace selector, so that tests that run at the same time do
not meet.  The Deployment is left out: nothing runs here.

kube-apiserver 1.36 stops watching ConfigMaps for policies when the last policy with such a parameter goes, and never starts again: a chart that
is installed later finds no parameters and every write is denied.  So one policy that matches nothing stays on the server.
"""

import copy
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.plain_api import PlainApi
from tools.render_install import chart_objects

_CLUSTER_SCOPED = {
    "Namespace": "/api/v1/namespaces",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
_NAMESPACED = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}

_WITHOUT_NAMESPACE = ("gitops-ctl-topology-", "gitops-ctl-device-nodes", "gitops-ctl-device-leases")
"""What these policies judge has no namespace, or is in one that is everybody's."""

CHART_LABEL = "tests.example.net/chart"
"""On cluster-scoped objects that the policies of a chart shall judge; its value is the namespace of the chart."""


@dataclass(frozen=True)
class Installation:
    """What was installed: the manager's user name, and the namespace where it lives.

    Attributes:
        suffix: what the names of cluster-scoped objects end with here.
    """

    namespace: str
    suffix: str = ""

    @property
    def manager(self) -> str:
        return f"system:serviceaccount:{self.namespace}:gitops-ctl-manager"


_KEPT = "tests-keep-the-parameter-watch"
_KEPT_OBJECTS = {
    "ValidatingAdmissionPolicy": {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["none.invalid"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["nothing"],
                }
            ]
        },
        "validations": [{"expression": "true"}],
    },
    "ValidatingAdmissionPolicyBinding": {
        "policyName": _KEPT,
        "paramRef": {"name": _KEPT, "namespace": "default", "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    },
}


def keep_the_parameter_watch(api: PlainApi) -> None:
    """Keep one policy with a parameter on the server for as long as it lives."""
    for kind, spec in _KEPT_OBJECTS.items():
        tree = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": _KEPT},
            "spec": spec,
        }
        reply = api.apply(f"{_CLUSTER_SCOPED[kind]}/{_KEPT}", tree)
        assert reply.message == "", reply.message


@contextmanager
def installed_chart(api: PlainApi, namespace: str, values: dict[str, Any]) -> Iterator[Installation]:
    """The chart in `namespace`, with its policies on `namespace` alone; cluster-scoped objects are removed in the end."""
    keep_the_parameter_watch(api)
    suffix = secrets.token_hex(4)
    paths = []
    try:
        worker = {"scheduling": {"workerNamespace": f"{namespace}-worker"}}
        for tree in chart_objects({**worker, **values}, namespace=namespace):
            if tree["kind"] != "Deployment":
                path, confined = _confined(tree, suffix, namespace)
                reply = api.apply(path, confined)
                assert reply.message == "", reply.message
                assert reply.warning == "", reply.warning
                if tree["kind"] in _CLUSTER_SCOPED or _is_shared(tree):
                    paths.append(path)
        yield Installation(namespace, f"-{suffix}")
    finally:
        for path in reversed(paths):
            api.delete(path)


def _is_shared(tree: dict[str, Any]) -> bool:
    """Whether it is in a namespace that is everybody's."""
    return bool(tree["metadata"].get("namespace") == "kube-node-lease")


def _confined(tree: dict[str, Any], suffix: str, namespace: str) -> tuple[str, dict[str, Any]]:
    result = copy.deepcopy(tree)
    kind = tree["kind"]
    if kind in _CLUSTER_SCOPED:
        result["metadata"]["name"] += f"-{suffix}" if kind != "Namespace" else ""
        folder = _CLUSTER_SCOPED[kind]
    else:
        folder = _NAMESPACED[kind].format(tree["metadata"]["namespace"])
    if _is_shared(tree):
        result["metadata"]["name"] += f"-{suffix}"
    if kind == "ClusterRoleBinding" or (kind == "RoleBinding" and _is_shared(tree)):
        result["roleRef"]["name"] += f"-{suffix}"
    if kind == "ValidatingAdmissionPolicyBinding":
        # A namespace selector says nothing about objects without a namespace: those carry a label.
        by_label = result["spec"]["policyName"].startswith(_WITHOUT_NAMESPACE)
        chosen = {CHART_LABEL if by_label else "kubernetes.io/metadata.name": namespace}
        result["spec"]["policyName"] += f"-{suffix}"
        selector = "objectSelector" if by_label else "namespaceSelector"
        result["spec"]["matchResources"] = {selector: {"matchLabels": chosen}}
    return f"{folder}/{result['metadata']['name']}", result

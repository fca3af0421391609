"""The chart on a shared API server, confined to the namespaces of one test.

Names of cluster-scoped objects get a suffix and the bindings of the policies a namespace selector, so that tests that run at the same time do
not meet.  The Deployment is left out: nothing runs here.
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


@dataclass(frozen=True)
class Installation:
    """What was installed: the manager's user name, and the namespace where it lives."""

    namespace: str

    @property
    def manager(self) -> str:
        return f"system:serviceaccount:{self.namespace}:gitops-ctl-manager"


@contextmanager
def installed_chart(api: PlainApi, namespace: str, values: dict[str, Any]) -> Iterator[Installation]:
    """The chart in `namespace`, with its policies on `namespace` alone; cluster-scoped objects are removed in the end."""
    suffix = secrets.token_hex(4)
    paths = []
    try:
        for tree in chart_objects(values, namespace=namespace):
            if tree["kind"] != "Deployment":
                path, confined = _confined(tree, suffix, namespace)
                reply = api.apply(path, confined)
                assert reply.message == "", reply.message
                assert reply.warning == "", reply.warning
                if tree["kind"] in _CLUSTER_SCOPED:
                    paths.append(path)
        yield Installation(namespace)
    finally:
        for path in reversed(paths):
            api.delete(path)


def _confined(tree: dict[str, Any], suffix: str, namespace: str) -> tuple[str, dict[str, Any]]:
    result = copy.deepcopy(tree)
    kind = tree["kind"]
    if kind in _CLUSTER_SCOPED:
        result["metadata"]["name"] += f"-{suffix}"
        folder = _CLUSTER_SCOPED[kind]
    else:
        folder = _NAMESPACED[kind].format(tree["metadata"]["namespace"])
    if kind == "ClusterRoleBinding":
        result["roleRef"]["name"] += f"-{suffix}"
    if kind == "ValidatingAdmissionPolicyBinding":
        result["spec"]["policyName"] += f"-{suffix}"
        chosen = {"kubernetes.io/metadata.name": namespace}
        result["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": chosen}}
    return f"{folder}/{result['metadata']['name']}", result

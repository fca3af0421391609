"""The admission policies of devices and rollouts in force for one device that a test works with, whoever its manager is."""

import copy
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key
from tests.support.chart_install import keep_the_parameter_watch
from tests.support.plain_api import PlainApi, eventually
from tools.render_install import chart_objects

ADMIN = "gitops-ctl:admin"
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_FOLDERS = {
    "ValidatingAdmissionPolicy": f"{_GROUP}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_GROUP}/validatingadmissionpolicybindings",
}
_PREFIXES = ("gitops-ctl-rollout-", "gitops-ctl-device-")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the policies look at: a namespace, and the Node and Leases of its device of that name.

    Attributes:
        manager: user name of the manager.
        app, network: names of the accounts of the workers.
    """

    namespace: str
    device: str
    manager: str
    app: str
    network: str

    def selector(self, policy: str) -> dict[str, Any]:
        """Where one policy is in force."""
        if policy == "gitops-ctl-device-nodes":
            return {"objectSelector": {"matchLabels": {names.HOSTNAME: self.device}}}
        if policy == "gitops-ctl-device-leases":
            key = device_key(self.namespace, self.device)
            return {"objectSelector": {"matchLabels": {names.LEASE_DEVICE: key}}}
        return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}}


@contextmanager
def policies_in_force(api: PlainApi, judged: Judged) -> Iterator[None]:
    """The administrator of the server stands for the Syncs and for whoever restores; a Node's label shows when the policies are there."""
    keep_the_parameter_watch(api)
    suffix, paths = secrets.token_hex(4), []
    data = {
        "manager": judged.manager,
        "appHosting": judged.app,
        "networkManagement": judged.network,
        "syncAccounts": ADMIN,
        "writers": ADMIN,
    }
    maps = f"/api/v1/namespaces/{judged.namespace}/configmaps/gitops-ctl-admission"
    parameter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gitops-ctl-admission"}, "data": data}
    assert api.apply(maps, parameter).message == ""
    try:
        for path, tree in _objects(judged, suffix):
            reply = api.apply(path, tree)
            assert reply.message == "", reply.message
            paths.append(path)
        probe = {"metadata": {"labels": {"tests.example.net/probe": "a"}}}
        eventually(
            lambda: "change the CiscoDevice" in api.merge(f"/api/v1/nodes/{judged.device}?dryRun=All", probe).message,
            60,
        )
        yield
    finally:
        for path in reversed(paths):
            api.delete(path)


def _objects(judged: Judged, suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    values = {"managedTopology": {"enabled": True, "namespaces": [judged.namespace]}}
    for tree in chart_objects(values, namespace=judged.namespace):
        name = tree["metadata"]["name"]
        if tree["kind"] not in _FOLDERS or not name.startswith(_PREFIXES):
            continue
        own = copy.deepcopy(tree)
        own["metadata"]["name"] = f"{name}-{suffix}"
        if "policyName" in own["spec"]:
            own["spec"] |= {"policyName": f"{name}-{suffix}", "matchResources": judged.selector(name)}
        yield f"{_FOLDERS[tree['kind']]}/{name}-{suffix}", own

"""The admission policies of devices and rollouts in force for one device that a test works with, whoever its manager is."""

import asyncio
import copy
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key
from tests.support.api_rollouts import an_upgrade
from tests.support.chart_install import keep_the_parameter_watch
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, eventually
from tools.render_install import chart_objects

ADMIN = "gitops-ctl:admin"
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_FOLDERS = {
    "ValidatingAdmissionPolicy": f"{_GROUP}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_GROUP}/validatingadmissionpolicybindings",
}
_OF_NODES = ("gitops-ctl-device-nodes", "gitops-ctl-device-leases")
_PREFIXES = ("gitops-ctl-rollout-", "gitops-ctl-device-")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the policies look at: a namespace, and the Node and Leases of its device of that name; without one, no Node and no Lease.

    Attributes:
        manager: user name of the manager.
        app, network: names of the accounts of the workers.
    """

    namespace: str
    device: str = ""
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
    """The administrator of the server stands for the Syncs and for whoever restores; refusals show when the policies are there."""
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
        _wait(api, judged)
        yield
    finally:
        for path in reversed(paths):
            api.delete(path)


@asynccontextmanager
async def policing(control_plane: ControlPlaneHandle, judged: Judged) -> AsyncIterator[None]:
    """The same for a test with a loop."""
    api = PlainApi(control_plane)
    blocking = policies_in_force(api, judged)
    await asyncio.to_thread(blocking.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(blocking.__exit__, None, None, None)
        api.close()


def _wait(api: PlainApi, judged: Judged) -> None:
    """Until somebody with every right is refused."""
    person = api.acting_as("network-author@example.net", "system:masters")
    leaves = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{judged.namespace}/iosxesoftwareupgrades?dryRun=All"
    leaf = an_upgrade(namespace=judged.namespace)
    eventually(lambda: "created by the manager" in person.post(leaves, leaf).message, 60)
    if judged.device:
        node, probe = f"/api/v1/nodes/{judged.device}?dryRun=All", {"metadata": {"labels": {"probe": "a"}}}
        eventually(lambda: "change the CiscoDevice" in person.merge(node, probe).message, 60)
    person.close()


def _objects(judged: Judged, suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    values = {"managedTopology": {"enabled": True, "namespaces": [judged.namespace]}}
    for tree in chart_objects(values, namespace=judged.namespace):
        name = tree["metadata"]["name"]
        if tree["kind"] not in _FOLDERS or not name.startswith(_PREFIXES):
            continue
        if not judged.device and name in _OF_NODES:
            continue
        own = copy.deepcopy(tree)
        own["metadata"]["name"] = f"{name}-{suffix}"
        if "policyName" in own["spec"]:
            own["spec"] |= {"policyName": f"{name}-{suffix}", "matchResources": judged.selector(name)}
        yield f"{_FOLDERS[tree['kind']]}/{name}-{suffix}", own

"""The chart with managed topology on a real API server, one identity for each role, and objects for each of them to try its hand at.

Accounts and persons have certificates of their own and the roles that the chart ships, bound as an administrator would bind them; the device
workers have tokens that a kubelet asked for, for exactly their Pods.  Nobody is a cluster administrator but `admin`.
"""

import secrets
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.local.controlplane import client_context
from tests.support.api_devices import a_health, a_lock, a_node_identity, a_session
from tests.support.api_leaves import an_admission
from tests.support.api_rollouts import a_device, a_frozen_plan, a_rollout, a_target_status, an_upgrade
from tests.support.chart_install import CHART_LABEL, Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, Reply, eventually, install_crds

APP, NETWORK = "gitops-ctl-app-hosting", "gitops-ctl-network-management"
POLICY, LEDGER = "gitops-ctl-topology-policy", "gitops-ctl-topology-ledger"
FOREIGN_LEASE = "kept-by-somebody"
AUTHOR, OPERATOR, BREAKGLASS = "network-author@example.net", "operator@example.net", "ledger-keeper@example.net"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_WRITE = ["get", "list", "watch", "create", "update", "patch", "delete"]
_DELEGATED = (
    *("topology-author", "rollout-planner", "rollout-approver", "rollout-activator", "rollout-recoverer"),
    "topology-policy-admin",
)


@dataclass(frozen=True)
class _Server:
    url: str
    ssl_context: ssl.SSLContext


@dataclass
class Bench:
    """The namespace, its clients by role, and what is in it.

    Attributes:
        pods: UID of the Pod of each plane.
        uids: UID of each object that the set-up made.
    """

    installation: Installation
    clients: dict[str, PlainApi] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.installation.namespace

    def __getitem__(self, role: str) -> PlainApi:
        return self.clients[role]

    def path(self, plural: str, name: str = "") -> str:
        """Where objects of a kind are."""
        group = {
            "ciscodevices": "/apis/cisco.vk/v1alpha1",
            "iosxesoftwarerollouts": "/apis/ops.cisco.vk/v1alpha1",
            "iosxesoftwareupgrades": "/apis/ops.cisco.vk/v1alpha1",
            "leases": "/apis/coordination.k8s.io/v1",
            "deployments": "/apis/apps/v1",
            "rolebindings": _RBAC,
        }.get(plural, "/api/v1")
        scope = "" if plural == "nodes" else f"/namespaces/{self.namespace}"
        return f"{group}{scope}/{plural}{'/' + name if name else ''}"

    @property
    def node(self) -> str:
        return f"device-{self.namespace}"

    @property
    def host(self) -> str:
        """The Node that the workers' Pods run on."""
        return f"host-{self.namespace}"

    def account(self, name: str) -> str:
        return f"system:serviceaccount:{self.namespace}:{name}"

    def made(self, role: str, plural: str, tree: dict[str, Any]) -> Reply:
        """Create an object that the test needs."""
        reply = _allowed(lambda: self[role].post(self.path(plural), tree))
        self.uids[tree["metadata"]["name"]] = reply.body["metadata"]["uid"]
        return reply

    def recorded(self, role: str, plural: str, name: str, **status: Any) -> None:
        """Write members of a status that the test needs."""
        _allowed(lambda: self[role].merge(f"{self.path(plural, name)}/status", {"status": status}))


def _allowed(send: Callable[[], Reply], *, deadline_s: float = 30.0) -> Reply:
    """The answer once the server allows it: it follows roles, parameters and Pods that were made just before with some delay."""
    replies: list[Reply] = []

    def done() -> bool:
        replies.append(send())
        assert replies[-1].status in (200, 201, 403, 404), replies[-1].message
        return replies[-1].status < 300

    try:
        eventually(done, deadline_s)
    except AssertionError as error:
        raise AssertionError(replies[-1].message) from error
    return replies[-1]


@contextmanager
def rollout_bench(control_plane: ControlPlaneHandle) -> Iterator[Bench]:
    """Everything, removed in the end.  The policies need a moment until the server follows them."""
    with ExitStack() as stack:
        admin = PlainApi(control_plane)
        stack.callback(admin.close)
        install_crds(admin)
        namespace = f"adm-{secrets.token_hex(4)}"  # a name in a certificate has 64 characters
        assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
        stack.callback(_remove_the_rest, admin, namespace)
        values = {
            "tenants": [{"namespace": namespace, "serviceAccounts": ["applier", "planner"]}],
            "managedTopology": {"enabled": True, "namespaces": [namespace]},
            "admission": {"restorers": ["restorer@example.net"]},
        }
        bench = Bench(stack.enter_context(installed_chart(admin, namespace, values)), {"admin": admin})
        _identities(bench, control_plane, stack)
        _rights(bench)
        _workers(bench, control_plane, stack)
        _objects(bench)
        yield bench


def _identities(bench: Bench, control_plane: ControlPlaneHandle, stack: ExitStack) -> None:
    accounts = ("system:serviceaccounts", f"system:serviceaccounts:{bench.namespace}")
    people = {
        "manager": (bench.installation.manager, accounts),
        "applier": (bench.account("applier"), accounts),
        "planner": (bench.account("planner"), accounts),
        "unbound worker": (bench.account(NETWORK), accounts),
        "person": (AUTHOR, ()),
        "operator": (OPERATOR, ()),
        "keeper": (BREAKGLASS, ()),
        "restorer": ("restorer@example.net", ()),
        "kubelet": (f"system:node:{bench.host}", ("system:nodes",)),
    }
    for role, (user, groups) in people.items():
        context = client_context(control_plane.folder, control_plane.kubeconfig_for(user, groups))
        bench.clients[role] = PlainApi(_Server(control_plane.url, context))
        stack.callback(bench[role].close)
    for role in ("replicaset-controller", "node-controller", "generic-garbage-collector"):
        bench.clients[role] = bench["admin"].acting_as(f"system:serviceaccount:kube-system:{role}", "system:masters")
        stack.callback(bench[role].close)


def _bind(bench: Bench, name: str, role: str, *users: str, everywhere: bool = False) -> None:
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user} for user in users]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    own = f"{bench.namespace}-{name}" if everywhere else name
    tree = {"metadata": {"name": own}, "roleRef": reference, "subjects": subjects}
    path = f"{_RBAC}/clusterrolebindings" if everywhere else bench.path("rolebindings")
    reply = bench["admin"].post(path, tree)
    assert reply.status == 201, reply.message


def _rights(bench: Bench) -> None:
    """What an administrator binds; and for persons every plain right, so that a refusal is the policies'."""
    suffix = bench.installation.suffix
    for role in _DELEGATED:
        _bind(bench, role, f"gitops-ctl-{role}{suffix}", bench.account("applier"))
    _bind(bench, "ledger", f"gitops-ctl-topology-ledger-breakglass{suffix}", BREAKGLASS)
    rules = [
        {"apiGroups": ["cisco.vk", "ops.cisco.vk"], "resources": ["*"], "verbs": _WRITE},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": _WRITE},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": _WRITE},
        {
            "apiGroups": [""],
            "resources": [
                "nodes",
                "nodes/status",
                "configmaps",
                "secrets",
                "pods",
                "serviceaccounts",
                "serviceaccounts/token",
            ],
            "verbs": _WRITE,
        },
    ]
    plain = f"{bench.namespace}-plain"
    assert bench["admin"].post(f"{_RBAC}/clusterroles", {"metadata": {"name": plain}, "rules": rules}).status == 201
    people = (AUTHOR, OPERATOR, "restorer@example.net", bench.account("planner"), bench.account(NETWORK))
    _bind(bench, "plain", plain, *people, everywhere=True)
    control = {"apiGroups": ["ops.cisco.vk"], "resources": ["iosxesoftwarerollouts"], "verbs": ["control"]}
    stop = f"{bench.namespace}-stop"
    assert bench["admin"].post(f"{_RBAC}/clusterroles", {"metadata": {"name": stop}, "rules": [control]}).status == 201
    _bind(bench, "stop", stop, OPERATOR)
    for worker, account, everywhere in (
        ("network-management-read-write", NETWORK, False),
        ("network-management-lease-read-write", NETWORK, False),
        ("network-management-global-read", NETWORK, True),
        ("app-hosting-read-write", APP, True),
        ("heartbeats", APP, False),
        ("app-hosting-device-read", APP, False),
    ):
        shipped = "network-management-lease-read-write" if worker == "heartbeats" else worker
        role = f"cisco-virtual-kubelet-{shipped}{suffix}"
        _bind(bench, worker, role, bench.account(account), everywhere=everywhere)


def _workers(bench: Bench, control_plane: ControlPlaneHandle, stack: ExitStack) -> None:
    """A Pod for each plane, made by a controller on a Node of its own, and the token that its kubelet gets for it."""
    assert bench["admin"].post("/api/v1/nodes", {"metadata": {"name": bench.host}}).status == 201
    for role, account in (("app worker", APP), ("network worker", NETWORK), ("second worker", NETWORK)):
        if role != "second worker":
            bench.made("manager", "serviceaccounts", {"metadata": {"name": account}})
        name = role.replace(" ", "-")
        bench.made("replicaset-controller", "pods", a_pod(name, account, node=bench.host))
        bench.pods[role] = bench.uids[name]
        path, request = f"{bench.path('serviceaccounts', account)}/token", a_token_request(name, bench.uids[name])
        reply = _allowed(partial(bench["kubelet"].post, path, request))
        context = ssl.create_default_context(cafile=str(control_plane.folder.certs / "ca.crt"))
        bench.clients[role] = PlainApi(_Server(control_plane.url, context), token=reply.body["status"]["token"])
        stack.callback(bench[role].close)


def a_pod(name: str, account: str, *, node: str = "") -> dict[str, Any]:
    """A Pod under an account."""
    placed = {"nodeName": node} if node else {}
    container = {"name": "worker", "image": "gitops-ctl:test"}
    spec = {"serviceAccountName": account, "containers": [container], "tolerations": [{"operator": "Exists"}], **placed}
    return {"metadata": {"name": name}, "spec": spec}


def a_token_request(pod: str, uid: str) -> dict[str, Any]:
    """A request for a token for one Pod; without one it is bound to nothing."""
    bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}} if pod else {}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [], **bound}}


def a_binding(bench: Bench, **members: str) -> dict[str, str]:
    """The annotations of a leaf for the locked device."""
    found = {
        **dict.fromkeys(("campaign-uid", "plan-hash", "ledger-uid", "reservation-id", "device-uid", "node-uid"), "x"),
        "managed": "true",
        "campaign-namespace": bench.namespace,
        "campaign-name": "campaign",
        "device-namespace": bench.namespace,
        "device-name": "locked",
        "device-generation": "1",
        "node-name": bench.node,
        "worker-username": bench.account(NETWORK),
        "network-worker-username": bench.account(NETWORK),
        "network-worker-pod-uid": bench.pods["network worker"],
        "worker-protocol": "rollout-v1",
    }
    both = {**found, **{key.replace("_", "-"): value for key, value in members.items()}}
    return {f"topology.cisco.vk/{key}": value for key, value in both.items()}


def a_leaf(bench: Bench, name: str, **members: str) -> dict[str, Any]:
    """A leaf as the manager makes one."""
    tree = an_upgrade(name=name, namespace=bench.namespace)
    labels = {names.CAMPAIGN_UID: "x"}
    metadata = {"annotations": a_binding(bench, **members), "labels": labels, "finalizers": [names.LEAF_FINALIZER]}
    return {**tree, "metadata": {**tree["metadata"], **metadata}}


def a_device_node(bench: Bench, name: str) -> dict[str, Any]:
    """A Node as the manager makes one."""
    marks = {
        names.MANAGED: "true",
        names.DEVICE_NAMESPACE: bench.namespace,
        names.DEVICE_NAME: "locked",
        names.DEVICE_UID: "x",
        names.WORKER_USERNAME: bench.account(APP),
        names.WORKER_PROTOCOL: names.PROTOCOL,
        names.APP_WORKER_USERNAME: bench.account(APP),
        names.APP_WORKER_POD_UID: bench.pods["app worker"],
        names.NETWORK_WORKER_USERNAME: bench.account(NETWORK),
    }
    labels = {
        CHART_LABEL: bench.namespace,
        names.PROVIDER: names.PROVIDER_APPHOSTING,
        names.NODE_TYPE: "virtual-kubelet",
    }
    taint = {"key": names.UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
    return {"metadata": {"name": name, "labels": labels, "annotations": marks}, "spec": {"taints": [taint]}}


def a_lease(bench: Bench, name: str, *, purpose: str, account: str) -> dict[str, Any]:
    """A Lease as the manager makes one."""
    marks = {
        names.LEASE_PURPOSE: purpose,
        names.DEVICE_NAMESPACE: bench.namespace,
        names.WORKER_USERNAME: bench.account(account),
    }
    labels = {names.LEASE_DEVICE: "cvk-device-1", CHART_LABEL: bench.namespace}
    return {"metadata": {"name": name, "labels": labels, "annotations": marks}, "spec": {}}


def a_policy_map(content: str = "{}") -> dict[str, Any]:
    """The fleet policy, as a Sync applies it."""
    labels, marks = {names.COMPONENT: names.COMPONENT_POLICY}, {names.MANAGED_POLICY: "true"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": POLICY, "labels": labels, "annotations": marks},
        "data": {names.POLICY_KEY: content},
    }


def _objects(bench: Bench) -> None:
    """A campaign with a published plan; a device that it has, a free and a session's one; leaves; a Node; Leases."""
    space = bench.namespace
    for name in ("campaign", "going"):
        bench.made("applier", "iosxesoftwarerollouts", a_rollout(name=name, namespace=space))
        finalizers = {"metadata": {"finalizers": [names.ROLLOUT_FINALIZER]}}
        _allowed(partial(bench["manager"].merge, bench.path("iosxesoftwarerollouts", name), finalizers))
    bench.recorded(
        "manager", "iosxesoftwarerollouts", "campaign", frozenPlan=a_frozen_plan(), targets=[a_target_status()]
    )
    for name in ("locked", "free", "busy"):
        tree = a_device(name=name, namespace=space, physicalIdentity=f"foc-{name}")
        labels = {"topology.kubernetes.io/zone": "hall-1", "note": "a"}
        bench.made("applier", "ciscodevices", {**tree, "metadata": {**tree["metadata"], "labels": labels}})
    identity = a_node_identity()
    health = a_health(network=None, acceptedNetwork=None)
    lock = a_lock(campaignNamespace=space, campaignName="campaign")
    bench.recorded(
        "manager", "ciscodevices", "locked", nodeIdentity=identity, topologyLock=lock, healthObservation=health
    )
    bench.recorded("manager", "ciscodevices", "busy", nodeIdentity=identity, maintenanceSession=a_session("Active"))
    for name, pod in (("bound", "network worker"), ("claimed", "network worker"), ("open", "network worker")):
        bench.made("manager", "iosxesoftwareupgrades", a_leaf(bench, name, network_worker_pod_uid=bench.pods[pod]))
        bench.recorded("manager", "iosxesoftwareupgrades", name, managerAdmission=an_admission("Pending"))
    bench.made("manager", "nodes", a_device_node(bench, bench.node))
    bench.made("manager", "leases", a_lease(bench, "mutation", purpose="device-mutation", account=NETWORK))
    bench.made("manager", "leases", a_lease(bench, "heartbeat", purpose="node-heartbeat", account=APP))
    bench.made("person", "leases", {"metadata": {"name": FOREIGN_LEASE}, "spec": {"holderIdentity": "somebody"}})


def _remove_the_rest(admin: PlainApi, namespace: str) -> None:
    """What has no namespace, and the namespace.  The policies are gone by now."""
    for name in (f"host-{namespace}", f"device-{namespace}"):
        admin.delete(f"/api/v1/nodes/{name}")
    for plural in ("clusterrolebindings", "clusterroles"):
        for tree in admin.get(f"{_RBAC}/{plural}").body["items"]:
            if tree["metadata"]["name"].startswith(f"{namespace}-"):
                admin.delete(f"{_RBAC}/{plural}/{tree['metadata']['name']}")
    for group, plural in (("ops.cisco.vk", "iosxesoftwarerollouts"), ("ops.cisco.vk", "iosxesoftwareupgrades")):
        folder = f"/apis/{group}/v1alpha1/namespaces/{namespace}/{plural}"
        for tree in admin.get(folder).body["items"]:
            admin.merge(f"{folder}/{tree['metadata']['name']}", {"metadata": {"finalizers": []}})
    admin.delete(f"/api/v1/namespaces/{namespace}")

"""Requests that somebody makes of rollouts, leaves, devices, Nodes, Leases and accounts, as rows of a table; and the rows that are allowed.

Each row is sent as a dry run, so that rows do not depend on each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gitops_ctl.fleet import names
from tests.support.api import DIGEST, MOMENT
from tests.support.api_devices import a_lock, a_preflight, a_sample
from tests.support.api_leaves import a_manager_control, an_admission
from tests.support.api_rollouts import (
    a_control,
    a_device,
    a_frozen_plan,
    a_recovery,
    a_rollout,
    an_approval,
)
from tests.support.plain_api import Reply
from tests.support.rollout_admission import (
    AUTHOR,
    FOREIGN_LEASE,
    LEDGER,
    NETWORK,
    OPERATOR,
    POLICY,
    Bench,
    a_device_node,
    a_leaf,
    a_lease,
    a_pod,
    a_token_request,
)

ROLLOUTS, LEAVES, DEVICES = "iosxesoftwarerollouts", "iosxesoftwareupgrades", "ciscodevices"
Body = dict[str, Any] | Callable[[Bench], dict[str, Any]] | None
DELETE: Body = None


@dataclass(frozen=True)
class Row:
    """One request: who, what (`kind/name[/subresource]`, `kind` to create), and for a refusal the policy and part of what it says."""

    who: str
    what: str
    body: Body
    policy: str = ""
    says: str = ""

    def send(self, bench: Bench) -> Reply:
        """Send it as a dry run."""
        plural, _, rest = self.what.partition("/")
        name, _, subresource = rest.replace("NODE", bench.node).partition("/")
        path = f"{bench.path(plural, name)}{'/' + subresource if subresource else ''}?dryRun=All"
        client, body = bench[self.who], self.body(bench) if callable(self.body) else self.body
        if body is None:
            return client.delete(path)
        return client.post(path, body) if not name or subresource == "token" else client.merge(path, body)


def spec(**members: Any) -> dict[str, Any]:
    return {"spec": members}


def status(**members: Any) -> dict[str, Any]:
    return {"status": members}


def marks(**members: Any) -> dict[str, Any]:
    """Annotations of the topology; `_` in a name stands for `-`."""
    return {
        "metadata": {"annotations": {f"topology.cisco.vk/{key.replace('_', '-')}": v for key, v in members.items()}}
    }


def labels(**members: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {key.replace("__", "/").replace("_", "."): v for key, v in members.items()}}}


def stop(revision: int, user: str = OPERATOR, **members: Any) -> dict[str, Any]:
    return spec(control=a_control(revision, requestedBy=user, **members))


def report(pod: str) -> Callable[[Bench], dict[str, Any]]:
    def body(bench: Bench) -> dict[str, Any]:
        journal = {"id": "5a0dd3a1-9f0c-4f1e-8f60-0d3ad0f3a6c1", "sequence": 0, "state": "Ready"}
        seen = {"podUID": bench.pods[pod], "observedRevision": DIGEST, "loadedAt": MOMENT}
        return status(workerReport={**seen, "materialValid": True, "journal": journal})

    return body


def sample(pod: str) -> Callable[[Bench], dict[str, Any]]:
    return lambda bench: status(healthObservation={"network": a_sample(workerPodUID=bench.pods[pod])})


def preflight(pod: str) -> Callable[[Bench], dict[str, Any]]:
    return lambda bench: status(preflight=[a_preflight(workerPodUID=bench.pods[pod])])


def asking(*without: str, **members: str) -> Callable[[Bench], dict[str, Any]]:
    """A worker takes the Lease for an upgrade and asks for maintenance."""

    def body(bench: Bench) -> dict[str, Any]:
        asked = {
            "request-version": "rollout-v1",
            "session-token": "0a" * 16,
            "requested-at": MOMENT,
            "operation-namespace": bench.namespace,
            "operation-name": "bound",
            "operation-uid": bench.uids["bound"],
            "control-revision": "0",
            "purpose": "SoftwareMutation",
            **{key.replace("_", "-"): value for key, value in members.items()},
        }
        kept = {f"{names.MAINTENANCE}{key}": value for key, value in asked.items() if key not in without}
        held = {"holderIdentity": f"software-upgrade/{bench.uids['bound']}", "leaseDurationSeconds": 3600}
        return {"metadata": {"annotations": kept}, "spec": held}

    return body


def letting_go() -> dict[str, Any]:
    """A worker leaves the Lease as it was made."""
    return {
        "metadata": {"annotations": {f"{names.MAINTENANCE}{member}": None for member in names.MAINTENANCE_MEMBERS}},
        "spec": dict.fromkeys(("holderIdentity", "acquireTime", "renewTime")),
    }


def new_rollout(**blocks: Any) -> Callable[[Bench], dict[str, Any]]:
    return lambda bench: a_rollout(name="new", namespace=bench.namespace, **blocks)


def new_device(bench: Bench) -> dict[str, Any]:
    return a_device(name="new", namespace=bench.namespace)


def new_leaf(bench: Bench) -> dict[str, Any]:
    return a_leaf(bench, "new")


def half_a_leaf(bench: Bench) -> dict[str, Any]:
    tree = a_leaf(bench, "new")
    del tree["metadata"]["annotations"][names.LEDGER_UID]
    return tree


def new_node(bench: Bench) -> dict[str, Any]:
    return a_device_node(bench, f"new-{bench.namespace}")


def half_a_node(bench: Bench) -> dict[str, Any]:
    tree = new_node(bench)
    del tree["metadata"]["annotations"][names.DEVICE_UID]
    return tree


def unmanaged_node(bench: Bench) -> dict[str, Any]:
    tree = new_node(bench)
    del tree["metadata"]["annotations"]
    return tree


def new_lease(bench: Bench) -> dict[str, Any]:
    return a_lease(bench, "new", purpose="device-mutation", account=NETWORK)


def for_pod(name: str = "") -> Callable[[Bench], dict[str, Any]]:
    return lambda bench: a_token_request(name, bench.uids.get(name, ""))


def a_deployment(account: str) -> dict[str, Any]:
    """A Deployment under an account."""
    mark = {"app": "worker"}
    template = {"metadata": {"labels": mark}, "spec": {**a_pod("x", account)["spec"]}}
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": mark}, "template": template}}


def a_token_secret(account: str) -> dict[str, Any]:
    """A Secret that the server would fill with a token for ever."""
    note = {"kubernetes.io/service-account.name": account}
    return {"metadata": {"name": "token", "annotations": note}, "type": "kubernetes.io/service-account-token"}


BEATS = status(
    conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": MOMENT, "lastTransitionTime": MOMENT}]
)
GUARD = {"key": names.UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
TAINTED = spec(taints=[GUARD, {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}])
SILENT = status(
    conditions=[{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": MOMENT, "lastTransitionTime": MOMENT}]
)
DEVICE_STATUS = status(phase="Ready")
LEAF_STATUS = status(phase="Transferring")

ALLOWED: dict[str, Row] = {
    # What comes from Git.
    "a Sync requests a rollout": Row("applier", ROLLOUTS, new_rollout()),
    "a Sync approves": Row("applier", f"{ROLLOUTS}/campaign", spec(approval=an_approval())),
    "a Sync names the person": Row("applier", f"{ROLLOUTS}/campaign", stop(1, AUTHOR, pause=True)),
    "a Sync takes a recovery in": Row("applier", f"{ROLLOUTS}/campaign", spec(recovery=a_recovery())),
    "a Sync loosens with a larger revision": Row("applier", f"{ROLLOUTS}/campaign", stop(7, AUTHOR)),
    "a Sync removes a rollout": Row("applier", f"{ROLLOUTS}/campaign", DELETE),
    "a Sync makes a device": Row("applier", DEVICES, new_device),
    "a Sync moves a device": Row("applier", f"{DEVICES}/free", labels(topology_kubernetes_io__zone="hall-2")),
    "a person removes a free device": Row("person", f"{DEVICES}/free", DELETE),
    "a Sync changes the policy": Row("applier", f"configmaps/{POLICY}", {"data": {"policy.json": "{ }"}}),
    # The emergency stop.
    "a person with control pauses": Row("operator", f"{ROLLOUTS}/campaign", stop(1, pause=True)),
    "a person with control cancels": Row("operator", f"{ROLLOUTS}/campaign", stop(1, cancel=True, reason="smoke")),
    "a person with control pauses and cancels": Row(
        "operator", f"{ROLLOUTS}/campaign", stop(1, pause=True, cancel=True)
    ),
    "a person with control deletes a rollout": Row("operator", f"{ROLLOUTS}/campaign", DELETE),
    "a person annotates a rollout": Row("person", f"{ROLLOUTS}/campaign", {"metadata": {"annotations": {"note": "a"}}}),
    # Plain changes of devices.
    "a person changes an address": Row("person", f"{DEVICES}/free", spec(address="192.0.2.9")),
    "a person changes a plain label of a locked device": Row("person", f"{DEVICES}/locked", labels(note="b")),
    # The manager.
    "the manager makes a leaf": Row("manager", LEAVES, new_leaf),
    "the manager names another Pod of a leaf": Row("manager", f"{LEAVES}/bound", marks(network_worker_pod_uid="p")),
    "the manager grants": Row("manager", f"{LEAVES}/bound/status", status(managerAdmission=an_admission("Granted"))),
    "the manager publishes a plan": Row("manager", f"{ROLLOUTS}/going/status", status(frozenPlan=a_frozen_plan())),
    "the manager locks a device": Row("manager", f"{DEVICES}/free/status", status(topologyLock=a_lock())),
    "the manager makes a Node": Row("manager", "nodes", new_node),
    "the manager guards a Node": Row("manager", "nodes/NODE", TAINTED),
    "the manager removes a Node": Row("manager", "nodes/NODE", DELETE),
    "the manager makes a Lease": Row("manager", "leases", new_lease),
    "the manager binds the ledger": Row("manager", f"configmaps/{POLICY}", marks(ledger_uid="u")),
    "the manager writes the ledger": Row("manager", f"configmaps/{LEDGER}", {"data": {"ledger.json": "{}"}}),
    "the manager makes a Deployment of a worker": Row("manager", "deployments", a_deployment(NETWORK)),
    "the manager frees a rollout": Row("manager", f"{ROLLOUTS}/going", {"metadata": {"finalizers": []}}),
    # The workers.
    "the network worker writes its leaf": Row("network worker", f"{LEAVES}/bound/status", LEAF_STATUS),
    "the network worker reports": Row("network worker", f"{DEVICES}/locked/status", report("network worker")),
    "the network worker samples": Row("network worker", f"{DEVICES}/locked/status", sample("network worker")),
    "the network worker checks": Row("network worker", f"{DEVICES}/free/status", preflight("network worker")),
    "the network worker asks for maintenance": Row("network worker", "leases/mutation", asking()),
    "the network worker lets go": Row("network worker", "leases/mutation", letting_go()),
    "the node worker beats": Row("app worker", "nodes/NODE/status", BEATS),
    "the node worker says its revision": Row(
        "app worker", "nodes/NODE/status", {**BEATS, **marks(worker_observed_revision=DIGEST)}
    ),
    "the node worker renews its Lease": Row("app worker", "leases/heartbeat", spec(holderIdentity="x")),
    # Kubernetes, and emergencies.
    "the node controller taints": Row("node-controller", "nodes/NODE", TAINTED),
    "the node controller says that a Node is silent": Row("node-controller", "nodes/NODE/status", SILENT),
    "the node controller names the architecture": Row(
        "node-controller", "nodes/NODE", {"metadata": {"labels": {"beta.kubernetes.io/arch": "amd64"}}}
    ),
    "the node controller gives an address range": Row(
        "node-controller", "nodes/NODE", spec(podCIDR="192.0.2.0/24", podCIDRs=["192.0.2.0/24"])
    ),
    "the ttl controller says how long to wait": Row(
        "node-controller", "nodes/NODE", {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": "0"}}}
    ),
    "somebody takes a Lease that is none of a device": Row(
        "person", f"leases/{FOREIGN_LEASE}", spec(holderIdentity="x")
    ),
    "a kubelet gets a token for its Pod": Row("kubelet", f"serviceaccounts/{NETWORK}/token", for_pod("network-worker")),
    "a ReplicaSet makes a worker's Pod": Row(
        "replicaset-controller", "pods", lambda bench: a_pod("other", NETWORK, node=bench.host)
    ),
    "a person makes a Node that nobody manages": Row("person", "nodes", unmanaged_node),
    "a person gets a token of another account": Row("person", "serviceaccounts/default/token", for_pod()),
    "a person runs a Pod under another account": Row("person", "pods", a_pod("plain", "default")),
    "break-glass repairs the ledger": Row("keeper", f"configmaps/{LEDGER}", {"data": {"ledger.json": "{}"}}),
    "break-glass removes the ledger": Row("keeper", f"configmaps/{LEDGER}", DELETE),
    "a restore writes both halves of a leaf": Row(
        "restorer",
        f"{LEAVES}/bound/status",
        {"status": {**LEAF_STATUS["status"], "managerControl": a_manager_control()}},
    ),
}

"""Requests about Nodes and Leases of devices that are refused, as rows of the table (rollouts.md, sections 16 and 18.3)."""

from typing import Any

from gitops_ctl.fleet import names
from tests.support.rollout_admission import AUTHOR, FOREIGN_LEASE, NETWORK, Bench
from tests.support.rollout_rows import (
    BEATS,
    DELETE,
    Row,
    asking,
    half_a_node,
    labels,
    marks,
    new_lease,
    new_node,
    spec,
    status,
)

CAPACITY = status(capacity={"pods": "110"}, allocatable={"pods": "110"})
UNGUARDED: dict[str, Any] = spec(taints=[])
GUARDS_ANEW = spec(taints=[{"key": names.UNINITIALIZED, "value": "false", "effect": "NoSchedule"}])


def half_a_lease(bench: Bench) -> dict[str, Any]:
    tree = new_lease(bench)
    del tree["metadata"]["annotations"][names.LEASE_PURPOSE]
    return tree


def new_plain_lease(bench: Bench) -> dict[str, Any]:
    return {"metadata": {"name": f"plain-{bench.namespace}"}, "spec": {"holderIdentity": "x"}}


NODES_AND_LEASES: dict[str, Row] = {
    # Nodes.
    "a person labels a Node": Row(
        "person", "nodes/NODE", labels(rack="r1"), "device-nodes", "change the CiscoDevice in Git"
    ),
    "a person makes a Node": Row("person", "nodes", new_node, "device-nodes", f"not by {AUTHOR}"),
    "a person removes a Node": Row("person", "nodes/NODE", DELETE, "device-nodes", f"not by {AUTHOR}"),
    "a person writes a Node's status": Row("person", "nodes/NODE/status", BEATS, "device-nodes", f"not by {AUTHOR}"),
    "the network worker's account writes a Node": Row(
        "unbound worker", "nodes/NODE/status", BEATS, "device-nodes", NETWORK
    ),
    "the manager makes half a Node": Row(
        "manager", "nodes", half_a_node, "device-nodes", "lacks topology.cisco.vk/device-uid"
    ),
    "the manager names another Node": Row(
        "manager", "nodes/NODE", marks(node_uid="u"), "device-nodes", "the UID of this Node"
    ),
    "the node controller rebinds a Node": Row(
        "node-controller", "nodes/NODE", marks(device_uid="u"), "device-nodes", "topology.cisco.vk/device-uid"
    ),
    "the node controller says that a Node is ready": Row(
        "node-controller",
        "nodes/NODE/status",
        BEATS,
        "device-nodes",
        "condition Ready of a Node is written by the manager",
    ),
    "the node controller gives a Node room": Row(
        "node-controller", "nodes/NODE/status", CAPACITY, "device-nodes", "capacity of a Node"
    ),
    "the node controller moves a Node": Row(
        "node-controller",
        "nodes/NODE",
        labels(topology_kubernetes_io__zone="hall-2"),
        "device-nodes",
        "label topology.kubernetes.io/zone",
    ),
    "the node controller takes the guard away": Row(
        "node-controller", "nodes/NODE", UNGUARDED, "device-nodes", "a taint of a Node"
    ),
    "the node controller changes the guard": Row(
        "node-controller", "nodes/NODE", GUARDS_ANEW, "device-nodes", "a taint of a Node"
    ),
    "the node controller cordons a Node": Row(
        "node-controller", "nodes/NODE", spec(unschedulable=True), "device-nodes", "the cordon of a Node"
    ),
    "the node controller says where a Node comes from": Row(
        "node-controller", "nodes/NODE", spec(providerID="x://y"), "device-nodes", "spec of a Node"
    ),
    "the node controller holds a Node back": Row(
        "node-controller",
        "nodes/NODE",
        {"metadata": {"finalizers": ["example.net/a"]}},
        "device-nodes",
        "finalizers or owners",
    ),
    "the node controller makes a Node": Row(
        "node-controller", "nodes", new_node, "device-nodes", "made and removed by"
    ),
    "the node controller removes a Node": Row(
        "node-controller", "nodes/NODE", DELETE, "device-nodes", "made and removed by"
    ),
    "the node worker labels its Node": Row(
        "app worker", "nodes/NODE/status", {**BEATS, **labels(rack="r1")}, "device-nodes", "not labels"
    ),
    "the node worker rebinds its Node": Row(
        "app worker",
        "nodes/NODE/status",
        {**BEATS, **marks(device_uid="u")},
        "device-nodes",
        "topology.cisco.vk/device-uid",
    ),
    # Leases.
    "a person takes a Lease": Row(
        "person", "leases/mutation", spec(holderIdentity="device-write/x"), "device-leases", AUTHOR
    ),
    "a person deletes a Lease": Row("person", "leases/mutation", DELETE, "device-leases", f"not by {AUTHOR}"),
    "a person makes a Lease": Row("person", "leases", new_lease, "device-leases", "made by the manager"),
    "the account without a Pod takes a Lease": Row(
        "unbound worker", "leases/mutation", asking(), "device-leases", "bound to no Pod"
    ),
    "a worker changes what a Lease is for": Row(
        "network worker",
        "leases/mutation",
        marks(lease_purpose="config-family"),
        "device-leases",
        "topology.cisco.vk/lease-purpose",
    ),
    "a worker relabels a Lease": Row(
        "network worker", "leases/mutation", labels(rack="r1"), "device-leases", "changes no label"
    ),
    "a worker asks by halves": Row(
        "network worker",
        "leases/mutation",
        asking("session-token"),
        "device-leases",
        "lacks topology.cisco.vk/maintenance-session-token",
    ),
    "a worker asks for another operation": Row(
        "network worker", "leases/mutation", asking(operation_uid="u"), "device-leases", "for itself"
    ),
    "a worker holds a Lease for nothing": Row(
        "network worker", "leases/mutation", spec(holderIdentity="me"), "device-leases", "is none of software-upgrade/"
    ),
    "a worker asks on the heartbeat": Row(
        "app worker", "leases/heartbeat", asking(), "device-leases", "no other annotation"
    ),
    "the network worker beats for the node worker": Row(
        "network worker", "leases/heartbeat", spec(holderIdentity="x"), "device-leases", "the worker that they name"
    ),
    "the manager makes a Lease for nothing": Row(
        "manager", "leases", half_a_lease, "device-leases", "says what it is for"
    ),
    "a worker takes the Lease of somebody else": Row(
        "network worker",
        f"leases/{FOREIGN_LEASE}",
        spec(holderIdentity="x"),
        "device-foreign-leases",
        "is none of a CiscoDevice",
    ),
    "the node worker takes the Lease of somebody else": Row(
        "app worker",
        f"leases/{FOREIGN_LEASE}",
        spec(holderIdentity="x"),
        "device-foreign-leases",
        "is none of a CiscoDevice",
    ),
    "a worker makes the Lease of somebody else its own": Row(
        "network worker",
        f"leases/{FOREIGN_LEASE}",
        {**labels(cisco_vk__device="cvk-device-1"), **spec(holderIdentity="x")},
        "device-",
        "CiscoDevice",
    ),
    "a worker makes a Lease": Row(
        "unbound worker", "leases", new_plain_lease, "device-foreign-leases", "no other Lease"
    ),
    "a worker removes a Lease": Row(
        "unbound worker", f"leases/{FOREIGN_LEASE}", DELETE, "device-foreign-leases", "no other Lease"
    ),
}

"""The Leases of a device, made before anybody needs one: workers may only update them (rollouts.md, 6.3, 13.6 and 17.1)."""

from collections.abc import Iterable
from dataclasses import dataclass

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key, mutation_lease_name
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.topology.caches import LEASE
from gitops_ctl.topology.ports import Ports
from gitops_ctl.topology.workers_plan import NODE_LEASES, username


@dataclass(frozen=True, slots=True)
class LeaseWanted:
    """One Lease: where it is, what it is for, and whose account renews it."""

    namespace: str
    name: str
    purpose: str
    username: str


def wanted_leases(device: JsonObject, node: JsonObject, policy: FleetPolicy) -> Iterable[LeaseWanted]:
    """The Leases of a device with a Node."""
    namespace, name = text_at(device, "metadata", "namespace"), text_at(device, "metadata", "name")
    yield LeaseWanted(
        policy.config_lease_namespace or namespace,
        mutation_lease_name(namespace, name),
        names.LEASE_MUTATION,
        username(namespace, policy.network_management_account),
    )
    yield LeaseWanted(
        NODE_LEASES,
        text_at(node, "metadata", "name"),
        names.LEASE_NODE_HEARTBEAT,
        username(namespace, policy.app_hosting_account),
    )


def lease_tree(wanted: LeaseWanted, device: JsonObject, node: JsonObject) -> JsonObject:
    """The Lease as it is made: bound to device, Node and worker, and held by nobody."""
    namespace, name = text_at(device, "metadata", "namespace"), text_at(device, "metadata", "name")
    labels = {names.LEASE_DEVICE: device_key(namespace, name)}
    if wanted.purpose == names.LEASE_MUTATION:
        labels[names.LEASE_FAMILY] = names.MUTATION_LEASE
    return {
        "apiVersion": LEASE.gvk.api_version,
        "kind": LEASE.gvk.kind,
        "metadata": {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "labels": labels,
            "annotations": {
                names.LEASE_PURPOSE: wanted.purpose,
                names.DEVICE_NAMESPACE: namespace,
                names.DEVICE_NAME: name,
                names.DEVICE_UID: text_at(device, "metadata", "uid"),
                names.NODE_NAME: text_at(node, "metadata", "name"),
                names.NODE_UID: text_at(node, "metadata", "uid"),
                names.WORKER_USERNAME: wanted.username,
            },
        },
        "spec": {},
    }


async def ensure(ports: Ports, policy: FleetPolicy, device: JsonObject, node: JsonObject) -> None:
    """Make what is missing; a Lease that exists is used under whatever name it has (decision 6)."""
    key = NamespacedName.of(device)
    for wanted in wanted_leases(device, node, policy):
        if ports.caches.leases_of(key, purpose=wanted.purpose):
            continue
        tree = lease_tree(wanted, device, node)
        ports.require()
        path = LEASE.path(wanted.namespace, wanted.name)
        if await ports.client.find(path) is None:
            await ports.client.create(LEASE.path(wanted.namespace), tree)
        else:
            # Made by a kubelet's code path, or by somebody without our labels: its spec stays, the binding is added.
            await ports.client.patch_merge(path, {"metadata": tree["metadata"]})


async def remove(ports: Ports, key: NamespacedName) -> None:
    """Delete the Leases of a device that goes."""
    for purpose in (names.LEASE_MUTATION, names.LEASE_NODE_HEARTBEAT):
        for seen in ports.caches.leases_of(key, purpose=purpose):
            lease = seen.tree()
            found = NamespacedName.of(lease)
            await ports.client.delete(LEASE.path(found.namespace, found.name), uid=text_at(lease, "metadata", "uid"))

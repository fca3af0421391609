"""The Pods behind a leaf are named anew when they change (rollouts.md, sections 6.2 and 17.2).

Only the members that name a Pod or its loaded inputs are renewed, and only once the manager has proof of the new ones; what a leaf is for never
changes.  A leaf whose admission is Settled keeps what it had.
"""

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.rollout.leafplan import leaf_path, worker_binding
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.lock import device_path
from gitops_ctl.rollout.ports import Ports, node_path


def stale_members(leaf: Leaf, device: Device, node: NodeSeen) -> dict[str, str]:
    """The members of the binding that name another Pod or other inputs than are proven now; empty when there is nothing to do."""
    if leaf.admission is not None and leaf.admission.state == "Settled":
        return {}
    if leaf.binding.device_uid != device.uid or leaf.binding.node_uid != node.uid:
        return {}
    revision, network = device.worker_revision, device.network_worker_revision
    proven = {
        names.APP_WORKER_POD_UID: revision.pod_uid if revision is not None and revision.is_proven else "",
        names.NETWORK_WORKER_POD_UID: network.pod_uid if network is not None and network.is_proven else "",
    }
    found = worker_binding(device, node)
    unproven = {key for key, uid in proven.items() if key in found and found[key] != uid}
    return {
        key: value
        for key, value in found.items()
        if leaf.annotations.get(key) != value
        and not any(key.startswith(one.removesuffix("pod-uid")) for one in unproven)
    }


async def renew_binding(ports: Ports, leaf: Leaf) -> bool:
    """Renew the Pod members of one leaf.

    Returns:
        Whether the leaf was written.

    Raises:
        TransientError, Conflict: it is tried again in the next pass.
    """
    binding, path = leaf.binding, leaf_path(leaf.namespace, leaf.name)

    async def one_round() -> bool:
        tree = await ports.client.find(path)
        device = await ports.client.find(device_path(binding.device_namespace, binding.device_name))
        node = await ports.client.find(node_path(binding.node_name))
        if tree is None or device is None or node is None:
            return False
        stale = stale_members(leaf_of(tree), device_of(device), node_of(node))
        if not stale:
            return False
        change: JsonObject = {"metadata": {"annotations": stale}}
        await ports.client.patch_merge(path, swap(tree, change), manager=FIELD_MANAGER)
        return True

    return await swapped(ports.client, one_round)

"""Reads and writes of one leaf, device and Node, uncached (rollouts.md, sections 13.1 and 13.2).

Every write counts only for the object as it was read.  What a device answered is a fact that no other writer can make untrue: it is
recorded on whatever version of the leaf is there.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.errors import Conflict
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.kube.transport import KubeClient

_LEAVES: Final = f"/apis/{names.OPERATIONS_GROUP}/v1alpha1/namespaces"
_DEVICES: Final = f"/apis/{names.GROUP}/v1alpha1/namespaces"
_ROUNDS: Final = 4

Facts: TypeAlias = Callable[[Leaf], JsonObject]
"""Makes the members from the leaf as it stands."""


def leaf_path(namespace: str, name: str = "") -> str:
    """Where the API server has the leaf, or the leaves of the namespace."""
    folder = f"{_LEAVES}/{namespace}/iosxesoftwareupgrades"
    return f"{folder}/{name}" if name else folder


class LeafDesk:
    """Reads and writes with one client."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def leaf(self, namespace: str, name: str) -> Leaf | None:
        tree = await self._client.find(leaf_path(namespace, name))
        return None if tree is None else leaf_of(tree)

    async def device(self, leaf: Leaf) -> Device | None:
        """The device that the leaf names."""
        tree = await self._client.find(f"{_DEVICES}/{leaf.namespace}/ciscodevices/{leaf.device_name}")
        return None if tree is None else device_of(tree)

    async def node(self, leaf: Leaf) -> NodeSeen | None:
        """The Node that the leaf is bound to."""
        if not leaf.binding.node_name:
            return None
        tree = await self._client.find(f"/api/v1/nodes/{leaf.binding.node_name}")
        return None if tree is None else node_of(tree)

    async def siblings(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """The leaves of the campaign, this one too."""
        selector = f"{names.CAMPAIGN_UID}={leaf.binding.campaign_uid}"
        page = await self._client.list_all(leaf_path(leaf.namespace), label_selector=selector)
        return tuple(map(leaf_of, page.items))

    async def leaves(self, namespace: str) -> tuple[Leaf, ...]:
        """Every leaf of the namespace."""
        return tuple(map(leaf_of, (await self._client.list_all(leaf_path(namespace))).items))

    async def pods(self, node_name: str) -> tuple[JsonObject, ...]:
        """The Pods of a Node, of all namespaces."""
        found: list[JsonObject] = []
        async for page in self._client.list_pages("/api/v1/pods", field_selector=f"spec.nodeName={node_name}"):
            found += page.items
        return tuple(found)

    async def write(self, leaf: Leaf, members: JsonObject) -> Leaf:
        """Change members of the status of the leaf as it was read; the leaf as it is then.

        Raises:
            Conflict: somebody wrote in between; nothing changed.
            TransientError: it may have been written.
        """
        if not members:
            return leaf
        body: JsonObject = {
            "metadata": {"uid": leaf.uid, "resourceVersion": leaf.resource_version},
            "status": members,
        }
        path = leaf_path(leaf.namespace, leaf.name)
        tree = await self._client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER, subresource="status")
        return leaf_of(tree)

    async def tell(self, leaf: Leaf, members: JsonObject) -> None:
        """Write members that only this worker writes and that no other depends on, on whatever version is there; errors as of `write`."""
        body: JsonObject = {"metadata": {"uid": leaf.uid}, "status": members}
        path = leaf_path(leaf.namespace, leaf.name)
        await self._client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER, subresource="status")

    async def record(self, leaf: Leaf, facts: Facts) -> Leaf:
        """Write what is true whatever others wrote meanwhile.

        Raises:
            Conflict: others wrote in each of the rounds, or the leaf is another one.
            TransientError: it may have been written.
        """
        for _ in range(_ROUNDS - 1):
            try:
                return await self.write(leaf, facts(leaf))
            except Conflict:
                fresh = await self.leaf(leaf.namespace, leaf.name)
                if fresh is None or fresh.uid != leaf.uid:
                    raise
                leaf = fresh
        return await self.write(leaf, facts(leaf))

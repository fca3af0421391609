"""The manifest controller of a control plane: creates what is neither in the inventory nor in the cluster, and never deletes.

It runs when its inputs change and at no other time: an object that somebody deleted, and that the inventory lists, stays away.
"""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tools.peers.talos.cluster import Cluster, ClusterError
from tools.peers.talos.machine import Machine
from tools.peers.talos.objects import INVENTORY, MANAGER, inventory_key, with_annotation

_RETRY_S = 1.0


async def control(machine: Machine, kubeconfig: Path) -> None:
    """Run for ever."""
    seen: object = None
    while True:
        await machine.wait_until(lambda seen=seen: _inputs(machine) not in (seen, None))
        inputs, manifests = _inputs(machine), machine.manifests()
        try:
            async with Cluster(kubeconfig) as cluster:
                await apply_manifests(cluster, [item for items in manifests.values() for item in items])
        except (ClusterError, aiohttp.ClientError, OSError, TimeoutError):
            await asyncio.sleep(_RETRY_S)
            continue
        seen = inputs
        machine.manifests_applied = tuple(manifests)
        machine.changed()


def _inputs(machine: Machine) -> object:
    """What wakes the controller: the rendered manifests and etcd; None while etcd is not healthy."""
    if machine.machine_type != "controlplane" or not machine.services()["etcd"].healthy:
        return None
    return repr(machine.manifests())


async def apply_manifests(cluster: Cluster, objects: list[dict[str, Any]]) -> None:
    """One run."""
    async with cluster.mutex():
        entries = await cluster.inventory(INVENTORY)
        try:
            for tree in objects:
                key = inventory_key(tree)
                if key in entries:
                    continue
                if await cluster.get(tree) is None:
                    await cluster.apply(with_annotation(tree), manager=MANAGER)
                entries[key] = ""
        finally:
            await cluster.write_inventory(INVENTORY, entries)

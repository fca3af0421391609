"""`python -m tools.peers.talos.sync`: the manifest sync with which an upgrade of Kubernetes ends.

It applies what a control plane renders, and deletes what the inventory lists and nobody renders any more.
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from tools.peers.talos.cluster import Cluster
from tools.peers.talos.config import Config
from tools.peers.talos.objects import ANNOTATION, INVENTORY, MANAGER, inventory_key, kube_proxy, with_annotation
from tools.peers.talos.state import StateFile

_VERSIONS = {"apps": "apps/v1", "": "v1", "rbac.authorization.k8s.io": "rbac.authorization.k8s.io/v1"}


class ForeignError(Exception):
    """An object belongs to somebody else."""


async def sync(cluster: Cluster, objects: list[dict[str, Any]], *, prune: bool, policy: str) -> None:
    """Apply all, then prune when every apply succeeded."""
    async with cluster.mutex():
        entries = await cluster.inventory(INVENTORY)
        for tree in objects:
            live = await cluster.get(tree)
            _require_ours(tree, live, policy=policy)
            await cluster.apply(with_annotation(tree), manager=MANAGER, force=True)
            entries[inventory_key(tree)] = ""
        if prune:
            rendered = {inventory_key(tree) for tree in objects}
            for key in sorted(set(entries) - rendered):
                await cluster.delete(_object_of(key))
                del entries[key]
        await cluster.write_inventory(INVENTORY, entries)


def _require_ours(tree: dict[str, Any], live: dict[str, Any] | None, *, policy: str) -> None:
    if live is None:
        return
    owner = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    fine = owner == INVENTORY or (owner is None and policy == "AdoptIfNoInventory") or policy == "AdoptAll"
    if not fine:
        raise ForeignError(f"{inventory_key(tree)}: inventory policy {policy} prevents the apply")


def _object_of(key: str) -> dict[str, Any]:
    namespace, _, rest = key.partition("_")
    name, group, kind = rest.rsplit("_", 2)
    metadata = {"name": name.replace("__", ":") if group == "rbac.authorization.k8s.io" else name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": _VERSIONS[group], "kind": kind, "metadata": metadata}


async def run(arguments: argparse.Namespace) -> None:
    """Sync what the machine of the state file would render."""
    proxy = Config(StateFile.load(arguments.state).persistent).proxy
    async with Cluster(arguments.kubeconfig) as cluster:
        objects = kube_proxy(proxy) if proxy.enabled else []
        await sync(cluster, objects, prune=not arguments.no_prune, policy=arguments.inventory_policy)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers.talos.sync")
    parser.add_argument("--state", type=Path, required=True, help="state file of a control plane")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--no-prune", action="store_true")
    policies = ("AdoptIfNoInventory", "MustMatch", "AdoptAll")
    parser.add_argument("--inventory-policy", choices=policies, default="AdoptIfNoInventory")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

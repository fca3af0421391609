"""The profile controller: the one Node label that gitops-ctl writes (topology-scheduling.md, 6.1, D16).

The Topology comes first, the label after it, in a server-side apply that carries this label only.
"""

from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import ObjectReplaced
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.resources import NODE
from gitops_ctl.scheduling.seen import SeenNode
from gitops_ctl.scheduling.topologycontroller import TopologyController

DRIFT_S: Final = 60.0
"""Seconds after which a Node whose Topology has other levels is looked at again."""
UNUSABLE: Final = "HardwareLabelsUnusable"


class ProfileController:
    """One pass is one Node."""

    def __init__(self, ports: Ports, topologies: TopologyController) -> None:
        self._ports = ports
        self._topologies = topologies
        self._warned: dict[NamespacedName, tuple[str, ...]] = {}

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Give the Node the profile that it has to have now; one in deletion is left alone."""
        ports = self._ports
        entry = ports.caches.nodes.cache.entry(key)
        if entry is None:
            self._warned.pop(key, None)
            return None
        if entry.value.is_deleted or not ports.caches.may_judge("profiles"):
            return None
        profile = ports.profiles.of(key, entry.value)
        if await self._topologies.ensure(profile.levels):
            return DRIFT_S
        if entry.value.labels.get(PROFILE) != profile.name:
            await self._label(key.name, entry.uid, profile.name)
        else:
            self._warn(key, entry.uid, entry.value)
        return None

    async def _label(self, node: str, uid: str, profile: str) -> None:
        # With its uid: an apply to a name that is free would make a Node.
        tree: JsonObject = {
            **_identity(node, uid),
            "metadata": {"name": node, "uid": uid, "labels": {PROFILE: profile}},
        }
        self._ports.require()
        try:
            await self._ports.client.apply(NODE.path("", node), tree, manager=FIELD_MANAGER, force=True)
        except ObjectReplaced:
            return  # the Node is gone, or another one; an event tells of it

    def _warn(self, key: NamespacedName, uid: str, seen: SeenNode) -> None:
        """One Warning when the hardware labels of a managed Node cannot be used, until they change (7.2: D19 to D21)."""
        warnings = fed_by(seen.labels, options=self._ports.options).warnings
        if not warnings:
            self._warned.pop(key, None)
        elif self._warned.get(key) != warnings:
            self._warned[key] = warnings
            self._ports.emit(_identity(key.name, uid), "Warning", UNUSABLE, listed(warnings))


def _identity(node: str, uid: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": uid}}

"""The profile controller: the one Node label that gitops-ctl writes (topology-scheduling.md, 6.1, D16).

The Topology comes first, the label after it, in a server-side apply that carries this label only.  A Node that has no profile yet gets
it in one write: while its first source is being looked at, or its labels are on their way, the host name alone would be a guess.
"""

from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.answers import ObjectReplaced
from gitops_ctl.scheduling.caches import NODE_INDEX
from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.ports import Ports
from gitops_ctl.scheduling.queue import FIELD_MANAGER
from gitops_ctl.scheduling.resources import NODE
from gitops_ctl.scheduling.seen import SeenNode
from gitops_ctl.scheduling.topologycontroller import TopologyController

DRIFT_S: Final = 60.0
"""Seconds after which a Node whose Topology has other levels is looked at again."""
PATIENCE_S: Final = 30.0
"""Seconds without any progress of sources after which a Node without a profile gets the one that it has to have now."""
MOST_PATIENCE_S: Final = 600.0
ANOTHER_LOOK_S: Final = 1.0
UNUSABLE: Final = "HardwareLabelsUnusable"


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A Node without a profile; `over_s` is when it gets one, None while something is awaited.  All on the boot clock, which never jumps."""

    since_s: float
    over_s: float | None = None


class ProfileController:
    """One pass is one Node."""

    def __init__(self, ports: Ports, topologies: TopologyController) -> None:
        self._ports = ports
        self._topologies = topologies
        self._warned: dict[NamespacedName, tuple[str, ...]] = {}
        self._waiting: dict[NamespacedName, _Waiting] = {}

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Give the Node the profile that it has to have now; one in deletion is left alone."""
        ports = self._ports
        entry = ports.caches.nodes.cache.entry(key)
        if entry is None or PROFILE in entry.value.labels:
            self._waiting.pop(key, None)
        if entry is None:
            self._warned.pop(key, None)
            return None
        if entry.value.is_deleted or not ports.caches.may_judge("profiles"):
            return None
        if (patience_s := self._patience_s(key, entry.value)) > 0:
            return patience_s
        profile = ports.profiles.of(key, entry.value)
        if await self._topologies.ensure(profile.levels):
            return DRIFT_S
        if entry.value.labels.get(PROFILE) != profile.name:
            await self._label(key.name, entry.uid, profile.name)
        else:
            self._warn(key, entry.uid, entry.value)
        return None

    def _patience_s(self, key: NamespacedName, seen: SeenNode) -> float:
        """How long a Node without a profile may still wait for something that is on its way; zero when nothing is."""
        if PROFILE in seen.labels:
            return 0.0
        now_s, waiting = self._ports.clock.boot_s(), self._waiting.get(key)
        if self._is_awaited(key, seen):
            since_s = waiting.since_s if waiting is not None else now_s
            self._waiting[key] = _Waiting(since_s)
            idle_s = now_s - max(since_s, self._ports.profiles.progress_s)
            return min(PATIENCE_S - idle_s, MOST_PATIENCE_S - (now_s - since_s))
        if waiting is None:
            return 0.0
        if waiting.over_s is None:
            # The status of a source may be seen before the NodeFeature that was written before it.
            waiting = self._waiting[key] = replace(waiting, over_s=now_s + ANOTHER_LOOK_S)
        assert waiting.over_s is not None
        return waiting.over_s - now_s

    def _is_awaited(self, key: NamespacedName, seen: SeenNode) -> bool:
        """Whether a source that chooses the Node was not looked at yet, or a Ready one has published labels that the Node lacks."""
        chosen = [source for source in self._ports.profiles.sources if source.chooses(seen.labels)]
        if any(source.ready == ("", "") for source in chosen):
            return True
        ready = {source.uid for source in chosen if source.writes and source.ready[0] == "True"}
        features = self._ports.caches.features.cache
        published = (features.get(one) for one in features.by_index(NODE_INDEX, key.name))
        return any(
            one is not None and one.source in ready and not one.labels.items() <= seen.labels.items()
            for one in published
        )

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

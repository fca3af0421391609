"""The profile of every Node, computed once for each change of the Node or of a source (topology-scheduling.md, 6)."""

import asyncio
import math
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.cache import Cache
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import profile_name, profile_of
from gitops_ctl.scheduling.seen import SeenNode
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import levels_of, topology_name

_YIELD_EVERY: Final = 200


@dataclass(frozen=True, slots=True)
class Due:
    """The profile that a Node has to have: its name, computed once, and the levels behind it.  All Nodes of a profile share one."""

    name: str
    levels: tuple[str, ...]


class Profiles:
    """A memory in front of `profile_of`; also of the levels behind each profile that was seen.

    Attributes:
        progress_s: when a write of a NodeFeature was seen last, on the boot clock.
    """

    def __init__(self, nodes: Cache[SeenNode], *, options: Options, clock: Clock) -> None:
        self._nodes = nodes
        self._clock = clock
        self._options = options
        self._sources: dict[str, TopologySource] = {}
        self._round = 0
        self._known: dict[NamespacedName, tuple[SeenNode, int, Due]] = {}
        self._due: dict[tuple[str, ...], Due] = {}
        self._levels: dict[str, tuple[str, ...]] = {}
        self.progress_s = -math.inf

    @property
    def sources(self) -> tuple[TopologySource, ...]:
        """All sources."""
        return tuple(self._sources.values())

    def source_changed(self, name: str, tree: JsonObject | None) -> bool:
        """Take a source as it is now, None when it is gone; whether any profile may be another one now.

        When its last revision is over, its pass says so in the status: time alone changes no profile.
        """
        before, now = self._sources.get(name), None if tree is None else TopologySource.of(tree).at(self._clock.wall())
        if before == now:
            return False
        if now is None:
            del self._sources[name]
        else:
            self._sources[name] = now
        self._round += 1
        return True

    def feature_written(self) -> None:
        """A NodeFeature was seen to be written: what Nodes without a profile wait for moves on."""
        self.progress_s = self._clock.boot_s()

    def forget(self, key: NamespacedName) -> None:
        """A Node is gone."""
        self._known.pop(key, None)

    def of(self, key: NamespacedName, seen: SeenNode) -> Due:
        """The profile that a Node has to have now."""
        known = self._known.get(key)
        if known is not None and known[1] == self._round and (known[0] is seen or known[0].labels == seen.labels):
            return known[2]
        levels = profile_of(seen.labels, self._sources.values(), options=self._options).levels
        due = self._due.get(levels) or self._new(levels)
        self._known[key] = (seen, self._round, due)
        return due

    def _new(self, levels: tuple[str, ...]) -> Due:
        due = self._due[levels] = Due(profile_name(levels), levels)
        self._levels[topology_name(due.name)] = levels
        return due

    async def compute(self) -> None:
        """Compute what is not known, in pieces, so that other tasks run in between."""
        for count, (key, seen) in enumerate(list(self._nodes.items()), start=1):
            self.of(key, seen)
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    def learn(self, topology: JsonObject) -> None:
        """Remember the levels of a Topology that is called after them, for the time when somebody deletes it."""
        levels = levels_of(topology)
        self._levels.setdefault(topology_name(profile_name(levels)), levels)

    def levels_of(self, topology: str) -> tuple[str, ...]:
        """The levels behind the name of a Topology; empty when they were never seen."""
        return self._levels.get(topology, ())

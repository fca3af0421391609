"""What every pass of the room shares: the manager's client, the clusters, the Syncs that exist, and how to wake them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.api.gitops import Sync, parse_sync
from gitops_ctl.api.names import GROUP, VERSION
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.conditions import ConditionGuard
from gitops_ctl.kube.cache import Cache
from gitops_ctl.kube.events import Emit
from gitops_ctl.kube.expectations import has_reached
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.statuswriter import status_patch
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.clusters import Clusters
from gitops_ctl.sync.listing import Listing
from gitops_ctl.sync.model import OwnerId
from gitops_ctl.sync.unit import Memory

SYNC: Final = Resource(GroupVersionKind(GROUP, VERSION, "Sync"), "syncs", namespaced=True)
INVENTORY: Final = Resource(GroupVersionKind(GROUP, VERSION, "Inventory"), "inventories", namespaced=True)


class Syncs:
    """The Syncs of a cache, parsed once per version."""

    def __init__(self, cache: Cache[JsonObject]) -> None:
        self._cache = cache
        self._parsed: dict[NamespacedName, tuple[str, Sync]] = {}

    def tree(self, key: NamespacedName) -> JsonObject | None:
        return self._cache.get(key)

    def get(self, key: NamespacedName) -> Sync | None:
        """The Sync of that name.

        Raises:
            Refused: it has wrong fields.
        """
        entry = self._cache.entry(key)
        if entry is None:
            self._parsed.pop(key, None)
            return None
        known = self._parsed.get(key)
        if known is None or known[0] != entry.version:
            known = self._parsed[key] = (entry.version, parse_sync(entry.value))
        return known[1]

    def all(self) -> Iterable[Sync]:
        """Every Sync that can be read."""
        for key in list(self._cache):
            try:
                found = self.get(key)
            except GitopsError:
                continue
            if found is not None:
                yield found

    def of_source(self, source: NamespacedName) -> list[NamespacedName]:
        """Keys of the Syncs that name a source."""
        return [
            NamespacedName(found.metadata.namespace, found.metadata.name)
            for found in self.all()
            if (found.metadata.namespace, found.spec.source_ref.name) == (source.namespace, source.name)
        ]


@dataclass(frozen=True, slots=True)
class WrittenStatus:
    """The status as this process left it, at a version; until then it counts for more than a cache that may be behind."""

    uid: str
    version: str
    status: JsonObject
    until_s: float


@dataclass
class World:
    """Ports and shared state; one per manager.

    Attributes:
        require: raises LeadershipLost when the manager may not write any more.
        wake: run a Sync again soon.
        stopping: True from the moment on in which the process is to end.
        conditions: evaluates the expressions of health checks, outside of this process.
        statuses: the status of each Sync as this process wrote it last.
        is_stored: whether a watch shows an Inventory of this name; False says nothing.
    """

    client: KubeClient
    clock: Clock
    cluster_uid: str
    syncs: Syncs
    listing: Listing
    clusters: Clusters
    emit: Emit
    wake: Callable[[NamespacedName], None]
    require: Callable[[], None] = lambda: None
    stopping: Callable[[], bool] = lambda: False
    is_stored: Callable[[NamespacedName], bool] = lambda _name: False
    conditions: ConditionGuard = field(default_factory=ConditionGuard)
    units: dict[NamespacedName, Memory] = field(default_factory=dict)
    statuses: dict[NamespacedName, WrittenStatus] = field(default_factory=dict)

    def unstored(self, name: NamespacedName) -> None:
        """An Inventory is gone: the Sync whose record it was part of writes it again."""
        sync, _, number = name.name.rpartition("-")
        key = NamespacedName(name.namespace, sync)
        memory = self.units.get(key)
        shards = memory.record.shards if memory is not None and memory.record is not None else ()
        if memory is not None and number in {str(shard.number) for shard in shards}:
            memory.read_at_s = -math.inf
            memory.done = ()
            self.wake(key)

    def shown(self, key: NamespacedName, tree: JsonObject) -> None:
        """The cache shows a Sync: a status that we did not leave so is written again.

        Only a process that lost the Lease in the middle of its write leaves one (fault H13).
        """
        written, memory = self.statuses.get(key), self.units.get(key)
        version = text_at(tree, "metadata", "resourceVersion")
        if written is None or memory is None or written.uid != text_at(tree, "metadata", "uid"):
            return
        if version == written.version or not has_reached(version, wanted=written.version):
            return
        if status_patch(object_at(tree, "status"), written.status) is not None:
            del self.statuses[key]
            memory.done = ()
            self.wake(key)

    def heard(self, owner: OwnerId, item: ObjectId) -> None:
        """An informer reports a change of an object: its unit looks at it."""
        if owner.cluster != self.cluster_uid:
            return
        memory = self.units.get(owner.key)
        if memory is not None:
            memory.dirty.add(item)
            self.wake(owner.key)

    def lost(self, unit: NamespacedName) -> None:
        """A kind can be seen no longer: the unit reads what it has of it by name, now and not at its interval."""
        memory = self.units.get(unit)
        if memory is not None:
            memory.read_at_s = -math.inf
            self.wake(unit)

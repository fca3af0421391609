"""The running sync room: informers, queue and workers put together; what the manager starts and stops.

Woken by a Sync that changes, by a source that accepts a revision, and by objects that informers see change.  A newer revision
also ends a pass that is at work on an older one (H01, H02).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from gitops_ctl.api.watched import asked_of, without_managers
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, text_at
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.events import Emit, silent
from gitops_ctl.kube.informer import Informer, Timing, running
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.sync.clusters import Clusters
from gitops_ctl.sync.controller import SyncController
from gitops_ctl.sync.inventory import recorded_of
from gitops_ctl.sync.listing import Listing, Load
from gitops_ctl.sync.model import OwnerId
from gitops_ctl.sync.world import INVENTORY, SYNC, Syncs, World
from gitops_ctl.trust.provenance import AcceptedRevisions


@dataclass(frozen=True, slots=True)
class Options:
    """What the manager may choose.

    Attributes:
        workers: passes at a time.
        namespace: only Syncs of this namespace; empty for all.
        require: raises LeadershipLost when the manager may not write any more.
        draw: a random number in [0, 1), for jitter.
    """

    workers: int = 4
    namespace: str = ""
    emit: Emit = silent
    require: Callable[[], None] = lambda: None
    timing: Timing | None = None
    pace: Pace = field(default_factory=lambda: Pace(blocked_s=60.0))
    draw: Callable[[], float] = random.SystemRandom().random


class SyncRoom:
    """An async context manager; `run` works until `stop`."""

    def __init__(
        self, client: KubeClient, *, revisions: AcceptedRevisions, load: Load, options: Options | None = None
    ) -> None:
        self._client = client
        self._options = options or Options()
        self._revisions = revisions
        self._load = load
        self._informer = Informer(
            client, SYNC, trim=without_managers, namespace=self._options.namespace, timing=self._options.timing
        )
        self._records = Informer(
            client,
            INVENTORY,
            trim=lambda _tree: True,
            namespace=self._options.namespace,
            timing=self._options.timing,
            metadata_only=True,
        )
        self.syncs = Syncs(self._informer.cache)
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=self._options.workers, tenant_of=lambda key: key.namespace, draw=self._options.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        self.clusters = Clusters(client, on_change=self._heard, on_lost=self._lost, timing=self._options.timing)
        self._world: World | None = None

    async def __aenter__(self) -> Self:
        """Reads the UID of kube-system, which is the name of this cluster in owner ids.

        Raises:
            GitopsError: it cannot be read.
        """
        await self.clusters.__aenter__()
        system = await self._client.get("/api/v1/namespaces/kube-system")
        cluster_uid = text_at(system, "metadata", "uid")
        listing = Listing(
            revisions=self._revisions,
            load=self._load,
            cluster_uid=cluster_uid,
            syncs=self.syncs.all,
            recorded=lambda sync: recorded_of(self._client, sync, owner=listing.owner_of(sync)),
        )
        self._world = World(
            client=self._client,
            clock=self._client.clock,
            cluster_uid=cluster_uid,
            syncs=self.syncs,
            listing=listing,
            clusters=self.clusters,
            emit=self._options.emit,
            wake=self.wake,
            require=self._options.require,
            stopping=self.queue.closed.is_set,
            is_stored=lambda name: self._records.usable and name in self._records.cache,
        )
        self._records.add_handler(self._recorded)
        self._informer.add_handler(self._changed, rescue=self.wake)
        self._revisions.subscribe(self._accepted)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._world is not None:
            self._world.conditions.close()
        await self.clusters.__aexit__(kind, error, trace)

    @property
    def world(self) -> World:
        """What the passes share; for commands and tests."""
        if self._world is None:
            raise RuntimeError("the room is used outside of its context")
        return self._world

    @property
    def informer(self) -> Informer[JsonObject]:
        """What is known of the Syncs, for other rooms of the process; it is run here."""
        return self._informer

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished, and their inventories written."""
        reconcile = SyncController(self.world).reconcile
        controller = Controller("sync", self.queue, reconcile, workers=self._options.workers, pace=self._options.pace)
        async with running(self._records):
            await controller.run_over(self._informer)

    def stop(self) -> None:
        """Begin no further pass; a pass at work finishes its objects and ends."""
        self.queue.close()

    def wake(self, key: NamespacedName) -> None:
        """Run a Sync as soon as a worker is free."""
        self.queue.add(key)

    def _heard(self, owner: OwnerId, item: ObjectId) -> None:
        if self._world is not None:
            self._world.heard(owner, item)

    def _lost(self, unit: NamespacedName) -> None:
        if self._world is not None:
            self._world.lost(unit)

    def _accepted(self, source: NamespacedName) -> None:
        for key in self.syncs.of_source(source):
            self.queue.add(key, urgent=True)

    def _recorded(self, change: Change[bool]) -> None:
        if change.new is None and self._world is not None:
            self._world.unstored(change.key)

    def _changed(self, change: Change[JsonObject]) -> None:
        old, new = change.values
        if old is None or new is None or asked_of(old) != asked_of(new):
            self.wake(change.key)
        if new is not None and self._world is not None:
            self._world.shown(change.key, new)
        if new is None or _shows(old or {}) != _shows(new):
            self._wake_dependents(change.key)

    def _wake_dependents(self, key: NamespacedName) -> None:
        for other in list(self._informer.cache):
            tree = self._informer.cache.get(other) or {}
            if other.namespace == key.namespace and key.name in list_at(tree, "spec", "dependsOn"):
                self.wake(other)


def _shows(tree: JsonObject) -> tuple[object, ...]:
    """The parts of a Sync that others wait for."""
    status = object_at(tree, "status")
    return (
        text_at(condition_of(status, "Ready") or {}, "status"),
        text_at(status, "lastAppliedRevision"),
        status.get("observedGeneration"),
    )

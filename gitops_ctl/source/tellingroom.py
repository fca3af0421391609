"""The running room that tells forges: queue and workers over what other rooms watch; what the manager starts and stops.

Woken by a source or a Sync whose verdict, as the forge is told it, changes; by a revision that is accepted; and by a slow look at the pull
requests.  A room of its own beside that of the sources: nothing that waits for a forge delays a source.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.http import HttpClient
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.forge.controller import Adapter, adapter_of
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import GitTransport
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.source.pulltelling import Pace, Ports, PullCheck
from gitops_ctl.source.teller import Teller
from gitops_ctl.trust.provenance import AcceptedRevisions


@dataclass(frozen=True, slots=True)
class Options:
    """What the manager may choose.

    Attributes:
        workers: sources that are told at a time, and so checks that run at a time.
        allow_file: accept `file://` addresses; the local flag.
        require: raises LeadershipLost when the manager may not write any more.
        adapter: how forges are spoken to; over `http` when None.
    """

    workers: int = 2
    allow_file: bool = False
    require: Callable[[], None] = lambda: None
    adapter: Adapter | None = None
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """What the room reads, shared with the rooms of the sources and the Syncs: nothing is watched or kept twice.

    Attributes:
        sources, syncs: run by their own rooms.
    """

    sources: Informer[JsonObject]
    syncs: Informer[JsonObject]
    git: GitTransport
    clones: CloneCache
    revisions: AcceptedRevisions


class TellingRoom:
    """Tells forges until `stop`."""

    def __init__(
        self,
        client: KubeClient,
        places: Places,
        *,
        events: EventRecorder,
        check: PullCheck,
        http: HttpClient,
        options: Options | None = None,
    ) -> None:
        """`check` looks at a head; `http` reaches the forges."""
        self._options = options or Options()
        self._sources, self._syncs = places.sources, places.syncs
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=self._options.workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        ports = Ports(
            client=client,
            git=places.git,
            clones=places.clones,
            revisions=places.revisions,
            events=events,
            clock=client.clock,
            require_leader=self._options.require,
            adapter=self._options.adapter or adapter_of(http, client.clock),
            check=check,
            pace=self._options.pace or Pace(),
            allow_file=self._options.allow_file,
        )
        self.teller = Teller(ports, lookup=self._sources.cache.get, syncs=self._syncs_of)
        self._sources.add_handler(self._changed, rescue=self.queue.add)
        self._syncs.add_handler(self._sync_changed, rescue=self._wake_all)
        places.revisions.subscribe(self._accepted)

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        settled = asyncio.ensure_future(self._settled())
        closed = asyncio.ensure_future(self.queue.closed.wait())
        try:
            await asyncio.wait({settled, closed}, return_when=asyncio.FIRST_COMPLETED)
            work = Controller("telling", self.queue, self.teller.reconcile, workers=self._options.workers)
            await work.run()
        finally:
            settled.cancel()
            closed.cancel()
            await asyncio.gather(settled, closed, return_exceptions=True)

    async def _settled(self) -> None:
        await self._sources.settled.wait()
        await self._syncs.settled.wait()

    def stop(self) -> None:
        """Begin no further pass."""
        self.queue.close()

    def _syncs_of(self, source: NamespacedName) -> Iterable[JsonObject]:
        if not self._syncs.usable:
            raise Unavailable("the Syncs are not known at the moment", subject=f"GitSource/{source}")
        return [tree for _, tree in self._syncs.cache.items() if _source_of(tree) == source]

    def _changed(self, change: Change[JsonObject]) -> None:
        old, new = (value or EMPTY for value in change.values)
        if _told(old) != _told(new):
            self.queue.add(change.key)

    def _sync_changed(self, change: Change[JsonObject]) -> None:
        for side in (change.old, change.new):
            if side is not None:
                self._accepted(_source_of(side.value))

    def _accepted(self, source: NamespacedName) -> None:
        if self._sources.cache.get(source) is not None:
            self.queue.add(source)

    def _wake_all(self, _sync: NamespacedName) -> None:
        for source, _ in self._sources.cache.items():
            self.queue.add(source)


def _source_of(sync: JsonObject) -> NamespacedName:
    return NamespacedName(text_at(sync, "metadata", "namespace"), text_at(sync, "spec", "sourceRef", "name"))


def _told(source: JsonObject) -> tuple[object, ...]:
    return source.get("spec"), source.get("status"), text_at(source, "metadata", "deletionTimestamp")

"""The running proposals room: informers, queue and workers put together; what the manager starts and stops.

Woken by a Proposal that changes, by a source whose tip or settings change, and by a slow look again.  Our own status writes wake nobody.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import ANNOTATION_REOPEN_AT, ANNOTATION_WHY, GROUP, VERSION
from gitops_ctl.api.watched import asked_of, without_managers
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.http import HttpClient
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, text_at
from gitops_ctl.forge.controller import Adapter, Ports, ProposalController, adapter_of
from gitops_ctl.forge.desk import Git
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue

PROPOSAL: Final = Resource(GroupVersionKind(GROUP, VERSION, "Proposal"), "proposals", namespaced=True)
GIT_SOURCE: Final = Resource(GroupVersionKind(GROUP, VERSION, "GitSource"), "gitsources", namespaced=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What the manager may choose.

    Attributes:
        workers: Proposals that are carried out at a time.
        namespace: only Proposals of this namespace; empty for all.
        allow_file: accept `file://` addresses; the local flag.
        require: raises LeadershipLost when the manager may not write any more.
        adapter: how forges are spoken to; over `http` when None.
    """

    workers: int = 4
    namespace: str = ""
    allow_file: bool = False
    require: Callable[[], None] = lambda: None
    timing: Timing | None = None
    adapter: Adapter | None = None


class ProposalRoom:
    """Carries out Proposals until `stop`."""

    def __init__(
        self,
        client: KubeClient,
        *,
        git: Git,
        clones: CloneCache,
        events: EventRecorder,
        http: HttpClient,
        options: Options | None = None,
    ) -> None:
        """`http` reaches the forges; one for the process, because it keeps the pauses that they ask for."""
        self._options = options or Options()
        self._proposals, self._sources = (
            Informer(
                client, kind, trim=without_managers, namespace=self._options.namespace, timing=self._options.timing
            )
            for kind in (PROPOSAL, GIT_SOURCE)
        )
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=self._options.workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        ports = Ports(
            client=client,
            resource=PROPOSAL,
            git=git,
            clones=clones,
            events=events,
            clock=client.clock,
            require_leader=self._options.require,
            adapter=self._options.adapter or adapter_of(http, client.clock),
        )
        self.controller = ProposalController(
            ports,
            lookup=self._proposals.cache.get,
            source=self._source,
            all_proposals=self._all,
            allow_file=self._options.allow_file,
        )
        self._proposals.add_handler(self._changed, rescue=self.queue.add)
        self._sources.add_handler(self._source_changed, rescue=self._wake)

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        work = Controller("proposal", self.queue, self.controller.reconcile, workers=self._options.workers)
        await work.run_over(self._sources, self._proposals)

    def stop(self) -> None:
        """Begin no further pass."""
        self.queue.close()

    def _source(self, key: NamespacedName) -> JsonObject | None:
        found = self._sources.cache.get(key)
        if found is None and not self._sources.usable:
            raise Unavailable("the GitSources are not known at the moment", subject=f"GitSource/{key}")
        return found

    def _all(self) -> Iterable[JsonObject]:
        return [tree for _, tree in self._proposals.cache.items()]

    def _changed(self, change: Change[JsonObject]) -> None:
        old, new = (value or EMPTY for value in change.values)
        if _asked(old) == _asked(new):
            return
        self.queue.add(change.key)
        if not new or not old:
            self._wake(NamespacedName(change.key.namespace, text_at(new or old, "spec", "sourceRef", "name")))

    def _source_changed(self, change: Change[JsonObject]) -> None:
        old, new = (value or EMPTY for value in change.values)
        if _tip(old) != _tip(new):
            self._wake(change.key)

    def _wake(self, source: NamespacedName) -> None:
        """Look at every Proposal of a source."""
        for tree in self._all():
            key = NamespacedName.of(tree)
            if key.namespace == source.namespace and text_at(tree, "spec", "sourceRef", "name") == source.name:
                self.queue.add(key)


def _asked(tree: JsonObject) -> tuple[object, ...]:
    notes = (text_at(tree, "metadata", "annotations", name) for name in (ANNOTATION_REOPEN_AT, ANNOTATION_WHY))
    return (*asked_of(tree), *notes)


def _tip(tree: JsonObject) -> tuple[object, ...]:
    return (*asked_of(tree), text_at(tree, "status", "observed", "revision"))

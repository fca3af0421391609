"""The running source room: informer, queue and workers put together; what the manager starts and stops.

Woken by a GitSource that changes, by a webhook, and by the poll interval.  The writes of our own status wake nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import GROUP, VERSION
from gitops_ctl.api.watched import asked_of, without_managers
from gitops_ctl.core.http import HttpClient
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.source.controller import Git, Ports, SourceController
from gitops_ctl.source.forge_reviews import reader_of
from gitops_ctl.trust.provenance import AcceptedRevisions

GIT_SOURCE: Final = Resource(GroupVersionKind(GROUP, VERSION, "GitSource"), "gitsources", namespaced=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What the manager may choose.

    Attributes:
        workers: sources that are polled and judged at a time.
        namespace: only sources of this namespace; empty for all.
        allow_file: accept `file://` addresses; the local flag.
        require: raises LeadershipLost when the manager may not write any more.
    """

    workers: int = 12
    namespace: str = ""
    allow_file: bool = False
    require: Callable[[], None] = lambda: None
    timing: Timing | None = None


class SourceRoom:
    """Polls, judges and hands over until `stop`."""

    def __init__(  # noqa: PLR0913  each is a port of the manager
        self,
        client: KubeClient,
        *,
        git: Git,
        clones: CloneCache,
        revisions: AcceptedRevisions,
        events: EventRecorder,
        documents: DocumentCache,
        http: HttpClient,
        options: Options | None = None,
    ) -> None:
        """`http` reaches the forges."""
        self._options = options or Options()
        self._informer = Informer(
            client, GIT_SOURCE, trim=without_managers, namespace=self._options.namespace, timing=self._options.timing
        )
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=self._options.workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        ports = Ports(
            client=client,
            resource=GIT_SOURCE,
            git=git,
            clones=clones,
            revisions=revisions,
            events=events,
            clock=client.clock,
            draw=client.draw,
            require_leader=self._options.require,
            reviews=reader_of(client, http=http, clock=client.clock),
        )
        self.controller = SourceController(
            ports, lookup=self._informer.cache.get, documents=documents, allow_file=self._options.allow_file
        )
        self._informer.add_handler(self._changed, rescue=self.queue.add)
        revisions.exists_by(self._may_exist)

    @property
    def informer(self) -> Informer[JsonObject]:
        """What is known of the GitSources, for other rooms of the process; it is run here."""
        return self._informer

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        work = Controller("gitsource", self.queue, self.controller.reconcile, workers=self._options.workers)
        await work.run_over(self._informer)

    def stop(self) -> None:
        """Begin no further pass."""
        self.queue.close()

    def poke(self, source: NamespacedName) -> None:
        """Poll this source now; what a webhook delivery asks for."""
        self.controller.poke(source)
        self.queue.add(source, urgent=True)

    def _may_exist(self, source: NamespacedName) -> bool:
        """Whether there is such a source, or this process cannot tell yet."""
        return not self._informer.settled.is_set() or self._informer.cache.get(source) is not None

    def _changed(self, change: Change[JsonObject]) -> None:
        old, new = (value or EMPTY for value in change.values)
        if asked_of(old) != asked_of(new):
            self.queue.add(change.key)

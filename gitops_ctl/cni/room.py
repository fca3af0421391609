"""The running switch room: informers, queue and workers put together; what the manager starts and stops.

A cluster is looked at when it changes, when a machine, an operation or a proposal of it changes, when a source accepts a revision, and when
a clock runs out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from gitops_ctl.api.watched import without_managers
from gitops_ctl.cni.authority import AuthorityReader, Read
from gitops_ctl.cni.controller import (
    CLUSTER,
    MACHINE,
    OPERATION,
    PROPOSAL,
    Caches,
    Ports,
    Proposes,
    SwitchController,
)
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.events import Emit, silent
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.trust.provenance import AcceptedRevisions


@dataclass(frozen=True, slots=True)
class Options:
    """What the manager may choose.

    Attributes:
        namespace: only clusters of this namespace; empty for all.
        require: raises LeadershipLost when the manager may not write any more.
    """

    workers: int = 2
    namespace: str = ""
    emit: Emit = silent
    require: Callable[[], None] = lambda: None
    timing: Timing | None = None
    pace: Pace = field(default_factory=lambda: Pace(blocked_s=60.0))


class SwitchRoom:
    """Steers the switches of all clusters until `stop`."""

    def __init__(
        self,
        client: KubeClient,
        *,
        revisions: AcceptedRevisions,
        read: Read,
        proposals: Proposes,
        options: Options | None = None,
    ) -> None:
        """`read` gives the documents of a revision below a folder, from any thread; `proposals` what is asked of Git."""
        self._options = options or Options()
        self._revisions = revisions
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=self._options.workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        self._informers = {
            resource: self._informer(client, resource) for resource in (CLUSTER, MACHINE, OPERATION, PROPOSAL)
        }
        ports = Ports(
            client=client,
            caches=Caches(
                usable=lambda: all(self._informers[resource].usable for resource in (MACHINE, OPERATION)),
                machines=lambda key: self._of(MACHINE, key),
                operations=lambda key: self._of(OPERATION, key),
                proposal=self._informers[PROPOSAL].cache.get,
            ),
            authority=AuthorityReader(client, revisions=revisions, read=read),
            proposals=proposals,
            clock=client.clock,
            emit=self._options.emit,
            require_leader=self._options.require,
        )
        self.controller = SwitchController(ports)
        for resource, informer in self._informers.items():
            informer.add_handler(self._handler(resource), rescue=self._all)
        revisions.subscribe(self._accepted)

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        work = Controller(
            "taloscluster",
            self.queue,
            self.controller.reconcile,
            workers=self._options.workers,
            pace=self._options.pace,
        )
        await work.run_over(*self._informers.values())

    def stop(self) -> None:
        """Begin no further pass."""
        self.queue.close()

    def _informer(self, client: KubeClient, resource: Resource) -> Informer[JsonObject]:
        return Informer(
            client, resource, trim=without_managers, namespace=self._options.namespace, timing=self._options.timing
        )

    def _of(self, resource: Resource, cluster: NamespacedName) -> tuple[JsonObject, ...]:
        """Cached objects that name the cluster."""
        return tuple(
            entry.value
            for key, entry in sorted(self._informers[resource].cache.entries().items())
            if key.namespace == cluster.namespace and text_at(entry.value, "spec", "clusterRef", "name") == cluster.name
        )

    def _handler(self, resource: Resource) -> Callable[[Change[JsonObject]], None]:
        def changed(change: Change[JsonObject]) -> None:
            for entry in (change.old, change.new):
                if entry is not None:
                    self.queue.add(_cluster_of(resource, change.key, entry.value))

        return changed

    def _accepted(self, source: NamespacedName) -> None:
        for key in self._informers[CLUSTER].cache.entries():
            if key.namespace == source.namespace:
                self.queue.add(key)

    def _all(self, _key: NamespacedName) -> None:
        for key in self._informers[CLUSTER].cache.entries():
            self.queue.add(key)


def _cluster_of(resource: Resource, key: NamespacedName, tree: JsonObject) -> NamespacedName:
    """The cluster that an object belongs to; a key that names none is looked at and found to be nothing."""
    if resource is CLUSTER:
        return key
    if resource is PROPOSAL:
        owned = {"TalosCluster", "TalosOperation"}
        named = any(text_at(owner, "kind") in owned for owner in objects_at(tree, "metadata", "ownerReferences"))
        return NamespacedName(key.namespace, text_at(tree, "spec", "subject", "name") if named else "-")
    return NamespacedName(key.namespace, text_at(tree, "spec", "clusterRef", "name"))

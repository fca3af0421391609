"""Which change of the cluster wakes which pass (topology-scheduling.md, 3.4, 6.1, 7.3, 7.4 and 8.1).

A route looks at both sides of a change and enqueues keys, most of them a little later: a wave of changes becomes one pass.  Writes of a
status wake nobody but those who wait for that status, or who answer for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.conditions import condition_of, is_true
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.scheduling.caches import Caches, cluster_key
from gitops_ctl.scheduling.contributions import Contributions
from gitops_ctl.scheduling.migration import CONDITION
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profiles import Profiles
from gitops_ctl.scheduling.queue import Queue, is_managed
from gitops_ctl.scheduling.queue_plan import pool_nodes, queues_of_flavor
from gitops_ctl.scheduling.seen import SeenFeature, SeenNode, node_tree
from gitops_ctl.scheduling.topology import is_terminating, levels_of, topology_name
from gitops_ctl.scheduling.topologycontroller import TopologyController
from gitops_ctl.scheduling.wakes import (
    DEDUPLICATION_S,
    Reference,
    woken_by_feature,
    woken_by_node,
    woken_by_reference,
    woken_by_source,
)

FLAVOR_S: Final = 5.0
"""Window of Node events before a flavor is looked at."""
QUEUE_S: Final = 3.0
"""Window of flavor events before a queue is looked at."""

WorkKeys = AsyncQueue[NamespacedName]


@dataclass(frozen=True, slots=True)
class Queues:
    """The work of each controller, by the names of its objects."""

    sources: WorkKeys
    nodes: WorkKeys
    topologies: WorkKeys
    flavors: WorkKeys
    queues: WorkKeys

    @property
    def by_name(self) -> Mapping[str, WorkKeys]:
        """For metrics, and to close them all."""
        return {
            "topologysource": self.sources,
            "nodeprofile": self.nodes,
            "topology": self.topologies,
            "resourceflavor": self.flavors,
            "clusterqueue": self.queues,
        }


class Routes:
    """Handlers for the informers of the room."""

    def __init__(
        self,
        caches: Caches,
        work: Queues,
        *,
        profiles: Profiles,
        contributions: Contributions,
        topologies: TopologyController,
        options: Options,
    ) -> None:
        self._caches = caches
        self._work = work
        self._profiles = profiles
        self._contributions = contributions
        self._topologies = topologies
        self._options = options
        self._pools: dict[NamespacedName, Queue] = {}

    def connect(self) -> None:
        """Hear of every change from now on."""
        caches, work = self._caches, self._work
        caches.nodes.add_handler(self.node, rescue=work.nodes.add)
        caches.sources.add_handler(self.source, rescue=work.sources.add)
        caches.features.add_handler(self.feature)
        caches.config_maps.add_handler(lambda change: self._reference("ConfigMap", change.key))
        caches.secrets.add_handler(lambda change: self._reference("Secret", change.key))
        caches.topologies.add_handler(self.topology, rescue=work.topologies.add)
        caches.flavors.add_handler(self.flavor, rescue=work.flavors.add)
        caches.queues.add_handler(self.queue, rescue=work.queues.add)
        caches.checks.add_handler(self.check)

    def node(self, change: Change[SeenNode]) -> None:
        """A Node came, went, or has other labels."""
        old, new = change.values
        if old == new:
            return
        self._work.nodes.add(change.key)
        if new is None:
            self._profiles.forget(change.key)
        for name in self._contributions.change(change.key.name, new.labels if new is not None else None):
            self._work.flavors.add_after(cluster_key(name), FLAVOR_S)
        sources = self._caches.trees(self._caches.sources)
        self._wake_sources(woken_by_node(sources, node_tree(old), node_tree(new)))
        self._wake_pools(change.key.name, old, new)
        before = old.labels.get(PROFILE, "") if old is not None else ""
        if before and (new is None or new.labels.get(PROFILE) != before):
            self._work.topologies.add_after(cluster_key(topology_name(before)), FLAVOR_S)

    def source(self, change: Change[JsonObject]) -> None:
        """A TopologySource came, went or changed; its status decides on profiles, and wakes no source."""
        old, new = change.values
        self._wake_sources(woken_by_source(self._caches.trees(self._caches.sources), old, new))
        if self._profiles.source_changed(change.key.name, new):
            for key in self._caches.nodes.cache:
                self._work.nodes.add(key)

    def feature(self, change: Change[SeenFeature]) -> None:
        """A NodeFeature wakes the source that is its controller, and the queues that now wait for its labels."""
        sources = self._caches.trees(self._caches.sources)
        for entry in (change.old, change.new):
            if entry is not None:
                self._wake_sources(woken_by_feature(sources, entry.value.tree))
        if change.new is not None:
            self._profiles.feature_written()
            # Where NFD is down, no change of the Node would ever tell that its labels are waited for.
            node = change.new.value.node
            self._wake_pools(node, None, self._caches.nodes.cache.get(cluster_key(node)))

    def topology(self, change: Change[JsonObject]) -> None:
        """A Topology came, went or changed: Nodes of its profile, and plans that need it."""
        old, new = change.values
        if new is not None:
            self._profiles.learn(new)
        else:
            self._topologies.gone(change.key.name)
        self._work.topologies.add(change.key)
        if old is not None and new is not None and levels_of(old) == levels_of(new):
            return
        for key, seen in self._caches.nodes.cache.items():
            if topology_name(self._profiles.of(key, seen).name) == change.key.name:
                # Not at once: the Node for which it was made may just be getting its label.
                self._work.nodes.add_after(key, DEDUPLICATION_S)
        for key in self._pools:
            self._work.queues.add_after(key, QUEUE_S)

    def flavor(self, change: Change[JsonObject]) -> None:
        """A flavor came, went or changed: itself, the queues that it is of, and its Topology when it is gone."""
        old, new = change.values
        if old is not None and new is not None and _content(old) == _content(new):
            return
        self._work.flavors.add(change.key)
        for tree in (old, new):
            if tree is not None:
                self._wake_queues_of(tree)
        if new is None and old is not None and (name := text_at(old, "spec", "topologyName")):
            self._work.topologies.add(cluster_key(name))

    def queue(self, change: Change[JsonObject]) -> None:
        """A queue changed in anything but what Kueue says in its status: that is seen by looking again.

        Our condition counts: a manager that was stopped just before it sent one writes it when another has long taken over.
        """
        old, new = change.values
        if new is None or not is_managed(new):
            self._pools.pop(change.key, None)
        else:
            self._pools[change.key] = Queue.of(new)
        if old is None or new is None or (_cause(old), _told(old)) != (_cause(new), _told(new)):
            self._work.queues.add(change.key)

    def check(self, change: Change[JsonObject]) -> None:
        """An AdmissionCheck became Active or stopped being it: every queue may list it."""
        was, now = (tree is not None and is_true(object_at(tree, "status"), "Active") for tree in change.values)
        if was != now:
            for key in self._pools:
                self._work.queues.add(key)

    @property
    def pools(self) -> Mapping[NamespacedName, Queue]:
        """The managed queues, as their informer saw them last."""
        return self._pools

    def _reference(self, kind: str, key: NamespacedName) -> None:
        sources = self._caches.trees(self._caches.sources)
        self._wake_sources(woken_by_reference(sources, Reference(kind, key.namespace, key.name)))

    def _wake_sources(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._work.sources.add_after(cluster_key(name), DEDUPLICATION_S)

    def _wake_pools(self, node: str, old: SeenNode | None, new: SeenNode | None) -> None:
        """The queues of whose pool the Node was or is, once its flavors have been looked at."""
        for key, queue in self._pools.items():
            if any(
                pool_nodes(queue, {node: seen.labels}, options=self._options) for seen in (old, new) if seen is not None
            ):
                self._work.queues.add_after(key, FLAVOR_S + QUEUE_S)

    def _wake_queues_of(self, flavor: JsonObject) -> None:
        for name in queues_of_flavor(flavor, self._pools.values()):
            self._work.queues.add_after(cluster_key(name), QUEUE_S)


def _content(flavor: JsonObject) -> tuple[object, ...]:
    metadata = object_at(flavor, "metadata")
    return flavor.get("spec"), metadata.get("labels"), metadata.get("annotations"), is_terminating(flavor)


def _cause(queue: JsonObject) -> tuple[object, ...]:
    metadata = object_at(queue, "metadata")
    return (
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("labels"),
        metadata.get("annotations"),
    )


def _told(queue: JsonObject) -> JsonObject | None:
    return condition_of(object_at(queue, "status"), CONDITION)

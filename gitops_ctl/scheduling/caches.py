"""The informers of the scheduling room, and what may be concluded from them (topology-scheduling.md, 1.5, 3.4, 7 and 8.1).

Kueue and Node Feature Discovery may be missing: at the start, for a while, or for good.  What is not seen as a whole is unknown, and
nothing is planned from it: a list of sources that cannot be read would otherwise take every profile away.
"""

from collections.abc import Mapping
from typing import Any

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.flavor import MARK as FLAVOR_MARK
from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.presence import Peer
from gitops_ctl.scheduling.queue import MARK as QUEUE_MARK
from gitops_ctl.scheduling.resources import (
    CHECK,
    CONFIG_MAP,
    FLAVOR,
    NODE,
    NODE_FEATURE,
    QUEUE,
    SECRET,
    SOURCE,
    TOPOLOGY,
)
from gitops_ctl.scheduling.seen import SeenFeature, SeenNode, seen_change, seen_feature, seen_node, written_at
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.settled import patience_s
from gitops_ctl.scheduling.topology import MARK as TOPOLOGY_MARK
from gitops_ctl.scheduling.topology import is_marked

PROFILE_INDEX = "profile"
NODE_INDEX = "node"


class Caches:
    """One informer for each kind.

    Attributes:
        missed: what passes could not judge since they were woken for it last.
    """

    def __init__(self, client: KubeClient, *, options: Options, timing: Timing | None = None) -> None:
        namespace = options.worker_namespace

        def whole(resource: Resource) -> Informer[JsonObject]:
            return Informer(client, resource, trim=without_managers, timing=timing)

        def changes(resource: Resource) -> Informer[None]:
            return Informer(client, resource, trim=seen_change, namespace=namespace, timing=timing, metadata_only=True)

        self.nodes: Informer[SeenNode] = Informer(client, NODE, trim=seen_node, timing=timing, metadata_only=True)
        self.nodes.cache.add_index(PROFILE_INDEX, lambda _key, seen: seen.labels.get(PROFILE, "").split())
        self.sources = whole(SOURCE)
        self._clock = client.clock
        self.features: Informer[SeenFeature] = Informer(
            client, NODE_FEATURE, trim=self._feature, namespace=namespace, timing=timing
        )
        self.features.cache.add_index(NODE_INDEX, lambda _key, seen: [seen.node])
        self.config_maps, self.secrets = changes(CONFIG_MAP), changes(SECRET)
        self.topologies, self.flavors = whole(TOPOLOGY), whole(FLAVOR)
        self.queues, self.checks = whole(QUEUE), whole(CHECK)
        self.kueue = Peer(client, (self.topologies, self.flavors, self.queues, self.checks))
        self.nfd = Peer(client, (self.features,))
        self.missed: set[str] = set()
        self._needs_checks = bool(options.admission_checks)

    def _feature(self, tree: JsonObject) -> SeenFeature:
        """With the end of the wait for its labels: only of what stood there before has a wall clock to tell the age."""
        is_new = self.features.synced.is_set()
        age_s = None if is_new else (self._clock.wall() - written_at(tree)).total_seconds()
        return seen_feature(tree, awaited_until_s=self._clock.boot_s() + patience_s(age_s))

    @property
    def inventory(self) -> tuple[Informer[Any], ...]:
        """What is watched as soon as there is anything to schedule by."""
        return (self.nodes, self.config_maps, self.secrets)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to schedule by: a source, a managed queue, or what was made for one."""
        marks = ((self.queues, QUEUE_MARK), (self.flavors, FLAVOR_MARK), (self.topologies, TOPOLOGY_MARK))
        return bool(self.sources.cache) or any(
            is_marked(tree, mark) for informer, mark in marks for _, tree in informer.cache.items()
        )

    @property
    def sees_sources(self) -> bool:
        """Whether sources can be judged."""
        is_settled = self.features.settled.is_set() or self.nfd.is_absent
        return self.nodes.usable and self.sources.usable and is_settled

    @property
    def sees_profiles(self) -> bool:
        """Whether a Node can get its profile, and its Topology before."""
        return self.nodes.usable and self.sources.usable and self.topologies.usable

    @property
    def sees_flavors(self) -> bool:
        """Whether flavors can be judged."""
        return self.nodes.usable and self.flavors.usable

    @property
    def sees_queues(self) -> bool:
        """Whether a plan can be made."""
        checks = self.checks.usable or not self._needs_checks
        return self.sees_profiles and self.sees_flavors and self.sees_features and self.queues.usable and checks

    def sight(self) -> Mapping[str, bool]:
        """What can be judged now."""
        return {
            "sources": self.sees_sources,
            "features": self.features.usable,
            "profiles": self.sees_profiles,
            "flavors": self.sees_flavors,
            "queues": self.sees_queues,
        }

    def may_judge(self, what: str) -> bool:
        """Whether a pass may conclude anything now; one that may not is noted, and made up for as soon as it may."""
        sees = self.sight()[what]
        if not sees:
            self.missed.add(what)
        return sees

    @property
    def sees_features(self) -> bool:
        """Whether it is known which NodeFeatures there are; where the kind is not installed there are none."""
        return self.features.usable or self.nfd.is_absent

    def labels_of_nodes(self) -> Mapping[str, Labels]:
        """The labels of every Node, by name; a copy."""
        return {key.name: seen.labels for key, seen in self.nodes.cache.items()}

    def trees(self, informer: Informer[JsonObject]) -> tuple[JsonObject, ...]:
        """All objects of one kind."""
        return tuple(tree for _, tree in informer.cache.items())

    def feature_trees(self) -> tuple[JsonObject, ...]:
        """All NodeFeatures of the worker namespace."""
        return tuple(seen.tree for _, seen in self.features.cache.items())


def cluster_key(name: str) -> NamespacedName:
    """The key of an object without a namespace."""
    return NamespacedName("", name)

"""NodeFeatures of a source: their names, whose they are, and what a pass writes and deletes (topology-scheduling.md, 5).

Pure.  Labels reach Nodes through NFD only; no plan of this module names a Node to write to.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, objects_at, text_at
from gitops_ctl.scheduling.names import SOURCE_KIND, SOURCE_UID, WORKER_API_VERSION, WORKER_GROUP, fnv64
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.source import TopologySource

NODE_FEATURE_API_VERSION: Final = "nfd.k8s-sigs.io/v1alpha1"
NODE_NAME: Final = "nfd.node.kubernetes.io/node-name"
_EMPTY_FEATURES: Final[JsonObject] = {"flags": {}, "attributes": {}, "instances": {}}


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """What one pass does, in this order.

    Attributes:
        deletes: objects to delete, by name; not found is fine.
        creates: whole objects to create.
        updates: whole objects, with the resourceVersion that was read, to put in place of the live ones.
        foreign: names of objects that stand where ours should and have another owner: they are left alone, and the pass fails.
    """

    deletes: tuple[JsonObject, ...] = ()
    creates: tuple[JsonObject, ...] = ()
    updates: tuple[JsonObject, ...] = ()
    foreign: tuple[str, ...] = ()

    @property
    def mutations(self) -> int:
        """What `status.mutatedNodes` counts."""
        return len(self.deletes) + len(self.creates) + len(self.updates)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Nodes that other writing sources choose too.

    Attributes:
        sources: names of these sources, sorted.
        nodes: names of the Nodes, sorted.
    """

    sources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def feature_name(source_uid: str, node: str) -> str:
    """The name of the NodeFeature of one source for one Node."""
    return f"gpustack-topology-{fnv64(source_uid, node)}"


def node_of(feature: JsonObject) -> str:
    """The Node that a NodeFeature is for; empty when its label is gone."""
    return text_at(feature, "metadata", "labels", NODE_NAME)


def is_owned(feature: JsonObject, source_uid: str) -> bool:
    """Whether a NodeFeature is that source's (5.1): by its controller, or by label and name when it has no controller."""
    controller = _controller(feature)
    if controller is not None:
        return _is_source(controller, source_uid)
    node = node_of(feature)
    return (
        bool(node)
        and text_at(feature, "metadata", "labels", SOURCE_UID) == source_uid
        and text_at(feature, "metadata", "name") == feature_name(source_uid, node)
    )


def plan_features(
    features: Iterable[JsonObject], *, desired: Mapping[str, Labels], source: TopologySource, namespace: str
) -> FeaturePlan:
    """The way from the NodeFeatures of the namespace to exactly one for each desired Node.

    Args:
        features: all of the worker namespace, of whoever.
        desired: labels for each Node; a Node without labels gets no object.
        namespace: the worker namespace.
    """
    known = sorted(features, key=lambda feature: text_at(feature, "metadata", "name"))
    wanted = {feature_name(source.uid, node): (node, desired[node]) for node in sorted(desired) if desired[node]}
    deletes = tuple(item for item in known if is_owned(item, source.uid) and not _is_wanted(item, wanted))
    gone = {text_at(item, "metadata", "name") for item in deletes}
    standing = {name: item for item in known if (name := text_at(item, "metadata", "name")) not in gone}
    creates, updates, foreign = [], [], []
    for name, (node, labels) in wanted.items():
        live = standing.get(name)
        if live is None:
            creates.append(_feature(source, node, labels, namespace))
        elif (controller := _controller(live)) is not None and not _is_source(controller, source.uid):
            foreign.append(name)
        elif not _is_current(live, source, node, labels):
            updates.append(_repaired(live, source, node, labels))
    return FeaturePlan(deletes, tuple(creates), tuple(updates), tuple(foreign))


def overlap_of(source: TopologySource, others: Iterable[TopologySource], nodes: Mapping[str, Labels]) -> Overlap:
    """Who else writes to Nodes of this source at a level that both declare (5.3); health and deletion do not matter."""
    if not source.writes:
        return Overlap()
    names: set[str] = set()
    shared: set[str] = set()
    mine = {name: labels for name, labels in nodes.items() if source.chooses(labels)}
    for other in others:
        if other.uid == source.uid or not other.writes or not set(other.levels) & set(source.levels):
            continue
        found = {name for name, labels in mine.items() if other.chooses(labels)}
        if found:
            names.add(other.name)
            shared |= found
    return Overlap(tuple(sorted(names)), tuple(sorted(shared)))


def _is_wanted(feature: JsonObject, wanted: Mapping[str, tuple[str, Labels]]) -> bool:
    found = wanted.get(text_at(feature, "metadata", "name"))
    return found is not None and found[0] == node_of(feature)


def _controller(feature: JsonObject) -> JsonObject | None:
    owners = objects_at(feature, "metadata", "ownerReferences")
    return next((owner for owner in owners if bool_at(owner, "controller")), None)


def _is_source(owner: JsonObject, uid: str) -> bool:
    """Either version of the kind names the same object (D1)."""
    gvk = GroupVersionKind.of(owner)
    return (gvk.group, gvk.kind, text_at(owner, "uid")) == (WORKER_GROUP, SOURCE_KIND, uid)


def _feature(source: TopologySource, node: str, labels: Labels, namespace: str) -> JsonObject:
    return {
        "apiVersion": NODE_FEATURE_API_VERSION,
        "kind": "NodeFeature",
        "metadata": {
            "name": feature_name(source.uid, node),
            "namespace": namespace,
            "labels": _marks(source, node),
            "ownerReferences": [_owner(source)],
        },
        "spec": {"features": _EMPTY_FEATURES, "labels": dict(labels)},
    }


def _marks(source: TopologySource, node: str) -> dict[str, str]:
    return {NODE_NAME: node, SOURCE_UID: source.uid}


def _owner(source: TopologySource) -> JsonObject:
    return {
        "apiVersion": WORKER_API_VERSION,
        "kind": SOURCE_KIND,
        "name": source.name,
        "uid": source.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _is_current(live: JsonObject, source: TopologySource, node: str, labels: Labels) -> bool:
    """Whether nothing is to be written; an absent mapping is an empty one."""
    marks = object_at(live, "metadata", "labels")
    owner = _controller(live)
    return (
        owner is not None
        and text_at(owner, "name") == source.name
        and not bool_at(owner, "blockOwnerDeletion")
        and all(marks.get(key) == value for key, value in _marks(source, node).items())
        and object_at(live, "spec", "labels") == labels
        and not any(object_at(live, "spec", "features").values())
    )


def _repaired(live: JsonObject, source: TopologySource, node: str, labels: Labels) -> JsonObject:
    """The live object with our members forced; labels, annotations and owners of others stay."""
    metadata = object_at(live, "metadata")
    return {
        **live,
        "metadata": {
            **metadata,
            "labels": {**object_at(metadata, "labels"), **_marks(source, node)},
            "ownerReferences": [*_other_owners(metadata, source.uid), _owner(source)],
        },
        "spec": {**object_at(live, "spec"), "features": _EMPTY_FEATURES, "labels": dict(labels)},
    }


def _other_owners(metadata: JsonObject, uid: str) -> Iterator[JsonObject]:
    return (owner for owner in objects_at(metadata, "ownerReferences") if not _is_source(owner, uid))

"""Which event wakes which source, and what a change of its arm asks for first (topology-scheduling.md, 3.4 and 3.5)."""

import enum
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, objects_at, text_at
from gitops_ctl.scheduling.drop_guard import ALLOW_NODE_DROP
from gitops_ctl.scheduling.names import SOURCE_FINALIZER, SOURCE_KIND, WORKER_GROUP
from gitops_ctl.scheduling.selectors import labels_of
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.topology import is_terminating

DEDUPLICATION_S: Final = 1.0


class Reference(NamedTuple):
    """An object that a source reads."""

    kind: str
    namespace: str
    name: str


class Lifecycle(enum.Enum):
    """What comes before anything else in a pass."""

    NOTHING = "nothing"
    ADD_FINALIZER = "add-finalizer"
    REMOVE_FEATURES = "remove-features"
    """Delete all owned NodeFeatures, then the finalizer."""


def references_of(source: JsonObject) -> Iterator[Reference]:
    """The ConfigMaps and Secrets that a source reads."""
    config_map = object_at(source, "spec", "configMap")
    webhook = object_at(source, "spec", "webhook")
    for arm, member, kind in (
        (config_map, "configMapRef", "ConfigMap"),
        (webhook, "caBundleConfigMapRef", "ConfigMap"),
        (webhook, "bearerTokenSecretRef", "Secret"),
        (webhook, "tlsClientCertificateSecretRef", "Secret"),
    ):
        if member in arm:
            reference = object_at(arm, member)
            yield Reference(kind, text_at(reference, "namespace"), text_at(reference, "name"))


def woken_by_reference(sources: Iterable[JsonObject], changed: Reference) -> tuple[str, ...]:
    """Names of the sources that read a ConfigMap or Secret."""
    return _names(source for source in sources if changed in references_of(source))


def woken_by_node(sources: Iterable[JsonObject], old: JsonObject | None, new: JsonObject | None) -> tuple[str, ...]:
    """Names of the sources that a Node event wakes: all when it came or went, nodeLabels ones when its labels changed."""
    if old is None or new is None:
        return _names(sources)
    if labels_of(old) == labels_of(new):
        return ()
    return _names(source for source in sources if TopologySource.of(source).kind == "NodeLabels")


def woken_by_feature(sources: Iterable[JsonObject], feature: JsonObject) -> tuple[str, ...]:
    """Name of the source that is the controller of a NodeFeature; either version of the kind (D1)."""
    owners = {
        text_at(owner, "uid")
        for owner in objects_at(feature, "metadata", "ownerReferences")
        if bool_at(owner, "controller")
        and (GroupVersionKind.of(owner).group, GroupVersionKind.of(owner).kind) == (WORKER_GROUP, SOURCE_KIND)
    }
    return _names(source for source in sources if text_at(source, "metadata", "uid") in owners)


def woken_by_source(sources: Iterable[JsonObject], old: JsonObject | None, new: JsonObject | None) -> tuple[str, ...]:
    """Names of the sources that a change of one wakes: itself, and the writing ones that share a level with it.

    A write of its own status wakes nobody (D11); the others hear of creation, change of the spec and deletion (D12).
    """
    woken: set[str] = set()
    if new is not None and (old is None or _cause(old) != _cause(new)):
        woken.add(text_at(new, "metadata", "name"))
    if old is None or new is None or old.get("spec") != new.get("spec") or is_terminating(old) != is_terminating(new):
        changed = [TopologySource.of(tree) for tree in (old, new) if tree is not None]
        levels = {level for one in changed if one.writes for level in one.levels}
        others = [TopologySource.of(source) for source in sources]
        uids = {one.uid for one in changed}
        woken |= {one.name for one in others if one.writes and one.uid not in uids and levels & set(one.levels)}
    return tuple(sorted(woken))


def lifecycle(source: JsonObject) -> Lifecycle:
    """What the arm, the finalizer and the deletion mark ask for; deletion without our finalizer asks for nothing."""
    finalizers = object_at(source, "metadata").get("finalizers")
    has_ours = isinstance(finalizers, list) and SOURCE_FINALIZER in finalizers
    writes = TopologySource.of(source).writes
    if has_ours and (is_terminating(source) or not writes):
        return Lifecycle.REMOVE_FEATURES
    if writes and not has_ours and not is_terminating(source):
        return Lifecycle.ADD_FINALIZER
    return Lifecycle.NOTHING


def _cause(source: JsonObject) -> tuple[object, ...]:
    metadata = object_at(source, "metadata")
    return (
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        object_at(metadata, "annotations").get(ALLOW_NODE_DROP),
    )


def _names(sources: Iterable[JsonObject]) -> tuple[str, ...]:
    return tuple(sorted(text_at(source, "metadata", "name") for source in sources))

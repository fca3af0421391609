"""What a commit would do to a cluster: from its documents and the objects as they are to profiles, queues and Workloads.

Pure, so that it works offline, from what `kubectl get` has written, as well as beside a cluster (topology-scheduling.md, 4.5, 6 to 8
and 13.3).  Sources are judged by the planner of the controller; of a webhook nobody knows the next answer, so its labels stay.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from gitops_ctl.api.names import ANNOTATION_OWNER_ID
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, object_at, text_at
from gitops_ctl.scheduling.flavor import MARK as FLAVOR_MARK
from gitops_ctl.scheduling.names import TOPOLOGY
from gitops_ctl.scheduling.nodefeature import node_of
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.preview import Fate, Inventory, Preview, preview, projected
from gitops_ctl.scheduling.queue import HOLD_AND_DRAIN, Queue, is_managed
from gitops_ctl.scheduling.queue_documents import carried
from gitops_ctl.scheduling.selectors import Labels, labels_of
from gitops_ctl.scheduling.snapshot import decode
from gitops_ctl.scheduling.snapshot_rules import is_writable
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_pass import Surroundings, plan_pass
from gitops_ctl.scheduling.topology import is_marked, is_terminating, profile_in_flavor_name
from gitops_ctl.scheduling.workload import Workload, holding, local_queues_of, waiting, with_counted

PROJECTED: Final = "nfd.node.kubernetes.io/feature-labels"
"""Annotation of a Node: the keys that NFD has set there, and takes away when nobody asks for them any more."""

Key = tuple[str, str]
"""Namespace and name."""
_NO_LABELS: Final[Mapping[str, Labels]] = {}


@dataclass(frozen=True, slots=True)
class Live:
    """A cluster as it is; objects as the server gives them.

    Attributes:
        nodes: by name.
        flavors: None when they are not known; then they are those that the Nodes feed.
        config_maps: those that are known.
    """

    nodes: Mapping[str, JsonObject]
    sources: tuple[JsonObject, ...] = ()
    features: tuple[JsonObject, ...] = ()
    flavors: tuple[JsonObject, ...] | None = None
    topologies: tuple[JsonObject, ...] = ()
    queues: tuple[JsonObject, ...] = ()
    local_queues: tuple[JsonObject, ...] = ()
    workloads: tuple[JsonObject, ...] = ()
    config_maps: Mapping[Key, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposed:
    """The documents of a checkout; sources and snapshots without errors."""

    sources: tuple[JsonObject, ...] = ()
    config_maps: Mapping[Key, JsonObject] = field(default_factory=dict)
    queues: tuple[JsonObject, ...] = ()


class Change(enum.StrEnum):
    """What a commit does to an object."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    GOES = "goes"
    ELSEWHERE = "elsewhere"
    """The checkout does not declare it, and it stays."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What would become of one TopologySource.

    Attributes:
        reason: of its condition Ready.
        message: why it is not Ready, or what is not known.
        revision: of the snapshot that it would apply; empty when it applies none.
        described: Nodes that it would give labels to.
    """

    name: str
    change: Change
    reason: str = ""
    message: str = ""
    revision: str = ""
    described: int = 0


@dataclass(frozen=True, slots=True)
class Evicted:
    """A Workload that would lose its place."""

    workload: Workload
    why: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would come.

    Attributes:
        queues: what the commit does to each managed queue, by name.
        stranded: Workload and the level that it requires, which no flavor of its queue would have.
    """

    sources: tuple[SourceChange, ...]
    preview: Preview
    queues: tuple[tuple[str, Change], ...]
    evicted: tuple[Evicted, ...]
    stranded: tuple[tuple[Workload, str], ...]

    @property
    def changes(self) -> bool:
        """Whether anything would be another one."""
        fates = any(change.fate not in (Fate.SAME, Fate.KEPT, Fate.REFUSED) for change in self.preview.queues)
        names = any(change is not Change.ELSEWHERE and change is not Change.SAME for _, change in self.queues)
        return bool(self.preview.profiles or self.evicted or fates or names)


def forecast(live: Live, proposed: Proposed, *, now: datetime, options: Options) -> Forecast:
    """Compute it, as it is once every Node has settled.

    Args:
        now: wall clock, for the age of the last revision of a source that fails.
    """
    owners = frozenset(_owners(live.sources, proposed.sources)) | frozenset(_owners(live.queues, proposed.queues))
    sources = dict(_merged(live.sources, proposed.sources, owners))
    trees = {name: tree for name, (change, tree) in sources.items() if change is not Change.GOES}
    labels = {name: labels_of(tree) for name, tree in live.nodes.items()}
    judging = _Judging(live, proposed, trees, labels, now, options)
    judged = {name: judging.judge(tree) for name, tree in trees.items()}
    managed = {name: _managed(tree, labels[name], live, trees) for name, tree in live.nodes.items()}
    after: dict[str, dict[str, str]] = {}
    for found in judged.values():
        for node, wanted in found.labels.items():
            after.setdefault(node, {}).update(wanted)
    nodes = projected(labels, before=managed, after=after)
    chosen = tuple(judging.seen_again(tree, judged[name], nodes) for name, tree in trees.items())
    queues = dict(_merged(live.queues, tuple(map(carried, proposed.queues)), owners))
    workloads = tuple(map(Workload.of, live.workloads))
    staying = [
        with_counted(Queue.of(tree), workloads)
        for change, tree in queues.values()
        if change is not Change.GOES and is_managed(tree)
    ]
    shown = preview(labels, Inventory(nodes, chosen), staying, flavors=_marked(live.flavors), options=options)
    return Forecast(
        tuple(_source_change(name, change, judged.get(name)) for name, (change, _) in sorted(sources.items())),
        shown,
        tuple((name, change) for name, (change, tree) in sorted(queues.items()) if is_managed(tree)),
        tuple(_evicted(queues, shown, workloads)),
        tuple(_stranded(shown, workloads, live)),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """One source after the commit.

    Attributes:
        labels: what it publishes for each Node.
    """

    ready: tuple[str, str]
    message: str = ""
    revision: str = ""
    labels: Mapping[str, Labels] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Judging:
    """Asks the planner about each source, with all of them as they would be."""

    live: Live
    proposed: Proposed
    trees: Mapping[str, JsonObject]
    labels: Mapping[str, Labels]
    now: datetime
    options: Options

    def judge(self, tree: JsonObject) -> _Judged:
        source = TopologySource.of(tree)
        text = self._text(tree)
        if not source.writes:
            return _Judged(("", ""))
        kept = self._kept(source)
        if text is None:
            known = "its webhook is not asked" if source.kind == "Webhook" else "its ConfigMap is not known"
            follows = "the labels of its Nodes stay as they are" if source.ready[0] else "what it will say is open"
            return _Judged(source.ready, f"{known}: {follows}", labels=kept)
        return self._planned(tree, text, kept)

    def _planned(self, tree: JsonObject, text: str, kept: Mapping[str, Labels]) -> _Judged:
        around = Surroundings(
            self.labels, tuple(TopologySource.of(other) for other in self.trees.values()), self.live.features
        )
        found = plan_pass(tree, text, around, now=self.now, options=self.options).judgement
        if found is None:
            return _Judged(("False", "Terminating"))
        ready, valid = found.conditions[0], found.conditions[1]
        if not found.succeeded:
            message = valid.message or ready.message
            return _Judged((ready.status, ready.reason), message, labels=_NO_LABELS if found.removes else kept)
        # Beside no NodeFeature at all everything that is published is created.
        whole = plan_pass(tree, text, replace(around, features=()), now=self.now, options=self.options).features
        published = {node_of(feature): _texts(object_at(feature, "spec", "labels")) for feature in whole.creates}
        snapshot = decode(text).snapshot
        revision = snapshot.revision if snapshot is not None else ""
        return _Judged((ready.status, ready.reason), valid.message, revision, published)

    def seen_again(self, tree: JsonObject, judged: _Judged, nodes: Mapping[str, Labels]) -> TopologySource:
        """The source with the readiness that it would have; one that reads labels is judged by those that there will be."""
        source = TopologySource.of(tree)
        if source.writes:
            return replace(source, ready=judged.ready).at(self.now)
        around = Surroundings(nodes, (), ())
        found = plan_pass(tree, None, around, now=self.now, options=self.options).judgement
        ready = found.conditions[0] if found is not None else None
        return replace(source, ready=(ready.status, ready.reason) if ready is not None else ("False", "Terminating"))

    def _text(self, tree: JsonObject) -> str | None:
        arm = object_at(tree, "spec", "configMap")
        key = (text_at(arm, "configMapRef", "namespace"), text_at(arm, "configMapRef", "name"))
        found = self.proposed.config_maps.get(key) or self.live.config_maps.get(key) or EMPTY
        text = object_at(found, "data").get(text_at(arm, "key"))
        return text if isinstance(text, str) else None

    def _kept(self, source: TopologySource) -> Mapping[str, Labels]:
        """What the source publishes now, read from the Nodes."""
        keys = [level for level in source.levels if is_writable(level, source.write_prefix)]
        return {
            name: {key: labels[key] for key in keys if key in labels and key in _projected_keys(self.live.nodes[name])}
            for name, labels in self.labels.items()
            if source.chooses(labels)
        }


def _owners(live: tuple[JsonObject, ...], wanted: tuple[JsonObject, ...]) -> Iterator[str]:
    """The Syncs that own an object which the checkout declares: it is theirs."""
    declared = {text_at(tree, "metadata", "name") for tree in wanted}
    yield from (owner for tree in live if text_at(tree, "metadata", "name") in declared and (owner := _owner(tree)))


def _merged(
    live: tuple[JsonObject, ...], wanted: tuple[JsonObject, ...], owners: frozenset[str]
) -> Iterator[tuple[str, tuple[Change, JsonObject]]]:
    """Each object by name as it would be, live status included.

    An object that is not declared goes when it belongs to one of these Syncs; otherwise it is somebody else's.
    """
    standing = {text_at(tree, "metadata", "name"): tree for tree in live}
    declared = {text_at(tree, "metadata", "name"): tree for tree in wanted}
    for name in sorted(standing.keys() | declared.keys()):
        old, new = standing.get(name), declared.get(name)
        if new is None:
            assert old is not None
            yield name, (Change.GOES if _owner(old) in owners else Change.ELSEWHERE, old)
        elif old is None:
            yield name, (Change.NEW, new)
        else:
            yield name, (Change.SAME if _covers(old, new) else Change.CHANGED, _over(old, new))


def _over(old: JsonObject, new: JsonObject) -> JsonObject:
    """The live object after its document was applied, as far as these kinds are concerned."""
    metadata = object_at(old, "metadata")
    merged = {
        **metadata,
        **{
            member: {**object_at(metadata, member), **object_at(new, "metadata", member)}
            for member in ("labels", "annotations")
            if member in metadata or object_at(new, "metadata", member)
        },
    }
    spec = object_at(old, "spec")
    # A source is its document's alone; of a queue the groups and the policy are written by the controller.
    whole = (
        object_at(new, "spec")
        if GroupVersionKind.of(new).kind == "TopologySource"
        else {**spec, **object_at(new, "spec")}
    )
    return {**old, "metadata": merged, "spec": whole}


def _covers(old: JsonValue, new: JsonValue) -> bool:
    """Whether an apply of `new` leaves `old` as it is: the server may have added defaults to it."""
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        return all(name in old and _covers(old[name], value) for name, value in new.items() if name != "apiVersion")
    return old == new


def _owner(tree: JsonObject) -> str:
    """The Sync in the mark of an object; empty when the mark was made for another one."""
    mark = text_at(tree, "metadata", "annotations", ANNOTATION_OWNER_ID)
    owner, _, identity = mark.partition(":")
    return owner if identity.endswith(f":/{text_at(tree, 'metadata', 'name')}") else ""


def _managed(node: JsonObject, labels: Labels, live: Live, trees: Mapping[str, JsonObject]) -> Labels:
    """Labels of a Node that NFD set for a source, as it is now or as it would be."""
    sources = [TopologySource.of(tree) for tree in (*live.sources, *trees.values())]
    prefixes = {source.write_prefix for source in sources if source.writes}
    return {
        key: labels[key]
        for key in _projected_keys(node)
        if key in labels and (key.startswith(f"{TOPOLOGY}/") or any(is_writable(key, prefix) for prefix in prefixes))
    }


def _marked(flavors: tuple[JsonObject, ...] | None) -> frozenset[str] | None:
    """Names of the flavors that are ours."""
    if flavors is None:
        return None
    ours = (tree for tree in flavors if is_marked(tree, FLAVOR_MARK) and not is_terminating(tree))
    return frozenset(text_at(tree, "metadata", "name") for tree in ours)


def _projected_keys(node: JsonObject) -> frozenset[str]:
    return frozenset(text_at(node, "metadata", "annotations", PROJECTED).split(","))


def _texts(labels: JsonObject) -> Labels:
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _source_change(name: str, change: Change, judged: _Judged | None) -> SourceChange:
    if judged is None:
        return SourceChange(name, change)
    return SourceChange(name, change, judged.ready[1], judged.message, judged.revision, len(judged.labels))


def _evicted(
    queues: Mapping[str, tuple[Change, JsonObject]], shown: Preview, workloads: tuple[Workload, ...]
) -> Iterator[Evicted]:
    drained = {change.queue for change in shown.drained}
    for name, (change, tree) in sorted(queues.items()):
        queue = Queue.of(tree)
        if change is Change.GOES:
            why = f"queue {name} goes"
        elif name in drained:
            why = f"queue {name} is drained"
        elif queue.wanted == HOLD_AND_DRAIN and queue.applied != HOLD_AND_DRAIN:
            why = f"Git wants {HOLD_AND_DRAIN} for queue {name}"
        else:
            continue
        yield from (Evicted(workload, why) for workload in holding(workloads, name))


def _stranded(shown: Preview, workloads: tuple[Workload, ...], live: Live) -> Iterator[tuple[Workload, str]]:
    """Levels that a Workload requires and that no flavor of its queue would have: it would wait for ever."""
    behind = local_queues_of(live.local_queues)
    for change in shown.queues:
        if not change.after or change.fate is Fate.KEPT:
            continue
        levels = {level for name in change.after for level in shown.levels.get(profile_in_flavor_name(name), ())}
        for workload in (*holding(workloads, change.queue), *waiting(workloads, change.queue, behind)):
            for level in sorted(workload.required - levels):
                yield workload, level

"""Which revisions are rejected for what they say, and what a sound one publishes (topology-scheduling.md, 4.2, 12: B3 and B4).

The content stage, rules 6 to 13, runs before the ownership of Nodes is settled; the publish stage, rule 14, after it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.scheduling.names import (
    LONGEST_LABEL,
    PROFILE,
    READ_ONLY_PARENTS,
    TOPOLOGY,
    is_blank,
    is_label_text,
)
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.snapshot import Snapshot, SnapshotProblem, in_order

SNAPSHOT_API_VERSION: Final = f"{TOPOLOGY}/v1alpha1"


@dataclass(frozen=True, slots=True)
class Reach:
    """What a source may say, and about which Nodes.

    Attributes:
        levels: label keys, coarsest first, as declared.
        write_prefix: one more prefix of writable keys, with its slash; empty for none.
        selected: labels of the Nodes that the selector chooses, by name; None when no cluster is asked.
        existing: names of all Nodes.
    """

    levels: tuple[str, ...]
    write_prefix: str = ""
    selected: Mapping[str, Labels] | None = None
    existing: frozenset[str] = frozenset()


def content_problems(snapshot: Snapshot, reach: Reach, *, options: Options) -> tuple[SnapshotProblem, ...]:
    """Rules 6 to 13 and B3; rule 8 only with live Nodes, except for names that no label can hold (D15)."""
    return in_order(_content(snapshot, reach, options))


def publish_problems(snapshot: Snapshot, reach: Reach) -> tuple[SnapshotProblem, ...]:
    """Rule 14: a standard region or zone that is not on the live Node already."""
    return in_order(_published(snapshot, reach))


def tolerated_nodes(snapshot: Snapshot, reach: Reach, *, options: Options) -> tuple[str, ...]:
    """Nodes of the snapshot that do not exist and are passed over (B4), by name."""
    if not options.tolerate_unknown_nodes or reach.selected is None:
        return ()
    return tuple(sorted(name for name in snapshot.nodes or {} if name not in reach.existing))


def publishable(snapshot: Snapshot, reach: Reach) -> Mapping[str, Labels]:
    """Labels that a sound revision gives each selected Node; Nodes without any are left out."""
    selected = reach.selected or {}
    found = {
        node: {key: value for key, value in labels.items() if key not in READ_ONLY_PARENTS}
        for node, labels in (snapshot.nodes or {}).items()
        if node in selected
    }
    return {node: labels for node, labels in found.items() if labels}


def is_writable(key: str, write_prefix: str) -> bool:
    """Whether a source may publish this key (rule 10)."""
    if key.startswith(f"{TOPOLOGY}/"):
        return key != PROFILE
    return bool(write_prefix) and key.startswith(write_prefix)


def _content(snapshot: Snapshot, reach: Reach, options: Options) -> Iterator[SnapshotProblem]:
    if snapshot.api_version != SNAPSHOT_API_VERSION:
        yield SnapshotProblem("6", f"apiVersion must be {SNAPSHOT_API_VERSION}", place=snapshot.place("apiVersion"))
    if is_blank(snapshot.revision):
        yield SnapshotProblem("7", "revision must not be blank", place=snapshot.place("revision"))
    if snapshot.nodes is None:
        if options.require_nodes:
            message = "nodes is missing; {} is how to say that there are none (require-nodes)"
            yield SnapshotProblem("B3", message, place=snapshot.place("nodes"))
        return
    tolerated = set(tolerated_nodes(snapshot, reach, options=options))
    for node, labels in snapshot.nodes.items():
        reason = "" if node in tolerated else _node_reason(node, reach)
        if reason:
            yield SnapshotProblem("8", f"node {node} {reason}", node, place=snapshot.place("nodes", node))
        yield from _label_problems(snapshot, node, labels, reach)
    for node, level, other in split_children(snapshot.nodes, reach.levels):
        key = reach.levels[level]
        message = f"{key}={snapshot.nodes[node][key]} has other parents on node {node} than on node {other}"
        yield SnapshotProblem("13", message, node, level, snapshot.place("nodes", node, key))


def _node_reason(node: str, reach: Reach) -> str:
    if len(node) > LONGEST_LABEL:
        return f"cannot be described: its name has more than {LONGEST_LABEL} characters and fits in no label"
    if reach.selected is None or node in reach.selected:
        return ""
    return "is not chosen by nodeSelector" if node in reach.existing else "does not exist"


def _label_problems(snapshot: Snapshot, node: str, labels: Labels, reach: Reach) -> Iterator[SnapshotProblem]:
    for key, value in labels.items():
        place = snapshot.place("nodes", node, key)
        level = reach.levels.index(key) if key in reach.levels else len(reach.levels)
        if key not in reach.levels:
            yield SnapshotProblem("9", f"{key} on node {node} is none of spec.levels", node, level, place)
        if key not in READ_ONLY_PARENTS and not is_writable(key, reach.write_prefix):
            yield SnapshotProblem("10", f"{key} on node {node} is not for a source to write", node, level, place)
        if not is_label_text(value):
            yield SnapshotProblem("11", f"the value of {key} on node {node} is no label value", node, level, place)
        missing = next((coarser for coarser in reach.levels[:level] if coarser not in labels), None)
        if key in reach.levels and missing is not None:
            yield SnapshotProblem("12", f"node {node} has {key} and not the coarser {missing}", node, level, place)


def split_children(nodes: Mapping[str, Labels], levels: tuple[str, ...]) -> Iterator[tuple[str, int, str]]:
    """Node, index of the level, and the Node with other parents, for each value that stands below two tuples of parents.

    Nodes are taken by name.  A Node that lacks a coarser level has no tuple and is not compared.
    """
    seen: dict[tuple[int, str], tuple[tuple[str, ...], str]] = {}
    for node in sorted(nodes):
        parents: tuple[str, ...] = ()
        for level, key in enumerate(levels):
            value = nodes[node].get(key)
            if value is None:
                break
            first, other = seen.setdefault((level, value), (parents, node))
            if first != parents:
                yield node, level, other
            parents = (*parents, value)


def _published(snapshot: Snapshot, reach: Reach) -> Iterator[SnapshotProblem]:
    for node, labels in (snapshot.nodes or {}).items():
        live = (reach.selected or {}).get(node)
        if live is None:
            continue
        for key in sorted(READ_ONLY_PARENTS & set(labels)):
            if live.get(key) != labels[key]:
                found = f"it carries {live[key]}" if key in live else "it carries none"
                message = f"{key}={labels[key]} is not on node {node}: {found}"
                level = reach.levels.index(key) if key in reach.levels else len(reach.levels)
                yield SnapshotProblem("14", message, node, level, snapshot.place("nodes", node, key))

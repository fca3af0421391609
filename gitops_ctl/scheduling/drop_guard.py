"""A revision that would take most labels away needs a word more (topology-scheduling.md, 12: B2, D41)."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot import SnapshotProblem

ALLOW_NODE_DROP: Final = "gitops-ctl.dev/allow-node-drop"
"""Annotation of a TopologySource, from Git: consent to one drop; the value is its digest."""


@dataclass(frozen=True, slots=True)
class Drop:
    """What a revision would remove.

    Attributes:
        owned: living Nodes whose NodeFeature the source owns.
        removed: those of them that would lose it, by name.
    """

    owned: int
    removed: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What a consent names: it fits this set of Nodes only."""
        text = "".join(f"{node}\n" for node in self.removed)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def drop_of(owned: Collection[str], *, wanted: Collection[str], existing: Collection[str]) -> Drop:
    """The drop from the Nodes with a NodeFeature to those that shall have one; Nodes that left the cluster do not count."""
    living = set(owned) & set(existing)
    return Drop(len(living), tuple(sorted(living - set(wanted))))


def drop_problem(drop: Drop, *, consent: str, options: Options) -> SnapshotProblem | None:
    """Why the drop is refused; None when it is small, agreed to, or the guard is off."""
    removed = len(drop.removed)
    is_large = removed * 100 > drop.owned * options.snapshot_drop_percent and removed >= options.snapshot_drop_nodes
    if options.snapshot_drop_percent >= 100 or not is_large or consent == drop.digest:
        return None
    message = (
        f"would remove {removed} of {drop.owned} NodeFeatures (snapshot-drop-percent, snapshot-drop-nodes); "
        f"to agree, annotate the source with {ALLOW_NODE_DROP}: {drop.digest}"
    )
    return SnapshotProblem("B2", message)

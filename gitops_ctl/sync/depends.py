"""Order between units: `spec.dependsOn` (gitops.md, section 8).  Pure."""

from collections.abc import Callable, Mapping, Sequence

from gitops_ctl.core.conditions import is_true
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, int_at, object_at, text_at

Trees = Callable[[NamespacedName], JsonObject | None]
"""Finds a Sync by its key."""


def waits_for(names: Sequence[str], *, namespace: str, find: Trees, newest: Callable[[JsonObject], str]) -> list[str]:
    """Why a unit must wait, one sentence per dependency that is not there yet.

    Args:
        names: Syncs of `namespace`.
        find: the Sync as it is stored.
        newest: the revision that a Sync should be at, empty when its source has none.
    """
    reasons = []
    for name in names:
        tree = find(NamespacedName(namespace, name))
        if tree is None:
            reasons.append(f"Sync {name} does not exist")
        elif not is_ready(tree, revision=newest(tree)):
            reasons.append(f"Sync {name} is not Ready at its newest revision")
    return reasons


def is_ready(tree: JsonObject, *, revision: str) -> bool:
    """Whether a Sync is Ready, for its present spec, at that revision."""
    status = object_at(tree, "status")
    return (
        is_true(status, "Ready")
        and bool(revision)
        and text_at(status, "lastAppliedRevision") == revision
        and int_at(status, "observedGeneration") == int_at(tree, "metadata", "generation")
    )


def cycle_of(start: str, *, edges: Callable[[str], Sequence[str]]) -> tuple[str, ...]:
    """The members of a dependency cycle through `start`, beginning with it; empty when there is none."""
    paths: Mapping[str, tuple[str, ...]] = {start: (start,)}
    seen: set[str] = {start}
    while paths:
        longer: dict[str, tuple[str, ...]] = {}
        for name, path in paths.items():
            for other in edges(name):
                if other == start:
                    return path
                if other not in seen:
                    seen.add(other)
                    longer[other] = (*path, other)
        paths = longer
    return ()

"""Which profile a Node has, and why (topology-scheduling.md, 6).

A profile is the shape of a hierarchy: a hash of its ordered level keys, never of their values.  Where the sources do not agree
on one hierarchy no tree is invented: the Node has its host name only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.scheduling.names import HOSTNAME, fnv64
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.selectors import Labels
from gitops_ctl.scheduling.snapshot_rules import split_children
from gitops_ctl.scheduling.source import TopologySource

_TIER: Final = re.compile(r"fabric\.topograph\.run/tier-([+-]?[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one source has to do with a Node.

    Attributes:
        source: its name.
        counts: whether it is a candidate.
        why: one phrase.
    """

    source: str
    counts: bool
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one Node, with its reasons.

    Attributes:
        levels: the hashed keys, coarsest first, host name last.
        source: the one source that counts; empty for none or several.
        gap: the first level of that source that the Node lacks; empty when it has all.
        candidates: every source, by name.
    """

    levels: tuple[str, ...]
    source: str = ""
    gap: str = ""
    candidates: tuple[Candidate, ...] = ()

    @property
    def name(self) -> str:
        """The value of the profile label."""
        return profile_name(self.levels)


def profile_name(levels: tuple[str, ...]) -> str:
    """The label value of these level keys."""
    return f"fnv64-{fnv64(*levels)}"


def profile_of(labels: Labels, sources: Iterable[TopologySource], *, options: Options) -> Profile:
    """The profile that a Node with these labels has (6.1); `sources` as they are at that moment (`TopologySource.at`)."""
    known = sorted(sources, key=lambda source: source.name)
    candidates = tuple(_candidate(source, labels, options) for source in known)
    counting = [source for source, found in zip(known, candidates, strict=True) if found.counts]
    if len(counting) != 1:
        return Profile((HOSTNAME,), candidates=candidates)
    levels = normalised(counting[0].levels, by_number=options.sort_fabric_tiers)
    kept = _without_gap(levels, labels)
    gap = levels[len(kept)] if len(kept) < len(levels) else ""
    return Profile((*kept, HOSTNAME), counting[0].name, gap, candidates)


def normalised(levels: tuple[str, ...], *, by_number: bool = False) -> tuple[str, ...]:
    """The levels, with each run of fabric tiers from coarse to fine (6.2).

    A run is turned around when its first number is below its last; with `by_number` (B8) it is sorted, largest first.
    """
    result: list[str] = []
    run: list[str] = []
    for level in levels:
        if _TIER.fullmatch(level):
            run.append(level)
            continue
        result += [*_coarse_first(run, by_number=by_number), level]
        run = []
    return (*result, *_coarse_first(run, by_number=by_number))


def order_note(levels: tuple[str, ...], *, options: Options) -> str:
    """What `sort-fabric-tiers` does to these levels; empty where it is off or changes nothing (B8)."""
    acts = options.sort_fabric_tiers and normalised(levels, by_number=True) != normalised(levels)
    return "fabric tiers are sorted by number (sort-fabric-tiers)" if acts else ""


def hierarchy_problem(source: TopologySource, nodes: Mapping[str, Labels], *, options: Options) -> str:
    """Why the labels of the selected Nodes are no tree of this nodeLabels source (6.3); empty when they are one.

    The first problem by Node, then by level.
    """
    levels = normalised(source.levels, by_number=options.sort_fabric_tiers)
    chosen = {name: labels for name, labels in nodes.items() if source.chooses(labels)}
    for name in sorted(chosen):
        kept = _without_gap(levels, chosen[name])
        finer = next((key for key in levels[len(kept) + 1 :] if chosen[name].get(key)), None)
        if finer is not None:
            return f"node {name} has {finer} and not the coarser {levels[len(kept)]}"
    present = {name: {key: labels[key] for key in _without_gap(levels, labels)} for name, labels in chosen.items()}
    for name, level, other in split_children(present, levels):
        return f"{levels[level]}={present[name][levels[level]]} has other parents on node {name} than on node {other}"
    return ""


def _candidate(source: TopologySource, labels: Labels, options: Options) -> Candidate:
    status, reason = source.ready
    if not source.chooses(labels):
        return Candidate(source.name, False, "its selector does not choose the Node")
    if status == "True":
        return Candidate(source.name, True, "Ready")
    if options.keep_profile_while_stale and (status, reason) == ("False", "Stale"):
        return Candidate(source.name, True, "Stale, and profiles are kept (keep-profile-while-stale)")
    if options.keep_profile_while_stale and source.outlives_its_spec_until is not None:
        return Candidate(source.name, True, "its spec has problems, and profiles are kept (keep-profile-while-stale)")
    return Candidate(source.name, False, f"not Ready: {reason or 'not looked at yet'}")


def _without_gap(levels: tuple[str, ...], labels: Labels) -> tuple[str, ...]:
    """The levels up to the first that the Node lacks; an empty value is a gap."""
    first = next((place for place, key in enumerate(levels) if not labels.get(key)), len(levels))
    return levels[:first]


def _coarse_first(run: list[str], *, by_number: bool) -> list[str]:
    numbers = [_tier(level) for level in run]
    if by_number:
        return [level for _, level in sorted(zip(numbers, run, strict=True), key=lambda pair: -pair[0])]
    return run[::-1] if run and numbers[0] < numbers[-1] else run


def _tier(level: str) -> int:
    found = _TIER.fullmatch(level)
    return int(found[1]) if found is not None else 0

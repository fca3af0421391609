"""Which Nodes of a pool are still on their way to their profile and labels (topology-scheduling.md, 7.5, D36).

A plan waits for them, so that a wave of changes gives one plan and one drain.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.selectors import Labels

PATIENCE_S: Final = 60.0
"""Seconds after the last write of a NodeFeature from which on its labels are waited for no longer: NFD may be configured to refuse them."""


@dataclass(frozen=True, slots=True)
class Published:
    """The labels of one NodeFeature of a Ready writing source, and until when they are waited for."""

    node: str
    labels: Labels
    awaited_until_s: float


@dataclass(frozen=True, slots=True)
class Settling:
    """What the Nodes of a pool lack.

    Attributes:
        lacking: Node and what it lacks, by name; a plan waits for these.
        given_up: the same, for labels that are waited for no longer: a Warning event each.
    """

    lacking: tuple[tuple[str, str], ...] = ()
    given_up: tuple[tuple[str, str], ...] = ()


def settling(
    pool: Mapping[str, Labels], *, profiles: Mapping[str, str], published: Iterable[Published], now_s: float
) -> Settling:
    """Judge the Nodes of a pool.

    Args:
        pool: the Nodes that count, without those that have a deletion mark: they are settled.
        profiles: the profile that each Node has to have now.
        now_s: by the clock of `published`.
    """
    lacking = dict(_wrong_profiles(pool, profiles))
    given_up: dict[str, str] = {}
    for one in sorted(published, key=lambda item: item.node):
        missing = _missing(pool.get(one.node), one.labels)
        if not missing:
            continue
        if now_s >= one.awaited_until_s:
            given_up[one.node] = missing
        else:
            lacking.setdefault(one.node, missing)
    return Settling(tuple(sorted(lacking.items())), tuple(sorted(given_up.items())))


def patience_s(age_s: float | None) -> float:
    """Seconds for which the labels of a NodeFeature are waited for from now on; never more than the whole window.

    Args:
        age_s: of its last write, which the clocks of two machines say; None for one that was seen as it came: it is new, whatever they say.
    """
    return PATIENCE_S if age_s is None else min(max(PATIENCE_S - age_s, 0.0), PATIENCE_S)


def _wrong_profiles(pool: Mapping[str, Labels], profiles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for node, labels in pool.items():
        if node in profiles and labels.get(PROFILE) != profiles[node]:
            yield node, f"{PROFILE}={profiles[node]}"


def _missing(labels: Labels | None, due: Labels) -> str:
    if labels is None:
        return ""
    return ", ".join(f"{key}={value}" for key, value in sorted(due.items()) if labels.get(key) != value)

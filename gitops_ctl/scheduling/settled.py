"""Which Nodes of a pool are still on their way to their profile and labels (topology-scheduling.md, 7.5, D36).

A plan waits for them, so that a wave of changes gives one plan and one drain.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.scheduling.names import PROFILE
from gitops_ctl.scheduling.selectors import Labels

PATIENCE: Final = timedelta(seconds=60)
"""After the last write of a NodeFeature its labels are waited for no longer: NFD may be configured to refuse them."""


@dataclass(frozen=True, slots=True)
class Published:
    """The labels of one NodeFeature of a Ready writing source, and when it was written last."""

    node: str
    labels: Labels
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Settling:
    """What the Nodes of a pool lack.

    Attributes:
        lacking: Node and what it lacks, by name; a plan waits for these.
        given_up: the same, for labels that are waited for no longer: a Warning event each.
        due_at: when the first wait for a label ends; None when none is waited for.
    """

    lacking: tuple[tuple[str, str], ...] = ()
    given_up: tuple[tuple[str, str], ...] = ()
    due_at: datetime | None = None


def settling(
    pool: Mapping[str, Labels], *, profiles: Mapping[str, str], published: Iterable[Published], now: datetime
) -> Settling:
    """Judge the Nodes of a pool.

    Args:
        pool: the Nodes that count, without those that have a deletion mark: they are settled.
        profiles: the profile that each Node has to have now.
    """
    lacking = dict(_wrong_profiles(pool, profiles))
    given_up: dict[str, str] = {}
    due: list[datetime] = []
    for one in sorted(published, key=lambda item: item.node):
        missing = _missing(pool.get(one.node), one.labels)
        if not missing:
            continue
        if now >= one.written_at + PATIENCE:
            given_up[one.node] = missing
        else:
            lacking.setdefault(one.node, missing)
            due.append(one.written_at + PATIENCE)
    return Settling(tuple(sorted(lacking.items())), tuple(sorted(given_up.items())), min(due, default=None))


def _wrong_profiles(pool: Mapping[str, Labels], profiles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for node, labels in pool.items():
        if node in profiles and labels.get(PROFILE) != profiles[node]:
            yield node, f"{PROFILE}={profiles[node]}"


def _missing(labels: Labels | None, due: Labels) -> str:
    if labels is None:
        return ""
    return ", ".join(f"{key}={value}" for key, value in sorted(due.items()) if labels.get(key) != value)

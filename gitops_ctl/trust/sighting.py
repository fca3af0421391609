"""The first-seen time of any commit: that of the oldest listed tip that contains it (gitops.md, section 4.5, "First seen")."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.firstseen import FirstSeen, SeenTip

_LOOK_BACK = 200


class Times:
    """First-seen times of the commits of one pass, worked out as far as they are asked for.

    Args:
        store: the objects.
        first_seen: the listed tips.
        now: for a commit that no listed tip contains.
        ranges: sets of commits, the ones most asked for first; each is worked out at the first question about it.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        first_seen: FirstSeen,
        now: datetime,
        ranges: Sequence[Callable[[], frozenset[str]]],
    ) -> None:
        self._store = store
        self._first_seen = first_seen
        self._now = now
        self._ranges = list(ranges)
        self._known: list[tuple[frozenset[str], Mapping[str, datetime]]] = []

    def of(self, commit: str) -> datetime:
        """When the commit was first seen."""
        for members, times in self._known:
            if commit in members:
                return times.get(commit, self._now)
        if not self._ranges:
            return self._now
        members = self._ranges.pop(0)()
        self._known.append((members, times_of(self._store, commits=members, first_seen=self._first_seen)))
        return self.of(commit)


def times_of(store: ObjectStore, *, commits: frozenset[str], first_seen: FirstSeen) -> Mapping[str, datetime]:
    """The time of each of the commits that a listed tip contains; the others were never seen before.

    Each commit is visited once, whatever the number of tips.
    """
    times: dict[str, datetime] = {}
    entries = _entries(store, first_seen.tips, commits=commits)
    for seen in first_seen.tips:
        waiting = list(entries[seen.tip])
        while waiting:
            commit = waiting.pop()
            if commit in times or commit not in commits:
                continue
            times[commit] = seen.at
            waiting.extend(store.links(commit).parents)
    return times


def _entries(store: ObjectStore, tips: Sequence[SeenTip], *, commits: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Where the history of each tip enters the commits.

    A tip outside them is older than all of them, or was rewritten; a short look suffices, since a time that is missed only
    errs towards later.
    """
    passed: set[str] = set()
    found: dict[str, Sequence[str]] = {}
    for seen in reversed(tips):
        inside = seen.tip in commits
        found[seen.tip] = [seen.tip] if inside else _entries_into(store, seen.tip, commits=commits, passed=passed)
    return found


def _entries_into(store: ObjectStore, tip: str, *, commits: frozenset[str], passed: set[str]) -> Sequence[str]:
    found: list[str] = []
    waiting = deque([tip])
    for _ in range(_LOOK_BACK):
        if not waiting:
            break
        commit = waiting.popleft()
        if commit in passed or not store.contains(commit):
            continue
        passed.add(commit)
        parents = _parents(store, commit)
        found.extend(parent for parent in parents if parent in commits)
        waiting.extend(parent for parent in parents if parent not in commits)
    return found


def _parents(store: ObjectStore, commit: str) -> Sequence[str]:
    """None for an object that cannot be read as a commit: it was a tip once, and its verdict was given then."""
    try:
        return store.links(commit).parents
    except Refused as error:
        if error.code is ErrorCode.REPOSITORY_DAMAGED:
            raise
        return ()

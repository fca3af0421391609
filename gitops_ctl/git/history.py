"""Walks through commits by their raw parents.

Rules (gitops.md, sections 2.2, 4.1 A2 and 4.3):
  * Parents come from the raw bytes.  Where a shallow copy ends, a parent is *missing*, not absent: libraries show such a
    commit as a root, and an answer built on that could accept what was never judged.
  * An answer that needs a missing commit is NotFound (HISTORY_UNAVAILABLE); it is never guessed.
  * Committer times only choose the order of the walk.  With wrong ones a walk is longer; it is not less careful.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.objects import Links
from gitops_ctl.git.store import ObjectStore

_LEFT: Final = 1
_RIGHT: Final = 2
_ONE_SIDE: Final = (_LEFT, _RIGHT)
_BOTH: Final = _LEFT | _RIGHT
_BELOW: Final = 4
"""Below a common ancestor that was found."""


def first_parent_line(store: ObjectStore, tip: str, *, stop: str) -> tuple[str, ...]:
    """Commits from just after `stop` to `tip` along first parents, oldest first; empty when they are the same.

    Raises:
        NotFound: HISTORY_UNAVAILABLE, the line leaves the local copy before `stop`.
        Refused: HISTORY_REWRITTEN when `tip` does not descend from `stop`; MALFORMED_OBJECT when it does so only through
            the second parent of a merge.
    """
    line: list[str] = []
    current = tip
    while current != stop:
        line.append(current)
        parents = store.links(current).parents
        if not parents:
            raise _not_on_line(store, tip, stop)
        current = parents[0]
    line.reverse()
    return tuple(line)


def is_ancestor(store: ObjectStore, old: str, new: str) -> bool:
    """Whether `old` is `new` or one of its ancestors.

    Raises:
        NotFound: HISTORY_UNAVAILABLE, `old` was not met and a part of the history is missing.
    """
    missing: str | None = None
    seen = {new}
    waiting = [(0, new)]
    while waiting:
        _, commit = heapq.heappop(waiting)
        if commit == old:
            return True
        links = _links_or_none(store, commit)
        if links is None:
            missing = missing or commit
            continue
        for parent in links.parents:
            if parent not in seen:
                seen.add(parent)
                # Newest first: a rewind guard asks about a commit close to the tip.
                heapq.heappush(waiting, (-_time(store, parent), parent))
    if missing is not None:
        raise _unavailable(missing)
    return False


def merge_bases(store: ObjectStore, a: str, b: str) -> tuple[str, ...]:
    """Best common ancestors of two commits, sorted by id; several in criss-cross histories, none in unrelated ones.

    Raises:
        NotFound: HISTORY_UNAVAILABLE, the local copy ends before the answer is certain.
    """
    return common_ancestors(store, (a,), (b,))


def common_ancestors(store: ObjectStore, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """As `merge_bases`, between everything reachable from `left` and everything reachable from `right`."""
    marks = _Painter(store).paint(left, right)
    found = sorted(commit for commit, mark in marks.items() if mark == _BOTH)
    if absent := [commit for commit in found if not store.contains(commit)]:
        raise _unavailable(absent[0])
    # Wrong committer times can leave an ancestor of another answer in the list.
    return tuple(
        commit for commit in found if not _is_below(store, commit, [other for other in found if other != commit])
    )


def commits_between(store: ObjectStore, old: str, new: str) -> tuple[str, ...]:
    """Commits reachable from `new` and not from `old`, each after its parents, `new` last.

    A commit whose place is uncertain because of wrong committer times is included: it is judged once more, never skipped.

    Raises:
        NotFound: HISTORY_UNAVAILABLE, a commit of the range, or a parent that would decide about one, is missing.
    """
    if old == new:
        return ()
    if not store.contains(old):
        raise _unavailable(old)
    if line := _line_without_merges(store, old, new):
        return line
    marks = _Painter(store).paint((new,), (old,))
    wanted = {commit for commit, mark in marks.items() if mark == _LEFT}
    return _parents_first(store, new, wanted) if new in wanted else ()


def _line_without_merges(store: ObjectStore, old: str, new: str) -> tuple[str, ...]:
    """The commits between the two, oldest first, where each of them has one parent: the usual case.  Otherwise empty.

    Also empty where the times say that `old` was passed, so that the way is never much longer than the answer.
    """
    line: list[str] = []
    oldest = _time(store, old)
    current = new
    while current != old:
        links = _links_or_none(store, current)
        if links is None or len(links.parents) != 1 or links.time < oldest:
            return ()
        line.append(current)
        current = links.parents[0]
    line.reverse()
    return tuple(line)


def missing_parents(store: ObjectStore, commits: Iterable[str]) -> tuple[str, ...]:
    """Parents of the given commits that the local copy does not have, sorted."""
    parents = {parent for commit in commits for parent in store.links(commit).parents}
    return tuple(sorted(parent for parent in parents if not store.contains(parent)))


def reachable(store: ObjectStore, tips: Iterable[str]) -> tuple[str, ...]:
    """Every commit of the local copy that is reachable from `tips`; it ends where the copy ends."""
    seen = {tip for tip in tips if store.contains(tip)}
    waiting = sorted(seen)
    while waiting:
        for parent in store.links(waiting.pop()).parents:
            if parent not in seen and store.contains(parent):
                seen.add(parent)
                waiting.append(parent)
    return tuple(seen)


class _Painter:
    """Marks commits down to where both sides have met, newest first.

    The walk ends when no commit waits that is marked for one side alone.  A missing commit stops it, unless it lies below
    a meeting point: what is there belongs to both sides in any case.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.marks: dict[str, int] = {}
        self._store = store
        self._heap: list[tuple[int, str]] = []
        self._waiting: set[str] = set()
        self._one_sided = 0

    def paint(self, left: tuple[str, ...], right: tuple[str, ...]) -> dict[str, int]:
        for commit in left:
            self._mark(commit, _LEFT)
        for commit in right:
            self._mark(commit, _RIGHT)
        while self._one_sided:
            _, commit = heapq.heappop(self._heap)
            self._waiting.discard(commit)
            flags = self.marks[commit]
            self._one_sided -= flags in _ONE_SIDE
            links = _links_or_none(self._store, commit)
            if links is None and not flags & _BELOW:
                raise _unavailable(commit)
            passed_on = flags | _BELOW if flags & _BOTH == _BOTH else flags
            for parent in links.parents if links else ():
                self._mark(parent, passed_on)
        return self.marks

    def _mark(self, commit: str, flags: int) -> None:
        known = self.marks.get(commit, 0)
        now = known | flags
        if now == known:
            return
        self.marks[commit] = now
        if commit in self._waiting:
            self._one_sided += (now in _ONE_SIDE) - (known in _ONE_SIDE)
            return
        self._one_sided += now in _ONE_SIDE
        self._waiting.add(commit)
        heapq.heappush(self._heap, (-_time(self._store, commit), commit))


def _is_below(store: ObjectStore, old: str, others: Sequence[str]) -> bool:
    """Whether the walk from all of them meets at `old`; needs no more history than the walk itself."""
    return _Painter(store).paint((old,), tuple(others)).get(old, 0) & _BOTH == _BOTH


def _parents_first(store: ObjectStore, tip: str, wanted: set[str]) -> tuple[str, ...]:
    ordered: list[str] = []
    done: set[str] = set()
    waiting = [(tip, False)]
    while waiting:
        commit, expanded = waiting.pop()
        if expanded:
            ordered.append(commit)
            continue
        if commit in done:
            continue
        done.add(commit)
        waiting.append((commit, True))
        waiting.extend(
            (parent, False)
            for parent in reversed(store.links(commit).parents)
            if parent in wanted and parent not in done
        )
    return tuple(ordered)


def _links_or_none(store: ObjectStore, commit: str) -> Links | None:
    try:
        return store.links(commit)
    except NotFound:
        return None


def _time(store: ObjectStore, commit: str) -> int:
    links = _links_or_none(store, commit)
    return links.time if links else 0


def _not_on_line(store: ObjectStore, tip: str, stop: str) -> Refused:
    if is_ancestor(store, stop, tip):
        return Refused(
            f"{tip} reaches {stop} only through the second parent of a merge",
            code=ErrorCode.MALFORMED_OBJECT,
            subject=tip,
            hint="rebase the branch, or merge the other way round",
        )
    return Refused(f"{tip} does not descend from {stop}", code=ErrorCode.HISTORY_REWRITTEN, subject=tip)


def _unavailable(commit: str) -> NotFound:
    return NotFound(f"the commit {commit} is not in the local copy", code=ErrorCode.HISTORY_UNAVAILABLE, subject=commit)

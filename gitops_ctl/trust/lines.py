"""How commits hang together: what a merge on the first-parent line brings in, and through which merge (gitops.md, 4.3, 4.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound
from gitops_ctl.git.history import commits_between, first_parent_line, is_ancestor
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.bounded import Bounded


@dataclass(frozen=True, slots=True)
class Line:
    """One commit of the first-parent line and everything that it brings in.

    Attributes:
        tip: the commit on the line.
        first_parent: the commit before it on the line, which is trusted already.
        merged: what the tip brings in, parents first, without the tip.
        brought_by: merged-in commit to the nearest merge that reaches it through a parent other than its first.
        rooted: commits, of `merged` and of parents of them and of the tip, that are or descend from the pinned root.
    """

    tip: str
    first_parent: str
    merged: tuple[str, ...] = ()
    brought_by: Mapping[str, str] = field(default_factory=dict)
    rooted: frozenset[str] = frozenset()

    def __contains__(self, commit: str) -> bool:
        return commit == self.tip or commit in self.brought_by


class Lines:
    """Lines of one history.

    Args:
        store: the objects.
        root: the pinned commit.
        tip: the newest commit that may be asked about.
    """

    def __init__(self, store: ObjectStore, *, root: str, tip: str) -> None:
        self._store = store
        self.root = root
        self.tip = tip
        self._known: Bounded[str, Line] = Bounded(256)
        self._side: dict[str, bool] = {}

    @cached_property
    def trunk(self) -> Mapping[str, int]:
        """Commits of the first-parent line from the root (place 0) to the tip.

        Raises:
            NotFound, Refused: as `git.history.first_parent_line`.
        """
        line = first_parent_line(self._store, self.tip, stop=self.root)
        return {commit: place for place, commit in enumerate((self.root, *line))}

    @cached_property
    def judged(self) -> frozenset[str]:
        """Every commit above the root, merged-in ones too."""
        return frozenset(commits_between(self._store, self.root, self.tip))

    def line_at(self, tip: str, *, first_parent: str) -> Line:
        """The line entry of a commit of the first-parent line.

        Raises:
            NotFound: a commit below a merge is missing.
        """
        if len(self._store.links(tip).parents) < 2:
            return Line(tip, first_parent)
        return self._known.get(tip) or self._known.put(tip, self._merge_at(tip, first_parent=first_parent))

    def line_of(self, commit: str) -> Line:
        """The line entry that contains any judged commit: the oldest commit of the trunk that reaches it.

        Raises:
            NotFound: the commit is not part of this history.
        """
        order = list(self.trunk)
        place = self.trunk.get(commit)
        if place is None:
            place = self._first_that_reaches(commit, order=order)
        if place == 0:
            raise NotFound(f"{commit} is not above the pinned root", code=ErrorCode.HISTORY_UNAVAILABLE)
        return self.line_at(order[place], first_parent=order[place - 1])

    def _first_that_reaches(self, commit: str, *, order: Sequence[str]) -> int:
        low, high = 0, len(order) - 1
        while low < high:
            middle = (low + high) // 2
            if is_ancestor(self._store, commit, order[middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _merge_at(self, tip: str, *, first_parent: str) -> Line:
        found = commits_between(self._store, first_parent, tip)
        merged = tuple(commit for commit in found if commit != tip)
        rooted = self._rooted(found)
        return Line(tip, first_parent, merged, _nearest_merges(self._store, found), rooted)

    def _rooted(self, found: Sequence[str]) -> frozenset[str]:
        members = set(found)
        rooted: set[str] = set()
        for commit in found:
            for parent in self._store.links(commit).parents:
                if parent not in members and self._descends(parent):
                    rooted.add(parent)
                if parent in rooted:
                    rooted.add(commit)
            self._side[commit] = commit in rooted
        return frozenset(rooted)

    def _descends(self, commit: str) -> bool:
        """Whether the commit is the root or above it.

        Below the root the local copy may end, so a missing commit is no answer yet: the other direction is asked then.
        """
        if commit in self.trunk:
            return True
        if commit not in self._side:
            try:
                self._side[commit] = is_ancestor(self._store, self.root, commit)
            except NotFound:
                if not is_ancestor(self._store, commit, self.root):
                    raise
                self._side[commit] = False
        return self._side[commit]


def _nearest_merges(store: ObjectStore, found: Sequence[str]) -> Mapping[str, str]:
    """Walk from children to parents; among several ways the shortest counts, then the one met first."""
    nearest: dict[str, tuple[int, str]] = {}
    members = set(found)
    for child in reversed(found):
        for place, parent in enumerate(store.links(child).parents):
            if parent not in members:
                continue
            if place > 0:
                way = (1, child)
            elif child in nearest:
                way = (nearest[child][0] + 1, nearest[child][1])
            else:
                continue
            if parent not in nearest or way[0] < nearest[parent][0]:
                nearest[parent] = way
    return {commit: merge for commit, (_, merge) in nearest.items()}

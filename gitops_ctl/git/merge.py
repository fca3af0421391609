"""What a merge commit changed by itself: the replay of the merge, compared with the tree that it has.

Rules (gitops.md, sections 4.1 A4 and 4.3):
  * A three-way merge per path, as `git merge` does it, without rename detection.
  * The base is the merge base, or the merged merge bases, taken from the raw parents; none means an empty base.
  * A path that both sides changed is merged by content when it is a regular file on all three sides.  Anything else that
    both sides changed differently is unresolved: whatever the merge commit holds there is its signer's own change.
  * Where this replay and Git's differ, the result is a difference, never a silent pass.

Trees are merged by their ids: what only one side touched is taken over without being opened, so a replay costs as much as
the two sides differ.  Nothing is written to the repository.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import pygit2
from pygit2.enums import FileMode

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.entries import RawEntry, TreeEntry, to_name
from gitops_ctl.git.history import common_ancestors
from gitops_ctl.git.objects import object_id_of
from gitops_ctl.git.store import EMPTY_TREE, ObjectStore
from gitops_ctl.git.tree import DEFAULT_LIMITS, PathChange, entry_at, tree_changes

MAX_CONTENT_BYTES: Final = 4 * 1024 * 1024
"""Larger files are not merged by content: the path is unresolved."""

MAX_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Merged texts that one replay remembers; the others are compared with both parents."""

LONGEST_SHOWN: Final = 200
"""Characters of a path in a message."""

MAX_BASE_DEPTH: Final = 8
"""Merge bases of merge bases of merge bases …"""

MAX_BASES: Final = 64
"""Merges of merge bases that one replay makes.  Each of them may have several bases again, so depth alone is no bound."""

Side: TypeAlias = tuple[bytes, bytes] | None
"""Mode and binary id of one path on one side."""

_TREE: Final = b"40000"
_REGULAR: Final = (b"100644", b"100755")


@dataclass(frozen=True, slots=True)
class Three:
    """One path on the three sides of a merge."""

    base: Side
    ours: Side
    theirs: Side

    def settled(self) -> tuple[bool, Side]:
        """Whether the path needs no merge, and its result."""
        if self.ours in (self.theirs, self.base):
            return True, self.theirs
        if self.theirs == self.base:
            return True, self.ours
        return False, None

    def are_trees(self) -> bool:
        """Whether a folder on every side that has the path, and on at least two of them."""
        sides = [side for side in (self.base, self.ours, self.theirs) if side is not None]
        return len(sides) > 1 and all(side[0] == _TREE for side in sides)

    def are_files(self) -> bool:
        return all(side is not None and side[0] in _REGULAR for side in (self.base, self.ours, self.theirs))


def replay_merge(
    store: ObjectStore, ours: str, theirs: str, *, actual_tree: str, texts: dict[str, bytes] | None = None
) -> tuple[PathChange, ...]:
    """Differences between the merge as replayed and the tree that the merge commit has, sorted by path; empty when clean.

    A change's `old` is what the replay gives at the path.  An unresolved path is compared with both parents: it has one
    change for each of them whose file the merge does not hold.

    Args:
        store: where both commits are, with everything back to their merge bases.
        ours: first parent.
        theirs: second parent.
        actual_tree: tree of the merge commit.
        texts: takes what the replay has merged by content and a change names as `old`, by blob id: no store has it.

    Raises:
        NotFound: HISTORY_UNAVAILABLE.
        Refused: MALFORMED_OBJECT (also for merge bases nested too deeply), TREE_LIMIT, REPOSITORY_DAMAGED.
    """
    replay = _Replay(store)
    base = replay.base_tree((ours,), (theirs,), 0)
    sides = (store.links(ours).tree, store.links(theirs).tree)
    merged = replay.merge(base, *sides)
    changes = set(tree_changes(replay, merged, actual_tree))
    for path in replay.unresolved:
        changes |= replay.own_choice(path, sides=sides, actual=actual_tree)
    if texts is not None:
        wanted = {change.old.id for change in changes if change.old is not None}
        texts.update({blob: text for blob, text in replay.texts.items() if blob in wanted})
    return tuple(sorted(changes, key=lambda change: (change.path, change.old.id if change.old else "")))


class _Replay:
    """Merges of trees; those that exist in no repository are kept here."""

    def __init__(self, store: ObjectStore) -> None:
        self.unresolved: set[str] = set()
        self.texts: dict[str, bytes] = {}
        self._kept = 0
        self._bases = 0
        self._store = store
        self._made: dict[str, tuple[RawEntry, ...]] = {EMPTY_TREE: ()}

    def tree(self, tree_id: str) -> tuple[RawEntry, ...]:
        made = self._made.get(tree_id)
        return self._store.tree(tree_id) if made is None else made

    def base_tree(self, left: tuple[str, ...], right: tuple[str, ...], depth: int) -> str:
        """Tree of the merge base of the two sides; several bases are merged into one, as Git's recursive merge does."""
        self._bases += 1
        if depth > MAX_BASE_DEPTH or self._bases > MAX_BASES:
            raise Refused(
                "the history is criss-crossed too deeply to replay the merge",
                code=ErrorCode.MALFORMED_OBJECT,
                subject=left[0],
                hint="rebase one of the two branches",
            )
        bases = common_ancestors(self._store, left, right)
        if not bases:
            return EMPTY_TREE
        merged = self._store.links(bases[0]).tree
        for position in range(1, len(bases)):
            below = self.base_tree(bases[:position], (bases[position],), depth + 1)
            merged = self.merge(below, merged, self._store.links(bases[position]).tree)
        return merged

    def merge(self, base: str, ours: str, theirs: str, prefix: str = "") -> str:
        """Id of the merged tree.  An unresolved path holds our side and is noted."""
        if prefix.count("/") > DEFAULT_LIMITS.depth:
            raise Refused(
                f"the trees hold folders more than {DEFAULT_LIMITS.depth} deep; the merge was not replayed",
                code=ErrorCode.TREE_LIMIT,
                subject=prefix[:LONGEST_SHOWN],
            )
        entries: dict[bytes, Side] = {}
        for name, three in self._by_name(base, ours, theirs):
            entries[name] = self._merge_path(three, prefix + to_name(name))
        return self._keep(entries)

    def own_choice(self, path: str, *, sides: tuple[str, str], actual: str) -> set[PathChange]:
        """What the merge commit holds at an unresolved path and below it, as changes of each of its parents.

        Of both, since a field that only the second parent changed would otherwise be set back unseen.
        """
        held = entry_at(self._store, actual, path)
        changes: set[PathChange] = set()
        for side in sides:
            changes |= self._changes_at(path, entry_at(self._store, side, path), held)
        return changes

    def _changes_at(self, path: str, old: TreeEntry | None, new: TreeEntry | None) -> set[PathChange]:
        folder, slash, name = path.rpartition("/")
        trees = [
            self._keep({name.encode(): (b"%o" % entry.mode, bytes.fromhex(entry.id))} if entry else {})
            for entry in (old, new)
        ]
        found = tree_changes(self, trees[0], trees[1])
        return {replace(each, path=folder + slash + each.path) for each in found}

    def _by_name(self, *trees: str) -> Iterator[tuple[bytes, Three]]:
        sides = [{name: (mode, oid) for mode, name, oid in self.tree(tree)} for tree in trees]
        for name in sorted(set().union(*sides)):
            yield name, Three(*(side.get(name) for side in sides))

    def _merge_path(self, three: Three, path: str) -> Side:
        done, result = three.settled()
        if done:
            return result
        if three.are_trees():
            base, ours, theirs = (
                side[1].hex() if side else EMPTY_TREE for side in (three.base, three.ours, three.theirs)
            )
            merged = self.merge(base, ours, theirs, f"{path}/")
            return None if merged == EMPTY_TREE else (_TREE, bytes.fromhex(merged))
        result = self._merge_content(three, path) if three.are_files() else None
        if result is None:
            self.unresolved.add(path)
            return three.ours
        return result

    def _merge_content(self, three: Three, path: str) -> Side:
        """The merged file, or None when a person has to decide."""
        sides = [side for side in (three.base, three.ours, three.theirs) if side is not None]
        if any(not self._is_mergeable(oid.hex()) for _, oid in sides):
            return None
        base, ours, theirs = (
            pygit2.IndexEntry(path, pygit2.Oid(raw=oid), FileMode(int(mode, 8))) for mode, oid in sides
        )
        try:
            result = self._store.repository.merge_file_from_index(base, ours, theirs)
        except UnicodeDecodeError:
            return None
        if not result.automergeable:
            return None
        text = result.contents.encode()
        merged = object_id_of("blob", text)
        self._kept += len(text)
        if self._kept <= MAX_KEPT_BYTES:
            self.texts[merged] = text
        return b"%o" % result.mode, bytes.fromhex(merged)

    def _is_mergeable(self, blob_id: str) -> bool:
        # Content merged for a base exists in no repository.  pygit2 cuts a merged text at its first NUL byte.
        return (
            self._store.contains(blob_id)
            and self._store.size(blob_id) <= MAX_CONTENT_BYTES
            and b"\0" not in self._store.blob(blob_id)
        )

    def _keep(self, entries: dict[bytes, Side]) -> str:
        present = [(side[0], name, side[1]) for name, side in entries.items() if side is not None]
        present.sort(key=lambda entry: entry[1] + b"/" if entry[0] == _TREE else entry[1])
        tree_id = object_id_of("tree", b"".join(b"%s %s\0%s" % entry for entry in present))
        self._made[tree_id] = tuple(present)
        return tree_id

"""Walks of trees and differences between them.

Rules:
  * Equal tree ids are equal trees: a subtree is opened only where the two sides differ.
  * No rename detection: a moved file is a deletion and an addition (gitops.md, section 4.3).
  * A change of mode, to symlink or to submodule is a change of that path.
  * Every walk is bounded in entries, depth and bytes: 25 objects can describe a billion files (engineering.md, section 4.4).
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.git.entries import DIRECTORY, RawEntry, TreeEntry, to_entry, to_name
from gitops_ctl.git.store import EMPTY_TREE, ObjectStore

_DIRECTORY_MODE: Final = b"40000"


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Bounds of one walk.

    Attributes:
        entries: files and folders.
        depth: folders inside each other.
        bytes: sum of the file sizes.
    """

    entries: int = 200_000
    depth: int = 64
    bytes: int = 1024**3


@dataclass(frozen=True, slots=True)
class PathChange:
    """One file that differs; `old` is None for an addition, `new` for a deletion.  Folders never appear."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


class FileEntry(NamedTuple):
    """One file, symlink or submodule of a tree; `path` is whole, from the root."""

    path: str
    mode: int
    id: str


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder at one path: its entries in Git's order, of which an inner folder is (id, prefix)."""

    items: tuple[FileEntry | tuple[str, str], ...]
    bytes: int


class KnownFolders:
    """Folders that were walked before; a commit that changes one file reads the folders on the way to it.

    For one thread at a time.  The oldest folders go when more than `limit` entries are known.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self._limit = limit
        self._entries = 0
        self._folders: OrderedDict[tuple[str, str], _Folder] = OrderedDict()

    def find(self, tree: str, prefix: str) -> _Folder | None:
        """The folder `tree` at `prefix`, as far as it is known."""
        found = self._folders.get((tree, prefix))
        if found is not None:
            self._folders.move_to_end((tree, prefix))
        return found

    def keep(self, tree: str, prefix: str, folder: _Folder) -> None:
        self._folders[(tree, prefix)] = folder
        self._entries += len(folder.items)
        while self._entries > self._limit and len(self._folders) > 1:
            self._entries -= len(self._folders.popitem(last=False)[1].items)


class TreeReader(Protocol):
    """Where trees come from: an `ObjectStore`, or one with trees in memory beside it."""

    def tree(self, tree_id: str) -> tuple[RawEntry, ...]: ...


DEFAULT_LIMITS: Final = TreeLimits()


class _Budget:
    """Counts what a walk has seen."""

    def __init__(self, limits: TreeLimits) -> None:
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def enter(self, path: str, depth: int, entries: int) -> None:
        self._entries += entries
        if self._entries > self._limits.entries:
            raise _over(path, f"more than {self._limits.entries} entries")
        if depth > self._limits.depth:
            raise _over(path, f"folders more than {self._limits.depth} deep")

    def add_bytes(self, path: str, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise _over(path, f"more than {self._limits.bytes} bytes in files")


def tree_changes(
    store: TreeReader, old: str | None, new: str | None, *, limits: TreeLimits = DEFAULT_LIMITS
) -> tuple[PathChange, ...]:
    """Every file that differs between two trees, sorted by path.

    Args:
        store: where both trees are.
        old, new: tree ids; None stands for the empty tree.
        limits: bounds of the walk; only trees that differ count.

    Raises:
        NotFound: a tree is missing.
        Refused: TREE_LIMIT, MALFORMED_OBJECT or REPOSITORY_DAMAGED.
    """
    changes: list[PathChange] = []
    _compare(store, (old or EMPTY_TREE, new or EMPTY_TREE), "", changes, _Budget(limits))
    changes.sort(key=lambda change: change.path)
    return tuple(changes)


def _compare(store: TreeReader, pair: tuple[str, str], prefix: str, changes: list[PathChange], budget: _Budget) -> None:
    before, after = store.tree(pair[0]), store.tree(pair[1])
    if len(before) == len(after):  # most often the same names: entries that are equal in place need no set
        unequal = [both for both in zip(before, after, strict=True) if both[0] != both[1]]
        before, after = tuple(each for each, _ in unequal), tuple(each for _, each in unequal)
    gone, come = set(before).difference(after), set(after).difference(before)
    budget.enter(prefix, prefix.count("/"), len(gone) + len(come))
    old = {name: to_entry((mode, name, oid)) for mode, name, oid in gone}
    new = {name: to_entry((mode, name, oid)) for mode, name, oid in come}
    for name in old.keys() | new.keys():
        left, right = old.get(name), new.get(name)
        path = prefix + to_name(name)
        left_tree = left.id if left is not None and left.mode == DIRECTORY else None
        right_tree = right.id if right is not None and right.mode == DIRECTORY else None
        if left_tree or right_tree:
            _compare(store, (left_tree or EMPTY_TREE, right_tree or EMPTY_TREE), f"{path}/", changes, budget)
        left_file = None if left_tree else left
        right_file = None if right_tree else right
        if left_file or right_file:
            changes.append(PathChange(path, left_file, right_file))


def walk_tree(
    store: ObjectStore,
    tree: str,
    *,
    path: str = "",
    limits: TreeLimits = DEFAULT_LIMITS,
    known: KnownFolders | None = None,
) -> Iterator[FileEntry]:
    """Files, symlinks and submodules below `path`, depth first in Git's order; nothing is followed.

    Args:
        store: where the tree is.
        tree: id of the root tree.
        path: folder to start in, or one file; empty for the root.  Nothing there yields nothing.
        limits: bounds of the walk.
        known: folders of earlier walks; those of this one are added.

    Raises:
        NotFound: an object is missing.
        Refused: TREE_LIMIT, MALFORMED_OBJECT or REPOSITORY_DAMAGED.
    """
    start = entry_at(store, tree, path)
    if start is None:
        return
    place = path.strip("/")
    if start.mode == DIRECTORY:
        walk = _Walk(store, _Budget(limits), KnownFolders() if known is None else known)
        yield from walk.below(start.id, f"{place}/" if place else "", 0)
    else:
        yield FileEntry(place, start.mode, start.id)


@dataclass(frozen=True, slots=True)
class _Walk:
    store: ObjectStore
    budget: _Budget
    known: KnownFolders

    def below(self, tree: str, prefix: str, depth: int) -> Iterator[FileEntry]:
        folder = self.known.find(tree, prefix)
        if folder is None:
            raw = self.store.tree(tree)
            self.budget.enter(prefix, depth, len(raw))
            folder = self._read(raw, prefix)
            self.known.keep(tree, prefix, folder)
        else:
            self.budget.enter(prefix, depth, len(folder.items))
        self.budget.add_bytes(prefix, folder.bytes)
        for item in folder.items:
            if isinstance(item, FileEntry):
                yield item
            else:
                yield from self.below(*item, depth + 1)

    def _read(self, raw: Iterable[RawEntry], prefix: str) -> _Folder:
        items: list[FileEntry | tuple[str, str]] = []
        size = 0
        for entry in map(to_entry, raw):
            if entry.mode == DIRECTORY:
                items.append((entry.id, f"{prefix}{entry.name}/"))
                continue
            if entry.is_file:
                size += self.store.size(entry.id)
            items.append(FileEntry(prefix + entry.name, entry.mode, entry.id))
        return _Folder(tuple(items), size)


def entry_at(store: TreeReader, tree: str, path: str) -> TreeEntry | None:
    """The entry at `path` (slashes at its ends do not count), None when nothing is there; the root itself for an empty path.

    Raises:
        NotFound: an object is missing.
        Refused: MALFORMED_OBJECT or REPOSITORY_DAMAGED.
    """
    found = TreeEntry("", DIRECTORY, tree)
    for name in path.strip("/").split("/") if path.strip("/") else ():
        if found.mode != DIRECTORY:
            return None
        wanted = name.encode(errors="surrogatepass")
        for raw in store.tree(found.id):
            # A readable name differs from the stored one only where it holds an escape.
            if raw[1] == wanted or ("\\" in name and to_entry(raw).name == name):
                found = to_entry(raw)
                break
        else:
            return None
    return found


def _over(path: str, what: str) -> Refused:
    return Refused(
        f"the tree holds {what}; the walk stopped in {path or '/'!r}", code=ErrorCode.TREE_LIMIT, subject=path or "/"
    )

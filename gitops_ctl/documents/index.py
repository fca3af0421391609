"""All documents of one revision.

Parsed files are kept by blob id, so a commit that changes one file parses one file.  The newest whole sets are kept too: a
source asks for a revision when it judges it, and a Sync asks for the same one a moment later.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from gitops_ctl.documents.collection import DocumentSet, FileReader, assemble, first_errors, load_directory
from gitops_ctl.documents.loader import Loaded, LoadLimits, load
from gitops_ctl.documents.tree import TreeFile
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import DEFAULT_LIMITS, KnownFolders, TreeLimits, walk_tree

__all__ = ["DocumentCache", "DocumentSet", "first_errors", "load_directory", "load_set"]

SETS: Final = 4
"""Whole sets that are kept; they share their documents with the parsed files."""


@dataclass(frozen=True, slots=True)
class _Kept:
    found: DocumentSet
    limits: TreeLimits

    def within(self, limits: TreeLimits) -> bool:
        mine = self.limits
        return mine.entries <= limits.entries and mine.depth <= limits.depth and mine.bytes <= limits.bytes


class DocumentCache:
    """Parsed files by blob and path, the least recently used ones dropped beyond `limit_bytes` of text.

    Several threads may share one: a file that two of them ask for at once may be parsed twice.
    """

    def __init__(self, *, limit_bytes: int = 64 * 2**20) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str], tuple[Loaded, int]] = OrderedDict()
        self._sets: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self.folders = KnownFolders()
        self.walking = Lock()
        """Held by whoever walks a tree with `folders`."""
        self.parsed = 0
        """How many files were parsed, not found."""
        self.dropped = 0
        """How many files had to make room for others."""

    def load(self, *, file: str, blob: str, read: Callable[[], bytes], limits: LoadLimits) -> Loaded:
        """The parsed file; `read` is only called when it is not known."""
        key = (blob, file)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        data = read()
        loaded = load(data, file=file, blob=blob, limits=limits)
        with self._lock:
            self.parsed += 1
            self._keep(key, loaded, size=len(data))
        return loaded

    def known_set(self, key: tuple[object, ...], *, limits: TreeLimits) -> DocumentSet | None:
        """The set that was built from the same tree, when it was within these limits too."""
        with self._lock:
            kept = self._sets.get(key)
        return kept.found if kept is not None and kept.within(limits) else None

    def keep_set(self, key: tuple[object, ...], found: DocumentSet, *, limits: TreeLimits, dropped: int) -> None:
        """Keep a set that was built within `limits`, unless parsed files had to be dropped since there were `dropped`."""
        with self._lock:
            if self.dropped != dropped:
                return
            self._sets[key] = _Kept(found, limits)
            self._sets.move_to_end(key)
            if len(self._sets) > SETS:
                self._sets.popitem(last=False)

    def _keep(self, key: tuple[str, str], loaded: Loaded, *, size: int) -> None:
        _, before = self._entries.pop(key, (loaded, 0))
        self._entries[key] = (loaded, size)
        self._size += size - before
        while self._size > self._limit and len(self._entries) > 1:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._size -= dropped
            self.dropped += 1
            self._sets.clear()  # they would hold what was dropped


def load_set(
    store: ObjectStore,
    *,
    tree: str,
    path: str = "",
    cache: DocumentCache,
    limits: LoadLimits | None = None,
    tree_limits: TreeLimits = DEFAULT_LIMITS,
) -> DocumentSet:
    """The documents of one Git tree below `path`; slashes at its ends do not count.

    Raises:
        NotFound: the tree, an object in it, or the path is not there.
        Refused: the tree is malformed, or larger than `tree_limits` (gitops.md, section 22.1).
    """
    load_limits = limits or LoadLimits()
    folder = path.strip("/")
    key, dropped = (tree, folder, load_limits), cache.dropped
    known = cache.known_set(key, limits=tree_limits)
    if known is not None:
        return known
    with cache.walking:
        walked = walk_tree(store, tree, path=folder, limits=tree_limits, known=cache.folders)
        entries = [TreeFile(*entry) for entry in walked]

    def read(entry: TreeFile) -> bytes:
        return store.blob(entry.id)

    def load_one(entry: TreeFile) -> Loaded:
        return cache.load(file=entry.path, blob=entry.id, read=lambda: read(entry), limits=load_limits)

    found = assemble(FileReader(read, load_one), entries, path=folder, tree=tree)
    cache.keep_set(key, found, limits=tree_limits, dropped=dropped)
    return found

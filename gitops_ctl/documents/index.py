"""All documents of one revision.

Parsed files are kept by blob id, so a commit that changes one file parses one file.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from gitops_ctl.documents.collection import DocumentSet, FileReader, assemble, first_errors, load_directory
from gitops_ctl.documents.loader import Loaded, LoadLimits, load
from gitops_ctl.documents.tree import TreeFile
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import DEFAULT_LIMITS, TreeLimits, walk_tree

__all__ = ["DocumentCache", "DocumentSet", "first_errors", "load_directory", "load_set"]


class DocumentCache:
    """Parsed files by blob and path, the least recently used ones dropped beyond `limit_bytes` of text.

    Several threads may share one: a file that two of them ask for at once may be parsed twice.
    """

    def __init__(self, *, limit_bytes: int = 64 * 2**20) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str], tuple[Loaded, int]] = OrderedDict()
        self.parsed = 0
        """How many files were parsed, not found."""

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

    def _keep(self, key: tuple[str, str], loaded: Loaded, *, size: int) -> None:
        _, before = self._entries.pop(key, (loaded, 0))
        self._entries[key] = (loaded, size)
        self._size += size - before
        while self._size > self._limit and len(self._entries) > 1:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._size -= dropped


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
    entries = [
        TreeFile(entry.path, entry.mode, entry.id) for entry in walk_tree(store, tree, path=folder, limits=tree_limits)
    ]

    def read(entry: TreeFile) -> bytes:
        return store.blob(entry.id)

    def load_one(entry: TreeFile) -> Loaded:
        return cache.load(file=entry.path, blob=entry.id, read=lambda: read(entry), limits=load_limits)

    return assemble(FileReader(read, load_one), entries, path=folder, tree=tree)

"""Reads raw objects of one bare repository.

One `ObjectStore` per thread: libgit2 objects are not promised to be safe across threads.  libgit2 computes the hash of
every object that it reads and refuses one whose bytes do not fit, so a damaged store is noticed here.  Parsed trees and
commit links are kept, bounded, because judging a range reads the same ones again and again.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.entries import RawEntry, scan_tree
from gitops_ctl.git.objects import Links, RawCommit, RawTag, object_id_of, parse_commit, parse_links, parse_tag

EMPTY_TREE: Final = object_id_of("tree", b"")
"""Id of the tree without entries; it need not be stored."""

TREE_CACHE_ENTRIES: Final = 50_000
LIBRARY_CACHE_BYTES: Final = 2 * 2**20
"""Of libgit2, for all repositories of the process: what is read again and again is kept here, parsed."""

LINK_CACHE_COMMITS: Final = 200_000

_KINDS: Final = {ObjectType.COMMIT: "commit", ObjectType.TREE: "tree", ObjectType.BLOB: "blob", ObjectType.TAG: "tag"}

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class RawObject:
    """Kind (`commit`, `tree`, `blob`, `tag`) and stored bytes."""

    kind: str
    data: bytes


class ObjectStore:
    """The objects of the bare repository at `path`, as they were when it was opened or later."""

    def __init__(self, path: Path, repository: pygit2.Repository) -> None:
        self.path = path
        self.repository = repository
        self._objects = repository.odb
        self._trees = _Bounded[tuple[RawEntry, ...]](TREE_CACHE_ENTRIES)
        self._links = _Bounded[Links](LINK_CACHE_COMMITS)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open without looking at parent folders or at any configuration of the machine's users.

        Raises:
            Refused: REPOSITORY_DAMAGED, no repository is there or it cannot be read.
        """
        pygit2.settings.cache_max_size(LIBRARY_CACHE_BYTES)
        flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT | RepositoryOpenFlag.BARE
        try:
            return cls(path, pygit2.Repository(str(path), flags))
        except (pygit2.GitError, KeyError, OSError) as error:
            raise _damaged(f"no Git repository can be opened at {path}", error) from error

    def close(self) -> None:
        """Let go of the files.  The store must not be used any more."""
        self.repository.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, object_id: str) -> RawObject:
        """The object, whole.

        Raises:
            NotFound: HISTORY_UNAVAILABLE, the store does not have it.
            Refused: REPOSITORY_DAMAGED, its bytes cannot be read or are not those of this id.
        """
        try:
            kind, data = self._objects.read(object_id)
        except KeyError:
            raise _missing(object_id) from None
        except (pygit2.GitError, ValueError, OSError) as error:
            raise _damaged(f"the object {object_id} cannot be read", error) from error
        return RawObject(_KINDS[kind], data)

    def contains(self, object_id: str) -> bool:
        """Whether the store has the object."""
        return self._objects.exists(object_id)

    def size(self, object_id: str) -> int:
        """Bytes of the object, without reading all of it.

        Raises:
            NotFound: the store does not have it.
            Refused: REPOSITORY_DAMAGED.
        """
        try:
            return self._objects.read_header(object_id)[1]
        except KeyError:
            raise _missing(object_id) from None
        except (pygit2.GitError, ValueError, OSError) as error:
            raise _damaged(f"the object {object_id} cannot be read", error) from error

    def blob(self, object_id: str) -> bytes:
        """Content of a file.

        Raises:
            NotFound, Refused: as `read`; Refused MALFORMED_OBJECT when it is no blob.
        """
        return self._read_kind(object_id, "blob")

    def commit(self, object_id: str) -> RawCommit:
        """A commit in strict form.

        Raises:
            NotFound, Refused: as `read` and `objects.parse_commit`.
        """
        return parse_commit(object_id, self._read_kind(object_id, "commit"))

    def tag(self, object_id: str) -> RawTag:
        """An annotated tag in strict form.

        Raises:
            NotFound, Refused: as `read` and `objects.parse_tag`.
        """
        return parse_tag(object_id, self._read_kind(object_id, "tag"))

    def links(self, commit_id: str) -> Links:
        """Tree and parents of a commit of any form, from the raw bytes, also at the edge of a shallow copy.

        Raises:
            NotFound: the store does not have it.
            Refused: it is no commit, or damaged.
        """
        found = self._links.get(commit_id)
        if found is None:
            found = parse_links(commit_id, self._read_kind(commit_id, "commit"))
            self._links.put(commit_id, found, weight=1)
        return found

    def tree(self, tree_id: str) -> tuple[RawEntry, ...]:
        """Checked entries of one tree, in Git's own terms; `entries.to_entry` makes them readable.

        Raises:
            NotFound, Refused: as `read` and `entries.scan_tree`.
        """
        if tree_id == EMPTY_TREE:
            return ()
        found = self._trees.get(tree_id)
        if found is None:
            found = scan_tree(tree_id, self._read_kind(tree_id, "tree"))
            self._trees.put(tree_id, found, weight=len(found) + 1)
        return found

    def _read_kind(self, object_id: str, kind: str) -> bytes:
        found = self.read(object_id)
        if found.kind != kind:
            raise Refused(
                f"the object {object_id} is a {found.kind} where a {kind} is needed",
                code=ErrorCode.MALFORMED_OBJECT,
                subject=object_id,
            )
        return found.data


class _Bounded(Generic[Value]):
    """Least recently used values, up to a total weight."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()

    def get(self, key: str) -> Value | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: Value, *, weight: int) -> None:
        self._values[key] = (value, weight)
        self._weight += weight
        while self._weight > self._limit and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._weight -= dropped


def _missing(object_id: str) -> NotFound:
    return NotFound(
        f"the object {object_id} is not in the local copy", code=ErrorCode.HISTORY_UNAVAILABLE, subject=object_id
    )


def _damaged(what: str, error: Exception) -> Refused:
    return Refused(f"{what}: {error}", code=ErrorCode.REPOSITORY_DAMAGED)

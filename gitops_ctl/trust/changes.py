"""From changed paths to judged changes: which verb, on which path, for which document (gitops.md, sections 4.3 and 4.4).

Documents are compared by identity, not by path: one that leaves a path and appears at another in the same commit is one
document, and both paths need `edit`.  A file that is no known document has `edit`, or `delete` when it goes.  A document
that can no longer be read has gone: nothing slips out of judgement through a file that nobody can parse.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.documents.loader import Document, Loaded, LoadLimits
from gitops_ctl.documents.tree import is_document_name
from gitops_ctl.git.entries import TreeEntry
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import PathChange
from gitops_ctl.trust import kindverbs  # noqa: F401  importing it teaches the verbs of the product's kinds
from gitops_ctl.trust.rulebook import POLICY_KIND
from gitops_ctl.trust.verbs import WHOLE, Fields, authorised_fields, verbs_between

NO_BLOB = "0" * 40
"""Stands for a file that goes, also in a Consent."""

_NOTHING = Loaded((), ())
_Name: TypeAlias = tuple[ObjectId, str]
_Placed: TypeAlias = tuple[str, Document]


@dataclass(frozen=True, slots=True)
class Change:
    """What one rule decides about.

    Attributes:
        path: the file.
        verb: what its change means.
        kind: of the document; None for a file that holds none.
        object: the document; None for a file that holds none.
        fields: JSON pointers of what changed; the empty pointer is the whole document.
        blob: id of the resulting file, `NO_BLOB` when it goes.
    """

    path: str
    verb: str
    kind: GroupKind | None
    object: ObjectId | None = field(compare=False)
    fields: tuple[str, ...] = field(compare=False)
    blob: str


class BlobDocuments:
    """The documents of single files of a store, parsed once per blob."""

    def __init__(self, store: ObjectStore, *, cache: DocumentCache, policy_path: str) -> None:
        self._store = store
        self._cache = cache
        self._policy_path = policy_path
        self._limits = LoadLimits()
        self._lent: Mapping[str, bytes] = {}

    def lend(self, texts: Mapping[str, bytes]) -> None:
        """Blobs that no store has, by id, until the next call: what the replay of a merge made."""
        self._lent = texts

    def of(self, path: str, entry: TreeEntry | None) -> Sequence[Document]:
        """Sound documents of the file; none for links, submodules, other suffixes and what is too large to read.

        Raises:
            NotFound, Refused: the blob cannot be read.
        """
        return self.loaded(path, entry).documents

    def loaded(self, path: str, entry: TreeEntry | None) -> Loaded:
        """The same with what is wrong in the file.

        Raises:
            NotFound, Refused: the blob cannot be read.
        """
        if entry is None or not entry.is_file or not (is_document_name(path) or path == self._policy_path):
            return _NOTHING
        blob = entry.id

        def read() -> bytes:
            lent = self._lent.get(blob)
            if (self._store.size(blob) if lent is None else len(lent)) > self._limits.file_bytes:
                raise _TooLargeError
            return self._store.blob(blob) if lent is None else lent

        try:
            return self._cache.load(file=path, blob=blob, read=read, limits=self._limits)
        except _TooLargeError:
            return _NOTHING


class _TooLargeError(Exception):
    """A file that is not read at all."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A changed file with both of its versions."""

    change: PathChange
    old: Loaded
    new: Loaded

    @property
    def adds_errors(self) -> bool:
        """Whether the new version has something unreadable that the old one had not: it may hold an object of somebody else."""
        return bool(self.new.problems) and bool(_errors(self.new) - _errors(self.old))

    @property
    def needs_edit(self) -> bool:
        """A change of mode is a change of the path, whatever its documents say."""
        old, new = self.change.old, self.change.new
        return old is not None and new is not None and old.mode != new.mode

    @property
    def kinds(self) -> Iterable[GroupKind | None]:
        """Kinds in the old or the new version, so that a rule by kind also decides about a comment in such a file."""
        both = (*self.old.documents, *self.new.documents)
        return dict.fromkeys(document.gvk.group_kind for document in both) or {None: None}


def _errors(loaded: Loaded) -> set[tuple[ErrorCode, str, str, ObjectId | None]]:
    return {(each.code, each.message, each.pointer, each.object) for each in loaded.problems if each.is_error}


def changes_of(documents: BlobDocuments, paths: Iterable[PathChange], *, policy_path: str) -> tuple[Change, ...]:
    """Every (path, verb, kind) of the changed paths, each once, by path.

    Where a rule may ask who the author is there is one for each document: they can have different authors.

    Raises:
        NotFound, Refused: a blob cannot be read.
    """
    changed = [
        _Read(change, documents.loaded(change.path, change.old), documents.loaded(change.path, change.new))
        for change in paths
    ]
    blobs = {each.change.path: each.change.new.id if each.change.new else NO_BLOB for each in changed}
    found: dict[tuple[str, str, GroupKind | None, ObjectId | None], Change] = {}
    told: set[str] = set()
    for path, kind, name, verbs in _document_changes(changed):
        for verb, pointers in verbs.items():
            whose = name if authorised_fields(kind, verb) is not None else None
            found.setdefault((path, verb, kind, whose), Change(path, verb, kind, name, pointers, blobs[path]))
            told.add(path)
    for each in changed:
        path = each.change.path
        if path == policy_path:
            found[(path, "trust", POLICY_KIND, None)] = Change(path, "trust", POLICY_KIND, None, (WHOLE,), blobs[path])
        elif path not in told or each.needs_edit or each.adds_errors:
            verb = "edit" if each.change.new is not None else "delete"
            for one in each.kinds:
                whole = Change(path, verb, one, None, (WHOLE,), blobs[path])
                found.setdefault((path, verb, one, None), whole)
    return tuple(sorted(found.values(), key=lambda change: change.path))


def _document_changes(changed: Sequence[_Read]) -> Iterator[tuple[str, GroupKind, ObjectId, Fields]]:
    """(path, kind, identity, verbs) of each document that differs; a moved one once for each of its two paths."""
    old = _by_name((each.change.path, document) for each in changed for document in each.old.documents)
    new = _by_name((each.change.path, document) for each in changed for document in each.new.documents)
    for name in dict.fromkeys((*old, *new)):
        for before, after in _pairs(old.get(name, []), new.get(name, [])):
            verbs = verbs_between(before[1].tree if before else None, after[1].tree if after else None)
            present = after or before
            assert present is not None
            sort, identity = present[1].gvk.group_kind, present[1].id
            if before and after and before[0] != after[0]:
                moved = dict(verbs)
                moved.setdefault("edit", (WHOLE,))
                yield before[0], sort, identity, {"edit": (WHOLE,)}
                yield after[0], sort, identity, moved
            elif verbs:
                yield present[0], sort, identity, verbs


def _by_name(placed: Iterable[_Placed]) -> Mapping[_Name, list[_Placed]]:
    """Grouped by identity; documents without a name, which only Git-only kinds may be, by their file too."""
    found: dict[_Name, list[_Placed]] = {}
    for path, document in placed:
        found.setdefault((document.id, "" if document.id.name else path), []).append((path, document))
    return found


def _pairs(old: Sequence[_Placed], new: Sequence[_Placed]) -> Iterator[tuple[_Placed | None, _Placed | None]]:
    """Old and new versions that belong together: those of one path first, then the rest in order."""
    left, right = list(old), list(new)
    for before in old:
        after = next((candidate for candidate in right if candidate[0] == before[0]), None)
        if after is not None:
            left.remove(before)
            right.remove(after)
            yield before, after
    for place in range(max(len(left), len(right))):
        yield (
            left[place] if place < len(left) else None,
            right[place] if place < len(right) else None,
        )

"""A set of documents and what is wrong in it, from whatever holds the files.

Objects are independent: an error holds the object of its document and stops prune, nothing else (gitops.md, section 5.2).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.charts import in_charts
from gitops_ctl.documents.ignore import parse_ignore
from gitops_ctl.documents.loader import Document, Loaded, LoadLimits, load
from gitops_ctl.documents.problem import Problem, in_reading_order
from gitops_ctl.documents.shape import GIT_ONLY_KINDS, Flaw
from gitops_ctl.documents.tree import Selection, TreeFile, is_ignore_file, select
from gitops_ctl.documents.worktree import control_files, scan

_GIT_ONLY_NAMES = frozenset(kind.kind for kind in GIT_ONLY_KINDS)


@dataclass(frozen=True)
class DocumentSet:
    """What one revision declares.

    Attributes:
        tree: id of the Git tree; empty for a folder.
        path: folder of the documents, empty for the root.
        documents: by file and place; each identity once.
        problems: errors, in reading order.
        warnings: warnings, in reading order.
        hidden: files that are left out by `.gitops-ctlignore`, by path.
        hidden_ids: the objects that these files declare: kept, never pruned for being hidden (gitops.md, section 5.1).
        hidden_broken: hidden files of which not every document could be read, so that they may declare more.
        git_only: trust policies and consents; checked, never applied.
    """

    tree: str
    path: str
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    hidden: tuple[str, ...] = ()
    hidden_ids: frozenset[ObjectId] = frozenset()
    hidden_broken: frozenset[str] = frozenset()
    git_only: tuple[Document, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[ObjectId, Document]:
        """The document of each identity."""
        return {document.id: document for document in self.documents}

    @cached_property
    def held(self) -> Mapping[ObjectId, Problem]:
        """Objects whose document has an error, with the first one."""
        return first_errors(self.problems)

    @cached_property
    def unreadable(self) -> Mapping[str, Problem]:
        """Files with an error that names no object: whatever came from them before is held too."""
        found: dict[str, Problem] = {}
        for problem in self.problems:
            if problem.object is None:
                found.setdefault(problem.file, problem)
        return found

    @property
    def declared(self) -> frozenset[ObjectId]:
        """Every identity that Git names, in a sound document or in a broken one."""
        return frozenset(self.by_id) | frozenset(self.held)


def first_errors(problems: Iterable[Problem]) -> Mapping[ObjectId, Problem]:
    """The first error of each object."""
    found: dict[ObjectId, Problem] = {}
    for problem in problems:
        if problem.object is not None and problem.is_error:
            found.setdefault(problem.object, problem)
    return found


def load_directory(root: Path, *, path: str = "", limits: LoadLimits | None = None) -> DocumentSet:
    """The documents of a folder on this machine below `root/path`; `.gitops-ctl` of the root is part of `git_only`.

    Raises:
        OSError: the folder cannot be read.
    """
    load_limits = limits or LoadLimits()
    entries = [TreeFile(entry.path, entry.mode) for entry in scan(root, path=path.strip("/"))]

    def read(entry: TreeFile) -> bytes:
        return (root / entry.path).read_bytes()

    def load_one(entry: TreeFile) -> Loaded:
        return load(read(entry), file=entry.path, limits=load_limits)

    return assemble(
        FileReader(read, load_one),
        entries,
        path=path.strip("/"),
        control=[TreeFile(entry.path, entry.mode) for entry in control_files(root)],
    )


@dataclass(frozen=True, slots=True)
class FileReader:
    """How the bytes and the documents of an entry are had."""

    read: Callable[[TreeFile], bytes]
    load: Callable[[TreeFile], Loaded]


def assemble(
    reader: FileReader, entries: Iterable[TreeFile], *, path: str, control: Iterable[TreeFile] = (), tree: str = ""
) -> DocumentSet:
    """Load the documents among the entries and put them together; `control` are trust policy and consents."""
    selection = select_documents(entries, path=path, read=reader.read)
    loaded = [reader.load(entry) for entry in (*selection.files, *control)]
    hidden = {entry.path: reader.load(entry) for entry in selection.hidden}
    found = [document for one in loaded for document in one.documents]
    git_only = [document for document in found if _is_git_only(document)]
    documents, repeated = split_repeated(
        [document for document in found if not _is_git_only(document)] if git_only else found
    )
    problems = in_reading_order(
        in_charts((*selection.problems, *(problem for one in loaded for problem in one.problems), *repeated))
    )
    return DocumentSet(
        tree=tree,
        path=path,
        documents=documents,
        problems=tuple(problem for problem in problems if problem.is_error),
        warnings=tuple(problem for problem in problems if not problem.is_error),
        hidden=tuple(hidden),
        hidden_ids=frozenset(document.id for one in hidden.values() for document in one.documents),
        hidden_broken=frozenset(
            file for file, one in hidden.items() if any(problem.is_error for problem in one.problems)
        ),
        git_only=tuple(git_only),
    )


def select_documents(
    entries: Iterable[TreeFile], *, path: str, read: Callable[[TreeFile], bytes]
) -> Selection[TreeFile]:
    """The documents among the entries, by the ignore files among them."""
    listed = list(entries)
    ignores = [
        parse_ignore(read(entry), folder=entry.path.rpartition("/")[0]) for entry in listed if is_ignore_file(entry)
    ]
    return select(listed, path=path, ignores=ignores)


def split_repeated(documents: Iterable[Document]) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The first declaration of each identity, and a problem for every other one (fault Y10)."""
    first: dict[ObjectId, Document] = {}
    problems: list[Problem] = []
    for document in documents:
        known = first.setdefault(document.id, document)
        if known is not document:
            message = f"{document.id} is declared twice, first in {known.file}:{known.line}"
            problems.append(document.problem(Flaw(ErrorCode.DUPLICATE_IDENTITY, message)))
    return tuple(first.values()), tuple(problems)


def _is_git_only(document: Document) -> bool:
    return document.id.kind in _GIT_ONLY_NAMES and document.id.group_kind in GIT_ONLY_KINDS

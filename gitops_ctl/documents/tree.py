"""Which files of a tree are documents (gitops.md, section 5.1).

`*.yaml`, `*.yml` and `*.json` under a path; names that begin with a dot are skipped; `.gitops-ctlignore` leaves files out.
Symlinks, submodules and odd names are reported, never followed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.foldedname import folded
from gitops_ctl.documents.ignore import IGNORE_FILE, IgnoreRules
from gitops_ctl.documents.problem import Problem, Severity

DOCUMENT_SUFFIXES: Final = (".yaml", ".yml", ".json")
CONTROL_FOLDER: Final = ".gitops-ctl"
"""Trust policy and consents lie here, at the root of the repository."""

LONGEST_PATH: Final = 4096
"""Characters of a path that statuses and inventories can name."""


class Entry(Protocol):
    """What is known of a file before it is read."""

    @property
    def path(self) -> str: ...

    @property
    def mode(self) -> int: ...


EntryT = TypeVar("EntryT", bound=Entry)


class TreeFile(NamedTuple):
    """One entry of a tree or a folder: what Git calls mode (octal text) and id; the id is empty outside of Git."""

    path: str
    mode: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class Selection(Generic[EntryT]):
    """The files of a path.

    Attributes:
        files: documents, by path.
        hidden: what would be a document, were it not ignored, by path.
    """

    files: tuple[EntryT, ...]
    hidden: tuple[EntryT, ...]
    problems: tuple[Problem, ...]


_DEEPEST: Final = 64
"""Folders of a path that are compared one by one with look-alikes; what is below is compared as a whole."""
_ODD: Final = (" /", "./", " \n", ".\n", "\\")
"""Ends of names that some file systems leave out, and the mark of a name that is shown with escapes."""

_FORMAT: Final = 0o170000
_REGULAR: Final = 0o100000
_SYMLINK: Final = 0o120000
_SUBMODULE: Final = 0o160000


def is_document_name(path: str) -> bool:
    """By the suffix; case counts, as everywhere in Git."""
    return path.endswith(DOCUMENT_SUFFIXES)


def is_ignore_file(entry: Entry) -> bool:
    """True for a `.gitops-ctlignore` in any folder that is a regular file."""
    return has_ignore_name(entry.path) and entry.mode & _FORMAT == _REGULAR


def has_ignore_name(path: str) -> bool:
    """By the name alone."""
    return path.endswith(IGNORE_FILE) and path.rpartition("/")[2] == IGNORE_FILE


def select(entries: Iterable[EntryT], *, path: str, ignores: Sequence[IgnoreRules]) -> Selection[EntryT]:
    """Sort the entries below `path` into documents, hidden ones and problems."""
    files: list[EntryT] = []
    hidden: list[EntryT] = []
    problems = [problem for rules in ignores for problem in rules.problems]
    by_folder = {rules.folder: rules for rules in ignores}
    for entry in sorted(entries, key=lambda entry: entry.path):
        if _is_skipped(entry.path, below=path):
            continue
        if _is_ignored(entry.path, by_folder):
            if is_document_name(entry.path):
                hidden.append(entry)
            continue
        problem = _path_problem(entry)
        if problem is not None:
            problems.append(problem)
        elif is_document_name(entry.path):
            files.append(entry)
    return Selection(tuple(files), tuple(hidden), (*problems, *_lookalikes(entry.path for entry in files)))


def _lookalikes(paths: Iterable[str]) -> Iterator[Problem]:
    """A warning at each file that some checkout takes for another one, or has in the folder of another one.

    Who may write in one of two such folders would write in both, in the eyes of whoever reads that checkout.
    """
    listed = list(paths)
    if _is_plain("\n".join(listed)):
        return  # as almost everywhere: each stands for itself, whatever the file system
    odd = [path for path in listed if not _is_plain(path)]
    known = _with_folders(set(listed).difference(odd))
    for path in odd:
        twin = _twin(path, known)
        if twin:
            message = f"some file systems take {path!r} for {twin!r}, or for a file in it"
            hint = "give one of the two another name"
            yield Problem(ErrorCode.PATH_REFUSED, message, path, severity="warning", hint=hint)


def _is_plain(text: str) -> bool:
    """Whether names, one or several in lines, are their own folded form."""
    return text.isascii() and text == text.lower() and not any(mark in f"{text}\n" for mark in _ODD)


def _with_folders(paths: Iterable[str]) -> dict[str, str]:
    """The paths and the folders of them, each under itself."""
    known = {path: path for path in paths}
    for folder in {path.rpartition("/")[0] for path in known}:
        end = 0
        for _ in range(_DEEPEST):
            end = folder.find("/", end + 1)
            part = folder[:end] if end > 0 else folder
            known[part] = part
            if end < 0:
                break
    return known


def _twin(path: str, known: dict[str, str]) -> str:
    """What the path, or a folder above it, is taken for; empty when it is the first of its form.  `known` learns it."""
    form, place = "", 0
    for segment in path.split("/", _DEEPEST):
        place += len(segment) + 1
        form = f"{form}/{folded(segment)}" if form else folded(segment)
        part = path[: place - 1]
        if known.setdefault(form, part) != part:
            return known[form]
    return ""


def _is_skipped(file: str, *, below: str) -> bool:
    if below and not file.startswith(f"{below}/"):
        return file != below
    inside = file[len(below) + 1 :] if below else file
    return inside.startswith(".") or "/." in inside


def _is_ignored(file: str, by_folder: dict[str, IgnoreRules]) -> bool:
    if not by_folder:
        return False
    folder = file
    while folder:
        folder = folder.rpartition("/")[0]
        rules = by_folder.get(folder)
        if rules is not None and rules.hides(file):
            return True
    return False


def _path_problem(entry: Entry) -> Problem | None:
    sound = entry.path.isprintable() and "\\" not in entry.path and len(entry.path) <= LONGEST_PATH
    if entry.mode & _FORMAT == _REGULAR and sound:
        return None
    name = entry.path.rpartition("/")[2]
    kind = {_SYMLINK: "a symlink", _SUBMODULE: "a submodule"}.get(entry.mode & _FORMAT)
    if kind is not None:
        # Without a document's suffix nothing that was declared can hide behind it.
        severity: Severity = "error" if is_document_name(name) else "warning"
        message = f"{kind} is not followed"
        return Problem(ErrorCode.PATH_REFUSED, message, entry.path, severity=severity)
    if is_document_name(name):
        hint = f"rename it to printable characters without a backslash, {LONGEST_PATH} with its folders"
        shown = entry.path.encode("unicode_escape").decode()[:LONGEST_PATH]
        return Problem(ErrorCode.PATH_REFUSED, "the name of the file is not printable or too long", shown, hint=hint)
    return None

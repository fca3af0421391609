"""The strict loader: from the bytes of one file to its objects and everything that is wrong in it.

A file is cut at its document marks before anything is parsed, so that one broken document never hides its neighbours
(fault Y02).  Lists are flattened (fault Y09).  Sizes and expansion are bounded (faults Y11, H21).  gitops.md, section 5.1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from gitops_ctl.core.canonical import digest
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.documents.charts import CHART_FILE, RENDER_FIRST
from gitops_ctl.documents.jsontree import read_json
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.positions import locate, scalar_text
from gitops_ctl.documents.problem import Problem
from gitops_ctl.documents.redaction import is_sensitive
from gitops_ctl.documents.shape import Flaw, Shaped, is_list, shape
from gitops_ctl.documents.yamltree import Finding, Tree, TreeLimits, read_tree

_MARK: Final = re.compile(rb"^(?:---|\.\.\.)(?=\s|\Z)", re.MULTILINE)
_BLANK: Final = re.compile(rb"(?:\s|#[^\n]*|---|\.\.\.)*\Z")
_DIRECTIVE: Final = re.compile(rb"^%", re.MULTILINE)
_BOM: Final = b"\xef\xbb\xbf"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_KUSTOMIZATION: Final = frozenset({"kustomization.yaml", "kustomization.yml"})
_LONGEST_QUOTE: Final = 60


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Bounds of one file.

    Attributes:
        file_bytes: a larger file is refused unread.
        document_bytes: a larger document is refused unread; the API server takes requests up to 3 MiB.
        objects: of one file, Lists flattened.
        list_depth: how deep Lists may lie in Lists.
        growth: how many times its own size each document may become when its aliases are written out.
        spare: bytes beyond that, which the documents of the file share: a bomb in each of many is one bomb (fault H21).
    """

    file_bytes: int = 16 * 2**20
    document_bytes: int = 4 * 2**20
    objects: int = 20_000
    list_depth: int = 4
    growth: int = 16
    spare: int = 2**18
    tree: TreeLimits = field(default_factory=TreeLimits)


@dataclass(frozen=True, eq=False)
class Document:
    """One object that Git declares.

    Attributes:
        index: place among the documents of the file that are not empty, from 1; the entries of a List share it.
        line: where it begins in the file, from 1.
        blob: id of the Git blob; empty outside of Git.
        tree: the object as it is applied: without status, without nulls.
        text: the bytes of the document, for places.
        offset: lines of the file before `text`.
        base: pointer of the object inside the document; not empty for an entry of a List.
        nulls: pointers of members that were written as null and are left out.
    """

    file: str
    index: int
    line: int
    blob: str
    tree: JsonObject
    id: ObjectId
    gvk: GroupVersionKind
    text: bytes = field(default=b"", repr=False)
    offset: int = 0
    base: str = ""
    nulls: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Over the canonical form of `tree`."""
        return digest(self.tree)

    def where(self, pointer: str = "") -> tuple[int, int]:
        """Line and column, from 1, of a pointer inside the object."""
        if not pointer and not self.base:
            return self.line, 1
        line, column = locate(self.text, self.base + pointer)
        return line + self.offset, column

    def problem(self, flaw: Flaw) -> Problem:
        """The finding with its place in the file."""
        line, column = self.where(flaw.pointer)
        return Problem(
            code=flaw.code,
            message=flaw.message,
            file=self.file,
            line=line,
            column=column,
            document=self.index,
            pointer=flaw.pointer,
            hint=flaw.hint or self._how_to_quote(flaw),
            severity=flaw.severity,
            object=self.id if self.tree else None,
        )

    def _how_to_quote(self, flaw: Flaw) -> str:
        """The text as it was written, in quotes; nothing for what could be a secret (fault Y05)."""
        if flaw.code is not ErrorCode.NOT_A_STRING or is_sensitive(self.tree, flaw.pointer):
            return ""
        text = scalar_text(self.text, self.base + flaw.pointer)
        return f'quote it: "{text}"' if text and len(text) <= _LONGEST_QUOTE else ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One file.  `documents` are the sound ones; what is broken is in `problems`, with its object where that is known."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def load(data: bytes, *, file: str, blob: str = "", limits: LoadLimits | None = None) -> Loaded:
    """Read one file; never raises."""
    limits = limits or LoadLimits()
    refusal = _refusal(data, file=file, limits=limits)
    if refusal is not None:
        return Loaded((), (refusal,))
    reading = _Reading(file=file, blob=blob, limits=limits)
    if file.endswith(".json"):
        if data.strip():
            reading.add(_Part(data.removeprefix(_BOM), 0), read_json(data.removeprefix(_BOM), limits=limits.tree))
    else:
        for part in _parts(data.removeprefix(_BOM)):
            reading.read(part)
    return Loaded(tuple(reading.documents), tuple(reading.problems))


def _refusal(data: bytes, *, file: str, limits: LoadLimits) -> Problem | None:
    """What is wrong with the file as a whole."""
    name = file.rpartition("/")[2]
    if len(data) > limits.file_bytes:
        size = f"{len(data) / 2**20:.1f} MiB, allowed are {limits.file_bytes // 2**20}"
        return Problem(ErrorCode.DOCUMENT_TOO_LARGE, f"the file has {size}", file)
    if data.startswith(_LFS):
        return Problem(ErrorCode.PATH_REFUSED, "the file is a Git LFS pointer; its content is not in Git", file, 1, 1)
    if name.lower() in _KUSTOMIZATION:
        return Problem(ErrorCode.NOT_RESOLVED, "a kustomization is input of Kustomize", file, 1, 1, hint=RENDER_FIRST)
    if name == CHART_FILE:
        return Problem(ErrorCode.NOT_RESOLVED, "the folder is a Helm chart", file, 1, 1, hint=RENDER_FIRST)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Problem(ErrorCode.YAML_SYNTAX, "the file is not UTF-8", file, line, 1, hint="save it as UTF-8")
    return None


@dataclass(frozen=True, slots=True)
class _Part:
    """The text of one document; `offset` counts the lines of the file before it."""

    text: bytes
    offset: int


def _parts(data: bytes) -> Iterator[_Part]:
    """Cut at the marks `---` and `...`; directives stay with the document that follows them."""
    start, offset = 0, 0
    for mark in _MARK.finditer(data):
        cut = mark.start()
        if cut == start:
            continue
        if _DIRECTIVE.search(data, start, cut) and _only_directives(data[start:cut]):
            continue
        yield _Part(data[start:cut], offset)
        offset += data.count(b"\n", start, cut)
        start = cut
    yield _Part(data[start:], offset)


def _only_directives(text: bytes) -> bool:
    return all(line.startswith((b"%", b"#")) or not line.strip() for line in text.splitlines())


class _Reading:
    """Collects what one file holds."""

    def __init__(self, *, file: str, blob: str, limits: LoadLimits) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self._file = file
        self._blob = blob
        self._limits = limits
        self._spare = limits.spare
        self._index = 0
        self._objects = 0

    def read(self, part: _Part) -> None:
        if _BLANK.match(part.text):
            return
        text = part.text
        if text.startswith(b"..."):
            text = b"   " + text[3:]
        if len(text) > self._limits.document_bytes:
            self._index += 1
            size = f"{len(text) / 2**20:.1f} MiB, allowed are {self._limits.document_bytes // 2**20}"
            message = f"the document has {size}"
            self._report(ErrorCode.DOCUMENT_TOO_LARGE, message, line=part.offset + 1, column=1)
            return
        bounds = self._limits.tree
        own = self._limits.growth * len(text)
        tree = read_tree(text, limits=TreeLimits(bounds.depth, min(bounds.size, own + self._spare)))
        self._spare -= max(0, min(tree.size - own, self._spare))
        self.add(_Part(text, part.offset), tree)

    def add(self, part: _Part, tree: Tree) -> None:
        """Take over what one document holds."""
        if tree.value is None and not tree.findings:
            return
        self._index += 1
        if tree.findings:
            shaped = shape(tree.value) if isinstance(tree.value, dict) else Shaped(None, ())
            name = None if shaped.tree is None or is_list(tree.value) else ObjectId.of(shaped.tree)
            for finding in tree.findings:
                self._report_finding(finding, offset=part.offset, name=name)
            return
        line = part.offset + tree.line
        self._add_value(tree.value, part=part, line=line, base=(), nulls=tree.nulls)

    def _add_value(
        self, value: JsonValue, *, part: _Part, line: int, base: tuple[str | int, ...], nulls: tuple[str, ...]
    ) -> None:
        if is_list(value) and isinstance(value, dict):
            self._add_list(value["items"], part=part, line=line, base=base, nulls=nulls)
            return
        self._objects += 1
        pointer = pointer_of(base)
        shaped = shape(value, nulls=nulls)
        found = shaped.tree or {}
        gvk, metadata = GroupVersionKind.of(found), object_at(found, "metadata")
        document = Document(
            file=self._file,
            index=self._index,
            line=line,
            blob=self._blob,
            tree=found,
            id=ObjectId(gvk.group, gvk.kind, text_at(metadata, "namespace"), text_at(metadata, "name")),
            gvk=gvk,
            text=part.text,
            offset=part.offset,
            base=pointer,
            nulls=nulls,
        )
        problems = [document.problem(flaw) for flaw in shaped.flaws]
        self.problems.extend(problems)
        if shaped.tree is None:
            return
        if not any(problem.is_error for problem in problems):
            self.documents.append(document)

    def _add_list(
        self, items: JsonValue, *, part: _Part, line: int, base: tuple[str | int, ...], nulls: tuple[str, ...]
    ) -> None:
        entries = items if isinstance(items, list) else []
        if len(base) // 2 >= self._limits.list_depth or self._objects + len(entries) > self._limits.objects:
            bounds = f"{self._limits.list_depth} levels and {self._limits.objects} objects"
            self._report(ErrorCode.EXPANSION_LIMIT, f"Lists are flattened up to {bounds}", line=line, column=1)
            return
        inside = _nulls_by_entry(nulls)
        for place, item in enumerate(entries):
            own = tuple(inside.get(str(place), ()))
            self._add_value(item, part=part, line=line, base=(*base, "items", place), nulls=own)

    def _report_finding(self, finding: Finding, *, offset: int, name: ObjectId | None) -> None:
        message = finding.message
        if finding.other_line:
            message += f", first on line {finding.other_line + offset}"
        self.problems.append(
            Problem(
                code=finding.code,
                message=message,
                file=self._file,
                line=finding.line + offset,
                column=finding.column,
                document=self._index,
                pointer=finding.pointer,
                hint=finding.hint,
                object=name,
            )
        )

    def _report(self, code: ErrorCode, message: str, *, line: int, column: int) -> None:
        self.problems.append(Problem(code, message, self._file, line, column, self._index))


def _nulls_by_entry(nulls: tuple[str, ...]) -> dict[str, list[str]]:
    """Pointers below `/items/<place>`, by place and without that beginning."""
    found: dict[str, list[str]] = {}
    for null in nulls:
        parts = null.split("/", 3)
        if len(parts) == 4 and parts[1] == "items":
            found.setdefault(parts[2], []).append(f"/{parts[3]}")
    return found

"""Edit a YAML text in place: only the wanted lines change, everything else stays byte by byte (cni-switch.md, section 13).

There is no second method behind it.  Where the splice could touch anything else it refuses, and a person makes the change
by hand.  Old and new text are read and compared after each edit: nothing but the wanted member may differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.pointer import steps_of
from gitops_ctl.documents.spliceedits import Step, add, remove, replace
from gitops_ctl.documents.splicelevels import Level, open_level
from gitops_ctl.documents.splicenodes import Node, Shape, shape, shape_with
from gitops_ctl.documents.splicerefusal import SpliceRefused
from gitops_ctl.documents.splicetext import read_text
from gitops_ctl.documents.splicevalues import ABSENT, Absent, Found, Reader, means_the_same

__all__ = [
    "ABSENT",
    "Absent",
    "Edit",
    "Found",
    "Inner",
    "OpenText",
    "SpliceRefused",
    "Spliced",
    "documents_in",
    "means_the_same",
    "splice",
    "splice_with_notes",
    "value_in",
]

_Address: TypeAlias = tuple[tuple[int, tuple[str, ...]], ...]
"""Document and path in each text, the file first."""


@dataclass(frozen=True, slots=True)
class Inner:
    """A place in the text that the scalar before it holds."""

    document: int
    pointer: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one member.

    Attributes:
        document: place among the documents of the text, from 0; empty ones count.
        pointer: JSON pointer in it; the last step of an added list item is its position, or `-` for the end.
        op: `add` a member that is missing, `replace` a scalar, `remove` a member and the parents that it leaves empty.
        before: what stands there now; it must match.  ABSENT checks nothing.
        after: the new value; `add` takes mappings and lists too.
        inner: for text in literal blocks: the way on inside the scalar at `pointer`, outermost first.
    """

    document: int
    pointer: str
    op: Literal["add", "replace", "remove"]
    before: Found = ABSENT
    after: Found = ABSENT
    inner: tuple[Inner, ...] = ()


@dataclass(frozen=True, slots=True)
class Spliced:
    """The new text; `notes` name lines that stay and that a person should look at (comments)."""

    text: bytes
    notes: tuple[str, ...] = ()


def splice(text: bytes, edits: Sequence[Edit]) -> bytes:
    """The text after all edits, each made on the result of the one before; an edit whose result is there does nothing.

    Raises:
        SpliceRefused: one of them cannot be made; then none is.
    """
    return splice_with_notes(text, edits).text


def splice_with_notes(text: bytes, edits: Sequence[Edit]) -> Spliced:
    """As `splice`, with what the text of a proposal should mention.

    Raises:
        SpliceRefused: as for `splice`.
    """
    editor = _Editor(open_level(read_text(text)))
    for edit in edits:
        editor.make(edit)
    return Spliced(editor.file.text.encoded(), tuple(dict.fromkeys(editor.notes)))


class OpenText:
    """One text that is read once and asked often."""

    def __init__(self, text: bytes) -> None:
        """Read the text.

        Raises:
            SpliceRefused: it cannot be read.
        """
        self._level = open_level(read_text(text), quickly=True)

    def documents(self) -> tuple[JsonValue, ...]:
        """The values of all documents, in their order; an empty document is null."""
        return tuple(Reader(root).value(root) for root in self._level.roots)

    def value(self, document: int, pointer: str, inner: Sequence[Inner] = ()) -> Found:
        """The value at a place, aliases and merge keys followed; ABSENT when there is none.

        Raises:
            SpliceRefused: an outer place holds no literal block.
        """
        level = self._level
        way = _address(document, pointer, inner)
        for outer_document, steps in way[:-1]:
            if isinstance(_read(level, outer_document, steps), Absent):
                return ABSENT
            level = level.inside(outer_document, steps)
        return _read(level, *way[-1])

    def line(self, document: int, pointer: str, inner: Sequence[Inner] = ()) -> int:
        """The line, from 1, at which the value at a place begins; 0 when it is not there as such."""
        try:
            way = _address(document, pointer, inner)
            level = _descend(self._level, way)[-1]
            nodes = level.trail(*way[-1])
        except SpliceRefused:
            return 0
        return nodes[-1].start.line + 1 + level.above if len(nodes) > len(way[-1][1]) else 0


def value_in(text: bytes, *, document: int, pointer: str, inner: Sequence[Inner] = ()) -> Found:
    """As `OpenText.value`, for one question.

    Raises:
        SpliceRefused: the text cannot be read, or an outer place holds no literal block.
    """
    return OpenText(text).value(document, pointer, inner)


def documents_in(text: bytes) -> tuple[JsonValue, ...]:
    """As `OpenText.documents`, for one question.

    Raises:
        SpliceRefused: the text cannot be read.
    """
    return OpenText(text).documents()


def _read(level: Level, document: int, steps: tuple[str, ...]) -> Found:
    if not 0 <= document < len(level.roots):
        return ABSENT
    reader = Reader(level.roots[document])
    node: Node | None = level.roots[document]
    for step in steps:
        node = reader.member(node, step) if node is not None else None
    return ABSENT if node is None else reader.value(node)


@dataclass(slots=True)
class _Editor:
    """Makes edits one by one."""

    file: Level
    notes: list[str] = field(default_factory=list)
    _added: dict[_Address, list[str]] = field(default_factory=dict)

    def make(self, edit: Edit) -> None:
        way = _address(edit.document, edit.pointer, edit.inner)
        levels = _descend(self.file, way)
        document, steps = way[-1]
        step = self._step(levels[-1], edit, way)
        if not step.changes:
            return
        changes = step.changes
        for level in reversed(levels[1:]):
            changes = level.lifted(changes)
        changed = open_level(self.file.text.changed(changes))
        _require_only_change(levels, _descend(changed, way), way=way, at=step.at, edit=edit)
        self.file = changed
        self.notes += step.notes
        if edit.op == "add":
            self._added.setdefault((*way[:-1], (document, steps[:-1])), []).append(steps[-1])

    def _step(self, level: Level, edit: Edit, way: _Address) -> Step:
        document, steps = way[-1]
        found = _read(level, document, steps)
        if edit.op == "remove":
            if isinstance(found, Absent):
                return Step((), steps)
            _require_before(edit, found)
            return remove(level, document, steps)
        if isinstance(edit.after, Absent):
            raise SpliceRefused("PathInvalid", "the edit names no new value")
        if means_the_same(found, edit.after):
            return Step((), steps)
        if edit.op == "add":
            added = self._added.get((*way[:-1], (document, steps[:-1])), ())
            return add(level, document, steps, edit.after, added=added)
        step = replace(level, document, steps, edit.after)
        _require_before(edit, found)
        return step


def _require_before(edit: Edit, found: Found) -> None:
    if not isinstance(edit.before, Absent) and not means_the_same(found, edit.before):
        raise SpliceRefused("FromMismatch", f"{edit.pointer} no longer has the value that the edit was made for")


def _address(document: int, pointer: str, inner: Sequence[Inner]) -> _Address:
    places = [(document, pointer), *((one.document, one.pointer) for one in inner)]
    for _, place in places:
        if place and not place.startswith("/"):
            raise SpliceRefused("PathInvalid", "a JSON pointer begins with a slash")
    return tuple((number, steps_of(place)) for number, place in places)


def _descend(level: Level, way: _Address) -> tuple[Level, ...]:
    levels = [level]
    for document, steps in way[:-1]:
        levels.append(levels[-1].inside(document, steps))
    return tuple(levels)


_TEXT: Shape = ("the text inside",)


def _require_only_change(
    old: Sequence[Level], new: Sequence[Level], *, way: _Address, at: tuple[str, ...], edit: Edit
) -> None:
    """Both versions hold the same, but for the one member (13.2, step 6)."""
    for before, after, (document, steps) in zip(old[:-1], new[:-1], way[:-1], strict=True):
        _require_same_others(before, after, document)
        masked = (_with(level.roots[document], steps, _TEXT) for level in (before, after))
        if next(masked) != next(masked):
            raise _other_change()
    document = way[-1][0]
    _require_same_others(old[-1], new[-1], document)
    before_root, after_root = old[-1].roots[document], new[-1].roots[document]
    if edit.op == "remove":
        same = shape(after_root) == _with(before_root, at, None)
    elif edit.op == "add":
        same = _with(after_root, at, None) == shape(before_root) and _holds(new[-1], document, at, edit, strictly=True)
    else:
        node = new[-1].trail(document, at)[-1]
        same = shape(after_root) == _with(before_root, at, shape(node)) and _holds(new[-1], document, at, edit)
    if not same:
        raise _other_change()


def _require_same_others(before: Level, after: Level, document: int) -> None:
    others = [[shape(root) for place, root in enumerate(level.roots) if place != document] for level in (before, after)]
    if others[0] != others[1] or len(before.roots) != len(after.roots):
        raise _other_change()


def _holds(level: Level, document: int, at: tuple[str, ...], edit: Edit, *, strictly: bool = False) -> bool:
    found = _read(level, document, at)
    if isinstance(found, Absent) or isinstance(edit.after, Absent):
        return False
    if strictly:
        return canonical_json(found) == canonical_json(edit.after)
    return means_the_same(found, edit.after)


def _with(root: Node, at: tuple[str, ...], instead: Shape | None) -> Shape | None:
    return shape_with(root, at, instead) if at else instead


def _other_change() -> SpliceRefused:
    return SpliceRefused("OtherChange", "the edit would change more of the document than the one member")

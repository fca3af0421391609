"""Edit a YAML text in place: only the wanted lines change, everything else stays byte by byte (cni-switch.md, section 13).

There is no second method behind it.  Where the splice could touch anything else it refuses, and a person makes the change
by hand.  Old and new text are read and compared after each edit: nothing but the wanted member may differ.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    for group in _groups(edits):
        editor.make(group)
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


@dataclass(frozen=True, slots=True)
class _Made:
    """An edit with what it does to its text."""

    edit: Edit
    step: Step


@dataclass(slots=True)
class _Editor:
    """Makes edits group by group."""

    file: Level
    notes: list[str] = field(default_factory=list)
    _added: dict[_Address, list[str]] = field(default_factory=dict)

    def make(self, edits: Sequence[Edit]) -> None:
        """Make edits that do not touch each other; of one text."""
        if self.file.quickly:
            self.file = open_level(self.file.text)
        way = _address_of(edits[0])
        levels = _descend(self.file, way)
        made = [_Made(edit, self._step(levels[-1], edit, _address_of(edit))) for edit in edits]
        made = [one for one in made if one.step.changes]
        if len(made) > 1 and _overlap(made):
            for edit in edits:
                self.make((edit,))
        elif made:
            self._carry_out(levels, made, way)

    def _carry_out(self, levels: tuple[Level, ...], made: Sequence[_Made], way: _Address) -> None:
        changes = tuple(change for one in made for change in one.step.changes)
        for level in reversed(levels[1:]):
            changes = level.lifted(changes)
        # Only meanings are compared, so that the parser without exact marks will do; an edit after this one reads again.
        changed = open_level(self.file.text.changed(changes), quickly=True)
        _require_only_changes(levels, _descend(changed, way), way=way, made=made)
        self.file = changed
        for one in made:
            self.notes += one.step.notes
            document, steps = _address_of(one.edit)[-1]
            if one.edit.op == "add":
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


def _address_of(edit: Edit) -> _Address:
    return _address(edit.document, edit.pointer, edit.inner)


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


def _require_only_changes(old: Sequence[Level], new: Sequence[Level], *, way: _Address, made: Sequence[_Made]) -> None:
    """Both versions hold the same, but for the members that were meant (13.2, step 6)."""
    for before, after, (document, steps) in zip(old[:-1], new[:-1], way[:-1], strict=True):
        _require_same_others(before, after, document)
        masked = (_with(level.roots[document], {steps: _TEXT}) for level in (before, after))
        if next(masked) != next(masked):
            raise _other_change()
    document = way[-1][0]
    _require_same_others(old[-1], new[-1], document)
    was: dict[tuple[str, ...], Shape | None] = {}
    now: dict[tuple[str, ...], Shape | None] = {}
    for one in made:
        if one.edit.op == "add":
            now[one.step.at] = None
        elif one.edit.op == "remove":
            was[one.step.at] = None
        else:
            was[one.step.at] = shape(new[-1].trail(document, one.step.at)[-1])
    if _with(old[-1].roots[document], was) != _with(new[-1].roots[document], now):
        raise _other_change()
    if not all(_holds(new[-1], document, one) for one in made if one.edit.op != "remove"):
        raise _other_change()


def _require_same_others(before: Level, after: Level, document: int) -> None:
    others = [[shape(root) for place, root in enumerate(level.roots) if place != document] for level in (before, after)]
    if others[0] != others[1] or len(before.roots) != len(after.roots):
        raise _other_change()


def _holds(level: Level, document: int, made: _Made) -> bool:
    """A new member has exactly the value that was asked for; a replaced one may keep the quotes of the old one."""
    found, wanted = _read(level, document, made.step.at), made.edit.after
    if isinstance(found, Absent) or isinstance(wanted, Absent):
        return False
    if made.edit.op == "add":
        return canonical_json(found) == canonical_json(wanted)
    return means_the_same(found, wanted)


def _with(root: Node, others: Mapping[tuple[str, ...], Shape | None]) -> Shape | None:
    return others[()] if () in others else shape_with(root, others)


def _groups(edits: Sequence[Edit]) -> Iterator[Sequence[Edit]]:
    """Edits in a row that can be made at once: the text is read once for each group."""
    group: list[Edit] = []
    for edit in edits:
        if group and not all(_is_apart(edit, other) for other in group):
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _is_apart(one: Edit, other: Edit) -> bool:
    """Whether two edits of one text have nothing to do with each other."""
    mine, theirs = _address_of(one), _address_of(other)
    if "remove" in (one.op, other.op) or mine[:-1] != theirs[:-1] or mine[-1][0] != theirs[-1][0]:
        return False
    paths = (mine[-1][1], theirs[-1][1])
    if any(
        edit.op == "add" and path and (path[-1].isdecimal() or path[-1] == "-")
        for edit, path in zip((one, other), paths, strict=True)
    ):
        return False
    shorter = min(map(len, paths))
    return paths[0][:shorter] != paths[1][:shorter]


def _overlap(made: Sequence[_Made]) -> bool:
    """Whether two edits change the same line, or add members of different mappings at the same line."""
    lines: list[int] = []
    parents: dict[int, tuple[str, ...]] = {}
    for one in made:
        for change in one.step.changes:
            lines += range(change.first, change.last)
            if change.first == change.last and parents.setdefault(change.first, one.step.at[:-1]) != one.step.at[:-1]:
                return True
    return len(set(lines)) != len(lines)


def _other_change() -> SpliceRefused:
    return SpliceRefused("OtherChange", "the edit would change more of the document than the one member")

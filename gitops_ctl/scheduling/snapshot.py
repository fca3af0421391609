"""One inventory snapshot, decoded strictly: texts stay texts, and nothing is read twice (topology-scheduling.md, 4.1 to 4.3).

This is the decode stage, rules 1 to 5.  Its messages name places and quote nothing: the text may be the answer of a server.
Aliases, anchors, merge keys and tags are refused (D14), so a text can never become larger than it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import yaml
from yaml._yaml import CParser

LARGEST: Final = 2**20
"""Bytes of one snapshot."""
_FIELDS: Final = ("apiVersion", "revision", "nodes")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_DEEPEST: Final = 16
_MERGE: Final = "<<"

ORDER: Final = ("1", "2", "3", "4", "5", "6", "7", "B3", "8", "9", "10", "11", "12", "13", "14", "B2")
"""The rules in the order in which their problems are named: 4.2, with the two rejections of section 12 where they are judged."""


class Place(NamedTuple):
    """A place in the text of the snapshot, from 1."""

    line: int = 1
    column: int = 1


class SnapshotProblem(NamedTuple):
    """Why a revision is rejected.

    Attributes:
        rule: a member of `ORDER`.
        node: the Node that it is about; empty for the document.
        level: index of the level in the spec; behind the last one for a key that is no level.
    """

    rule: str
    message: str
    node: str = ""
    level: int = 0
    place: Place = Place()

    @property
    def rank(self) -> tuple[int, str, int, Place, str]:
        """The fixed order: rule, then Node, then level (D13)."""
        return ORDER.index(self.rule), self.node, self.level, self.place, self.message


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a text says.

    Attributes:
        nodes: labels of each Node; None when the member is missing or null.
        places: where `("revision",)`, `("nodes", node)` or `("nodes", node, key)` stands.
    """

    api_version: str
    revision: str
    nodes: Mapping[str, Mapping[str, str]] | None
    places: Mapping[Path, Place] = field(default_factory=dict, repr=False)

    def place(self, *path: str) -> Place:
        """Where that member stands, or the nearest one around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place())


@dataclass(frozen=True, slots=True)
class Decoded:
    """A snapshot, or why the text holds none; never both."""

    snapshot: Snapshot | None
    problems: tuple[SnapshotProblem, ...] = ()


def in_order(problems: Iterator[SnapshotProblem] | list[SnapshotProblem]) -> tuple[SnapshotProblem, ...]:
    """All problems, the one for the status first."""
    return tuple(sorted(set(problems), key=lambda problem: problem.rank))


def decode(text: str | bytes) -> Decoded:
    """Read one snapshot; never raises."""
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        return Decoded(None, (SnapshotProblem("1", "is no Unicode text"),))
    if len(data) > LARGEST:
        return Decoded(None, (SnapshotProblem("1", f"is larger than {LARGEST} bytes"),))
    reading = _Reading(data)
    root = reading.document()
    snapshot = None if root is None else _Shape(reading.problems).read(root)
    problems = in_order(reading.problems)
    return Decoded(None if problems else snapshot, problems)


@dataclass(frozen=True, slots=True)
class _Scalar:
    place: Place
    text: str
    is_null: bool


@dataclass(frozen=True, slots=True)
class _Mapping:
    place: Place
    members: tuple[tuple[_Scalar, "_Node"], ...]


@dataclass(frozen=True, slots=True)
class _Other:
    """A list, or an alias, which was refused already."""

    place: Place
    is_refused: bool = False


_Node = _Scalar | _Mapping | _Other


class _TooDeepError(Exception):
    pass


class _Reading:
    """From the events of the parser to nodes, with the problems of rules 1, 3, 4 and 5."""

    def __init__(self, data: bytes) -> None:
        self.problems: list[SnapshotProblem] = []
        self._data = data
        self._root: _Node | None = None

    def document(self) -> _Node | None:
        """The root of the only document; None when there is none, or when it cannot be read to its end."""
        parser = CParser(self._data)
        try:
            self._read(parser)
        except yaml.YAMLError as error:
            rule, what = ("1", "cannot be read as YAML") if self._root is None else ("5", "goes on after the document")
            self._add(rule, what, _error_place(error))
            return None
        except _TooDeepError:
            self._add("1", "is nested too deep for a snapshot", Place())
            return None
        finally:
            parser.dispose()
        return self._root

    def _read(self, parser: CParser) -> None:
        while (event := parser.get_event()) is not None:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            if self._root is not None:
                self._add("4", "has more than one document", _place(event))
                return
            self._root = self._node(parser, parser.get_event(), 0)
        if self._root is None:
            self._add("1", "is empty", Place())

    def _node(self, parser: CParser, event: yaml.Event | None, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise _TooDeepError
        place = _place(event)
        if isinstance(event, yaml.AliasEvent):
            self._add("1", "an alias is refused in a snapshot", place)
            return _Other(place, is_refused=True)
        self._refuse_decoration(event, place)
        if isinstance(event, yaml.ScalarEvent):
            return _Scalar(place, event.value, not event.style and event.value in _NULLS)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(parser, place, depth)
        while not isinstance(event := parser.get_event(), yaml.SequenceEndEvent):
            self._node(parser, event, depth + 1)
        return _Other(place)

    def _refuse_decoration(self, event: yaml.Event | None, place: Place) -> None:
        if getattr(event, "anchor", None) is not None:
            self._add("1", "an anchor is refused in a snapshot", place)
        if getattr(event, "tag", None) is not None:
            self._add("1", "a tag is refused in a snapshot", place)

    def _mapping(self, parser: CParser, place: Place, depth: int) -> _Node:
        members: list[tuple[_Scalar, _Node]] = []
        lines: dict[str, int] = {}
        while not isinstance(event := parser.get_event(), yaml.MappingEndEvent):
            is_plain = isinstance(event, yaml.ScalarEvent) and not event.style
            key = self._node(parser, event, depth + 1)
            value = self._node(parser, parser.get_event(), depth + 1)
            if not isinstance(key, _Scalar):
                self._add("1", "a key must be a text", key.place)
                continue
            if is_plain and key.text == _MERGE:
                self._add("1", "a merge key is refused in a snapshot", key.place)
            elif key.text in lines:
                self._add("3", f"the same key stands in line {lines[key.text]} already", key.place)
            lines.setdefault(key.text, key.place.line)
            members.append((key, value))
        return _Mapping(place, tuple(members))

    def _add(self, rule: str, message: str, place: Place) -> None:
        self.problems.append(SnapshotProblem(rule, message, place=place))


class _Shape:
    """From nodes to the snapshot, with rule 2 and the shapes of rule 1."""

    def __init__(self, problems: list[SnapshotProblem]) -> None:
        self._problems = problems
        self._places: dict[Path, Place] = {}

    def read(self, root: _Node) -> Snapshot:
        members = dict(self._members(root, ()))
        for name, (key, _) in members.items():
            if name not in _FIELDS:
                self._refuse("2", f"unknown field; a snapshot has {', '.join(_FIELDS)}", key.place)
        nodes = members.get("nodes")
        return Snapshot(
            self._text(members.get("apiVersion")),
            self._text(members.get("revision")),
            None if nodes is None or _is_null(nodes[1]) else self._nodes(nodes[1]),
            self._places,
        )

    def _nodes(self, node: _Node) -> Mapping[str, Mapping[str, str]]:
        return {
            name: {key: self._text(member) for key, member in self._members(value, ("nodes", name))}
            for name, (_, value) in self._members(node, ("nodes",))
        }

    def _members(self, node: _Node, path: Path) -> Iterator[tuple[str, tuple[_Scalar, _Node]]]:
        if not isinstance(node, _Mapping):
            if not _is_null(node):
                self._refuse_shape("must be a mapping", node)
            return
        for key, value in node.members:
            self._places[(*path, key.text)] = key.place
            yield key.text, (key, value)

    def _text(self, member: tuple[_Scalar, _Node] | None) -> str:
        if member is None:
            return ""
        value = member[1]
        if isinstance(value, _Scalar):
            return "" if value.is_null else value.text
        self._refuse_shape("must be a text", value)
        return ""

    def _refuse_shape(self, message: str, node: _Node) -> None:
        if not (isinstance(node, _Other) and node.is_refused):
            self._refuse("1", message, node.place)

    def _refuse(self, rule: str, message: str, place: Place) -> None:
        self._problems.append(SnapshotProblem(rule, message, place=place))


def _is_null(node: _Node) -> bool:
    return isinstance(node, _Scalar) and node.is_null


def _place(event: yaml.Event | None) -> Place:
    mark = None if event is None else event.start_mark
    return Place() if mark is None else Place(mark.line + 1, mark.column + 1)


def _error_place(error: yaml.YAMLError) -> Place:
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return Place() if mark is None else Place(mark.line + 1, mark.column + 1)

"""The nodes of a YAML text with their places, as written: aliases, anchors, tags and styles are not resolved.

The pure-Python parser is used, because its marks count characters of the text (engineering.md, section 10).  It is taught
to take a tab before a comment, as every other parser does.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import yaml
from yaml._yaml import CParser
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from gitops_ctl.documents.batch import without_cycle_search
from gitops_ctl.documents.splicerefusal import SpliceRefused

MERGE: Final = "<<"
_DEEPEST: Final = 100
MOST_EDITED: Final = 100_000
"""Keys and values of a text that can be edited: the parser with exact marks reads some twenty thousand in a second."""


class _Mark(Protocol):
    line: int
    column: int


class Place(NamedTuple):
    """Line and column, both from 0."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """One node, or an alias that stands for one.

    Attributes:
        start, end: end is exclusive and exact for scalars on one line and for flow collections only.
        value: text of a scalar, name of an alias.
        style: of a scalar `"`, `'`, `|`, `>` or empty for plain; of a collection `flow` or `block`.
        tag, anchor: as written; empty when there is none.
        entries: of a mapping.
        items: of a list.
    """

    kind: Literal["scalar", "mapping", "list", "alias"]
    start: Place
    end: Place
    value: str = ""
    style: str = ""
    tag: str = ""
    anchor: str = ""
    entries: tuple[tuple["Node", "Node"], ...] = ()
    items: tuple["Node", ...] = ()

    @property
    def is_merge(self) -> bool:
        return self.kind == "scalar" and self.style == "" and self.value == MERGE

    @property
    def members(self) -> tuple[tuple[str | None, "Node | None", "Node"], ...]:
        """Step of a pointer, key and value; a list has positions and no keys, a key that is no scalar has no step."""
        if self.kind == "list":
            return tuple((str(place), None, item) for place, item in enumerate(self.items))
        return tuple((key.value if key.kind == "scalar" else None, key, member) for key, member in self.entries)

    def entry(self, name: str) -> tuple["Node", "Node"] | None:
        """Key and value of the member of that name that the mapping itself writes."""
        return next((entry for entry in self.entries if entry[0].kind == "scalar" and entry[0].value == name), None)

    def walk(self) -> Iterator["Node"]:
        """This node and all below it, in the order of the text."""
        yield self
        for key, member in self.entries:
            yield from key.walk()
            yield from member.walk()
        for item in self.items:
            yield from item.walk()


Shape: TypeAlias = tuple[object, ...]
"""What a node is, without its place: two texts mean the same when their shapes are equal."""


class _Parser(Reader, Scanner, Parser):
    """PyYAML's own parser, tolerant of tabs where they can only be space."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()


def read_nodes(text: str, *, above: int = 0, quickly: bool = False) -> tuple[Node, ...]:
    """The root of each document of a text; an empty document is an empty scalar.

    Args:
        above: lines of the file before this text, for refusals.
        quickly: by libyaml, three times as fast, for texts that are only read.

    Raises:
        SpliceRefused: not YAML, a template, nested too deep, a key that stands twice, or too much to be edited.
    """
    try:
        with without_cycle_search():
            parser = CParser(text.encode()) if quickly else _Parser(text)
            roots = _Builder(parser, above=above, most=sys.maxsize if quickly else MOST_EDITED).documents()
    except yaml.YAMLError as error:
        raise _not_yaml(error, text=text, above=above) from None
    for root in roots:
        _require_plain_keys(root, above=above)
    return roots


def shape(node: Node) -> Shape:
    """The shape of a node and all below it."""
    below = tuple((None if key is None else shape(key), shape(member)) for _, key, member in node.members)
    return (*_head(node), below)


def shape_with(node: Node, others: Mapping[tuple[str, ...], Shape | None]) -> Shape:
    """The shape that `node` has when those at the paths of `others` (not empty) have other shapes; None: are not there."""
    by_step: dict[str, dict[tuple[str, ...], Shape | None]] = {}
    for path, other in others.items():
        by_step.setdefault(path[0], {})[path[1:]] = other
    below: list[tuple[Shape | None, Shape]] = []
    for step, key, member in node.members:
        inside = by_step.get(step) if step is not None else None
        kept = shape(member) if inside is None else inside[()] if () in inside else shape_with(member, inside)
        if kept is not None:
            below.append((None if key is None else shape(key), kept))
    return (*_head(node), tuple(below))


def _head(node: Node) -> Shape:
    return (node.kind, node.tag, node.anchor, node.style, node.value)


class _Builder:
    """From events to nodes."""

    def __init__(self, parser: Parser | CParser, *, above: int, most: int) -> None:
        self._parser = parser
        self._above = above
        self._most = most
        self._left = most
        self._depth = 0

    def documents(self) -> tuple[Node, ...]:
        roots = []
        while not self._parser.check_event(yaml.StreamEndEvent):
            if self._parser.check_event(yaml.DocumentStartEvent):
                self._next()
                roots.append(self._node())
            self._next()
        return tuple(roots)

    def _next(self) -> yaml.Event:
        event = self._parser.get_event()
        assert event is not None, "the end of the stream is an event"
        return event

    def _node(self) -> Node:
        event = self._next()
        start, end = _place(event.start_mark), _place(event.end_mark)
        self._left -= 1
        if self._left < 0:
            message = f"the text holds more than {self._most} keys and values, too many to be edited in place"
            raise SpliceRefused("TooLarge", message, line=start.line + 1 + self._above)
        if isinstance(event, yaml.AliasEvent):
            return Node("alias", start, end, value=event.anchor or "")
        tag, anchor = getattr(event, "tag", None) or "", getattr(event, "anchor", None) or ""
        if isinstance(event, yaml.ScalarEvent):
            return Node("scalar", start, end, value=event.value or "", style=event.style or "", tag=tag, anchor=anchor)
        assert isinstance(event, yaml.CollectionStartEvent)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SpliceRefused("NotYaml", f"nested deeper than {_DEEPEST} levels", line=start.line + 1 + self._above)
        node = self._collection(event, start, tag=tag, anchor=anchor)
        self._depth -= 1
        return node

    def _collection(self, event: yaml.CollectionStartEvent, start: Place, *, tag: str, anchor: str) -> Node:
        style = "flow" if event.flow_style else "block"
        if isinstance(event, yaml.MappingStartEvent):
            entries = []
            while not self._parser.check_event(yaml.MappingEndEvent):
                entries.append((self._node(), self._node()))
            end = _place(self._next().end_mark)
            return Node("mapping", start, end, style=style, tag=tag, anchor=anchor, entries=tuple(entries))
        items = []
        while not self._parser.check_event(yaml.SequenceEndEvent):
            items.append(self._node())
        end = _place(self._next().end_mark)
        return Node("list", start, end, style=style, tag=tag, anchor=anchor, items=tuple(items))


def _place(mark: _Mark | None) -> Place:
    assert mark is not None, "the pure parser marks every event"
    return Place(mark.line, mark.column)


def _not_yaml(error: yaml.YAMLError, *, text: str, above: int) -> SpliceRefused:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 + above if mark is not None else 0
    if "{{" in text or "{%" in text:
        return SpliceRefused("Templated", "the text is a template, not YAML", line=line)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return SpliceRefused("NotYaml", f"not YAML: {problem}", line=line)


def _require_plain_keys(root: Node, *, above: int) -> None:
    for node in root.walk():
        seen: dict[str, int] = {}
        for key, _ in node.entries:
            line = key.start.line + 1 + above
            if key.kind == "mapping" and key.style == "flow":
                raise SpliceRefused("Templated", "braces of a template stand where YAML has a value", line=line)
            if key.kind != "scalar":
                continue
            if key.value in seen:
                first = f"a key appears twice, first on line {seen[key.value]}"
                raise SpliceRefused("DuplicateKey", first, line=line)
            seen[key.value] = line

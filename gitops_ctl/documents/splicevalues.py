"""What a node means, and how a new value is written (cni-switch.md, sections 13.3 and 13.4)."""

import enum
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

from gitops_ctl.core.jsonvalue import JsonScalar, JsonValue
from gitops_ctl.documents.scalars import NotJsonError, is_text, plain_value
from gitops_ctl.documents.splicenodes import Node
from gitops_ctl.documents.splicerefusal import SpliceRefused

_MOST_NODES: Final = 200_000
"""That aliases may make of one document, beside those that are written."""

_SAFE_WORD: Final = r"[A-Za-z0-9/._](?:[A-Za-z0-9/._@+=-]|:(?=[A-Za-z0-9/._]))*"
_SAFE: Final = re.compile(f"{_SAFE_WORD}(?: {_SAFE_WORD})*")
_READ_DIFFERENTLY: Final = re.compile(
    r"[0-9][0-9_.:]*:[0-9_.:]*|[0-9]{4}-.*|\.{3}.*|[0-9.]+[eE][0-9]+.*|0[0-9a-zA-Z_]+"
)
"""Plain texts that some readers take for times, dates or numbers."""


class Absent(enum.Enum):
    """There is no such member; JSON's null is a value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Found: TypeAlias = "JsonValue | Absent"


class Reader:
    """Reads the nodes of one document; aliases and merge keys are followed.

    Raises (all methods):
        SpliceRefused: aliases make more of the document than anybody needs.
    """

    def __init__(self, root: Node) -> None:
        nodes = list(root.walk())
        self._anchors = {node.anchor: node for node in nodes if node.anchor}
        self._left = _MOST_NODES + 2 * len(nodes)

    def value(self, node: Node) -> JsonValue:
        """The JSON value of a node."""
        self._spend()
        node = self.target(node)
        if node.kind == "scalar":
            return scalar_value(node)
        if node.kind == "list":
            return [self.value(item) for item in node.items]
        merged: dict[str, JsonValue] = {}
        for source in reversed(self._sources(node)):
            below = self.value(source)
            merged |= below if isinstance(below, dict) else {}
        own = {
            key.value: self.value(member) for key, member in node.entries if key.kind == "scalar" and not key.is_merge
        }
        return merged | own

    def member(self, node: Node, step: str) -> Node | None:
        """What stands at a step below `node`, also by a merge key."""
        node = self.target(node)
        if node.kind == "list":
            return node.items[int(step)] if step.isdecimal() and int(step) < len(node.items) else None
        own = node.entry(step)
        return own[1] if own is not None else self.merged_member(node, step)

    def merged_member(self, node: Node, step: str) -> Node | None:
        """What a merge key of `node` brings in under the name `step`."""
        found = (self.member(source, step) for source in self._sources(node))
        return next((one for one in found if one is not None), None)

    def target(self, node: Node) -> Node:
        """The node itself, or the one that an alias stands for."""
        self._spend()
        if node.kind != "alias":
            return node
        target = self._anchors.get(node.value)
        if target is None:
            raise SpliceRefused("Aliased", "an alias leads nowhere", line=node.start.line + 1)
        return target

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SpliceRefused("TooLarge", "aliases repeat too much of the document")

    def _sources(self, node: Node) -> list[Node]:
        sources = [member for key, member in node.entries if key.is_merge]
        return [one for source in sources for one in (source.items if source.kind == "list" else (source,))]


def scalar_value(node: Node) -> JsonScalar:
    """The value of a scalar; a number that JSON cannot carry, and anything with a tag, is its text."""
    if node.style or node.tag:
        return node.value
    try:
        return plain_value(node.value)
    except NotJsonError:
        return node.value


def means_the_same(one: Found, other: Found) -> bool:
    """Equal, where a scalar is equal to its own text: Helm values are written as `true` and as `"true"`."""
    if isinstance(one, Absent) or isinstance(other, Absent):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(means_the_same(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(means_the_same, one, other))
    if is_scalar(one) and is_scalar(other):
        return one is other is None or (one is not None and other is not None and token(one) == token(other))
    return False


def token(value: JsonScalar) -> str:
    """A scalar as plain text: `true`, `7445`, `null`."""
    return value if isinstance(value, str) else json.dumps(value)


def written(value: JsonScalar, *, style: str = "") -> str:
    """A scalar in YAML; in the style of the one that it replaces, where that can hold it."""
    text = token(value)
    if value is None:
        return text
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if style or (isinstance(value, str) and not _is_plain(text)):
        return _double_quoted(text)
    return text


def block_lines(value: JsonValue, *, indent: int, step: int) -> list[str]:
    """Lines of a new block below its key: the members of a mapping, or the items of a list, that is not empty."""
    pad = " " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        for name, member in value.items():
            lines += entry_lines(name, member, indent=indent, step=step)
    elif is_list(value):
        for item in value:
            lines += [f"{pad}- {line}" if first else f"{pad}  {line}" for first, line in _item_lines(item, step=step)]
    return lines


def entry_lines(name: str, value: JsonValue, *, indent: int, step: int) -> list[str]:
    """Lines of a new member of a block mapping."""
    key = " " * indent + written(name) + ":"
    if is_block(value):
        return [key, *block_lines(value, indent=indent + step, step=step)]
    return [f"{key} {_inline(value)}"]


def item_lines(value: JsonValue, *, indent: int, gap: int, step: int) -> list[str]:
    """Lines of a new item of a block list; `gap` is the distance from the dash to the item."""
    dash, pad = " " * indent + "-" + " " * (gap - 1), " " * (indent + gap)
    return [(dash if first else pad) + line for first, line in _item_lines(value, step=step)]


def is_block(value: JsonValue) -> bool:
    """Whether a value needs lines of its own."""
    return not is_scalar(value) and bool(value)


def _item_lines(value: JsonValue, *, step: int) -> list[tuple[bool, str]]:
    lines = block_lines(value, indent=0, step=step) if is_block(value) else [_inline(value)]
    return [(place == 0, line) for place, line in enumerate(lines)]


def _inline(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return "{}"
    return written(value) if is_scalar(value) else "[]"


def _is_plain(text: str) -> bool:
    return bool(_SAFE.fullmatch(text)) and is_text(text) and not _READ_DIFFERENTLY.fullmatch(text)


def _double_quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(character if character.isprintable() else _escape(character) for character in quoted)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def is_list(value: Found) -> TypeGuard[Sequence[JsonValue]]:
    """A list, and no text."""
    return isinstance(value, (list, tuple))


def is_scalar(value: Found) -> TypeGuard[JsonScalar]:
    """Text, number, boolean or null."""
    return value is None or isinstance(value, (str, int, float))

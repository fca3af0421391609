"""Text inside text: the lines of a literal block are a YAML text of their own (cni-switch.md, section 13.5)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from gitops_ctl.documents.splicenodes import Node, read_nodes
from gitops_ctl.documents.splicerefusal import SpliceRefused, Why
from gitops_ctl.documents.splicetext import Change, SpliceText
from gitops_ctl.documents.splicevalues import Reader

_HEADER: Final = re.compile(r"[|>](?:([1-9])?([-+])?|([-+])([1-9]))(?=\s|$)")
ROOT: Final = -1
"""The column around the root of a document."""


class Window(NamedTuple):
    """Lines `[first, last)` of the text around a block scalar are its content, without blank lines at the end."""

    first: int
    last: int
    indent: int


@dataclass(frozen=True, slots=True)
class Level:
    """One text with its nodes.

    Attributes:
        above: lines of the file before its first line.
        window: where it lies in the text around it; None for the file itself.
        quickly: whether texts inside are only read.
    """

    text: SpliceText
    roots: tuple[Node, ...]
    above: int = 0
    window: Window | None = None
    quickly: bool = False

    def refused(self, why: Why, message: str, *, at: int) -> SpliceRefused:
        """A refusal at a line of this text, counted from 0."""
        return SpliceRefused(why, message, line=at + 1 + self.above)

    def root(self, document: int) -> Node:
        """The root of a document.

        Raises:
            SpliceRefused: there is no such document.
        """
        if not 0 <= document < len(self.roots):
            raise SpliceRefused("PathAbsent", f"there is no document {document}: the text holds {len(self.roots)}")
        return self.roots[document]

    def trail(self, document: int, steps: tuple[str, ...]) -> tuple[Node, ...]:
        """The nodes from the root to the one at `steps`; without the last one when its parent lacks it.

        Raises:
            SpliceRefused: nothing is there, or what is there is shared with other places (section 13.3).
        """
        root = self.root(document)
        shared = {node.value for node in root.walk() if node.kind == "alias"}
        nodes = [root]
        for place, step in enumerate(steps):
            self._require_own(nodes[-1], shared)
            found = self._member(nodes[-1], step, root=root)
            if found is not None:
                nodes.append(found)
            elif place < len(steps) - 1:
                raise self.refused("PathAbsent", f'there is no "{step}" here', at=nodes[-1].start.line)
        return tuple(nodes)

    def inside(self, document: int, steps: tuple[str, ...]) -> "Level":
        """The text in the literal block at `steps`.

        Raises:
            SpliceRefused: something else is there, or its text is not YAML.
        """
        nodes = self.trail(document, steps)
        node = nodes[-1]
        if node.kind == "alias":
            raise self.refused("Aliased", f"*{node.value} repeats what stands elsewhere", at=node.start.line)
        if len(nodes) <= len(steps) or node.kind != "scalar":
            raise self.refused("NotAScalar", "there is no text here that could hold YAML", at=node.start.line)
        if node.style != "|" or node.tag or node.anchor:
            message = "only text in a literal block (|) without anchor and tag can be edited"
            raise self.refused("BlockStyle", message, at=node.start.line)
        window = block_window(self.text.lines, node, column=column_of(nodes[-2]) if len(nodes) > 1 else ROOT)
        lines = tuple(line[window.indent :] for line in self.text.lines[window.first : window.last])
        if "\n".join(lines).rstrip("\n") != node.value.rstrip("\n"):
            raise self.refused("BlockStyle", "the lines of the block cannot be told apart", at=node.start.line)
        inner = SpliceText(lines)
        above = self.above + window.first
        roots = read_nodes(inner.text, above=above, quickly=self.quickly)
        return Level(inner, roots, above=above, window=window, quickly=self.quickly)

    def lifted(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Changes of this text as changes of the text around it."""
        assert self.window is not None
        first, pad = self.window.first, " " * self.window.indent
        return tuple(
            Change(first + one.first, first + one.last, tuple(pad + line if line else line for line in one.lines))
            for one in changes
        )

    def last_line(self, node: Node, *, column: int) -> int:
        """The last line that belongs to a node; blank lines and comments behind it do not.

        Args:
            column: of the collection that holds the node, ROOT for the root.
        """
        if node.kind == "scalar" and node.style in ("|", ">"):
            return block_window(self.text.lines, node, column=column).last - 1
        if node.style != "block":
            return node.end.line
        last = node.items[-1] if node.kind == "list" else node.entries[-1][1]
        return self.last_line(last, column=column_of(node))

    def _member(self, node: Node, step: str, *, root: Node) -> Node | None:
        if node.kind == "scalar":
            raise self.refused("PathAbsent", f'"{step}" needs a mapping or a list here', at=node.start.line)
        if node.kind == "list":
            if step == "-" or step == str(len(node.items)):
                return None
            if not step.isdecimal() or int(step) > len(node.items):
                raise self.refused("PathAbsent", f'the list has no item "{step}"', at=node.start.line)
            return node.items[int(step)]
        own = node.entry(step)
        if own is not None:
            return own[1]
        if Reader(root).merged_member(node, step) is not None:
            raise self.refused("MergeKey", f'"{step}" comes from a merge key (<<)', at=node.start.line)
        return None

    def _require_own(self, node: Node, shared: set[str]) -> None:
        if node.kind == "alias":
            raise self.refused("Aliased", f"*{node.value} repeats what stands elsewhere", at=node.start.line)
        if node.anchor in shared:
            raise self.refused("Anchored", f"other places repeat &{node.anchor}", at=node.start.line)


def open_level(text: SpliceText, *, quickly: bool = False) -> Level:
    """The level of a file; `quickly` when it is only read.

    Raises:
        SpliceRefused: the text cannot be read as it is.
    """
    return Level(text, read_nodes(text.text, quickly=quickly), quickly=quickly)


def column_of(node: Node) -> int:
    """The column at which the members of a block collection stand (the dashes of a list)."""
    if node.kind == "mapping" and node.entries:
        return node.entries[0][0].start.column
    return node.start.column


def block_window(lines: tuple[str, ...], node: Node, *, column: int) -> Window:
    """Where the content of a block scalar lies; `column` is that of the collection that holds it."""
    first = node.start.line + 1
    header = _HEADER.search(lines[node.start.line], node.start.column)
    digit = (header.group(1) or header.group(4)) if header else None
    indent = max(column, 0) + int(digit) if digit else _first_indent(lines[first:])
    last = end = first
    while end < len(lines) and (_is_blank(lines[end]) or lines[end].startswith(" " * indent)):
        if len(lines[end]) > indent:
            last = end + 1
        end += 1
    return Window(first, last if indent > column else first, indent)


def keeps_blank_lines(line: str, node: Node) -> bool:
    """Whether the blank lines behind a block scalar are part of it (`|+`)."""
    header = _HEADER.search(line, node.start.column)
    return node.style in ("|", ">") and header is not None and "+" in header.group()


def _first_indent(lines: tuple[str, ...]) -> int:
    filled = next((line for line in lines if not _is_blank(line)), "")
    return len(filled) - len(filled.lstrip(" "))


def _is_blank(line: str) -> bool:
    return not line.strip(" ")

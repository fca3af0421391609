"""One edit of a YAML text as changed lines: replace a scalar, add a member, remove one (cni-switch.md, 13.3 to 13.6)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.splicelevels import ROOT, Level, column_of, keeps_blank_lines
from gitops_ctl.documents.splicenodes import Node
from gitops_ctl.documents.splicetext import Change
from gitops_ctl.documents.splicevalues import Reader, entry_lines, is_scalar, item_lines, means_the_same, written

FOLLOWED: Final = ("kubeProxyReplacement", "k8sServiceHost", "k8sServicePort")
"""A new member stands behind the first of these siblings, else behind the last member."""

_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Step:
    """What one edit does to one text.

    Attributes:
        changes: of lines; empty when the text says already what it should.
        at: path of the member that is new, replaced or gone; of the emptied parent when that goes too.
        notes: lines of the file that a person should look at.
    """

    changes: tuple[Change, ...]
    at: tuple[str, ...]
    notes: tuple[str, ...] = ()


def replace(level: Level, document: int, steps: tuple[str, ...], after: JsonValue) -> Step:
    """Write another value in the place of the scalar at `steps`.

    Raises:
        SpliceRefused: see section 13.3.
    """
    nodes = level.trail(document, steps)
    node = nodes[-1]
    if len(nodes) <= len(steps):
        raise level.refused("PathAbsent", f'there is no "{steps[-1]}" here', at=node.start.line)
    _require_replaceable(level, node)
    if not is_scalar(after):
        raise level.refused("NotAScalar", "a scalar is replaced by a scalar only", at=node.start.line)
    line = level.text.lines[node.start.line]
    head, tail = line[: node.start.column], line[node.end.column :]
    gap = " " if head and not head.endswith((" ", "\t")) and node.start == node.end else ""
    new = head + gap + written(after, style=node.style) + tail
    return Step((Change(node.start.line, node.start.line + 1, (new,)),), steps)


def add(level: Level, document: int, steps: tuple[str, ...], after: JsonValue, *, added: Collection[str]) -> Step:
    """Write a new member of a mapping, or a new item of a list.

    Args:
        added: members of the same mapping that were added just now; the new one stands behind them.

    Raises:
        SpliceRefused: see section 13.4.
    """
    nodes = level.trail(document, steps)
    if not steps:
        raise level.refused("AlreadySet", "a document cannot be added", at=nodes[0].start.line)
    parent = nodes[len(steps) - 1]
    if parent.kind == "mapping" and len(nodes) > len(steps):
        raise level.refused("AlreadySet", f'"{steps[-1]}" has another value', at=nodes[-1].start.line)
    if parent.kind == "list":
        if parent.items and means_the_same(Reader(level.root(document)).value(parent.items[-1]), after):
            return Step((), steps)
        return _add_item(level, parent, steps, after, step=_indent_step(nodes))
    return _add_member(level, nodes, steps, after, added=added)


def remove(level: Level, document: int, steps: tuple[str, ...]) -> Step:
    """Take out the whole lines of a member that is there, and of the parents that it leaves empty.

    Raises:
        SpliceRefused: see section 13.6.
    """
    nodes = level.trail(document, steps)
    if not steps:
        raise level.refused("WouldBeEmpty", "nothing would be left of the document", at=nodes[0].start.line)
    top = _top_of_cut(level, nodes, steps)
    _require_removable(level, nodes, steps, top, root=level.root(document))
    changes: list[Change] = []
    notes: list[str] = []
    for depth in range(top, len(steps)):
        parent, name = nodes[depth], steps[depth]
        key, value = _entry(parent, name)
        first = key.start.line
        inner = depth < len(steps) - 1
        last = first if inner else level.last_line(value, column=column_of(parent))
        changes.append(Change(first, last + 1, ()))
        notes += _comments_above(level, first)
    return Step(tuple(changes), steps[: top + 1], tuple(notes))


def _require_replaceable(level: Level, node: Node) -> None:
    line = node.start.line
    if node.kind == "alias":
        raise level.refused("Aliased", f"*{node.value} repeats what stands elsewhere", at=line)
    if node.anchor:
        raise level.refused("Anchored", f"the value has the anchor &{node.anchor}", at=line)
    if node.tag:
        raise level.refused("Tagged", "the value has a tag", at=line)
    if node.kind != "scalar":
        raise level.refused("NotAScalar", f"a {node.kind} stands here; only a scalar is replaced", at=line)
    if node.style in ("|", ">"):
        raise level.refused("BlockStyle", "the value is a block scalar", at=line)
    if node.start.line != node.end.line:
        raise level.refused("MultiLine", "the value runs over several lines", at=line)
    if "{{" in node.value or "{%" in node.value:
        raise level.refused("Templated", "the value is text of a template", at=line)
    if "${" in node.value:
        raise level.refused("Substitution", "the value is substituted later (${...})", at=line)


def _add_member(
    level: Level, nodes: tuple[Node, ...], steps: tuple[str, ...], after: JsonValue, *, added: Collection[str]
) -> Step:
    parent, name = nodes[-1], steps[-1]
    _require_block(level, parent)
    names = [key.value for key, _ in parent.entries]
    place = next((names.index(one) for one in FOLLOWED if one in names), len(names) - 1)
    while place + 1 < len(names) and names[place + 1] in added:
        place += 1
    column = column_of(parent)
    key, value = parent.entries[place]
    if level.text.lines[key.start.line][:column].endswith("? "):
        raise level.refused("ExplicitKey", "the member before it has a key after a question mark", at=key.start.line)
    line = _line_after(level, value, column=column)
    lines = entry_lines(name, after, indent=column, step=_indent_step(nodes))
    return Step((Change(line, line, tuple(lines)),), steps, _commented_out(level, name))


def _add_item(level: Level, parent: Node, steps: tuple[str, ...], after: JsonValue, *, step: int) -> Step:
    if parent.style == "flow" or not parent.items:
        raise level.refused("FlowSequence", "the list is written in brackets", at=parent.start.line)
    place = len(parent.items) if steps[-1] == "-" else int(steps[-1])
    if place == 0:
        raise level.refused("ListItem", "nothing is inserted before the first item of a list", at=parent.start.line)
    before, column, lines = parent.items[place - 1], parent.start.column, level.text.lines
    if lines[parent.start.line][column] != "-":
        raise level.refused("ListItem", "the dashes of the list cannot be told", at=parent.start.line)
    start = column_of(before) if before.kind == "mapping" else before.start.column
    gap = max(2, start - column) if lines[before.start.line][column] == "-" else 2
    line = _line_after(level, before, column=column)
    fresh = item_lines(after, indent=column, gap=gap, step=step)
    return Step((Change(line, line, tuple(fresh)),), (*steps[:-1], str(place)))


def _require_block(level: Level, parent: Node) -> None:
    line = parent.start.line
    if parent.kind == "alias":
        raise level.refused("Aliased", f"*{parent.value} repeats what stands elsewhere", at=line)
    if parent.kind != "mapping":
        raise level.refused("PathAbsent", "there is no mapping that could hold the new key", at=line)
    if not parent.entries:
        raise level.refused("FlowMapping", "the mapping is empty ({})", at=line)
    if parent.style == "flow":
        raise level.refused("FlowMapping", "the mapping is written in braces", at=line)


def _line_after(level: Level, node: Node, *, column: int) -> int:
    """The line before which a new sibling goes: comments that are indented deeper than the siblings stay with the old one."""
    lines = level.text.lines
    line = level.last_line(node, column=column) + 1
    if node.kind == "scalar" and keeps_blank_lines(lines[node.start.line], node):
        while line < len(lines) and not lines[line].strip(" "):
            line += 1
    while line < len(lines) and _comment_column(lines[line]) > column:
        line += 1
    return line


def _top_of_cut(level: Level, nodes: tuple[Node, ...], steps: tuple[str, ...]) -> int:
    """How many steps lead to the mapping that loses a key and keeps another one."""
    depth = len(steps) - 1
    while nodes[depth].kind == "mapping" and len(nodes[depth].entries) == 1:
        if depth == 0:
            raise level.refused("WouldBeEmpty", "nothing would be left of the document", at=nodes[0].start.line)
        depth -= 1
    if nodes[depth].kind != "mapping":
        raise level.refused("ListItem", "an item of a list is not removed", at=nodes[depth + 1].start.line)
    return depth


def _require_removable(level: Level, nodes: tuple[Node, ...], steps: tuple[str, ...], top: int, *, root: Node) -> None:
    for depth in range(top, len(steps)):
        _require_own_lines(level, nodes[depth], steps[depth])
    parent, name = nodes[top], steps[top]
    if Reader(root).merged_member(parent, name) is not None:
        raise level.refused("MergeKey", f'a merge key (<<) gives "{name}" too', at=parent.start.line)
    for node in (one for part in _entry(parent, name) for one in part.walk()):
        if node.anchor:
            raise level.refused("Anchored", f"the anchor &{node.anchor} would be removed", at=node.start.line)
        if node.kind == "alias":
            raise level.refused("Aliased", f"*{node.value} would be removed", at=node.start.line)
        if node.is_merge:
            raise level.refused("MergeKey", "a merge key (<<) would be removed", at=node.start.line)
        if node.kind == "scalar" and ("{{" in node.value or "{%" in node.value):
            raise level.refused("Templated", "text of a template would be removed", at=node.start.line)


def _require_own_lines(level: Level, parent: Node, name: str) -> None:
    key, _ = _entry(parent, name)
    line = key.start.line
    if parent.style == "flow":
        raise level.refused("FlowMapping", f'"{name}" stands in a mapping in braces', at=line)
    before = level.text.lines[line][: key.start.column].strip(" ")
    if before.endswith("?"):
        raise level.refused("ExplicitKey", f'"{name}" stands after a question mark', at=line)
    if before:
        raise level.refused("FirstKeyOfListItem", f'"{name}" stands on the line of the dash', at=line)


def _entry(parent: Node, name: str) -> tuple[Node, Node]:
    entry = parent.entry(name)
    assert entry is not None, "the trail went through it"
    return entry


def _comments_above(level: Level, line: int) -> Iterator[str]:
    """The comments that stay where they are, directly above a line that goes."""
    above = line - 1
    while above >= 0 and _comment_column(level.text.lines[above]) > ROOT:
        yield f"line {above + 1 + level.above} holds a comment above what is removed; it stays"
        above -= 1


def _commented_out(level: Level, name: str) -> tuple[str, ...]:
    found = []
    for place, line in enumerate(level.text.lines):
        head, mark, rest = line.partition("#")
        if mark and not head.strip() and rest.strip("# ").partition(":")[0].strip("\"' ") == name and ":" in rest:
            found.append(f'line {place + 1 + level.above} holds "{name}" as a comment; it stays')
    return tuple(found)


def _comment_column(line: str) -> int:
    """Where the comment of a line without anything else begins; ROOT when it is no such line."""
    stripped = line.lstrip(" ")
    return len(line) - len(stripped) if stripped.startswith("#") else ROOT


def _indent_step(nodes: tuple[Node, ...]) -> int:
    """How far the file indents a mapping in a mapping."""
    for node in nodes[0].walk():
        if node.kind == "mapping" and node.style == "block":
            for _, member in node.entries:
                if member.kind == "mapping" and member.style == "block":
                    return max(1, column_of(member) - column_of(node))
    return _STEP

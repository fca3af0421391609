"""From the text of one YAML document to one JSON tree, with everything that is wrong in it.

libyaml makes the node graph; the walk over it is ours, because no stock constructor agrees with kubectl and all of them
keep the last of two equal keys (faults Y01, Y05 to Y08).  A finding never ends the walk: one run reports all of them, and
the tree that is left still tells which object the document declares.
"""

import re
from dataclasses import dataclass
from typing import Final

import yaml
from yaml._yaml import CParser

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonScalar, JsonValue
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.scalars import NotJsonError, is_text, plain_value

_PLAIN: Final = "plain"
_PREFIX: Final = "tag:yaml.org,2002:"
_STR: Final = f"{_PREFIX}str"
_MAP: Final = f"{_PREFIX}map"
_SEQ: Final = f"{_PREFIX}seq"
_SCALAR_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_PREFIX}int": (int,),
    f"{_PREFIX}float": (int, float),
    f"{_PREFIX}bool": (bool,),
    f"{_PREFIX}null": (type(None),),
}
_MERGE: Final = "<<"
_SCALAR: Final = yaml.ScalarNode
_FAR_IN: Final = re.compile(rb"^[ \t\-?:]{32}", re.MULTILINE)
"""A line that begins 32 columns in, with blanks or with marks of block collections."""

_SURELY_FLAT: Final = 100
"""32 columns, two levels each, and a quarter of the depth in brackets are less than this depth, whatever the text."""

MOST_FINDINGS: Final = 100
"""Of one document; more help nobody, and each of them needs its place."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What one document may hold.

    Attributes:
        depth: levels of nesting, those that aliases add included.
        size: characters of all scalars plus 8 for every value, counted as often as aliases repeat them (fault H21).
    """

    depth: int = 128
    size: int = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a place of the text.

    Attributes:
        line, column: from 1, within this text; 0 for the whole of it.
        other_line: where the other one of two equal keys is; 0 when there is none.
    """

    code: ErrorCode
    message: str
    pointer: str
    line: int
    column: int
    hint: str = ""
    other_line: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """What a text holds.

    Attributes:
        value: the JSON tree; None when the text holds nothing, or when it could not be read.
        line: where the content begins, from 1 within the text.
        nulls: pointers of members that were written as null; they are left out of the tree (fault S16).
        size: as `TreeLimits.size` counts.
    """

    value: JsonValue
    line: int
    findings: tuple[Finding, ...]
    nulls: tuple[str, ...] = ()
    size: int = 0


class TooDeepError(yaml.YAMLError):
    """The text nests deeper than allowed."""


class NodeComposer(CParser):
    """Composes nodes.  A plain scalar keeps the tag `plain`: what it means is decided in the walk."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if kind is _SCALAR:
            return _PLAIN if implicit[0] else _STR
        return _MAP if kind is yaml.MappingNode else _SEQ

    def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
        """Called at each node: here nothing is counted."""

    def ascend_resolver(self) -> None:
        """As above."""


class BoundedComposer(NodeComposer):
    """The same, for a text that could nest deeper than allowed: the composer calls itself at each level."""

    def __init__(self, text: bytes, *, depth: int) -> None:
        super().__init__(text)
        self._deepest = depth
        self._depth = 0

    def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
        self._depth += 1
        if self._depth > self._deepest:
            raise TooDeepError(f"nested deeper than {self._deepest} levels")

    def ascend_resolver(self) -> None:
        self._depth -= 1


def _may_be_deep(text: bytes, *, depth: int) -> bool:
    """Whether the text could nest deeper than that; an upper bound that two looks over the text give.

    A flow collection costs a bracket.  A block collection begins in a later column than the one around it, or in the same
    column as the mapping that it is a member of: at most two levels for each column that a line can begin in.
    """
    flow = text.count(b"[") + text.count(b"{")
    return flow >= depth // 4 or _FAR_IN.search(text) is not None


def compose(text: bytes, *, limits: TreeLimits) -> yaml.Node | None:
    """The node graph of the only document in `text`.

    Raises:
        yaml.YAMLError: not YAML, more than one document, or nested too deep.
    """
    careful = limits.depth < _SURELY_FLAT or _may_be_deep(text, depth=limits.depth)
    composer = BoundedComposer(text, depth=limits.depth) if careful else NodeComposer(text)
    try:
        node: yaml.Node | None = composer.get_single_node()
        return node
    finally:
        composer.dispose()


def read_tree(text: bytes, *, limits: TreeLimits) -> Tree:
    """The tree of `text`; never raises."""
    try:
        node = compose(text, limits=limits)
    except yaml.YAMLError as error:
        return Tree(None, 1, (_syntax_finding(error, text=text),))
    if node is None:
        return Tree(None, 1, ())
    walk = _Walk(limits)
    value = walk.read(node)
    line = node.start_mark.line + 1
    if not walk.findings and not walk.nulls:
        return Tree(value, line, (), size=walk.size)
    pointers = _pointers(node, [found.node for found in walk.findings] + walk.nulls)
    findings = tuple(
        Finding(
            found.code,
            found.message,
            pointers.get(id(found.node), ""),
            found.node.start_mark.line + 1,
            found.node.start_mark.column + 1,
            found.hint,
            found.other_line,
        )
        for found in walk.findings
    )
    return Tree(value, line, findings, tuple(pointers.get(id(member), "") for member in walk.nulls), walk.size)


@dataclass(frozen=True, slots=True)
class _Found:
    node: yaml.Node
    code: ErrorCode
    message: str
    hint: str = ""
    other_line: int = 0


class _ExpansionError(Exception):
    """The walk went over a limit; nothing of the document is used."""


class _Walk:
    """One pass over a node graph."""

    __slots__ = ("_depth", "_left", "_limits", "findings", "nulls")

    def __init__(self, limits: TreeLimits) -> None:
        self.findings: list[_Found] = []
        self.nulls: list[yaml.Node] = []
        self._limits = limits
        self._left = limits.size
        self._depth = 0

    @property
    def size(self) -> int:
        return self._limits.size - self._left

    def read(self, root: yaml.Node) -> JsonValue:
        try:
            value = self._value(root)
            self._require_room()
            return value
        except _ExpansionError as error:
            self.findings.append(_Found(root, ErrorCode.EXPANSION_LIMIT, str(error)))
            return None

    def _value(self, node: yaml.Node) -> JsonValue:
        self._left -= 8
        if type(node) is yaml.ScalarNode:
            self._left -= len(node.value)
            return node.value if node.tag == _STR else self._scalar(node)
        self._require_room()
        self._depth += 1
        if self._depth > self._limits.depth:
            raise _ExpansionError(f"aliases nest deeper than {self._limits.depth} levels")
        if node.tag not in (_MAP, _SEQ):
            self._refuse_tag(node)
        value = self._mapping(node) if type(node) is yaml.MappingNode else [self._value(item) for item in node.value]
        self._depth -= 1
        return value

    def _require_room(self) -> None:
        if self._left < 0:
            raise _ExpansionError(f"the document expands to more than {max(0, self._limits.size) / 2**20:.3g} MiB")

    def _scalar(self, node: yaml.ScalarNode) -> JsonScalar:
        text: str = node.value
        try:
            value = plain_value(text)
        except NotJsonError as error:
            self._add(node, ErrorCode.NUMBER_NOT_JSON, f"the value is no JSON number: {error}")
            return text
        if node.tag == _PLAIN:
            return value
        if type(value) not in _SCALAR_TAGS.get(node.tag, ()):
            self._refuse_tag(node)
            return text
        return value

    def _mapping(self, node: yaml.MappingNode) -> JsonValue:
        members: dict[str, JsonValue] = {}
        merged: list[yaml.Node] = []
        lines: dict[str, int] = {}
        for key, member in node.value:
            name = self._key(key)
            if name is None:
                continue
            if name == _MERGE and key.tag == _PLAIN:
                merged.append(member)
                continue
            if name in lines:
                self._duplicate(key, name=name, first_line=lines[name])
            lines[name] = key.start_mark.line + 1
            value = self._value(member)
            if value is None:
                self.nulls.append(member)
                members.pop(name, None)
            else:
                members[name] = value
        for source in merged:
            self._merge(source, members=members, own=lines)
        return members

    def _merge(self, source: yaml.Node, *, members: dict[str, JsonValue], own: dict[str, int]) -> None:
        """Bring in the members of `source` that the mapping does not write itself; of several sources the first wins."""
        sources = source.value if type(source) is yaml.SequenceNode else [source]
        for one in sources:
            value = self._value(one)
            if not isinstance(value, dict):
                self._add(one, ErrorCode.YAML_SYNTAX, "a merge key (<<) needs a mapping")
                continue
            for name, member in value.items():
                if name not in own:
                    members.setdefault(name, member)

    def _key(self, key: yaml.Node) -> str | None:
        """The name of a member; None for a key that cannot have one."""
        if type(key) is not yaml.ScalarNode:
            self._add(
                key, ErrorCode.KEY_NOT_A_STRING, "a mapping or a list is used as a key", hint="use a string as key"
            )
            return None
        text: str = key.value
        self._left -= len(text)
        if key.tag == _STR or (key.tag == _PLAIN and is_text(text)):
            return text
        self._add(
            key, ErrorCode.KEY_NOT_A_STRING, f"the key {_cut(text)} is not a string", hint=f'quote it: "{_cut(text)}":'
        )
        return text

    def _duplicate(self, key: yaml.Node, *, name: str, first_line: int) -> None:
        self._add(key, ErrorCode.DUPLICATE_KEY, f'key "{_cut(name)}" appears twice', other_line=first_line)

    def _refuse_tag(self, node: yaml.Node) -> None:
        shown = node.tag.replace(_PREFIX, "!!", 1)
        self._add(node, ErrorCode.TAG_REFUSED, f"the tag {_cut(shown)} is refused here")

    def _add(self, node: yaml.Node, code: ErrorCode, message: str, *, hint: str = "", other_line: int = 0) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(_Found(node, code, message, hint, other_line))


def _cut(text: str, *, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _syntax_finding(error: yaml.YAMLError, *, text: bytes) -> Finding:
    if isinstance(error, TooDeepError):
        return Finding(ErrorCode.EXPANSION_LIMIT, str(error), "", 1, 1)
    line, column, cause = 1, 1, "it cannot be read"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            line, column = mark.line + 1, mark.column + 1
        cause = " ".join(part for part in (error.context, error.problem) if part)
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        cause = str(error.reason)
    if b"{{" in text:
        return Finding(
            ErrorCode.NOT_RESOLVED, f"the text is a template, not YAML: {_cut(cause, limit=200)}", "", line, column
        )
    return Finding(ErrorCode.YAML_SYNTAX, f"not YAML: {_cut(cause, limit=200)}", "", line, column)


def _pointers(root: yaml.Node, wanted: list[yaml.Node]) -> dict[int, str]:
    """Pointer of each wanted node, by identity; a key has the pointer of its member.  Shared nodes: the first place."""
    missing = {id(node) for node in wanted}
    found: dict[int, str] = {}
    seen: set[int] = set()
    stack: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(root, ())]
    while stack and missing:
        node, steps = stack.pop()
        if id(node) in missing:
            missing.discard(id(node))
            found[id(node)] = pointer_of(steps)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is yaml.SequenceNode:
            stack.extend((item, (*steps, place)) for place, item in reversed(list(enumerate(node.value))))
        elif type(node) is yaml.MappingNode:
            for key, member in reversed(node.value):
                name = key.value if type(key) is yaml.ScalarNode else "?"
                stack.append((member, (*steps, name)))
                stack.append((key, (*steps, name)))
    return found

"""Sets of field paths, and their form in `metadata.managedFields`.

A path is a tuple of steps in the wire form of `fieldsV1`: `f:name` a member, `k:{"name":"x"}` an item of a keyed list,
`v:"x"` an item of a set.  Plain frozen sets of such paths make union, intersection and difference those of Python.
"""

import json
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

EMPTY: FieldSet = frozenset()


_encoder = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def compact(value: Any) -> str:
    """JSON without spaces, keys sorted."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        members = (f"{encode_basestring(name)}:{encode_basestring(value[name])}" for name in sorted(value))
        return "{" + ",".join(members) + "}"
    return _encoder.encode(value)


def encode(paths: Iterable[Path]) -> dict[str, Any]:
    """The tree of `fieldsV1`; `.` marks an inner path that is a member itself."""
    tree: dict[str, Any] = {}
    members = sorted(paths)
    inner = {path[:size] for path in members for size in range(1, len(path))}
    for path in members:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        if path in inner:
            node["."] = {}
    return tree


def decode(tree: Mapping[str, Any]) -> FieldSet:
    """The paths of a `fieldsV1` tree."""
    found: set[Path] = set()

    def walk(node: Mapping[str, Any], path: Path) -> None:
        for step, child in node.items():
            if step == ".":
                found.add(path)
            elif child:
                walk(child, (*path, step))
            else:
                found.add((*path, step))

    walk(tree, ())
    return frozenset(found)


def text(path: Path) -> str:
    """The form in messages: `.spec.containers[name="a"].image`."""
    return "".join(_step_text(step) for step in path)


def _step_text(step: str) -> str:
    kind, _, rest = step.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "k":
        return "[" + ",".join(f"{key}={compact(item)}" for key, item in value.items()) + "]"
    return f"[={compact(value)}]"


class Trie:
    """A set of paths, arranged for walking down a value."""

    __slots__ = ("children", "member")

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self.member = False
        self.children: dict[str, Trie] = {}
        for path in paths:
            node = self
            for step in path:
                below = node.children.get(step)
                if below is None:
                    below = node.children[step] = Trie()
                node = below
            node.member = True

"""Reads a `.json` file under the same rules as YAML.

The fast reader finds out that something is wrong; the YAML walk, which keeps places, says where.
"""

import json
from typing import Final

from gitops_ctl.core.canonical import MAX_SAFE_INTEGER
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonValue
from gitops_ctl.documents.scalars import NotJsonError, json_number
from gitops_ctl.documents.yamltree import Finding, Tree, TreeLimits, read_tree

_LONGEST_INTEGER: Final = len(str(MAX_SAFE_INTEGER)) + 1


class _IrregularError(ValueError):
    """Readable JSON that the rules refuse, or that needs the slower walk."""


def read_json(text: bytes, *, limits: TreeLimits) -> Tree:
    """The tree of `text`; never raises."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
        _require_depth(value, limits.depth)
        if b"\\ud" in text.lower():
            _require_unicode(value)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}"
        return Tree(None, 1, (Finding(ErrorCode.YAML_SYNTAX, message, "", error.lineno, error.colno),))
    except (_IrregularError, NotJsonError, UnicodeDecodeError, RecursionError) as error:
        tree = read_tree(text, limits=limits)
        if tree.findings or tree.nulls:
            return tree
        return Tree(None, 1, (Finding(ErrorCode.YAML_SYNTAX, f"not JSON: {error}", "", 1, 1),))
    return Tree(value, 1, ())


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _IrregularError("a key appears twice")
    if None in members.values():
        raise _IrregularError("a member is null")
    return members


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise NotJsonError("integers beyond 2^53 lose digits in JSON readers")
    return int(json_number(int(text)))


def _float(text: str) -> int | float:
    return json_number(float(text))


def _constant(text: str) -> float:
    raise NotJsonError(f"{text} is no JSON number")


def _require_unicode(value: JsonValue) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _IrregularError("half of a surrogate pair") from error


def _require_depth(value: JsonValue, depth: int) -> None:
    if depth < 0:
        raise _IrregularError("nested too deep")
    if isinstance(value, dict):
        for member in value.values():
            _require_depth(member, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _require_depth(item, depth - 1)

"""JSON merge patch (RFC 7396) and JSON patch (RFC 6902)."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.doubles.apiserver.answers import ApiError, bad_request, unprocessable
from tests.doubles.apiserver.structure import copied, same


def merge_patched(target: Any, patch: Any) -> Any:
    """`target` with a merge patch applied."""
    if not isinstance(patch, Mapping):
        return copied(patch)
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), value)
    return result


def json_patched(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """`target` with the operations applied in order.

    Raises:
        ApiError: 422 when one cannot be carried out or its test fails.
    """
    result = copied(target)
    for operation in operations:
        result = _operate(result, operation)
    return result


def _operate(root: Any, operation: Mapping[str, Any]) -> Any:
    name, path = operation.get("op"), _steps(operation.get("path"))
    if name == "test":
        if not same(_at(root, path), operation.get("value")):
            raise unprocessable()
        return root
    if name in ("move", "copy"):
        source = _steps(operation.get("from"))
        value = copied(_at(root, source))
        root = _without(root, source) if name == "move" else root
        return _with(root, path, value)
    if name == "remove":
        return _without(root, path)
    if name in ("add", "replace"):
        if name == "replace":
            _at(root, path)
            root = _without(root, path)
        return _with(root, path, copied(operation.get("value")))
    raise bad_request(f"Unexpected kind: {name}")


def _steps(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise bad_request("json: cannot unmarshal the path of a patch operation")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _at(root: Any, path: Sequence[str]) -> Any:
    for step in path:
        root = root[_index(root, step)] if isinstance(root, list) else _member(root, step)
    return root


def _member(node: Any, step: str) -> Any:
    if not isinstance(node, Mapping) or step not in node:
        raise unprocessable()
    return node[step]


def _index(node: list[Any], step: str, *, end: int = -1) -> int:
    if not step.isdigit() or int(step) > len(node) + end:
        raise unprocessable()
    return int(step)


def _with(root: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(root, path[:-1])
    if isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else _index(parent, path[-1], end=0), value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise unprocessable()
    return root


def _without(root: Any, path: Sequence[str]) -> Any:
    parent = _at(root, path[:-1])
    _at(parent, path[-1:])
    del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]
    return root


__all__ = ["ApiError", "json_patched", "merge_patched"]

"""Paths as the API server writes them in conflicts: `.spec.template.spec.containers[name="web"].image`."""

import json
from collections.abc import Mapping, Sequence

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue


def declares(tree: JsonValue, path: str) -> bool:
    """Whether a document says anything at `path`.

    Names may hold dots (labels do), so a mapping is searched for the names that the rest of the path begins with.
    """
    if not path:
        return True
    if path.startswith(".") and isinstance(tree, Mapping):
        rest = path[1:]
        return any(
            rest.startswith(name)
            and rest[len(name) : len(name) + 1] in ("", ".", "[")
            and declares(below, rest[len(name) :])
            for name, below in tree.items()
        )
    if path.startswith("[") and isinstance(tree, Sequence) and not isinstance(tree, str):
        return any(
            declares(item, rest) for selector, rest in _selectors(path) for item in tree if _fits(item, selector)
        )
    return False


def _selectors(path: str) -> list[tuple[str, str]]:
    """Each way to read the first selector: its text, and what follows; a value may hold a closing bracket."""
    return [
        (path[1:end], path[end + 1 :])
        for end, sign in enumerate(path)
        if sign == "]" and path[end + 1 : end + 2] in ("", ".", "[")
    ]


def _fits(item: JsonValue, selector: str) -> bool:
    if selector.startswith("="):
        return _same(item, selector[1:])
    if selector.isdecimal():
        return True
    return isinstance(item, Mapping) and _keys_fit(item, selector)


def _keys_fit(item: JsonObject, selector: str) -> bool:
    """Whether every `key=value` of the selector holds; values are JSON texts."""
    rest = selector
    while rest:
        name, sign, rest = rest.partition("=")
        if not sign or name not in item:
            return False
        text = json.dumps(item[name])
        if not rest.startswith(text):
            return False
        rest = rest[len(text) :].removeprefix(",")
    return True


def _same(item: JsonValue, text: str) -> bool:
    return not isinstance(item, (Mapping, list, tuple)) and json.dumps(item) == text


def declared_pointers(fields: JsonObject, *, prefix: str = "") -> list[str]:
    """The leaf paths of a `fieldsV1` tree in the server's notation, sorted."""
    found: list[str] = []
    for key, below in fields.items():
        if key == ".":
            continue
        path = prefix + _step(key)
        deeper = below if isinstance(below, Mapping) else {}
        inner = declared_pointers(deeper, prefix=path)
        found.extend(inner or [path])
    return sorted(found)


def owns(fields: JsonObject, path: str) -> bool:
    """Whether a `fieldsV1` tree holds the field at `path`, or anything below it."""
    return any(found == path or found.startswith((f"{path}.", f"{path}[")) for found in declared_pointers(fields))


def _step(key: str) -> str:
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "k:":
        keys = json.loads(text)
        return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in keys.items()) + "]"
    return f"[={text}]" if kind == "v:" else f"[{text}]"

"""Structural schemas of custom resources: prune, default, validate, with the texts of a real server."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from tests.doubles.apiserver import structure
from tests.doubles.apiserver.answers import Cause, invalid_value, required
from tests.doubles.apiserver.schema_facts import ANY, Fact, Schema

BLOCKING = frozenset(
    {"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"}
)

_COMBINING = frozenset({"allOf", "anyOf", "oneOf", "not"})


def child_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of a member; None when the type does not have it."""
    found = schema.get("properties", {}).get(name)
    if found is None and isinstance(schema.get("additionalProperties"), dict):
        found = schema["additionalProperties"]
    result: Schema | None = found
    return result


def pruned(schema: Schema, value: Any, path: str = "", *, top: bool = False) -> tuple[Any, list[str]]:
    """`value` without undeclared members, and the paths of those."""
    unknown: list[str] = []
    if isinstance(value, list):
        items = []
        for number, item in enumerate(value):
            kept, lost = pruned(schema.get("items", {}), item, f"{path}[{number}]")
            items.append(kept)
            unknown += lost
        return items, unknown
    if not isinstance(value, dict):
        return value, unknown
    embedded = top or bool(schema.get("x-kubernetes-embedded-resource"))
    open_map = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or schema.get("additionalProperties") is True
    result: dict[str, Any] = {}
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        child = child_schema(schema, name)
        if embedded and name in ("apiVersion", "kind", "metadata"):
            result[name] = item
        elif child is not None:
            result[name], lost = pruned(child, item, where)
            unknown += lost
        elif open_map:
            result[name] = item
        else:
            unknown.append(where)
    return result, unknown


def defaulted(schema: Schema, value: Any, *, nulls: bool = False) -> Any:
    """`value` with defaults.

    A null where none is allowed counts as absent; with `nulls` only where there is a default, as after a server-side apply.
    """
    if isinstance(value, list):
        items = schema.get("items", ANY)
        return [defaulted(items, item, nulls=nulls) if isinstance(item, (dict, list)) else item for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        child = child_schema(schema, name) if item is None else None
        refused = child is not None and child.get("type") and not child.get("nullable")
        if refused and child is not None and (not nulls or child.get("default") is not None):
            continue
        result[name] = item
    for name, default in _defaults(schema):
        if name not in result:
            result[name] = structure.copied(default)
    for name, item in result.items():
        if isinstance(item, (dict, list)) and (child := child_schema(schema, name)) is not None:
            result[name] = defaulted(child, item, nulls=nulls)
    return result


@Fact
def _defaults(schema: Schema) -> tuple[tuple[str, Any], ...]:
    """Members with a default."""
    found = ((name, child.get("default")) for name, child in schema.get("properties", {}).items())
    return tuple((name, default) for name, default in found if default is not None)


def problems(schema: Schema, value: Any, path: str = "", *, skip: frozenset[str] = frozenset()) -> Iterator[Cause]:
    """What is wrong with `value`; `skip` names members that somebody else checks."""
    if value is None and schema.get("nullable"):
        return
    wrong = _wrong_type(schema, value, path)
    if wrong is not None:
        yield wrong
        return
    yield from _enum(schema, value, path)
    if isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path, skip)
    elif isinstance(value, list):
        yield from _list(schema, value, path)
    elif not isinstance(value, bool) and value is not None:
        yield from _number(schema, value, path)
    yield from _combined(schema, value, path)


def json_type(value: Any) -> str:
    """The JSON name of a value's type."""
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]


def _wrong_type(schema: Schema, value: Any, path: str) -> Cause | None:
    found = json_type(value)
    if schema.get("x-kubernetes-int-or-string"):
        allowed: tuple[str, ...] = ("integer", "string")
    else:
        allowed = (schema["type"],) if "type" in schema else ()
    whole = isinstance(value, float) and value.is_integer()
    fits = (
        not allowed
        or found in allowed
        or (found == "integer" and "number" in allowed)
        or (whole and "integer" in allowed)
    )
    if fits:
        return None
    text = f"{path} in body must be of type {','.join(allowed)}: {json.dumps(found)}"
    return Cause("FieldValueTypeInvalid", f"Invalid value: {json.dumps(found)}: {text}", path)


def _enum(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed is not None and not any(structure.same(value, item) for item in allowed):
        names = ", ".join(json.dumps(item) for item in allowed)
        shown = json.dumps(value)
        yield Cause("FieldValueNotSupported", f"Unsupported value: {shown}: supported values: {names}", path)


def _string(schema: Schema, value: str, path: str) -> Iterator[Cause]:
    """The first rule that a text breaks; a server says no more than that."""
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength", 0), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {longest} bytes", path)
    elif len(value) < shortest:
        yield invalid_value(path, _shown(value), f"{path} in body should be at least {shortest} chars long")
    elif pattern is not None and re.search(re2(pattern), value, re.ASCII) is None:
        yield invalid_value(path, _shown(value), f"{path} in body should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_moment(value):
        text = f"Invalid value: {_shown(value)}: {path} in body must be of type date-time: {_shown(value)}"
        yield Cause("FieldValueTypeInvalid", text, path)


def _shown(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


@cache
def re2(pattern: str) -> str:
    """The pattern with the meaning that it has on the server: `$` is the end of the text, not a line break before it."""
    result, in_class, escaped = "", False, False
    for found in pattern:
        character = found
        if escaped or character == "\\":
            escaped = not escaped
        elif character in "[]":
            in_class = character == "["
        elif character == "$" and not in_class:
            character = r"\Z"
        result += character
    return result


def _is_moment(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _number(schema: Schema, value: float, path: str) -> Iterator[Cause]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        over = bool(schema.get("exclusiveMinimum"))
        if value < low or (over and value == low):
            word = "greater than" if over else "greater than or equal to"
            yield invalid_value(path, str(value), f"{path} in body should be {word} {low}")
    if high is not None:
        under = bool(schema.get("exclusiveMaximum"))
        if value > high or (under and value == high):
            word = "less than" if under else "less than or equal to"
            yield invalid_value(path, str(value), f"{path} in body should be {word} {high}")
    step = schema.get("multipleOf")
    if step is not None and value % step:
        yield invalid_value(path, str(value), f"{path} in body should be a multiple of {step}")


def _object(schema: Schema, value: Mapping[str, Any], path: str, skip: frozenset[str]) -> Iterator[Cause]:
    if len(value) > schema.get("maxProperties", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        yield Cause("FieldValueTooMany", text, path)
    if len(value) < schema.get("minProperties", 0):
        text = f"{path} in body should have at least {schema['minProperties']} properties"
        yield invalid_value(path, str(len(value)), text)
    for name in schema.get("required", ()):
        if name not in value and name not in skip:
            yield required(f"{path}.{name}" if path else name)
    for name, item in value.items():
        child = child_schema(schema, name)
        if child is not None and name not in skip:
            yield from problems(child, item, f"{path}.{name}" if path else name)


def _list(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxItems", len(value)):
        text = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        yield Cause("FieldValueTooMany", text, path)
    if len(value) < schema.get("minItems", 0):
        text = f"{path} in body should have at least {schema['minItems']} items"
        yield invalid_value(path, str(len(value)), text)
    for number, item in enumerate(value):
        yield from problems(schema.get("items", {}), item, f"{path}[{number}]")


def duplicates(schema: Schema, value: Any, path: str = "") -> Iterator[Cause]:
    """Items of sets and keyed lists that are there twice."""
    if isinstance(value, dict):
        for name, item in value.items():
            child = child_schema(schema, name)
            if child is not None:
                yield from duplicates(child, item, f"{path}.{name}" if path else name)
        return
    if not isinstance(value, list):
        return
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
    seen: list[Any] = []
    for number, item in enumerate(value):
        yield from duplicates(schema.get("items", {}), item, f"{path}[{number}]")
        if kind not in ("set", "map") or (kind == "map" and not isinstance(item, Mapping)):
            continue
        identity = item if kind == "set" else {key: item[key] for key in keys if key in item}
        if any(structure.same(identity, other) for other in seen):
            shown = json.dumps(identity, separators=(",", ":"))
            yield Cause("FieldValueDuplicate", f"Duplicate value: {shown}", f"{path}[{number}]")
        seen.append(identity)


def _combined(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """`allOf`, `anyOf`, `oneOf`, `not`: the branches say more about the same value."""
    if _COMBINING.isdisjoint(schema):
        return
    for branch in schema.get("allOf", ()):
        yield from problems(branch, value, path)
    shown = '""' if isinstance(value, (dict, list)) else json.dumps(value)
    fitting = {
        word: sum(not list(problems(branch, value, path)) for branch in schema[word])
        for word in ("anyOf", "oneOf")
        if word in schema and not schema.get("x-kubernetes-int-or-string")
    }
    if fitting.get("anyOf", 1) == 0:
        yield invalid_value(path, shown, f"{path} in body must validate at least one schema (anyOf)")
    if fitting.get("oneOf", 1) != 1:
        found = "Found none valid" if fitting["oneOf"] == 0 else f"Found {fitting['oneOf']} valid alternatives"
        yield invalid_value(path, shown, f"{path} in body must validate one and only one schema (oneOf). {found}")
    if "not" in schema and not list(problems(schema["not"], value, path)):
        yield invalid_value(path, shown, f"{path} in body must not validate the schema (not)")

"""Writes `builtin_types.json`: the shapes of built-in kinds as a real API server publishes them.

The double must know which lists are maps, which keys they have and which objects are atomic.  Nobody should type that by
hand, so it is taken from the OpenAPI documents of a real server and reduced to structure: no descriptions, one type a line.
A contract test compares the file with what the real server says today.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("builtin_types.json")
KEPT = (
    "type",
    "format",
    "default",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
)
PREFIX = "#/components/schemas/"


def reduced(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The structure of one OpenAPI schema; references become `{"$ref": name}`."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"].removeprefix(PREFIX)}
    if len(schema.get("allOf", ())) == 1:
        return {**reduced(schema["allOf"][0]), **({"default": schema["default"]} if "default" in schema else {})}
    result: dict[str, Any] = {key: schema[key] for key in KEPT if key in schema}
    if "oneOf" in schema and "type" not in schema:
        result["x-kubernetes-int-or-string"] = True
    if "properties" in schema:
        result["properties"] = {name: reduced(value) for name, value in sorted(schema["properties"].items())}
    if isinstance(schema.get("items"), Mapping):
        result["items"] = reduced(schema["items"])
    if isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = reduced(schema["additionalProperties"])
    return result


def references(schema: Any) -> set[str]:
    """Names that a reduced schema refers to."""
    if isinstance(schema, Mapping):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(references(value) for value in schema.values()))
    if isinstance(schema, list):
        return set().union(*(references(value) for value in schema))
    return set()


def select(documents: Iterable[Mapping[str, Any]], *, kinds: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """The types of `kinds` (group, version, kind) and everything that they refer to, by name."""
    schemas: dict[str, Any] = {}
    for document in documents:
        schemas.update(document["components"]["schemas"])
    roots: dict[str, str] = {}
    for name, schema in schemas.items():
        for entry in schema.get("x-kubernetes-group-version-kind", ()):
            roots[f"{entry['group']}/{entry['version']}/{entry['kind']}"] = name
    chosen = {"/".join(kind): roots["/".join(kind)] for kind in kinds}
    types: dict[str, Any] = {}
    waiting = sorted(set(chosen.values()))
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = reduced(schemas[name])
            waiting.extend(sorted(references(types[name])))
    return {"kinds": chosen, "types": types}


def rendered(selection: Mapping[str, Any]) -> str:
    """The text of the file: one kind and one type a line, sorted."""
    parts = []
    for section in ("kinds", "types"):
        lines = [f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in sorted(selection[section].items())]
        parts.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"

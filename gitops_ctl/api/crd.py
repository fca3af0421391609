"""CustomResourceDefinitions from models.  What cannot be expressed is refused, never weakened.

The input is the JSON Schema that pydantic gives; the output is a structural schema (structural.py).  Defaults stand in what
people write; a status and the kinds that only controllers write get none, because a default that the server adds would
differ from what the controller wrote and cause another write.
"""

from collections.abc import Mapping
from functools import cache

import jsonschema_rs

from gitops_ctl.api.kind import Column, CustomKind
from gitops_ctl.api.model import Model
from gitops_ctl.api.structural import NotStructural, check_structural
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at

_NOISE = frozenset({"title", "examples", "discriminator", "$defs"})
_BOUND_OF = {"string": "maxLength", "array": "maxItems", "integer": "maximum", "number": "maximum"}


def crd_of(model: type[Model]) -> dict[str, JsonValue]:
    """The CustomResourceDefinition of a kind.

    Raises:
        NotStructural: the model says something that the API server would refuse or forget.
    """
    kind = kind_of(model)
    view: dict[str, JsonValue] = {"subresources": {"status": {}}} if kind.has_status else {}
    view["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    view["schema"] = {"openAPIV3Schema": structural_schema(model)}
    spec: dict[str, JsonValue] = {
        "group": kind.group,
        "names": _names(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [
            {"name": name, "served": True, "storage": place == 0, **view} for place, name in enumerate(kind.versions)
        ],
    }
    if len(kind.versions) > 1:
        spec["conversion"] = {"strategy": "None"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {"app.kubernetes.io/part-of": "gitops-ctl"}},
        "spec": spec,
    }


def kind_of(model: type[Model]) -> CustomKind:
    """The names of a stored kind.

    Raises:
        TypeError: the model is a part of a document, or lives in Git only.
    """
    kind = getattr(model, "custom_kind", None)
    if not isinstance(kind, CustomKind):
        raise TypeError(f"{model.__name__} is no stored kind")
    return kind


def _names(kind: CustomKind) -> JsonObject:
    names: dict[str, JsonValue] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        "categories": list(kind.categories),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return names


def _column(column: Column) -> JsonObject:
    entry: dict[str, JsonValue] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        entry["priority"] = column.priority
    if column.description:
        entry["description"] = column.description
    return entry


def structural_schema(model: type[Model]) -> dict[str, JsonValue]:
    """The `openAPIV3Schema` of a kind: `spec`, and `status` where it has one.

    Raises:
        NotStructural: see `crd_of`.
    """
    kind = kind_of(model)
    source = _source(model)
    whole = inlined(source, source)
    properties = dict(object_at(whole, "properties"))
    _require_bounds({name: node for name, node in properties.items() if name in ("spec", "status")}, whole)
    properties["apiVersion"] = {"type": "string", "description": "Version of the schema of this object."}
    properties["kind"] = {"type": "string", "description": "Kind of this object."}
    properties["metadata"] = {"type": "object"}
    if not kind.has_defaults:
        properties["spec"] = _without_defaults(object_at(properties, "spec"))
    if kind.has_status:
        properties["status"] = _without_defaults(object_at(properties, "status"))
    schema: dict[str, JsonValue] = {**whole, "properties": properties, "required": ["spec"]}
    check_structural(schema)
    _require_valid_defaults(schema, "schema")
    return schema


def inlined(node: JsonObject, root: JsonObject, *, above: tuple[str, ...] = ()) -> dict[str, JsonValue]:
    """`node` without references, unions with null, and words that the server does not keep.

    Raises:
        NotStructural: a recursive model, or a union.
    """
    reference = text_at(node, "$ref")
    if reference:
        name = reference.rpartition("/")[2]
        if name in above:
            raise NotStructural((f"{name}: refers to itself",))
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return inlined({**object_at(root, "$defs", name), **beside}, root, above=(*above, name))
    if "anyOf" in node:
        return inlined(_without_null(node), root, above=above)
    result: dict[str, JsonValue] = {}
    for keyword, value in node.items():
        if keyword not in _NOISE:
            result |= _converted(keyword, value, node, root, above)
    return result


def _without_null(node: JsonObject) -> JsonObject:
    branches = [branch for branch in list_at(node, "anyOf") if isinstance(branch, Mapping)]
    branches = [branch for branch in branches if branch.get("type") != "null"]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(branches) == 1:
        return {**branches[0], **beside}
    if {text_at(branch, "type") for branch in branches} == {"integer", "string"} and all(len(b) == 1 for b in branches):
        return {"x-kubernetes-int-or-string": True, **beside}
    raise NotStructural((f"{text_at(node, 'title', default='a member')}: a union of several types",))


def _converted(
    keyword: str, value: JsonValue, node: JsonObject, root: JsonObject, above: tuple[str, ...]
) -> dict[str, JsonValue]:
    match keyword, value:
        case "properties", Mapping() if not value:
            result: dict[str, JsonValue] = {}  # the server forgets that nothing was declared
        case "properties", Mapping():
            result = {keyword: {name: _inner(part, root, above) for name, part in value.items()}}
        case (("items" | "additionalProperties" | "propertyNames"), Mapping()):
            result = {keyword: _inner(value, root, above)}
        case "additionalProperties", _:
            result = {"x-kubernetes-preserve-unknown-fields": True} if value else {}
        case "const", _:
            result = {"enum": [value]}
        case "uniqueItems", _:
            result = {"x-kubernetes-list-type": "set"} if value else {}
        case (("exclusiveMinimum" | "exclusiveMaximum"), int() | float()):
            result = _inclusive(keyword, value, integral=node.get("type") == "integer")
        case "default", _:
            result = _default(value, node, root)
        case _:
            result = {keyword: value}
    return result


def _inner(value: JsonValue, root: JsonObject, above: tuple[str, ...]) -> JsonValue:
    return inlined(value, root, above=above) if isinstance(value, Mapping) else value


def _inclusive(keyword: str, limit: float, *, integral: bool) -> dict[str, JsonValue]:
    bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
    if integral:
        return {bound: limit + 1 if bound == "minimum" else limit - 1}
    return {bound: limit, keyword: True}


def _default(value: JsonValue, node: JsonObject, root: JsonObject) -> dict[str, JsonValue]:
    """No null and no emptiness; a nested object is defaulted by the defaults of its members."""
    if value is None or value in ("", []):
        return {}
    nested = object_at(node, "properties") or object_at(
        root, "$defs", text_at(node, "$ref").rpartition("/")[2], "properties"
    )
    return {"default": {} if nested and isinstance(value, Mapping) else value}


def _without_defaults(node: JsonObject) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for keyword, value in node.items():
        if keyword == "properties" and isinstance(value, Mapping):
            result[keyword] = {
                name: _without_defaults(member) for name, member in value.items() if isinstance(member, Mapping)
            }
        elif keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
            result[keyword] = _without_defaults(value)
        elif keyword != "default":
            result[keyword] = value
    return result


@cache
def _source(model: type[Model]) -> JsonObject:
    """What pydantic gives, made once: it takes longer than all that follows.

    Raises:
        NotStructural: computed members, or aliases that differ between reading and writing; status is read back by name.
    """
    read = model.model_json_schema(by_alias=True, mode="validation")
    written = model.model_json_schema(by_alias=True, mode="serialization")
    names = [
        {name: set(object_at(part, "properties")) for name, part in _parts(form).items()} for form in (read, written)
    ]
    differing = tuple(
        f"{name}: members differ between reading and writing"
        for name in names[0]
        if names[0][name] != names[1].get(name)
    )
    if differing:
        raise NotStructural(differing)
    return read


def _parts(schema: JsonObject) -> dict[str, JsonObject]:
    parts = {name: part for name, part in object_at(schema, "$defs").items() if isinstance(part, Mapping)}
    return {text_at(schema, "title"): schema, **parts}


def _require_bounds(properties: JsonObject, whole: JsonObject) -> None:
    """Every text, list and number is bounded, or the cost estimate of a CEL rule over it has no end."""
    problems: list[str] = []
    stack = [(name, node) for name, node in properties.items() if isinstance(node, Mapping)]
    while stack:
        path, node = stack.pop()
        bound = _BOUND_OF.get(text_at(node, "type"))
        if bound and bound not in node and "enum" not in node:
            problems.append(f"{path}: has no {bound}")
        if isinstance(node.get("additionalProperties"), Mapping) and "maxProperties" not in node:
            problems.append(f"{path}: has no maxProperties")
        stack += [
            (f"{path}.{name}", part)
            for name, part in object_at(node, "properties").items()
            if isinstance(part, Mapping)
        ]
        stack += [
            (f"{path}{mark}", object_at(node, key))
            for key, mark in (("items", "[]"), ("additionalProperties", ".*"))
            if object_at(node, key)
        ]
    if problems:
        raise NotStructural(tuple(f"{text_at(whole, 'type')} {problem}" for problem in sorted(problems)))


def _require_valid_defaults(node: JsonObject, path: str) -> None:
    if "default" in node and not jsonschema_rs.is_valid(dict(node), node["default"]):
        raise NotStructural((f"{path}: the default is not valid",))
    for name, member in object_at(node, "properties").items():
        if isinstance(member, Mapping):
            _require_valid_defaults(member, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if object_at(node, key):
            _require_valid_defaults(object_at(node, key), f"{path}[]")

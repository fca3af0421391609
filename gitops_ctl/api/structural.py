"""What the API server calls a structural schema, and the JSON Schema keywords that it drops without a word.

A dropped constraint is worse than a refused one: the rule is believed to hold and does not.  So the generator checks its
own output here, before any server sees it.
"""

import re
from collections.abc import Iterator, Mapping

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at

TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean"})
FORMATS = frozenset({"date-time", "int32", "int64"})
"""Formats that we use and the server knows; anything else is written as a pattern or as CEL."""

KEYWORDS = frozenset(
    {
        "type",
        "description",
        "properties",
        "additionalProperties",
        "required",
        "items",
        "enum",
        "default",
        "nullable",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minProperties",
        "maxProperties",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    }
)
_WHY = {
    "$ref": "references are not supported: inline it",
    "$defs": "dropped silently: inline the definitions",
    "anyOf": "branches must not have types: collapse them",
    "oneOf": "branches must not have types: merge them and add a CEL rule",
    "allOf": "merge it",
    "const": "dropped silently: use an enum of one value",
    "prefixItems": "dropped silently: use an object instead of a tuple",
    "uniqueItems": "refused as quadratic: use the list type set",
    "discriminator": "dropped silently",
    "examples": "dropped silently",
    "title": "noise",
    "propertyNames": "dropped silently",
    "patternProperties": "dropped silently",
}
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict, Mapping),
    "array": (list, tuple),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}
# RE2 has neither look-around nor back-references nor atomic groups.
_NOT_RE2 = re.compile(r"\(\?(=|!|<=|<!|>)|\\[1-9]|\\k<|[+*?}]\+")


class NotStructural(ValueError):
    """The schema cannot be expressed in a CustomResourceDefinition; lists every place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def check_structural(schema: JsonObject) -> None:
    """Accept `schema` as the `openAPIV3Schema` of a CustomResourceDefinition.

    Raises:
        NotStructural: with one problem per line, each led by its path.
    """
    problems = tuple(_problems(schema, "schema"))
    if problems:
        raise NotStructural(problems)


def _problems(node: JsonValue, path: str) -> Iterator[str]:
    if not isinstance(node, Mapping):
        yield f"{path}: not a schema"
        return
    for keyword in node:
        if keyword not in KEYWORDS:
            yield f"{path}: {keyword}: {_WHY.get(keyword, 'not a keyword of a structural schema')}"
    yield from _type_problems(node, path)
    yield from _object_problems(node, path)
    yield from _array_problems(node, path)
    yield from _value_problems(node, path)
    yield from _default_problems(node, path)


def _type_problems(node: JsonObject, path: str) -> Iterator[str]:
    kind = node.get("type")
    if node.get("x-kubernetes-int-or-string") is True:
        if kind is not None:
            yield f"{path}: int-or-string stands without a type"
    elif kind not in TYPES and not (kind is None and node.get("x-kubernetes-preserve-unknown-fields") is True):
        yield f"{path}: has no type"
    if node.get("x-kubernetes-embedded-resource") is True and not (
        node.get("x-kubernetes-preserve-unknown-fields") is True or object_at(node, "properties")
    ):
        yield f"{path}: an embedded resource needs properties, or preserve-unknown-fields"


def _object_problems(node: JsonObject, path: str) -> Iterator[str]:
    properties, more = node.get("properties"), node.get("additionalProperties")
    if properties is not None and more is not None:
        yield f"{path}: additionalProperties and properties exclude each other"
    if isinstance(properties, Mapping):
        for name, member in properties.items():
            yield from _problems(member, f"{path}.{name}")
        for needed in list_at(node, "required"):
            if needed not in properties:
                yield f"{path}: requires {needed}, which is not declared"
    if isinstance(more, Mapping):
        yield from _problems(more, f"{path}.*")
    elif more is not None:
        yield f"{path}: additionalProperties must be a schema"
    if node.get("type") == "object" and properties is None and more is None and not _is_open(node):
        yield f"{path}: an object without properties"


def _is_open(node: JsonObject) -> bool:
    return node.get("x-kubernetes-preserve-unknown-fields") is True or set(node) <= {"type", "description"}


def _array_problems(node: JsonObject, path: str) -> Iterator[str]:
    if node.get("type") != "array":
        return
    if "items" not in node:
        yield f"{path}: an array without items"
        return
    items = object_at(node, "items")
    yield from _problems(items, f"{path}[]")
    if text_at(node, "x-kubernetes-list-type") == "map":
        for key in list_at(node, "x-kubernetes-list-map-keys"):
            declared = object_at(items, "properties", str(key))
            if key not in list_at(items, "required") and "default" not in declared:
                yield f"{path}: map key {key} is neither required nor defaulted"


def _value_problems(node: JsonObject, path: str) -> Iterator[str]:
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if bound in node and (not isinstance(node[bound], bool) or limit not in node):
            yield f"{path}: {bound} must be a boolean beside {limit}"
    form = node.get("format")
    if form is not None and form not in FORMATS:
        yield f"{path}: format {form} is unknown to the server, or means something else there"
    pattern = text_at(node, "pattern")
    if _NOT_RE2.search(pattern):
        yield f"{path}: pattern {pattern} is not RE2"


def _default_problems(node: JsonObject, path: str) -> Iterator[str]:
    if "default" not in node:
        return
    default = node["default"]
    if default is None:
        yield f"{path}: default null is dropped silently"
        return
    yield from (f"{path}: default: {problem}" for problem in _misfits(default, node))


def _misfits(value: JsonValue, node: JsonObject) -> Iterator[str]:
    """Where a default holds a member that is not declared, or one of another type; bounds are left to JSON Schema."""
    if not _is_of(text_at(node, "type"), value):
        yield f"{value!r} is no {node.get('type')}"
    elif isinstance(value, Mapping):
        properties = object_at(node, "properties")
        for name, member in value.items():
            if name in properties:
                yield from _misfits(member, object_at(properties, name))
            elif properties or not node.get("additionalProperties"):
                yield f"unknown field {name}"
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _misfits(member, object_at(node, "items"))


def _is_of(kind: str, value: JsonValue) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(kind, ()))

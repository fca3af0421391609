"""From the schemas of Kubernetes (OpenAPI of the server, `openAPIV3Schema` of a CRD) to JSON Schema that says what the server says.

Differences that matter: unknown members are errors, because server-side apply refuses them; a member with a default is never
missing; `nullable` and int-or-string are types; texts for people are left out.
"""

from collections.abc import Mapping
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"

_KEPT: Final = (
    "type", "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "multipleOf",
    "minProperties", "maxProperties", "uniqueItems", LIST_TYPE, LIST_KEYS,
)  # fmt: skip
_DEFINITION_PREFIX: Final = "#/components/schemas/"
_BASE64: Final = r"^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$"


def json_schema(node: JsonObject, *, closed: bool = True) -> dict[str, JsonValue]:
    """JSON Schema of one node and everything below.  `closed` is False inside of `allOf`, `anyOf`, `oneOf` and `not`."""
    reference = _reference(node)
    if reference:
        return {"$ref": f"#/$defs/{reference}"} | _list_marks(node)
    schema: dict[str, JsonValue] = {name: node[name] for name in _KEPT if name in node}
    _add_type(schema, node)
    _add_bounds(schema, node)
    _add_members(schema, node, closed=closed)
    _add_branches(schema, node)
    default = node.get("default")
    if isinstance(default, (str, int, float)):
        schema["default"] = default
    return schema


def _reference(node: JsonObject) -> str:
    """The definition that a node stands for: by `$ref`, or by an `allOf` of one `$ref` beside texts and defaults."""
    target = node.get("$ref")
    branches = list_at(node, "allOf")
    if target is None and len(branches) == 1 and isinstance(branches[0], Mapping):
        target = branches[0].get("$ref")
    return target.removeprefix(_DEFINITION_PREFIX) if isinstance(target, str) else ""


def _list_marks(node: JsonObject) -> dict[str, JsonValue]:
    return {name: node[name] for name in (LIST_TYPE, LIST_KEYS) if name in node}


def _add_type(schema: dict[str, JsonValue], node: JsonObject) -> None:
    union = {branch.get("type") for branch in list_at(node, "oneOf") if isinstance(branch, Mapping)}
    if node.get(_INT_OR_STRING) is True or node.get("format") == "int-or-string" or union == {"integer", "string"}:
        schema["type"] = ["integer", "string"]
    elif union == {"number", "string"}:
        schema["type"] = ["number", "string"]
    if node.get("format") == "byte" and node.get("type") == "string":
        schema["pattern"] = _BASE64
    kind = schema.get("type")
    if node.get("nullable") is True and kind is not None:
        schema["type"] = [*(kind if isinstance(kind, list) else [kind]), "null"]
        if isinstance(schema.get("enum"), list):
            schema["enum"] = [*list_at(schema, "enum"), None]


def _add_bounds(schema: dict[str, JsonValue], node: JsonObject) -> None:
    """Draft 4 wrote an exclusive bound as a flag beside the bound."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        value = node.get(exclusive)
        if value is True and bound in schema:
            schema[exclusive] = schema.pop(bound)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            schema[exclusive] = value


def _add_members(schema: dict[str, JsonValue], node: JsonObject, *, closed: bool) -> None:
    items = node.get("items")
    if isinstance(items, Mapping):
        schema["items"] = json_schema(items, closed=closed)
    properties = node.get("properties")
    members: JsonObject = properties if isinstance(properties, Mapping) else {}
    if members:
        schema["properties"] = {
            name: json_schema(member, closed=closed) for name, member in members.items() if isinstance(member, Mapping)
        }
    defaulted = {name for name, member in members.items() if isinstance(member, Mapping) and "default" in member}
    required = [name for name in list_at(node, "required") if name not in defaulted]
    if required:
        schema["required"] = required
    additional = node.get("additionalProperties")
    if isinstance(additional, Mapping):
        schema["additionalProperties"] = json_schema(additional, closed=closed)
    elif members and closed and not _is_open(node):
        schema["additionalProperties"] = False


def _is_open(node: JsonObject) -> bool:
    return node.get(_PRESERVE) is True or node.get(_EMBEDDED) is True or node.get("additionalProperties") is True


def _add_branches(schema: dict[str, JsonValue], node: JsonObject) -> None:
    if isinstance(schema.get("type"), list) and "integer" in list_at(schema, "type"):
        # The branches of int-or-string say what the type says already.
        return
    for name in ("allOf", "anyOf", "oneOf"):
        branches = [json_schema(branch, closed=False) for branch in list_at(node, name) if isinstance(branch, Mapping)]
        if branches and not (name == "oneOf" and schema.get("type") == ["number", "string"]):
            schema[name] = branches
    negated = node.get("not")
    if isinstance(negated, Mapping):
        schema["not"] = json_schema(negated, closed=False)

"""JSON Schemas for editors and for checks without a cluster: what a document in Git may say.

Beside the structural schema they close every object, so that a misspelt member is shown, and they leave the status out.
"""

from collections.abc import Iterable, Mapping

from gitops_ctl.api.crd import inlined, kind_of, structural_schema
from gitops_ctl.api.model import Model, StrictModel
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_METADATA: JsonObject = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 253},
        "namespace": {"type": "string", "minLength": 1, "maxLength": 63},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def editor_schema(model: type[Model]) -> dict[str, JsonValue]:
    """The closed JSON Schema of a document of that kind.

    Raises:
        NotStructural: the model cannot be expressed.
    """
    if issubclass(model, StrictModel):
        source = model.model_json_schema(by_alias=True)
        whole = inlined(source, source)
        kinds = list_at(whole, "properties", "kind", "enum")
        return {"$schema": DIALECT, "title": str(kinds[0]), **_closed(whole)}
    whole = structural_schema(model)
    kind = kind_of(model).kind
    properties: dict[str, JsonValue] = {
        "apiVersion": {"enum": [f"{kind_of(model).group}/{version}" for version in kind_of(model).versions]},
        "kind": {"enum": [kind]},
        "metadata": _METADATA,
        "spec": _left_out(_closed(object_at(whole, "properties", "spec")), kind_of(model).filled_in),
    }
    return {
        "$schema": DIALECT,
        "title": kind,
        "description": whole["description"],
        "type": "object",
        "properties": properties,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
    }


def _closed(node: JsonObject) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for keyword, value in node.items():
        if keyword == "properties" and isinstance(value, Mapping):
            result[keyword] = {name: _closed(part) for name, part in value.items() if isinstance(part, Mapping)}
            if not node.get("x-kubernetes-preserve-unknown-fields"):
                result["additionalProperties"] = False
        elif keyword in ("items", "additionalProperties", "propertyNames") and isinstance(value, Mapping):
            result[keyword] = _closed(value)
        elif keyword == "x-kubernetes-list-type":
            result |= {"uniqueItems": True} if value == "set" else {}
        elif not keyword.startswith("x-kubernetes-"):
            result[keyword] = value
    return result


def _left_out(node: JsonObject, paths: Iterable[str]) -> dict[str, JsonValue]:
    """`node` without the requirement of members that a Sync fills in; `paths` are dotted."""
    result = dict(node)
    for path in paths:
        name, _, inner = path.partition(".")
        if inner:
            part = _left_out(object_at(result, "properties", name), (inner,))
            result["properties"] = {**object_at(result, "properties"), name: part}
        else:
            result["required"] = [member for member in list_at(result, "required") if member != name]
    return result

"""Schemas out of CustomResourceDefinitions, and what makes such a schema unusable (fault Y11)."""

from collections.abc import Iterator, Mapping
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.documents.kindschema import KindSchema, SchemaRefusedError, validator_of
from gitops_ctl.documents.openapi import json_schema
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw

CRD: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")

_METADATA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "ownerReferences": {
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
    },
    "additionalProperties": False,
}


def kinds_of(crd: JsonObject) -> Iterator[GroupVersionKind]:
    """The kinds that a CustomResourceDefinition serves."""
    group, kind = text_at(crd, "spec", "group"), text_at(crd, "spec", "names", "kind")
    for version in objects_at(crd, "spec", "versions"):
        yield GroupVersionKind(group, text_at(version, "name"), kind)


def schema_of(crd: JsonObject, gvk: GroupVersionKind) -> KindSchema | None:
    """The schema of one version; None when the CRD does not have it."""
    for version in objects_at(crd, "spec", "versions"):
        if text_at(version, "name") == gvk.version:
            schema = custom_schema(object_at(version, "schema", "openAPIV3Schema"))
            return KindSchema(gvk, schema, text_at(crd, "spec", "scope") == "Namespaced")
    return None


def custom_schema(root: JsonObject) -> JsonObject:
    """JSON Schema of a whole custom object.  The server adds apiVersion, kind and metadata; status is not applied."""
    schema = json_schema(root)
    members = dict(object_at(schema, "properties"))
    members.pop("status", None)
    members |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
    required = [name for name in _names(schema.get("required")) if name != "status"]
    return schema | {"properties": members, "required": required}


def crd_flaws(crd: JsonObject) -> Iterator[Flaw]:
    """References and patterns that no schema may have: the API server refuses the first, we the second."""
    for place, version in enumerate(objects_at(crd, "spec", "versions")):
        root = object_at(version, "schema", "openAPIV3Schema")
        yield from _node_flaws(root, ("spec", "versions", place, "schema", "openAPIV3Schema"))


def _node_flaws(node: JsonObject, steps: tuple[str | int, ...]) -> Iterator[Flaw]:
    if isinstance(node.get("$ref"), str):
        yield Flaw(ErrorCode.SCHEMA_REFUSED, "a schema may not refer to another one", pointer_of((*steps, "$ref")))
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        try:
            validator_of({"pattern": pattern})
        except SchemaRefusedError:
            message = "the pattern uses look-around, a back-reference, or is no regular expression"
            yield Flaw(ErrorCode.SCHEMA_REFUSED, message, pointer_of((*steps, "pattern")))
    for name, below in _children(node):
        yield from _node_flaws(below, (*steps, *name))


def _children(node: JsonObject) -> Iterator[tuple[tuple[str | int, ...], JsonObject]]:
    for name, member in object_at(node, "properties").items():
        if isinstance(member, Mapping):
            yield ("properties", name), member
    for name in ("items", "additionalProperties", "not"):
        member = node.get(name)
        if isinstance(member, Mapping):
            yield (name,), member
    for name in ("allOf", "anyOf", "oneOf"):
        for place, branch in enumerate(objects_at(node, name)):
            yield (name, place), branch


def _names(value: JsonValue) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []

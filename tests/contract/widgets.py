"""A custom kind for the contract tests."""

from dataclasses import dataclass
from typing import Any

SIZE = {"type": "integer", "minimum": 1, "maximum": 10}
NAME = {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"}
PORT = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "port": {
            "type": "integer",
            "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "ports only grow"}],
        },
        "protocol": {"type": "string", "default": "TCP"},
    },
}
FIXED = {
    "type": "string",
    "maxLength": 10,
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
}
SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": SIZE,
        "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
        "name": NAME,
        "fixed": FIXED,
        "plain": {"type": "string"},
        "line": {"type": "string", "pattern": "^[^ ]+$"},
        "nullable": {"type": "string", "nullable": True},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "either": {"x-kubernetes-int-or-string": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "tags": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 8},
        },
        "ports": {
            "type": "array",
            "minItems": 1,
            "maxItems": 8,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": PORT,
        },
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
        "whole": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "nested": {"type": "object", "default": {}, "properties": {"depth": {"type": "integer", "default": 3}}},
    },
    "x-kubernetes-validations": [
        {"rule": "self.size < 9", "message": "size must stay below nine", "fieldPath": ".size"},
        {
            "rule": "!has(self.name) || self.name != 'bad'",
            "messageExpression": "'the name ' + self.name + ' is taken'",
            "reason": "FieldValueForbidden",
        },
    ],
}
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "count": {"type": "integer"}}}


@dataclass(frozen=True)
class Widgets:
    """Where the widgets of a test are."""

    group: str
    namespace: str

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/v1/namespaces/{self.namespace}/widgets"

    def one(self, name: str, spec: Any = None, **rest: Any) -> dict[str, Any]:
        """A widget as a person would write it."""
        tree = {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name}, **rest}
        return tree if spec is None else {**tree, "spec": spec}

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"


def definition(group: str) -> dict[str, Any]:
    """The CustomResourceDefinition of the widgets."""
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": SPEC, "status": STATUS}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["gitops"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }

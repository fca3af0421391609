"""What server-side apply knows about a type: which maps and lists are atomic, which lists are keyed, which fields exist.

Shapes are compiled from structural schemas: those of the built-in kinds (`builtin_types.json`) and those of
CustomResourceDefinitions, which use the same words.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

from tests.doubles.apiserver.fieldset import compact
from tests.doubles.apiserver.schema_facts import Fact

Kind: TypeAlias = Literal["scalar", "map", "list", "untyped"]
Types: TypeAlias = Mapping[str, Mapping[str, Any]]

METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class MissingKey(ValueError):
    """An item of a keyed list has no key."""


class Shape:
    """One type.  Children are compiled when they are first asked for: types may be recursive."""

    def __init__(self, schema: Mapping[str, Any], types: Types, *, deduced: bool = False) -> None:
        default = schema.get("default")
        while "$ref" in schema:
            schema = types[schema["$ref"]]
        self.schema = schema
        self.types = types
        self.default = default
        self.preserves = deduced or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.kind: Kind = self._kind()
        self._children: dict[str, Shape] = {}
        self._forms: dict[str, Shape] = {}

    def _kind(self) -> Kind:
        declared = self.schema.get("type")
        if self.schema.get("x-kubernetes-int-or-string"):
            return "scalar"
        if declared == "object":
            return "map"
        if declared == "array":
            return "list"
        return "untyped" if declared is None else "scalar"

    @cached_property
    def scalar(self) -> str:
        """`string`, `integer`, `number`, `boolean`, or empty: anything."""
        return "" if self.schema.get("x-kubernetes-int-or-string") else str(self.schema.get("type", ""))

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        properties: Mapping[str, Any] = self.schema.get("properties", {})
        return properties

    @cached_property
    def keys(self) -> tuple[tuple[str, Any], ...]:
        """Keys of a keyed list, with the defaults that an item may leave out."""
        item = self.item
        result = []
        for key in self.schema.get("x-kubernetes-list-map-keys", ()):
            child = item.child(key)
            result.append((key, None if child is None else child.key_default))
        return tuple(result)

    @property
    def key_default(self) -> Any:
        return self.default if self.default is not None else self.schema.get("default")

    @cached_property
    def list_type(self) -> str:
        return str(self.schema.get("x-kubernetes-list-type", "atomic"))

    @cached_property
    def atomic(self) -> bool:
        """True when the value has one owner as a whole."""
        if self.kind == "list":
            return self.list_type == "atomic"
        if self.kind == "map":
            return self.schema.get("x-kubernetes-map-type") == "atomic"
        return self.kind == "untyped" and not self.preserves

    @cached_property
    def item(self) -> "Shape":
        return Shape(self.schema.get("items", {}), self.types, deduced="items" not in self.schema)

    def child(self, name: str) -> "Shape | None":
        """The shape of a member; None when the type does not have it."""
        found = self._children.get(name)
        if found is None:
            if name not in self.fields:
                return self._other
            found = self._children[name] = Shape(self.fields[name], self.types)
        return found

    @cached_property
    def _other(self) -> "Shape | None":
        """The shape of members that are not declared."""
        extra = self.schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            return Shape(extra, self.types) if extra else anything(self.types)
        free = self.kind == "map" and not self.fields and extra is not False
        if self.preserves or free:
            return anything(self.types)
        return None

    def step_of(self, item: Any) -> str:
        """The path step of a list item.

        Raises:
            MissingKey: the item lacks a key that has no default.
        """
        if self.list_type == "set":
            return f"v:{compact(item)}"
        found = item if isinstance(item, Mapping) else {}
        pairs = {name: found.get(name, default) for name, default in self.keys}
        key = {name: value for name, value in pairs.items() if value is not None}
        if not key:
            names = " ".join(compact(name) for name, _ in self.keys)
            raise MissingKey(
                f"associative list with keys has an element that omits all key fields [{names}] (and doesn't have "
                "default values for any key fields)"
            )
        return f"k:{compact(key)}"

    def resolved(self, value: Any) -> "Shape":
        """This shape, or for an untyped one the one that fits `value`: maps are open, lists atomic."""
        if self.kind != "untyped":
            return self
        form = "map" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "scalar"
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = self._form(form)
        return found

    def _form(self, form: str) -> "Shape":
        if form == "map":
            schema: dict[str, Any] = {"type": "object"}
            if not self.preserves:
                schema["x-kubernetes-map-type"] = "atomic"
            return Shape(schema, self.types, deduced=True)
        if form == "list":
            return Shape({"type": "array"}, self.types, deduced=True)
        return Shape({"x-kubernetes-int-or-string": True}, self.types)

    @cached_property
    def is_open(self) -> bool:
        """True when nothing is said about the value, nor about any member of it."""
        return self.preserves and not self.schema


def _anything(types: Types) -> Shape:
    return Shape({}, types, deduced=True)


anything = Fact(_anything)
"""The shape that says nothing; one for all places, so that what is compiled of it is compiled once."""


def object_shape(schema: Mapping[str, Any], types: Types) -> Shape:
    """The shape of a whole object: a schema with the three members that every object has."""
    while "$ref" in schema:
        schema = types[schema["$ref"]]
    properties = {
        **schema.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": METADATA, "default": {}},
    }
    return Shape({**schema, "type": "object", "properties": properties}, types)

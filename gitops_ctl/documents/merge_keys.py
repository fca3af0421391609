"""Lists whose entries have an identity: no two entries may have the same one (fault S01).

Server-side apply merges such lists by their keys and refuses a repeated one, with a message that names no file.  Sets are
lists of scalars whose value is the key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.documents.openapi import LIST_KEYS, LIST_TYPE
from gitops_ctl.documents.pointer import pointer_of
from gitops_ctl.documents.shape import Flaw


@dataclass(slots=True)
class MergeKeys:
    """The way through a schema to its keyed lists; parts without any are left out.

    Attributes:
        keys: of the list at this place; empty for a set, None when it is no such list.
        defaults: values of keys that an entry leaves out.
    """

    members: dict[str, "MergeKeys"] = field(default_factory=dict)
    entries: "MergeKeys | None" = None
    every: "MergeKeys | None" = None
    keys: tuple[str, ...] | None = None
    defaults: JsonObject = field(default_factory=dict)

    @property
    def is_useful(self) -> bool:
        return bool(self.members) or self.entries is not None or self.every is not None or self.keys is not None

    def flaws(self, value: JsonValue, *, steps: tuple[str | int, ...] = ()) -> Iterator[Flaw]:
        """Every repeated entry below `value`."""
        if isinstance(value, Mapping):
            for name, member in value.items():
                below = self.members.get(name, self.every)
                if below is not None:
                    yield from below.flaws(member, steps=(*steps, name))
        elif isinstance(value, list):
            if self.keys is not None:
                yield from self._repeated(value, steps=steps)
            if self.entries is not None:
                for place, item in enumerate(value):
                    yield from self.entries.flaws(item, steps=(*steps, place))

    def _repeated(self, items: list[JsonValue], *, steps: tuple[str | int, ...]) -> Iterator[Flaw]:
        first: dict[bytes, int] = {}
        for place, item in enumerate(items):
            identity = self._identity(item)
            if identity is None:
                continue
            known = first.setdefault(canonical_json(identity), place)
            if known != place:
                message = f"entry {place} of {steps[-1]} has {self._named(identity)}, as entry {known} has"
                yield Flaw(ErrorCode.MERGE_KEY_REPEATED, message, pointer_of((*steps, place)))

    def _identity(self, item: JsonValue) -> list[JsonValue] | None:
        if not self.keys:
            return None if isinstance(item, (Mapping, list)) else [item]
        if not isinstance(item, Mapping):
            return None
        values = [item.get(key, self.defaults.get(key)) for key in self.keys]
        return None if all(value is None for value in values) else values

    def _named(self, identity: list[JsonValue]) -> str:
        if not self.keys:
            return "the same value"
        return ", ".join(f"{key} {value}" for key, value in zip(self.keys, identity, strict=True) if value is not None)


def merge_keys_of(schema: JsonObject) -> MergeKeys | None:
    """The keyed lists of a schema; None when it has none.  Definitions may refer to themselves."""
    definitions = object_at(schema, "$defs")
    built: dict[str, MergeKeys] = {}

    def build(node: JsonObject) -> MergeKeys | None:
        name = text_at(node, "$ref").removeprefix("#/$defs/")
        if not name or LIST_TYPE in node:
            return fill(MergeKeys(), node)
        if name not in built:
            built[name] = MergeKeys()
            fill(built[name], object_at(definitions, name))
        return built[name]

    def fill(found: MergeKeys, node: JsonObject) -> MergeKeys | None:
        for name, member in object_at(node, "properties").items():
            below = build(member) if isinstance(member, Mapping) else None
            if below is not None:
                found.members[name] = below
        additional, items = node.get("additionalProperties"), node.get("items")
        if isinstance(additional, Mapping):
            found.every = build(additional)
        if isinstance(items, Mapping):
            found.entries = build(items)
            found.keys, found.defaults = _keys(node, items, definitions)
        return found if found.is_useful else None

    whole = fill(MergeKeys(), schema if "$ref" not in schema else object_at(definitions, text_at(schema, "$ref")[8:]))
    if whole is not None:
        _prune(whole, seen=set())
    return whole


def _keys(node: JsonObject, items: JsonObject, definitions: JsonObject) -> tuple[tuple[str, ...] | None, JsonObject]:
    kind = node.get(LIST_TYPE)
    if kind == "set":
        return (), {}
    keys = tuple(key for key in list_at(node, LIST_KEYS) if isinstance(key, str))
    if kind != "map" or not keys:
        return None, {}
    entry = object_at(definitions, text_at(items, "$ref").removeprefix("#/$defs/")) if "$ref" in items else items
    properties = object_at(entry, "properties")
    return keys, {key: object_at(properties, key)["default"] for key in keys if "default" in object_at(properties, key)}


def _prune(node: MergeKeys, *, seen: set[int]) -> bool:
    """Take out shared definitions that turned out to hold nothing; True when something is left."""
    if id(node) in seen:
        return node.is_useful
    seen.add(id(node))
    node.members = {name: below for name, below in node.members.items() if _prune(below, seen=seen)}
    if node.entries is not None and not _prune(node.entries, seen=seen):
        node.entries = None
    if node.every is not None and not _prune(node.every, seen=seen):
        node.every = None
    return node.is_useful

"""Schemas of the kinds that Kubernetes itself serves, written by tools/generate_builtin_schemas.py."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, object_at, text_at

_FILE: Final = "kubernetes.json.gz"
_GZIP: Final = 31


@dataclass(frozen=True, slots=True)
class BuiltinKinds:
    """What one release of the API server serves.

    Attributes:
        version: of the server, as `v1.36.3`.
        definitions: schemas by name; they refer to each other as `#/$defs/<name>`.
        kinds: `<apiVersion>/<Kind>` to the name of its definition, its plural and its scope.
    """

    version: str
    definitions: JsonObject
    kinds: JsonObject

    def definition_of(self, gvk: GroupVersionKind) -> str:
        """Name of the definition; empty for a kind that the server does not serve."""
        return text_at(self.kinds, str(gvk), "definition")

    def is_namespaced(self, gvk: GroupVersionKind) -> bool:
        return bool_at(self.kinds, str(gvk), "namespaced")

    def plural_of(self, gvk: GroupVersionKind) -> str:
        """Name of the resource; empty for a kind that the server does not serve."""
        return text_at(self.kinds, str(gvk), "plural")

    def closure(self, name: str) -> JsonObject:
        """A definition and every one that it needs."""
        found: dict[str, JsonValue] = {}
        wanted = [name]
        while wanted:
            one = wanted.pop()
            if one not in found:
                found[one] = self.definitions[one]
                wanted.extend(_references(found[one]))
        return found

    @property
    def groups(self) -> frozenset[str]:
        """Every group with a kind in it."""
        return frozenset(name.split("/")[0] if name.count("/") == 2 else "" for name in self.kinds)


@cache
def builtin_kinds() -> BuiltinKinds:
    """The schemas, read once."""
    packed = (Path(__file__).parent / _FILE).read_bytes()
    data = json.loads(zlib.decompress(packed, wbits=_GZIP))
    return BuiltinKinds(text_at(data, "version"), object_at(data, "definitions"), object_at(data, "kinds"))


def _references(node: JsonValue) -> Iterator[str]:
    if isinstance(node, Mapping):
        target = node.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix("#/$defs/")
        for member in node.values():
            yield from _references(member)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)

"""The kinds that are served: names, scope, shape and schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.doubles.apiserver.answers import Named
from tests.doubles.apiserver.builtin_kinds import BUILTIN_KINDS, BuiltinKind
from tests.doubles.apiserver.shapes import Shape, Types, object_shape
from tests.doubles.apiserver.store import Collection


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version.  `schema` is the structural schema of a custom resource, None for built-in kinds."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    has_status: bool
    shape: Shape
    schema: Mapping[str, Any] | None = None
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    served: frozenset[str] = field(default_factory=frozenset)

    @property
    def collection(self) -> Collection:
        return (self.group, self.plural)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        return self.schema is not None

    def named(self, name: str) -> Named:
        """The subject of messages that speak of the resource."""
        return Named(self.group, self.plural, name)

    def as_kind(self, name: str) -> Named:
        """The subject of messages that speak of the kind."""
        return Named(self.group, self.kind, name)


@lru_cache(maxsize=1)
def builtin_file() -> Mapping[str, Mapping[str, Any]]:
    """The shapes that a real server published."""
    text = Path(__file__).with_name("builtin_types.json").read_text(encoding="utf-8")
    content: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return content


def builtin_types() -> Types:
    return builtin_file()["types"]


@lru_cache(maxsize=1)
def builtin_resources() -> tuple[Resource, ...]:
    """All built-in kinds; shapes are shared, because they never change."""
    return tuple(_builtin(row) for row in BUILTIN_KINDS)


def _builtin(row: BuiltinKind) -> Resource:
    types = builtin_types()
    name = builtin_file()["kinds"][f"{row.group}/{row.version}/{row.kind}"]
    api_version = f"{row.group}/{row.version}" if row.group else row.version
    return Resource(
        group=row.group,
        version=row.version,
        kind=row.kind,
        plural=row.plural,
        singular=row.kind.lower(),
        namespaced=row.namespaced,
        has_status=row.has_status,
        shape=object_shape({"$ref": str(name)}, types),
        list_kind=f"{row.kind}List",
        short_names=row.short_names,
        served=frozenset({api_version}),
    )


class Catalogue:
    """What is served now: built-in kinds and those of the CustomResourceDefinitions."""

    def __init__(self) -> None:
        self._resources = {(item.group, item.version, item.plural): item for item in builtin_resources()}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def is_builtin(self, group: str) -> bool:
        """Whether the server itself has kinds in a group."""
        return any(item.group == group and not item.custom for item in self._resources.values())

    def all(self) -> list[Resource]:
        return list(self._resources.values())

    def replace(self, collection: Collection, resources: tuple[Resource, ...]) -> None:
        """Serve these versions of a custom resource, and no others."""
        for key, item in list(self._resources.items()):
            if item.collection == collection:
                del self._resources[key]
        for item in resources:
            self._resources[(item.group, item.version, item.plural)] = item

"""Facts about schemas that take a walk to find, found once: schemas are never changed in place."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

Schema: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
MOST = 20_000
ANY: Schema = {}
"""The schema that says nothing: one for all, so that it is known too."""


class Fact(Generic[T]):
    """What `find` says of a schema; it is kept beside its answer, so that no other one can take its identity."""

    def __init__(self, find: Callable[[Schema], T]) -> None:
        self._find = find
        self._known: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        known = self._known.get(id(schema))
        if known is None:
            if len(self._known) >= MOST:
                self._known.clear()
            known = self._known[id(schema)] = (schema, self._find(schema))
        return known[1]

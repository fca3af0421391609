"""Facts about schemas and other trees that are never changed in place: what takes a walk to find is found once."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

Schema: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
MOST = 20_000
ANY: Schema = {}
"""The schema that says nothing: one for all, so that it is known too."""


class Fact(Generic[T]):
    """What `find` says of a tree; it is kept beside its answer, so that no other one can take its identity."""

    def __init__(self, find: Callable[[Schema], T], *, most: int = MOST) -> None:
        self._find, self._most = find, most
        self._known: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        known = self._known.get(id(schema))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(schema)] = (schema, self._find(schema))
        return known[1]

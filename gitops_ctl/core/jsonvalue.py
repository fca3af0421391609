"""The JSON shapes that cross module borders, and readers that do not trust them.

Kubernetes objects and documents travel as plain JSON trees: typed models drop the fields of newer servers.  A domain
parses the few members that it needs with the readers below, which answer with a default instead of an exception when the
tree has another shape.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonScalar: TypeAlias = str | int | float | bool | None
JsonValue: TypeAlias = "JsonScalar | Sequence[JsonValue] | Mapping[str, JsonValue]"
JsonObject: TypeAlias = Mapping[str, JsonValue]

EMPTY: JsonObject = {}


def object_at(tree: JsonObject, *path: str) -> JsonObject:
    """The object at `path`, or an empty one when something else, or nothing, is there."""
    value: JsonValue = tree
    for step in path:
        # Trees come from decoders, so they are dicts: the exact test is many times faster than that of the abstract class.
        if type(value) is not dict and not isinstance(value, Mapping):
            return EMPTY
        value = value.get(step)
    if value is None:
        return EMPTY
    return value if type(value) is dict or isinstance(value, Mapping) else EMPTY


def list_at(tree: JsonObject, *path: str) -> Sequence[JsonValue]:
    """The list at `path`, or an empty one."""
    value = (object_at(tree, *path[:-1]) if len(path) > 1 else tree).get(path[-1])
    return value if isinstance(value, (list, tuple)) else ()


def objects_at(tree: JsonObject, *path: str) -> Sequence[JsonObject]:
    """The objects in the list at `path`; members of another type are left out."""
    return [item for item in list_at(tree, *path) if type(item) is dict or isinstance(item, Mapping)]


def text_at(tree: JsonObject, *path: str, default: str = "") -> str:
    """The string at `path`, or `default`."""
    value = (object_at(tree, *path[:-1]) if len(path) > 1 else tree).get(path[-1])
    return value if isinstance(value, str) else default


def int_at(tree: JsonObject, *path: str, default: int = 0) -> int:
    """The integer at `path`, or `default`; a boolean is no integer."""
    value = object_at(tree, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def bool_at(tree: JsonObject, *path: str, default: bool = False) -> bool:
    """The boolean at `path`, or `default`."""
    value = object_at(tree, *path[:-1]).get(path[-1])
    return value if isinstance(value, bool) else default

"""Readers that the three kinds share: labels as texts, times that may be missing or no times at all."""

from collections.abc import Mapping
from datetime import UTC, datetime

from gitops_ctl.core.jsonvalue import JsonObject, object_at


def texts_at(tree: JsonObject, *path: str) -> Mapping[str, str]:
    """The string members of the object at `path`."""
    return {key: value for key, value in object_at(tree, *path).items() if isinstance(value, str)}


def text_of(tree: JsonObject, name: str) -> str:
    """The string in a member, or the empty one; `text_at` without a path, for the readers that run for each device of a fleet."""
    value = tree.get(name)
    return value if type(value) is str else ""


def int_of(tree: JsonObject, name: str) -> int:
    """The integer in a member, or 0; a boolean is none."""
    value = tree.get(name)
    return value if type(value) is int else 0


def moment_at(tree: JsonObject, name: str) -> datetime | None:
    """The time in a member, aware and in UTC; None where it is missing, no time, or has no offset: it then proves nothing."""
    text = tree.get(name)
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def strings_at(tree: JsonObject, name: str) -> tuple[str, ...]:
    """The strings of a list."""
    value = tree.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, (list, tuple)) else ()


def part_at(tree: JsonObject, name: str) -> JsonObject | None:
    """The object in a member; None where it is missing, empty, or something else."""
    value = tree.get(name)
    if not value:
        return None
    # As in `object_at`: trees come from decoders, so they are dicts.
    return value if type(value) is dict or isinstance(value, Mapping) else None

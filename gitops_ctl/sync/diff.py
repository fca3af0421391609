"""What an apply would change in a live object: the server's own answer to a dry run against what is there.

So normalised values and defaults are no differences (S14), and the list is complete.  Values of Secrets and of members whose
names say that they are secret are never shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.core.redact import REDACTED, redact_object

_SERVER_METADATA: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "selfLink"}
)
_KEYS: Final = ("name", "containerPort", "port", "mountPath", "devicePath", "ip", "key", "type", "uid")


@dataclass(frozen=True, slots=True)
class Difference:
    """One place that differs; None for what is not there."""

    pointer: str
    live: JsonValue
    wanted: JsonValue


def differences(live: JsonObject, wanted: JsonObject) -> tuple[Difference, ...]:
    """Every place where two versions of an object differ, status and server metadata left out, in document order."""
    found: list[Difference] = []
    _compare(_comparable(live), _comparable(wanted), "", found)
    return tuple(found)


def _comparable(tree: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in object_at(tree, "metadata").items() if key not in _SERVER_METADATA}
    body = {key: value for key, value in tree.items() if key not in ("status", "metadata")}
    return {**body, "metadata": metadata}


def _shielded(pointer: str, value: JsonValue) -> JsonValue:
    """The value as it may be shown: nothing of it when a name on the way to it says that it is secret."""
    names = [segment.rpartition("=")[2] for segment in pointer.split("/")]
    if value is not None and any(redact_object({name: "x"}).get(name) == REDACTED for name in names):
        return REDACTED
    return redact_object({"value": value})["value"]


def secret_keys_changed(live: JsonObject, wanted: JsonObject) -> tuple[str, ...]:
    """Pointers of the keys of a Secret whose values differ; the values stay out of sight."""
    before, after = object_at(live, "data"), object_at(wanted, "data")
    return tuple(f"/data/{_escaped(key)}" for key in sorted({*before, *after}) if before.get(key) != after.get(key))


def _compare(live: JsonValue, wanted: JsonValue, pointer: str, found: list[Difference]) -> None:
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        for key in sorted({*live, *wanted}):
            _compare(live.get(key), wanted.get(key), f"{pointer}/{_escaped(key)}", found)
    elif _is_list(live) and _is_list(wanted):
        _compare_lists(_items(live), _items(wanted), pointer, found)
    elif live != wanted:
        found.append(Difference(pointer or "/", _shielded(pointer, live), _shielded(pointer, wanted)))


def _compare_lists(
    live: Sequence[JsonValue], wanted: Sequence[JsonValue], pointer: str, found: list[Difference]
) -> None:
    key = _merge_key([*live, *wanted])
    if not key:
        if list(live) != list(wanted):
            found.append(Difference(pointer, _shielded(pointer, live), _shielded(pointer, wanted)))
        return
    before = {str(item[key]): item for item in live if isinstance(item, Mapping)}
    after = {str(item[key]): item for item in wanted if isinstance(item, Mapping)}
    for name in [*before, *(name for name in after if name not in before)]:
        _compare(before.get(name), after.get(name), f"{pointer}/{_escaped(f'{key}={name}')}", found)


def _merge_key(items: Sequence[JsonValue]) -> str:
    """A member by which the objects of a list can be told apart; empty when there is none."""
    trees = [item for item in items if isinstance(item, Mapping)]
    if not trees or len(trees) != len(items):
        return ""
    return next((key for key in _KEYS if all(isinstance(tree.get(key), (str, int)) for tree in trees)), "")


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def last_writer(tree: JsonObject, *, but: str) -> str:
    """The manager that wrote last, our own apart; empty when there is none.  Its subresource counts as another writer."""
    others = [
        entry
        for entry in objects_at(tree, "metadata", "managedFields")
        if text_at(entry, "manager") != but and text_at(entry, "subresource") != "status"
    ]
    newest = max(others, key=lambda entry: text_at(entry, "time"), default=EMPTY)
    return text_at(newest, "manager")


def rendered(found: Sequence[Difference]) -> list[str]:
    """One line per difference, for people: place, live value, wanted value."""
    return [f"{item.pointer}: {_shown(item.live)} -> {_shown(item.wanted)}" for item in found]


def _shown(value: JsonValue) -> str:
    return "(nothing)" if value is None else repr(value)

"""What an informer knows: trimmed objects by name, with indexes.  Pure.

A watch has gaps, and a gap hides deletes: only the comparison with a full list brings them back (H09).  Versions are opaque
and compared for equality, nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from gitops_ctl.core.ids import NamespacedName

T = TypeVar("T")

SUSPECT_FROM: Final = 20
"""A cache with fewer objects is never suspect."""


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One object: which one it is, at which version, and what the trim function kept of it."""

    uid: str
    version: str
    value: T


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One step from a cache to another.  `old` is None for an added, `new` for a deleted object."""

    kind: Literal["added", "modified", "deleted"]
    key: NamespacedName
    old: Entry[T] | None
    new: Entry[T] | None

    @property
    def values(self) -> tuple[T | None, T | None]:
        """What was kept of the object before, and what is kept of it now."""
        return (
            self.old.value if self.old is not None else None,
            self.new.value if self.new is not None else None,
        )


def diff_relist(
    *, cached: Mapping[NamespacedName, Entry[T]], listed: Mapping[NamespacedName, Entry[T]]
) -> list[Change[T]]:
    """Changes that turn `cached` into `listed`, deletes first.

    An object whose uid changed under the same name is a delete and an add: the old one is gone for good.
    """
    changes: list[Change[T]] = []
    for key, old in cached.items():
        new = listed.get(key)
        if new is None or new.uid != old.uid:
            changes.append(Change("deleted", key, old, None))
    for key, new in listed.items():
        before = cached.get(key)
        if before is None or before.uid != new.uid:
            changes.append(Change("added", key, None, new))
        elif before.version != new.version:
            changes.append(Change("modified", key, before, new))
    return changes


def is_mass_removal(changes: Iterable[Change[T]], *, cached: int) -> bool:
    """Whether a list lacks more than half of a cache of 20 or more: perhaps the server reads an empty store (H17)."""
    removed = sum(1 for change in changes if change.kind == "deleted")
    return cached >= SUSPECT_FROM and 2 * removed > cached


class Cache(Generic[T]):
    """Objects by name.  Values are shared: nobody may change them."""

    def __init__(self) -> None:
        self._entries: dict[NamespacedName, Entry[T]] = {}
        self._index_functions: dict[str, Callable[[NamespacedName, T], Iterable[str]]] = {}
        self._indexes: dict[str, dict[str, dict[NamespacedName, None]]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[NamespacedName]:
        return iter(self._entries)

    def __contains__(self, key: NamespacedName) -> bool:
        return key in self._entries

    def get(self, key: NamespacedName) -> T | None:
        """The value of the object of that name, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def entry(self, key: NamespacedName) -> Entry[T] | None:
        """The same with uid and version."""
        return self._entries.get(key)

    def items(self) -> Iterator[tuple[NamespacedName, T]]:
        """Every object; the cache may not be changed meanwhile."""
        return ((key, entry.value) for key, entry in self._entries.items())

    def entries(self) -> Mapping[NamespacedName, Entry[T]]:
        """A live view for comparisons."""
        return self._entries

    def add_index(self, name: str, function: Callable[[NamespacedName, T], Iterable[str]]) -> None:
        """Keep an index: `function` gives the values under which an object is found."""
        self._index_functions[name] = function
        self._indexes[name] = {}
        for key, entry in self._entries.items():
            self._index(name, key, entry)

    def by_index(self, name: str, value: str) -> tuple[NamespacedName, ...]:
        """Names of the objects with that index value, in the order in which they came."""
        return tuple(self._indexes[name].get(value, ()))

    def change(self, change: Change[T]) -> None:
        """Make one change; cache and indexes change in the same step."""
        if (old := self._entries.get(change.key)) is not None:
            for name in self._indexes:
                self._unindex(name, change.key, old)
        if change.new is None:
            self._entries.pop(change.key, None)
            return
        self._entries[change.key] = change.new
        for name in self._indexes:
            self._index(name, change.key, change.new)

    def _index(self, name: str, key: NamespacedName, entry: Entry[T]) -> None:
        for value in self._index_functions[name](key, entry.value):
            self._indexes[name].setdefault(value, {})[key] = None

    def _unindex(self, name: str, key: NamespacedName, entry: Entry[T]) -> None:
        for value in self._index_functions[name](key, entry.value):
            members = self._indexes[name].get(value, {})
            members.pop(key, None)
            if not members:
                self._indexes[name].pop(value, None)


def changes_of_event(
    cached: Entry[T] | None, *, key: NamespacedName, deleted: bool, seen: Entry[T]
) -> tuple[Change[T], ...]:
    """What one watch event changes: nothing for a repeated event or the delete of a former bearer of the name."""
    if deleted:
        if cached is None or cached.uid != seen.uid:
            return ()
        return (Change("deleted", key, cached, None),)
    if cached is None:
        return (Change("added", key, None, seen),)
    if cached.uid != seen.uid:
        return (Change("deleted", key, cached, None), Change("added", key, None, seen))
    if cached.version == seen.version:
        return ()
    return (Change("modified", key, cached, seen),)

"""Objects, versions and the event log.  No HTTP, no asyncio, no rules: simulations read and write it as the server does."""

import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.doubles.apiserver.structure import copied

Tree: TypeAlias = dict[str, Any]
Collection: TypeAlias = tuple[str, str]  # group, plural
Key: TypeAlias = tuple[str, str]  # namespace, name


class Compacted(Exception):
    """The log does not reach back to the version that was asked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write.  `old` is None for a creation, `new` for a removal."""

    version: int
    collection: Collection
    key: Key
    old: Tree | None
    new: Tree | None

    @property
    def last(self) -> Tree:
        """The state that a DELETED event shows: the last one, with the version of the removal."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


@dataclass
class Store:
    """Every object is replaced as a whole and never changed in place.

    Versions grow by random steps, because nobody may rely on plus one.  The seed makes uids and steps repeatable.
    """

    seed: int = 0
    window: int = 5000
    objects: dict[Collection, dict[Key, Tree]] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    listeners: list[Callable[[Change], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.version = self.random.randint(200, 900)
        self.floor = self.version

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def get(self, collection: Collection, key: Key) -> Tree | None:
        """The stored tree; do not change it."""
        return self.objects.get(collection, {}).get(key)

    def put(self, collection: Collection, key: Key, tree: Mapping[str, Any]) -> Tree:
        """Store a copy of `tree` under the next version and return it."""
        new: Tree = copied(dict(tree))
        old = self.get(collection, key)
        self._step()
        new["metadata"]["resourceVersion"] = str(self.version)
        self.objects.setdefault(collection, {})[key] = new
        self._record(Change(self.version, collection, key, old, new))
        return new

    def remove(self, collection: Collection, key: Key, last: Mapping[str, Any] | None = None) -> Tree:
        """Remove; returns the last state, with the version of the removal."""
        old = self.objects[collection].pop(key)
        final: Tree = copied(dict(last if last is not None else old))
        self._step()
        final["metadata"]["resourceVersion"] = str(self.version)
        self._record(Change(self.version, collection, key, final, None))
        return final

    def touch(self) -> int:
        """Another version without a change, as writes to other kinds cause."""
        self._step()
        return self.version

    def all(self, collection: Collection, namespace: str = "") -> list[tuple[Key, Tree]]:
        """Objects in the order in which a server lists them: by namespace, then name."""
        return _sorted(self.objects.get(collection, {}), namespace)

    def everything(self) -> Iterator[tuple[Collection, Key, Tree]]:
        for collection, found in list(self.objects.items()):
            for key, tree in list(found.items()):
                yield collection, key, tree

    def at(self, collection: Collection, namespace: str, version: int) -> list[tuple[Key, Tree]]:
        """The list as it was at `version`.

        Raises:
            Compacted: the log is shorter than that.
        """
        if version < self.floor:
            raise Compacted(str(version))
        state = dict(self.objects.get(collection, {}))
        for change in reversed(self.log):
            if change.version <= version:
                break
            if change.collection != collection:
                continue
            if change.new is None:
                state[change.key] = change.last
            elif change.old is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.old
        return _sorted(state, namespace)

    def after(self, collection: Collection, version: int) -> list[Change]:
        """Changes of one collection that are newer than `version`, oldest first.

        Raises:
            Compacted: some of them are forgotten.
        """
        if version < self.floor:
            raise Compacted(str(version))
        found = []
        for change in reversed(self.log):
            if change.version <= version:
                break
            if change.collection == collection:
                found.append(change)
        return found[::-1]

    def compact(self) -> None:
        """Forget the log: older continue tokens and watches are expired."""
        self.log.clear()
        self.floor = self.version

    def _step(self) -> None:
        self.version += self.random.randint(1, 9)

    def _record(self, change: Change) -> None:
        self.log.append(change)
        if len(self.log) > self.window:
            dropped = self.log[: len(self.log) - self.window]
            del self.log[: len(dropped)]
            self.floor = dropped[-1].version
        for listener in tuple(self.listeners):
            listener(change)


def _sorted(found: Mapping[Key, Tree], namespace: str) -> list[tuple[Key, Tree]]:
    chosen = [(key, tree) for key, tree in found.items() if not namespace or key[0] == namespace]
    return sorted(chosen, key=lambda item: item[0])

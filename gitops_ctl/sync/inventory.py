"""The durable record of what a unit may have in its cluster (gitops.md, section 6).

Written as a superset before an apply and narrowed after it, so that a crash between the two loses nothing (R05).  Entries
lie in shards, and an entry stays in its shard for life: a change of one object writes one shard, and no change writes none.
`place` is pure; `InventoryStore` reads and writes.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from gitops_ctl.api.inventory import MAX_BYTES, MAX_ENTRIES
from gitops_ctl.api.names import API_VERSION, FIELD_MANAGER, GROUP, VERSION
from gitops_ctl.api.sync import Sync
from gitops_ctl.core.errors import BlockedError, NotFound, Refused
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, objects_at, text_at
from gitops_ctl.kube.answers import AlreadyExists, KindNotServed, NamespaceMissing
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.sync.model import Entry, OwnerId

MAX_SHARD: Final = 9999
FRAME_BYTES: Final = 4096
"""Room for everything in a shard that is no entry."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One Inventory object; an empty `version` means that it is not stored yet."""

    number: int
    entries: Mapping[ObjectId, Entry] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """All shards of one unit, numbered from 0 without gaps, and their entries in one mapping."""

    shards: tuple[Shard, ...] = ()
    entries: Mapping[ObjectId, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, shards: Iterable[Shard]) -> "Record":
        found = tuple(shards)
        return cls(found, {item: entry for shard in found for item, entry in shard.entries.items()})


def entry_tree(entry: Entry) -> dict[str, JsonValue]:
    """The stored form of an entry, without members that are empty."""
    members: dict[str, JsonValue] = {
        "group": entry.id.group,
        "version": entry.version,
        "kind": entry.id.kind,
        "namespace": entry.id.namespace,
        "name": entry.id.name,
        "uid": entry.uid,
        "declaredDigest": entry.declared,
        "appliedDigest": entry.applied,
        "pruneDisabled": entry.keep,
        "file": entry.file,
    }
    return {name: value for name, value in members.items() if value}


def entry_of(tree: JsonObject) -> Entry:
    """The entry that a stored form holds."""
    identity = ObjectId(
        text_at(tree, "group"), text_at(tree, "kind"), text_at(tree, "namespace"), text_at(tree, "name")
    )
    return Entry(
        identity,
        text_at(tree, "version"),
        text_at(tree, "uid"),
        text_at(tree, "declaredDigest"),
        text_at(tree, "appliedDigest"),
        text_at(tree, "file"),
        bool_at(tree, "pruneDisabled"),
    )


def entry_bytes(entry: Entry) -> int:
    """Bytes that an entry takes in its shard."""
    return len(msgspec.json.encode(entry_tree(entry))) + 1


def place(
    record: Record,
    wanted: Mapping[ObjectId, Entry],
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES - FRAME_BYTES,
) -> Record:
    """The record that holds exactly `wanted`; shards whose content stays are the same objects as before.

    What was placed stays where it is unless its shard has grown too large; what is new goes where there is room.  Empty
    shards at the end fall away, the first one stays.
    """
    kept = [_kept(shard, wanted, max_bytes) for shard in record.shards] or [{}]
    placed = {item for entries in kept for item in entries}
    sizes: list[int | None] = [None] * len(kept)
    for item, entry in wanted.items():
        if item not in placed:
            _put(item, entry, kept=kept, sizes=sizes, limits=(max_entries, max_bytes))
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    before = dict(enumerate(record.shards))
    return Record.of(
        before[number]
        if number in before and _same(before[number].entries, entries)
        else Shard(number, entries, before[number].version if number in before else "")
        for number, entries in enumerate(kept)
    )


def _kept(shard: Shard, wanted: Mapping[ObjectId, Entry], max_bytes: int) -> dict[ObjectId, Entry]:
    kept = {item: wanted[item] for item in shard.entries if item in wanted}
    if _same(shard.entries, kept):
        return kept
    size = sum(entry_bytes(entry) for entry in kept.values())
    while size > max_bytes:
        size -= entry_bytes(kept.popitem()[1])
    return kept


def _same(before: Mapping[ObjectId, Entry], after: Mapping[ObjectId, Entry]) -> bool:
    return len(before) == len(after) and all(
        entry is after.get(item) or entry == after.get(item) for item, entry in before.items()
    )


def _put(
    item: ObjectId,
    entry: Entry,
    *,
    kept: list[dict[ObjectId, Entry]],
    sizes: list[int | None],
    limits: tuple[int, int],
) -> None:
    size = entry_bytes(entry)
    for number, entries in enumerate(kept):
        if len(entries) >= limits[0]:
            continue
        held = sizes[number]
        if held is None:
            held = sum(entry_bytes(found) for found in entries.values())
        if held + size <= limits[1]:
            entries[item] = entry
            sizes[number] = held + size
            return
        sizes[number] = held
    kept.append({item: entry})
    sizes.append(size)


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose inventory it is."""

    namespace: str
    name: str
    uid: str
    owner: OwnerId


class InventoryStore:
    """Reads and writes the shards of one unit, as the manager; the only writer of them."""

    def __init__(self, client: KubeClient, unit: Unit) -> None:
        self._client = client
        self._unit = unit
        self._collection = f"/apis/{GROUP}/{VERSION}/namespaces/{unit.namespace}/inventories"

    def _name(self, number: int) -> str:
        return f"{self._unit.name}-{number}"

    async def load(self, *, least: int = 0) -> Record:
        """The stored record; empty when there is none.  `least`: so many shards there were; one that is gone is empty.

        Raises:
            KindNotServed: the CustomResourceDefinition is missing.
        """
        shards: list[Shard] = []
        while True:
            number = len(shards)
            tree = await self._client.find(f"{self._collection}/{self._name(number)}")
            if tree is None and number >= least:
                return Record.of(shards)
            if tree is None:
                shards.append(Shard(number))
                continue
            entries = [entry_of(item) for item in objects_at(tree, "spec", "entries")]
            version = text_at(tree, "metadata", "resourceVersion")
            shards.append(Shard(number, {entry.id: entry for entry in entries}, version))

    async def verified(self, record: Record, *, is_stored: Callable[[NamespacedName], bool]) -> Record:
        """The same record, with what is stored no longer marked so that the next `save` writes it again.

        Only what `is_stored` does not know is asked about.

        Raises:
            KindNotServed: the CustomResourceDefinition is missing.
        """
        shards = []
        for shard in record.shards:
            name = self._name(shard.number)
            is_there = shard.version and (
                is_stored(NamespacedName(self._unit.namespace, name))
                or await self._client.find(f"{self._collection}/{name}")
            )
            shards.append(shard if is_there else replace(shard, version=""))
        return Record(tuple(shards), record.entries)

    async def save(self, record: Record, wanted: Mapping[ObjectId, Entry]) -> Record:
        """Store exactly `wanted`; writes only shards that change, those that gain entries first.

        Raises:
            Conflict: somebody else wrote; load again.
        """
        target = place(record, wanted)
        before = {shard.number: shard for shard in record.shards}
        written: dict[int, Shard] = {}
        changed = [shard for shard in target.shards if shard is not before.get(shard.number) or not shard.version]
        for shard in sorted(changed, key=lambda one: _gain(one, before.get(one.number)), reverse=True):
            written[shard.number] = replace(shard, version=await self._write(shard))
        for number in sorted(set(before) - {shard.number for shard in target.shards}, reverse=True):
            await self._remove(number)
        return Record(tuple(written.get(shard.number, shard) for shard in target.shards), target.entries)

    async def save_while_there(self, record: Record, wanted: Mapping[ObjectId, Entry]) -> Record:
        """`save` for what only removes.  A namespace that is being deleted takes no record any more: it is kept in memory alone.

        Raises:
            Conflict: somebody else wrote; load again.
        """
        try:
            return await self.save(record, wanted)
        except NamespaceMissing:
            return place(record, wanted)

    async def is_closing(self) -> bool:
        """Whether the namespace of the unit is being deleted.  Asked by a dry run, since namespaces are not ours to read.

        Raises:
            TransientError: the API server did not answer.
        """
        try:
            body = self._body(Shard(MAX_SHARD))
            await self._client.create(self._collection, body, manager=FIELD_MANAGER, dry_run=True)
        except NamespaceMissing:
            return True
        except (AlreadyExists, BlockedError, Refused):
            return False
        return False

    async def _write(self, shard: Shard) -> str:
        body = self._body(shard)
        if not shard.version:
            answer = await self._client.create(self._collection, body, manager=FIELD_MANAGER)
        else:
            answer = await self._replace(shard, body)
        return text_at(answer, "metadata", "resourceVersion")

    async def _replace(self, shard: Shard, body: JsonObject) -> JsonObject:
        try:
            path = f"{self._collection}/{self._name(shard.number)}"
            return await self._client.replace(path, body, manager=FIELD_MANAGER)
        except (KindNotServed, NamespaceMissing):
            raise
        except NotFound:
            # Somebody deleted it: what we know of it is more than what is stored.
            made = self._body(replace(shard, version=""))
            return await self._client.create(self._collection, made, manager=FIELD_MANAGER)

    async def _remove(self, number: int) -> None:
        try:
            await self._client.delete(f"{self._collection}/{self._name(number)}")
        except KindNotServed:
            raise
        except NotFound:
            return

    def _body(self, shard: Shard) -> JsonObject:
        unit = self._unit
        metadata: dict[str, JsonValue] = {
            "name": self._name(shard.number),
            "namespace": unit.namespace,
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": "Sync", "name": unit.name, "uid": unit.uid, "controller": True}
            ],
        }
        if shard.version:
            metadata["resourceVersion"] = shard.version
        return {
            "apiVersion": API_VERSION,
            "kind": "Inventory",
            "metadata": metadata,
            "spec": {
                "owner": {"sync": unit.name, "uid": unit.uid, "id": str(unit.owner)},
                "shard": shard.number,
                "entries": [entry_tree(entry) for _, entry in sorted(shard.entries.items())],
            },
        }


def _gain(after: Shard, before: Shard | None) -> int:
    return len(after.entries) - (len(before.entries) if before is not None else 0)


async def recorded_of(client: KubeClient, sync: Sync, *, owner: OwnerId) -> frozenset[ObjectId]:
    """What is on record of a Sync: the identities in its inventory, and those that its status says are held.

    Raises:
        GitopsError: it cannot be read.
    """
    unit = Unit(sync.metadata.namespace, sync.metadata.name, sync.metadata.uid, owner)
    waiting = set()
    for item in sync.status.held:
        with contextlib.suppress(ValueError):  # a file that cannot be read is held as well
            waiting.add(ObjectId.parse(item.object))
    least = sync.status.inventory.shards if sync.status.inventory is not None else 0
    return frozenset((await InventoryStore(client, unit).load(least=least)).entries) | waiting

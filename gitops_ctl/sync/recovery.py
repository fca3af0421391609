"""What a unit may have in its cluster, after its record was deleted by hand (gitops.md, section 6).

While a process lives it knows more than what is stored, and writes the record again as soon as a watch shows that it is gone.
A process that starts finds fewer shards than the status of the Sync names; then everything that the commits of the status declare,
and every object of the watched kinds that carries the unit's mark, may be there.  Such entries have no UID: a prune takes them only
with our own mark on the live object.
"""

from collections.abc import Iterable, Mapping

from gitops_ctl.api.sync import Sync
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.sync.inventory import InventoryStore, Record
from gitops_ctl.sync.model import Desired, Entry
from gitops_ctl.sync.unit import Memory
from gitops_ctl.sync.world import World


def recovered(
    entries: Mapping[ObjectId, Entry], *, declared: Iterable[Desired], marked: Iterable[Entry]
) -> dict[ObjectId, Entry]:
    """The record with everything that may exist beside it.

    Args:
        entries: what is left of the record.
        declared: the objects of the commits that were applied or tried last.
        marked: objects of the cluster that carry the mark of the unit.
    """
    found = dict(entries)
    for desired in declared:
        entry = Entry(desired.id, desired.gvk.version, file=desired.file, keep=desired.keep)
        found.setdefault(desired.id, entry)
    for entry in marked:
        found.setdefault(entry.id, entry)
    return found


async def load_record(world: World, sync: Sync, *, memory: Memory, tree: JsonObject, removes: bool = False) -> None:
    """Read the record; shards that the status names and that are gone are made anew.

    What only `removes` goes on without a stored record when the namespace is being deleted too.

    Raises:
        GitopsError: the cluster cannot be read, or the record cannot be written.
    """
    if memory.store is None:
        return
    record = await memory.store.load(least=sync.status.inventory.shards if sync.status.inventory is not None else 0)
    if not _gone(record):
        memory.record = record
        return
    entries = await _everything(world, sync, memory, record)
    if removes:
        world.require()
        memory.record = await memory.store.save_while_there(record, entries)
    else:
        await _write(world, memory, store=memory.store, record=record, entries=entries)
    _tell(world, tree, record, entries)


async def write_again_if_gone(world: World, memory: Memory, *, tree: JsonObject) -> None:
    """Write the shards of the record that somebody deleted since they were written.

    Raises:
        GitopsError: they cannot be read or written.
    """
    if memory.store is None or memory.record is None:
        return
    record = await memory.store.verified(memory.record, is_stored=world.is_stored)
    if _gone(record):
        await _write(world, memory, store=memory.store, record=record, entries=record.entries)
        _tell(world, tree, record, record.entries)


async def _everything(world: World, sync: Sync, memory: Memory, record: Record) -> dict[ObjectId, Entry]:
    cluster = await world.clusters.of(sync)
    discovery = await cluster.mapper.all()
    revision = world.listing.revision_of(sync)
    declared: dict[ObjectId, Desired] = {}
    commits = (sync.status.last_applied_revision, sync.status.last_attempted_revision)
    for commit in dict.fromkeys(commit for commit in commits if commit):
        if revision is not None:
            declared |= await world.listing.asked_at(commit, sync=sync, revision=revision, discovery=discovery)
    kinds = {desired.gvk for desired in declared.values()} | {entry.gvk for entry in record.entries.values()}
    await cluster.need(memory.key, kinds)
    owner = world.listing.owner_of(sync)
    return recovered(record.entries, declared=declared.values(), marked=cluster.marked(owner))


async def _write(
    world: World, memory: Memory, *, store: InventoryStore, record: Record, entries: Mapping[ObjectId, Entry]
) -> None:
    world.require()
    memory.record = None
    memory.record = await store.save(record, entries)


def _gone(record: Record) -> int:
    return sum(1 for shard in record.shards if not shard.version)


def _tell(world: World, tree: JsonObject, record: Record, entries: Mapping[ObjectId, Entry]) -> None:
    gone = _gone(record)
    text = f"{gone} of {len(record.shards)} Inventory objects of this Sync were deleted by somebody else"
    world.emit(
        tree, "Warning", "InventoryRestored", f"{text}; the record is written again, with {len(entries)} entries"
    )

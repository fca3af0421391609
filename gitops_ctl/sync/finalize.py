"""The end of a Sync: its objects are released or removed, from the stored inventory alone (gitops.md, sections 9.2 and 23.4).

Neither the source nor a healthy unit is needed (R09).  The guards hold here as for every prune.
"""

from gitops_ctl.api.names import ANNOTATION_ALLOW_PRUNE
from gitops_ctl.api.sync import Sync
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.sync.prune import PruneSpec
from gitops_ctl.sync.reconcile import account_of, look_at_doomed
from gitops_ctl.sync.recovery import load_record
from gitops_ctl.sync.removal import Pruned, Removal, remove_unlisted
from gitops_ctl.sync.remove import Remover
from gitops_ctl.sync.summarise import Outcome
from gitops_ctl.sync.unit import Memory
from gitops_ctl.sync.world import World

AGAIN_S = 10.0
"""How soon a removal that waits looks again by itself."""


async def finalize(
    world: World, sync: Sync, memory: Memory, *, tree: JsonObject
) -> tuple[Outcome | None, float | None]:
    """One round; None when nothing is left to do and the finalizer may go."""
    if memory.store is None:
        raise RuntimeError("a unit without a store")
    if memory.record is None:
        await load_record(world, sync, memory=memory, tree=tree, removes=True)
    memory.done = ()
    if not memory.entries:
        return None, None
    cluster = await world.clusters.of(sync)
    await cluster.need(memory.key, {entry.gvk for entry in memory.entries.values()})
    remover = Remover(cluster, account_of(sync), world.require)
    if sync.spec.deletion_policy == "Orphan":
        result = await remover.release(memory.entries.values(), owner=world.listing.owner_of(sync))
        if result.failed and await memory.store.is_closing():
            # The rights to take marks off went with the namespace and cannot come back.  A mark without its Sync binds nobody.
            return None, None
        await _keep_only(memory, set(result.failed), world)
        pruned = Pruned(failed=result.failed)
    else:
        pruned = await _remove(world, sync, memory, remover=remover)
        await _keep_only(memory, set(memory.entries) - set(pruned.dropped), world)
        if _may_never_go(pruned) and await memory.store.is_closing():
            # The rights to delete them went with the namespace and cannot come back: the Sync would hold it for ever.
            left = listed(sorted(map(str, pruned.failed)))
            text = f"left as they are, because the rights to delete them went with the namespace: {left}"
            world.emit(tree, "Warning", "ObjectsLeft", text)
            return None, None
    if not memory.entries:
        return None, None
    outcome = Outcome(
        complete=True,
        kept=pruned.kept,
        terminating=pruned.terminating,
        prune_blocked=pruned.blocked,
        prune_failed=pruned.failed,
        pruned=pruned.report,
        progress="" if pruned.blocked or pruned.failed else "waits for the removal of its objects",
        entries=len(memory.entries),
        shards=memory.shards,
    )
    return outcome, AGAIN_S


def _may_never_go(pruned: Pruned) -> bool:
    """Whether all that is left is what the account has no right to delete, or none to look at."""
    return bool(pruned.failed) and pruned.forbidden == set(pruned.failed) and not pruned.terminating


async def _keep_only(memory: Memory, kept: set[ObjectId], world: World) -> None:
    if memory.store is None or memory.record is None or len(kept) == len(memory.entries):
        return
    world.require()
    wanted = {item: entry for item, entry in memory.entries.items() if item in kept}
    record, memory.record = memory.record, None
    memory.record = await memory.store.save_while_there(record, wanted)


async def _remove(world: World, sync: Sync, memory: Memory, *, remover: Remover) -> Pruned:
    cluster = remover.cluster
    discovery = await cluster.mapper.all()
    others = await world.listing.listed_by_others(sync, discovery=discovery)
    own = await world.listing.document_of(sync, discovery=discovery)
    consent = own.consents.get(ANNOTATION_ALLOW_PRUNE) if own is not None else None
    spec = sync.spec.prune
    removal = Removal(
        owner=world.listing.owner_of(sync),
        remover=remover,
        see=lambda entry: look_at_doomed(cluster, memory, entry, discovery=discovery),
        listed_elsewhere=lambda item: bool(others.get(item)),
        spec=PruneSpec(True, spec.max_percent, spec.allow_empty, consent.value if consent else ""),
        own=NamespacedName(sync.metadata.namespace, sync.spec.service_account_name),
        consent_commit=consent.commit if consent else "",
    )
    pruned = await remove_unlisted(removal, tuple(memory.entries.values()), memory=memory, total=len(memory.entries))
    # With the Sync gone nobody would look after what was kept on purpose: it stays, without us.
    released = await remover.release([memory.entries[item] for item in pruned.kept], owner=world.listing.owner_of(sync))
    pruned.dropped = (*pruned.dropped, *released.gone)
    return pruned

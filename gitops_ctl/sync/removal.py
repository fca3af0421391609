"""The prune of one pass: what no document stands behind any more goes, under the guards (gitops.md, section 9).

Sorting and guards are in `prune`, deleting is in `remove`; here they meet the inventory.  An entry leaves the inventory only
when its object is surely gone or is somebody else's (R04).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.sync.model import UNSEEN, Entry, OwnerId, Seen, Unseen
from gitops_ctl.sync.order import Deletion
from gitops_ctl.sync.prune import Guarded, PruneFacts, PruneSpec, Survivors, guard, set_digest, survivors
from gitops_ctl.sync.remove import Removed, Remover
from gitops_ctl.sync.summarise import PruneReport
from gitops_ctl.sync.unit import Memory


@dataclass(frozen=True, slots=True)
class Removal:
    """What is needed to judge and to carry out.

    Attributes:
        see: what is known of an entry's object.
        listed_elsewhere: whether another Sync asks for an object.
        live_uids: UIDs of objects that the unit keeps.
        remaining: documents that the unit still has.
        consent_commit: commit of the consent in `spec`.
        own: the Sync's ServiceAccount, for the order.
        waits: entries that are part of the set and go in a later pass.
    """

    owner: OwnerId
    remover: Remover
    see: Callable[[Entry], Seen]
    listed_elsewhere: Callable[[ObjectId], bool]
    spec: PruneSpec
    own: NamespacedName
    live_uids: frozenset[str] = frozenset()
    remaining: int = 0
    consent_commit: str = ""
    waits: frozenset[ObjectId] = frozenset()


@dataclass(slots=True)
class Pruned:
    """What came of it, for the status."""

    kept: dict[ObjectId, str] = field(default_factory=dict)
    blocked: str = ""
    failed: Mapping[ObjectId, str] = field(default_factory=dict)
    forbidden: frozenset[ObjectId] = frozenset()
    terminating: tuple[ObjectId, ...] = ()
    unknown: tuple[ObjectId, ...] = ()
    report: PruneReport | None = None
    dropped: tuple[ObjectId, ...] = ()


async def remove_unlisted(removal: Removal, found: Iterable[Entry], *, memory: Memory, total: int) -> Pruned:
    """Judge `found` and delete what may go.  `dropped` are entries that the inventory forgets.

    Raises:
        BlockedError: the manager may not write any more.
    """
    refused: dict[ObjectId, str] = {}
    await _read_unseen(removal, entries := tuple(found), memory=memory, refused=refused)
    removal = await _verified(removal, entries, refused=refused)
    facts = PruneFacts(
        removal.owner,
        removal.see,
        removal.listed_elsewhere,
        live_uids=removal.live_uids,
        enabled=removal.spec.enabled,
    )
    sorted_ = survivors(entries, facts=facts)
    pruned = Pruned(kept=dict(sorted_.kept), terminating=sorted_.terminating, unknown=sorted_.unknown)
    judged = _judge(removal, sorted_, entries=entries, memory=memory, total=total)
    pruned.blocked = judged.message
    result = Removed()
    if not judged.message and (sorted_.doomed or sorted_.terminating):
        # Exactly this set: what went back to Git is asked about again.  What cannot be seen just now is still part of it.
        unseen = frozenset(sorted_.unknown)
        memory.permitted = _named(sorted_.doomed) | {one for one in memory.permitted if one[0] in unseen}
        going = [_still(removal, entry) for entry in entries if entry.id in set(sorted_.terminating)]
        now = [item for item in sorted_.doomed if item.entry.id not in removal.waits]
        result = await removal.remover.delete([*now, *going], own=removal.own)
        pruned.terminating = tuple(sorted({*result.terminating, *sorted_.terminating}))
    # Without the right to read them nothing is known of them, and nothing ever will be.
    unread = {item: refused[item] for item in sorted_.unknown if item in refused}
    pruned.failed, pruned.forbidden = {**result.failed, **unread}, frozenset({*result.forbidden, *unread})
    if result.gone or result.terminating:
        commit = removal.consent_commit if judged.consented else ""
        pruned.report = PruneReport(judged.digest, len(sorted_.doomed), commit) if sorted_.doomed else None
    pruned.dropped = (*sorted_.released, *result.gone)
    if not (sorted_.doomed or sorted_.terminating or sorted_.unknown):
        memory.permitted = frozenset()
    return pruned


def _judge(removal: Removal, found: Survivors, *, entries: tuple[Entry, ...], memory: Memory, total: int) -> Guarded:
    """The guards, unless this set is the rest of one that passed them.

    A rest is known by memory (a delete was refused, or waits for finalizers), and after a restart by the inventory, which
    keeps every entry until the whole set was deleted: what is left and what is gone already give the consented digest.
    """
    judged = guard(found.doomed, remaining=removal.remaining, total=total, spec=removal.spec)
    if found.doomed and _named(found.doomed) <= memory.permitted:
        return Guarded(judged.digest, consented=judged.consented)
    if judged.message and removal.spec.consent:
        going = frozenset(found.terminating)
        begun = [entry for entry in entries if entry.id in going or removal.see(entry) is None]
        if removal.spec.consent == set_digest((*found.doomed, *(Deletion(entry, None) for entry in begun))):
            return Guarded(removal.spec.consent, consented=True)
    return judged


def _named(doomed: Iterable[Deletion]) -> frozenset[tuple[ObjectId, str]]:
    return frozenset((item.entry.id, item.view.uid if item.view is not None else item.entry.uid) for item in doomed)


def _still(removal: Removal, entry: Entry) -> Deletion:
    seen = removal.see(entry)
    return Deletion(entry, None if isinstance(seen, Unseen) else seen)


async def _read_unseen(
    removal: Removal, entries: tuple[Entry, ...], *, memory: Memory, refused: dict[ObjectId, str]
) -> None:
    """Kinds without a working informer are read by name before anything is concluded about them."""
    cluster = removal.remover.cluster
    unseen = [
        item
        for item in entries
        if not cluster.is_watched(item.gvk) and isinstance(cluster.see(item.id, item.gvk), Unseen)
    ]
    if unseen:
        memory.read.update(await removal.remover.read(unseen, refused=refused))


async def _verified(removal: Removal, entries: tuple[Entry, ...], *, refused: dict[ObjectId, str]) -> Removal:
    """The same, with everything that no informer shows read by name: its entry goes for good.

    An informer selects on our label, which somebody may have taken off, and it may not know yet that its server was restored
    from a backup (H17).
    """
    missing = [entry for entry in entries if removal.see(entry) is None]
    if not missing:
        return removal
    found = await removal.remover.read(missing, refused=refused)
    seen: dict[ObjectId, Seen] = {entry.id: found.get(entry.id, UNSEEN) for entry in missing}
    return replace(removal, see=lambda entry: seen[entry.id] if entry.id in seen else removal.see(entry))

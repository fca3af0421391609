"""What leaves the cluster, and what does not (gitops.md, section 9).

`survivors` sorts the inventory entries that no document stands behind any more; `guard` says whether the rest may go.  Both
are pure.  Only what is in the inventory of this owner can be chosen, a UID goes with every delete, and a set that is empty,
large or not completely known stops the prune.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from gitops_ctl.core.canonical import digest_lines
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.sync.model import Desired, DesiredState, Entry, Mode, OwnerId, Seen, Unseen, View
from gitops_ctl.sync.order import NAMESPACE, Deletion

SMALL_SET: Final = 5
"""A set of at most this many objects is not measured by its share."""

Propagation = Literal["Background", "Foreground", "Orphan"]

_FOREGROUND: Final = frozenset(
    {
        GroupKind("apps", "Deployment"),
        GroupKind("apps", "StatefulSet"),
        GroupKind("apps", "DaemonSet"),
        GroupKind("batch", "Job"),
        GroupKind("batch", "CronJob"),
    }
)
_DEVICE_GROUPS: Final = frozenset({"cisco.vk", "config.cisco.vk", "ops.cisco.vk"})


@dataclass(frozen=True, slots=True)
class PruneSpec:
    """`spec.prune` of a Sync, and the consent that stands in Git (empty when there is none)."""

    enabled: bool = False
    max_percent: int = 25
    allow_empty: bool = False
    consent: str = ""


@dataclass(frozen=True, slots=True)
class Survivors:
    """Entries without a document, by what becomes of them.

    Attributes:
        doomed: to delete.
        released: not ours to delete any more: gone, taken over, or moved to another group.
        kept: stay on purpose, with the reason.
        unknown: cannot be seen, so nothing is done about them.
        terminating: deleted already, finalizers are at work.
    """

    doomed: tuple[Deletion, ...] = ()
    released: tuple[ObjectId, ...] = ()
    kept: Mapping[ObjectId, str] = field(default_factory=dict)
    unknown: tuple[ObjectId, ...] = ()
    terminating: tuple[ObjectId, ...] = ()


@dataclass(frozen=True, slots=True)
class PruneFacts:
    """What sorting reads.

    Attributes:
        see: what the cluster shows of an entry's object.
        listed_elsewhere: whether another Sync lists an object, so that dropping it is letting go.  Until that one has taken
            it over, the entry stays: whatever carries our mark is in our inventory.
        live_uids: UIDs of the objects that the unit keeps; one UID under two groups is one object (R11).
    """

    owner: OwnerId
    see: Callable[[Entry], Seen]
    listed_elsewhere: Callable[[ObjectId], bool]
    live_uids: frozenset[str] = frozenset()
    enabled: bool = True


def candidates(state: DesiredState, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries that no document, no hidden file and no broken file stands behind."""
    lists, kept_files = state.lists, state.broken_files.keys() | state.hidden_files
    return tuple(entry for entry in entries if entry.id not in lists and entry.file not in kept_files)


def waiting_for(found: Iterable[Entry], *, unsure: Iterable[Desired]) -> frozenset[ObjectId]:
    """Entries that may not go while it is not known what became of some objects.

    An object that moved to another group is one object under two names, and its UID is known only once the new name was
    applied (R11); what an object waits for, and the namespace that it lies in, go after it at the earliest.
    """
    same = {(item.id.kind, item.id.namespace, item.id.name) for item in unsure}
    needed = {need for item in unsure for need in item.depends_on}
    spaces = {item.id.namespace for item in unsure}
    return frozenset(
        entry.id
        for entry in found
        if (entry.id.kind, entry.id.namespace, entry.id.name) in same
        or entry.id in needed
        or (entry.id.group_kind == NAMESPACE and entry.id.name in spaces)
    )


def hidden_entries(state: DesiredState, entries: Mapping[ObjectId, Entry]) -> tuple[ObjectId, ...]:
    """Applied objects whose file is ignored now; kept and listed as `HiddenInGit`."""
    unread = (item for item, entry in entries.items() if entry.file in state.hidden_files and item not in state.objects)
    return tuple(sorted({*unread, *(item for item in state.hidden if item in entries)}))


def ignored_entries(state: DesiredState, entries: Mapping[ObjectId, Entry]) -> tuple[ObjectId, ...]:
    """Applied objects that are now in mode `Ignore`: neither applied nor pruned."""
    return tuple(sorted(item for item, found in state.objects.items() if found.mode is Mode.IGNORE and item in entries))


def survivors(found: Iterable[Entry], *, facts: PruneFacts) -> Survivors:
    """Sort entries that nothing in Git stands behind."""
    doomed: list[Deletion] = []
    released: list[ObjectId] = []
    kept: dict[ObjectId, str] = {}
    unknown: list[ObjectId] = []
    terminating: list[ObjectId] = []
    for entry in found:
        seen = facts.see(entry)
        if isinstance(seen, Unseen):
            unknown.append(entry.id)
        elif seen is None or _not_ours(entry, seen, facts):
            released.append(entry.id)
        elif facts.listed_elsewhere(entry.id):
            kept[entry.id] = "another Sync asks for it and has not taken it over yet"
        elif seen.prune_disabled or entry.keep:
            kept[entry.id] = "its annotation disables prune"
        elif not facts.enabled:
            kept[entry.id] = "spec.prune.enabled is not set"
        elif seen.terminating:
            terminating.append(entry.id)
        else:
            doomed.append(Deletion(entry, seen))
    return Survivors(tuple(doomed), tuple(released), kept, tuple(unknown), tuple(terminating))


def _not_ours(entry: Entry, seen: View, facts: PruneFacts) -> bool:
    if seen.uid and seen.uid in facts.live_uids:
        return True
    if seen.uid != entry.uid:
        # Another object has the name, or no apply of ours is known to have succeeded: only our own mark makes it ours.
        return seen.owner != facts.owner.mark(entry.id)
    return OwnerId.of_mark(seen.owner, identity=entry.id) not in (None, facts.owner)


def propagation_of(entry: Entry, view: View | None) -> Propagation:
    """How an object is deleted: by its annotation from Git, else by its kind."""
    match view.propagation if view is not None else "":
        case "Foreground":
            return "Foreground"
        case "Orphan":
            return "Orphan"
        case "Background":
            return "Background"
    kind = entry.id.group_kind
    return "Foreground" if kind in _FOREGROUND or kind.group in _DEVICE_GROUPS else "Background"


def set_digest(doomed: Iterable[Deletion]) -> str:
    """The digest that a consent names (gitops.md, section 9.2)."""
    return digest_lines(
        f"{item.entry.id.group}/{item.entry.id.kind}/{item.entry.id.namespace}/{item.entry.id.name}/{_uid(item)}"
        for item in doomed
    )


def _uid(item: Deletion) -> str:
    return item.view.uid if item.view is not None else item.entry.uid


@dataclass(frozen=True, slots=True)
class Guarded:
    """Whether a set may go.  `message` is empty when it may; `consented` when it needed and has a consent."""

    digest: str
    message: str = ""
    consented: bool = False


def guard(doomed: tuple[Deletion, ...], *, remaining: int, total: int, spec: PruneSpec) -> Guarded:
    """Judge a set by its size.

    Args:
        doomed: what would be deleted.
        remaining: documents that the unit still has.
        total: entries of the inventory.
        spec: limits and consent.
    """
    digest = set_digest(doomed)
    if not doomed:
        return Guarded(digest)
    reason = ""
    if remaining == 0 and not spec.allow_empty:
        reason = "no document is left"
    elif len(doomed) > SMALL_SET and len(doomed) * 100 > spec.max_percent * total:
        reason = f"{len(doomed)} of {total} objects is more than spec.prune.maxPercent ({spec.max_percent})"
    if not reason:
        return Guarded(digest)
    if spec.consent == digest:
        return Guarded(digest, consented=True)
    names = listed([str(item.entry.id) for item in sorted(doomed, key=lambda one: one.entry.id)])
    text = (
        f"{reason}; it would delete {names}. "
        f"To allow exactly this set, commit gitops-ctl.dev/allow-prune: {digest} on the Sync; "
        "to keep the objects, bring their documents back"
    )
    return Guarded(digest, text)

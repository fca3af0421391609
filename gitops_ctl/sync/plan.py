"""What to do about each declared object: a pure function of Git, inventory and cluster (gitops.md, sections 6, 7 and 11).

An object whose declared digest is that of the inventory and whose live digest is the applied one gives no action, so it
costs no API call, also after a restart.  What cannot be seen is left alone, never taken for missing (H19).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.sync.model import UNSEEN, Apply, Desired, DesiredState, Entry, Held, Mode, OwnerId, Seen, Unseen, Why


@dataclass(frozen=True, slots=True)
class Drift:
    """A live object that is not as it was applied.  `missing`: it is not there, or another one has its name."""

    desired: Desired
    missing: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What planning reads.

    Attributes:
        entries: the inventory of this owner.
        see: what the cluster shows of an object.
        lists: whether another owner asks for an object in the newest revision that it may apply.
        correct: drift is repaired; else it is only reported.
    """

    state: DesiredState
    entries: Mapping[ObjectId, Entry]
    see: Callable[[Desired], Seen]
    lists: Callable[[OwnerId, ObjectId], bool]
    correct: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions without order, drift that was found (repaired or not), and objects that wait."""

    applies: tuple[Apply, ...]
    drift: tuple[Drift, ...]
    held: tuple[Held, ...]


def plan(facts: Facts) -> Plan:
    """Decide about every object of the unit.  Objects that documents hold are in `held` already and get no action."""
    applies: list[Apply] = []
    drift: list[Drift] = []
    held: list[Held] = [*facts.state.held, *_from_broken_files(facts)]
    if not facts.state.unit_held:
        for desired in facts.state.objects.values():
            decision = decide(desired, facts)
            match decision:
                case Held():
                    held.append(decision)
                case Apply():
                    applies.append(decision)
                    if decision.why in (Why.MISSING, Why.REPLACED, Why.DRIFTED):
                        drift.append(Drift(desired, decision.why is not Why.DRIFTED))
                case Drift():
                    drift.append(decision)
    return Plan(tuple(applies), tuple(drift), tuple(held))


def _from_broken_files(facts: Facts) -> Iterator[Held]:
    """The objects that came from a file that cannot be read now; the file itself where it is not known what it held."""
    state = facts.state
    if not state.broken_files:
        return
    lost: dict[str, list[ObjectId]] = {}
    for item, entry in facts.entries.items():
        if entry.file in state.broken_files and item not in state.lists:
            lost.setdefault(entry.file, []).append(item)
    for file, held in state.broken_files.items():
        for item in lost.get(file, [held.id]):
            yield replace(held, id=item)


def decide(desired: Desired, facts: Facts) -> Apply | Drift | Held | None:
    """What to do about one object; None for nothing."""
    if desired.mode is Mode.IGNORE:
        return None
    seen = facts.see(desired)
    stranger = _owned_elsewhere(desired, seen, facts)
    if stranger is not None:
        return stranger
    entry = facts.entries.get(desired.id)
    if entry is None or not entry.uid or not entry.declared:
        return Apply(desired, Why.NEW, look_first=seen is UNSEEN)
    why = Why.CHANGED if entry.declared != desired.digest else _difference(desired, entry, seen)
    if why is None:
        return None
    if why is not Why.CHANGED and not facts.correct:
        return Drift(desired, why is not Why.DRIFTED)
    return _waiting_for_deletion(desired, seen) or Apply(desired, why, was_ours=why is not Why.CHANGED)


def _difference(desired: Desired, entry: Entry, seen: Seen) -> Why | None:
    if isinstance(seen, Unseen):
        return None
    if seen is None:
        return Why.MISSING
    if desired.mode is Mode.IF_NOT_PRESENT:
        return None
    if seen.uid != entry.uid:
        return Why.REPLACED
    if seen.digest != entry.applied or seen.owner != desired.owner.mark(desired.id):
        return Why.DRIFTED
    return Why.DRIFTED if seen.terminating else None


def _waiting_for_deletion(desired: Desired, seen: Seen) -> Held | None:
    """An object that is being deleted is not written to: it is created again when it is gone."""
    if seen is None or isinstance(seen, Unseen) or not seen.terminating:
        return None
    text = "is being deleted; it is created again when its finalizers are done"
    return Held(desired.id, ErrorCode.DEPENDENCY_NOT_READY, text, desired.file, desired.line)


def _owned_elsewhere(desired: Desired, seen: Seen, facts: Facts) -> Held | None:
    """The reason to wait for another owner, until that one lets go (gitops.md, section 6.2)."""
    if seen is None or isinstance(seen, Unseen) or not seen.owner or seen.owner == desired.owner.mark(desired.id):
        return None
    other = OwnerId.of_mark(seen.owner, identity=desired.id)
    if other is None or not facts.lists(other, desired.id):
        return None
    text = f"belongs to Sync {other.key} of GitSource {other.namespace}/{other.source}"
    if other.cluster != desired.owner.cluster:
        text = f"belongs to another installation: owner id {other}"
    return Held(desired.id, ErrorCode.OWNED_ELSEWHERE, text, desired.file, desired.line)

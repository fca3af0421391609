"""From what one pass learned to the status of a Sync (gitops.md, sections 12.2 and 22.2).  Pure; written once per pass.

Messages hold no counters that change by themselves, no durations and no values of objects, so that an unchanged situation
gives an unchanged status and nothing is written (R15).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gitops_ctl.api.sync import SHOWN
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import Condition, cut, listed, merge_conditions
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, objects_at, text_at
from gitops_ctl.core.redact import redact_text
from gitops_ctl.sync.model import Held

SUCCEEDED: Final = "Succeeded"
PROGRESSING: Final = "Progressing"
WITH_RETRY: Final = "ProgressingWithRetry"
MESSAGE: Final = 1000
PLACE: Final = 4096
ITEM: Final = 300
"""Characters of one of several texts in a message."""

_NEEDS_A_PERSON: Final = frozenset({ErrorCode.SOURCE_NOT_TRUSTED, ErrorCode.PRUNE_BLOCKED, ErrorCode.RULE})


POINTERS = 20
"""Fields of one drifted object that a status names."""

NOT_WATCHED = "read at each interval instead; the chart value `informers` lets the manager watch a kind"
SUSPENDED = "spec.suspend is true: nothing is applied; counts, held and drift are those of the last pass"


@dataclass(frozen=True, slots=True)
class Drifted:
    """One object that is not as it was applied; `pointers` name places, never values."""

    id: ObjectId
    missing: bool
    pointers: tuple[str, ...] = ()
    manager: str = ""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The last removal that was carried out."""

    digest: str
    count: int
    consent_commit: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a status is made from.

    Attributes:
        revision: what was tried, empty when there is nothing to try.
        problem: why nothing was tried at all.
        endless: the problem is a wait that cannot end by itself.
        complete: every object of the revision was tried or holds for a reason of its own.
        retrying: objects whose reason may go by itself.
        waiting: objects that are not healthy yet, with what they say; `failed` those that will not be, or not in time.
        checked: health is asked for.
        troubles: kinds whose changes are not heard of.
    """

    revision: str = ""
    problem: tuple[ErrorCode, str] | None = None
    endless: bool = False
    suspended: bool = False
    progress: str = ""
    complete: bool = False
    objects: int = 0
    held: Sequence[Held] = ()
    retrying: bool = False
    drift: Sequence[Drifted] = ()
    reported: bool = False
    fights: Mapping[ObjectId, str] = field(default_factory=dict)
    kept: Mapping[ObjectId, str] = field(default_factory=dict)
    terminating: Sequence[ObjectId] = ()
    prune_blocked: str = ""
    prune_failed: Mapping[ObjectId, str] = field(default_factory=dict)
    pruned: PruneReport | None = None
    checked: bool = False
    waiting: Mapping[ObjectId, str] = field(default_factory=dict)
    failed: Mapping[ObjectId, str] = field(default_factory=dict)
    shards: int = 0
    entries: int = 0
    troubles: Sequence[str] = ()
    requested: str = ""


def status_of(outcome: Outcome, *, name: str, previous: JsonObject, generation: int, now: datetime) -> JsonObject:
    """The whole status after a pass.

    Args:
        outcome: what the pass learned.
        name: of the Sync, for the reference to its inventory.
        previous: the status as it is stored; times and what this pass did not touch are taken over.
        generation: the generation that was read.
        now: wall clock.
    """
    ready = _ready(outcome)
    settled = ready.status != "Unknown"
    status: dict[str, JsonValue] = {
        "observedGeneration": generation if settled else int_at(previous, "observedGeneration"),
        "conditions": merge_conditions(previous, wanted=_conditions(outcome, ready), generation=generation, now=now),
    }
    _take_over(
        status, previous, ("lastAttemptedRevision", "lastAppliedRevision", "lastHandledReconcileAt", "lastPrune")
    )
    _take_over(status, previous, ("counts", "inventory", "held", "drift"))
    if outcome.requested:
        status["lastHandledReconcileAt"] = outcome.requested
    if outcome.revision:
        status["lastAttemptedRevision"] = outcome.revision
    if outcome.problem is None and not outcome.suspended and not outcome.progress:
        status.update(_details(outcome, name=name, previous=previous, now=now))
    if outcome.complete and not outcome.held and outcome.revision:
        status["lastAppliedRevision"] = outcome.revision
    return status


def _take_over(status: dict[str, JsonValue], previous: JsonObject, members: Sequence[str]) -> None:
    status.update({member: previous[member] for member in members if member in previous})


def _details(outcome: Outcome, *, name: str, previous: JsonObject, now: datetime) -> dict[str, JsonValue]:
    held = sorted(outcome.held, key=lambda item: item.id)
    drift = sorted(outcome.drift, key=lambda item: item.id)
    unhealthy = len(outcome.waiting) + len(outcome.failed)
    details: dict[str, JsonValue] = {
        "counts": {
            "objects": outcome.objects + len(held),
            "applied": outcome.objects,
            "held": len(held),
            "drifted": len(drift),
            "unhealthy": unhealthy,
            "kept": len(outcome.kept),
            "terminating": len(outcome.terminating),
        },
        "inventory": {"name": f"{name}-0", "shards": outcome.shards, "entries": outcome.entries},
        "held": [_held_tree(item, previous, now) for item in held[:SHOWN]],
        "drift": [_drift_tree(item, previous, now) for item in drift[:SHOWN]],
    }
    if outcome.pruned is not None:
        report: dict[str, JsonValue] = {
            "digest": outcome.pruned.digest,
            "count": outcome.pruned.count,
            "at": to_rfc3339(now),
        }
        if outcome.pruned.consent_commit:
            report["consentCommit"] = outcome.pruned.consent_commit
        details["lastPrune"] = report
    return details


def _held_tree(item: Held, previous: JsonObject, now: datetime) -> JsonObject:
    before = next(
        (
            found
            for found in objects_at(previous, "held")
            if text_at(found, "object") == str(item.id) and text_at(found, "reason") == item.why
        ),
        {},
    )
    tree: dict[str, JsonValue] = {
        "object": str(item.id),
        "reason": item.why,
        "message": cut(redact_text(item.message), limit=MESSAGE),
        "file": cut(item.file, limit=PLACE),
        "line": item.line,
        "since": text_at(before, "since") or to_rfc3339(now),
    }
    return tree


def _drift_tree(item: Drifted, previous: JsonObject, now: datetime) -> JsonObject:
    change = "Missing" if item.missing else "Changed"
    before = next(
        (
            found
            for found in objects_at(previous, "drift")
            if text_at(found, "object") == str(item.id) and text_at(found, "change") == change
        ),
        {},
    )
    more = len(item.pointers) - POINTERS
    return {
        "object": str(item.id),
        "change": change,
        "pointers": [cut(pointer, limit=512) for pointer in item.pointers[:POINTERS]],
        **({"more": more} if more > 0 else {}),
        "manager": cut(item.manager, limit=256),
        "since": text_at(before, "since") or to_rfc3339(now),
    }


def _ready(outcome: Outcome) -> Condition:
    """Ready, by the first thing that stands against it."""
    at = f" at {outcome.revision}" if outcome.revision else ""
    against = next(((code, text) for code, text in _against(outcome) if text), None)
    if against is not None:
        return Condition("Ready", "False", against[0].reason, against[1])
    if outcome.progress or outcome.waiting or not outcome.complete:
        waits = f"waits for {_mapped(outcome.waiting)}" if outcome.waiting else f"is being applied{at}"
        return Condition("Ready", "Unknown", PROGRESSING, outcome.progress or waits)
    kept = f"; kept on purpose: {_mapped(outcome.kept)}" if outcome.kept else ""
    seen = f"; not watched: {listed(list(outcome.troubles))} ({NOT_WATCHED})" if outcome.troubles else ""
    what = "1 object" if outcome.objects == 1 else f"{outcome.objects} objects"
    return Condition("Ready", "True", SUCCEEDED, f"applied {what}{at}{kept}{seen}")


def _against(outcome: Outcome) -> Iterator[tuple[ErrorCode, str]]:
    """Reasons for Ready=False in the order in which they decide; a reason without a text does not hold."""
    if outcome.problem is not None:
        yield outcome.problem[0], redact_text(outcome.problem[1])
    yield ErrorCode.SUSPENDED, SUSPENDED if outcome.suspended else ""
    if outcome.progress:
        return
    yield ErrorCode.OBJECTS_HELD, _held_text(outcome.held)
    yield ErrorCode.PRUNE_FAILED, _mapped(outcome.prune_failed)
    yield ErrorCode.PRUNE_BLOCKED, outcome.prune_blocked
    yield ErrorCode.HEALTH_CHECK_FAILED, _mapped(outcome.failed)


def _held_text(held: Sequence[Held]) -> str:
    shown = []
    for item in sorted(held, key=lambda found: found.id):
        place = f" ({item.file}:{item.line})" if item.file else ""
        shown.append(f"{item.id}{place}: {item.why}: {cut(redact_text(item.message), limit=ITEM)}")
    return listed(shown)


def _mapped(found: Mapping[ObjectId, str]) -> str:
    return listed([f"{item}: {cut(redact_text(text), limit=ITEM)}" for item, text in sorted(found.items())])


def _conditions(outcome: Outcome, ready: Condition) -> list[Condition]:
    found = [ready]
    if ready.status == "Unknown":
        found.append(Condition("Reconciling", "True", PROGRESSING, ready.message))
    elif ready.status == "False" and not outcome.suspended:
        if _will_be_retried(outcome):
            found.append(Condition("Reconciling", "True", WITH_RETRY, "it is tried again by itself"))
        else:
            found.append(Condition("Stalled", "True", ready.reason, ready.message))
    if outcome.checked and outcome.problem is None and not outcome.suspended:
        found.append(_healthy(outcome))
    if outcome.drift and outcome.reported:
        names = listed([str(item.id) for item in sorted(outcome.drift, key=lambda one: one.id)])
        found.append(Condition("Drifted", "True", "Drifted", f"not as applied: {names}"))
    if outcome.prune_blocked:
        found.append(Condition("PruneBlocked", "True", ErrorCode.PRUNE_BLOCKED.reason, outcome.prune_blocked))
    if outcome.fights:
        text = listed([f"{item} with {by or 'another writer'}" for item, by in sorted(outcome.fights.items())])
        found.append(
            Condition("Fighting", "True", ErrorCode.FIGHTING.reason, f"the same fields are written by two: {text}")
        )
    return found


def _will_be_retried(outcome: Outcome) -> bool:
    if outcome.problem is not None:
        return outcome.problem[0] not in _NEEDS_A_PERSON and not outcome.endless
    return outcome.retrying or bool(outcome.prune_failed)


def _healthy(outcome: Outcome) -> Condition:
    if outcome.failed:
        return Condition("Healthy", "False", ErrorCode.HEALTH_CHECK_FAILED.reason, _mapped(outcome.failed))
    if outcome.waiting:
        return Condition("Healthy", "Unknown", PROGRESSING, f"waits for {_mapped(outcome.waiting)}")
    return Condition("Healthy", "True", SUCCEEDED, "every object that is waited for is healthy")

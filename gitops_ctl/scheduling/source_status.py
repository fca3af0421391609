"""What a pass over a TopologySource ends in: conditions, the fate of its NodeFeatures, the next look (topology-scheduling.md, 3.3, 9.1).

Users and alerts key on the reasons: they are the table of the contract, whatever an option adds to a message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from gitops_ctl.core.conditions import Condition, merge_conditions
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.scheduling.nodefeature import Overlap
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot import SnapshotProblem
from gitops_ctl.scheduling.source import TopologySource
from gitops_ctl.scheduling.source_rules import SpecProblem

CONFLICT_S: Final = 60.0
_DECODE: Final = frozenset({"1", "2", "3", "4", "5"})
_PLACING: Final = ("spec.nodeSelector", "spec.levels")
_NO_CONFLICT: Final = Condition("OwnershipConflict", "False", "NoConflict")
_READ_ONLY: Final = Condition("OwnershipConflict", "False", "ReadOnly")

FailureReason = Literal["ConfigMapReadFailed", "SnapshotKeyMissing", "SnapshotInvalid", "WebhookReadFailed"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A revision was applied whole; for nodeLabels: the hierarchy was looked at, and `problem` says why it is no tree.

    Attributes:
        note: what an option did, for the message of Valid.
    """

    problem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contested:
    """The snapshot is sound, and another source writes to the same Nodes."""

    overlap: Overlap


@dataclass(frozen=True, slots=True)
class Failed:
    """No sound snapshot; `detail` holds neither a token nor the answer of a server.

    Attributes:
        is_drop: the drop guard refused it (B2): the message then says when everything goes.
    """

    reason: FailureReason
    detail: str
    is_drop: bool = False


@dataclass(frozen=True, slots=True)
class Misspecified:
    """The spec has problems; nothing was read (D9)."""

    problems: tuple[SpecProblem, ...]


Outcome = Applied | Contested | Failed | Misspecified


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows.

    Attributes:
        removes: whether the source's NodeFeatures go.
        requeue_s: seconds until the next look; None when only events wake the source.
        succeeded: whether the staleness clock starts anew.
    """

    conditions: tuple[Condition, ...]
    removes: bool = False
    requeue_s: float | None = None
    succeeded: bool = False


def failure_of(problems: Sequence[SnapshotProblem], source: TopologySource) -> Failed:
    """The failure that the first of these problems is (D13); decoding belongs to the fetch of a webhook."""
    first = problems[0]
    is_fetch = source.kind == "Webhook" and first.rule in _DECODE
    detail = f"rule {first.rule}, line {first.place.line}: {first.message}"
    return Failed("WebhookReadFailed" if is_fetch else "SnapshotInvalid", detail, first.rule == "B2")


def judge(
    outcome: Outcome, *, source: TopologySource, succeeded_at: datetime | None, now: datetime, options: Options
) -> Judgement:
    """The row of the table, with its timer.

    Args:
        succeeded_at: `last_success` of the object as it is stored.
        now: wall clock; the clock of staleness is in the status, so that it survives a restart.
    """
    match outcome:
        case Misspecified():
            return _misspecified(outcome, source, succeeded_at, now, options)
        case Applied():
            return _applied(outcome, source)
        case Contested():
            return _contested(outcome, source)
        case Failed():
            return _failed(outcome, source, succeeded_at, now, options)


def _applied(outcome: Applied, source: TopologySource) -> Judgement:
    if source.kind is None:
        reason = "PendingInventoryAdapter"
        conditions = (Condition("Ready", "False", reason), Condition("Valid", "Unknown", reason), _NO_CONFLICT)
        return Judgement(conditions)
    third = _NO_CONFLICT if source.writes else _READ_ONLY
    if outcome.problem:
        reason = "InvalidHierarchy"
        message = f"{outcome.problem}; {outcome.note}" if outcome.note else outcome.problem
        conditions = (Condition("Ready", "False", reason), Condition("Valid", "False", reason, message), third)
        return Judgement(conditions)
    conditions = (Condition("Ready", "True", "Observed"), Condition("Valid", "True", "Observed", outcome.note), third)
    return Judgement(conditions, requeue_s=source.poll_interval_s, succeeded=source.writes)


def _contested(outcome: Contested, source: TopologySource) -> Judgement:
    message = f"other sources write to the same Nodes: {', '.join(outcome.overlap.sources)}"
    conditions = (
        Condition("Ready", "False", "OwnershipConflict", message),
        Condition("Valid", "True", "Observed"),
        Condition("OwnershipConflict", "True", "OverlappingSources", message),
    )
    return Judgement(conditions, removes=True, requeue_s=min(CONFLICT_S, source.poll_interval_s or CONFLICT_S))


def _misspecified(
    outcome: Misspecified, source: TopologySource, succeeded_at: datetime | None, now: datetime, options: Options
) -> Judgement:
    """Owned NodeFeatures stay while the last revision is usable, and always when nobody can tell how long that is."""
    message = "; ".join(str(problem) for problem in outcome.problems)
    left = _left(source, succeeded_at, now)
    is_usable = succeeded_at is not None and (source.max_staleness_s is None or left is not None)
    is_placing = not any(problem.path.startswith(_PLACING) for problem in outcome.problems)
    keeps = options.keep_profile_while_stale and is_usable and is_placing
    kept = "profiles are kept (keep-profile-while-stale); " if keeps else ""
    conditions = (
        Condition("Ready", "False", "InvalidSpec", f"{kept}{message}"),
        Condition("Valid", "False", "InvalidSpec", message),
        _NO_CONFLICT,
    )
    if succeeded_at is None or source.max_staleness_s is None:
        return Judgement(conditions)
    return Judgement(conditions, removes=left is None, requeue_s=left)


def _failed(
    outcome: Failed, source: TopologySource, succeeded_at: datetime | None, now: datetime, options: Options
) -> Judgement:
    left = _left(source, succeeded_at, now)
    expiry = "" if left is None else f"until {to_rfc3339(now + timedelta(seconds=left))}"
    detail = f"{outcome.detail}; the NodeFeatures stay {expiry}" if outcome.is_drop and expiry else outcome.detail
    valid = Condition("Valid", "False", outcome.reason, detail)
    if succeeded_at is None:
        ready = Condition("Ready", "False", outcome.reason, "no revision was applied yet")
        return Judgement((ready, valid, _NO_CONFLICT), requeue_s=source.poll_interval_s)
    if left is None:
        ready = Condition("Ready", "False", "Expired", "the last revision is older than maxStaleness")
        return Judgement((ready, valid, _NO_CONFLICT), removes=True, requeue_s=source.poll_interval_s)
    kept = "; profiles are kept (keep-profile-while-stale)" if options.keep_profile_while_stale else ""
    ready = Condition("Ready", "False", "Stale", f"the last revision is in use {expiry}{kept}")
    return Judgement((ready, valid, _NO_CONFLICT), requeue_s=min(left, source.poll_interval_s or left))


def _left(source: TopologySource, succeeded_at: datetime | None, now: datetime) -> float | None:
    """Seconds that the last revision stays usable; None when it is not (the comparison is strict)."""
    if succeeded_at is None or source.max_staleness_s is None:
        return None
    left = source.max_staleness_s - (now - succeeded_at).total_seconds()
    return left if left > 0 else None


@dataclass(frozen=True, slots=True)
class Look:
    """What one pass saw and did.

    Attributes:
        revision: of the snapshot that was applied; empty when none was.
        selected: Nodes that the selector chooses; None on failure paths, where the last number stays.
    """

    revision: str = ""
    selected: int | None = None
    mutated: int = 0
    conflicted: int = 0


def status_of(
    source: JsonObject, judgement: Judgement, look: Look, *, generation: int, now: datetime
) -> dict[str, JsonValue]:
    """The whole status after a pass (3.3); counters that are zero are left out, and so is what never was.

    The time of the last success is renewed at every success, also for an unchanged revision, and outlives expiry.
    """
    stored = source.get("status")
    before: JsonObject = stored if isinstance(stored, dict) else {}
    status: dict[str, JsonValue] = {
        "observedGeneration": generation,
        "sourceKind": TopologySource.of(source).kind or "",
        "lastSuccessfulRevision": look.revision if judgement.succeeded else before.get("lastSuccessfulRevision"),
        "lastSuccessfulRefreshTime": to_rfc3339(now)
        if judgement.succeeded
        else before.get("lastSuccessfulRefreshTime"),
        "selectedNodes": before.get("selectedNodes") if look.selected is None else look.selected,
        "mutatedNodes": look.mutated,
        "conflictedNodes": look.conflicted,
    }
    kept = {name: value for name, value in status.items() if value not in (None, "", 0)}
    return {**kept, "conditions": merge_conditions(before, wanted=judgement.conditions, generation=generation, now=now)}

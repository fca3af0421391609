"""From what a pass came to, to the status of a Proposal: pure, written once at the end (engineering.md, section 28)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.api.proposal import MAX_REVIEWS, ProposalStatus
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import Condition, cut, listed, merge_conditions
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.core.redact import redact_text
from gitops_ctl.forge.carrier import Outcome
from gitops_ctl.forge.model import Remembered
from gitops_ctl.forge.neutral import MergeState, Review, latest_reviews
from gitops_ctl.forge.plan import DECLINED, DELETED, MODIFIED, OPEN, REVERTED

NEEDS_A_PERSON: Final = (DECLINED, DELETED, MODIFIED, REVERTED)
_FOREIGN: Final = 256


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass over one Proposal found.

    Attributes:
        outcome: None when it ended with `error`.
        by_hand: how a person makes the change; told where the controller cannot.
        place: of plain Git: what a person needs to open the change.
    """

    remembered: Remembered
    outcome: Outcome | None = None
    error: GitopsError | None = None
    by_hand: str = ""
    place: str = ""


def remembered_of(status: ProposalStatus) -> Remembered:
    """What earlier passes left in the status."""
    return Remembered(
        phase=status.phase or "",
        branch=status.branch,
        number=status.number,
        url=status.url,
        head=status.head_commit or "",
        base=status.base_commit or "",
        content=status.content_hash or "",
        pushing=status.pushing.commit if status.pushing else "",
        pushing_branch=status.pushing.branch if status.pushing else "",
        declined=status.declined,
        reopen_answered=status.last_handled_reopen_at or "",
    )


def durable(remembered: Remembered) -> dict[str, JsonValue]:
    """The members that are a memory; absent ones are left out."""
    members: dict[str, JsonValue] = {
        "phase": remembered.phase or "Pending",
        "branch": remembered.branch,
        "number": remembered.number,
        "url": cut(remembered.url, limit=2048),
        "headCommit": remembered.head,
        "baseCommit": remembered.base,
        "contentHash": remembered.content,
        "lastHandledReopenAt": remembered.reopen_answered,
        "declined": list(remembered.declined),
    }
    if remembered.pushing:
        members["pushing"] = {"branch": remembered.pushing_branch, "commit": remembered.pushing}
    return {name: value for name, value in members.items() if value}


def status_of(found: Found, *, previous: JsonObject, generation: int, now: datetime) -> JsonObject:
    """The whole status that should be stored."""
    status = durable(found.remembered)
    status["observedGeneration"] = generation
    wanted = conditions_of(found)
    status["conditions"] = merge_conditions(previous, wanted=wanted, generation=generation, now=now)
    if found.outcome is not None and found.outcome.reviews:
        status["reviews"] = list(_reviews(found.outcome.reviews, head=found.outcome.head))
    elif found.outcome is None and previous.get("reviews"):
        status["reviews"] = previous["reviews"]
    return status


def conditions_of(found: Found) -> tuple[Condition, ...]:
    """Every condition that holds after the pass."""
    return tuple(_conditions(found))


def _conditions(found: Found) -> Iterator[Condition]:
    if found.error is not None or found.outcome is None:
        assert found.error is not None
        yield from _failed(found.error, by_hand=found.by_hand)
        return
    decision = found.outcome.decision
    text = _text(found)
    if decision.reason in NEEDS_A_PERSON:
        yield Condition("Ready", "False", decision.reason, text)
        yield Condition("Stalled", "True", decision.reason, "a person has to act; see Ready")
    else:
        yield Condition("Ready", "True", decision.reason, text)
    if found.outcome.merge is not None:
        yield _mergeable(found.outcome.merge)


def _text(found: Found) -> str:
    assert found.outcome is not None
    decision, remembered = found.outcome.decision, found.remembered
    text = decision.message
    if decision.reason == OPEN:
        text = f"pull request {remembered.number} is open: {remembered.url}" if remembered.number else found.place
    return redact_text("; ".join(part for part in (text, found.outcome.warning) if part))


def _failed(error: GitopsError, *, by_hand: str) -> Iterator[Condition]:
    place = f"{error.subject}: " if error.subject else ""
    by_person = f"; by hand: {by_hand}" if by_hand else f" ({error.hint})" if error.hint else ""
    yield Condition("Ready", "False", error.reason, redact_text(f"{place}{error.message}{by_person}"))
    if isinstance(error, TransientError):
        yield Condition("Reconciling", "True", "ProgressingWithRetry", "it is tried again by itself")
    else:
        yield Condition("Stalled", "True", error.reason, "a person has to act; see Ready")


def _mergeable(merge: MergeState) -> Condition:
    if merge.blocked:
        return Condition("Mergeable", "False", "Blocked", redact_text(listed(merge.blocked)))
    if merge.mergeable is None:
        return Condition("Mergeable", "Unknown", "NotKnown", "the forge does not say")
    if merge.mergeable:
        return Condition("Mergeable", "True", "Free", "nothing at the forge stands against a merge")
    return Condition("Mergeable", "False", "Conflicts", "the forge sees a conflict with the base branch")


def _reviews(reviews: tuple[Review, ...], *, head: str) -> Iterator[JsonObject]:
    latest = latest_reviews(reviews)
    for review in reviews[-MAX_REVIEWS:]:
        counts = review in latest and review.commit == head and not review.stale and not review.dismissed
        yield {
            "user": cut(review.user.login, limit=_FOREIGN),
            "state": review.state,
            "commit": review.commit[:64],
            "at": to_rfc3339(review.at),
            "counts": counts,
        }

"""Reads back what a GitSource's status keeps: the only memory that survives a restart (gitops.md, section 4.5)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from gitops_ctl.api.gitops import GitSourceStatus
from gitops_ctl.core.clock import from_rfc3339, to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, list_at, text_at
from gitops_ctl.source.forge_reviews import Reading
from gitops_ctl.source.model import Acceptance, Facts, Observed
from gitops_ctl.source.plan import silence_at_start_s
from gitops_ctl.trust.firstseen import FirstSeen, SeenTip
from gitops_ctl.trust.reviews import Review, ReviewEvidence

REVIEWERS_KEPT: Final = 32
EVIDENCE_KEPT: Final = 100
"""Newest merges whose evidence is stored; for older ones the forge is asked again when they are judged again."""


def acceptance_of(status: GitSourceStatus) -> Acceptance | None:
    """The accepted revision, None when nothing was accepted yet."""
    accepted = status.accepted
    if accepted is None:
        return None
    return Acceptance(
        revision=accepted.revision,
        tag=accepted.tag or "",
        policy_digest=accepted.policy_digest,
        key_set_digest=accepted.key_set_digest,
        root=accepted.root,
        verifier_version=accepted.verifier_version,
        at=from_rfc3339(accepted.at),
        reviews=tuple(_tree(entry.model_dump(mode="json", by_alias=True)) for entry in accepted.review_evidence),
    )


def facts_of(status: GitSourceStatus, *, trusted: bool) -> Facts:
    """What a new process knows about a source."""
    return Facts(
        trusted=trusted,
        first_seen=first_seen_of(status),
        observed=observed_of(status),
        accepted=acceptance_of(status),
        requested_at=status.last_handled_reconcile_at or "",
    )


def silent_s_of(status: GitSourceStatus, *, interval_s: float, now: datetime) -> float:
    """Seconds without a successful poll that the status tells of; see `plan.silence_at_start_s`."""
    conditions = [(each.type, each.status, each.reason, each.last_transition_time) for each in status.conditions]
    return silence_at_start_s(conditions, interval_s=interval_s, now=now)


def observed_of(status: GitSourceStatus) -> Observed | None:
    """The tip of the last poll that was recorded."""
    return Observed(status.observed.revision, from_rfc3339(status.observed.at)) if status.observed else None


def first_seen_of(status: GitSourceStatus) -> FirstSeen:
    """The listed tips, oldest first."""
    return FirstSeen(tuple(SeenTip(entry.tip, from_rfc3339(entry.first_seen_at)) for entry in status.first_seen))


def evidence_of(stored: tuple[JsonObject, ...]) -> Mapping[str, ReviewEvidence]:
    """What counted when the merges were accepted, as evidence: it counts again without asking the forge."""
    return {text_at(entry, "merge"): _evidence(entry) for entry in stored}


def _evidence(entry: JsonObject) -> ReviewEvidence:
    head = text_at(entry, "head")
    reviews = tuple(_review(each, head=head) for each in list_at(entry, "reviewers") if isinstance(each, Mapping))
    return ReviewEvidence(text_at(entry, "merge"), head, reviews, number=int_at(entry, "number"))


def _review(entry: JsonObject, *, head: str) -> Review:
    login, _, number = text_at(entry, "account").partition("#")
    return Review(login, int(number or 0), head, True, from_rfc3339(text_at(entry, "at")))


def evidence_tree(reading: Reading, *, counted: Iterable[tuple[str, Review]]) -> JsonObject:
    """The entry of `accepted.reviewEvidence`.

    Args:
        reading: what the forge said.
        counted: (person, review) of what counted, the earliest first.
    """
    evidence = reading.evidence
    reviewers: list[JsonValue] = [
        {"person": person, "account": review.account, "at": to_rfc3339(review.at)} for person, review in counted
    ]
    return {
        "merge": evidence.merge,
        "head": evidence.head,
        "forge": reading.forge,
        "number": evidence.number,
        "readAt": to_rfc3339(reading.read_at),
        "reviewers": reviewers[:REVIEWERS_KEPT],
    }


def _tree(value: JsonObject) -> JsonObject:
    return value

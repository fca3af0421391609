"""Reads back what a GitSource's status keeps: the only memory that survives a restart (gitops.md, section 4.5)."""

from gitops_ctl.api.gitops import GitSourceStatus
from gitops_ctl.core.clock import from_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.source.model import Acceptance, Observed
from gitops_ctl.trust.firstseen import FirstSeen, SeenTip


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


def observed_of(status: GitSourceStatus) -> Observed | None:
    """The tip of the last poll that was recorded."""
    return Observed(status.observed.revision, from_rfc3339(status.observed.at)) if status.observed else None


def first_seen_of(status: GitSourceStatus) -> FirstSeen:
    """The listed tips, oldest first."""
    return FirstSeen(tuple(SeenTip(entry.tip, from_rfc3339(entry.first_seen_at)) for entry in status.first_seen))


def _tree(value: JsonObject) -> JsonObject:
    return value

"""A fence that is up stays up: only a new campaign or a cancellation ends it (rollouts.md, section 7.5).

What was fenced cannot come back: admissions were revoked for good.  So a policy or a source that is put back as it was lets nothing begin again,
also after a start of the manager; the condition in the status is what remembers.
"""

from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at

POLICY_CHANGED: Final = "PolicyChanged"
SOURCE_CHANGED: Final = "SourceChanged"
NOT_FENCED: Final = "; not fenced to the end: "
"""Between what a campaign says and which target cannot be fenced yet."""
_REASONS: Final = {POLICY_CHANGED: "PolicyChanged", SOURCE_CHANGED: "SourceIdentityChanged"}


@dataclass(frozen=True, slots=True)
class FenceUp:
    """A fence around a whole campaign.

    Attributes:
        kind: type of its condition.
        reason: of the condition Ready.
    """

    kind: str
    reason: str
    message: str


def standing_fence(rollout: JsonObject) -> FenceUp | None:
    """The fence that the status of a campaign remembers; None without one."""
    status = object_at(rollout, "status")
    for kind, usual in _REASONS.items():
        condition = condition_of(status, kind)
        if condition is not None and text_at(condition, "status") == "True":
            ready = text_at(condition_of(status, "Ready") or {}, "reason")
            reason = ready if ready in _READY[kind] else usual
            return FenceUp(kind, reason, text_at(condition, "message").partition(NOT_FENCED)[0])
    return None


_READY: Final = {
    POLICY_CHANGED: frozenset({"PolicyChanged", "PolicyUnavailable"}),
    SOURCE_CHANGED: frozenset({"SourceIdentityChanged"}),
}
"""Reasons that go with the condition."""

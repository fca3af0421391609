"""Whether a frozen plan is approved (rollouts.md, sections 2.6 and 11.1).

An approval binds the exact plan hash, and only a commit of somebody with the verb `approve` gives one.  What was taken up is recorded and
stands from then on, also when the trust root changes; a revocation of that person or commit ends it.
"""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, object_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.rollout.authority import NOT_FROM_GIT, Block
from gitops_ctl.trust.provenance import Introduced

EXACT: Final = "ExactPlanApproved"
REQUIRED: Final = "ApprovalRequired"
HASH_MISMATCH: Final = "ApprovalHashMismatch"
REVOKED: Final = "ApproverRevoked"


class ApprovalState(enum.Enum):
    """Where a campaign stands with its approval."""

    REQUIRED = enum.auto()
    """None is there, or what is there has no effect."""
    APPROVED = enum.auto()
    MISMATCH = enum.auto()
    """It comes from Git and names another plan: the campaign fails."""
    UNKNOWN = enum.auto()
    """Nobody can tell yet: nothing is written."""


@dataclass(frozen=True, slots=True)
class ApprovalJudgement:
    """How an approval was judged.

    Attributes:
        reason: for the status and the condition.
        message: for people.
        person, commit: of an approval that counts.
        is_new: the status does not say so yet.
    """

    state: ApprovalState
    reason: str
    message: str
    plan_hash: str = ""
    person: str = ""
    commit: str = ""
    is_new: bool = False

    def to_json(self, *, now: datetime) -> JsonObject | None:
        """`status.approval`; None where there is no block to judge."""
        if not self.plan_hash:
            return None
        tree: dict[str, JsonValue] = {
            "planHash": self.plan_hash,
            "valid": self.state is ApprovalState.APPROVED,
            "reason": self.reason,
            "validatedAt": to_rfc3339(now),
        }
        return tree | {name: value for name, value in (("person", self.person), ("commit", self.commit)) if value}


def judge_approval(rollout: JsonObject, block: Block) -> ApprovalJudgement:
    """The judgement about `spec.approval` of a rollout whose plan is frozen.

    Args:
        block: what Git has at `/spec/approval`.
    """
    frozen = text_at(rollout, "status", "frozenPlan", "hash")
    live, recorded = object_at(rollout, "spec", "approval"), object_at(rollout, "status", "approval")
    if _stands(recorded, frozen):
        return _standing(recorded, block)
    if not live:
        return ApprovalJudgement(ApprovalState.REQUIRED, REQUIRED, f"waiting for approval of {frozen}")
    if not block.known:
        return ApprovalJudgement(ApprovalState.UNKNOWN, REQUIRED, "the accepted revision was not looked at yet")
    said = text_at(live, "planHash")
    by = block.proves(live, verb="approve", members=("planHash",))
    if by is None:
        why = block.why or "the accepted revision does not hold it"
        message = f"the approval in the cluster has no effect: {why}"
        return _judged(ApprovalState.REQUIRED, NOT_FROM_GIT, message, said=said, recorded=recorded)
    if said != frozen:
        message = f"{by.person} approved {said}, the plan is {frozen}"
        return _judged(ApprovalState.MISMATCH, HASH_MISMATCH, message, said=said, recorded=recorded, by=by)
    message = f"{by.person} approved the exact plan in commit {by.commit[:12]}"
    return _judged(ApprovalState.APPROVED, EXACT, message, said=said, recorded=recorded, by=by)


def _stands(recorded: JsonObject, frozen: str) -> bool:
    return bool_at(recorded, "valid") and text_at(recorded, "planHash") == frozen


def _standing(recorded: JsonObject, block: Block) -> ApprovalJudgement:
    person, commit = text_at(recorded, "person"), text_at(recorded, "commit")
    said = text_at(recorded, "planHash")
    if block.known and block.revoked:
        message = f"{person or 'the approver'} or commit {commit[:12]} was revoked: approve in a new rollout"
        return ApprovalJudgement(ApprovalState.REQUIRED, REVOKED, message, said, is_new=True)
    return ApprovalJudgement(ApprovalState.APPROVED, EXACT, f"{person} approved the exact plan", said, person, commit)


def _judged(
    state: ApprovalState, reason: str, message: str, *, said: str, recorded: JsonObject, by: Introduced | None = None
) -> ApprovalJudgement:
    same = (text_at(recorded, "planHash"), text_at(recorded, "reason")) == (said, reason)
    person, commit = ("", "") if by is None else (by.person, by.commit)
    return ApprovalJudgement(state, reason, message, said, person, commit, is_new=not same)

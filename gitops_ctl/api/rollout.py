"""The kind IOSXESoftwareRollout: one campaign of software for IOS-XE devices (rollouts.md, section 3).

The spec comes from signed commits, the status from the manager.  Rules that compare blocks with the status stand at the root,
because there the API server sees both.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api.fields import Digest, Keyed, ObjectMeta, Timestamp
from gitops_ctl.api.kind import AGE, Column, CustomKind
from gitops_ctl.api.model import Transition, kept, parse, rule
from gitops_ctl.api.names import OPS_GROUP
from gitops_ctl.api.rollout_plan import Plan
from gitops_ctl.api.rollout_status import RolloutStatus
from gitops_ctl.api.rolloutfields import Outcome, Part, Revision, Stage, Uid, User, in_order
from gitops_ctl.core.jsonvalue import JsonObject

ReasonText = Annotated[str, Field(min_length=1, max_length=256)]

FILLED_IN: Final = (
    "plan.requestedBy",
    "plan.requestedAt",
    "approval.approvedBy",
    "approval.approvedAt",
    "activationApproval.approvedBy",
    "activationApproval.approvedAt",
    "preparationInvalidation.requestedBy",
    "preparationInvalidation.requestedAt",
)
"""Required members that Git may leave out."""


class Approval(Part):
    """Permission to run exactly the published plan."""

    plan_hash: Digest
    """Equal to status.frozenPlan.hash."""
    approved_by: User
    approved_at: Timestamp


class ReceiptRef(Part):
    """One prepared device."""

    device_uid: Uid
    upgrade_uid: Uid
    """UID of the leaf that prepared it."""
    receipt_hash: Digest


_Receipts = Annotated[tuple[ReceiptRef, ...], Field(min_length=1, max_length=100), Keyed("deviceUID", "device_uid")]


class ActivationApproval(Part):
    """Permission to activate what was prepared, within a window."""

    plan_hash: Digest
    receipts: _Receipts
    """One for every target."""
    not_before: Timestamp
    not_after: Timestamp
    approved_by: User
    approved_at: Timestamp

    @rule("timestamp(self.notBefore) < timestamp(self.notAfter)", message="notBefore must be earlier than notAfter")
    def _is_in_order(self) -> bool:
        return in_order(self.not_before, self.not_after, strictly=True)


class PreparationInvalidation(Part):
    """Gives up prepared devices of a cancelled campaign; nothing is deleted on a device."""

    plan_hash: Digest
    requested_by: User
    requested_at: Timestamp
    reason: ReasonText
    receipts: _Receipts


class ClaimRef(Part):
    """One claim of the leaf, as its status has it."""

    stage: Stage
    claimed_at: Timestamp


class Recovery(Part):
    """Statement of two persons about a device whose outcome cannot be seen any more."""

    leaf_uid: Uid
    """A leaf of status.targets."""
    claims: Annotated[tuple[ClaimRef, ...], Field(max_length=6), Keyed("stage")]
    """Exactly the claims of that leaf; an empty list when it has none."""
    outcome: Outcome
    """`DeviceRetired`: it does not come back as this object; `OutcomeVerifiedByHand`: a person looked, nothing goes on."""
    reason: ReasonText


class Control(Part):
    """Pause, resume and cancel.  Each change has a larger revision; revision 0 asks for nothing."""

    revision: Revision
    pause: bool | None = None
    cancel: bool | None = None
    """There is no way back."""
    requested_by: User | None = None
    """Filled in from the commit."""
    requested_at: Timestamp | None = None
    """Filled in from the commit."""
    reason: Annotated[str, Field(max_length=256)] | None = None

    @rule(
        "self.revision > 0 || (!(has(self.pause) && self.pause) && !(has(self.cancel) && self.cancel)"
        " && !has(self.requestedBy) && !has(self.requestedAt) && !has(self.reason))",
        message="revision 0 asks for nothing: no pause, cancel, requester, time or reason",
    )
    def _is_neutral_at_first(self) -> bool:
        asked = self.pause or self.cancel
        said = (self.requested_by, self.requested_at, self.reason) != (None, None, None)
        return self.revision > 0 or not (asked or said)

    @rule(
        "self.revision == 0 || (has(self.requestedBy) && has(self.requestedAt))",
        message="a revision above 0 needs requestedBy and requestedAt",
    )
    def _names_who_asks(self) -> bool:
        return self.revision == 0 or (self.requested_by is not None and self.requested_at is not None)


_CONTROL: Final = (
    Transition(
        "!has(oldSelf.control) || oldSelf.control.revision == 0 || "
        "(has(self.control) && self.control.revision >= oldSelf.control.revision)",
        "control.revision must not fall, and control must not go away",
    ),
    Transition(
        "!has(oldSelf.control) || !has(self.control) || self.control == oldSelf.control || "
        "self.control.revision > oldSelf.control.revision",
        "a change of control needs a larger revision than the live one",
    ),
    Transition(
        "!has(oldSelf.control) || !has(oldSelf.control.cancel) || !oldSelf.control.cancel || "
        "(has(self.control) && has(self.control.cancel) && self.control.cancel)",
        "a cancelled campaign stays cancelled",
    ),
)


class RolloutSpec(Part):
    """The campaign, and what people decide about it."""

    plan: Plan
    approval: Approval | None = None
    activation_approval: ActivationApproval | None = None
    preparation_invalidation: PreparationInvalidation | None = None
    recovery: Recovery | None = None
    control: Control | None = None
    """Left out: nothing is asked for."""

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition("self.plan == oldSelf.plan", "plan must not change: another campaign is another rollout"),
        kept("approval", message="approval must neither change nor go away"),
        kept("activationApproval", message="activationApproval must neither change nor go away"),
        kept("preparationInvalidation", message="preparationInvalidation must neither change nor go away"),
        *_CONTROL,
    )

    @rule(
        "!has(self.activationApproval) || (has(self.plan.strategy) && self.plan.strategy == 'PrepareOnly')",
        message="activationApproval is for plans with strategy: PrepareOnly",
    )
    def _activates_what_was_prepared(self) -> bool:
        return self.activation_approval is None or self.plan.strategy == "PrepareOnly"

    @rule(
        "!has(self.preparationInvalidation) || (has(self.plan.strategy) && self.plan.strategy == 'PrepareOnly'"
        " && has(self.control) && has(self.control.cancel) && self.control.cancel)",
        message="preparationInvalidation is for cancelled plans with strategy: PrepareOnly",
    )
    def _gives_up_what_was_prepared(self) -> bool:
        if self.preparation_invalidation is None:
            return True
        return self.plan.strategy == "PrepareOnly" and self.control is not None and bool(self.control.cancel)


_IS_PUBLISHED: Final = "has(self.status) && has(self.status.frozenPlan) && self.status.frozenPlan.hash == "
_SAME_RECOVERY: Final = (
    "has(self.spec.recovery) && has(oldSelf.spec.recovery) && self.spec.recovery == oldSelf.spec.recovery"
)
_STARTED_RECOVERY: Final = (
    "oldSelf.status.recoveries.exists(entry, entry.leafUID == oldSelf.spec.recovery.leafUID && "
    "(entry.state == 'Accepted' || (entry.state == 'Settled' && "
    "!(has(self.spec.recovery) && self.spec.recovery.leafUID != oldSelf.spec.recovery.leafUID))))"
)

_RECOVERY: Final = (
    Transition(
        f"!has(self.spec.recovery) || ({_SAME_RECOVERY}) || (has(self.status) && has(self.status.targets) && "
        "self.status.targets.exists(target, has(target.leafUID) && target.leafUID == self.spec.recovery.leafUID))",
        "recovery.leafUID must be the UID of a leaf in status.targets",
    ),
    Transition(
        f"!has(oldSelf.spec.recovery) || ({_SAME_RECOVERY}) || !has(oldSelf.status) || "
        f"!has(oldSelf.status.recoveries) || !{_STARTED_RECOVERY}",
        "an accepted recovery must neither change nor go away; once it is settled, only one for another leaf may replace it",
    ),
    Transition(
        f"!has(self.spec.recovery) || ({_SAME_RECOVERY}) || !has(self.status) || !has(self.status.recoveries) || "
        "!self.status.recoveries.exists(entry, entry.leafUID == self.spec.recovery.leafUID && entry.state != 'Held')",
        "there is an accepted or settled recovery for this leaf already",
    ),
)


class RolloutDocument(Part):
    """A campaign as Git has it: without the status that its blocks answer to."""

    api_version: Literal["ops.cisco.vk/v1alpha1"]
    kind: Literal["IOSXESoftwareRollout"]
    metadata: ObjectMeta
    spec: RolloutSpec


class IOSXESoftwareRollout(RolloutDocument):
    """A campaign that puts one software version on up to 100 IOS-XE devices."""

    status: RolloutStatus = RolloutStatus()

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition("!has(oldSelf.status) || has(self.status)", "the status must not be taken away"),
        *_RECOVERY,
    )
    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="IOSXESoftwareRollout",
        plural="iosxesoftwarerollouts",
        group=OPS_GROUP,
        short_names=("xerollout",),
        columns=(
            Column("Target", ".spec.plan.targetVersion"),
            Column("Phase", ".status.phase"),
            Column("Planned", ".status.counts.planned", "integer"),
            Column("Succeeded", ".status.counts.succeeded", "integer"),
            Column("Failed", ".status.counts.failed", "integer"),
            AGE,
        ),
        filled_in=FILLED_IN,
    )

    @rule(
        f"!has(self.spec.approval) || ({_IS_PUBLISHED}self.spec.approval.planHash)",
        message="approval.planHash must be the hash of the published plan, status.frozenPlan.hash",
    )
    def _approves_what_is_published(self) -> bool:
        return self.spec.approval is None or self._is_published(self.spec.approval.plan_hash)

    @rule(
        "!has(self.spec.preparationInvalidation) || "
        f"({_IS_PUBLISHED}self.spec.preparationInvalidation.planHash"
        " && has(self.status.phase) && self.status.phase == 'Cancelled')",
        message="preparationInvalidation needs the hash of the published plan and the phase Cancelled",
    )
    def _gives_up_what_is_cancelled(self) -> bool:
        block = self.spec.preparation_invalidation
        return block is None or (self._is_published(block.plan_hash) and self.status.phase == "Cancelled")

    @rule(
        "!has(self.spec.recovery) || (has(self.status) && has(self.status.targets) && size(self.status.targets) > 0)",
        message="recovery needs a campaign that has targets",
    )
    def _recovers_what_was_planned(self) -> bool:
        return self.spec.recovery is None or bool(self.status.targets)

    def _is_published(self, plan_hash: str) -> bool:
        return self.status.frozen_plan is not None and self.status.frozen_plan.hash == plan_hash


def parse_rollout(tree: JsonObject) -> IOSXESoftwareRollout:
    """The rollout that `tree` holds, as the API server stores it.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(IOSXESoftwareRollout, tree)

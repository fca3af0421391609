"""`status` of a software rollout: the frozen plan and where the campaign stands (rollouts.md, sections 3.4 and 9.3)."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import ATOMIC, ConditionEntry, Digest, DnsLabel, DnsName, Generation, Keyed, Timestamp
from gitops_ctl.api.model import Transition, kept, rule
from gitops_ctl.api.rolloutfields import (
    PLAN_LIMIT,
    ByteRate,
    Domains,
    Epoch,
    Limit,
    Message,
    NameText,
    NodeName,
    Outcome,
    Part,
    PhysicalIdentity,
    QualifiedKey,
    Reason,
    ResourceVersion,
    Revision,
    Sha256,
    Uid,
    User,
)

RolloutPhase = Literal[
    "AwaitingApproval", "Paused", "Executing", "Soaking", "Cancelling", "Succeeded", "Failed", "Cancelled"
]
TargetPhase = Literal[
    "Planned",
    "WaitingForAdmission",
    "Admitted",
    "Running",
    "Soaking",
    "Succeeded",
    "Failed",
    "Blocked",
    "Cancelling",
    "Cancelled",
]
RecoveryState = Literal["Held", "Accepted", "Settled"]
LabelText = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.NONEMPTY_LABEL_VALUE)]
Count100 = Annotated[int, Field(ge=0, le=100)]


class PolicySnapshot(Part):
    """The fleet policy as it was read, with its ceilings."""

    name: NameText
    namespace: Annotated[str, Field(min_length=1, max_length=63)]
    uid: Uid
    resource_version: ResourceVersion
    semantic_hash: Digest
    structural_hash: Digest
    max_targets: Limit
    max_concurrent_transfers: Limit
    max_unavailable: Limit
    domains: Domains = ()
    health_freshness_seconds: Annotated[int, Field(ge=30, le=86400)]
    ledger_namespace: DnsLabel
    ledger_name: DnsName
    ledger_uid: Uid
    max_active_reservations: Annotated[int, Field(ge=1, le=256)]
    max_ledger_size_bytes: Annotated[int, Field(ge=4096, le=PLAN_LIMIT)]


class SourceSnapshot(Part):
    """The place that was chosen for a target."""

    name: DnsLabel
    priority: Annotated[int, Field(ge=0, le=10000)]
    url: Annotated[str, Field(min_length=1, max_length=2048, pattern=patterns.IMAGE_URL)]
    sha256: Sha256
    secret_name: NameText | None = None
    secret_uid: Uid | None = None

    @rule(
        "has(self.secretName) == self.url.startsWith('sftp://')"
        " && has(self.secretUID) == self.url.startsWith('sftp://')",
        message="an sftp source is frozen with name and UID of its Secret, an https source without",
    )
    def _binds_the_secret(self) -> bool:
        sftp = self.url.startswith("sftp://")
        return (self.secret_name is not None) == sftp and (self.secret_uid is not None) == sftp


class TopologyValue(Part):
    """One required label of a target."""

    key: QualifiedKey
    value: LabelText


class PlannedTarget(Part):
    """One device as it was when the plan was frozen."""

    device_name: NameText
    device_uid: Uid
    device_generation: Epoch
    physical_identity: PhysicalIdentity
    node_name: NodeName
    node_uid: Uid
    driver: Literal["XE"]
    image_family: Annotated[str, Field(min_length=1, max_length=63)]
    source: SourceSnapshot
    qualification_cohort: LabelText
    worker_protocol_version: Annotated[str, Field(min_length=1, max_length=32)]
    projection_hash: Digest
    topology: Annotated[tuple[TopologyValue, ...], Field(min_length=1, max_length=16), Keyed("key")]
    risk_groups: Annotated[tuple[DnsLabel, ...], Field(max_length=16)] = ()
    max_transfer_bytes_per_second: ByteRate | None = None
    canary_cohort: Annotated[str, Field(max_length=63)] | None = None
    wave: Annotated[int, Field(ge=0, le=100)]
    """0 for canaries, 1 for all others."""
    child_name: NameText


class FrozenPlan(Part):
    """What is approved by its hash."""

    hash: Digest
    encoded_size_bytes: Annotated[int, Field(ge=1, le=PLAN_LIMIT)]
    created_at: Timestamp
    campaign_generation: Epoch
    policy: PolicySnapshot
    risk_group_membership_hash: Digest | None = None
    targets: Annotated[tuple[PlannedTarget, ...], Field(min_length=1, max_length=100), Keyed("deviceUID", "device_uid")]


class EffectivePolicy(Part):
    """The ceilings that are in force."""

    epoch: Epoch
    policy: PolicySnapshot
    updated_at: Timestamp


class PolicyTransition(Part):
    """The ceilings that come into force once nothing of the old epoch may begin any more; until then nothing is admitted."""

    epoch: Annotated[int, Field(ge=2, le=2**53)]
    policy: PolicySnapshot
    started_at: Timestamp


class ApprovalStatus(Part):
    """How the approval was judged."""

    plan_hash: Digest
    valid: bool
    reason: Reason
    validated_at: Timestamp
    person: Annotated[str, Field(max_length=253)] = ""
    """Who approved, by provenance."""
    commit: Annotated[str, Field(max_length=64)] = ""
    """Commit that introduced the approval."""


class ActivationStatus(ApprovalStatus):
    """How the approval of the activation was judged; what was taken up stands until its person or commit is revoked."""

    authorization_hash: Digest | None = None
    """Of what was approved: receipts, window and approver."""


class ControlStatus(Part):
    """What was asked for, and what is in force on every leaf."""

    requested_revision: Revision
    effective_revision: Revision
    pause_pending: bool | None = None
    paused: bool | None = None
    cancellation_pending: bool | None = None
    cancelled: bool | None = None


class Counts(Part):
    """Targets by phase; a zero is left out."""

    total: Count100 | None = None
    planned: Count100 | None = None
    admitted: Count100 | None = None
    in_progress: Count100 | None = None
    succeeded: Count100 | None = None
    failed: Count100 | None = None
    blocked: Count100 | None = None
    cancelled: Count100 | None = None


class TargetStatus(Part):
    """One target, in the order of the frozen plan."""

    device_name: NameText
    device_uid: Uid
    leaf_name: Annotated[str, Field(max_length=253)] = ""
    leaf_uid: Annotated[str, Field(max_length=128)] = ""
    phase: TargetPhase
    reason: Reason = ""
    message: Message = ""
    last_transition_time: Timestamp


class RecoveryStatus(Part):
    """One recovery by two persons and how far it was carried out."""

    leaf_uid: Uid
    device_uid: Uid | None = None
    """Absent for a leaf that is none of the campaign."""
    outcome: Outcome
    state: RecoveryState
    reason: Reason = ""
    persons: Annotated[tuple[User, ...], Field(max_length=8)] = ()
    commit: Annotated[str, Field(max_length=64)] = ""
    recorded_at: Timestamp
    settled_at: Timestamp | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            "oldSelf.state == 'Held' || self.state == 'Settled' || (oldSelf.state == 'Accepted' && self.state == 'Accepted')",
            "a recovery goes from Held to Accepted to Settled, and never back",
        ),
        Transition(
            "oldSelf.state == 'Held' || (self.outcome == oldSelf.outcome && self.deviceUID == oldSelf.deviceUID)",
            "the outcome of an accepted recovery must not change",
        ),
    )


class RolloutCondition(ConditionEntry):
    """One condition of a campaign."""

    message: Message = ""


_RECOVERIES_STAY: Final = Transition(
    "!has(oldSelf.recoveries) || oldSelf.recoveries.all(old, old.state == 'Held' || (has(self.recoveries) && "
    "self.recoveries.exists(new, new.leafUID == old.leafUID)))",
    "an accepted recovery must not go away",
)
_EPOCH_GROWS: Final = Transition(
    "!has(oldSelf.effectivePolicy) || (has(self.effectivePolicy) && "
    "self.effectivePolicy.epoch >= oldSelf.effectivePolicy.epoch)",
    "the policy epoch must neither fall nor go away",
)


class RolloutStatus(Part):
    """Where the campaign stands; written by the manager alone."""

    observed_generation: Generation = 0
    phase: RolloutPhase | None = None
    frozen_plan: Annotated[FrozenPlan, ATOMIC] | None = None
    intent_hash: Digest | None = None
    """Of what people asked for, without what the cluster added; equal plans have equal ones."""
    effective_policy: EffectivePolicy | None = None
    policy_transition: PolicyTransition | None = None
    approval: ApprovalStatus | None = None
    activation: ActivationStatus | None = None
    control: ControlStatus | None = None
    counts: Counts | None = None
    targets: Annotated[tuple[TargetStatus, ...], Field(max_length=100), Keyed("deviceUID", "device_uid")] = ()
    recoveries: Annotated[tuple[RecoveryStatus, ...], Field(max_length=100), Keyed("leafUID", "leaf_uid")] = ()
    conditions: Annotated[tuple[RolloutCondition, ...], Field(max_length=16), Keyed("type")] = ()
    message: Message = ""

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        kept("frozenPlan", message="a published plan must neither change nor go away"),
        kept("intentHash"),
        _EPOCH_GROWS,
        _RECOVERIES_STAY,
    )

    @rule(
        "!has(self.policyTransition) || (has(self.effectivePolicy) && "
        "self.policyTransition.epoch == self.effectivePolicy.epoch + 1)",
        message="policyTransition must be to the epoch after the one in force",
    )
    def _goes_to_the_next_epoch(self) -> bool:
        if self.policy_transition is None:
            return True
        return self.effective_policy is not None and self.policy_transition.epoch == self.effective_policy.epoch + 1

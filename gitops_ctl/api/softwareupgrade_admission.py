"""What the manager and the worker tell each other about a leaf (rollouts.md, section 4.4).

A claim and a revocation are writes of one object: whoever is first wins.  The rules here keep every record one-way, so that no
writer, old or restored, can take an authority back that was used.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api.fields import Digest, Keyed, Timestamp
from gitops_ctl.api.model import Transition, kept, never_lower, rule
from gitops_ctl.api.rolloutfields import (
    Epoch,
    Hex32,
    MutationClaim,
    Outcome,
    Part,
    PhysicalIdentity,
    Protocol,
    Reason,
    ReservationId,
    ResourceVersion,
    Revision,
    ShortMessage,
    Stage,
    Uid,
    User,
)

AdmissionState = Literal["Pending", "Granted", "Revoked", "Settled"]
RevocationReason = Literal[
    "PolicyEpochTransition",
    "AdministratorPolicyChanged",
    "SourceIdentityChanged",
    "CampaignCancelled",
    "TargetIdentityChanged",
    "CampaignTargetFailed",
    "RecoveryAttested",
]

_EVIDENCE: Final = (
    "networkEvidenceHash",
    "networkEvidenceProducerRevision",
    "networkEvidenceWorkerPodUID",
    "networkEvidenceSampleSequence",
    "networkEvidenceNotAfter",
)
_IDENTITY: Final = (
    "protocolVersion",
    "campaignUID",
    "planHash",
    "policyUID",
    "ledgerUID",
    "reservationID",
    "leafUID",
    "deviceUID",
    "physicalIdentity",
    "nodeUID",
)
_REARMED: Final = (
    "(oldSelf.state == 'Revoked' && has(oldSelf.revocationReason) && oldSelf.revocationReason == "
    "'PolicyEpochTransition' && self.state == 'Pending' && self.policyEpoch > oldSelf.policyEpoch)"
)
_GRANTED_NEEDS: Final = (*_IDENTITY, "policyResourceVersion", "topologyLockID", "controlRevision")


def _moves_with_the_epoch(member: str) -> Transition:
    return Transition(
        f"!has(oldSelf.{member}) || (has(self.{member}) && self.{member} == oldSelf.{member}) || "
        f"(has(self.{member}) && {_REARMED})",
        f"{member} changes only when a leaf is re-armed for a new policy epoch",
    )


_STATES: Final = Transition(
    f"self.state == oldSelf.state || {_REARMED} || "
    "(oldSelf.state == 'Pending' && self.state in ['Granted', 'Revoked']) || "
    "(oldSelf.state == 'Granted' && self.state in ['Revoked', 'Settled']) || "
    "(oldSelf.state == 'Revoked' && self.state == 'Settled')",
    "an admission goes from Pending to Granted or Revoked to Settled; "
    "Revoked becomes Pending again only for a new policy epoch",
)
_EVIDENCE_UNCHANGED: Final = " && ".join(f"self.{name} == oldSelf.{name}" for name in _EVIDENCE)
_RENEWAL: Final = Transition(
    f"!has(oldSelf.networkEvidenceHash) || (!has(self.networkEvidenceHash) && {_REARMED}) || "
    f"(has(self.networkEvidenceHash) && (({_EVIDENCE_UNCHANGED}) || "
    "(oldSelf.state == 'Granted' && self.state == 'Granted' && "
    "timestamp(self.networkEvidenceNotAfter) > timestamp(oldSelf.networkEvidenceNotAfter))))",
    "network evidence is replaced only while Granted and only by evidence that holds longer; "
    "it goes away only when a leaf is re-armed",
)


class ManagerAdmission(Part):
    """Whether the worker may change the device, and for which campaign, device and policy."""

    state: AdmissionState
    protocol_version: Protocol | None = None
    campaign_uid: Uid | None = None
    plan_hash: Digest | None = None
    policy_uid: Uid | None = None
    policy_resource_version: ResourceVersion | None = None
    policy_epoch: Epoch
    ledger_uid: Uid | None = None
    reservation_id: ReservationId | None = None
    topology_lock_id: Hex32 | None = None
    leaf_uid: Uid | None = None
    device_uid: Uid | None = None
    device_generation: Epoch
    physical_identity: PhysicalIdentity | None = None
    node_uid: Uid | None = None
    control_revision: Revision | None = None
    revocation_reason: RevocationReason | None = None
    network_evidence_hash: Digest | None = None
    network_evidence_producer_revision: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    network_evidence_worker_pod_uid: Uid | None = None
    network_evidence_sample_sequence: Epoch | None = None
    network_evidence_not_after: Timestamp | None = None
    updated_at: Timestamp

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        _STATES,
        *(kept(member) for member in _IDENTITY),
        _moves_with_the_epoch("policyResourceVersion"),
        _moves_with_the_epoch("topologyLockID"),
        never_lower("policyEpoch"),
        never_lower("controlRevision"),
        _RENEWAL,
    )

    @rule(
        "self.state != 'Granted' || (" + " && ".join(f"has(self.{name})" for name in _GRANTED_NEEDS) + ")",
        message="a Granted admission needs its protocol, all identities, the policy version, lock and control revision",
    )
    def _grants_with_a_name(self) -> bool:
        needed = (
            self.protocol_version,
            self.campaign_uid,
            self.plan_hash,
            self.policy_uid,
            self.policy_resource_version,
            self.ledger_uid,
            self.reservation_id,
            self.topology_lock_id,
            self.leaf_uid,
            self.device_uid,
            self.physical_identity,
            self.node_uid,
            self.control_revision,
        )
        return self.state != "Granted" or None not in needed

    @rule("self.state != 'Pending' || has(self.topologyLockID)", message="a Pending admission needs topologyLockID")
    def _waits_with_a_lock(self) -> bool:
        return self.state != "Pending" or self.topology_lock_id is not None

    @rule(
        "(self.state == 'Revoked') == has(self.revocationReason)",
        message="revocationReason is needed with the state Revoked, and with no other",
    )
    def _says_why_it_is_revoked(self) -> bool:
        return (self.state == "Revoked") == (self.revocation_reason is not None)

    @rule(
        " && ".join(f"has(self.{name}) == has(self.networkEvidenceHash)" for name in _EVIDENCE[1:]),
        message="the five members of the network evidence come together or not at all",
    )
    def _has_whole_evidence(self) -> bool:
        found = (
            self.network_evidence_hash,
            self.network_evidence_producer_revision,
            self.network_evidence_worker_pod_uid,
            self.network_evidence_sample_sequence,
            self.network_evidence_not_after,
        )
        return found.count(None) in (0, len(found))

    @rule(
        "self.state != 'Pending' || !has(self.networkEvidenceHash)",
        message="a Pending admission must not carry network evidence",
    )
    def _waits_without_evidence(self) -> bool:
        return self.state != "Pending" or self.network_evidence_hash is None


class ManagerControl(Part):
    """Pause and cancel, as far as this leaf is concerned."""

    revision: Revision
    pause: bool | None = None
    cancel: bool | None = None
    updated_at: Timestamp
    reason: Reason | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        never_lower("revision"),
        Transition(
            "self == oldSelf || self.revision > oldSelf.revision", "a change of the control needs a larger revision"
        ),
        Transition(
            "!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",
            "a cancelled leaf stays cancelled",
        ),
    )


class WorkerControl(Part):
    """What the worker has seen, and what it will do."""

    observed_admission_state: AdmissionState
    observed_policy_epoch: Epoch
    observed_control_revision: Revision
    observed_worker_config_revision: Digest
    effective_state: Literal["Denied", "Ready", "Paused", "Cancelled", "Claimed", "Settled"]
    updated_at: Timestamp
    message: ShortMessage = ""


class Claim(MutationClaim):
    """A claim of this leaf; nothing of it ever changes."""

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            "self.reservationID == oldSelf.reservationID && self.policyEpoch == oldSelf.policyEpoch && "
            "self.controlRevision == oldSelf.controlRevision && self.claimedAt == oldSelf.claimedAt",
            "a claim must not change",
        ),
    )


class RecoveredClaim(Part):
    """A claim that two persons gave back."""

    stage: Stage
    claimed_at: Timestamp


class ManagerRecovery(Part):
    """What two persons attested; written once."""

    outcome: Outcome
    claims: Annotated[tuple[RecoveredClaim, ...], Field(max_length=6), Keyed("stage")]
    persons: Annotated[tuple[User, ...], Field(min_length=2, max_length=8)]
    commit: Annotated[str, Field(min_length=1, max_length=64)]
    recorded_at: Timestamp


class InstallCommit(Part):
    """The at-most-once marker of the install commit."""

    state: Literal["Requested", "Committed"]
    requested_at: Timestamp | None = None
    """Absent when the device committed without our request."""
    observed_at: Timestamp | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        kept("requestedAt"),
        Transition("oldSelf.state == 'Requested' || self.state == 'Committed'", "a commit stays committed"),
        Transition(
            "oldSelf.state != 'Requested' || has(self.requestedAt)",
            "what was requested must not be taken back",
        ),
    )

    @rule(
        "self.state != 'Requested' || has(self.requestedAt)",
        message="a requested commit needs requestedAt",
    )
    def _says_when_it_was_requested(self) -> bool:
        return self.state != "Requested" or self.requested_at is not None

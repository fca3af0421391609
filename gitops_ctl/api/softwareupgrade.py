"""The kind IOSXESoftwareUpgrade: the leaf of a campaign, one device and one operation (rollouts.md, section 4).

Two processes write its status, each its own members: the manager `MANAGER_MEMBERS`, the network worker everything else.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api.fields import FIXED, ConditionEntry, Digest, Generation, Keyed, ObjectMeta, Timestamp
from gitops_ctl.api.kind import AGE, Column, CustomKind
from gitops_ctl.api.model import Transition, kept, parse, rule
from gitops_ctl.api.names import OPS_GROUP
from gitops_ctl.api.rolloutfields import Bytes, Part, Percent, VersionText
from gitops_ctl.api.softwareupgrade_admission import (
    Claim,
    InstallCommit,
    ManagerAdmission,
    ManagerControl,
    ManagerRecovery,
    WorkerControl,
)
from gitops_ctl.api.softwareupgrade_drain import ManagerDrain, WorkerDrain
from gitops_ctl.api.softwareupgrade_receipt import (
    ManagerInvalidation,
    OperationId,
    PreparedInvalidation,
    PreparedReceipt,
)
from gitops_ctl.api.softwareupgrade_spec import UpgradeSpec
from gitops_ctl.core.jsonvalue import JsonObject

UpgradePhase = Literal[
    "Pending",
    "Resolving",
    "Staging",
    "Transferring",
    "TransferInterrupted",
    "Validating",
    "Activating",
    "AwaitingReachability",
    "Verifying",
    "RollingBack",
    "Succeeded",
    "Failed",
    "PreflightFailed",
    "ValidationFailed",
    "RolledBack",
    "RebootTimeout",
    "Cancelled",
    "Prepared",
    "PreparedInvalidated",
    "StagedForNextBoot",
]
InventoryState = Literal[
    "Absent",
    "Present",
    "Installed",
    "ProvisionedUncommitted",
    "ProvisionedCommitted",
    "InProgress",
    "Invalid",
    "Unknown",
]
MANAGER_MEMBERS: Final = (
    "managerAdmission",
    "managerControl",
    "managerDrain",
    "managerInvalidation",
    "managerRecovery",
)
"""Members of the status that the manager writes, and nobody else."""

_MARKERS: Final = (
    "stagingRequested",
    "primarySupervisorInstallRequested",
    "standbySupervisorInstallRequested",
    "primarySupervisorActivationRequested",
    "standbySupervisorActivationRequested",
    "rollbackActivationRequested",
)
"""Each is written once, before the request that it stands for is sent."""


def _stays(member: str) -> Transition:
    return Transition(
        f"!has(oldSelf.{member}) || !oldSelf.{member} || (has(self.{member}) && self.{member})",
        f"{member} must not be taken back: the device may have the request",
    )


class TransferProgress(Part):
    """Bytes of the image that went to the device."""

    bytes_transferred: Bytes
    total_bytes: Bytes | None = None
    percent: Percent | None = None


_CLAIMS_STAY: Final = Transition(
    "!has(oldSelf.managedMutationClaims) || oldSelf.managedMutationClaims.all(old, has(self.managedMutationClaims) && "
    "self.managedMutationClaims.exists(new, new.stage == old.stage))",
    "a claim must not go away",
)
_AUTHORITY_STAYS: Final = tuple(
    Transition(f"!has(oldSelf.{member}) || has(self.{member})", f"{member} must not go away")
    for member in ("managerAdmission", "managerControl", "managerDrain", "workerDrain", "installCommit")
)


class UpgradeStatus(Part):
    """Where the operation stands."""

    phase: UpgradePhase | None = None
    execution_model: Annotated[str, Field(max_length=63)] | None = None
    """`AtMostOnceV1`; another value is left alone."""
    observed_generation: Generation = 0
    conditions: Annotated[tuple[ConditionEntry, ...], Field(max_length=64), Keyed("type")] = ()
    transfer_progress: TransferProgress | None = None
    source_digest: Digest | None = None
    source_size: Bytes | None = None
    prepared_receipt: PreparedReceipt | None = None
    staging_operation_id: OperationId | None = None
    staging_requested: bool | None = None
    inventory_state: InventoryState | None = None
    running_version: VersionText | None = None
    previous_version: VersionText | None = None
    validated_version: VersionText | None = None
    individual_supervisor_install: bool | None = None
    primary_supervisor_install_requested: bool | None = None
    standby_supervisor_install_requested: bool | None = None
    primary_supervisor_installed: bool | None = None
    standby_supervisor_installed: bool | None = None
    primary_supervisor_activation_requested: bool | None = None
    standby_supervisor_activation_requested: bool | None = None
    standby_supervisor_activated: bool | None = None
    no_reboot_activation_accepted: bool | None = None
    rollback_activation_requested: bool | None = None
    start_time: Timestamp | None = None
    install_start_time: Timestamp | None = None
    activation_control_start_time: Timestamp | None = None
    activation_start_time: Timestamp | None = None
    rollback_start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    failure_reason: Annotated[str, Field(max_length=128)] | None = None
    message: Annotated[str, Field(max_length=2000)] | None = None
    retry_count: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Unused."""
    worker_control: WorkerControl | None = None
    worker_drain: WorkerDrain | None = None
    managed_mutation_claims: Annotated[tuple[Claim, ...], Field(max_length=6), Keyed("stage")] = ()
    prepared_invalidation: PreparedInvalidation | None = None
    install_commit: InstallCommit | None = None
    manager_admission: ManagerAdmission | None = None
    manager_control: ManagerControl | None = None
    manager_drain: ManagerDrain | None = None
    manager_invalidation: ManagerInvalidation | None = None
    manager_recovery: ManagerRecovery | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        *_AUTHORITY_STAYS,
        _CLAIMS_STAY,
        *(_stays(marker) for marker in _MARKERS),
        kept("preparedReceipt"),
        kept("managerInvalidation"),
        kept("preparedInvalidation"),
        kept("managerRecovery"),
        Transition(
            "!has(oldSelf.phase) || oldSelf.phase != 'PreparedInvalidated' || "
            "(has(self.phase) && self.phase == 'PreparedInvalidated')",
            "an invalidated preparation stays invalidated",
        ),
    )

    @rule(
        "!has(self.phase) || self.phase != 'Prepared' || has(self.preparedReceipt)",
        message="the phase Prepared needs preparedReceipt",
    )
    def _prepares_with_a_receipt(self) -> bool:
        return self.phase != "Prepared" or self.prepared_receipt is not None

    @rule(
        "!has(self.phase) || self.phase != 'PreparedInvalidated' || "
        "(has(self.preparedReceipt) && has(self.preparedInvalidation))",
        message="the phase PreparedInvalidated needs preparedReceipt and preparedInvalidation",
    )
    def _keeps_the_receipt(self) -> bool:
        found = self.prepared_receipt is not None and self.prepared_invalidation is not None
        return self.phase != "PreparedInvalidated" or found

    @rule(
        "!has(self.preparedInvalidation) || (has(self.managerInvalidation) && has(self.phase) && "
        "self.phase == 'PreparedInvalidated' && has(self.preparedReceipt) && "
        "self.preparedInvalidation.runningVersion == self.preparedReceipt.runningVersion)",
        message="preparedInvalidation needs its request, the phase PreparedInvalidated and the receipt's runningVersion",
    )
    def _invalidates_what_was_asked(self) -> bool:
        seen, receipt = self.prepared_invalidation, self.prepared_receipt
        if seen is None:
            return True
        asked = self.manager_invalidation is not None and self.phase == "PreparedInvalidated"
        return asked and receipt is not None and seen.running_version == receipt.running_version

    @rule(
        "!has(self.managerInvalidation) || (has(self.preparedReceipt) && "
        "self.managerInvalidation.receiptHash == self.preparedReceipt.receiptHash && "
        "has(self.preparedReceipt.planHash) && "
        "self.managerInvalidation.planHash == self.preparedReceipt.planHash && "
        "has(self.preparedReceipt.campaignUID) && "
        "self.managerInvalidation.campaignUID == self.preparedReceipt.campaignUID)",
        message="managerInvalidation must name the receipt, the plan and the campaign of preparedReceipt",
    )
    def _invalidates_its_own_receipt(self) -> bool:
        asked, receipt = self.manager_invalidation, self.prepared_receipt
        if asked is None:
            return True
        return receipt is not None and (asked.receipt_hash, asked.plan_hash, asked.campaign_uid) == (
            receipt.receipt_hash,
            receipt.plan_hash,
            receipt.campaign_uid,
        )

    @rule(
        "!has(self.managerInvalidation) || "
        "(has(self.managerAdmission) && self.managerAdmission.state == 'Settled' && has(self.managerControl) && "
        "has(self.managerControl.cancel) && self.managerControl.cancel && "
        "!(has(self.managerControl.pause) && self.managerControl.pause) && "
        "self.managerControl.revision >= self.managerInvalidation.controlRevision) || "
        "(has(self.managerDrain) && self.managerDrain.state == 'Settled' && "
        "(!has(self.managerDrain.pods) || self.managerDrain.pods.all(pod, pod.phase == 'Complete')) && "
        "has(self.managerControl) && self.managerInvalidation.controlRevision > self.managerControl.revision)",
        message="managerInvalidation needs a settled admission under a cancelled control, or a settled drain",
    )
    def _invalidates_what_is_over(self) -> bool:
        asked, control, drain = self.manager_invalidation, self.manager_control, self.manager_drain
        if asked is None:
            return True
        if control is None:
            return False
        settled = self.manager_admission is not None and self.manager_admission.state == "Settled"
        cancelled = bool(control.cancel) and not control.pause and control.revision >= asked.control_revision
        drained = drain is not None and drain.state == "Settled" and all(pod.phase == "Complete" for pod in drain.pods)
        return (settled and cancelled) or (drained and asked.control_revision > control.revision)

    @rule(
        "!has(self.workerDrain) || (has(self.managerDrain) && "
        "self.workerDrain.observedSessionToken == self.managerDrain.sessionToken && "
        "self.workerDrain.observedPolicyEpoch == self.managerDrain.policyEpoch && "
        "self.workerDrain.observedControlRevision <= self.managerDrain.controlRevision)",
        message="workerDrain must be of the session and the epoch of managerDrain",
    )
    def _drains_for_the_manager(self) -> bool:
        seen, drain = self.worker_drain, self.manager_drain
        if seen is None:
            return True
        if drain is None:
            return False
        same = (seen.observed_session_token, seen.observed_policy_epoch) == (drain.session_token, drain.policy_epoch)
        return same and seen.observed_control_revision <= drain.control_revision


_GRANTED: Final = (
    "!has(self.status) || !has(self.status.managerAdmission) || self.status.managerAdmission.state != 'Granted' || "
)
_STAGED: Final = "rollout-staged-activation-v1"
_EVIDENCE: Final = ("rollout-network-evidence-v1", _STAGED)


class IOSXESoftwareUpgrade(Part):
    """One device and one operation of a campaign; only leaves that the manager made are run."""

    api_version: Literal["ops.cisco.vk/v1alpha1"]
    kind: Literal["IOSXESoftwareUpgrade"]
    metadata: ObjectMeta
    spec: Annotated[UpgradeSpec, FIXED]
    status: UpgradeStatus = UpgradeStatus()

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition("!has(oldSelf.status) || has(self.status)", "the status must not be taken away"),
    )
    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="IOSXESoftwareUpgrade",
        plural="iosxesoftwareupgrades",
        group=OPS_GROUP,
        short_names=("xeupgrade",),
        columns=(
            Column("Device", ".spec.deviceRef.name"),
            Column("Target", ".spec.targetVersion"),
            Column("Phase", ".status.phase"),
            Column("Running", ".status.runningVersion", description="Version that the device runs"),
            AGE,
            Column("Progress", ".status.transferProgress.percent", "integer", priority=1),
            Column("Admission", ".status.managerAdmission.state", priority=1),
            Column("Message", ".status.message", priority=1),
        ),
    )

    @rule(
        f"{_GRANTED}!has(self.spec.requireNetworkEvidence) || !self.spec.requireNetworkEvidence || "
        "(has(self.status.managerAdmission.networkEvidenceHash) && has(self.status.managerAdmission.protocolVersion) && "
        f"self.status.managerAdmission.protocolVersion in {list(_EVIDENCE)})",
        message="a grant with requireNetworkEvidence needs networkEvidenceHash and a protocol that checks it",
    )
    def _grants_with_evidence(self) -> bool:
        admission = self._granted()
        if admission is None or not self.spec.require_network_evidence:
            return True
        return admission.network_evidence_hash is not None and admission.protocol_version in _EVIDENCE

    @rule(
        f"{_GRANTED}!((has(self.spec.strategy) && self.spec.strategy == 'PrepareOnly') || "
        "has(self.spec.imageSource.preinstalled)) || (has(self.status.managerAdmission.protocolVersion) && "
        f"self.status.managerAdmission.protocolVersion == '{_STAGED}')",
        message=f"a grant of a preparation or of a preinstalled version needs {_STAGED}",
    )
    def _grants_in_stages(self) -> bool:
        admission = self._granted()
        staged = self.spec.strategy == "PrepareOnly" or self.spec.image_source.preinstalled is not None
        return admission is None or not staged or admission.protocol_version == _STAGED

    def _granted(self) -> ManagerAdmission | None:
        admission = self.status.manager_admission
        return admission if admission is not None and admission.state == "Granted" else None


def parse_upgrade(tree: JsonObject) -> IOSXESoftwareUpgrade:
    """The leaf that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(IOSXESoftwareUpgrade, tree)

"""An IOSXESoftwareUpgrade, the leaf of a campaign, as manager and worker see it (rollouts.md, section 4).

Reading accepts every tree: what has another shape is absent, and the gate denies what is incomplete.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.trees import moment_at, part_at, strings_at, texts_at

BEFORE_ACTIVATION: Final = frozenset(
    {"Pending", "Resolving", "Staging", "Transferring", "TransferInterrupted", "Validating"}
)
FROM_ACTIVATION_ON: Final = frozenset({"Activating", "AwaitingReachability", "Verifying", "RollingBack"})
FAILED: Final = frozenset({"Failed", "PreflightFailed", "ValidationFailed", "RolledBack", "RebootTimeout", "Cancelled"})
SUCCEEDED: Final = frozenset({"Succeeded", "Prepared", "PreparedInvalidated", "StagedForNextBoot"})
TERMINAL: Final = FAILED | SUCCEEDED

STAGES: Final = (
    *("Staging", "PrimaryInstall", "StandbyInstall", "StandbyActivation", "PrimaryActivation", "RollbackActivation"),
)
ACTIVATIONS: Final = frozenset({"StandbyActivation", "PrimaryActivation", "RollbackActivation"})

_DECIMAL: Final = re.compile(r"[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Binding:
    """The annotations that bind a leaf to its campaign, device, Node and worker; each empty where it is missing (6.2)."""

    managed: bool
    campaign_namespace: str
    campaign_name: str
    campaign_uid: str
    plan_hash: str
    ledger_uid: str
    reservation_id: str
    device_namespace: str
    device_name: str
    device_uid: str
    device_generation: int
    node_name: str
    node_uid: str
    worker_username: str
    network_worker_username: str
    worker_protocol: str
    source_secret_uid: str
    app_worker_username: str
    app_worker_pod_name: str
    app_worker_pod_uid: str
    app_worker_config_revision: str
    network_worker_pod_name: str
    network_worker_pod_uid: str
    prepared_upgrade_uid: str
    prepared_receipt_hash: str
    activation_hash: str

    @property
    def is_complete(self) -> bool:
        """Whether everything is there that every leaf of a campaign carries from its creation on."""
        return self.managed and all(
            (
                *(self.campaign_namespace, self.campaign_name, self.campaign_uid, self.plan_hash, self.ledger_uid),
                *(self.reservation_id, self.device_namespace, self.device_name, self.device_uid),
                *(self.device_generation, self.node_name, self.node_uid, self.worker_username),
                *(self.network_worker_username, self.worker_protocol),
            )
        )


@dataclass(frozen=True, slots=True)
class NetworkAuthority:
    """The accepted sample that a grant rests on (15.5)."""

    evidence_hash: str
    producer_revision: str
    worker_pod_uid: str
    sample_sequence: int
    not_after: datetime | None


@dataclass(frozen=True, slots=True)
class Admission:
    """`status.managerAdmission`; `control_revision` is None where it is absent."""

    state: str
    protocol_version: str
    campaign_uid: str
    plan_hash: str
    policy_uid: str
    policy_version: str
    policy_epoch: int
    ledger_uid: str
    reservation_id: str
    topology_lock_id: str
    leaf_uid: str
    device_uid: str
    physical_identity: str
    node_uid: str
    device_generation: int
    control_revision: int | None
    revocation_reason: str
    network: NetworkAuthority | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class ManagerControl:
    """What the manager asks of the worker."""

    revision: int
    pause: bool
    cancel: bool
    reason: str
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerControl:
    """What the worker has seen of it."""

    admission_state: str
    policy_epoch: int
    control_revision: int
    worker_config_revision: str
    effective_state: str
    message: str
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One stage whose mutation the worker has claimed; `claimed_at_text` is the time as stored, because a recovery names it exactly."""

    stage: str
    reservation_id: str
    policy_epoch: int
    control_revision: int
    claimed_at: datetime | None
    claimed_at_text: str


@dataclass(frozen=True, slots=True)
class InstallCommit:
    """Requested before the commit is sent, Committed once the device was seen committed (4.3)."""

    state: str
    requested_at: datetime | None
    observed_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecoveredClaim:
    """A claim that a recovery names."""

    stage: str
    claimed_at_text: str


@dataclass(frozen=True, slots=True)
class ManagerRecovery:
    """What two persons signed for about the leaf (11.6)."""

    outcome: str
    claims: tuple[RecoveredClaim, ...]
    persons: tuple[str, ...]
    commit: str
    recorded_at: datetime | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf.  `spec` and `status` are the trees; `settled` says that the condition DeviceMutationSettled is True."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    deleting: bool
    created: datetime | None
    device_name: str
    target_version: str
    strategy: str
    rollback_on_failure: bool
    is_preinstalled: bool
    require_network_evidence: bool
    max_bytes_per_s: int
    binding: Binding
    phase: str
    admission: Admission | None
    manager_control: ManagerControl | None
    worker_control: WorkerControl | None
    claims: tuple[Claim, ...]
    receipt: JsonObject | None
    completion_time: datetime | None
    settled: bool
    install_commit: InstallCommit | None
    recovery: ManagerRecovery | None
    spec: JsonObject
    status: JsonObject

    @property
    def is_terminal(self) -> bool:
        return self.phase in TERMINAL

    @property
    def is_failed(self) -> bool:
        """Whether its end is a failure for the campaign."""
        return self.phase in FAILED

    @property
    def has_unresolved_claim(self) -> bool:
        """Whether the device may have been changed and no outcome is proven."""
        return bool(self.claims) and not self.settled

    @property
    def is_outcome_resolved(self) -> bool:
        """A terminal phase with its time, and no claim that is unresolved (13.7)."""
        return self.is_terminal and self.completion_time is not None and not self.has_unresolved_claim

    @property
    def is_given_back(self) -> bool:
        """Whether its device was given back: nothing of it holds or changes anything any more."""
        return self.admission is not None and self.admission.state == "Settled"

    @property
    def is_given_up(self) -> bool:
        """Whether it was stopped before its first claim: none was made, and none can be made unless it is granted anew."""
        state = self.admission.state if self.admission is not None else ""
        return state in {"Revoked", "Settled"} and not self.claims and self.install_commit is None

    def claim(self, stage: str) -> Claim | None:
        """The claim of that stage."""
        return next((found for found in self.claims if found.stage == stage), None)


def leaf_of(tree: JsonObject) -> Leaf:
    """Read a leaf."""
    meta, spec, status = object_at(tree, "metadata"), object_at(tree, "spec"), object_at(tree, "status")
    annotations = texts_at(meta, "annotations")
    return Leaf(
        namespace=text_at(meta, "namespace"),
        name=text_at(meta, "name"),
        uid=text_at(meta, "uid"),
        generation=int_at(meta, "generation"),
        resource_version=text_at(meta, "resourceVersion"),
        labels=texts_at(meta, "labels"),
        annotations=annotations,
        finalizers=strings_at(meta, "finalizers"),
        deleting="deletionTimestamp" in meta,
        created=moment_at(meta, "creationTimestamp"),
        device_name=text_at(spec, "deviceRef", "name"),
        target_version=text_at(spec, "targetVersion"),
        strategy=text_at(spec, "strategy", default="Reload"),
        rollback_on_failure=bool_at(spec, "rollbackOnFailure", default=True),
        is_preinstalled="preinstalled" in object_at(spec, "imageSource"),
        require_network_evidence=bool_at(spec, "requireNetworkEvidence"),
        max_bytes_per_s=int_at(spec, "maxTransferBytesPerSecond"),
        binding=binding_of(annotations),
        phase=text_at(status, "phase"),
        admission=_admission(part_at(status, "managerAdmission")),
        manager_control=_manager_control(part_at(status, "managerControl")),
        worker_control=_worker_control(part_at(status, "workerControl")),
        claims=tuple(map(_claim, objects_at(status, "managedMutationClaims"))),
        receipt=part_at(status, "preparedReceipt"),
        completion_time=moment_at(status, "completionTime"),
        settled=_is_settled(status),
        install_commit=_install_commit(part_at(status, "installCommit")),
        recovery=_recovery(part_at(status, "managerRecovery")),
        spec=spec,
        status=status,
    )


def binding_of(annotations: Mapping[str, str]) -> Binding:
    """Read the binding; a generation that is no plain decimal number counts as missing."""
    generation = annotations.get(names.DEVICE_GENERATION, "")

    def at(key: str) -> str:
        return annotations.get(key, "")

    return Binding(
        managed=at(names.MANAGED) == "true",
        campaign_namespace=at(names.CAMPAIGN_NAMESPACE),
        campaign_name=at(names.CAMPAIGN_NAME),
        campaign_uid=at(names.CAMPAIGN_UID),
        plan_hash=at(names.PLAN_HASH),
        ledger_uid=at(names.LEDGER_UID),
        reservation_id=at(names.RESERVATION_ID),
        device_namespace=at(names.DEVICE_NAMESPACE),
        device_name=at(names.DEVICE_NAME),
        device_uid=at(names.DEVICE_UID),
        device_generation=int(generation) if _DECIMAL.fullmatch(generation) else 0,
        node_name=at(names.NODE_NAME),
        node_uid=at(names.NODE_UID),
        worker_username=at(names.WORKER_USERNAME),
        network_worker_username=at(names.NETWORK_WORKER_USERNAME),
        worker_protocol=at(names.WORKER_PROTOCOL),
        source_secret_uid=at(names.SOURCE_SECRET_UID),
        app_worker_username=at(names.APP_WORKER_USERNAME),
        app_worker_pod_name=at(names.APP_WORKER_POD_NAME),
        app_worker_pod_uid=at(names.APP_WORKER_POD_UID),
        app_worker_config_revision=at(names.APP_WORKER_CONFIG_REVISION),
        network_worker_pod_name=at(names.NETWORK_WORKER_POD_NAME),
        network_worker_pod_uid=at(names.NETWORK_WORKER_POD_UID),
        prepared_upgrade_uid=at(names.PREPARED_UPGRADE_UID),
        prepared_receipt_hash=at(names.PREPARED_RECEIPT_HASH),
        activation_hash=at(names.ACTIVATION_HASH),
    )


def _admission(tree: JsonObject | None) -> Admission | None:
    if tree is None:
        return None
    return Admission(
        state=text_at(tree, "state"),
        protocol_version=text_at(tree, "protocolVersion"),
        campaign_uid=text_at(tree, "campaignUID"),
        plan_hash=text_at(tree, "planHash"),
        policy_uid=text_at(tree, "policyUID"),
        policy_version=text_at(tree, "policyResourceVersion"),
        policy_epoch=int_at(tree, "policyEpoch"),
        ledger_uid=text_at(tree, "ledgerUID"),
        reservation_id=text_at(tree, "reservationID"),
        topology_lock_id=text_at(tree, "topologyLockID"),
        leaf_uid=text_at(tree, "leafUID"),
        device_uid=text_at(tree, "deviceUID"),
        physical_identity=text_at(tree, "physicalIdentity"),
        node_uid=text_at(tree, "nodeUID"),
        device_generation=int_at(tree, "deviceGeneration"),
        control_revision=int_at(tree, "controlRevision") if "controlRevision" in tree else None,
        revocation_reason=text_at(tree, "revocationReason"),
        network=_authority(tree),
        updated_at=moment_at(tree, "updatedAt"),
    )


_AUTHORITY: Final = (
    *("networkEvidenceHash", "networkEvidenceProducerRevision", "networkEvidenceWorkerPodUID"),
    *("networkEvidenceSampleSequence", "networkEvidenceNotAfter"),
)


def _authority(tree: JsonObject) -> NetworkAuthority | None:
    """All five members, or the part that is there: a part of them is an authority that equals no sample."""
    if not any(name in tree for name in _AUTHORITY):
        return None
    evidence, producer, pod, sequence, not_after = _AUTHORITY
    return NetworkAuthority(
        text_at(tree, evidence),
        text_at(tree, producer),
        text_at(tree, pod),
        int_at(tree, sequence),
        moment_at(tree, not_after),
    )


def _manager_control(tree: JsonObject | None) -> ManagerControl | None:
    if tree is None:
        return None
    return ManagerControl(
        int_at(tree, "revision"),
        bool_at(tree, "pause"),
        bool_at(tree, "cancel"),
        text_at(tree, "reason"),
        moment_at(tree, "updatedAt"),
    )


def _worker_control(tree: JsonObject | None) -> WorkerControl | None:
    if tree is None:
        return None
    return WorkerControl(
        admission_state=text_at(tree, "observedAdmissionState"),
        policy_epoch=int_at(tree, "observedPolicyEpoch"),
        control_revision=int_at(tree, "observedControlRevision"),
        worker_config_revision=text_at(tree, "observedWorkerConfigRevision"),
        effective_state=text_at(tree, "effectiveState"),
        message=text_at(tree, "message"),
        updated_at=moment_at(tree, "updatedAt"),
    )


def _claim(tree: JsonObject) -> Claim:
    return Claim(
        stage=text_at(tree, "stage"),
        reservation_id=text_at(tree, "reservationID"),
        policy_epoch=int_at(tree, "policyEpoch"),
        control_revision=int_at(tree, "controlRevision"),
        claimed_at=moment_at(tree, "claimedAt"),
        claimed_at_text=text_at(tree, "claimedAt"),
    )


def _is_settled(status: JsonObject) -> bool:
    return any(
        text_at(item, "type") == names.MUTATION_SETTLED and text_at(item, "status") == "True"
        for item in objects_at(status, "conditions")
    )


def _install_commit(tree: JsonObject | None) -> InstallCommit | None:
    if tree is None:
        return None
    return InstallCommit(text_at(tree, "state"), moment_at(tree, "requestedAt"), moment_at(tree, "observedAt"))


def _recovery(tree: JsonObject | None) -> ManagerRecovery | None:
    if tree is None:
        return None
    return ManagerRecovery(
        outcome=text_at(tree, "outcome"),
        claims=tuple(
            RecoveredClaim(text_at(item, "stage"), text_at(item, "claimedAt")) for item in objects_at(tree, "claims")
        ),
        persons=strings_at(tree, "persons"),
        commit=text_at(tree, "commit"),
        recorded_at=moment_at(tree, "recordedAt"),
    )

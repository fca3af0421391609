"""`status` of a CiscoDevice: identity, projection, health, lock and session (rollouts.md, sections 5.2, 8.6 and 13.6).

Each member has one writer: the network worker those of `WORKER_MEMBERS`, the manager everything else.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import ConditionEntry, Digest, Generation, Keyed, Timestamp
from gitops_ctl.api.model import Transition, kept, rule
from gitops_ctl.api.rolloutfields import (
    LARGEST,
    Bytes,
    Epoch,
    Hex32,
    NameText,
    NodeName,
    OpenPart,
    Part,
    Percent,
    ReservationId,
    ResourceVersion,
    Revision,
    ShortMessage,
    Uid,
    User,
    VersionText,
)

WORKER_MEMBERS: Final = ("healthObservation.network", "workerReport", "preflight")
"""Dotted paths of the members that the network worker writes, and nobody else."""

Rate = Annotated[int, Field(ge=0, le=LARGEST)]
"""Bits per second."""

DevicePhase = Literal["Pending", "Provisioning", "Ready", "Error", "Deleting"]
CheckName = Literal[
    "Netconf", "Gnoi", "Source", "Spool", "FlashSpace", "InstallMode", "Quiescent", "SavedConfiguration"
]


class NodeIdentity(Part):
    """The Node of the device; bound once."""

    node_name: NodeName
    node_uid: Uid
    device_uid: Uid
    physical_identity: Annotated[str, Field(min_length=1, max_length=128, pattern=patterns.CANONICAL_IDENTITY)]
    """In lower case."""


class TopologyProjection(Part):
    """What was projected to the Node last."""

    effective_label_hash: Digest
    source_resource_version: ResourceVersion
    last_successful_time: Timestamp


class ConditionObservation(Part):
    """When a condition was checked last; its transition may be much older."""

    type: Annotated[str, Field(min_length=1, max_length=63)]
    status: Literal["True", "False", "Unknown"]
    observed_generation: Generation = 0
    observed_at: Timestamp


class InterfaceSample(Part):
    """One interface."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    oper_up: bool
    headroom_percent: Percent | None = None
    capacity_bits_per_second: Rate | None = None
    ingress_bits_per_second: Rate | None = None
    egress_bits_per_second: Rate | None = None
    rate_source: Annotated[str, Field(max_length=256)] | None = None


class NeighborSample(Part):
    """One adjacency."""

    identity: Annotated[str, Field(min_length=1, max_length=512)]
    id: Annotated[str, Field(max_length=256)] | None = None
    interface: Annotated[str, Field(max_length=256)] | None = None
    routing_domain: Annotated[str, Field(max_length=256)] | None = None
    state: Annotated[str, Field(max_length=63)] | None = None
    source: Annotated[str, Field(max_length=63)] | None = None


class NetworkSample(Part):
    """One look at the network around the device."""

    worker_pod_uid: Uid
    collection_started_at: Timestamp
    collection_ended_at: Timestamp
    sample_sequence: Epoch
    observed_at: Timestamp
    complete: bool
    unknown_reason: ShortMessage | None = None
    producer_revision: Annotated[str, Field(min_length=1, max_length=128)]
    device_identity_hash: Annotated[str, Field(max_length=71)] | None = None
    interfaces: Annotated[tuple[InterfaceSample, ...], Field(max_length=64)] = ()
    neighbors: Annotated[tuple[NeighborSample, ...], Field(max_length=64)] = ()

    @rule(
        "self.complete || (has(self.unknownReason) && self.unknownReason != '')",
        message="an incomplete sample needs unknownReason",
    )
    def _says_what_is_missing(self) -> bool:
        return self.complete or bool(self.unknown_reason)


class HealthObservation(Part):
    """Dated evidence of health."""

    observed_at: Timestamp
    node_ready_heartbeat_time: Timestamp | None = None
    device_conditions_hash: Digest
    condition_observations: Annotated[tuple[ConditionObservation, ...], Field(max_length=16), Keyed("type")] = ()
    network: NetworkSample | None = None
    """The latest sample of the network worker."""
    accepted_network: NetworkSample | None = None
    """The sample that the manager accepted last."""


class WorkerRevision(Part):
    """What the worker should have loaded, and what it proved to have loaded."""

    desired_revision: Digest | None = None
    observed_revision: Digest | None = None
    deployment_uid: Annotated[str, Field(max_length=128)] | None = None
    deployment_generation: Revision | None = None
    pod_uid: Annotated[str, Field(max_length=128)] | None = None
    pod_start_time: Timestamp | None = None
    observed_at: Timestamp | None = None


class AppWorkerRevision(WorkerRevision):
    """The node plane."""

    ready_heartbeat_time: Timestamp | None = None


class NetworkWorkerRevision(WorkerRevision):
    """The network plane."""

    pod_ready_time: Timestamp | None = None


_LOCK_IDENTITY: Final = (
    "policyEpoch",
    "acquisitionID",
    "campaignNamespace",
    "campaignName",
    "campaignUID",
    "planHash",
    "reservationID",
    "deviceUID",
    "deviceGeneration",
    "nodeUID",
    "projectionHash",
    "acquiredAt",
)


class TopologyLock(Part):
    """Freezes the device for one campaign."""

    state: Literal["Active", "Releasing"]
    policy_epoch: Epoch
    acquisition_id: Hex32
    campaign_namespace: Annotated[str, Field(min_length=1, max_length=63)]
    campaign_name: NameText
    campaign_uid: Uid
    plan_hash: Digest
    reservation_id: ReservationId
    device_uid: Uid
    device_generation: Epoch
    node_uid: Uid
    projection_hash: Digest
    acquired_at: Timestamp

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            " && ".join(f"self.{member} == oldSelf.{member}" for member in _LOCK_IDENTITY),
            "a lock must not change: release it and acquire another",
        ),
        Transition("oldSelf.state == 'Active' || self.state == 'Releasing'", "a lock goes from Active to Releasing"),
    )


class SessionLease(Part):
    """The Lease of a session."""

    namespace: Annotated[str, Field(min_length=1, max_length=63)]
    name: NameText
    uid: Uid
    holder: Annotated[str, Field(min_length=1, max_length=253)]


class SessionOperation(Part):
    """The leaf of a session."""

    namespace: Annotated[str, Field(min_length=1, max_length=63)]
    name: NameText
    uid: Uid


_SESSION_IDENTITY: Final = ("sessionToken", "operation", "deviceUID", "nodeName", "nodeUID", "requestedAt")
_SAME_SESSION: Final = " && ".join(f"self.{member} == oldSelf.{member}" for member in _SESSION_IDENTITY)
_SAME_LEASE: Final = " && ".join(
    f"self.lease.{member} == oldSelf.lease.{member}" for member in ("__namespace__", "name", "uid")
)
_SAME_PURPOSE: Final = (
    "has(self.purpose) == has(oldSelf.purpose) && (!has(self.purpose) || self.purpose == oldSelf.purpose) && "
    "has(self.protocolVersion) == has(oldSelf.protocolVersion) && "
    "(!has(self.protocolVersion) || self.protocolVersion == oldSelf.protocolVersion) && "
    "self.lease.holder == oldSelf.lease.holder"
)
_PROMOTED: Final = (
    "has(oldSelf.purpose) && oldSelf.purpose == 'WorkloadDrain' && has(self.purpose) && "
    "self.purpose == 'SoftwareMutation' && self.lease.holder == 'software-upgrade/' + self.operation.uid"
)


class MaintenanceSession(Part):
    """The acknowledged maintenance of a device by one leaf."""

    phase: Literal["Acknowledged", "Active", "Recovering", "Settled"]
    protocol_version: Literal["rollout-v1", "pdb-drain-v1"] | None = None
    purpose: Literal["SoftwareMutation", "WorkloadDrain"] | None = None
    session_token: Annotated[str, Field(min_length=16, max_length=64, pattern=patterns.PRINTABLE)]
    lease: SessionLease
    operation: SessionOperation
    device_uid: Uid
    node_name: NodeName
    node_uid: Uid
    requested_at: Timestamp
    acknowledged_at: Timestamp
    control_revision: Revision
    message: ShortMessage = ""

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            f"oldSelf.phase == 'Settled' || ({_SAME_SESSION} && {_SAME_LEASE} && (({_SAME_PURPOSE}) || ({_PROMOTED})))",
            "a session must not change before it is settled; only a drain may become a software change",
        ),
        Transition(
            "oldSelf.phase == 'Settled' || self.phase == oldSelf.phase || "
            "(oldSelf.phase == 'Acknowledged' && self.phase in ['Active', 'Recovering', 'Settled']) || "
            "(oldSelf.phase == 'Active' && self.phase in ['Recovering', 'Settled']) || "
            "(oldSelf.phase == 'Recovering' && self.phase == 'Settled')",
            "a session goes from Acknowledged to Active to Settled, by way of Recovering or not, and never back",
        ),
        Transition(
            "self.phase != 'Settled' || oldSelf.phase in ['Recovering', 'Settled'] || "
            "!has(self.protocolVersion) || self.protocolVersion != 'pdb-drain-v1'",
            "a drain session is settled only after Recovering",
        ),
        Transition(
            "oldSelf.phase != 'Settled' || self.sessionToken != oldSelf.sessionToken || self == oldSelf",
            "a settled session must not change; another session has another token",
        ),
    )

    @rule("has(self.protocolVersion) == has(self.purpose)", message="protocolVersion and purpose come together")
    def _says_what_for(self) -> bool:
        return (self.protocol_version is None) == (self.purpose is None)


class Journal(Part):
    """The claim journal that serves the device."""

    id: Annotated[str, Field(min_length=36, max_length=36, pattern=patterns.UUID)]
    sequence: Revision
    state: Literal["Ready", "HistoryLost"]


class WorkerReport(Part):
    """What the running worker loaded for this device."""

    pod_uid: Uid
    observed_revision: Digest
    loaded_at: Timestamp
    material_valid: bool
    """Whether credential, TLS and host keys could be read; never what is in them."""
    message: ShortMessage = ""
    image_source_allow: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(max_length=16)
    ] = ()
    """Networks that image servers may be in although they are private."""
    journal: Journal


class PreflightCheck(Part):
    """One read-only check."""

    name: CheckName
    status: Literal["Pass", "Warn", "Fail", "Unknown"]
    message: ShortMessage = ""


class Preflight(Part):
    """What the read-only checks for one campaign gave."""

    rollout_uid: Uid
    plan_hash: Digest
    observed_at: Timestamp
    worker_pod_uid: Uid
    worker_revision: Digest
    result: Literal["Passed", "Warned", "Failed"]
    image_size: Bytes | None = None
    running_version: VersionText = ""
    checks: Annotated[tuple[PreflightCheck, ...], Field(max_length=16), Keyed("name")] = ()


class Retired(Part):
    """The device does not come back as this object, by the word of two persons."""

    rollout_name: NameText
    rollout_uid: Uid
    leaf_uid: Uid
    persons: Annotated[tuple[User, ...], Field(min_length=2, max_length=8)]
    commit: Annotated[str, Field(min_length=1, max_length=64)]
    at: Timestamp


class DescriptivePart(OpenPart):
    """Described by another manager; kept as it is."""


class DeviceCondition(ConditionEntry):
    """One condition of a device."""


_LOCK_RULES: Final = (
    Transition(
        "has(oldSelf.topologyLock) || !has(self.topologyLock) || self.topologyLock.state == 'Active'",
        "a new lock is Active",
    ),
    Transition(
        "!has(oldSelf.topologyLock) || has(self.topologyLock) || oldSelf.topologyLock.state == 'Releasing'",
        "a lock is cleared only after Releasing",
    ),
    Transition(
        "has(oldSelf.topologyLock) || !has(self.topologyLock) || !has(self.retired)",
        "a retired device takes no new lock",
    ),
    Transition(
        "!has(oldSelf.maintenanceSession) || has(self.maintenanceSession) || oldSelf.maintenanceSession.phase == 'Settled'",
        "a session must not go away before it is settled",
    ),
)


class DeviceStatus(Part):
    """What is known about the device, and who works on it."""

    phase: DevicePhase | None = None
    conditions: Annotated[tuple[DeviceCondition, ...], Field(max_length=64), Keyed("type")] = ()
    node_identity: NodeIdentity | None = None
    topology_projection: TopologyProjection | None = None
    health_observation: HealthObservation | None = None
    worker_revision: AppWorkerRevision | None = None
    network_worker_revision: NetworkWorkerRevision | None = None
    topology_lock: TopologyLock | None = None
    maintenance_session: MaintenanceSession | None = None
    worker_report: WorkerReport | None = None
    preflight: Annotated[tuple[Preflight, ...], Field(max_length=8), Keyed("rolloutUID", "rollout_uid")] = ()
    retired: Retired | None = None
    legacy_handoff: DescriptivePart | None = None
    worker_topology: Annotated[str, Field(max_length=63)] | None = None
    worker_capabilities: Annotated[tuple[DescriptivePart, ...], Field(max_length=64)] = ()
    net_as_code: DescriptivePart | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        kept("nodeIdentity"),
        kept("retired"),
        *_LOCK_RULES,
    )

    @rule(
        "!has(self.healthObservation) || !has(self.healthObservation.acceptedNetwork) || has(self.healthObservation.network)",
        message="a sample is accepted only where there is one",
    )
    def _accepts_a_sample(self) -> bool:
        health = self.health_observation
        return health is None or health.accepted_network is None or health.network is not None

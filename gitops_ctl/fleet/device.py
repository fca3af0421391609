"""A CiscoDevice as the fleet sees it, read from the object's tree (rollouts.md, section 5).

Reading accepts every tree: what has another shape is absent, and what is absent proves nothing.  It is done for every device of the fleet,
so network samples stay trees until somebody judges them (`evidence.sample_of`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, bool_at, object_at, objects_at
from gitops_ctl.fleet.trees import int_of, moment_at, part_at, strings_at, text_of, texts_at

SESSION_IS_MAINTENANCE: Final = frozenset({"Acknowledged", "Active"})
"""Phases of a session that make the device unavailable in budgets (13.6)."""
LOCK_ACTIVE: Final = "Active"
LOCK_RELEASING: Final = "Releasing"
JOURNAL_READY: Final = "Ready"


@dataclass(frozen=True, slots=True)
class DeviceCondition:
    """One condition as it is stored; `last_transition` is its text, because it is hashed."""

    type: str
    status: str
    observed_generation: int
    last_transition: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Which Node and which chassis this device is bound to; written once."""

    node_name: str
    node_uid: str
    device_uid: str
    physical_identity: str


@dataclass(frozen=True, slots=True)
class Projected:
    """The projection that was carried out last."""

    label_hash: str
    source_resource_version: str
    last_successful: datetime | None


@dataclass(frozen=True, slots=True)
class ConditionSeen:
    """When the producer of a condition last checked it."""

    type: str
    status: str
    observed_generation: int
    observed_at: datetime | None


@dataclass(frozen=True, slots=True)
class HealthObservation:
    """Evidence of health (15.1).  `network` is the latest sample, `accepted` the one that the manager took up."""

    observed_at: datetime | None
    heartbeat: datetime | None
    conditions_hash: str
    observations: tuple[ConditionSeen, ...]
    network: JsonObject | None
    accepted: JsonObject | None


@dataclass(frozen=True, slots=True)
class TopologyLock:
    """What freezes the device for one acquisition of one campaign (8.6)."""

    state: str
    policy_epoch: int
    acquisition_id: str
    campaign_namespace: str
    campaign_name: str
    campaign_uid: str
    plan_hash: str
    reservation_id: str
    device_uid: str
    device_generation: int
    node_uid: str
    projection_hash: str
    acquired_at: datetime | None


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """The Lease of a session, and who held it."""

    namespace: str
    name: str
    uid: str
    holder: str


@dataclass(frozen=True, slots=True)
class OperationRef:
    """The leaf that a session is for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class MaintenanceSession:
    """The manager's answer to a request for maintenance (13.6)."""

    phase: str
    protocol_version: str
    purpose: str
    session_token: str
    lease: LeaseRef
    operation: OperationRef
    device_uid: str
    node_name: str
    node_uid: str
    requested_at: datetime | None
    acknowledged_at: datetime | None
    control_revision: int
    message: str

    @property
    def is_maintenance(self) -> bool:
        """Whether it counts as maintenance in budgets."""
        return self.phase in SESSION_IS_MAINTENANCE


@dataclass(frozen=True, slots=True)
class WorkerRevision:
    """Which worker is proven to have loaded which inputs (17.2); `ready_at` is a heartbeat, of the network plane its Pod's readiness."""

    desired: str
    observed: str
    deployment_uid: str
    deployment_generation: int
    pod_uid: str
    pod_started: datetime | None
    ready_at: datetime | None
    observed_at: datetime | None

    @property
    def is_proven(self) -> bool:
        """Whether the sole Pod showed, after it had started, that it loaded what is desired."""
        if not self.desired or self.desired != self.observed or not self.deployment_uid or not self.pod_uid:
            return False
        return self.pod_started is not None and self.ready_at is not None and self.ready_at >= self.pod_started


@dataclass(frozen=True, slots=True)
class Journal:
    """Of the network worker's claims (13.9)."""

    id: str
    sequence: int
    state: str


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What the running network worker loaded for the device."""

    pod_uid: str
    observed_revision: str
    loaded_at: datetime | None
    material_valid: bool
    message: str
    image_source_allow: tuple[str, ...]
    journal: Journal | None


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a preflight: Pass, Warn, Fail or Unknown."""

    name: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """The read-only checks of one campaign (9.4): Passed, Warned or Failed."""

    rollout_uid: str
    plan_hash: str
    observed_at: datetime | None
    worker_pod_uid: str
    worker_revision: str
    result: str
    image_size: int
    running_version: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Retired:
    """Two persons declared the chassis gone (11.6)."""

    rollout_name: str
    rollout_uid: str
    leaf_uid: str
    persons: tuple[str, ...]
    commit: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Device:
    """One CiscoDevice.  `physical_identity` is the declared text, `node_name` the resolved one; `spec` and `status` are the trees."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    driver: str
    physical_identity: str
    node_name: str
    phase: str
    conditions: tuple[DeviceCondition, ...]
    node_identity: NodeIdentity | None
    projection: Projected | None
    health: HealthObservation | None
    lock: TopologyLock | None
    session: MaintenanceSession | None
    worker_revision: WorkerRevision | None
    network_worker_revision: WorkerRevision | None
    worker_report: WorkerReport | None
    preflight: tuple[Preflight, ...]
    retired: Retired | None
    deleting: bool
    spec: JsonObject
    status: JsonObject

    def condition(self, kind: str) -> DeviceCondition | None:
        """The condition of that type."""
        return next((found for found in self.conditions if found.type == kind), None)

    def preflight_of(self, rollout_uid: str) -> Preflight | None:
        """The entry of that campaign."""
        return next((found for found in self.preflight if found.rollout_uid == rollout_uid), None)


def device_of(tree: JsonObject) -> Device:
    """Read a CiscoDevice."""
    meta, spec, status = object_at(tree, "metadata"), object_at(tree, "spec"), object_at(tree, "status")
    name = text_of(meta, "name")
    return Device(
        namespace=text_of(meta, "namespace"),
        name=name,
        uid=text_of(meta, "uid"),
        generation=int_of(meta, "generation"),
        resource_version=text_of(meta, "resourceVersion"),
        labels=texts_at(meta, "labels"),
        annotations=texts_at(meta, "annotations"),
        driver=text_of(spec, "driver"),
        physical_identity=text_of(spec, "physicalIdentity"),
        node_name=text_of(spec, "nodeName") or name,
        phase=text_of(status, "phase"),
        conditions=tuple(map(_condition, objects_at(status, "conditions"))),
        node_identity=_node_identity(part_at(status, "nodeIdentity")),
        projection=_projected(part_at(status, "topologyProjection")),
        health=_health(part_at(status, "healthObservation")),
        lock=lock_of(part_at(status, "topologyLock")),
        session=_session(part_at(status, "maintenanceSession")),
        worker_revision=_revision(part_at(status, "workerRevision"), "readyHeartbeatTime"),
        network_worker_revision=_revision(part_at(status, "networkWorkerRevision"), "podReadyTime"),
        worker_report=_report(part_at(status, "workerReport")),
        preflight=tuple(map(_preflight, objects_at(status, "preflight"))),
        retired=_retired(part_at(status, "retired")),
        deleting="deletionTimestamp" in meta,
        spec=spec,
        status=status,
    )


def _condition(tree: JsonObject) -> DeviceCondition:
    return DeviceCondition(
        text_of(tree, "type"),
        text_of(tree, "status"),
        int_of(tree, "observedGeneration"),
        text_of(tree, "lastTransitionTime"),
        text_of(tree, "reason"),
        text_of(tree, "message"),
    )


def _node_identity(tree: JsonObject | None) -> NodeIdentity | None:
    if tree is None:
        return None
    return NodeIdentity(
        text_of(tree, "nodeName"),
        text_of(tree, "nodeUID"),
        text_of(tree, "deviceUID"),
        text_of(tree, "physicalIdentity"),
    )


def _projected(tree: JsonObject | None) -> Projected | None:
    if tree is None:
        return None
    return Projected(
        text_of(tree, "effectiveLabelHash"),
        text_of(tree, "sourceResourceVersion"),
        moment_at(tree, "lastSuccessfulTime"),
    )


def _health(tree: JsonObject | None) -> HealthObservation | None:
    if tree is None:
        return None
    return HealthObservation(
        observed_at=moment_at(tree, "observedAt"),
        heartbeat=moment_at(tree, "nodeReadyHeartbeatTime"),
        conditions_hash=text_of(tree, "deviceConditionsHash"),
        observations=tuple(
            ConditionSeen(
                text_of(item, "type"),
                text_of(item, "status"),
                int_of(item, "observedGeneration"),
                moment_at(item, "observedAt"),
            )
            for item in objects_at(tree, "conditionObservations")
        ),
        network=part_at(tree, "network"),
        accepted=part_at(tree, "acceptedNetwork"),
    )


def lock_of(tree: JsonObject | None) -> TopologyLock | None:
    """The lock in `status.topologyLock`."""
    if not tree:
        return None
    return TopologyLock(
        state=text_of(tree, "state"),
        policy_epoch=int_of(tree, "policyEpoch"),
        acquisition_id=text_of(tree, "acquisitionID"),
        campaign_namespace=text_of(tree, "campaignNamespace"),
        campaign_name=text_of(tree, "campaignName"),
        campaign_uid=text_of(tree, "campaignUID"),
        plan_hash=text_of(tree, "planHash"),
        reservation_id=text_of(tree, "reservationID"),
        device_uid=text_of(tree, "deviceUID"),
        device_generation=int_of(tree, "deviceGeneration"),
        node_uid=text_of(tree, "nodeUID"),
        projection_hash=text_of(tree, "projectionHash"),
        acquired_at=moment_at(tree, "acquiredAt"),
    )


def _session(tree: JsonObject | None) -> MaintenanceSession | None:
    if tree is None:
        return None
    lease, operation = part_at(tree, "lease") or EMPTY, part_at(tree, "operation") or EMPTY
    return MaintenanceSession(
        phase=text_of(tree, "phase"),
        protocol_version=text_of(tree, "protocolVersion"),
        purpose=text_of(tree, "purpose"),
        session_token=text_of(tree, "sessionToken"),
        lease=LeaseRef(*(text_of(lease, name) for name in ("namespace", "name", "uid", "holder"))),
        operation=OperationRef(*(text_of(operation, name) for name in ("namespace", "name", "uid"))),
        device_uid=text_of(tree, "deviceUID"),
        node_name=text_of(tree, "nodeName"),
        node_uid=text_of(tree, "nodeUID"),
        requested_at=moment_at(tree, "requestedAt"),
        acknowledged_at=moment_at(tree, "acknowledgedAt"),
        control_revision=int_of(tree, "controlRevision"),
        message=text_of(tree, "message"),
    )


def _revision(tree: JsonObject | None, ready: str) -> WorkerRevision | None:
    if tree is None:
        return None
    return WorkerRevision(
        desired=text_of(tree, "desiredRevision"),
        observed=text_of(tree, "observedRevision"),
        deployment_uid=text_of(tree, "deploymentUID"),
        deployment_generation=int_of(tree, "deploymentGeneration"),
        pod_uid=text_of(tree, "podUID"),
        pod_started=moment_at(tree, "podStartTime"),
        ready_at=moment_at(tree, ready),
        observed_at=moment_at(tree, "observedAt"),
    )


def _report(tree: JsonObject | None) -> WorkerReport | None:
    if tree is None:
        return None
    journal = part_at(tree, "journal")
    return WorkerReport(
        pod_uid=text_of(tree, "podUID"),
        observed_revision=text_of(tree, "observedRevision"),
        loaded_at=moment_at(tree, "loadedAt"),
        material_valid=bool_at(tree, "materialValid"),
        message=text_of(tree, "message"),
        image_source_allow=strings_at(tree, "imageSourceAllow"),
        journal=None
        if journal is None
        else Journal(text_of(journal, "id"), int_of(journal, "sequence"), text_of(journal, "state")),
    )


def _preflight(tree: JsonObject) -> Preflight:
    return Preflight(
        rollout_uid=text_of(tree, "rolloutUID"),
        plan_hash=text_of(tree, "planHash"),
        observed_at=moment_at(tree, "observedAt"),
        worker_pod_uid=text_of(tree, "workerPodUID"),
        worker_revision=text_of(tree, "workerRevision"),
        result=text_of(tree, "result"),
        image_size=int_of(tree, "imageSize"),
        running_version=text_of(tree, "runningVersion"),
        checks=tuple(
            Check(text_of(item, "name"), text_of(item, "status"), text_of(item, "message"))
            for item in objects_at(tree, "checks")
        ),
    )


def _retired(tree: JsonObject | None) -> Retired | None:
    if tree is None:
        return None
    return Retired(
        rollout_name=text_of(tree, "rolloutName"),
        rollout_uid=text_of(tree, "rolloutUID"),
        leaf_uid=text_of(tree, "leafUID"),
        persons=strings_at(tree, "persons"),
        commit=text_of(tree, "commit"),
        at=moment_at(tree, "at"),
    )

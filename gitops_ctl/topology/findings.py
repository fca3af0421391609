"""Why a device is not ready, as a reason and a sentence; what the planners of this room hand to each other."""

import enum
from dataclasses import dataclass


class Reason(enum.StrEnum):
    """Reasons of device conditions (rollouts.md, section 5.3); those that the contract does not list say why something is False."""

    UID_BOUND = "UIDBound"
    PROJECTION_COMPLETE = "ProjectionComplete"
    MANAGED_WRITER_HANDOFF_PENDING = "ManagedWriterHandoffPending"
    INITIALIZATION_GUARD_ACTIVE = "InitializationGuardActive"
    VALIDATED = "Validated"
    WORKER_ROLLOUT_PENDING = "WorkerRolloutPending"
    IDLE = "Idle"
    GUARD_ACKNOWLEDGED = "GuardAcknowledged"
    REQUEST_REJECTED = "RequestRejected"
    MAINTENANCE_BLOCKED = "MaintenanceBlocked"

    NODE_PENDING = "NodePending"
    NODE_MISSING = "NodeMissing"
    NODE_REPLACED = "NodeReplaced"
    NODE_OCCUPIED = "NodeOccupied"
    NODE_NAME_INVALID = "NodeNameInvalid"
    IDENTITY_INVALID = "PhysicalIdentityInvalid"
    IDENTITY_CHANGED = "PhysicalIdentityChanged"
    IDENTITY_DUPLICATE = "PhysicalIdentityDuplicate"
    OUTSIDE_FLEET = "OutsideFleet"
    SPEC_INVALID = "SpecInvalid"
    LABELS_MISSING = "RequiredLabelsMissing"
    LABELS_DISAGREE = "LegacyTopologyDisagrees"
    RECLASSIFICATION = "ReclassificationNotApproved"
    TOPOLOGY_INCOMPLETE = "TopologyIncomplete"
    TOPOLOGY_CONFLICT = "TopologyConflict"
    SECRET_MISSING = "SecretMissing"  # noqa: S105  a reason
    MATERIAL_INVALID = "WorkerMaterialInvalid"


@dataclass(frozen=True, slots=True)
class Finding:
    """One unmet requirement; `message` names the objects and says what ends it."""

    reason: Reason
    message: str

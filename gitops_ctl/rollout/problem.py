"""Why a rollout cannot be planned: typed, so that nothing is ever decided by the text of a message (rollouts.md, section 9.2)."""

import enum
from dataclasses import dataclass


class Reason(enum.StrEnum):
    """One word for each way in which planning fails."""

    CONTROL_NOT_NEUTRAL = "ControlNotNeutral"
    POLICY_INVALID = "PolicyInvalid"
    POLICY_UNBOUND = "PolicyUnbound"
    WORKLOAD_POLICY_UNSUPPORTED = "WorkloadPolicyUnsupported"
    STRATEGY_UNSUPPORTED = "StrategyUnsupported"
    SOURCE_KIND_UNSUPPORTED = "SourceKindUnsupported"
    SELECTOR_INVALID = "SelectorInvalid"
    NO_TARGETS = "NoTargets"
    TOO_MANY_TARGETS = "TooManyTargets"
    BUDGET_KEY_UNKNOWN = "BudgetKeyUnknown"
    CANARIES_INVALID = "CanariesInvalid"
    SOURCES_INVALID = "SourcesInvalid"
    SOURCE_SECRET_INVALID = "SourceSecretInvalid"  # noqa: S105  a reason
    SOURCE_AMBIGUOUS = "SourceAmbiguous"
    DEVICE_UNREADABLE = "DeviceUnreadable"
    OUTSIDE_FLEET = "OutsideFleet"
    RETIRED = "DeviceRetired"
    DRIVER_UNSUPPORTED = "DriverUnsupported"
    CRITICAL_SERVICE_PROTECTED = "CriticalServiceProtected"
    SINGLETON_PATH_PROTECTED = "SingletonPathProtected"
    IDENTITY_MISSING = "IdentityMissing"
    PROJECTION_MISSING = "ProjectionMissing"
    NODE_MISSING = "NodeMissing"
    NODE_BINDING = "NodeBindingMismatch"
    WORKER_PROTOCOL = "WorkerProtocolPending"
    INITIALIZATION_GUARD = "InitializationGuardActive"
    PHASE_NOT_READY = "DeviceNotReady"
    CONDITION_NOT_TRUE = "ConditionNotTrue"
    WORKER_REVISION = "WorkerRevisionUnproven"
    NODE_NOT_READY = "NodeNotReady"
    MANAGED_WRITER = "ManagedWriterBehind"
    HEALTH_NOT_FRESH = "HealthNotFresh"
    LABELS_DIFFER = "ProjectedLabelsDiffer"
    PHYSICAL_IDENTITY = "PhysicalIdentityMismatch"
    NETWORK_GATE = "NetworkGate"
    IMAGE_FAMILY = "ImageFamilyMismatch"
    LABEL_MISSING = "RequiredLabelMissing"
    CLAIM_HISTORY_LOST = "ClaimHistoryLost"
    IDENTITY_REPEATED = "PhysicalIdentityRepeated"
    CHILD_NAME_REPEATED = "ChildNameRepeated"
    FLEET_INCOMPLETE = "FleetIncomplete"
    PLAN_TOO_LARGE = "PlanTooLarge"


HELD: frozenset[Reason] = frozenset(
    {Reason.WORKLOAD_POLICY_UNSUPPORTED, Reason.STRATEGY_UNSUPPORTED, Reason.SOURCE_KIND_UNSUPPORTED}
)
"""Plans that this version does not run: the object is held, planning never starts."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a rollout from being planned.

    Attributes:
        message: what, where and with which numbers; it never carries a secret.
        device: `namespace/name` of the device that is to blame, "" when the plan or the policy is.
        check: the word of the check that failed inside the reason, such as `EvidenceStale`; "" when the reason says it all.
    """

    reason: Reason
    message: str
    device: str = ""
    check: str = ""

    @property
    def is_deferred(self) -> bool:
        """Whether it ends by itself soon, so that planning waits instead of failing."""
        return self.reason is Reason.INITIALIZATION_GUARD

    def __str__(self) -> str:
        where = f"{self.device}: " if self.device else ""
        word = f"{self.reason}/{self.check}" if self.check else f"{self.reason}"
        return f"{where}{self.message} ({word})"

"""Records of a workload drain on a leaf (rollouts.md, section 14).

No drain is run.  The records are decoded, judged and kept, so that stored leaves stay readable and block their device.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api.fields import UNIQUE, Digest, Keyed, Timestamp
from gitops_ctl.api.model import Transition, kept, never_lower, rule
from gitops_ctl.api.rolloutfields import (
    Epoch,
    NameText,
    Part,
    Reason,
    ReservationId,
    Revision,
    SessionUuid,
    ShortMessage,
    Uid,
    in_order,
)

DrainProtocol = Literal["pdb-drain-v1"]
DrainState = Literal["Preparing", "Guarded", "Evicting", "Drained", "Promoting", "Promoted", "Recovering", "Settled"]
PodPhase = Literal[
    "Selected", "Protected", "EvictionRequested", "TerminationObserved", "DeviceClean", "Released", "Complete"
]
_NEXT_STATES: Final = {
    "Preparing": ("Guarded", "Recovering"),
    "Guarded": ("Evicting", "Recovering"),
    "Evicting": ("Drained", "Recovering"),
    "Drained": ("Promoting", "Recovering"),
    "Promoting": ("Promoted", "Recovering"),
    "Promoted": ("Recovering",),
    "Recovering": ("Settled",),
}
_NEXT_PHASES: Final = {
    "Selected": ("Protected", "Complete"),
    "Protected": ("EvictionRequested", "TerminationObserved", "Released"),
    "EvictionRequested": ("TerminationObserved",),
    "TerminationObserved": ("DeviceClean",),
    "DeviceClean": ("Released",),
    "Released": ("Complete",),
}


def _machine(member: str, following: dict[str, tuple[str, ...]], message: str) -> Transition:
    steps = (
        f"(oldSelf.{member} == '{before}' && self.{member} in {list(after)})" for before, after in following.items()
    )
    return Transition(f"self.{member} == oldSelf.{member} || " + " || ".join(steps), message)


def _same(*members: str) -> str:
    return " && ".join(f"self.{member} == oldSelf.{member}" for member in members)


class NativeObject(Part):
    """An exact object of the API server."""

    api_version: Annotated[str, Field(min_length=1, max_length=64)]
    kind: Annotated[str, Field(min_length=1, max_length=64)]
    namespace: Annotated[str, Field(min_length=1, max_length=63)]
    name: NameText
    uid: Uid
    generation: Epoch


_Number = Annotated[int, Field(ge=0, le=1_000_000)]
_Positive = Annotated[int, Field(ge=1, le=1_000_000)]


class DrainBudget(NativeObject):
    """The PodDisruptionBudget of a Pod, as it was when the Pod was selected."""

    observed_generation: Epoch
    current_healthy: _Positive
    desired_healthy: _Number
    expected_pods: _Positive
    disruptions_allowed: _Positive

    @rule("self.observedGeneration == self.generation", message="the status of the budget must be of its generation")
    def _is_current(self) -> bool:
        return self.observed_generation == self.generation

    @rule(
        "self.expectedPods >= self.currentHealthy && self.currentHealthy >= self.desiredHealthy",
        message="the counts of the budget contradict each other",
    )
    def _counts_right(self) -> bool:
        return self.expected_pods >= self.current_healthy >= self.desired_healthy


class DrainPod(Part):
    """One Pod of a drain."""

    namespace: Annotated[str, Field(min_length=1, max_length=63)]
    name: NameText
    uid: Uid
    eligibility_hash: Digest
    placement_hash: Digest | None = None
    controller: NativeObject
    workload_controller: NativeObject | None = None
    pdbs: Annotated[tuple[DrainBudget, ...], Field(min_length=1, max_length=1), Keyed("uid")]
    termination_grace_period_seconds: Annotated[int, Field(ge=1, le=600)]
    phase: PodPhase
    protected_at: Timestamp | None = None
    eviction_requested_at: Timestamp | None = None
    deletion_observed_at: Timestamp | None = None
    deletion_observed_inventory_revision: Revision | None = None
    device_clean_at: Timestamp | None = None
    released_at: Timestamp | None = None
    device_clean_inventory_revision: Epoch | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        _machine("phase", _NEXT_PHASES, "the phase of a Pod must neither go back nor skip its evidence"),
        Transition(
            "self.eligibilityHash == oldSelf.eligibilityHash && has(self.placementHash) == has(oldSelf.placementHash)"
            " && (!has(self.placementHash) || self.placementHash == oldSelf.placementHash)",
            "what a Pod was selected by must not change",
        ),
        kept("protectedAt"),
        kept("evictionRequestedAt"),
        kept("deletionObservedAt"),
        kept("deletionObservedInventoryRevision"),
        kept("deviceCleanAt"),
        kept("releasedAt"),
    )

    @rule(
        "!has(self.deviceCleanAt) || (has(self.deviceCleanInventoryRevision) && self.deviceCleanInventoryRevision > "
        "(has(self.deletionObservedInventoryRevision) ? self.deletionObservedInventoryRevision : 0))",
        message="a clean device needs an inventory that is newer than the one at the termination",
    )
    def _was_looked_at_again(self) -> bool:
        if self.device_clean_at is None:
            return True
        return (self.device_clean_inventory_revision or 0) > (self.deletion_observed_inventory_revision or 0)


class ManagerDrain(Part):
    """The manager's side of a drain."""

    protocol_version: DrainProtocol
    state: DrainState
    session_token: SessionUuid
    reservation_id: ReservationId
    policy_epoch: Epoch
    control_revision: Revision
    node_uid: Uid
    node_unschedulable_before: bool
    maintenance_taint_present_before: bool
    started_at: Timestamp
    drain_deadline: Timestamp
    recovery_deadline: Timestamp | None = None
    updated_at: Timestamp
    pods: Annotated[tuple[DrainPod, ...], Field(max_length=32), Keyed("uid")] = ()

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        _machine("state", _NEXT_STATES, "a drain must neither go back nor skip its recovery"),
        Transition(
            _same(
                "protocolVersion",
                "sessionToken",
                "reservationID",
                "policyEpoch",
                "nodeUID",
                "nodeUnschedulableBefore",
                "maintenanceTaintPresentBefore",
                "startedAt",
                "drainDeadline",
            ),
            "what a drain is about must not change",
        ),
        never_lower("controlRevision"),
        Transition(
            "!has(oldSelf.recoveryDeadline) || (has(self.recoveryDeadline) && (self.recoveryDeadline == "
            "oldSelf.recoveryDeadline || (timestamp(self.recoveryDeadline) > timestamp(oldSelf.recoveryDeadline) && "
            "oldSelf.state == 'Recovering' && self.state == 'Recovering' && "
            "self.controlRevision > oldSelf.controlRevision)))",
            "recoveryDeadline is extended only while Recovering and with a larger control revision",
        ),
        Transition(
            "(has(self.pods) ? self.pods.size() : 0) == (has(oldSelf.pods) ? oldSelf.pods.size() : 0) && "
            "(!has(oldSelf.pods) || oldSelf.pods.all(old, self.pods.exists(new, new.uid == old.uid)))",
            "the Pods of a drain are those that it was published with",
        ),
    )

    @rule(
        "timestamp(self.drainDeadline) > timestamp(self.startedAt)",
        message="drainDeadline must be later than startedAt",
    )
    def _has_time(self) -> bool:
        return in_order(self.started_at, self.drain_deadline, strictly=True)

    @rule(
        "has(self.recoveryDeadline) == (self.state in ['Recovering', 'Settled'])",
        message="recoveryDeadline is needed in Recovering and Settled, and in no other state",
    )
    def _recovers_in_time(self) -> bool:
        return (self.recovery_deadline is not None) == (self.state in ("Recovering", "Settled"))


class WorkerDrain(Part):
    """The worker's side of a drain: what runs on the device."""

    protocol_version: DrainProtocol
    observed_session_token: SessionUuid
    observed_policy_epoch: Epoch
    observed_control_revision: Revision
    observed_worker_config_revision: Digest
    observed_worker_pod_uid: Annotated[str, Field(max_length=128)] | None = None
    inventory_revision: Epoch
    inventory_observed_at: Timestamp
    inventory_complete: bool
    remaining_authorized_pod_uids: Annotated[tuple[Uid, ...], Field(max_length=32), UNIQUE] = ()
    foreign_device_workload_count: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    unknown_device_workload_count: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    updated_at: Timestamp
    reason: Reason | None = None
    message: ShortMessage | None = None

    cel_transitions: ClassVar[tuple[Transition, ...]] = (
        Transition(
            "self == oldSelf || self.inventoryRevision > oldSelf.inventoryRevision",
            "a change of the inventory needs a larger inventoryRevision",
        ),
        Transition(
            _same("protocolVersion", "observedSessionToken", "observedPolicyEpoch"),
            "the session of the inventory must not change",
        ),
        never_lower("observedControlRevision"),
    )

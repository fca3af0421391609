"""Phase and conditions of a device (rollouts.md, section 5.3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import Condition, Status, condition_of
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.projection import Projection
from gitops_ctl.topology.findings import Finding, Reason
from gitops_ctl.topology.identity_plan import agreement_problem
from gitops_ctl.topology.node_plan import is_bound, is_guarded, is_projected, writer_problem

CONFLICTS: Final = (Reason.LABELS_DISAGREE, Reason.RECLASSIFICATION)
"""What makes a projection conflicting instead of incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """What one pass found about identity and topology of a device.

    Attributes:
        identity: why identity or Node cannot be used.
        problem: why the labels cannot be projected.
        projection: what has to stand on the Node; None with a problem.
        projected_at: when the projection in force was recorded; None before.
    """

    device: JsonObject
    node: JsonObject | None
    identity: Finding | None
    problem: Finding | None
    projection: Projection | None
    projected_at: datetime | None

    @property
    def is_identified(self) -> bool:
        """Whether Node and device are bound to each other, on both sides."""
        recorded = text_at(self.device, "status", "nodeIdentity", "nodeUID")
        return self.identity is None and self.node is not None and bool(recorded) and is_bound(self.device, self.node)

    def guard_problem(self) -> tuple[Reason, str]:
        """Why the guard has to stand; an empty text when it may go."""
        guarded = Reason.INITIALIZATION_GUARD_ACTIVE
        found = self.identity or self.problem
        if found is not None or self.node is None or self.projection is None or not self.is_identified:
            return guarded, found.message if found is not None else "the Node is not bound yet"
        if not is_projected(self.node, self.projection):
            return guarded, "the projection is being written"
        if why := writer_problem(self.node, projected_at=self.projected_at):
            return Reason.MANAGED_WRITER_HANDOFF_PENDING, why
        return guarded, agreement_problem(self.device, self.node)


def identity_condition(topology: Topology) -> Condition:
    """NodeIdentityReady."""
    if topology.identity is not None:
        return Condition(names.NODE_IDENTITY_READY, "False", topology.identity.reason, topology.identity.message)
    if not topology.is_identified:
        return Condition(names.NODE_IDENTITY_READY, "False", Reason.NODE_PENDING, "the Node is not bound yet")
    return Condition(
        names.NODE_IDENTITY_READY, "True", Reason.UID_BOUND, "Node name and UID are bound to this CiscoDevice"
    )


def topology_conditions(topology: Topology) -> tuple[Condition, Condition, Condition]:
    """TopologyReady, TopologyIncomplete and TopologyConflict."""
    complete = Reason.PROJECTION_COMPLETE
    problem = topology.problem
    is_conflict = problem is not None and problem.reason in CONFLICTS
    incomplete = Condition(names.TOPOLOGY_INCOMPLETE, "False", complete, "every required topology label is there")
    conflict = Condition(names.TOPOLOGY_CONFLICT, "False", complete, "nothing contradicts the topology labels")
    if problem is not None and is_conflict:
        conflict = Condition(names.TOPOLOGY_CONFLICT, "True", problem.reason, problem.message)
    elif problem is not None:
        incomplete = Condition(names.TOPOLOGY_INCOMPLETE, "True", problem.reason, problem.message)
    return _ready(topology, is_conflict=is_conflict), incomplete, conflict


def _ready(topology: Topology, *, is_conflict: bool) -> Condition:
    if topology.problem is not None:
        reason = Reason.TOPOLOGY_CONFLICT if is_conflict else Reason.TOPOLOGY_INCOMPLETE
        return Condition(names.TOPOLOGY_READY, "False", reason, topology.problem.message)
    reason, why = topology.guard_problem()
    if why:
        return Condition(names.TOPOLOGY_READY, "False", reason, why)
    if topology.node is not None and is_guarded(topology.node):
        return Condition(names.TOPOLOGY_READY, "False", reason, "the initialisation guard is being taken away")
    said = "the required topology is projected, and the Node reports the declared chassis"
    return Condition(names.TOPOLOGY_READY, "True", Reason.PROJECTION_COMPLETE, said)


def phase_of(device: JsonObject, topology: Topology, conditions: tuple[Condition, ...]) -> str:
    """Deleting, Error (somebody has to act), Pending (no Node yet), Provisioning (guarded), Ready."""
    if text_at(device, "metadata", "deletionTimestamp"):
        return "Deleting"
    if topology.identity is not None or topology.problem is not None:
        return "Error"
    if not topology.is_identified:
        return "Pending"
    settled = {one.type for one in conditions if one.status == "True"}
    return "Ready" if {names.NODE_IDENTITY_READY, names.TOPOLOGY_READY} <= settled else "Provisioning"


def kept_condition(device: JsonObject, kind: str) -> Condition | None:
    """The condition as it is stored, for what could not be checked now; None when there is none."""
    found = condition_of(object_at(device, "status"), kind)
    if found is None:
        return None
    words: dict[str, Status] = {"True": "True", "False": "False"}
    word = words.get(text_at(found, "status"), "Unknown")
    return Condition(kind, word, text_at(found, "reason"), text_at(found, "message"))

"""The Node of a device as the fleet sees it (rollouts.md, sections 6, 15 and 16).  Reading accepts every tree, as for devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, objects_at
from gitops_ctl.fleet.names import APP_INVENTORY, MANAGED_WRITER, NO_SCHEDULE, UNINITIALIZED
from gitops_ctl.fleet.trees import moment_at, text_of, texts_at


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """One condition; a zero time of the server counts as none."""

    status: str
    reason: str
    message: str
    heartbeat: datetime | None
    transition: datetime | None


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One Node.  `kernel_version` is the version that the device runs, as the node plane reports it."""

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: NodeCondition | None
    managed_writer: NodeCondition | None
    app_inventory: NodeCondition | None
    machine_id: str
    system_uuid: str
    kernel_version: str
    deleting: bool

    @property
    def has_initialisation_guard(self) -> bool:
        """Whether the guard of a Node that is not projected yet is up, whatever its value."""
        return any(taint.key == UNINITIALIZED and taint.effect == NO_SCHEDULE for taint in self.taints)

    def taint(self, key: str) -> Taint | None:
        """The first taint with that key."""
        return next((taint for taint in self.taints if taint.key == key), None)


def node_of(tree: JsonObject) -> NodeSeen:
    """Read a Node."""
    meta, spec, status = object_at(tree, "metadata"), object_at(tree, "spec"), object_at(tree, "status")
    info = object_at(status, "nodeInfo")
    conditions = {text_of(item, "type"): item for item in objects_at(status, "conditions")}
    return NodeSeen(
        name=text_of(meta, "name"),
        uid=text_of(meta, "uid"),
        resource_version=text_of(meta, "resourceVersion"),
        labels=texts_at(meta, "labels"),
        annotations=texts_at(meta, "annotations"),
        taints=tuple(
            Taint(text_of(item, "key"), text_of(item, "value"), text_of(item, "effect"))
            for item in objects_at(spec, "taints")
        ),
        unschedulable=bool_at(spec, "unschedulable"),
        ready=_condition(conditions.get("Ready")),
        managed_writer=_condition(conditions.get(MANAGED_WRITER)),
        app_inventory=_condition(conditions.get(APP_INVENTORY)),
        machine_id=text_of(info, "machineID"),
        system_uuid=text_of(info, "systemUUID"),
        kernel_version=text_of(info, "kernelVersion"),
        deleting="deletionTimestamp" in meta,
    )


def _condition(tree: JsonObject | None) -> NodeCondition | None:
    if tree is None:
        return None
    return NodeCondition(
        text_of(tree, "status"),
        text_of(tree, "reason"),
        text_of(tree, "message"),
        _not_zero(moment_at(tree, "lastHeartbeatTime")),
        _not_zero(moment_at(tree, "lastTransitionTime")),
    )


def _not_zero(moment: datetime | None) -> datetime | None:
    return None if moment is None or moment.year <= 1 else moment

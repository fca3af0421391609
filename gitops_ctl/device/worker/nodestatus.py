"""The status of a device's Node as the node plane writes it (rollouts.md, sections 15 to 17.1).

Pure.  The plane runs no Pods, so it offers none: `pods: 0`.  A heartbeat is the time of a look at the device; a Node whose device does not
answer is not Ready, and keeps the identity that was seen last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, objects_at, text_at
from gitops_ctl.device.operational import Apps, InstallState, Platform, Seen
from gitops_ctl.fleet import names

_LONGEST: Final = 256
_SHOWN: Final = 8
_INFO: Final = ("machineID", "systemUUID", "kernelVersion")


@dataclass(frozen=True, slots=True)
class NodeLook:
    """One look at a device; `why` says why there was none, empty when there was."""

    platform: Seen[Platform]
    install: Seen[InstallState]
    apps: Seen[Apps]
    why: str = ""


def failed_look(why: str) -> NodeLook:
    """A look that gave nothing."""
    gap = (why,)
    return NodeLook(Seen(Platform(), gap), Seen(InstallState(), gap), Seen(Apps(), gap), why)


def writer_problem(node: JsonObject, *, device_uid: str, pod_uid: str) -> str:
    """Why this worker may not write the Node yet; empty when it may."""
    annotations = object_at(node, "metadata", "annotations")
    if text_at(annotations, names.DEVICE_UID) != device_uid:
        return "the Node is not bound to this device"
    if text_at(annotations, names.APP_WORKER_POD_UID) != pod_uid:
        return "the Node is not bound to this worker's Pod yet"
    return ""


def node_tree(node: JsonObject, look: NodeLook, *, revision: str, now: datetime) -> JsonObject:
    """What is applied to the status of the Node `node`, as it is now."""
    old = {text_at(one, "type"): one for one in objects_at(node, "status", "conditions")}
    conditions = [
        _condition(old.get(kind, {}), kind, *said, now=now)
        for kind, said in (
            ("Ready", _ready(look)),
            (names.MANAGED_WRITER, (True, names.MANAGED_WRITER_REASON, "this worker writes the status of the Node")),
            (names.APP_INVENTORY, _inventory(look.apps)),
        )
    ]
    metadata = object_at(node, "metadata")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": text_at(metadata, "name"),
            "uid": text_at(metadata, "uid"),
            "annotations": {names.WORKER_OBSERVED_REVISION: revision},
        },
        "status": {
            "capacity": {"pods": "0"},
            "allocatable": {"pods": "0"},
            "nodeInfo": _info(object_at(node, "status", "nodeInfo"), look),
            "conditions": conditions,
        },
    }


def _ready(look: NodeLook) -> tuple[bool, str, str]:
    if look.why:
        return False, "DeviceUnreachable", look.why
    if not look.platform.value.serial:
        return (
            False,
            "IdentityUnknown",
            look.platform.why or "the device does not name the serial number of its chassis",
        )
    return True, "DeviceReachable", "the device answers over NETCONF"


def _inventory(apps: Seen[Apps]) -> tuple[bool, str, str]:
    """Every application is a foreign one: nothing here starts any."""
    if not apps.complete:
        return False, "Incomplete", apps.why
    found = sorted({*apps.value.configured, *(name for name, _ in apps.value.present)})
    if not found:
        return True, "Empty", "the device has no application"
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return True, "Present", f"{len(found)} on the device: {', '.join(found[:_SHOWN])}{more}"


def _condition(old: JsonObject, kind: str, holds: bool, reason: str, message: str, *, now: datetime) -> JsonObject:
    at, status = to_rfc3339(now), "True" if holds else "False"
    since = text_at(old, "lastTransitionTime") if text_at(old, "status") == status else ""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:_LONGEST],
        "lastHeartbeatTime": at,
        "lastTransitionTime": since or at,
    }


def _info(old: JsonObject, look: NodeLook) -> JsonObject:
    """What was seen, and for what was not, what was seen before."""
    serial = look.platform.value.serial
    seen = {"machineID": serial, "systemUUID": serial, "kernelVersion": look.install.value.running}
    kept: Iterable[tuple[str, JsonValue]] = ((name, seen[name] or text_at(old, name)) for name in _INFO)
    return {name: value for name, value in kept if value}

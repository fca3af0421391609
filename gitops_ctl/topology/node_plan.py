"""The Node of a device: made, adopted, projected, bound and guarded (rollouts.md, sections 6.1, 6.2 and 16).

Whatever is not certain leaves the Node alone or puts the guard on it.  A Node is ours when it carries the UID of the device; a foreign one is
adopted only when the device names its exact UID.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.projection import Projection, ProjectionProblem, projected_labels
from gitops_ctl.fleet.trees import moment_at
from gitops_ctl.topology.findings import Finding, Reason
from gitops_ctl.topology.identity_plan import node_name_of
from gitops_ctl.topology.merge import changes
from gitops_ctl.topology.taints import GUARD, MAINTENANCE, Taint, has_taint, managed_text, static_taints, taints_after


@dataclass(frozen=True, slots=True)
class Worker:
    """One plane of the worker of a device: its account, and its Pod once exactly one is ready."""

    username: str
    pod_name: str = ""
    pod_uid: str = ""


def ownership_problem(device: JsonObject, node: JsonObject | None, *, is_others: bool) -> Finding | None:
    """Why the Node under the device's name may not be used; None when it is absent and may be made, ours, or may be adopted.

    Args:
        is_others: whether the Node is bound to another device that exists: that one is never adopted.
    """
    recorded = text_at(device, "status", "nodeIdentity", "nodeUID")
    name = node_name_of(device)
    if node is None:
        if not recorded:
            return None
        return Finding(
            Reason.NODE_MISSING,
            f"Node {name} ({recorded}) is bound to this device and does not exist any more: "
            "delete the CiscoDevice and let it be made again",
        )
    uid = text_at(node, "metadata", "uid")
    if recorded and recorded != uid:
        return Finding(
            Reason.NODE_REPLACED,
            f"Node {name} is {uid}, and {recorded} is bound to this device: delete the CiscoDevice and let it be made again",
        )
    return None if is_ours(device, node) else _adoption_problem(device, node, is_others=is_others)


def is_ours(device: JsonObject, node: JsonObject) -> bool:
    """Whether the Node carries the device's UID, or is the one that was recorded for it, whatever it carries now."""
    recorded = text_at(device, "status", "nodeIdentity", "nodeUID")
    return _names_device(device, node) or (bool(recorded) and recorded == text_at(node, "metadata", "uid"))


def _names_device(device: JsonObject, node: JsonObject) -> bool:
    return _annotations(node).get(names.DEVICE_UID) == text_at(device, "metadata", "uid")


def _adoption_problem(device: JsonObject, node: JsonObject, *, is_others: bool) -> Finding | None:
    name, uid = text_at(node, "metadata", "name"), text_at(node, "metadata", "uid")
    if is_others:
        other = f"{_annotations(node).get(names.DEVICE_NAMESPACE)}/{_annotations(node).get(names.DEVICE_NAME)}"
        return Finding(Reason.NODE_OCCUPIED, f"Node {name} is that of CiscoDevice {other}: set spec.nodeName")
    if _annotations(device).get(names.ADOPT_NODE_UID) != uid:
        return Finding(
            Reason.NODE_OCCUPIED,
            f"Node {name} was not made for this device: to adopt it, annotate the device with {names.ADOPT_NODE_UID}: {uid}",
        )
    if _labels(node).get(names.NODE_TYPE) != names.TYPE_VIRTUAL:
        return Finding(
            Reason.NODE_OCCUPIED,
            f"Node {name} lacks the label {names.NODE_TYPE}={names.TYPE_VIRTUAL}, so it is no Node that may be adopted",
        )
    return None


def projection_of(device: JsonObject, policy: FleetPolicy) -> tuple[Projection | None, Finding | None]:
    """The projection that has to be in force, or why there is none: labels that lack or disagree, or a change that nobody approved."""
    found = projected_labels(device_of(device), policy)
    if isinstance(found, ProjectionProblem):
        return None, Finding(Reason(found.reason), found.message)
    problem = reclassification_problem(device, found)
    return (found, None) if problem is None else (None, problem)


def reclassification_problem(device: JsonObject, projection: Projection) -> Finding | None:
    """Why a projection that other programs rely on may not be replaced by this one: nobody approved to leave exactly it."""
    recorded = text_at(device, "status", "topologyProjection", "effectiveLabelHash")
    if not recorded or recorded == projection.hash:
        return None
    if lock := object_at(device, "status", "topologyLock"):
        campaign = f"{text_at(lock, 'campaignNamespace')}/{text_at(lock, 'campaignName')}"
        return Finding(
            Reason.RECLASSIFICATION,
            f"the projected labels differ from those in force ({recorded}), and campaign {campaign} holds the device: "
            "they change once it has let go",
        )
    if _annotations(device).get(names.APPROVE_RECLASSIFICATION) == recorded:
        return None
    return Finding(
        Reason.RECLASSIFICATION,
        f"the projected labels differ from those in force ({recorded}): put them back, or approve the change with "
        f"the annotation {names.APPROVE_RECLASSIFICATION}: {recorded}",
    )


def new_node(device: JsonObject, projection: Projection, *, app: Worker, network: Worker) -> JsonObject:
    """The Node to make: guarded from its first moment, and not bound to its own UID yet, which only the server knows."""
    taints = static_taints(device)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name_of(device),
            "labels": dict(projection.labels),
            "annotations": {
                **binding_of(device, app=app, network=network),
                **_projection_annotations(projection, taints),
            },
        },
        "spec": {"taints": [taint.tree() for taint in (GUARD, *taints)]},
    }


def binding_of(device: JsonObject, *, app: Worker, network: Worker) -> dict[str, str]:
    """Annotations that bind a Node to its device and the workers, without the UID of the Node."""
    metadata = object_at(device, "metadata")
    binding = {
        names.MANAGED: "true",
        names.DEVICE_NAMESPACE: text_at(metadata, "namespace"),
        names.DEVICE_NAME: text_at(metadata, "name"),
        names.DEVICE_UID: text_at(metadata, "uid"),
        names.WORKER_USERNAME: app.username,
        names.WORKER_PROTOCOL: names.PROTOCOL,
        names.APP_WORKER_USERNAME: app.username,
        names.APP_WORKER_POD_NAME: app.pod_name,
        names.APP_WORKER_POD_UID: app.pod_uid,
        names.NETWORK_WORKER_USERNAME: network.username,
        names.NETWORK_WORKER_POD_NAME: network.pod_name,
        names.NETWORK_WORKER_POD_UID: network.pod_uid,
    }
    return {key: value for key, value in binding.items() if value}


def _projection_annotations(projection: Projection, taints: tuple[Taint, ...]) -> dict[str, str]:
    return {
        names.PROJECTED_KEYS: ",".join(sorted(projection.labels)),
        names.PROJECTION_HASH: projection.hash,
        names.MANAGED_TAINTS: managed_text(taints),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWanted:
    """What the Node has to be now.

    Attributes:
        projection: None when it is not known or not approved: the labels stay as they are.
        guard, maintenance: whether these taints stand.
    """

    projection: Projection | None
    app: Worker
    network: Worker
    guard: bool
    maintenance: bool


def node_patch(device: JsonObject, node: JsonObject, wanted: NodeWanted) -> JsonObject | None:
    """The merge patch that makes the Node so, with its UID and version; None when it is so already.

    A Pod that is not known leaves the member of the binding as it was: that Pod may still be at work.
    """
    labels, annotations = dict(_labels(node)), dict(_annotations(node))
    annotations |= binding_of(device, app=wanted.app, network=wanted.network)
    annotations[names.NODE_UID] = text_at(node, "metadata", "uid")
    managed = str(_annotations(node).get(names.MANAGED_TAINTS, ""))
    taints = static_taints(device)
    annotations[names.MANAGED_TAINTS] = managed_text(taints)
    if wanted.projection is not None:
        for key in str(annotations.get(names.PROJECTED_KEYS, "")).split(","):
            labels.pop(key, None)
        labels |= wanted.projection.labels
        annotations |= _projection_annotations(wanted.projection, taints)
    guards = (*((GUARD,) if wanted.guard else ()), *((MAINTENANCE,) if wanted.maintenance else ()))
    metadata: dict[str, JsonValue] = {
        name: patch
        for name, patch in (
            ("labels", changes(_labels(node), labels)),
            ("annotations", changes(_annotations(node), annotations)),
        )
        if patch
    }
    after = taints_after(node, wanted=(*guards, *taints), managed=managed)
    body: dict[str, JsonValue] = {} if after == list(list_at(node, "spec", "taints")) else {"spec": {"taints": after}}
    if not metadata and not body:
        return None
    versions = {name: text_at(node, "metadata", name) for name in ("uid", "resourceVersion")}
    return {**body, "metadata": {**metadata, **versions}}


def is_projected(node: JsonObject, projection: Projection) -> bool:
    """Whether the Node carries exactly this projection."""
    annotations, labels = _annotations(node), _labels(node)
    return (
        annotations.get(names.PROJECTION_HASH) == projection.hash
        and annotations.get(names.PROJECTED_KEYS) == ",".join(sorted(projection.labels))
        and all(labels.get(key) == value for key, value in projection.labels.items())
    )


def is_bound(device: JsonObject, node: JsonObject) -> bool:
    """Whether the Node carries the device's UID and its own."""
    return _names_device(device, node) and _annotations(node).get(names.NODE_UID) == text_at(node, "metadata", "uid")


def writer_problem(node: JsonObject, *, projected_at: datetime | None) -> str:
    """Why the managed writer has not answered after the projection; empty when it has."""
    if projected_at is None:
        return "the projection is not recorded yet"
    condition = condition_of(object_at(node, "status"), names.MANAGED_WRITER)
    if condition is None:
        return f"the Node has no condition {names.MANAGED_WRITER} yet"
    if text_at(condition, "status") != "True" or text_at(condition, "reason") != names.MANAGED_WRITER_REASON:
        return (
            f"the condition {names.MANAGED_WRITER} is {text_at(condition, 'status')} ({text_at(condition, 'reason')})"
        )
    heartbeat = moment_at(condition, "lastHeartbeatTime")
    if heartbeat is None or heartbeat < projected_at:
        return "the worker has not written the Node's status since the projection"
    return ""


def is_guarded(node: JsonObject) -> bool:
    """Whether the initialisation guard is on the Node."""
    return has_taint(node, GUARD)


def _labels(tree: JsonObject) -> Mapping[str, str]:
    return {key: str(value) for key, value in object_at(tree, "metadata", "labels").items()}


def _annotations(tree: JsonObject) -> Mapping[str, str]:
    return {key: str(value) for key, value in object_at(tree, "metadata", "annotations").items()}

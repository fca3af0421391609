"""The manager's half of a device's status, put together from what the other planners found (rollouts.md, section 5.2).

Everything of one pass goes into one write, so that the hash in the health snapshot is that of the conditions beside it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.conditions import Condition, merge_conditions
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.evidence import Expected
from gitops_ctl.fleet.identity import canonical_identity, device_identity_hash
from gitops_ctl.topology.condition_plan import (
    Topology,
    identity_condition,
    kept_condition,
    phase_of,
    topology_conditions,
)
from gitops_ctl.topology.evidence_plan import Observed, accepted_sample, snapshot
from gitops_ctl.topology.maintenance_plan import MaintenanceStep
from gitops_ctl.topology.merge import changes
from gitops_ctl.topology.node_plan import is_bound, is_projected
from gitops_ctl.topology.revision_plan import Proof

OURS: Final = (
    *("phase", "conditions", "nodeIdentity", "topologyProjection", "healthObservation"),
    *("workerRevision", "networkWorkerRevision", "maintenanceSession"),
)
"""Members of the status that this room writes; topologyLock and retired are the campaign's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one pass found about a device.

    Attributes:
        gnoi: None when it could not be checked now.
        now: of our own clock.
        freshness_s: the limit of evidence in force.
    """

    topology: Topology
    maintenance: MaintenanceStep
    gnoi: Condition | None
    app: Proof
    network: Proof
    now: datetime
    freshness_s: int


def status_of(found: Found) -> JsonObject:
    """The members that are ours, as they have to be stored."""
    device = found.topology.device
    old = object_at(device, "status")
    conditions = tuple(_conditions(found))
    phase = phase_of(device, found.topology, conditions)
    merged: list[JsonObject] = [
        *merge_conditions(old, wanted=conditions, generation=int_at(device, "metadata", "generation"), now=found.now)
    ]
    session = found.maintenance.session or object_at(old, "maintenanceSession")
    wanted: dict[str, JsonObject] = {
        "nodeIdentity": _node_identity(found.topology),
        "topologyProjection": _projection(found),
        "healthObservation": _health(found, phase, merged),
        "workerRevision": found.app.revision,
        "networkWorkerRevision": found.network.revision,
        "maintenanceSession": session,
    }
    return {"phase": phase, "conditions": merged, **{name: value for name, value in wanted.items() if value}}


def status_patch(device: JsonObject, status: JsonObject) -> JsonObject | None:
    """The merge patch of the status subresource, bound to the version that was read; None when nothing differs."""
    old = object_at(device, "status")
    patch = changes(old, status, keep=[name for name in old if name not in OURS])
    if not patch:
        return None
    versions = {name: text_at(device, "metadata", name) for name in ("uid", "resourceVersion")}
    return {"metadata": versions, "status": patch}


def _conditions(found: Found) -> Iterable[Condition]:
    yield identity_condition(found.topology)
    yield from topology_conditions(found.topology)
    yield found.maintenance.condition
    gnoi = found.gnoi or kept_condition(found.topology.device, names.GNOI_READY)
    if gnoi is not None:
        yield gnoi


def _node_identity(topology: Topology) -> JsonObject:
    """Written once, when the Node carries both UIDs; immutable from then on."""
    stored = object_at(topology.device, "status", "nodeIdentity")
    node = topology.node
    if stored or topology.identity is not None or node is None or not is_bound(topology.device, node):
        return stored
    return {
        "nodeName": text_at(node, "metadata", "name"),
        "nodeUID": text_at(node, "metadata", "uid"),
        "deviceUID": text_at(topology.device, "metadata", "uid"),
        "physicalIdentity": canonical_identity(text_at(topology.device, "spec", "physicalIdentity")),
    }


def _projection(found: Found) -> JsonObject:
    """What stands on the Node; version and time stay while the hash does."""
    topology = found.topology
    stored = object_at(topology.device, "status", "topologyProjection")
    node, projection = topology.node, topology.projection
    if node is None or projection is None or topology.identity is not None or not is_projected(node, projection):
        return stored
    if text_at(stored, "effectiveLabelHash") == projection.hash:
        return stored
    return {
        "effectiveLabelHash": projection.hash,
        "sourceResourceVersion": text_at(topology.device, "metadata", "resourceVersion"),
        "lastSuccessfulTime": to_rfc3339(found.now),
    }


def _health(found: Found, phase: str, conditions: list[JsonObject]) -> JsonObject:
    topology = found.topology
    old = object_at(topology.device, "status", "healthObservation")
    if topology.node is None or not object_at(topology.device, "status", "nodeIdentity"):
        return old
    checked = {names.NODE_IDENTITY_READY, names.TOPOLOGY_READY, *((names.GNOI_READY,) if found.gnoi else ())}
    seen = Observed(
        phase=phase,
        conditions=conditions,
        checked=checked,
        node=topology.node,
        now=found.now,
        freshness_s=found.freshness_s,
    )
    new: dict[str, JsonValue] = dict(snapshot(old, seen))
    network = object_at(old, "network")
    accepted = accepted_sample(
        object_at(old, "acceptedNetwork"),
        network,
        expected=_expected(found),
        now=found.now,
        freshness_s=found.freshness_s,
    )
    return {**new, **{name: tree for name, tree in (("network", network), ("acceptedNetwork", accepted)) if tree}}


def _expected(found: Found) -> Expected:
    """The worker that is proven now, and the recorded chassis."""
    revision = found.network.revision if not found.network.problem else {}
    chassis = text_at(found.topology.device, "status", "nodeIdentity", "physicalIdentity")
    return Expected(
        producer_revision=text_at(revision, "observedRevision"),
        worker_pod_uid=text_at(revision, "podUID"),
        device_identity_hash=device_identity_hash(chassis) if chassis else "",
    )


def told(old: JsonObject, new: JsonObject) -> Mapping[str, tuple[str, str, str]]:
    """Conditions whose status or reason changed: type to status, reason and message."""

    def read(status: JsonObject) -> dict[str, tuple[str, str, str]]:
        conditions = status.get("conditions")
        trees = [item for item in conditions if isinstance(item, Mapping)] if isinstance(conditions, list) else []
        return {text_at(one, "type"): tuple(text_at(one, m) for m in ("status", "reason", "message")) for one in trees}  # type: ignore[misc]

    before = read(old)
    return {kind: words for kind, words in read(new).items() if words[:2] != before.get(kind, ("", "", ""))[:2]}

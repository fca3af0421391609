"""The worker's side of a maintenance session: it takes the mutation Lease and says in it what for (rollouts.md, section 13.6).

The manager guards the Node and then acknowledges in the device's status.  The Lease is let go once the outcome is resolved: an expired Lease
ends nothing, so a worker that was away takes up its own holder again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import Conflict
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.device.worker.place import Equipment, Place
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device, LeaseRef, MaintenanceSession, OperationRef, device_of
from gitops_ctl.fleet.identity import device_key, mutation_lease_name
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.trees import moment_at, texts_at
from gitops_ctl.kube.lease import micro_time

DURATION_S: Final = 24 * 3600
"""Of the Lease; renewed when a third of it is over."""
PURPOSE: Final = "SoftwareMutation"


async def ask(equipment: Equipment, place: Place, leaf: Leaf) -> MaintenanceSession | None:
    """The acknowledged session of this leaf; None while somebody else holds the Lease or the manager has not answered.

    May be called again and again: it writes only what is missing.  Call it for a Granted leaf before its first claim.

    Raises:
        GitopsError: Lease or device cannot be read or written.
    """
    device = device_of(await equipment.client.get(equipment.device_path(place.key)))
    session = device.session
    is_open = session is not None and session.phase != "Settled"
    lease = await _lease_of(equipment, place)
    if lease is None or (session is not None and is_open and session.operation.uid != leaf.uid):
        return None
    token = await _hold(equipment, lease, leaf, tokens=_Tokens(session, equipment.new_id))
    return session if token and is_answer(device, lease, leaf, token) else None


def is_answer(device: Device, lease: JsonObject, leaf: Leaf, token: str) -> bool:
    """Whether the session of the device acknowledges the request with this token, for this Lease, leaf, device and Node, and no other one."""
    session = device.session
    if session is None or not session.is_maintenance:
        return False
    namespace, name, uid = (text_at(lease, "metadata", member) for member in ("namespace", "name", "uid"))
    own = LeaseRef(namespace, name, uid, holder_of(leaf))
    node_uid = leaf.admission.node_uid if leaf.admission is not None else ""
    return (session.lease, session.session_token) == (own, token) and (
        (session.operation, session.protocol_version, session.purpose, session.device_uid)
        == (OperationRef(leaf.namespace, leaf.name, leaf.uid), names.PROTOCOL, PURPOSE, device.uid)
        and (leaf.binding.device_uid, session.node_name, session.node_uid)
        == (device.uid, leaf.binding.node_name, node_uid)
    )


async def let_go(equipment: Equipment, place: Place, leaf: Leaf) -> None:
    """Give the Lease back when this leaf holds it; call it only once the outcome is resolved.

    Raises:
        GitopsError: the Lease cannot be read or written.
    """
    lease = await _lease_of(equipment, place)
    if lease is None or text_at(lease, "spec", "holderIdentity") != holder_of(leaf):
        return
    request: dict[str, JsonValue] = {f"{names.MAINTENANCE}{member}": None for member in names.MAINTENANCE_MEMBERS}
    spec: JsonObject = {"holderIdentity": None, "acquireTime": None, "renewTime": None}
    await _write(equipment, lease, annotations=request, spec=spec)


def holder_of(leaf: Leaf) -> str:
    """As whom a leaf holds the Lease."""
    return f"{names.HOLDER_UPGRADE}{leaf.uid}"


async def _lease_of(equipment: Equipment, place: Place) -> JsonObject | None:
    """The canonical Lease, or the one that has the device's key and this purpose under another name."""
    namespace, name = place.key.namespace, place.key.name
    path = f"/apis/coordination.k8s.io/v1/namespaces/{equipment.lease_namespace}/leases"
    found = await equipment.client.find(f"{path}/{mutation_lease_name(namespace, name)}")
    if found is not None:
        return found
    selector = f"{names.LEASE_DEVICE}={device_key(namespace, name)}"
    others = (await equipment.client.list_all(path, label_selector=selector)).items
    fitting = (
        lease
        for lease in others
        if text_at(lease, "metadata", "annotations", names.LEASE_PURPOSE) == names.LEASE_MUTATION
        and text_at(lease, "metadata", "name").startswith(device_key(namespace, name))
    )
    return next(fitting, None)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Which token a request has: that of the session that is open, else the one it has, unless that is used up."""

    session: MaintenanceSession | None
    new: Callable[[], str]

    def of(self, asked: str) -> str:
        session = self.session
        if session is not None and session.phase != "Settled":
            return session.session_token
        used = session.session_token if session is not None else ""
        return asked if asked and asked != used else self.new()


async def _hold(equipment: Equipment, lease: JsonObject, leaf: Leaf, *, tokens: _Tokens) -> str:
    """Hold the Lease with the request of this leaf; the token of the request, empty when the Lease is not held now."""
    holder = text_at(lease, "spec", "holderIdentity")
    if holder not in ("", holder_of(leaf)):
        if not await _is_forgotten(equipment, lease, holder):
            return ""
        holder = ""
    now = equipment.clock.wall()
    asked = texts_at(lease, "metadata", "annotations")
    token = tokens.of(asked.get(f"{names.MAINTENANCE}session-token", "") if holder else "")
    wanted = _request(leaf, token, asked.get(f"{names.MAINTENANCE}requested-at", "") if holder else "", now=now)
    if holder and wanted.items() <= asked.items() and not _is_due(lease, now=now):
        return token
    at = micro_time(now)
    spec: dict[str, JsonValue] = {
        "holderIdentity": holder_of(leaf),
        "leaseDurationSeconds": DURATION_S,
        "renewTime": at,
    }
    if not holder:
        spec["acquireTime"] = at
    try:
        await _write(equipment, lease, annotations=dict(wanted), spec=spec)
    except Conflict:
        return ""
    return token


async def _is_forgotten(equipment: Equipment, lease: JsonObject, holder: str) -> bool:
    """Whether the leaf that holds the Lease is gone: it was deleted before its worker could let go."""
    asked = texts_at(lease, "metadata", "annotations")
    namespace, name, uid = (
        asked.get(f"{names.MAINTENANCE}operation-{one}", "") for one in ("namespace", "name", "uid")
    )
    if not (namespace and name and uid) or holder != f"{names.HOLDER_UPGRADE}{uid}":
        return False
    found = await equipment.client.find(
        f"/apis/{names.OPERATIONS_GROUP}/v1alpha1/namespaces/{namespace}/iosxesoftwareupgrades/{name}"
    )
    return found is None or text_at(found, "metadata", "uid") != uid


def _request(leaf: Leaf, token: str, requested_at: str, *, now: datetime) -> dict[str, str]:
    control = leaf.admission.control_revision if leaf.admission is not None else None
    values = (
        *(names.PROTOCOL, token, requested_at or to_rfc3339(now), leaf.namespace, leaf.name, leaf.uid),
        *(str(control or 0), PURPOSE),
    )
    return {f"{names.MAINTENANCE}{name}": value for name, value in zip(names.MAINTENANCE_MEMBERS, values, strict=True)}


def _is_due(lease: JsonObject, *, now: datetime) -> bool:
    renewed = moment_at(object_at(lease, "spec"), "renewTime")
    return renewed is None or not 0 <= (now - renewed).total_seconds() < DURATION_S / 3


async def _write(equipment: Equipment, lease: JsonObject, *, annotations: JsonObject, spec: JsonObject) -> None:
    """A compare-and-swap: the Lease as it was read, with these members."""
    metadata = object_at(lease, "metadata")
    bound = {member: text_at(metadata, member) for member in ("uid", "resourceVersion")}
    path = (
        f"/apis/coordination.k8s.io/v1/namespaces/{text_at(metadata, 'namespace')}/leases/{text_at(metadata, 'name')}"
    )
    body: JsonObject = {"metadata": {**bound, "annotations": annotations}, "spec": spec}
    await equipment.client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER)

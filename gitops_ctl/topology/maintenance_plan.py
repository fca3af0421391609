"""Maintenance of a device: a worker asks through the mutation Lease, the manager guards the Node and then acknowledges (rollouts.md, 13.6).

Any disruptive holder puts the guard up, also with a bad request.  A session ends when its outcome is resolved and the Lease was let go: an
expired Lease ends nothing, because the device may still be changing.  A leaf that was stopped before its first claim has no outcome to wait
for, as long as the worker's journal can prove that there was no claim (13.9).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.clock import from_rfc3339, to_rfc3339
from gitops_ctl.core.conditions import Condition, is_true
from gitops_ctl.core.jsonvalue import JsonObject, int_at, list_at, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key
from gitops_ctl.topology.findings import Reason

_TERMINAL: Final = frozenset(
    {
        *("Failed", "PreflightFailed", "ValidationFailed", "RolledBack", "RebootTimeout", "Cancelled"),
        *("Succeeded", "Prepared", "PreparedInvalidated", "StagedForNextBoot"),
    }
)
_DISRUPTIVE: Final = (names.HOLDER_UPGRADE, names.HOLDER_DRAIN, names.HOLDER_WRITE)
_TOKEN: Final = re.compile(r"[A-Za-z0-9-]{16,64}")
_REVISION: Final = re.compile(r"[0-9]{1,18}")
_SOFTWARE: Final = "SoftwareMutation"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSeen:
    """What a plan is made from.

    Attributes:
        lease: the mutation Lease of the device; None when there is none.
        leaf: the operation that the Lease, or else the session, names, read now; None when it does not exist.
        guarded: whether the maintenance taint is on the Node.
    """

    device: JsonObject
    node_name: str
    node_uid: str
    guarded: bool
    lease: JsonObject | None
    leaf: JsonObject | None
    now: datetime


@dataclass(frozen=True, slots=True)
class MaintenanceStep:
    """What follows: whether the guard stands, the session to store (None: as it is), and MaintenanceReady."""

    guard: bool
    session: JsonObject | None
    condition: Condition


@dataclass(frozen=True, slots=True)
class Operation:
    """The leaf that a Lease or a session names."""

    namespace: str
    name: str
    uid: str


def holder_of(lease: JsonObject | None) -> str:
    """Who holds the Lease; empty when nobody does."""
    return text_at(lease or {}, "spec", "holderIdentity")


def is_disruptive(holder: str) -> bool:
    """Whether that holder may change the device."""
    return holder.startswith(_DISRUPTIVE)


def is_open(session: JsonObject) -> bool:
    """Whether there is a session that is not settled."""
    return bool(session) and text_at(session, "phase") != "Settled"


def operation_to_read(device: JsonObject, lease: JsonObject | None) -> Operation | None:
    """The leaf that has to be looked at before a plan: that of the open session, else that of the request."""
    session = object_at(device, "status", "maintenanceSession")
    if is_open(session):
        named = object_at(session, "operation")
        return Operation(*(text_at(named, member) for member in ("namespace", "name", "uid")))
    if lease is None or not holder_of(lease).startswith(names.HOLDER_UPGRADE):
        return None
    asked = request_of(lease)
    found = Operation(*(asked.get(f"operation-{member}", "") for member in ("namespace", "name", "uid")))
    return found if found.namespace and found.name else None


def request_of(lease: JsonObject) -> Mapping[str, str]:
    """Members of the request in the Lease's annotations; those that are missing are missing here."""
    annotations = object_at(lease, "metadata", "annotations")
    found = {member: text_at(annotations, f"{names.MAINTENANCE}{member}") for member in names.MAINTENANCE_MEMBERS}
    return {member: value for member, value in found.items() if value}


def plan_maintenance(seen: MaintenanceSeen) -> MaintenanceStep:
    """The next step for one device."""
    session = object_at(seen.device, "status", "maintenanceSession")
    return _of_session(seen, session) if is_open(session) else _of_request(seen)


def _of_session(seen: MaintenanceSeen, session: JsonObject) -> MaintenanceStep:
    holder = holder_of(seen.lease)
    own = text_at(session, "lease", "holder")
    if _is_over(seen, session):
        if holder != own or _is_gone(seen, session):
            settled = {**session, "phase": "Settled", "message": "the outcome is resolved and the Lease was let go"}
            guard = holder != own and is_disruptive(holder)
            return MaintenanceStep(guard, settled, _blocked(f"the Lease is held by {holder}") if guard else _idle())
        return _acknowledged(seen, session, "the outcome is resolved; the worker still holds the Lease")
    if list_at(seen.leaf or {}, "status", "managedMutationClaims") and text_at(session, "phase") == "Acknowledged":
        session = {**session, "phase": "Active", "message": "a mutation is claimed"}
        return _acknowledged(seen, session, "a mutation is claimed")
    if holder == own:
        return _acknowledged(seen, session, "the Node is guarded for this session")
    other = f"held by {holder}" if holder else "free"
    why = f"the session of {own} has no resolved outcome, and the Lease is {other}: the session stays until it has one"
    return MaintenanceStep(guard=True, session=None, condition=_blocked(why))


def _acknowledged(seen: MaintenanceSeen, session: JsonObject, why: str) -> MaintenanceStep:
    stored = object_at(seen.device, "status", "maintenanceSession")
    said = Condition(names.MAINTENANCE_READY, "True", Reason.GUARD_ACKNOWLEDGED, why)
    return MaintenanceStep(guard=True, session=None if session == stored else session, condition=said)


def _is_over(seen: MaintenanceSeen, session: JsonObject) -> bool:
    """Whether nothing can come of the session's operation any more."""
    if _is_gone(seen, session) or seen.leaf is None:
        # A leaf goes only after it was settled; in a restored cluster it may be missing, and then the lock still stands.
        return not object_at(seen.device, "status", "topologyLock")
    return is_resolved(seen.leaf) or (_is_given_up(seen.leaf) and not _is_history_lost(seen.device))


def _is_gone(seen: MaintenanceSeen, session: JsonObject) -> bool:
    """Whether the session's operation does not exist any more: its worker has nothing left by which it could let go."""
    return seen.leaf is None or text_at(seen.leaf, "metadata", "uid") != text_at(session, "operation", "uid")


def _is_given_up(leaf: JsonObject) -> bool:
    """Whether a leaf was stopped before its first claim: a claim and a revocation are writes of one object, so none can follow."""
    status = object_at(leaf, "status")
    was_claimed = bool(list_at(status, "managedMutationClaims")) or "installCommit" in status
    return text_at(status, "managerAdmission", "state") == "Revoked" and not was_claimed


def _is_history_lost(device: JsonObject) -> bool:
    return text_at(device, "status", "workerReport", "journal", "state", default="Ready") != "Ready"


def is_resolved(leaf: JsonObject) -> bool:
    """Whether the outcome of a leaf is known for good (13.7), or was attested for."""
    status = object_at(leaf, "status")
    if text_at(status, "managerAdmission", "state") == "Settled" or "managerRecovery" in status:
        return True
    is_ended = text_at(status, "phase") in _TERMINAL and bool(text_at(status, "completionTime"))
    return is_ended and (not has_open_claim(leaf))


def has_open_claim(leaf: JsonObject) -> bool:
    """Whether a mutation was claimed and its outcome is not observed."""
    status = object_at(leaf, "status")
    return bool(list_at(status, "managedMutationClaims")) and not is_true(status, names.MUTATION_SETTLED)


def _of_request(seen: MaintenanceSeen) -> MaintenanceStep:
    holder = holder_of(seen.lease)
    if seen.lease is None or not is_disruptive(holder):
        return MaintenanceStep(guard=False, session=None, condition=_idle())
    if holder.startswith(names.HOLDER_WRITE):
        return MaintenanceStep(guard=True, session=None, condition=_blocked(f"the Lease is held by {holder}"))
    if why := _request_problem(seen, seen.lease):
        return MaintenanceStep(
            guard=True,
            session=None,
            condition=Condition(names.MAINTENANCE_READY, "False", Reason.REQUEST_REJECTED, why),
        )
    if not seen.guarded:
        return MaintenanceStep(guard=True, session=None, condition=_blocked("the guard is being put on the Node"))
    return _acknowledged(seen, _new_session(seen, seen.lease), "the Node is guarded for this session")


def _new_session(seen: MaintenanceSeen, lease: JsonObject) -> JsonObject:
    asked = request_of(lease)
    metadata = object_at(lease, "metadata")
    return {
        "phase": "Acknowledged",
        "protocolVersion": names.PROTOCOL,
        "purpose": _SOFTWARE,
        "sessionToken": asked["session-token"],
        "lease": {
            **{member: text_at(metadata, member) for member in ("namespace", "name", "uid")},
            "holder": holder_of(lease),
        },
        "operation": {member: asked[f"operation-{member}"] for member in ("namespace", "name", "uid")},
        "deviceUID": text_at(seen.device, "metadata", "uid"),
        "nodeName": seen.node_name,
        "nodeUID": seen.node_uid,
        "requestedAt": asked["requested-at"],
        "acknowledgedAt": to_rfc3339(seen.now),
        "controlRevision": int(asked["control-revision"]),
        "message": "the Node is guarded",
    }


def _request_problem(seen: MaintenanceSeen, lease: JsonObject) -> str:
    """Why the request is refused; empty when it is good.  The first of: Lease, members, leaf."""
    if why := _lease_problem(seen, lease) or _members_problem(lease) or _leaf_problem(seen, lease):
        return why
    used = text_at(seen.device, "status", "maintenanceSession", "sessionToken")
    return "session-token was used by the session before" if used == request_of(lease)["session-token"] else ""


def _lease_problem(seen: MaintenanceSeen, lease: JsonObject) -> str:
    metadata, device = object_at(lease, "metadata"), object_at(seen.device, "metadata")
    purpose = text_at(metadata, "annotations", names.LEASE_PURPOSE)
    if purpose != names.LEASE_MUTATION:
        return f"the purpose of the Lease is {purpose!r}, not {names.LEASE_MUTATION}"
    if text_at(metadata, "labels", names.LEASE_DEVICE) != device_key(
        *(text_at(device, m) for m in ("namespace", "name"))
    ):
        return "the Lease is that of another device"
    if holder_of(lease).startswith(names.HOLDER_DRAIN):
        return "drains are not supported: only software-upgrade/<leaf UID> may hold the Lease"
    if text_at(metadata, "annotations", names.DEVICE_UID) not in ("", text_at(device, "uid")):
        return "the Lease is bound to another object of this name"
    duration_s = int_at(lease, "spec", "leaseDurationSeconds")
    if not 0 < duration_s <= names.LONGEST_LEASE_S:
        return f"leaseDurationSeconds is {duration_s}, and 1 to {names.LONGEST_LEASE_S} are allowed"
    return ""


def _members_problem(lease: JsonObject) -> str:
    asked = request_of(lease)
    if missing := [member for member in names.MAINTENANCE_MEMBERS if member not in asked]:
        return f"the request lacks {', '.join(missing)}"
    if asked["request-version"] != names.PROTOCOL or asked["purpose"] != _SOFTWARE:
        return f"request-version has to be {names.PROTOCOL} with purpose {_SOFTWARE}"
    if holder_of(lease) != f"{names.HOLDER_UPGRADE}{asked['operation-uid']}":
        return "the holder is another operation than the request names"
    return _form_problem(asked)


def _form_problem(asked: Mapping[str, str]) -> str:
    if _TOKEN.fullmatch(asked["session-token"]) is None:
        return "session-token needs 16 to 64 letters, digits and -"
    if _REVISION.fullmatch(asked["control-revision"]) is None:
        return "control-revision is no number"
    try:
        from_rfc3339(asked["requested-at"])
    except ValueError:
        return "requested-at is no moment"
    return ""


def _leaf_problem(seen: MaintenanceSeen, lease: JsonObject) -> str:
    asked, leaf = request_of(lease), seen.leaf
    named = f"{asked['operation-namespace']}/{asked['operation-name']}"
    if leaf is None or text_at(leaf, "metadata", "uid") != asked["operation-uid"]:
        return f"there is no IOSXESoftwareUpgrade {named} with UID {asked['operation-uid']}"
    if text_at(leaf, "metadata", "annotations", names.DEVICE_UID) != text_at(seen.device, "metadata", "uid"):
        return f"IOSXESoftwareUpgrade {named} is for another device"
    state = text_at(leaf, "status", "managerAdmission", "state")
    if state != "Granted":
        return f"IOSXESoftwareUpgrade {named} is {state or 'not admitted'}, not Granted"
    return ""


def _idle() -> Condition:
    return Condition(names.MAINTENANCE_READY, "True", Reason.IDLE, "no maintenance session is active")


def _blocked(why: str) -> Condition:
    return Condition(names.MAINTENANCE_READY, "False", Reason.MAINTENANCE_BLOCKED, why)


def deletion_problem(device: JsonObject) -> str:
    """Why a device that was deleted has to stay; empty when it may go (8.6, 18.3)."""
    status = object_at(device, "status")
    if lock := object_at(status, "topologyLock"):
        campaign = f"{text_at(lock, 'campaignNamespace')}/{text_at(lock, 'campaignName')}"
        return f"campaign {campaign} holds the device: it goes once the campaign has let go"
    session = object_at(status, "maintenanceSession")
    if is_open(session):
        return f"the maintenance session of {text_at(session, 'lease', 'holder')} is {text_at(session, 'phase')}, not Settled"
    return ""

"""The reservation ledger as a value, and its text (rollouts.md, section 8.1).

Reading and writing are strict: a ledger that breaks a rule is an error and never repaired, because every budget of the fleet is counted
from it.  What may change it is not here.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import encoded, sorted_map, without_empty
from gitops_ctl.fleet.forms import is_dns_label, is_lock_id, is_printable, is_subdomain
from gitops_ctl.fleet.ledgertypes import Ledger, ReleaseFence, Reservation, State
from gitops_ctl.fleet.strict import Malformed, Reader, decode_object, pointer_to

__all__ = [
    "Ledger",
    "ReleaseFence",
    "Reservation",
    "State",
    "decode_ledger",
    "empty_ledger",
    "encode_ledger",
    "validate_ledger",
]

MAX_RECORDS: Final = 256
MAX_LEDGER_BYTES: Final = 262144
MAX_DOMAINS: Final = 16
MAX_GROUPS: Final = 16
LONGEST_ID: Final = 64
MAX_REVISION: Final = 2**63 - 1

_REMEMBERED: Final = 4 * MAX_RECORDS
"""Records whose judgement and text are kept: those of a few passes."""

_UNPRINTABLE: Final = re.compile(r"[^!-~]")
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?Z", re.ASCII)


def decode_ledger(text: str, uid: str) -> Ledger:
    """The ledger in the text of the key `ledger.json` of the ConfigMap with this UID.

    Raises:
        Refused: another UID, an unknown or repeated member, anything after the document, or a rule of 8.1 broken.
    """
    try:
        ledger = _written(text, uid) or _ledger_of(decode_object(text, most_bytes=MAX_LEDGER_BYTES), uid)
        _check(ledger)
    except Malformed as flaw:
        raise _refusal(flaw) from flaw
    return ledger


def validate_ledger(ledger: Ledger) -> None:
    """Every rule of 8.1 on a value; the size of its text is a matter of `encode_ledger`.

    Raises:
        Refused: one is broken.
    """
    try:
        _check(ledger)
    except Malformed as flaw:
        raise _refusal(flaw) from flaw


def encode_ledger(ledger: Ledger) -> str:
    """The text of a valid ledger: compact, records by id, members in their order.

    Raises:
        Refused: a rule of 8.1 is broken, or the text is longer than the absolute limit.
    """
    validate_ledger(ledger)
    text = _text_of(ledger)
    if len(text) > MAX_LEDGER_BYTES:
        why = f"the ledger would have {len(text)} bytes, {MAX_LEDGER_BYTES} are allowed"
        raise _refusal(Malformed("", why))
    return text


def empty_ledger(uid: str) -> Ledger:
    """What a ConfigMap with this UID begins with (7.4)."""
    return Ledger(uid=uid)


def _refusal(flaw: Malformed) -> Refused:
    return Refused(flaw.why, code=ErrorCode.LEDGER_INVALID, subject=f"{names.LEDGER_KEY}#{flaw.pointer}")


# ---- reading what we wrote ----


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """A ledger whose parts have not been looked at."""

    version: str
    uid: str
    reservations: dict[str, msgspec.Raw]
    fence: msgspec.Raw = msgspec.field(name="lastReleaseFence", default_factory=msgspec.Raw)


_document: Final = msgspec.json.Decoder(_Document).decode


def _written(text: str, uid: str) -> Ledger | None:
    """The ledger whose encoding is exactly this text; None where there is none, and only the strict reader can say what it is.

    What encodes to the same text was read right: nothing in it was strange, there twice, or passed over.  Of many records one changed since
    the text was read last, and only that one is read.
    """
    try:
        document = _document(text)
        ledger = Ledger(
            uid=uid,
            reservations=tuple(_record_in(name, bytes(record)) for name, record in document.reservations.items()),
            last_release_fence=_fence_in(bytes(document.fence)) if bytes(document.fence) else None,
        )
        return ledger if len(text) <= MAX_LEDGER_BYTES and _text_of(ledger) == text else None
    except (msgspec.DecodeError, ValueError, RecursionError, Malformed):
        return None


@lru_cache(maxsize=_REMEMBERED)
def _record_in(name: str, text: bytes) -> Reservation:
    return _record_of(name, decode_object(text.decode(), most_bytes=MAX_LEDGER_BYTES))


def _fence_in(text: bytes) -> ReleaseFence:
    return _fence_of(Reader({"lastReleaseFence": decode_object(text.decode(), most_bytes=MAX_LEDGER_BYTES)}, ""))


# ---- reading ----

_TEXTS: Final = (
    *("id", "campaignUID", "planHash", "policyUID", "policyVersion", "topologyLockID", "physicalID", "deviceUID"),
    *("nodeUID", "childNamespace", "childName", "state"),
)
_OPTIONAL_TEXTS: Final = ("childUID", "drainSessionToken", "drainStartedAt", "drainCompletedAt")
_NUMBERS: Final = frozenset({"policyEpoch", "controlRevision"})
_NO_TEXTS: Final = _NUMBERS | {"domains", "riskGroups"}
_STATES: Final = {str(state): state for state in State}
_REQUIRED: Final = frozenset({*_TEXTS, *_NUMBERS, "domains"})
_KNOWN: Final = frozenset(names.RESERVATION_MEMBERS)


def _ledger_of(tree: JsonObject, expected_uid: str) -> Ledger:
    reader = Reader(tree, "")
    if reader.text("version") != "v1":
        raise Malformed("/version", "version must be 'v1'")
    uid = reader.text("uid")
    if uid != expected_uid:
        raise Malformed("/uid", f"the ledger belongs to the ConfigMap {uid[:64]!r}, not to {expected_uid!r}")
    records = reader.members("reservations", least=0, most=MAX_RECORDS)
    reader.take("reservations")
    fence = _fence_of(reader) if reader.has("lastReleaseFence") else None
    reader.end()
    found = tuple(_record_of(name, records[name]) for name in sorted(records))
    return Ledger(uid=uid, reservations=found, last_release_fence=fence)


def _record_of(name: str, tree: JsonValue) -> Reservation:
    place = pointer_to("/reservations", name)
    if not isinstance(tree, dict):
        raise Malformed(place, "a reservation must be an object")
    _check_members(tree, place)
    if tree["id"] != name:
        raise Malformed(f"{place}/id", "the id must be the name under which the reservation stands")
    state = _STATES.get(tree["state"])
    if state is None:
        raise Malformed(f"{place}/state", f"{tree['state'][:64]!r} is no state of a reservation")
    return Reservation(
        id=name,
        campaign_uid=tree["campaignUID"],
        plan_hash=tree["planHash"],
        policy_uid=tree["policyUID"],
        policy_version=tree["policyVersion"],
        policy_epoch=tree["policyEpoch"],
        topology_lock_id=tree["topologyLockID"],
        physical_id=tree["physicalID"],
        device_uid=tree["deviceUID"],
        node_uid=tree["nodeUID"],
        child_namespace=tree["childNamespace"],
        child_name=tree["childName"],
        domains=tuple(sorted(tree["domains"].items())),
        risk_groups=tuple(tree.get("riskGroups", ())),
        control_revision=tree["controlRevision"],
        child_uid=tree.get("childUID", ""),
        state=state,
        drain_session_token=tree.get("drainSessionToken", ""),
        drain_started_at=tree.get("drainStartedAt", ""),
        drain_completed_at=tree.get("drainCompletedAt", ""),
    )


def _check_members(tree: Mapping[str, object], place: str) -> None:
    """Names and types; an optional member is there only with something in it, so that a text has one reading."""
    if not tree.keys() <= _KNOWN:
        strange = sorted(tree.keys() - _KNOWN)[0]
        raise Malformed(pointer_to(place, strange), f"{strange!r} is no member of a reservation")
    if not tree.keys() >= _REQUIRED:
        missing = sorted(_REQUIRED - tree.keys())[0]
        raise Malformed(f"{place}/{missing}", f"{missing} is required")
    for name, value in tree.items():
        # Almost every member is a text with something in it.
        if not ((type(value) is str and value and name not in _NO_TEXTS) or _has_type_of(name, value)):
            raise Malformed(f"{place}/{name}", f"{name} has another type, or is empty")


def _has_type_of(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return type(value) is int
    if name == "domains":
        return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    if name == "riskGroups":
        return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
    return False


def _fence_of(reader: Reader) -> ReleaseFence:
    fence = Reader(reader.take("lastReleaseFence"), "/lastReleaseFence")
    found = ReleaseFence(
        reservation_id=fence.text("reservationID"),
        policy_epoch=fence.number("policyEpoch", 1, MAX_REVISION),
        topology_lock_id=fence.text("topologyLockID"),
        drain_session_token=fence.text("drainSessionToken", default=""),
        drain_child_uid=fence.text("drainChildUID", default=""),
    )
    fence.end()
    return found


# ---- rules ----


def _check(ledger: Ledger) -> None:
    if not is_printable(ledger.uid):
        raise Malformed("/uid", "uid must be printable ASCII without a space")
    if len(ledger.reservations) > MAX_RECORDS:
        raise Malformed(
            "/reservations", f"there are {len(ledger.reservations)} reservations, {MAX_RECORDS} are allowed"
        )
    for record in ledger.reservations:
        flaw = _record_flaw(record)
        if flaw is not None:
            member, why = flaw
            raise Malformed(f"{pointer_to('/reservations', record.id)}/{member}", why)
    _check_unique(ledger)
    fence = ledger.last_release_fence
    if fence is not None:
        _check_fence(fence)


def _check_unique(ledger: Ledger) -> None:
    ids = [record.id for record in ledger.reservations]
    if ids != sorted(ids):
        raise Malformed("/reservations", "the reservations are not sorted by id")
    for member, key in _UNIQUE:
        values = [value for value in map(key, ledger.reservations) if value]
        if len(set(values)) != len(values):
            raise _repeated(ledger, member, key)


_Key: TypeAlias = Callable[[Reservation], str | tuple[str, str]]
_UNIQUE: Final[tuple[tuple[str, _Key], ...]] = (
    ("id", attrgetter("id")),
    ("physicalID", attrgetter("physical_id")),
    ("deviceUID", attrgetter("device_uid")),
    ("nodeUID", attrgetter("node_uid")),
    ("childName", attrgetter("child_namespace", "child_name")),
    ("childUID", attrgetter("child_uid")),
)


def _repeated(ledger: Ledger, member: str, key: _Key) -> Malformed:
    """Names the second of two records that share what must be unique."""
    seen: dict[str | tuple[str, str], str] = {}
    for record in ledger.reservations:
        value = key(record)
        if value and value in seen:
            place = f"{pointer_to('/reservations', record.id)}/{member}"
            return Malformed(place, f"the reservation {seen[value]} has the same {member}")
        seen[value] = record.id
    raise AssertionError("nothing is there twice")


# Of many records one changes between two looks at the ledger, and a budget is never counted from one that was not judged.
@lru_cache(maxsize=_REMEMBERED)
def _record_flaw(record: Reservation) -> tuple[str, str] | None:
    """Member and reason of the first rule that the record breaks."""
    if not 0 < len(record.id) <= LONGEST_ID:
        return "id", f"id must have 1 to {LONGEST_ID} characters"
    texts = _texts_of(record)
    # One search over all texts of the record: the usual answer, that there is nothing to say, has to be quick.
    if _UNPRINTABLE.search("".join(texts)) is not None:
        member = next(name for name, text in zip(_TEXT_MEMBERS, texts, strict=True) if _UNPRINTABLE.search(text))
        return member, f"{member} must be printable ASCII without a space"
    if not all(texts[: -len(_OPTIONAL_TEXTS)]):
        empty = _TEXT_MEMBERS[texts.index("")]
        return empty, f"{empty} must not be empty"
    return _bounds_flaw(record) or _domains_flaw(record) or _state_flaw(record)


_TEXT_MEMBERS: Final = (
    *("id", "campaignUID", "planHash", "policyUID", "policyVersion", "physicalID", "deviceUID", "nodeUID"),
    *_OPTIONAL_TEXTS,
)


def _texts_of(record: Reservation) -> tuple[str, ...]:
    """The values of _TEXT_MEMBERS, in that order."""
    return (
        *(record.id, record.campaign_uid, record.plan_hash, record.policy_uid, record.policy_version),
        *(record.physical_id, record.device_uid, record.node_uid, record.child_uid, record.drain_session_token),
        *(record.drain_started_at, record.drain_completed_at),
    )


def _bounds_flaw(record: Reservation) -> tuple[str, str] | None:
    if not 1 <= record.policy_epoch <= MAX_REVISION:
        return "policyEpoch", "policyEpoch must be at least 1"
    if not 0 <= record.control_revision <= MAX_REVISION:
        return "controlRevision", "controlRevision must be 0 to 2^63 - 1"
    if not is_lock_id(record.topology_lock_id):
        return "topologyLockID", "topologyLockID must be 32 lower-case hex characters"
    if not is_dns_label(record.child_namespace):
        return "childNamespace", "childNamespace must be a DNS label"
    if not is_subdomain(record.child_name):
        return "childName", "childName must be a DNS subdomain"
    return None


def _domains_flaw(record: Reservation) -> tuple[str, str] | None:
    if not 1 <= len(record.domains) <= MAX_DOMAINS:
        return "domains", f"domains must have 1 to {MAX_DOMAINS} members, not {len(record.domains)}"
    if len(record.domains) > 1 and list(record.domains) != sorted(dict(record.domains).items()):
        return "domains", "domains must be sorted by key, each key once"
    for key, value in record.domains:
        if not (0 < len(key) <= 96 and 0 < len(value) <= 63) or _UNPRINTABLE.search(key + value) is not None:
            return "domains", f"{key[:96]!r} or its value is too long, empty, or not printable ASCII without a space"
    groups = record.risk_groups
    is_right = len(groups) <= MAX_GROUPS and list(groups) == sorted(set(groups)) and all(map(is_dns_label, groups))
    if groups and not is_right:
        return "riskGroups", f"riskGroups must be at most {MAX_GROUPS} names, sorted, each once"
    return None


def _state_flaw(record: Reservation) -> tuple[str, str] | None:
    """What a record must and must not have in its state."""
    state = record.state
    if state is State.RESERVED and record.child_uid:
        return "childUID", "a Reserved record has no childUID"
    if state is not State.RESERVED and not record.child_uid:
        return "childUID", f"a {state} record needs a childUID"
    if record.drain_session_token or record.drain_started_at or record.drain_completed_at:
        return _drain_flaw(record)
    return ("drainSessionToken", "a Draining record needs its session") if state is State.DRAINING else None


def _drain_flaw(record: Reservation) -> tuple[str, str] | None:
    state = record.state
    if state in (State.RESERVED, State.BOUND):
        return "drainSessionToken", f"a {state} record has no drain data"
    if not record.drain_session_token or not record.drain_started_at:
        return "drainSessionToken", "drain data needs a session token and a start"
    for member, text in (("drainStartedAt", record.drain_started_at), ("drainCompletedAt", record.drain_completed_at)):
        if text and not _is_instant(text):
            return member, f"{member} must be a UTC time, its fraction without trailing zeros"
    return _completion_flaw(record)


def _completion_flaw(record: Reservation) -> tuple[str, str] | None:
    done = record.drain_completed_at
    if record.state is State.DRAINING and done:
        return "drainCompletedAt", "a Draining record is not complete"
    if record.state is State.GRANTED and not done:
        return "drainCompletedAt", "a Granted record that drained needs its completion"
    if done and _comparable(done) < _comparable(record.drain_started_at):
        return "drainCompletedAt", "the drain ends before it starts"
    return None


def _is_instant(text: str) -> bool:
    if _INSTANT.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _comparable(text: str) -> tuple[str, str]:
    return text[:19], text[20:-1].ljust(9, "0")


def _check_fence(fence: ReleaseFence) -> None:
    place = "/lastReleaseFence"
    if len(fence.reservation_id) > LONGEST_ID or not is_printable(fence.reservation_id):
        raise Malformed(f"{place}/reservationID", f"reservationID must have 1 to {LONGEST_ID} printable characters")
    if not is_lock_id(fence.topology_lock_id):
        raise Malformed(f"{place}/topologyLockID", "topologyLockID must be 32 lower-case hex characters")
    if fence.policy_epoch < 1:
        raise Malformed(f"{place}/policyEpoch", "policyEpoch must be at least 1")
    for member, text in (("drainSessionToken", fence.drain_session_token), ("drainChildUID", fence.drain_child_uid)):
        if text and not is_printable(text):
            raise Malformed(f"{place}/{member}", f"{member} must be printable ASCII without a space")


# ---- writing ----


def _text_of(ledger: Ledger) -> str:
    records = ",".join(map(_record_text, ledger.reservations))
    fence = ledger.last_release_fence
    end = "" if fence is None else f',"lastReleaseFence":{encoded(_fence_tree(fence)).decode()}'
    return f'{{"version":"v1","uid":{encoded(ledger.uid).decode()},"reservations":{{{records}}}{end}}}'


@lru_cache(maxsize=_REMEMBERED)
def _record_text(record: Reservation) -> str:
    """The member of `reservations`: the id and the record."""
    tree: dict[str, JsonValue] = {
        "id": record.id,
        "campaignUID": record.campaign_uid,
        "planHash": record.plan_hash,
        "policyUID": record.policy_uid,
        "policyVersion": record.policy_version,
        "policyEpoch": record.policy_epoch,
        "topologyLockID": record.topology_lock_id,
        "physicalID": record.physical_id,
        "deviceUID": record.device_uid,
        "nodeUID": record.node_uid,
        "childNamespace": record.child_namespace,
        "childName": record.child_name,
        "domains": sorted_map(dict(record.domains)),
        "riskGroups": list(record.risk_groups),
        "controlRevision": record.control_revision,
        "childUID": record.child_uid,
        "state": str(record.state),
        "drainSessionToken": record.drain_session_token,
        "drainStartedAt": record.drain_started_at,
        "drainCompletedAt": record.drain_completed_at,
    }
    held = {name: tree[name] for name in names.RESERVATION_MEMBERS if tree[name] or name == "controlRevision"}
    return f"{encoded(record.id).decode()}:{encoded(held).decode()}"


def _fence_tree(fence: ReleaseFence) -> JsonObject:
    return without_empty(
        {
            "reservationID": fence.reservation_id,
            "policyEpoch": fence.policy_epoch,
            "topologyLockID": fence.topology_lock_id,
            "drainSessionToken": fence.drain_session_token,
            "drainChildUID": fence.drain_child_uid,
        }
    )

"""The arithmetic of a reservation: budgets of fleet, campaign, domains and risk groups (rollouts.md, section 8.3).

Pure.  The rules are checked in the order of the contract, and the first that fails is the answer.  Each record counts as one transfer
and one disruption for its whole life, also when it is Revoked.  A fact that is missing counts against the request: a record or a member
that says nothing about a domain counts in every value of it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet.forms import is_lock_id
from gitops_ctl.fleet.health import Member
from gitops_ctl.fleet.ledger import Ledger, Reservation, State, encode_ledger
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.snapshot import PolicySnapshot


@dataclass(frozen=True, slots=True)
class Limits:
    """The two numbers of a budget; None sets no limit."""

    transfers: int | None = None
    unavailable: int | None = None


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The numbers in force for one campaign: its effective epoch, and the risk groups, which no epoch changes.

    Attributes:
        version: resourceVersion of the policy object.
        domains: limits by topology key; a key stands here when it has any budget.
        risk_groups: limits by group name.
        max_ledger_bytes: of the policy, not the absolute limit.
    """

    uid: str
    version: str
    epoch: int
    fleet: Limits
    domains: Mapping[str, Limits]
    risk_groups: Mapping[str, Limits]
    max_reservations: int
    max_ledger_bytes: int


def effective_policy(snapshot: PolicySnapshot, policy: FleetPolicy, *, epoch: int) -> EffectivePolicy:
    """The numbers of an effective epoch; `policy` is the live one, which has the same structure and so the same risk groups."""
    return EffectivePolicy(
        uid=snapshot.uid,
        version=snapshot.resource_version,
        epoch=epoch,
        fleet=Limits(snapshot.transfers, snapshot.unavailable),
        domains={domain.key: Limits(domain.transfers, domain.unavailable) for domain in snapshot.domains},
        risk_groups={g.name: Limits(g.max_concurrent_transfers, g.max_unavailable) for g in policy.risk_groups},
        max_reservations=snapshot.max_reservations,
        max_ledger_bytes=snapshot.max_ledger_bytes,
    )


@dataclass(frozen=True, slots=True)
class ReserveRequest:
    """What a campaign asks for: the record as it will stand, and the campaign's own limits.

    Attributes:
        record: in state Reserved, without a child.
        campaign: the plan's budgets.
        campaign_domains: the plan's budgets by topology key.
    """

    record: Reservation
    campaign: Limits
    campaign_domains: Mapping[str, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fleet:
    """All members, merged by physical identity; made once per look at the fleet, used by every rerun.

    Attributes:
        conflict: two members claim one chassis and differ; refuses every reservation.
    """

    members: Mapping[str, Member]
    unavailable: tuple[Member, ...]
    conflict: Refusal | None = None


def merged(members: Iterable[Member]) -> Fleet:
    """Rule 4: one member per chassis; equal duplicates only make its health worse."""
    found: dict[str, Member] = {}
    conflict: Refusal | None = None
    for member in members:
        before = found.setdefault(member.physical_id, member)
        if before is member:
            continue
        if dataclasses.replace(before, unavailable=member.unavailable) != member:
            conflict = conflict or _ambiguous(before, member)
        elif member.unavailable and not before.unavailable:
            found[member.physical_id] = member
    return Fleet(found, tuple(member for member in found.values() if member.unavailable), conflict)


def _ambiguous(first: Member, second: Member) -> Refusal:
    uids = " and ".join(sorted({first.device_uid, second.device_uid}))
    return Refusal(
        Reason.FLEET_AMBIGUOUS,
        f"chassis {first.physical_id} is claimed twice with different facts (device UID {uids})",
        holders=(first.physical_id,),
    )


def reserve(ledger: Ledger, policy: EffectivePolicy, fleet: Fleet, request: ReserveRequest) -> Ledger | Refusal:
    """The ledger with the record, the same ledger when the identical record is there, or the first rule that fails."""
    record = request.record
    refusal = _identity(policy, request) or _released(ledger, record)
    if refusal is not None:
        return refusal
    standing = ledger.get(record.id)
    if standing is not None:
        return ledger if _same_request(standing, record) else _taken(standing, record)
    refusal = fleet.conflict or _target(fleet, policy, request) or _room(ledger, policy, record)
    for rule in (_fleet_and_campaign, _in_domains, _in_risk_groups):
        refusal = refusal or rule(ledger, policy, fleet, request)
    return refusal or _inserted(ledger, policy, record)


def _identity(policy: EffectivePolicy, request: ReserveRequest) -> Refusal | None:
    """Rule 1."""
    record = request.record
    if (record.policy_uid, record.policy_version, record.policy_epoch) != (policy.uid, policy.version, policy.epoch):
        return Refusal(
            Reason.IDENTITY,
            f"the request is for policy {record.policy_uid} at version {record.policy_version} in epoch {record.policy_epoch}, "
            f"in force is {policy.uid} at version {policy.version} in epoch {policy.epoch}",
        )
    if not is_lock_id(record.topology_lock_id):
        return Refusal(Reason.IDENTITY, f"{record.topology_lock_id!r} is no lock acquisition id")
    if record.state is not State.RESERVED or record.child_uid or record.drain_session_token:
        return Refusal(Reason.IDENTITY, "a request is in state Reserved, without a child and without drain data")
    missing = [name for name in _REQUIRED if not getattr(record, name)]
    missing += [
        key for key in sorted({*policy.domains, *request.campaign_domains}) if not dict(record.domains).get(key)
    ]
    if missing or record.control_revision < 0:
        return Refusal(Reason.IDENTITY, f"the request has no {listed(missing) or 'valid control revision'}")
    return None


_REQUIRED: Final = (
    "id",
    "campaign_uid",
    "plan_hash",
    "physical_id",
    "device_uid",
    "node_uid",
    "child_namespace",
    "child_name",
    "domains",
)


def _released(ledger: Ledger, record: Reservation) -> Refusal | None:
    """Rule 2: the last release was of exactly this acquisition."""
    fence = ledger.last_release_fence
    if fence is None or (fence.reservation_id, fence.policy_epoch, fence.topology_lock_id) != (
        record.id,
        record.policy_epoch,
        record.topology_lock_id,
    ):
        return None
    return Refusal(
        Reason.STALE, f"acquisition {record.topology_lock_id} of reservation {record.id} was already released"
    )


def _same_request(standing: Reservation, asked: Reservation) -> bool:
    """Rule 3: what a request decides is equal; state, child and drain data came later."""
    as_asked = dataclasses.replace(
        standing,
        state=State.RESERVED,
        child_uid="",
        drain_session_token="",
        drain_started_at="",
        drain_completed_at="",
    )
    return as_asked == asked


def _taken(standing: Reservation, asked: Reservation) -> Refusal:
    what = f"chassis {asked.physical_id}" if standing.physical_id == asked.physical_id else f"reservation {asked.id}"
    return Refusal(
        Reason.ALREADY_RESERVED,
        f"{what} is reserved by {holder(standing)} (campaign {standing.campaign_uid}, {standing.state}, "
        f"epoch {standing.policy_epoch}, lock {standing.topology_lock_id})",
        scope=f"chassis {asked.physical_id}",
        used=1,
        limit=1,
        holders=(holder(standing),),
    )


def _target(fleet: Fleet, policy: EffectivePolicy, request: ReserveRequest) -> Refusal | None:
    """Rules 5 and 6, and the same for the groups, whose budgets follow the domains'."""
    record = request.record
    member = fleet.members.get(record.physical_id)
    if member is None or (member.device_uid, member.node_uid) != (record.device_uid, record.node_uid):
        return Refusal(
            Reason.TARGET_UNAVAILABLE,
            f"chassis {record.physical_id} is not in the fleet as device {record.device_uid} on Node {record.node_uid}",
        )
    if member.unavailable:
        return Refusal(
            Reason.TARGET_UNAVAILABLE,
            f"chassis {record.physical_id} is unavailable: unhealthy, in maintenance, or its evidence is missing or old",
        )
    asked, live = dict(record.domains), dict(member.domains)
    for key in sorted({*policy.domains, *request.campaign_domains}):
        if asked[key] != live.get(key):
            return Refusal(
                Reason.DOMAIN_CHANGED,
                f"{key} of the device is {live.get(key, '')!r} now, the request says {asked[key]!r}",
            )
    if sorted(member.groups) != sorted(record.risk_groups):
        now, then = listed(sorted(member.groups)) or "no group", listed(sorted(record.risk_groups)) or "no group"
        return Refusal(Reason.DOMAIN_CHANGED, f"the device is in {now} now, the request says {then}")
    return None


def _room(ledger: Ledger, policy: EffectivePolicy, record: Reservation) -> Refusal | None:
    """Rules 7 and 8."""
    for standing in ledger.reservations:
        if standing.physical_id == record.physical_id:
            return _taken(standing, record)
    used = len(ledger.reservations)
    if used < policy.max_reservations:
        return None
    return Refusal(
        Reason.LEDGER_FULL,
        f"{used} of {policy.max_reservations} reservations in use in the ledger",
        scope="ledger",
        used=used,
        limit=policy.max_reservations,
    )


def _fleet_and_campaign(
    ledger: Ledger, policy: EffectivePolicy, fleet: Fleet, request: ReserveRequest
) -> Refusal | None:
    """Rules 9 to 12."""
    everything = _Scope("fleet", "the fleet", ledger.reservations, fleet.unavailable)
    own = _own(everything, request, "campaign", "the campaign")
    return (
        _disruptions(everything, policy.fleet.unavailable)
        or _disruptions(own, _lowest(policy.fleet.unavailable, request.campaign.unavailable))
        or _transfers(everything, policy.fleet.transfers)
        or _transfers(own, _lowest(policy.fleet.transfers, request.campaign.transfers))
    )


def _in_domains(ledger: Ledger, policy: EffectivePolicy, fleet: Fleet, request: ReserveRequest) -> Refusal | None:
    """Rule 13: per key, in the order of the keys."""
    values = dict(request.record.domains)
    for key in sorted({*policy.domains, *request.campaign_domains}):
        name = f"{key.rpartition('/')[2]} {values[key]}"
        within = _within(key, values[key])
        place = _Scope(
            name,
            name,
            tuple(record for record in ledger.reservations if within(dict(record.domains))),
            tuple(member for member in fleet.unavailable if within(dict(member.domains))),
        )
        own = _own(place, request, f"campaign in {name}", f"{name} for the campaign")
        limits, asked = policy.domains.get(key, Limits()), request.campaign_domains.get(key, Limits())
        refusal = (
            _disruptions(place, limits.unavailable)
            or _disruptions(own, _lowest(limits.unavailable, asked.unavailable))
            or _transfers(place, limits.transfers)
            or _transfers(own, _lowest(limits.transfers, asked.transfers))
        )
        if refusal is not None:
            return refusal
    return None


def _within(key: str, value: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda domains: domains.get(key, value) == value


def _in_risk_groups(ledger: Ledger, policy: EffectivePolicy, fleet: Fleet, request: ReserveRequest) -> Refusal | None:
    """Rule 14.  A record counts in the groups that it names and in those of its device now."""
    for name in sorted(request.record.risk_groups):
        limits = policy.risk_groups.get(name)
        if limits is None:
            return Refusal(Reason.IDENTITY, f"the policy has no risk group {name}")
        place = _Scope(
            f"risk group {name}",
            f"risk group {name}",
            tuple(record for record in ledger.reservations if name in _groups(record, fleet)),
            tuple(member for member in fleet.unavailable if name in member.groups),
        )
        refusal = _disruptions(place, limits.unavailable) or _transfers(place, limits.transfers)
        if refusal is not None:
            return refusal
    return None


def _groups(record: Reservation, fleet: Fleet) -> tuple[str, ...]:
    member = fleet.members.get(record.physical_id)
    return record.risk_groups if member is None else (*record.risk_groups, *member.groups)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where something is counted: its records, and its unavailable members."""

    name: str
    text: str
    records: tuple[Reservation, ...]
    unavailable: tuple[Member, ...] = ()


def _own(scope: _Scope, request: ReserveRequest, name: str, text: str) -> _Scope:
    """The campaign's own records of a scope; members do not count against a campaign."""
    uid = request.record.campaign_uid
    return _Scope(name, text, tuple(record for record in scope.records if record.campaign_uid == uid))


def _disruptions(scope: _Scope, limit: int | None) -> Refusal | None:
    if limit is None:
        return None
    names = {member.physical_id: f"chassis {member.physical_id}" for member in scope.unavailable}
    names |= {record.physical_id: holder(record) for record in scope.records}
    return _over(Reason.UNAVAILABLE_BUDGET, "unavailable", scope, limit=limit, holders=names.values())


def _transfers(scope: _Scope, limit: int | None) -> Refusal | None:
    if limit is None:
        return None
    return _over(
        Reason.TRANSFER_BUDGET, "transfers in use", scope, limit=limit, holders=[holder(one) for one in scope.records]
    )


def _over(reason: Reason, noun: str, scope: _Scope, *, limit: int, holders: Iterable[str]) -> Refusal | None:
    """The refusal when one more does not fit."""
    names = tuple(sorted(holders))
    if len(names) < limit:
        return None
    text = f"{len(names)} of {limit} {noun} in {scope.text}" + (f": {listed(names, limit=5)}" if names else "")
    return Refusal(reason, text, scope=scope.name, used=len(names), limit=limit, holders=names)


def _lowest(administrator: int | None, campaign: int | None) -> int | None:
    """The smaller of two limits; None when the campaign has no limit of its own there and the administrator has none."""
    given = [number for number in (administrator, campaign) if number is not None]
    return min(given, default=None)


def _inserted(ledger: Ledger, policy: EffectivePolicy, record: Reservation) -> Ledger | Refusal:
    """Rule 15.  The ledger that came in is untouched, so there is nothing to undo."""
    records = tuple(sorted((*ledger.reservations, record), key=lambda one: one.id))
    after = dataclasses.replace(ledger, reservations=records)
    try:
        size = len(encode_ledger(after).encode())
    except Refused as error:
        return Refusal(Reason.IDENTITY, f"the ledger does not take the record: {error.message}")
    if size <= policy.max_ledger_bytes:
        return after
    return Refusal(
        Reason.LEDGER_TOO_LARGE,
        f"the ledger would have {size} of {policy.max_ledger_bytes} bytes",
        scope="ledger bytes",
        used=size,
        limit=policy.max_ledger_bytes,
    )


def holder(record: Reservation) -> str:
    """How a record is named to people: its leaf, whose name holds campaign and device."""
    return f"{record.child_namespace}/{record.child_name}"

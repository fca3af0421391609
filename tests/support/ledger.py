"""Records, members and policies for tests of the reservation ledger."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from gitops_ctl.fleet.health import Member
from gitops_ctl.fleet.ledger import Ledger, ReleaseFence, Reservation, State
from gitops_ctl.rollout.ledger_arithmetic import EffectivePolicy, Fleet, Limits, ReserveRequest, merged, reserve
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.refusal import Reason, Refusal

LEDGER_UID = "11111111-1111-4111-8111-111111111111"
POLICY_UID = "22222222-2222-4222-8222-222222222222"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


def hex_of(text: str, length: int = 32) -> str:
    """Some hex characters that belong to a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def a_record(device: str = "edge-1", *, campaign: str = "spring", zone: str = "a", **changes: Any) -> Reservation:
    """The record that a campaign asks for."""
    record = Reservation(
        id=hex_of(f"{campaign}/{device}"),
        campaign_uid=f"uid-{campaign}",
        plan_hash="sha256:" + hex_of(campaign, 64),
        policy_uid=POLICY_UID,
        policy_version="7",
        policy_epoch=1,
        topology_lock_id=hex_of(f"lock/{campaign}/{device}/1"),
        physical_id=f"chassis-{device}",
        device_uid=f"device-{device}",
        node_uid=f"node-{device}",
        child_namespace="lab",
        child_name=f"{campaign}-{device}-{hex_of(f'{campaign}/{device}', 8)}",
        domains=domains(zone),
        control_revision=0,
        state=State.RESERVED,
    )
    return dataclasses.replace(record, **changes)


def domains(zone: str, region: str = "north") -> tuple[tuple[str, str], ...]:
    return ((REGION, region), (ZONE, zone))


def a_member(device: str = "edge-1", *, zone: str = "a", unavailable: bool = False, **changes: Any) -> Member:
    """The same device as a member of the fleet."""
    member = Member(
        physical_id=f"chassis-{device}",
        device_uid=f"device-{device}",
        node_uid=f"node-{device}",
        domains=domains(zone),
        groups=(),
        unavailable=unavailable,
    )
    return dataclasses.replace(member, **changes)


def a_fleet(count: int = 4, *, zones: str = "ab") -> Fleet:
    """`edge-1` to `edge-<count>`, spread over the zones."""
    return merged(a_member(f"edge-{n}", zone=zones[(n - 1) % len(zones)]) for n in range(1, count + 1))


def a_policy(**changes: Any) -> EffectivePolicy:
    """A policy that lets four in, two for each zone."""
    policy = EffectivePolicy(
        uid=POLICY_UID,
        version="7",
        epoch=1,
        fleet=Limits(4, 4),
        domains={REGION: Limits(transfers=4), ZONE: Limits(unavailable=2)},
        risk_groups={},
        max_reservations=256,
        max_ledger_bytes=262144,
    )
    return dataclasses.replace(policy, **changes)


def a_request(
    record: Reservation, *, campaign: Limits = Limits(4, 4), domains: Mapping[str, Limits] = {}
) -> ReserveRequest:
    return ReserveRequest(record, campaign, domains)


def empty() -> Ledger:
    return Ledger(uid=LEDGER_UID)


def with_records(*records: Reservation) -> Ledger:
    """A ledger that has these, as they are."""
    return Ledger(uid=LEDGER_UID, reservations=tuple(sorted(records, key=lambda record: record.id)))


def reserved(*records: Reservation, policy: EffectivePolicy | None = None, fleet: Fleet | None = None) -> Ledger:
    """A ledger in which these were reserved one after the other."""
    ledger = empty()
    for record in records:
        ledger = done(reserve(ledger, policy or a_policy(), fleet or a_fleet(8), a_request(record)))
    return ledger


def done(answer: Ledger | Refusal) -> Ledger:
    """The ledger; a refusal is a failure of the test."""
    assert isinstance(answer, Ledger), answer
    return answer


def refused(answer: object, reason: Reason) -> Refusal:
    """The refusal, which is for this reason."""
    assert isinstance(answer, Refusal), answer
    assert answer.reason is reason, answer
    return answer


def fence_of(which: Acquisition) -> ReleaseFence:
    """What the release of an acquisition leaves."""
    return ReleaseFence(
        reservation_id=which.reservation_id, policy_epoch=which.policy_epoch, topology_lock_id=which.lock_id
    )


def again(record: Reservation) -> Reservation:
    """The same target at a later acquisition."""
    return dataclasses.replace(record, topology_lock_id=hex_of(record.topology_lock_id))

"""What may become of a reservation after it was made (rollouts.md, section 8.4).

Pure; one function for each row of the table.  All have one shape: the ledger, the acquisition that is meant, and what the caller proved;
the answer is the next ledger, the same ledger when that was done before, or a refusal.  The acquisition names the lock as well as the
reservation, because the same reservation id is used again after a release: a late clean-up or grant never hits a later acquisition.
A removal leaves a fence, so that a Reserve of the same acquisition that is still on its way is refused.

Drain data is understood and guarded here although no drain is run yet: a record that has it can be released only by the proof for it.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final, NamedTuple

from gitops_ctl.fleet.forms import is_uuid4
from gitops_ctl.fleet.ledger import Ledger, ReleaseFence, Reservation, State
from gitops_ctl.rollout.refusal import Reason, Refusal

_ALREADY_BOUND: Final = frozenset({State.BOUND, State.DRAINING, State.GRANTED, State.REVOKED})
_REVOCABLE: Final = frozenset({State.RESERVED, State.BOUND, State.GRANTED, State.REVOKED})
_UNCLAIMED: Final = frozenset({State.BOUND, State.GRANTED, State.REVOKED})


class Acquisition(NamedTuple):
    """One taking of a device: reservation id, epoch and the id that ledger, lock and leaf share."""

    reservation_id: str
    policy_epoch: int
    lock_id: str

    def is_of(self, record: Reservation) -> bool:
        """Whether the record was made by exactly this acquisition."""
        return (record.policy_epoch, record.topology_lock_id) == (self.policy_epoch, self.lock_id)


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Proof that a leaf has no claim, and can get none: read uncached inside the compare-and-swap (`settlement.unclaimed`)."""

    child_uid: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Proof that the outcome of a leaf is known and the health gate has passed (`settlement.settled`)."""

    child_uid: str


@dataclass(frozen=True, slots=True)
class Attested:
    """Proof that two persons said in Git that the device of this leaf is retired (`settlement.attested`)."""

    child_uid: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """Proof that the workloads of a drained device run again, together with outcome and health."""

    child_uid: str
    token: str


def acquisition_of(record: Reservation) -> Acquisition:
    """The acquisition that made the record."""
    return Acquisition(record.id, record.policy_epoch, record.topology_lock_id)


def bind_child(ledger: Ledger, which: Acquisition, *, child_uid: str) -> Ledger | Refusal:
    """BindChild: the leaf exists.  Repeating it with the same leaf changes nothing."""
    record = _record(ledger, which)
    if isinstance(record, Refusal):
        return record
    if record.state in _ALREADY_BOUND:
        return ledger if record.child_uid == child_uid else _another_child(record, child_uid)
    if not child_uid:
        return _refused(record, "cannot be bound to a leaf without UID")
    return _foreign_child(ledger, record, child_uid) or _with(ledger, record, state=State.BOUND, child_uid=child_uid)


def _foreign_child(ledger: Ledger, record: Reservation, child_uid: str) -> Refusal | None:
    for other in ledger.reservations:
        if other.child_uid == child_uid and other.id != record.id:
            return _refused(
                record, f"cannot take leaf {child_uid}, which {other.child_namespace}/{other.child_name} has"
            )
    return None


def begin_drain(  # noqa: PLR0913  each is a guard of the row
    ledger: Ledger, which: Acquisition, *, ledger_uid: str, child_uid: str, token: str, started_at: str, revision: int
) -> Ledger | Refusal:
    """BeginDrain: Bound to Draining under a session token (a UUIDv4); the same token again changes nothing."""
    record = _guarded(ledger, which, ledger_uid=ledger_uid, child_uid=child_uid, revision=revision)
    if isinstance(record, Refusal):
        return record
    if not is_uuid4(token):
        return _refused(record, "cannot be drained: the session token is no UUIDv4")
    if record.state is State.DRAINING and (record.drain_session_token, record.drain_started_at) == (token, started_at):
        return ledger
    if record.state is not State.BOUND or record.drain_session_token:
        return _refused(record, "cannot begin a drain")
    return _with(
        ledger,
        record,
        state=State.DRAINING,
        drain_session_token=token,
        drain_started_at=started_at,
        control_revision=revision,
    )


def promote_drain(
    ledger: Ledger, which: Acquisition, *, child_uid: str, token: str, completed_at: str
) -> Ledger | Refusal:
    """PromoteDrain: Draining to Granted with the completion, which is not before the start."""
    record = _record(ledger, which, child_uid)
    if isinstance(record, Refusal):
        return record
    if not token or record.drain_session_token != token:
        return _refused(record, "is not drained under this session token")
    if record.state is State.GRANTED and record.drain_completed_at == completed_at:
        return ledger
    if record.state is not State.DRAINING:
        return _refused(record, "is not draining")
    if _instant(completed_at) < _instant(record.drain_started_at):
        return _refused(record, f"cannot have been drained at {completed_at}, before {record.drain_started_at}")
    return _with(ledger, record, state=State.GRANTED, drain_completed_at=completed_at)


def _instant(text: str) -> tuple[str, str]:
    """Orders canonical UTC times, whose fraction is trimmed: `…00Z` is before `…00.5Z`."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return seconds, fraction


def grant(ledger: Ledger, which: Acquisition, *, ledger_uid: str, child_uid: str, revision: int) -> Ledger | Refusal:
    """Grant: Bound to Granted; a repeat may raise the control revision."""
    record = _guarded(ledger, which, ledger_uid=ledger_uid, child_uid=child_uid, revision=revision)
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and is granted by the end of its drain only")
    if record.state not in {State.BOUND, State.GRANTED}:
        return _refused(record, "cannot be granted")
    return _with(ledger, record, state=State.GRANTED, control_revision=revision)


def revoke(ledger: Ledger, which: Acquisition, *, child_uid: str, revision: int) -> Ledger | Refusal:
    """Revoke by a control of a larger revision; the leaf may have claims, so the record stays.

    A Reserved record takes the leaf on: a revoked record always names one.
    """
    record = _record(ledger, which, child_uid)
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and cannot be revoked")
    if record.state is State.REVOKED and record.control_revision == revision:
        return ledger
    if record.state not in _REVOCABLE or revision <= record.control_revision:
        return _refused(record, f"is revoked only by a revision above {record.control_revision}, not by {revision}")
    if not child_uid:
        return _refused(record, "cannot be revoked without its leaf")
    return _foreign_child(ledger, record, child_uid) or _with(
        ledger, record, state=State.REVOKED, child_uid=child_uid, control_revision=revision
    )


def revoke_unclaimed_at_epoch(
    ledger: Ledger, which: Acquisition, *, proof: Unclaimed, revision: int
) -> Ledger | Refusal:
    """RevokeUnclaimedAtEpoch: no claim exists, as the caller proved inside this compare-and-swap."""
    record = _record(ledger, which, proof.child_uid)
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and cannot be revoked")
    if record.state not in _UNCLAIMED or revision < record.control_revision:
        return _refused(record, f"cannot be revoked at revision {revision}, below {record.control_revision}")
    return _with(ledger, record, state=State.REVOKED, control_revision=revision)


def release_unclaimed_at_epoch(ledger: Ledger, which: Acquisition, *, proof: Unclaimed | None) -> Ledger | Refusal:
    """ReleaseUnclaimedAtEpoch: Reserved or Revoked is removed; a record that is gone only gets its fence.

    Args:
        proof: of the leaf; None only for a record that has none.
    """
    if ledger.get(which.reservation_id) is None:
        return _fenced(ledger, which)
    record = _record(ledger, which, proof.child_uid if proof else "")
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and is released by the end of its drain only")
    if record.state not in {State.RESERVED, State.REVOKED}:
        return _refused(record, "is released only when it is Reserved or Revoked")
    if record.child_uid and proof is None:
        return _refused(record, "is released only with a proof that its leaf has no claim")
    return _removed(ledger, record)


def fence_unbound_acquisition(ledger: Ledger, which: Acquisition) -> Ledger | Refusal:
    """FenceUnboundAcquisition: a Reserved record without leaf, or none, goes for good."""
    if ledger.get(which.reservation_id) is None:
        return _fenced(ledger, which)
    record = _record(ledger, which)
    if isinstance(record, Refusal):
        return record
    if record.state is not State.RESERVED:
        return _refused(record, "has a leaf and is no unbound acquisition")
    return _removed(ledger, record)


def settle(ledger: Ledger, which: Acquisition, *, proof: Settled) -> Ledger | Refusal:
    """Settle: outcome proven and health gate passed; a record that is gone only gets its fence."""
    if ledger.get(which.reservation_id) is None:
        return _fenced(ledger, which)
    record = _record(ledger, which, proof.child_uid)
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and is settled together with its workloads")
    if record.state not in {State.GRANTED, State.REVOKED}:
        return _refused(record, "is settled only when it is Granted or Revoked")
    return _removed(ledger, record)


def settle_drained_reservation(ledger: Ledger, which: Acquisition, *, proof: Recovered) -> Ledger | Refusal:
    """SettleDrainedReservation: outcome, health and workloads are proven; also before the ledger knew of the drain."""
    if ledger.get(which.reservation_id) is None:
        return _fenced(ledger, which, token=proof.token, child_uid=proof.child_uid)
    record = _record(ledger, which, proof.child_uid)
    if isinstance(record, Refusal):
        return record
    bare = record.state is State.BOUND and not record.drain_session_token
    drained = record.state in {State.DRAINING, State.GRANTED, State.REVOKED}
    if not bare and not (drained and proof.token and record.drain_session_token == proof.token):
        return _refused(record, "is not of this drain session")
    return _removed(ledger, record, token=proof.token)


def settle_by_attestation(ledger: Ledger, which: Acquisition, *, proof: Attested) -> Ledger | Refusal:
    """SettleByAttestation: the device is retired by two persons; a record that is gone only gets its fence."""
    if ledger.get(which.reservation_id) is None:
        return _fenced(ledger, which)
    record = _record(ledger, which, proof.child_uid)
    if isinstance(record, Refusal):
        return record
    if record.drain_session_token:
        return _refused(record, "has drain data and cannot be settled by a recovery")
    if record.state not in _UNCLAIMED:
        return _refused(record, "has no leaf that a recovery could name")
    return _removed(ledger, record)


def _record(ledger: Ledger, which: Acquisition, child_uid: str = "") -> Reservation | Refusal:
    """The record of exactly this acquisition, and of this leaf where one is bound."""
    record = ledger.get(which.reservation_id)
    if record is None:
        return Refusal(Reason.STALE, f"there is no reservation {which.reservation_id}")
    if not which.is_of(record):
        return Refusal(
            Reason.STALE,
            f"reservation {record.id} is of lock {record.topology_lock_id} in epoch {record.policy_epoch}, "
            f"not of lock {which.lock_id} in epoch {which.policy_epoch}",
        )
    if child_uid and record.child_uid and record.child_uid != child_uid:
        return _another_child(record, child_uid)
    return record


def _guarded(
    ledger: Ledger, which: Acquisition, *, ledger_uid: str, child_uid: str, revision: int
) -> Reservation | Refusal:
    """The record, for a step towards a claim: this ledger, this leaf, no older control."""
    if ledger.uid != ledger_uid:
        return Refusal(Reason.IDENTITY, f"the leaf is bound to ledger {ledger_uid}, this one is {ledger.uid}")
    record = _record(ledger, which)
    if isinstance(record, Refusal):
        return record
    if record.child_uid != child_uid or not child_uid:
        return _another_child(record, child_uid)
    if revision < record.control_revision:
        return _refused(record, f"has control revision {record.control_revision}, which {revision} is older than")
    return record


def _with(ledger: Ledger, record: Reservation, **changes: object) -> Ledger:
    changed = dataclasses.replace(record, **changes)  # type: ignore[arg-type]  # members of one frozen record
    records = tuple(changed if one.id == record.id else one for one in ledger.reservations)
    return ledger if changed == record else dataclasses.replace(ledger, reservations=records)


def _removed(ledger: Ledger, record: Reservation, *, token: str = "") -> Ledger:
    records = tuple(one for one in ledger.reservations if one.id != record.id)
    token = token or record.drain_session_token
    return _fenced(
        dataclasses.replace(ledger, reservations=records),
        acquisition_of(record),
        token=token,
        child_uid=record.child_uid if token else "",
    )


def _fenced(ledger: Ledger, which: Acquisition, *, token: str = "", child_uid: str = "") -> Ledger:
    fence = ReleaseFence(
        reservation_id=which.reservation_id,
        policy_epoch=which.policy_epoch,
        topology_lock_id=which.lock_id,
        drain_session_token=token,
        drain_child_uid=child_uid,
    )
    return ledger if ledger.last_release_fence == fence else dataclasses.replace(ledger, last_release_fence=fence)


def _another_child(record: Reservation, child_uid: str) -> Refusal:
    return _refused(record, f"is bound to leaf {record.child_uid or 'none'}, not to {child_uid or 'none'}")


def _refused(record: Reservation, text: str) -> Refusal:
    name = f"reservation {record.id} of {record.child_namespace}/{record.child_name} ({record.state})"
    return Refusal(Reason.TRANSITION, f"{name} {text}")

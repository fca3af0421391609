"""The reservation ledger as values (rollouts.md, section 8.1)."""

import enum
from bisect import bisect_left
from dataclasses import dataclass


class State(enum.StrEnum):
    """Of a reservation (8.1)."""

    RESERVED = "Reserved"
    BOUND = "Bound"
    DRAINING = "Draining"
    GRANTED = "Granted"
    REVOKED = "Revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One device of one campaign.  `domains` are (key, value) sorted by key; times are canonical texts, because of their nanoseconds."""

    id: str
    campaign_uid: str
    plan_hash: str
    policy_uid: str
    policy_version: str
    policy_epoch: int
    topology_lock_id: str
    physical_id: str
    device_uid: str
    node_uid: str
    child_namespace: str
    child_name: str
    domains: tuple[tuple[str, str], ...]
    control_revision: int
    state: State
    risk_groups: tuple[str, ...] = ()
    child_uid: str = ""
    drain_session_token: str = ""
    drain_started_at: str = ""
    drain_completed_at: str = ""

    def __hash__(self) -> int:
        """Of what tells records apart: each pass looks up every record of the ledger, and most members are the same in many."""
        return hash((self.id, self.topology_lock_id, self.state, self.child_uid))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFence:
    """The last acquisition that was released: a late Reserve of it is stale."""

    reservation_id: str
    policy_epoch: int
    topology_lock_id: str
    drain_session_token: str = ""
    drain_child_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All reservations, sorted by id; `uid` is that of the ConfigMap."""

    uid: str
    reservations: tuple[Reservation, ...] = ()
    last_release_fence: ReleaseFence | None = None

    def get(self, reservation_id: str) -> Reservation | None:
        """The reservation of that id."""
        at = bisect_left(self.reservations, reservation_id, key=lambda record: record.id)
        found = self.reservations[at] if at < len(self.reservations) else None
        return found if found is not None and found.id == reservation_id else None

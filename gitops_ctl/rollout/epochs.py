"""What a change of the fleet policy means for a plan that is frozen (rollouts.md, section 7.5).

A frozen campaign is never loosened: the numbers in force are the strictest of what was frozen, what is in force and what is written now.
What cannot be compared number by number ends the campaign's admissions until somebody plans anew.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from gitops_ctl.core.conditions import listed
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.planned import MOST_TARGETS
from gitops_ctl.rollout.snapshot import PolicyRecord, PolicySnapshot, SnapshotDomain, snapshot_of

EPOCH_TRANSITION = "PolicyEpochTransition"


class FenceReason(enum.StrEnum):
    """Why nothing of a campaign may begin any more."""

    POLICY_UNAVAILABLE = "PolicyUnavailable"
    POLICY_CHANGED = "PolicyChanged"


@dataclass(frozen=True, slots=True)
class Epoch:
    """The numbers in force, or about to be, and their number from 1."""

    number: int
    policy: PolicySnapshot


@dataclass(frozen=True, slots=True)
class PolicySeen:
    """What stands where the policy should be.

    Attributes:
        uid: "" when there is no such ConfigMap.
        record: None when there is none, or its text breaks a rule; `why` says which.
    """

    uid: str
    record: PolicyRecord | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing changes."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Revoke what is granted and not claimed; nothing new begins."""

    reason: FenceReason
    message: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The policy was written and means the same: record the resourceVersion, go on in the epoch."""

    policy: PolicySnapshot


@dataclass(frozen=True, slots=True)
class Begin:
    """Publish this transition; from then on nothing is admitted until every target is fenced."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Publish:
    """Run the fences of the pending transition; when all are through, this epoch is in force."""

    epoch: Epoch


Decision = Keep | Fence | Audit | Begin | Publish


def decide_epoch(
    seen: PolicySeen,
    *,
    frozen: PolicySnapshot,
    effective: Epoch,
    transition: Epoch | None,
    target_count: int,
    requested_cap: int,
) -> Decision:
    """What to do about the policy in one pass.

    Args:
        frozen: the snapshot of the frozen plan.
        transition: the one that is persisted; None without one.
        target_count: of the frozen plan.
        requested_cap: maxTargets of the plan.
    """
    current = _readable(seen, frozen)
    if not isinstance(current, PolicySnapshot):
        return current
    fence = _shape(current, frozen) or _count(current, target_count, requested_cap)
    if fence is not None:
        return fence
    if transition is not None:
        return _pending(transition, effective, frozen)
    if current.semantic_hash != effective.policy.semantic_hash:
        return _following(current, effective, frozen)
    same = current.resource_version == effective.policy.resource_version
    return Keep() if same else Audit(replace(effective.policy, resource_version=current.resource_version))


def _readable(seen: PolicySeen, frozen: PolicySnapshot) -> PolicySnapshot | Fence:
    """The policy as it is now; its identity is judged before its text.  What nobody can read allows as little as what is not there."""
    if not seen.uid:
        return Fence(FenceReason.POLICY_UNAVAILABLE, f"there is no policy {frozen.namespace}/{frozen.name}")
    if seen.uid != frozen.uid:
        return _changed(f"policy {frozen.namespace}/{frozen.name} is another object of that name")
    if seen.record is None:
        why = f"the policy {frozen.namespace}/{frozen.name} cannot be read: {seen.why}"
        return Fence(FenceReason.POLICY_UNAVAILABLE, why)
    return snapshot_of(seen.record)


def _following(current: PolicySnapshot, effective: Epoch, frozen: PolicySnapshot) -> Decision:
    following = strictest(current, (effective.policy, frozen))
    if following is None:
        return _changed("the sets of domains, or which budgets they have, changed")
    return Begin(Epoch(effective.number + 1, following))


def strictest(current: PolicySnapshot, others: Iterable[PolicySnapshot]) -> PolicySnapshot | None:
    """The identity of `current` with the smallest of all numbers; None when the domains are not the same ones."""
    compared = (current, *others)
    shapes = {tuple(_presence(domain) for domain in one.domains) for one in compared}
    if len(shapes) != 1:
        return None

    def least(number: Callable[[PolicySnapshot], int]) -> int:
        return min(number(one) for one in compared)

    columns = zip(*(one.domains for one in compared), strict=True)
    return replace(
        current,
        max_targets=least(lambda one: one.max_targets),
        transfers=least(lambda one: one.transfers),
        unavailable=least(lambda one: one.unavailable),
        freshness_s=least(lambda one: one.freshness_s),
        max_reservations=least(lambda one: one.max_reservations),
        max_ledger_bytes=least(lambda one: one.max_ledger_bytes),
        domains=tuple(_least_domain(column) for column in columns),
    )


def is_looser(one: PolicySnapshot, than: PolicySnapshot) -> bool:
    """Whether any number of `one` is larger, or the domains cannot be compared."""
    return strictest(one, (than,)) != one


def _presence(domain: SnapshotDomain) -> tuple[str, bool, bool]:
    return domain.key, domain.transfers is not None, domain.unavailable is not None


def _least_domain(domains: Iterable[SnapshotDomain]) -> SnapshotDomain:
    found = tuple(domains)
    transfers = [one.transfers for one in found if one.transfers is not None]
    unavailable = [one.unavailable for one in found if one.unavailable is not None]
    return SnapshotDomain(found[0].key, min(transfers, default=None), min(unavailable, default=None))


def _changed(message: str) -> Fence:
    return Fence(FenceReason.POLICY_CHANGED, f"{message}; make a new rollout, or cancel this one")


def _shape(current: PolicySnapshot, frozen: PolicySnapshot) -> Fence | None:
    members = ("name", "namespace", "ledger_namespace", "ledger_name", "ledger_uid", "structural_hash")
    differing = [name for name in members if getattr(current, name) != getattr(frozen, name)]
    if not differing:
        return None
    return _changed(f"the policy differs from the frozen one in {listed(differing)}")


def _count(current: PolicySnapshot, target_count: int, requested_cap: int) -> Fence | None:
    cap = min(requested_cap or MOST_TARGETS, current.max_targets or MOST_TARGETS, MOST_TARGETS)
    if target_count <= cap:
        return None
    return _changed(f"the plan has {target_count} targets and {cap} are allowed now")


def _pending(transition: Epoch, effective: Epoch, frozen: PolicySnapshot) -> Decision:
    identity = ("name", "namespace", "uid", "ledger_namespace", "ledger_name", "ledger_uid", "structural_hash")
    same = all(getattr(transition.policy, name) == getattr(frozen, name) for name in identity)
    if transition.number != effective.number + 1 or not same or is_looser(transition.policy, effective.policy):
        return _changed(f"the pending transition to epoch {transition.number} is not the one that follows")
    return Publish(transition)


def next_to_rearm(leaf_names: Iterable[str], leaves: Mapping[str, Leaf], *, epoch: int) -> Leaf | None:
    """The one leaf that this pass brings back to Pending, in plan order; None when there is none.

    Only leaves that an earlier epoch's end revoked, and that claimed nothing, come back.
    """
    for name in leaf_names:
        leaf = leaves.get(name)
        if leaf is not None and _waits_for_rearm(leaf, epoch):
            return leaf
    return None


def _waits_for_rearm(leaf: Leaf, epoch: int) -> bool:
    admission = leaf.admission
    return (
        admission is not None
        and admission.state == "Revoked"
        and admission.revocation_reason == EPOCH_TRANSITION
        and admission.policy_epoch < epoch
        and not leaf.claims
        and not leaf.is_terminal
        and not leaf.deleting
        and leaf.recovery is None
    )

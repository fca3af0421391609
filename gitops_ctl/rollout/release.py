"""A device is given back in one order, whatever led to it (rollouts.md, section 8.6).

The lock leaves Active, the ledger record goes and leaves its fence, the ledger is seen to have nothing of the device, the lock is cleared.
Each step finds out by itself whether it was done before, so the whole may be repeated from the start after a crash at any point.  What the
record needs to go is a proof about its leaf, read inside the ledger's compare-and-swap.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.ledger import Ledger, Reservation
from gitops_ctl.rollout.ledger_store import LedgerStore
from gitops_ctl.rollout.ledger_transitions import (
    Acquisition,
    Unclaimed,
    fence_unbound_acquisition,
    release_unclaimed_at_epoch,
    revoke_unclaimed_at_epoch,
)
from gitops_ctl.rollout.lock import LockClaim, device_path
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.problem import Reason as ProblemReason
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.targets import journal_is_lost

HISTORY_LOST: Final = str(ProblemReason.CLAIM_HISTORY_LOST)
NO_JOURNAL: Final = "the worker lost the journal of its claims for {}: only that journal, or a recovery of its leaf by two persons, ends this"

Remove = Callable[[Ledger, Reservation | None], Awaitable[Ledger | Refusal]]
"""Takes the record of the acquisition away, None when it is gone already; run anew on each fresh ledger."""


def unclaimed(leaf: Leaf | None, *, uid: str) -> Unclaimed | Refusal:
    """Proof that a leaf has no claim and can get none: it never had an admission, or it was revoked.

    A Pending or Granted admission proves nothing: a grant may be on its way to it.
    """
    if leaf is None or leaf.uid != uid:
        return Refusal(Reason.NOT_PROVEN, f"leaf {uid} is gone, so nothing is known about its claims")
    if leaf.claims:
        stages = ", ".join(claim.stage for claim in leaf.claims)
        return Refusal(Reason.NOT_PROVEN, f"leaf {leaf.name} has claimed {stages}")
    if leaf.admission is not None and leaf.admission.state not in {"Revoked", "Settled"}:
        return Refusal(Reason.NOT_PROVEN, f"the admission of leaf {leaf.name} is {leaf.admission.state}, not Revoked")
    return Unclaimed(uid)


async def history_lost(ports: Ports, device_namespace: str, device_name: str) -> Refusal | None:
    """Why an absent claim proves nothing about a device: its worker lost the journal of its claims (13.9); None while it has it."""
    tree = await ports.client.find(device_path(device_namespace, device_name))
    if tree is None or not journal_is_lost(device_of(tree)):
        return None
    return Refusal(Reason.NOT_PROVEN, NO_JOURNAL.format(device_name), check=HISTORY_LOST)


async def release_unclaimed(
    ports: Ports, store: LedgerStore, claim: LockClaim, which: Acquisition, *, is_attested: bool = False
) -> Refusal | None:
    """Give back an acquisition that changed nothing on its device; None when all of it is gone.

    The proof is looked for before the lock is touched as well: what cannot be given back keeps its device.

    Args:
        is_attested: two persons said what became of the leaf, so that a lost journal does not matter any more.

    Raises:
        TransientError, Conflict: not everything was done; repeat it.
    """

    async def remove(ledger: Ledger, record: Reservation | None) -> Ledger | Refusal:
        lost = None if is_attested else await history_lost(ports, claim.device_namespace, claim.device_name)
        if lost is not None:
            return lost
        if record is None or not record.child_uid:
            return fence_unbound_acquisition(ledger, which)
        leaf = await ports.leaf(record.child_namespace, record.child_name)
        proof = unclaimed(leaf, uid=record.child_uid)
        if isinstance(proof, Refusal):
            return proof
        revision = record.control_revision
        revoked = revoke_unclaimed_at_epoch(ledger, which, proof=proof, revision=revision)
        return revoked if isinstance(revoked, Refusal) else release_unclaimed_at_epoch(revoked, which, proof=proof)

    ledger = await store.read()
    record = ledger.get(which.reservation_id)
    if record is None or which.is_of(record):
        possible = await remove(ledger, record)
        if isinstance(possible, Refusal):
            return possible
    return await give_back(ports, store, claim, which, remove=remove)


async def give_back(
    ports: Ports, store: LedgerStore, claim: LockClaim, which: Acquisition, *, remove: Remove
) -> Refusal | None:
    """The order of 8.6 around one way to take the record away."""

    async def on(ledger: Ledger) -> Ledger | Refusal:
        record = ledger.get(which.reservation_id)
        if record is not None and not which.is_of(record):
            return ledger  # a later acquisition: this one is gone
        return await remove(ledger, record)

    await ports.locks.begin_release(claim, which)
    answer = await store.update(on)
    if isinstance(answer, Refusal):
        return answer
    return await ports.locks.clear(claim, which, store=store)

"""A target is fenced: nothing of it begins any more (rollouts.md, sections 7.5, 11.2 step 4 and 11.3).

The leaf comes first, because a claim and a revocation are writes of one object.  A target without a leaf gets one that is Revoked from the
beginning, a tombstone: the name is taken, so no late admission can use it.  Then, if nothing was claimed, the device is given back.  What was
claimed keeps its lock and its record, and is looked at until its outcome is proven.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gitops_ctl.core.errors import BlockedError, Conflict, GitopsError, ReplyLost, TerminalError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.kube.answers import AlreadyExists, NamespaceMissing
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.leafplan import LeafPlan, acquisition_from, control_patch, leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ledger_transitions import Acquisition, acquisition_of, revoke
from gitops_ctl.rollout.lock import acquisition_in, device_path
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.release import release_unclaimed
from gitops_ctl.rollout.validation import lock_claim


class Revocation(enum.StrEnum):
    """Why an admission is revoked (4.4)."""

    EPOCH = "PolicyEpochTransition"
    POLICY = "AdministratorPolicyChanged"
    SOURCE = "SourceIdentityChanged"
    CANCELLED = "CampaignCancelled"
    TARGET = "TargetIdentityChanged"
    SIBLING = "CampaignTargetFailed"
    RECOVERY = "RecoveryAttested"


KEEPS_CLAIMED = frozenset({Revocation.EPOCH, Revocation.POLICY, Revocation.SOURCE})
"""These leave an admission with an unresolved claim as it is: what was accepted goes on."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """A target of which nothing begins any more.

    Attributes:
        leaf: as it stands after the fence; None where the namespace goes and no leaf can be made in it any more.
        released: its device is free, or was never taken; False while claimed work keeps it.
    """

    leaf: Leaf | None
    released: bool


async def fence_every(
    ports: Ports, plans: Iterable[LeafPlan], why: Revocation, *, control: Control
) -> Mapping[str, str]:
    """Fence the targets of many leaves; none of them keeps another one from being fenced.

    Returns:
        Why a target is not fenced to the end, by UID of its device; "" for one that needs no leaf any more.

    Raises:
        TransientError, Conflict: of the first target that has to be tried again, once all were tried.
    """
    kept: dict[str, str] = {}
    again: GitopsError | None = None
    for plan in plans:
        try:
            answer = await fence(ports, plan, why, control=control)
        except (TransientError, Conflict) as error:
            again = again or error
        except (BlockedError, TerminalError) as error:
            kept[plan.target.device_uid] = error.message
        else:
            if isinstance(answer, Refusal):
                kept[plan.target.device_uid] = answer.message
            elif answer.leaf is None:
                kept[plan.target.device_uid] = ""
    if again is not None:
        raise again
    return kept


async def fence(ports: Ports, plan: LeafPlan, why: Revocation, *, control: Control) -> Fenced | Refusal:
    """Fence one target; repeating it ends in the same.

    Args:
        plan: of the leaf of this run.
        control: what the leaf is told; never a lower revision than before.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass.
    """
    try:
        leaf = await _revoked(ports, plan, why, control)
    except NamespaceMissing:
        return await _released(ports, plan, is_attested=False) or Fenced(None, released=True)
    if isinstance(leaf, Refusal):
        return leaf
    if leaf.admission is not None and leaf.admission.state == "Settled":
        return Fenced(leaf, released=True)
    if leaf.claims:
        return await _claimed(ports, plan, leaf, control)
    refusal = await _released(ports, plan, is_attested=leaf.recovery is not None)
    if refusal is not None or why is not Revocation.CANCELLED:
        return refusal or Fenced(leaf, released=True)
    settled = await settle_admission(ports, plan.campaign.namespace, plan.name)
    return settled if isinstance(settled, Refusal) else Fenced(settled, released=True)


async def _released(ports: Ports, plan: LeafPlan, *, is_attested: bool) -> Refusal | None:
    """Give back every acquisition of the target; None when nothing of it stands any more."""
    campaign, claim = plan.campaign, lock_claim(plan.campaign, plan.target)
    for which in await _standing(ports, plan):
        refusal = await release_unclaimed(ports, ports.ledger(campaign), claim, which, is_attested=is_attested)
        if refusal is not None:
            return refusal
    return None


async def settle_admission(ports: Ports, namespace: str, name: str) -> Leaf | Refusal:
    """The last write of a leaf: Granted or Revoked becomes Settled, once the device was given back."""
    path = leaf_path(namespace, name)

    async def one_round() -> Leaf | Refusal:
        tree = await ports.client.get(path)
        leaf = leaf_of(tree)
        state = leaf.admission.state if leaf.admission is not None else ""
        if state == "Settled":
            return leaf
        if state not in {"Granted", "Revoked"}:
            return Refusal(
                Reason.TRANSITION, f"the admission of leaf {name} is {state or 'missing'} and cannot be settled"
            )
        admission = {
            key: value
            for key, value in object_at(tree, "status", "managerAdmission").items()
            if key != "revocationReason"
        }
        cleared: JsonObject = {
            **admission,
            "state": "Settled",
            "revocationReason": None,
            "updatedAt": to_rfc3339(ports.clock.wall()),
        }
        return await _write(ports, path, tree, {"managerAdmission": cleared})

    return await swapped(ports.client, one_round)


async def _revoked(ports: Ports, plan: LeafPlan, why: Revocation, control: Control) -> Leaf | Refusal:
    """The leaf with a revoked admission and the control, in one write; made first where it is missing."""

    async def one_round() -> Leaf | Refusal:
        tree = await ports.client.find(plan.path) or await _tombstone(ports, plan)
        difference = plan.difference(tree)
        if difference:
            return Refusal(Reason.CHILD_CONFLICT, f"leaf {plan.name} is not the planned one: {difference}")
        leaf = leaf_of(tree)
        change = await _change(ports, plan, leaf, why, control)
        return await _write(ports, plan.path, tree, change) if change else leaf

    return await swapped(ports.client, one_round)


async def _change(ports: Ports, plan: LeafPlan, leaf: Leaf, why: Revocation, control: Control) -> dict[str, JsonValue]:
    change: dict[str, JsonValue] = {}
    state = leaf.admission.state if leaf.admission is not None else ""
    keeps = leaf.has_unresolved_claim and why in KEEPS_CLAIMED
    now, had = ports.clock.wall(), leaf.manager_control
    if state not in {"Revoked", "Settled"} and not keeps:
        change["managerAdmission"] = {
            **_revocable(plan, leaf, await _locked(ports, plan), now),
            "state": "Revoked",
            "revocationReason": str(why),
            "controlRevision": max(control.revision, leaf.admission.control_revision or 0 if leaf.admission else 0),
            "updatedAt": to_rfc3339(now),
        }
    if had is None or control.revision > had.revision:
        change["managerControl"] = control_patch(control, now=now)
    return change


def _revocable(plan: LeafPlan, leaf: Leaf, locked: Acquisition | None, now: datetime) -> JsonObject:
    """The admission that stands there; a tombstone's says whom it is for, and the lock where the device has one."""
    stored = dict(object_at(leaf.status, "managerAdmission"))
    if not stored:
        campaign = plan.campaign
        which = locked or Acquisition(campaign.reservation_of(plan.target), campaign.effective.number, "")
        stored = plan.pending(leaf.uid, which, now=now)
    if locked is not None and not stored.get("topologyLockID"):
        stored["topologyLockID"] = locked.lock_id
    return {key: value for key, value in stored.items() if value != ""}


async def _tombstone(ports: Ports, plan: LeafPlan) -> JsonObject:
    try:
        return await ports.client.create(leaf_path(plan.campaign.namespace), plan.tree(), manager=FIELD_MANAGER)
    except (AlreadyExists, ReplyLost) as error:
        tree = await ports.client.find(plan.path)
        if tree is None:
            raise TransientError(f"whether leaf {plan.name} was made is not known: {error.message}") from error
        return tree


async def _write(ports: Ports, path: str, tree: JsonObject, status: JsonObject) -> Leaf:
    body = swap(tree, {"status": status})
    return leaf_of(await ports.client.patch_merge(path, body, manager=FIELD_MANAGER, subresource="status"))


async def _claimed(ports: Ports, plan: LeafPlan, leaf: Leaf, control: Control) -> Fenced | Refusal:
    """Claimed work keeps everything; a control of a larger revision is noted in the ledger."""
    which = acquisition_from(leaf)
    if which is None or leaf.admission is None or leaf.admission.state != "Revoked":
        return Fenced(leaf, released=False)

    async def on(ledger: Ledger) -> Ledger | Refusal:
        record = ledger.get(which.reservation_id)
        if record is None or not which.is_of(record) or control.revision <= record.control_revision:
            return ledger
        return revoke(ledger, which, child_uid=leaf.uid, revision=control.revision)

    answer = await ports.ledger(plan.campaign).update(on)
    return answer if isinstance(answer, Refusal) else Fenced(leaf, released=False)


async def _standing(ports: Ports, plan: LeafPlan) -> tuple[Acquisition, ...]:
    """Every acquisition of the target that stands: of the lock on its device, of the ledger.

    When neither is there, all was given back before: the lock goes last.
    """
    wanted = plan.campaign.reservation_of(plan.target)
    found = [await _locked(ports, plan)]
    record = (await ports.ledger(plan.campaign).read()).get(wanted)
    found.append(acquisition_of(record) if record is not None else None)
    return tuple(dict.fromkeys(which for which in found if which is not None))


async def _locked(ports: Ports, plan: LeafPlan) -> Acquisition | None:
    """The acquisition for which this campaign holds the device of the target."""
    tree = await ports.client.find(device_path(plan.campaign.namespace, plan.target.device_name))
    lock = device_of(tree).lock if tree is not None else None
    wanted = plan.campaign.reservation_of(plan.target)
    return acquisition_in(lock) if lock is not None and lock.reservation_id == wanted else None

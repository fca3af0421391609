"""One target is admitted: locked, reserved, given its leaf, bound, and put before its worker (rollouts.md, section 11.4).

Every step is one small write that can be repeated.  After a crash the next pass runs the same steps again: the identical lock is adopted,
the identical reservation changes nothing, the leaf under the frozen name is compared, the bound record is bound already.  A step that is
refused after the lock gives back exactly this acquisition; one whose answer is missing gives nothing back, because the next pass finds out.
"""

from dataclasses import dataclass

from gitops_ctl.core.errors import GitopsError, ReplyLost, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.kube.answers import AlreadyExists
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.epochs import EPOCH_TRANSITION
from gitops_ctl.rollout.fence import Revocation, fence
from gitops_ctl.rollout.leafplan import (
    NETWORK_MEMBERS,
    Activation,
    LeafPlan,
    account_of,
    acquisition_from,
    control_patch,
    leaf_path,
)
from gitops_ctl.rollout.ledger_arithmetic import reserve
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER, swap, swapped
from gitops_ctl.rollout.ledger_transitions import Acquisition, bind_child
from gitops_ctl.rollout.lock import ReleaseFirst, acquisition_in, held
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.release import release_unclaimed
from gitops_ctl.rollout.targets import Target, journal_is_lost
from gitops_ctl.rollout.validation import Facts, Valid, admissible, lock_claim, request_of, same_campaign


@dataclass(frozen=True, slots=True)
class Admitted:
    """A target whose leaf waits for its worker."""

    leaf_name: str
    leaf_uid: str
    acquisition: Acquisition


@dataclass(frozen=True, slots=True)
class _Step:
    """What all steps of one admission share."""

    ports: Ports
    begun: CampaignState
    target: Target
    activation: Activation | None

    async def look(self) -> tuple[Facts, Valid | Refusal]:
        facts = await self.ports.look(self.begun, self.target)
        closed = self.activation.closed(facts.now) if self.activation is not None else None
        return facts, closed or admissible(facts, begun=self.begun, target=self.target)

    def plan(self, valid: Valid) -> LeafPlan:
        return LeafPlan(self.begun, self.target, valid.account, self.activation)

    async def release(self, which: Acquisition) -> None:
        store = self.ports.ledger(self.begun)
        await release_unclaimed(self.ports, store, lock_claim(self.begun, self.target), which)


async def admit(
    ports: Ports, begun: CampaignState, target: Target, *, activation: Activation | None = None
) -> Admitted | Refusal:
    """Admit one target of a campaign, or say why not.

    Also repairs a leaf that has no admission yet, re-arms one for a new epoch, and ends a release that was begun.

    Raises:
        TransientError, Conflict: how far it came is found out by the next pass, which runs the same steps.
        Refused: the ledger is not the one that is bound, or the server refuses the leaf.
    """
    step = _Step(ports, begun, target, activation)
    facts, valid = await step.look()
    if isinstance(valid, Refusal):
        await _release_leftover(step, facts)
        return valid
    locked = await ports.locks.acquire(lock_claim(begun, target))
    if isinstance(locked, ReleaseFirst):
        await step.release(locked.acquisition)
        return Refusal(Reason.DEVICE_LOCKED, f"a former lock of {target.device_name} was given back; it is taken anew")
    if isinstance(locked, Refusal):
        return locked
    try:
        answer = await _under_lock(step, valid, locked)
    except TransientError:
        raise
    except GitopsError:
        await step.release(locked)
        raise
    if isinstance(answer, Refusal):
        await step.release(locked)
    return answer


async def _release_leftover(step: _Step, facts: Facts) -> None:
    """Give back a lock that an earlier pass left behind: without this the refused target would keep its device for nothing."""
    lock = facts.device.lock if facts.device is not None else None
    claim = lock_claim(step.begun, step.target)
    if lock is not None and (lock.campaign_uid, lock.reservation_id) != (claim.campaign_uid, claim.reservation_id):
        return
    own = [leaf for leaf in facts.leaves if leaf.binding.reservation_id == claim.reservation_id]
    if not own and facts.device is not None and journal_is_lost(facts.device):
        if lock is not None or (await step.ports.ledger(step.begun).read()).get(claim.reservation_id) is not None:
            await _tombstone(step, facts)
        return
    if lock is None:
        return
    if not any(_is_live(leaf) or (leaf.claims and not leaf.is_given_back) for leaf in own):
        await step.release(acquisition_in(lock))


async def _tombstone(step: _Step, facts: Facts) -> None:
    """A device that nobody can prove unclaimed gets its leaf, so that two persons can say something about it (13.9)."""
    if facts.policy.record is None:
        return
    account = account_of(step.begun.namespace, facts.policy.record.policy.network_management_account)
    plan = LeafPlan(step.begun, step.target, account, step.activation)
    await fence(step.ports, plan, Revocation.TARGET, control=step.begun.control)


def _is_live(leaf: Leaf) -> bool:
    return leaf.admission is not None and leaf.admission.state in {"Pending", "Granted"}


async def _under_lock(step: _Step, valid: Valid, which: Acquisition) -> Admitted | Refusal:
    refusal = await _reserve(step, which) or await _looked_again(step, which)
    if refusal is not None:
        return refusal
    plan = step.plan(valid)
    leaf = await _leaf(step, plan, valid, which)
    if isinstance(leaf, Refusal):
        return leaf

    async def bind(ledger: Ledger) -> Ledger | Refusal:
        return bind_child(ledger, which, child_uid=leaf.uid)

    bound = await step.ports.ledger(step.begun).update(bind)
    return bound if isinstance(bound, Refusal) else await put_before_worker(step.ports, plan, leaf.uid, which)


async def _reserve(step: _Step, which: Acquisition) -> Refusal | None:
    """The record, decided on facts that are read after the ledger: whoever fences writes the lock first and the ledger then."""
    claim = lock_claim(step.begun, step.target)

    async def on(ledger: Ledger) -> Ledger | Refusal:
        facts, valid = await step.look()
        if isinstance(valid, Refusal):
            return valid
        assert facts.device is not None
        name = step.plan(valid).name
        return held(facts.device, claim, which) or reserve(
            ledger, valid.policy, valid.fleet, request_of(valid, which, child_name=name)
        )

    answer = await step.ports.ledger(step.begun).update(on)
    return answer if isinstance(answer, Refusal) else None


async def _looked_again(step: _Step, which: Acquisition) -> Refusal | None:
    """Lock and campaign once more, now that the record stands."""
    refusal = await step.ports.locks.check(lock_claim(step.begun, step.target), which)
    return refusal or same_campaign(await step.ports.campaign(step.begun), step.begun)


async def _leaf(step: _Step, plan: LeafPlan, valid: Valid, which: Acquisition) -> Leaf | Refusal:
    """The leaf under the frozen name: made now, or found and compared.  Only one that may be admitted is bound."""
    tree: JsonObject | None
    try:
        body = plan.tree(device=valid.device, node=valid.node)
        tree = await step.ports.client.create(leaf_path(step.begun.namespace), body, manager=FIELD_MANAGER)
    except (AlreadyExists, ReplyLost) as error:
        tree = await step.ports.client.find(plan.path)
        if tree is None:
            raise TransientError(f"whether leaf {plan.name} was made is not known: {error.message}") from error
    difference = plan.difference(tree)
    if difference:
        return Refusal(
            Reason.CHILD_CONFLICT,
            f"leaf {plan.name} is not the planned one: {difference}",
            holders=(text_at(tree, "metadata", "uid"),),
        )
    leaf = leaf_of(tree)
    if leaf.deleting:
        return Refusal(Reason.CHILD_CONFLICT, f"leaf {plan.name} is being deleted")
    return _admitted_before(leaf, which) or leaf


async def put_before_worker(ports: Ports, plan: LeafPlan, leaf_uid: str, which: Acquisition) -> Admitted | Refusal:
    """Write admission Pending and the neutral control, once; an admission that is there stays, except for a re-arm (7.5)."""

    async def one_round() -> Admitted | Refusal:
        tree = await ports.client.get(plan.path)
        leaf = leaf_of(tree)
        if leaf.uid != leaf_uid:
            return Refusal(Reason.CHILD_CONFLICT, f"leaf {plan.name} is another object now")
        if _is_live(leaf) and acquisition_from(leaf) == which:
            return Admitted(plan.name, leaf_uid, which)
        refusal = _admitted_before(leaf, which)
        if refusal is not None:
            return refusal
        await _put(ports, plan, tree, which)
        return Admitted(plan.name, leaf_uid, which)

    return await swapped(ports.client, one_round)


def _admitted_before(leaf: Leaf, which: Acquisition) -> Refusal | None:
    """None for a leaf without an admission, with that of this acquisition, or that comes back in a new epoch."""
    if leaf.admission is None or (_is_live(leaf) and acquisition_from(leaf) == which) or is_rearmed_by(leaf, which):
        return None
    return Refusal(Reason.CHILD_CONFLICT, f"leaf {leaf.name} was admitted before: {leaf.admission.state}")


def is_rearmed_by(leaf: Leaf, which: Acquisition) -> bool:
    """Whether the leaf comes back with a new acquisition: revoked by the end of an earlier epoch, and nothing claimed."""
    admission = leaf.admission
    return (
        admission is not None
        and admission.state == "Revoked"
        and admission.revocation_reason == EPOCH_TRANSITION
        and admission.policy_epoch < which.policy_epoch
        and not leaf.claims
        and not leaf.is_terminal
        and leaf.recovery is None
    )


async def _put(ports: Ports, plan: LeafPlan, tree: JsonObject, which: Acquisition) -> None:
    now, leaf = ports.clock.wall(), leaf_of(tree)
    gone = {} if leaf.admission is None else dict.fromkeys(("revocationReason", *NETWORK_MEMBERS))
    status: dict[str, JsonValue] = {"managerAdmission": {**gone, **plan.pending(leaf.uid, which, now=now)}}
    had, control = leaf.manager_control, plan.campaign.control
    if had is None or control.revision > had.revision:
        status["managerControl"] = control_patch(control, now=now)
    await ports.client.patch_merge(
        plan.path, swap(tree, {"status": status}), manager=FIELD_MANAGER, subresource="status"
    )

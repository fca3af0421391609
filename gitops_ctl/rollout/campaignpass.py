"""One pass over a campaign whose plan is frozen (rollouts.md, sections 9.1 and 11.2).

A pass reads, decides, takes at most one admission, and ends with one status.  What it decided before anything else (a control, an approval,
an epoch) is written first and acted upon by the next pass, so that every step finds in the cluster what it rests on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, object_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.names import CAMPAIGN_UID
from gitops_ctl.rollout.activationrun import PREPARATION, run_of, unplanned
from gitops_ctl.rollout.admission import admit
from gitops_ctl.rollout.approval import ApprovalJudgement, ApprovalState, judge_approval
from gitops_ctl.rollout.authority import Authority
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.control import (
    RESUME_AUTHORIZED,
    canary_pause,
    control_status,
    deletion_control,
    is_resume,
    judge_control,
)
from gitops_ctl.rollout.epochs import Audit, Begin, Decision, Epoch, Fence, PolicySeen, Publish, decide_epoch
from gitops_ctl.rollout.fence import Revocation, fence_every
from gitops_ctl.rollout.fenceup import NOT_FENCED, POLICY_CHANGED, SOURCE_CHANGED, FenceUp, standing_fence
from gitops_ctl.rollout.invalidation import invalidate
from gitops_ctl.rollout.leafcontrol import push_control
from gitops_ctl.rollout.leafplan import LeafPlan, account_of, leaf_path
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.progress import (
    Phase,
    Standing,
    TargetPhase,
    TargetStanding,
    planned,
    standings_of,
    status_of,
)
from gitops_ctl.rollout.recovery import recovered
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.targetsteps import Stepped, Steps, rearmed_leaf
from gitops_ctl.rollout.validation import sources_stand

_NOTHING: Final[Mapping[str, Stepped]] = MappingProxyType({})
_STOPS: Final = frozenset({TargetPhase.SOAKING, TargetPhase.BLOCKED})
_MOVES: Final = frozenset({TargetPhase.ADMITTED, TargetPhase.RUNNING})


@dataclass(frozen=True, slots=True)
class Passed:
    """What a pass came to.

    Attributes:
        status: members of the status to write.
        again: something was written that the next pass acts upon at once.
        soak_ends: when the first soak is over; None where nothing soaks.
    """

    status: JsonObject
    standing: Standing
    again: bool = False
    soak_ends: datetime | None = None


class CampaignPass:
    """One pass.  Made anew for each one, from the object as it was read."""

    def __init__(self, ports: Ports, campaign: CampaignState, authority: Authority) -> None:
        self._ports = ports
        self._authority = authority
        self._judged = judge_control(campaign.tree, authority.control)
        self._campaign = campaign.with_control(self._judged.control)
        self._before = standings_of(campaign.tree)
        self._leaves: Mapping[str, Leaf] = {}
        self._account = ""
        self._run = PREPARATION
        self._members: dict[str, JsonValue] = {}
        self._kept: Mapping[str, str] = {}
        self._seen: PolicySeen | None = None
        # Judged before anything is written: the status forgets which revision was there when the canaries passed.
        self._resumes = is_resume(campaign.tree, self._judged.control)

    async def run(self) -> Passed:
        """Take the campaign one step further.

        Raises:
            TransientError, Conflict: the next pass runs the same steps.
            Refused: the ledger is not the one that is bound.
        """
        self._leaves = await self._read_leaves()
        self._run = run_of(self._campaign, self._authority.activation, self._leaves, now=self._ports.clock.wall())
        self._members |= {} if self._run.record is None else {"activation": self._run.record}
        if self._campaign.deleting:
            control = deletion_control(self._campaign.live_control, self._leaves.values())
            self._campaign = self._campaign.with_control(control)
        await self._recover()
        seen = self._seen = await self._ports.policy(self._campaign)
        self._account = self._account_of(seen.record.policy.network_management_account if seen.record else "")
        if await push_control(self._ports, self._leaves.values(), self._campaign.control):
            self._leaves = await self._read_leaves()
        if self._campaign.control.cancel:
            return await self._cancel()
        fence = standing_fence(self._campaign.tree)
        if fence is not None:
            await self._fence_all(Revocation.SOURCE if fence.kind == SOURCE_CHANGED else Revocation.POLICY)
            return await self._fenced(fence)
        decision = decide_epoch(
            seen,
            frozen=self._campaign.frozen,
            effective=self._campaign.effective,
            transition=self._campaign.transition,
            target_count=len(self._campaign.targets),
            requested_cap=self._campaign.plan.max_targets,
        )
        return await self._by_policy(decision)

    async def _by_policy(self, decision: Decision) -> Passed:
        """While the policy is not as it was, nothing else is done."""
        match decision:
            case Fence(reason, message):
                await self._fence_all(Revocation.POLICY)
                return await self._fenced(FenceUp(POLICY_CHANGED, str(reason), message))
            case Begin(epoch):
                self._members["policyTransition"] = self._epoch(epoch, "startedAt")
                message = f"the policy changed: what is not claimed is fenced before epoch {epoch.number} begins"
                return self._paused("", message, transition=True, again=True)
            case Publish(epoch):
                return await self._publish(epoch)
            case Audit(policy):
                effective = Epoch(self._campaign.effective.number, policy)
                self._members["effectivePolicy"] = self._epoch(effective, "updatedAt")
                return self._paused("", "the policy was written and means the same", again=True, keep_phase=True)
            case _:
                return await self._approved()

    async def _recover(self) -> None:
        """Take up what two persons say about a leaf, before the policy is read: it may be gone (9.1, step 4)."""
        entries = await recovered(self._ports, self._campaign, self._authority.recovery, self._leaves)
        if entries is not None:
            self._members["recoveries"] = entries
            self._leaves = await self._read_leaves()

    # ---- control ----

    async def _cancel(self) -> Passed:
        """Fence every target, and look after what was claimed until its outcome is proven and it is healthy."""
        await self._fence_all(Revocation.CANCELLED)
        self._leaves = await self._read_leaves()
        steps = self._steps(begins=False)
        found = [await self._cancelled(steps, target) for target in self._campaign.targets]
        ended = all(one.standing.phase is TargetPhase.CANCELLED for one in found)
        phase = Phase.CANCELLED if ended else Phase.CANCELLING
        message = "" if ended else "claimed work is looked at until its outcome is proven; nothing else begins"
        if ended and _stored_phase(self._campaign.tree) is Phase.CANCELLED:
            message = await invalidate(self._ports, self._campaign, self._authority.invalidation, self._leaves)
        return self._passed(
            Standing(phase, [one.standing for one in found], message, approved=self._campaign.approved), found
        )

    async def _cancelled(self, steps: Steps, target: Target) -> Stepped:
        leaf = self._leaves.get(self._run.leaf_name(target))
        kept = self._kept.get(target.device_uid)
        if leaf is None:
            phase = TargetPhase.CANCELLING if kept is None or kept else TargetPhase.CANCELLED
            return Stepped(self._plain(target, phase, "CancelledBeforeAdmission", kept or ""))
        if leaf.admission is not None and leaf.admission.state == "Settled":
            reason = "CancelledAfterOutcome" if leaf.claims else "CancelledBeforeMutation"
            return Stepped(self._plain(target, TargetPhase.CANCELLED, reason, leaf=leaf))
        stepped = await steps.settle_cancelled(target, leaf)
        if stepped.standing.phase in {TargetPhase.SUCCEEDED, TargetPhase.FAILED}:
            return Stepped(self._plain(target, TargetPhase.CANCELLED, "CancelledAfterOutcome", leaf=leaf))
        if kept and not stepped.standing.message:
            return replace(stepped, standing=replace(stepped.standing, message=kept))
        return stepped

    # ---- policy ----

    async def _publish(self, epoch: Epoch) -> Passed:
        if not await self._fence_all(Revocation.EPOCH):
            text = f"fencing the epoch before {epoch.number}"
            return self._paused("", text, transition=True, found=await self._looked_after())
        self._members |= {"effectivePolicy": self._epoch(epoch, "updatedAt"), "policyTransition": None}
        return self._paused("", f"epoch {epoch.number} is in force", transition=False, again=True)

    def _epoch(self, epoch: Epoch, time: str) -> JsonObject:
        return {"epoch": epoch.number, "policy": epoch.policy.to_json(), time: to_rfc3339(self._ports.clock.wall())}

    async def _fence_all(self, why: Revocation, *, but: str = "") -> bool:
        """Fence every target; whether nothing of any of them can begin any more.

        Args:
            but: UID of a device that is left as it is.
        """
        if not self._account and why is not Revocation.CANCELLED:
            return True  # there is no policy and no leaf: nothing was ever admitted
        plans = [
            LeafPlan(self._campaign, target, self._account, self._run.activation(target))
            for target in self._campaign.targets
            if target.device_uid != but
        ]
        self._kept = await fence_every(self._ports, plans, why, control=self._campaign.control)
        return not any(self._kept.values())

    # ---- approval ----

    async def _approved(self) -> Passed:
        judgement = judge_approval(self._campaign.tree, self._authority.approval)
        if judgement.is_new:
            self._members["approval"] = judgement.to_json(now=self._ports.clock.wall())
        if judgement.state is ApprovalState.MISMATCH:
            return self._passed(
                Standing(Phase.FAILED, self._targets(), judgement.message, judgement.reason, approved=False)
            )
        if judgement.state is not ApprovalState.APPROVED:
            return await self._unapproved(judgement)
        if judgement.is_new:
            standing = Standing(Phase.EXECUTING, self._targets(), judgement.message, approved=True)
            return self._passed(standing, again=True)
        if self._authority.approval.halted:
            text = f"nothing new begins: {self._authority.approval.why}"
            return self._paused("RevisionRefused", text, found=await self._looked_after())
        if self._campaign.control.pause:
            text = "a person paused the campaign; accepted work goes on"
            return self._paused("", text, found=await self._looked_after())
        return await self._execute()

    async def _unapproved(self, judgement: ApprovalJudgement) -> Passed:
        """Nothing begins; what began under an approval that was revoked since is fenced."""
        found: Mapping[str, Stepped] = {}
        if self._leaves and judgement.state is ApprovalState.REQUIRED:
            await self._fence_all(Revocation.POLICY)
            found = await self._looked_after()
        standing = Standing(Phase.AWAITING_APPROVAL, self._over(found), judgement.message, approved=False)
        return self._passed(standing, list(found.values()))

    async def _looked_after(self) -> dict[str, Stepped]:
        """What was accepted is observed, settled and given back in every pass, also in one in which nothing begins."""
        self._leaves = await self._read_leaves()
        return await self._stepped(self._steps(begins=False))

    async def _stepped(self, steps: Steps) -> dict[str, Stepped]:
        found: dict[str, Stepped] = {}
        for target in self._campaign.targets:
            leaf = self._leaves.get(self._run.leaf_name(target))
            if leaf is not None:
                found[target.device_uid] = await steps.step(target, leaf)
        return found

    # ---- execution ----

    async def _held_up(self) -> Passed | None:
        """Another source than the frozen one, a window that is not open, an activation without its approval; None: the pass goes on."""
        changed = await self._source_changed()
        if changed is not None:
            return await self._stopped(changed, {})
        waits = self._run.waits(self._campaign, self._before, now=self._ports.clock.wall())
        if waits is None:
            return None
        if not (self._run.refused[0] and self._run.activations):
            return replace(self._passed(waits.standing, again=waits.again), soak_ends=waits.until)
        await self._fence_all(Revocation.POLICY)
        found = await self._looked_after()
        return self._passed(replace(waits.standing, targets=self._over(found)), list(found.values()))

    async def _not_as_planned(self) -> Passed | None:
        """A target that failed, or a leaf that nobody planned: nothing more begins; None: the pass goes on."""
        failed = next((leaf for leaf in self._leaves.values() if leaf.is_failed or leaf.recovery is not None), None)
        if failed is not None:
            return await self._failed(failed)
        strangers = unplanned(self._campaign, self._leaves)
        if not strangers:
            return None
        text = f"{listed(strangers)}: no leaf of this plan, and yet it names the campaign; nothing begins beside it"
        return self._paused(str(Reason.CHILD_CONFLICT), text, found=await self._looked_after())

    async def _execute(self) -> Passed:
        stopped = await self._held_up() or await self._not_as_planned()
        if stopped is not None:
            return stopped
        found = await self._stepped(self._steps())
        refusal = next((one.refusal for one in found.values() if one.refusal is not None), None)
        if refusal is not None:
            return await self._stopped(refusal, found)
        settled = {uid for uid, one in found.items() if one.standing.phase is TargetPhase.SUCCEEDED}
        if len(settled) == len(self._campaign.targets):
            return self._passed(Standing(Phase.SUCCEEDED, self._with(found), "every device succeeded", approved=True))
        resume = canary_pause(
            self._campaign.tree,
            self._campaign.control,
            waves={target.device_uid: target.wave for target in self._campaign.targets},
            settled=frozenset(settled),
            pauses=bool_at(self._campaign.plan.tree, "pauseAfterCanary", default=True),
        )
        if resume is not None and resume[0] == "True":
            message = "the canaries passed; a new control revision without pause lets the others begin"
            standing = Standing(Phase.PAUSED, self._with(found), message, approved=True, canary_resume=resume)
            return self._passed(standing, list(found.values()))
        return await self._admit_one(found, resume)

    async def _source_changed(self) -> Refusal | None:
        """Whether a source is another one than was frozen: looked at in every pass, also while nothing is admitted."""
        record = self._seen.record if self._seen is not None else None
        if record is None:
            return None
        found = sources_stand(self._campaign, record, await self._ports.secrets(self._campaign))
        return found if isinstance(found, Refusal) else None

    async def _admit_one(self, found: dict[str, Stepped], resume: tuple[str, str] | None) -> Passed:
        """Walk the targets in name order and admit the first that passes, unless something soaks or is blocked (S3)."""
        admitted, ends, why = False, "", ""
        stopping = next((one.standing for one in found.values() if one.standing.phase in _STOPS), None)
        if stopping is None:
            for target in self._open_targets(found):
                answer = await admit(self._ports, self._campaign, target, activation=self._run.activation(target))
                if not isinstance(answer, Refusal):
                    standing = self._plain(target, TargetPhase.ADMITTED, "ReservationGranted")
                    found[target.device_uid] = Stepped(standing)
                    admitted = True
                    break
                if answer.reason in {Reason.SOURCE_CHANGED, Reason.CHILD_CONFLICT}:
                    return await self._stopped(answer, found)
                if not answer.blocks_target:
                    ends, why = answer.message, str(answer.reason)
                    break
                blocked = self._plain(target, TargetPhase.BLOCKED, answer.target_reason, answer.message)
                found[target.device_uid] = Stepped(blocked)
        runs = any(one.standing.phase in _MOVES for one in found.values())
        soaks = any(one.standing.phase is TargetPhase.SOAKING for one in found.values())
        phase = Phase.SOAKING if soaks and not runs and not admitted else Phase.EXECUTING
        waits = f"waits for {stopping.device_name}: {stopping.reason}" if stopping is not None else ends
        targets = self._with(found, waits=waits, reason=why)
        message = waits or next((f"{one.device_name}: {one.message}" for one in targets if one.message), "")
        return self._passed(
            Standing(phase, targets, message, approved=True, canary_resume=resume), list(found.values())
        )

    def _open_targets(self, found: Mapping[str, Stepped]) -> Sequence[Target]:
        """Targets without a leaf; of the second wave only once every canary is settled."""
        canaries = [target for target in self._campaign.targets if target.wave == 0]
        done = all(
            target.device_uid in found and found[target.device_uid].standing.phase is TargetPhase.SUCCEEDED
            for target in canaries
        )
        return [
            target for target in self._campaign.targets if target.device_uid not in found and (target.wave == 0 or done)
        ]

    async def _failed(self, failed: Leaf) -> Passed:
        """The fence comes before anything else of the pass: after a failure nothing is granted, and nothing comes back."""
        await self._fence_all(Revocation.SIBLING, but=failed.binding.device_uid)
        found = await self._looked_after()
        ended = failed.recovery.outcome if failed.recovery is not None else failed.phase
        message = (
            f"{failed.device_name} ended {ended}: nothing else begins; look at the device, then make a new rollout"
        )
        return self._passed(Standing(Phase.FAILED, self._with(found), message, approved=True), list(found.values()))

    async def _stopped(self, refusal: Refusal, found: Mapping[str, Stepped]) -> Passed:
        """Something about the whole campaign is not as it was approved."""
        if refusal.reason is Reason.SOURCE_CHANGED:
            await self._fence_all(Revocation.SOURCE)
            return await self._fenced(FenceUp(SOURCE_CHANGED, "SourceIdentityChanged", refusal.message))
        changed = refusal.reason is Reason.POLICY_CHANGED
        return self._paused(
            "PolicyChangedIncompatibly" if changed else str(refusal.reason), refusal.message, found=found
        )

    # ---- what it comes to ----

    def _steps(self, *, begins: bool = True) -> Steps:
        rearmed = rearmed_leaf(self._campaign, self._leaves, self._run) if begins else ""
        return Steps(self._ports, self._campaign, self._account, self._leaves, self._before, rearmed, self._run, begins)

    async def _read_leaves(self) -> Mapping[str, Leaf]:
        listed = await self._ports.client.list_all(
            leaf_path(self._campaign.namespace), label_selector=f"{CAMPAIGN_UID}={self._campaign.uid}"
        )
        return {leaf.name: leaf for leaf in map(leaf_of, listed.items)}

    def _account_of(self, service_account: str) -> str:
        """The network worker's account: the policy's, which is part of its structure, or that of any leaf."""
        if service_account:
            return account_of(self._campaign.namespace, service_account)
        return next((leaf.binding.network_worker_username for leaf in self._leaves.values()), "")

    def _plain(
        self, target: Target, phase: TargetPhase, reason: str = "", message: str = "", leaf: Leaf | None = None
    ) -> TargetStanding:
        name, uid = (leaf.name, leaf.uid) if leaf is not None else ("", "")
        return TargetStanding(target.device_name, target.device_uid, phase, reason, message, name, uid)

    def _targets(self) -> list[TargetStanding]:
        """The targets as they stood before."""
        return [self._before.get(target.device_uid, planned(target)) for target in self._campaign.targets]

    def _over(self, found: Mapping[str, Stepped]) -> list[TargetStanding]:
        """The targets as they stood before, but for those that this pass looked at."""
        return [found[one.device_uid].standing if one.device_uid in found else one for one in self._targets()]

    def _with(self, found: Mapping[str, Stepped], *, waits: str = "", reason: str = "") -> list[TargetStanding]:
        """The targets of this pass; those that nobody looked at wait."""
        return [
            found[target.device_uid].standing
            if target.device_uid in found
            else self._plain(target, TargetPhase.WAITING, reason, waits)
            for target in self._campaign.targets
        ]

    def _paused(
        self,
        reason: str,
        message: str,
        *,
        transition: bool | None = None,
        again: bool = False,
        keep_phase: bool = False,
        found: Mapping[str, Stepped] = _NOTHING,
    ) -> Passed:
        phase = _stored_phase(self._campaign.tree) if keep_phase else Phase.PAUSED
        approved = self._campaign.approved
        standing = Standing(phase, self._over(found), message, reason, approved=approved, transition=transition)
        return self._passed(standing, list(found.values()), again=again)

    async def _fenced(self, fence: FenceUp) -> Passed:
        """What was claimed is observed to a conclusive outcome; the campaign goes on in no other way (7.5)."""
        found, approved = await self._looked_after(), self._campaign.approved
        standing = Standing(
            Phase.PAUSED, self._over(found), fence.message, fence.reason, approved=approved, fenced=fence.kind
        )
        return self._passed(standing, list(found.values()))

    def _passed(self, standing: Standing, stepped: Sequence[Stepped] = (), *, again: bool = False) -> Passed:
        now, kept = self._ports.clock.wall(), next(filter(None, self._kept.values()), "")
        if kept:
            standing = replace(standing, message=f"{standing.message}{NOT_FENCED}{kept}".removeprefix("; "))
        if self._resumes and standing.canary_resume is None:
            standing = replace(standing, canary_resume=("False", RESUME_AUTHORIZED))
        status = {
            **status_of(self._campaign.tree, standing, now=now),
            "control": control_status(self._campaign.control, self._leaves.values()),
            **self._members,
        }
        ends = [one.until for one in stepped if one.until is not None]
        return Passed(status, standing, again=again, soak_ends=min(ends, default=None))


def _stored_phase(tree: JsonObject) -> Phase:
    stored = object_at(tree, "status").get("phase")
    return Phase(stored) if isinstance(stored, str) and stored in set(Phase) else Phase.PAUSED

"""One step of each target that has a leaf: grant, renew, settle, or say what is waited for (rollouts.md, section 11.2, steps 4 to 6)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.core.moment import from_rfc3339, to_rfc3339
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.activationrun import PREPARATION, Run
from gitops_ctl.rollout.admission import admit
from gitops_ctl.rollout.bindings import renew_binding
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.epochs import next_to_rearm
from gitops_ctl.rollout.grant import grant, renew_authority
from gitops_ctl.rollout.leafplan import LeafPlan
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.progress import TargetPhase, TargetStanding
from gitops_ctl.rollout.refusal import SHOWN, Reason, Refusal
from gitops_ctl.rollout.release import HISTORY_LOST, history_lost
from gitops_ctl.rollout.settlement import Open, Soaking, settle_target
from gitops_ctl.rollout.targets import Target

HEALTH_GATE: Final = "PostMutationHealthGate"
TRANSFER_INTERRUPTED: Final = "TransferInterrupted"
_NOT_BEGUN: Final = frozenset({TargetPhase.ADMITTED, TargetPhase.BLOCKED})
ENDS_PASS: Final = frozenset(
    {Reason.CHILD_CONFLICT, Reason.SOURCE_CHANGED, Reason.POLICY_CHANGED, Reason.CAMPAIGN_CHANGED, Reason.IDENTITY}
)
"""Refusals that are about the whole campaign, not about one target."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step left of one target.

    Attributes:
        refusal: it is about the campaign as a whole: the pass ends with it.
        until: when the soak is over, of a target that soaks.
    """

    standing: TargetStanding
    refusal: Refusal | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one pass.

    Attributes:
        leaves: of this run by name.
        before: targets as the status has them, by UID of the device.
        rearmed: name of the leaf that this pass brings back; "" for none.
        run: which leaves the targets have.
        begins: whether a leaf may be admitted, granted or brought back; without it, what was accepted is only looked after.
    """

    ports: Ports
    campaign: CampaignState
    account: str
    leaves: Mapping[str, Leaf]
    before: Mapping[str, TargetStanding]
    rearmed: str
    run: Run = PREPARATION
    begins: bool = True

    async def step(self, target: Target, leaf: Leaf) -> Stepped:
        """Take a target that has a leaf one step further."""
        plan = LeafPlan(self.campaign, target, self.account, self.run.activation(target))
        difference = self.conflict(plan, leaf)
        if difference is not None:
            return Stepped(self._standing(target, leaf, TargetPhase.BLOCKED, difference.reason), difference)
        state = leaf.admission.state if leaf.admission is not None else ""
        if state == "Settled":
            return Stepped(self._settled(target, leaf))
        await renew_binding(self.ports, leaf)
        if leaf.is_terminal:
            return await self._settle(target, leaf)
        if state in {"", "Pending"} or leaf.name == self.rearmed:
            return await self._grant(target, leaf) if self.begins else self._waiting(target, leaf)
        if state == "Granted":
            return await self._running(target, leaf)
        reason = leaf.admission.revocation_reason if leaf.admission is not None else ""
        return Stepped(self._standing(target, leaf, TargetPhase.BLOCKED, reason))

    async def _running(self, target: Target, leaf: Leaf) -> Stepped:
        await renew_authority(self.ports, self.campaign, target, leaf_name=leaf.name)
        lost = await history_lost(self.ports, leaf.namespace, leaf.device_name)
        if lost is not None:
            return self._refused(target, leaf, TargetPhase.BLOCKED, lost.check, lost)
        return Stepped(self._works(target, leaf))

    def conflict(self, plan: LeafPlan, leaf: Leaf) -> Refusal | None:
        """Whether the leaf is another one than the planned one."""
        tree: JsonObject = {
            "metadata": {
                "annotations": dict(leaf.annotations),
                "labels": dict(leaf.labels),
                "ownerReferences": [{"uid": self.campaign.uid}],
            },
            "spec": leaf.spec,
        }
        difference = plan.difference(tree)
        if not difference:
            return None
        return Refusal(Reason.CHILD_CONFLICT, f"leaf {leaf.name} is not the planned one: {difference}")

    async def _grant(self, target: Target, leaf: Leaf) -> Stepped:
        """Bring a leaf before its worker, if it is not yet, and grant it once the worker has agreed."""
        if leaf.admission is None or leaf.admission.state != "Pending":
            answer = await admit(self.ports, self.campaign, target, activation=self.run.activation(target))
            word = "AdmissionBindingRecovered" if leaf.admission is None else "PolicyEpochRearmed"
            if isinstance(answer, Refusal):
                refused = "PolicyEpochRearmBlocked" if leaf.admission is not None else answer.target_reason
                return self._refused(target, leaf, TargetPhase.BLOCKED, refused, answer)
            return Stepped(self._standing(target, leaf, TargetPhase.ADMITTED, word))
        activation = self.run.activation(target)
        granted = await grant(self.ports, self.campaign, target, leaf_name=leaf.name, activation=activation)
        if isinstance(granted, Refusal):
            if granted.check in SHOWN:
                return self._refused(target, leaf, TargetPhase.BLOCKED, granted.target_reason, granted)
            return self._refused(target, leaf, TargetPhase.ADMITTED, granted.reason, granted)
        return Stepped(self._works(target, leaf))

    async def _settle(self, target: Target, leaf: Leaf) -> Stepped:
        answer = await settle_target(
            self.ports, self.campaign, target, leaf_name=leaf.name, soaking_since=self._soaking_since(target)
        )
        if isinstance(answer, Refusal):
            return self._refused(target, leaf, TargetPhase.BLOCKED, answer.reason, answer)
        if isinstance(answer, Soaking):
            message = f"healthy since the change; watched until {to_rfc3339(answer.until)}"
            standing = self._standing(target, leaf, TargetPhase.SOAKING, "HealthyPostMutationSoak", message)
            return Stepped(standing, until=answer.until)
        if isinstance(answer, Open):
            phase = TargetPhase.BLOCKED if answer.reason in {HEALTH_GATE, HISTORY_LOST} else TargetPhase.RUNNING
            return Stepped(self._standing(target, leaf, phase, answer.reason, answer.message))
        return Stepped(self._settled(target, answer))

    async def settle_cancelled(self, target: Target, leaf: Leaf) -> Stepped:
        """Look after a leaf of a cancelled campaign that had claimed something; its soak counts like any other."""
        await renew_binding(self.ports, leaf)
        if not leaf.is_terminal:
            word = "AcceptedMutationConverging" if leaf.claims else "CancelledBeforeMutation"
            return Stepped(self._standing(target, leaf, TargetPhase.CANCELLING, word))
        found = await self._settle(target, leaf)
        phase, reason = found.standing.phase, found.standing.reason
        if phase is TargetPhase.BLOCKED or phase is TargetPhase.RUNNING:
            word = "CancellationHealthGate" if reason == HEALTH_GATE else reason
            return replace(found, standing=replace(found.standing, phase=TargetPhase.CANCELLING, reason=word))
        return found

    def _waiting(self, target: Target, leaf: Leaf) -> Stepped:
        """A leaf that is not before its device yet, in a pass in which nothing begins: it stands as it stood."""
        before = self.before.get(target.device_uid)
        if before is not None and before.leaf_uid in {"", leaf.uid} and before.phase in _NOT_BEGUN:
            return Stepped(replace(before, leaf_name=leaf.name, leaf_uid=leaf.uid))
        return Stepped(self._standing(target, leaf, TargetPhase.ADMITTED, ""))

    def _soaking_since(self, target: Target) -> datetime | None:
        before = self.before.get(target.device_uid)
        if before is None or before.phase is not TargetPhase.SOAKING or not before.since:
            return None
        return from_rfc3339(before.since)

    def _settled(self, target: Target, leaf: Leaf) -> TargetStanding:
        if leaf.recovery is not None:
            # What two persons say ends a target, and never makes it a success.
            return self._standing(target, leaf, TargetPhase.FAILED, leaf.recovery.outcome)
        if leaf.is_failed:
            return self._standing(target, leaf, TargetPhase.FAILED, leaf.phase)
        return self._standing(target, leaf, TargetPhase.SUCCEEDED, "HealthGatePassed")

    def _works(self, target: Target, leaf: Leaf) -> TargetStanding:
        """Granted.  An install without an answer may be looked at until its deadline: then it says what is not proven."""
        message = text_at(leaf.status, "message") if leaf.phase == TRANSFER_INTERRUPTED else ""
        return self._standing(target, leaf, TargetPhase.RUNNING, leaf.phase or "Granted", message)

    def _refused(self, target: Target, leaf: Leaf, phase: TargetPhase, reason: str, refusal: Refusal) -> Stepped:
        standing = self._standing(target, leaf, phase, reason, refusal.message)
        return Stepped(standing, refusal if refusal.reason in ENDS_PASS else None)

    def _standing(
        self, target: Target, leaf: Leaf, phase: TargetPhase, reason: str, message: str = ""
    ) -> TargetStanding:
        return TargetStanding(target.device_name, target.device_uid, phase, reason, message, leaf.name, leaf.uid)


def rearmed_leaf(campaign: CampaignState, leaves: Mapping[str, Leaf], run: Run = PREPARATION) -> str:
    """Name of the one leaf that this pass brings back into the epoch in force; "" for none."""
    names = map(run.leaf_name, campaign.targets)
    found = next_to_rearm(names, leaves, epoch=campaign.effective.number)
    return found.name if found is not None else ""

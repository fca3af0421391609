"""Which leaves a pass works on: those that install, or those that activate what was prepared (rollouts.md, sections 12.1 and 12.4).

Pure.  A campaign that prepares has two runs over the same targets.  The second one begins when every device is prepared and given back, and
when the approval of exactly these receipts was taken up; a target then has its activation leaf, under a name of its own.  Until the window
opens nothing begins, and after it closed nothing new does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, bool_at, object_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.identity import activation_child_name
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.activation import AUTHORIZED, PREPARE_ONLY, ActivationState, judge_activation
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.leafplan import Activation
from gitops_ctl.rollout.progress import Phase, Standing, TargetPhase, TargetStanding, planned
from gitops_ctl.rollout.refusal import Reason
from gitops_ctl.rollout.targets import Target

LOOK_S: Final = 60
"""Seconds until the next look at a window that is not open, at the most."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The pass ends here.

    Attributes:
        again: the next pass goes on at once.
        until: when the window is looked at next; None while no window is waited for.
    """

    standing: Standing
    again: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The run that a pass works on.

    Attributes:
        activations: by UID of the device; empty while the campaign prepares, or only installs.
        has_begun: an activation leaf is there.
        refused: reason and message, when there is an approval that counts for nothing.
        record: `status.activation` as it has to be; None where it says so already.
    """

    activations: Mapping[str, Activation] = field(default_factory=dict)
    has_begun: bool = False
    refused: tuple[str, str] = ("", "")
    record: JsonObject | None = None

    def activation(self, target: Target) -> Activation | None:
        """What the leaf of a target activates; None for one that installs."""
        return self.activations.get(target.device_uid)

    def leaf_name(self, target: Target) -> str:
        """Name of the leaf of a target in this run."""
        return activation_child_name(target.child_name) if self.activations else target.child_name

    def waits(self, state: CampaignState, before: Mapping[str, TargetStanding], *, now: datetime) -> Waits | None:
        """Why the run does not go on in this pass; None when it does."""
        if self.refused[0]:
            targets = [before.get(target.device_uid, planned(target)) for target in state.targets]
            phase = Phase.PAUSED if self.has_begun else Phase.SUCCEEDED
            return Waits(Standing(phase, targets, self.refused[1], self.refused[0], approved=True))
        if not self.activations or self.has_begun:
            return None
        window = next(iter(self.activations.values()))
        if now < window.not_before:
            text = f"prepared; the activation window opens at {to_rfc3339(window.not_before)}"
            targets = _blocked(state, before, Reason.WINDOW_NOT_OPEN, text)
            standing = Standing(Phase.PAUSED, targets, text, Reason.WINDOW_NOT_OPEN, approved=True)
            return Waits(standing, until=min(window.not_before, now + timedelta(seconds=LOOK_S)))
        if not any(
            one.phase is TargetPhase.SUCCEEDED or one.reason == Reason.WINDOW_NOT_OPEN for one in before.values()
        ):
            return None
        text = f"the activation window is open until {to_rfc3339(window.not_after)}"
        targets = _blocked(state, before, AUTHORIZED, text)
        return Waits(Standing(Phase.EXECUTING, targets, text, approved=True), again=True)


PREPARATION: Final = Run()


def goes_on(rollout: JsonObject) -> bool:
    """Whether a campaign that prepared and ended has something to do all the same: activate, be cancelled, or give receipts up."""
    spec, phase = object_at(rollout, "spec"), text_at(rollout, "status", "phase")
    if text_at(spec, "plan", "strategy") != PREPARE_ONLY:
        return False
    if phase == Phase.CANCELLED:
        return bool(object_at(spec, "preparationInvalidation"))
    cancels = bool_at(spec, "control", "cancel") or "deletionTimestamp" in object_at(rollout, "metadata")
    return phase == Phase.SUCCEEDED and (cancels or bool(object_at(spec, "activationApproval")))


def run_of(state: CampaignState, block: Block, leaves: Mapping[str, Leaf], *, now: datetime) -> Run:
    """The run of this pass.

    Args:
        block: what Git has at `/spec/activationApproval`.
        leaves: all leaves of the campaign by name.
    """
    if state.plan.strategy != PREPARE_ONLY:
        return PREPARATION
    prepared = {target.device_uid: leaves.get(target.child_name) for target in state.targets}
    found = {uid: leaf for uid, leaf in prepared.items() if leaf is not None and leaf.is_given_back}
    if len(found) < len(state.targets):
        return PREPARATION
    has_begun = any(activation_child_name(target.child_name) in leaves for target in state.targets)
    judged = judge_activation(state, block, found, now=now, has_begun=has_begun)
    match judged.state:
        case ActivationState.AUTHORIZED:
            return Run(judged.activations or {}, has_begun, record=judged.record)
        case ActivationState.REFUSED:
            activations = judged.activations or {} if has_begun else {}
            return Run(activations, has_begun, refused=(judged.reason, judged.message), record=judged.record)
        case _:
            return PREPARATION


def unplanned(state: CampaignState, leaves: Iterable[str]) -> list[str]:
    """Names of leaves with the label of the campaign that are none of its plan: one for each target, and in an activation a second (11.2)."""
    planned_ones = {target.child_name for target in state.targets}
    if state.plan.strategy == PREPARE_ONLY:
        planned_ones |= {activation_child_name(name) for name in planned_ones}
    return sorted(set(leaves) - planned_ones)


def _blocked(
    state: CampaignState, before: Mapping[str, TargetStanding], reason: str, message: str
) -> list[TargetStanding]:
    stood = [before.get(target.device_uid, planned(target)) for target in state.targets]
    return [replace(one, phase=TargetPhase.BLOCKED, reason=reason, message=message) for one in stood]

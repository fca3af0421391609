"""The next step of a leaf (rollouts.md, sections 13.1 to 13.4).  Pure: what stands in the leaf decides, and nothing that a process remembers.

The furthest claim tells how far a leaf is.  Either its outcome is recorded, and the next stage may be claimed; or it is not, and then only
looking settles it: nothing is ever sent again.
"""

from dataclasses import dataclass
from enum import StrEnum

from gitops_ctl.core.jsonvalue import bool_at, text_at
from gitops_ctl.device.worker.leafstatus import last_stage
from gitops_ctl.fleet.gate import VERIFIED_BY_HAND, Gate
from gitops_ctl.fleet.leaf import Leaf

PREPARE_ONLY = "PrepareOnly"
NO_REBOOT = "NoReboot"


class Step(StrEnum):
    """What is to be done next."""

    WAIT = "Wait"
    """Nothing until somebody else acts."""
    BEGIN = "Begin"
    """Take the leaf up."""
    CHECK = "Check"
    """Look at the device for the first time, and repeat the device checks."""
    PIN = "Pin"
    """Have the image in the spool, and pin it."""
    CLAIM = "Claim"
    """Claim a stage and send its one request."""
    SETTLE_INSTALL = "SettleInstall"
    """Find out what became of an install."""
    SETTLE_STANDBY = "SettleStandby"
    """Find out what became of the activation of the standby supervisor."""
    SETTLE_ACTIVATION = "SettleActivation"
    """Find out what became of the activation, and commit it."""
    SETTLE_ROLLBACK = "SettleRollback"
    """The same for the way back."""
    PREPARED = "Prepared"
    """Prove that the image is installed, and end with a receipt."""
    GIVE_UP = "GiveUp"
    """No claim may be made any more: end as soon as the device is at rest."""
    BY_HAND = "ByHand"
    """Two persons say what became of it."""
    LOOK_ON = "LookOn"
    """Ended, and what became of a claim is not proven."""
    INVALIDATE = "Invalidate"
    """Look once more at a prepared device."""
    LET_GO = "LetGo"
    """Stopped before its first claim: give the maintenance back that it asked for."""
    DONE = "Done"
    """Ended and proven: give back what the worker holds."""


_SETTLING = {
    "Staging": Step.SETTLE_INSTALL,
    "PrimaryInstall": Step.SETTLE_INSTALL,
    "StandbyInstall": Step.SETTLE_INSTALL,
    "StandbyActivation": Step.SETTLE_STANDBY,
    "PrimaryActivation": Step.SETTLE_ACTIVATION,
    "RollbackActivation": Step.SETTLE_ROLLBACK,
}
_RECORDED = {
    "PrimaryInstall": "primarySupervisorInstalled",
    "StandbyInstall": "standbySupervisorInstalled",
    "StandbyActivation": "standbySupervisorActivated",
}


@dataclass(frozen=True, slots=True)
class Next:
    """The step, the stage that it is about, and the reason where it gives up."""

    step: Step
    stage: str = ""
    reason: str = ""


def next_step(leaf: Leaf, gate: Gate, *, unsent: bool = False) -> Next:
    """The one next step.

    Args:
        unsent: the journal proves that the furthest claim was made and its request never sent.
    """
    by_hand = leaf.recovery is not None and leaf.recovery.outcome == VERIFIED_BY_HAND
    if by_hand and (leaf.has_unresolved_claim or not leaf.is_terminal):
        return Next(Step.BY_HAND)
    if leaf.is_terminal or leaf.is_given_up:
        return _ended(leaf)
    if not gate.may_progress:
        return Next(Step.WAIT)
    stage = last_stage(leaf)
    is_open = bool(stage) and not bool_at(leaf.status, _RECORDED.get(stage, ""))
    if is_open and not unsent:
        return Next(_SETTLING[stage], stage)
    if is_open:
        return Next(Step.CLAIM, stage) if gate.may_claim else _without_claim(leaf)
    return _onwards(leaf, gate)


def _ended(leaf: Leaf) -> Next:
    if not leaf.is_terminal:
        return Next(Step.LET_GO)
    if leaf.has_unresolved_claim:
        return Next(Step.LOOK_ON)
    is_asked = "managerInvalidation" in leaf.status and "preparedInvalidation" not in leaf.status
    return Next(Step.INVALIDATE if leaf.phase == "Prepared" and is_asked else Step.DONE)


def _onwards(leaf: Leaf, gate: Gate) -> Next:
    if not text_at(leaf.status, "startTime") and not leaf.claims:
        return Next(Step.BEGIN) if gate.may_claim else _without_claim(leaf)
    if not leaf.claims and not text_at(leaf.status, "previousVersion"):
        return Next(Step.CHECK)
    if not leaf.claims and not leaf.is_preinstalled and not text_at(leaf.status, "sourceDigest"):
        return Next(Step.PIN)
    stage = next_claim(leaf)
    if not stage:
        return Next(Step.PREPARED)
    return Next(Step.CLAIM, stage) if gate.may_claim else _without_claim(leaf)


def _without_claim(leaf: Leaf) -> Next:
    """A claim would be next and none may be made: the end when that is for good, else waiting."""
    if leaf.claims and leaf.admission is not None and leaf.admission.state == "Revoked":
        return Next(Step.GIVE_UP, reason=leaf.admission.revocation_reason)
    return Next(Step.WAIT)


def next_claim(leaf: Leaf) -> str:
    """The stage after those whose outcome is recorded; empty when a preparation has all of its own."""
    individual = bool_at(leaf.status, "individualSupervisorInstall")
    if not leaf.is_preinstalled:
        if not _is_recorded(leaf, "PrimaryInstall"):
            return "PrimaryInstall"
        if individual and not _is_recorded(leaf, "StandbyInstall"):
            return "StandbyInstall"
        if leaf.strategy == PREPARE_ONLY:
            return ""
    if individual and not _is_recorded(leaf, "StandbyActivation"):
        return "StandbyActivation"
    return "PrimaryActivation"


def _is_recorded(leaf: Leaf, stage: str) -> bool:
    """Whether the outcome of a claim stands in the leaf; the word alone, without the claim, is nobody's outcome."""
    return leaf.claim(stage) is not None and bool_at(leaf.status, _RECORDED[stage])

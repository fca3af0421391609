"""What a look at the device says about a request that was sent once (rollouts.md, sections 13.3 and 13.4).  Pure.

A lost or refused answer is settled here and nowhere else: by what the device shows, until a deadline.  At the deadline an outcome that
is not proven ends the leaf without proof, and looking goes on.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from gitops_ctl.core.jsonvalue import int_at, object_at, text_at
from gitops_ctl.device.installcommit import CommitNeed, commit_need
from gitops_ctl.device.installhistory import unproven_add
from gitops_ctl.device.operational import inventory_state
from gitops_ctl.device.worker.deadlines import activation_deadline, install_deadline, is_over, rollback_deadline
from gitops_ctl.device.worker.decision import NO_REBOOT
from gitops_ctl.device.worker.leafstatus import INSTALL_STAGES
from gitops_ctl.device.worker.looking import Look
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.receipt import matches_target

REACHABLE: Final = "DeviceReachable"
"""Condition of a leaf; False from the moment at which the device was seen away after an activation."""
INSTALL_UNKNOWN: Final = "InstallOutcomeUnknown"
"""Why a leaf failed whose install nobody can tell the outcome of."""
_ABSENT: Final = frozenset({"Absent", "Present", "Invalid"})
"""Words of the inventory for a version that no install has added."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again; `away` says that the device does not answer."""

    why: str
    away: bool = False


@dataclass(frozen=True, slots=True)
class Proven:
    """The stage took place."""

    message: str


@dataclass(frozen=True, slots=True)
class End:
    """The leaf ends; `settled` when what became of the device is proven."""

    phase: str
    reason: str
    message: str
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """The version runs and has to be committed."""

    message: str


@dataclass(frozen=True, slots=True)
class RollBack:
    """Another version runs than the two that were expected."""

    message: str


Judgement: TypeAlias = Wait | Proven | End | Commit | RollBack


@dataclass(frozen=True, slots=True)
class Terms:
    """What a judgement about an activation rests on beside leaf and look.

    Attributes:
        still_s: for how long a switch has to show the same before it counts as one that will not act any more.
        may_commit: no commit was sent yet.
    """

    now: datetime
    still_s: float
    may_commit: bool


def judge_install(leaf: Leaf, look: Look, *, now: datetime, still_s: float) -> Wait | Proven | End:
    """An install whose answer is not known.

    A target that is not listed counts as absent once that has been so for `still_s`; after all bytes, not before the deadline either.
    """
    over = is_over(install_deadline(leaf), now)
    if look.unrest:
        return _unclear(INSTALL_UNKNOWN, look.unrest) if over else Wait(look.unrest)
    target = leaf.target_version
    state = inventory_state(look.install, target)
    if state in _ABSENT:
        if look.still_s < still_s or (is_fully_sent(leaf) and not over):
            return Wait(f"the device does not list {target} as installed")
        listed = "" if state == "Absent" else f"; the device lists {target} as {state}: remove it before the next try"
        return End(
            "Failed", "InstallInterrupted", f"the install was torn and {target} was not added{listed}", settled=True
        )
    if not (why := _unproven_install(leaf, look, now=now)):
        return Proven(f"all bytes were sent, {target} was added by it, and the device is at rest")
    return _unclear(INSTALL_UNKNOWN, why) if over else Wait(why)


def _unproven_install(leaf: Leaf, look: Look, *, now: datetime) -> str:
    """Why it is not proven that the furthest install of the leaf added what the device lists; empty when it is."""
    state = inventory_state(look.install, leaf.target_version)
    requests = tuple(
        one.claimed_at for one in leaf.claims if one.stage in INSTALL_STAGES and one.claimed_at is not None
    )
    why = f"the device lists {leaf.target_version} as {state}, and that this install added it is not proven"
    if state != "Installed" or not requests:
        return why
    if not is_fully_sent(leaf):
        return f"{why}: not every byte is known to have been sent"
    version = look.install.value.matching(leaf.target_version)[0].name
    unknown = unproven_add(look.history, version, requests=requests, now=now)
    return f"{why}: {unknown}" if unknown else ""


def is_fully_sent(leaf: Leaf) -> bool:
    """Whether every pinned byte went out."""
    sent, size = (
        int_at(object_at(leaf.status, "transferProgress"), "bytesTransferred"),
        int_at(leaf.status, "sourceSize"),
    )
    return 0 < size == sent


def judge_standby(leaf: Leaf, look: Look, *, now: datetime, still_s: float) -> Wait | Proven | End:
    """The activation of the standby supervisor; what it says may be about an earlier try until it has said so for `still_s`."""
    over = is_over(activation_deadline(leaf), now)
    if look.verified is None:
        return _unclear("StandbyActivationUnknown", look.why) if over else Wait(look.why)
    standby = look.verified.standby
    if matches_target(standby.version, leaf.target_version):
        return Proven(f"the standby supervisor runs {standby.version}")
    why = standby.fail_message or f"the standby supervisor is {standby.state.value} and runs {standby.version or '?'}"
    if over or (standby.fail_message and look.still_s >= still_s):
        return End("Failed", "StandbyActivationFailed", why)
    return Wait(why)


def judge_activation(leaf: Leaf, look: Look, terms: Terms) -> Judgement:
    """The activation of the target, as far as it is seen."""
    over = is_over(activation_deadline(leaf), terms.now)
    if look.verified is None:
        if over:
            return End("RebootTimeout", "RebootTimeout", f"the device is not back: {look.why}")
        return Wait(look.why, away=look.is_away)
    running, previous = look.running, text_at(leaf.status, "previousVersion")
    if matches_target(running, leaf.target_version):
        return _on_target(leaf, look, over=over, may_commit=terms.may_commit)
    if running == previous:
        return _on_previous(leaf, look, over=over, is_still=look.still_s >= terms.still_s)
    return _on_another(leaf, look, previous, over=over)


def _on_another(leaf: Leaf, look: Look, previous: str, *, over: bool) -> Judgement:
    if why := third_version_problem(look):
        return _unclear("ActivationOutcomeUnknown", why) if over else Wait(why)
    message = f"{look.running} runs, neither {leaf.target_version} nor {previous or 'a known version'}"
    if leaf.rollback_on_failure and previous:
        return RollBack(message)
    return End("Failed", "WrongVersion", message, settled=not look.unrest)


def third_version_problem(look: Look) -> str:
    """Why it is not proven that the device runs what OS.Verify says, and does nothing else; empty when it is.

    That the version is not committed, and that a timer will end it, is no reason to stay on it.
    """
    state = look.install.value
    if look.verified is None or not look.install.complete:
        return look.unrest or "the device cannot be read"
    if not (matches_target(state.running, look.running) or matches_target(look.running, state.running)):
        return f"install-oper runs {state.running or '?'}, OS.Verify says {look.running}"
    if state.operation:
        return "an install operation is in progress"
    return f"the activation of {', '.join(state.pending)} is pending" if state.pending else ""


def _on_target(leaf: Leaf, look: Look, *, over: bool, may_commit: bool) -> Judgement:
    assert look.verified is not None
    if look.verified.fail_message:
        return End("Failed", "ActivationFailed", f"the device runs the target and says: {look.verified.fail_message}")
    done = End("Succeeded", "", f"{look.running} runs and is committed", settled=True)
    return _committed(look, leaf.target_version, done=done, over=over, may_commit=may_commit)


def _on_previous(leaf: Leaf, look: Look, *, over: bool, is_still: bool) -> Judgement:
    """Still, or again, the version from before.

    Only a switch that left it, did not in time, or says why went back; and only one that has shown the same for a while will not act any
    more: its message may be about an earlier try, and a short reboot may be seen by nobody.
    """
    assert look.verified is not None
    failed, previous = look.verified.fail_message, look.running
    is_staged = any(matches_target(each, leaf.target_version) for each in look.install.value.pending)
    if leaf.strategy == NO_REBOOT and is_staged and look.install.complete and is_still:
        return End("StagedForNextBoot", "", f"{leaf.target_version} boots next, {previous} runs", settled=True)
    if look.unrest:
        return _unclear("ActivationOutcomeUnknown", look.unrest) if over else Wait(look.unrest)
    if is_still and (failed or was_away(leaf) or over):
        what = failed or ("it went back by itself" if was_away(leaf) else "it did not leave it in time")
        return End("RolledBack", "RolledBack", f"the device runs {previous}: {what}", settled=True)
    return Wait(f"the device still runs {previous}")


def judge_rollback(leaf: Leaf, look: Look, *, now: datetime, may_commit: bool) -> Judgement:
    """The way back to the version from before; `may_commit` as for the activation."""
    over, previous = is_over(rollback_deadline(leaf), now), text_at(leaf.status, "previousVersion")
    if look.verified is None:
        late = f"the device is not back: {look.why}"
        return _unclear("RollbackTimeout", late) if over else Wait(look.why, away=look.is_away)
    if not matches_target(look.running, previous):
        why = f"{look.running} runs, not {previous}"
        return End("Failed", "RollbackFailed", why) if over else Wait(why)
    done = End("RolledBack", "RolledBack", f"{look.running} runs again and is committed", settled=True)
    return _committed(look, previous, done=done, over=over, may_commit=may_commit)


def _committed(look: Look, version: str, *, done: End, over: bool, may_commit: bool) -> Judgement:
    """`done` once the version is observed as committed, and what follows until then."""
    sight = commit_need(look.install, version=version)
    if sight.need is CommitNeed.DONE:
        return done
    if over:
        return _unclear("CommitNotObserved", sight.message)
    if sight.need is CommitNeed.NEEDED and may_commit:
        return Commit(sight.message)
    return Wait(sight.message)


def judge_rest(look: Look, *, still_s: float) -> Wait | Proven:
    """Whether nothing goes on any more on the device of a leaf that ended, or may claim nothing, and has not for `still_s`."""
    if not look.unrest and look.still_s < still_s:
        return Wait(f"the device is at rest and runs {look.running}, and may still act")
    return Wait(look.unrest) if look.unrest else Proven(f"the device is at rest and runs {look.running}")


def judge_end(leaf: Leaf, look: Look, *, now: datetime, still_s: float) -> Wait | Proven:
    """Whether what became of an ended leaf is proven.

    A device at rest proves it, except for an install that may or may not have added what the device lists now.
    """
    rest = judge_rest(look, still_s=still_s)
    if isinstance(rest, Wait) or text_at(leaf.status, "failureReason") != INSTALL_UNKNOWN:
        return rest
    if inventory_state(look.install, leaf.target_version) in _ABSENT:
        return rest
    why = _unproven_install(leaf, look, now=now)
    return Wait(why) if why else rest


def was_away(leaf: Leaf) -> bool:
    """Whether the device was seen away, or on the target, since the activation."""
    reached = any(
        one.get("type") == REACHABLE and one.get("reason") in ("Rebooting", "Back") for one in _conditions(leaf)
    )
    return reached or matches_target(text_at(leaf.status, "runningVersion"), leaf.target_version)


def _conditions(leaf: Leaf) -> list[dict[str, object]]:
    found = leaf.status.get("conditions")
    return [dict(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _unclear(reason: str, why: str) -> End:
    return End("Failed", reason, why)

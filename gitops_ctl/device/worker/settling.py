"""From a look to what stands in the leaf: settling what was sent, and ending leaves (rollouts.md, sections 13.3 and 13.4).

Nothing here changes the device.  `observing` judges, this module looks and writes.
"""

from dataclasses import replace

from gitops_ctl.core.conditions import Condition, condition_of, is_true
from gitops_ctl.core.jsonvalue import JsonValue, text_at
from gitops_ctl.device.operational import inventory_state
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.claims import is_unsent
from gitops_ctl.device.worker.leafstatus import INSTALL_COMMIT, INSTALL_STAGES, last_stage
from gitops_ctl.device.worker.leafwork import AGAIN, Work
from gitops_ctl.device.worker.looking import Look, look
from gitops_ctl.device.worker.observing import (
    REACHABLE,
    Commit,
    End,
    Judgement,
    Proven,
    RollBack,
    Terms,
    Wait,
    judge_activation,
    judge_end,
    judge_install,
    judge_rest,
    judge_rollback,
    judge_standby,
)
from gitops_ctl.fleet.leaf import ACTIVATIONS

CORROBORATED = "NativeInstallCorroborated"


async def settle_install(work: Work, stage: str) -> float:
    """What became of an install whose answer is not known."""
    seen = _as_far_as(stage, await _looked(work))
    judgement = judge_install(work.leaf, seen, now=work.now, still_s=work.ports.still_s)
    if not isinstance(judgement, Proven):
        return await _ended_or_waiting(work, seen, judgement, phase="TransferInterrupted")
    installed = "standbySupervisorInstalled" if stage == "StandbyInstall" else "primarySupervisorInstalled"
    version = seen.install.value.matching(work.leaf.target_version)[0].name
    was_there = stage == "StandbyInstall" and not is_true(work.leaf.status, "Transferred")
    kinds = ("Validated",) if was_there else ("Transferred", "Validated")
    facts = [Condition(kind, "True", CORROBORATED, judgement.message) for kind in kinds]
    members: dict[str, JsonValue] = {installed: True, "validatedVersion": version, "phase": "Validating"}
    return await _write(work, members | leafstatus.conditions(work.leaf, *facts, now=work.now))


def _as_far_as(stage: str, seen: Look) -> Look:
    """The look as the stage is judged by it: what the first supervisor has proves nothing about an install on the other one."""
    if stage != "StandbyInstall":
        return seen
    return replace(seen, install=replace(seen.install, value=seen.install.value.everywhere))


async def settle_standby(work: Work) -> float:
    """What became of the activation of the standby supervisor."""
    seen = await _looked(work)
    judgement = judge_standby(work.leaf, seen, now=work.now, still_s=work.ports.still_s)
    if not isinstance(judgement, Proven):
        return await _ended_or_waiting(work, seen, judgement, phase="AwaitingReachability")
    return await _write(work, {"standbySupervisorActivated": True, "message": judgement.message})


async def settle_activation(work: Work) -> tuple[float, Judgement]:
    """What became of the activation; a Commit and a RollBack are for the caller to send."""
    seen = await _looked(work)
    terms = Terms(work.now, work.ports.still_s, may_commit(work))
    judgement = judge_activation(work.leaf, seen, terms)
    return await _after(work, seen, judgement, phase="AwaitingReachability"), judgement


async def settle_rollback(work: Work) -> tuple[float, Judgement]:
    """What became of the way back; a Commit is for the caller to send."""
    seen = await _looked(work)
    judgement = judge_rollback(work.leaf, seen, now=work.now, may_commit=may_commit(work))
    return await _after(work, seen, judgement, phase="RollingBack"), judgement


def may_commit(work: Work) -> bool:
    """Whether no commit was sent: none is marked, or the journal proves that the marked one never left."""
    return work.leaf.install_commit is None or is_unsent(work, work.leaf, INSTALL_COMMIT)


async def _looked(work: Work) -> Look:
    """A look, and for how long all of them have shown the same since the last claim."""
    with_history = last_stage(work.leaf) in INSTALL_STAGES
    seen = await look(work.ports, work.access, with_history=with_history)
    return replace(seen, still_s=work.still_s((last_stage(work.leaf), seen.running, seen.install)))


async def look_on(work: Work) -> float:
    """An ended leaf whose outcome is not proven: it is settled as soon as a look proves it."""
    seen = _as_far_as(last_stage(work.leaf), await _looked(work))
    judgement = judge_end(work.leaf, seen, now=work.now, still_s=work.ports.still_s)
    if isinstance(judgement, Wait):
        return work.ports.poll_s
    settled = leafstatus.settled_condition(judgement.message)
    return await _write(work, _sight(work, seen) | leafstatus.conditions(work.leaf, settled, now=work.now))


async def give_up(work: Work, reason: str, message: str = "") -> float:
    """End a leaf that may make no further claim, as soon as nothing goes on on its device."""
    said = message or "no further claim may be made"
    if not work.leaf.claims:
        return await _write(work, leafstatus.ended(work.leaf, "Failed", now=work.now, reason=reason, message=said))
    seen = await _looked(work)
    is_acting = last_stage(work.leaf) in ACTIVATIONS and not is_unsent(work, work.leaf, last_stage(work.leaf))
    judgement = judge_rest(seen, still_s=work.ports.still_s if is_acting else 0.0)
    if isinstance(judgement, Wait):
        return await waiting(work, reason, f"{said}; {judgement.why}")
    told = f"{said}; {judgement.message}"
    end = leafstatus.ended(work.leaf, "Failed", now=work.now, reason=reason, message=told, settled=True)
    return await _write(work, _sight(work, seen) | end)


async def by_hand(work: Work) -> float:
    """Two persons looked: nothing of this leaf goes on any more (rollouts.md, section 11.6)."""
    leaf, reason = work.leaf, "OutcomeVerifiedByHand"
    message = "two persons verified the outcome"
    settled = leafstatus.settled_condition(message, reason=reason)
    if leaf.is_terminal:
        return await _write(work, leafstatus.conditions(leaf, settled, now=work.now))
    ready = Condition("Ready", "False", reason, message)
    members = leafstatus.ended(leaf, "Failed", now=work.now, reason=reason, message=message)
    return await _write(work, members | leafstatus.conditions(leaf, ready, settled, now=work.now))


async def _after(work: Work, seen: Look, judgement: Judgement, *, phase: str) -> float:
    if isinstance(judgement, Commit | RollBack):
        told = {"phase": "Verifying" if isinstance(judgement, Commit) else phase, **_sight(work, seen)}
        return await _write(work, told | _reachable(work, away=False))
    assert not isinstance(judgement, Proven)
    return await _ended_or_waiting(work, seen, judgement, phase=phase)


async def _ended_or_waiting(work: Work, seen: Look, judgement: Wait | End, *, phase: str) -> float:
    if isinstance(judgement, Wait):
        shown = "Verifying" if phase == "AwaitingReachability" and seen.verified is not None else phase
        members = {"phase": shown, "message": judgement.why, **_sight(work, seen)}
        changed = {name: value for name, value in members.items() if work.leaf.status.get(name) != value}
        await _write(work, changed | _reachable(work, away=judgement.away))
        return work.ports.poll_s
    members = _sight(work, seen) | _ended(work, judgement)
    return await _write(work, members)


def _ended(work: Work, end: End) -> dict[str, JsonValue]:
    members = leafstatus.ended(
        work.leaf, end.phase, now=work.now, reason=end.reason, message=end.message, settled=end.settled
    )
    if not end.settled or end.phase not in ("Succeeded", "RolledBack"):
        return members
    return members | leafstatus.committed(work.leaf, now=work.now)


def _sight(work: Work, seen: Look) -> dict[str, JsonValue]:
    """What was seen of versions, where it is news."""
    found: dict[str, JsonValue] = {}
    if seen.running:
        found["runningVersion"] = seen.running
    if seen.install.complete:
        found["inventoryState"] = inventory_state(seen.install, work.leaf.target_version)
    return {name: value for name, value in found.items() if work.leaf.status.get(name) != value}


def _reachable(work: Work, *, away: bool) -> dict[str, JsonValue]:
    """The condition that remembers, for whoever looks later, that the device was away."""
    stored = condition_of(work.leaf.status, REACHABLE)
    status = text_at(stored, "status") if stored is not None else ""
    if away and status != "False":
        gone = Condition(REACHABLE, "False", "Rebooting", "the device does not answer")
        return leafstatus.conditions(work.leaf, gone, now=work.now)
    if not away and status == "False":
        return leafstatus.conditions(work.leaf, Condition(REACHABLE, "True", "Back", "it answers again"), now=work.now)
    return {}


async def waiting(work: Work, reason: str, message: str) -> float:
    """Say why nothing goes on, and look again later."""
    await _write(work, leafstatus.told(work.leaf, reason, message, now=work.now))
    return work.ports.poll_s


async def _write(work: Work, members: dict[str, JsonValue]) -> float:
    work.leaf = await work.desk.write(work.leaf, members)
    return AGAIN

"""Pause, resume and cancel: what was asked with authority, and what is in force on every leaf (rollouts.md, sections 2.6 and 11.3).

Tightening is honoured from wherever it comes, because an emergency stop must never be argued with.  Loosening needs a commit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, text_at
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.authority import NOT_FROM_GIT, Block
from gitops_ctl.rollout.campaignstate import Control, control_of

CANARY_RESUME: Final = "CanaryResumeRequired"
CANARIES_PASSED: Final = "CanariesPassed"
RESUME_AUTHORIZED: Final = "ResumeAuthorized"
_MEMBERS: Final = ("revision", "pause", "cancel")
_ACKNOWLEDGES_PAUSE: Final = frozenset({"Paused", "Claimed", "Settled"})
_ACKNOWLEDGES_CANCEL: Final = frozenset({"Cancelled", "Settled"})


@dataclass(frozen=True, slots=True)
class ControlJudgement:
    """Which control counts.

    Attributes:
        control: the one in force from now on.
        refused: why the live one does not count; "" when it does.
        is_emergency: it tightens and Git does not have it: a proposal brings it there.
    """

    control: Control
    refused: str = ""
    message: str = ""
    is_emergency: bool = False


def in_force(rollout: JsonObject) -> Control:
    """The control that was judged last, from the status."""
    status = object_at(rollout, "status", "control")
    return Control(
        revision=int_at(status, "requestedRevision"),
        pause=bool_at(status, "paused") or bool_at(status, "pausePending"),
        cancel=bool_at(status, "cancelled") or bool_at(status, "cancellationPending"),
    )


def judge_control(rollout: JsonObject, block: Block) -> ControlJudgement:
    """The control that counts: the live one when Git has it or when it only tightens, else the one in force.

    Args:
        block: what Git has at `/spec/control`.
    """
    live, before = control_of(object_at(rollout, "spec")), in_force(rollout)
    if live == before:
        return ControlJudgement(live)
    tree = _normal(object_at(rollout, "spec", "control"))
    declared = Block(block.known, _normal(block.declared), block.introduced, block.why, block.revoked)
    if declared.proves(tree, verb="control", members=_MEMBERS) is not None and live.revision > before.revision:
        return ControlJudgement(live)
    if tightens(live, before):
        return ControlJudgement(live, is_emergency=True)
    if not block.known:
        return ControlJudgement(before, message="the accepted revision was not looked at yet")
    why = block.why or "the accepted revision does not hold it"
    message = f"control revision {live.revision} has no effect: {why}"
    return ControlJudgement(before, refused=NOT_FROM_GIT, message=message)


def _normal(tree: JsonObject) -> JsonObject:
    """The members that decide, with what is left out filled in."""
    return {"revision": int_at(tree, "revision"), "pause": bool_at(tree, "pause"), "cancel": bool_at(tree, "cancel")}


def tightens(later: Control, before: Control) -> bool:
    """Whether a control only stops more than the one before.

    Admission lets a person go one revision further at a time; a manager that was away sees several of them at once, so any larger
    revision is taken.
    """
    loosens = (before.pause and not later.pause) or (before.cancel and not later.cancel)
    stops = (later.pause and not before.pause) or (later.cancel and not before.cancel)
    return later.revision > before.revision and stops and not loosens


def control_status(control: Control, leaves: Iterable[Leaf]) -> JsonObject:
    """`status.control`: the revision is effective once every leaf has acknowledged it, and reads 0 until then."""
    done = all(acknowledged(leaf, control) for leaf in leaves)
    tree: dict[str, JsonValue] = {
        "requestedRevision": control.revision,
        "effectiveRevision": control.revision if done else 0,
    }
    flags = {
        "pausePending": control.pause and not done,
        "paused": control.pause and done,
        "cancellationPending": control.cancel and not done,
        "cancelled": control.cancel and done,
    }
    return tree | {name: True for name, value in flags.items() if value}


def acknowledged(leaf: Leaf, control: Control) -> bool:
    """Whether the worker of a leaf has seen a control and keeps to it."""
    if control.cancel and _needs_no_acknowledgement(leaf):
        return True
    worker = leaf.worker_control
    if worker is None or worker.control_revision < control.revision:
        return control.revision == 0
    if control.cancel:
        return worker.effective_state in _ACKNOWLEDGES_CANCEL
    return not control.pause or worker.effective_state in _ACKNOWLEDGES_PAUSE


def _needs_no_acknowledgement(leaf: Leaf) -> bool:
    """Settled, or revoked before anything was claimed: no worker can begin anything there."""
    state = leaf.admission.state if leaf.admission is not None else ""
    return state == "Settled" or (state == "Revoked" and not leaf.claims)


def deletion_control(control: Control, leaves: Iterable[Leaf]) -> Control:
    """The cancellation that a deletion means; repeating it gives the same revision."""
    seen = (leaf.manager_control.revision for leaf in leaves if leaf.manager_control is not None)
    return Control(revision=max(control.revision + 1, *seen, 0), pause=False, cancel=True)


def is_resume(rollout: JsonObject, control: Control) -> bool:
    """Whether this control lets the second wave begin: canaries have passed, and somebody asked after that.

    Args:
        control: the one that counts now, before the status names its revision.
    """
    status = object_at(rollout, "status")
    condition = condition_of(status, CANARY_RESUME)
    if condition is None or text_at(condition, "status") != "True":
        return False
    grew = int_at(rollout, "metadata", "generation") > int_at(condition, "observedGeneration")
    newer = control.revision > int_at(status, "control", "requestedRevision")
    return grew and newer and control.is_neutral


def resume_is_authorised(rollout: JsonObject) -> bool:
    """Whether a resume was taken up before; it stays so."""
    condition = condition_of(object_at(rollout, "status"), CANARY_RESUME)
    return condition is not None and (text_at(condition, "status"), text_at(condition, "reason")) == (
        "False",
        RESUME_AUTHORIZED,
    )


def canary_pause(
    rollout: JsonObject, control: Control, *, waves: Mapping[str, int], settled: frozenset[str], pauses: bool
) -> tuple[str, str] | None:
    """Status and reason of the condition CanaryResumeRequired; None while it says nothing.

    Args:
        waves: device UID of each target to its wave.
        settled: device UIDs of the targets that succeeded.
        pauses: pauseAfterCanary of the plan.
    """
    if not pauses or not any(waves.values()):
        return None
    if resume_is_authorised(rollout) or is_resume(rollout, control):
        return "False", RESUME_AUTHORIZED
    canaries = {uid for uid, wave in waves.items() if wave == 0}
    return ("True", CANARIES_PASSED) if canaries <= settled else None

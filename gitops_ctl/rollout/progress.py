"""Where a campaign stands, as its status says it: targets, counts, phase, conditions (rollouts.md, sections 3.4 to 3.6).

Pure.  A status that says the same as the stored one is the same document, so that nothing is written.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gitops_ctl.core.conditions import Condition, condition_of, cut, merge_conditions
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, int_at, object_at, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.rollout.control import CANARY_RESUME
from gitops_ctl.rollout.targets import Target

MESSAGE_LIMIT: Final = 512
_REASON_LIMIT: Final = 128


class Phase(enum.StrEnum):
    """Of a campaign."""

    AWAITING_APPROVAL = "AwaitingApproval"
    PAUSED = "Paused"
    EXECUTING = "Executing"
    SOAKING = "Soaking"
    CANCELLING = "Cancelling"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class TargetPhase(enum.StrEnum):
    """Of one target."""

    PLANNED = "Planned"
    WAITING = "WaitingForAdmission"
    ADMITTED = "Admitted"
    RUNNING = "Running"
    SOAKING = "Soaking"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    BLOCKED = "Blocked"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"


_PROGRESSING: Final = frozenset({Phase.EXECUTING, Phase.SOAKING, Phase.CANCELLING})
_COUNTED: Final = {
    TargetPhase.PLANNED: "planned",
    TargetPhase.WAITING: "planned",
    TargetPhase.ADMITTED: "admitted",
    TargetPhase.RUNNING: "inProgress",
    TargetPhase.SOAKING: "inProgress",
    TargetPhase.CANCELLING: "inProgress",
    TargetPhase.SUCCEEDED: "succeeded",
    TargetPhase.FAILED: "failed",
    TargetPhase.BLOCKED: "blocked",
    TargetPhase.CANCELLED: "cancelled",
}
_STAYS: Final = frozenset({CANARY_RESUME, "PolicyTransition", "PolicyChanged", "SourceChanged"})
"""Conditions that stand until a pass says otherwise."""
_COUNTS: Final = ("planned", "admitted", "inProgress", "succeeded", "failed", "blocked", "cancelled")


@dataclass(frozen=True, slots=True)
class TargetStanding:
    """One target of the plan.

    Attributes:
        since: when it came into its phase, as stored; "" while it was never written.
    """

    device_name: str
    device_uid: str
    phase: TargetPhase
    reason: str = ""
    message: str = ""
    leaf_name: str = ""
    leaf_uid: str = ""
    since: str = ""

    def to_json(self) -> JsonObject:
        """The entry of `status.targets`."""
        tree: dict[str, JsonValue] = {"deviceName": self.device_name, "deviceUID": self.device_uid}
        optional = {
            "leafName": self.leaf_name,
            "leafUID": self.leaf_uid,
            "phase": self.phase.value,
            "reason": self.reason[:_REASON_LIMIT],
            "message": cut(self.message, limit=MESSAGE_LIMIT),
            "lastTransitionTime": self.since,
        }
        return tree | {name: value for name, value in optional.items() if value}


def standings_of(rollout: JsonObject) -> Mapping[str, TargetStanding]:
    """The stored targets by UID of the device; one with a phase of another version is left out."""
    found = {}
    for tree in objects_at(rollout, "status", "targets"):
        try:
            phase = TargetPhase(text_at(tree, "phase"))
        except ValueError:
            continue
        found[text_at(tree, "deviceUID")] = TargetStanding(
            device_name=text_at(tree, "deviceName"),
            device_uid=text_at(tree, "deviceUID"),
            phase=phase,
            reason=text_at(tree, "reason"),
            message=text_at(tree, "message"),
            leaf_name=text_at(tree, "leafName"),
            leaf_uid=text_at(tree, "leafUID"),
            since=text_at(tree, "lastTransitionTime"),
        )
    return found


def planned(target: Target) -> TargetStanding:
    """A target right after its plan was frozen."""
    return TargetStanding(target.device_name, target.device_uid, TargetPhase.PLANNED)


def counts_of(standings: Iterable[TargetStanding]) -> JsonObject:
    """`status.counts`: zeros are left out."""
    phases = [standing.phase for standing in standings]
    counted = Counter(_COUNTED[phase] for phase in phases)
    numbers = {"total": len(phases), **{name: counted[name] for name in _COUNTS}}
    return {name: number for name, number in numbers.items() if number}


@dataclass(frozen=True, slots=True)
class Standing:
    """What a pass found out about a campaign.

    Attributes:
        targets: in plan order.
        ready_reason: why it is not ready, in Failed and Paused; "" for the phase's own word.
        approved: None while no plan is frozen.
        canary_resume: status and reason of that condition; None while it says nothing.
        fenced: type of a fence that is up, PolicyChanged or SourceChanged; "" without one.
        transition: a policy transition: True while the former epoch is being fenced, False once the new one is published, None
            where there never was one.
    """

    phase: Phase
    targets: Sequence[TargetStanding] = ()
    message: str = ""
    ready_reason: str = ""
    approved: bool | None = None
    canary_resume: tuple[str, str] | None = None
    fenced: str = ""
    transition: bool | None = None


def status_of(rollout: JsonObject, standing: Standing, *, now: datetime) -> dict[str, JsonValue]:
    """The members of the status that say where a campaign stands; frozen plan, policy, approval and control are not among them."""
    stored, moment = standings_of(rollout), to_rfc3339(now)
    targets = [_dated(target, stored.get(target.device_uid), moment) for target in standing.targets]
    status = object_at(rollout, "status")
    generation = int_at(rollout, "metadata", "generation")
    return {
        "observedGeneration": generation,
        "phase": standing.phase.value,
        "counts": counts_of(targets),
        "targets": [target.to_json() for target in targets],
        "conditions": _conditions(status, standing, generation, now),
        "message": cut(standing.message, limit=MESSAGE_LIMIT),
    }


def _dated(target: TargetStanding, stored: TargetStanding | None, moment: str) -> TargetStanding:
    """The time of the phase is kept while the phase is."""
    same = stored is not None and stored.phase is target.phase and stored.since
    return replace(target, since=stored.since if same and stored is not None else moment)


def _conditions(status: JsonObject, standing: Standing, generation: int, now: datetime) -> list[JsonObject]:
    wanted = [_brief(condition) for condition in _wanted(standing)]
    said = {condition.type for condition in wanted}
    made = merge_conditions(status, wanted=wanted, generation=generation, now=now)
    kept = [one for one in objects_at(status, "conditions") if text_at(one, "type") in _STAYS - said]
    both = [*kept, *(_kept_generation(dict(condition), status) for condition in made)]
    return sorted(both, key=lambda one: text_at(one, "type"))


def _wanted(standing: Standing) -> Iterable[Condition]:
    phase, message = standing.phase, standing.message
    if standing.approved is not None:
        yield Condition("Planned", "True", "PlanFrozen", "the plan is frozen")
        if standing.approved:
            yield Condition("Approved", "True", "ExactPlanApproved", "the exact plan is approved")
        else:
            said = "frozen plan created; approval of the exact plan hash is required"
            yield Condition("Approved", "False", "ApprovalRequired", said)
    yield Condition("Progressing", "True" if phase in _PROGRESSING else "False", phase.value, message)
    if phase is Phase.SUCCEEDED:
        yield Condition("Ready", "True", phase.value, message)
    else:
        yield Condition("Ready", "False", standing.ready_reason or phase.value, message)
    if standing.fenced:
        yield Condition(standing.fenced, "True", "ReplanRequired", message)
    if standing.transition is not None:
        word = "FencingPreviousEpoch" if standing.transition else "EpochPublished"
        yield Condition("PolicyTransition", "True" if standing.transition else "False", word, "")
    if standing.canary_resume is not None:
        is_true, reason = standing.canary_resume[0] == "True", standing.canary_resume[1]
        yield Condition(CANARY_RESUME, "True" if is_true else "False", reason, "")


def _brief(condition: Condition) -> Condition:
    return replace(condition, message=cut(condition.message, limit=MESSAGE_LIMIT))


def _kept_generation(condition: dict[str, JsonValue], status: JsonObject) -> JsonObject:
    """A resume counts when the generation grew since the canaries passed, so that generation must not follow the object."""
    before = condition_of(status, CANARY_RESUME) if condition["type"] == CANARY_RESUME else None
    if before is not None and text_at(before, "status") == condition["status"]:
        condition["observedGeneration"] = int_at(before, "observedGeneration")
    return condition

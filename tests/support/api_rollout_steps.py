"""What a software rollout may become, and what not (rollouts.md, sections 3.1, 3.3 and 3.4)."""

from typing import Any

from tests.support.api import DIGEST, MOMENT, with_status
from tests.support.api_rollouts import (
    LATER,
    LEAF_UID,
    OTHER_DIGEST,
    PLANNER,
    a_control,
    a_frozen_plan,
    a_plan,
    a_planned_target,
    a_policy_snapshot,
    a_recovery,
    a_recovery_status,
    a_rollout,
    a_target_status,
    an_activation,
    an_approval,
    an_invalidation,
)
from tests.support.api_step import Step

_PREPARE = a_plan(strategy="PrepareOnly")
OTHER_LEAF = "leaf-2-uid"
_OTHER_TARGET = a_target_status(deviceName="switch-2", deviceUID="device-2-uid", leafUID=OTHER_LEAF)
_PUBLISHED = {
    "phase": "Cancelled",
    "frozenPlan": a_frozen_plan(),
    "targets": [a_target_status(), _OTHER_TARGET],
}


def _rollout(**spec: Any) -> dict[str, Any]:
    return with_status(a_rollout(**spec), **_PUBLISHED)


def _spec(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    return Step(
        f"rollout {name}", _rollout(**old), _rollout(**good), tuple(_rollout(**item) for item in bad), told, "spec"
    )


def _recovered(name: str, states: dict[str, str], old: Any, good: Any, *bad: Any, told: str) -> Step:
    """Blocks of spec.recovery (None: none) in a campaign with these states of recoveries by leaf."""
    entries = [a_recovery_status(leafUID=leaf, state=state) for leaf, state in states.items()]

    def tree(block: Any) -> dict[str, Any]:
        spec = {} if block is None else {"recovery": block}
        return with_status(a_rollout(**spec), **_PUBLISHED, recoveries=entries)

    return Step(f"rollout recovery {name}", tree(old), tree(good), tuple(tree(item) for item in bad), told, "spec")


def _status(name: str, old: dict[str, Any], good: dict[str, Any], *bad: dict[str, Any], told: str) -> Step:
    tree = a_rollout()
    return Step(
        f"rollout {name}",
        with_status(tree, **old),
        with_status(tree, **good),
        tuple(with_status(tree, **item) for item in bad),
        told,
    )


_CANCELLED = {"plan": _PREPARE, "control": a_control(2, cancel=True)}
_HASH_KEPT = "must neither change nor go away"

_SPEC_STEPS = (
    _spec(
        "plan",
        {},
        {"control": a_control(pause=True)},
        {"plan": a_plan(targetVersion="17.18.04")},
        {"plan": a_plan(pauseAfterCanary=False)},
        told="plan must not change: another campaign is another rollout",
    ),
    _spec(
        "approval",
        {"approval": an_approval()},
        {"approval": an_approval(), "control": a_control(pause=True)},
        {},
        {"approval": an_approval(approvedBy=PLANNER)},
        told=f"approval {_HASH_KEPT}",
    ),
    _spec(
        "activationApproval",
        {"plan": _PREPARE, "activationApproval": an_activation()},
        {"plan": _PREPARE, "activationApproval": an_activation(), "control": a_control(pause=True)},
        {"plan": _PREPARE},
        {"plan": _PREPARE, "activationApproval": an_activation(notAfter="2026-11-30T10:00:00Z")},
        told=f"activationApproval {_HASH_KEPT}",
    ),
    _spec(
        "preparationInvalidation",
        {**_CANCELLED, "preparationInvalidation": an_invalidation()},
        {**_CANCELLED, "preparationInvalidation": an_invalidation(), "approval": an_approval()},
        _CANCELLED,
        {**_CANCELLED, "preparationInvalidation": an_invalidation(reason="another")},
        told=f"preparationInvalidation {_HASH_KEPT}",
    ),
    _spec(
        "control revision",
        {"control": a_control(2, pause=True)},
        {"control": a_control(5)},
        {"control": a_control(1, pause=True)},
        {},
        told="control.revision must not fall, and control must not go away",
    ),
    _spec(
        "control change",
        {"control": a_control(2, pause=True)},
        {"control": a_control(3)},
        {"control": a_control(2)},
        {"control": a_control(2, pause=True, reason="later")},
        told="a change of control needs a larger revision than the live one",
    ),
    _spec(
        "control that asked for nothing",
        {"control": {"revision": 0}},
        {},
        {"control": {"revision": 0, "pause": False}},
        told="a change of control needs a larger revision than the live one",
    ),
    _spec(
        "cancel",
        {"control": a_control(2, cancel=True)},
        {"control": a_control(3, cancel=True, pause=True)},
        {"control": a_control(3)},
        {"control": a_control(3, cancel=False)},
        told="a cancelled campaign stays cancelled",
    ),
)

_BLOCK, _FIXED = a_recovery(), a_recovery(reason="burnt down")
_OTHER_BLOCK = a_recovery(leafUID=OTHER_LEAF)
_ACCEPTED = "an accepted recovery must neither change nor go away"

_RECOVERY_STEPS = (
    _recovered(
        "of a leaf",
        {},
        None,
        _BLOCK,
        a_recovery(leafUID="leaf-9-uid"),
        told="recovery.leafUID must be the UID of a leaf",
    ),
    _recovered(
        "held may be corrected", {LEAF_UID: "Held"}, _BLOCK, _FIXED, a_recovery(leafUID="x"), told="recovery.leafUID"
    ),
    _recovered("held may go", {LEAF_UID: "Held"}, _BLOCK, None, a_recovery(leafUID="x"), told="recovery.leafUID"),
    _recovered("accepted", {LEAF_UID: "Accepted"}, _BLOCK, _BLOCK, _FIXED, None, _OTHER_BLOCK, told=_ACCEPTED),
    _recovered("settled", {LEAF_UID: "Settled"}, _BLOCK, _OTHER_BLOCK, _FIXED, None, told=_ACCEPTED),
    _recovered(
        "settled twice",
        {LEAF_UID: "Settled", OTHER_LEAF: "Settled"},
        _BLOCK,
        _BLOCK,
        _OTHER_BLOCK,
        told="there is an accepted or settled recovery for this leaf already",
    ),
    _recovered(
        "settled anew",
        {LEAF_UID: "Settled"},
        None,
        _OTHER_BLOCK,
        _BLOCK,
        told="there is an accepted or settled recovery for this leaf already",
    ),
)


def _epoch(number: int) -> dict[str, Any]:
    return {"effectivePolicy": {"epoch": number, "policy": a_policy_snapshot(), "updatedAt": MOMENT}}


def _recoveries(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"recoveries": [a_recovery_status(**entry) for entry in entries]}


_STATUS_STEPS = (
    _status(
        "frozen plan",
        {"frozenPlan": a_frozen_plan()},
        {"frozenPlan": a_frozen_plan(), "phase": "Executing"},
        {"phase": "Executing"},
        {"frozenPlan": a_frozen_plan(hash=OTHER_DIGEST)},
        {"frozenPlan": a_frozen_plan(targets=[a_planned_target(wave=1)])},
        told="a published plan must neither change nor go away",
    ),
    _status(
        "intent hash",
        {"intentHash": DIGEST},
        {"intentHash": DIGEST, "phase": "Executing"},
        {"phase": "Executing"},
        {"intentHash": OTHER_DIGEST},
        told="intentHash must not change or go away once it is set",
    ),
    _status("policy epoch", _epoch(2), _epoch(3), _epoch(1), {}, told="the policy epoch must neither fall nor go away"),
    _status(
        "recovery stays",
        _recoveries({"state": "Accepted"}),
        _recoveries({"state": "Settled", "settledAt": LATER}),
        {},
        _recoveries({"leafUID": OTHER_LEAF}),
        told="an accepted recovery must not go away",
    ),
    _status("held recovery goes", _recoveries({}), {}, _recoveries({"state": "Odd"}), told="Unsupported value"),
    _status(
        "recovery goes on",
        _recoveries({"state": "Settled"}),
        _recoveries({"state": "Settled", "settledAt": LATER}),
        _recoveries({"state": "Accepted"}),
        _recoveries({"state": "Held"}),
        told="a recovery goes from Held to Accepted to Settled",
    ),
    _status(
        "recovery outcome",
        _recoveries({"state": "Accepted"}),
        _recoveries({"state": "Accepted", "reason": ""}),
        _recoveries({"state": "Accepted", "outcome": "OutcomeVerifiedByHand"}),
        told="the outcome of an accepted recovery must not change",
    ),
    Step(
        "rollout status stays",
        with_status(a_rollout(), phase="Failed"),
        with_status(a_rollout(), phase="AwaitingApproval"),
        (a_rollout(),),
        "the status must not be taken away",
    ),
)

ROLLOUT_STEPS = (*_SPEC_STEPS, *_RECOVERY_STEPS, *_STATUS_STEPS)

"""A rollout in the middle of its work, as the cluster stores it: two canaries are done, of the others one transfers, one is blocked."""

from typing import Any

from tests.support.api import DIGEST, with_status
from tests.support.api_leaves import a_claim
from tests.support.api_rollouts import (
    MOMENT,
    ROLLOUT_UID,
    a_frozen_plan,
    a_planned_target,
    a_rollout,
    a_target_status,
    an_upgrade,
)

STARTED, ENDED = "2026-11-30T08:10:00Z", "2026-11-30T08:40:00Z"
NAMES = ("switch-1", "switch-2", "switch-3", "switch-4", "switch-5")


def a_target(number: int, *, wave: int) -> dict[str, Any]:
    """The frozen target of `switch-<number>`."""
    name = f"switch-{number}"
    return a_planned_target(deviceName=name, deviceUID=f"device-{number}-uid", wave=wave, childName=f"leaf-{number}")


def a_summary(number: int, phase: str, **members: Any) -> dict[str, Any]:
    """Its entry in `status.targets`."""
    least = {"deviceName": f"switch-{number}", "deviceUID": f"device-{number}-uid", "phase": phase, "reason": phase}
    leaf = {"leafName": f"leaf-{number}", "leafUID": f"leaf-{number}-uid"}
    return {
        key: value for key, value in a_target_status(**{**least, **leaf, "message": "", **members}).items() if value
    }


def a_leaf(number: int, phase: str, **status: Any) -> dict[str, Any]:
    """Its leaf."""
    tree = an_upgrade(name=f"leaf-{number}", deviceRef={"name": f"switch-{number}"})
    tree["metadata"] |= {"uid": f"leaf-{number}-uid", "labels": {"topology.cisco.vk/campaign-uid": ROLLOUT_UID}}
    return with_status(tree, phase=phase, **status)


def leaves() -> dict[str, Any]:
    """The leaves by name."""
    done = {"startTime": STARTED, "completionTime": ENDED}
    moved = {"bytesTransferred": 327155712, "totalBytes": 1249368115}
    trees = [
        a_leaf(1, "Succeeded", **done),
        a_leaf(2, "Succeeded", **done),
        a_leaf(3, "Transferring", startTime=STARTED, transferProgress=moved, managedMutationClaims=[a_claim()]),
    ]
    return {tree["metadata"]["name"]: tree for tree in trees}


def a_moving_rollout(**status: Any) -> dict[str, Any]:
    """The rollout; members of its status can be replaced."""
    tree = a_rollout()
    tree["metadata"] |= {"uid": ROLLOUT_UID, "generation": 3}
    targets = [a_target(number, wave=0 if number < 3 else 1) for number in range(1, 6)]
    full = "1 of 1 transfers in use in zone zone-a: team-a/leaf-3"
    least = {
        "phase": "Executing",
        "frozenPlan": a_frozen_plan(targets=targets),
        "approval": {"planHash": DIGEST, "valid": True, "reason": "ExactPlanApproved", "validatedAt": MOMENT},
        "counts": {"total": 5, "planned": 1, "inProgress": 1, "succeeded": 2, "blocked": 1},
        "targets": [
            a_summary(1, "Succeeded"),
            a_summary(2, "Succeeded"),
            a_summary(3, "Running", reason="Transferring"),
            a_summary(4, "Blocked", reason="AdmissionBlocked", message=full, leafName="", leafUID=""),
            a_summary(5, "WaitingForAdmission", reason="", leafName="", leafUID=""),
        ],
        "message": "waits for switch-4: AdmissionBlocked",
    }
    return with_status(tree, **{**least, **status})

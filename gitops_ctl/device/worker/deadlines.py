"""The deadlines of a leaf, from the times in its status (rollouts.md, section 13.4).  Pure.

A deadline that has not begun is None.  They are counted by the wall clock, because they outlive the process.
"""

from datetime import datetime, timedelta

from gitops_ctl.core.jsonvalue import int_at, object_at
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.trees import moment_at

_INSTALL_S = 3600
_REBOOT_S = 1800


def readiness_deadline(leaf: Leaf) -> datetime | None:
    """Until when the device has to be ready and the image in the spool."""
    return _after(leaf, "startTime", install_s(leaf))


def install_deadline(leaf: Leaf) -> datetime | None:
    """The one deadline of all installs and of their observation, from the first install claim on."""
    return _after(leaf, "installStartTime", install_s(leaf))


def activation_deadline(leaf: Leaf) -> datetime | None:
    """Of activation, reachability, verification and install commit, from the first activation claim on."""
    return _after(leaf, "activationControlStartTime", reboot_s(leaf))


def rollback_deadline(leaf: Leaf) -> datetime | None:
    """Of the rollback, which is independent of the others."""
    return _after(leaf, "rollbackStartTime", reboot_s(leaf))


def is_over(deadline: datetime | None, now: datetime) -> bool:
    """Whether a deadline that has begun has passed."""
    return deadline is not None and now >= deadline


def install_s(leaf: Leaf) -> int:
    """Seconds of `installTimeoutSeconds`."""
    return int_at(leaf.spec, "installTimeoutSeconds", default=_INSTALL_S)


def reboot_s(leaf: Leaf) -> int:
    """Seconds of `rebootTimeoutSeconds`."""
    return int_at(leaf.spec, "rebootTimeoutSeconds", default=_REBOOT_S)


def window_problem(leaf: Leaf, now: datetime) -> tuple[str, bool]:
    """Why the maintenance window is not open (empty: it is, or there is none), and whether it will never be again."""
    window = object_at(leaf.spec, "maintenanceWindow")
    begin, end = moment_at(window, "notBefore"), moment_at(window, "notAfter")
    if begin is not None and now < begin:
        return f"the maintenance window opens at {begin.isoformat()}", False
    if end is not None and now >= end:
        return f"the maintenance window closed at {end.isoformat()}", True
    return "", False


def _after(leaf: Leaf, member: str, seconds: int) -> datetime | None:
    begin = moment_at(leaf.status, member)
    return None if begin is None else begin + timedelta(seconds=seconds)

"""The checks before an upgrade that NETCONF answers (rollouts.md, sections 9.4 and 13.2).

Pure functions over readings.  A check that cannot be answered is Unknown and counts as failed.  The reason is the contract's word,
the message says the numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.operational import InstallState, Mode, Platform, SavedConfiguration, Seen

_LONGEST: Final = 256


class Status(StrEnum):
    """How a check ended."""

    PASS = "Pass"  # noqa: S105  the word of the contract
    WARN = "Warn"
    FAIL = "Fail"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, how it ended, the reason where it did not pass, and a sentence for people."""

    name: str
    status: Status
    reason: str = ""
    message: str = ""

    @property
    def blocks(self) -> bool:
        return self.status in (Status.FAIL, Status.UNKNOWN)


def result_of(checks: Iterable[Check]) -> str:
    """`Failed` when one blocks, `Warned` when one warns, else `Passed`."""
    found = tuple(checks)
    if any(check.blocks for check in found):
        return "Failed"
    return "Warned" if any(check.status is Status.WARN for check in found) else "Passed"


def netconf(error: GitopsError | None) -> Check:
    """Whether a session with the pinned host key opened; `error` is why it did not."""
    if error is None:
        return Check("Netconf", Status.PASS)
    return _not("Netconf", "NetconfUnavailable", f"{error.reason}: {error.message}")


def flash_space(platform: Seen[Platform], install: Seen[InstallState], *, needed: int) -> Check:
    """Whether every supervisor has `needed` bytes free; all supervisors have to be seen."""
    name, reason = "FlashSpace", "FlashSpaceInsufficient"
    seen, expected = platform.value.flash, install.value.supervisors
    short = [flash for flash in seen if flash.free < needed]
    if short:
        told = ", ".join(f"{flash.place} has {flash.free} bytes free" for flash in short)
        return _not(name, reason, f"{told}, the image needs {needed}")
    if not platform.complete or not seen or len(seen) != expected:
        why = platform.why or f"the flash of {len(seen)} of {expected or '?'} supervisors is known"
        return _not(name, reason, why, unknown=True)
    return Check(name, Status.PASS, message=f"{min(flash.free for flash in seen)} bytes free, {needed} needed")


def install_mode(install: Seen[InstallState]) -> Check:
    """Whether the device booted in install mode."""
    name, reason, mode = "InstallMode", "NotInstallMode", install.value.mode
    if mode is Mode.BUNDLE:
        return _not(name, reason, "the device booted in bundle mode")
    if mode is not Mode.INSTALL:
        return _not(name, reason, install.why or "the device does not say how it booted", unknown=True)
    return Check(name, Status.PASS)


def quiescence_problem(install: Seen[InstallState], *, verified: str) -> str:
    """Why the device is not quiescent at a known version; empty when it is (rollouts.md, section 13.2).

    `verified` is the running version as OS.Verify gives it, empty when it did not answer.
    """
    state = install.value
    if not verified:
        return "OS.Verify does not answer"
    known = (
        (state.operation, "an install operation is in progress"),
        (bool(state.pending), f"the activation of {', '.join(state.pending)} is pending"),
        (state.timer, "the auto-abort timer runs"),
        (bool(state.running) and not state.committed, f"the running version {state.running} is not committed"),
        (not install.complete, install.why),
        (not state.running, "the running version is not known"),
        (not _same_version(state.running, verified), f"install-oper runs {state.running}, OS.Verify says {verified}"),
    )
    return next((why for applies, why in known if applies), "")


def quiescent(install: Seen[InstallState], *, verified: str) -> Check:
    """The check of that name."""
    problem = quiescence_problem(install, verified=verified)
    if not problem:
        return Check("Quiescent", Status.PASS, message=install.value.running)
    return _not("Quiescent", "DeviceNotQuiescent", problem, unknown=not install.complete or not verified)


def saved_configuration(saved: Seen[SavedConfiguration], *, block: bool) -> Check:
    """Whether a reload loses configuration; `block` is the controller option of that name, else it warns."""
    name, reason = "SavedConfiguration", "UnsavedConfiguration"
    if saved.complete and saved.value.saved:
        return Check(name, Status.PASS)
    places = ", ".join(saved.value.differences)
    message = f"running and startup differ at {places}" if places else saved.why
    if not block:
        return Check(name, Status.WARN, reason, message[:_LONGEST])
    return _not(name, reason, message, unknown=not saved.complete)


def _same_version(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _not(name: str, reason: str, message: str, *, unknown: bool = False) -> Check:
    return Check(name, Status.UNKNOWN if unknown else Status.FAIL, reason, message[:_LONGEST])

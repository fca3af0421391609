"""Looks at a device that change nothing (rollouts.md, sections 9.4, 13.2 and 13.4).

A look asks OS.Verify and the install manager over new sessions.  What does not answer is missing in it, with the reason; who decides asks
for what is there.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError, TransientError
from gitops_ctl.device import imagechecks, preflightchecks, reads
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.chassis import OtherChassis, require_chassis
from gitops_ctl.device.gnoi import SoftwareSession, Standby, StandbyState, Verified
from gitops_ctl.device.installhistory import InstallHistory
from gitops_ctl.device.netconf import NetconfSession
from gitops_ctl.device.operational import Apps, InstallState, SavedConfiguration, Seen
from gitops_ctl.device.preflightchecks import Check
from gitops_ctl.device.worker.leafports import Access, LeafPorts

T = TypeVar("T")
NOT_READ: Final = "it was not read"
NO_HISTORY: Final = Seen(InstallHistory(), (NOT_READ,))


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen.

    Attributes:
        verified: the answer to OS.Verify; None without one.
        install: what the install manager says; a gap without a session.
        why: what did not answer, for people.
        history: which installs the device remembers, where that was asked for.
        is_away: neither side took a connection; a session that is refused, or that nothing can be made of, says nothing of the device.
        still_s: for how long all looks of this process, since the last claim, saw the same; by the clock that nobody sets.
    """

    verified: Verified | None
    install: Seen[InstallState]
    why: str = ""
    history: Seen[InstallHistory] = NO_HISTORY
    is_away: bool = False
    still_s: float = 0.0

    @property
    def running(self) -> str:
        """The version that runs, as OS.Verify says it; empty when it does not answer."""
        return self.verified.version if self.verified is not None else ""

    @property
    def unrest(self) -> str:
        """Why the device is not quiescent at a known version; empty when it is."""
        if self.verified is None:
            return self.why or "OS.Verify does not answer"
        return preflightchecks.quiescence_problem(self.install, verified=self.verified.version)


@asynccontextmanager
async def gnoi_of(ports: LeafPorts, access: Access) -> AsyncIterator[SoftwareSession]:
    """A gNOI session with the device.

    Raises:
        BlockedError: there is no material for one.
        GitopsError: as those of the session.
    """
    if access.gnoi is None:
        raise BlockedError(f"no gNOI session can be made: {access.problem}", code=ErrorCode.GNOI_UNAVAILABLE)
    async with ports.gnoi.session(access.gnoi) as session:
        yield session


@asynccontextmanager
async def netconf_of(ports: LeafPorts, access: Access) -> AsyncIterator[NetconfSession]:
    """A NETCONF session with the device, which is asked first which chassis it is.

    Raises:
        OtherChassis: not that of the leaf.
        GitopsError: as of `gnoi_of`.
    """
    if access.netconf is None:
        raise BlockedError(f"no NETCONF session can be made: {access.problem}", code=ErrorCode.NETCONF_UNAVAILABLE)
    async with ports.netconf.session(access.netconf) as session:
        require_chassis(await reads.serial(session), expected=access.chassis, subject=access.netconf.name)
        yield session


async def look(ports: LeafPorts, access: Access, *, with_history: bool = False) -> Look:
    """One look; errors of the device become what is missing.  What another chassis shows is not looked at."""
    async with access.turn:
        verified, error = await _tried(lambda: _verified(ports, access))
        found, other = await _tried(lambda: _install(ports, access, with_history=with_history))
    if isinstance(other, OtherChassis):
        return Look(None, Seen(InstallState(), (other.message,)), other.message)
    whys = [one.message for one in (error, other) if one is not None]
    install, history = found or (Seen(InstallState(), (other.message if other is not None else NOT_READ,)), NO_HISTORY)
    is_away = isinstance(error, GnoiUnavailable) and isinstance(other, TransientError)
    return Look(verified, install, "; ".join(filter(None, whys)), history, is_away)


async def apps_of(ports: LeafPorts, access: Access) -> Seen[Apps]:
    """What the device hosts; raises the errors of the session."""
    async with access.turn, netconf_of(ports, access) as session:
        return await reads.apps(session)


async def saved_of(ports: LeafPorts, access: Access) -> Seen[SavedConfiguration]:
    """Whether a reload loses configuration; raises the errors of the session."""
    async with access.turn, netconf_of(ports, access) as session:
        return await reads.saved_configuration(session)


def standby_problem(standby: Standby) -> str:
    """Why a supervisor that is installed on its own cannot be; empty when it can."""
    is_ready = standby.state is StandbyState.READY
    return "" if is_ready else f"the standby supervisor is {standby.state.value}"


async def device_checks(ports: LeafPorts, access: Access, *, image_bytes: int | None) -> tuple[Look, tuple[Check, ...]]:
    """The checks of 9.4 that the device answers.

    Args:
        image_bytes: that have to fit into its flash; None: nothing is installed, or the size is not known.

    Raises:
        OtherChassis: it is not the device of the leaf.
        GitopsError: no session: it may be there later.
    """
    async with access.turn:
        verified = await _verified(ports, access)
        async with netconf_of(ports, access) as session:
            install = await reads.install_state(session)
            saved = await reads.saved_configuration(session)
            platform = await reads.platform(session)
    checks = [
        preflightchecks.netconf(None),
        imagechecks.gnoi(None, running=verified.version),
        preflightchecks.install_mode(install),
        preflightchecks.quiescent(install, verified=verified.version),
        preflightchecks.saved_configuration(saved, block=ports.unsaved_blocks),
    ]
    if image_bytes is not None:
        checks.append(preflightchecks.flash_space(platform, install, needed=image_bytes))
    return Look(verified, install), tuple(checks)


async def _verified(ports: LeafPorts, access: Access) -> Verified:
    async with gnoi_of(ports, access) as session:
        return await session.verify()


async def _install(
    ports: LeafPorts, access: Access, *, with_history: bool
) -> tuple[Seen[InstallState], Seen[InstallHistory]]:
    async with netconf_of(ports, access) as session:
        install = await reads.install_state(session)
        return install, await reads.install_history(session) if with_history else NO_HISTORY


async def _tried(reading: Callable[[], Awaitable[T]]) -> tuple[T | None, GitopsError | None]:
    try:
        return await reading(), None
    except GitopsError as error:
        return None, error

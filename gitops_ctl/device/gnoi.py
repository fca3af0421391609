"""The gNOI services OS and System of one device (devices.md, sections 11, 12 and 14).

A session is one connection for one phase: it is opened and judged first, then a claim is written, then at most one call that changes something
is sent over it.  Reading calls raise errors; changing calls return an outcome and are never repeated.
"""

import enum
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import InternalError
from gitops_ctl.device.channel import CONNECT_S, PROBE_S, GnoiUnavailable, gnoi_channel
from gitops_ctl.device.gnoianswers import named_version, outcome_of_error, read_error, said, unusable
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.installstream import Content, InstallOrder, InstallStream, InstallTerms
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.device.waiting import within
from gitops_ctl.netpb.gnoi.os import os_pb2, os_pb2_grpc
from gitops_ctl.netpb.gnoi.system import system_pb2, system_pb2_grpc

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Message)

READ_S: Final = 30.0
ANSWER_S: Final = 180.0
"""How long the answer to a changing call is waited for; devices that reboot often give none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StandbyState(enum.Enum):
    """What a device says about its standby supervisor."""

    UNSUPPORTED = "Unsupported"
    NON_EXISTENT = "NonExistent"
    UNAVAILABLE = "Unavailable"
    READY = "Ready"
    UNKNOWN = "Unknown"


_STANDBY_STATES: Final = {
    os_pb2.StandbyState.UNSUPPORTED: StandbyState.UNSUPPORTED,
    os_pb2.StandbyState.NON_EXISTENT: StandbyState.NON_EXISTENT,
    os_pb2.StandbyState.UNAVAILABLE: StandbyState.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Standby:
    """The standby supervisor; the texts are empty unless it is ready."""

    state: StandbyState
    id: str = ""
    version: str = ""
    fail_message: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """The answer to OS.Verify.

    Attributes:
        version: that runs now, never empty.
        fail_message: why the last activation failed; empty: it did not.
        individual_installs: each supervisor is installed on its own.
    """

    version: str
    fail_message: str
    standby: Standby
    individual_installs: bool


@dataclass(frozen=True, slots=True)
class RebootStatus:
    """The answer to System.RebootStatus.  `active=False` shortly after an activation proves nothing (devices.md, section 12)."""

    active: bool
    wait_s: float
    reason: str
    failed: bool


class GnoiSession:
    """One connection; `gnoi_session` makes it."""

    def __init__(self, channel: grpc.aio.Channel, target: GnoiTarget, *, clock: Clock) -> None:
        self._os = os_pb2_grpc.OSStub(channel)
        self._system = system_pb2_grpc.SystemStub(channel)
        self._target = target
        self._clock = clock
        self._is_spent = False

    async def verify(self) -> Verified:
        """What runs now.

        Raises:
            GitopsError: GnoiUnavailable, GnoiUnsupported, GnoiNotProvisioned, or a BlockedError for what cannot be used.
        """
        answer = await self._read("Verify", self._os.Verify, os_pb2.VerifyRequest(), reply=os_pb2.VerifyResponse)
        known = self._target.secrets
        if not named_version(answer.version, known=known):
            raise unusable("Verify: the device names no version", subject=str(self._target))
        return Verified(
            version=answer.version,
            fail_message=said(answer.activation_fail_message, known=known),
            standby=_standby(answer.verify_standby, known=known),
            individual_installs=answer.individual_supervisor_install,
        )

    async def install(self, order: InstallOrder, content: Content, *, terms: InstallTerms) -> Outcome:
        """Make a package available; sent once.  `Accepted.version` is to be compared with the wanted one by the caller."""
        self._spend("Install")
        if not order.version:
            raise InternalError("an install without a version would force a transfer")
        call = self._os.Install(metadata=self._target.metadata)
        return await InstallStream(
            call, order, content, terms=terms, clock=self._clock, known=self._target.secrets
        ).run()

    async def activate(self, version: str, *, standby: bool, no_reboot: bool) -> Outcome:
        """Boot `version`: now, or with `no_reboot` the next time; sent once.

        Args:
            version: exactly as the device named it.
            standby: of the standby supervisor, where each one is activated on its own.
            no_reboot: as the strategy says, never on our own account.
        """
        self._spend("Activate")
        request = os_pb2.ActivateRequest(version=version, standby_supervisor=standby, no_reboot=no_reboot)
        answer = await self._send("Activate", self._os.Activate, request, reply=os_pb2.ActivateResponse)
        if isinstance(answer, Refused | Unknown):
            return answer
        match answer.WhichOneof("response"):
            case "activate_ok":
                return Accepted()
            case "activate_error":
                return _activate_refused(answer.activate_error, known=self._target.secrets)
        return Unknown("the device sent an answer to Activate without content")

    async def device_time(self) -> datetime:
        """The device's own clock, to the microsecond; raises as `verify` does."""
        answer = await self._read("Time", self._system.Time, system_pb2.TimeRequest(), reply=system_pb2.TimeResponse)
        try:
            return _EPOCH + timedelta(microseconds=answer.time // 1000)
        except OverflowError:
            raise unusable("Time: the device names no moment", subject=str(self._target)) from None

    async def reboot_status(self) -> RebootStatus:
        """Of the whole device; raises as `verify` does."""
        request = system_pb2.RebootStatusRequest()
        answer = await self._read(
            "RebootStatus", self._system.RebootStatus, request, reply=system_pb2.RebootStatusResponse
        )
        failures = (system_pb2.RebootStatus.STATUS_FAILURE, system_pb2.RebootStatus.STATUS_RETRIABLE_FAILURE)
        return RebootStatus(
            active=answer.active,
            wait_s=answer.wait / 1e9,
            reason=said(answer.reason or answer.status.message, known=self._target.secrets),
            failed=not answer.active and answer.status.status in failures,
        )

    async def cancel_reboot(self, message: str) -> Outcome:
        """Take back a reboot that is outstanding; sent once."""
        self._spend("CancelReboot")
        request = system_pb2.CancelRebootRequest(message=message)
        answer = await self._send(
            "CancelReboot", self._system.CancelReboot, request, reply=system_pb2.CancelRebootResponse
        )
        return answer if isinstance(answer, Refused | Unknown) else Accepted()

    def _spend(self, method: str) -> None:
        if self._is_spent:
            raise InternalError(f"{method}: a session sends one changing call")
        self._is_spent = True

    async def _read(
        self, method: str, stub: grpc.aio.UnaryUnaryMultiCallable[Q, M], request: Q, *, reply: type[M]
    ) -> M:
        try:
            answer = await within(self._call(stub, request), seconds=READ_S, clock=self._clock)
        except TimeoutError:
            message = f"{method}: the device does not answer: no answer within {READ_S:g} s"
            raise GnoiUnavailable(message, subject=str(self._target)) from None
        except grpc.aio.AioRpcError as error:
            raise read_error(error, method=method, subject=str(self._target), known=self._target.secrets) from None
        assert isinstance(answer, reply)
        return answer

    async def _send(
        self, method: str, stub: grpc.aio.UnaryUnaryMultiCallable[Q, M], request: Q, *, reply: type[M]
    ) -> M | Refused | Unknown:
        try:
            answer = await within(self._call(stub, request), seconds=ANSWER_S, clock=self._clock)
        except TimeoutError:
            return Unknown(f"the reply to {method} is lost: no answer within {ANSWER_S:g} s")
        except grpc.aio.AioRpcError as error:
            return outcome_of_error(error, method=method, known=self._target.secrets)
        assert isinstance(answer, reply)
        return answer

    async def _call(self, stub: grpc.aio.UnaryUnaryMultiCallable[Q, M], request: Q) -> M:
        return await stub(request, metadata=self._target.metadata)


@asynccontextmanager
async def gnoi_session(
    target: GnoiTarget, *, clock: Clock, connect_s: float = CONNECT_S, probe_s: float = PROBE_S
) -> AsyncIterator[GnoiSession]:
    """A connected session.

    Raises:
        GnoiUnavailable: no connection; nothing was asked.
        GnoiTlsRefused: TLS ends it; nothing was asked.
    """
    async with gnoi_channel(target, clock=clock, connect_s=connect_s, probe_s=probe_s) as channel:
        yield GnoiSession(channel, target, clock=clock)


class SoftwareSession(Protocol):
    """What a worker needs of a session; GnoiSession says what the calls mean."""

    async def verify(self) -> Verified: ...

    async def install(self, order: InstallOrder, content: Content, *, terms: InstallTerms) -> Outcome: ...

    async def activate(self, version: str, *, standby: bool, no_reboot: bool) -> Outcome: ...

    async def device_time(self) -> datetime: ...

    async def reboot_status(self) -> RebootStatus: ...

    async def cancel_reboot(self, message: str) -> Outcome: ...


class SoftwareSessions(Protocol):
    """Makes sessions; GnoiClient does it over the network."""

    def session(self, target: GnoiTarget) -> AbstractAsyncContextManager[SoftwareSession]:
        """As `gnoi_session`."""
        ...


@dataclass(frozen=True, slots=True)
class GnoiClient:
    """Sessions over the network."""

    clock: Clock

    def session(self, target: GnoiTarget) -> AbstractAsyncContextManager[SoftwareSession]:
        """As `gnoi_session`."""
        return gnoi_session(target, clock=self.clock)


def _standby(answer: os_pb2.VerifyStandby, *, known: tuple[str, ...]) -> Standby:
    match answer.WhichOneof("state"):
        case "verify_response":
            seen = answer.verify_response
            texts = (said(text, known=known) for text in (seen.id, seen.version, seen.activation_fail_message))
            return Standby(StandbyState.READY, *texts)
        case "standby_state":
            return Standby(_STANDBY_STATES.get(answer.standby_state.state, StandbyState.UNKNOWN))
    return Standby(StandbyState.UNKNOWN)


def _activate_refused(error: os_pb2.ActivateError, *, known: tuple[str, ...]) -> Refused:
    try:
        kind = os_pb2.ActivateError.Type.Name(error.type)
    except ValueError:
        kind = f"TYPE_{error.type}"
    detail = said(error.detail, known=known) or "the device gives no detail"
    return Refused(kind, f"the device refuses the activation: {kind}: {detail}")

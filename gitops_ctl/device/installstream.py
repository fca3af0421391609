"""One OS.Install from its first message to its end (devices.md, sections 11.2 and 14; rollouts.md, sections 13.4 and 13.5).

Sending and listening go on side by side, because the device may end an install at any moment.  Content is sent in chunks and only as fast as
the device takes it; one chunk at a time is in memory.  What was read is hashed once more on its way: the end of the transfer is sent
only after exactly the bytes of the plan.  Nothing here is ever sent twice.
"""

import asyncio
import enum
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import grpc

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.gnoianswers import named_version, outcome_of_error, said
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.device.waiting import within
from gitops_ctl.netpb.gnoi.os import os_pb2

Call: TypeAlias = "grpc.aio.StreamStreamCall[os_pb2.InstallRequest, os_pb2.InstallResponse]"

CHUNK_BYTES: Final = 256 * 1024
STALL_S: Final = 60.0
_FAREWELL_S: Final = 5.0


class Content(Protocol):
    """The bytes of an image; `spool.Image` is one."""

    def chunks(self, size: int) -> AsyncIterator[bytes]:
        """All bytes in their order, `size` at a time.

        Raises:
            OSError: they cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class InstallOrder:
    """What is to be installed.

    Attributes:
        version: the wanted one, never empty: an empty one would force a transfer.
        size: of the image, in bytes.
        sha256: of the image, 64 hexadecimal digits.
        standby: for the standby supervisor, where each one is installed on its own.
    """

    version: str
    size: int
    sha256: str
    standby: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an install is.

    Attributes:
        sent_bytes: content that the connection has taken.
        received_bytes: the most that the device has confirmed.
        synced_percent: of a copy between supervisors.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    synced_percent: int = 0


@dataclass(frozen=True, slots=True)
class InstallTerms:
    """What an install is held to.

    Attributes:
        until_s: the moment, by `boot_s`, at which it is given up: the only cap of a transfer.
        pacer: holds back the content.
        tell: hears of progress.
    """

    until_s: float
    pacer: Pacer
    tell: Callable[[Progress], None] = lambda _: None


class _Phase(enum.Enum):
    ASKED = enum.auto()
    SENDING = enum.auto()
    ENDED = enum.auto()


class InstallStream:
    """One stream; `run` is called once."""

    def __init__(
        self,
        call: Call,
        order: InstallOrder,
        content: Content,
        *,
        terms: InstallTerms,
        clock: Clock,
        known: tuple[str, ...] = (),
    ) -> None:
        """`known` are secrets that no message may hold."""
        self._call = call
        self._order = order
        self._content = content
        self._terms = terms
        self._clock = clock
        self._known = known
        self._phase = _Phase.ASKED
        self._may_send = asyncio.Event()
        self._progress = Progress()
        self._completed = False

    async def run(self) -> Outcome:
        """What became of it.  When the caller is cancelled, the stream is torn."""
        listening = asyncio.create_task(self._listen())
        talking = asyncio.create_task(self._talk())
        timer = asyncio.create_task(self._clock.sleep(self._terms.until_s - self._clock.boot_s()))
        try:
            while True:
                waiting = [task for task in (listening, talking, timer) if not task.done()]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                # A write that is given up ends the call in the library, and with it the listening.
                if listening.done() and not listening.cancelled():
                    await self._part(talking)
                    return self._final(listening.result())
                if talking.done() and (ended := talking.result()) is not None:
                    return ended
                if timer.done():
                    return self._unknown("the time for installs is over")
        finally:
            self._call.cancel()
            for task in (listening, talking, timer):
                task.cancel()
            await asyncio.gather(listening, talking, timer, return_exceptions=True)

    async def _listen(self) -> Outcome:
        """Hear the device out; its first verdict counts, whatever status follows."""
        try:
            async for answer in self._call:
                if (outcome := self._heard(answer)) is not None:
                    return outcome
        except grpc.aio.AioRpcError as error:
            return outcome_of_error(error, method="Install", sent_bytes=self._progress.sent_bytes, known=self._known)
        return self._unknown("the device ended the stream without a verdict")

    def _heard(self, answer: os_pb2.InstallResponse) -> Outcome | None:
        kind = answer.WhichOneof("response")
        match kind:
            case "validated" if self._phase is _Phase.SENDING:
                return self._unknown("the device gave its verdict before it had everything")
            case "validated" if version := named_version(answer.validated.version, known=self._known):
                return Accepted(version, self._progress.sent_bytes)
            case "validated":
                return self._unknown("the device names no version that it made available")
            case "install_error":
                return self._refused(answer.install_error)
            case "transfer_ready" if self._phase is _Phase.ASKED:
                self._phase = _Phase.SENDING
                self._may_send.set()
            case "transfer_progress":
                # Devices repeat themselves and go back; what was confirmed once stays confirmed.
                received = min(answer.transfer_progress.bytes_received, self._order.size)
                self._tell(received_bytes=max(received, self._progress.received_bytes))
            case "sync_progress":
                self._tell(synced_percent=min(answer.sync_progress.percentage_transferred, 100))
            case None:
                return self._unknown("the device sent an answer without content")
        return None

    async def _talk(self) -> Outcome | None:
        """Ask, and send when the device says so.  None: everything was sent, or listening tells what happened."""
        asked = os_pb2.TransferRequest(
            version=self._order.version, standby_supervisor=self._order.standby, package_size=self._order.size
        )
        try:
            await self._call.write(os_pb2.InstallRequest(transfer_request=asked))
            await self._may_send.wait()
            return await self._send_all()
        except TimeoutError:
            return self._unknown(f"the transfer stalled: the device took nothing for {STALL_S:g} s")
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return None
        except (OSError, GitopsError) as error:
            return self._unknown(f"the image cannot be read any more: {said(str(error))}")

    async def _send_all(self) -> Outcome | None:
        digest, sent = hashlib.sha256(), 0
        async for chunk in self._content.chunks(CHUNK_BYTES):
            await self._terms.pacer.release(len(chunk))
            await self._write(os_pb2.InstallRequest(transfer_content=chunk))
            digest.update(chunk)
            sent += len(chunk)
            self._tell(sent_bytes=sent)
        if (sent, digest.hexdigest()) != (self._order.size, self._order.sha256):
            return self._unknown("the image changed while it was read; the end of the transfer was not sent")
        self._phase = _Phase.ENDED
        await self._write(os_pb2.InstallRequest(transfer_end=os_pb2.TransferEnd()))
        self._completed = True
        return None

    async def _write(self, message: os_pb2.InstallRequest) -> None:
        await within(self._call.write(message), seconds=STALL_S, clock=self._clock)

    async def _part(self, talking: "asyncio.Task[Outcome | None]") -> None:
        """Let the device end the stream by itself after its verdict: some take a cancelled stream for an abort."""
        if self._phase is _Phase.SENDING:
            # A verdict in the middle of the content is an error, and the device has ended the stream.
            return
        if self._phase is _Phase.ENDED:
            # Whether the end of the transfer still got out.
            await asyncio.wait((talking,), timeout=_FAREWELL_S)
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._call.done_writing()
                await self._call.code()
        except (TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass

    def _final(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Unknown):
            return replace(outcome, sent_bytes=self._progress.sent_bytes, completed=self._completed)
        return outcome

    def _refused(self, error: os_pb2.InstallError) -> Refused:
        kind = _name(error.type)
        detail = said(error.detail, known=self._known) or "the device gives no detail"
        return Refused(kind, f"the device refuses the install: {kind}: {detail}", self._progress.sent_bytes)

    def _unknown(self, message: str) -> Unknown:
        return Unknown(message, self._progress.sent_bytes, self._completed)

    def _tell(
        self, *, sent_bytes: int | None = None, received_bytes: int | None = None, synced_percent: int | None = None
    ) -> None:
        now = self._progress
        self._progress = Progress(
            now.sent_bytes if sent_bytes is None else sent_bytes,
            now.received_bytes if received_bytes is None else received_bytes,
            now.synced_percent if synced_percent is None else synced_percent,
        )
        self._terms.tell(self._progress)


def _name(number: int) -> str:
    try:
        return os_pb2.InstallError.Type.Name(number)
    except ValueError:
        return f"TYPE_{number}"

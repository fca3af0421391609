"""The time rules of an install, on a clock that the test moves, with a device that is written down (rollouts.md, 13.4; devices.md, 14)."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest

from gitops_ctl.device.installstream import (
    CHUNK_BYTES,
    STALL_S,
    Call,
    InstallOrder,
    InstallStream,
    InstallTerms,
    Progress,
)
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.device.pacing import Pacer
from gitops_ctl.netpb.gnoi.os import os_pb2
from tests.support.kube_clock import SteppedClock

READY = os_pb2.InstallResponse(transfer_ready=os_pb2.TransferReady())
VALIDATED = os_pb2.InstallResponse(validated=os_pb2.Validated(version="17.18.03.0.1"))
IMAGE = bytes(range(256)) * 4096  # 1 MiB, four chunks


def syncing(percent: int) -> os_pb2.InstallResponse:
    return os_pb2.InstallResponse(sync_progress=os_pb2.SyncProgress(percentage_transferred=percent))


def received(size: int) -> os_pb2.InstallResponse:
    return os_pb2.InstallResponse(transfer_progress=os_pb2.TransferProgress(bytes_received=size))


class Device:
    """The other end of a stream: takes what is written while `takes` says so, and answers what the test tells it."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self.is_cancelled = False
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, *answers: Any) -> None:
        """Answers; an exception ends the stream with it, None ends it in order."""
        for answer in answers:
            self._answers.put_nowait(answer)

    async def write(self, message: Any) -> None:
        await self.takes.wait()
        self.written.append(message)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._heard()

    async def _heard(self) -> AsyncIterator[Any]:
        while (answer := await self._answers.get()) is not None:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def cancel(self) -> bool:
        self.is_cancelled = True
        return True

    async def done_writing(self) -> None:
        """Nothing more comes."""

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    @property
    def kinds(self) -> list[str]:
        return [message.WhichOneof("request") for message in self.written]


class Bytes:
    def __init__(self, content: bytes, *, error: Exception | None = None) -> None:
        self._content = content
        self._error = error

    async def chunks(self, size: int) -> AsyncIterator[bytes]:
        for begin in range(0, len(self._content), size):
            yield self._content[begin : begin + size]
        if self._error is not None:
            raise self._error


class Run:
    """One install."""

    def __init__(
        self,
        *,
        rate: int | None = None,
        limit_s: float = 3600.0,
        content: Bytes | None = None,
        sha256: str = "",
        known: tuple[str, ...] = (),
    ) -> None:
        self.device, self.clock = Device(), SteppedClock()
        self.told: list[Progress] = []
        order = InstallOrder("17.18.03", len(IMAGE), sha256 or hashlib.sha256(IMAGE).hexdigest())
        terms = InstallTerms(self.clock.boot_s() + limit_s, Pacer(rate, clock=self.clock), self.told.append)
        image, call = content or Bytes(IMAGE), cast("Call", self.device)
        stream = InstallStream(call, order, image, terms=terms, clock=self.clock, known=known)
        self.task = asyncio.create_task(stream.run())

    async def settle(self) -> None:
        await self.clock.settle(60)

    async def outcome(self, *answers: Any) -> Outcome:
        """What it ends with when the device says this, one after the other."""
        for answer in answers:
            await self.settle()
            self.device.say(answer)
        async with asyncio.timeout(10):
            return await self.task


async def test_the_order_is_asked_first_then_content_then_one_end() -> None:
    run = Run()
    await run.settle()
    assert run.device.kinds == ["transfer_request"]
    assert await run.outcome(READY, VALIDATED) == Accepted("17.18.03.0.1", len(IMAGE))
    assert run.device.kinds == ["transfer_request", *["transfer_content"] * 4, "transfer_end"]
    asked = run.device.written[0].transfer_request
    assert (asked.version, asked.standby_supervisor, asked.package_size) == ("17.18.03", False, len(IMAGE))
    assert {len(message.transfer_content) for message in run.device.written[1:-1]} == {CHUNK_BYTES}


@pytest.mark.parametrize("version", ["", "17.18.03." + "1" * 128, "17.18.03\n", "17.18.03.ochre-Lantern"])
async def test_a_verdict_with_an_unusable_version_is_looked_at(version: str) -> None:
    run = Run(known=("ochre-Lantern",))
    outcome = await run.outcome(READY, os_pb2.InstallResponse(validated=os_pb2.Validated(version=version)))
    assert isinstance(outcome, Unknown)
    assert (outcome.sent_bytes, outcome.completed) == (len(IMAGE), True)
    assert "ochre" not in outcome.message


async def test_the_detail_of_a_refusal_holds_no_known_secret() -> None:
    run = Run(known=("ochre-Lantern",))
    error = os_pb2.InstallError(type=os_pb2.InstallError.UNSPECIFIED, detail="login ochre-Lantern")
    outcome = await run.outcome(os_pb2.InstallResponse(install_error=error))
    assert isinstance(outcome, Refused)
    assert "ochre" not in outcome.message


async def test_nothing_is_sent_to_a_device_that_copies_from_its_other_supervisor() -> None:
    run = Run()
    assert await run.outcome(syncing(0), syncing(90), VALIDATED) == Accepted("17.18.03.0.1", 0)
    assert run.device.kinds == ["transfer_request"]
    assert run.told[-1].synced_percent == 90


async def test_a_copy_that_fails_may_turn_into_a_transfer() -> None:
    run = Run()
    assert await run.outcome(syncing(10), READY, VALIDATED) == Accepted("17.18.03.0.1", len(IMAGE))


async def test_a_device_that_takes_nothing_for_the_stall_limit_ends_the_install() -> None:
    run = Run()
    await run.settle()
    run.device.takes.clear()
    run.device.say(READY)
    await run.clock.advance(STALL_S - 1)
    assert not run.task.done()
    await run.clock.advance(1)
    outcome = await run.task
    assert isinstance(outcome, Unknown)
    assert "stalled" in outcome.message
    assert run.device.is_cancelled


async def test_a_device_that_takes_a_chunk_just_in_time_is_not_stalled() -> None:
    run = Run()
    await run.settle()
    run.device.takes.clear()
    run.device.say(READY)
    for _ in range(5):
        await run.clock.advance(STALL_S - 1)
        run.device.takes.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        run.device.takes.clear()
    run.device.takes.set()
    assert isinstance(await run.outcome(VALIDATED), Accepted)


async def test_a_transfer_that_is_paced_far_below_a_megabyte_is_no_stall() -> None:
    run = Run(rate=1024, limit_s=10_000)  # 256 s for each chunk
    run.device.say(READY)
    await run.clock.advance(255)
    assert run.device.kinds == ["transfer_request"]
    await run.clock.advance(1)
    assert run.device.kinds == ["transfer_request", "transfer_content"]
    await run.clock.advance(3 * 256)
    assert await run.outcome(VALIDATED) == Accepted("17.18.03.0.1", len(IMAGE))


async def test_missing_progress_and_a_long_check_are_no_stall() -> None:
    run = Run(limit_s=100_000)
    run.device.say(READY)
    await run.clock.advance(50_000)
    assert run.device.kinds[-1] == "transfer_end"
    assert not run.task.done()
    assert isinstance(await run.outcome(VALIDATED), Accepted)


async def test_a_device_that_does_not_get_ready_is_waited_for_until_the_time_is_over() -> None:
    run = Run(limit_s=300)
    await run.clock.advance(299)
    assert not run.task.done()
    await run.clock.advance(1)
    outcome = await run.task
    assert outcome == Unknown("the time for installs is over", 0, False)
    assert run.device.is_cancelled


async def test_the_time_for_installs_ends_a_paced_transfer_too() -> None:
    run = Run(rate=1024, limit_s=600)
    run.device.say(READY)
    await run.clock.advance(600)
    outcome = await run.task
    assert isinstance(outcome, Unknown)
    assert (outcome.sent_bytes, outcome.completed) == (2 * CHUNK_BYTES, False)


async def test_everything_sent_and_no_verdict_is_unknown_and_says_that_it_was_complete() -> None:
    run = Run()
    outcome = await run.outcome(READY, None)
    assert outcome == Unknown("the device ended the stream without a verdict", len(IMAGE), True)


async def test_progress_may_repeat_itself_go_back_and_exaggerate() -> None:
    run = Run()
    answers = [received(each) for each in (400_000, 400_000, 10, 2**60)]
    assert isinstance(await run.outcome(READY, *answers, VALIDATED), Accepted)
    confirmed = [each.received_bytes for each in run.told]
    assert confirmed == sorted(confirmed)
    assert confirmed[-1] == len(IMAGE)


async def test_a_second_ready_sends_nothing_twice() -> None:
    run = Run()
    assert isinstance(await run.outcome(READY, READY, VALIDATED), Accepted)
    assert run.device.kinds.count("transfer_end") == 1
    assert run.device.kinds.count("transfer_content") == 4


async def test_a_verdict_before_the_end_proves_nothing() -> None:
    run = Run(rate=1024)
    outcome = await run.outcome(READY, VALIDATED)
    assert isinstance(outcome, Unknown)
    assert "before it had everything" in outcome.message


async def test_an_error_during_the_transfer_stops_it_at_once() -> None:
    run = Run(rate=1024)
    error = os_pb2.InstallError(type=os_pb2.InstallError.UNEXPECTED_SWITCHOVER)
    outcome = await run.outcome(READY, os_pb2.InstallResponse(install_error=error))
    assert isinstance(outcome, Refused)
    assert outcome.kind == "UNEXPECTED_SWITCHOVER"
    assert "gives no detail" in outcome.message
    assert "transfer_end" not in run.device.kinds


async def test_an_error_of_a_kind_that_nobody_knows_keeps_its_number() -> None:
    answer = os_pb2.InstallResponse.FromString(bytes.fromhex("2a02087b"))
    outcome = await Run().outcome(answer)
    assert isinstance(outcome, Refused)
    assert outcome.kind == "TYPE_123"


async def test_an_answer_without_content_proves_nothing() -> None:
    assert isinstance(await Run().outcome(os_pb2.InstallResponse()), Unknown)


@pytest.mark.parametrize("change", ["digest", "shorter", "longer", "unreadable"])
async def test_other_bytes_than_those_of_the_plan_are_never_ended_as_a_transfer(change: str) -> None:
    contents = {
        "digest": Bytes(IMAGE[:-1] + b"\x00"),
        "shorter": Bytes(IMAGE[:-1]),
        "longer": Bytes(IMAGE + b"\x00"),
        "unreadable": Bytes(IMAGE[:1000], error=OSError(5, "Input/output error")),
    }
    run = Run(content=contents[change])
    outcome = await run.outcome(READY)
    assert isinstance(outcome, Unknown)
    assert not outcome.completed
    assert "transfer_end" not in run.device.kinds
    assert run.device.is_cancelled


async def test_cancelling_the_caller_tears_the_stream() -> None:
    run = Run(rate=1024)
    run.device.say(READY)
    await run.settle()
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert run.device.is_cancelled

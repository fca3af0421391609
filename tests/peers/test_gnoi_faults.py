"""Each fault of a device alone: what does not prove that nothing was done is unknown, and nothing is ever sent a second time (devices.md, 16)."""

import asyncio
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.gnoi import gnoi_session
from gitops_ctl.device.gnoianswers import GnoiUnsupported
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.fleet.receipt import matches_target
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_images import FileContent, order_of, terms
from tests.support.gnoi_peer import NEW, OLD, Switch, a_switch, until
from tests.support.gnoi_pki import GnoiPki
from tests.support.kube_clock import SteppedClock
from tools.peers.gnoi.package import Package, write_package

pytestmark = pytest.mark.peers

__all__ = ["pki"]

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return write_package(tmp_path_factory.mktemp("image") / "image.bin", NEW, filler=1_500_000)


async def install(switch: Switch, package: Package) -> Outcome:
    async with gnoi_session(switch.target, clock=CLOCK) as session:
        return await session.install(order_of(package), FileContent(package.path), terms=terms())


async def activate(switch: Switch, version: str, *, no_reboot: bool = False) -> Outcome:
    async with gnoi_session(switch.target, clock=CLOCK) as session:
        return await session.activate(version, standby=False, no_reboot=no_reboot)


def has_it(switch: Switch) -> bool:
    return any(each["version"] == NEW for each in switch.device["packages"])


async def until_it_runs(switch: Switch, version: str, *, fail_message: str = "") -> None:
    async def runs() -> bool:
        try:
            async with gnoi_session(switch.target, clock=CLOCK) as session:
                seen = await session.verify()
        except GnoiUnavailable:
            return False
        return (seen.version, seen.fail_message) == (version, fail_message)

    await until(runs, what=f"{version} runs, and it says {fail_message!r}")


@pytest.mark.parametrize(
    ("place", "at", "completed"),
    [
        ("Install", 0, {False}),
        ("Install:asked", 0, {False}),
        # What is on its way when the connection ends may have been all of it.
        ("Install:content", 1, {False, True}),
        ("Install:content", 1_000_000, {False, True}),
        ("Install:end", 0, {True}),
        ("Install:stored", 0, {True}),
    ],
    ids=["before it is read", "asked", "first content", "later content", "end", "stored"],
)
async def test_an_install_that_is_torn_is_unknown_and_sent_once(
    place: str, at: int, completed: set[bool], tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("drop", on=place, at=at)
        outcome = await install(switch, package)
        assert isinstance(outcome, Unknown)
        assert outcome.completed in completed
        assert has_it(switch) is (place == "Install:stored")
        assert len(switch.mutations) == (0 if place == "Install" else 1)


async def test_a_torn_install_may_have_left_the_package(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("store", on="Install:content", at=1_000_000, version=NEW)
        assert isinstance(await install(switch, package), Unknown)
        assert has_it(switch)


async def test_a_stream_that_ends_without_a_verdict_is_unknown(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("silent-end", on="Install:end")
        outcome = await install(switch, package)
    assert outcome == Unknown("the device ended the stream without a verdict", package.size, True)


async def test_an_error_that_is_followed_by_a_status_is_that_error(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("answer", on="Install:asked", type="INSTALL_IN_PROGRESS", code="UNKNOWN")
        outcome = await install(switch, package)
    assert isinstance(outcome, Refused)
    assert outcome.kind == "INSTALL_IN_PROGRESS"


@pytest.mark.parametrize("kind", ["UNEXPECTED_SWITCHOVER", "TOO_LARGE", "UNSPECIFIED"])
@pytest.mark.parametrize("place", ["Install:content", "Install:end"])
async def test_an_error_in_the_middle_or_at_the_end_is_a_refusal_also_without_detail(
    kind: str, place: str, tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("answer", on=place, type=kind)
        outcome = await install(switch, package)
        assert not has_it(switch)
    assert isinstance(outcome, Refused)
    assert outcome.kind == kind
    assert "gives no detail" in outcome.message


async def test_another_version_than_the_wanted_one_shows(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("validated", on="Install:end", version="17.19.01.0.1")
        outcome = await install(switch, package)
    assert outcome == Accepted("17.19.01.0.1", package.size)
    assert not matches_target(outcome.version, "17.18.03")


@pytest.mark.parametrize("mode", ["duplicate", "backwards"])
async def test_strange_progress_does_no_harm(mode: str, tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("progress", on="Install:content", mode=mode)
        assert await install(switch, package) == Accepted(NEW, package.size)


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNIMPLEMENTED", "PERMISSION_DENIED"])
@pytest.mark.parametrize("method", ["Install", "Activate"])
async def test_a_status_that_says_no_is_a_refusal(
    code: str, method: str, tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("error", on=method, code=code, message="no")
        outcome = await (install(switch, package) if method == "Install" else activate(switch, OLD, no_reboot=True))
    assert isinstance(outcome, Refused)
    assert (outcome.kind, "no" in outcome.message) == (code, True)


@pytest.mark.parametrize(
    "code", ["UNAVAILABLE", "UNKNOWN", "INTERNAL", "ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]
)
@pytest.mark.parametrize("method", ["Install", "Activate"])
async def test_every_other_status_proves_nothing(
    code: str, method: str, tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("error", on=method, code=code)
        outcome = await (install(switch, package) if method == "Install" else activate(switch, OLD, no_reboot=True))
    assert isinstance(outcome, Unknown)
    assert code in outcome.message


async def test_a_device_that_stops_reading_stalls_the_transfer(tmp_path: Path, pki: GnoiPki) -> None:
    large = write_package(tmp_path / "large.bin", NEW, filler=48 * 2**20)
    clock = SteppedClock()
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("stall", on="Install:content", at=1, seconds=3600)
        async with gnoi_session(switch.target, clock=clock) as session:
            told: list[int] = []
            running = asyncio.create_task(
                session.install(
                    order_of(large),
                    FileContent(large.path),
                    terms=terms(clock=clock, limit_s=7200, tell=lambda progress: told.append(progress.sent_bytes)),
                )
            )
            # Until nothing has moved for a while: then it is flow control that holds the client back.
            seen, same = -1, 0
            while same < 25:
                await asyncio.sleep(0.02)
                same = same + 1 if told and told[-1] == seen else 0
                seen = told[-1] if told else -1
            assert not running.done()
            while not running.done():
                await clock.advance(61)
            outcome = await running
    assert isinstance(outcome, Unknown)
    assert "stalled" in outcome.message
    assert 0 < outcome.sent_bytes < large.size
    assert not outcome.completed


async def test_a_worker_that_ends_in_the_middle_leaves_one_torn_install(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("hang", on="Install:end")
        running = asyncio.create_task(install(switch, package))

        async def has_begun() -> bool:
            return switch.device["operation"] is not None

        await until(has_begun, what="the install runs")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        async def is_quiet() -> bool:
            return switch.device["operation"] is None

        await until(is_quiet, what="the device is quiet")
        assert len(switch.mutations) == 1
        assert not has_it(switch)


@pytest.mark.parametrize(("kind", "happened"), [("before", False), ("after", True)])
async def test_D06_a_reply_to_an_activation_that_is_lost_is_unknown_and_only_looking_tells(
    kind: str, happened: bool, tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await install(switch, package)
        switch.fault("drop", on="Activate" if kind == "before" else "Activate:done")
        outcome = await activate(switch, NEW)
        assert isinstance(outcome, Unknown)
        await until_it_runs(switch, NEW if happened else OLD)
        assert [method for method, _ in switch.mutations] == ["Install", "Activate"]


async def test_a_device_that_never_answers_an_activation_is_looked_at(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await install(switch, package)
        switch.fault("hang", on="Activate:done")
        assert isinstance(await activate(switch, NEW), Unknown)
        await until_it_runs(switch, NEW)


async def test_an_answer_that_does_not_come_in_time_is_unknown(tmp_path: Path, pki: GnoiPki) -> None:
    clock = SteppedClock()
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("hang", on="Activate")
        async with gnoi_session(switch.target, clock=clock) as session:
            running = asyncio.create_task(session.activate(OLD, standby=False, no_reboot=True))

            async def was_asked() -> bool:
                return bool(switch.mutations)

            await until(was_asked, what="the activation was sent")
            await clock.advance(180)
            assert isinstance(await running, Unknown)


async def test_a_reading_call_that_is_not_answered_in_time_may_be_tried_again(tmp_path: Path, pki: GnoiPki) -> None:
    clock = SteppedClock()
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("hang", on="Verify")
        async with gnoi_session(switch.target, clock=clock) as session:
            running = asyncio.create_task(session.verify())

            async def was_asked() -> bool:
                return bool(switch.side.guard.calls)

            await until(was_asked, what="the question was sent")
            await clock.advance(30)
            with pytest.raises(GnoiUnavailable, match="no answer within 30 s"):
                await running


@pytest.mark.parametrize("says", ["message", "silent"])
async def test_a_version_that_does_not_boot_brings_the_old_one_back(says: str, tmp_path: Path, pki: GnoiPki) -> None:
    failing = write_package(tmp_path / "failing.bin", NEW, fail_activation=True)
    async with a_switch(tmp_path, pki, bootFails=says, rebootS=0.1) as switch:
        assert isinstance(await install(switch, failing), Accepted)
        assert await activate(switch, NEW) == Accepted()

        async def is_back() -> bool:
            return switch.device["gnoi"]["reboot"] is None and not switch.device["pending"]

        await until(is_back, what="the switch is back")
        await until_it_runs(switch, OLD, fail_message=f"{NEW} did not boot" if says == "message" else "")


async def test_a_device_that_ignores_no_reboot_reboots(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki, ignoreNoReboot=True) as switch:
        await install(switch, package)
        assert await activate(switch, NEW, no_reboot=True) == Accepted()
        await until_it_runs(switch, NEW)


async def test_a_version_that_nobody_commits_is_left_when_the_timer_ends(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki, rebootS=0.05) as switch:
        switch.set(autoAbortSeconds=3600)
        await install(switch, package)
        await activate(switch, NEW)
        await until_it_runs(switch, NEW)
        timer = switch.device["autoAbort"]
        switch.set(autoAbort={**timer, "deadline": timer["deadline"] - 7200})
        await until_it_runs(switch, OLD, fail_message="the auto-abort timer ended before a commit")


async def test_a_known_implementation_with_its_quirks_is_upgraded(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki, quirks=True, ignoreNoReboot=True, rebootS=0.0) as switch:
        switch.set(operation={"kind": "add", "by": "somebody else", "startedAt": 1})
        refused = await install(switch, package)
        assert isinstance(refused, Refused)
        assert refused.kind == "INSTALL_IN_PROGRESS"
        switch.set(operation=None, gnoi={"counted": []})
        assert await install(switch, package) == Accepted(NEW, package.size)
        assert await activate(switch, NEW, no_reboot=True) == Accepted()
        await until_it_runs(switch, NEW)
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            with pytest.raises(GnoiUnsupported):
                await session.reboot_status()


async def test_a_cut_connection_is_no_device_that_is_down_for_the_next_session(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            switch.fault("drop", on="Verify")
            with pytest.raises(GnoiUnavailable):
                await session.verify()
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            assert (await session.verify()).version == OLD

"""The client of gNOI against the peer, over TLS: what works, and that each answer of the service becomes the right outcome."""

import hashlib
import time
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, InternalError
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.gnoi import Standby, StandbyState, gnoi_session
from gitops_ctl.device.gnoianswers import GnoiNotProvisioned, GnoiUnsupported
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.installstream import Progress
from gitops_ctl.device.login import Login
from gitops_ctl.device.outcome import Accepted, Outcome, Refused
from gitops_ctl.fleet.receipt import matches_target
from gitops_ctl.local.ports import pick_ports
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_images import FileContent, order_of, terms
from tests.support.gnoi_peer import NEW, OLD, Switch, a_switch, until
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import Package, write_package

pytestmark = pytest.mark.peers

__all__ = ["pki"]

CLOCK = SystemClock()


async def install(switch: Switch, package: Package, *, standby: bool = False, version: str = "17.18.03") -> Outcome:
    order = order_of(package, standby=standby, version=version)
    async with gnoi_session(switch.target, clock=CLOCK) as session:
        return await session.install(order, FileContent(package.path), terms=terms())


async def activate(switch: Switch, version: str, *, standby: bool = False, no_reboot: bool = False) -> Outcome:
    async with gnoi_session(switch.target, clock=CLOCK) as session:
        return await session.activate(version, standby=standby, no_reboot=no_reboot)


async def running(switch: Switch) -> str:
    try:
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            return (await session.verify()).version
    except GnoiUnavailable:
        return ""


async def until_it_runs(switch: Switch, version: str) -> None:
    async def runs() -> bool:
        return await running(switch) == version

    await until(runs, what=f"the switch runs {version}")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return write_package(tmp_path_factory.mktemp("image") / "image.bin", NEW, filler=700_000)


async def test_verify_says_what_runs(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch, gnoi_session(switch.target, clock=CLOCK) as session:
        seen = await session.verify()
    assert (seen.version, seen.fail_message, seen.individual_installs) == (OLD, "", False)
    assert seen.standby == Standby(StandbyState.UNSUPPORTED)


@pytest.mark.parametrize(
    ("layout", "standby", "expected"),
    [
        ("whole", "ready", Standby(StandbyState.READY, "R1", OLD)),
        ("individual", "ready", Standby(StandbyState.READY, "R1", OLD)),
        ("individual", "unavailable", Standby(StandbyState.UNAVAILABLE)),
        ("whole", "absent", Standby(StandbyState.NON_EXISTENT)),
    ],
)
async def test_verify_says_how_the_standby_is(
    layout: str, standby: str, expected: Standby, tmp_path: Path, pki: GnoiPki
) -> None:
    async with a_switch(tmp_path, pki, supervisors=2, layout=layout, standby=standby) as switch:
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            seen = await session.verify()
    assert (seen.standby, seen.individual_installs) == (expected, layout == "individual")


async def test_an_image_is_installed_and_boots(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    told: list[Progress] = []
    async with a_switch(tmp_path, pki, progressBytes=100_000) as switch:
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            outcome = await session.install(order_of(package), FileContent(package.path), terms=terms(tell=told.append))
        assert outcome == Accepted(NEW, package.size)
        assert told[-1].sent_bytes == package.size
        assert 0 < max(each.received_bytes for each in told) <= package.size
        assert await activate(switch, NEW) == Accepted()
        await until_it_runs(switch, NEW)
        assert switch.mutations == [
            ("Install", {"version": "17.18.03", "standby": False, "size": package.size}),
            ("Activate", {"version": NEW, "standby": False, "noReboot": False}),
        ]
        assert switch.device["autoAbort"] is not None


async def test_an_activation_without_reboot_waits_for_the_next_boot(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await install(switch, package)
        assert await activate(switch, NEW, no_reboot=True) == Accepted()
        assert (await running(switch), switch.device["pending"]) == (OLD, NEW)


async def test_a_package_that_is_there_is_not_sent_again(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        await install(switch, package)
        assert await install(switch, package, version="17.18.03.0") == Accepted(NEW, 0)


async def test_each_supervisor_is_installed_and_activated_on_its_own(
    tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki, supervisors=2, layout="individual") as switch:
        assert await install(switch, package) == Accepted(NEW, package.size)
        # The standby gets it from the active one: nothing is sent.
        assert await install(switch, package, standby=True) == Accepted(NEW, 0)
        assert await activate(switch, NEW, standby=True) == Accepted()

        async def standby_runs_it() -> bool:
            async with gnoi_session(switch.target, clock=CLOCK) as session:
                seen = await session.verify()
            return seen.standby == Standby(StandbyState.READY, "R1", NEW) and seen.version == OLD

        await until(standby_runs_it, what="the standby runs it and the active one does not")
        assert await activate(switch, NEW) == Accepted()
        await until_it_runs(switch, NEW)


@pytest.mark.parametrize(
    ("members", "kind", "words"),
    [
        ({"sha256": "0" * 64}, "INTEGRITY_FAIL", "digest"),
        ({"incompatible": True}, "INCOMPATIBLE", "is for"),
        ({"platform": "N9K"}, "INCOMPATIBLE", "N9K"),
    ],
)
async def test_a_package_that_the_device_does_not_want_is_refused_with_its_words(
    members: dict[str, object], kind: str, words: str, tmp_path: Path, pki: GnoiPki
) -> None:
    package = write_package(tmp_path / "bad.bin", NEW, filler=300_000, **members)
    async with a_switch(tmp_path, pki) as switch:
        outcome = await install(switch, package)
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.sent_bytes) == (kind, package.size)
    assert words in outcome.message


async def test_what_is_no_package_is_refused(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(bytes(300_000))
    other = Package(path, "", 300_000, hashlib.sha256(bytes(300_000)).hexdigest())
    async with a_switch(tmp_path, pki) as switch:
        outcome = await install(switch, other)
    assert isinstance(outcome, Refused)
    assert outcome.kind == "PARSE_FAIL"


@pytest.mark.parametrize(
    ("members", "standby", "kind"),
    [
        ({"operation": {"kind": "add", "by": "somebody else", "startedAt": 1}}, False, "INSTALL_IN_PROGRESS"),
        ({}, True, "NOT_SUPPORTED_ON_BACKUP"),
        (
            {"supervisors": [{"slot": "R0", "role": "active", "flashFree": 1000, "running": OLD, "next": OLD}]},
            False,
            "TOO_LARGE",
        ),
    ],
    ids=["another install", "standby flag", "no room"],
)
async def test_an_install_that_cannot_begin_is_refused_before_anything_is_sent(
    members: dict[str, object], standby: bool, kind: str, tmp_path: Path, pki: GnoiPki, package: Package
) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.set(**members)
        outcome = await install(switch, package, standby=standby)
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.sent_bytes) == (kind, 0)


async def test_a_version_that_is_not_there_cannot_be_activated(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        outcome = await activate(switch, NEW)
        assert isinstance(outcome, Refused)
        assert outcome.kind == "NON_EXISTENT_VERSION"
        refused = await activate(switch, OLD, standby=True)
        assert isinstance(refused, Refused)
        assert refused.kind == "NOT_SUPPORTED_ON_BACKUP"
        assert await activate(switch, OLD) == Accepted()


async def test_a_session_sends_one_changing_call(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch, gnoi_session(switch.target, clock=CLOCK) as session:
        await session.activate(OLD, standby=False, no_reboot=False)
        with pytest.raises(InternalError):
            await session.activate(OLD, standby=False, no_reboot=True)
        with pytest.raises(InternalError):
            await session.cancel_reboot("no")
        assert len(switch.mutations) == 1


async def test_an_install_without_a_version_is_never_sent(tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    async with a_switch(tmp_path, pki) as switch:
        with pytest.raises(InternalError):
            await install(switch, package, version="")
        assert switch.mutations == []


async def test_a_device_that_is_not_provisioned_says_so_in_reads_and_changes(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.set(provisioned=False)
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            with pytest.raises(GnoiNotProvisioned) as caught:
                await session.verify()
            assert caught.value.code is ErrorCode.GNOI_NOT_PROVISIONED
            outcome = await session.activate(OLD, standby=False, no_reboot=True)
    assert isinstance(outcome, Refused)
    assert outcome.kind == "NOT_PROVISIONED"


async def test_a_login_that_is_wrong_is_told_apart_and_never_shown(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        target = switch.target
        wrong = GnoiTarget(target.address, target.port, tls=target.tls, login=Login("network-author", "not-the-one"))
        async with gnoi_session(wrong, clock=CLOCK) as session:
            with pytest.raises(BlockedError) as caught:
                await session.verify()
    assert caught.value.code is ErrorCode.GNOI_NOT_AUTHORISED
    assert "not-the-one" not in f"{caught.value} {wrong!r}"


async def test_a_login_goes_over_tls_only(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch, gnoi_session(switch.target, clock=CLOCK) as session:
        await session.verify()
        assert {"username", "password"} <= switch.side.guard.metadata
    async with a_switch(tmp_path, None) as switch:
        plain = GnoiTarget("127.0.0.1", switch.target.port, login=Login("network-author", "secret"))
        async with gnoi_session(plain, clock=CLOCK) as session:
            assert (await session.verify()).version == OLD
        assert not {"username", "password"} & switch.side.guard.metadata


@pytest.mark.parametrize("method", ["Verify", "Time", "RebootStatus"])
async def test_a_call_that_the_device_does_not_have_is_unsupported(method: str, tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.fault("error", on=method, code="UNIMPLEMENTED")
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            reads = {"Verify": session.verify, "Time": session.device_time, "RebootStatus": session.reboot_status}
            with pytest.raises(GnoiUnsupported) as caught:
                await reads[method]()
    assert caught.value.code is ErrorCode.GNOI_UNSUPPORTED


async def test_an_answer_without_a_version_cannot_be_used(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        switch.set(running="")
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            with pytest.raises(BlockedError) as caught:
                await session.verify()
    assert caught.value.code is ErrorCode.GNOI_ANSWER_UNUSABLE


async def test_the_clock_of_the_device_may_be_wrong_and_is_read_as_it_is(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki, clockOffsetS=-86400.0 * 400) as switch:
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            told = await session.device_time()
    assert abs(CLOCK.wall() - timedelta(days=400) - told) < timedelta(minutes=5)


async def test_a_reboot_is_seen_pending_and_can_be_taken_back(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki) as switch:
        pending = {"at": time.time() + 3600, "reason": "upgrade", "acceptedAt": time.time()}
        switch.set(gnoi={"pendingReboot": pending})
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            status = await session.reboot_status()
            assert (status.active, status.reason, status.failed) == (True, "upgrade", False)
            assert 3000 < status.wait_s <= 3600
            assert await session.cancel_reboot("the window is over") == Accepted()
            assert not (await session.reboot_status()).active


async def test_a_reboot_that_was_accepted_may_be_inactive_first(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki, inactiveS=3600.0) as switch:
        now = time.time()
        switch.set(gnoi={"pendingReboot": {"at": now + 7200, "reason": "upgrade", "acceptedAt": now}})
        async with gnoi_session(switch.target, clock=CLOCK) as session:
            assert not (await session.reboot_status()).active
            switch.set(gnoi={"inactiveS": 0.0})
            assert (await session.reboot_status()).active


async def test_a_device_that_reboots_does_not_answer(tmp_path: Path, pki: GnoiPki) -> None:
    async with a_switch(tmp_path, pki, rebootS=3600.0) as switch:
        switch.set(packages=[{"version": NEW, "state": "added", "file": "", "addedAt": 0}])
        await activate(switch, NEW)

        async def is_away() -> bool:
            return not await running(switch)

        await until(is_away, what="the switch is away")
        with pytest.raises(GnoiUnavailable) as caught:
            async with gnoi_session(switch.target, clock=CLOCK):
                pass
    assert caught.value.code is ErrorCode.GNOI_UNAVAILABLE
    assert "refused" in str(caught.value)


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        ("17.18.03", "17.18.03", True),
        ("17.18.03.0.5496", "17.18.03", True),
        ("17.18.031", "17.18.03", False),
        ("17.18.03a", "17.18.03", False),
        ("17.18", "17.18.03", False),
        ("17.18.03", "", False),
    ],
)
def test_a_version_matches_when_it_is_the_same_or_longer_by_parts(found: str, wanted: str, expected: bool) -> None:
    assert matches_target(found, wanted) is expected


async def test_many_sessions_leave_no_thread_and_no_connection(tmp_path: Path, pki: GnoiPki) -> None:
    def used() -> tuple[int, int]:
        return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))

    async def some(count: int) -> None:
        for number in range(count):
            async with gnoi_session(switch.target, clock=CLOCK) as session:
                if number % 3:
                    await session.verify()
            with pytest.raises(GnoiUnavailable):
                async with gnoi_session(nobody, clock=CLOCK):
                    pass

    (port,) = pick_ports(1)
    nobody = GnoiTarget("127.0.0.1", port, tls=pki.material())
    async with a_switch(tmp_path, pki) as switch:
        await some(5)
        before = used()
        await some(40)

        async def are_as_before() -> bool:
            threads, files = used()
            return threads <= before[0] + 4 and files <= before[1] + 4

        await until(are_as_before, what=f"threads and files are as before ({before}, now {used()})")

"""Reads of a switch over a real session: whole, partial, missing (devices.md, sections 5.2 and 20, checks 17 and 21)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.device import preflightchecks as checks
from gitops_ctl.device import reads
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.networksample import Collector, Look, sample_of
from gitops_ctl.device.operational import Mode, VersionState
from tests.support.netconf_device import QUICK, NetconfDevice
from tools.peers.iosxe.state import activate, new_device

pytestmark = pytest.mark.peers
OLD, NEW = "17.18.02.0.4112.1766116039", "17.18.03.0.5496.1776157760"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with NetconfDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


@pytest.fixture
def device(started):
    started.renew(new_device("FOC1234"))
    return started


@pytest.fixture
async def session(device):
    async with NetconfClient(limits=QUICK).session(device.endpoint()) as session:
        yield session


async def test_a_healthy_switch_is_read_completely(session):
    around, install, platform = (
        await reads.surroundings(session),
        await reads.install_state(session),
        await reads.platform(session),
    )
    apps, saved = await reads.apps(session), await reads.saved_configuration(session)
    assert [seen.gaps for seen in (around, install, platform, apps, saved)] == [()] * 5
    assert [item.name for item in around.value.interfaces] == ["TenGigabitEthernet1/1/1", "TenGigabitEthernet1/1/2"]
    assert [item.id for item in around.value.neighbors] == ["core-1.example.net", "core-2.example.net"]
    assert (install.value.running, install.value.committed, install.value.mode) == (OLD, True, Mode.INSTALL)
    assert (platform.value.serial, platform.value.flash[0].free) == ("FOC1234", 6 * 2**30)
    assert apps.value.none
    assert saved.value.saved


async def test_an_activated_switch_shows_its_timer_and_both_versions(device, session):
    with device.file.change() as state:
        state["packages"].append({"version": NEW, "state": "added", "file": "flash:new.bin", "addedAt": 0})
    added = (await reads.install_state(session)).value
    assert added.holds("17.18.03", states=(VersionState.ADDED,)) == NEW
    with device.file.change() as state:
        activate(state, NEW, now=datetime.now(UTC).timestamp())
    seen = await reads.install_state(session)
    assert (seen.value.running, seen.value.committed, seen.value.timer) == (NEW, False, True)
    assert checks.quiescence_problem(seen, verified=NEW) == "the auto-abort timer runs"


PARTIAL = [
    ("surroundings", {"kind": "omit", "subtree": "interfaces"}, "interfaces is missing"),
    ("surroundings", {"kind": "partial", "list": "interface", "leaf": "oper-status"}, "has no oper-status"),
    ("surroundings", {"kind": "partial", "list": "cdp-neighbor-detail", "leaf": "device-name"}, "has no device-name"),
    ("install_state", {"kind": "omit", "subtree": "install-oper-data"}, "install-oper-data is missing"),
    ("install_state", {"kind": "partial", "list": "oper-state", "leaf": "sys-activity"}, "has no sys-activity"),
    ("install_state", {"kind": "partial", "list": "install-version-info", "leaf": "current"}, "is missing"),
    ("platform", {"kind": "omit", "subtree": "device-hardware-data"}, "device-hardware-data is missing"),
    ("platform", {"kind": "partial", "list": "q-filesystem", "leaf": "used-size"}, "has no used-size"),
    ("apps", {"kind": "omit", "subtree": "app-hosting-oper-data"}, "app-hosting-oper-data is missing"),
]


async def test_every_partial_answer_is_told_as_one_and_the_next_whole_one_counts(device, session):
    for name, fault, gap in PARTIAL:
        read = getattr(reads, name)
        device.fault(on="get", **fault)
        seen = await read(session)
        assert gap in seen.why, fault
        assert (await read(session)).complete, fault


async def test_each_check_of_the_preflight_fails_alone_with_its_reason(device, session):
    different = "<native xmlns='http://cisco.com/ns/yang/Cisco-IOS-XE-native'><hostname>other</hostname></native>"
    cases = {
        "NotInstallMode": {"mode": "bundle"},
        "FlashSpaceInsufficient": {"supervisors": [{**new_device("X")["supervisors"][0], "flashFree": 2**20}]},
        "UnsavedConfiguration": {"startupConfig": different},
        "DeviceNotQuiescent": {"operation": {"kind": "add", "by": "somebody", "startedAt": 0}},
    }
    for reason, change in cases.items():
        healthy = new_device("FOC1234")
        device.file.create({**healthy, **change, "sessions": device.file.read()["sessions"]})
        found = await preflight(session)
        assert [check.reason for check in found if check.status is not checks.Status.PASS] == [reason]


async def preflight(session, *, block: bool = True):
    install, platform = await reads.install_state(session), await reads.platform(session)
    saved = await reads.saved_configuration(session)
    return (
        checks.flash_space(platform, install, needed=2**30),
        checks.install_mode(install),
        checks.quiescent(install, verified=OLD),
        checks.saved_configuration(saved, block=block),
    )


@pytest.mark.parametrize("block", [True, False])
async def test_a_startup_datastore_that_cannot_be_read_counts_as_unsaved(device, session, block):
    device.fault("error", on="startup", errors=[{"tag": "operation-not-supported", "message": "no startup here"}])
    (check,) = [check for check in await preflight(session, block=block) if check.status is not checks.Status.PASS]
    assert (check.reason, check.blocks) == ("UnsavedConfiguration", block)
    assert "no startup here" in check.message


async def test_applications_of_either_kind_are_in_the_way(device, session):
    device.set(apps=[{"name": "edge", "configured": True, "state": ""}])
    assert (await reads.apps(session)).value.configured == ("edge",)
    device.set(apps=[{"name": "edge", "configured": False, "state": "RUNNING"}])
    assert (await reads.apps(session)).value.present == (("edge", "RUNNING"),)


async def test_a_sample_comes_from_a_whole_look_and_says_when_it_was_not(device, session):
    by, start = Collector("pod-1", "sha256:" + "b" * 64, "sha256:" + "c" * 64), datetime(2026, 11, 30, tzinfo=UTC)
    look = Look(start, start + timedelta(seconds=1), sequence=1)
    whole = sample_of(await reads.surroundings(session), by=by, look=look)
    assert (whole["complete"], [entry["headroomPercent"] for entry in whole["interfaces"]]) == (True, [91, 91])
    device.fault("partial", on="get", list="interface", leaf="oper-status")
    partial = sample_of(await reads.surroundings(session), by=by, look=replace(look, sequence=2))
    assert not partial["complete"]
    assert [entry["name"] for entry in partial["interfaces"]] == ["TenGigabitEthernet1/1/1"]
    assert "oper-status" in partial["unknownReason"]

"""The switch in memory ends every call as the peer does over TLS: same outcome, same switch afterwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError, InternalError
from gitops_ctl.device.gnoi import GnoiClient, SoftwareSessions
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.outcome import Outcome, Refused, Unknown
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_images import FileContent, order_of, terms
from tests.support.gnoi_peer import NEW, OLD, a_switch
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import Package, write_package
from tools.peers.iosxe.state import DeviceFile, new_device

pytestmark = pytest.mark.peers

__all__ = ["pki"]

Fault = tuple[str, str, dict[str, Any]]
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "nothing": (),
    "not read": (("drop", "Install", {}),),
    "asked": (("drop", "Install:asked", {}),),
    "content": (("drop", "Install:content", {"at": 1}),),
    "end": (("drop", "Install:end", {}),),
    "stored": (("drop", "Install:stored", {}),),
    "torn and stored": (("store", "Install:content", {"at": 1, "version": NEW}),),
    "silent end": (("silent-end", "Install:end", {}),),
    "in progress": (("answer", "Install:asked", {"type": "INSTALL_IN_PROGRESS", "code": "UNKNOWN"}),),
    "switchover": (("answer", "Install:content", {"type": "UNEXPECTED_SWITCHOVER"}),),
    "other version": (("validated", "Install:end", {"version": "17.19.01.1"}),),
    "no such call": (("error", "Install", {"code": "UNIMPLEMENTED"}),),
    "unavailable": (("error", "Install", {"code": "UNAVAILABLE"}),),
    "activation not read": (("drop", "Activate", {}),),
    "activation done": (("drop", "Activate:done", {}),),
    "activation refused": (("error", "Activate", {"code": "FAILED_PRECONDITION"}),),
    "not verified": (("error", "Verify", {"code": "UNIMPLEMENTED"}),),
    "both torn": (("drop", "Install:stored", {}), ("drop", "Activate:done", {})),
}
SETTINGS: Mapping[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "single": (1, {}, {}),
    "whole": (2, {"layout": "whole"}, {}),
    "individual": (2, {"layout": "individual"}, {}),
    "standby away": (2, {"layout": "individual", "standby": "unavailable"}, {}),
    "not provisioned": (1, {}, {"provisioned": False}),
    "another install": (1, {}, {"operation": {"kind": "add", "by": "somebody", "startedAt": 1}}),
}


def told(outcome: Outcome) -> object:
    """What callers decide by; what was sent of a torn transfer depends on buffers."""
    if isinstance(outcome, Unknown):
        return "unknown"
    return outcome.kind if isinstance(outcome, Refused) else outcome


async def walk(sessions: SoftwareSessions, target: GnoiTarget, package: Package) -> list[object]:
    """An upgrade that goes on whatever happens."""
    found: list[object] = []
    for standby in (False, True):
        async with sessions.session(target) as session:
            order = order_of(package, standby=standby)
            found.append(told(await session.install(order, FileContent(package.path), terms=terms())))
    for standby in (True, False):
        async with sessions.session(target) as session:
            found.append(told(await session.activate(NEW, standby=standby, no_reboot=True)))
    async with sessions.session(target) as session:
        try:
            found.append(await session.verify())
        except GitopsError as error:
            found.append(type(error))
    return found


def seen(file: DeviceFile) -> object:
    device = file.read()
    mutations = [(each["method"], each["arguments"]) for each in device["mutations"]]
    versions = [(each["version"], each["state"]) for each in device["packages"]]
    members = ("running", "pending", "failMessage")
    return mutations, versions, device["gnoi"]["standbyVersions"], [device[name] for name in members]


def prepare(file: DeviceFile, faults: tuple[Fault, ...], members: dict[str, Any]) -> None:
    with file.change() as device:
        device.update(members)
        device["faults"] += [{"for": "gnoi", "kind": kind, "on": place, **more} for kind, place, more in faults]


async def both(
    tmp_path: Path, pki: GnoiPki, package: Package, *, faults: tuple[Fault, ...] = (), setting: str = "single"
) -> None:
    supervisors, settings, members = SETTINGS[setting]
    async with a_switch(tmp_path, pki, supervisors=supervisors, **settings) as real:
        prepare(real.side.file, faults, members)
        expected = await walk(GnoiClient(SystemClock()), real.target, package), seen(real.side.file)
    memory = MemorySwitch(new_device("FOC2401L0AA", version=OLD, supervisors=supervisors), **settings)
    prepare(memory, faults, members)
    target = GnoiTarget("192.0.2.21", 9339)
    assert (await walk(DirectGnoi({str(target): memory}), target, package), seen(memory)) == expected


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return write_package(tmp_path_factory.mktemp("image") / "image.bin", NEW, filler=300_000)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_ends_alike(fault: str, tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    await both(tmp_path, pki, package, faults=FAULTS[fault], setting="individual")


@pytest.mark.parametrize("setting", SETTINGS)
async def test_a_kind_of_switch_answers_alike(setting: str, tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    await both(tmp_path, pki, package, setting=setting)


@pytest.mark.parametrize("members", [{"sha256": "0"}, {"incompatible": True}, {"platform": "N9K"}], ids=str)
async def test_a_bad_package_ends_alike(members: dict[str, Any], tmp_path: Path, pki: GnoiPki) -> None:
    await both(tmp_path, pki, write_package(tmp_path / "bad.bin", NEW, filler=300_000, **members))


async def test_a_reboot_takes_its_time_for_both_sides() -> None:
    now = [1000.0]
    memory = MemorySwitch(new_device("FOC2401L0AA", version=OLD), now=lambda: now[0], rebootS=300)
    target = GnoiTarget("192.0.2.21", 9339)
    sessions = DirectGnoi({str(target): memory})
    with memory.change() as device:
        device["packages"].append({"version": NEW, "state": "added", "file": "", "addedAt": 0})
    async with sessions.session(target) as session:
        await session.activate(NEW, standby=False, no_reboot=False)
    assert memory.read()["downUntil"] == 1300
    with pytest.raises(GitopsError):
        async with sessions.session(target):
            pass
    now[0] += 300
    async with sessions.session(target) as session:
        assert (await session.verify()).version == NEW
    assert memory.read()["autoAbort"]["revertTo"] == OLD


async def test_a_session_in_memory_also_sends_one_changing_call_and_can_be_interrupted() -> None:
    heard: list[tuple[str, str, str]] = []

    async def point(serial: str, method: str, when: str) -> None:
        heard.append((serial, method, when))
        if when == "after":
            raise ConnectionError

    memory, target = MemorySwitch(new_device("FOC2401L0AA", version=OLD)), GnoiTarget("192.0.2.21", 9339)
    async with DirectGnoi({str(target): memory}, point=point).session(target) as session:
        with pytest.raises(ConnectionError):
            await session.activate(OLD, standby=False, no_reboot=True)
        with pytest.raises(InternalError):
            await session.cancel_reboot("no")
    assert heard == [("FOC2401L0AA", "Activate", "before"), ("FOC2401L0AA", "Activate", "after")]
    assert len(memory.read()["mutations"]) == 1

"""An upgrade over gNOI that goes on whatever happens, with every fault of a device: run against the peer, and against the switch in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device.gnoi import GnoiClient, SoftwareSessions
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.outcome import Outcome, Refused, Unknown
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.support.gnoi_images import FileContent, order_of, terms
from tests.support.gnoi_peer import NEW, OLD, a_switch
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import Package
from tools.peers.iosxe.state import DeviceFile, new_device

TARGET = GnoiTarget("192.0.2.21", 9339)

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
    """What both must agree on."""
    device = file.read()
    mutations = [(each["method"], each["arguments"]) for each in device["mutations"]]
    versions = [(each["version"], each["state"]) for each in device["packages"]]
    members = ("running", "pending", "failMessage")
    return mutations, versions, device["gnoi"]["standbyVersions"], [device[name] for name in members]


def prepare(file: DeviceFile, faults: tuple[Fault, ...], members: dict[str, Any]) -> None:
    """Order the faults and set the members."""
    with file.change() as device:
        device.update(members)
        device["faults"] += [{"for": "gnoi", "kind": kind, "on": place, **more} for kind, place, more in faults]


async def in_memory(
    package: Package, *, faults: tuple[Fault, ...] = (), setting: str = "single"
) -> tuple[list[object], MemorySwitch]:
    """What a switch in memory answers, and how it is afterwards."""
    supervisors, settings, members = SETTINGS[setting]
    memory = MemorySwitch(new_device("FOC2401L0AA", version=OLD, supervisors=supervisors), **settings)
    prepare(memory, faults, members)
    return await walk(DirectGnoi({str(TARGET): memory}), TARGET, package), memory


async def both(
    tmp_path: Path, pki: GnoiPki, package: Package, *, faults: tuple[Fault, ...] = (), setting: str = "single"
) -> None:
    """Both answer alike, and are alike afterwards."""
    supervisors, settings, members = SETTINGS[setting]
    async with a_switch(tmp_path, pki, supervisors=supervisors, **settings) as real:
        prepare(real.side.file, faults, members)
        expected = await walk(GnoiClient(SystemClock()), real.target, package), seen(real.side.file)
    answers, memory = await in_memory(package, faults=faults, setting=setting)
    assert (answers, seen(memory)) == expected

"""The switch in memory ends every call as the peer does over TLS: same outcome, same switch afterwards."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError, InternalError
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.outcome import Accepted
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_peer import NEW, OLD
from tests.support.gnoi_pki import GnoiPki
from tests.support.gnoi_scenarios import FAULTS, SETTINGS, both, in_memory
from tools.peers.gnoi.package import Package, write_package
from tools.peers.iosxe.state import new_device

pytestmark = pytest.mark.peers

__all__ = ["pki"]


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


PAIRS = [f"{first} + {second}" for first, second in combinations(FAULTS, 2)]


@pytest.mark.parametrize("pair", PAIRS)
async def test_after_two_faults_an_outcome_still_says_nothing_that_is_wrong(pair: str, package: Package) -> None:
    faults = tuple(fault for name in pair.split(" + ") for fault in FAULTS[name])
    (active, standby, *_), memory = await in_memory(package, faults=faults, setting="individual")
    device = memory.read()
    assert device["gnoi"]["violations"] == []
    assert device["operation"] is None
    on_active = NEW in [each["version"] for each in device["packages"]]
    on_standby = NEW in device["gnoi"]["standbyVersions"]
    for outcome, is_there in ((active, on_active), (standby, on_standby)):
        if isinstance(outcome, Accepted) and outcome.version == NEW:
            assert is_there
        elif outcome != "unknown":
            assert not is_there


@pytest.mark.soak
@pytest.mark.parametrize("pair", PAIRS)
async def test_two_faults_end_alike(pair: str, tmp_path: Path, pki: GnoiPki, package: Package) -> None:
    faults = tuple(fault for name in pair.split(" + ") for fault in FAULTS[name])
    await both(tmp_path, pki, package, faults=faults, setting="individual")


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

"""NETCONF and gNOI show one switch: activation, timer, commit and the way back are seen alike (devices.md, sections 5.2 and 16.1)."""

from types import SimpleNamespace

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device import preflightchecks as checks
from gitops_ctl.device import reads
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.installcommit import CommitNeed, commit_need, send_commit
from gitops_ctl.device.operational import inventory_state
from gitops_ctl.device.outcome import Accepted
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.doubles.netconf import DirectNetconf
from tools.peers.iosxe.state import AUTO_ABORT_S, new_device

OLD, NEW = "17.18.02.0.4112.1766116039", "17.18.03.0.5496.1776157760"
TARGET = GnoiTarget("192.0.2.21", 9339)
ENDPOINT = SimpleNamespace(name="FOC1234")
REBOOT_S = 300


class Bench:
    """One switch, seen from both sides."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.switch = MemorySwitch(new_device("FOC1234", version=OLD), now=lambda: self.now, rebootS=REBOOT_S)
        with self.switch.change() as device:
            device["packages"].append({"version": NEW, "state": "added", "file": "", "addedAt": 0})

    def netconf(self):
        return DirectNetconf({"FOC1234": self.switch}).session(ENDPOINT)

    def gnoi(self):
        return DirectGnoi({str(TARGET): self.switch}).session(TARGET)

    async def activate(self) -> None:
        async with self.gnoi() as session:
            await session.activate(NEW, standby=False, no_reboot=False)

    async def quiescence(self) -> str:
        async with self.gnoi() as gnoi, self.netconf() as netconf:
            verified = (await gnoi.verify()).version
            return checks.quiescence_problem(await reads.install_state(netconf), verified=verified)

    async def need(self) -> CommitNeed:
        async with self.netconf() as session:
            return commit_need(await reads.install_state(session), version=NEW).need


@pytest.fixture
def bench():
    return Bench()


async def test_an_upgrade_from_quiescent_to_quiescent(bench):
    assert await bench.quiescence() == ""
    await bench.activate()
    for side in (bench.netconf, bench.gnoi):
        with pytest.raises(GitopsError):
            async with side():
                pass
    bench.now += REBOOT_S
    assert await bench.quiescence() == "the auto-abort timer runs"
    assert await bench.need() is CommitNeed.NEEDED
    async with bench.netconf() as session:
        assert await send_commit(session, operation_id="marker-1") == Accepted()
    assert await bench.need() is CommitNeed.DONE
    assert await bench.quiescence() == ""
    async with bench.netconf() as session:
        seen = await reads.install_state(session)
    assert inventory_state(seen, "17.18.03") == "ProvisionedCommitted"
    assert inventory_state(seen, "17.18.02") == "Present"


async def test_a_switch_that_was_not_committed_is_back_and_quiescent_without_another_call(bench):
    await bench.activate()
    bench.now += REBOOT_S
    assert await bench.need() is CommitNeed.NEEDED
    bench.now += AUTO_ABORT_S
    bench.switch.read()
    bench.now += REBOOT_S
    async with bench.gnoi() as session:
        assert (await session.verify()).version == OLD
    assert await bench.need() is CommitNeed.LEFT
    assert await bench.quiescence() == ""
    assert len(bench.switch.read()["mutations"]) == 1
    assert bench.switch.read()["commits"] == []

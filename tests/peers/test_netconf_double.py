"""The switch in memory answers as the one behind sshd does."""

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.device import reads
from gitops_ctl.device.installcommit import send_commit
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.outcome import Unknown
from tests.doubles.netconf import DirectNetconf, MemoryDevice
from tests.support.netconf_device import QUICK, NetconfDevice
from tools.peers.iosxe.state import activate, new_device

pytestmark = pytest.mark.peers
NEW = "17.18.03.0.5496.1776157760"
READS = (reads.surroundings, reads.install_state, reads.platform, reads.apps, reads.saved_configuration)
FAULTS = (
    {"kind": "empty", "on": "install-commit"},
    {"kind": "partial", "on": "get", "list": "interface", "leaf": "oper-status"},
    {"kind": "error", "on": "install-commit", "errors": [{"tag": "in-use", "message": "no"}]},
    {"kind": "omit", "on": "get", "subtree": "interfaces"},
    {"kind": "drop-after", "on": "install-commit"},
)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with NetconfDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


def a_switch() -> dict:
    state = new_device("FOC1234", supervisors=2)
    state["packages"].append({"version": NEW, "state": "added", "file": "flash:new.bin", "addedAt": 0})
    state["lldp"] = [{"id": "access-1.example.net", "interface": "TenGigabitEthernet1/1/1", "state": "discovered"}]
    state["apps"] = [{"name": "edge", "configured": True, "state": "RUNNING"}]
    activate(state, NEW, now=2_000_000_000)
    return state


async def everything(session, switch) -> list[object]:
    """What a worker sees: readings, and what became of commits under each fault."""
    found: list[object] = [await read(session) for read in READS]
    for fault in FAULTS:
        switch.fault(**fault)
        try:
            if fault["on"] == "get":
                found.append(await reads.surroundings(session))
            else:
                found.append(type(await send_commit(session, operation_id="m")))
        except GitopsError as error:
            found.append((type(error), error.code))
    return found


async def test_both_give_the_same_readings_and_outcomes(real):
    memory = MemoryDevice(a_switch())
    async with DirectNetconf({"FOC1234": memory}).session(real.endpoint()) as session:
        direct = await everything(session, memory)
    real.renew(a_switch())
    async with NetconfClient(limits=QUICK).session(real.endpoint()) as session:
        behind_sshd = await everything(session, real)
    assert direct == behind_sshd
    assert behind_sshd[len(READS) :].count(Unknown) == 2
    assert len(memory.read()["commits"]) == len(real.commits)

"""What becomes of an install commit is settled by looking, whatever becomes of its reply (rollouts.md, section 13.3; devices.md, 15.1)."""

from types import SimpleNamespace

import pytest

from gitops_ctl.core.errors import ReplyLost, Unavailable
from gitops_ctl.device import reads
from gitops_ctl.device.installcommit import CommitNeed, commit_need, send_commit
from gitops_ctl.device.outcome import Accepted, Refused, Unknown
from tests.doubles.netconf import DirectNetconf, MemoryDevice
from tools.peers.iosxe.state import AUTO_ABORT_S, activate, new_device

OLD, NEW = "17.18.02.0.4112.1766116039", "17.18.03.0.5496.1776157760"
ENDPOINT = SimpleNamespace(name="FOC1234")
FAULTS = [
    ({"kind": "none"}, Accepted, 1, CommitNeed.DONE),
    ({"kind": "drop-before"}, Unknown, 0, CommitNeed.NEEDED),
    ({"kind": "drop-after"}, Unknown, 1, CommitNeed.DONE),
    ({"kind": "silent"}, Unknown, 0, CommitNeed.NEEDED),
    ({"kind": "late", "seconds": 600}, Unknown, 1, CommitNeed.DONE),
    ({"kind": "empty"}, Unknown, 1, CommitNeed.DONE),
    ({"kind": "wrong-id"}, Unknown, 1, CommitNeed.DONE),
    ({"kind": "error", "errors": [{"tag": "operation-failed", "message": "no"}]}, Refused, 0, CommitNeed.NEEDED),
    ({"kind": "slow", "seconds": 3600}, Accepted, 1, CommitNeed.BUSY),
]


@pytest.fixture
def clock():
    return [1_000_000.0]


@pytest.fixture
def switch(clock):
    """Runs an activated version, and will leave it in two hours."""
    state = new_device("FOC1234")
    state["packages"].append({"version": NEW, "state": "added", "file": "", "addedAt": 0})
    activate(state, NEW, now=clock[0])
    return MemoryDevice(state, now=lambda: clock[0])


async def look(switch) -> CommitNeed:
    async with DirectNetconf({"FOC1234": switch}).session(ENDPOINT) as session:
        return commit_need(await reads.install_state(session), version="17.18.03").need


async def commit(switch):
    async with DirectNetconf({"FOC1234": switch}).session(ENDPOINT) as session:
        return await send_commit(session, operation_id="marker-1")


@pytest.mark.parametrize(("fault", "outcome", "sent", "then"), FAULTS, ids=[case[0]["kind"] for case in FAULTS])
class TestEachFault:
    async def test_D06_a_look_settles_it_and_nothing_is_sent_again(self, switch, fault, outcome, sent, then):
        switch.fault(on="install-commit", **fault)
        assert isinstance(await commit(switch), outcome)
        assert await look(switch) is then
        assert len(switch.read()["commits"]) == sent

    async def test_after_the_timer_it_is_either_kept_or_left(self, switch, clock, fault, outcome, sent, then):
        switch.fault(on="install-commit", **fault)
        await commit(switch)
        clock[0] += AUTO_ABORT_S
        device = switch.read()
        kept = then is not CommitNeed.NEEDED
        assert (device["running"], device["committed"]) == ((NEW, NEW) if kept else (OLD, OLD))
        assert await look(switch) is (CommitNeed.DONE if kept else CommitNeed.LEFT)


async def test_a_slow_commit_is_busy_until_it_is_done(switch, clock):
    switch.fault("slow", on="install-commit", seconds=60)
    await commit(switch)
    assert await look(switch) is CommitNeed.BUSY
    clock[0] += 60
    assert await look(switch) is CommitNeed.DONE


async def test_a_busy_install_manager_refuses_and_says_so(switch):
    with switch.change() as device:
        device["operation"] = {"kind": "add", "by": "somebody", "startedAt": 0}
    found = await commit(switch)
    assert isinstance(found, Refused)
    assert (found.kind, "in progress" in found.message) == ("in-use", True)
    assert await look(switch) is CommitNeed.BUSY


async def test_a_partial_look_concludes_nothing(switch):
    switch.fault("omit", on="get", subtree="install-oper-data")
    assert await look(switch) is CommitNeed.UNKNOWN


async def test_without_a_session_nothing_was_sent(switch):
    async with DirectNetconf({"FOC1234": switch}).session(ENDPOINT) as session:
        switch.fault("drop-before", on="get")
        with pytest.raises(ReplyLost):
            await reads.install_state(session)
        with pytest.raises(Unavailable):
            await send_commit(session, operation_id="marker-1")
    assert switch.read()["commits"] == []


async def test_the_request_carries_the_id_of_its_marker(switch):
    await commit(switch)
    assert [entry["uuid"] for entry in switch.read()["commits"]] == ["marker-1"]

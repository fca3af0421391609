"""The install commit over a real session (devices.md, sections 15.1 and 20, check 15); every other fault: test_install_commit.py."""

import asyncio
import time
from dataclasses import replace

import pytest

from gitops_ctl.device import reads
from gitops_ctl.device.installcommit import CommitNeed, commit_need, send_commit
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.outcome import Accepted, Unknown
from tests.support.netconf_device import QUICK, NetconfDevice
from tools.peers.iosxe.state import activate, new_device

pytestmark = pytest.mark.peers
NEW = "17.18.03.0.5496.1776157760"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with NetconfDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


@pytest.fixture
def device(started):
    """A switch that runs an activated version and will leave it in two hours."""
    state = new_device("FOC1234")
    state["packages"].append({"version": NEW, "state": "added", "file": "", "addedAt": 0})
    activate(state, NEW, now=time.time())
    started.renew(state)
    return started


async def look(device) -> CommitNeed:
    """With a session of its own, as after every lost reply."""
    async with NetconfClient(limits=QUICK).session(device.endpoint()) as session:
        return commit_need(await reads.install_state(session), version="17.18.03").need


async def commit(device, *, timeout_s: float = 30):
    async with NetconfClient(limits=QUICK).session(device.endpoint()) as session:
        return await send_commit(session, operation_id="marker-1", timeout_s=timeout_s)


async def test_a_commit_keeps_the_version_and_stops_the_timer(device):
    async with NetconfClient(limits=QUICK).session(device.endpoint()) as session:
        assert commit_need(await reads.install_state(session), version=NEW).need is CommitNeed.NEEDED
        assert await send_commit(session, operation_id="marker-1") == Accepted()
        assert commit_need(await reads.install_state(session), version=NEW).need is CommitNeed.DONE
    assert [entry["uuid"] for entry in device.commits] == ["marker-1"]


@pytest.mark.parametrize(
    ("fault", "outcome", "sent", "then"),
    [
        ({"kind": "drop-before"}, Unknown, 0, CommitNeed.NEEDED),
        ({"kind": "drop-after"}, Unknown, 1, CommitNeed.DONE),
        ({"kind": "silent"}, Unknown, 0, CommitNeed.NEEDED),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
async def test_D06_whatever_becomes_of_the_reply_a_look_settles_it_and_nothing_is_sent_again(
    device, fault, outcome, sent, then
):
    device.fault(on="install-commit", **fault)
    found = await commit(device, timeout_s=1 if fault["kind"] == "silent" else 30)
    assert isinstance(found, outcome)
    assert await look(device) is then
    assert len(device.commits) == sent


async def test_a_worker_that_is_cancelled_while_it_waits_leaves_at_most_one_commit(device):
    device.fault("late", on="install-commit", seconds=0.5)
    limits = replace(QUICK, close_s=2)
    async with NetconfClient(limits=limits).session(device.endpoint()) as session:
        task = asyncio.create_task(send_commit(session, operation_id="marker-1"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await look(device) in (CommitNeed.NEEDED, CommitNeed.DONE)
    assert len(device.commits) <= 1

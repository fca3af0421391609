"""One switch with both of its sides, each a real server: what gNOI activates, NETCONF commits (devices.md, sections 5.2 and 16.1)."""

import asyncio
import time

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.device import preflightchecks as checks
from gitops_ctl.device import reads
from gitops_ctl.device.gnoi import gnoi_session
from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.installcommit import CommitNeed, commit_need, send_commit
from gitops_ctl.device.netconf import NetconfClient
from gitops_ctl.device.outcome import Accepted
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_peer import LOGIN, NEW, OLD, start_switch
from tests.support.netconf_device import QUICK, NetconfDevice

pytestmark = pytest.mark.peers
__all__ = ["pki"]


async def test_an_upgrade_is_activated_on_one_side_and_committed_on_the_other(tmp_path, pki):
    serial, client = "FOC2401L0AA", NetconfClient(limits=QUICK)
    with (
        start_switch(tmp_path / "gnoi", serial=serial, pki=pki, rebootS=0.2) as switch,
        NetconfDevice(tmp_path / "netconf", serial=serial, state_file=switch.state_file) as device,
    ):
        target = GnoiTarget("127.0.0.1", switch.port, server_name=serial, tls=pki.material(), login=LOGIN)

        async def verified() -> str:
            async with gnoi_session(target, clock=SystemClock()) as session:
                return (await session.verify()).version

        async with client.session(device.endpoint()) as session:
            assert checks.quiescence_problem(await reads.install_state(session), verified=await verified()) == ""
        switch.set(packages=[*switch.state()["packages"], {"version": NEW, "state": "added", "file": "", "addedAt": 0}])
        async with gnoi_session(target, clock=SystemClock()) as session:
            await session.activate(NEW, standby=False, no_reboot=False)
        async with asyncio.timeout(60):
            while (state := switch.state())["running"] != NEW or state["downUntil"] > time.time():
                await asyncio.sleep(0.05)
        async with client.session(device.endpoint()) as session:
            seen = await reads.install_state(session)
            assert commit_need(seen, version=NEW).need is CommitNeed.NEEDED
            assert await send_commit(session, operation_id="marker-1") == Accepted()
            seen = await reads.install_state(session)
        assert checks.quiescence_problem(seen, verified=await verified()) == ""
        state = switch.state()
        assert (state["running"], state["committed"], state["autoAbort"]) == (NEW, NEW, None)
        assert (state["previous"], len(state["commits"]), state["gnoi"]["violations"]) == (OLD, 1, [])

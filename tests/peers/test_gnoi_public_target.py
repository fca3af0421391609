"""A target that offers System and no OS, as lemming does (devices.md, section 16.2): its departures from the text do not fool the client.

Own peer, written from what was seen of that implementation; not the implementation itself.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.device import imagechecks
from gitops_ctl.device.channel import GnoiUnavailable, gnoi_channel
from gitops_ctl.device.gnoi import gnoi_session
from gitops_ctl.device.gnoianswers import GnoiUnsupported
from gitops_ctl.device.outcome import Accepted, Refused, Unknown
from gitops_ctl.netpb.gnoi.system import system_pb2, system_pb2_grpc
from gitops_ctl.netpb.gnoi.types import types_pb2
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_images import FileContent, order_of, terms
from tests.support.gnoi_peer import NEW, Switch, a_switch
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import write_package
from tools.peers.gnoi.public_target import PublicTarget

pytestmark = pytest.mark.peers

__all__ = ["pki"]

CLOCK = SystemClock()
HOUR_NS = 3600 * 10**9


@pytest.fixture
async def target(tmp_path: Path, pki: GnoiPki) -> AsyncIterator[Switch]:
    async with a_switch(tmp_path, pki, public=True) as made:
        yield made


def public(target: Switch) -> PublicTarget:
    assert target.side.public is not None
    return target.side.public


async def reboot(target: Switch, *, delay: int = 0, method: int = system_pb2.COLD, component: str = "") -> str:
    """Somebody else asks for a reboot; OK, or the name of the status."""
    parts = [types_pb2.Path(elem=[types_pb2.PathElem(name=component)])] if component else []
    request = system_pb2.RebootRequest(method=method, delay=delay, subcomponents=parts)  # type: ignore[arg-type]
    async with gnoi_channel(target.target, clock=CLOCK) as channel:
        try:
            await system_pb2_grpc.SystemStub(channel).Reboot(request, metadata=target.target.metadata)
        except grpc.aio.AioRpcError as error:
            return error.code().name
    return "OK"


async def test_a_target_without_the_service_os_is_no_device_to_upgrade(target: Switch, tmp_path: Path) -> None:
    package = write_package(tmp_path / "image.bin", NEW)
    async with gnoi_session(target.target, clock=CLOCK) as session:
        with pytest.raises(GnoiUnsupported) as raised:
            await session.verify()
        outcome = await session.install(order_of(package), FileContent(package.path), terms=terms())
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.sent_bytes) == ("UNIMPLEMENTED", 0)
    async with gnoi_session(target.target, clock=CLOCK) as session:
        activated = await session.activate(NEW, standby=False, no_reboot=False)
    assert isinstance(activated, Refused)
    assert activated.kind == "UNIMPLEMENTED"
    check = imagechecks.gnoi(raised.value)
    assert (check.blocks, check.reason) == (True, "GnoiUnavailable")
    assert "does not offer this call" in check.message


async def test_nobody_can_ask_whether_a_reboot_is_pending_and_that_is_no_answer(target: Switch) -> None:
    """A reboot that answers at once and breaks nothing is no sign that the device is back, and none that nothing is pending."""
    before = public(target).boot_time
    assert await reboot(target) == "OK"
    assert public(target).boot_time > before
    assert await reboot(target, delay=HOUR_NS) == "OK"
    async with gnoi_session(target.target, clock=CLOCK) as session:
        with pytest.raises(GnoiUnsupported, match="RebootStatus: the device does not offer this call"):
            await session.reboot_status()
        assert abs((CLOCK.wall() - await session.device_time()).total_seconds()) < 60


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"delay": HOUR_NS}, "ALREADY_EXISTS"),
        ({}, "ALREADY_EXISTS"),
        ({"component": "supervisor"}, "NOT_FOUND"),
        ({"method": system_pb2.WARM}, "INVALID_ARGUMENT"),
    ],
    ids=["another delayed one", "one at once", "of a component", "another method"],
)
async def test_beside_a_pending_reboot_no_other_one_is_taken(
    target: Switch, asked: dict[str, object], answer: str
) -> None:
    assert await reboot(target, delay=HOUR_NS) == "OK"
    assert await reboot(target, **asked) == answer  # type: ignore[arg-type]
    assert public(target).is_pending


async def test_a_method_that_should_be_refused_is_accepted_here(target: Switch) -> None:
    assert await reboot(target, method=system_pb2.UNKNOWN) == "OK"


async def test_a_delayed_reboot_that_never_happens_stays_pending_until_it_is_taken_back(target: Switch) -> None:
    before = public(target).boot_time
    assert await reboot(target, delay=1) == "OK"
    assert (public(target).is_pending, public(target).boot_time) == (True, before)
    for _ in range(2):
        # An OK says that none is pending now, and nothing of whether one was.
        async with gnoi_session(target.target, clock=CLOCK) as session:
            assert await session.cancel_reboot("the window is over") == Accepted()
        assert not public(target).is_pending
    assert public(target).calls == ["Reboot", "CancelReboot", "CancelReboot"]


@pytest.mark.parametrize("place", ["CancelReboot", "CancelReboot:done"])
async def test_a_connection_that_ends_while_a_reboot_is_taken_back_leaves_the_outcome_unknown(
    target: Switch, place: str
) -> None:
    assert await reboot(target, delay=HOUR_NS) == "OK"
    target.fault("drop", on=place)
    async with gnoi_session(target.target, clock=CLOCK) as session:
        outcome = await asyncio.wait_for(session.cancel_reboot("the window is over"), 30)
    assert isinstance(outcome, Unknown)
    assert public(target).is_pending is (place == "CancelReboot")
    assert public(target).calls.count("CancelReboot") == (place != "CancelReboot"), "it is not sent again"


async def test_a_connection_that_ends_during_a_read_is_a_device_that_does_not_answer(target: Switch) -> None:
    target.fault("drop", on="Time")
    async with gnoi_session(target.target, clock=CLOCK) as session:
        with pytest.raises(GnoiUnavailable, match="does not answer"):
            await session.device_time()
    async with gnoi_session(target.target, clock=CLOCK) as session:
        await session.device_time()


async def test_a_connection_that_ends_with_a_reboot_of_somebody_else_takes_no_session_with_it(target: Switch) -> None:
    target.fault("drop", on="Reboot:done")
    assert await reboot(target) == "UNAVAILABLE"
    assert public(target).calls == ["Reboot"]
    async with gnoi_session(target.target, clock=CLOCK) as session:
        await session.device_time()

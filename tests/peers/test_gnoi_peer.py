"""The peer itself keeps to the text of the OS service; asked with the bare stubs, never with our client (devices.md, 11 and 16)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from gitops_ctl.netpb.gnoi.os import os_pb2, os_pb2_grpc
from gitops_ctl.netpb.gnoi.system import system_pb2, system_pb2_grpc
from tests.support.gnoi_fixtures import pki
from tests.support.gnoi_peer import NEW, OLD, Switch, a_switch, start_switch
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.package import Package, write_package

pytestmark = pytest.mark.peers

__all__ = ["pki"]

END = os_pb2.InstallRequest(transfer_end=os_pb2.TransferEnd())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return write_package(tmp_path_factory.mktemp("image") / "image.bin", NEW, filler=20_000)


@asynccontextmanager
async def channel(switch: Switch) -> AsyncIterator[grpc.aio.Channel]:
    """A connection of nobody's client."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{switch.target.port}") as found:
        yield found


def ask(version: str = "17.18.03", *, standby: bool = False, size: int = 0) -> os_pb2.InstallRequest:
    request = os_pb2.TransferRequest(version=version, standby_supervisor=standby, package_size=size)
    return os_pb2.InstallRequest(transfer_request=request)


def pieces(package: Package) -> list[os_pb2.InstallRequest]:
    content = package.path.read_bytes()
    return [os_pb2.InstallRequest(transfer_content=content[at : at + 4096]) for at in range(0, len(content), 4096)]


async def talk(switch: Switch, *steps: Any) -> tuple[list[str], grpc.StatusCode]:
    """Answers to what was written, and the status.  A step is a message, `wait` for an answer, or `close`."""
    async with channel(switch) as connection:
        call = os_pb2_grpc.OSStub(connection).Install()
        answers: list[str] = []

        async def answered() -> None:
            try:
                answer = await call.read()
            except grpc.aio.AioRpcError:
                return
            if answer is not grpc.aio.EOF:
                kind = answer.WhichOneof("response")
                name = os_pb2.InstallError.Type.Name(answer.install_error.type) if kind == "install_error" else kind
                answers.append(f"{name} {answer.validated.version}" if kind == "validated" else name)

        for step in steps:
            if step == "wait":
                await answered()
            elif step == "close":
                await call.done_writing()
            else:
                await call.write(step)
        while not call.done():
            await answered()
        return answers, await call.code()


async def test_the_usual_order_ends_validated(tmp_path: Path, package: Package) -> None:
    async with a_switch(tmp_path, None, progressBytes=8192) as switch:
        answers, code = await talk(switch, ask(), "wait", *pieces(package), END)
        assert answers == ["transfer_ready", *["transfer_progress"] * 2, f"validated {NEW}"]
        assert code is grpc.StatusCode.OK
        assert await talk(switch, ask(f"{NEW}")) == ([f"validated {NEW}"], grpc.StatusCode.OK)


@pytest.mark.parametrize(
    "steps",
    [
        [os_pb2.InstallRequest(transfer_content=b"x")],
        [END],
        ["close"],
        [ask(), os_pb2.InstallRequest(transfer_content=b"x")],
        [ask(), "wait", ask()],
        [ask(), "wait", os_pb2.InstallRequest(transfer_content=b"x"), "close"],
        [ask(), "wait", "close"],
    ],
    ids=["content first", "end first", "nothing", "content before ready", "second request", "no end", "no content"],
)
async def test_what_the_text_does_not_allow_is_an_invalid_argument_and_changes_nothing(
    steps: list[Any], tmp_path: Path
) -> None:
    # Where the step after the request does not wait, it comes long before the switch is ready.
    ready_after_s = 0.0 if "wait" in steps else 60.0
    async with a_switch(tmp_path, None, readyAfterS=ready_after_s) as switch:
        _, code = await talk(switch, *steps)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert switch.device["operation"] is None
        assert [each["version"] for each in switch.device["packages"]] == [OLD]


async def test_with_its_quirks_a_wrong_order_is_unknown(tmp_path: Path) -> None:
    async with a_switch(tmp_path, None, quirks=True) as switch:
        assert (await talk(switch, END))[1] is grpc.StatusCode.UNKNOWN
        assert (await talk(switch, ask(), "wait", "close"))[1] is grpc.StatusCode.UNKNOWN


async def test_an_empty_version_forces_a_transfer_and_never_of_what_runs(tmp_path: Path, package: Package) -> None:
    running = write_package(tmp_path / "running.bin", OLD)
    async with a_switch(tmp_path, None) as switch:
        assert (await talk(switch, ask(""), "wait", *pieces(running), END))[0] == [
            "transfer_ready",
            "INSTALL_RUN_PACKAGE",
        ]


async def test_the_version_of_the_request_is_never_compared_with_the_package(tmp_path: Path, package: Package) -> None:
    async with a_switch(tmp_path, None) as switch:
        answers, _ = await talk(switch, ask("1.2.3"), "wait", *pieces(package), END)
        assert answers[-1] == f"validated {NEW}"


async def test_one_install_at_a_time(tmp_path: Path, package: Package) -> None:
    async with a_switch(tmp_path, None) as switch, channel(switch) as connection:
        first = os_pb2_grpc.OSStub(connection).Install()
        await first.write(ask())
        await first.read()
        assert await talk(switch, ask("17.18.04")) == (["INSTALL_IN_PROGRESS"], grpc.StatusCode.OK)
        first.cancel()


async def test_room_is_asked_of_every_supervisor_that_is_concerned(tmp_path: Path, package: Package) -> None:
    async with a_switch(tmp_path, None, supervisors=2, layout="whole") as switch:
        first, second = switch.device["supervisors"]
        switch.set(supervisors=[first, {**second, "flashFree": 10}])
        assert (await talk(switch, ask(size=package.size)))[0] == ["TOO_LARGE"]
        assert (await talk(switch, ask("17.18.04", standby=True)))[0] == ["NOT_SUPPORTED_ON_BACKUP"]
    async with a_switch(tmp_path, None, supervisors=2, layout="individual") as switch:
        switch.set(supervisors=[first, {**second, "flashFree": 10}])
        assert (await talk(switch, ask(size=package.size), "wait", *pieces(package), END))[0][-1] == f"validated {NEW}"
        # Copied from the other supervisor before a transfer is thought of.
        copied, _ = await talk(switch, ask(standby=True, size=package.size))
        assert copied == ["sync_progress"] * 3 + [f"validated {NEW}"]


async def activated(switch: Switch, **members: Any) -> str:
    async with channel(switch) as connection:
        answer = await os_pb2_grpc.OSStub(connection).Activate(os_pb2.ActivateRequest(**members))
    kind = answer.WhichOneof("response")
    return kind if kind == "activate_ok" else os_pb2.ActivateError.Type.Name(answer.activate_error.type)


async def test_what_can_be_activated(tmp_path: Path) -> None:
    async with a_switch(tmp_path, None) as switch:
        assert await activated(switch, version="") == "NON_EXISTENT_VERSION"
        assert await activated(switch, version=NEW) == "NON_EXISTENT_VERSION"
        assert await activated(switch, version=OLD, standby_supervisor=True) == "NOT_SUPPORTED_ON_BACKUP"
        # What runs is fine, and nothing happens.
        assert await activated(switch, version=OLD) == "activate_ok"
        assert switch.device["downUntil"] == 0


async def test_a_changing_call_that_comes_twice_is_held_against_the_caller(tmp_path: Path) -> None:
    async def twice() -> None:
        async with a_switch(tmp_path, None) as switch:
            for _ in range(2):
                await activated(switch, version=OLD)

    with pytest.raises(AssertionError, match="sent twice"):
        await twice()


async def test_only_a_cold_reboot_is_possible_and_one_at_a_time(tmp_path: Path) -> None:
    async def code(stub: Any, request: Any) -> grpc.StatusCode:
        try:
            await stub.Reboot(request)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    async with a_switch(tmp_path, None) as switch, channel(switch) as connection:
        stub = system_pb2_grpc.SystemStub(connection)
        hour = 3600 * 10**9
        for method in (system_pb2.UNKNOWN, system_pb2.WARM, system_pb2.HALT):
            assert await code(stub, system_pb2.RebootRequest(method=method)) is grpc.StatusCode.INVALID_ARGUMENT
        assert await code(stub, system_pb2.RebootRequest(method=system_pb2.COLD, delay=hour)) is grpc.StatusCode.OK
        again = system_pb2.RebootRequest(method=system_pb2.COLD)
        assert await code(stub, again) is grpc.StatusCode.FAILED_PRECONDITION
        await stub.CancelReboot(system_pb2.CancelRebootRequest())
        assert await code(stub, again) is grpc.StatusCode.OK
        async with asyncio.timeout(30):
            while not switch.device["bootTime"]:
                await asyncio.sleep(0.02)
        assert switch.device["running"] == OLD


def test_a_process_keeps_its_state_and_takes_orders(tmp_path: Path, pki: GnoiPki) -> None:
    with start_switch(tmp_path, serial="FOC2401L0BB", pki=pki) as switch:
        switch.set(failMessage="kept", gnoi={"rebootS": 0.01})
        switch.fault("delay", on="Verify", seconds=1)
        assert [fault["on"] for fault in switch.state()["faults"]] == ["Verify"]
        switch.clear_faults()
        switch.order("reboot")
        deadline = time.monotonic() + 30
        while not switch.state()["bootTime"]:
            assert time.monotonic() < deadline
        switch.stop()
        switch.start()
        state = switch.state()
        assert (state["failMessage"], state["faults"], state["running"]) == ("kept", [], OLD)

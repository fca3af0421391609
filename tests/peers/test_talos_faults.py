"""What goes wrong between a worker and a machine is told for what it is, and nothing is done twice (cni-switch.md, 14.3, 14.4 and 17)."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import pytest
from google.protobuf import duration_pb2, empty_pb2

from gitops_ctl.netpb.cosi import state_pb2
from gitops_ctl.netpb.talos.machine import machine_pb2
from gitops_ctl.talos import client as client_module
from gitops_ctl.talos.errors import AnswerUnusable, ApplyUnknown, MachineUnreachable, NotAuthorised
from gitops_ctl.talos.machineconfig import config_hash, edited
from tests.support.processes import processes_of, until
from tests.support.talos_bench import (
    IMAGE,
    MachineBench,
    control_plane_machine,
    one_control_plane,
    one_worker,
    worker_machine,
)
from tests.support.talos_configs import machine_config
from tests.support.talos_peer import ROOT

pytestmark = pytest.mark.peers
__all__ = ["control_plane_machine", "one_control_plane", "one_worker", "worker_machine"]

BASE = machine_config(form="document", image=IMAGE)
WANTED = edited(BASE, mode="replaced", contract="v1.14", role="controlplane")
T = TypeVar("T")
APPLY = "/machine.MachineService/ApplyConfiguration"
GET = "/cosi.resource.State/Get"


async def applied(bench: MachineBench, **members: object) -> machine_pb2.ApplyConfiguration:
    """One apply without the client."""
    request = machine_pb2.ApplyConfigurationRequest(data=WANTED, mode="NO_REBOOT")
    for name, value in members.items():
        if name == "try_mode_timeout":
            request.try_mode_timeout.CopyFrom(value)  # type: ignore[arg-type]
        else:
            setattr(request, name, value)
    reply = await bench.raw(APPLY, request, machine_pb2.ApplyConfigurationResponse)
    (only,) = reply.messages
    return only


async def once_reachable(ask: Callable[[], Awaitable[T]]) -> T:
    """What the machine answers when it can be reached: a call that comes right after a lost connection may still go into that one."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await ask()
            except MachineUnreachable:
                await asyncio.sleep(0.1)


class TestLostReplies:
    async def test_applied_but_the_reply_is_lost_is_unknown_and_reading_back_tells(
        self, control_plane_machine: MachineBench
    ):
        machine = control_plane_machine.machine
        machine.fault("drop-after", method="ApplyConfiguration")
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyUnknown, match="it may have been carried out"):
                await client.apply_configuration(WANTED, dry_run=False)
            assert await once_reachable(lambda: client.machine_config("v1alpha1")) == WANTED
        assert len(machine.applies) == 1

    async def test_never_applied_and_the_reply_is_lost_is_unknown_too(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.fault("drop-before", method="ApplyConfiguration")
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyUnknown):
                await client.apply_configuration(WANTED, dry_run=False)
            assert await once_reachable(lambda: client.machine_config("v1alpha1")) == BASE
        assert control_plane_machine.machine.applies == []

    async def test_an_apply_that_takes_too_long_is_unknown(self, control_plane_machine: MachineBench, monkeypatch):
        monkeypatch.setattr(client_module, "APPLY_S", 0.3)
        control_plane_machine.machine.fault("delay", method="ApplyConfiguration", seconds=5)
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyUnknown, match="DEADLINE_EXCEEDED"):
                await client.apply_configuration(WANTED, dry_run=False)

    @pytest.mark.parametrize("kind", ["drop-before", "drop-after"])
    async def test_a_lost_dry_run_changed_nothing_and_is_no_unknown_apply(
        self, control_plane_machine: MachineBench, kind
    ):
        control_plane_machine.machine.fault(kind, method="ApplyConfiguration")
        async with control_plane_machine.client() as client:
            with pytest.raises(MachineUnreachable):
                await client.apply_configuration(WANTED, dry_run=True)
        assert control_plane_machine.machine.applies == []

    async def test_no_call_is_tried_again_by_itself(self, control_plane_machine: MachineBench):
        machine = control_plane_machine.machine
        machine.fault("error", method="ApplyConfiguration", code="UNAVAILABLE")
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyUnknown):
                await client.apply_configuration(WANTED, dry_run=False)
        assert machine.state()["calls"]["ApplyConfiguration"] == 1

    async def test_a_machine_that_loses_power_in_the_middle_boots_with_what_was_saved(
        self, control_plane_machine: MachineBench
    ):
        machine = control_plane_machine.machine
        machine.fault("drop-after", method="ApplyConfiguration")
        async with control_plane_machine.client() as client:
            with pytest.raises(ApplyUnknown):
                await client.apply_configuration(WANTED, dry_run=False)
        machine.kill()
        async with control_plane_machine.client() as client:
            with pytest.raises(MachineUnreachable):
                await client.version()
        machine.start()
        async with control_plane_machine.client() as client:
            assert await client.machine_config("v1alpha1") == await client.machine_config("persistent") == WANTED


class TestDown:
    async def test_a_machine_that_is_down_is_unreachable(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.listen(False)
        async with control_plane_machine.client() as client:
            with pytest.raises(MachineUnreachable, match="refused"):
                await client.version()

    async def test_the_same_client_goes_on_when_it_is_back(self, control_plane_machine: MachineBench):
        machine = control_plane_machine.machine
        async with control_plane_machine.client() as client:
            assert await client.version()
            machine.listen(False)
            with pytest.raises(MachineUnreachable):
                await client.version()
            machine.listen(True)
            assert await once_reachable(client.version) == "v1.14.0"

    async def test_a_machine_that_says_that_it_is_not_available_is_unreachable_for_a_while(
        self, control_plane_machine: MachineBench
    ):
        control_plane_machine.machine.fault("unavailable", seconds=1.0)
        async with control_plane_machine.client() as client:
            with pytest.raises(MachineUnreachable):
                await client.version()
            assert await once_reachable(client.nodename) == "north-cp-1"

    async def test_an_answer_that_does_not_come_ends_with_a_deadline(
        self, control_plane_machine: MachineBench, monkeypatch
    ):
        monkeypatch.setattr(client_module, "READ_S", 0.3)
        control_plane_machine.machine.fault("delay", method="Get", seconds=5)
        async with control_plane_machine.client() as client:
            with pytest.raises(MachineUnreachable, match="no answer in time"):
                await client.nodename()

    async def test_a_reboot_is_seen(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client() as client:
            before = await client.boot_id()
        control_plane_machine.machine.reboot()
        async with control_plane_machine.client() as client:
            assert await client.boot_id() != before

    async def test_another_error_of_the_machine_is_told(self, control_plane_machine: MachineBench):
        control_plane_machine.machine.fault("error", method="Version", code="INTERNAL", message="out of luck")
        async with control_plane_machine.client() as client:
            with pytest.raises(AnswerUnusable, match="INTERNAL: out of luck"):
                await client.version()


class TestOrderOfAnApply:
    async def test_a_try_is_undone_after_its_time_and_was_never_saved(self, control_plane_machine: MachineBench):
        machine = control_plane_machine.machine
        answer = await applied(control_plane_machine, mode="TRY", try_mode_timeout=duration_pb2.Duration(seconds=1))
        assert "automatically reverted back" in answer.mode_details
        state = machine.state()
        assert (state["active"], state["persistent"], state["trying"]) == (config_hash(WANTED), config_hash(BASE), True)
        async with asyncio.timeout(20):
            while machine.state()["active"] != config_hash(BASE):
                await asyncio.sleep(0.1)

    @pytest.mark.parametrize("what", ["dry run", "refused"])
    async def test_any_other_apply_ends_a_try_even_one_that_does_nothing(
        self, control_plane_machine: MachineBench, what
    ):
        bench = control_plane_machine
        await applied(bench, mode="TRY")
        if what == "dry run":
            await applied(bench, dry_run=True)
        else:
            with pytest.raises(grpc.aio.AioRpcError):
                await applied(bench, data=b"kind: HostnameConfig\n")
        state = bench.machine.state()
        assert (state["trying"], state["active"], state["persistent"]) == (
            False,
            config_hash(WANTED),
            config_hash(BASE),
        )

    async def test_a_try_is_gone_after_a_reboot_and_a_staged_configuration_takes_effect(
        self, control_plane_machine: MachineBench
    ):
        bench = control_plane_machine
        await applied(bench, mode="TRY")
        bench.machine.reboot()
        assert bench.machine.state()["active"] == config_hash(BASE)
        await applied(bench, mode="STAGED")
        assert bench.machine.state()["active"] == config_hash(BASE)
        bench.machine.reboot()
        assert bench.machine.state()["active"] == config_hash(WANTED)

    async def test_the_forgotten_mode_is_refused_and_auto_becomes_no_reboot(self, control_plane_machine: MachineBench):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await applied(control_plane_machine, mode="REBOOT")
        assert (caught.value.code(), "REBOOT mode is not supported" in caught.value.details()) == (
            grpc.StatusCode.UNIMPLEMENTED,
            True,
        )
        answer = await applied(control_plane_machine, mode="AUTO")
        assert machine_pb2.ApplyConfigurationRequest.Mode.Name(answer.mode) == "NO_REBOOT"


class TestRights:
    @pytest.mark.parametrize("role", ["os:reader", "os:operator"])
    async def test_a_smaller_role_reads_and_does_not_change(self, control_plane_machine: MachineBench, role):
        talosconfig = control_plane_machine.pki.talosconfig(roles=(role,))
        async with control_plane_machine.client(talosconfig) as client:
            assert (await client.identity()).nodename == "north-cp-1"
            for forbidden in (
                client.machine_config("v1alpha1"),
                client.apply_configuration(WANTED, dry_run=False),
                client.kubeconfig(),
            ):
                with pytest.raises(NotAuthorised, match="not authorized"):
                    await forbidden
        assert control_plane_machine.machine.applies == []

    async def test_a_certificate_without_a_role_may_nothing(self, control_plane_machine: MachineBench):
        async with control_plane_machine.client(control_plane_machine.pki.talosconfig(roles=("people",))) as client:
            with pytest.raises(NotAuthorised):
                await client.version()

    @pytest.mark.parametrize(
        ("metadata", "code", "text"),
        [
            ((("node", "192.0.2.1"), ("node", "192.0.2.2")), grpc.StatusCode.INVALID_ARGUMENT, "single-valued"),
            ((("node", "192.0.2.1"),), grpc.StatusCode.PERMISSION_DENIED, "no request forwarding"),
        ],
    )
    async def test_calls_for_other_machines_are_not_carried_on(
        self, control_plane_machine: MachineBench, metadata, code, text
    ):
        with pytest.raises(grpc.aio.AioRpcError, match=text) as caught:
            await control_plane_machine.raw(
                "/machine.MachineService/Version", empty_pb2.Empty(), machine_pb2.VersionResponse, metadata=metadata
            )
        assert caught.value.code() is code

    @pytest.mark.parametrize(
        ("namespace", "kind", "name", "code", "text"),
        [
            ("nowhere", "Nodenames.kubernetes.talos.dev", "nodename", grpc.StatusCode.PERMISSION_DENIED, "namespace"),
            ("k8s", "Unknown.kubernetes.talos.dev", "x", grpc.StatusCode.PERMISSION_DENIED, "resource type"),
            ("k8s", "Nodenames.kubernetes.talos.dev", "other", grpc.StatusCode.NOT_FOUND, "doesn't exist"),
        ],
    )
    async def test_resources_that_are_not_there_are_refused_as_talos_does(
        self, control_plane_machine: MachineBench, namespace, kind, name, code, text
    ):
        request = state_pb2.GetRequest(namespace=namespace, type=kind, id=name)
        with pytest.raises(grpc.aio.AioRpcError, match=text) as caught:
            await control_plane_machine.raw(GET, request, state_pb2.GetResponse)
        assert caught.value.code() is code

    async def test_nobody_writes_resources(self, control_plane_machine: MachineBench):
        with pytest.raises(grpc.aio.AioRpcError, match="write access is not allowed"):
            await control_plane_machine.raw(
                "/cosi.resource.State/Destroy", state_pb2.DestroyRequest(), state_pb2.DestroyResponse
            )


def test_a_machine_ends_when_whoever_started_it_is_gone(tmp_path):
    owner = (
        "import sys; from pathlib import Path; from tests.support.talos_peer import start_machine\n"
        "from tests.support.talos_pki import TalosPki; from tests.support.talos_configs import machine_config\n"
        "folder = Path(sys.argv[1]); pki = TalosPki(folder)\n"
        "start_machine(folder, name='lonely', role='worker', pki=pki, config=machine_config('worker')).start()\n"
        "import os; os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", owner, str(tmp_path)], cwd=ROOT, check=True, timeout=60)
    until(lambda: processes_of(str(tmp_path / "lonely.json")) == [], what="the machine to end")

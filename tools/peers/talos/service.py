"""The machine service: version, health, applying a configuration, and the kubeconfig."""

import difflib
import gzip
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from gitops_ctl.netpb.talos.common import common_pb2
from gitops_ctl.netpb.talos.machine import machine_pb2, machine_pb2_grpc
from tools.peers.talos.config import Config, InvalidError, ParseError
from tools.peers.talos.faults import Faults
from tools.peers.talos.front import Front
from tools.peers.talos.machine import Machine
from tools.peers.talos.rights import authorise

_Modes = machine_pb2.ApplyConfigurationRequest.Mode
_APPLIED = "Applied configuration without a reboot"
_STAGED = "Staged configuration to be applied after the next reboot"


class MachineService(machine_pb2_grpc.MachineServiceServicer):
    """Answers for one machine; `calls` counts what was asked."""

    def __init__(self, machine: Machine, *, front: Front, faults: Faults, kubeconfig: Path | None) -> None:
        self._machine = machine
        self._front = front
        self._faults = faults
        self._kubeconfig = kubeconfig
        self.calls: dict[str, int] = {}

    async def Version(self, request: Any, context: grpc.aio.ServicerContext) -> machine_pb2.VersionResponse:
        await self._begin("Version", context)
        version = machine_pb2.VersionInfo(tag=self._machine.state.version, os="linux", arch="amd64")
        features = machine_pb2.FeaturesInfo(rbac=True)
        return machine_pb2.VersionResponse(messages=[machine_pb2.Version(version=version, features=features)])

    async def Hostname(self, request: Any, context: grpc.aio.ServicerContext) -> machine_pb2.HostnameResponse:
        await self._begin("Hostname", context)
        return machine_pb2.HostnameResponse(messages=[machine_pb2.Hostname(hostname=self._machine.state.nodename)])

    async def ServiceList(self, request: Any, context: grpc.aio.ServicerContext) -> machine_pb2.ServiceListResponse:
        await self._begin("ServiceList", context)
        services = [
            machine_pb2.ServiceInfo(id=name, state="Running", health=machine_pb2.ServiceHealth(healthy=service.healthy))
            for name, service in self._machine.services().items()
        ]
        return machine_pb2.ServiceListResponse(messages=[machine_pb2.ServiceList(services=services)])

    async def ApplyConfiguration(
        self, request: machine_pb2.ApplyConfigurationRequest, context: grpc.aio.ServicerContext
    ) -> machine_pb2.ApplyConfigurationResponse:
        await authorise(self._front, "ApplyConfiguration", context)
        self._count("ApplyConfiguration")
        machine = self._machine
        if machine.applying:
            text = "another apply configuration is already in progress"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        machine.applying = True
        try:
            await self._faults.before("ApplyConfiguration", context)
            answer = await self._apply(request, context)
            await self._faults.after("ApplyConfiguration")
            return answer
        finally:
            machine.applying = False

    async def Kubeconfig(self, request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[common_pb2.Data]:
        await self._begin("Kubeconfig", context)
        if self._machine.machine_type == "unknown":
            text = "machine type is not set, cannot use kubeconfig API"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        if self._machine.machine_type == "worker":
            text = "kubeconfig is only available on control plane nodes"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        if self._kubeconfig is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no API server CA in the configuration")
            return
        archive = unclosed_archive(self._kubeconfig.read_bytes())
        for start in range(0, len(archive), 1000):
            yield common_pb2.Data(bytes=archive[start : start + 1000])

    async def _apply(
        self, request: machine_pb2.ApplyConfigurationRequest, context: grpc.aio.ServicerContext
    ) -> machine_pb2.ApplyConfigurationResponse:
        # whole: the order of the server, step by step
        machine, mode = self._machine, request.mode
        if mode != _Modes.Value("TRY"):
            machine.cancel_rollback()
        try:
            config = Config(request.data)
        except ParseError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise
        if config.legacy is None:
            text = (
                "the applied machine configuration doesn't contain v1alpha1 config,"
                " did you mean to patch the machine config instead?"
            )
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        if mode == _Modes.Value("REBOOT"):
            text = "the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        try:
            warnings = config.validate(machine.machine_type)
        except InvalidError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise
        if mode == _Modes.Value("AUTO"):
            mode = _Modes.Value("NO_REBOOT")
        details = _STAGED if mode == _Modes.Value("STAGED") else _APPLIED
        if request.dry_run:
            said = f"Dry run summary:\n{details} (skipped in dry-run).\n{_difference(machine.active.text, config.text)}"
            answer = machine_pb2.ApplyConfiguration(mode=mode, mode_details=said)
            return machine_pb2.ApplyConfigurationResponse(messages=[answer])
        seconds = request.try_mode_timeout.ToSeconds() if request.HasField("try_mode_timeout") else 60
        if mode == _Modes.Value("TRY"):
            details += f"\nThe config is applied in 'try' mode and will be automatically reverted back in {seconds}s"
        machine.take(config, mode=_Modes.Name(mode), try_s=seconds)
        answer = machine_pb2.ApplyConfiguration(mode=mode, mode_details=details, warnings=warnings)
        return machine_pb2.ApplyConfigurationResponse(messages=[answer])

    async def _begin(self, method: str, context: grpc.aio.ServicerContext) -> None:
        await authorise(self._front, method, context)
        self._count(method)
        await self._faults.before(method, context)
        await self._faults.after(method)

    def _count(self, method: str) -> None:
        self.calls[method] = self.calls.get(method, 0) + 1


def unclosed_archive(kubeconfig: bytes) -> bytes:
    """The archive as Talos sends it: without padding and end marks."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo("kubeconfig")
        member.size, member.mode = len(kubeconfig), 0o600
        tar.addfile(member, io.BytesIO(kubeconfig))
    return gzip.compress(packed.getvalue()[: tarfile.BLOCKSIZE + len(kubeconfig)])


def _difference(before: bytes, after: bytes) -> str:
    lines = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), lineterm="")
    text = "\n".join(lines)
    return f"Config diff:\n\n{text}" if text else "No changes."

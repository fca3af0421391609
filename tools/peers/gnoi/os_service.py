"""The service gnoi.os.OS, strict to its text; what the text leaves open is answered with INVALID_ARGUMENT and changes nothing."""

import asyncio
import time
from typing import Any

import grpc

from gitops_ctl.netpb.gnoi.os import os_pb2, os_pb2_grpc
from tools.peers.gnoi import switch
from tools.peers.gnoi.faults import Faults
from tools.peers.gnoi.guard import Guard
from tools.peers.gnoi.package import PackageError, Received
from tools.peers.gnoi.switch import RefusedError
from tools.peers.iosxe.state import DeviceFile

_STANDBY = {"absent": os_pb2.StandbyState.NON_EXISTENT, "unavailable": os_pb2.StandbyState.UNAVAILABLE}


class OsService(os_pb2_grpc.OSServicer):
    """Answers for one switch."""

    def __init__(self, file: DeviceFile, *, faults: Faults, guard: Guard) -> None:
        self._file = file
        self._faults = faults
        self._guard = guard

    async def Verify(self, request: Any, context: Any) -> os_pb2.VerifyResponse:
        await self._guard.enter("Verify", context)
        await self._faults.at("Verify", context)
        device = self._file.read()
        gnoi = device["gnoi"]
        return os_pb2.VerifyResponse(
            version=device["running"],
            activation_fail_message=device["failMessage"],
            verify_standby=_verified_standby(device),
            individual_supervisor_install=gnoi["layout"] == "individual",
        )

    async def Activate(self, request: os_pb2.ActivateRequest, context: Any) -> os_pb2.ActivateResponse:
        await self._guard.enter("Activate", context)
        self._guard.replies(context)
        version, standby, no_reboot = request.version, request.standby_supervisor, request.no_reboot
        arguments = {"version": version, "standby": standby, "noReboot": no_reboot}
        with self._file.change() as device:
            switch.record(device, "Activate", arguments, now=time.time())
        await self._faults.at("Activate", context)
        try:
            with self._file.change() as device:
                switch.require_activatable(device, version, standby=standby)
                switch.activate(device, version, standby=standby, no_reboot=no_reboot, now=time.time())
        except RefusedError as refused:
            error = os_pb2.ActivateError(type=os_pb2.ActivateError.Type.Value(refused.kind), detail=refused.detail)
            return os_pb2.ActivateResponse(activate_error=error)
        await self._faults.at("Activate:done", context)
        return os_pb2.ActivateResponse(activate_ok=os_pb2.ActivateOK())

    async def Install(self, _: Any, context: Any) -> None:
        await self._guard.enter("Install", context)
        await self._faults.at("Install", context)
        first = await context.read()
        if first is grpc.aio.EOF or first.WhichOneof("request") != "transfer_request":
            await _invalid(context, self._file, "the first message is no transfer_request")
        await _Install(first.transfer_request, context, file=self._file, faults=self._faults).run()


class _Install:
    """One stream after its first message."""

    def __init__(self, request: os_pb2.TransferRequest, context: Any, *, file: DeviceFile, faults: Faults) -> None:
        self._request = request
        self._context = context
        self._file = file
        self._faults = faults
        self._received = Received()
        self._owns_operation = False

    async def run(self) -> None:
        request = self._request
        arguments = {"version": request.version, "standby": request.standby_supervisor, "size": request.package_size}
        with self._file.change() as device:
            switch.record(device, "Install", arguments, now=time.time())
        try:
            if not await self._ordered("Install:asked"):
                await self._go_on()
        except RefusedError as refused:
            await self._refuse(refused.kind, refused.detail)
            if refused.kind == "INSTALL_IN_PROGRESS" and self._file.read()["gnoi"]["quirks"]:
                await self._context.abort(grpc.StatusCode.UNKNOWN, "install in progress")
        finally:
            if self._owns_operation:
                with self._file.change() as device:
                    device["operation"] = None

    async def _go_on(self) -> None:
        request = self._request
        with self._file.change() as device:
            way = switch.require_installable(
                device, request.version, standby=request.standby_supervisor, size=request.package_size
            )
            if way in ("ready", "sync"):
                device["operation"] = {"kind": "add", "by": "gnoi", "startedAt": time.time()}
                self._owns_operation = True
        if way == "sync":
            await self._sync()
        elif way == "ready":
            await self._transfer()
        else:
            await self._answer(validated=os_pb2.Validated(version=way))

    async def _sync(self) -> None:
        """The other supervisor has it; the client sends nothing."""
        for percent in (0, 50, 100):
            await self._answer(sync_progress=os_pb2.SyncProgress(percentage_transferred=percent))
        standby = self._request.standby_supervisor
        version = switch.named(switch.installed(self._file.read(), standby=not standby), self._request.version)
        await self._finish(version, failing=False, size=0)

    async def _transfer(self) -> None:
        reading = asyncio.ensure_future(self._context.read())
        # A client that does not wait for `transfer_ready` shows meanwhile.
        await asyncio.wait({reading}, timeout=self._file.read()["gnoi"]["readyAfterS"])
        if reading.done():
            await _invalid(self._context, self._file, "content came before transfer_ready")
        await self._answer(transfer_ready=os_pb2.TransferReady())
        if not await self._receive(reading):
            return
        if await self._ordered("Install:end"):
            return
        device = self._file.read()
        try:
            members = self._received.judged(device["platform"])
        except PackageError as error:
            raise RefusedError(error.kind, str(error)) from None
        if not self._request.version and members["version"] == device["running"]:
            raise RefusedError("INSTALL_RUN_PACKAGE", "this package runs")
        await self._finish(members["version"], failing=bool(members.get("fail_activation")), size=self._received.size)

    async def _receive(self, reading: "asyncio.Future[Any]") -> bool:
        """Take the content until its end; False: an ordered fault ended the stream."""
        fault = self._faults.take("Install:content")
        each = self._file.read()["gnoi"]["progressBytes"]
        told = 0
        while True:
            message = await reading
            kind = None if message is grpc.aio.EOF else message.WhichOneof("request")
            if kind == "transfer_end":
                return True
            if kind != "transfer_content":
                await _invalid(self._context, self._file, f"{kind or 'the end of the stream'} came before transfer_end")
            self._received.feed(message.transfer_content)
            if fault is not None and self._received.size >= fault.get("at", 0):
                taken, fault = fault, None
                if await self._content_fault(taken):
                    return False
            if self._received.size - told >= each:
                told = self._received.size
                await self._answer(transfer_progress=os_pb2.TransferProgress(bytes_received=told))
            reading = asyncio.ensure_future(self._context.read())

    async def _content_fault(self, fault: dict[str, Any]) -> bool:
        """Whether it ended the stream."""
        if fault["kind"] == "stall":
            await asyncio.sleep(fault["seconds"])
            return False
        if fault["kind"] == "progress":
            size = self._received.size
            for bytes_received in (size, size if fault["mode"] == "duplicate" else size // 2, 2**60):
                await self._answer(transfer_progress=os_pb2.TransferProgress(bytes_received=bytes_received))
            return False
        if fault["kind"] == "drop":
            await self._faults.drop()
        return await self._carry_out(fault)

    async def _finish(self, version: str, *, failing: bool, size: int) -> None:
        standby = self._request.standby_supervisor
        with self._file.change() as device:
            switch.store(device, version, standby=standby, size=size, failing=failing, now=time.time())
            device["operation"] = None
        if not await self._ordered("Install:stored"):
            await self._answer(validated=os_pb2.Validated(version=version, description="checked"))

    async def _ordered(self, place: str) -> bool:
        """Whether a fault for this place ended the stream."""
        fault = await self._faults.at(place, self._context)
        return fault is not None and await self._carry_out(fault)

    async def _carry_out(self, fault: dict[str, Any]) -> bool:
        match fault["kind"]:
            case "answer":
                await self._refuse(fault["type"], fault.get("detail", ""))
                if "code" in fault:
                    await self._context.abort(grpc.StatusCode[fault["code"]], "and an error on top")
            case "validated":
                await self._answer(validated=os_pb2.Validated(version=fault["version"]))
            case "silent-end":
                pass
            case "store":
                standby = self._request.standby_supervisor
                with self._file.change() as device:
                    switch.store(device, fault["version"], standby=standby, size=0, failing=False, now=time.time())
                await self._faults.drop()
            case unknown:
                raise ValueError(f"no fault is called {unknown}")
        return True

    async def _refuse(self, kind: str, detail: str) -> None:
        error = os_pb2.InstallError(type=os_pb2.InstallError.Type.Value(kind), detail=detail)
        await self._answer(install_error=error)

    async def _answer(self, **members: Any) -> None:
        await self._context.write(os_pb2.InstallResponse(**members))


async def _invalid(context: Any, file: DeviceFile, message: str) -> None:
    """End a stream whose order is wrong."""
    if file.read()["gnoi"]["quirks"]:
        await context.abort(grpc.StatusCode.UNKNOWN, "EOF")
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def _verified_standby(device: dict[str, Any]) -> os_pb2.VerifyStandby:
    gnoi = device["gnoi"]
    if gnoi["layout"] == "single":
        return os_pb2.VerifyStandby(standby_state=os_pb2.StandbyState(state=os_pb2.StandbyState.UNSUPPORTED))
    condition = "unavailable" if gnoi["standbyReboot"] is not None else gnoi["standby"]
    if condition != "ready":
        return os_pb2.VerifyStandby(standby_state=os_pb2.StandbyState(state=_STANDBY[condition]))
    standby = device["supervisors"][1]
    response = os_pb2.StandbyResponse(id=standby["slot"], version=standby["running"])
    return os_pb2.VerifyStandby(verify_response=response)

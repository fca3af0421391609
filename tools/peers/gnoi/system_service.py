"""The service gnoi.system.System as far as an upgrade meets it: Time, Reboot, RebootStatus and CancelReboot."""

import time
from typing import Any

import grpc

from gitops_ctl.netpb.gnoi.system import system_pb2, system_pb2_grpc
from tools.peers.gnoi import switch
from tools.peers.gnoi.faults import Faults
from tools.peers.gnoi.guard import Guard
from tools.peers.iosxe.state import DeviceFile


class SystemService(system_pb2_grpc.SystemServicer):
    """Answers for one switch; what is not here is UNIMPLEMENTED."""

    def __init__(self, file: DeviceFile, *, faults: Faults, guard: Guard) -> None:
        self._file = file
        self._faults = faults
        self._guard = guard

    async def Time(self, request: Any, context: Any) -> system_pb2.TimeResponse:
        await self._enter("Time", context)
        offset = self._file.read()["gnoi"]["clockOffsetS"]
        return system_pb2.TimeResponse(time=int((time.time() + offset) * 1e9))

    async def Reboot(self, request: system_pb2.RebootRequest, context: Any) -> system_pb2.RebootResponse:
        await self._enter("Reboot", context)
        if request.method != system_pb2.COLD or request.subcomponents:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "only COLD of the whole system is possible")
        now = time.time()
        with self._file.change() as device:
            gnoi = device["gnoi"]
            is_pending = gnoi["pendingReboot"] is not None or gnoi["reboot"] is not None
            if not is_pending:
                switch.record(device, "Reboot", {"delay": request.delay}, now=now)
                at = now + request.delay / 1e9
                gnoi["pendingReboot"] = {"at": at, "reason": request.message, "acceptedAt": now}
        if is_pending:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "a reboot is pending")
        await self._faults.at("Reboot:done", context)
        return system_pb2.RebootResponse()

    async def RebootStatus(
        self, request: system_pb2.RebootStatusRequest, context: Any
    ) -> system_pb2.RebootStatusResponse:
        await self._enter("RebootStatus", context)
        gnoi, now = self._file.read()["gnoi"], time.time()
        pending = gnoi["pendingReboot"]
        if pending is None or now < pending["acceptedAt"] + gnoi["inactiveS"]:
            status = system_pb2.RebootStatus(status=system_pb2.RebootStatus.STATUS_SUCCESS)
            return system_pb2.RebootStatusResponse(active=False, status=status)
        wait = max(0, int((pending["at"] - now) * 1e9))
        return system_pb2.RebootStatusResponse(
            active=True,
            wait=wait,
            when=int(pending["at"] * 1e9),
            reason=pending["reason"],
            count=1,
            method=system_pb2.COLD,
        )

    async def CancelReboot(
        self, request: system_pb2.CancelRebootRequest, context: Any
    ) -> system_pb2.CancelRebootResponse:
        await self._enter("CancelReboot", context)
        with self._file.change() as device:
            switch.record(device, "CancelReboot", {"message": request.message}, now=time.time())
            device["gnoi"]["pendingReboot"] = None
        await self._faults.at("CancelReboot:done", context)
        return system_pb2.CancelRebootResponse()

    async def _enter(self, method: str, context: Any) -> None:
        await self._guard.enter(method, context)
        if self._file.read()["gnoi"]["quirks"]:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown service gnoi.system.System")
        await self._faults.at(method, context)

"""The service gnoi.system.System as lemming 0.7 answers it, a public target without the service OS (devices.md, section 16.2).

It departs from the text, and that is what it is for: method UNKNOWN is accepted, a reboot answers at once and breaks no connection, a delayed
one is pending for ever and never happens, cancelling answers OK also when nothing is pending, and nobody can ask whether one is pending.
"""

import time
from typing import Any

import grpc

from gitops_ctl.netpb.gnoi.system import system_pb2, system_pb2_grpc
from tools.peers.gnoi.faults import Faults
from tools.peers.gnoi.guard import Guard

_METHODS = (system_pb2.UNKNOWN, system_pb2.COLD)


class PublicTarget(system_pb2_grpc.SystemServicer):
    """What it knows goes with its process.

    Attributes:
        boot_time: of the last reboot; shown by another protocol only.
        calls: changing calls, the oldest first.
    """

    def __init__(self, *, faults: Faults, guard: Guard) -> None:
        self._faults, self._guard = faults, guard
        self.boot_time, self.is_pending = time.time(), False
        self.calls: list[str] = []

    async def Time(self, request: Any, context: Any) -> system_pb2.TimeResponse:
        await self._enter("Time", context)
        return system_pb2.TimeResponse(time=int(time.time() * 1e9))

    async def Reboot(self, request: system_pb2.RebootRequest, context: Any) -> system_pb2.RebootResponse:
        await self._enter("Reboot", context)
        self.calls.append("Reboot")
        if request.subcomponents:
            await context.abort(grpc.StatusCode.NOT_FOUND, "component is not found")
        if request.method not in _METHODS:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the method is not supported")
        if self.is_pending:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "reboot already pending")
        if request.delay:
            self.is_pending = True
        else:
            self.boot_time = time.time()
        await self._faults.at("Reboot:done", context)
        return system_pb2.RebootResponse()

    async def CancelReboot(self, request: Any, context: Any) -> system_pb2.CancelRebootResponse:
        await self._enter("CancelReboot", context)
        self.calls.append("CancelReboot")
        self.is_pending = False
        await self._faults.at("CancelReboot:done", context)
        return system_pb2.CancelRebootResponse()

    async def _enter(self, method: str, context: Any) -> None:
        await self._guard.enter(method, context)
        await self._faults.at(method, context)

"""One gNOI side, to run in a process of its own or inside of a test."""

import asyncio
import time
from pathlib import Path

import grpc

from gitops_ctl.netpb.gnoi.os import os_pb2_grpc
from gitops_ctl.netpb.gnoi.system import system_pb2_grpc
from tools.peers.gnoi import switch
from tools.peers.gnoi.faults import Faults
from tools.peers.gnoi.front import Front, Shown
from tools.peers.gnoi.guard import Guard
from tools.peers.gnoi.os_service import OsService
from tools.peers.gnoi.public_target import PublicTarget
from tools.peers.gnoi.system_service import SystemService
from tools.peers.iosxe.state import DeviceFile

_LOOK_S = 0.02


class GnoiSide:
    """`async with`.  The device file must be there, made by `new_device`; members of this side are added.

    Args:
        path: of the device file.
        shown: certificates.
        host: to listen on.
        port: to listen on.
        login: username and password that every call must carry.
        public: it answers as the public target, which has no service OS.
    """

    def __init__(
        self,
        path: Path,
        *,
        shown: Shown,
        host: str,
        port: int,
        login: tuple[str, str] | None = None,
        public: bool = False,
    ) -> None:
        self.file = DeviceFile(path)
        self.guard = Guard(self.file, login=login)
        self._faults = Faults(self.file, self.guard)
        self._server = grpc.aio.server()
        inner = self._server.add_insecure_port("127.0.0.1:0")
        self.front = self._faults.front = Front(shown, inner_port=inner, host=host, port=port)
        self.public = PublicTarget(faults=self._faults, guard=self.guard) if public else None
        self._is_offered = True
        self._turn = asyncio.Lock()
        self._living: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "GnoiSide":
        with self.file.change() as device:
            device.update(switch.prepared(device))
        members = {"faults": self._faults, "guard": self.guard}
        if self.public is not None:
            system_pb2_grpc.add_SystemServicer_to_server(self.public, self._server)
        else:
            os_pb2_grpc.add_OSServicer_to_server(OsService(self.file, **members), self._server)
            system_pb2_grpc.add_SystemServicer_to_server(SystemService(self.file, **members), self._server)
        await self._server.start()
        await self.front.listen(True)
        self._living = asyncio.create_task(self._live())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._living is not None
        self._living.cancel()
        (ended,) = await asyncio.gather(self._living, return_exceptions=True)
        await self.front.listen(False)
        await self._server.stop(grace=None)
        if isinstance(ended, Exception):
            raise ended

    async def offer(self, on: bool) -> None:
        """False: connections are refused, although the switch is up."""
        self._is_offered = on
        await self._follow()

    async def show(self, shown: Shown) -> None:
        """Other certificates, from the next connection on."""
        async with self._turn:
            self.front.shown = shown
            await self.front.listen(False)
        await self._follow()

    async def _live(self) -> None:
        """Reboots begin and end, and connections are refused meanwhile."""
        seen, due, was_replying = 0, 0.0, False
        while True:
            changed, is_replying = self.file.path.stat().st_mtime_ns, self.guard.is_replying
            if changed != seen or time.time() >= due or is_replying or was_replying:
                seen, was_replying = changed, is_replying
                with self.file.change() as device:
                    switch.settle(device, time.time())
                due = switch.next_due(device)
                await self._follow()
            await asyncio.sleep(_LOOK_S)

    async def _follow(self) -> None:
        async with self._turn:
            is_up = self.file.read()["downUntil"] <= time.time() or self.guard.is_replying
            wanted = is_up and self._is_offered
            if wanted != self.front.is_listening:
                await self.front.listen(wanted)

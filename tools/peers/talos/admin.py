"""The other side of the machine: what the tests order, and what they look at.  Plain HTTP on the loopback address."""

import base64
from typing import Any

from aiohttp import web

from tools.peers.talos.config import Config
from tools.peers.talos.faults import Fault, Faults
from tools.peers.talos.front import Front
from tools.peers.talos.machine import Machine
from tools.peers.talos.service import MachineService
from tools.peers.talos.state import sha256


class Admin:
    """`GET /state`, `POST /faults`, `DELETE /faults`, `POST /staging`, `POST /machine`."""

    def __init__(self, machine: Machine, *, front: Front, faults: Faults, service: MachineService) -> None:
        self._machine = machine
        self._front = front
        self._faults = faults
        self._service = service

    def application(self) -> web.Application:
        found = web.Application()
        found.router.add_get("/state", self._state)
        found.router.add_post("/faults", self._fault)
        found.router.add_delete("/faults", self._clear)
        found.router.add_post("/staging", self._staging)
        found.router.add_post("/machine", self._order)
        return found

    async def _state(self, _: web.Request) -> web.Response:
        machine = self._machine
        tree: dict[str, Any] = {
            "nodename": machine.state.nodename,
            "type": machine.machine_type,
            "active": sha256(machine.active.text),
            "persistent": sha256(machine.state.persistent),
            "applies": machine.state.applies,
            "boots": machine.state.boots,
            "boot_id": machine.boot_id,
            "trying": machine.trying,
            "proxy_enabled": machine.active.proxy.enabled,
            "manifests_applied": list(machine.manifests_applied),
            "calls": self._service.calls,
        }
        return web.json_response(tree)

    async def _fault(self, request: web.Request) -> web.Response:
        self._faults.add(Fault(**await request.json()))
        return web.json_response({})

    async def _clear(self, _: web.Request) -> web.Response:
        self._faults.clear()
        return web.json_response({})

    async def _staging(self, request: web.Request) -> web.Response:
        """Members of `Staging`; `unhealthy_services` is a list."""
        for name, value in (await request.json()).items():
            current = getattr(self._machine.staging, name)
            setattr(self._machine.staging, name, set(value) if isinstance(current, set) else type(current)(value))
        self._machine.changed()
        return web.json_response({})

    async def _order(self, request: web.Request) -> web.Response:
        """`restart`, `reset`, `alpn` and `listen` (both with `on`), `configure` and `stage` (both with `config` in base64)."""
        tree = await request.json()
        match tree["order"]:
            case "restart":
                self._machine.boot()
                self._front.cut()
                self._machine.changed()
            case "alpn":
                await self._front.set_alpn(tree["on"])
            case "listen":
                await self._front.set_listening(tree["on"])
            case "reset":
                self._faults.clear()
                self._service.calls.clear()
                self._machine.reset(base64.b64decode(tree["config"]))
                await self._front.set_alpn(True)
                await self._front.set_listening(True)
            case "configure":
                self._machine.take(Config(base64.b64decode(tree["config"])), mode="NO_REBOOT")
            case "stage":
                self._machine.take(Config(base64.b64decode(tree["config"])), mode="STAGED")
            case unknown:
                raise web.HTTPBadRequest(text=f"no order is called {unknown}")
        return web.json_response({})

"""The other side of the switch: what the tests order, and what they look at.  Plain HTTP on the loopback address."""

import time
from pathlib import Path
from typing import Any

from aiohttp import web

from tools.peers.gnoi import switch
from tools.peers.gnoi.front import Shown
from tools.peers.gnoi.peer import GnoiSide


class Admin:
    """`GET /state`, `PATCH /device`, `POST /faults`, `DELETE /faults`, `POST /order`."""

    def __init__(self, side: GnoiSide) -> None:
        self._side = side

    def application(self) -> web.Application:
        found = web.Application()
        found.router.add_get("/state", self._state)
        found.router.add_patch("/device", self._device)
        found.router.add_post("/faults", self._fault)
        found.router.add_delete("/faults", self._clear)
        found.router.add_post("/order", self._order)
        return found

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response({**self._side.file.read(), "calls": self._side.guard.calls})

    async def _device(self, request: web.Request) -> web.Response:
        """Members of the device file; those of `gnoi` one by one."""
        members: dict[str, Any] = await request.json()
        with self._side.file.change() as device:
            device["gnoi"].update(members.pop("gnoi", {}))
            device.update(members)
        return web.json_response({})

    async def _fault(self, request: web.Request) -> web.Response:
        """One fault; `for` is this side when it is not named."""
        fault = {"for": "gnoi", **await request.json()}
        with self._side.file.change() as device:
            device["faults"].append(fault)
        return web.json_response({})

    async def _clear(self, _: web.Request) -> web.Response:
        with self._side.file.change() as device:
            device["faults"].clear()
        return web.json_response({})

    async def _order(self, request: web.Request) -> web.Response:
        """`offer` (`on`), `show` (`certificate`, `key`, `clients`, `alpn`), `cut`, `reboot`, `forget` (calls may come again)."""
        tree: dict[str, Any] = await request.json()
        order = tree.pop("order")
        match order:
            case "offer":
                await self._side.offer(tree["on"])
            case "show":
                files = {
                    name: Path(tree[name]) if tree.get(name) else None for name in ("certificate", "key", "clients")
                }
                await self._side.show(Shown(**files, alpn=tree.get("alpn", True)))
            case "cut":
                self._side.front.cut()
            case "reboot":
                with self._side.file.change() as device:
                    switch.reboot(device, now=time.time())
            case "forget":
                with self._side.file.change() as device:
                    device["gnoi"]["counted"] = []
            case _:
                raise web.HTTPBadRequest(text=f"no order is called {order}")
        return web.json_response({})

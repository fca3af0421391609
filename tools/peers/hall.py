"""`python -m tools.peers.hall FILE`: a hall of switches for the demo, their gNOI sides and an https server with images, in one process.

FILE is JSON: {"folder", "certificate", "key", "clients", "switches": [{"name", "serial", "port", "failing": [VERSION]}],
"images": [{"name", "version", "bytes"}], "imagePort"}.  Certificates are files.  When everything answers, `FILE.ready` says
what the images are: {NAME: {"sha256", "size"}}.  The NETCONF side of a switch is a program of sshd on the same device file.
"""

import asyncio
import json
import signal
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from tools.peers.gnoi.front import Shown
from tools.peers.gnoi.package import Package, write_package
from tools.peers.gnoi.peer import GnoiSide
from tools.peers.gnoi.switch import prepared
from tools.peers.iosxe.state import DeviceFile, new_device

_REBOOT_S = 2.0


async def serve(wanted: dict[str, Any], ready: Path) -> None:
    """Be the hall until SIGTERM; whoever starts it ties it to itself."""
    folder = Path(wanted["folder"])
    images = [_image(folder / "images", one) for one in wanted["images"]]
    shown = Shown(Path(wanted["certificate"]), Path(wanted["key"]), Path(wanted["clients"]))
    async with AsyncExitStack() as stack:
        for one in wanted["switches"]:
            state = folder / f"{one['name']}.json"
            device = prepared(new_device(one["serial"]), failing=one["failing"], rebootS=_REBOOT_S)
            DeviceFile(state).create(device)
            await stack.enter_async_context(GnoiSide(state, shown=shown, host="127.0.0.1", port=one["port"]))
        runner = web.AppRunner(_downloads(folder / "images"))
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(wanted["certificate"], wanted["key"])
        await web.TCPSite(runner, "127.0.0.1", wanted["imagePort"], ssl_context=context).start()
        _tell(ready, images)
        end = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end.set)
        await end.wait()


def _image(folder: Path, wanted: dict[str, Any]) -> Package:
    folder.mkdir(parents=True, exist_ok=True)
    return write_package(folder / wanted["name"], wanted["version"], filler=wanted["bytes"])


def _tell(ready: Path, images: list[Package]) -> None:
    ready.write_text(json.dumps({one.path.name: {"sha256": one.sha256, "size": one.size} for one in images}))


def _downloads(folder: Path) -> web.Application:
    application = web.Application()
    application.router.add_static("/", folder)
    return application


if __name__ == "__main__":
    asked = Path(sys.argv[1])
    asyncio.run(serve(json.loads(asked.read_text()), asked.with_suffix(".ready")))

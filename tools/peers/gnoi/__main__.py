"""`python -m tools.peers.gnoi`: the gNOI side of one switch, until it is ended.  It prints `ready` when it answers."""

import argparse
import asyncio
import os
import signal
from pathlib import Path

from aiohttp import web

from tools.peers.gnoi.admin import Admin
from tools.peers.gnoi.front import Shown
from tools.peers.gnoi.peer import GnoiSide


async def serve(arguments: argparse.Namespace) -> None:
    """Be the switch."""
    host, port = _address(arguments.listen)
    login = tuple(arguments.login.read_text().splitlines()[:2]) if arguments.login else None
    shown = Shown(arguments.certificate, arguments.key, arguments.clients)
    async with GnoiSide(arguments.state, shown=shown, host=host, port=port, login=login) as side:
        runner = web.AppRunner(Admin(side).application())
        await runner.setup()
        admin_host, admin_port = _address(arguments.admin)
        await web.TCPSite(runner, admin_host, admin_port).start()
        print("ready", flush=True)
        end = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end.set)
        tasks = {asyncio.create_task(end.wait()), asyncio.create_task(_orphaned(arguments.owner))}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await runner.cleanup()


async def _orphaned(owner: int) -> None:
    """Until the process that started this one is gone."""
    while not owner or os.getppid() == owner:  # noqa: ASYNC110  nobody tells a process that its parent is gone
        await asyncio.sleep(1)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers.gnoi")
    parser.add_argument("--state", type=Path, required=True, help="the device file")
    parser.add_argument("--listen", required=True, help="HOST:PORT of gNOI")
    parser.add_argument("--admin", required=True, help="HOST:PORT of the tests' side")
    parser.add_argument("--certificate", type=Path, help="of the switch; without it everything is plain text")
    parser.add_argument("--key", type=Path)
    parser.add_argument(
        "--clients", type=Path, help="authority of the callers; without it none must show a certificate"
    )
    parser.add_argument("--login", type=Path, help="file with a username and a password, a line each")
    parser.add_argument("--owner", type=int, default=0, help="end when this is no longer the parent process")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

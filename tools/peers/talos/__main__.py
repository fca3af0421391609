"""`python -m tools.peers.talos`: one machine, until it is ended.  It prints `ready` when it answers."""

import argparse
import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import grpc
from aiohttp import web

from gitops_ctl.netpb.cosi import state_pb2_grpc
from gitops_ctl.netpb.talos.machine import machine_pb2_grpc
from tools.peers.talos.admin import Admin
from tools.peers.talos.controller import control
from tools.peers.talos.cosi import StateService
from tools.peers.talos.faults import Faults
from tools.peers.talos.front import Front
from tools.peers.talos.machine import Machine
from tools.peers.talos.service import MachineService
from tools.peers.talos.state import StateFile

_LARGEST = 32 * 2**20


async def serve(arguments: argparse.Namespace) -> None:
    """Be the machine."""
    machine = Machine(StateFile.load(arguments.state))
    server = grpc.aio.server(
        options=[("grpc.max_receive_message_length", _LARGEST), ("grpc.max_send_message_length", _LARGEST)]
    )
    front = Front(
        ca=arguments.ca,
        certificate=arguments.certificate,
        key=arguments.key,
        inner_port=server.add_insecure_port("127.0.0.1:0"),
    )
    faults = Faults(front.cut)
    service = MachineService(machine, front=front, faults=faults, kubeconfig=arguments.kubeconfig)
    machine_pb2_grpc.add_MachineServiceServicer_to_server(service, server)
    state_pb2_grpc.add_StateServicer_to_server(StateService(machine, front=front, faults=faults), server)
    await server.start()
    await front.start(*_address(arguments.listen))
    runner = web.AppRunner(Admin(machine, front=front, faults=faults, service=service).application())
    await runner.setup()
    await web.TCPSite(runner, *_address(arguments.admin)).start()
    controller = asyncio.create_task(_controlled(machine, arguments.kubeconfig))
    print("ready", flush=True)
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    tasks = {asyncio.create_task(end.wait()), asyncio.create_task(_orphaned(arguments.owner)), controller}
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await controller
    front.cut()
    await runner.cleanup()
    await server.stop(grace=None)


async def _orphaned(owner: int) -> None:
    """Until the process that started this one is gone."""
    while not owner or os.getppid() == owner:  # noqa: ASYNC110  nobody tells a process that its parent is gone
        await asyncio.sleep(1)


async def _controlled(machine: Machine, kubeconfig: Path | None) -> None:
    if kubeconfig is None:
        await asyncio.Event().wait()
    else:
        await control(machine, kubeconfig)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers.talos")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--listen", required=True, help="HOST:PORT of the Talos API")
    parser.add_argument("--admin", required=True, help="HOST:PORT of the tests' side")
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--owner", type=int, default=0, help="end when this is no longer the parent process")
    parser.add_argument(
        "--kubeconfig", type=Path, help="administrator of the target cluster; without it nothing is created"
    )
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

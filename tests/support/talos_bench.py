"""One running machine with its authority, and clients for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from gitops_ctl.core.clock import Clock, SystemClock
from gitops_ctl.talos.client import TalosClient
from gitops_ctl.talos.model import Expected, MachineType
from gitops_ctl.talos.talosconfig import parse_talosconfig
from gitops_ctl.talos.tunnel import Tunnel
from tests.support.talos_configs import machine_config
from tests.support.talos_peer import TalosPeer, start_machine
from tests.support.talos_pki import TalosPki

IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"


@dataclass
class MachineBench:
    """A running machine, its authority, and the configuration that it was installed with."""

    machine: TalosPeer
    pki: TalosPki
    config: bytes

    def client(
        self,
        talosconfig: bytes = b"",
        *,
        clock: Clock | None = None,
        nodename: str = "",
        machine_type: MachineType | None = None,
        address: str = "",
    ) -> TalosClient:
        """A client that expects this machine, unless told otherwise."""
        default: MachineType = "controlplane" if self.machine.role == "controlplane" else "worker"
        return TalosClient.connect(
            address or self.machine.address,
            talosconfig=parse_talosconfig(talosconfig or self.pki.talosconfig()),
            clock=clock or SystemClock(),
            expect=Expected(nodename or self.machine.name, machine_type or default),
        )

    async def raw(self, method: str, request: Any, reply: type, *, metadata: tuple[tuple[str, str], ...] = ()) -> Any:
        """One unary call without the client, with metadata that it never sends."""
        config = parse_talosconfig(self.pki.talosconfig())
        async with Tunnel(self.machine.address, talosconfig=config, clock=SystemClock()) as tunnel:
            async with grpc.aio.insecure_channel(tunnel.target) as channel:
                call = channel.unary_unary(
                    method, request_serializer=type(request).SerializeToString, response_deserializer=reply.FromString
                )
                return await call(request, metadata=metadata, timeout=10)


def machine_bench(
    folder: Path, *, role: str = "controlplane", config: bytes | None = None, **members: Any
) -> Iterator[MachineBench]:
    """Start a machine, and end it."""
    pki = TalosPki(folder / "pki", elliptic=members.pop("elliptic", False))
    text = (
        config
        if config is not None
        else machine_config(role, form="document" if role == "controlplane" else "none", image=IMAGE)
    )
    name = "north-cp-1" if role == "controlplane" else "north-worker-1"
    with start_machine(folder, name=name, role=role, pki=pki, config=text, **members) as machine:
        yield MachineBench(machine, pki, text)


def shared_bench(bench: MachineBench) -> MachineBench:
    """The machine of a module, as new for the next test."""
    bench.machine.reset(bench.config)
    return bench


@pytest.fixture(scope="module")
def one_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBench]:
    """A control plane whose kube-proxy is enabled, in the document form; one for all tests of a module."""
    yield from machine_bench(tmp_path_factory.mktemp("control-plane"))


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBench]:
    """A worker; one for all tests of a module."""
    yield from machine_bench(tmp_path_factory.mktemp("worker"), role="worker")


@pytest.fixture
def control_plane_machine(one_control_plane: MachineBench) -> MachineBench:
    """The control plane of the module, as new."""
    return shared_bench(one_control_plane)


@pytest.fixture
def worker_machine(one_worker: MachineBench) -> MachineBench:
    """The worker of the module, as new."""
    return shared_bench(one_worker)

"""Stand-ins for the machines of a Talos cluster, each a process of its own (cni-switch.md, section 16.1).

    talos/
      certs/        the authority of the machines, and a certificate for each of them and for the cluster worker
      NAME.json     what a machine keeps: who it is, and its saved configuration
      logs/

The stand-in is a development tool beside the package: a checkout has it, an installed package does not.
"""

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import yaml

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.local.certificates import Authority, write_private
from gitops_ctl.local.ports import LOOPBACK, pick_ports
from gitops_ctl.local.supervise import Family, ProcessSpec

VERSION: Final = "v1.14.0"
_PROGRAM: Final = Path("tools/peers/talos/__main__.py")
_ADMINISTRATOR: Final = "os:admin"
_START_S: Final = 60.0
_POLL_S: Final = 0.1

Role = Literal["controlplane", "worker"]


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its name in Kubernetes, its role, and the configuration that it is installed with."""

    name: str
    role: Role
    config: bytes


def find_checkout(start: Path | None = None) -> Path:
    """The folder that the stand-in runs from.

    Raises:
        BlockedError: this is an installed package, which has none (TOOL_MISSING).
    """
    folder = start or Path(__file__).resolve().parents[2]
    if not (folder / _PROGRAM).exists():
        raise BlockedError(
            "the stand-in for Talos machines is not part of an installed package",
            code=ErrorCode.TOOL_MISSING,
            subject=str(folder / _PROGRAM),
            hint="run it in a checkout of gitops-ctl, after `make` there",
        )
    return folder


class TalosMachines:
    """The machines of one cluster; they die with this process.

    Attributes:
        addresses: name to `host:port` of the Talos API; set by `start`.
    """

    def __init__(self, folder: Path, *, checkout: Path, clock: Clock) -> None:
        self.addresses: Mapping[str, str] = {}
        self._folder = folder
        self._checkout = checkout
        self._clock = clock
        self._authority = Authority(folder / "certs", "talos", clock=clock)
        self._family = Family()

    @property
    def pids(self) -> Mapping[str, int]:
        return self._family.pids

    async def start(self, machines: Sequence[Machine], *, kubeconfig: Path | None) -> None:
        """Boot them all, and wait until each answers.

        Args:
            machines: which.
            kubeconfig: administrator of the target cluster: with it a control plane makes the objects that it renders;
                None for machines without a cluster.

        Raises:
            TerminalError: one ended or did not answer in time (LOCAL_SYSTEM); nothing is left running.
        """
        ports = pick_ports(2 * len(machines))
        listen = {machine.name: f"{LOOPBACK}:{ports[2 * number]}" for number, machine in enumerate(machines)}
        try:
            for number, machine in enumerate(machines):
                admin = f"{LOOPBACK}:{ports[2 * number + 1]}"
                await self._family.spawn(self._process(machine, listen[machine.name], admin, kubeconfig))
            await self._until_all_answer(listen)
        except BaseException:
            await self.stop()
            raise
        self.addresses = listen

    async def stop(self) -> None:
        """End them; nothing happens when none runs."""
        await self._family.stop()

    def talosconfig(self) -> bytes:
        """Credentials of an administrator, as `talosctl` writes them."""
        certificate, key = self._authority.client("administrator", user="administrator", groups=(_ADMINISTRATOR,))
        files = {"ca": self._authority.certificate_path, "crt": certificate, "key": key}
        context = {name: b64encode(path.read_bytes()).decode() for name, path in files.items()}
        tree = {"context": "lab", "contexts": {"lab": {"endpoints": sorted(self.addresses.values()), **context}}}
        return yaml.safe_dump(tree).encode()

    def _process(self, machine: Machine, listen: str, admin: str, kubeconfig: Path | None) -> ProcessSpec:
        state = {"nodename": machine.name, "type": machine.role, "version": VERSION}
        path = self._folder / f"{machine.name}.json"
        write_private(path, json.dumps({**state, "persistent": b64encode(machine.config).decode()}).encode())
        certificate, key = self._authority.server(machine.name)
        options = {
            "state": path,
            "listen": listen,
            "admin": admin,
            "ca": self._authority.certificate_path,
            "certificate": certificate,
            "key": key,
            **({"kubeconfig": kubeconfig} if kubeconfig else {}),
        }
        argv = (sys.executable, "-m", "tools.peers.talos", *(f"--{name}={value}" for name, value in options.items()))
        log = self._folder / "logs" / f"{machine.name}.log"
        return ProcessSpec(machine.name, argv, log, environment={"PYTHONPATH": str(self._checkout)})

    async def _until_all_answer(self, listen: Mapping[str, str]) -> None:
        answering = asyncio.create_task(self._answer(listen))
        ending = asyncio.create_task(self._family.first_exit())
        try:
            await asyncio.wait({answering, ending}, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                ended = ending.result()
                raise TerminalError(
                    f"machine {ended.name} {ended.cause}: {ended.tail}",
                    code=ErrorCode.LOCAL_SYSTEM,
                    subject=str(ended.log),
                )
            if not answering.done():
                what = f"not every machine answered within {_START_S:g} s"
                raise TerminalError(what, code=ErrorCode.LOCAL_SYSTEM, subject=str(self._folder / "logs"))
        finally:
            answering.cancel()
            ending.cancel()
            await asyncio.gather(answering, ending, return_exceptions=True)

    async def _answer(self, listen: Mapping[str, str]) -> None:
        for address in listen.values():
            host, _, port = address.rpartition(":")
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(host, int(port))
                    writer.close()
                    break
                await self._clock.sleep(_POLL_S)


def machine_config(role: Role, *, secret: str, image: str) -> bytes:
    """A configuration in the form of documents, with kube-proxy on; what a control plane says about it, a worker does not.

    Args:
        role: of the machine.
        secret: stands where the tokens and keys of a real one are.
        image: of kube-proxy.
    """
    proxy = f"---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: true\nimage: {image}\n"
    return (_CONFIG.format(role=role, secret=secret) + (proxy if role == "controlplane" else "")).encode()


_CONFIG: Final = """\
version: v1alpha1
machine:
    type: {role}
    token: {secret}
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.36.3
    install:
        disk: /dev/sda # The disk used for installations.
cluster:
    secret: {secret}
    controlPlane:
        endpoint: https://192.0.2.10:6443
    clusterName: north
    network:
        dnsDomain: cluster.local
        podSubnets:
            - 10.244.0.0/16
    token: {secret}
---
apiVersion: v1alpha1
kind: KubePrismConfig
port: 7445
"""

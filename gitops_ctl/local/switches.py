"""Stand-ins for a hall of IOS-XE switches: gNOI and an image server in one process, NETCONF behind one sshd (devices.md, sections 11, 15 and 16).

    switches/
      certs/        the authority of the hall, its server certificate, and that of the caller
      NAME.json     what a switch is now, shared by its two sides
      images/       what the https server serves
      ssh/          host key, the caller's key, and the configuration of sshd

The stand-ins are development tools beside the package: a checkout has them, an installed package does not.
"""

import asyncio
import getpass
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.local.certificates import Authority, write_private
from gitops_ctl.local.ports import LOOPBACK, pick_ports
from gitops_ctl.local.supervise import Family, ProcessSpec

_START_S: Final = 60.0
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: its name and serial number, and the versions that it does not boot."""

    name: str
    serial: str
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """A package: the name of its file, the version that it installs, and how large it is."""

    name: str
    version: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a switch answers."""

    gnoi: int
    netconf: int


@dataclass(frozen=True, slots=True)
class Served:
    """An image as a plan names it."""

    url: str
    sha256: str


class Switches:
    """The hall; it dies with this process.

    Attributes:
        ports: name of a switch to where it answers; set by `start`.
        images: name of a file to where it is; set by `start`.
    """

    def __init__(self, folder: Path, *, checkout: Path, clock: Clock) -> None:
        self.ports: Mapping[str, Ports] = {}
        self.images: Mapping[str, Served] = {}
        self._folder = folder
        self._checkout = checkout
        self._clock = clock
        self._authority = Authority(folder / "certs", "hall", clock=clock)
        self._family = Family()

    @property
    def authority_file(self) -> Path:
        """The certificate that its servers are signed with."""
        return self._authority.certificate_path

    async def start(self, switches: Sequence[Switch], images: Sequence[Image]) -> None:
        """Switch them all on, and wait until each side of each answers.

        Raises:
            BlockedError: there is no sshd on this machine (TOOL_MISSING).
            TerminalError: something ended or did not answer in time (LOCAL_SYSTEM); nothing is left running.
        """
        numbers = pick_ports(2 * len(switches) + 1)
        pairs = {one.name: Ports(numbers[2 * place], numbers[2 * place + 1]) for place, one in enumerate(switches)}
        ready = self._folder / "hall.ready"
        ready.unlink(missing_ok=True)
        try:
            await self._family.spawn(self._hall(switches, images, pairs, image_port=numbers[-1]))
            await self._until(ready.exists, "the switches answer")
            await self._family.spawn(self._sshd(pairs))
            await self._until(lambda: all(_answers(one.netconf) for one in pairs.values()), "sshd answers")
        except BaseException:
            await self.stop()
            raise
        self.ports = pairs
        base = f"https://{LOOPBACK}:{numbers[-1]}"
        found: dict[str, dict[str, str]] = json.loads(ready.read_text())
        self.images = {name: Served(f"{base}/{name}", one["sha256"]) for name, one in found.items()}

    async def stop(self) -> None:
        """Switch them off; nothing happens when none runs."""
        await self._family.stop()

    def login(self, name: str) -> Mapping[str, str]:
        """The credential Secret of a switch: who logs in, with which key, at which host key."""
        public = self._public("host")
        return {
            "username": getpass.getuser(),
            "privateKey": (self._folder / "ssh" / "user").read_text(encoding="ascii"),
            "known_hosts": f"[{LOOPBACK}]:{self.ports[name].netconf} {public}\n",
        }

    def tls(self) -> Mapping[str, str]:
        """The gNOI Secret, the same for every switch."""
        certificate, key = self._authority.client("caller", user="gitops-ctl")
        files = {"ca.crt": self.authority_file, "tls.crt": certificate, "tls.key": key}
        return {name: path.read_text(encoding="ascii") for name, path in files.items()}

    def versions(self) -> Mapping[str, str]:
        """What each switch runs."""
        states = {name: json.loads((self._folder / f"{name}.json").read_text()) for name in self.ports}
        return {name: str(state["running"]) for name, state in states.items()}

    def changes(self) -> Mapping[str, int]:
        """How many changing calls each switch has seen."""
        states = {name: json.loads((self._folder / f"{name}.json").read_text()) for name in self.ports}
        return {name: len(state["mutations"]) for name, state in states.items()}

    def _hall(
        self, switches: Sequence[Switch], images: Sequence[Image], pairs: Mapping[str, Ports], *, image_port: int
    ) -> ProcessSpec:
        certificate, key = self._authority.server("hall-server")
        tree = {
            "folder": str(self._folder),
            "certificate": str(certificate),
            "key": str(key),
            "clients": str(self.authority_file),
            "imagePort": image_port,
            "switches": [
                {"name": one.name, "serial": one.serial, "port": pairs[one.name].gnoi, "failing": list(one.failing)}
                for one in switches
            ],
            "images": [{"name": one.name, "version": one.version, "bytes": one.bytes} for one in images],
        }
        file = self._folder / "hall.json"
        write_private(file, json.dumps(tree).encode())
        argv = (sys.executable, "-m", "tools.peers.hall", str(file))
        return ProcessSpec(
            "switches", argv, self._folder / "logs/switches.log", environment={"PYTHONPATH": str(self._checkout)}
        )

    def _sshd(self, pairs: Mapping[str, Ports]) -> ProcessSpec:
        program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            hint = "apt-get install openssh-server, or dnf install openssh-server"
            raise BlockedError("sshd is not installed", code=ErrorCode.TOOL_MISSING, hint=hint)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        folder = self._folder / "ssh"
        for name in ("host", "user"):
            _make_key(folder / name)
        authorized = folder / "authorized_keys"
        write_private(authorized, f"{self._public('user')}\n".encode())
        config = folder / "sshd_config"
        write_private(
            config, _SSHD.format(host=folder / "host", authorized=authorized).encode() + self._subsystems(pairs)
        )
        return ProcessSpec("sshd", (program, "-D", "-e", "-f", str(config)), self._folder / "logs/sshd.log")

    def _subsystems(self, pairs: Mapping[str, Ports]) -> bytes:
        """A port for each switch, which decides on whose file the program works."""
        listen = "".join(f"ListenAddress {LOOPBACK}:{ports.netconf}\n" for ports in pairs.values())
        run = f"/usr/bin/env PYTHONPATH={self._checkout} {sys.executable} -m tools.peers.iosxe.netconf"
        blocks = "".join(
            f"Match LocalPort {ports.netconf}\n  ForceCommand {run} {self._folder / name}.json\n"
            for name, ports in pairs.items()
        )
        return f"{listen}Subsystem netconf /bin/false\n{blocks}".encode()

    def _public(self, name: str) -> str:
        return (self._folder / "ssh" / f"{name}.pub").read_text(encoding="ascii").strip()

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline_s = self._clock.boot_s() + _START_S
        ending = asyncio.create_task(self._family.first_exit())
        try:
            while not holds():
                if ending.done():
                    ended = ending.result()
                    message = f"{ended.name} {ended.cause}: {ended.tail}"
                    raise TerminalError(message, code=ErrorCode.LOCAL_SYSTEM, subject=str(ended.log))
                if self._clock.boot_s() > deadline_s:
                    message = f"not within {_START_S:g} s: {what}"
                    raise TerminalError(message, code=ErrorCode.LOCAL_SYSTEM, subject=str(self._folder / "logs"))
                await self._clock.sleep(_POLL_S)
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)


def _make_key(path: Path) -> None:
    """An ed25519 key in the form of OpenSSH, and `NAME.pub` beside it."""
    key = ed25519.Ed25519PrivateKey.generate()
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_private(path.with_suffix(".pub"), public + b"\n")


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1.0):
        return True
    return False


# SHLVL: bash that sshd starts reads ~/.bashrc unless it looks like an inner shell; what that file runs costs time, and what it
# prints would stand in the NETCONF session.
_SSHD: Final = """\
SetEnv SHLVL=2
HostKey {host}
PidFile none
StrictModes no
AuthorizedKeysFile {authorized}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 200
"""

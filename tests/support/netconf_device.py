"""Switches that answer NETCONF: the responder behind a real sshd.

with NetconfDevice(tmp_path, serial="FOC1234") as device:
    client = NetconfClient(limits=QUICK)
    async with client.session(device.endpoint()) as session: ...

`device.file` is the state that the switch shares with its gNOI side; `device.fault(kind, …)` orders faults from the responder.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gitops_ctl.device.netconf import Endpoint, Limits, endpoint_of
from gitops_ctl.local.ports import pick_ports
from tests.support.git_keys import SshKey
from tests.support.git_servers import _wait_for_port
from tools.peers.iosxe.state import DeviceFile, new_device

ROOT = Path(__file__).parents[2]
QUICK = Limits(tcp_s=20, hello_s=30, rpc_s=30, commit_s=30, close_s=10)
"""Long enough for a busy machine; faults that never answer are given their own."""


class NetconfDevice:
    """One switch with its sshd.  The port and the host key stay over a restart."""

    def __init__(
        self,
        folder: Path,
        *,
        serial: str = "FOC1234",
        host_key: SshKey | None = None,
        user_key: SshKey | None = None,
        state_file: Path | None = None,
    ) -> None:
        """`state_file` is that of a switch whose gNOI side is there already."""
        folder.mkdir(parents=True, exist_ok=True)
        self.host_key = host_key or SshKey.generate(folder, name="host")
        self.user_key = user_key or SshKey.generate(folder, name="user")
        self.file = DeviceFile(state_file or folder / "device.json")
        if state_file is None:
            self.file.create(new_device(serial))
        self.name = serial
        (self.port,) = pick_ports(1)
        self._folder = folder
        self._log = folder / "sshd.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start(self.host_key)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, host_key: SshKey) -> None:
        """Listen, with this host key: another one is somebody in the middle."""
        assert self._process is None
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        authorized = self._folder / "authorized_keys"
        authorized.write_text(f"{self.user_key.public}\n")
        program = f"{sys.executable} -m tools.peers.iosxe.netconf {self.file.path}"
        config = self._folder / "sshd_config"
        # SHLVL: bash reads no ~/.bashrc, which may run and print anything.
        config.write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {host_key.path}\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {authorized}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "SetEnv SHLVL=2\nUsePAM no\nPermitRootLogin prohibit-password\nLogLevel DEBUG1\nMaxStartups 200\n"
            f"Subsystem netconf /usr/bin/env PYTHONPATH={ROOT} {program}\n"
        )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(config)],
                stderr=log,
                start_new_session=True,
            )
        _wait_for_port(self.port, self._process)

    def stop(self) -> None:
        """End sshd; its sessions are processes of their own and end with their clients."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
            self._process = None

    def renew(self, state: dict[str, Any]) -> None:
        """Another switch behind the same sshd: sessions that a test left behind must not see it."""
        for pid in map(int, self.file.read()["sessions"]):
            with suppress(OSError):
                if b"tools.peers.iosxe.netconf" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        self.file.create(state)

    @property
    def log(self) -> str:
        """What sshd wrote so far."""
        return self._log.read_text(errors="replace")

    def endpoint(self, *, host_key: SshKey | None = None, user_key: SshKey | None = None) -> Endpoint:
        """Where it is and who logs in; `host_key` is what the client expects."""
        import getpass

        known_hosts = f"[127.0.0.1]:{self.port} {(host_key or self.host_key).public}\n"
        data = {
            "username": getpass.getuser().encode(),
            "privateKey": (user_key or self.user_key).path.read_bytes(),
            "known_hosts": known_hosts.encode(),
        }
        return endpoint_of(data, name=self.name, address="127.0.0.1", port=self.port)

    def fault(self, kind: str, **members: Any) -> None:
        """See tools/peers/iosxe/netconf.py."""
        with self.file.change() as device:
            device["faults"].append({"for": "netconf", "kind": kind, **members})

    def set(self, **members: Any) -> None:
        """Change the state of the switch."""
        with self.file.change() as device:
            device.update(members)

    @property
    def commits(self) -> list[dict[str, Any]]:
        """Every install commit that arrived."""
        found: list[dict[str, Any]] = self.file.read()["commits"]
        return found

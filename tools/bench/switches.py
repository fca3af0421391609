"""Switches that answer NETCONF over SSH, many in one process: `python -m tools.bench.switches JOB.json`.

One host key and one password for all.  Sessions are those of the stand-in that tests use behind sshd; here no process is started for each,
so that what the worker costs is not drowned by what they cost.
"""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import paramiko

from tests.support.netconf_password import PasswordServer
from tools.bench.devices import serial
from tools.peers.iosxe.state import DeviceFile, new_device

USER, PASSWORD = "operator", "only-for-the-benchmark"


class Door(PasswordServer):
    """One switch, with the host key of all."""

    def __init__(self, file: DeviceFile, key: paramiko.RSAKey) -> None:
        super().__init__(file, password=PASSWORD, key=key)

    @property
    def port(self) -> int:
        found: int = self._listener.getsockname()[1]
        return found


def login(ports: list[int], key: str) -> dict[str, str]:
    """The Secret that all of them are reached with."""
    known = "".join(f"[127.0.0.1]:{port} ssh-rsa {key}\n" for port in ports)
    return {"username": USER, "password": PASSWORD, "known_hosts": known}


def serve(job: dict[str, Any]) -> None:
    """Switch all of them on, say where they are, and serve until the process is ended."""
    folder, key, doors = Path(job["folder"]), paramiko.RSAKey.generate(2048), []
    for name in job["names"]:
        file = DeviceFile(folder / f"{name}.json")
        file.create(new_device(serial(name)))
        doors.append(Door(file, key).__enter__())
    ports = [door.port for door in doors]
    Path(job["ready"]).write_text(json.dumps({"ports": ports, "login": login(ports, key.get_base64())}))
    threading.Event().wait()


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_bytes()))

"""A switch for tests of gNOI: inside of the test (`a_switch`), or as a process of its own (`start_switch`).

async with a_switch(tmp_path, pki) as switch:
    switch.fault("drop", on="Activate:done")
    async with gnoi_session(switch.target, clock=SystemClock()) as session: ...
"""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from gitops_ctl.device.gnoitarget import GnoiTarget, TlsMaterial
from gitops_ctl.device.login import Login
from gitops_ctl.local.ports import pick_ports
from tests.support.gnoi_pki import GnoiPki
from tools.peers.gnoi.peer import GnoiSide
from tools.peers.gnoi.switch import prepared
from tools.peers.iosxe.state import DeviceFile, new_device

ROOT = Path(__file__).parents[2]
LOGIN = Login("network-author", "hunter-2-and-more")
OLD = "17.18.02.0.4112.1766116039"
NEW = "17.18.03.0.5496.1776157760"


async def until(condition: Callable[[], Awaitable[bool]], *, what: str, timeout_s: float = 30.0) -> None:
    """Return as soon as the condition holds; fail after `timeout_s`."""
    try:
        async with asyncio.timeout(timeout_s):
            while not await condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {timeout_s:g} s: {what}") from None


class Switch:
    """The gNOI side of one switch in this process."""

    def __init__(self, side: GnoiSide, target: GnoiTarget) -> None:
        self.side = side
        self.target = target

    @property
    def device(self) -> dict[str, Any]:
        """As it is now."""
        return self.side.file.read()

    @property
    def mutations(self) -> list[tuple[str, dict[str, Any]]]:
        """Changing calls that came, the oldest first."""
        return [(each["method"], each["arguments"]) for each in self.device["mutations"]]

    def set(self, **members: Any) -> None:
        """Members of the device file; `gnoi` one by one."""
        with self.side.file.change() as device:
            device["gnoi"].update(members.pop("gnoi", {}))
            device.update(members)

    def fault(self, kind: str, *, on: str, **members: Any) -> None:
        """See tools/peers/gnoi/faults.py."""
        with self.side.file.change() as device:
            device["faults"].append({"for": "gnoi", "kind": kind, "on": on, **members})


@asynccontextmanager
async def a_switch(
    folder: Path,
    pki: GnoiPki | None,
    *,
    material: TlsMaterial | None = None,
    supervisors: int = 1,
    public: bool = False,
    **settings: Any,
) -> AsyncIterator[Switch]:
    """A switch that runs OLD; `settings` are those of tools/peers/gnoi/switch.py.  `pki` None: plain text, and nobody logs in.

    Args:
        public: it is the target of tools/peers/gnoi/public_target.py.
    """
    path = folder / "switch.json"
    file = DeviceFile(path)
    file.create(prepared(new_device("FOC2401L0AA", version=OLD, supervisors=supervisors), **settings))
    (port,) = pick_ports(1)
    if pki is None:
        from tools.peers.gnoi.front import Shown

        shown, tls, login = Shown(None, None, None), None, None
    else:
        shown, tls, login = pki.shown(), material or pki.material(), LOGIN
    wanted = None if login is None else (login.username, login.password)
    async with GnoiSide(path, shown=shown, host="127.0.0.1", port=port, login=wanted, public=public) as side:
        yield Switch(side, GnoiTarget("127.0.0.1", port, tls=tls, login=login))
        assert side.file.read()["gnoi"]["violations"] == [], "a changing call was sent twice"


class SwitchProcess:
    """The gNOI side of one switch, a process of its own.  Every method returns when what it asked for has happened."""

    def __init__(self, *, arguments: list[str], state_file: Path, port: int, admin: str) -> None:
        self.state_file = state_file
        """Also for its NETCONF side."""
        self.port = port
        self._arguments = arguments
        self._admin = admin
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "SwitchProcess":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        assert self._process is None
        with self.state_file.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(self._arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == b"ready\n", self.state_file.with_suffix(".log").read_text()

    def stop(self) -> None:
        """End the process; the switch is off and keeps its state."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def state(self) -> dict[str, Any]:
        """The device file, and `calls` by method."""
        return self._request("GET", "/state")

    def set(self, **members: Any) -> None:
        """Members of the device file; those of `gnoi` one by one."""
        self._request("PATCH", "/device", members)

    def fault(self, kind: str, **members: Any) -> None:
        """See tools/peers/gnoi/faults.py; `for="netconf"` is for the other side."""
        self._request("POST", "/faults", {"kind": kind, **members})

    def clear_faults(self) -> None:
        self._request("DELETE", "/faults")

    def order(self, order: str, **members: Any) -> None:
        """offer (on), show (certificate, key, clients, alpn), cut, reboot, forget."""
        self._request("POST", "/order", {"order": order, **members})

    def _request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self._admin}{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
            return found


def start_switch(
    folder: Path, *, serial: str, pki: GnoiPki, login: Login = LOGIN, supervisors: int = 1, **settings: Any
) -> SwitchProcess:
    """A switch, not yet started (`with`, or `start()`).

    Args:
        folder: for its device file and its log.
        serial: of the chassis.
        pki: signs its certificate and its callers'.
        login: that every call must carry.
        supervisors: 1 or 2.
        settings: of tools/peers/gnoi/switch.py.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state_file, login_file = folder / f"{serial}.json", folder / f"{serial}.login"
    DeviceFile(state_file).create(prepared(new_device(serial, version=OLD, supervisors=supervisors), **settings))
    login_file.write_text(f"{login.username}\n{login.password}\n")
    shown = pki.shown(serial)
    port, admin = pick_ports(2)
    arguments = [sys.executable, "-m", "tools.peers.gnoi", f"--state={state_file}", f"--listen=127.0.0.1:{port}"]
    arguments += [f"--admin=127.0.0.1:{admin}", f"--certificate={shown.certificate}", f"--key={shown.key}"]
    arguments += [f"--clients={shown.clients}", f"--login={login_file}", f"--owner={os.getpid()}"]
    return SwitchProcess(arguments=arguments, state_file=state_file, port=port, admin=f"127.0.0.1:{admin}")

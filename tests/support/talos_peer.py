"""Starts stand-ins for Talos machines, each a process of its own, and orders faults from them.

pki = TalosPki(tmp_path / "pki")
with start_machine(tmp_path, name="north-cp-1", role="controlplane", pki=pki, config=machine_config()) as machine:
    machine.address, machine.state(), machine.fault("drop-after", method="ApplyConfiguration")
"""

import base64
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from gitops_ctl.local.ports import pick_ports
from tests.support.talos_pki import TalosPki

ROOT = Path(__file__).parents[2]


class TalosPeer:
    """One machine.  Every method returns when what it asked for has happened."""

    def __init__(self, *, folder: Path, name: str, role: str, arguments: list[str], address: str, admin: str) -> None:
        self.name = name
        self.role = role
        self.address = address
        """Of the Talos API, `127.0.0.1:PORT`; it stays over restarts."""
        self.state_file = folder / f"{name}.json"
        self._arguments = arguments
        self.admin_address = admin
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "TalosPeer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Boot; what was saved is what it boots with."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == b"ready\n", self._log.read_text()

    def stop(self) -> None:
        """End the process in order."""
        self._end(kill=False)

    def kill(self) -> None:
        """End the process as loss of power would."""
        self._end(kill=True)

    def state(self) -> dict[str, Any]:
        """nodename, type, active and persistent (hashes), applies, boots, boot_id, trying, proxy_enabled, manifests_applied, calls."""
        return self._request("GET", "/state")

    @property
    def applies(self) -> list[dict[str, Any]]:
        """Configurations that were really taken, the oldest first: mode and sha256."""
        found: list[dict[str, Any]] = self.state()["applies"]
        return found

    def fault(self, kind: str, **members: Any) -> None:
        """delay (seconds), drop-before, drop-after, error (code, message), unavailable (seconds); all: method, times."""
        self._request("POST", "/faults", {"kind": kind, **members})

    def clear_faults(self) -> None:
        self._request("DELETE", "/faults")

    def stage(self, **members: Any) -> None:
        """kubeprism_healthy, machine_type, unhealthy_services, static_pods_ready, manifests_late_s, restart_s."""
        self._request("POST", "/staging", members)

    def reboot(self) -> None:
        """As after a loss of power, without ending the process: connections end, a tried configuration is gone."""
        self._order("restart")

    def reset(self, config: bytes) -> None:
        """As a machine that has just been installed with `config`: no faults, no history."""
        self._order("reset", config=base64.b64encode(config).decode())

    def offer_alpn(self, on: bool) -> None:
        self._order("alpn", on=on)

    def listen(self, on: bool) -> None:
        """False: connections are refused."""
        self._order("listen", on=on)

    def configure(self, config: bytes) -> None:
        """Somebody else applies a configuration."""
        self._order("configure", config=base64.b64encode(config).decode())

    def stage_config(self, config: bytes) -> None:
        """Somebody else stages a configuration: it is saved, and not active."""
        self._order("stage", config=base64.b64encode(config).decode())

    def _order(self, order: str, **members: Any) -> None:
        self._request("POST", "/machine", {"order": order, **members})

    def _end(self, *, kill: bool) -> None:
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.admin_address}{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
            return found


def start_machine(
    folder: Path,
    *,
    name: str,
    role: str,
    pki: TalosPki,
    config: bytes,
    kubeconfig: Path | None = None,
    version: str = "v1.14.0",
) -> TalosPeer:
    """A machine, not yet started (`with`, or `start()`).

    Args:
        folder: for its state file and log.
        name: its name in Kubernetes.
        role: `controlplane` or `worker`.
        pki: signs its certificate and its callers'.
        config: its configuration.
        kubeconfig: administrator of the target cluster, for its manifest controller and its Kubeconfig call.
        version: of Talos.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = {"nodename": name, "type": role, "version": version, "persistent": base64.b64encode(config).decode()}
    (folder / f"{name}.json").write_text(json.dumps(state))
    certificate, key = pki.server(name)
    address, admin = (f"127.0.0.1:{port}" for port in pick_ports(2))
    arguments = [sys.executable, "-m", "tools.peers.talos", f"--state={folder / f'{name}.json'}"]
    arguments += [f"--listen={address}", f"--admin={admin}", f"--ca={pki.ca_path}"]
    arguments += [f"--certificate={certificate}", f"--key={key}"]
    arguments.append(f"--owner={os.getpid()}")
    if kubeconfig is not None:
        arguments.append(f"--kubeconfig={kubeconfig}")
    return TalosPeer(folder=folder, name=name, role=role, arguments=arguments, address=address, admin=admin)

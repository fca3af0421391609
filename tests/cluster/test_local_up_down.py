"""`gitops-ctl up` and `down` as a person runs them: it comes up, keeps its data, and leaves nothing behind.

In scope: the command line, the supervisor, what happens when any process is killed.  Out of scope: the server itself
(test_local_control_plane.py), the build (tests/unit/local).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.supervisor import Job, start_supervisor
from tests.support.cluster import ControlPlaneHandle
from tests.support.processes import is_running, processes_of, until

pytestmark = pytest.mark.cluster

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class LocalSystem:
    """The commands, on a folder of this test."""

    def __init__(self, directory: Path, assets: Path) -> None:
        self.directory = directory
        self._environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}

    def command(self, name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "gitops_ctl", name, "--directory", str(self.directory), *arguments]

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = self.command(name, *arguments)
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=120, check=False)

    def up(self, *arguments: str) -> dict[str, Any]:
        done = self.run("up", "-o", "json", *arguments)
        assert done.returncode == 0, done.stderr
        state: dict[str, Any] = json.loads(done.stdout)
        return state

    def start_in_foreground(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command("up", "--foreground"), env=self._environment)

    def nothing_runs(self) -> bool:
        return processes_of(str(self.directory)) == []

    def log(self) -> str:
        return (self.directory / "logs" / "supervisor.log").read_text()


@pytest.fixture(scope="module")
def assets(control_plane: ControlPlaneHandle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the shared control plane."""
    assets = tmp_path_factory.mktemp("assets")
    binaries = control_plane.binaries
    for program in (binaries.etcd, binaries.kube_apiserver, binaries.kube_controller_manager):
        (assets / program.name).symlink_to(program)
    for program in (binaries.kube_scheduler, binaries.kubectl):
        (assets / program.name).symlink_to(program)
    return assets


@pytest.fixture
def system(assets: Path, tmp_path: Path) -> Iterator[LocalSystem]:
    """A local system of this test alone; stopped after it."""
    yield from _until_purged(LocalSystem(tmp_path / "system", assets))


@pytest.fixture(scope="module")
def kept(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSystem]:
    """The local system of several tests: each begins with `up`, which starts nothing where the one before left it up."""
    yield from _until_purged(LocalSystem(tmp_path_factory.mktemp("kept") / "system", assets))


def _until_purged(system: LocalSystem) -> Iterator[LocalSystem]:
    yield system
    assert system.run("down", "--purge").returncode == 0
    assert system.nothing_runs()
    assert not system.directory.exists()


def test_up_gives_a_working_kubeconfig_and_a_second_up_keeps_data_and_address(
    kept: LocalSystem, control_plane: ControlPlaneHandle
) -> None:
    system = kept
    first = system.up()
    kubectl = [control_plane.kubectl, "--kubeconfig", first["kubeconfig"]]
    subprocess.run([*kubectl, "create", "namespace", "kept"], check=True, capture_output=True)
    assert system.up() == first

    stopped = system.run("down")
    assert stopped.returncode == 0
    assert stopped.stderr == "stopped\n"
    assert system.nothing_runs()
    assert system.run("down").stderr == "nothing was up\n"

    second = system.up()
    assert second["server"] == first["server"]
    found = subprocess.run(
        [*kubectl, "get", "namespace", "kept", "-o", "name"], check=True, capture_output=True, text=True
    )
    assert found.stdout == "namespace/kept\n"


def test_kill_9_of_the_supervisor_leaves_no_process_and_the_next_up_works(kept: LocalSystem) -> None:
    system = kept
    state = system.up()
    assert sorted(state["processes"]) == sorted(COMPONENTS)
    os.kill(state["supervisor"], signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in state["processes"].values()), timeout_s=10)
    until(system.nothing_runs, timeout_s=10)
    assert system.up()["supervisor"] != state["supervisor"]


def test_kill_9_of_a_supervisor_that_is_still_starting_leaves_no_process(system: LocalSystem) -> None:
    process = system.start_in_foreground()
    until(lambda: any("kube-apiserver" in _program(pid) for pid in processes_of(str(system.directory))))
    process.kill()
    process.wait()
    until(system.nothing_runs, timeout_s=10)


@pytest.mark.parametrize(
    "component", [name if name == "etcd" else pytest.param(name, marks=pytest.mark.soak) for name in COMPONENTS]
)
def test_kill_9_of_a_component_stops_all_and_says_which(kept: LocalSystem, component: str) -> None:
    system = kept
    state = system.up()
    os.kill(state["processes"][component], signal.SIGKILL)
    until(system.nothing_runs, timeout_s=20)
    assert f"{component} was killed by SIGKILL; all components are stopped" in system.log()
    if component == "etcd":
        again = system.run("up")
        assert again.returncode == 0, again.stderr
        assert "the last run ended by itself: etcd was killed by SIGKILL" in again.stderr


def test_a_system_that_has_an_owner_ends_with_it(control_plane: ControlPlaneHandle, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as owner:
        job = Job(
            tmp_path / "owned", control_plane.binaries, Options(durable=False, controllers=False), owner=owner.pid
        )
        asyncio.run(start_supervisor(job, clock=SystemClock()))
        owner.kill()
    until(lambda: processes_of(str(tmp_path / "owned")) == [], timeout_s=20)
    assert "stopped" in (tmp_path / "owned" / "logs" / "supervisor.log").read_text()


def test_down_also_stops_a_system_that_is_still_starting(system: LocalSystem) -> None:
    process = system.start_in_foreground()
    until(lambda: any("etcd" in _program(pid) for pid in processes_of(str(system.directory))))
    assert system.run("down").stderr == "stopped\n"
    assert process.wait(timeout=20) == 0
    assert system.nothing_runs()


def test_an_up_beside_another_up_waits_and_gets_the_same_system_which_ctrl_c_stops(system: LocalSystem) -> None:
    process = system.start_in_foreground()
    until(lambda: any("etcd" in _program(pid) for pid in processes_of(str(system.directory))))
    assert system.up()["supervisor"] == process.pid
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert system.nothing_runs()


def test_two_systems_at_once_find_their_own_ports_and_the_one_without_a_manager_leaves_the_product_out(
    kept: LocalSystem, system: LocalSystem, control_plane: ControlPlaneHandle
) -> None:
    first = kept.up()
    # The ports of the first, as if this folder had used them before.
    system.directory.mkdir()
    (system.directory / "ports.json").write_text((kept.directory / "ports.json").read_text())
    second = system.up("--no-manager")
    assert second["server"] not in (first["server"], control_plane.url)
    assert (bool(first["manager"]), second["manager"]) == (True, 0)
    done = subprocess.run(
        [sys.executable, "-m", "gitops_ctl", "status", "--kubeconfig", second["kubeconfig"]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error GC2009 kind-not-served\n")


def test_up_with_a_kubeconfig_starts_nothing_and_down_leaves_that_cluster_alone(
    system: LocalSystem, control_plane: ControlPlaneHandle
) -> None:
    done = system.run("up", "--kubeconfig", str(control_plane.kubeconfig), "-o", "json")
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout)
    assert state["provider"] == "external"
    assert state["server"] == control_plane.url
    assert system.nothing_runs()
    assert system.run("down").returncode == 0
    assert control_plane.request("GET", "/readyz").status == 200


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""

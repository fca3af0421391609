"""A start that fails says why and leaves nothing running.

In scope: the control plane with programs that end or never get ready (scripts).  Out of scope: a start that works (tests/cluster).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.local.binaries import Binaries
from gitops_ctl.local.controlplane import ControlPlane, Options
from gitops_ctl.local.kwok import Kwok
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervisor import Job, start_supervisor
from tests.support.processes import processes_of

WAITS = "import time; time.sleep(600)"


class Programs:
    """Scripts in place of the real programs; each waits for ever unless it is told what to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
            self.does(name, WAITS)

    def does(self, name: str, code: str) -> None:
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o755)

    @property
    def binaries(self) -> Binaries:
        names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        return Binaries(*(self.folder / name for name in names))


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "programs")


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver"])
async def test_a_component_that_ends_is_named_with_what_it_said(
    programs: Programs, tmp_path: Path, component: str
) -> None:
    programs.does(component, "print('the disk is full'); raise SystemExit(7)")
    with pytest.raises(TerminalError) as caught:
        await ControlPlane(programs.binaries, tmp_path / "system").start()
    assert caught.value.code is ErrorCode.LOCAL_SYSTEM
    assert caught.value.message == f"{component} exited with status 7: the disk is full"
    assert caught.value.subject == str(tmp_path / "system" / "logs" / f"{component}.log")
    assert processes_of(str(tmp_path / "system")) == []


async def test_a_server_that_never_gets_ready_is_given_up(programs: Programs, tmp_path: Path) -> None:
    plane = ControlPlane(programs.binaries, tmp_path / "system", options=Options(start_timeout_s=1))
    with pytest.raises(TerminalError, match="not ready within 1 s"):
        await plane.start()
    assert processes_of(str(tmp_path / "system")) == []


async def test_a_taken_port_leads_to_another_start_with_other_ports(programs: Programs, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    programs.does(
        "kube-apiserver",
        "import pathlib, sys\n"
        f"seen = pathlib.Path({str(seen)!r})\n"
        "port = next(word for word in sys.argv if word.startswith('--secure-port'))\n"
        "with seen.open('a') as stream: stream.write(port + '\\n')\n"
        "second = seen.read_text().count('\\n') == 2\n"
        "print('something else' if second else 'listen tcp: bind: address already in use'); raise SystemExit(1)",
    )
    with pytest.raises(TerminalError, match="kube-apiserver exited with status 1"):
        await ControlPlane(programs.binaries, tmp_path / "system").start()
    ports = seen.read_text().split()
    assert len(set(ports)) == 2


async def test_the_supervisor_tells_a_failed_start_to_whoever_waits(programs: Programs, tmp_path: Path) -> None:
    programs.does("etcd", "print('the disk is full'); raise SystemExit(7)")
    job = Job(tmp_path / "system", programs.binaries, Options())
    with pytest.raises(TerminalError) as caught:
        await start_supervisor(job, clock=SystemClock())
    assert "error GC9006 local-system: etcd exited with status 7: the disk is full" in caught.value.message
    assert processes_of(str(tmp_path / "system")) == []
    assert SystemFolder(tmp_path / "system").state() is None


def test_a_job_survives_its_way_to_the_supervisor(programs: Programs, tmp_path: Path) -> None:
    kwok = Kwok(tmp_path / "kwok", (tmp_path / "a.yaml",))
    for job in (
        Job(tmp_path, programs.binaries, Options(audit=True, nodes=3), owner=7, kwok=kwok),
        Job(tmp_path, programs.binaries, Options()),
    ):
        assert Job.from_json(job.to_json()) == job
        assert json.loads(job.to_json())["owner"] == job.owner


def test_the_supervisor_refuses_a_folder_that_another_process_runs(programs: Programs, tmp_path: Path) -> None:
    folder = SystemFolder(tmp_path / "system")
    job = Job(folder.path, programs.binaries, Options())
    command = [sys.executable, "-m", "gitops_ctl.local.supervisor", job.to_json()]
    with folder.held():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error GC9007 local-busy: another process already runs this local system" in done.stderr

"""The command line of the device worker: what it refuses, what it makes of it, and what it serves about itself."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gitops_ctl.cli.deviceplanes import intervals_of, journal_of, make_room, new_uuid
from gitops_ctl.cli.deviceworker import Settings, _apps, _count, device
from gitops_ctl.device.worker.identity import Who
from gitops_ctl.device.worker.networkroom import NetworkRoom
from gitops_ctl.device.worker.noderoom import NodeRoom
from gitops_ctl.device.worker.place import Served
from gitops_ctl.device.worker.secretreader import SecretReader
from gitops_ctl.telemetry.devicemetrics import DeviceMetrics
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.simulation_loop import LoopClock

DIGEST = "sha256:" + "0a" * 32
LEAST = ["--namespace=campus", f"--template-digest={DIGEST}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plane=network", "--namespace=campus"], "--template-digest"),
        (["--plane=network", f"--template-digest={DIGEST}"], "--namespace"),
        (LEAST, "--plane"),
        (["--plane=network", "--namespace=campus", "--template-digest=latest"], "--template-digest is no digest"),
        (["--plane=node", "--read-only", *LEAST], "it cannot be --read-only"),
        (["--plane=network", "--image-source-allow=nowhere", *LEAST], "--image-source-allow"),
        (["--plane=network", "--spool-limit=0", *LEAST], "--spool-limit"),
        (["--plane=network", *LEAST, *(f"--image-source-allow=10.{n}.0.0/16" for n in range(17))], "17 times"),
    ],
    ids=["digest", "namespace", "plane", "no-digest", "read-only", "network", "limit", "networks"],
)
def test_wrong_options_are_refused(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CISCO_VK_WORKER_NAMESPACE", raising=False)
    monkeypatch.delenv("CISCO_VK_WORKER_TEMPLATE_DIGEST", raising=False)
    done = CliRunner().invoke(device, arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_only_a_running_worker_loads_the_clients_of_devices():
    loaded = "import sys, gitops_ctl.cli.worker; print(sorted({'grpc', 'ncclient', 'paramiko'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def settings(folder: Path, **members: Any) -> Settings:
    given: Any = {"journal_dir": folder / "journal", "spool_dir": folder / "spool", "plane": "network", **members}
    return Settings(namespace="campus", template_digest=DIGEST, **given)


@pytest.fixture
def served() -> Served:
    client = direct_client(ApiServer(), component="worker", clock=LoopClock())
    return Served(
        client=client,
        namespace="campus",
        who=Who("worker", "worker-1", "uid-1"),
        template_digest=DIGEST,
        secrets=SecretReader(client, namespace="campus"),
    )


def test_each_plane_gets_its_room_and_the_network_plane_its_journal(tmp_path: Path, served: Served):
    node = settings(tmp_path, plane="node")
    with journal_of(node) as none:
        assert isinstance(make_room(served, node, none), NodeRoom)
    assert not (tmp_path / "journal").exists()
    network = settings(tmp_path, image_source_allow=("10.0.0.0/8",), unsaved_configuration="warn")
    with journal_of(network) as journal:
        room = make_room(served, network, journal)
        assert isinstance(room, NetworkRoom)
        assert room._executor is not None
        equipment = room._equipment
        assert (equipment.lease_namespace, equipment.allow, equipment.unsaved_blocks) == (
            "campus",
            ("10.0.0.0/8",),
            False,
        )
    with journal_of(network) as again:
        assert journal is not None
        assert again is not None
        assert again.id == journal.id, "the journal outlives its worker"


def test_read_only_has_no_executor(tmp_path: Path, served: Served):
    read_only = settings(tmp_path, read_only=True)
    with journal_of(read_only) as journal:
        room = make_room(served, read_only, journal)
        assert isinstance(room, NetworkRoom)
        assert room._executor is None


def test_the_intervals_are_those_of_the_command_line(tmp_path: Path):
    found = intervals_of(settings(tmp_path, worker_poll=1.0, heartbeat_interval=2.0, start_spread=0.0))
    assert (found.worker_poll_s, found.heartbeat_s, found.spread_s, found.preflight_s) == (1.0, 2.0, 0.0, 3600.0)


def test_identifiers_are_new_each_time():
    assert len({new_uuid() for _ in range(20)}) == 20


class _Place:
    def __init__(self, problem: str | None) -> None:
        self.material = None if problem is None else type("Material", (), {"problem": problem})()


class _Room:
    is_ready = True
    places = (_Place(""), _Place(""), _Place("no host key"), _Place(None))


def test_the_metrics_count_devices_by_state_and_name_none(tmp_path: Path):
    metrics, room = DeviceMetrics(), _Room()
    metrics.count("sample", True)
    metrics.count("sample", False)
    _count(room, metrics)  # type: ignore[arg-type]
    lines = metrics.render().decode().splitlines()
    assert 'gitops_ctl_device_worker_devices{state="loaded"} 2.0' in lines
    assert 'gitops_ctl_device_worker_devices{state="unusable"} 1.0' in lines
    assert 'gitops_ctl_device_worker_devices{state="unseen"} 1.0' in lines
    assert 'gitops_ctl_device_worker_looks_total{duty="sample",result="failure"} 1.0' in lines
    assert set(_apps(settings(tmp_path), room, metrics)) == {"health"}  # type: ignore[arg-type]

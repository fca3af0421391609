"""Nodes without machines: a Deployment becomes available on them, and a Node of somebody else is left alone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.controlplane import Options
from gitops_ctl.local.kwok import Kwok, find_kwok
from gitops_ctl.local.progress import stderr_progress
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.supervisor import Job, start_supervisor, stop_supervisor
from tests.support.cluster import ControlPlaneHandle
from tests.support.processes import processes_of, until

pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope="session")
def kwok() -> Kwok:
    """The program and its stages."""
    return asyncio.run(find_kwok(progress=stderr_progress()))


@pytest.fixture
def system(control_plane: ControlPlaneHandle, kwok: Kwok, tmp_path: Path) -> Iterator[ControlPlaneHandle]:
    """A control plane of its own with two simulated nodes: Nodes are shared by all tests of a server."""

    async def start() -> ControlPlaneHandle:
        job = Job(tmp_path / "system", control_plane.binaries, Options(durable=False, nodes=2, audit=True), kwok=kwok)
        state = await start_supervisor(job, clock=SystemClock())
        return ControlPlaneHandle(SystemFolder(tmp_path / "system"), state, control_plane.binaries)

    handle = asyncio.run(start())
    yield handle
    asyncio.run(stop_supervisor(handle.folder))
    assert processes_of(str(tmp_path / "system")) == []


def test_a_deployment_becomes_available_and_a_foreign_node_is_left_alone(system: ControlPlaneHandle) -> None:
    foreign = {"metadata": {"name": "switch-1"}, "spec": {"unschedulable": True}}
    assert system.request("POST", "/api/v1/nodes", foreign).status == 201
    until(lambda: _conditions(system, "/api/v1/nodes/node-1").get("Ready") == "True")

    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "example.net/web:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
    path = "/apis/apps/v1/namespaces/default/deployments"
    assert system.request("POST", path, {"metadata": {"name": "web"}, "spec": spec}).status == 201
    until(lambda: _conditions(system, f"{path}/web").get("Available") == "True", timeout_s=60)

    assert _conditions(system, "/api/v1/nodes/switch-1").get("Ready") != "True"


def _conditions(system: ControlPlaneHandle, path: str) -> dict[str, str]:
    body: dict[str, Any] = system.request("GET", path).body
    return {entry["type"]: entry["status"] for entry in body.get("status", {}).get("conditions", [])}

"""Proposals on a real API server: what people see and type (forges.md, section 3.1)."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from tests.support.cli import run_cli
from tests.support.git_keys import SshKey
from tests.support.proposal_room import Tenant, tenant
from tests.support.sync_cluster import until

pytestmark = pytest.mark.cluster


@pytest.fixture
async def lab(control_plane: Any, kube_admin: KubeClient, namespace: str, tmp_path: Path) -> AsyncIterator[Tenant]:
    async with AsyncExitStack() as stack:
        config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
        manager = await stack.enter_async_context(KubeClient(config, component="proposal-tests"))
        key = SshKey.generate(tmp_path / "keys")
        yield await stack.enter_async_context(tenant(kube_admin, manager, namespace, tmp_path, key=key))


async def test_a_person_sees_phase_number_and_reason_and_asks_again_on_the_command_line(
    lab: Tenant, control_plane: Any
):
    await lab.ask()
    await lab.until_reason("Open")
    command = [
        str(control_plane.kubectl),
        f"--kubeconfig={control_plane.kubeconfig}",
        "-n",
        lab.namespace,
        "get",
        "proposals",
    ]
    shown = (
        await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=30)
    ).stdout
    header, row = shown.splitlines()
    assert header.split() == ["NAME", "PHASE", "NUMBER", "REASON", "PURPOSE", "AGE"]
    assert row.split()[:5] == ["site-1-cni", "Open", "1", "Open", "cni/site-1/replaced"]
    lab.forge.closed_by_person(1)
    lab.wake()
    await lab.until_reason("DeclinedByHuman")
    done = await run_cli(
        "propose", "reopen", "site-1-cni", "--namespace", lab.namespace, kubeconfig=control_plane.kubeconfig
    )
    assert done.code == 0, done.err
    assert "Open: pull request 1 is open" in done.out
    missing = await run_cli(
        "propose", "reopen", "no-such", "--namespace", lab.namespace, kubeconfig=control_plane.kubeconfig
    )
    assert missing.code == 1
    assert "GC2006" in missing.err


async def test_a_killed_manager_and_its_successor_make_one_pull_request_on_a_real_server(lab: Tenant):
    await lab.ask()
    await until(lambda: lab.git.pushes)
    await lab.kill()
    await lab.start()
    await lab.until_reason("Open")
    assert len(lab.forge.pulls) == len(lab.git.pushes) == 1
    await lab.admin.delete(lab.path("proposals", "site-1-cni"))

    async def gone() -> bool:
        return await lab.get() is None

    await until(gone, what="the object goes")
    assert lab.forge.open() == []

"""Leadership with real processes and a real API server, with durations scaled to a fifth.

In scope: a process that is stopped and wakes up, a server that stalls.  Tested elsewhere: everything that a simulated clock can show
(tests/unit/kube/test_lease.py).
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.lease import Leader, LeadershipLost
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_leader_process import TIMING
from tests.support.kube_proxy import holding_proxy

pytestmark = pytest.mark.cluster


@asynccontextmanager
async def running(leader: Leader) -> AsyncIterator[Leader]:
    task = asyncio.create_task(leader.run())
    try:
        yield leader
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def candidate(client: KubeClient, namespace: str, identity: str) -> Leader:
    return Leader(client, namespace=namespace, name="manager", identity=identity, timing=TIMING)


async def test_H13_a_leader_that_is_stopped_and_resumed_writes_nothing_and_exits(
    control_plane: Any, kube_admin: KubeClient, namespace: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.kube_leader_process",
        str(control_plane.kubeconfig),
        namespace,
        "first",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    async def said() -> str:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        return line.decode().strip()

    try:
        assert await said() == "leading"
        process.stdin.write(b"write\n")
        assert await said() == "wrote"
        written = await kube_admin.get(f"/api/v1/namespaces/{namespace}/configmaps/journal")
        os.kill(process.pid, signal.SIGSTOP)
        async with running(candidate(kube_admin, namespace, "second")) as second:
            await asyncio.wait_for(second.leading.wait(), 30)
            process.stdin.write(b"write\n")
            os.kill(process.pid, signal.SIGCONT)
            left = await asyncio.wait_for(process.stdout.read(), 30)
            second.require()
        heard = left.decode().split()
        assert "wrote" not in heard
        assert heard[-1] == "lost"
        assert await process.wait() == 0
        journal = await kube_admin.get(f"/api/v1/namespaces/{namespace}/configmaps/journal")
        assert journal == written
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_H12_a_stalled_server_ends_leadership_before_another_can_lead(
    control_plane: Any, kube_admin: KubeClient, namespace: str
) -> None:
    address = urlsplit(control_plane.url)
    assert address.port is not None
    config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
    moments: dict[str, float] = {}

    async def note(name: str, event: asyncio.Event) -> None:
        await event.wait()
        moments[name] = kube_admin.clock.boot_s()

    async with holding_proxy("127.0.0.1", address.port) as proxy:
        behind = replace(config, host=f"https://127.0.0.1:{proxy.port}")
        async with KubeClient(behind, component="first") as client, running(candidate(client, namespace, "a")) as first:
            await asyncio.wait_for(first.leading.wait(), 30)
            async with running(candidate(kube_admin, namespace, "b")) as second:
                proxy.open.clear()
                await asyncio.wait_for(asyncio.gather(note("lost", first.lost), note("taken", second.leading)), 30)
                with pytest.raises(LeadershipLost):
                    first.require()
                second.require()
                proxy.open.set()
    assert moments["lost"] < moments["taken"]

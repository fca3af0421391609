"""The main line of a Sync on a real server: apply, unchanged passes, restart, drift, prune, deletion."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from tests.support.sync_cluster import Bench, bench, until

pytestmark = pytest.mark.cluster


@pytest.fixture
async def site(control_plane: Any, kube_admin: KubeClient, namespace: str, tmp_path: Path) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
        manager = await stack.enter_async_context(KubeClient(config, component="sync-tests"))
        yield await stack.enter_async_context(bench(kube_admin, manager, namespace, tmp_path))


def writes(site: Bench) -> int:
    return sum(count for (verb, _), count in site.manager.calls.items() if verb in WRITE_VERBS)


async def test_a_commit_becomes_objects_and_a_status(site: Bench) -> None:
    commit = site.push(site.config_maps(3))
    await site.sync()
    status = await site.until_ready()
    assert status["lastAppliedRevision"] == commit
    assert status["counts"]["objects"] == 3
    assert (await site.get("configmaps", "n0001"))["data"] == {"key": "1"}
    entries = await site.inventory()
    assert [entry["name"] for entry in entries] == ["n0000", "n0001", "n0002"]
    assert all(entry["uid"] and entry["declaredDigest"] and entry["appliedDigest"] for entry in entries)

"""The store of a real API server goes back to a backup while the room runs: nothing is removed for that, everything comes again.

In scope: H17 with etcd and kube-apiserver of its own.  The same against the double is in tests/unit/sync/test_crash.py.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.local.controlplane import ControlPlane, Options
from tests.support.cluster import ControlPlaneHandle
from tests.support.sync_cluster import TIMING, Bench, bench, until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TENANT = "lab"
PRUNE = {"enabled": True, "maxPercent": 100}


@pytest.fixture
async def plane(control_plane: ControlPlaneHandle, tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """A control plane that this test may stop, on the programs of the shared one."""
    options = Options(durable=False, controllers=False)
    made = ControlPlane(control_plane.binaries, tmp_path / "plane", options=options)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.fixture
async def site(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        config = await load_cluster(plane.folder.admin_kubeconfig, allow_exec=False)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="sync-tests"))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": TENANT}})
        yield await stack.enter_async_context(bench(admin, manager, TENANT, tmp_path))


async def managed(site: Bench) -> dict[str, tuple[str, str]]:
    """UID and value of each managed object by name."""
    page: Any = await site.admin.list_all(site.path("configmaps"), label_selector="gitops-ctl.dev/owner")
    return {item["metadata"]["name"]: (item["metadata"]["uid"], item["data"]["key"]) for item in page.items}


async def test_H17_a_store_that_goes_back_to_a_backup_is_brought_up_to_date_and_loses_nothing(
    plane: ControlPlane, site: Bench, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    site.push(site.config_maps(30))
    # The restored server accepts the newer version of our watches and says nothing; silence ends in a full list.
    await site.restart(timing=replace(TIMING, idle_s=4.0, healthy_s=1.0))
    await site.sync(prune=PRUNE)
    await site.until_ready()
    await site.until_idle()
    before = await managed(site)
    await plane.stop()
    shutil.copytree(plane.folder.etcd, backup)
    await plane.start()
    later = {f"n{number:04}.yaml": site.config_map(f"n{number:04}") for number in range(30, 40)}
    site.push({**later, "n0000.yaml": site.config_map("n0000", "2")}, delete=["n0001.yaml"])
    await site.until_ready(timeout_s=90)
    await site.until_idle()
    assert len(await managed(site)) == 39
    await plane.stop()
    shutil.rmtree(plane.folder.etcd)
    shutil.copytree(backup, plane.folder.etcd)
    site.manager.calls.clear()
    await plane.start()

    async def restored() -> bool:
        found = await managed(site)
        return len(found) == 39 and found["n0000"][1] == "2" and "n0001" not in found

    await until(restored, timeout_s=90, what="everything is as Git says")
    await site.until_ready(timeout_s=90)
    await site.until_idle()
    after = await managed(site)
    assert {name: uid for name, (uid, _) in after.items() if name in before} == {
        name: uid for name, (uid, _) in before.items() if name != "n0001"
    }
    assert site.manager.calls["delete", "configmaps"] == 1
    assert len(await site.inventory()) == 39

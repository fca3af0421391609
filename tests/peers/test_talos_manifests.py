"""The manifest controller and the manifest sync of the stand-in, against a real API server (cni-switch.md, 8.1, 8.3 and 8.4)."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.talos.machineconfig import edited
from gitops_ctl.talos.manifests import FIELD_MANAGER, INVENTORY_NAME, OWNING_INVENTORY, with_inventory
from tests.support.cluster import ControlPlaneHandle
from tests.support.talos_bench import IMAGE, MachineBench, machine_bench
from tests.support.talos_configs import machine_config
from tests.support.talos_peer import ROOT
from tests.support.talos_turn import kube_proxy_turn

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

DAEMON_SET = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
ACCOUNT = "/api/v1/namespaces/kube-system/serviceaccounts/kube-proxy"
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-proxy"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
INVENTORY = f"{CONFIG_MAPS}/{INVENTORY_NAME}"
BASE = machine_config(form="document", image=IMAGE)
WANTED = edited(BASE, mode="replaced", contract="v1.14", role="controlplane")


class Objects:
    """kube-proxy in the cluster."""

    def __init__(self, plane: ControlPlaneHandle) -> None:
        self._plane = plane

    def live(self, path: str) -> dict[str, Any] | None:
        found = self._plane.request("GET", path)
        return found.body if found.status == 200 else None

    def config_maps(self) -> list[str]:
        listed = self._plane.request("GET", CONFIG_MAPS).body["items"]
        return sorted(one["metadata"]["name"] for one in listed if one["metadata"]["name"].startswith("kube-proxy"))

    def entries(self) -> set[str]:
        return set((self.live(INVENTORY) or {}).get("data") or {})

    def delete_all(self) -> None:
        for path in (DAEMON_SET, ACCOUNT, BINDING, *(f"{CONFIG_MAPS}/{name}" for name in self.config_maps())):
            self._plane.request("DELETE", path, {"propagationPolicy": "Background"})

    def apply(self, path: str, tree: Any) -> None:
        query = f"{path}?fieldManager={FIELD_MANAGER}"
        done = self._plane.request("PATCH", query, tree, content_type="application/apply-patch+yaml")
        assert done.status in {200, 201}, done.body


async def eventually(condition: Callable[[], object], *, what: str) -> None:
    deadline = time.monotonic() + 30
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"not within 30 s: {what}"
        await asyncio.sleep(0.1)


@pytest.fixture
def objects(control_plane: ControlPlaneHandle) -> Iterator[Objects]:
    found = Objects(control_plane)
    with kube_proxy_turn(control_plane):
        yield found
        found.delete_all()
        control_plane.request("DELETE", INVENTORY)


@pytest.fixture
def bench(tmp_path: Path, control_plane: ControlPlaneHandle, objects: Objects) -> Iterator[MachineBench]:
    yield from machine_bench(tmp_path, config=BASE, kubeconfig=control_plane.kubeconfig)


def manifest_sync(bench: MachineBench, plane: ControlPlaneHandle, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.peers.talos.sync", f"--state={bench.machine.state_file}"]
    command += [f"--kubeconfig={plane.kubeconfig}", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


async def switched(bench: MachineBench, config: bytes) -> None:
    async with bench.client() as client:
        await client.apply_configuration(config, dry_run=False)


async def test_it_creates_what_it_renders_and_keeps_an_inventory(bench: MachineBench, objects: Objects):
    await eventually(lambda: objects.live(DAEMON_SET), what="the DaemonSet")
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    assert {one for one in objects.entries() if "ConfigMap" not in one} == {
        "kube-system_kube-proxy_apps_DaemonSet",
        "kube-system_kube-proxy__ServiceAccount",
        "_kube-proxy_rbac.authorization.k8s.io_ClusterRoleBinding",
    }
    live = objects.live(DAEMON_SET)
    assert live is not None
    assert live["metadata"]["annotations"][OWNING_INVENTORY] == INVENTORY_NAME
    assert [one["manager"] for one in live["metadata"]["managedFields"] if one["operation"] == "Apply"] == ["talos"]
    assert len(objects.config_maps()) == 1


async def test_disabling_never_deletes(bench: MachineBench, objects: Objects):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    before = objects.live(DAEMON_SET)
    await switched(bench, WANTED)
    await eventually(lambda: bench.machine.state()["manifests_applied"] == [], what="a run without kube-proxy")
    after = objects.live(DAEMON_SET)
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] == after["metadata"]["uid"]


async def test_what_was_deleted_stays_away_as_long_as_the_inventory_lists_it(bench: MachineBench, objects: Objects):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    await switched(bench, WANTED)
    objects.delete_all()
    await switched(bench, BASE)
    await eventually(
        lambda: bench.machine.state()["manifests_applied"] == ["10-kube-proxy"], what="a run with kube-proxy"
    )
    assert objects.live(DAEMON_SET) is None
    assert objects.live(ACCOUNT) is None


async def test_restored_objects_are_accepted_by_the_next_sync(
    bench: MachineBench, objects: Objects, control_plane: ControlPlaneHandle
):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    objects.delete_all()
    async with bench.client() as client:
        rendered = await client.kube_proxy_manifests()
    assert rendered is not None
    for tree in rendered:
        name, kind = text_at(tree, "metadata", "name"), text_at(tree, "kind")
        paths = {"DaemonSet": DAEMON_SET, "ServiceAccount": ACCOUNT, "ClusterRoleBinding": BINDING}
        objects.apply(paths.get(kind, f"{CONFIG_MAPS}/{name}"), with_inventory(tree))
    done = manifest_sync(bench, control_plane, "--inventory-policy=MustMatch")
    assert done.returncode == 0, done.stderr
    live = objects.live(DAEMON_SET)
    assert live is not None
    assert object_at(live, "spec", "updateStrategy", "rollingUpdate")["maxUnavailable"] == 1


async def test_a_sync_refuses_objects_without_the_annotation(
    bench: MachineBench, objects: Objects, control_plane: ControlPlaneHandle
):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    objects.delete_all()
    objects.apply(ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy"}})
    done = manifest_sync(bench, control_plane, "--inventory-policy=MustMatch")
    assert done.returncode != 0
    assert "inventory policy MustMatch prevents the apply" in done.stderr


async def test_a_sync_prunes_what_is_no_longer_rendered_and_then_the_controller_creates_it_again(
    bench: MachineBench, objects: Objects, control_plane: ControlPlaneHandle
):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    await switched(bench, WANTED)
    assert manifest_sync(bench, control_plane, "--no-prune").returncode == 0
    assert objects.live(DAEMON_SET) is not None
    assert manifest_sync(bench, control_plane).returncode == 0
    assert objects.entries() == set()
    await eventually(lambda: objects.live(DAEMON_SET) is None, what="the DaemonSet to be gone")
    await switched(bench, BASE)
    await eventually(lambda: objects.live(DAEMON_SET), what="the DaemonSet again")


async def test_an_object_that_exists_is_taken_into_the_inventory_unchanged(
    tmp_path: Path, objects: Objects, control_plane: ControlPlaneHandle
):
    objects.apply(ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy"}})
    before = objects.live(ACCOUNT)
    for bench in machine_bench(tmp_path, config=BASE, kubeconfig=control_plane.kubeconfig):
        assert bench.machine.name
        await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
        assert objects.live(ACCOUNT) == before


async def test_manifests_that_are_rendered_late_are_created_late(bench: MachineBench, objects: Objects):
    await eventually(lambda: len(objects.entries()) == 4, what="the inventory")
    await switched(bench, WANTED)
    bench.machine.stage(manifests_late_s=1.0)
    await switched(bench, BASE)
    async with bench.client() as client:
        assert await client.bootstrap_proxy_enabled() is True
        assert await client.kube_proxy_manifests() is None
        async with asyncio.timeout(20):
            while await client.kube_proxy_manifests() is None:
                await asyncio.sleep(0.1)

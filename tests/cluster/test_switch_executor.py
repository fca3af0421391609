"""The switch executor on a real API server, with a model of the cluster worker: applied statuses, two writers, the lock, both directions."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.api.names import FIELD_MANAGER_CNI
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.support.switch_live import Live
from tests.support.switch_plane import CLUSTER, Plane, make_plane
from tests.support.sync_cluster import install_crds, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


def live_of(plane: Plane) -> Live:
    assert plane.live is not None
    return plane.live


@pytest.fixture
async def plane(request: pytest.FixtureRequest, kube_admin: KubeClient, namespace: str) -> AsyncIterator[Plane]:
    await install_crds(kube_admin)
    made = await make_plane(kube_admin, namespace, getattr(request, "param", "replaced"))
    yield made
    await made.kill()


@pytest.mark.parametrize("plane", ["replaced"], indirect=True)
async def test_both_directions_on_a_real_server_end_with_the_lock_freed(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    waiting = await plane.reached("AwaitingCNIChange")
    [proposal] = await until(lambda: plane.listed("proposals", group="gitops-ctl.dev"))
    assert proposal["spec"]["reason"] == "cni/north/replaced"
    assert proposal["metadata"]["ownerReferences"][0]["uid"] == waiting["metadata"]["uid"]
    live_of(plane).now = SystemClock().wall()
    live_of(plane).change_cni("true")
    done = await plane.reached("Succeeded")
    assert live_of(plane).broken == []
    assert {row["state"] for row in done["status"]["machines"]} == {"Done"}
    await plane.commit(target="enabled", consent="b" * 40)
    await plane.reached("AwaitingCNIChange", count=2)
    live_of(plane).now = SystemClock().wall()
    live_of(plane).change_cni("false")
    await plane.reached("Succeeded", count=2)

    async def freed() -> Any:
        cluster = await plane.client.get(plane.path("talosclusters", CLUSTER))
        return cluster if "lock" not in cluster["status"] else None  # type: ignore[operator]

    cluster = await until(freed)
    assert cluster["status"]["cni"]["kubeProxy"] == "enabled"
    assert cluster["status"]["cni"]["consumedConsent"]["commit"] == "b" * 40
    assert ("Normal", "SwitchRequested") in plane.events
    assert live_of(plane).broken == []


async def test_executor_and_worker_own_different_members_of_one_status(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    waiting = await plane.reached("AwaitingCNIChange")
    by = {
        entry["manager"]: json.dumps(entry["fieldsV1"])
        for entry in waiting["metadata"]["managedFields"]
        if entry.get("subresource") == "status"
    }
    assert set(by) == {FIELD_MANAGER_CNI, "gitops-ctl-cni-worker"}
    assert 'f:observed"' not in by[FIELD_MANAGER_CNI]
    assert "f:phase" in by[FIELD_MANAGER_CNI]
    assert "f:phase" not in by["gitops-ctl-cni-worker"]


async def test_a_killed_executor_goes_on_where_it_was(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    await plane.reached("AwaitingCNIChange")
    live_of(plane).now = SystemClock().wall()
    live_of(plane).change_cni("true")
    await plane.reached("SwitchingMachines")
    await plane.kill()
    plane.revisions = AcceptedRevisions()
    await plane.start()
    plane.publish()
    await plane.reached("Succeeded")
    assert live_of(plane).broken == []
    assert len(live_of(plane).effects) == len(set(live_of(plane).effects))


async def test_a_switch_that_waits_writes_nothing(plane: Plane) -> None:
    await plane.start()
    await plane.commit()
    await plane.reached("AwaitingCNIChange")

    async def versions() -> list[str]:
        found = [
            *await plane.listed("talosoperations"),
            *await plane.listed("talosclusters"),
            *await plane.listed("talosmachines"),
        ]
        return [one["metadata"]["resourceVersion"] for one in found]

    async def quiet() -> bool:
        before = await versions()
        await asyncio.sleep(1.5)
        return before == await versions()

    assert await until(quiet)
    assert plane.room is not None
    plane.room.queue.add(NamespacedName(plane.namespace, CLUSTER))
    before = await versions()
    await asyncio.sleep(1.5)
    assert await versions() == before


async def test_a_consent_that_was_written_with_kubectl_starts_nothing_and_is_reported(plane: Plane) -> None:
    await plane.commit(target="enabled", annotated=False)
    patch = {
        "metadata": {"annotations": {"ichor.maesh.dev/confirm-kube-proxy-switch": "replaced"}},
        "spec": {"cni": {"kubeProxy": "replaced"}},
    }
    await plane.client.patch_merge(plane.path("talosclusters", CLUSTER), patch)
    await plane.start()

    async def reported() -> Any:
        cluster = await plane.client.get(plane.path("talosclusters", CLUSTER))
        return [one for one in cluster.get("status", {}).get("conditions", []) if one["reason"] == "NotFromGit"]  # type: ignore[union-attr,index]

    assert await until(reported)
    assert await plane.listed("talosoperations") == []
    assert ("Warning", "NotFromGit") in plane.events

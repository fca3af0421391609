"""Executor and cluster worker together on real components: a target cluster, Talos peers, and the worker under its shipped rights.

Three control planes and two workers, there and back; the last machine is a worker; the Service check is real (cni-switch.md, section 21).
"""

import asyncio
from typing import Any

import pytest

from gitops_ctl.core.conditions import condition_of
from gitops_ctl.local.targetcluster import CONTROL_PLANES, WORKERS
from tests.support.switch_plane import Plane
from tests.support.switch_simulation import Git
from tests.support.sync_cluster import until
from tests.support.target_cluster import APPS, CLUSTER, SYSTEM, TargetWorld, kwok, peers, target_plane, target_world

__all__ = ["kwok", "peers", "target_plane", "target_world"]
pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]

MORE = {"talosconfigSecretRef": {"name": "north-talos"}, "kubeconfigSecretRef": {"name": "north-kube"}}


async def switched(plane: Plane, world: TargetWorld, target: str, *, consent: str, count: int) -> Any:
    """One direction, with whoever owns Cilium doing what is asked; the finished operation."""
    await plane.commit(target=target, consent=consent, annotated=True)
    await plane.reached("AwaitingCNIChange", count=count, timeout_s=240)
    asked = f"set kubeProxyReplacement: {str(target == 'replaced').lower()}"

    async def says() -> bool:
        return asked in condition_of((await plane.operation())["status"], "AwaitingCNIChange")["message"]  # type: ignore[index,operator]

    await until(says, timeout_s=60, what=asked)
    await world.cilium(target == "replaced")
    return await plane.reached("Succeeded", count=count, timeout_s=300)


async def test_there_and_back_on_real_components(target_world: TargetWorld) -> None:
    world = target_world
    git = Git("enabled", annotated=False, namespace=world.namespace, more=MORE)
    plane = Plane(world.own, world.namespace, git)
    await plane.commit()
    await plane.own()
    world.start_worker()
    await plane.start()
    try:
        done = await switched(plane, world, "replaced", consent="a" * 40, count=1)
        status = done["status"]
        assert {row["state"] for row in status["machines"]} == {"Done"}
        order = [one["id"].split("/")[2].split("#")[0] for one in status["claims"]]
        assert order[:3] == list(CONTROL_PLANES)
        assert order[-1] == CLUSTER, "the removal comes last"
        assert await world.admin.find(f"{APPS}/daemonsets/kube-proxy") is None
        assert {one["kind"] for one in status["removed"]} >= {"DaemonSet", "ServiceAccount", "ClusterRoleBinding"}
        names = [one["metadata"]["name"] for one in (await world.admin.list_all(f"{SYSTEM}/configmaps")).items]  # type: ignore[index,call-overload]
        assert not [name for name in names if str(name).startswith("kube-proxy")]
        back = await switched(plane, world, "enabled", consent="b" * 40, count=2)
        assert {row["state"] for row in back["status"]["machines"]} == {"Done"}
        await world.until_serves("kube-proxy")
        cluster: Any = await plane.client.get(plane.path("talosclusters", CLUSTER))
        assert cluster["status"]["cni"]["kubeProxy"] == "enabled"
        assert len(world.machines) == len(CONTROL_PLANES) + len(WORKERS)
    finally:
        await plane.kill()


async def test_a_kill_of_both_processes_in_the_middle_changes_nothing_in_the_end(target_world: TargetWorld) -> None:
    world = target_world
    git = Git("enabled", annotated=False, namespace=world.namespace, more=MORE)
    plane = Plane(world.own, world.namespace, git)
    await plane.commit()
    await plane.own()
    worker = world.start_worker()
    await plane.start()
    try:
        await plane.commit(target="replaced", consent="c" * 40, annotated=True)
        await plane.reached("AwaitingCNIChange", timeout_s=240)
        await world.cilium(True)

        async def claimed() -> bool:
            return len((await plane.operation())["status"].get("claims", ())) >= 2

        await until(claimed, timeout_s=240)
        worker.kill()
        await plane.kill()
        await asyncio.sleep(0)
        # Where the claim was written and the apply not sent, the time of an apply passes before anybody goes on: no need to look all along.
        world.start_worker("--observation-interval=3")
        await plane.start()
        plane.publish()
        done = await plane.reached("Succeeded", timeout_s=300)
        ids = [one["id"] for one in done["status"]["claims"]]
        assert len(ids) == len(set(ids))
        assert {row["state"] for row in done["status"]["machines"]} == {"Done"}
        assert await world.admin.find(f"{APPS}/daemonsets/kube-proxy") is None
    finally:
        await plane.kill()

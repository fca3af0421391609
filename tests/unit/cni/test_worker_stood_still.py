"""A worker that stood still after its claim does nothing more: others may have settled the claim (cni-switch.md, section 2.1)."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.reading import operation_of
from tests.support.target_cluster_fakes import OPERATION_PATH, WorkerWorld, manifests, path_of

REMOVE = {"id": "replaced/6-remove/north#1", "action": "remove-kube-proxy", "mode": "replaced"}
RESTORE = {"id": "enabled/4-verify/north#1", "action": "restore-kube-proxy", "mode": "enabled"}
BASELINE = {"checksum": "old", "generation": 1, "at": "2026-01-01T00:00:00Z"}
OURS = [tree for tree in manifests() if tree["metadata"]["name"] != "kubeconfig-in-cluster"]  # type: ignore[index,call-overload]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkerWorld]:
    async with WorkerWorld(tmp_path) as made:
        yield made


def stand_still(world: WorkerWorld, seconds: float) -> None:
    world.clock.now_s += seconds


def once_after_the_claim(world: WorkerWorld, act: Callable[[], None]) -> None:
    """Do something at the moment at which the claim is stored and its worker does not know it yet."""

    def point(call: Any, side: str) -> None:
        if call.method == "PATCH" and side == "after" and b'"claims"' in (call.body or b""):
            world.point = lambda call, side: None
            act()

    world.point = point


async def performed(world: WorkerWorld) -> Any:
    operation = operation_of(world.send(world.own_api, "GET", OPERATION_PATH))
    assert operation is not None
    request = operation.state.requests[0]
    await world.effects().perform(request)
    return world.receipt(request.id)


async def test_a_machine_is_not_changed_by_a_worker_that_stood_still_after_its_claim(world: WorkerWorld) -> None:
    world.operation(world.apply_request("cp-1"))
    once_after_the_claim(world, lambda: stand_still(world, 20))
    receipt = await performed(world)
    assert receipt["message"].startswith("ClaimStale: ")
    assert (receipt["result"], world.machines["cp-1"].applies) == ("Refused", 0)


async def test_a_machine_is_changed_while_the_claim_is_fresh(world: WorkerWorld) -> None:
    world.operation(world.apply_request("cp-1"))
    once_after_the_claim(world, lambda: stand_still(world, 10))
    assert (await performed(world))["result"] == "Done"
    assert world.machines["cp-1"].applies == 1


async def test_kube_proxy_is_not_removed_by_a_worker_that_stood_still_after_its_claim(world: WorkerWorld) -> None:
    world.cilium()
    world.kube_proxy()
    world.operation(REMOVE, baseline=BASELINE)
    once_after_the_claim(world, lambda: stand_still(world, 3600))
    receipt = await performed(world)
    assert receipt["result"] == "Refused"
    assert "stood still" in receipt["message"]
    assert all(world.there(path_of(tree)) for tree in OURS)


async def test_a_worker_that_stands_still_between_two_deletions_does_not_make_the_second(world: WorkerWorld) -> None:
    world.cilium()
    world.kube_proxy()
    world.operation(REMOVE, baseline=BASELINE)

    def still(call: Any, side: str) -> None:
        if call.method == "DELETE" and side == "after":
            stand_still(world, 3600)

    world.target_point = still
    receipt = await performed(world)
    assert receipt["result"] == "Unknown"
    assert [item["kind"] for item in world.stored()["removed"]] == ["DaemonSet"]
    assert [world.there(path_of(tree)) for tree in OURS].count(True) == len(OURS) - 1


async def test_nothing_is_restored_by_a_worker_that_stood_still_after_its_claim(world: WorkerWorld) -> None:
    world.operation(RESTORE, target="enabled")
    once_after_the_claim(world, lambda: stand_still(world, 60))
    receipt = await performed(world)
    assert receipt["result"] == "Refused"
    assert not any(world.there(path_of(tree)) for tree in OURS)


async def test_the_apply_of_another_worker_is_waited_for_until_it_cannot_begin_any_more(world: WorkerWorld) -> None:
    request = world.apply_request("cp-1")
    world.operation(request, claims=[{"id": request["id"], "worker": "worker-b", "at": "2026-01-01T00:00:00Z"}])
    began_s = world.clock.boot_s()
    assert (await performed(world))["message"].startswith("NotApplied: ")
    assert world.clock.boot_s() - began_s >= 60 + 15

"""A machine that does not answer between the last look and the claim: it is asked again for a while (cni-switch.md, sections 7.5 and 7.6)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.model import Request
from gitops_ctl.cni.reading import operation_of
from gitops_ctl.cni.worker.desk import Withdrawn
from tests.support.target_cluster_fakes import CLUSTER_PATH, OPERATION_PATH, WorkerWorld


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkerWorld]:
    """A worker that was asked to switch one machine."""
    async with WorkerWorld(tmp_path) as made:
        made.operation(made.apply_request("cp-1"))
        yield made


def request_in(world: WorkerWorld) -> Request:
    operation = operation_of(world.send(world.own_api, "GET", OPERATION_PATH))
    assert operation is not None
    return operation.state.requests[0]


async def performed(world: WorkerWorld) -> Any:
    """Carry out the request; its receipt."""
    request = request_in(world)
    await world.effects().perform(request)
    return world.receipt(request.id)


async def test_a_machine_that_stays_away_for_two_minutes_is_refused_without_a_claim(
    world: WorkerWorld,
) -> None:
    world.machines["cp-1"].unreachable = True
    assert (await performed(world))["message"].startswith("MachineUnreachable: ")
    assert world.claims() == []
    assert 120 <= sum(world.clock.slept) < 140


async def test_a_machine_that_is_away_for_a_moment_before_the_claim_is_asked_again(
    world: WorkerWorld,
) -> None:
    fake = world.machines["cp-1"]
    fake.unreachable = True
    world.point = lambda _call, _side: setattr(fake, "unreachable", not world.clock.slept)
    assert (await performed(world))["result"] == "Done"
    assert (fake.dry_runs, fake.applies, len(world.claims())) == (1, 1, 1)


async def test_a_machine_that_comes_back_is_not_touched_when_the_lock_went_meanwhile(
    world: WorkerWorld,
) -> None:
    world.machines["cp-1"].unreachable = True

    def taken(_call: Any, side: str) -> None:
        if world.clock.slept and side == "before":
            world.status(CLUSTER_PATH, {"lock": None})
            world.machines["cp-1"].unreachable = False

    world.point = taken
    assert (await performed(world))["message"].startswith("LockNotHeld: ")
    assert (world.claims(), world.machines["cp-1"].dry_runs) == ([], 0)


async def test_a_worker_that_ends_leaves_a_machine_that_is_away_to_the_next_one(world: WorkerWorld) -> None:
    world.machines["cp-1"].unreachable = world.is_ending = True
    with pytest.raises(Withdrawn):
        await world.effects().perform(request_in(world))
    assert (world.claims(), world.clock.slept) == ([], [])

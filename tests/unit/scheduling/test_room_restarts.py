"""The room may die before or after any write of a migration: the next one goes on, and nothing forbidden happens (topology-scheduling.md, 8.3)."""

from collections.abc import Callable
from functools import cache

import pytest

from gitops_ctl.kube.exchange import Call
from gitops_ctl.scheduling.options import Options
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.apiserver.direct import Side
from tests.support.scheduling_laws import Laws
from tests.support.scheduling_world import (
    FLAVORS,
    QUEUES,
    RACK,
    RACKED,
    REGION,
    TOPOLOGIES,
    ZONE,
    ZONED,
    World,
    flavor_name,
    hall,
    in_world,
)

OLD, NEW = flavor_name(ZONED), flavor_name(RACKED)
MOST_WRITES = 60


@cache
def served_hall() -> Snapshot:
    """A hall whose queue serves one admitted Workload; no manager runs."""
    found: list[Snapshot] = []

    async def story(world: World) -> None:
        await hall(world)
        await world.workload("w1", count=2)
        await world.until(lambda: world.reserved("w1"), what="the Workload is admitted")
        await world.clock.sleep(10.0)
        await world.stop()
        found.append(world.api.snapshot())

    in_world(story)
    return found[0]


async def racks(world: World) -> None:
    """The inventory knows racks from now on."""
    for number in (1, 2, 3, 4):
        await world.label(f"n{number}", rack=f"r{number}")
    await world.source(REGION, ZONE, RACK)


async def moved(world: World) -> None:
    """Wait until the new hierarchy serves, the Workload is back, and the old one has retired."""
    await world.until_serves({NEW: "16"})

    async def is_over() -> bool:
        retired = OLD not in await world.names(FLAVORS) and f"gpustack-{ZONED}" not in await world.names(TOPOLOGIES)
        return retired and await world.reserved("w1") == {"cpu": NEW}

    await world.until(is_over, what="the Workload is back, and the old hierarchy has retired")


def is_of_a_queue(call: Call) -> bool:
    return "/clusterqueues/" in call.path


def at_write(number: int, side: Side, *, queues_only: bool) -> Callable[[Call, Side], bool]:
    """Whether a process is to die now: at that write, of those to queues or of the others."""
    passed = 0

    def crash_at(call: Call, at: Side) -> bool:
        nonlocal passed
        if at != side or is_of_a_queue(call) is not queues_only:
            return False
        passed += 1
        return passed == number

    return crash_at


def dies_at(number: int, side: Side, *, queues_only: bool) -> bool:
    """One migration whose manager dies at that write; whether there was such a write."""
    died: list[bool] = []

    async def story(world: World) -> None:
        laws = Laws(world.api)
        before = await world.get(f"{QUEUES}/cpu")
        world.crash_at = at_write(number, side, queues_only=queues_only)
        await world.start()
        await racks(world)
        died.append(await world.crashed(timeout_s=150.0))
        await world.stop()
        world.crash_at = lambda _call, _side: False
        await world.start()
        await moved(world)
        after = await world.get(f"{QUEUES}/cpu")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert laws.broken == []
        assert [reason for reason, _, _ in world.warnings if reason != "DrainStuck"] == []

    in_world(story, base=served_hall())
    return died[0]


@pytest.mark.parametrize("side", ["before", "after"])
def test_it_dies_at_each_write_of_the_queue(side: Side) -> None:
    number = 1
    while dies_at(number, side, queues_only=True):
        number += 1
        assert number < MOST_WRITES
    assert number > 5


def test_it_dies_after_each_write_to_nodes_topologies_and_flavors() -> None:
    number = 1
    while dies_at(number, "after", queues_only=False):
        number += 1
        assert number < MOST_WRITES
    assert number > 7


def starts_a_queue(number: int) -> bool:
    """A new queue whose manager dies after that write; whether there was such a write."""
    died: list[bool] = []

    async def story(world: World) -> None:
        laws = Laws(world.api)
        world.crash_at = at_write(number, "after", queues_only=True)
        await world.start()
        await world.queue("second")
        died.append(await world.crashed(timeout_s=60.0))
        await world.stop()
        world.crash_at = lambda _call, _side: False
        await world.start()
        await world.until_serves({OLD: "16"}, "second")
        assert laws.broken == []

    in_world(story, base=served_hall())
    return died[0]


def test_it_dies_after_each_write_from_the_first_plan_to_the_release() -> None:
    number = 1
    while starts_a_queue(number):
        number += 1
        assert number < MOST_WRITES
    assert number > 3


def test_a_new_manager_that_takes_over_in_the_middle_goes_on() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        world.clings = True
        await world.start()
        await racks(world)

        async def is_draining() -> bool:
            return (await world.marks()).get("migration-phase") == "draining"

        await world.until(is_draining, what="the drain")
        await world.stop()
        world.clings = False
        await world.clock.sleep(30.0)
        await world.start()
        await moved(world)
        assert laws.broken == []

    in_world(story, base=served_hall())


def test_an_administrators_hold_survives_a_migration_and_a_restart() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": "Hold"}})
        await world.clock.sleep(10.0)
        await racks(world)

        async def is_switched() -> bool:
            return await world.quotas() == {NEW: "16"} and "migration-phase" not in await world.marks()

        await world.until(is_switched, what="the plan is switched")
        assert (await world.marks())["policy"] == "Hold"
        await world.stop()
        await world.start()
        await world.clock.sleep(60.0)
        assert (await world.marks())["policy"] == "Hold"

    in_world(story, base=served_hall())


def test_a_change_of_mind_in_the_middle_switches_to_the_newest_plan() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        world.clings = True
        await world.start(Options())
        await racks(world)

        async def is_draining() -> bool:
            return (await world.marks()).get("migration-phase") == "draining"

        await world.until(is_draining, what="the drain")
        await world.source(REGION)  # neither the old hierarchy nor the one that the drain began for
        await world.clock.sleep(30.0)
        world.clings = False

        async def is_newest() -> bool:
            quotas, marks = await world.quotas(), await world.marks()
            return set(quotas.values()) == {"16"} and not quotas.keys() & {OLD, NEW} and marks["policy"] == "None"

        await world.until(is_newest, what="the newest plan")
        assert laws.broken == []

    in_world(story, base=served_hall())

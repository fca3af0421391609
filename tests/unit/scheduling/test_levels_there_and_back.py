"""A level comes and goes again before the queue has followed (topology-scheduling.md, 7.3 and 8.1)."""

from tests.support.scheduling_world import (
    FLAVORS,
    RACK,
    RACKED,
    REGION,
    ZONE,
    ZONED,
    World,
    flavor_name,
    hall,
    in_world,
)


def test_a_flavor_that_is_needed_again_while_it_is_terminating_comes_back_by_a_drain() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await world.workload("busy", count=2)
        zoned = flavor_name(ZONED)

        async def runs() -> bool:
            return await world.reserved("busy") == {"cpu": zoned}

        await world.until(runs, what="the Workload runs")
        world.kueue.away = True  # so the queue cannot follow for now
        for number in (1, 2, 3, 4):
            await world.label(f"n{number}", rack=f"r{number}")
        await world.source(REGION, ZONE, RACK)

        async def is_leaving() -> bool:
            return "deletionTimestamp" in (await world.get(f"{FLAVORS}/{zoned}"))["metadata"]

        await world.until(is_leaving, what="the old flavor is terminating")
        await world.source(REGION, ZONE)
        await world.clock.sleep(60.0)
        world.kueue.away = False

        async def is_served_again() -> bool:
            marks = await world.marks()
            return await world.quotas() == {zoned: "16"} and marks["policy"] == "None" and await runs()

        await world.until(is_served_again, what="the queue serves by the flavor that came back")
        assert await world.names(FLAVORS) == {zoned}

    in_world(story)


def test_one_node_that_loses_a_level_and_gets_it_back_in_the_middle_of_a_drain_ends_where_it_began() -> None:
    """The flavor waits for the queue to drop it; the queue must not wait for the flavor."""

    async def story(world: World) -> None:
        await hall(world, REGION, ZONE, RACK)
        zoned, racked = flavor_name(ZONED), flavor_name(RACKED)
        await world.label("n4", rack="r4")
        both = {zoned: "12", racked: "4"}
        await world.until_serves(both)
        await world.workload("busy", count=1, required=RACK)

        async def runs() -> bool:
            return await world.reserved("busy") == {"cpu": racked}

        await world.until(runs, what="the Workload runs in the rack")
        world.clings = True
        await world.label("n4", rack=None)

        async def is_draining() -> bool:
            return (await world.marks()).get("migration-phase") == "draining"

        await world.until(is_draining, what="the drain")
        await world.label("n4", rack="r4")
        await world.clock.sleep(60.0)
        world.clings = False
        await world.until_serves(both)
        await world.until(runs, what="the Workload came back")

    in_world(story)

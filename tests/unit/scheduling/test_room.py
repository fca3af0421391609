"""The whole chain in one room: labels, profiles, Topologies, flavors and plans (topology-scheduling.md, 2, 6 and 7)."""

from tests.support.scheduling_world import (
    REGION,
    TOPOLOGIES,
    ZONE,
    ZONED,
    World,
    flavor_name,
    in_world,
)


async def hall(world: World) -> None:
    """Four Nodes in two zones, a source, a queue, and the room at work."""
    for number, zone in enumerate(("a", "a", "b", "b"), start=1):
        await world.node(f"n{number}", region="north", zone=zone)
    await world.source(REGION, ZONE)
    await world.queue()
    await world.start()
    await world.until_condition("True/Ready")


def test_labels_become_profiles_topologies_flavors_and_an_open_queue() -> None:
    async def story(world: World) -> None:
        await hall(world)

        async def is_open() -> bool:
            return (await world.marks())["policy"] == "None"

        await world.until(is_open, what="the queue is released")
        assert [await world.profile(f"n{number}") for number in (1, 2, 3, 4)] == [ZONED] * 4
        topology = await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}")
        assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == [REGION, ZONE, "kubernetes.io/hostname"]
        assert await world.quotas() == {flavor_name(ZONED): "16"}
        assert await world.marks() == {"policy": "None", "tas-queue": "true", "applied-stop-policy": "None"}
        assert world.warnings == []

    in_world(story)

"""Holds of all kinds, and plans that are refused or change in the middle of a migration (topology-scheduling.md, 8.1 and 8.2)."""

from gitops_ctl.kube.exchange import Call
from tests.doubles.apiserver.direct import Side
from tests.support.scheduling_laws import Laws
from tests.support.scheduling_world import (
    CPU,
    NODES,
    POOL,
    QUEUES,
    RACK,
    RACKED,
    REGION,
    ZONE,
    ZONED,
    Tree,
    World,
    flavor_name,
    hall,
    in_world,
)

OLD, NEW = flavor_name(ZONED), flavor_name(RACKED)


async def draining(world: World) -> None:
    """A hall with one Workload that keeps its reservation, in the middle of a drain."""
    await hall(world)
    await world.workload("w1", count=2)
    await world.until(lambda: world.reserved("w1"), what="the Workload is admitted")
    world.clings = True
    for number in (1, 2, 3, 4):
        await world.label(f"n{number}", rack=f"r{number}")
    await world.source(REGION, ZONE, RACK)

    async def is_draining() -> bool:
        return (await world.marks()).get("migration-phase") == "draining"

    await world.until(is_draining, what="the drain")


async def edit_policy(world: World, policy: str) -> None:
    await world.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": policy}})


def test_a_plan_that_is_refused_in_a_migration_keeps_the_hold_and_names_the_reason() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        await draining(world)
        await world.node("n9", region="north", zone="a", rack="r9")
        await world.admin.patch_merge(f"{NODES}/n9", {"metadata": {"labels": {f"{CPU}.count": "04"}}})
        await world.until_condition("False/NonConservedQuota: node n9")
        await edit_policy(world, "None")

        async def is_held() -> bool:
            return (await world.marks())["policy"] == "HoldAndDrain"

        await world.until(is_held, what="the hold is set again although there is no plan", timeout_s=40.0)
        world.clings = False
        await world.clock.sleep(90.0)
        assert await world.quotas() == {OLD: "16"}
        await world.admin.delete(f"{NODES}/n9")
        await world.until_serves({NEW: "16"})
        assert laws.broken == []

    in_world(story)


def test_nodes_that_are_not_settled_keep_a_migration_where_it_is() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        await draining(world)
        # Only the controller writes this label, so that a Node whose Topology is wrong can never get the next one.
        await world.put(topology_with_other_levels(REGION))
        await world.source(REGION)
        await world.clock.sleep(45.0)
        world.clings = False
        await world.clock.sleep(60.0)
        condition = await world.condition()
        assert condition.startswith("False/Migrating")
        assert "node n1 lacks topology.gpustack.ai/profile=" in condition
        assert await world.quotas() == {OLD: "16"}
        await world.source(REGION, ZONE, RACK)
        await world.until_serves({NEW: "16"})
        assert laws.broken == []

    in_world(story)


def topology_with_other_levels(level: str) -> Tree:
    """A Topology that has the name of one profile and the levels of another."""
    name = "gpustack-fnv64-a9ff05003f46798d"
    levels = [{"nodeLabel": "example.net/other"}, {"nodeLabel": level}]
    spec = {"levels": levels}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": name}, "spec": spec}


def test_a_newer_plan_after_the_switch_is_switched_to_before_anything_is_released() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        await draining(world)
        world.crash_at = after_the_switch
        world.clings = False
        assert await world.crashed()
        await world.stop()
        assert (await world.marks())["migration-phase"] == "switched"
        assert await world.quotas() == {NEW: "16"}
        await world.node("n5", region="north", zone="b", rack="r5")
        world.crash_at = lambda _call, _side: False
        await world.start()
        await world.until_serves({NEW: "20"})
        assert laws.broken == []

    in_world(story)


def after_the_switch(call: Call, side: Side) -> bool:
    return side == "after" and call.path == f"{QUEUES}/cpu" and b'"switched"' in (call.body or b"")


def test_a_queue_that_an_older_version_drained_opens_with_its_first_plan() -> None:
    async def story(world: World) -> None:
        old = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "cpu", "labels": POOL},
            "spec": {"namespaceSelector": {}, "stopPolicy": "HoldAndDrain"},
        }
        await world.put(old)
        await hall(world)
        await world.until_serves({OLD: "16"})

    in_world(story)


def test_policies_of_git_are_carried_out_while_the_pool_is_empty_and_the_queue_never_opens_without_groups() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        await world.queue()
        await world.start()
        await world.until_condition("True/Ready: the pool has no flavor")
        document = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "cpu", "labels": POOL},
            "spec": {"namespaceSelector": {}},
        }
        for wanted, held in (("Hold", "Hold"), ("HoldAndDrain", "HoldAndDrain"), ("None", "Hold")):
            await world.git({**document, "spec": {"namespaceSelector": {}, "stopPolicy": wanted}})

            async def is_carried_out(wanted: str = wanted, held: str = held) -> bool:
                marks = await world.marks()
                return (marks["policy"], marks.get("applied-stop-policy")) == (held, wanted)

            await world.until(is_carried_out, what=f"Git's {wanted}")
        assert "empty-plan-hold" in await world.marks()
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.until_serves({OLD: "4"})
        assert laws.broken == []

    in_world(story)


def test_an_administrators_hold_on_an_empty_queue_stays_when_the_first_plan_comes() -> None:
    async def story(world: World) -> None:
        by_hand = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "cpu", "labels": POOL},
            "spec": {"namespaceSelector": {}, "stopPolicy": "Hold"},
        }
        await world.put(by_hand)
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()

        async def is_planned() -> bool:
            return await world.quotas() == {OLD: "4"}

        await world.until(is_planned, what="the first plan")
        await world.clock.sleep(60.0)
        assert (await world.marks())["policy"] == "Hold"
        assert ("NotFromGit", "cpu") in {(reason, about) for reason, about, _ in world.warnings}

    in_world(story)


def foreign_queue() -> Tree:
    """A queue with our labels and groups that somebody else wrote."""
    foreign = {"coveredResources": ["cpu"], "flavors": [{"name": "x", "resources": [cpu("1")]}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "cpu", "labels": POOL},
        "spec": {"namespaceSelector": {}, "resourceGroups": [foreign]},
    }


def test_groups_of_somebody_else_are_refused_and_stay() -> None:
    async def story(world: World) -> None:
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.put(foreign_queue())
        await world.start()
        await world.until_condition("False/UnsupportedExistingObject")
        assert await world.quotas() == {"x": "1"}

    in_world(story)


def test_a_queue_with_groups_of_somebody_else_is_not_emptied_by_a_manager_that_starts_before_its_flavors() -> None:
    async def story(world: World) -> None:
        await world.put(foreign_queue())
        await world.start()
        await world.until_condition("False/UnsupportedExistingObject")
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.clock.sleep(120.0)
        assert await world.quotas() == {"x": "1"}
        assert (await world.marks())["policy"] == "None"

    in_world(story)


def cpu(quota: str) -> Tree:
    return {"name": "cpu", "nominalQuota": quota}

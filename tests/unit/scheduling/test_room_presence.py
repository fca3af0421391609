"""Kueue and Node Feature Discovery may be missing, come later, go, or be too old (topology-scheduling.md, 7, D17)."""

import copy
from collections import Counter
from typing import Any

from gitops_ctl.cli.measure import measure_scheduling
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.telemetry.metrics import Metrics
from tests.doubles.peer_crds import kueue_crds, nfd_crds
from tests.support.scheduling_world import (
    CRDS,
    QUEUES,
    REGION,
    SOURCES,
    TOPOLOGIES,
    ZONE,
    ZONED,
    World,
    flavor_name,
    hall,
    in_world,
)

KUEUE_KINDS = {"topologies", "resourceflavors", "clusterqueues", "admissionchecks"}


async def state(world: World) -> dict[str, str]:
    """What the room says of its peers."""
    assert world.room is not None
    return {"kueue": world.room.caches.kueue.state, "nfd": world.room.caches.nfd.state}


def test_without_kueue_sources_are_judged_and_everything_else_waits() -> None:
    async def story(world: World) -> None:
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()
        await world.clock.sleep(30.0)
        tree = await world.get(f"{SOURCES}/hall")
        assert {each["type"]: each["status"] for each in tree["status"]["conditions"]}["Ready"] == "True"
        assert await world.profile("n1") == ""
        assert await state(world) == {"kueue": "not installed", "nfd": ""}
        assert await world.at_rest(300.0) == []
        await install(world, kueue_crds())

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="Kueue is found without a restart", timeout_s=130.0)
        await world.queue()
        await world.until_serves({flavor_name(ZONED): "4"})

    in_world(story, kueue=False)


def test_a_cluster_that_schedules_nothing_by_topology_pays_next_to_nothing() -> None:
    async def story(world: World) -> None:
        await world.node("n1", region="north", zone="a")
        await world.start()
        await world.clock.sleep(3600.0)
        named = (entry.resource for entry in world.api.audit if "manager" in entry.user_agent)
        asked = Counter("discovery" if name.startswith("/apis/") else name for name in named)
        assert asked.keys() <= {"topologysources", "discovery"} | KUEUE_KINDS
        assert asked["discovery"] == 1
        assert await world.profile("n1") == ""
        assert world.writes == []
        await world.source(REGION, ZONE)

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="the first source wakes the room", timeout_s=20.0)

    in_world(story)


def test_a_cluster_without_kueue_and_sources_is_asked_for_kueue_every_five_minutes() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.clock.sleep(3600.0)
        asked = [entry for entry in world.api.audit if "manager" in entry.user_agent and entry.verb != "watch"]
        assert len(asked) <= 28

    in_world(story, kueue=False, nfd=False)


def test_a_pass_that_could_not_see_everything_is_made_up_for() -> None:
    async def story(world: World) -> None:
        await hall(world)
        assert world.room is not None
        nodes = world.room.caches.nodes
        nodes.suspect = True  # as after a list that lacks most of the Nodes: nothing may be concluded from it
        await world.node("n5", region="north", zone="a")
        await world.clock.sleep(4.0)
        assert await world.profile("n5") == ""
        nodes.suspect = False
        await world.until_serves({flavor_name(ZONED): "20"})

    in_world(story)


def test_kueue_that_is_removed_and_installed_again_is_served_anew() -> None:
    async def story(world: World) -> None:
        await hall(world)
        world.kueue.away = True
        for tree in kueue_crds():
            name = tree["metadata"]["name"]
            plural = tree["spec"]["names"]["plural"]
            for found in await world.names(f"{QUEUES.rpartition('/')[0]}/{plural}") if plural != "localqueues" else ():
                path = f"{QUEUES.rpartition('/')[0]}/{plural}/{found}"
                await world.admin.patch_merge(path, {"metadata": {"finalizers": None}})
            await world.admin.delete(f"{CRDS}/{name}")
        world.api.collect()
        await world.clock.sleep(700.0)
        assert (await state(world))["kueue"] == "not installed"
        world.kueue.away = False
        await install(world, kueue_crds())
        await world.queue()
        await world.until_serves({flavor_name(ZONED): "16"})
        assert f"gpustack-{ZONED}" in await world.names(TOPOLOGIES)

    in_world(story)


def test_without_nfd_plans_are_made_all_the_same_and_a_writing_source_waits_for_it() -> None:
    async def story(world: World) -> None:
        await hall(world)
        assert await world.quotas() == {flavor_name(ZONED): "16"}
        assert await state(world) == {"kueue": "", "nfd": "not installed"}
        await install(world, nfd_crds())
        await world.clock.sleep(90.0)
        assert await state(world) == {"kueue": "", "nfd": ""}

    in_world(story, nfd=False)


def test_a_kueue_that_serves_older_versions_only_is_told_with_its_code() -> None:
    async def story(world: World) -> None:
        await install(world, [only_beta1(tree) for tree in kueue_crds()])
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()
        await world.clock.sleep(150.0)
        assert world.room is not None
        metrics = Metrics()
        measure_scheduling(metrics, world.room)
        assert b"gitops_ctl_kueue_unsupported 1.0" in metrics.render()
        assert world.room.caches.kueue.problem is ErrorCode.KUEUE_VERSION_UNSUPPORTED
        assert (await state(world))["kueue"] == "it serves v1beta1 and not v1beta2"
        told = [(reason, about) for reason, about, _ in world.warnings]
        assert told == [("KueueVersionUnsupported", "clusterqueues.kueue.x-k8s.io")]
        assert await world.profile("n1") == ""
        for tree in kueue_crds():
            await world.put(tree)

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="the newer Kueue is used", timeout_s=130.0)
        assert world.room.caches.kueue.problem is None
        assert b"gitops_ctl_kueue_unsupported 0.0" in metrics.render()

    in_world(story, kueue=False)


async def install(world: World, trees: list[dict[str, Any]]) -> None:
    for tree in trees:
        await world.put(tree)


def only_beta1(tree: dict[str, Any]) -> dict[str, Any]:
    """The same definition as older versions of Kueue have it."""
    older = copy.deepcopy(tree)
    for version in older["spec"]["versions"]:
        version["served"] = version["storage"] = version["name"] == "v1beta1"
    return older

"""The whole chain in one room: labels, profiles, Topologies, flavors and plans (topology-scheduling.md, 2, 6 and 7)."""

import asyncio

import pytest
import yaml

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.kube.exchange import Call
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.room import SchedulingRoom
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.kueue import Variant
from tests.support.scheduling_world import (
    CPU,
    FLAVORS,
    GPU,
    HOSTNAME_ONLY,
    NODES,
    POOL,
    PROFILE,
    QUEUES,
    RACK,
    RACKED,
    REGION,
    SOURCES,
    TOPOLOGIES,
    ZONE,
    ZONED,
    Tree,
    World,
    flavor_name,
    hall,
    in_world,
)


def test_labels_become_profiles_topologies_flavors_and_an_open_queue() -> None:
    async def story(world: World) -> None:
        await hall(world)
        assert [await world.profile(f"n{number}") for number in (1, 2, 3, 4)] == [ZONED] * 4
        topology = await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}")
        assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == [REGION, ZONE, "kubernetes.io/hostname"]
        assert await world.quotas() == {flavor_name(ZONED): "16"}
        assert await world.marks() == {"policy": "None", "tas-queue": "true", "applied-stop-policy": "None"}
        assert world.warnings == []

    in_world(story)


def test_promise_08_a_room_at_rest_writes_nothing() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await world.workload("w1")
        await world.clock.sleep(60.0)
        assert await world.at_rest(600.0) == []
        reads = len(world.api.audit)
        await world.clock.sleep(120.0)
        asked = [entry for entry in world.api.audit[reads:] if "manager" in entry.user_agent and entry.verb != "watch"]
        assert asked == []

    in_world(story)


def test_a_condition_that_a_stopped_manager_sends_late_is_put_right() -> None:
    async def story(world: World) -> None:
        await hall(world)
        told = (await world.get(f"{QUEUES}/cpu"))["status"]["conditions"]
        late = [
            each | ({"status": "False", "reason": "Migrating"} if each["type"] == "TopologyReady" else {})
            for each in told
        ]
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"status": {"conditions": late}}, subresource="status")
        await world.until_condition("True/")
        assert await world.at_rest(600.0) == []

    in_world(story)


def test_the_profile_is_one_label_by_server_side_apply() -> None:
    async def story(world: World) -> None:
        await hall(world)
        node = await world.get(f"{NODES}/n1")
        [entry] = [each for each in node["metadata"]["managedFields"] if each["manager"] == "gitops-ctl-scheduling"]
        assert entry["operation"] == "Apply"
        assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {f"f:{PROFILE}": {}}}}
        assert {call.path for call in world.writes if "/nodes/" in call.path} == {f"{NODES}/n{n}" for n in (1, 2, 3, 4)}

    in_world(story)


def test_a_node_that_is_new_joins_and_one_that_goes_leaves_in_place() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await world.node("n5", region="north", zone="b")

        async def has(quota: str) -> bool:
            return await world.quotas() == {flavor_name(ZONED): quota} and (await world.marks())["policy"] == "None"

        await world.until(lambda: has("20"), what="the new Node counts")
        await world.admin.delete(f"{NODES}/n1")
        await world.until(lambda: has("16"), what="the Node that went does not count")
        assert "migration-phase" not in await world.marks()

    in_world(story)


def test_a_missing_finer_level_is_a_shorter_profile_and_a_flavor_of_its_own() -> None:
    async def story(world: World) -> None:
        await world.node("n0", region="north", zone="a", rack="r1")
        await hall(world, REGION, ZONE, RACK)
        assert await world.profile("n0") == RACKED
        assert await world.quotas() == {flavor_name(ZONED): "16", flavor_name(RACKED): "4"}
        assert set(await world.names(TOPOLOGIES)) >= {f"gpustack-{ZONED}", f"gpustack-{RACKED}"}

    in_world(story)


def test_a_source_that_is_not_ready_leaves_the_host_name() -> None:
    async def story(world: World) -> None:
        await world.node("n0", region="north", zone="a", rack="r1")
        await world.node("n9", region="north", zone="b", rack="r1")  # one rack in two zones is no tree
        await world.source(REGION, ZONE, RACK)
        await world.start()
        await world.clock.sleep(30.0)
        assert [await world.profile(name) for name in ("n0", "n9")] == [HOSTNAME_ONLY] * 2

    in_world(story)


def test_two_ready_sources_are_one_too_many() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await world.source(REGION, name="second")

        async def is_plain() -> bool:
            return await world.profile("n1") == HOSTNAME_ONLY

        await world.until(is_plain, what="no tree is invented")
        await world.admin.delete(f"{SOURCES}/second")

        async def is_back() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_back, what="the profile is back")

    in_world(story)


def test_a_source_that_is_stale_keeps_the_profile_and_its_status_wakes_no_node() -> None:
    async def story(world: World) -> None:
        await world.put(snapshot({"n1": {REGION: "north", ZONE: "a"}}))
        await world.node("n1")
        await world.source(REGION, ZONE, configMap=reference("5m"))
        await world.start()

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="NFD projects the labels, and the profile follows")
        await world.admin.delete("/api/v1/namespaces/gpustack-system/configmaps/hall")
        await world.clock.sleep(60.0)
        tree = await world.get(f"{SOURCES}/hall")
        assert {each["reason"] for each in tree["status"]["conditions"] if each["type"] == "Ready"} == {"Stale"}
        assert await world.profile("n1") == ZONED
        await world.clock.sleep(300.0)
        assert await world.profile("n1") == HOSTNAME_ONLY

    in_world(story)


def test_a_topology_with_other_levels_is_told_and_leaves_the_node_untouched() -> None:
    async def story(world: World) -> None:
        name = f"gpustack-{ZONED}"
        wrong = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": name}}
        await world.put({**wrong, "spec": {"levels": [{"nodeLabel": ZONE}]}})
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()
        await world.clock.sleep(200.0)
        assert await world.profile("n1") == ""
        drifts = [warning for warning in world.warnings if warning[0] == "TopologyDrift"]
        assert [(reason, about) for reason, about, _ in drifts] == [("TopologyDrift", name)]
        assert "immutable level drift" in drifts[0][2]
        await world.admin.delete(f"{TOPOLOGIES}/{name}")

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="the right Topology is made, and the label follows", timeout_s=70.0)

    in_world(story)


def test_a_topology_that_gets_other_levels_wakes_the_nodes_of_its_profile() -> None:
    """A newer version of Kueue lets them change."""

    async def story(world: World) -> None:
        await world.put(topology_of_zones(ZONE))
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()

        async def is_told() -> bool:
            return any(reason == "TopologyDrift" for reason, _, _ in world.warnings)

        await world.until(is_told, what="the drift is told")
        await world.clock.sleep(10.0)
        await world.put(topology_of_zones(REGION, ZONE))

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="the Node gets its label at once", timeout_s=5.0)

    in_world(story, variant=Variant.UNCONFIRMED_MUTABLE_LEVELS)


def topology_of_zones(*levels: str) -> Tree:
    """The Topology that has the name of region and zone, with these levels."""
    spec = {"levels": [{"nodeLabel": level} for level in (*levels, "kubernetes.io/hostname")]}
    name = f"gpustack-{ZONED}"
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": name}, "spec": spec}


async def inventory(world: World, *names: str) -> None:
    """A source with a snapshot of these Nodes, one for each rack; neither has been looked at."""
    nodes = {name: {REGION: "north", ZONE: "a"} for name in names}
    snapshot = {"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": "1", "nodes": nodes}
    metadata = {"name": "hall", "namespace": "gpustack-system"}
    data = {"snapshot.yaml": yaml.safe_dump(snapshot)}
    await world.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    reference = {"name": "hall", "namespace": "gpustack-system"}
    arm = {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "1h"}
    await world.source(REGION, ZONE, configMap=arm)


def test_a_node_gets_its_profile_in_one_write_however_long_the_first_pass_of_its_source_takes() -> None:
    async def story(world: World) -> None:
        names = [f"n{number:02d}" for number in range(40)]
        for name in names:
            await world.node(name)
        await inventory(world, *names)
        await world.start(Options(write_rate=1))

        async def is_whole() -> bool:
            return all([await world.profile(name) == ZONED for name in names])

        await world.until(is_whole, what="every Node has its profile")
        written = [call.path for call in world.writes if call.path.startswith(f"{NODES}/")]
        assert sorted(written) == [f"{NODES}/{name}" for name in names]

    in_world(story)


def test_a_node_whose_source_is_never_looked_at_gets_its_host_name_after_a_while() -> None:
    async def story(world: World) -> None:
        await world.node("n1")
        await world.node("n2", region="north", zone="a")
        await inventory(world, "n1", "n2")
        await world.start()
        await world.clock.sleep(20.0)
        assert await world.profile("n1") == ""

        async def is_labelled() -> bool:
            return await world.profile("n1") == await world.profile("n2") == HOSTNAME_ONLY

        await world.until(is_labelled, what="nothing is waited for any more", timeout_s=30.0)

    in_world(story, nfd=False)


def test_a_clock_that_is_set_back_makes_no_node_wait_longer_for_its_first_profile() -> None:
    async def story(world: World) -> None:
        await world.node("n1")
        await inventory(world, "n1")
        await world.start()
        await world.clock.sleep(20.0)
        world.skew_s = -3600.0
        await world.clock.sleep(20.0)
        assert await world.profile("n1") == HOSTNAME_ONLY

    in_world(story, nfd=False)


def test_labels_that_are_late_are_waited_for_before_a_node_gets_its_first_profile() -> None:
    async def story(world: World) -> None:
        world.nfd.away = True
        for name in ("n1", "n2"):
            await world.node(name)
        await inventory(world, "n1", "n2")
        await world.start()
        await world.clock.sleep(15.0)
        assert await world.profile("n1") == ""
        world.nfd.away = False
        await world.clock.sleep(10.0)
        assert [await world.profile(name) for name in ("n1", "n2")] == [ZONED, ZONED]
        assert len([call for call in world.writes if call.path.startswith(f"{NODES}/")]) == 2

    in_world(story)


def test_a_room_that_is_cancelled_has_ended_whole() -> None:
    async def story(world: World) -> None:
        async with direct_client(world.api, component="manager", clock=world.clock) as client:
            before = asyncio.all_tasks()
            running = asyncio.create_task(SchedulingRoom(client).run())
            await world.clock.sleep(5.0)
            assert len(asyncio.all_tasks() - before) > 5
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert asyncio.all_tasks() - before == set()

    in_world(story)


def test_a_topology_that_is_deleted_while_a_node_has_its_profile_is_made_again() -> None:
    async def story(world: World) -> None:
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.start()

        async def is_there() -> bool:
            return f"gpustack-{ZONED}" in await world.names(TOPOLOGIES)

        await world.until(is_there, what="the Topology")
        before = await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}")
        await world.clock.sleep(30.0)
        await world.admin.patch_merge(f"{TOPOLOGIES}/gpustack-{ZONED}", {"metadata": {"finalizers": None}})
        await world.admin.delete(f"{TOPOLOGIES}/gpustack-{ZONED}")

        async def is_another() -> bool:
            tree = await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}")
            return bool(tree) and tree["metadata"]["uid"] != before["metadata"]["uid"]

        await world.until(is_another, what="the Topology is made again")
        assert (await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}"))["spec"] == before["spec"]

    in_world(story)


def test_a_topology_that_was_made_for_a_node_stays_while_the_node_waits_for_its_label() -> None:
    async def story(world: World) -> None:
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)

        def refused(call: Call, side: Side) -> bool:
            if call.path == f"{NODES}/n1" and side == "before":
                raise Unavailable("not now")
            return False

        world.crash_at = refused
        await world.start()

        async def is_there() -> bool:
            return f"gpustack-{ZONED}" in await world.names(TOPOLOGIES)

        await world.until(is_there, what="the Topology")
        made = await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}")
        await world.clock.sleep(20.0)
        assert await world.profile("n1") == ""
        assert (await world.get(f"{TOPOLOGIES}/gpustack-{ZONED}"))["metadata"]["uid"] == made["metadata"]["uid"]
        await world.admin.delete(f"{NODES}/n1")

        async def is_gone() -> bool:
            return not await world.names(TOPOLOGIES)

        await world.until(is_gone, what="nobody needs it any more")

    in_world(story)


def test_accelerators_have_a_flavor_and_a_queue_of_their_own() -> None:
    async def story(world: World) -> None:
        await world.node("g1", region="north", zone="a")
        gpus = {GPU: "true", f"{GPU}.count": "8", "feature.gpustack.ai/acceleratable": "true"}
        await world.admin.patch_merge(f"{NODES}/g1", {"metadata": {"labels": gpus}})
        await world.queue("gpu", labels={**POOL, "feature.gpustack.ai/acceleratable": "true", GPU: "true"})
        await hall(world)
        await world.until_condition("True/Ready", "gpu")
        assert await world.quotas() == {flavor_name(ZONED): "20"}
        assert await world.quotas("gpu") == {f"gpustack--amd-25--nvidia-a10g-linux-amd64-8d-{ZONED}": "12800000"}

    in_world(story)


def test_a_drift_of_a_flavor_is_repaired_where_it_may_change_and_told_where_it_may_not() -> None:
    async def story(world: World) -> None:
        await hall(world)
        path = f"{FLAVORS}/{flavor_name(ZONED)}"
        edit = {"labels": {f"{CPU}.capacity": "99"}, "annotations": {"note.gpustack.ai/product": "x", "mine": "y"}}
        await world.admin.patch_merge(path, {"metadata": edit})

        async def is_repaired() -> bool:
            metadata = (await world.get(path))["metadata"]
            notes = metadata["annotations"]
            right = metadata["labels"][f"{CPU}.capacity"] == "16"
            return right and "note.gpustack.ai/product" not in notes and notes["mine"] == "y"

        await world.until(is_repaired, what="labels and notes are as they were")

        async def is_ready() -> bool:
            return (await world.condition()).startswith("True/Ready")

        await world.until(is_ready, what="the plan holds again")

    in_world(story)


def test_hardware_labels_that_cannot_be_used_are_told_once() -> None:
    async def story(world: World) -> None:
        await world.node("n9", region="north", zone="a")
        await world.admin.patch_merge(f"{NODES}/n9", {"metadata": {"labels": {f"{CPU}.count": "04"}}})
        await hall(world)
        await world.until_condition("False/NonConservedQuota")
        await world.clock.sleep(120.0)
        assert [(reason, about) for reason, about, _ in world.warnings] == [("HardwareLabelsUnusable", "n9")]
        assert await world.quotas() == {}
        assert (await world.marks())["policy"] == "Hold"

    in_world(story)


def test_an_unmarked_queue_and_one_that_matches_everything_are_left_alone() -> None:
    async def story(world: World) -> None:
        await world.queue(
            "anything", labels={"resource.gpustack.ai/type": "instancetypes", "kubernetes.io/os": "linux"}
        )
        await world.queue("foreign", labels={CPU: "true"})
        before = [await world.get(f"{QUEUES}/{name}") for name in ("anything", "foreign")]
        await hall(world)
        await world.clock.sleep(60.0)
        after = [await world.get(f"{QUEUES}/{name}") for name in ("anything", "foreign")]
        assert [tree["spec"] for tree in after] == [tree["spec"] for tree in before]

    in_world(story)


def snapshot(nodes: dict[str, dict[str, str]]) -> dict[str, object]:
    """A ConfigMap with an inventory."""
    text = yaml.safe_dump({"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": "hall/1", "nodes": nodes})
    metadata = {"name": "hall", "namespace": "gpustack-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"snapshot.yaml": text}}


def reference(stale: str) -> dict[str, object]:
    """The arm of a source that reads it."""
    where = {"namespace": "gpustack-system", "name": "hall"}
    return {"configMapRef": where, "key": "snapshot.yaml", "maxStaleness": stale}

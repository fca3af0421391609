"""A queue waits for labels that nobody puts on the Nodes, and says so (topology-scheduling.md, 7.5, D36)."""

import pytest

from tests.support.scheduling_world import RACK, REGION, ZONE, ZONED, World, flavor_name, hall, in_world


@pytest.mark.parametrize("skew_s", [0.0, -3600.0, 3600.0], ids=["right", "an hour behind", "an hour ahead"])
def test_labels_that_are_published_while_nfd_is_down_are_waited_for_a_minute_and_then_told_of(skew_s: float) -> None:
    """Whatever the wall clock of the manager says: the times of writes are those of the server."""

    async def story(world: World) -> None:
        world.skew_s = skew_s
        await hall(world)
        world.nfd.away = True
        places = "".join(
            f"  n{number}: {{{REGION}: north, {ZONE}: {zone}, {RACK}: r{number}}}\n"
            for number, zone in enumerate("aabb", start=1)
        )
        text = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r1\nnodes:\n{places}"
        name = {"name": "hall", "namespace": "gpustack-system"}
        await world.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"snapshot.yaml": text}})
        arm = {"configMapRef": name, "key": "snapshot.yaml", "maxStaleness": "1h"}
        await world.admin.delete("/apis/worker.gpustack.ai/v1alpha1/topologysources/hall")
        await world.source(REGION, ZONE, RACK, name="racks", configMap=arm)
        await world.until_condition("Unknown/AwaitingNodeProfiles: node n1 lacks topology.gpustack.ai/rack=r1")
        assert not [reason for reason, _name, _note in world.warnings if reason == "LabelsNotProjected"]
        lacking_s = world.clock.boot_s()
        await world.until_condition("True/Ready")
        assert world.clock.boot_s() - lacking_s < 45.0
        waited = {name for reason, name, _note in world.warnings if reason == "LabelsNotProjected"}
        assert waited == {"n1", "n2", "n3", "n4"}
        assert await world.quotas() == {flavor_name(ZONED): "16"}

    in_world(story)

"""Corners of the room: what is left from before, what is going, and a setting that changes (topology-scheduling.md, 6.1, 7.1 to 7.4)."""

from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.profile import profile_name
from tests.support.scheduling_laws import Laws
from tests.support.scheduling_world import (
    CPU,
    FLAVORS,
    HARDWARE,
    HOSTNAME_ONLY,
    NODES,
    PROFILE,
    REGION,
    TOPOLOGIES,
    ZONE,
    ZONED,
    Tree,
    World,
    flavor_name,
    hall,
    in_world,
)

OLD = flavor_name(ZONED)
ROW = "topology.gpustack.ai/row"


def test_a_flavor_and_a_topology_that_nobody_needs_go_when_a_manager_starts() -> None:
    """No event of a Node names them: they are left from the time before."""

    async def story(world: World) -> None:
        await hall(world)
        await world.stop()
        await world.put(left_topology("gpustack-fnv64-0000000000000000"))
        await world.put(left_flavor(flavor_name("fnv64-0000000000000000")))
        foreign = left_flavor(flavor_name("fnv64-1111111111111111"))
        del foreign["metadata"]["labels"]
        await world.put(foreign)
        await world.start()

        async def are_gone() -> bool:
            return await world.names(FLAVORS) == {
                OLD,
                foreign["metadata"]["name"],
            } and "gpustack-fnv64-0000000000000000" not in await world.names(TOPOLOGIES)

        await world.until(are_gone, what="what is left goes, and what is not ours stays", timeout_s=120.0)
        await world.until_serves({OLD: "16"})

    in_world(story)


def left_topology(name: str) -> Tree:
    metadata = {"name": name, "labels": {"resource.gpustack.ai/type": "topology"}}
    levels = [{"nodeLabel": "example.net/row"}, {"nodeLabel": "kubernetes.io/hostname"}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": metadata,
        "spec": {"levels": levels},
    }


def left_flavor(name: str) -> Tree:
    profile = name[-22:]
    labels = {"resource.gpustack.ai/type": "nodes", "kubernetes.io/os": "linux", CPU: "true", PROFILE: profile}
    selector = {**HARDWARE, PROFILE: profile}
    spec = {"nodeLabels": selector, "topologyName": f"gpustack-{profile}", "tolerations": [{"operator": "Exists"}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def test_the_setting_of_mixing_makes_flavors_anew_once_their_queue_has_dropped_them() -> None:
    async def story(world: World) -> None:
        laws = Laws(world.api)
        await hall(world)
        await world.workload("w1", count=2)
        await world.until(lambda: world.reserved("w1"), what="the Workload is admitted")
        before = (await world.get(f"{FLAVORS}/{OLD}"))["metadata"]["uid"]
        await world.stop()
        cpu_only = {"metadata": {"labels": {"feature.gpustack.ai/cpu-only": "true"}}}
        for number in (1, 2, 3, 4):
            await world.admin.patch_merge(f"{NODES}/n{number}", cpu_only)
        await world.start(Options(mixed_on_node=False))

        async def is_anew() -> bool:
            tree = await world.get(f"{FLAVORS}/{OLD}")
            return bool(tree) and tree["metadata"]["uid"] != before

        await world.until(is_anew, what="the flavor is another object")
        await world.until_serves({OLD: "16"})
        selector = (await world.get(f"{FLAVORS}/{OLD}"))["spec"]["nodeLabels"]
        assert selector["feature.gpustack.ai/cpu-only"] == "true"
        await world.until(lambda: world.reserved("w1"), what="the Workload is admitted again")
        assert laws.broken == []

    in_world(story)


def test_a_node_that_is_going_gets_no_profile_and_counts_until_it_is_gone() -> None:
    async def story(world: World) -> None:
        await hall(world)
        clinging = {"metadata": {"finalizers": ["example.net/slow"]}}
        await world.admin.patch_merge(f"{NODES}/n1", clinging)
        await world.node("n5", region="north", zone="b")
        await world.until_serves({OLD: "20"})
        await world.admin.delete(f"{NODES}/n1")
        await world.label("n1", region=None, zone=None)
        await world.clock.sleep(60.0)
        assert await world.profile("n1") == ZONED
        assert await world.quotas() == {OLD: "20"}
        await world.admin.patch_merge(f"{NODES}/n1", {"metadata": {"finalizers": None}})
        await world.until_serves({OLD: "16"})
        held = [call for call in world.writes if b"HoldAndDrain" in (call.body or b"")]
        assert held == []

    in_world(story)


def test_a_queue_without_nodes_warns_again_only_after_it_had_one() -> None:
    async def story(world: World) -> None:
        await world.queue()
        await world.start()
        await world.until_condition("True/Ready: the pool has no flavor")
        await world.clock.sleep(120.0)
        assert [reason for reason, _, _ in world.warnings] == ["NoManagedNodes"]
        await world.node("n1", region="north", zone="a")
        await world.source(REGION, ZONE)
        await world.until_serves({OLD: "4"})
        await world.admin.delete(f"{NODES}/n1")

        async def is_told() -> bool:
            return [reason for reason, _, _ in world.warnings].count("NoManagedNodes") == 2

        await world.until(is_told, what="the second warning")
        await world.clock.sleep(120.0)
        assert await is_told()

    in_world(story)


def test_a_source_with_an_unusable_spec_keeps_the_profiles_until_it_is_mended() -> None:
    """The namespace of its reference is one option of the manager, which may change."""

    async def story(world: World) -> None:
        for name in ("n1", "n2"):
            await world.node(name)
        await inventory(world, "n1", "n2")
        await world.queue()
        await world.start()
        await world.until_serves({OLD: "8"})
        await world.stop()
        before = len(world.writes)
        await world.start(Options(worker_namespace="elsewhere"))
        await world.clock.sleep(120.0)
        assert [await world.profile(name) for name in ("n1", "n2")] == [ZONED, ZONED]
        assert [call.path for call in world.writes[before:] if not call.path.endswith("/status")] == []
        await world.stop()
        await world.start(Options(worker_namespace="elsewhere", keep_profile_while_stale=False))

        async def is_bare() -> bool:
            return {await world.profile(name) for name in ("n1", "n2")} == {HOSTNAME_ONLY}

        await world.until(is_bare, what="with the defaults of the reference the host name only")

    in_world(story)


def test_a_source_with_an_unusable_spec_keeps_no_profile_once_its_last_revision_is_over() -> None:
    """An hour after its last success it is one source less: another one over the same Nodes counts then."""

    async def story(world: World) -> None:
        await world.node("n1", row="r1")
        await inventory(world, "n1")
        await world.start()

        async def is_zoned() -> bool:
            return await world.profile("n1") == ZONED

        await world.until(is_zoned, what="the first profile")
        await world.stop()
        await world.source(ROW, name="rows")
        await world.start(Options(worker_namespace="elsewhere"))
        await world.clock.sleep(120.0)
        assert await world.profile("n1") == HOSTNAME_ONLY, "two sources count"
        await world.clock.sleep(3600.0)
        assert await world.profile("n1") == profile_name((ROW, "kubernetes.io/hostname"))
        source = await world.get("/apis/worker.gpustack.ai/v1alpha1/topologysources/hall")
        assert "kept" not in str(source["status"]["conditions"])

    in_world(story)


async def inventory(world: World, *names: str) -> None:
    """A source with a snapshot that puts these Nodes into one zone."""
    lines = "".join(f"  {name}: {{{REGION}: north, {ZONE}: a}}\n" for name in names)
    text = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r1\nnodes:\n{lines}"
    metadata = {"name": "hall", "namespace": "gpustack-system"}
    await world.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"snapshot.yaml": text}})
    reference = {"name": "hall", "namespace": "gpustack-system"}
    await world.source(
        REGION, ZONE, configMap={"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "1h"}
    )


def test_changes_within_a_second_wake_a_source_once() -> None:
    async def story(world: World) -> None:
        await world.node("n1")
        await inventory(world, "n1")
        await world.start()
        await world.clock.sleep(60.0)
        before = reads_of_the_snapshot(world)
        for revision in range(5):
            text = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r{revision}\nnodes: {{}}\n"
            patch = {"data": {"snapshot.yaml": text}}
            await world.admin.patch_merge("/api/v1/namespaces/gpustack-system/configmaps/hall", patch)
            await world.clock.sleep(0.1)
        await world.clock.sleep(60.0)
        # One for the snapshot; the NodeFeature that goes wakes its source once more.
        assert reads_of_the_snapshot(world) - before == 2

    in_world(story)


def reads_of_the_snapshot(world: World) -> int:
    return sum(
        entry.verb == "get" and entry.resource == "configmaps" and "manager" in entry.user_agent
        for entry in world.api.audit
    )


def test_a_wave_of_nodes_gives_one_plan() -> None:
    async def story(world: World) -> None:
        await hall(world)
        before = len(world.writes)
        for number in range(5, 11):
            await world.node(f"n{number}", region="north", zone="b")
            await world.clock.sleep(0.4)
        await world.until_serves({OLD: "40"})
        await world.clock.sleep(30.0)
        planned = [call for call in world.writes[before:] if b"resourceGroups" in (call.body or b"")]
        updated = [call for call in world.writes[before:] if call.path.startswith(FLAVORS)]
        assert (len(planned), len(updated)) == (1, 1)

    in_world(story)

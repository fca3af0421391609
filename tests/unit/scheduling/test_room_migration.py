"""A change of the hierarchy: hold, drain, switch, release, and everything that may happen on the way (topology-scheduling.md, 7.6 and 8)."""

import json

import pytest

from gitops_ctl.kube.exchange import Call
from gitops_ctl.scheduling.options import Options
from tests.doubles.apiserver.direct import Side
from tests.doubles.apiserver.request import Request
from tests.support.scheduling_world import (
    CPU,
    FLAVORS,
    NODES,
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

OLD, NEW = flavor_name(ZONED), flavor_name(RACKED)
MOVED = {NEW: "16"}


async def racks(world: World) -> None:
    """The inventory knows racks from now on."""
    for number, rack in enumerate(("1", "2", "3", "4"), start=1):
        await world.label(f"n{number}", rack=f"r{rack}")
    await world.source(REGION, ZONE, RACK)


async def busy(world: World, options: Options | None = None) -> None:
    """A hall with one Workload that is admitted."""
    await hall(world, options=options)
    await world.workload("w1", count=2)
    await world.until(lambda: world.reserved("w1"), what="the Workload is admitted")


async def phase(world: World, text: str) -> None:
    """Wait for a phase of the migration, empty for none."""

    async def holds() -> bool:
        return (await world.marks()).get("migration-phase", "") == text

    await world.until(holds, what=f"the phase is {text!r}")


def test_another_hierarchy_holds_drains_switches_and_releases() -> None:
    async def story(world: World) -> None:
        await busy(world)
        before = await world.get(f"{QUEUES}/cpu")
        await racks(world)
        await phase(world, "draining")
        marks = await world.marks()
        assert (marks["policy"], marks["migration-stop-policy"]) == ("HoldAndDrain", "None")
        assert await world.quotas() == {OLD: "16"}
        await world.until_condition("False/Migrating: since 2026-")
        await world.until_serves(MOVED)
        after = await world.get(f"{QUEUES}/cpu")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert (await world.marks()).keys() == {"policy", "tas-queue", "applied-stop-policy"}

        async def is_back() -> bool:
            return await world.reserved("w1") == {"cpu": NEW}

        await world.until(is_back, what="the Workload is admitted on the new hierarchy")

        async def is_tidy() -> bool:
            return OLD not in await world.names(FLAVORS) and f"gpustack-{ZONED}" not in await world.names(TOPOLOGIES)

        await world.until(is_tidy, what="the old flavor and its Topology have retired")
        assert world.warnings == []
        assert await world.at_rest(60.0) == []

    in_world(story)


def test_the_replacement_is_there_before_the_old_flavor_goes() -> None:
    async def story(world: World) -> None:
        await busy(world)
        await racks(world)
        await phase(world, "draining")
        calls = [(call.verb, call.path.rpartition("/")[2]) for call in world.writes if "/resourceflavors" in call.path]
        made = max(place for place, (verb, _) in enumerate(calls) if verb == "create")
        assert ("delete", OLD) in calls[made:]

    in_world(story)


def test_idle_flavors_are_replaced_in_place() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await racks(world)
        await world.until_serves(MOVED)
        policies = [call for call in world.writes if call.body and b"HoldAndDrain" in call.body]
        assert policies == []

    in_world(story)


def test_with_hold_before_drop_an_idle_flavor_goes_under_a_short_hold() -> None:
    async def story(world: World) -> None:
        await hall(world, options=Options(hold_before_drop=True))
        await racks(world)

        async def is_held() -> bool:
            marks = await world.marks()
            return (marks["policy"], marks.get("migration-stop-policy")) == ("Hold", "None")

        await world.until(is_held, what="the short hold")
        await world.until_serves(MOVED)
        assert "migration-stop-policy" not in await world.marks()

    in_world(story)


def test_one_node_that_moves_between_two_flavors_in_use_drains() -> None:
    async def story(world: World) -> None:
        await world.node("n0", region="north", zone="a", rack="r0")
        await busy_over(world, REGION, ZONE, RACK)
        assert await world.quotas() == {OLD: "16", NEW: "4"}
        await world.workload("w2", count=4)
        await world.until(lambda: world.reserved("w2"), what="both flavors are in use")
        await world.label("n1", rack="r1")
        await phase(world, "draining")
        await world.until_serves({OLD: "12", NEW: "8"})

    in_world(story)


async def busy_over(world: World, *levels: str) -> None:
    """As `busy`, with other levels."""
    await hall(world, *levels)
    await world.workload("w1", count=2)
    await world.until(lambda: world.reserved("w1"), what="the Workload is admitted")


def test_an_edit_of_the_policy_never_ends_the_hold() -> None:
    async def story(world: World) -> None:
        await busy(world)
        world.clings = True
        await racks(world)
        await phase(world, "draining")
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": "None"}})

        async def is_held() -> bool:
            return (await world.marks())["policy"] == "HoldAndDrain"

        await world.until(is_held, what="the hold is back", timeout_s=10.0)
        assert await world.quotas() == {OLD: "16"}
        world.clings = False
        await world.until_serves(MOVED)

    in_world(story)


def test_an_unknown_phase_is_told_and_the_spec_stays_until_somebody_corrects_it() -> None:
    async def story(world: World) -> None:
        await busy(world)
        world.clings = True
        await racks(world)
        await phase(world, "draining")
        path, key = f"{QUEUES}/cpu", "topology.gpustack.ai/migration-phase"
        await world.admin.patch_merge(path, {"metadata": {"annotations": {key: "resting"}}})
        await world.until_condition("False/InvalidMigrationState")
        before = (await world.get(path))["spec"]
        world.clings = False
        await world.clock.sleep(120.0)
        assert (await world.get(path))["spec"] == before
        await world.admin.patch_merge(path, {"metadata": {"annotations": {key: "draining"}}})
        await world.until_serves(MOVED)

    in_world(story)


def test_a_drain_that_gets_old_is_told_once_and_its_age_is_known() -> None:
    async def story(world: World) -> None:
        await busy(world, Options(drain_warn_after_s=60))
        world.clings = True
        await racks(world)
        await phase(world, "draining")
        await world.clock.sleep(150.0)
        assert [(reason, about) for reason, about, _ in world.warnings] == [("DrainStuck", "cpu")]
        assert world.room is not None
        age = world.room.drains()["cpu"]
        assert age is not None
        assert 150.0 <= age <= 160.0
        assert (await world.condition()).endswith("1 Workloads reserve, 1 are admitted")
        world.clings = False
        await world.until_serves(MOVED)
        assert world.room.drains() == {}

    in_world(story)


def test_the_message_of_a_drain_changes_only_with_its_numbers_and_not_often() -> None:
    async def story(world: World) -> None:
        await busy(world)
        for number in range(2, 8):
            await world.workload(f"w{number}")
            await world.until(lambda number=number: world.reserved(f"w{number}"), what="it is admitted")
        world.clings = True
        await racks(world)
        await phase(world, "draining")
        await world.until_condition("False/Migrating")
        shown = [call for call in await world.at_rest(120.0) if call.path.endswith("/status")]
        assert shown == []

    in_world(story)


def test_kueue_that_restarts_in_the_middle_delays_and_nothing_more() -> None:
    async def story(world: World) -> None:
        await busy(world)
        world.kueue.away = True
        await racks(world)
        await phase(world, "draining")
        await world.clock.sleep(60.0)
        assert await world.quotas() == {OLD: "16"}
        world.kueue.away = False
        world.kueue.restart()
        await world.until_serves(MOVED)

    in_world(story)


def test_a_pool_that_loses_all_nodes_drains_stays_held_and_comes_back() -> None:
    async def story(world: World) -> None:
        await busy(world)
        for number in (1, 2, 3, 4):
            await world.admin.patch_merge(f"{NODES}/n{number}", {"metadata": {"labels": {"gpustack.ai/managed": None}}})
        await phase(world, "switched")

        async def is_empty() -> bool:
            return await world.quotas() == {} and (await world.condition()).startswith("True/Ready")

        await world.until(is_empty, what="the groups are gone")
        assert (await world.marks())["policy"] == "HoldAndDrain"
        assert ("NoManagedNodes", "cpu") in {(reason, about) for reason, about, _ in world.warnings}
        assert "no managed Node" in await world.condition()
        assert await world.at_rest(120.0) == []
        assert world.room is not None
        assert world.room.drains() == {}  # it waits for Nodes, and for nothing to end
        await world.admin.patch_merge(f"{NODES}/n1", {"metadata": {"labels": {"gpustack.ai/managed": "true"}}})
        await world.until_serves({OLD: "4"})

    in_world(story)


def test_without_drain_when_no_flavors_a_pool_that_lost_its_nodes_keeps_serving_while_something_is_reserved() -> None:
    async def story(world: World) -> None:
        await busy(world, Options(drain_when_no_flavors=False))
        for number in (1, 2, 3, 4):
            await world.admin.patch_merge(f"{NODES}/n{number}", {"metadata": {"labels": {"gpustack.ai/managed": None}}})
        await world.clock.sleep(120.0)
        assert (await world.marks())["policy"] == "None"
        assert await world.quotas() == {OLD: "16"}
        assert "drain-when-no-flavors" in await world.condition()

    in_world(story)


def test_hardware_labels_that_are_gone_for_a_moment_drain_nothing() -> None:
    async def story(world: World) -> None:
        await busy(world)

        async def hardware(value: str | None) -> None:
            patch = {"metadata": {"labels": {"gpustack.ai/managed": value, CPU: value}}}
            for number in (1, 2, 3, 4):
                await world.admin.patch_merge(f"{NODES}/n{number}", patch)

        await hardware(None)
        await world.clock.sleep(40.0)
        await hardware("true")
        await world.until_serves({OLD: "16"})
        await world.clock.sleep(60.0)
        held = [call for call in world.writes if b"HoldAndDrain" in (call.body or b"")]
        assert held == []
        assert await world.reserved("w1") == {"cpu": OLD}

    in_world(story)


def test_what_somebody_sets_on_a_queue_that_is_being_deleted_stays() -> None:
    async def story(world: World) -> None:
        await busy(world)
        world.clings = True
        await world.clock.sleep(5.0)
        await world.admin.delete(f"{QUEUES}/cpu")

        async def is_drained() -> bool:
            return (await world.marks())["policy"] == "HoldAndDrain"

        await world.until(is_drained, what="the drain")
        await world.clock.sleep(5.0)
        for policy in ("None", "Hold"):
            await world.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": policy}})
            await world.clock.sleep(30.0)
        assert len([call for call in world.writes if b"HoldAndDrain" in (call.body or b"")]) == 1
        assert (await world.marks())["policy"] == "Hold"

    in_world(story)


def test_a_queue_that_is_deleted_drains_at_once() -> None:
    async def story(world: World) -> None:
        await busy(world)
        await world.admin.delete(f"{QUEUES}/cpu")

        async def is_gone() -> bool:
            return not await world.get(f"{QUEUES}/cpu")

        await world.until(is_gone, what="Kueue lets the empty queue go")
        assert await world.reserved("w1") == {}

    in_world(story)


def test_a_node_that_is_not_settled_lets_the_last_plan_serve_and_is_named() -> None:
    async def story(world: World) -> None:
        await busy(world)
        # NFD is down, so that the labels of a new source do not come.
        world.nfd.away = True
        snapshot = f"apiVersion: topology.gpustack.ai/v1alpha1\nrevision: r1\nnodes:\n  n1: {{{RACK}: r1}}\n"
        where = {"namespace": "gpustack-system", "name": "racks"}
        await world.put(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": {"snapshot.yaml": snapshot}}
        )
        arm = {"configMapRef": where, "key": "snapshot.yaml", "maxStaleness": "1h"}
        chosen = {"matchLabels": {"kubernetes.io/hostname": "nobody"}}
        await world.source(RACK, name="racks", nodeSelector={}, configMap=arm)
        await world.put(a_source("hall", chosen))
        writes = len(world.writes)
        await world.clock.sleep(10.0)
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"metadata": {"annotations": {"example.net/touch": "1"}}})
        await world.until_condition(f"Unknown/AwaitingNodeProfiles: node n1 lacks {RACK}=r1")
        touched = [call for call in world.writes[writes:] if "/clusterqueues/cpu" in call.path]
        assert [call.path for call in touched] == [f"{QUEUES}/cpu/status"]
        await world.clock.sleep(60.0)
        assert ("LabelsNotProjected", "n1") in {(reason, about) for reason, about, _ in world.warnings}
        world.nfd.away = False
        await world.clock.sleep(10.0)
        await world.until_condition("True/Ready")

    in_world(story)


def a_source(name: str, selector: Tree) -> Tree:
    """A nodeLabels source over chosen Nodes."""
    spec = {"nodeSelector": selector, "levels": [REGION, ZONE], "nodeLabels": {}}
    return {
        "apiVersion": "worker.gpustack.ai/v1alpha1",
        "kind": "TopologySource",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize("how", ["consent", "window"])
def test_a_drain_that_evicts_waits_for_its_approval(how: str) -> None:
    async def story(world: World) -> None:
        await busy(world, Options(require_drain_approval=True))
        await racks(world)
        await world.until_condition("False/AwaitingDrainApproval")
        assert "migration-phase" not in await world.marks()
        await world.clock.sleep(120.0)
        assert (await world.quotas(), await world.reserved("w1")) == ({OLD: "16"}, {"cpu": OLD})
        message = await world.condition()
        digest = next(word.rstrip(",") for word in message.split() if word.startswith("sha256:"))
        given = {
            "consent": {"gitops-ctl.dev/allow-drain": digest},
            "window": {"gitops-ctl.dev/drain-window": "2026-01-01T00:00:00Z/2027-01-01T00:00:00Z"},
        }
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"metadata": {"annotations": given[how]}})
        await phase(world, "draining")
        await world.until_serves(MOVED)

    in_world(story)


def test_admission_checks_are_listed_while_they_are_active() -> None:
    async def story(world: World) -> None:
        await hall(world, options=Options(admission_checks=("site-ready",)))
        spec = {"controllerName": "example.net/site"}
        check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "site-ready"}}
        await world.put({**check, "spec": spec})
        path = f"{QUEUES.rpartition('/')[0]}/admissionchecks/site-ready"
        for status, listed in (("True", ["site-ready"]), ("False", [])):
            active = {
                "type": "Active",
                "status": status,
                "reason": "Asked",
                "message": "",
                "lastTransitionTime": "2026-02-01T00:00:00Z",
            }
            await world.admin.patch_merge(path, {"status": {"conditions": [active]}}, subresource="status")

            async def is_listed(listed: list[str] = listed) -> bool:
                strategy = (await world.get(f"{QUEUES}/cpu"))["spec"].get("admissionChecksStrategy", {})
                return [each["name"] for each in strategy.get("admissionChecks", ())] == listed

            await world.until(is_listed, what=f"the checks are {listed}")

    in_world(story)


def test_the_wanted_policy_of_git_is_carried_out_and_an_administrators_hold_stays() -> None:
    async def story(world: World) -> None:
        await hall(world)
        document = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "cpu", "labels": (await world.get(f"{QUEUES}/cpu"))["metadata"]["labels"]},
            "spec": {"namespaceSelector": {}},
        }
        for policy in ("Hold", "HoldAndDrain", "None"):
            await world.git({**document, "spec": {"namespaceSelector": {}, "stopPolicy": policy}})

            async def is_carried_out(policy: str = policy) -> bool:
                marks = await world.marks()
                return (marks["policy"], marks["applied-stop-policy"]) == (policy, policy)

            await world.until(is_carried_out, what=f"Git's {policy}")
        await world.admin.patch_merge(f"{QUEUES}/cpu", {"spec": {"stopPolicy": "Hold"}})
        await world.clock.sleep(60.0)
        assert (await world.marks())["policy"] == "Hold"
        assert [(reason, about) for reason, about, _ in world.warnings] == [("NotFromGit", "cpu")]

    in_world(story)


def test_a_lost_race_is_run_again_at_once_with_what_the_other_wrote() -> None:
    async def story(world: World) -> None:
        await busy(world)
        tries: list[float] = []

        def somebody_is_faster(call: Call, side: Side) -> bool:
            if call.path == f"{QUEUES}/cpu" and side == "before":
                tries.append(world.clock.boot_s())
                if len(tries) < 3:
                    note = {"metadata": {"annotations": {"example.net/touch": str(len(tries))}}}
                    merge = {"content-type": "application/merge-patch+json"}
                    answer = world.api.handle(Request("PATCH", call.path, {}, merge, json.dumps(note).encode()))
                    assert answer.code == 200
            return False

        world.crash_at = somebody_is_faster
        await racks(world)
        await phase(world, "draining")
        assert tries[0] == tries[1] == tries[2]
        assert (await world.marks())["touch"] == "2"

    in_world(story)


def test_deleting_the_source_leaves_foreign_labels_alone() -> None:
    async def story(world: World) -> None:
        await hall(world)
        await world.admin.delete(f"{SOURCES}/hall")
        await world.clock.sleep(60.0)
        labels = (await world.get(f"{NODES}/n1"))["metadata"]["labels"]
        assert (labels[ZONE], labels[CPU]) == ("a", "true")

    in_world(story)

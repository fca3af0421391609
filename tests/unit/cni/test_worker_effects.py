"""One request from check to receipt, with machines and servers in memory (cni-switch.md, sections 2.1, 7, 8 and 17)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.cni.reading import operation_of
from gitops_ctl.cni.worker.desk import Withdrawn
from gitops_ctl.core.errors import ReplyLost
from gitops_ctl.talos.machineconfig import config_hash, edited, kube_proxy_part
from tests.support.target_cluster_fakes import (
    APPS,
    CLUSTER_PATH,
    IMAGE,
    OPERATION_PATH,
    SYSTEM,
    WorkerWorld,
    config_map,
    manifests,
    path_of,
)

REMOVE = {"id": "replaced/6-remove/north#1", "action": "remove-kube-proxy", "mode": "replaced"}
RESTORE = {"id": "enabled/4-verify/north#1", "action": "restore-kube-proxy", "mode": "enabled"}
OURS = [tree for tree in manifests() if tree["metadata"]["name"] != "kubeconfig-in-cluster"]  # type: ignore[index,call-overload]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[WorkerWorld]:
    async with WorkerWorld(tmp_path) as made:
        yield made


def request_in(world: WorkerWorld) -> Any:
    """The first standing request as the worker reads it."""
    operation = operation_of(world.send(world.own_api, "GET", OPERATION_PATH))
    assert operation is not None
    return operation.state.requests[0]


async def performed(world: WorkerWorld, **options: Any) -> Any:
    """Carry out the first request; its receipt."""
    request = request_in(world)
    await world.effects(**options).perform(request)
    return world.receipt(request.id)


async def killed_at_delete(world: WorkerWorld, number: int) -> None:
    """Carry out the first request until the process dies before its deletion of that number, or right after the last one."""
    deletes: list[str] = []

    def die(call: Any, side: str) -> None:
        if side == "before" and call.method == "DELETE":
            deletes.append(call.path)
        if side == "before" and len(deletes) >= min(number, len(OURS) + 1):
            raise asyncio.CancelledError
        if side == "after" and len(deletes) == len(OURS) < number:
            raise asyncio.CancelledError

    world.target_point = die
    with pytest.raises(asyncio.CancelledError):
        await performed(world)
    world.target_point = lambda _call, _side: None


class TestApplyMode:
    async def test_a_control_plane_is_switched_after_the_claim_and_read_back(self, world: WorkerWorld) -> None:
        request = world.apply_request("cp-1")
        world.operation(request)
        seen: list[list[str]] = []
        world.machines["cp-1"].at_apply = lambda: seen.append(world.claims())
        receipt = await performed(world)
        assert receipt["result"] == "Done"
        assert receipt["hashApplied"] == request["hashWanted"]
        assert receipt["message"] == "applied without a reboot: kube-proxy mode: enabled -> disabled"
        assert receipt["warnings"] == ["proxy mode is not recommended"]
        assert seen == [[request["id"]]]
        assert (world.machines["cp-1"].applies, world.machines["cp-1"].dry_runs) == (1, 1)
        assert not kube_proxy_part(world.machines["cp-1"].active).enabled

    async def test_a_worker_in_the_document_form_has_nothing_to_apply(self, world: WorkerWorld) -> None:
        request = world.apply_request("worker-1")
        assert request["hashBefore"] == request["hashWanted"]
        world.operation(request)
        assert (await performed(world))["result"] == "Done"
        assert world.claims() == []
        assert world.machines["worker-1"].applies == 0

    @pytest.mark.parametrize(
        ("member", "value"), [("hashBefore", "sha256:" + "0" * 64), ("hashWanted", "sha256:" + "1" * 64)]
    )
    async def test_other_hashes_than_the_judged_ones_are_refused(
        self, world: WorkerWorld, member: str, value: str
    ) -> None:
        world.operation({**world.apply_request("cp-1"), member: value})
        receipt = await performed(world)
        assert receipt["result"] == "Refused"
        assert receipt["message"].startswith("HashChanged: ")
        assert (world.claims(), world.machines["cp-1"].applies, world.machines["cp-1"].dry_runs) == ([], 0, 0)

    async def test_a_staged_change_of_somebody_else_stops_before_the_dry_run(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].persistent += b"# staged\n"
        receipt = await performed(world)
        assert receipt["message"].startswith("StagedConfigPending: ")
        assert world.machines["cp-1"].dry_runs == 0

    async def test_another_machine_at_the_address_is_never_configured(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].answers_as = "cp-9"
        assert (await performed(world))["message"].startswith("WrongMachine: ")
        assert world.machines["cp-1"].applies == 0

    async def test_all_validation_errors_are_in_the_receipt(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].refuse = ("first is wrong", "second is wrong")
        receipt = await performed(world)
        assert receipt["result"] == "Refused"
        assert "first is wrong; second is wrong" in receipt["message"]
        assert world.claims() == []

    async def test_a_lost_reply_after_the_effect_is_done_by_reading_back(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].lose = "after"
        assert (await performed(world))["result"] == "Done"
        assert world.machines["cp-1"].applies == 1

    async def test_a_lost_reply_without_effect_is_refused_only_when_the_time_of_an_apply_is_over(
        self, world: WorkerWorld
    ) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].lose = "before"
        began_s = world.clock.boot_s()
        receipt = await performed(world)
        assert receipt["message"].startswith("NotApplied: ")
        assert world.clock.boot_s() - began_s >= 60
        assert world.machines["cp-1"].applies == 1

    async def test_a_machine_that_somebody_changes_meanwhile_is_unknown(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        fake = world.machines["cp-1"]
        fake.lose = "before"

        def changed() -> None:
            fake.active = fake.persistent = fake.active + b"# by hand\n"

        fake.at_apply = changed
        assert (await performed(world))["result"] == "Unknown"

    async def test_a_machine_that_is_gone_after_the_apply_is_unknown(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        fake = world.machines["cp-1"]
        fake.lose = "before"
        fake.at_apply = lambda: setattr(fake, "unreachable", True)
        assert (await performed(world))["result"] == "Unknown"

    async def test_a_claim_of_a_killed_worker_is_settled_without_acting(self, world: WorkerWorld) -> None:
        request = world.apply_request("cp-1")
        claim = {"id": request["id"], "worker": "worker-b", "at": "2026-01-01T00:00:00Z"}
        world.operation(request, claims=[claim])
        receipt = await performed(world)
        assert receipt["message"].startswith("NotApplied: ")
        assert world.machines["cp-1"].applies == world.machines["cp-1"].dry_runs == 0

    async def test_a_claim_of_a_killed_worker_whose_apply_took_effect_is_done(self, world: WorkerWorld) -> None:
        request = world.apply_request("cp-1")
        world.operation(request)
        await performed(world)
        applied = world.machines["cp-1"].active
        world.status(OPERATION_PATH, {"receipts": []})
        assert (await performed(world, worker="worker-b"))["result"] == "Done"
        assert (world.machines["cp-1"].applies, world.machines["cp-1"].active) == (1, applied)

    async def test_a_safe_difference_of_a_supplied_base_rides_along(self, world: WorkerWorld) -> None:
        base = world.machines["cp-1"].active.replace(b"debug: false", b"debug: true")
        folder = world.folder / "machines" / "cp-1"
        folder.mkdir(parents=True)
        (folder / "machineconfig.yaml").write_bytes(base)
        world.watches["cp-1"].tree = {
            **world.watches["cp-1"].tree,
            "spec": {**world.watches["cp-1"].tree["spec"], "configSecretRef": {"name": "base"}},  # type: ignore[dict-item]
        }
        wanted = edited(base, mode="replaced", contract="v1.14", role="controlplane", image=IMAGE)
        request = {**world.apply_request("cp-1"), "hashWanted": config_hash(wanted)}
        world.operation(request)
        assert (await performed(world))["result"] == "Done"
        assert world.machines["cp-1"].active == wanted
        assert b"debug: true" in wanted

    async def test_without_a_base_only_the_kube_proxy_part_differs(self, world: WorkerWorld) -> None:
        before = world.machines["cp-1"].active.splitlines()
        world.operation(world.apply_request("cp-1"))
        await performed(world)
        after = world.machines["cp-1"].active.splitlines()
        differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert differing == [(b"enabled: true # on or off", b"enabled: false # on or off")]

    async def test_a_mode_that_the_operation_has_not_set_is_refused(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.status(CLUSTER_PATH, {"cni": {"kubeProxy": "enabled"}})
        assert (await performed(world))["message"].startswith("ModeNotSet: ")

    async def test_without_the_lock_nothing_is_done(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.status(CLUSTER_PATH, {"lock": None})
        assert (await performed(world))["message"] == "LockNotHeld: the lock of the cluster is held by nobody"

    async def test_a_machine_of_another_cluster_is_refused(self, world: WorkerWorld) -> None:
        world.operation({**world.apply_request("cp-1"), "machine": "south-1"})
        assert (await performed(world))["message"].startswith("MachineUnknown: ")


class TestWithdrawal:
    async def test_a_withdrawal_that_comes_first_wins(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        request = request_in(world)

        def withdraw(call: Any, side: str) -> None:
            if call.method == "PATCH" and side == "before":
                world.point = lambda call, side: None
                world.status(OPERATION_PATH, {"requests": []})

        world.point = withdraw
        with pytest.raises(Withdrawn):
            await world.effects().perform(request)
        assert world.stored().get("claims", []) == world.stored().get("receipts", []) == []
        assert world.machines["cp-1"].applies == 0

    async def test_a_claim_that_comes_first_is_carried_out_and_gets_its_receipt(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        world.machines["cp-1"].at_apply = lambda: world.status(OPERATION_PATH, {"requests": []})
        receipt = await performed(world)
        assert receipt["result"] == "Done"
        assert world.machines["cp-1"].applies == 1

    async def test_a_claim_whose_reply_is_lost_is_found_by_reading(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        lost: list[str] = []

        def lose(call: Any, side: str) -> None:
            if call.method == "PATCH" and side == "after" and not lost:
                lost.append(call.path)
                raise ReplyLost("no answer")

        world.point = lose
        assert (await performed(world))["result"] == "Done"
        assert (len(lost), len(world.claims()), world.machines["cp-1"].applies) == (1, 1, 1)

    async def test_a_receipt_whose_reply_is_lost_is_written_once(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        lost: list[str] = []

        def lose(call: Any, side: str) -> None:
            if call.method == "PATCH" and b'"receipts"' in (call.body or b"") and side == "after" and not lost:
                lost.append(call.path)
                raise ReplyLost("no answer")

        world.point = lose
        await performed(world)
        assert (len(lost), len(world.stored()["receipts"])) == (1, 1)

    async def test_an_id_with_a_receipt_is_never_acted_on_again(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        request = request_in(world)
        await world.effects().perform(request)
        with pytest.raises(Withdrawn):
            await world.effects(worker="worker-b").perform(request)
        assert world.machines["cp-1"].applies == 1

    async def test_an_operation_that_has_ended_gets_nothing_done(self, world: WorkerWorld) -> None:
        world.operation(world.apply_request("cp-1"))
        request = request_in(world)
        world.status(OPERATION_PATH, {"phase": "Cancelled"})
        with pytest.raises(Withdrawn):
            await world.effects().perform(request)


class TestRemoval:
    async def ready(self, world: WorkerWorld) -> None:
        world.cilium()
        world.kube_proxy()
        baseline = {"checksum": "old", "generation": 1, "at": "2026-01-01T00:00:00Z"}
        world.operation(REMOVE, baseline=baseline)

    async def test_exactly_the_objects_of_kube_proxy_go(self, world: WorkerWorld) -> None:
        await self.ready(world)
        for name in ("kube-proxy-windows", "kube-proxy-user-settings", "kube-proxy-config-fedcba9876543210"):
            world.put(f"{SYSTEM}/configmaps/{name}", config_map(name))
        receipt = await performed(world)
        assert receipt["result"] == "Done"
        assert not any(world.there(path_of(tree)) for tree in OURS)
        for name in (
            "kubeconfig-in-cluster",
            "kube-proxy-windows",
            "kube-proxy-user-settings",
            "kube-proxy-config-fedcba9876543210",
        ):
            assert world.there(f"{SYSTEM}/configmaps/{name}")
        assert [item["kind"] for item in world.stored()["removed"]] == [
            "DaemonSet",
            "ServiceAccount",
            "ClusterRoleBinding",
            "ConfigMap",
        ]

    async def test_each_delete_names_the_uid_that_was_read(self, world: WorkerWorld) -> None:
        await self.ready(world)
        bodies: list[bytes] = []
        world.target_point = lambda call, side: bodies.append(call.body or b"") if call.method == "DELETE" else None
        await performed(world)
        assert bodies
        assert all(b'"uid"' in body and b"Background" in body for body in bodies)

    async def test_it_waits_for_the_pods(self, world: WorkerWorld) -> None:
        await self.ready(world)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "kube-proxy-1",
                "namespace": "kube-system",
                "labels": {"tier": "node", "k8s-app": "kube-proxy"},
            },
            "spec": {"containers": [{"name": "kube-proxy", "image": "k"}]},
        }
        world.put(f"{SYSTEM}/pods/kube-proxy-1", pod)
        receipt = await performed(world)
        assert receipt["result"] == "Unknown"
        assert "1 pods" in receipt["message"]

    async def test_a_finalizer_stops_it_and_what_went_stays_recorded(self, world: WorkerWorld) -> None:
        await self.ready(world)
        path = f"{SYSTEM}/serviceaccounts/kube-proxy"
        world.send(world.target_api, "PATCH", path, {"metadata": {"finalizers": ["example.net/keep"]}})
        receipt = await performed(world)
        assert receipt["result"] == "Unknown"
        assert "ServiceAccount kube-proxy is held by the finalizers example.net/keep" in receipt["message"]
        assert [item["kind"] for item in world.stored()["removed"]] == ["DaemonSet"]

    @pytest.mark.parametrize("value", ["false", "partial"])
    async def test_it_is_refused_while_cilium_does_not_say_so(self, world: WorkerWorld, value: str) -> None:
        await self.ready(world)
        world.cilium(value)
        receipt = await performed(world)
        assert (receipt["result"], world.claims()) == ("Refused", [])
        assert receipt["message"].startswith("NewSideNotReady: ")
        assert world.there(f"{APPS}/daemonsets/kube-proxy")

    async def test_it_is_refused_while_the_agents_have_not_restarted(self, world: WorkerWorld) -> None:
        world.cilium(checksum="")
        world.kube_proxy()
        world.operation(REMOVE)
        assert (await performed(world))["message"].startswith("NewSideNotReady: ")
        assert world.there(f"{APPS}/daemonsets/kube-proxy")

    async def test_it_is_refused_while_a_control_plane_renders_it(self, world: WorkerWorld) -> None:
        await self.ready(world)
        watch = world.watches["cp-2"]
        watch.latest = await watch.look()
        assert (await performed(world))["message"].startswith("StillRendered: ")

    async def test_a_second_removal_finds_nothing_and_is_done(self, world: WorkerWorld) -> None:
        world.cilium()
        world.operation(REMOVE, baseline={"checksum": "old", "generation": 1, "at": "2026-01-01T00:00:00Z"})
        assert (await performed(world))["result"] == "Done"
        assert "removed" not in world.stored()

    async def test_a_claim_of_a_killed_worker_is_settled_by_looking(self, world: WorkerWorld) -> None:
        await self.ready(world)
        world.status(OPERATION_PATH, {"claims": [{"id": REMOVE["id"], "worker": "b", "at": "2026-01-01T00:00:00Z"}]})
        receipt = await performed(world)
        assert receipt["result"] == "Unknown"
        assert all(world.there(path_of(tree)) for tree in OURS)

    @pytest.mark.parametrize("deleted", [0, 1, 2, 4])
    async def test_what_a_killed_worker_removed_is_listed_and_what_it_left_is_not(
        self, world: WorkerWorld, deleted: int
    ) -> None:
        await self.ready(world)
        await killed_at_delete(world, deleted + 1)
        receipt = await performed(world)
        assert receipt["result"] == ("Done" if deleted == len(OURS) else "Unknown")
        kinds = ["DaemonSet", "ServiceAccount", "ClusterRoleBinding", "ConfigMap"]
        assert [item["kind"] for item in world.stored().get("removed", ())] == kinds[:deleted]

    async def test_a_deletion_whose_reply_was_lost_is_listed(self, world: WorkerWorld) -> None:
        await self.ready(world)

        def lose(call: Any, side: str) -> None:
            if call.method == "DELETE" and side == "after":
                raise ReplyLost("the connection broke")

        world.target_point = lose
        receipt = await performed(world)
        assert receipt["message"].startswith("RemovalStopped: DaemonSet kube-proxy")
        assert [item["kind"] for item in world.stored()["removed"]] == ["DaemonSet"]


class TestRestoration:
    async def test_every_missing_object_is_applied_as_talos_would(self, world: WorkerWorld) -> None:
        world.operation(RESTORE, target="enabled")
        world.put(f"{SYSTEM}/serviceaccounts/kube-proxy", OURS[1], manager="talos")
        receipt = await performed(world)
        assert receipt["result"] == "Done"
        assert [item["kind"] for item in world.stored()["restored"]] == ["ConfigMap", "ClusterRoleBinding", "DaemonSet"]
        daemonset = world.send(world.target_api, "GET", f"{APPS}/daemonsets/kube-proxy")
        assert (
            daemonset["metadata"]["annotations"]["config.k8s.io/owning-inventory"]
            == "talos-bootstrap-manifests-inventory"
        )
        assert daemonset["metadata"]["managedFields"][0]["manager"] == "talos"

    async def test_nothing_missing_is_done_without_a_claim(self, world: WorkerWorld) -> None:
        world.kube_proxy()
        world.operation(RESTORE, target="enabled")
        assert (await performed(world))["result"] == "Done"
        assert world.claims() == []

    async def test_it_waits_while_talos_has_not_rendered_them(self, world: WorkerWorld) -> None:
        world.operation(RESTORE, target="enabled")
        for fake in world.machines.values():
            fake.renders_late = True
        rounds: list[float] = []

        def later(call: Any, side: str) -> None:
            if call.path.endswith("/daemonsets/kube-proxy") and call.method == "GET" and side == "after":
                rounds.append(world.clock.boot_s())
                world.machines["cp-2"].renders_late = len(rounds) < 3

        world.target_point = later
        assert (await performed(world))["result"] == "Done"
        assert len(rounds) >= 3
        assert rounds[1] - rounds[0] >= 10

    async def test_it_stops_waiting_when_the_request_is_withdrawn(self, world: WorkerWorld) -> None:
        world.operation(RESTORE, target="enabled")
        for fake in world.machines.values():
            fake.unreachable = True
        request = request_in(world)

        def withdraw(call: Any, side: str) -> None:
            if world.clock.slept and side == "before":
                world.status(OPERATION_PATH, {"requests": []})

        world.point = withdraw
        with pytest.raises(Withdrawn):
            await world.effects().perform(request)

    async def test_it_applies_nothing_when_the_lock_went_while_it_waited(self, world: WorkerWorld) -> None:
        world.operation(RESTORE, target="enabled")
        for fake in world.machines.values():
            fake.renders_late = True

        def taken(_call: Any, side: str) -> None:
            if world.clock.slept and side == "before":
                world.status(CLUSTER_PATH, {"lock": None})
                world.machines["cp-1"].renders_late = False

        world.point = taken
        receipt = await performed(world)
        assert (receipt["result"], receipt["message"]) == (
            "Refused",
            "LockNotHeld: the lock of the cluster is held by nobody",
        )
        assert world.claims() == []

    async def test_it_asks_the_next_control_plane_when_one_is_down(self, world: WorkerWorld) -> None:
        world.operation(RESTORE, target="enabled")
        world.machines["cp-1"].unreachable = True
        assert (await performed(world))["result"] == "Done"

    async def test_it_belongs_to_the_direction_enabled(self, world: WorkerWorld) -> None:
        world.operation({**RESTORE, "mode": "replaced"})
        assert (await performed(world))["message"].startswith("ModeNotSet: ")

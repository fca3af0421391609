"""The controller of rollouts, from a request to its end, on the API server in memory (rollouts.md, sections 9.1, 9.2 and 11.3)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.names import LEAF_FINALIZER, ROLLOUT_FINALIZER
from gitops_ctl.fleet.node import node_of
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.authority import Authority, Block
from gitops_ctl.rollout.bootstrap import BoundPolicy, bind
from gitops_ctl.rollout.campaignpass import Passed
from gitops_ctl.rollout.controller import RolloutController, RolloutPorts, merge_patch
from gitops_ctl.rollout.planning import FleetSeen, PlanningPorts
from gitops_ctl.rollout.progress import Phase, Standing, planned
from gitops_ctl.rollout.sources import SourceSecret
from tests.support.admission_world import CONFIG_MAPS, DEVICES, LEAVES, NODES, ROLLOUTS, SYSTEM, AdmissionWorld
from tests.support.rollout_authority import by
from tests.support.rollout_planning import NAMESPACE, fleet, rollout

NAME = NamespacedName(NAMESPACE, "spring")


class Site:
    """One cluster with a request, and the controller of one process."""

    def __init__(self, world: AdmissionWorld, client: KubeClient) -> None:
        self.world = world
        self.approval, self.control = Block(), Block()
        self.events: list[tuple[str, str]] = []
        self.unseen = False
        self.controller = RolloutController(self._ports(client))

    async def once(self) -> float | None:
        """One reconcile of this process."""
        return await self.controller.reconcile(NAME)

    async def until(self, phase: str, most: int = 12) -> None:
        for _ in range(most):
            await self.once()
            if self.status.get("phase") == phase:
                return
        pytest.fail(f"the phase is {self.status.get('phase')}, not {phase}: {self.status.get('message')}")

    def _ports(self, client: KubeClient) -> RolloutPorts:
        async def policy() -> BoundPolicy:
            return await bind(client, namespace=SYSTEM, name="topology-policy")

        async def secrets(_rollout: JsonObject) -> Mapping[str, SourceSecret]:
            return {}

        async def authority(_rollout: JsonObject) -> Authority:
            return Authority(self.control, self.approval)

        planning = PlanningPorts(client, self.world.clock, policy, self._seen, secrets)
        return RolloutPorts(self.world.ports(client), planning, authority, self._emit, lambda: None)

    async def _seen(self, policy: Any, _rollout: JsonObject) -> FleetSeen | None:
        return self.fleet(policy)

    def fleet(self, policy: Any) -> FleetSeen | None:
        if self.unseen:
            return None
        devices = tuple(device_of(tree) for _, tree in self.world.api.store.all(DEVICES))
        nodes = {one.name: one for one in (node_of(tree) for _, tree in self.world.api.store.all(NODES))}
        return FleetSeen(
            devices, nodes, self.world.memo.look(devices, nodes, policy=policy, now=self.world.clock.wall())
        )

    def _emit(self, _regarding: JsonObject, kind: str, reason: str, _note: str) -> None:
        self.events.append((kind, reason))

    @property
    def tree(self) -> Any:
        return self.world.tree(ROLLOUTS, "spring")

    @property
    def status(self) -> Any:
        return self.tree.get("status", {})

    def approve(self) -> None:
        said = self.status["frozenPlan"]["hash"]
        self.world.change(ROLLOUTS, "spring", "spec", "approval", to={"planHash": said})
        self.approval = Block(declared={"planHash": said}, introduced=by("approve"))

    def preflight(self) -> None:
        """The workers say that every target is ready for it."""
        plan = self.status["frozenPlan"]
        for target in plan["targets"]:
            entry = {
                **{"rolloutUID": "rollout-uid", "planHash": plan["hash"], "result": "Passed", "checks": []},
                **{
                    "observedAt": "2026-11-02T11:59:50Z",
                    "workerPodUID": "pod-uid",
                    "workerRevision": f"sha256:{'5' * 64}",
                },
            }
            self.world.change(DEVICES, target["deviceName"], "status", "preflight", to=[entry])


@asynccontextmanager
async def requested(**plan: Any) -> AsyncIterator[Site]:
    """A request for these members of a plan, which nobody has looked at yet."""
    world = AdmissionWorld()
    world.change(
        CONFIG_MAPS,
        "topology-ledger",
        "metadata",
        "annotations",
        to={"topology.cisco.vk/managed-ledger": "true"},
        namespace=SYSTEM,
    )
    for name in ("edge-1", "edge-2", "edge-3"):
        world.change(DEVICES, name, "status", "preflight", to=None)
    request: Any = rollout(**plan)  # type: ignore[no-untyped-call]
    world.put(ROLLOUTS, request)
    async with world.client() as client:
        yield Site(world, client)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with requested() as made:
        yield made


async def test_a_request_is_frozen_published_and_waits_for_its_approval(site: Site) -> None:
    assert await site.once() == 0
    assert site.tree["metadata"]["finalizers"] == [ROLLOUT_FINALIZER]
    assert await site.once() == 0
    plan = site.status["frozenPlan"]
    assert site.status["phase"] == "AwaitingApproval"
    assert site.status["message"] == f"waiting for approval of {plan['hash']}"
    assert site.status["effectivePolicy"]["policy"] == plan["policy"]
    assert site.status["intentHash"].startswith("sha256:")
    assert [target["phase"] for target in site.status["targets"]] == ["Planned"] * 3
    assert ("Normal", "PlanFrozen") in site.events
    await site.once()
    assert site.status["phase"] == "AwaitingApproval"
    assert site.world.ledger.reservations == ()


async def test_an_approved_plan_is_carried_out(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.approve()
    site.preflight()
    await site.until("Executing")
    await site.once()
    assert [record.device_uid for record in site.world.ledger.reservations] == ["edge-1-uid"]
    assert site.events.count(("Normal", "RolloutApproved")) == 1
    assert ("Normal", "RolloutExecuting") in site.events


async def test_nothing_is_admitted_before_its_preflight_has_passed(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.approve()
    await site.until("Executing")
    await site.once()
    assert site.status["targets"][0]["phase"] == "Blocked"
    assert site.status["targets"][0]["reason"] == "PreflightPending"
    site.preflight()
    await site.once()
    assert site.status["targets"][0]["phase"] == "Admitted"


async def test_an_approval_of_another_plan_ends_the_campaign_and_nobody_looks_at_it_again(site: Site) -> None:
    await site.until("AwaitingApproval")
    conditions = [one for one in site.status["conditions"] if one["type"] != "Ready"]
    mismatch = {**conditions[0], "type": "Ready", "status": "False", "reason": "ApprovalHashMismatch"}
    site.world.change(ROLLOUTS, "spring", "status", "conditions", to=[*conditions, mismatch])
    site.world.change(ROLLOUTS, "spring", "status", "phase", to="Failed")
    site.world.faults.writes.clear()
    site.approve()
    assert await site.once() is None
    assert site.world.faults.writes == []
    site.world.change(ROLLOUTS, "spring", "metadata", "deletionTimestamp", to="2026-11-02T12:00:00Z")
    for _ in range(4):
        await site.once()
    assert site.tree is None


async def test_what_somebody_has_to_do_something_about_is_told_as_a_warning_once(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.world.change(CONFIG_MAPS, "topology-policy", "metadata", "uid", to="another", namespace=SYSTEM)
    for _ in range(3):
        await site.once()
    assert [event for event in site.events if event[0] == "Warning"] == [("Warning", "PolicyChanged")]


async def test_an_idle_campaign_writes_nothing(site: Site) -> None:
    await site.until("AwaitingApproval")
    await site.once()
    site.world.faults.writes.clear()
    assert await site.once() == 10
    assert site.world.faults.writes == []


async def test_a_failed_plan_names_the_device_and_is_tried_again_only_when_something_changed(site: Site) -> None:
    site.world.change(DEVICES, "edge-2", "status", "phase", to="Error")
    await site.until("Failed")
    assert site.status["message"].startswith("prod/edge-2: its phase is Error (DeviceNotReady)")
    assert site.events.count(("Warning", "PlanningFailed")) == 1
    site.world.faults.writes.clear()
    assert await site.once() == 10
    assert site.world.faults.writes == []
    site.world.change(DEVICES, "edge-2", "status", "phase", to="Ready")
    await site.until("AwaitingApproval")


async def test_a_device_that_is_still_taken_up_defers_planning_and_fails_nothing(site: Site) -> None:
    guard = [{"key": "topology.cisco.vk/uninitialized", "value": "true", "effect": "NoSchedule"}]
    site.world.change(NODES, "edge-2", "spec", "taints", to=guard, namespace="")
    await site.once()
    assert await site.once() == 5
    assert "phase" not in site.status
    assert ("Normal", "PlanningDeferred") in site.events
    site.world.change(NODES, "edge-2", "spec", "taints", to=[], namespace="")
    await site.until("AwaitingApproval")


async def test_what_is_frozen_was_read_again_and_not_from_the_informers(site: Site) -> None:
    trees: Any = fleet(3)  # type: ignore[no-untyped-call]
    stale = [device_of(tree) for tree in trees]
    site.world.change(DEVICES, "edge-3", "spec", "driver", to="NXOS")
    seen = site.fleet

    def late(policy: Any) -> FleetSeen | None:
        found = seen(policy)
        return None if found is None else FleetSeen(stale, found.nodes, found.look)

    site.fleet = late  # type: ignore[method-assign]
    await site.until("Failed")
    assert "prod/edge-3: its driver is NXOS" in site.status["message"]


async def test_nothing_is_planned_before_the_whole_fleet_was_seen(site: Site) -> None:
    site.unseen = True
    await site.once()
    assert await site.once() == 5
    assert site.status == {}


async def test_a_plan_that_this_version_does_not_run_is_held_with_its_word() -> None:
    async with requested(workloads={"policy": "Drain", "drain": {"namespaces": ["apps"]}}) as site:
        await site.until("Failed")
        ready = next(one for one in site.status["conditions"] if one["type"] == "Ready")
    assert ready["reason"] == "WorkloadPolicyUnsupported"


async def test_two_writers_of_a_status_never_both_win(site: Site) -> None:
    await site.once()
    site.world.faults.at = {len(site.world.faults.writes) + 1: "conflict"}
    with pytest.raises(Conflict):
        await site.once()
    assert "frozenPlan" not in site.status
    await site.once()
    assert "frozenPlan" in site.status


async def test_a_deletion_cancels_settles_and_then_lets_the_object_go(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.approve()
    site.preflight()
    await site.until("Executing")
    await site.once()
    site.world.change(ROLLOUTS, "spring", "metadata", "deletionTimestamp", to="2026-11-02T12:00:00Z")
    await site.once()
    assert site.status["phase"] == "Cancelled"
    assert site.world.ledger.reservations == ()
    await site.once()
    assert site.tree is None or ROLLOUT_FINALIZER not in site.tree["metadata"].get("finalizers", [])


async def test_a_leaf_that_is_deleted_goes_once_it_is_settled(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.approve()
    site.preflight()
    await site.until("Executing")
    await site.once()
    leaf = site.world.leaf()["metadata"]["name"]
    site.world.change(LEAVES, leaf, "metadata", "deletionTimestamp", to="2026-11-02T12:00:00Z")
    site.world.api.store.remove(ROLLOUTS, (NAMESPACE, "spring"))
    await site.once()
    assert LEAF_FINALIZER in site.world.tree(LEAVES, leaf)["metadata"]["finalizers"]
    site.world.change(LEAVES, leaf, "status", "managerAdmission", "state", to="Settled")
    await site.once()
    left = site.world.tree(LEAVES, leaf)
    assert left is None or LEAF_FINALIZER not in left["metadata"].get("finalizers", [])


async def test_a_prepared_leaf_that_is_deleted_stays_while_its_campaign_is_there(site: Site) -> None:
    await site.until("AwaitingApproval")
    site.approve()
    site.preflight()
    await site.until("Executing")
    await site.once()
    leaf = site.world.leaf()["metadata"]["name"]
    site.world.change(LEAVES, leaf, "metadata", "deletionTimestamp", to="2026-11-02T12:00:00Z")
    site.world.change(LEAVES, leaf, "status", "managerAdmission", "state", to="Settled")
    site.world.change(LEAVES, leaf, "status", "phase", to="Prepared")
    await site.controller.reconcile(NamespacedName(NAMESPACE, "another"))
    assert LEAF_FINALIZER in site.world.tree(LEAVES, leaf)["metadata"]["finalizers"]


@pytest.mark.parametrize(
    ("stored", "wanted", "change"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 2}, {"a": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, {"a": {"y": None}}),
        ({"a": {"x": {"z": 1}}}, {"a": {"x": {"z": 2}}}, {"a": {"x": {"z": 2}}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    ],
)
def test_a_patch_holds_what_differs_and_takes_leftovers_away(stored: Any, wanted: Any, change: Any) -> None:
    assert merge_patch(stored, wanted) == change


async def test_a_closed_window_is_looked_at_again_as_the_option_says(site: Site) -> None:
    await site.until("AwaitingApproval")
    campaign = site.world.campaign()
    waits = [replace(planned(target), reason="ActivationWindowNotOpen") for target in campaign.targets]
    passed = Passed({}, Standing(Phase.PAUSED, waits))
    assert site.controller._next(passed) == 60
    assert site.controller._next(replace(passed, soak_ends=site.world.clock.wall() + timedelta(seconds=7))) <= 7

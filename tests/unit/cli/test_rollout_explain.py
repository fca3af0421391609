"""`gitops-ctl explain rollout`: the first unmet condition with its numbers, as the manager itself would find it."""

import json
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.cli.main import run
from gitops_ctl.cli.rolloutreader import RolloutReader
from gitops_ctl.cli.rolloutwhy import Why, why
from gitops_ctl.core.errors import Forbidden, NotFound
from gitops_ctl.rollout.authority import Authority, Block
from gitops_ctl.rollout.campaignpass import CampaignPass
from tests.support.admission_world import CONFIG_MAPS, DEVICES, LEAVES, ROLLOUTS, SYSTEM, AdmissionWorld, granted
from tests.support.rollout_planning import NAMESPACE, REVISION, ago, rollout

SOAKS = {"maxObservationAgeSeconds": 300, "canarySoakSeconds": 60, "waveSoakSeconds": 30}


async def explained(world: AdmissionWorld, namespace: str = NAMESPACE) -> Why:
    async with world.client() as client:
        return why(await RolloutReader(client).read(namespace, "spring"))


async def passed(world: AdmissionWorld) -> None:
    """One pass of the manager, and its status in the cluster."""
    async with world.client() as client:
        found = await CampaignPass(world.ports(client), world.campaign(), Authority(Block(), Block(), Block())).run()
    tree = world.tree(ROLLOUTS, "spring")
    status = {key: value for key, value in {**tree["status"], **found.status}.items() if value is not None}
    world.put(ROLLOUTS, {**tree, "status": status})


def target(found: Why, name: str) -> Any:
    return next(one for one in found.targets if one.device == name).unmet


async def test_a_plan_that_nobody_approved_waits_for_its_exact_hash_and_says_how_far_the_preflight_is():
    world = AdmissionWorld()
    world.change(ROLLOUTS, "spring", "status", "approval", to=None)
    world.change(ROLLOUTS, "spring", "status", "phase", to="AwaitingApproval")
    world.change(DEVICES, "edge-2", "status", "preflight", to=None)
    first = (await explained(world)).first
    hash_ = world.campaign().plan_hash
    assert first is not None
    assert first.reason == "ApprovalRequired"
    assert first.message == f"nobody has approved the plan {hash_}; the preflight is done on 2 of 3 devices"
    assert first.remedy.startswith(f"`gitops-ctl approve FILE planHash={hash_}`")


async def test_an_approval_that_no_commit_has_is_named_as_such():
    world = AdmissionWorld()
    hash_ = world.campaign().plan_hash
    world.change(ROLLOUTS, "spring", "spec", "approval", to={"planHash": hash_})
    refused = {"planHash": hash_, "valid": False, "reason": "NotFromGit", "validatedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "status", "approval", to=refused)
    first = (await explained(world)).first
    assert first is not None
    assert first.reason == "NotFromGit"


async def test_nothing_in_the_way_is_said_too_and_the_others_wait_for_the_canary():
    found = await explained(AdmissionWorld())
    assert found.first is not None
    assert found.first.reason == "NextPass"
    assert target(found, "edge-1").reason == "NextPass"
    waits = target(found, "edge-2")
    assert (waits.reason, waits.message) == ("WaitsForCanaries", "0 of 1 canaries succeeded; waits for edge-1")


async def test_a_full_budget_is_told_with_its_numbers_and_who_has_it():
    world = AdmissionWorld(budgets={"maxConcurrentTransfers": 1, "maxUnavailable": 1}, canaries=_both())
    await granted(world)
    found = await explained(world)
    waits = target(found, "edge-2")
    assert waits.reason == "AdmissionBlocked"
    assert "1 of 1" in waits.message
    assert world.target("edge-1").child_name in waits.message


async def test_an_admission_that_is_under_way_is_no_full_budget():
    world = AdmissionWorld()
    await granted(world)
    world.api.store.remove(LEAVES, (NAMESPACE, world.target().child_name))
    waits = target(await explained(world), "edge-1")
    assert (waits.reason, waits.message) == ("NextPass", "its reservation is in the ledger; its leaf is made next")


async def test_a_pod_on_the_node_is_named():
    world = AdmissionWorld()
    world.pod("web", "edge-1")
    waits = target(await explained(world), "edge-1")
    assert waits.reason == "AdmissionBlocked"
    assert waits.message == f"1 Pod on Node edge-1: {NAMESPACE}/web"


async def test_a_device_of_another_rollout_names_that_rollout():
    world = AdmissionWorld(canaries=_both())
    await granted(world)
    lock = {**world.lock(), "campaignName": "autumn", "campaignUID": "other", "deviceUID": "edge-2-uid"}
    world.change(DEVICES, "edge-2", "status", "topologyLock", to=lock)
    waits = target(await explained(world), "edge-2")
    assert waits.reason == "AdmissionBlocked"
    assert "locked by rollout prod/autumn" in waits.message


async def test_a_missing_preflight_and_a_failed_one_are_told_apart():
    world = AdmissionWorld()
    world.change(DEVICES, "edge-1", "status", "preflight", to=None)
    assert "has not been done yet" in target(await explained(world), "edge-1").message
    failed = {
        **{"rolloutUID": "rollout-uid", "planHash": world.campaign().plan_hash, "observedAt": ago(10)},
        **{"workerPodUID": "pod-uid", "workerRevision": REVISION, "result": "Failed"},
        "checks": [{"name": "FlashSpace", "status": "Fail", "message": "needs 2 GiB, has 1 GiB"}],
    }
    world.change(DEVICES, "edge-1", "status", "preflight", to=[failed])
    waits = target(await explained(world), "edge-1")
    assert "needs 2 GiB, has 1 GiB" in waits.message


async def test_a_leaf_that_no_worker_has_seen_waits_for_its_worker():
    world = AdmissionWorld()
    await passed(world)
    found = await explained(world)
    waits = target(found, "edge-1")
    assert waits.reason == "WorkerProtocolPending"
    assert "has not looked at leaf" in waits.message
    assert waits.remedy == "see whether the network worker of the namespace runs"
    assert found.first is not None
    assert found.first.message.startswith("edge-1: ")


async def test_a_transfer_shows_its_bytes_and_claims():
    world = AdmissionWorld()
    await granted(world)
    await passed(world)
    world.claim()
    name = world.target().child_name
    world.change(LEAVES, name, "status", "phase", to="Transferring")
    moved = {"bytesTransferred": 312 * 2**20, "totalBytes": 1249368115}
    world.change(LEAVES, name, "status", "transferProgress", to=moved)
    waits = target(await explained(world), "edge-1")
    assert waits.reason == "Transferring"
    assert waits.message == "its worker is at Transferring; 312 MiB of 1.2 GiB sent; claimed PrimaryInstall"


async def test_a_window_that_is_not_open_is_told_with_the_seconds_that_are_left():
    window = {"notBefore": ago(-90), "notAfter": ago(-3600)}
    world = AdmissionWorld(maintenanceWindow=window)
    await granted(world)
    waits = target(await explained(world), "edge-1")
    assert waits.reason == "MaintenanceWindowNotOpen"
    assert waits.message.startswith(f"the window opens at {window['notBefore']}, in ")


async def test_an_outcome_that_is_not_proven_points_to_the_recovery():
    world = AdmissionWorld()
    await granted(world)
    world.claim()
    world.finish("edge-1", "Failed", settled=False)
    waits = target(await explained(world), "edge-1")
    assert waits.reason == "MutationOutcomeUnresolved"
    assert "PrimaryInstall" in waits.message
    assert "gitops-ctl rollout recover" in waits.remedy


async def test_a_soak_says_how_many_seconds_are_left():
    world = AdmissionWorld(health=SOAKS)
    await granted(world)
    world.claim()
    world.finish()
    world.clock.wall_offset += timedelta(seconds=5)
    world.heal()
    await passed(world)
    world.clock.wall_offset += timedelta(seconds=20)
    world.heal()
    waits = target(await explained(world), "edge-1")
    assert waits.reason == "HealthyPostMutationSoak"
    assert "of 60 s are left" in waits.message


async def test_passed_canaries_wait_for_a_larger_control_revision():
    world = AdmissionWorld(health=SOAKS)
    await granted(world)
    world.claim()
    world.finish()
    for seconds in (5, 61, 1):
        world.clock.wall_offset += timedelta(seconds=seconds)
        world.heal()
        await passed(world)
    first = (await explained(world)).first
    assert first is not None
    assert (first.reason, first.message) == (
        "CanariesPassed",
        "1 of 1 canaries succeeded; 2 more wait for a control revision above 0",
    )
    assert "gitops-ctl rollout resume spring" in first.remedy


async def test_a_pause_names_who_asked_why_and_how_many_leaves_have_acknowledged():
    world = AdmissionWorld()
    await granted(world)
    control = {"revision": 1, "pause": True, "requestedBy": "network-author", "reason": "storm in zone a"}
    world.change(ROLLOUTS, "spring", "spec", "control", to=control)
    first = (await explained(world)).first
    assert first is not None
    assert first.message == (
        "control revision 1 of network-author pauses it (storm in zone a); 0 of 1 leaves have acknowledged it"
    )


async def test_a_policy_that_changed_its_shape_needs_another_rollout():
    world = AdmissionWorld()
    world.write_policy(
        fleetSelector={"matchLabels": {"topology.cisco.vk/managed": "true", "topology.cisco.vk/site": "site-a"}}
    )
    first = (await explained(world)).first
    assert first is not None
    assert first.reason == "PolicyChanged"
    assert "structural_hash" in first.message
    world.api.store.remove(CONFIG_MAPS, (SYSTEM, "topology-policy"))
    gone = (await explained(world)).first
    assert gone is not None
    assert gone.reason == "PolicyUnavailable"


async def test_a_failed_rollout_names_the_device_and_says_that_the_others_were_not_touched():
    world = AdmissionWorld()
    await granted(world)
    world.claim()
    world.finish("edge-1", "RolledBack")
    world.change(LEAVES, world.target().child_name, "status", "message", to="came back with 17.15.4")
    world.clock.wall_offset += timedelta(seconds=5)
    world.heal()
    await passed(world)
    first = (await explained(world)).first
    assert first is not None
    assert "edge-1 ended RolledBack" in first.message
    assert "make a new rollout" in first.remedy


async def test_a_cancelled_one_counts_what_is_not_settled():
    world = AdmissionWorld()
    world.change(ROLLOUTS, "spring", "spec", "control", to={"revision": 1, "cancel": True})
    first = (await explained(world)).first
    assert first is not None
    assert first.reason == "Cancelling"
    assert first.message.startswith("control revision 1 cancels it: 3 of 3 targets are not settled yet")


async def test_a_rollout_without_a_plan_says_what_the_planner_said():
    world = AdmissionWorld()
    bare = rollout()
    bare["status"] = {
        "phase": "Failed",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PlanningFailed", "message": "edge-2: no Node"}],
    }
    world.put(ROLLOUTS, bare)
    found = await explained(world)
    assert found.first is not None
    assert (found.first.reason, found.first.message, found.targets) == ("PlanningFailed", "edge-2: no Node", ())
    world.put(ROLLOUTS, rollout())
    component = {"app.kubernetes.io/component": "topology-policy"}
    world.change(CONFIG_MAPS, "topology-policy", "metadata", "labels", to=component, namespace=SYSTEM)
    deferred = (await explained(world)).first
    assert deferred is not None
    assert deferred.reason == "PlanningDeferred"


async def test_what_may_not_be_seen_is_named_and_the_rest_is_said():
    world = AdmissionWorld()
    async with world.client() as client:
        list_all: Any = client.list_all

        async def narrow(path: str, **more: Any) -> Any:
            if path.startswith(("/api/v1/nodes", "/apis/gitops-ctl.dev")):
                raise Forbidden(f"may not list {path}")
            return await list_all(path, **more)

        client.list_all = narrow  # type: ignore[method-assign]
        reader = RolloutReader(client)
        found = why(await reader.read("", "spring"))
    assert "the Nodes" in reader.unseen
    assert found.first is not None
    assert len(found.targets) == 3


async def test_an_unknown_name_is_an_error():
    world = AdmissionWorld()
    async with world.client() as client:
        with pytest.raises(NotFound, match="no rollout winter in namespace prod"):
            await RolloutReader(client).read(NAMESPACE, "winter")


def test_the_command_says_the_first_condition_above_the_devices(monkeypatch, capsys):
    world = AdmissionWorld()

    @asynccontextmanager
    async def connected(_target: object):
        async with world.client() as client:
            yield client

    monkeypatch.setattr("gitops_ctl.cli.rolloutexplain.connected", connected)
    assert run(["explain", "rollout", "prod/spring"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("prod/spring is Executing.  NextPass: edge-1: nothing of its own is in its way")
    assert "WaitsForCanaries" in told
    assert run(["explain", "rollout", "spring", "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["first"]["reason"] == "NextPass"
    assert [one["device"] for one in data["targets"]] == ["edge-1", "edge-2", "edge-3"]


def _both() -> list[dict[str, Any]]:
    return [{"name": "c9300", "devices": ["edge-1", "edge-2"]}]

"""What has to hold before a claim, and what the journal knows that the cluster forgot (rollouts.md, sections 13.2 and 13.9)."""

import asyncio
import shutil

import pytest

from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.journal import JournalUnavailable
from tests.support.admission_world import DEVICES, LEAVES
from tests.support.leaf_world import NEW, OLD, LeafWorld
from tests.support.rollout_planning import NAMESPACE, ago
from tools.peers.iosxe.state import AUTO_ABORT_S


@pytest.fixture
def world(tmp_path):
    made = LeafWorld(tmp_path)
    yield made
    made.journal.close()
    assert made.violations() == []


async def denied(world, reason):
    """The leaf waits for the first claim, and says why."""
    await world.run(hours=0.1)
    ready = world.condition("Ready")
    assert ready["reason"] == reason, (ready, world.status)
    assert world.stages == []
    assert world.mutations() == []
    return ready["message"]


async def then_succeeds(world):
    await world.run()
    assert world.status["phase"] == "Succeeded", world.status


async def test_a_pod_on_the_node_forbids_the_claim_until_it_has_ended(world):
    await world.grant()
    world.pod("app", "edge-1")
    assert f"{NAMESPACE}/app" in await denied(world, "WorkloadsRunning")
    world.pod("app", "edge-1", phase="Succeeded")
    await then_succeeds(world)


async def test_an_application_of_the_switch_forbids_the_claim(world):
    await world.grant()
    with world.switch.change() as device:
        device["apps"] = [{"name": "telemetry", "configured": True, "state": "RUNNING"}]
    assert "telemetry" in await denied(world, "DeviceWorkloadsRunning")


async def test_an_inventory_of_applications_that_cannot_be_read_forbids_the_claim(world):
    await world.grant()
    world.switch.fault("omit", on="get", subtree="app-hosting-oper-data", times=1000)
    await denied(world, "DeviceWorkloadCheckFailed")


async def test_an_install_operation_of_somebody_else_forbids_the_first_claim(world):
    await world.grant()

    async def occupy(method, _when):
        if method == "Verify" and "sourceDigest" in world.status:
            with world.switch.change() as device:
                device["operation"] = {"kind": "add", "by": "somebody", "startedAt": 0}

    world.on_call = occupy
    await denied(world, "DeviceNotQuiescent")


async def test_no_claim_without_an_acknowledged_session(world):
    await world.grant()
    world.maintenance.acknowledged = False
    await denied(world, "MaintenancePending")
    assert world.maintenance.held == world.leaf()["metadata"]["uid"]
    world.maintenance.acknowledged = True
    messages = []

    async def read(method, _when):
        if method in ("Install", "Activate"):
            messages.append((world.status["message"], world.condition("Ready")["reason"]))

    world.on_call = read
    await then_succeeds(world)
    assert set(messages) == {("", "Progressing")}


async def test_a_journal_that_is_another_one_claims_nothing(world):
    await world.grant()
    world.change(DEVICES, "edge-1", "status", "workerReport", "journal", "id", to="another-journal")
    assert "another-journal" in await denied(world, "ClaimHistoryLost")


async def test_a_journal_that_cannot_be_written_claims_nothing(world, monkeypatch):
    await world.grant()

    def fail(_claim):
        raise JournalUnavailable("no space left", subject="journal")

    with monkeypatch.context() as patched:
        patched.setattr(world.journal, "intend", fail)
        await denied(world, "JournalUnavailable")
    await then_succeeds(world)


@pytest.mark.parametrize("stage", ["PrimaryInstall", "PrimaryActivation"])
async def test_a_window_that_closed_ends_the_leaf_without_a_further_claim(tmp_path, stage):
    world = LeafWorld(tmp_path, plan={"maintenanceWindow": {"notBefore": ago(60), "notAfter": ago(-3600)}})
    await world.grant()

    async def close(method, when):
        if stage == "PrimaryActivation" and (method, when) == ("Install", "after"):
            world.clock.now_s += 7200

    if stage == "PrimaryInstall":
        world.clock.now_s += 7200
    world.on_call = close
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "MaintenanceWindowClosed")
    assert stage not in world.stages
    assert not world.stages or world.condition("DeviceMutationSettled")["status"] == "True"
    world.journal.close()


async def test_a_window_that_is_not_open_is_waited_for(tmp_path):
    world = LeafWorld(tmp_path, plan={"maintenanceWindow": {"notBefore": ago(-3600), "notAfter": ago(-36000)}})
    await world.grant()
    await denied(world, "MaintenanceWindowNotOpen")
    await then_succeeds(world)
    assert world.status["installStartTime"] >= ago(-3600)
    world.journal.close()


def fail_sibling(world):
    """Another leaf of the campaign failed."""
    tree = world.leaf()
    metadata = {**tree["metadata"], "name": "sibling", "uid": "sibling-uid"}
    spec = {**tree["spec"], "deviceRef": {"name": "edge-2"}}
    world.put(LEAVES, {**tree, "metadata": metadata, "spec": spec, "status": {"phase": "Failed"}})


async def test_a_failed_sibling_forbids_the_first_claim(tmp_path):
    world = LeafWorld(tmp_path, 2)
    await world.grant()
    fail_sibling(world)
    assert "sibling" in await denied(world, "CampaignTargetFailed")
    world.journal.close()


async def test_a_sibling_that_fails_later_ends_a_claimed_leaf_once_its_switch_is_at_rest(tmp_path):
    world = LeafWorld(tmp_path, 2)
    await world.grant()

    async def fail(method, when):
        if (method, when) == ("Install", "after"):
            fail_sibling(world)

    world.on_call = fail
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "CampaignTargetFailed")
    assert world.mutations() == ["Install"]
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    world.journal.close()


# ---- what only the journal knows ----


def restore(world):
    """The cluster is restored to the moment of the grant; the leaf has another UID and nothing of what was done."""
    tree = world.leaf()
    status = {name: tree["status"][name] for name in ("managerAdmission", "managerControl")}
    world.put(LEAVES, {**tree, "status": status})


async def test_a_claim_that_only_the_journal_knows_is_written_back_and_settled_by_looking(world):
    await world.grant()
    await world.run()
    claims = world.status["managedMutationClaims"]
    restore(world)
    await world.run()
    assert world.status["managedMutationClaims"] == claims
    assert world.status["phase"] == "Succeeded"
    assert world.mutations() == ["Install", "Activate", "Commit"]


async def test_after_a_restore_in_the_middle_of_an_activation_nothing_is_sent_again(world):
    await world.grant()

    async def torn(method, when):
        if (method, when) == ("Activate", "after"):
            restore(world)

    world.on_call = torn
    await world.run()
    assert world.mutations() == ["Install", "Activate", "Commit"]
    assert (world.status["phase"], world.status["runningVersion"]) == ("Succeeded", NEW)


async def test_a_claim_is_written_back_in_any_admission_state(world):
    await world.grant()
    await world.run()
    restore(world)
    admission = {**world.status["managerAdmission"], "state": "Revoked", "revocationReason": "CampaignCancelled"}
    world.set_leaf("status", "managerAdmission", to=admission)
    await world.run()
    assert world.stages == ["PrimaryActivation", "PrimaryInstall"]
    assert world.mutations() == ["Install", "Activate", "Commit"]


async def test_with_cluster_and_journal_lost_nothing_is_claimed(world):
    await world.grant()
    await world.run()
    restore(world)
    world.change(
        DEVICES,
        "edge-1",
        "status",
        "workerReport",
        "journal",
        to={
            "id": "journal-id",
            "sequence": 9,
            "state": "Ready",
        },
    )
    world.journal.close()
    shutil.rmtree(world.folder / "journal")
    world.restart()
    with world.switch.change() as device:
        device["running"] = device["committed"] = OLD
        for one in device["packages"]:
            one["state"] = "committed" if one["version"] == OLD else "inactive"
    await world.run(hours=0.1)
    assert world.condition("Ready")["reason"] == "ClaimHistoryLost"
    assert world.stages == []
    assert world.mutations() == ["Install", "Activate", "Commit"]


# ---- what the manager wants at every point ----

POINTS = [(method, when) for method in ("Install", "Activate") for when in ("before", "after")]


def controlling(world, point, **control):
    """At this call of the worker the manager has another control for the leaf."""

    async def say(method, when):
        if (method, when) == point:
            before = world.status["managerControl"]
            if control.items() <= before.items():
                return
            wanted = {
                **before,
                "revision": before["revision"] + 1,
                "updatedAt": to_rfc3339(world.clock.wall()),
                **control,
            }
            world.set_leaf("status", "managerControl", to=wanted)

    return say


@pytest.mark.parametrize("point", POINTS, ids=["-".join(point) for point in POINTS])
async def test_a_pause_at_any_point_lets_go_on_what_was_sent_and_claims_nothing_more(world, point):
    await world.grant()
    world.on_call = controlling(world, point, pause=True)
    await world.run(hours=2)
    method = point[0]
    assert world.status["workerControl"]["observedControlRevision"] == world.status["managerControl"]["revision"]
    if method == "Install":
        assert world.mutations() == ["Install"]
        assert world.status["phase"] == "Validating"
        assert world.status["workerControl"]["effectiveState"] == "Claimed"
        world.on_call = None
        control = {**world.status["managerControl"], "revision": 9, "pause": False}
        world.set_leaf("status", "managerControl", to=control)
        await world.run()
    assert world.mutations() == ["Install", "Activate", "Commit"]
    assert world.status["phase"] == "Succeeded"


@pytest.mark.parametrize("point", POINTS, ids=["-".join(point) for point in POINTS])
async def test_a_revocation_at_any_point_ends_the_leaf_when_its_outcome_is_proven(world, point):
    await world.grant()

    async def revoke(method, when):
        if (method, when) == point:
            admission = {**world.status["managerAdmission"], "state": "Revoked"}
            world.set_leaf("status", "managerAdmission", to={**admission, "revocationReason": "CampaignCancelled"})

    world.on_call = revoke
    await world.run()
    if point[0] == "Install":
        assert (world.status["phase"], world.status["failureReason"]) == ("Failed", "CampaignCancelled")
        assert world.mutations() == ["Install"]
    else:
        assert world.status["phase"] == "Succeeded"
        assert world.mutations() == ["Install", "Activate", "Commit"]
    assert world.condition("DeviceMutationSettled")["status"] == "True"


async def test_a_cancel_between_the_checks_and_the_claim_wins(world):
    await world.grant()

    async def cancel(method, when):
        if (method, when) == ("Verify", "after") and "sourceDigest" in world.status:
            await controlling(world, (method, when), cancel=True)(method, when)

    world.on_call = cancel
    await world.run(hours=0.2)
    assert world.stages == []
    assert world.mutations() == []
    assert world.status["workerControl"]["effectiveState"] == "Cancelled"


async def test_a_pause_during_a_transfer_is_answered_during_the_transfer(world):
    await world.grant()
    seen = []

    async def pause(method, when):
        if (method, when) == ("Install", "before"):
            await controlling(world, (method, when), pause=True)(method, when)
            world.clock.look.set()
            async with asyncio.timeout(30):
                while not seen:
                    await asyncio.sleep(0)
                    control = world.status["workerControl"]
                    if control["observedControlRevision"] == world.status["managerControl"]["revision"]:
                        seen.append(control["effectiveState"])

    world.on_call = pause
    await world.run(hours=0.1)
    assert seen == ["Claimed"]
    assert world.mutations() == ["Install"]


async def test_two_persons_end_a_leaf_whose_outcome_nobody_can_see(world):
    await world.grant()

    async def vanish(method, when):
        if (method, when) == ("Activate", "after"):
            world.gnoi.away.add("edge-1:9339")
            world.netconf.away.add("edge-1")

    world.on_call = vanish
    await world.run(hours=AUTO_ABORT_S / 3600)
    assert world.status["phase"] == "RebootTimeout"
    claims = [{name: one[name] for name in ("stage", "claimedAt")} for one in world.status["managedMutationClaims"]]
    world.set_leaf(
        "status",
        "managerRecovery",
        to={
            "outcome": "OutcomeVerifiedByHand",
            "claims": claims,
            "persons": ["one", "two"],
            "commit": "abc",
            "recordedAt": to_rfc3339(world.clock.wall()),
        },
    )
    await world.run()
    assert world.condition("DeviceMutationSettled")["reason"] == "OutcomeVerifiedByHand"
    assert world.journal.open_claims("edge-1-uid") == ()
    assert world.mutations() == ["Install", "Activate"]


async def test_a_leaf_that_is_bound_to_another_worker_is_left_alone(world):
    await world.grant()
    world.runtime = {"username": "system:serviceaccount:prod:somebody"}
    before = world.leaf()["metadata"]["resourceVersion"]
    await world.run(hours=0.1)
    assert world.leaf()["metadata"]["resourceVersion"] == before
    assert world.calls == []


async def test_another_pod_goes_on_looking_and_claims_nothing(world):
    await world.grant()

    async def replace(method, when):
        if (method, when) == ("Install", "after"):
            world.runtime = {"pod_uid": "another-pod"}

    world.on_call = replace
    await world.run(hours=0.2)
    assert world.status["phase"] == "Validating"
    assert world.status["workerControl"]["effectiveState"] == "Claimed"
    assert world.mutations() == ["Install"]


async def test_no_session_is_opened_to_a_retired_device_and_its_claims_are_history(world):
    await world.grant()

    async def vanish(method, when):
        if (method, when) == ("Activate", "after"):
            world.gnoi.away.add("edge-1:9339")

    world.on_call = vanish
    await world.run(hours=0.2)
    assert world.journal.open_claims("edge-1-uid") != ()
    retired = {"rolloutName": "spring", "rolloutUID": "rollout-uid", "leafUID": world.leaf()["metadata"]["uid"]}
    claims = [{name: one[name] for name in ("stage", "claimedAt")} for one in world.status["managedMutationClaims"]]
    signed = {"persons": ["one", "two"], "commit": "abc"}
    now = to_rfc3339(world.clock.wall())
    world.change(DEVICES, "edge-1", "status", "retired", to={**retired, **signed, "at": now})
    recovery = {"outcome": "DeviceRetired", "claims": claims, **signed, "recordedAt": now}
    world.set_leaf("status", "managerRecovery", to=recovery)
    before, calls = world.leaf()["metadata"]["resourceVersion"], len(world.calls)
    world.gnoi.away.clear()
    await world.run(hours=0.2)
    assert (world.leaf()["metadata"]["resourceVersion"], len(world.calls)) == (before, calls)
    assert world.journal.open_claims("edge-1-uid") == ()


async def test_with_a_journal_that_cannot_be_used_an_upgrade_is_looked_at_and_nothing_is_sent(world):
    async def damage(method, when):
        if (method, when) == ("Activate", "after"):
            world.journal.problem = "line 3 of claims.log is damaged"

    await world.grant()
    world.on_call = damage
    await world.run(hours=4)
    assert world.mutations() == ["Install", "Activate"]
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert world.status["runningVersion"] == OLD

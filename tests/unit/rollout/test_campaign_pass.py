"""A campaign goes its way pass by pass: approval, canaries, pause, waves, and what stops it (rollouts.md, sections 9.1 and 11.2)."""

from dataclasses import replace

import pytest

from gitops_ctl.fleet.names import NETWORK_WORKER_POD_NAME, NETWORK_WORKER_POD_UID
from gitops_ctl.rollout.authority import Block
from tests.support.admission_world import CONFIG_MAPS, NODES, ROLLOUTS, SYSTEM
from tests.support.kube_crash import Crash
from tests.support.rollout_authority import by
from tests.support.rollout_campaign import Campaign


@pytest.fixture
def campaign() -> Campaign:
    return Campaign()


async def test_one_target_is_admitted_in_a_pass_and_canaries_go_first(campaign: Campaign) -> None:
    passed = await campaign.once()
    assert passed.standing.phase == "Executing"
    assert campaign.phases() == {"edge-1": "Admitted", "edge-2": "WaitingForAdmission", "edge-3": "WaitingForAdmission"}
    assert campaign.reason("edge-1") == "ReservationGranted"
    await campaign.once()
    assert campaign.reason("edge-1") == "WorkerProtocolPending"
    assert campaign.phases()["edge-2"] == "WaitingForAdmission"
    assert campaign.status["counts"] == {"total": 3, "planned": 2, "admitted": 1}


async def test_a_campaign_ends_after_canary_pause_resume_and_waves(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.upgrade("edge-1")
    await campaign.settle("edge-1", 60)
    assert campaign.phases()["edge-1"] == "Succeeded"
    assert (campaign.status["phase"], campaign.condition("CanaryResumeRequired")) == (
        "Paused",
        ("True", "CanariesPassed"),
    )
    await campaign.once()
    assert campaign.status["phase"] == "Paused"

    campaign.ask(revision=1)
    await campaign.once()
    assert campaign.condition("CanaryResumeRequired") == ("False", "ResumeAuthorized")
    assert campaign.phases()["edge-2"] == "Admitted"
    await campaign.once()
    assert campaign.phases()["edge-3"] == "Admitted"
    for name in ("edge-2", "edge-3"):
        await campaign.upgrade(name)
    await campaign.settle("edge-2", 30)
    assert campaign.status["phase"] == "Succeeded"
    assert campaign.condition("Ready") == ("True", "Succeeded")
    assert campaign.status["counts"] == {"total": 3, "succeeded": 3}
    assert campaign.world.ledger.reservations == ()


async def test_while_a_canary_soaks_nothing_else_is_admitted_and_it_is_named(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.upgrade("edge-1")
    campaign.later(1)
    passed = await campaign.once()
    assert passed.standing.phase == "Soaking"
    assert passed.soak_ends is not None
    waiting = campaign.status["targets"][1]
    assert (waiting["phase"], waiting["message"]) == (
        "WaitingForAdmission",
        "waits for edge-1: HealthyPostMutationSoak",
    )


async def test_a_failure_fences_every_other_target_and_touches_nothing_else(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.upgrade("edge-1", "RolledBack")
    await campaign.once()
    assert campaign.status["phase"] == "Failed"
    assert campaign.status["message"].startswith("edge-1 ended RolledBack: nothing else begins")
    assert {campaign.world.admission(name)["revocationReason"] for name in ("edge-2", "edge-3")} == {
        "CampaignTargetFailed"
    }
    assert [record.device_uid for record in campaign.world.ledger.reservations] == ["edge-1-uid"]
    await campaign.settle("edge-1", 60)
    assert campaign.phases()["edge-1"] == "Failed"
    assert campaign.world.ledger.reservations == ()


async def test_without_an_approval_nothing_is_admitted(campaign: Campaign) -> None:
    campaign.world.change(ROLLOUTS, "spring", "status", "approval", to=None)
    await campaign.once()
    assert campaign.status["phase"] == "AwaitingApproval"
    said = campaign.world.campaign().plan_hash
    campaign.world.change(ROLLOUTS, "spring", "spec", "approval", to={"planHash": said})
    await campaign.once()
    assert campaign.status["approval"]["reason"] == "NotFromGit"
    assert campaign.world.ledger.reservations == ()
    campaign.approval = Block(declared={"planHash": said}, introduced=by("approve"))
    passed = await campaign.once()
    assert passed.again
    assert campaign.status["approval"]["person"] == "change-approver"
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Admitted"


async def test_while_the_accepted_commit_is_refused_nothing_new_begins(campaign: Campaign) -> None:
    campaign.approval = Block(why="the accepted commit itself is refused now", halted=True)
    await campaign.once()
    assert campaign.condition("Ready") == ("False", "RevisionRefused")
    assert campaign.world.ledger.reservations == ()
    campaign.approval = Block()
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Admitted"


async def test_an_approval_of_another_plan_fails_the_campaign(campaign: Campaign) -> None:
    campaign.world.change(ROLLOUTS, "spring", "status", "approval", to=None)
    other = {"planHash": f"sha256:{'0' * 64}"}
    campaign.world.change(ROLLOUTS, "spring", "spec", "approval", to=other)
    campaign.approval = Block(declared=other, introduced=by("approve"))
    await campaign.once()
    assert campaign.condition("Ready") == ("False", "ApprovalHashMismatch")
    assert campaign.world.ledger.reservations == ()


async def test_a_pause_reaches_the_leaf_and_is_effective_when_the_worker_says_so(campaign: Campaign) -> None:
    await campaign.once()
    campaign.ask(git=False, revision=1, pause=True)
    await campaign.once()
    assert campaign.status["phase"] == "Paused"
    assert campaign.status["control"] == {"requestedRevision": 1, "effectiveRevision": 0, "pausePending": True}
    campaign.world.acknowledge("edge-1", effectiveState="Paused")
    await campaign.once()
    assert campaign.status["control"] == {"requestedRevision": 1, "effectiveRevision": 1, "paused": True}


async def test_a_resume_without_a_commit_does_nothing(campaign: Campaign) -> None:
    await campaign.once()
    campaign.ask(git=False, revision=1, pause=True)
    await campaign.once()
    campaign.ask(git=False, revision=2)
    await campaign.once()
    assert campaign.status["phase"] == "Paused"
    assert campaign.status["control"]["requestedRevision"] == 1
    campaign.ask(revision=2)
    await campaign.once()
    assert campaign.status["phase"] == "Executing"


async def test_a_resume_takes_the_pause_off_the_leaf(campaign: Campaign) -> None:
    await campaign.once()
    campaign.ask(revision=1, pause=True)
    await campaign.once()
    assert campaign.world.leaf()["status"]["managerControl"]["pause"] is True
    campaign.ask(revision=2)
    await campaign.once()
    control = campaign.world.leaf()["status"]["managerControl"]
    assert (control["revision"], "pause" in control) == (2, False)


async def test_a_leaf_names_the_worker_that_came_after_it(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.change(NODES, "edge-1", "metadata", "annotations", NETWORK_WORKER_POD_NAME, to="w-1", namespace="")
    campaign.world.change(
        NODES, "edge-1", "metadata", "annotations", NETWORK_WORKER_POD_UID, to="pod-uid", namespace=""
    )
    await campaign.once()
    annotations = campaign.world.leaf()["metadata"]["annotations"]
    assert (annotations[NETWORK_WORKER_POD_NAME], annotations[NETWORK_WORKER_POD_UID]) == ("w-1", "pod-uid")


async def test_a_cancel_gives_back_what_was_not_claimed_and_ends(campaign: Campaign) -> None:
    await campaign.once()
    campaign.ask(git=False, revision=1, cancel=True)
    await campaign.once()
    assert campaign.status["phase"] == "Cancelled"
    assert set(campaign.phases().values()) == {"Cancelled"}
    assert campaign.world.ledger.reservations == ()
    assert campaign.world.lock() is None


async def test_a_cancel_waits_for_claimed_work_its_health_and_its_soak(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()
    campaign.ask(git=False, revision=1, cancel=True)
    await campaign.once()
    assert (campaign.status["phase"], campaign.reason("edge-1")) == ("Cancelling", "AcceptedMutationConverging")
    assert campaign.world.states() == ["Revoked"]
    campaign.world.finish()
    campaign.later(1)
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Soaking"
    campaign.later(60)
    await campaign.once()
    assert campaign.status["phase"] == "Cancelled"
    assert campaign.reason("edge-1") == "CancelledAfterOutcome"
    assert campaign.world.ledger.reservations == ()


async def test_a_tighter_policy_fences_begins_an_epoch_and_brings_leaves_back(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.write_policy(globalMaxUnavailable=2)
    assert (await campaign.once()).again
    assert campaign.status["policyTransition"]["epoch"] == 2
    assert campaign.condition("PolicyTransition") == ("True", "FencingPreviousEpoch")
    await campaign.once()
    assert (campaign.status["effectivePolicy"]["epoch"], "policyTransition" in campaign.status) == (2, False)
    assert campaign.world.admission()["revocationReason"] == "PolicyEpochTransition"
    assert campaign.world.ledger.reservations == ()
    await campaign.once()
    assert campaign.reason("edge-1") == "PolicyEpochRearmed"
    assert campaign.world.admission()["policyEpoch"] == 2
    assert campaign.condition("PolicyTransition") == ("False", "EpochPublished")


async def test_another_policy_object_fences_and_asks_for_a_new_plan(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.change(CONFIG_MAPS, "topology-policy", "metadata", "uid", to="another", namespace=SYSTEM)
    await campaign.once()
    assert campaign.condition("PolicyChanged") == ("True", "ReplanRequired")
    assert campaign.status["phase"] == "Paused"
    assert campaign.world.ledger.reservations == ()


async def test_a_full_budget_blocks_the_target_with_its_numbers_and_lets_it_in_later() -> None:
    campaign = Campaign(policy={"globalMaxUnavailable": 1, "globalMaxConcurrentTransfers": 1}, pauseAfterCanary=False)
    await campaign.once()
    await campaign.upgrade("edge-1")
    await campaign.settle("edge-1", 60)
    assert campaign.phases()["edge-2"] == "Admitted"
    await campaign.once()
    assert campaign.phases()["edge-3"] == "Blocked"
    assert "1 of 1" in campaign.status["targets"][2]["message"]


async def test_an_unchanged_campaign_gives_the_same_status(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.once()
    before = campaign.status
    campaign.later(20)
    await campaign.once()
    assert campaign.status == before


def said(campaign: Campaign, persons: tuple[str, ...], outcome: str = "DeviceRetired") -> None:
    """A recovery block for `edge-1` in the object and in Git, and who stands behind it."""
    leaf = campaign.world.leaf()
    claims = [
        {"stage": one["stage"], "claimedAt": one["claimedAt"]}
        for one in leaf["status"].get("managedMutationClaims", [])
    ]
    block = {"leafUID": leaf["metadata"]["uid"], "claims": claims, "outcome": outcome, "reason": "it burnt"}
    campaign.world.change(ROLLOUTS, "spring", "spec", "recovery", to=block)
    campaign.recovery = Block(declared=block, introduced=replace(by("recover"), judged=persons))


async def test_two_persons_end_a_dead_device_and_nothing_else_begins(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()
    said(campaign, ("network-author", "change-approver"))
    await campaign.once()
    (entry,) = campaign.status["recoveries"]
    assert (entry["state"], entry["persons"]) == ("Settled", ["change-approver", "network-author"])
    assert (campaign.status["phase"], campaign.phases()["edge-1"], campaign.reason("edge-1")) == (
        "Failed",
        "Failed",
        "DeviceRetired",
    )
    assert campaign.world.ledger.reservations == ()
    assert campaign.world.lock() is None


async def test_a_recovery_that_was_taken_up_goes_on_whatever_git_says_later(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()
    said(campaign, ("network-author", "change-approver"), "OutcomeVerifiedByHand")
    await campaign.once()
    assert campaign.status["recoveries"][0]["state"] == "Accepted"
    campaign.recovery = Block(why="it stands there since the pinned root")
    await campaign.once()
    assert campaign.status["recoveries"][0]["state"] == "Accepted"
    assert campaign.world.states() == ["Granted"]
    campaign.world.finish("edge-1", "Failed")
    await campaign.settle("edge-1", 60)
    await campaign.once()
    assert campaign.status["recoveries"][0]["state"] == "Settled"
    assert (campaign.phases()["edge-1"], campaign.reason("edge-1")) == ("Failed", "OutcomeVerifiedByHand")


async def test_one_person_ends_nothing(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()
    said(campaign, ("network-author",))
    await campaign.once()
    (entry,) = campaign.status["recoveries"]
    assert (entry["state"], entry["reason"]) == ("Held", "RecoveryNeedsTwoPersons")
    assert len(campaign.world.ledger.reservations) == 1


async def test_a_corrected_recovery_takes_the_place_of_one_that_was_held(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()
    said(campaign, ("network-author", "change-approver"))
    wrong = {**campaign.world.tree(ROLLOUTS, "spring")["spec"]["recovery"], "leafUID": "another"}
    right = campaign.recovery
    campaign.world.change(ROLLOUTS, "spring", "spec", "recovery", to=wrong)
    campaign.recovery = replace(right, declared=wrong)
    await campaign.once()
    assert [(one["leafUID"], one["reason"]) for one in campaign.status["recoveries"]] == [
        ("another", "RecoveryLeafUnknown")
    ]
    campaign.world.change(ROLLOUTS, "spring", "spec", "recovery", to=right.declared)
    campaign.recovery = right
    await campaign.once()
    assert [one["state"] for one in campaign.status["recoveries"]] == ["Settled"]


@pytest.mark.parametrize("write", range(1, 6))
async def test_a_pass_that_was_killed_is_ended_by_the_next_one(campaign: Campaign, write: int) -> None:
    campaign.world.faults.at = {write: "crash after"}
    with pytest.raises(Crash):
        await campaign.once()
    campaign.world.reborn()
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Admitted"
    assert len(campaign.world.ledger.reservations) == 1

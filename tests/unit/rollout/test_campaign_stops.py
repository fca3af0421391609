"""What a campaign that stopped still does, and what it does no more (rollouts.md, sections 7.5, 11.2, 11.3 and 13.7)."""

from collections.abc import Callable

import pytest

from gitops_ctl.core.errors import Forbidden, GitopsError
from gitops_ctl.kube.answers import NamespaceMissing
from gitops_ctl.rollout.authority import Block
from tests.support.admission_world import CONFIG_MAPS, DEVICES, LEAVES, ROLLOUTS, SYSTEM
from tests.support.rollout_authority import by
from tests.support.rollout_campaign import Campaign


@pytest.fixture
def campaign() -> Campaign:
    return Campaign()


async def claimed(campaign: Campaign) -> None:
    """One target is at work, with a claim."""
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    campaign.world.claim()


def another_policy(campaign: Campaign) -> None:
    campaign.world.change(CONFIG_MAPS, "topology-policy", "metadata", "uid", to="another", namespace=SYSTEM)


def revoked_approver(campaign: Campaign) -> None:
    campaign.approval = Block(why="the key was revoked", revoked=True)


def paused(campaign: Campaign) -> None:
    campaign.ask(revision=1, pause=True)


def halted(campaign: Campaign) -> None:
    campaign.approval = Block(why="the accepted commit itself is refused now", halted=True)


@pytest.mark.parametrize("stop", [another_policy, revoked_approver, paused, halted], ids=lambda stop: stop.__name__)
async def test_claimed_work_of_a_stopped_campaign_is_settled(
    campaign: Campaign, stop: Callable[[Campaign], None]
) -> None:
    await claimed(campaign)
    stop(campaign)
    await campaign.once()
    await campaign.once()
    assert campaign.world.admission()["state"] == "Granted"
    campaign.world.finish()
    await campaign.settle("edge-1", 60)
    assert campaign.phases()["edge-1"] == "Succeeded"
    assert campaign.world.ledger.reservations == ()
    assert campaign.world.lock() is None


async def test_a_revoked_approval_revokes_what_is_granted_and_not_claimed(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    assert campaign.world.admission()["state"] == "Granted"
    revoked_approver(campaign)
    await campaign.once()
    assert campaign.status["phase"] == "AwaitingApproval"
    assert campaign.world.admission()["state"] == "Revoked"
    assert campaign.world.ledger.reservations == ()
    assert campaign.status["approval"]["valid"] is False


async def test_an_approval_that_nobody_can_judge_yet_fences_nothing(campaign: Campaign) -> None:
    await campaign.once()
    campaign.world.change(ROLLOUTS, "spring", "status", "approval", to=None)
    said = campaign.world.campaign().plan_hash
    campaign.world.change(ROLLOUTS, "spring", "spec", "approval", to={"planHash": said})
    campaign.approval = Block(known=False)
    await campaign.once()
    assert campaign.world.admission()["state"] == "Pending"
    campaign.approval = Block(declared={"planHash": said}, introduced=by("approve"))
    await campaign.once()
    await campaign.once()
    assert campaign.status["phase"] == "Executing"


async def test_a_soak_during_a_pause_counts_only_while_somebody_looks(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.upgrade("edge-1")
    campaign.later(1)
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Soaking"
    paused(campaign)
    await campaign.once()
    campaign.later(10)
    campaign.world.change(DEVICES, "edge-1", "status", "healthObservation", to=None)
    await campaign.once()
    assert campaign.phases()["edge-1"] == "Blocked"
    assert campaign.world.ledger.reservations


async def test_a_target_that_cannot_be_fenced_keeps_no_other_one_from_it(campaign: Campaign) -> None:
    await campaign.once()
    names = {name: campaign.world.target(name).child_name for name in ("edge-2", "edge-3")}
    campaign.ask(git=False, revision=1, cancel=True)

    def refuse(_number: int) -> None:
        if campaign.world.faults.writes[-1].startswith("create") and not campaign.world.leaf("edge-2"):
            raise Forbidden("exceeded quota")

    campaign.world.faults.before = refuse
    await campaign.once()
    assert campaign.status["phase"] == "Cancelling"
    assert "exceeded quota" in campaign.status["message"]
    assert campaign.phases()["edge-1"] == "Cancelled"
    assert campaign.world.lock() is None
    campaign.world.faults.before = lambda _number: None
    await campaign.once()
    assert campaign.status["phase"] == "Cancelled"
    assert all(campaign.world.leaf(name) for name in names)


async def test_in_a_namespace_that_goes_a_cancel_needs_no_tombstones(campaign: Campaign) -> None:
    await campaign.once()
    campaign.ask(git=False, revision=1, cancel=True)

    def refuse(_number: int) -> None:
        if campaign.world.faults.writes[-1].startswith("create"):
            raise NamespaceMissing("the namespace is being terminated")

    campaign.world.faults.before = refuse
    await campaign.once()
    assert campaign.status["phase"] == "Cancelled"
    assert campaign.world.ledger.reservations == ()


@pytest.mark.parametrize("fault", ["lost before", "conflict"])
async def test_one_unlucky_write_leaves_nobody_unfenced(campaign: Campaign, fault: str) -> None:
    await campaign.once()
    another_policy(campaign)
    campaign.world.faults.writes.clear()
    campaign.world.faults.at = {1: fault}
    for _ in range(3):
        try:
            await campaign.once()
            break
        except GitopsError:
            assert campaign.world.leaf("edge-3") is not None
    assert {campaign.world.admission(name)["state"] for name in ("edge-1", "edge-2", "edge-3")} == {"Revoked"}


async def test_after_a_failure_nothing_is_granted_in_the_same_pass() -> None:
    campaign = Campaign(pauseAfterCanary=False, canaries=[{"name": "c9300", "devices": ["edge-1", "edge-2"]}])
    await campaign.once()
    await campaign.once()
    assert {campaign.phases()[name] for name in ("edge-1", "edge-2")} == {"Admitted"}
    await campaign.upgrade("edge-1", "RolledBack")
    campaign.world.acknowledge("edge-2")
    campaign.world.faults.writes.clear()
    await campaign.once()
    assert campaign.status["phase"] == "Failed"
    assert campaign.world.admission("edge-2")["revocationReason"] == "CampaignTargetFailed"
    assert {record.state for record in campaign.world.ledger.reservations} == {"Granted"}
    assert [record.device_uid for record in campaign.world.ledger.reservations] == ["edge-1-uid"]


async def test_a_failure_is_fenced_though_something_else_is_wrong_with_the_campaign(campaign: Campaign) -> None:
    await campaign.once()
    await campaign.upgrade("edge-1", "RolledBack")
    tree = campaign.world.leaf("edge-1")
    campaign.world.change(LEAVES, tree["metadata"]["name"], "spec", "targetVersion", to="1")
    await campaign.once()
    assert campaign.status["phase"] == "Failed"
    assert campaign.world.admission("edge-2")["revocationReason"] == "CampaignTargetFailed"


def unreadable_policy(campaign: Campaign) -> None:
    campaign.world.change(CONFIG_MAPS, "topology-policy", "data", "policy.json", to="{", namespace=SYSTEM)


def no_policy(campaign: Campaign) -> None:
    campaign.world.api.store.remove(CONFIG_MAPS, (SYSTEM, "topology-policy"))


POLICIES = [another_policy, unreadable_policy, no_policy]


@pytest.mark.parametrize("stop", POLICIES, ids=lambda stop: stop.__name__)
async def test_without_its_policy_a_campaign_revokes_what_is_not_claimed(
    campaign: Campaign, stop: Callable[[Campaign], None]
) -> None:
    await campaign.once()
    campaign.world.acknowledge()
    await campaign.once()
    assert campaign.world.admission()["state"] == "Granted"
    stop(campaign)
    await campaign.once()
    assert campaign.world.admission()["revocationReason"] == "AdministratorPolicyChanged"
    assert campaign.world.ledger.reservations == ()
    assert campaign.condition("PolicyChanged") == ("True", "ReplanRequired")


@pytest.mark.parametrize("stop", POLICIES, ids=lambda stop: stop.__name__)
async def test_a_fence_stays_up_when_the_policy_is_put_back(
    campaign: Campaign, stop: Callable[[Campaign], None]
) -> None:
    before = campaign.world.tree(CONFIG_MAPS, "topology-policy", SYSTEM)
    await campaign.once()
    stop(campaign)
    await campaign.once()
    fenced = campaign.status
    campaign.world.put(CONFIG_MAPS, before)
    for _ in range(2):
        await campaign.once()
        assert campaign.status == fenced
    assert campaign.status["phase"] == "Paused"
    assert campaign.world.ledger.reservations == ()
    campaign.ask(revision=1, cancel=True)
    await campaign.once()
    await campaign.once()
    assert campaign.status["phase"] == "Cancelled"


async def test_a_fence_stays_up_when_the_source_is_put_back(campaign: Campaign) -> None:
    await campaign.once()
    image = campaign.world.tree(ROLLOUTS, "spring")["spec"]["plan"]["image"]
    elsewhere = [{**one, "url": "https://other.example.net/image.bin"} for one in image["sources"]]
    campaign.world.change(ROLLOUTS, "spring", "spec", "plan", "image", "sources", to=elsewhere)
    await campaign.once()
    assert campaign.condition("SourceChanged") == ("True", "ReplanRequired")
    assert campaign.world.admission()["revocationReason"] == "SourceIdentityChanged"
    fenced = campaign.status
    campaign.world.change(ROLLOUTS, "spring", "spec", "plan", "image", "sources", to=image["sources"])
    await campaign.once()
    assert campaign.status == fenced
    assert campaign.condition("Ready") == ("False", "SourceIdentityChanged")


async def test_what_a_fence_says_does_not_grow_while_a_target_cannot_be_fenced(campaign: Campaign) -> None:
    await campaign.once()

    def refuse(_number: int) -> None:
        if campaign.world.faults.writes[-1].startswith("create"):
            raise Forbidden("exceeded quota")

    campaign.world.faults.before = refuse
    another_policy(campaign)
    said = set()
    for _ in range(4):
        await campaign.once()
        said.add(campaign.status["message"])
    assert len(said) == 1
    assert "exceeded quota" in said.pop()
    campaign.world.faults.before = lambda _number: None
    await campaign.once()
    assert "exceeded quota" not in campaign.status["message"]


async def test_a_leaf_that_nobody_planned_lets_nothing_begin_beside_it(campaign: Campaign) -> None:
    await campaign.once()
    tree = campaign.world.leaf("edge-1")
    metadata = {**tree["metadata"], "name": "spring-extra", "uid": "extra"}
    campaign.world.put(LEAVES, {**tree, "metadata": metadata})
    campaign.world.acknowledge()
    await campaign.once()
    assert campaign.status["phase"] == "Paused"
    assert campaign.condition("Ready") == ("False", "ChildIdentityConflict")
    assert "spring-extra" in campaign.status["message"]
    assert campaign.world.admission()["state"] == "Pending"
    campaign.world.api.store.remove(LEAVES, (metadata["namespace"], "spring-extra"))
    await campaign.once()
    assert campaign.status["phase"] == "Executing"


async def test_a_badly_formed_device_is_named_on_every_target_that_waits_for_it(campaign: Campaign) -> None:
    campaign.world.add_device("edge-9")
    campaign.world.change(DEVICES, "edge-9", "status", "nodeIdentity", to=None)
    await campaign.once()
    assert campaign.phases()["edge-1"] == "WaitingForAdmission"
    for target in campaign.status["targets"]:
        assert target["reason"] == "FleetInvalid"
        assert "edge-9" in target["message"]

"""A fenced target begins nothing any more, and gives back what it never used (rollouts.md, sections 7.5, 11.2 and 11.3)."""

import asyncio
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.rollout.admission import Admitted
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.fence import Fenced, Revocation, fence
from gitops_ctl.rollout.grant import Granted
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.admission_world import (
    DEVICES,
    LEAVES,
    ROLLOUTS,
    AdmissionWorld,
    admitting,
    assert_consistent,
    granted,
    granting,
)
from tests.support.kube_crash import Crash
from tests.support.ledger import refused
from tests.support.rollout_planning import ago

CANCEL = Control(1, cancel=True)
WHYS = (Revocation.EPOCH, Revocation.SIBLING, Revocation.CANCELLED)


@pytest.fixture
def world() -> AdmissionWorld:
    return AdmissionWorld(2)


async def fencing(world: AdmissionWorld, why: Revocation = Revocation.EPOCH, control: Control = Control()) -> Any:
    async with world.client() as client:
        return await fence(world.ports(client), world.plan(), why, control=control)


def assert_free(world: AdmissionWorld) -> None:
    assert world.ledger.reservations == ()
    assert world.lock() is None
    assert_consistent(world)


async def reach(world: AdmissionWorld, stage: str) -> None:
    """Bring the target so far: none, locked, reserved, made, pending, granted."""
    crash_at = {"locked": 2, "reserved": 3, "made": 4, "bound": 5}
    if stage in crash_at:
        world.faults.at = {crash_at[stage]: "crash before"}
        with pytest.raises(Crash):
            await admitting(world)
        world.reborn()
    elif stage == "pending":
        await admitting(world)
    elif stage == "granted":
        await granted(world)
    world.faults.writes.clear()


STAGES = ("none", "locked", "reserved", "made", "bound", "pending", "granted")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("why", WHYS, ids=lambda why: why.name.lower())
async def test_whatever_was_begun_the_leaf_is_revoked_and_the_device_is_free(
    world: AdmissionWorld, stage: str, why: Revocation
) -> None:
    await reach(world, stage)
    control = CANCEL if why is Revocation.CANCELLED else Control()
    answer = await fencing(world, why, control)

    assert isinstance(answer, Fenced)
    assert answer.released
    assert_free(world)
    admission = world.admission()
    if why is Revocation.CANCELLED:
        assert admission["state"] == "Settled"
        assert world.leaf()["status"]["managerControl"]["cancel"] is True
    else:
        assert (admission["state"], admission["revocationReason"]) == ("Revoked", str(why))


@pytest.mark.parametrize("stage", ["none", "reserved", "granted"])
async def test_fencing_again_writes_nothing(world: AdmissionWorld, stage: str) -> None:
    await reach(world, stage)
    await fencing(world)
    world.faults.writes.clear()

    assert isinstance(await fencing(world), Fenced)
    assert world.faults.writes == []


@pytest.mark.parametrize("fault", ["crash after", "conflict"])
@pytest.mark.parametrize("write", range(1, 6))
@pytest.mark.parametrize("stage", ["reserved", "granted"])
async def test_a_fence_that_breaks_off_is_ended_by_the_next_pass(
    world: AdmissionWorld, stage: str, write: int, fault: str
) -> None:
    await reach(world, stage)
    world.faults.at = {write: fault}
    try:
        await fencing(world, Revocation.CANCELLED, CANCEL)
    except (Crash, GitopsError):
        assert_consistent(world)
        world.reborn()
        assert isinstance(await fencing(world, Revocation.CANCELLED, CANCEL), Fenced)

    assert_free(world)
    assert world.admission()["state"] == "Settled"


async def test_a_tombstone_keeps_a_late_admission_out(world: AdmissionWorld) -> None:
    await fencing(world, Revocation.SIBLING)

    refused(await admitting(world), Reason.CHILD_CONFLICT)
    assert_free(world)
    assert world.admission()["revocationReason"] == "CampaignTargetFailed"


@pytest.mark.parametrize("write", range(1, 6))
async def test_a_fence_wins_over_an_admission_whose_write_is_on_its_way(world: AdmissionWorld, write: int) -> None:
    """The admission stands before its write, on versions that it read; the fence runs to its end; then the write leaves."""
    begun = world.campaign()
    async with world.held_back(write) as held:
        admission = asyncio.create_task(admitting(world, begun=begun))
        await held.reached.wait()
        assert isinstance(await fencing(world), Fenced)
        held.go.set()
        answer = await admission

    assert isinstance(answer, Refusal)
    assert_free(world)
    assert world.admission()["state"] == "Revoked"


@pytest.mark.parametrize("write", [1, 2], ids=["ledger", "leaf"])
async def test_a_fence_wins_over_a_grant_whose_write_is_on_its_way(world: AdmissionWorld, write: int) -> None:
    await admitting(world)
    world.acknowledge()
    async with world.held_back(write) as held:
        grant = asyncio.create_task(granting(world))
        await held.reached.wait()
        assert isinstance(await fencing(world), Fenced)
        held.go.set()
        answer = await grant

    assert isinstance(answer, Refusal)
    assert_free(world)
    assert world.admission()["state"] == "Revoked"


@pytest.mark.parametrize("write", range(1, 6))
async def test_two_managers_that_admit_one_target_end_in_one_admission(world: AdmissionWorld, write: int) -> None:
    begun = world.campaign()
    async with world.held_back(write) as held:
        first = asyncio.create_task(admitting(world, begun=begun))
        await held.reached.wait()
        second = await admitting(world, begun=begun)
        held.go.set()
        await first

    assert isinstance(second, Admitted)
    assert world.admission()["state"] == "Pending"
    assert len(world.api.store.all(LEAVES)) == 1
    assert [record.topology_lock_id for record in world.ledger.reservations] == [second.acquisition.lock_id]
    assert_consistent(world)


@pytest.mark.parametrize("why", [Revocation.EPOCH, Revocation.POLICY, Revocation.SOURCE], ids=str)
async def test_claimed_work_keeps_its_grant_its_record_and_its_lock(world: AdmissionWorld, why: Revocation) -> None:
    await granted(world)
    world.claim()
    before = world.ledger
    answer = await fencing(world, why)

    assert isinstance(answer, Fenced)
    assert not answer.released
    assert world.admission()["state"] == "Granted"
    assert world.ledger == before
    assert world.lock()["state"] == "Active"


async def test_a_cancellation_revokes_claimed_work_and_keeps_its_record(world: AdmissionWorld) -> None:
    await granted(world)
    world.claim()
    answer = await fencing(world, Revocation.CANCELLED, CANCEL)

    assert isinstance(answer, Fenced)
    assert not answer.released
    assert world.admission()["state"] == "Revoked"
    assert world.states() == ["Revoked"]
    assert world.ledger.reservations[0].control_revision == 1
    assert world.lock()["state"] == "Active"
    world.faults.writes.clear()
    await fencing(world, Revocation.CANCELLED, CANCEL)
    assert world.faults.writes == []


async def test_a_claim_that_came_first_keeps_its_record(world: AdmissionWorld) -> None:
    """A claim and a revocation are writes of one object: the revocation meets a conflict and sees the claim."""
    await granted(world)
    world.faults.writes.clear()
    world.faults.before = lambda number: world.claim() if number == 1 else None
    answer = await fencing(world)

    assert isinstance(answer, Fenced)
    assert not answer.released
    assert world.admission()["state"] == "Granted"
    assert world.states() == ["Granted"]


async def test_somebody_elses_leaf_is_not_touched(world: AdmissionWorld) -> None:
    await admitting(world)
    world.change(LEAVES, world.target().child_name, "metadata", "ownerReferences", to=[])

    refused(await fencing(world), Reason.CHILD_CONFLICT)


async def test_a_device_that_is_gone_still_gets_its_tombstone(world: AdmissionWorld) -> None:
    world.api.store.remove(DEVICES, ("prod", "edge-1"))

    assert isinstance(await fencing(world), Fenced)
    assert world.admission()["state"] == "Revoked"
    assert world.ledger.reservations == ()


async def test_an_epoch_rearms_what_it_fenced_with_a_new_acquisition(world: AdmissionWorld) -> None:
    await granted(world)
    first = world.admission()
    await fencing(world, Revocation.EPOCH)
    _next_epoch(world)

    assert isinstance(await admitting(world), Admitted)
    second = world.admission()
    assert (second["state"], second["policyEpoch"]) == ("Pending", 2)
    assert second["topologyLockID"] != first["topologyLockID"]
    assert "revocationReason" not in second
    (record,) = world.ledger.reservations
    assert (record.policy_epoch, record.topology_lock_id) == (2, second["topologyLockID"])
    world.acknowledge()
    assert isinstance(await granting(world), Granted)
    assert_consistent(world)


@pytest.mark.parametrize("write", [1, 2, 4, 5])
async def test_a_rearm_that_breaks_off_is_ended_by_the_next_pass(world: AdmissionWorld, write: int) -> None:
    await granted(world)
    await fencing(world, Revocation.EPOCH)
    _next_epoch(world)
    world.faults.writes.clear()
    world.faults.at = {write: "crash after"}
    with pytest.raises(Crash):
        await admitting(world)
    world.reborn()

    assert isinstance(await admitting(world), Admitted)
    assert world.states() == ["Bound"]
    assert_consistent(world)


@pytest.mark.parametrize("why", [Revocation.SIBLING, Revocation.POLICY], ids=str)
async def test_only_the_end_of_an_epoch_is_rearmed(world: AdmissionWorld, why: Revocation) -> None:
    await granted(world)
    await fencing(world, why)
    _next_epoch(world)

    refused(await admitting(world), Reason.CHILD_CONFLICT)
    assert_free(world)


def _next_epoch(world: AdmissionWorld) -> None:
    effective = world.tree(ROLLOUTS, "spring")["status"]["effectivePolicy"]
    change = {**effective, "epoch": 2, "updatedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "status", "effectivePolicy", to=change)


def lose_journal(world: AdmissionWorld, state: str = "HistoryLost", name: str = "edge-1") -> None:
    """The worker reports that the journal of its claims is another one; or that it is back."""
    world.change(DEVICES, name, "status", "workerReport", "journal", "state", to=state)


@pytest.mark.parametrize("why", WHYS, ids=lambda why: why.name.lower())
@pytest.mark.parametrize("stage", ["locked", "reserved", "made", "bound", "pending", "granted"])
async def test_while_the_journal_is_lost_nothing_of_the_device_is_released(
    world: AdmissionWorld, stage: str, why: Revocation
) -> None:
    await reach(world, stage)
    lock, records = world.lock(), world.ledger.reservations
    lose_journal(world)

    refusal = refused(await fencing(world, why, CANCEL), Reason.NOT_PROVEN)
    assert refusal.check == "ClaimHistoryLost"
    assert (world.lock(), world.ledger.reservations) == (lock, records)
    assert world.admission()["state"] == "Revoked"

    lose_journal(world, "Ready")
    assert isinstance(await fencing(world, why, CANCEL), Fenced)
    assert_free(world)


async def test_a_lost_journal_does_not_keep_what_two_persons_said_something_about(world: AdmissionWorld) -> None:
    await reach(world, "granted")
    lose_journal(world)
    said = {"outcome": "OutcomeVerifiedByHand", "claims": [], "persons": ["a", "b"], "commit": "c" * 40}
    world.change(LEAVES, world.target().child_name, "status", "managerRecovery", to=said)

    assert isinstance(await fencing(world, Revocation.CANCELLED, CANCEL), Fenced)
    assert_free(world)


@pytest.mark.parametrize("stage", ["locked", "reserved"])
async def test_a_device_that_was_taken_gets_its_leaf_when_its_journal_is_lost(
    world: AdmissionWorld, stage: str
) -> None:
    await reach(world, stage)
    lock, records = world.lock(), world.ledger.reservations
    lose_journal(world)

    refusal = refused(await admitting(world), Reason.TARGET_UNAVAILABLE)
    assert refusal.target_reason == "ClaimHistoryLost"
    assert (world.lock(), world.ledger.reservations) == (lock, records)
    assert (world.admission()["state"], world.admission()["topologyLockID"]) == ("Revoked", lock["acquisitionID"])


async def test_a_reservation_without_its_lock_gets_its_leaf_too_when_the_journal_is_lost(world: AdmissionWorld) -> None:
    """The cluster was restored: the device is older than the ledger."""
    await reach(world, "reserved")
    world.change(DEVICES, "edge-1", "status", "topologyLock", to=None)
    lose_journal(world)

    refusal = refused(await admitting(world), Reason.TARGET_UNAVAILABLE)
    assert refusal.target_reason == "ClaimHistoryLost"
    assert len(world.ledger.reservations) == 1
    assert world.admission()["state"] == "Revoked"


async def test_a_target_that_took_nothing_gets_no_leaf_when_its_journal_is_lost(world: AdmissionWorld) -> None:
    lose_journal(world)
    refused(await admitting(world), Reason.TARGET_UNAVAILABLE)
    assert world.leaf() is None

"""An ended leaf is settled by outcome, health and soak, and then gives its device back in one order (rollouts.md, sections 8.6 and 13.7)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.fence import Revocation, fence
from gitops_ctl.rollout.refusal import Reason, Refusal
from gitops_ctl.rollout.settlement import Open, Soaking, settle_retired, settle_target
from tests.support.admission_world import (
    DEVICES,
    GATED,
    LEAVES,
    NODES,
    AdmissionWorld,
    a_sample,
    assert_consistent,
    granted,
)
from tests.support.kube_crash import Crash
from tests.support.ledger import refused
from tests.support.rollout_planning import ago


@pytest.fixture
async def world() -> AdmissionWorld:
    """A canary that was granted and claimed."""
    world = AdmissionWorld(2)
    await granted(world)
    world.claim()
    world.faults.writes.clear()
    return world


async def settling(world: AdmissionWorld, name: str = "edge-1", *, since: Any = None) -> Any:
    target = world.target(name)
    async with world.client() as client:
        return await settle_target(
            world.ports(client), world.campaign(), target, leaf_name=target.child_name, soaking_since=since
        )


def pass_time(world: AdmissionWorld, seconds: float) -> None:
    """Time goes on, and the device goes on to be seen healthy."""
    world.clock.now_s += seconds
    world.heal()


def ended(world: AdmissionWorld, phase: str = "Succeeded", *, settled: bool = True) -> None:
    world.finish(phase=phase, settled=settled)
    pass_time(world, 10)


def assert_settled(world: AdmissionWorld) -> None:
    assert world.admission()["state"] == "Settled"
    assert "revocationReason" not in world.admission()
    assert world.ledger.reservations == ()
    assert world.lock() is None
    assert_consistent(world)


async def test_a_leaf_goes_from_its_end_through_the_soak_to_settled(world: AdmissionWorld) -> None:
    ended(world)
    soaking = await settling(world)

    assert isinstance(soaking, Soaking)
    assert (soaking.until - soaking.since).total_seconds() == 600
    since = soaking.since
    pass_time(world, 599)
    assert isinstance(await settling(world, since=since), Soaking)
    assert world.faults.writes == []
    pass_time(world, 2)
    assert isinstance(await settling(world, since=since), Leaf)
    assert [write.rpartition("/")[2] for write in world.faults.writes] == [
        "status",  # the lock leaves Active
        "topology-ledger",
        "status",  # the lock is cleared
        "status",  # the admission is settled
    ]
    assert_settled(world)


@pytest.mark.parametrize("phase", ["Failed", "RolledBack", "StagedForNextBoot"])
async def test_every_end_is_settled_alike(world: AdmissionWorld, phase: str) -> None:
    ended(world, phase)
    since = world.clock.wall()
    pass_time(world, 601)

    assert isinstance(await settling(world, since=since), Leaf)
    assert_settled(world)


async def test_the_wave_soaks_for_its_own_time() -> None:
    world = AdmissionWorld(2)
    await granted(world, "edge-2")
    world.claim("edge-2")
    world.finish("edge-2")
    world.clock.now_s += 10
    world.heal("edge-2")
    soaking = await settling(world, "edge-2")

    assert isinstance(soaking, Soaking)
    assert (soaking.until - soaking.since).total_seconds() == 300


async def test_settling_again_writes_nothing(world: AdmissionWorld) -> None:
    ended(world)
    since = world.clock.wall()
    pass_time(world, 601)
    await settling(world, since=since)
    world.faults.writes.clear()

    assert isinstance(await settling(world, since=since), Leaf)
    assert world.faults.writes == []


@pytest.mark.parametrize("write", range(1, 5), ids=["releasing", "ledger", "cleared", "settled"])
@pytest.mark.parametrize("fault", ["crash after", "lost after"])
async def test_whatever_happens_at_a_write_the_next_pass_ends_it(world: AdmissionWorld, write: int, fault: str) -> None:
    ended(world)
    since = world.clock.wall()
    pass_time(world, 601)
    world.faults.at = {write: fault}
    try:
        await settling(world, since=since)
    except (Crash, GitopsError):
        assert_consistent_but_for_the_grant(world)
        world.reborn()
        await settling(world, since=since)

    assert_settled(world)


def assert_consistent_but_for_the_grant(world: AdmissionWorld) -> None:
    """Between the ledger and the last write the leaf still says Granted; it has ended, so it grants nothing."""
    if world.ledger.reservations:
        assert_consistent(world)
    else:
        assert world.leaf()["status"]["phase"] == "Succeeded"


async def test_a_leaf_without_an_outcome_stays_open_however_long(world: AdmissionWorld) -> None:
    pass_time(world, 10**6)
    open_ = await settling(world, since=world.clock.wall() - timedelta(days=9))

    assert isinstance(open_, Open)
    assert open_.reason == "MutationOutcomeUnresolved"
    assert world.faults.writes == []


async def test_an_end_with_a_claim_that_is_not_settled_stays_open(world: AdmissionWorld) -> None:
    ended(world, "Failed", settled=False)
    open_ = await settling(world, since=world.clock.wall() - timedelta(days=9))

    assert isinstance(open_, Open)
    assert "PrimaryInstall" in open_.message
    assert world.states() == ["Granted"]


Change = Callable[[AdmissionWorld], None]


def _sick(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "status", "phase", to="Error")


def _away(world: AdmissionWorld) -> None:
    conditions = world.tree(NODES, "edge-1", "")["status"]["conditions"]
    conditions[0]["status"] = "Unknown"
    world.change(NODES, "edge-1", "status", "conditions", to=conditions, namespace="")


def _moved(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "metadata", "labels", "operations.cisco.vk/redundancy-domain", to="pair-9")


def _swapped(world: AdmissionWorld) -> None:
    world.change(NODES, "edge-1", "status", "nodeInfo", "machineID", to="other", namespace="")


def _stale(world: AdmissionWorld) -> None:
    world.clock.now_s += 400


@pytest.mark.parametrize("change", [_sick, _away, _moved, _swapped, _stale], ids=lambda one: one.__name__.strip("_"))
async def test_what_is_not_healthy_and_fresh_and_the_same_stays_open(world: AdmissionWorld, change: Change) -> None:
    ended(world)
    since = world.clock.wall()
    pass_time(world, 601)
    change(world)
    open_ = await settling(world, since=since)

    assert isinstance(open_, Open)
    assert open_.reason == "PostMutationHealthGate"
    assert world.faults.writes == []


async def test_health_that_was_seen_before_the_end_proves_nothing(world: AdmissionWorld) -> None:
    world.heal()
    world.finish()
    world.clock.now_s += 60
    open_ = await settling(world)

    assert isinstance(open_, Open)
    assert "the leaf ended at" in open_.message


async def test_its_own_maintenance_does_not_count(world: AdmissionWorld) -> None:
    ended(world)
    session = {"phase": "Active", "sessionToken": "token", "deviceUID": "edge-1-uid"}
    world.change(DEVICES, "edge-1", "status", "maintenanceSession", to=session)

    assert isinstance(await settling(world), Soaking)


async def test_an_unhealthy_look_starts_the_soak_anew(world: AdmissionWorld) -> None:
    ended(world)
    since = world.clock.wall()
    _sick(world)
    assert isinstance(await settling(world, since=since), Open)
    world.change(DEVICES, "edge-1", "status", "phase", to="Ready")
    pass_time(world, 601)

    soaking = await settling(world, since=None)
    assert isinstance(soaking, Soaking)
    assert soaking.since == world.clock.wall()


async def test_a_soak_never_begins_before_the_end(world: AdmissionWorld) -> None:
    before = world.clock.wall() - timedelta(days=1)
    ended(world)

    soaking = await settling(world, since=before)
    assert isinstance(soaking, Soaking)
    assert to_rfc3339(soaking.since) == world.leaf()["status"]["completionTime"]


async def test_health_that_is_lost_inside_the_swap_keeps_the_record(world: AdmissionWorld) -> None:
    ended(world)
    since = world.clock.wall()
    pass_time(world, 601)
    world.faults.after = lambda number: _sick(world) if number == 1 else None

    refused(await settling(world, since=since), Reason.NOT_PROVEN)
    assert world.states() == ["Granted"]
    assert world.lock()["state"] == "Releasing"
    world.faults.after = lambda _number: None
    world.change(DEVICES, "edge-1", "status", "phase", to="Ready")
    pass_time(world, 601)
    assert isinstance(await settling(world, since=since), Leaf)
    assert_settled(world)


async def test_a_network_gate_needs_a_sample_that_began_after_the_end() -> None:
    world = AdmissionWorld(1, samples={"edge-1": a_sample()}, health=GATED)
    await granted(world)
    world.claim()
    ended(world)
    open_ = await settling(world)

    assert isinstance(open_, Open)
    assert "collected before the leaf ended" in open_.message
    now = to_rfc3339(world.clock.wall())
    world.accept(
        "edge-1",
        a_sample(sampleSequence=8, collectionStartedAt=now, collectionEndedAt=now, observedAt=now),
    )
    assert isinstance(await settling(world), Soaking)


async def test_a_revoked_leaf_with_a_proven_outcome_is_settled_too(world: AdmissionWorld) -> None:
    async with world.client() as client:
        await fence(world.ports(client), world.plan(), Revocation.CANCELLED, control=Control(1, cancel=True))
    assert world.states() == ["Revoked"]
    ended(world, "Failed")
    since = world.clock.wall()
    pass_time(world, 601)

    assert isinstance(await settling(world, since=since), Leaf)
    assert_settled(world)


def _attest(world: AdmissionWorld, **changes: Any) -> None:
    leaf = world.leaf()
    claims = [{"stage": one["stage"], "claimedAt": one["claimedAt"]} for one in leaf["status"]["managedMutationClaims"]]
    recovery = {
        **{"outcome": "DeviceRetired", "claims": claims, "persons": ["network-author", "change-approver"]},
        **{"commit": "c" * 40, "recordedAt": ago(0)},
    }
    admission = {**world.admission(), "state": "Revoked", "revocationReason": "RecoveryAttested"}
    status = {**leaf["status"], "managerRecovery": {**recovery, **changes}, "managerAdmission": admission}
    world.put(LEAVES, {**leaf, "status": status})


async def retiring(world: AdmissionWorld) -> Any:
    target = world.target()
    async with world.client() as client:
        return await settle_retired(world.ports(client), world.campaign(), target, leaf_name=target.child_name)


async def test_two_persons_give_a_dead_device_back_without_any_health(world: AdmissionWorld) -> None:
    _sick(world)
    _attest(world)

    assert isinstance(await retiring(world), Leaf)
    assert_settled(world)
    world.faults.writes.clear()
    assert isinstance(await retiring(world), Leaf)
    assert world.faults.writes == []


@pytest.mark.parametrize("write", range(1, 5))
async def test_a_retirement_that_breaks_off_is_ended_by_the_next_pass(world: AdmissionWorld, write: int) -> None:
    _attest(world)
    world.faults.at = {write: "crash after"}
    with pytest.raises(Crash):
        await retiring(world)
    world.reborn()

    assert isinstance(await retiring(world), Leaf)
    assert_settled(world)


@pytest.mark.parametrize(
    "changes",
    [
        {"persons": ["network-author", "network-author"]},
        {"outcome": "OutcomeVerifiedByHand"},
        {"claims": []},
        {"claims": [{"stage": "PrimaryActivation", "claimedAt": "2026-11-02T12:00:00Z"}]},
    ],
    ids=["one person", "another outcome", "no claims", "other claims"],
)
async def test_what_the_two_persons_did_not_say_settles_nothing(world: AdmissionWorld, changes: Any) -> None:
    _attest(world, **changes)
    answer = await retiring(world)

    assert isinstance(answer, Refusal)
    assert world.states() == ["Granted"]
    assert world.lock()["state"] == "Active"


async def test_a_claim_that_the_two_persons_did_not_know_settles_nothing(world: AdmissionWorld) -> None:
    _attest(world)
    world.claim(stage="PrimaryActivation")

    refused(await retiring(world), Reason.NOT_PROVEN)
    assert world.states() == ["Granted"]

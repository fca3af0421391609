"""Two persons speak for a device that looking cannot settle (rollouts.md, section 11.6)."""

import dataclasses
import json
from typing import Any

import pytest

from gitops_ctl.api.rollout_status import RecoveryStatus
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.rollout.recovery import (
    Accepted,
    Held,
    HeldReason,
    Recovery,
    carry_out,
    judged,
    recovery_of,
    retire,
    take_up,
)
from gitops_ctl.rollout.refusal import Reason
from tests.support.admission_world import (
    DEVICES,
    LEAVES,
    ROLLOUTS,
    AdmissionWorld,
    admitting,
    assert_consistent,
    granted,
)
from tests.support.kube_crash import Crash
from tests.support.ledger import refused
from tests.support.rollout_planning import ago

PERSONS = ("network-author", "change-approver")


@pytest.fixture
async def world() -> AdmissionWorld:
    """A device that was granted and claimed, and then died."""
    world = AdmissionWorld(2)
    await granted(world)
    world.claim()
    world.change(DEVICES, "edge-1", "status", "phase", to="Error")
    world.faults.writes.clear()
    return world


def said(world: AdmissionWorld, **changes: Any) -> Recovery:
    """What the two persons wrote about the leaf as it is."""
    claims = world.leaf()["status"].get("managedMutationClaims", [])
    recovery = Recovery(
        leaf_uid=world.leaf()["metadata"]["uid"],
        claims=tuple((one["stage"], one["claimedAt"]) for one in claims),
        outcome="DeviceRetired",
        reason="the chassis burned",
        persons=PERSONS,
        commit="c" * 40,
    )
    return dataclasses.replace(recovery, **changes)


async def taking_up(world: AdmissionWorld, recovery: Recovery) -> Any:
    target = world.target()
    async with world.client() as client:
        return await take_up(
            world.ports(client),
            world.campaign(),
            target,
            recovery,
            known={world.leaf()["metadata"]["uid"]},
            leaf_name=target.child_name,
        )


async def retiring(world: AdmissionWorld) -> Any:
    target = world.target()
    async with world.client() as client:
        return await retire(world.ports(client), world.campaign(), target, leaf_name=target.child_name)


async def test_what_two_persons_say_is_written_once_and_stops_the_worker(world: AdmissionWorld) -> None:
    assert isinstance(await taking_up(world, said(world)), Accepted)
    status = world.leaf()["status"]

    assert status["managerRecovery"]["persons"] == list(PERSONS)
    assert status["managerRecovery"]["claims"] == [{"stage": "PrimaryInstall", "claimedAt": ago(0)}]
    assert status["managerAdmission"]["state"] == "Revoked"
    assert status["managerAdmission"]["revocationReason"] == "RecoveryAttested"
    world.faults.writes.clear()
    assert isinstance(await taking_up(world, said(world)), Accepted)
    assert world.faults.writes == []


async def test_a_retired_device_gives_back_what_it_held_and_is_marked_first(world: AdmissionWorld) -> None:
    session = {
        **{"phase": "Active", "protocolVersion": "rollout-v1", "purpose": "SoftwareMutation"},
        **{"sessionToken": "0123456789abcdef", "deviceUID": "edge-1-uid", "nodeName": "edge-1"},
        **{"nodeUID": "edge-1-uid-node", "requestedAt": ago(60), "acknowledgedAt": ago(50), "controlRevision": 0},
        "lease": {"namespace": "prod", "name": "lease", "uid": "lease-uid", "holder": "software-upgrade/leaf"},
        "operation": {"namespace": "prod", "name": "leaf", "uid": world.leaf()["metadata"]["uid"]},
    }
    world.change(DEVICES, "edge-1", "status", "maintenanceSession", to=session)
    await taking_up(world, said(world))
    world.faults.writes.clear()

    assert isinstance(await retiring(world), Leaf)
    status = world.tree(DEVICES, "edge-1")["status"]
    assert status["retired"] == {
        "rolloutName": "spring",
        "rolloutUID": "rollout-uid",
        "leafUID": world.leaf()["metadata"]["uid"],
        "persons": list(PERSONS),
        "commit": "c" * 40,
        "at": ago(0),
    }
    assert status["maintenanceSession"]["phase"] == "Settled"
    assert "topologyLock" not in status
    assert world.ledger.reservations == ()
    assert world.admission()["state"] == "Settled"
    assert [write.rpartition("/")[2] for write in world.faults.writes] == [
        "status",  # retired
        "status",  # the lock leaves Active
        "topology-ledger",
        "status",  # the lock is cleared
        "status",  # the session ends
        "status",  # the admission is settled
    ]


@pytest.mark.parametrize("write", range(1, 6))
@pytest.mark.parametrize("fault", ["crash after", "conflict"])
async def test_a_recovery_that_breaks_off_is_ended_by_the_next_pass(
    world: AdmissionWorld, write: int, fault: str
) -> None:
    recovery = said(world)
    world.faults.at = {write: fault}
    try:
        await taking_up(world, recovery)
        await retiring(world)
    except (Crash, GitopsError):
        world.reborn()
        assert isinstance(await taking_up(world, recovery), Accepted)
        assert isinstance(await retiring(world), Leaf)

    assert world.admission()["state"] == "Settled"
    assert world.ledger.reservations == ()
    assert world.lock() is None
    assert "retired" in world.tree(DEVICES, "edge-1")["status"]
    assert_consistent(world)


async def test_a_retired_device_is_never_admitted_again(world: AdmissionWorld) -> None:
    await taking_up(world, said(world))
    await retiring(world)
    world.change(DEVICES, "edge-1", "status", "phase", to="Ready")
    world.api.store.remove(LEAVES, ("prod", world.target().child_name))

    refusal = refused(await admitting(world), Reason.TARGET_UNAVAILABLE)
    assert refusal.target_reason == "DeviceRetired"
    assert refusal.blocks_target


async def test_a_device_that_was_looked_at_by_hand_waits_for_its_worker(world: AdmissionWorld) -> None:
    assert isinstance(await taking_up(world, said(world, outcome="OutcomeVerifiedByHand")), Accepted)

    refused(await retiring(world), Reason.NOT_PROVEN)
    assert world.states() == ["Granted"]
    assert world.lock()["state"] == "Active"
    assert "retired" not in world.tree(DEVICES, "edge-1")["status"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"persons": ("network-author",)}, HeldReason.PERSONS),
        ({"persons": ()}, HeldReason.PERSONS),
        ({"leaf_uid": "another"}, HeldReason.UNKNOWN),
        ({"claims": ()}, HeldReason.CLAIMS),
        ({"claims": (("PrimaryInstall", "2026-01-01T00:00:00Z"),)}, HeldReason.CLAIMS),
        ({"claims": (("PrimaryInstall", "yesterday"),)}, HeldReason.CLAIMS),
    ],
    ids=["one person", "nobody", "another leaf", "no claims", "another time", "no time"],
)
async def test_a_check_that_fails_leaves_everything_as_it_is(
    world: AdmissionWorld, changes: Any, reason: HeldReason
) -> None:
    held = await taking_up(world, said(world, **changes))

    assert isinstance(held, Held)
    assert held.reason is reason
    assert world.faults.writes == []


async def test_the_same_moment_written_otherwise_is_the_same_claim(world: AdmissionWorld) -> None:
    moment = ago(0).replace("Z", "+00:00")

    assert isinstance(await taking_up(world, said(world, claims=(("PrimaryInstall", moment),))), Accepted)


async def test_a_claim_that_is_made_in_between_holds_the_recovery(world: AdmissionWorld) -> None:
    recovery = said(world)
    world.faults.before = lambda number: world.claim(stage="PrimaryActivation") if number == 1 else None
    held = await taking_up(world, recovery)

    assert isinstance(held, Held)
    assert held.reason is HeldReason.CLAIMS
    assert "PrimaryActivation" in held.message
    assert "managerRecovery" not in world.leaf()["status"]


async def test_a_settled_leaf_needs_no_recovery(world: AdmissionWorld) -> None:
    world.change(LEAVES, world.target().child_name, "status", "managerAdmission", "state", to="Settled")

    held = await taking_up(world, said(world))
    assert isinstance(held, Held)
    assert held.reason is HeldReason.SETTLED


async def test_something_else_is_not_said_about_the_same_leaf(world: AdmissionWorld) -> None:
    await taking_up(world, said(world, outcome="OutcomeVerifiedByHand"))

    held = await taking_up(world, said(world))
    assert isinstance(held, Held)
    assert "OutcomeVerifiedByHand" in held.message


async def test_a_reservation_in_a_drain_is_held(world: AdmissionWorld) -> None:
    async with world.client() as client:
        leaf = await world.ports(client).leaf("prod", world.target().child_name)
    (record,) = world.ledger.reservations
    draining = dataclasses.replace(record, drain_session_token="token")

    held = judged(said(world), known={said(world).leaf_uid}, leaf=leaf, record=draining)
    assert held is not None
    assert held.reason is HeldReason.DRAIN


def test_the_checks_stand_in_the_order_of_the_contract(world: AdmissionWorld) -> None:
    nothing = said(world, persons=(), leaf_uid="another", claims=())
    reasons = []
    for changes in ({}, {"persons": PERSONS}):
        held = judged(dataclasses.replace(nothing, **changes), known=(), leaf=None, record=None)
        assert held is not None
        reasons.append(held.reason)

    assert reasons == [HeldReason.PERSONS, HeldReason.UNKNOWN]


def test_the_block_is_read_with_each_person_once(world: AdmissionWorld) -> None:
    block = {
        **{"leafUID": "leaf", "outcome": "DeviceRetired", "reason": "burned"},
        "claims": [{"stage": "PrimaryInstall", "claimedAt": ago(0)}],
    }
    assert recovery_of(world.tree(ROLLOUTS, "spring"), persons=PERSONS, commit="c") is None
    world.change(ROLLOUTS, "spring", "spec", "recovery", to=block)
    found = recovery_of(world.tree(ROLLOUTS, "spring"), persons=(*PERSONS, PERSONS[0]), commit="c")

    assert found is not None
    assert found.claims == (("PrimaryInstall", ago(0)),)
    assert found.persons == tuple(sorted(PERSONS))


async def carrying(world: AdmissionWorld, recovery: Recovery, before: Any = None) -> Any:
    target = world.target()
    leaves = {world.leaf()["metadata"]["uid"]: (target, target.child_name)}
    async with world.client() as client:
        return await carry_out(world.ports(client), world.campaign(), recovery, leaves=leaves, before=before)


async def test_the_entry_says_how_far_a_retirement_came(world: AdmissionWorld) -> None:
    held = await carrying(world, said(world, claims=()))
    assert (held["state"], held["reason"]) == ("Held", "RecoveryClaimsMismatch")
    world.clock.now_s += 60
    settled = await carrying(world, said(world), held)

    assert settled == {
        "leafUID": world.leaf()["metadata"]["uid"],
        "deviceUID": "edge-1-uid",
        "outcome": "DeviceRetired",
        "state": "Settled",
        "reason": "DeviceRetired",
        "persons": list(PERSONS),
        "commit": "c" * 40,
        "recordedAt": held["recordedAt"],
        "settledAt": ago(-60),
    }
    world.faults.writes.clear()
    assert await carrying(world, said(world), settled) is settled
    assert world.faults.writes == []


async def test_an_outcome_that_was_seen_by_hand_is_accepted_until_its_leaf_is_settled(world: AdmissionWorld) -> None:
    recovery = said(world, outcome="OutcomeVerifiedByHand")
    accepted = await carrying(world, recovery)
    assert accepted["state"] == "Accepted"
    world.change(LEAVES, world.target().child_name, "status", "managerAdmission", "state", to="Settled")

    assert (await carrying(world, recovery, accepted))["state"] == "Settled"


async def test_a_leaf_in_no_target_is_held_and_nothing_is_done(world: AdmissionWorld) -> None:
    entry = await carrying(world, said(world, leaf_uid="another"))
    assert (entry["state"], entry["reason"]) == ("Held", "RecoveryLeafUnknown")
    assert "deviceUID" not in entry
    RecoveryStatus.model_validate_json(json.dumps(entry))
    assert world.faults.writes == []


async def test_one_person_who_names_an_unknown_leaf_hears_of_the_second_person_first(world: AdmissionWorld) -> None:
    entry = await carrying(world, said(world, leaf_uid="another", persons=("network-author",)))
    assert entry["reason"] == "RecoveryNeedsTwoPersons"

"""The topology lock of a device: taken once, adopted after a crash, given back to the end (rollouts.md, section 8.6)."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict
from gitops_ctl.fleet.device import device_of
from gitops_ctl.rollout.ledger_transitions import Acquisition
from gitops_ctl.rollout.lock import Free, LockClaim, ReleaseFirst, held, judged
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.refusal import Reason
from gitops_ctl.rollout.validation import lock_claim
from tests.support.admission_world import CONFIG_MAPS, DEVICES, SYSTEM, AdmissionWorld, admitting
from tests.support.ledger import refused
from tests.support.rollout_planning import ago

ID = "0" * 31


@pytest.fixture
def world() -> AdmissionWorld:
    return AdmissionWorld(1)


@pytest.fixture
async def ports(world: AdmissionWorld) -> AsyncIterator[Ports]:
    async with world.client() as client:
        yield world.ports(client)


def claim_of(world: AdmissionWorld, **changes: Any) -> LockClaim:
    return dataclasses.replace(lock_claim(world.campaign(), world.target()), **changes)


def seen(world: AdmissionWorld) -> Any:
    return device_of(world.tree(DEVICES, "edge-1"))


async def test_a_free_device_is_locked_with_everything_that_the_lock_says(world: AdmissionWorld, ports: Ports) -> None:
    claim = claim_of(world)
    taken = await ports.locks.acquire(claim)

    assert taken == Acquisition(claim.reservation_id, 1, f"{ID}1")
    assert world.lock() == {
        "state": "Active",
        "policyEpoch": 1,
        "acquisitionID": f"{ID}1",
        "campaignNamespace": "prod",
        "campaignName": "spring",
        "campaignUID": "rollout-uid",
        "planHash": world.campaign().plan_hash,
        "reservationID": claim.reservation_id,
        "deviceUID": "edge-1-uid",
        "deviceGeneration": 3,
        "nodeUID": "edge-1-uid-node",
        "projectionHash": world.target().projection_hash,
        "acquiredAt": ago(0),
    }


async def test_the_identical_lock_is_adopted_with_its_id(world: AdmissionWorld, ports: Ports) -> None:
    first = await ports.locks.acquire(claim_of(world))
    second = await ports.locks.acquire(claim_of(world))

    assert first == second
    assert len(world.faults.writes) == 1


@pytest.mark.parametrize("fault", ["lost after", "lost before", "conflict"])
async def test_a_lost_answer_is_found_again_under_its_id(world: AdmissionWorld, ports: Ports, fault: str) -> None:
    world.faults.at = {1: fault}
    taken = await ports.locks.acquire(claim_of(world))

    assert isinstance(taken, Acquisition)
    assert world.lock()["acquisitionID"] == taken.lock_id


async def test_a_device_that_is_written_again_and_again_is_not_locked(world: AdmissionWorld, ports: Ports) -> None:
    world.faults.at = dict.fromkeys(range(1, 9), "conflict")

    with pytest.raises(Conflict):
        await ports.locks.acquire(claim_of(world))
    assert world.lock() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"campaign_uid": "winter-uid"},
        {"plan_hash": f"sha256:{'4' * 64}"},
        {"reservation_id": "4" * 32},
        {"policy_epoch": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_any_other_lock_is_waited_for(world: AdmissionWorld, ports: Ports, changes: Any) -> None:
    await ports.locks.acquire(claim_of(world))

    refusal = refused(await ports.locks.acquire(claim_of(world, **changes)), Reason.DEVICE_LOCKED)
    assert refusal.message.startswith("device edge-1 is locked by rollout prod/spring (Active, epoch 1, since 2026-")


async def test_a_lock_of_ours_that_is_being_released_is_ended_first(world: AdmissionWorld, ports: Ports) -> None:
    taken = await ports.locks.acquire(claim_of(world))
    assert isinstance(taken, Acquisition)
    assert await ports.locks.begin_release(claim_of(world), taken)

    assert judged(seen(world), claim_of(world)) == ReleaseFirst(taken)
    refused(judged(seen(world), claim_of(world, campaign_uid="winter-uid")), Reason.DEVICE_LOCKED)
    refused(held(seen(world), claim_of(world), taken), Reason.STALE)


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        (("metadata", "uid"), "other", "has UID other"),
        (("metadata", "generation"), 4, "has generation 4"),
        (("metadata", "deletionTimestamp"), "2026-11-02T12:00:00Z", "is being deleted"),
        (("status", "retired"), {"rolloutName": "winter"}, "is retired"),
    ],
    ids=["uid", "generation", "deleting", "retired"],
)
async def test_a_device_that_is_not_the_frozen_one_takes_no_lock(
    world: AdmissionWorld, ports: Ports, path: tuple[str, str], value: Any, part: str
) -> None:
    world.change(DEVICES, "edge-1", *path, to=value)

    refusal = refused(await ports.locks.acquire(claim_of(world)), Reason.TARGET_CHANGED)
    assert part in refusal.message
    assert world.faults.writes == []


async def test_exactly_this_acquisition_holds_the_device(world: AdmissionWorld, ports: Ports) -> None:
    taken = await ports.locks.acquire(claim_of(world))
    assert isinstance(taken, Acquisition)

    assert await ports.locks.check(claim_of(world), taken) is None
    refused(await ports.locks.check(claim_of(world), taken._replace(lock_id="f" * 32)), Reason.STALE)
    assert isinstance(judged(seen(AdmissionWorld(1)), claim_of(world)), Free)


async def test_another_acquisition_is_neither_released_nor_cleared(world: AdmissionWorld, ports: Ports) -> None:
    taken = await ports.locks.acquire(claim_of(world))
    assert isinstance(taken, Acquisition)
    later = taken._replace(lock_id="f" * 32)
    store = ports.ledger(world.campaign())

    assert not await ports.locks.begin_release(claim_of(world), later)
    assert await ports.locks.clear(claim_of(world), later, store=store) is None
    assert world.lock()["state"] == "Active"


async def test_a_lock_is_not_cleared_before_it_is_released(world: AdmissionWorld, ports: Ports) -> None:
    taken = await ports.locks.acquire(claim_of(world))
    assert isinstance(taken, Acquisition)

    refused(await ports.locks.clear(claim_of(world), taken, store=ports.ledger(world.campaign())), Reason.NOT_PROVEN)


async def test_a_lock_is_not_cleared_while_any_record_is_of_the_device(world: AdmissionWorld, ports: Ports) -> None:
    admitted: Any = await admitting(world)
    await ports.locks.begin_release(claim_of(world), admitted.acquisition)
    refusal = await ports.locks.clear(claim_of(world), admitted.acquisition, store=ports.ledger(world.campaign()))

    assert "still reserved by prod/" in refused(refusal, Reason.NOT_PROVEN).message
    cleared = '{"version":"v1","uid":"ledger-uid","reservations":{}}'
    world.change(CONFIG_MAPS, "topology-ledger", "data", "ledger.json", to=cleared, namespace=SYSTEM)
    assert await ports.locks.clear(claim_of(world), admitted.acquisition, store=ports.ledger(world.campaign())) is None
    assert world.lock() is None


async def test_a_device_that_is_gone_has_no_lock_to_give_back(world: AdmissionWorld, ports: Ports) -> None:
    claim, which = claim_of(world), Acquisition("1" * 32, 1, "2" * 32)
    world.api.store.remove(DEVICES, ("prod", "edge-1"))

    assert not await ports.locks.begin_release(claim, which)
    assert await ports.locks.clear(claim, which, store=ports.ledger(world.campaign())) is None

"""A leaf is granted in the ledger first and on the leaf second, and only while everything still holds (rollouts.md, section 11.5)."""

from collections.abc import Callable

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.rollout.grant import Granted, renew_authority
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.admission_world import (
    DEVICES,
    GATED,
    LEAVES,
    ROLLOUTS,
    AdmissionWorld,
    a_sample,
    admitting,
    assert_consistent,
    granting,
)
from tests.support.kube_crash import Crash
from tests.support.ledger import refused
from tests.support.rollout_planning import ago


@pytest.fixture
async def world() -> AdmissionWorld:
    """One target waits for its grant, and its worker agrees."""
    world = AdmissionWorld(2)
    await admitting(world)
    world.acknowledge()
    world.faults.writes.clear()
    return world


def assert_granted(world: AdmissionWorld) -> None:
    assert world.states() == ["Granted"]
    assert world.admission()["state"] == "Granted"
    assert_consistent(world)


async def test_the_ledger_is_granted_first_and_the_leaf_second(world: AdmissionWorld) -> None:
    answer = await granting(world)

    assert isinstance(answer, Granted)
    assert [write.rpartition("/")[2] for write in world.faults.writes] == ["topology-ledger", "status"]
    assert_granted(world)
    assert "networkEvidenceHash" not in world.admission()


async def test_granting_again_writes_nothing(world: AdmissionWorld) -> None:
    await granting(world)
    world.faults.writes.clear()

    assert isinstance(await granting(world), Granted)
    assert world.faults.writes == []


@pytest.mark.parametrize("write", [1, 2], ids=["ledger", "leaf"])
@pytest.mark.parametrize("fault", ["crash before", "crash after", "lost before", "lost after", "conflict"])
async def test_whatever_happens_at_a_write_the_next_pass_ends_it(world: AdmissionWorld, write: int, fault: str) -> None:
    world.faults.at = {write: fault}
    try:
        await granting(world)
    except (Crash, GitopsError):
        assert_consistent(world)
        world.reborn()
        assert isinstance(await granting(world), Granted)

    assert_granted(world)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"observedAdmissionState": "Revoked"}, "saw Revoked"),
        ({"observedPolicyEpoch": 2}, "saw epoch 2"),
        ({"observedControlRevision": 4}, "saw control revision 4"),
        ({"effectiveState": "Paused"}, "is Paused"),
        ({"effectiveState": "Denied"}, "is Denied"),
        ({"observedWorkerConfigRevision": f"sha256:{'6' * 64}"}, "not the proven ones"),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
async def test_the_worker_has_to_have_seen_exactly_what_is_granted(world: AdmissionWorld, changes, part: str) -> None:
    world.acknowledge(**changes)
    refusal = refused(await granting(world), Reason.NOT_ACKNOWLEDGED)

    assert part in refusal.message
    assert world.states() == ["Bound"]
    assert world.faults.writes == []


async def test_a_worker_that_has_not_looked_yet_is_waited_for(world: AdmissionWorld) -> None:
    world.change(LEAVES, world.target().child_name, "status", "workerControl", to=None)

    refused(await granting(world), Reason.NOT_ACKNOWLEDGED)


async def test_a_worker_whose_revision_is_not_proven_any_more_gets_no_grant(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "status", "networkWorkerRevision", "observedRevision", to=f"sha256:{'7' * 64}")

    refused(await granting(world), Reason.TARGET_UNAVAILABLE)
    assert world.states() == ["Bound"]


Change = Callable[[AdmissionWorld], None]


def _pause(world: AdmissionWorld) -> None:
    control = {"revision": 1, "pause": True, "requestedBy": "network-author", "requestedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "spec", "control", to=control)


def _leaf_paused(world: AdmissionWorld) -> None:
    control = {"revision": 1, "pause": True, "updatedAt": ago(0)}
    world.change(LEAVES, world.target().child_name, "status", "managerControl", to=control)


def _revoke(world: AdmissionWorld) -> None:
    admission = {**world.admission(), "state": "Revoked", "revocationReason": "PolicyEpochTransition"}
    world.change(LEAVES, world.target().child_name, "status", "managerAdmission", to=admission)


def _release(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "status", "topologyLock", "state", to="Releasing")


def _tighten(world: AdmissionWorld) -> None:
    world.write_policy(globalMaxUnavailable=2)


def _work(world: AdmissionWorld) -> None:
    world.pod("web", "edge-1")


def _maintain(world: AdmissionWorld) -> None:
    session = {"phase": "Acknowledged", "sessionToken": "0123456789abcdef", "deviceUID": "edge-1-uid"}
    world.change(DEVICES, "edge-1", "status", "maintenanceSession", to=session)


def _sicken(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "status", "phase", to="Provisioning")


CHANGES = (_pause, _leaf_paused, _revoke, _release, _tighten, _work, _maintain, _sicken)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_what_changed_before_the_grant_refuses_it(world: AdmissionWorld, change: Change) -> None:
    begun = world.campaign()
    change(world)

    assert isinstance(await granting(world, begun=begun), Refusal)
    assert world.states() == ["Bound"]
    assert world.admission()["state"] != "Granted"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_what_changes_between_ledger_and_leaf_leaves_the_leaf_without_a_grant(
    world: AdmissionWorld, change: Change
) -> None:
    begun = world.campaign()
    world.faults.after = lambda number: change(world) if number == 1 else None

    assert isinstance(await granting(world, begun=begun), Refusal)
    assert world.states() == ["Granted"]
    assert world.admission()["state"] != "Granted"


async def test_a_revocation_wins_over_a_grant_of_the_leaf_that_is_on_its_way(world: AdmissionWorld) -> None:
    world.faults.before = lambda number: _revoke(world) if number == 2 else None

    assert isinstance(await granting(world), Refusal)
    assert world.admission()["state"] == "Revoked"


async def test_a_record_that_is_gone_grants_no_leaf(world: AdmissionWorld) -> None:
    cleared = '{"version":"v1","uid":"ledger-uid","reservations":{}}'
    world.change(("", "configmaps"), "topology-ledger", "data", "ledger.json", to=cleared, namespace="topology-system")

    refused(await granting(world), Reason.STALE)
    assert world.admission()["state"] == "Pending"


def _accept(world: AdmissionWorld, **changes) -> None:
    world.accept("edge-1", a_sample(**changes))


@pytest.fixture
async def watched() -> AdmissionWorld:
    """The same for a campaign with a network gate."""
    world = AdmissionWorld(1, samples={"edge-1": a_sample()}, health=GATED)
    await admitting(world)
    world.acknowledge()
    return world


async def test_a_grant_with_a_network_gate_rests_on_the_accepteda_sample(watched: AdmissionWorld) -> None:
    answer = await granting(watched)

    assert isinstance(answer, Granted)
    admission = watched.admission()
    assert admission["protocolVersion"] == "rollout-network-evidence-v1"
    assert watched.leaf()["spec"]["requireNetworkEvidence"] is True
    assert admission["networkEvidenceSampleSequence"] == 7
    assert admission["networkEvidenceWorkerPodUID"] == "pod-uid"
    assert admission["networkEvidenceNotAfter"] == ago(20 - 300)


async def test_an_interface_that_is_not_seen_any_more_refuses_the_grant(watched: AdmissionWorld) -> None:
    _accept(watched, interfaces=[])

    refusal = refused(await granting(watched), Reason.TARGET_UNAVAILABLE)
    assert "InterfaceEvidenceMissing" in refusal.message
    assert watched.states() == ["Bound"]


async def test_an_authority_is_renewed_only_by_a_later_one(watched: AdmissionWorld) -> None:
    await granting(watched)
    first = watched.admission()

    async def renew() -> bool:
        async with watched.client() as client:
            target = watched.target()
            return await renew_authority(watched.ports(client), watched.campaign(), target, leaf_name=target.child_name)

    assert not await renew()
    _accept(watched, sampleSequence=8, collectionStartedAt=ago(25))
    assert not await renew()
    assert watched.admission() == first
    _accept(watched, sampleSequence=9, collectionStartedAt=ago(10), collectionEndedAt=ago(6), observedAt=ago(6))
    assert await renew()
    assert watched.admission()["networkEvidenceSampleSequence"] == 9
    assert watched.admission()["networkEvidenceNotAfter"] == ago(10 - 300)
    assert not await renew()

"""One target is admitted step by step, and by the same steps after whatever happened at one of them (rollouts.md, section 11.4)."""

from collections.abc import Callable

import pytest

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.rollout.admission import Admitted
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.admission_world import (
    CONFIG_MAPS,
    DEVICES,
    LEAVES,
    NODES,
    ROLLOUTS,
    SYSTEM,
    AdmissionWorld,
    admitting,
    assert_consistent,
)
from tests.support.kube_crash import Crash
from tests.support.ledger import refused
from tests.support.rollout_planning import ago

WRITES = ("lock", "reserve", "leaf", "bind", "pending")
TARGET = "topology.cisco.vk/"


@pytest.fixture
def world() -> AdmissionWorld:
    return AdmissionWorld()


def assert_admitted(world: AdmissionWorld, name: str = "edge-1") -> None:
    """Lock, record and leaf are of one acquisition, and there is one of each."""
    (record,) = world.ledger.reservations
    lock, admission, leaf = world.lock(name), world.admission(name), world.leaf(name)
    assert record.state == "Bound"
    assert record.child_uid == leaf["metadata"]["uid"] == admission["leafUID"]
    assert lock["state"] == "Active"
    assert lock["acquisitionID"] == record.topology_lock_id == admission["topologyLockID"]
    assert lock["reservationID"] == record.id == admission["reservationID"]
    assert (lock["policyEpoch"], record.policy_epoch, admission["policyEpoch"]) == (1, 1, 1)
    assert admission["state"] == "Pending"
    assert len(world.api.store.all(LEAVES)) == 1


def assert_nothing_held(world: AdmissionWorld, name: str = "edge-1") -> None:
    assert world.ledger.reservations == ()
    assert world.lock(name) is None
    assert_consistent(world)


async def test_a_target_is_locked_reserved_made_bound_and_put_before_its_worker(world: AdmissionWorld) -> None:
    admitted = await admitting(world)

    assert isinstance(admitted, Admitted)
    assert [write.partition(" ")[0] + " " + write.rpartition("/")[2] for write in world.faults.writes] == [
        "patch status",
        "patch topology-ledger",
        "create iosxesoftwareupgrades",
        "patch topology-ledger",
        "patch status",
    ]
    assert_admitted(world)


async def test_the_leaf_carries_its_binding_and_what_is_done(world: AdmissionWorld) -> None:
    await admitting(world)
    leaf, target = world.leaf(), world.target()

    annotations = leaf["metadata"]["annotations"]
    assert {key.removeprefix(TARGET): value for key, value in annotations.items()} == {
        "managed": "true",
        "campaign-namespace": "prod",
        "campaign-name": "spring",
        "campaign-uid": "rollout-uid",
        "plan-hash": world.campaign().plan_hash,
        "ledger-uid": "ledger-uid",
        "reservation-id": world.ledger.reservations[0].id,
        "device-namespace": "prod",
        "device-name": "edge-1",
        "device-uid": "edge-1-uid",
        "device-generation": "3",
        "node-name": "edge-1",
        "node-uid": "edge-1-uid-node",
        "worker-username": "system:serviceaccount:prod:network-management",
        "network-worker-username": "system:serviceaccount:prod:network-management",
        "worker-protocol": "rollout-v1",
        "app-worker-config-revision": f"sha256:{'5' * 64}",
    }
    assert leaf["metadata"]["labels"] == {"topology.cisco.vk/campaign-uid": "rollout-uid"}
    assert leaf["metadata"]["finalizers"] == ["ops.cisco.vk/iosxesoftwareupgrade-cleanup"]
    assert "blockOwnerDeletion" not in leaf["metadata"]["ownerReferences"][0]
    assert leaf["spec"]["imageSource"] == {"url": target.source.url, "sha256": target.source.sha256}
    assert leaf["spec"]["maxRetries"] == 3  # the server's default is no difference
    assert leaf["status"]["managerControl"]["revision"] == 0
    assert leaf["status"]["managerControl"]["reason"] == "CampaignControl"
    assert world.admission()["protocolVersion"] == "rollout-v1"


async def test_the_record_holds_what_the_arithmetic_needs(world: AdmissionWorld) -> None:
    await admitting(world)
    (record,) = world.ledger.reservations

    assert dict(record.domains) == {
        "distribution.cisco.vk/cache-domain": "cache-b",
        "topology.kubernetes.io/zone": "b",
    }
    assert (record.child_namespace, record.child_name) == ("prod", world.target().child_name)
    assert record.physical_id == "foc-edge-1-uid"
    assert record.policy_version == world.campaign().effective.policy.resource_version


async def test_doing_it_again_changes_nothing(world: AdmissionWorld) -> None:
    await admitting(world)
    world.faults.writes.clear()
    again = await admitting(world)

    assert isinstance(again, Admitted)
    assert [write.partition(" ")[0] for write in world.faults.writes] == ["create"]
    assert_admitted(world)


@pytest.mark.parametrize("write", range(1, 6), ids=WRITES)
async def test_the_next_process_ends_what_a_crash_left(world: AdmissionWorld, write: int) -> None:
    world.faults.at = {write: "crash after"}
    with pytest.raises(Crash):
        await admitting(world)
    assert_consistent(world)
    world.reborn()

    assert isinstance(await admitting(world), Admitted)
    assert_admitted(world)


@pytest.mark.parametrize("write", range(1, 6), ids=WRITES)
@pytest.mark.parametrize("fault", ["lost after", "conflict"])
async def test_a_lost_answer_or_a_conflict_ends_in_the_same(world: AdmissionWorld, write: int, fault: str) -> None:
    world.faults.at = {write: fault}
    try:
        await admitting(world)
    except GitopsError:
        assert_consistent(world)
        await admitting(world)

    assert_admitted(world)


Change = Callable[[AdmissionWorld], None]


def _pause(world: AdmissionWorld) -> None:
    control = {"revision": 1, "pause": True, "requestedBy": "network-author", "requestedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "spec", "control", to=control)


def _delete(world: AdmissionWorld) -> None:
    world.change(ROLLOUTS, "spring", "metadata", "deletionTimestamp", to=ago(0))


def _tighten(world: AdmissionWorld) -> None:
    world.write_policy(globalMaxUnavailable=2)


def _transition(world: AdmissionWorld) -> None:
    effective = world.tree(ROLLOUTS, "spring")["status"]["effectivePolicy"]["policy"]
    change = {"epoch": 2, "policy": effective, "startedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "status", "policyTransition", to=change)


def _sicken(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "status", "phase", to="Error")


def _replace(world: AdmissionWorld) -> None:
    world.change(DEVICES, "edge-1", "metadata", "generation", to=4)


def _work(world: AdmissionWorld) -> None:
    world.pod("web", "edge-1")


def _break_fleet(world: AdmissionWorld) -> None:
    world.change(NODES, "edge-3", "metadata", "annotations", "topology.cisco.vk/device-uid", to="other", namespace="")


async def test_a_control_without_authority_changes_nothing(world: AdmissionWorld) -> None:
    """The pass judged the block in the object as void; the steps keep to the control that counts."""
    control = {"revision": 7, "pause": True, "requestedBy": "somebody", "requestedAt": ago(0)}
    world.change(ROLLOUTS, "spring", "spec", "control", to=control)
    begun = world.campaign().with_control(Control())

    assert isinstance(await admitting(world, begun=begun), Admitted)
    assert world.admission()["controlRevision"] == 0
    assert world.leaf()["status"]["managerControl"]["revision"] == 0


CHANGES = (_pause, _delete, _tighten, _transition, _sicken, _replace, _work, _break_fleet)


@pytest.mark.parametrize("write", [2, 3, 5], ids=["reserve", "leaf", "pending"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_what_changes_before_a_write_gives_everything_back_or_comes_too_late(
    world: AdmissionWorld, change: Change, write: int
) -> None:
    """From the record on, what was checked is not checked again until the grant: nothing may be claimed before that."""
    begun = world.campaign()
    world.faults.before = lambda number: change(world) if number == write else None
    answer = await admitting(world, begun=begun)

    assert_consistent(world)
    if isinstance(answer, Refusal):
        assert_nothing_held(world)
    else:
        assert write >= 2
        assert world.admission()["state"] == "Pending"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_what_changed_before_the_pass_writes_nothing(world: AdmissionWorld, change: Change) -> None:
    begun = world.campaign()
    change(world)
    answer = await admitting(world, begun=begun)

    assert isinstance(answer, Refusal)
    assert world.faults.writes == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_a_lock_that_a_crash_left_is_given_back_when_the_target_is_refused_now(
    world: AdmissionWorld, change: Change
) -> None:
    begun = world.campaign()
    world.faults.at = {3: "crash before"}
    with pytest.raises(Crash):
        await admitting(world)
    world.reborn()
    change(world)

    assert isinstance(await admitting(world, begun=begun), Refusal)
    assert_nothing_held(world)


async def test_a_full_budget_names_who_has_it_and_gives_the_lock_back() -> None:
    world = AdmissionWorld(4, policy={"globalMaxUnavailable": 1})
    await admitting(world, "edge-1")
    refusal = refused(await admitting(world, "edge-2"), Reason.UNAVAILABLE_BUDGET)

    assert refusal.message == f"1 of 1 unavailable in the fleet: prod/{world.target('edge-1').child_name}"
    assert refusal.blocks_target
    assert refusal.target_reason == "AdmissionBlocked"
    assert world.lock("edge-2") is None
    assert world.leaf("edge-2") is None
    assert_admitted(world)


async def test_a_device_that_another_campaign_has_is_waited_for_by_name(world: AdmissionWorld) -> None:
    lock = {
        **{"state": "Active", "policyEpoch": 1, "acquisitionID": "f" * 32, "campaignNamespace": "prod"},
        **{"campaignName": "winter", "campaignUID": "winter-uid", "planHash": f"sha256:{'1' * 64}"},
        **{"reservationID": "1" * 32, "deviceUID": "edge-1-uid", "deviceGeneration": 3},
        **{"nodeUID": "edge-1-uid-node", "projectionHash": f"sha256:{'2' * 64}", "acquiredAt": ago(60)},
    }
    world.change(DEVICES, "edge-1", "status", "topologyLock", to=lock)
    refusal = refused(await admitting(world), Reason.DEVICE_LOCKED)

    assert "prod/winter" in refusal.message
    assert refusal.blocks_target
    assert world.faults.writes == []


async def test_a_release_that_was_begun_is_ended_before_the_device_is_taken_again(world: AdmissionWorld) -> None:
    world.faults.at = {3: "crash before"}
    with pytest.raises(Crash):
        await admitting(world)
    world.reborn()
    world.change(DEVICES, "edge-1", "status", "topologyLock", "state", to="Releasing")

    refused(await admitting(world), Reason.DEVICE_LOCKED)
    assert_nothing_held(world)
    assert isinstance(await admitting(world), Admitted)
    assert_admitted(world)


async def test_somebody_elses_leaf_under_the_name_is_never_taken(world: AdmissionWorld) -> None:
    await admitting(world)
    stranger = world.leaf()
    stranger["metadata"]["annotations"]["topology.cisco.vk/plan-hash"] = f"sha256:{'9' * 64}"
    stranger["status"] = {}
    fresh = AdmissionWorld()
    fresh.put(LEAVES, stranger)

    refusal = refused(await admitting(fresh), Reason.CHILD_CONFLICT)
    assert "plan-hash" in refusal.message
    assert not refusal.blocks_target
    assert_nothing_held(fresh)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "targetVersion"), "17.99.01"),
        (("spec", "rollbackOnFailure"), False),
        (("spec", "maintenanceWindow"), {"notBefore": ago(0)}),
        (("metadata", "ownerReferences"), []),
        (("metadata", "labels", "topology.cisco.vk/campaign-uid"), "winter-uid"),
        (("metadata", "annotations", "topology.cisco.vk/source-secret-uid"), "secret"),
    ],
    ids=lambda value: value[-1].rpartition("/")[2] if isinstance(value, tuple) else "",
)
async def test_every_part_of_a_leaf_is_compared(world: AdmissionWorld, path: tuple[str, ...], value: object) -> None:
    await admitting(world)
    tree = world.leaf()
    assert world.plan().difference(tree) == ""
    inner = tree
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value

    assert path[-1].rpartition("/")[2] in world.plan().difference(tree)


async def test_a_leaf_without_an_admission_is_repaired(world: AdmissionWorld) -> None:
    world.faults.at = {4: "crash before"}
    with pytest.raises(Crash):
        await admitting(world)
    world.reborn()
    world.change(DEVICES, "edge-1", "status", "topologyLock", to=None)
    cleared = '{"version":"v1","uid":"ledger-uid","reservations":{}}'
    world.change(CONFIG_MAPS, "topology-ledger", "data", "ledger.json", to=cleared, namespace=SYSTEM)

    assert isinstance(await admitting(world), Admitted)
    assert_admitted(world)


@pytest.mark.parametrize("result", ["Passed", "Warned"])
async def test_a_preflight_that_passed_or_warned_lets_the_target_in(world: AdmissionWorld, result: str) -> None:
    _preflight(world, result=result)

    assert isinstance(await admitting(world), Admitted)


@pytest.mark.parametrize(
    ("changes", "reason", "part"),
    [
        ({"planHash": f"sha256:{'3' * 64}"}, "PreflightPending", "not been done"),
        (
            {"result": "Failed", "checks": [{"name": "FlashSpace", "status": "Fail", "message": "12 of 900 MiB"}]},
            "FlashSpaceInsufficient",
            "12 of 900 MiB",
        ),
        (
            {"result": "Failed", "checks": [{"name": "SavedConfiguration", "status": "Unknown", "message": ""}]},
            "UnsavedConfiguration",
            "SavedConfiguration",
        ),
    ],
    ids=["another plan", "flash", "unknown"],
)
async def test_a_missing_or_failed_preflight_blocks_only_this_target(
    world: AdmissionWorld, changes: dict[str, object], reason: str, part: str
) -> None:
    _preflight(world, **changes)
    refusal = refused(await admitting(world), Reason.PREFLIGHT)

    assert refusal.target_reason == reason
    assert part in refusal.message
    assert refusal.blocks_target
    assert world.faults.writes == []


def _preflight(world: AdmissionWorld, **changes: object) -> None:
    (entry,) = world.tree(DEVICES, "edge-1")["status"]["preflight"]
    world.change(DEVICES, "edge-1", "status", "preflight", to=[{**entry, **changes}])


@pytest.mark.parametrize(
    ("phase", "blocks"), [("Running", True), ("Pending", True), ("Succeeded", False), ("Failed", False)]
)
async def test_a_pod_that_may_run_blocks_the_target(world: AdmissionWorld, phase: str, blocks: bool) -> None:
    world.pod("web", "edge-1", phase)
    world.pod("elsewhere", "edge-2")
    answer = await admitting(world)

    assert isinstance(answer, Refusal) is blocks
    if isinstance(answer, Refusal):
        assert refused(answer, Reason.WORKLOADS).message == "1 Pod on Node edge-1: prod/web"


async def test_an_ended_pod_that_still_terminates_blocks_too(world: AdmissionWorld) -> None:
    world.pod("web", "edge-1", "Succeeded")
    world.change(("", "pods"), "web", "metadata", "deletionTimestamp", to=ago(0))

    refused(await admitting(world), Reason.WORKLOADS)


async def test_a_prepared_leaf_of_another_campaign_owns_the_device_until_it_is_consumed(world: AdmissionWorld) -> None:
    await admitting(world)
    prepared = world.leaf()
    fresh = AdmissionWorld()
    annotations = prepared["metadata"]["annotations"]
    annotations |= {"topology.cisco.vk/campaign-uid": "winter-uid", "topology.cisco.vk/campaign-name": "winter"}
    prepared["metadata"] |= {"name": "winter-edge-1-00000000", "uid": "winter-leaf"}
    prepared["status"] = {"phase": "Prepared"}
    fresh.put(LEAVES, prepared)

    refusal = refused(await admitting(fresh), Reason.PREPARED_OWNERSHIP)
    assert "prod/winter" in refusal.message
    assert refusal.target_reason == "PreparedOwnershipRetained"
    annotations["topology.cisco.vk/prepared-upgrade-uid"] = "winter-leaf"
    prepared["metadata"] |= {"name": "winter-edge-1-00000000-activate-1", "uid": "winter-activation"}
    prepared["status"] = {"phase": "Succeeded"}
    fresh.put(LEAVES, prepared)
    assert isinstance(await admitting(fresh), Admitted)


async def test_nothing_is_admitted_before_the_informers_saw_the_fleet(world: AdmissionWorld) -> None:
    world.unseen = True

    refused(await admitting(world), Reason.FLEET_INVALID)
    assert world.faults.writes == []


async def test_one_badly_formed_device_anywhere_is_named(world: AdmissionWorld) -> None:
    _break_fleet(world)
    refusal = refused(await admitting(world), Reason.FLEET_INVALID)

    assert "prod/edge-3" in refusal.message
    assert refusal.holders == ("prod/edge-3",)
    assert not refusal.blocks_target


async def test_an_unhealthy_device_elsewhere_only_counts() -> None:
    world = AdmissionWorld(4, policy={"globalMaxUnavailable": 1})
    world.change(DEVICES, "edge-3", "status", "phase", to="Error")

    refusal = refused(await admitting(world), Reason.UNAVAILABLE_BUDGET)
    assert "chassis foc-edge-3-uid" in refusal.message


async def test_a_second_device_object_with_the_same_chassis_stops_the_admission(world: AdmissionWorld) -> None:
    world.add_device("twin")
    for path, to in ((("spec", "physicalIdentity"), "FOC-edge-1-uid"),):
        world.change(DEVICES, "twin", *path, to=to)
    world.change(DEVICES, "twin", "status", "nodeIdentity", "physicalIdentity", to="foc-edge-1-uid")
    world.change(NODES, "twin", "status", "nodeInfo", "machineID", to="FOC-edge-1-uid", namespace="")

    refusal = refused(await admitting(world), Reason.FLEET_AMBIGUOUS)
    assert "foc-edge-1-uid" in refusal.message
    assert_nothing_held(world)


async def test_a_ledger_that_was_replaced_gives_nothing_and_takes_nothing(world: AdmissionWorld) -> None:
    world.change(CONFIG_MAPS, "topology-ledger", "metadata", "uid", to="another", namespace=SYSTEM)
    with pytest.raises(GitopsError, match="another"):
        await admitting(world)

    assert world.leaf() is None

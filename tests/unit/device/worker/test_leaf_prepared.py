"""Preparation, activation of what was prepared, invalidation, and the queue of a device (rollouts.md, sections 12 and 13.4)."""

import asyncio

import pytest

from gitops_ctl.device.worker.leafqueue import holder_of
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.receipt import receipt_problem
from gitops_ctl.rollout.leafplan import Activation
from tests.support.admission_world import LEAVES
from tests.support.leaf_world import NEW, OLD
from tests.support.rollout_planning import NOW, ago

PREPARE = {"strategy": "PrepareOnly"}


async def prepared(build, **settings):
    world = build(plan=PREPARE, **settings)
    await world.grant()
    await world.run()
    assert world.status["phase"] == "Prepared", world.status
    return world


def activate(world, *, receipt_hash=""):
    """The leaf that activates what was prepared, granted; its name."""
    found = world.leaf()
    activation = Activation(
        prepared_name=found["metadata"]["name"],
        prepared_uid=found["metadata"]["uid"],
        receipt_hash=receipt_hash or found["status"]["preparedReceipt"]["receiptHash"],
        authorization_hash=f"sha256:{'7' * 64}",
        not_before=NOW,
        not_after=NOW.replace(hour=23),
    )
    plan = world.plan(activation=activation)
    tree = plan.tree()
    bound = found["metadata"]["annotations"]
    pods = {key: value for key, value in bound.items() if "-pod-" in key}
    metadata = {**tree["metadata"], "uid": "activation-uid", "annotations": {**tree["metadata"]["annotations"], **pods}}
    admission = {**found["status"]["managerAdmission"], "leafUID": "activation-uid", "state": "Granted"}
    world.set_leaf("status", "managerAdmission", "state", to="Settled")
    control = found["status"]["managerControl"]
    world.put(
        LEAVES,
        {
            **tree,
            "kind": "IOSXESoftwareUpgrade",
            "metadata": metadata,
            "status": {"managerAdmission": admission, "managerControl": control},
        },
    )
    return plan.name


def named(world, name):
    return world.tree(LEAVES, name)


async def test_a_preparation_installs_and_ends_with_a_valid_receipt(build):
    world = await prepared(build)
    receipt = world.status["preparedReceipt"]
    assert receipt_problem(receipt) == ""
    assert (receipt["validatedVersion"], receipt["runningVersion"]) == (NEW, OLD)
    assert world.mutations() == ["Install"]
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert world.maintenance.held == ""


async def test_a_receipt_of_two_supervisors_names_the_standby(build):
    world = await prepared(build, layout="individual")
    receipt = world.status["preparedReceipt"]
    assert receipt_problem(receipt) == ""
    assert (receipt["standbySupervisorInstalled"], receipt["standbyRunningVersion"]) == (True, OLD)
    assert receipt["standbySupervisorID"]


async def test_an_activation_leaf_activates_and_commits_and_downloads_nothing(build):
    world = await prepared(build)
    downloads, name = world.downloads, activate(world)
    await world.run(leaf=name)
    status = named(world, name)["status"]
    assert status["phase"] == "Succeeded", status
    assert [one["stage"] for one in status["managedMutationClaims"]] == ["PrimaryActivation"]
    assert world.mutations() == ["Install", "Activate", "Commit"]
    assert world.downloads == downloads


async def test_an_activation_of_another_receipt_changes_nothing(build):
    world = await prepared(build)
    name = activate(world, receipt_hash=f"sha256:{'0' * 64}")
    await world.run(leaf=name)
    status = named(world, name)["status"]
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "PreparedReceiptInvalid")
    assert world.mutations() == ["Install"]


async def test_an_activation_of_a_package_that_is_gone_changes_nothing(build):
    world = await prepared(build)
    with world.switch.change() as device:
        device["packages"] = [one for one in device["packages"] if one["version"] != NEW]
    name = activate(world)
    await world.run(leaf=name)
    status = named(world, name)["status"]
    assert (status["phase"], status["failureReason"]) == ("PreflightFailed", "PreparedReceiptInvalid")


def ask_invalidation(world, **changes):
    found = world.status
    world.set_leaf("status", "managerAdmission", "state", to="Settled")
    control = {**found["managerControl"], "revision": 5, "cancel": True}
    world.set_leaf("status", "managerControl", to=control)
    receipt = found["preparedReceipt"]
    request = {name: receipt[name] for name in ("receiptHash", "planHash", "campaignUID")}
    more = {"controlRevision": 5, "requestedBy": "change-approver", "requestedAt": ago(0), "reason": "not needed"}
    world.set_leaf("status", "managerInvalidation", to={**request, **more, **changes})


@pytest.mark.parametrize("state", ["Installed", "Absent"])
async def test_an_invalidation_is_answered_with_what_the_switch_shows_and_changes_nothing(build, state):
    world = await prepared(build)
    if state == "Absent":
        with world.switch.change() as device:
            device["packages"] = [one for one in device["packages"] if one["version"] != NEW]
    ask_invalidation(world)
    await world.run()
    status = world.status
    assert status["phase"] == "PreparedInvalidated", status
    assert (status["preparedInvalidation"]["targetState"], status["preparedInvalidation"]["runningVersion"]) == (
        state,
        OLD,
    )
    assert status["preparedInvalidation"]["requestHash"].startswith("sha256:")
    assert world.mutations() == ["Install"]


async def test_an_invalidation_of_another_receipt_is_refused(build):
    world = await prepared(build)
    receipt = world.status["preparedReceipt"]
    ask_invalidation(world)
    changed = {**receipt, "upgradeUID": "another-leaf"}
    world.set_leaf("status", "preparedReceipt", to=changed)
    await world.run(hours=0.1)
    assert world.status["phase"] == "Prepared"
    assert world.condition("Ready")["reason"] == "InvalidationRefused"


# ---- the queue ----


def a_leaf(name, *, phase="", started="", created=1, claims=(), prepared_uid="", device="edge-1"):
    status = {"phase": phase, "startTime": started, "managedMutationClaims": [{"stage": stage} for stage in claims]}
    ended = {"completionTime": ago(0)} if phase in ("Prepared", "Succeeded", "Failed") else {}
    settled = {"conditions": [{"type": "DeviceMutationSettled", "status": "True"}]} if ended else {}
    return leaf_of(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": ago(-created),
                "annotations": {"topology.cisco.vk/prepared-upgrade-uid": prepared_uid},
            },
            "spec": {"deviceRef": {"name": device}},
            "status": {**{key: value for key, value in status.items() if value}, **ended, **settled},
        }
    )


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ([], "b"),
        ([a_leaf("a", created=2)], "b"),
        ([a_leaf("a", created=0)], "a"),
        ([a_leaf("a", created=1)], "a"),
        ([a_leaf("c", created=2, started=ago(5))], "c"),
        ([a_leaf("c", created=2, phase="Transferring", claims=("PrimaryInstall",))], "c"),
        ([a_leaf("a", created=0, phase="Succeeded")], "b"),
        ([a_leaf("a", created=0, phase="Prepared")], "a"),
        ([a_leaf("a", created=0, device="edge-2")], "b"),
        ([a_leaf("a", created=0, phase="Prepared"), a_leaf("d", phase="Succeeded", prepared_uid="a")], "b"),
    ],
    ids=["alone", "younger", "older", "name", "begun", "claimed", "ended", "prepared", "elsewhere", "consumed"],
)
def test_one_leaf_of_a_device_works_at_a_time_and_which_one_is_decided_by_a_fixed_order(others, first):
    asking = a_leaf("b")
    assert holder_of((asking, *others), asking) == first


def test_the_activation_of_a_prepared_leaf_passes_it():
    asking = a_leaf("b", created=5, prepared_uid="a")
    assert holder_of((a_leaf("a", created=0, phase="Prepared"), asking), asking) == "b"


async def test_a_switch_that_hangs_delays_no_other(build):
    world = build(count=2)
    await world.grant("edge-1")
    await world.grant("edge-2")
    hanging = asyncio.Event()

    async def hang(serial_method, when):
        if world.calls[-1].startswith("edge-1") and when == "before" and not hanging.is_set():
            await hanging.wait()

    world.on_call = hang
    stuck = asyncio.create_task(world.step("edge-1"))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        while not world.calls:
            await asyncio.sleep(0)
        await world.run("edge-2")
    assert world.leaf("edge-2")["status"]["phase"] == "Succeeded"
    assert not stuck.done()
    hanging.set()
    await stuck
    await world.run("edge-1")
    assert world.leaf("edge-1")["status"]["phase"] == "Succeeded"

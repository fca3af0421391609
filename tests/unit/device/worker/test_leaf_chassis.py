"""Another chassis at the address of a device is neither changed nor believed (rollouts.md, sections 5.4 and 13.1)."""

import pytest

from tests.support.leaf_world import OLD, LeafWorld

OTHER = "FOC9999ZZZZ"


@pytest.fixture
async def world(tmp_path):
    made = LeafWorld(tmp_path)
    await made.grant()
    yield made
    made.journal.close()
    assert made.violations() == []


def replaced(world):
    """Somebody put another switch at the address."""
    with world.switch.change() as device:
        device["serial"] = OTHER


async def test_an_upgrade_does_not_begin_on_another_chassis(world):
    replaced(world)
    await world.run()
    assert (world.status["phase"], world.status["failureReason"]) == ("PreflightFailed", "PhysicalIdentityMismatch")
    assert OTHER.lower() in world.status["message"]
    assert world.mutations() == []


@pytest.mark.parametrize("method", ["Install", "Activate"])
async def test_another_chassis_gets_no_further_request_and_proves_nothing(world, method):
    async def swap(called, when):
        if (called, when) == (method, "after"):
            replaced(world)

    world.on_call = swap
    await world.run(hours=0.3)
    assert world.mutations() == (["Install"] if method == "Install" else ["Install", "Activate"])
    assert world.condition("DeviceMutationSettled") is None
    assert world.status["phase"] not in ("Succeeded", "RolledBack")
    if method == "Install":
        assert OTHER.lower() in world.status["message"]


async def test_what_another_chassis_runs_is_not_told_as_the_version_of_the_device(world):
    async def swap(called, when):
        if (called, when) == ("Activate", "after"):
            replaced(world)
            with world.switch.change() as device:
                device["downUntil"], device["gnoi"]["reboot"] = 0, None

    world.on_call = swap
    await world.run(hours=4)
    assert world.status["phase"] != "RolledBack"
    assert world.status["runningVersion"] == OLD
    assert world.condition("DeviceMutationSettled") is None


async def test_a_chassis_that_does_not_say_its_serial_number_is_not_changed(world):
    with world.switch.change() as device:
        device["serial"] = ""
    await world.run()
    assert world.status["failureReason"] == "PhysicalIdentityMismatch"
    assert world.mutations() == []

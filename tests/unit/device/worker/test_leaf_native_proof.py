"""What proves an install whose answer is lost, and what a package that was there before is worth (rollouts.md, sections 12.2 and 13.4)."""

import pytest

from tests.support.leaf_world import NEW
from tools.peers.gnoi import switch as software

UNPROVEN = ("Failed", "InstallOutcomeUnknown")


def remembers(world, *adds):
    """The history of the switch is another one, however often it is asked."""

    async def forge(_method, _when):
        with world.switch.change() as device:
            device["history"] = [
                {"file": f"cat9k_iosxe.{NEW}.SPA.bin", "begun": 0, "ended": 0, "status": "succ", **one} for one in adds
            ]

    world.on_call = forge


def outcome(world):
    return world.status["phase"], world.status["failureReason"]


@pytest.mark.parametrize("offset_s", [0, 86400 * 400, -86400 * 400])
async def test_the_clock_of_the_device_may_be_any(build, offset_s):
    world = build(clockOffsetS=offset_s)
    world.switch.order("drop", on="Install:stored")
    await world.grant()
    await world.run()
    assert world.status["phase"] == "Succeeded"
    assert world.condition("Validated")["reason"] == "NativeInstallCorroborated"


@pytest.mark.parametrize("member", [{"file": "another.bin"}, {"status": "fail"}, {}, None], ids=str)
async def test_a_listed_package_without_its_own_add_is_no_proof(build, member):
    """An earlier try added it, another file did, the add failed, or the switch remembers nothing."""
    world = build()
    now = world.seconds()
    world.switch.order("drop", on="Install:stored")
    await world.grant()
    remembers(world, *([] if member is None else [{**member, **({"begun": now, "ended": now} if member else {})}]))
    await world.run()
    assert outcome(world) == UNPROVEN
    assert "installs of the file" in world.status["message"]
    assert world.condition("DeviceMutationSettled") is None
    assert world.mutations() == ["Install"]


async def test_what_was_not_proven_in_time_is_proven_when_the_history_can_be_read(build):
    world = build()
    world.switch.order("drop", on="Install:stored")
    await world.grant()
    kept = []

    async def hide(_method, _when):
        with world.switch.change() as device:
            kept.extend(device["history"])
            device["history"] = []

    world.on_call = hide
    await world.run()
    assert outcome(world) == UNPROVEN
    world.on_call = None
    with world.switch.change() as device:
        device["history"] = kept
    await world.run(hours=0.2)
    assert world.condition("DeviceMutationSettled")["status"] == "True"


async def test_one_add_does_not_prove_the_installs_of_two_supervisors(build):
    world = build(layout="individual")
    with world.switch.change() as device:
        device["gnoi"]["copies"] = False
    await world.grant()

    async def lose(method, when):
        device = world.switch.read()
        installs = [one for one in device["mutations"] if one["method"] == "Install"]
        if (method, when, len(installs)) == ("Install", "before", 1):
            world.switch.order("drop", on="Install:stored")
        if len(device["history"]) > 1:
            with world.switch.change() as changed:
                del changed["history"][1:]

    world.on_call = lose
    await world.run()
    assert outcome(world) == UNPROVEN
    assert world.mutations() == ["Install", "Install"]


# ---- a package of that version that was there before ----


def has_it(world):
    with world.switch.change() as device:
        software.store(device, NEW, standby=False, size=0, failing=False, now=0)


async def test_a_package_that_was_there_before_is_activated_and_not_called_transferred(build):
    world = build()
    has_it(world)
    await world.grant()
    await world.run()
    assert world.status["phase"] == "Succeeded"
    told = world.condition("Transferred")
    assert (told["status"], told["reason"]) == ("False", "PresentBefore")
    assert "not compared with the digest" in told["message"]
    assert world.status["transferProgress"]["bytesTransferred"] == 0


async def test_a_package_that_was_there_before_gets_no_receipt(build):
    world = build(plan={"strategy": "PrepareOnly"})
    has_it(world)
    await world.grant()
    await world.run()
    assert outcome(world) == ("Failed", "ContentNotBound")
    assert "preparedReceipt" not in world.status
    assert world.condition("DeviceMutationSettled")["status"] == "True"


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_copy_on_the_second_supervisor_is_what_the_first_one_is(build, is_there):
    world = build(layout="individual", plan={"strategy": "PrepareOnly"})
    if is_there:
        has_it(world)
    await world.grant()
    await world.run()
    assert world.status["phase"] == ("Failed" if is_there else "Prepared")
    assert world.condition("Transferred")["status"] == ("False" if is_there else "True")

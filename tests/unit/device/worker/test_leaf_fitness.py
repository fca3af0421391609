"""What the preflight found in order is looked at again directly before the first claim and before every reload (rollouts.md, 9.4 and 13.2)."""

import pytest

UNSAVED = '<native xmlns="http://cisco.com/ns/yang/Cisco-IOS-XE-native"><hostname>renamed</hostname></native>'


def unsave(device):
    device["runningConfig"], device["kept"] = UNSAVED, device["runningConfig"]


def save(device):
    device["startupConfig"] = device["runningConfig"]


def into_bundle_mode(device):
    device["mode"] = "bundle"


def into_install_mode(device):
    device["mode"] = "install"


def lose_the_standby(device):
    device["gnoi"]["standby"] = "absent"


def bring_the_standby(device):
    device["gnoi"]["standby"] = "ready"


CHANGES = {
    "UnsavedConfiguration": (unsave, save),
    "NotInstallMode": (into_bundle_mode, into_install_mode),
    "StandbyUnavailable": (lose_the_standby, bring_the_standby),
}


def after(world, method, count, change):
    """Change the switch once, after so many calls of that name."""
    seen = []

    async def hear(called, when):
        if (called, when) == (method, "after"):
            seen.append(called)
            if len(seen) == count:
                with world.switch.change() as device:
                    change(device)

    world.on_call = hear


async def held_back(world, reason, mutations):
    await world.run(hours=0.3)
    assert world.condition("Ready")["reason"] == reason
    assert world.mutations() == mutations


@pytest.mark.parametrize("reason", CHANGES)
async def test_no_activation_while_a_reload_would_lose_something(build, reason):
    break_it, mend_it = CHANGES[reason]
    world = build(layout="individual")
    await world.grant()
    after(world, "Install", 2, break_it)
    await held_back(world, reason, ["Install", "Install"])
    with world.switch.change() as device:
        mend_it(device)
    await world.run()
    assert world.status["phase"] == "Succeeded"
    assert world.mutations() == ["Install", "Install", "Activate", "Activate", "Commit"]


@pytest.mark.parametrize("reason", ["UnsavedConfiguration", "NotInstallMode"])
async def test_no_first_claim_while_a_reload_would_lose_something(build, reason):
    break_it, mend_it = CHANGES[reason]
    world = build()
    await world.grant()
    after(world, "Verify", 2, break_it)
    await held_back(world, reason, [])
    assert world.stages == []
    with world.switch.change() as device:
        mend_it(device)
    await world.run()
    assert world.status["phase"] == "Succeeded"


async def test_a_second_supervisor_that_is_gone_holds_back_its_install(build):
    world = build(layout="individual")
    await world.grant()
    after(world, "Install", 1, lose_the_standby)
    await held_back(world, "StandbyUnavailable", ["Install"])


async def test_a_startup_that_cannot_be_read_holds_back_as_well(build):
    world = build()
    await world.grant()
    after(
        world,
        "Install",
        1,
        lambda device: device["faults"].append(
            {"for": "netconf", "kind": "error", "on": "startup", "times": 1000, "errors": [{"tag": "access-denied"}]}
        ),
    )
    await held_back(world, "UnsavedConfiguration", ["Install"])

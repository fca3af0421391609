"""Upgrades of two supervisors, ways back and delayed reboots, with a worker that dies after any one thing that outlives it.

Whatever happens, no stage is sent twice, and the leaf comes to a proven end or says that nobody can prove it (rollouts.md, 13.4 and 13.9).
"""

import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.leaf_walk import UNPROVEN, Hears, Walk
from tests.support.leaf_world import NEW, ODD, OLD, LeafWorld

SHARDS = 2


async def into_another(world, method):
    """The switch comes up with a version that nobody asked for."""
    with world.switch.change() as device:
        due = device["gnoi"]["reboot"]
        if method == "Activate" and due is not None and due["into"] == NEW:
            due["into"] = ODD
            device["packages"].append({"version": ODD, "state": "added", "file": "", "addedAt": 0})


@dataclass(frozen=True)
class Story:
    """How an upgrade goes without a death, and the stage from which on the worker dies: what comes before is that of any upgrade."""

    since: str
    end: tuple[str, str]
    settings: dict[str, Any] = field(default_factory=dict)
    strategy: str = ""
    hears: Hears | None = None


TWO = {"layout": "individual"}
STORIES = {
    "two supervisors": Story("StandbyInstall", ("Succeeded", NEW), TWO),
    "two transfers": Story("StandbyInstall", ("Succeeded", NEW), {**TWO, "copies": False}),
    "way back": Story("RollbackActivation", ("RolledBack", OLD), hears=into_another),
    "delayed reboot": Story("PrimaryActivation", ("StagedForNextBoot", OLD), strategy="NoReboot"),
    "reboot all the same": Story(
        "PrimaryActivation", ("Succeeded", NEW), {"ignoreNoReboot": True}, strategy="NoReboot"
    ),
}


async def walked(folder, story, die_at):
    """The world after a walk, and the walk."""
    folder.mkdir()
    world = LeafWorld(folder, **story.settings)
    if story.strategy:
        world.strategy = story.strategy
    await world.grant()
    walk = Walk(world, since=story.since, die_at=die_at, hears=story.hears)
    await walk.to_the_end()
    world.journal.close()
    assert_at_most_once(world)
    shutil.rmtree(folder)
    return world, walk


def assert_at_most_once(world):
    device = world.switch.read()
    sent = [(one["method"], str(one["arguments"])) for one in device["mutations"]]
    assert len(sent) == len(set(sent)), sent
    assert len(device["commits"]) <= 1
    assert device["gnoi"]["violations"] == []
    for stage in world.stages:
        assert world.stages.count(stage) == 1


def assert_ended(world, wanted):
    status = world.status
    outcome = status["phase"], status.get("runningVersion")
    if outcome == wanted:
        assert world.condition("DeviceMutationSettled")["status"] == "True"
        assert world.maintenance.held == ""
        return
    # It died with an answer in its hands that nobody else has.
    assert status["phase"] in ("Failed", "RolledBack"), status
    settled = world.condition("DeviceMutationSettled")
    if settled is None:
        assert status["failureReason"] in UNPROVEN, status
        assert world.maintenance.held != ""
    else:
        assert (settled["status"], world.maintenance.held) == ("True", "")


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("name", STORIES)
async def test_a_death_after_anything_that_stays_sends_nothing_twice(tmp_path, name, shard):
    story = STORIES[name]
    world, whole = await walked(tmp_path / "whole", story, 0)
    assert (world.status["phase"], world.status["runningVersion"]) == story.end
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert whole.begins > 0
    for die_at in range(whole.begins + shard, whole.points + 1, SHARDS):
        world, _ = await walked(tmp_path / str(die_at), story, die_at)
        assert_ended(world, story.end)

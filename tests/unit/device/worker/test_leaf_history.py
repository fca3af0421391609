"""A journal that does not know what the cluster remembers claims nothing, however new and whole it is (rollouts.md, section 13.9)."""

import shutil

import pytest

from tests.support.admission_world import DEVICES
from tests.support.kube_crash import Crash
from tests.support.leaf_world import LeafWorld

JOURNAL = ("status", "workerReport", "journal")


@pytest.fixture
def world(tmp_path):
    made = LeafWorld(tmp_path)
    yield made
    assert made.violations() == []
    made.journal.close()


def reported(world, journal):
    world.change(DEVICES, "edge-1", *JOURNAL, to=journal)


def lose_the_journal(world):
    """Another directory: its journal is empty, and has the same name as the one before."""
    world.journal.close()
    shutil.rmtree(world.folder / "journal")
    world.restart()


async def dies(world, method, when):
    """Run until the worker dies at this call."""

    async def die(found, side):
        if (found, side) == (method, when):
            world.worker_faults.dead = True
            raise Crash

    world.on_call = die
    with pytest.raises(Crash):
        await world.run()


def assert_blocked(world, mutations):
    assert world.condition("Ready")["reason"] == "ClaimHistoryLost"
    assert world.mutations() == mutations


async def test_an_empty_journal_of_the_same_name_claims_nothing_after_a_claim_that_it_does_not_know(world):
    await world.grant()
    await dies(world, "Activate", "before")
    stages = world.stages
    lose_the_journal(world)
    world.set_leaf(
        "status",
        "managedMutationClaims",
        to=[one for one in world.status["managedMutationClaims"] if one["stage"] == "PrimaryInstall"],
    )
    world.set_leaf("status", "phase", to="Validating")
    await world.run(hours=0.2)
    assert stages == ["PrimaryActivation", "PrimaryInstall"]
    assert "does not know claims" in world.condition("Ready")["message"]
    assert_blocked(world, ["Install"])
    assert world.stages == ["PrimaryInstall"]


async def test_what_was_claimed_is_looked_at_all_the_same_and_never_sent(world):
    await world.grant()
    await dies(world, "Activate", "before")
    lose_the_journal(world)
    await world.run(hours=6)
    assert world.mutations() == ["Install"]
    assert (world.status["phase"], world.status["runningVersion"]) == ("RolledBack", world.switch.read()["running"])


async def test_an_install_commit_that_an_empty_journal_does_not_know_is_not_sent(world):
    await world.grant()
    await dies(world, "Activate", "after")
    lose_the_journal(world)
    await world.run(hours=0.3)
    assert_blocked(world, ["Install", "Activate"])


@pytest.mark.parametrize(
    "journal",
    [
        None,
        {"id": "journal-id", "sequence": 0, "state": "HistoryLost"},
        {"id": "other", "sequence": 0, "state": "Ready"},
    ],
    ids=["not reported", "reported as lost", "another one"],
)
async def test_nothing_is_claimed_before_this_journal_is_reported_as_the_one_that_knows_all(world, journal):
    await world.grant()
    before = world.tree(DEVICES, "edge-1")["status"]["workerReport"]["journal"]
    reported(world, journal)
    await world.run(hours=0.2)
    assert_blocked(world, [])
    assert world.stages == []
    reported(world, before)
    await world.run()
    assert world.status["phase"] == "Succeeded"

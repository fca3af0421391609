"""A reload of a switch with one supervisor, from the grant to the commit (rollouts.md, section 13.3)."""

import pytest

from tests.support.leaf_world import NEW, OLD, LeafWorld


@pytest.fixture
def world(tmp_path):
    made = LeafWorld(tmp_path)
    yield made
    made.journal.close()
    assert made.violations() == []


async def test_a_switch_is_installed_activated_committed_and_its_leaf_succeeds(world):
    await world.grant()
    await world.run()
    status = world.status
    assert status["phase"] == "Succeeded", status
    assert world.mutations() == ["Install", "Activate", "Commit"]
    assert (status["previousVersion"], status["validatedVersion"], status["runningVersion"]) == (OLD, NEW, NEW)
    assert world.stages == ["PrimaryActivation", "PrimaryInstall"]
    assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert status["installCommit"]["state"] == "Committed"
    assert "requestedAt" in status["installCommit"]
    assert world.journal.open_claims("edge-1-uid") == ()
    assert world.maintenance.held == ""

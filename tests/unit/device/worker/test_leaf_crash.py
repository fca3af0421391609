"""The worker is killed, or loses an answer, at every write and at every call (rollouts.md, sections 13.2, 13.4 and 13.9).

Whatever happens, nothing is sent twice, and the leaf comes to a proven end.
"""

import pytest

from tests.support.kube_crash import Crash
from tests.support.leaf_world import LeafWorld

WRITES, CALLS = 15, 10
"""Of an upgrade without a fault."""
ENDS = {"Succeeded", "Failed", "RolledBack"}


@pytest.fixture
def world(tmp_path):
    made = LeafWorld(tmp_path)
    yield made
    made.journal.close()


async def to_its_end(world):
    """Run, and again after each death, until the leaf is done."""
    for _ in range(4):
        try:
            await world.run(hours=6)
        except Crash:
            world.restart()
        else:
            return
    raise AssertionError("it dies again and again")


def assert_at_most_once(world):
    assert world.violations() == []
    assert len(world.mutations()) == len(set(world.mutations())), world.mutations()


def assert_proven(world):
    status = world.status
    if status.get("failureReason") == "InstallOutcomeUnknown":
        # It died when all bytes were out and before it had said so: what was added is on the switch, and nobody can prove it.
        assert status["phase"] == "Failed"
        assert world.mutations() == ["Install"]
        assert world.condition("DeviceMutationSettled") is None
        return
    assert status["phase"] in ENDS, status
    if status.get("managedMutationClaims"):
        assert world.condition("DeviceMutationSettled")["status"] == "True"
    assert world.journal.open_claims("edge-1-uid") == ()
    assert world.maintenance.held == ""


@pytest.mark.parametrize("fault", ["crash before", "lost after"])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
async def test_a_fault_at_any_write_sends_nothing_twice_and_ends_proven(world, number, fault):
    await world.grant()
    world.worker_faults.at = {number: fault}
    await to_its_end(world)
    assert_at_most_once(world)
    assert_proven(world)


@pytest.mark.parametrize("fault", ["conflict", "lost before"])
@pytest.mark.parametrize("first", [1, 2])
async def test_faults_at_every_other_write_change_nothing_of_the_outcome(world, first, fault):
    await world.grant()
    world.worker_faults.at = dict.fromkeys(range(first, 60, 2), fault)
    await to_its_end(world)
    assert world.mutations() == ["Install", "Activate", "Commit"]
    assert world.status["phase"] == "Succeeded"
    assert_at_most_once(world)
    assert_proven(world)


async def test_every_write_and_call_of_an_upgrade_is_tried(world):
    await world.grant()
    await world.run()
    assert len(world.worker_faults.writes) <= WRITES
    assert len(world.calls) == CALLS


@pytest.mark.parametrize("number", range(1, CALLS + 1))
async def test_a_death_before_any_call_sends_nothing_twice_and_ends_proven(world, number):
    await world.grant()
    seen = 0

    async def die(_method, when):
        nonlocal seen
        seen += when == "before"
        if (seen, when) == (number, "before"):
            world.worker_faults.dead = True
            raise Crash

    world.on_call = die
    await to_its_end(world)
    assert_at_most_once(world)
    assert_proven(world)

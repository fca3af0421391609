"""Getting the image ready takes as long as its timeout, and no pause or stop waits for it (rollouts.md, sections 13.1 and 13.4)."""

import asyncio

import pytest

from tests.support.leaf_world import LeafWorld


@pytest.fixture
def world(tmp_path):
    made = LeafWorld(tmp_path)
    yield made
    assert made.violations() == []
    made.journal.close()


def hang(world, *, then):
    """The first download never ends; `then` is done when it has begun, and clocks are looked at."""
    begun = []

    async def hear(_method, _when):
        if begun:
            return
        begun.append(1)
        then()
        world.clock.look.set()
        await asyncio.Event().wait()

    world.on_download = hear


def control(world, **members):
    wanted = {**world.status["managerControl"], "revision": 9, **members}
    world.set_leaf("status", "managerControl", to=wanted)


async def test_a_download_that_does_not_end_ends_with_the_time_to_get_ready(world):
    await world.grant()

    def late():
        world.clock.now_s += 3601

    hang(world, then=late)
    await asyncio.wait_for(world.run(), 30)
    assert (world.status["phase"], world.status["failureReason"]) == ("PreflightFailed", "InstallTimeout")
    assert (world.stages, world.mutations()) == ([], [])


async def test_a_pause_during_a_download_is_answered_during_it_and_ends_it(world):
    await world.grant()
    hang(world, then=lambda: control(world, pause=True))
    await asyncio.wait_for(world.run(hours=0.2), 30)
    assert world.status["workerControl"]["effectiveState"] == "Paused"
    assert (world.downloads, world.stages) == (1, [])
    control(world, pause=False, revision=10)
    await world.run()
    assert (world.status["phase"], world.downloads) == ("Succeeded", 2)


async def test_a_revocation_during_a_download_ends_it(world):
    await world.grant()

    def revoke():
        admission = {**world.status["managerAdmission"], "state": "Revoked", "revocationReason": "CampaignCancelled"}
        world.set_leaf("status", "managerAdmission", to=admission)

    hang(world, then=revoke)
    await asyncio.wait_for(world.run(hours=0.2), 30)
    assert world.status["workerControl"]["effectiveState"] == "Denied"
    assert (world.stages, world.mutations()) == ([], [])


async def test_an_image_that_is_read_again_before_the_request_has_its_time_too(world):
    """The spool lost the image after it was pinned, and the server does not deliver any more."""
    await world.grant()

    async def lost(_method, _when):
        if world.downloads == 1:
            return
        world.clock.now_s += 3601
        world.clock.look.set()
        await asyncio.Event().wait()

    world.on_download = lost
    real = world.spool.image

    def forget(wanted, opening, **more):
        if wanted.size is not None:
            (world.folder / "spool" / wanted.sha256).unlink(missing_ok=True)
        return real(wanted, opening, **more)

    world.spool.image = forget
    await asyncio.wait_for(world.run(hours=1.5), 30)
    assert world.condition("Ready")["reason"] == "InstallTimeout"
    assert (world.stages, world.mutations()) == ([], [])

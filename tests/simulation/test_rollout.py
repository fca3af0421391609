"""A fault, or something that a person does, at every I/O point of a software rollout in turn (rollouts.md, sections 13.9 and 23.2).

After every write (tests/support/rollout_laws.py): no device gets a changing call twice or unclaimed, no grant without its reservation, budgets
hold, nothing is claimed once a campaign is stopped; and every run ends settled, or says what it waits for.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.conftest import RUNS
from tests.support.rollout_stories import ACTIONS, FAULTS, STORIES, Restore, Search, Story

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

SEED = int(os.environ.get("SIMULATION_SEED", "20261130"))
GROUPS = {
    "crash, lost reply, conflict": ("crash after", "lost reply", "conflict", "crash", "killed in the stream"),
    "one request fails": ("away",),
    "the server is away for minutes": ("outage",),
    "a request is late": ("others",),
    "two managers": ("twin",),
}
RESTORED = [story for story in STORIES if story.name in {"reload", "no boot", "torn install"}]
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
_SEARCHES: dict[str, Search] = {}


@pytest.fixture
def search(record_property: Callable[[str, Any], None]) -> Any:
    """The runs of a story; each has one reference run."""
    asked: list[Search] = []

    def of(story: Story) -> Search:
        asked.append(_SEARCHES.setdefault(story.name, Search(story)))
        return asked[-1]

    yield of
    for one in asked:
        record_property(RUNS, dict(one.runs))
        one.runs.clear()


def _nothing_wrong(wrong: list[str]) -> None:
    assert not wrong, f"seed {SEED}, {len(wrong)} runs:\n" + "\n\n".join(wrong[:20])


@every_story
def test_promise_04_a_sample_of_faults_and_orders_anywhere_in_a_rollout_sends_nothing_twice(
    search: Callable[[Story], Search], story: Story
) -> None:
    _nothing_wrong(search(story).explore((*FAULTS, *ACTIONS), count=2, seed=SEED))


@pytest.mark.parametrize("story", RESTORED[:1], ids=lambda story: story.name)
def test_promise_04_after_a_restore_of_the_store_nothing_is_sent_twice(
    search: Callable[[Story], Search], story: Story
) -> None:
    _nothing_wrong(search(story).explore_restores(count=3, seed=SEED))


def test_D06_a_lost_journal_blocks_the_device_until_somebody_looked(search: Callable[[Story], Search]) -> None:
    found = search(STORIES[0])
    in_reboot = next(at.turn for at in found.points if at.verb == "Commit")
    world = found.restore(Restore(in_reboot - 1, 0, with_journal=False))
    target = next(one for one in world.status["targets"] if one["deviceName"] == "edge-1")
    assert (target["phase"], target["reason"]) == ("Blocked", "ClaimHistoryLost")
    assert "edge-1" in target["message"]
    assert not any(leaf["status"].get("managedMutationClaims") for leaf in world.laws.leaves())


def test_D06_a_leaf_whose_journal_is_lost_is_not_granted_and_says_so(search: Callable[[Story], Search]) -> None:
    found = search(STORIES[0])
    installed = next(at.turn for at in found.points if at.verb == "Install")
    world = found.restore(Restore(installed + 3, installed - 2, with_journal=False))
    target = next(one for one in world.status["targets"] if one["deviceName"] == "edge-1")
    assert (target["phase"], target["reason"]) == ("Blocked", "ClaimHistoryLost")


def test_D06_with_its_journal_the_worker_writes_the_claims_back_and_looks(search: Callable[[Story], Search]) -> None:
    found = search(STORIES[0])
    in_reboot = next(at.turn for at in found.points if at.verb == "Commit")
    world = found.restore(Restore(in_reboot - 1, 0, with_journal=True))
    assert world.status["phase"] in {"Succeeded", "Failed"}
    canary = next(leaf for leaf in world.laws.leaves() if leaf["spec"]["deviceRef"]["name"] == "edge-1")
    assert {one["stage"] for one in canary["status"]["managedMutationClaims"]} == {
        "PrimaryInstall",
        "PrimaryActivation",
    }
    assert [one["method"] for one in world.equipment.switches["edge-1"].read()["mutations"]].count("Install") == 1


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kinds", GROUPS.values(), ids=GROUPS)
@every_story
def test_promise_04_a_fault_at_every_point_of_a_rollout_sends_nothing_twice(
    search: Callable[[Story], Search], story: Story, kinds: tuple[str, ...]
) -> None:
    _nothing_wrong(search(story).explore(kinds))


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("action", ACTIONS)
@every_story
def test_promise_04_what_a_person_does_at_any_point_of_a_rollout_is_honoured(
    search: Callable[[Story], Search], story: Story, action: str
) -> None:
    _nothing_wrong(search(story).explore((action,)))


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("story", RESTORED, ids=lambda story: story.name)
def test_promise_04_the_store_may_go_back_from_any_turn_to_any_earlier_one(
    search: Callable[[Story], Search], story: Story
) -> None:
    _nothing_wrong(search(story).explore_restores())


def test_an_install_whose_worker_died_is_looked_at_and_the_campaign_says_what_is_not_proven(
    search: Callable[[Story], Search],
) -> None:
    found = search(STORIES[0])
    died = [one for one in found.events(("crash after",)) if one.at.verb == "Install"]
    assert died
    for event in died:
        found.run(event)

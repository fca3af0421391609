"""A fault, or something that a person does, at every I/O point of a software rollout in turn (rollouts.md, sections 13.9 and 23.2).

After every write (tests/support/rollout_laws.py): no device gets a changing call twice or unclaimed, no grant without its reservation, budgets
hold, nothing is claimed once a campaign is stopped; and every run ends settled, or says what it waits for.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.conftest import RUNS
from tests.support.rollout_stories import ACTIONS, FAULTS, STORIES, Search, Story

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

SEED = int(os.environ.get("SIMULATION_SEED", "20261130"))
GROUPS = {"crash, lost reply, conflict": FAULTS[:4], "outage": ("away",), "delay": ("others",), "two managers": ("twin",)}
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
    _nothing_wrong(search(story).explore((*FAULTS, *ACTIONS), count=6, seed=SEED))


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

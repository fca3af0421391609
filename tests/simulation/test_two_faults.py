"""A second fault while the product recovers from the first: a sample, drawn anew from a seed that is shown."""

import os
from collections.abc import Callable

import pytest

from tests.support.simulation_explorer import Explorer
from tests.support.simulation_faults import Kind
from tests.support.simulation_stories import STORIES, Story

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(3600)]

Explorers = Callable[[Story], Explorer]
SEED = int(os.environ.get("SIMULATION_SEED", "20261130"))
FIRST = (Kind.CRASH, Kind.LOST, Kind.CONFLICT, Kind.AWAY)
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


@every_story
def test_a_second_fault_during_the_recovery_changes_nothing_in_the_end(
    explorers: Explorers, story: Story, record_property: Callable[[str, object], None]
) -> None:
    explored(explorers(story), record_property, count=8)


@pytest.mark.soak
@every_story
def test_a_second_fault_during_the_recovery_from_any_first_one(
    explorers: Explorers, story: Story, record_property: Callable[[str, object], None]
) -> None:
    explored(explorers(story), record_property, count=10_000)


def explored(explorer: Explorer, record_property: Callable[[str, object], None], *, count: int) -> None:
    assert explorer.singles(FIRST)
    explorer.runs.clear()
    wrong = explorer.explore_pairs(FIRST, count=count, seed=SEED)
    record_property("simulated runs", dict(explorer.runs))
    assert not wrong, f"seed {SEED}, {len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])

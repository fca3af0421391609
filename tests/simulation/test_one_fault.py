"""A fault at every I/O point of every story in turn; whatever happens, the end is the same, and no rule is broken on the way.

Every day each fifth of the faults has its turn, of all stories and kinds, the same ones each time; `make soak` takes all of them.
The rules after each write: tests/support/simulation_rules.py.  The stories: tests/support/simulation_stories.py.
"""

from collections.abc import Callable

import pytest

from tests.support.simulation_explorer import Explorer
from tests.support.simulation_faults import Kind
from tests.support.simulation_stories import STORIES, Story

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

Explorers = Callable[[Story], Explorer]
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
every_day_and_all = pytest.mark.parametrize(
    "stride", [5, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])], ids=["sample", "all"]
)


@every_day_and_all
@every_story
def test_promise_07_a_crash_at_any_point_changes_nothing_in_the_end(
    explorers: Explorers, story: Story, stride: int, record_property: Callable[[str, object], None]
) -> None:
    explored(explorers(story), (Kind.CRASH,), stride, record_property)


@every_day_and_all
@every_story
def test_a_lost_reply_a_conflict_or_an_outage_at_any_point_changes_nothing_in_the_end(
    explorers: Explorers, story: Story, stride: int, record_property: Callable[[str, object], None]
) -> None:
    explored(explorers(story), (Kind.LOST, Kind.CONFLICT, Kind.AWAY), stride, record_property)


@every_day_and_all
@every_story
def test_an_event_that_comes_twice_or_late_changes_nothing_in_the_end(
    explorers: Explorers, story: Story, stride: int, record_property: Callable[[str, object], None]
) -> None:
    explored(explorers(story), (Kind.REPEATED, Kind.LATE), stride, record_property)


def explored(
    explorer: Explorer, kinds: tuple[Kind, ...], stride: int, record_property: Callable[[str, object], None]
) -> None:
    wanted = explorer.singles(kinds)[::stride]
    explorer.runs.clear()
    wrong = explorer.explore(kinds, stride=stride)
    record_property("simulated runs", dict(explorer.runs))
    assert not wrong, f"{len(wrong)} of {len(wanted)}:\n" + "\n\n".join(wrong[:3])
    assert explorer.runs.total() == len(wanted) > 0

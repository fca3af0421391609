"""A fault at every I/O point of a switch in turn, of the executor and of the worker; whatever happens, the end is the same.

After every write (tests/support/switch_rules.py): never kube-proxy removed while an agent may run the old mode, never two machines at
once, never a second proposal for one purpose, never a write to anything but our own statuses and proposals, an id for one attempt only.
"""

import os
from collections.abc import Callable
from functools import lru_cache

import pytest

from gitops_ctl.talos import machineconfig, pending
from gitops_ctl.talos.configdocuments import split_documents
from tests.support.simulation_faults import Kind
from tests.support.simulation_search import Search
from tests.support.switch_stories import STORIES, Story, explorer_of

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

SEED = int(os.environ.get("SIMULATION_SEED", "20261130"))
EVERYTHING = 1_000_000
GROUPS = {
    "crash": (Kind.CRASH,),
    "lost reply, conflict, outage": (Kind.LOST, Kind.CONFLICT, Kind.AWAY),
    "repeated or late event": (Kind.REPEATED, Kind.LATE),
}
EVERY_KIND = tuple(kind for kinds in GROUPS.values() for kind in kinds)
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
every_group = pytest.mark.parametrize("group", GROUPS)
_EXPLORERS: dict[str, Search] = {}


@pytest.fixture
def explorer(request: pytest.FixtureRequest) -> Callable[[Story], Search]:
    """The explorer of a story; each has one reference run."""
    return lambda story: _EXPLORERS.setdefault(story.name, explorer_of(story))


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few configurations of simulated machines are taken apart once, not at every look of thousands of workers."""
    known = lru_cache(split_documents)
    for module in (machineconfig, pending):
        monkeypatch.setattr(module, "split_documents", known)


@every_story
def test_promise_07_a_sample_of_faults_anywhere_in_a_switch_changes_nothing_in_the_end(
    explorer: Callable[[Story], Search], story: Story
) -> None:
    found = explorer(story)
    # A run with the real worker takes many times as long: one fault of any kind is enough for every day.
    groups = [EVERY_KIND] if story.real_worker else list(GROUPS.values())
    wrong = [text for number, kinds in enumerate(groups) for text in found.explore(kinds, count=1, seed=SEED + number)]
    assert not wrong, f"seed {SEED}:\n" + "\n\n".join(wrong[:3])
    assert found.runs == 1 + len(groups)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@every_group
@every_story
def test_promise_07_a_fault_at_every_point_of_a_switch_changes_nothing_in_the_end(
    explorer: Callable[[Story], Search], story: Story, group: str, record_property: Callable[[str, object], None]
) -> None:
    found = explorer(story)
    before = found.runs
    wrong = found.explore(GROUPS[group], count=EVERYTHING, seed=SEED)
    record_property("simulated runs", {group: found.runs - before})
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])
    assert found.runs > 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
@every_story
def test_a_second_fault_during_the_recovery_changes_nothing_in_the_end(
    explorer: Callable[[Story], Search], story: Story, record_property: Callable[[str, object], None]
) -> None:
    found = explorer(story)
    before = found.runs
    wrong = found.explore_pairs(GROUPS["crash"] + GROUPS["lost reply, conflict, outage"], count=60, seed=SEED)
    record_property("simulated runs", {"one or two faults": found.runs - before})
    assert not wrong, f"seed {SEED}, {len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])


def test_the_rules_see_a_removal_while_an_agent_runs_the_old_mode() -> None:
    from datetime import UTC, datetime

    from tests.support.switch_live import Live, LiveMachine

    live = Live(datetime(2026, 3, 1, tzinfo=UTC), {"cp-1": LiveMachine("cp-1", "controlplane", "disabled")})
    live.act({"id": "x/1-y/z#1", "action": "remove-kube-proxy"})
    assert live.broken == ["kube-proxy was removed while an agent runs the old mode"]

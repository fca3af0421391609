"""A fault at every I/O point of topology-aware scheduling in turn; whatever happens, the end is the same, and then nothing is written.

After every write (tests/support/topology_rules.py): never a switch while a reservation lives, never admission without groups, quota as the
Nodes have it, flavors disjoint, nothing rewritten that is immutable, and nothing written that is somebody else's.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.doubles.apiserver.store import Change, Store
from tests.doubles.kueue import Variant
from tests.support.simulation import Broken
from tests.support.simulation_faults import Kind
from tests.support.simulation_search import Search
from tests.support.topology_rules import QUEUES, WORKLOADS, Rules, quotas
from tests.support.topology_stories import STORIES, Story, search_of
from tests.support.topology_walks import walked

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

SEED = int(os.environ.get("SIMULATION_SEED", "20261130"))
EVERYTHING = 1_000_000
GROUPS = {
    "crash": (Kind.CRASH,),
    "lost reply, conflict, outage": (Kind.LOST, Kind.CONFLICT, Kind.AWAY),
    "repeated or late event, stopped process": (Kind.REPEATED, Kind.LATE, Kind.STOPPED),
}
EVERY_KIND = tuple(kind for kinds in GROUPS.values() for kind in kinds)
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
every_group = pytest.mark.parametrize("group", GROUPS)
_SEARCHES: dict[str, Search] = {}


@pytest.fixture
def search() -> Callable[[Story], Search]:
    """The runs of a story; each has one reference run."""
    return lambda story: _SEARCHES.setdefault(story.name, search_of(story))


@every_story
def test_promise_07_a_sample_of_faults_anywhere_in_scheduling_changes_nothing_in_the_end(
    search: Callable[[Story], Search], story: Story
) -> None:
    found = search(story)
    # Another version of Kueue plays a story that is here already: its run without faults is enough for every day.
    count = 1 if story.variant is Variant.V0_17 else 0
    wrong = found.explore(EVERY_KIND, count=count, seed=SEED)
    assert not wrong, f"seed {SEED}:\n" + "\n\n".join(wrong)
    assert found.runs == 1 + count


@pytest.mark.soak
@pytest.mark.timeout(7200)
@every_group
@every_story
def test_promise_07_a_fault_at_every_point_of_scheduling_changes_nothing_in_the_end(
    search: Callable[[Story], Search], story: Story, group: str
) -> None:
    found = search(story)
    wrong = found.explore(GROUPS[group], count=EVERYTHING, seed=SEED)
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])
    assert found.runs > 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
@every_story
def test_a_second_fault_during_the_recovery_of_scheduling_changes_nothing_in_the_end(
    search: Callable[[Story], Search], story: Story
) -> None:
    found = search(story)
    wrong = found.explore_pairs(GROUPS["crash"] + GROUPS["lost reply, conflict, outage"], count=60, seed=SEED)
    assert not wrong, f"seed {SEED}, {len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])


@pytest.mark.parametrize("number", range(3))
def test_in_a_random_history_the_laws_hold_and_the_end_is_the_plan_of_the_nodes(number: int) -> None:
    assert walked(SEED + number)["policy"] in ("None", "Hold", "HoldAndDrain")


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_in_many_random_histories_the_laws_hold_and_the_end_is_the_plan_of_the_nodes() -> None:
    wrong = []
    for seed in range(500):
        try:
            walked(seed)
        except Broken as error:
            wrong.append(f"seed {seed}: {error}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n\n".join(wrong[:3])


# -- the rules see what they are there for -----------------------------------------------------------------------------


def queue(policy: str, groups: dict[str, int], **marks: str) -> dict[str, Any]:
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]} for name, cpus in groups.items()
    ]
    return {
        "kind": "ClusterQueue",
        "metadata": {
            "name": "cpu",
            "uid": "u",
            "generation": 2,
            "annotations": {f"topology.gpustack.ai/{key.replace('_', '-')}": value for key, value in marks.items()},
        },
        "spec": {"stopPolicy": policy, "resourceGroups": [{"flavors": flavors}] if flavors else []},
    }


def workload(flavor: str) -> dict[str, Any]:
    admission = {"clusterQueue": "cpu", "podSetAssignments": [{"flavors": {"cpu": flavor}}]}
    return {"kind": "Workload", "metadata": {"name": "busy", "namespace": "team"}, "status": {"admission": admission}}


def broken_by(old: Any, new: Any, *, collection: tuple[str, str] = QUEUES, writer: str = "manager") -> list[str]:
    """What the rules say to one write, in a cluster where a Workload runs on the flavor `old`."""
    store = Store(1)
    store.put(WORKLOADS, ("team", "busy"), workload("old"))
    store.put(QUEUES, ("", "cpu"), old if collection == QUEUES else queue("None", {}))
    rules = Rules(store, lambda: 0.0)
    rules.begin()
    rules.writer = writer
    rules.changed(Change(9, collection, ("", "cpu"), old, new))
    return rules.broken


def test_the_rules_see_a_switch_and_a_release_while_a_reservation_lives() -> None:
    draining = queue("HoldAndDrain", {"old": 4}, migration_phase="draining")
    said = broken_by(draining, queue("HoldAndDrain", {"new": 4}, migration_phase="switched"))
    assert any("was switched while" in text for text in said)
    assert any("was released while" in text for text in broken_by(draining, queue("None", {"old": 4})))
    assert broken_by(draining, draining) == []


def test_the_rules_see_a_flavor_that_goes_in_place_and_is_not_known_to_be_idle() -> None:
    said = broken_by(queue("None", {"old": 4}), queue("None", {}))
    assert any("lost ['old'] in place" in text for text in said)
    assert any("open without groups" in text for text in said)


def test_the_rules_see_an_admission_without_groups() -> None:
    waiting = {**workload("old"), "status": {}}
    said = broken_by(waiting, workload("old"), collection=WORKLOADS, writer="story")
    assert said == ["busy was admitted into cpu, which has no groups"]
    assert quotas(queue("None", {"old": 4})) == {"old": Fraction(4)}

"""Racks come into an inventory as a person sees it: `gitops-ctl demo topology`, with real Node Feature Discovery and Kueue.

What must be shown with real components is shown in tests/peers; here it is the story, its end, and what is left of it.
"""

from collections.abc import Iterator

import pytest

from tests.support.processes import processes_of
from tests.support.switch_demo import Demo, start_demo

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.needs("kwok", "nfd", "kueue"),
    pytest.mark.timeout(600),
]

ZONED, RACKED = "fnv64-29c7d645fad688b1", "fnv64-dde125aa4572179a"
STORY = (
    "1. Git says in which region and zone each Node stands",
    f"all Nodes have the profile {ZONED}",
    "queue epyc serves its plan",
    "revision hall-7/1",
    "the pair is admitted",
    "the trio is not",
    "Kueue on the trio: ",
    "+    - topology.gpustack.ai/rack",
    "$ gitops-ctl plan topology",
    f"{ZONED} -> {RACKED}",
    "1 queue would drain; 1 Workload would be evicted.",
    "queue epyc is drained",
    "holds quota training/pair",
    "queue epyc serves the new plan",
    "the queue is the same object as before",
    "the pair is admitted again",
    "the old flavor and its Topology are gone",
    "rule 13",
    "the snapshot is held as it was",
    "10. The commit is taken back",
    "Everything came as it was claimed.",
)
"""Lines of the story, in their order."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = start_demo(tmp_path_factory.mktemp("topology"), "--keep", name="topology")
    try:
        demo.until_over(timeout_s=420)
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.interrupt()


def test_racks_come_into_an_inventory_with_real_components(told: Demo) -> None:
    text, place = told.told, -1
    for line in STORY:
        found = text.find(line, place + 1)
        assert found > place, f"{line!r} is missing or out of order in:\n{text}"
        place = found
    assert "Traceback" not in text


def test_ctrl_c_ends_it_and_leaves_nothing(told: Demo) -> None:
    assert told.interrupt() == 130
    assert processes_of(str(told.folder)) == []
    assert not told.home.exists()

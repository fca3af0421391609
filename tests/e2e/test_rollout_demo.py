"""Twelve switches are upgraded as a person sees it: `gitops-ctl demo rollout`, with the real manager and the real device workers.

What must be shown of single parts is shown in tests/peers and tests/simulation; here it is the story, its end, and what is left of it.
It takes some ten minutes, most of them waits of switches for evidence and reloads, so it belongs to the full sizes.
"""

from collections.abc import Iterator

import pytest

from tests.support.processes import processes_of
from tests.support.switch_demo import Demo, start_demo

pytestmark = [
    pytest.mark.soak,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.needs("kwok"),
    pytest.mark.timeout(1500),
]

STORY = (
    "1. Git describes twelve switches in three zones",
    "every switch is healthy",
    "12 devices to 17.18.03 by Reload: 2 canaries first, then 10 more after a resume.",
    "the plan is frozen",
    "ApprovalRequired: nobody has approved the plan sha256:",
    "every switch has been checked, read-only",
    "change-approver: Approve the plan of to-17-18-03",
    "the exact plan is approved",
    "the canaries succeeded, and the rollout waits",
    "CanariesPassed: 2 of 2 canaries succeeded; 10 more wait for a control revision above 0.",
    "This resumes campus/to-17-18-03, with control revision 1.",
    "the others begin",
    "the rollout has succeeded",
    "7. The next version is asked for and approved, too",
    "every switch is healthy on its new version",
    "its canaries succeeded",
    "the rollout has failed",
    "make a new rollout",
    "every other switch is as it was or runs the new version",
    "Everything came as it was claimed.",
)
"""Lines of the story, in their order."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = start_demo(tmp_path_factory.mktemp("rollout"), "--keep", name="rollout")
    try:
        demo.until_over(timeout_s=1200)
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.interrupt()


def test_switches_are_upgraded_by_signed_commits_and_a_failure_stops_the_rest(told: Demo) -> None:
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

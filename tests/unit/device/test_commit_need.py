"""Whether an install commit is needed, is told by looking at the install state (rollouts.md, section 13.3)."""

from dataclasses import replace

import pytest

from gitops_ctl.device.installcommit import CommitNeed, commit_need
from gitops_ctl.device.operational import InstallState, Mode, Seen, Version, VersionState

TARGET = "17.18.03"
STATE = InstallState(running="17.18.03.0.5496.1776157760", committed=True, mode=Mode.INSTALL, supervisors=1)


@pytest.mark.parametrize(
    ("state", "need"),
    [
        (STATE, CommitNeed.DONE),
        (replace(STATE, committed=False), CommitNeed.NEEDED),
        (replace(STATE, committed=False, timer=True), CommitNeed.NEEDED),
        (replace(STATE, timer=True), CommitNeed.NEEDED),
        (replace(STATE, operation=True), CommitNeed.BUSY),
        (replace(STATE, versions=(Version("17.18.04", VersionState.PENDING),)), CommitNeed.BUSY),
        (replace(STATE, running="17.18.02.0.4112.1766116039"), CommitNeed.LEFT),
        (replace(STATE, running="17.18.030"), CommitNeed.LEFT),
        (replace(STATE, running=""), CommitNeed.LEFT),
    ],
)
def test_a_complete_look_says_what_to_do(state, need):
    sight = commit_need(Seen(state), version=TARGET)
    assert sight.need is need
    assert sight.message


@pytest.mark.parametrize("state", [STATE, replace(STATE, committed=False), InstallState()])
def test_a_partial_look_concludes_nothing(state):
    sight = commit_need(Seen(state, ("supervisor 1/0 has no sys-activity",)), version=TARGET)
    assert (sight.need, sight.message) == (CommitNeed.UNKNOWN, "supervisor 1/0 has no sys-activity")

"""Pause, resume and cancel: tightening is honoured from wherever it comes, loosening needs a commit."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.rollout.authority import Block
from gitops_ctl.rollout.campaignstate import Control
from gitops_ctl.rollout.control import (
    acknowledged,
    canary_pause,
    control_status,
    deletion_control,
    in_force,
    is_resume,
    judge_control,
    tightens,
)
from gitops_ctl.trust.provenance import Introduced

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
BY = Introduced("c0ffee", "network-operator", "control", "gitops-ctl:network-operator", NOW, NOW)


def tree_of(control):
    return {"revision": control.revision, "pause": control.pause, "cancel": control.cancel}


def rollout(live, before=Control(), **status):
    """A rollout with that live control, and the one before recorded."""
    flags = {"paused": before.pause, "cancelled": before.cancel}
    recorded = {"requestedRevision": before.revision, **{name: True for name, value in flags.items() if value}}
    return {
        "spec": {"control": tree_of(live)},
        "status": {"control": recorded, **status},
        "metadata": {"generation": 5},
    }


def from_git(control, by=BY):
    return Block(declared=tree_of(control), introduced=by)


PAUSED, CANCELLED, RESUMED = Control(1, pause=True), Control(2, cancel=True), Control(2)


@pytest.mark.parametrize(
    ("live", "before", "in_git", "counts", "emergency"),
    [
        pytest.param(PAUSED, Control(), True, True, False, id="a pause from Git"),
        pytest.param(PAUSED, Control(), False, True, True, id="an emergency pause"),
        pytest.param(CANCELLED, Control(), False, True, True, id="an emergency cancel"),
        pytest.param(CANCELLED, PAUSED, False, False, False, id="a cancel that takes the pause away"),
        pytest.param(Control(2, pause=True, cancel=True), PAUSED, False, True, True, id="a cancel of a paused one"),
        pytest.param(RESUMED, PAUSED, True, True, False, id="a resume from Git"),
        pytest.param(RESUMED, PAUSED, False, False, False, id="a resume by hand"),
        pytest.param(Control(3), CANCELLED, False, False, False, id="a cancel undone by hand"),
        pytest.param(Control(2, pause=True), PAUSED, False, False, False, id="a new revision of the same"),
        pytest.param(Control(1, pause=True), PAUSED, False, True, False, id="nothing new"),
        pytest.param(Control(1, pause=True), Control(1), False, False, False, id="the same revision, changed"),
        pytest.param(Control(7, cancel=True), Control(1), False, True, True, id="several stops at once"),
    ],
)
def test_which_control_counts(live, before, in_git, counts, emergency):
    found = judge_control(rollout(live, before), from_git(live) if in_git else Block())
    assert found.control == (live if counts else before)
    assert found.is_emergency is emergency
    assert (found.refused == "NotFromGit") is not counts


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(from_git(Control(2, pause=True)), id="Git says another thing"),
        pytest.param(
            from_git(RESUMED, Introduced("c0ffee", "x", "approve", "gitops-ctl:x", NOW, NOW)), id="another verb"
        ),
        pytest.param(Block(declared=tree_of(RESUMED)), id="nobody introduced it"),
        pytest.param(Block(declared=tree_of(RESUMED), introduced=BY, revoked=True), id="revoked"),
    ],
)
def test_attack_a_resume_needs_a_commit_that_says_the_same(block):
    assert judge_control(rollout(RESUMED, PAUSED), block).control == PAUSED


def test_left_out_flags_in_git_are_those_that_are_false():
    block = Block(declared={"revision": 2}, introduced=BY)
    assert judge_control(rollout(RESUMED, PAUSED), block).control == RESUMED


def test_before_a_revision_was_looked_at_a_stop_counts_and_a_resume_waits():
    unknown = Block(known=False)
    assert judge_control(rollout(PAUSED), unknown).control == PAUSED
    waiting = judge_control(rollout(RESUMED, PAUSED), unknown)
    assert (waiting.control, waiting.refused) == (PAUSED, "")


controls = st.builds(Control, st.integers(0, 3), st.booleans(), st.booleans())


@settings(max_examples=300, deadline=None)
@pytest.mark.property
@given(controls, controls)
def test_without_git_nothing_is_ever_loosened(live, before):
    found = judge_control(rollout(live, before), Block()).control
    assert not (before.pause and not found.pause)
    assert not (before.cancel and not found.cancel)
    assert found.revision >= before.revision
    assert (found == live) == (live == before or tightens(live, before))
    assert in_force(rollout(live, before)) == before


def leaf(state="Granted", *, seen=None, effective="Ready", claims=(), pushed=None):
    """A leaf whose worker has seen that revision."""
    status = {
        "managerAdmission": {"state": state},
        "managedMutationClaims": [{"stage": stage} for stage in claims],
    }
    if seen is not None:
        status["workerControl"] = {"observedControlRevision": seen, "effectiveState": effective}
    if pushed is not None:
        status["managerControl"] = {"revision": pushed}
    return leaf_of({"metadata": {"name": "x"}, "status": status})


@pytest.mark.parametrize(
    ("found", "control", "done"),
    [
        pytest.param(leaf(seen=0), PAUSED, False, id="not seen"),
        pytest.param(leaf(seen=1), PAUSED, False, id="seen and still ready"),
        pytest.param(leaf(seen=1, effective="Paused"), PAUSED, True, id="paused"),
        pytest.param(leaf(seen=1, effective="Claimed"), PAUSED, True, id="claimed work goes on"),
        pytest.param(leaf(seen=2, effective="Claimed"), CANCELLED, False, id="claimed work is not cancelled"),
        pytest.param(leaf(seen=2, effective="Cancelled"), CANCELLED, True, id="cancelled"),
        pytest.param(leaf("Settled"), CANCELLED, True, id="settled needs no answer to a cancel"),
        pytest.param(leaf("Revoked"), CANCELLED, True, id="revoked without a claim neither"),
        pytest.param(leaf("Revoked", claims=("Staging",)), CANCELLED, False, id="revoked with a claim does"),
        pytest.param(leaf(seen=1, effective="Paused"), RESUMED, False, id="a resume not seen"),
        pytest.param(leaf(seen=2), RESUMED, True, id="a resume seen"),
        pytest.param(leaf(), Control(), True, id="nothing was asked"),
    ],
)
def test_when_a_leaf_has_acknowledged(found, control, done):
    assert acknowledged(found, control) is done


def test_a_revision_is_effective_once_every_leaf_has_acknowledged_it():
    waiting, done = leaf(seen=0), leaf(seen=1, effective="Paused")
    assert control_status(PAUSED, [done, waiting]) == {
        "requestedRevision": 1,
        "effectiveRevision": 0,
        "pausePending": True,
    }
    assert control_status(PAUSED, [done]) == {"requestedRevision": 1, "effectiveRevision": 1, "paused": True}
    assert control_status(CANCELLED, []) == {"requestedRevision": 2, "effectiveRevision": 2, "cancelled": True}
    assert control_status(Control(), [waiting]) == {"requestedRevision": 0, "effectiveRevision": 0}


def test_a_deletion_is_a_cancel_above_every_revision_and_repeats_itself():
    first = deletion_control(PAUSED, [leaf(pushed=1), leaf(pushed=4), leaf()])
    assert first == Control(4, cancel=True)
    assert deletion_control(PAUSED, [leaf(pushed=4)]) == first
    assert deletion_control(PAUSED, []) == Control(2, cancel=True)


def passed(generation=4, status="True", reason="CanariesPassed"):
    return [
        {
            "type": "CanaryResumeRequired",
            "status": status,
            "reason": reason,
            "observedGeneration": generation,
        }
    ]


@pytest.mark.parametrize(
    ("tree", "control", "resumes"),
    [
        pytest.param(rollout(RESUMED, PAUSED, conditions=passed()), RESUMED, True, id="asked after the canaries"),
        pytest.param(rollout(Control(1), conditions=passed()), Control(1), True, id="a first revision"),
        pytest.param(rollout(RESUMED, PAUSED, conditions=passed(5)), RESUMED, False, id="an older generation"),
        pytest.param(rollout(RESUMED, RESUMED, conditions=passed()), RESUMED, False, id="an old revision"),
        pytest.param(rollout(PAUSED, conditions=passed()), PAUSED, False, id="a pause"),
        pytest.param(rollout(CANCELLED, conditions=passed()), CANCELLED, False, id="a cancel"),
        pytest.param(rollout(RESUMED, PAUSED), RESUMED, False, id="before the canaries have passed"),
        pytest.param(
            rollout(RESUMED, PAUSED, conditions=passed(status="False", reason="ResumeAuthorized")),
            RESUMED,
            False,
            id="resumed already",
        ),
    ],
)
def test_when_a_control_lets_the_second_wave_begin(tree, control, resumes):
    assert is_resume(tree, control) is resumes


WAVES = {"edge-1": 0, "edge-2": 0, "edge-3": 1}


@pytest.mark.parametrize(
    ("settled", "conditions", "control", "found"),
    [
        pytest.param({"edge-1"}, [], Control(), None, id="a canary is open"),
        pytest.param({"edge-1", "edge-2"}, [], Control(), ("True", "CanariesPassed"), id="all canaries are settled"),
        pytest.param(
            {"edge-1", "edge-2"}, passed(), Control(1), ("False", "ResumeAuthorized"), id="and somebody resumes"
        ),
        pytest.param(
            {"edge-1", "edge-2"},
            passed(status="False", reason="ResumeAuthorized"),
            Control(),
            ("False", "ResumeAuthorized"),
            id="a resume is kept",
        ),
    ],
)
def test_the_pause_after_the_canaries(settled, conditions, control, found):
    tree = rollout(control, conditions=conditions)
    given_ = {"waves": WAVES, "settled": frozenset(settled)}
    assert canary_pause(tree, control, pauses=True, **given_) == found
    assert canary_pause(tree, control, pauses=False, **given_) is None


def test_a_plan_of_canaries_alone_never_waits_for_a_resume():
    everything = frozenset({"edge-1", "edge-2"})
    waves = dict.fromkeys(everything, 0)
    assert canary_pause(rollout(Control()), Control(), waves=waves, settled=everything, pauses=True) is None

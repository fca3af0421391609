"""The status of a campaign: targets in plan order, counts, conditions with their reasons, and no write for nothing new."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gitops_ctl.api.rollout import parse_rollout
from gitops_ctl.rollout.freeze import freeze
from gitops_ctl.rollout.progress import (
    Phase,
    Standing,
    TargetPhase,
    TargetStanding,
    counts_of,
    planned,
    standings_of,
    status_of,
)
from tests.support.rollout_planning import NOW, ago, fleet, given, rollout

LATER = NOW + timedelta(minutes=5)


def standing_in(phase, name="edge-1", **more):
    return TargetStanding(name, f"{name}-uid", phase, **more)


def written(standing, tree=None, now=NOW):
    """The rollout with that status."""
    tree = tree or rollout()
    return {**tree, "status": {**tree.get("status", {}), **status_of(tree, standing, now=now)}}


def condition(tree, kind):
    found = [one for one in tree["status"]["conditions"] if one["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else None


def test_counts_add_up_and_leave_zeros_out():
    everything = [standing_in(phase, f"edge-{place}") for place, phase in enumerate(TargetPhase)]
    assert counts_of(everything) == {
        "total": 10,
        "planned": 2,
        "admitted": 1,
        "inProgress": 3,
        "succeeded": 1,
        "failed": 1,
        "blocked": 1,
        "cancelled": 1,
    }
    assert counts_of([standing_in(TargetPhase.PLANNED)]) == {"total": 1, "planned": 1}
    assert counts_of([]) == {}


@pytest.mark.parametrize("phase", list(Phase))
def test_the_conditions_of_each_phase(phase):
    tree = written(Standing(phase, approved=True))
    progressing = phase in {Phase.EXECUTING, Phase.SOAKING, Phase.CANCELLING}
    assert condition(tree, "Progressing") == ("True" if progressing else "False", phase.value)
    assert condition(tree, "Ready") == ("True" if phase is Phase.SUCCEEDED else "False", phase.value)
    assert condition(tree, "Planned") == ("True", "PlanFrozen")
    assert condition(tree, "Approved") == ("True", "ExactPlanApproved")


@pytest.mark.parametrize(
    ("standing", "kind", "found"),
    [
        (Standing(Phase.AWAITING_APPROVAL, approved=False), "Approved", ("False", "ApprovalRequired")),
        (Standing(Phase.FAILED, ready_reason="PlanningFailed"), "Ready", ("False", "PlanningFailed")),
        (Standing(Phase.FAILED, ready_reason="PlanningFailed"), "Planned", None),
        (Standing(Phase.PAUSED, fenced="PolicyChanged"), "PolicyChanged", ("True", "ReplanRequired")),
        (Standing(Phase.PAUSED, transition=True), "PolicyTransition", ("True", "FencingPreviousEpoch")),
        (Standing(Phase.EXECUTING, transition=False), "PolicyTransition", ("False", "EpochPublished")),
        (
            Standing(Phase.PAUSED, canary_resume=("True", "CanariesPassed")),
            "CanaryResumeRequired",
            ("True", "CanariesPassed"),
        ),
        (Standing(Phase.EXECUTING), "CanaryResumeRequired", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_other_conditions(standing, kind, found):
    assert condition(written(standing), kind) == found


def test_the_same_standing_is_the_same_document():
    standing = Standing(Phase.EXECUTING, [standing_in(TargetPhase.RUNNING, reason="Staging")], "going", approved=True)
    first = written(standing)
    assert written(standing, first, LATER) == first


def test_a_phase_has_the_time_when_it_began_and_a_reason_changes_no_time():
    first = written(Standing(Phase.EXECUTING, [standing_in(TargetPhase.RUNNING, reason="Staging")]))
    again = written(Standing(Phase.EXECUTING, [standing_in(TargetPhase.RUNNING, reason="Transferring")]), first, LATER)
    assert again["status"]["targets"][0]["lastTransitionTime"] == ago(0)
    soaking = written(Standing(Phase.SOAKING, [standing_in(TargetPhase.SOAKING)]), again, LATER)
    assert soaking["status"]["targets"][0]["lastTransitionTime"] == ago(-300)
    broken = written(Standing(Phase.EXECUTING, [standing_in(TargetPhase.RUNNING)]), soaking, LATER)
    resumed = written(Standing(Phase.SOAKING, [standing_in(TargetPhase.SOAKING)]), broken, LATER + timedelta(minutes=1))
    assert resumed["status"]["targets"][0]["lastTransitionTime"] == ago(-360)


def test_the_generation_of_the_canary_pause_does_not_follow_the_object():
    paused = Standing(Phase.PAUSED, canary_resume=("True", "CanariesPassed"))
    first = written(paused)
    grown = {**first, "metadata": {**first["metadata"], "generation": 4}}
    again = written(paused, grown, LATER)
    generations = {one["type"]: one["observedGeneration"] for one in again["status"]["conditions"]}
    assert (generations["CanaryResumeRequired"], generations["Ready"]) == (1, 4)
    resumed = written(Standing(Phase.EXECUTING, canary_resume=("False", "ResumeAuthorized")), again, LATER)
    generations = {one["type"]: one["observedGeneration"] for one in resumed["status"]["conditions"]}
    assert generations["CanaryResumeRequired"] == 4


def test_targets_are_read_back_as_they_were_written():
    targets = [standing_in(TargetPhase.BLOCKED, reason="AdmissionBlocked", message="x" * 600, leaf_name="leaf")]
    found = standings_of(written(Standing(Phase.EXECUTING, targets)))
    (target,) = targets
    assert found["edge-1-uid"] == replace(target, message="x" * 511 + "…", since=ago(0))
    assert standings_of({"status": {"targets": [{"deviceUID": "a", "phase": "Dancing"}]}}) == {}


def test_what_is_published_obeys_the_schema():
    frozen = freeze(given(fleet(2)))
    tree = rollout()
    standing = Standing(
        Phase.AWAITING_APPROVAL,
        [planned(target) for target in frozen.targets],
        f"waiting for approval of {frozen.hash}",
        approved=False,
    )
    tree = written(
        standing, {**tree, "status": {"frozenPlan": frozen.to_json(created_at=NOW), "intentHash": frozen.intent_hash}}
    )
    snapshot = tree["status"]["frozenPlan"]["policy"]
    tree["status"]["effectivePolicy"] = {"epoch": 1, "policy": snapshot, "updatedAt": ago(0)}
    parse_rollout(tree)
    assert tree["status"]["message"] == f"waiting for approval of {frozen.hash}"
    assert [one["phase"] for one in tree["status"]["targets"]] == ["Planned", "Planned"]

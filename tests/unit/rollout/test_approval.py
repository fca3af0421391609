"""An approval counts when a commit gives it for exactly the frozen plan, and for nothing else."""

from datetime import UTC, datetime

import pytest

from gitops_ctl.rollout.approval import ApprovalState, judge_approval
from gitops_ctl.rollout.authority import Block
from gitops_ctl.trust.provenance import Introduced

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
PLAN, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
COMMIT = "c0ffee" * 6


def introduced(verb="approve", person="change-approver"):
    return Introduced(COMMIT, person, verb, f"gitops-ctl:{person}", NOW, NOW, (person,))


def rollout(live=PLAN, recorded=None):
    """A frozen rollout with that hash in spec.approval, and that status."""
    spec = {"approval": {"planHash": live, "approvedBy": "x"}} if live else {}
    return {"spec": spec, "status": {"frozenPlan": {"hash": PLAN}, "approval": recorded or {}}}


def block(said=PLAN, by=None, **more):
    return Block(declared={"planHash": said} if said else {}, introduced=by or introduced(), **more)


def test_an_approval_of_the_exact_plan_from_git_is_taken_up():
    found = judge_approval(rollout(), block())
    assert found.state is ApprovalState.APPROVED
    assert found.is_new
    assert found.to_json(now=NOW) == {
        "planHash": PLAN,
        "valid": True,
        "reason": "ExactPlanApproved",
        "validatedAt": "2026-11-02T12:00:00Z",
        "person": "change-approver",
        "commit": COMMIT,
    }


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(Block(), id="nothing in Git"),
        pytest.param(Block(declared={"planHash": PLAN}), id="in Git without an introducer"),
        pytest.param(block(OTHER), id="Git approves another plan than the cluster says"),
        pytest.param(block(by=introduced("plan")), id="a commit of somebody with another verb"),
        pytest.param(block(revoked=True), id="a revoked key"),
    ],
)
def test_an_approval_in_the_cluster_without_a_commit_has_no_effect(given):
    found = judge_approval(rollout(), given)
    assert (found.state, found.reason) == (ApprovalState.REQUIRED, "NotFromGit")
    tree = found.to_json(now=NOW)
    assert tree["valid"] is False
    assert "person" not in tree


@pytest.mark.parametrize("by", [None, introduced("plan", "network-author")], ids=["nobody", "the planner"])
def test_a_wrong_hash_by_nobody_entitled_cannot_fail_a_campaign(by):
    found = judge_approval(rollout(OTHER), Block(declared={"planHash": OTHER}, introduced=by))
    assert (found.state, found.reason) == (ApprovalState.REQUIRED, "NotFromGit")


def test_an_entitled_approval_of_another_plan_is_a_mismatch():
    found = judge_approval(rollout(OTHER), block(OTHER))
    assert (found.state, found.reason) == (ApprovalState.MISMATCH, "ApprovalHashMismatch")
    assert found.message == f"change-approver approved {OTHER}, the plan is {PLAN}"
    assert found.to_json(now=NOW)["valid"] is False


def test_without_an_approval_one_is_waited_for():
    found = judge_approval(rollout(""), Block())
    assert (found.state, found.reason) == (ApprovalState.REQUIRED, "ApprovalRequired")
    assert found.message == f"waiting for approval of {PLAN}"
    assert found.to_json(now=NOW) is None


def test_after_a_start_nothing_is_concluded_before_a_revision_was_looked_at():
    assert judge_approval(rollout(), Block(known=False)).state is ApprovalState.UNKNOWN


RECORDED = {
    "planHash": PLAN,
    "valid": True,
    "reason": "ExactPlanApproved",
    "person": "change-approver",
    "commit": COMMIT,
}


@pytest.mark.parametrize(
    "given", [Block(), Block(known=False), block(OTHER)], ids=["a new root", "after a start", "Git changed"]
)
@pytest.mark.parametrize("live", [PLAN, OTHER, ""], ids=["as it was", "changed in the cluster", "taken away"])
def test_what_was_taken_up_stands(given, live):
    found = judge_approval(rollout(live, RECORDED), given)
    assert (found.state, found.is_new) == (ApprovalState.APPROVED, False)
    assert (found.person, found.commit) == ("change-approver", COMMIT)


def test_a_revocation_ends_what_was_taken_up():
    found = judge_approval(rollout(PLAN, RECORDED), block(revoked=True))
    assert (found.state, found.reason, found.is_new) == (ApprovalState.REQUIRED, "ApproverRevoked", True)
    assert found.to_json(now=NOW)["valid"] is False


def test_a_record_of_another_plan_counts_for_nothing():
    found = judge_approval(rollout("", {**RECORDED, "planHash": OTHER}), Block())
    assert found.state is ApprovalState.REQUIRED


def test_the_same_judgement_is_no_new_one():
    first = judge_approval(rollout(), Block())
    again = judge_approval(rollout(PLAN, dict(first.to_json(now=NOW))), Block())
    assert first.is_new
    assert not again.is_new

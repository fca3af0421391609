"""Bounded passes: progress is kept, L moves as far as is accepted, and nothing passes unread (rule A10)."""

from pathlib import Path

from gitops_ctl.trust.chain import VerdictCache
from tests.support.trust import Story, Team, config_map

A = "clusters/a.yaml"


def test_a_pass_judges_at_most_its_limit_and_moves_the_accepted_commit_along(story: Story, team: Team) -> None:
    commits = [story.repo.commit({A: config_map("a", x=str(count))}, signer=team["ann"]) for count in range(5)]
    first = story.judge(limit=2)
    assert (first.verdict, first.pending, first.accepted, first.judged, first.remaining) == (
        "VerificationInProgress",
        True,
        commits[1],
        2,
        3,
    )
    assert "2 commits judged in this pass, 3 remain" in first.message
    assert story.judge(limit=2).accepted == commits[3]
    last = story.judge(limit=2)
    assert (last.verdict, last.accepted, last.judged) == ("Accepted", commits[4], 1)


def test_progress_below_one_large_merge_is_kept_between_passes(story: Story, team: Team) -> None:
    story.repo.branch("side")
    for count in range(5):
        story.repo.commit({"clusters/b.yaml": config_map("b", x=str(count))}, signer=team["ann"])
    story.repo.switch("main")
    merge = story.repo.merge("side", signer=team["ann"])
    judged = []
    for _ in range(4):
        verdict = story.judge(limit=2)
        judged.append(verdict.judged)
        if verdict.verdict == "Accepted":
            break
        assert verdict.accepted == story.root.commit
    assert judged == [2, 2, 2]
    assert story.accepted == merge


def test_a_cache_that_is_lost_costs_work_and_changes_no_verdict(story: Story, team: Team) -> None:
    story.repo.branch("side")
    for count in range(3):
        story.repo.commit({"clusters/b.yaml": config_map("b", x=str(count))}, signer=team["ann"])
    story.repo.switch("main")
    merge = story.repo.merge("side", signer=team["ann"])
    assert story.judge(limit=2).verdict == "VerificationInProgress"
    story.cache = VerdictCache()
    assert story.judge(limit=4).accepted == merge


def test_judging_again_is_bounded_too_and_allows_no_effects_meanwhile(story: Story, team: Team) -> None:
    for count in range(4):
        story.repo.commit({A: config_map("a", x=str(count))}, signer=team["ann"])
    tip = story.judge().accepted
    first = story.judge(limit=3, accepted_verifier_version="0")
    assert (first.verdict, first.effects_allowed, first.accepted) == ("VerificationInProgress", False, tip)
    second = story.judge(limit=3, accepted_verifier_version="0")
    assert (second.verdict, second.effects_allowed, second.judged) == ("Accepted", True, 1)


def test_a_range_that_cannot_be_completed_is_pending_and_never_accepted(
    tmp_path: Path, story: Story, team: Team
) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tip = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    shallow = tmp_path / "shallow.git"
    story.repo.git("clone", "--quiet", "--bare", "--depth=1", story.repo.url, str(shallow))
    story.judge(story.root.commit)
    story.git_dir = shallow
    verdict = story.judge(tip)
    assert (verdict.verdict, verdict.pending, verdict.judged) == ("HistoryUnavailable", True, 0)

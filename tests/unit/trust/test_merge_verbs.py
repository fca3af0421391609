"""Which verbs a merge needs for what it changes by itself, where both sides changed a file (rule A4; section 4.3)."""

from pathlib import Path

import pytest

from gitops_ctl.git import merge as git_merge
from tests.support.trust import DEFAULT_RULES, Story, Team
from tests.support.trust_rollouts import rollout

FILE = "clusters/r.yaml"
RULES = (
    *DEFAULT_RULES,
    {"paths": ["clusters/**"], "verbs": ["plan"], "roles": ["author"]},
    {"paths": ["clusters/**"], "verbs": ["approve"], "roles": ["approver"]},
)
FAR = {f"n{number}": number for number in range(9)}


def _withdrawn(tmp_path: Path, team: Team, *, edited: str) -> Story:
    """ann's plan, approved by bob; then bob withdraws the approval on a branch, while ann edits the file on main."""
    story = Story.begin(tmp_path / "repo", team.policy(rules=RULES))
    story.repo.commit({FILE: rollout(note="a", **FAR, plan={"a": 1})}, signer=team["ann"])
    story.repo.commit({FILE: rollout(note="a", **FAR, plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    story.repo.branch("side")
    story.repo.commit({FILE: rollout(note="a", **FAR, plan={"a": 1})}, signer=team["bob"])
    story.repo.switch("main")
    story.repo.commit({FILE: edited}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    return story


def _pushed(story: Story, tmp_path: Path) -> Story:
    """The repository as a server holds it: without what git merged on the workstation before the person changed it."""
    story.git_dir = tmp_path / "pushed.git"
    story.repo.git("clone", "--quiet", "--bare", "--no-local", str(story.repo.path), str(story.git_dir))
    return story


APART = rollout(note="b", **FAR, plan={"a": 1}, approval={"x": 1})
NEAR = rollout(note="a", **FAR, plan={"a": 1}, approval={"x": 1}, last="b")


@pytest.mark.parametrize("edited", [APART, NEAR], ids=["merged by content", "in conflict"])
@pytest.mark.parametrize("more", ["", "# touched\n"], ids=["as on main", "changed besides"])
def test_a_merge_that_brings_a_withdrawn_approval_back_needs_the_verb_of_the_approval(
    tmp_path: Path, team: Team, edited: str, more: str
) -> None:
    story = _withdrawn(tmp_path, team, edited=edited)
    story.repo.merge("side", signer=team["ann"], resolve={FILE: more + edited})
    refused = _pushed(story, tmp_path).judge().refused
    assert refused is not None
    assert (refused.path, refused.verb, refused.reason) == (FILE, "approve", "PathNotAuthorised")


def test_a_merge_that_git_makes_by_itself_carries_the_withdrawal(tmp_path: Path, team: Team) -> None:
    story = _withdrawn(tmp_path, team, edited=APART)
    merge = story.repo.merge("side", signer=team["ann"])
    assert '"approval"' not in story.repo.git("show", f"HEAD:{FILE}")
    assert story.judge().accepted == merge


def test_an_edit_beside_what_git_merged_needs_the_rights_for_that_edit_alone(tmp_path: Path, team: Team) -> None:
    story = _withdrawn(tmp_path, team, edited=APART)
    merge = story.repo.merge("side", signer=team["ann"], resolve={FILE: rollout(note="c", **FAR, plan={"a": 1})})
    assert _pushed(story, tmp_path).judge().accepted == merge


def test_a_text_that_was_too_much_to_keep_is_compared_with_both_parents(
    tmp_path: Path, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_merge, "MAX_KEPT_BYTES", 0)
    story = _withdrawn(tmp_path, team, edited=APART)
    story.repo.merge("side", signer=team["ann"], resolve={FILE: f"# touched\n{APART}"})
    refused = _pushed(story, tmp_path).judge().refused
    assert refused is not None
    assert (refused.path, refused.verb) == (FILE, "approve")

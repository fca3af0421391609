"""Commits that change the trust policy: who judges them, what the new policy must be, and whom it judges (section 4.3, step 7)."""

import pytest

from tests.support.trust import POLICY_PATH, Story, Team, config_map, person

A = "clusters/a.yaml"


def test_a_new_policy_judges_the_children_of_its_commit_and_not_the_commit_itself(story: Story, team: Team) -> None:
    handed_over = team.policy({"author": ["bob"], "approver": ["bob"], "admin": ["eve"]})
    changed = story.repo.commit({POLICY_PATH: handed_over}, signer=team["adm"])
    assert story.judge().accepted == changed  # adm is no admin any more, by a policy that judges later commits only
    story.repo.commit({POLICY_PATH: team.policy()}, signer=team["adm"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_nobody_adds_a_key_and_uses_it_in_the_same_commit(story: Story, team: Team) -> None:
    people = [person(name, team[name]) for name in ("ann", "bob", "adm", "new")]
    roles = {"author": ["ann", "new"], "approver": ["bob"], "admin": ["adm", "new"]}
    story.repo.commit({POLICY_PATH: team.policy(roles, people=people)}, signer=team["new"])
    assert story.judge().verdict == "UnknownSigner"


@pytest.mark.parametrize("who", ["ann", "bob", "eve"])
def test_the_policy_changes_by_the_verb_trust_alone(story: Story, team: Team, who: str) -> None:
    story.repo.commit({POLICY_PATH: team.policy() + "# note\n"}, signer=team[who])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.verb, refused.reason) == ("trust", "PathNotAuthorised")


@pytest.mark.parametrize("text", ["", "x", "apiVersion: gitops-ctl.dev/v1alpha1\nkind: TrustPolicy\n"])
def test_a_policy_that_does_not_pass_its_checks_refuses_its_commit(story: Story, team: Team, text: str) -> None:
    bad = story.repo.commit({POLICY_PATH: text}, signer=team["adm"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted) == ("PolicyInvalid", story.root.commit)
    assert verdict.refused is not None
    assert verdict.refused.commit == bad


def test_a_commit_that_removes_the_policy_is_refused(story: Story, team: Team) -> None:
    story.repo.commit(delete=[POLICY_PATH], signer=team["adm"])
    assert story.judge().verdict == "PolicyInvalid"


def test_a_policy_behind_a_symlink_is_no_policy(story: Story, team: Team) -> None:
    path = story.repo.path / POLICY_PATH
    path.rename(path.with_name("other.txt"))
    path.symlink_to("other.txt")
    story.repo.commit(signer=team["adm"])
    assert story.judge().verdict in ("PolicyInvalid", "PathNotAuthorised")
    assert story.accepted == story.root.commit


def test_a_merge_that_takes_the_policy_away_is_refused(tmp_path, team: Team) -> None:
    story = Story.begin(tmp_path / "late", team.policy())
    story.repo.git("checkout", "--quiet", "--orphan", "old")
    story.repo.git("rm", "--quiet", "-rf", ".")
    base = story.repo.commit({"clusters/old.yaml": config_map("old")})
    root = story.repo.commit({POLICY_PATH: team.policy()})
    story.pin(root)
    story.repo.branch("side", at=base)
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.switch("old")
    story.repo.merge("side", signer=team["adm"], options=["--strategy=ours"])
    story.repo.git("rm", "--quiet", "--cached", POLICY_PATH)
    story.repo.write(A, config_map("a"))
    story.repo.git("add", A)
    tree = story.repo.git("write-tree")
    payload = (
        f"tree {tree}\nparent {root}\nparent {story.repo.head('side')}\n"
        "author adm <a@example.net> 1767225600 +0000\ncommitter adm <a@example.net> 1767225600 +0000\n\nmerge\n"
    ).encode()
    merge = story.repo.signed_object(payload, team["adm"])
    assert story.judge(merge).verdict == "PolicyInvalid"


def test_a_policy_at_another_path_has_no_force(story: Story, team: Team) -> None:
    other = team.policy({"author": ["eve"], "approver": ["eve"], "admin": ["eve"]})
    story.repo.commit({"clusters/trust.yaml": other}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.verb, refused.path) == ("trust", "clusters/trust.yaml")

"""Judging a range on the first-parent line: who may change which path, by the parent's policy.

In scope: accept, refuse, where L stops, what the message says.  Merges, consents, policy changes: other files here.
"""

import pytest

from tests.support.trust import POLICY_PATH, URL, Story, Team, config_map

A = "clusters/a.yaml"


def test_the_pinned_root_is_accepted_and_judged_by_nobody(story: Story) -> None:
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.judged) == ("Accepted", story.root.commit, 0)


def test_a_commit_by_an_entitled_person_is_accepted(story: Story, team: Team) -> None:
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.judged, verdict.effects_allowed) == ("Accepted", tip, 1, True)
    assert verdict.policy_digest == story.root.policy_digest


def test_a_commit_outside_the_paths_of_its_signer_is_refused_and_the_source_stays_before_it(
    story: Story, team: Team
) -> None:
    good = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    bad = story.repo.commit({"other.yaml": config_map("b")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.pending) == ("PathNotAuthorised", good, False)
    assert verdict.refused is not None
    assert (verdict.refused.commit, verdict.refused.path, verdict.refused.verb) == (bad, "other.yaml", "edit")
    assert verdict.effects_allowed


def test_a_bad_change_that_a_later_commit_undoes_stays_refused(story: Story, team: Team) -> None:
    story.repo.commit({"other.yaml": config_map("b")}, signer=team["ann"])
    story.repo.commit(delete=["other.yaml"], signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_resetting_the_branch_to_the_accepted_commit_recovers_without_a_new_root(story: Story, team: Team) -> None:
    good = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["eve"])
    assert story.judge().verdict == "PathNotAuthorised"
    story.repo.git("reset", "--quiet", "--hard", good)
    story.repo.commit({A: config_map("a", x="2")}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"


@pytest.mark.parametrize("who", ["bob", "eve"])
def test_a_person_without_a_role_of_the_rule_is_refused(story: Story, team: Team, who: str) -> None:
    story.repo.commit({A: config_map("a")}, signer=team[who])
    refused = story.judge().refused
    assert refused is not None
    assert f"{who} may not edit on {A}" in refused.message
    assert "rule 4 (verbs delete, edit; roles author)" in refused.message


def test_an_unlisted_key_is_an_unknown_signer_and_the_message_names_the_key(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["stranger"])
    verdict = story.judge()
    assert verdict.verdict == "UnknownSigner"
    assert verdict.refused is not None
    assert team["stranger"].fingerprint in verdict.refused.message


def test_a_commit_without_changes_needs_a_person_with_any_role(story: Story, team: Team) -> None:
    story.repo.commit(signer=team["bob"])
    assert story.judge().verdict == "Accepted"
    story.repo.commit(signer=team["eve"])
    verdict = story.judge()
    assert verdict.verdict == "PathNotAuthorised"
    assert verdict.refused is not None
    assert "holds no role" in verdict.refused.message


def test_a_path_without_any_rule_is_refused_by_default(story: Story, team: Team) -> None:
    story.repo.commit({"unruled.txt": "x"}, signer=team["adm"])
    refused = story.judge().refused
    assert refused is not None
    assert "no rule of the policy gives this verb here" in refused.message


def test_the_first_rule_that_matches_decides(tmp_path, team: Team) -> None:
    rules = (
        {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
        {"paths": ["clusters/prod/**"], "verbs": ["edit"], "roles": ["approver"]},
        {"paths": ["clusters/**"], "verbs": ["edit"], "roles": ["author"]},
    )
    story = Story.begin(tmp_path / "repo", team.policy(rules=rules))
    story.repo.commit({"clusters/prod/a.yaml": config_map("a")}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert refused.rule.startswith("rule 2 ")


def test_X15_the_message_names_repository_ref_commit_key_person_path_rule_and_the_way_back(
    story: Story, team: Team
) -> None:
    bad = story.repo.commit({A: config_map("a")}, signer=team["eve"])
    refused = story.judge().refused
    assert refused is not None
    for part in (URL, "refs/heads/main", bad, "eve", A, "rule 4", f"git reset --hard {story.root.commit}"):
        assert part in refused.message


def test_X15_an_unsigned_second_source_does_not_change_the_verdict_on_this_one(
    tmp_path, story: Story, team: Team
) -> None:
    other = Story.begin(tmp_path / "other", team.policy())
    other.repo.commit({A: config_map("a")})
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    unsigned = other.judge(url="https://git.example.net/charts.git")
    assert unsigned.refused is not None
    assert "charts.git" in unsigned.refused.message
    assert story.judge().verdict == "Accepted"


def test_a_root_whose_policy_has_another_digest_is_refused(story: Story) -> None:
    from dataclasses import replace

    story.root = replace(story.root, policy_digest="sha256:" + "0" * 64)
    verdict = story.judge()
    assert verdict.verdict == "PolicyInvalid"
    assert verdict.accepted is None

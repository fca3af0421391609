"""When an accepted range is judged again, and what a rewound or stolen branch does (rules A2, A5 to A7; section 4.5)."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.trust import chain
from tests.support.trust import NOW, POLICY_PATH, Story, Team, config_map, person

A = "clusters/a.yaml"


def _revoking(team: Team, key: str, since: str) -> str:
    return team.policy(revoked=[{"fingerprint": team[key].fingerprint, "from": since}])


def test_X01_a_new_revocation_judges_the_accepted_range_again_and_stops_all_effects(story: Story, team: Team) -> None:
    bad = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge().effects_allowed
    story.now = NOW + timedelta(hours=1)
    revoking = story.repo.commit({POLICY_PATH: _revoking(team, "ann", to_rfc3339(NOW))}, signer=team["adm"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.effects_allowed, verdict.accepted) == ("RevokedSigner", False, revoking)
    assert verdict.refused is not None
    assert verdict.refused.commit == bad
    again = story.judge()  # nothing moved, and it stays so
    assert (again.verdict, again.effects_allowed) == ("RevokedSigner", False)


def test_X01_a_restart_does_not_forget_that_the_accepted_commit_is_refused(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    story.repo.commit({POLICY_PATH: _revoking(team, "ann", to_rfc3339(NOW))}, signer=team["adm"])
    story.judge()
    story.cache = chain.VerdictCache()
    assert not story.judge().effects_allowed


def test_X01_a_revocation_that_touches_nothing_accepted_lets_the_source_go_on(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    later = to_rfc3339(NOW + timedelta(days=1))
    tip = story.repo.commit({POLICY_PATH: _revoking(team, "ann", later)}, signer=team["adm"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.effects_allowed) == ("Accepted", tip, True)


def test_X01_a_new_verifier_version_judges_the_range_again_although_the_tip_has_not_moved(
    story: Story, team: Team
) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    assert story.judge().judged == 2
    assert story.judge(accepted_verifier_version=chain.VERIFIER_VERSION).judged == 0
    assert story.judge(accepted_verifier_version="0").judged == 2


def test_X01_a_new_pinned_root_judges_the_range_again(story: Story, team: Team) -> None:
    first = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tip = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    story.judge()
    old = story.root.commit
    story.pin(first)
    verdict = story.judge(accepted_root=old)
    assert (verdict.verdict, verdict.judged, verdict.accepted) == ("Accepted", 1, tip)


def test_removing_a_person_ends_the_right_from_the_next_commit_on_and_judges_nothing_again(
    story: Story, team: Team
) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    people = [person(name, team[name]) for name in ("bob", "adm")]
    without = team.policy({"author": ["bob"], "approver": ["bob"], "admin": ["adm"]}, people=people)
    removed = story.repo.commit({POLICY_PATH: without}, signer=team["adm"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.judged, verdict.accepted) == ("Accepted", 2, removed)
    assert story.judge().judged == 0
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    assert story.judge().verdict == "UnknownSigner"


def test_a_revocation_from_a_commit_spares_the_ancestors_of_that_commit(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    limit = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    story.judge()
    story.repo.commit({POLICY_PATH: _revoking(team, "ann", limit)}, signer=team["adm"])
    verdict = story.judge()
    assert verdict.refused is not None
    assert (verdict.verdict, verdict.refused.commit) == ("RevokedSigner", limit)


def test_a_revocation_from_a_commit_that_is_not_known_refuses_everything_by_that_key(story: Story, team: Team) -> None:
    first = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    story.repo.commit({POLICY_PATH: _revoking(team, "ann", "1" * 40)}, signer=team["adm"])
    verdict = story.judge()
    assert verdict.refused is not None
    assert verdict.refused.commit == first


def test_G01_a_force_push_is_history_rewritten_and_the_way_on_needs_no_restart(story: Story, team: Team) -> None:
    a = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    b = story.repo.commit({A: config_map("a", x="b")}, signer=team["ann"])
    assert story.judge().accepted == b
    story.repo.git("reset", "--quiet", "--hard", a)
    rewound = story.repo.commit({A: config_map("a", x="other")}, signer=team["ann"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.pending) == ("HistoryRewritten", b, False)
    assert verdict.refused is not None
    assert f"commit: {rewound}" in verdict.refused.hint
    assert story.root.policy_digest in verdict.refused.hint
    assert story.judge(b).verdict == "Accepted"  # the branch is back


def test_G01_a_new_root_lets_a_rewritten_branch_go_on(story: Story, team: Team) -> None:
    a = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="b")}, signer=team["ann"])
    story.judge()
    story.repo.git("reset", "--quiet", "--hard", a)
    tip = story.repo.commit({A: config_map("a", x="other")}, signer=team["ann"])
    assert story.judge().verdict == "HistoryRewritten"
    old = story.root.commit
    story.pin(a)
    assert story.judge(accepted_root=old).accepted == tip


def test_G01_a_rewrite_is_told_as_such_by_a_copy_that_never_had_the_accepted_commit(
    story: Story, team: Team, tmp_path: Path
) -> None:
    a = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    lost = story.repo.commit({A: config_map("a", x="b")}, signer=team["ann"])
    assert story.judge().accepted == lost
    story.repo.git("reset", "--quiet", "--hard", a)
    story.repo.commit({A: config_map("a", x="other")}, signer=team["ann"])
    fresh = tmp_path / "fresh.git"
    story.repo.git("clone", "--quiet", "--bare", "--no-local", str(story.repo.path), str(fresh))
    story.git_dir = fresh
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.pending) == ("HistoryRewritten", lost, False)


def test_X11_an_older_tip_or_the_tip_of_another_branch_moves_nothing(story: Story, team: Team) -> None:
    first = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    second = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    story.repo.branch("other", at=story.root.commit)
    other = story.repo.commit({"clusters/o.yaml": config_map("o")}, signer=team["ann"])
    assert story.judge(second).accepted == second
    for served in (first, other):
        verdict = story.judge(served)
        assert (verdict.verdict, verdict.accepted) == ("HistoryRewritten", second)


def test_a_refused_accepted_commit_is_left_behind_by_pinning_a_root_after_it(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    story.repo.commit({POLICY_PATH: _revoking(team, "ann", to_rfc3339(NOW))}, signer=team["adm"])
    assert not story.judge().effects_allowed
    old = story.root.commit
    story.pin(story.repo.head())
    verdict = story.judge(accepted_root=old)
    assert (verdict.verdict, verdict.effects_allowed) == ("Accepted", True)


def test_a_pinned_root_with_a_wrong_digest_allows_no_effects(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    story.root = replace(story.root, policy_digest="sha256:" + "0" * 64)
    verdict = story.judge()
    assert (verdict.verdict, verdict.effects_allowed) == ("PolicyInvalid", False)


def test_X05_verification_starts_at_the_checkpoint_so_older_keys_may_be_gone(story: Story, team: Team) -> None:
    people = [person(name, team[name]) for name in ("bob", "adm")]
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    without = team.policy({"author": ["bob"], "approver": ["bob"], "admin": ["adm"]}, people=people)
    story.pin(story.repo.commit({POLICY_PATH: without}, signer=team["adm"]))
    tip = story.repo.commit({A: config_map("a", x="1")}, signer=team["bob"])
    verdict = story.judge()
    assert (verdict.accepted, verdict.judged) == (tip, 1)


def _revoked(story: Story, team: Team) -> str:
    """A source whose accepted commit is refused since a key of its history was revoked; the revoking commit."""
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    revoking = story.repo.commit({POLICY_PATH: _revoking(team, "ann", to_rfc3339(NOW))}, signer=team["adm"])
    assert not story.judge().effects_allowed
    return revoking


@pytest.mark.parametrize("served", ["the commit before the revocation", "another branch"])
def test_X01_no_force_push_brings_the_effects_of_a_refused_accepted_commit_back(
    story: Story, team: Team, served: str
) -> None:
    revoking = _revoked(story, team)
    story.repo.branch("other", at=f"{revoking}~1")
    tip = f"{revoking}~1" if served != "another branch" else story.repo.commit({A: "x"}, signer=team["ann"])
    verdict = story.judge(story.repo.git("rev-parse", tip))
    assert (verdict.verdict, verdict.accepted) == ("HistoryRewritten", revoking)
    assert not verdict.effects_allowed


def test_X01_the_message_about_a_refused_accepted_commit_holds_the_exact_values_to_pin(
    story: Story, team: Team
) -> None:
    revoking = _revoked(story, team)
    refused = story.judge().refused
    assert refused is not None
    story.pin(revoking)
    assert f"{{commit: {revoking}, policyDigest: {story.root.policy_digest}}}" in refused.message
    assert "git reset" not in refused.message


@pytest.mark.parametrize(
    "anew",
    [{"accepted_verifier_version": "0"}, {"accepted_root": "1" * 40}],
    ids=["a new verifier version", "a new root"],
)
def test_X01_nothing_happens_before_the_range_is_judged_again_although_the_branch_was_rewritten(
    story: Story, team: Team, anew: dict[str, str]
) -> None:
    accepted = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    if "accepted_root" in anew:
        story.pin(accepted)
    verdict = story.judge(story.repo.commit({A: "x"}, signer=team["eve"]), **anew)
    assert verdict.effects_allowed, "judged again, and only the new commit is refused"
    story.repo.branch("other", at=story.repo.git("rev-list", "--max-parents=0", "HEAD"))
    away = story.repo.commit({A: "y"}, signer=team["ann"])
    rewritten = story.judge(away, **anew)
    assert rewritten.verdict == "HistoryRewritten"
    assert rewritten.effects_allowed == ("accepted_root" in anew), "only a pinned root is trusted without being judged"


def test_a_pinned_root_without_a_policy_allows_no_effects(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.judge()
    verdict = story.judge(policy_path="elsewhere.yaml")
    assert (verdict.verdict, verdict.effects_allowed) == ("PolicyInvalid", False)

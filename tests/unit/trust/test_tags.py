"""A source that follows a tag: commits and the annotated tag object are both judged (faults X03, X08)."""

from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeVerdict, VerdictCache
from gitops_ctl.trust.judge import Scope
from gitops_ctl.trust.policy import load_policy
from gitops_ctl.trust.signers import Sight, signer_of
from gitops_ctl.trust.tags import judge_tag
from gitops_ctl.trust.verdict import CommitRefused
from tests.support.trust import NOW, POLICY_PATH, Story, Team, config_map, person, ssh_line

A = "clusters/a.yaml"


def _judge(story: Story, tag: str | None, name: str = "v1") -> RangeVerdict:
    return story.judge(ref=f"refs/tags/{name}", tag=tag)


@pytest.mark.parametrize(
    ("signed_commit", "tagged", "verdict"),
    [
        pytest.param(True, "signed", "Accepted", id="signed commit, signed tag"),
        pytest.param(True, "annotated", "Unsigned", id="signed commit, unsigned tag"),
        pytest.param(True, "lightweight", "Unsigned", id="signed commit, lightweight tag"),
        pytest.param(False, "signed", "Unsigned", id="unsigned commit, signed tag"),
        pytest.param(False, "annotated", "Unsigned", id="unsigned commit, unsigned tag"),
    ],
)
def test_X03_each_combination_has_a_stated_verdict(
    story: Story, team: Team, signed_commit: bool, tagged: str, verdict: str
) -> None:
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"] if signed_commit else None)
    tag = story.repo.tag("v1", signer=team["adm"] if tagged == "signed" else None, annotated=tagged != "lightweight")
    found = _judge(story, None if tagged == "lightweight" else tag)
    assert found.verdict == verdict
    assert found.accepted == (tip if verdict == "Accepted" else story.root.commit)
    if tagged != "lightweight":
        assert found.objects_judged == f"commits and tag object {tag}"


def test_X03_the_refusal_says_which_object_was_judged(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tag = story.repo.tag("v1")
    refused = _judge(story, tag).refused
    assert refused is not None
    assert refused.commit == tag
    assert "the tag object has no signature" in refused.message


def test_X08_a_tag_that_was_signed_again_by_a_stranger_on_the_same_commit_is_refused(story: Story, team: Team) -> None:
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert _judge(story, story.repo.tag("v1", signer=team["adm"])).accepted == tip
    again = _judge(story, story.repo.tag("v1", signer=team["stranger"]))
    assert (again.verdict, again.accepted) == ("UnknownSigner", tip)


def test_the_signer_of_a_tag_needs_the_verb_merge(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert _judge(story, story.repo.tag("v1", signer=team["bob"])).verdict == "PathNotAuthorised"


def test_a_genuine_tag_object_under_another_name_is_refused(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tag = story.repo.tag("v1", signer=team["adm"])
    assert _judge(story, tag, name="v2").verdict == "MalformedObject"


def test_a_genuine_tag_object_of_another_commit_is_refused(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tag = story.repo.tag("v1", signer=team["adm"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    assert _judge(story, tag).verdict == "MalformedObject"


def test_a_moved_tag_obeys_the_rewind_guard(story: Story, team: Team) -> None:
    first = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    second = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    assert _judge(story, story.repo.tag("v1", signer=team["adm"])).accepted == second
    moved = story.repo.tag("v1", target=first, signer=team["adm"])
    verdict = story.judge(first, ref="refs/tags/v1", tag=moved)
    assert (verdict.verdict, verdict.accepted) == ("HistoryRewritten", second)


def _releasing(tmp_path: Path, team: Team, **limits: object) -> Story:
    """A source whose tags may be signed by `rel`, with a limited key; ann writes."""
    people = [
        person("rel", {"ssh": ssh_line(team["rel"]), **limits}),
        *(person(name, team[name]) for name in ("ann", "bob", "adm")),
    ]
    roles = {"author": ["ann"], "approver": ["bob"], "admin": ["adm", "rel"]}
    return Story.begin(tmp_path / "releasing", team.policy(roles, people=people))


def test_X07_a_new_tag_is_not_judged_at_the_first_sight_of_its_commit(tmp_path: Path, team: Team) -> None:
    story = _releasing(tmp_path, team, validUntil=to_rfc3339(NOW + timedelta(hours=1)))
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert _judge(story, story.repo.tag("v1", signer=team["stranger"])).verdict == "UnknownSigner"
    story.now = NOW + timedelta(hours=2)
    refused = _judge(story, story.repo.tag("v1", signer=team["rel"])).refused
    assert refused is not None
    assert "rel was valid only until" in refused.message


def test_a_tag_that_was_accepted_stays_good_after_its_key_has_expired(tmp_path: Path, team: Team) -> None:
    story = _releasing(tmp_path, team, validUntil=to_rfc3339(NOW + timedelta(hours=1)))
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    tag = story.repo.tag("v1", signer=team["rel"])
    assert _judge(story, tag).accepted == tip
    story.now, story.cache = NOW + timedelta(days=30), VerdictCache()
    assert story.judge(ref="refs/tags/v1", tag=tag, accepted_tag=tag).verdict == "Accepted"


def test_the_way_back_from_a_refused_tag_is_said_with_the_commands_for_a_tag(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    refused = _judge(story, story.repo.tag("v1")).refused
    assert refused is not None
    assert f"git tag --force --sign v1 {story.root.commit} && git push --force origin refs/tags/v1" in refused.message


def test_a_tag_whose_commit_replaces_the_key_of_its_signer_stays_accepted(tmp_path: Path, team: Team) -> None:
    story = _releasing(tmp_path, team)
    people = [person("rel", team["rel-next"]), *(person(name, team[name]) for name in ("ann", "bob", "adm"))]
    roles = {"author": ["ann"], "approver": ["bob"], "admin": ["adm", "rel"]}
    tip = story.repo.commit({POLICY_PATH: team.policy(roles, people=people)}, signer=team["adm"])
    tag = story.repo.tag("v1", signer=team["rel"])
    assert _judge(story, tag).accepted == tip
    again = story.judge(ref="refs/tags/v1", tag=tag, accepted_tag=tag)
    assert (again.verdict, again.accepted) == ("Accepted", tip)
    other = story.repo.tag("v1", signer=team["rel"], author="again <again@example.net>")
    assert story.judge(ref="refs/tags/v1", tag=other, accepted_tag=tag).verdict == "UnknownSigner"


def test_a_tag_by_a_key_that_is_distrusted_from_a_later_commit_on_is_refused_on_an_older_commit_too(
    tmp_path: Path, team: Team
) -> None:
    people = [person(name, team[name]) for name in ("ann", "bob", "eve", "adm", "rel")]
    roles = {"author": ["ann", "rel"], "approver": ["bob"], "admin": ["adm"]}
    story = Story.begin(tmp_path / "repo", team.policy(roles, people=people))
    target = story.repo.commit({A: config_map("a")}, signer=team["rel"])
    tag = story.repo.tag("v1", signer=team["rel"])
    limit = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    revoked = [{"fingerprint": team["rel"].fingerprint, "from": limit}]
    policy = load_policy(team.policy(roles, people=people, revoked=revoked).encode())
    scope = Scope(story.root.commit, POLICY_PATH, NOW, lambda _commit: NOW)
    with ObjectStore.open(story.repo.git_dir) as store:
        raw = store.commit(target)
        sight = Sight(NOW, NOW)
        assert signer_of(store, raw, policy=policy, revoked=(), sight=sight).key.owner.name == "rel"
        with pytest.raises(CommitRefused, match=f"distrusts the key of rel from {limit} on"):
            judge_tag(store, tag=tag, ref="refs/tags/v1", tip=target, policy=policy, scope=scope)

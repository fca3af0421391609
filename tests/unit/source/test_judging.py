"""What a pass gathers beside the verdict: the evidence that the accepted history rests on, and answers about its fields."""

from dataclasses import replace
from pathlib import Path

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.git.tree import TreeLimits
from gitops_ctl.source.judging import Judged, SourceCaches, judge
from gitops_ctl.trust.chain import RangeRequest, Root, VerdictCache
from gitops_ctl.trust.kindverbs import CONFIRM_SWITCH, TALOS_CLUSTER
from tests.support.trust import POLICY_PATH, URL, Story, Team
from tests.unit.trust.test_forge_reviews import Forged, forged
from tests.unit.trust.test_void_consents import FILE, ROLES, cluster

CLUSTER = ObjectId(TALOS_CLUSTER.group, TALOS_CLUSTER.kind, "demo", "one")


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("judging-keys"))


@pytest.fixture
def caches() -> SourceCaches:
    return SourceCaches(VerdictCache(), DocumentCache())


def request_of(story: Story, **members: object) -> RangeRequest:
    tip = story.repo.head("main")
    seen = story.first_seen.observed(tip, at=story.now)
    request = RangeRequest(URL, "refs/heads/main", story.root, story.accepted, tip, seen, story.now)
    return replace(request, **members)  # type: ignore[arg-type]


def judged(story: Story, caches: SourceCaches, **members: object) -> Judged:
    found = judge(story.repo.git_dir, request=request_of(story, **members), caches=caches, limits=TreeLimits())
    story.accepted = found.verdict.accepted
    return found


def test_what_counted_for_an_accepted_merge_is_told_and_what_is_stored_is_not_told_again(
    tmp_path: Path, team: Team, caches: SourceCaches
) -> None:
    one: Forged = forged(tmp_path / "repo", team)
    told = one.evidence(one.by("eve"), one.by("cid", minutes=2), one.by("bob", minutes=1))
    found = judged(one.story, caches, reviews=told)
    assert found.verdict.accepted == one.merge
    assert [(person, review.account) for person, review in found.counted[one.merge]] == [
        ("bob", "bob#2"),
        ("cid", "cid#3"),
    ]
    again = judged(one.story, caches, reviews=told, stored_reviews=frozenset(told))
    assert again.counted == {}


def test_the_evidence_of_a_refused_merge_is_not_told(tmp_path: Path, team: Team, caches: SourceCaches) -> None:
    one = forged(tmp_path / "repo", team)
    found = judged(one.story, caches, reviews=one.evidence(one.by("ann")))
    assert found.verdict.verdict == "PathNotAuthorised"
    assert found.counted == {}


def test_under_a_new_root_a_consent_that_stands_there_authorises_nothing_any_more(
    tmp_path: Path, team: Team, caches: SourceCaches
) -> None:
    story = Story.begin(tmp_path / "repo", team.policy(ROLES), files={FILE: cluster("enabled")})
    story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["bob"])
    tip = story.repo.commit({"clusters/note.txt": "n"}, signer=team["ann"])
    assert judged(story, caches).provenance.of(CLUSTER, CONFIRM_SWITCH) is not None
    before = story.root.commit
    story.pin(tip)
    found = judged(story, caches, accepted_root=before)
    assert found.verdict.accepted == tip
    assert found.provenance.of(CLUSTER, CONFIRM_SWITCH) is None
    assert "since the pinned root" in found.provenance.why_void(CLUSTER, CONFIRM_SWITCH)


def test_the_signer_of_what_was_accepted_is_told(tmp_path: Path, team: Team, caches: SourceCaches) -> None:
    story = Story.begin(tmp_path / "repo", team.policy(ROLES))
    story.repo.commit({"clusters/note.txt": "n"}, signer=team["ann"])
    assert judged(story, caches).verdict.signer == "ann"
    assert judged(story, caches).verdict.signer == "", "nothing was judged in this pass"
    assert isinstance(story.root, Root)
    assert POLICY_PATH in story.repo.git("ls-tree", "-r", "--name-only", "main")


def test_under_a_root_that_the_copy_does_not_have_the_verdict_is_told_and_nothing_may_have_effects(
    tmp_path: Path, team: Team, caches: SourceCaches
) -> None:
    one = forged(tmp_path / "repo", team)
    told = one.evidence(one.by("cid", minutes=2), one.by("bob", minutes=1))
    before = judged(one.story, caches, reviews=told)
    elsewhere = Root("1" * 40, "sha256:" + "0" * 64)
    found = judged(one.story, caches, root=elsewhere, accepted_root=one.story.root.commit)
    assert found.verdict.accepted == before.verdict.accepted
    assert not found.verdict.effects_allowed
    assert found.provenance.fields == {}

"""Merges by a forge that bring in proposed changes: which reviews count, who is the introducer, what is said (section 4.6)."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.index import load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, RefusedCommit
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.provenance import Provenance
from gitops_ctl.trust.reviews import Review, ReviewEvidence
from tests.support.trust import DEFAULT_RULES, NOW, POLICY_PATH, URL, Story, Team, person, ssh_line
from tests.support.trust_rollouts import ROLLOUT, rollout

FILE = "clusters/r.yaml"
PLAN = rollout(plan={"a": 1})
APPROVED = rollout(plan={"a": 1}, approval={"hash": "x"})
NUMBERS = {"ann": 1, "bob": 2, "cid": 3, "eve": 4, "bob-two": 5}
OBJECT = ObjectId(ROLLOUT.group, ROLLOUT.kind, "demo", "r")
RULES = (
    *DEFAULT_RULES,
    {"paths": ["clusters/**"], "verbs": ["plan", "control"], "roles": ["author"]},
    {"paths": ["clusters/**"], "verbs": ["approve"], "roles": ["approver"]},
)


@dataclass(slots=True)
class Forged:
    """ann's plan on main, the robot's proposal on a branch, and the forge's merge of it."""

    story: Story
    head: str
    merge: str

    def evidence(self, *reviews: Review, head: str | None = None) -> dict[str, ReviewEvidence]:
        return {self.merge: ReviewEvidence(self.merge, head or self.head, reviews, number=7)}

    def by(self, login: str, *, minutes: int = 0, head: str | None = None, approves: bool = True) -> Review:
        at = NOW + timedelta(minutes=minutes)
        return Review(login, NUMBERS[login], self.head if head is None else head, approves, at)

    def refused(self, *reviews: Review) -> RefusedCommit:
        refused = self.story.judge(reviews=self.evidence(*reviews)).refused
        assert refused is not None
        return refused


def forged(path: Path, team: Team, *, text: str = APPROVED, need: int = 1, **merges: object) -> Forged:
    people = [
        person("ann", team["ann"], forgeAccounts=["ann#1"]),
        person("bob", team["bob"], forgeAccounts=["bob", "bob-two"]),
        person("cid", team["cid"], forgeAccounts=["cid"]),
        person("adm", team["adm"]),
    ]
    policy = team.policy(
        {"author": ["ann"], "approver": ["ann", "bob", "cid"], "admin": ["adm"], "board": ["bob", "cid"]},
        rules=RULES,
        people=people,
        merges={
            "forgeKeys": [{"ssh": ssh_line(team["forge"])}],
            "requireReviews": need,
            "allowVerbs": ["approve"],
            **merges,
        },
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["clusters/**"]}],
    )
    story = Story.begin(path, policy)
    story.repo.commit({FILE: PLAN}, signer=team["ann"])
    story.repo.branch("robot")
    head = story.repo.commit({FILE: text}, signer=team["robot"])
    story.repo.switch("main")
    merge = story.repo.merge("robot", signer=team["forge"])
    return Forged(story, head, merge)


@pytest.fixture
def one(tmp_path: Path, team: Team) -> Forged:
    return forged(tmp_path / "repo", team)


def answers(story: Story, reviews: dict[str, ReviewEvidence]) -> Provenance:
    tip = story.repo.head("main")
    request = RangeRequest(URL, "main", story.root, tip, tip, story.first_seen, story.now, reviews=reviews)
    with ObjectStore.open(story.repo.git_dir) as store:
        documents = load_set(store, tree=store.links(tip).tree, cache=story.cache.documents).documents
        return provenance_of(store, request=request, commit=tip, documents=documents, cache=story.cache)


def test_one_entitled_reviewer_of_exactly_the_merged_head_is_enough(one: Forged) -> None:
    verdict = one.story.judge(reviews=one.evidence(one.by("bob")))
    assert verdict.accepted == one.merge
    assert verdict.signer == "bob (by forge)"


def test_a_review_of_an_older_head_does_not_count_and_both_heads_are_named(one: Forged) -> None:
    old = one.story.root.commit
    refused = one.refused(one.by("bob", head=old))
    assert refused.reason == "PathNotAuthorised"
    assert f"1 approving reviews by persons of {one.head} are needed, counted are 0 (nobody)" in refused.message
    assert f"bob#2: is about {old}" in refused.message
    assert f"let 1 more of them approve pull request 7 at exactly {one.head}" in refused.hint


def test_reviews_count_for_nothing_when_the_forge_merged_another_head_than_it_says(one: Forged) -> None:
    other = one.story.root.commit
    verdict = one.story.judge(reviews=one.evidence(one.by("bob"), head=other))
    assert verdict.verdict == "PathNotAuthorised"


def test_an_account_that_maps_to_nobody_counts_nothing(one: Forged) -> None:
    assert "eve#4: is nobody's account in the policy" in one.refused(one.by("eve")).message


def test_an_account_whose_number_is_another_one_is_somebody_else(one: Forged) -> None:
    taken_over = Review("ann", 99, one.head, True, NOW)
    assert "ann#99: is nobody's account in the policy" in one.refused(taken_over).message


def test_the_latest_review_of_an_account_decides(one: Forged) -> None:
    withdrawn = (one.by("bob"), one.by("bob", minutes=5, approves=False))
    assert "bob#2: does not approve, or was dismissed" in one.refused(*withdrawn).message
    again = (*withdrawn, one.by("bob", minutes=9))
    assert one.story.judge(reviews=one.evidence(*again)).accepted == one.merge


def test_a_forge_that_binds_no_review_to_a_head_has_no_reviews_that_count(one: Forged) -> None:
    assert "bob#2: the forge does not bind it to a head" in one.refused(one.by("bob", head="")).message


def test_two_accounts_of_one_person_count_once(tmp_path: Path, team: Team) -> None:
    two = forged(tmp_path / "repo", team, need=2)
    refused = two.refused(two.by("bob"), two.by("bob-two", minutes=1))
    assert "2 approving reviews" in refused.message
    assert "counted are 1 (bob)" in refused.message
    assert two.story.judge(reviews=two.evidence(two.by("bob"), two.by("cid", minutes=1))).accepted == two.merge


def test_only_persons_in_the_roles_of_reviewers_count(tmp_path: Path, team: Team) -> None:
    roles = forged(tmp_path / "repo", team, reviewerRoles=["board"])
    refused = roles.refused(roles.by("ann"))
    assert "by persons in board" in refused.message
    assert "ann#1: ann is in none of board" in refused.message
    assert roles.story.judge(reviews=roles.evidence(roles.by("cid"))).accepted == roles.merge


def test_the_author_of_the_plan_is_no_distinct_reviewer_of_its_approval(one: Forged) -> None:
    refused = one.refused(one.by("ann"))
    assert (refused.reason, refused.verb) == ("PathNotAuthorised", "approve")
    assert "ann introduced what it authorises" in refused.message


def test_a_reviewer_without_the_role_of_the_rule_is_not_enough_and_the_roles_are_named(
    tmp_path: Path, team: Team
) -> None:
    changed = forged(tmp_path / "repo", team, text=rollout(plan={"a": 2}))
    refused = changed.refused(changed.by("bob"))
    assert (refused.verb, refused.reason) == ("plan", "PathNotAuthorised")
    assert f"by reviews of {changed.head}" in refused.message
    assert f"let 1 of the roles author approve the pull request at exactly {changed.head}" in refused.hint


def test_a_verb_outside_of_allow_verbs_is_refused_however_many_approve(tmp_path: Path, team: Team) -> None:
    gated = forged(tmp_path / "repo", team, allowVerbs=[])
    refused = gated.refused(gated.by("bob"), gated.by("cid"))
    assert "merges.allowVerbs lists it" in refused.message


def test_without_evidence_it_waits_and_says_what_the_reviews_would_have_to_satisfy(one: Forged) -> None:
    verdict = one.story.judge()
    refused = verdict.refused
    assert refused is not None
    assert (verdict.verdict, verdict.pending) == ("NeedsForgeReviews", True)
    assert (refused.merge, refused.head) == (one.merge, one.head)
    assert f"needs forge reviews: 1 approving reviews by persons of {one.head}" in refused.message
    assert f"approve {FILE}: 1 of the roles approver (rule 7, not the author)" in refused.message
    assert one.story.judge(reviews=one.evidence(one.by("bob"))).accepted == one.merge


def test_the_introducer_is_the_earliest_reviewer_whom_the_rule_counts(one: Forged) -> None:
    told = one.evidence(one.by("ann"), one.by("cid", minutes=3), one.by("bob", minutes=2))
    assert one.story.judge(reviews=told).accepted == one.merge
    found = answers(one.story, told).of(OBJECT, "/spec/approval")
    assert found is not None
    # ann approved first and is the author of the plan: the rule does not count her.
    assert (found.person, found.commit, found.judged) == ("bob", one.head, ("ann", "bob", "cid"))
    plan = answers(one.story, told).of(OBJECT, "/spec/plan")
    assert plan is not None
    assert plan.person == "ann"


def test_a_consent_document_that_two_reviewed_counts_for_the_earliest_alone(tmp_path: Path, team: Team) -> None:
    from tests.unit.trust.test_consents import FOLDER, blob_of

    wanted = team.policy({"author": ["ann"], "approver": ["bob"], "admin": ["adm"]}, rules=RULES)
    agreed = (
        "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\nverb: trust\n"
        f'path: {POLICY_PATH}\nblob: "{blob_of(wanted)}"\nnotAfter: "2026-12-31T00:00:00Z"\n'
    )
    rules = ({"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin", "board"], "threshold": 3}, *RULES[1:])
    people = [person(name, team[name], forgeAccounts=[name]) for name in ("bob", "cid", "adm")]
    policy = team.policy(
        {"author": ["adm"], "approver": ["bob", "cid"], "admin": ["adm"], "board": ["bob", "cid"]},
        rules=rules,
        people=people,
        merges={"forgeKeys": [{"ssh": ssh_line(team["forge"])}], "requireReviews": 2, "allowVerbs": ["consent"]},
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["**"]}],
    )
    story = Story.begin(tmp_path / "repo", policy)
    story.repo.branch("robot")
    head = story.repo.commit({f"{FOLDER}/1.yaml": agreed}, signer=team["robot"])
    story.repo.switch("main")
    merge = story.repo.merge("robot", signer=team["forge"])
    reviews = tuple(Review(name, 1 + place, head, True, NOW) for place, name in enumerate(("bob", "cid")))
    told = {merge: ReviewEvidence(merge, head, reviews)}
    assert story.judge(reviews=told).accepted == merge
    story.repo.commit({POLICY_PATH: wanted}, signer=team["adm"])
    refused = story.judge(reviews=told).refused
    assert refused is not None
    assert "needs 3 persons, counted are 2 (adm, bob)" in refused.message

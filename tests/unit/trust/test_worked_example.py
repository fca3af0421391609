"""The worked example of the contract: commits c1 to c6 and merges m1, m2, with real keys of each kind that it uses."""

import hashlib
from pathlib import Path

import pytest

from gitops_ctl.trust.reviews import Review, ReviewEvidence
from tests.support.git_keys import GpgHome, GpgKey
from tests.support.trust import NOW, POLICY_PATH, Story, Team, person, policy_text, ssh_line
from tests.support.trust_rollouts import rollout

FILE = "clusters/r.yaml"
CONSENT = ".gitops-ctl/consents/2026-12-add-person.yaml"


@pytest.fixture(scope="module")
def admin_a(gpg_home: GpgHome) -> GpgKey:
    return GpgKey.generate(gpg_home, name="policy-admin-a", signing_subkey=True)


@pytest.fixture
def example(tmp_path: Path, team: Team, admin_a: GpgKey) -> Story:
    return Story.begin(tmp_path / "repo", _policy(team, admin_a))


def _policy(team: Team, admin_a: GpgKey, *, extra_role: str = "spare", allow_verbs: tuple[str, ...] = ()) -> str:
    certificate = {"fingerprint": admin_a.fingerprint, "certificate": admin_a.public}
    authority = {"key": ssh_line(team["authority"]), "principals": ["policy-admin-b"]}
    return policy_text(
        [
            person(
                "network-author",
                team["network-author"],
                kubernetesUser="network-author@example.net",
                emails=["network-author@example.net"],
            ),
            person("change-approver", team["change-approver"], forgeAccounts=["change-approver#17"]),
            person("policy-admin-a", {"openpgp": certificate}),
            person("policy-admin-b", {"sshCertificateAuthority": authority, "validUntil": "2027-06-30T00:00:00Z"}),
        ],
        roles={
            "author": ["network-author"],
            "approver": ["change-approver"],
            "policy-admin": ["policy-admin-a", "policy-admin-b"],
            "merger": ["network-author", "change-approver"],
            extra_role: [],
        },
        rules=[
            {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["policy-admin"], "threshold": 2},
            {"paths": [".gitops-ctl/consents/**"], "verbs": ["consent", "edit"], "roles": ["policy-admin", "approver"]},
            {"kinds": ["IOSXESoftwareRollout.ops.cisco.vk"], "verbs": ["approve", "activate"], "roles": ["approver"]},
            {
                "kinds": ["IOSXESoftwareRollout.ops.cisco.vk"],
                "verbs": ["recover"],
                "roles": ["approver", "policy-admin"],
                "threshold": 2,
            },
            {"paths": ["clusters/**"], "verbs": ["consent"], "roles": ["approver"]},
            {"paths": ["clusters/**"], "verbs": ["edit", "topology", "plan", "control", "delete"], "roles": ["author"]},
            {"verbs": ["merge"], "roles": ["merger"]},
        ],
        merges={
            "forgeKeys": [{"ssh": ssh_line(team["forge"])}],
            "requireReviews": 1,
            "reviewerRoles": ["approver"],
            "allowVerbs": list(allow_verbs),
        },
        proposers=[{"name": "gitops-ctl", "keys": [{"ssh": ssh_line(team["proposer"])}], "paths": ["clusters/**"]}],
    )


def _planned(example: Story, team: Team) -> str:
    return example.repo.commit({FILE: rollout(plan={"image": "17.12"})}, signer=team["network-author"], message="c1")


def _proposed(example: Story, team: Team) -> str:
    """c3: the proposer adds the approval, on a branch."""
    example.repo.branch("approval")
    c3 = example.repo.commit(
        {FILE: rollout(plan={"image": "17.12"}, approval={"planHash": "sha256:1"})},
        signer=team["proposer"],
        message="c3",
    )
    example.repo.switch("main")
    return c3


def _reviewed(merge: str, head: str) -> dict[str, ReviewEvidence]:
    return {merge: ReviewEvidence(merge, head, (Review("change-approver", 17, head, True, NOW),))}


def test_c1_adds_a_rollout_with_its_plan_and_needs_the_verb_plan(example: Story, team: Team) -> None:
    c1 = _planned(example, team)
    verdict = example.judge()
    assert (verdict.verdict, verdict.accepted) == ("Accepted", c1)


def test_c2_the_author_of_the_plan_may_not_approve_it(example: Story, team: Team) -> None:
    _planned(example, team)
    c2 = example.repo.commit(
        {FILE: rollout(plan={"image": "17.12"}, approval={"planHash": "sha256:1"})}, signer=team["network-author"]
    )
    refused = example.judge().refused
    assert refused is not None
    assert (refused.commit, refused.reason, refused.verb) == (c2, "PathNotAuthorised", "approve")


def test_m1_a_clean_merge_by_the_approver_accepts_the_proposed_approval(example: Story, team: Team) -> None:
    _planned(example, team)
    _proposed(example, team)
    m1 = example.repo.merge("approval", signer=team["change-approver"])
    verdict = example.judge()
    assert (verdict.verdict, verdict.accepted, verdict.judged) == ("Accepted", m1, 3)


def test_m1_by_the_author_of_the_plan_is_refused_for_the_proposed_commit(example: Story, team: Team) -> None:
    _planned(example, team)
    c3 = _proposed(example, team)
    example.repo.merge("approval", signer=team["network-author"])
    refused = example.judge().refused
    assert refused is not None
    assert (refused.commit, refused.verb, refused.reason) == (c3, "approve", "PathNotAuthorised")


def test_m2_a_merge_by_the_forge_carries_an_approval_only_when_the_policy_lists_the_verb(
    example: Story, team: Team
) -> None:
    _planned(example, team)
    c3 = _proposed(example, team)
    m2 = example.repo.merge("approval", signer=team["forge"])
    refused = example.judge(reviews=_reviewed(m2, c3)).refused
    assert refused is not None
    assert (refused.reason, refused.commit) == ("PathNotAuthorised", c3)
    assert "merges.allowVerbs" in refused.message


def test_m2_with_the_verb_listed_is_accepted_by_one_review_of_exactly_that_head(
    tmp_path: Path, team: Team, admin_a: GpgKey
) -> None:
    example = Story.begin(tmp_path / "repo", _policy(team, admin_a, allow_verbs=("approve",)))
    _planned(example, team)
    c3 = _proposed(example, team)
    m2 = example.repo.merge("approval", signer=team["forge"])
    assert example.judge(reviews=_reviewed(m2, example.root.commit)).verdict == "PathNotAuthorised"
    assert example.judge(reviews=_reviewed(m2, c3)).accepted == m2


def test_m2_without_any_evidence_waits_for_the_reviews_and_needs_no_new_commit(
    tmp_path: Path, team: Team, admin_a: GpgKey
) -> None:
    example = Story.begin(tmp_path / "repo", _policy(team, admin_a, allow_verbs=("approve",)))
    c1 = _planned(example, team)
    _proposed(example, team)
    example.repo.merge("approval", signer=team["forge"])
    verdict = example.judge()
    assert (verdict.verdict, verdict.pending, verdict.accepted) == ("NeedsForgeReviews", True, c1)


def test_m2_that_no_review_can_allow_is_refused_without_asking_for_one(example: Story, team: Team) -> None:
    _planned(example, team)
    _proposed(example, team)
    example.repo.merge("approval", signer=team["forge"])
    refused = example.judge().refused
    assert refused is not None
    assert (refused.reason, refused.verb, refused.rule) == ("PathNotAuthorised", "approve", "merges.allowVerbs")


def test_c3_as_the_new_tip_of_the_main_line_is_refused_with_the_hint_to_merge(example: Story, team: Team) -> None:
    _planned(example, team)
    _proposed(example, team)
    example.repo.git("merge", "--quiet", "--ff-only", "approval")
    refused = example.judge().refused
    assert refused is not None
    assert (refused.reason, refused.hint) == ("PathNotAuthorised", "merge it, don't fast-forward")


def _consented(example: Story, team: Team, policy: str, *, not_after: str = "2026-12-15T00:00:00Z") -> str:
    """c4: policy-admin-b, by a certificate, agrees to exactly this policy."""
    data = policy.encode()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    text = (
        "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\nverb: trust\n"
        f'path: {POLICY_PATH}\nblob: {blob}\nnotAfter: "{not_after}"\n'
    )
    signer = team["admin-b"].certify(team["authority"], principals=("policy-admin-b",))
    return example.repo.commit({CONSENT: text}, signer=signer, message="c4")


def test_c4_and_c5_two_people_change_the_policy_and_the_new_one_judges_the_next_commit(
    example: Story, team: Team, admin_a: GpgKey
) -> None:
    changed = _policy(team, admin_a, extra_role="added")
    c4 = _consented(example, team, changed)
    assert example.judge().accepted == c4
    c5 = example.repo.commit({POLICY_PATH: changed}, signer=admin_a, message="c5")
    verdict = example.judge()
    assert (verdict.verdict, verdict.accepted) == ("Accepted", c5)
    assert verdict.policy_digest != example.root.policy_digest


def test_c6_another_blob_than_the_consented_one_has_one_person_of_two(
    example: Story, team: Team, admin_a: GpgKey
) -> None:
    _consented(example, team, _policy(team, admin_a, extra_role="added"))
    example.repo.commit({POLICY_PATH: _policy(team, admin_a, extra_role="other")}, signer=admin_a, message="c6")
    refused = example.judge().refused
    assert refused is not None
    assert (refused.reason, refused.verb) == ("PathNotAuthorised", "trust")
    assert "needs 2 persons, counted are 1 (policy-admin-a)" in refused.message
    assert "Consent" in refused.hint


def test_the_author_commits_under_another_address_and_is_refused(example: Story, team: Team) -> None:
    example.repo.commit(
        {FILE: rollout(plan={})}, signer=team["network-author"], author="network-author <other@example.net>"
    )
    assert example.judge().verdict == "CommitterMismatch"

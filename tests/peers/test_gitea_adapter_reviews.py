"""Reviews, protection and merges of the real Gitea, as the adapter reads them (forges.md, sections 6, 11, 12 and 13)."""

import pytest

from gitops_ctl.forge.errors import Conflict
from gitops_ctl.forge.neutral import approvals, latest_reviews
from tests.support.forge_gitea import Forge, adapter_of, described_by, forge_on
from tests.support.forge_openapi import Interface
from tests.support.gitea import GiteaHandle, GiteaRepo
from tests.support.processes import until

pytestmark = pytest.mark.peers

HEAD = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84"
CHANGE = {"values.yaml": "kubeProxyReplacement: true\n"}
AUTHOR, APPROVER, SECOND = "network-author", "change-approver", "second-approver"


@pytest.fixture(scope="module")
def interface(gitea: GiteaHandle) -> Interface:
    return described_by(gitea)


@pytest.fixture
async def forge(gitea: GiteaHandle, interface: Interface):
    async with forge_on(gitea, interface) as made:
        yield made


async def opened(forge: Forge):
    forge.repo.push(HEAD, CHANGE, base="main", sign=True)
    return await forge.adapter.create(HEAD, base="main", title="Cilium takes over", body="why")


def protect(repo: GiteaRepo, **members: object) -> None:
    wanted = {"rule_name": "main", "branch_name": "main", "enable_push": False, "required_approvals": 1, **members}
    said = repo.api("POST", "/branch_protections", wanted)
    assert said.status == 201, said


async def test_reviews_in_neutral_words(forge):
    pr = await opened(forge)
    assert forge.repo.review(pr.number, AUTHOR, "COMMENT").status == 200
    assert forge.repo.review(pr.number, APPROVER, "APPROVED").status == 200
    assert forge.repo.review(pr.number, SECOND, "REQUEST_CHANGES").status == 200
    reviews = await forge.adapter.reviews(pr)
    assert [(each.user.login, each.state, each.commit == pr.head.sha, each.stale) for each in reviews] == [
        (AUTHOR, "commented", True, False),
        (APPROVER, "approved", True, False),
        (SECOND, "changes_requested", True, False),
    ]
    assert reviews[1].user.id == forge.gitea.account_id(APPROVER)
    assert reviews[1].official is True
    assert [each.user.login for each in latest_reviews(reviews)] == [APPROVER, SECOND]
    assert [each.user.login for each in approvals(reviews, head=pr.head.sha)] == [APPROVER]


async def test_a_requested_review_is_none(forge):
    pr = await opened(forge)
    said = forge.repo.api("POST", f"/pulls/{pr.number}/requested_reviewers", {"reviewers": [APPROVER]})
    assert said.status == 201
    assert await forge.adapter.reviews(pr) == ()


async def test_nobody_approves_a_pull_request_of_his_own(forge):
    pr = await opened(forge)
    assert forge.repo.review(pr.number, "bot", "APPROVED").status == 422


async def test_a_push_makes_an_approval_stale(forge):
    pr = await opened(forge)
    forge.repo.review(pr.number, APPROVER, "APPROVED")
    forge.repo.push(HEAD, {"values.yaml": "kubeProxyReplacement: true\nmore: 1\n"})
    fresh = await forge.adapter.get(pr.number)
    assert fresh.head.sha != pr.head.sha
    reviews = await forge.adapter.reviews(fresh)
    assert [(each.state, each.stale, each.commit) for each in reviews] == [("approved", True, pr.head.sha)]
    assert approvals(reviews, head=fresh.head.sha) == ()
    assert approvals(reviews, head=pr.head.sha) == ()


async def test_a_protection_that_dismisses_stale_approvals_dismisses_them(forge):
    protect(forge.repo, dismiss_stale_approvals=True)
    pr = await opened(forge)
    forge.repo.review(pr.number, APPROVER, "APPROVED")
    forge.repo.push(HEAD, {"values.yaml": "kubeProxyReplacement: true\nmore: 1\n"})
    path = f"/pulls/{pr.number}/reviews"
    until(lambda: forge.repo.api("GET", path).body[0]["dismissed"], what="the server has dismissed the approval")
    fresh = await forge.adapter.get(pr.number)
    reviews = await forge.adapter.reviews(fresh)
    assert [(each.state, each.dismissed, each.stale) for each in reviews] == [("dismissed", True, True)]
    assert approvals(reviews, head=fresh.head.sha) == ()


async def test_a_review_that_was_dismissed_by_hand_does_not_count(forge):
    pr = await opened(forge)
    review = forge.repo.review(pr.number, APPROVER, "APPROVED").body["id"]
    said = forge.repo.api("POST", f"/pulls/{pr.number}/reviews/{review}/dismissals", {"message": "too early"})
    assert said.status == 200
    reviews = await forge.adapter.reviews(pr)
    assert [each.state for each in reviews] == ["dismissed"]
    assert approvals(reviews, head=pr.head.sha) == ()


async def test_the_merge_state_names_what_is_in_the_way(forge):
    protect(forge.repo, required_approvals=2, enable_status_check=True, status_check_contexts=["lint"])
    pr = await opened(forge)
    branch = await forge.adapter.branch("main")
    assert (branch.protected, branch.required_approvals, branch.can_push) == (True, 2, False)
    forge.repo.review(pr.number, APPROVER, "APPROVED")
    forge.repo.review(pr.number, SECOND, "REQUEST_CHANGES")
    blocked = (await forge.adapter.merge_state(pr)).blocked
    assert set(blocked) >= {
        "approvals missing: 1 of 2",
        f"changes requested by {SECOND}",
        "check not successful: lint",
    }
    forge.repo.review(pr.number, SECOND, "APPROVED")
    await forge.adapter.set_status(pr.head.sha, context="lint", state="success", text="good")
    left = set((await forge.adapter.merge_state(pr)).blocked)
    assert left <= {"conflicts, or the forge is still comparing"}


async def test_a_conflict_is_not_known_as_one_since_the_server_may_still_compare(forge):
    pr = await opened(forge)
    forge.repo.push("main", {"values.yaml": "kubeProxyReplacement: partial\n"}, user="owner")
    state = await forge.adapter.merge_state(pr)
    assert state.mergeable in (None, True)  # True until the server has compared again
    assert state.state == "open"


async def test_the_merge_of_a_commit_is_found_with_the_head_that_was_merged(forge):
    pr = await opened(forge)
    head = pr.head.sha
    forge.repo.review(pr.number, APPROVER, "APPROVED")
    merge = forge.repo.merge(pr.number, user=AUTHOR)
    found = await forge.adapter.pr_of_merge(merge)
    assert found is not None
    assert (found.number, found.state, found.head.sha, found.merge_sha) == (pr.number, "merged", head, merge)
    assert found.merged_by is not None
    assert (found.merged_by.login, found.merged_at is not None) == (AUTHOR, True)
    assert [each.user.login for each in approvals(await forge.adapter.reviews(found), head=head)] == [APPROVER]
    assert await forge.adapter.pr_of_merge(head) is None
    assert await forge.adapter.pr_of_merge("0" * 40) is None
    state = await forge.adapter.merge_state(pr)
    assert (state.state, state.merge_sha, state.blocked) == ("merged", merge, ())
    with pytest.raises(Conflict):
        await forge.adapter.close(found, reason="too late")


@pytest.mark.parametrize("how", ["squash", "rebase"])
async def test_a_squash_and_a_rebase_land_another_commit(forge, how):
    pr = await opened(forge)
    forge.repo.push("main", {"other.yaml": "a: 1\n"}, user="owner")  # else a rebase changes nothing
    landed = forge.repo.merge(pr.number, user=AUTHOR, how=how)
    found = await forge.adapter.pr_of_merge(landed)
    assert found is not None
    assert (found.number, found.merge_sha, landed != pr.head.sha) == (pr.number, landed, True)


async def test_the_merge_button_signs_with_the_instance_key(forge):
    pr = await opened(forge)
    merge = forge.repo.merge(pr.number, user=AUTHOR)
    forge.repo.git("fetch", "--quiet", "origin", "main")
    raw = forge.repo.git("cat-file", "commit", merge)
    assert raw.count("parent ") == 2
    assert f"committer {AUTHOR} " in raw
    assert "BEGIN SSH SIGNATURE" in raw
    assert await forge.adapter.verification(merge) == "verified"
    assert forge.gitea.signing_key_pub.split()[1] in _public_key(forge.gitea)


async def test_a_server_without_a_key_signs_nothing(gitea_unsigned: GiteaHandle):
    async with forge_on(gitea_unsigned, described_by(gitea_unsigned)) as forge:
        pr = await opened(forge)
        merge = forge.repo.merge(pr.number, user=AUTHOR)
        forge.repo.git("fetch", "--quiet", "origin", "main")
        assert "SIGNATURE" not in forge.repo.git("cat-file", "commit", merge)
        assert await forge.adapter.verification(merge) == "gpg.error.not_signed_commit"


async def test_required_signatures_refuse_an_unsigned_push(forge):
    protect(forge.repo, rule_name="gitops-ctl/**", branch_name="", enable_push=True, require_signed_commits=True)
    with pytest.raises(AssertionError, match="pre-receive hook declined"):
        forge.repo.push(HEAD, CHANGE, base="main")
    assert forge.repo.push(HEAD, CHANGE, base="main", sign=True)


async def test_another_account_sees_the_same(forge):
    pr = await opened(forge)
    forge.repo.review(pr.number, APPROVER, "APPROVED")
    other = adapter_of(forge.gitea, forge.repo.project, token=forge.gitea.token_of(SECOND), http=forge.http)
    assert await other.reviews(pr) == await forge.adapter.reviews(pr)


def _public_key(gitea: GiteaHandle) -> str:
    """What the server gives out as the key of its merges."""
    said = gitea.call("GET", "/signing-key.pub")
    assert said.status == 200
    return str(said.body)

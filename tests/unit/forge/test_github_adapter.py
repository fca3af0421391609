"""The GitHub adapter: every request and every reply is judged by GitHub's own OpenAPI description (forges.md, sections 4, 8 and 15)."""

from datetime import UTC, datetime
from typing import Any

import github as pygithub
import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.http import HttpAnswer
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.errors import (
    AlreadyExists,
    BaseMissing,
    ForbiddenOrMissing,
    Gone,
    NoDiff,
    Refused,
    RepositoryUnavailable,
    TokenRejected,
)
from gitops_ctl.forge.neutral import approvals, latest_reviews
from tests.support.forge_github import OPERATIONS, FakeGithub
from tests.support.forge_openapi import Interface
from tests.support.forge_served import Served
from tests.support.kube_clock import JumpingClock

HEAD = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84"
TIP, OLD, MERGE = "a" * 40, "c" * 40, "f" * 40
MARK = "<!-- gitops-ctl:check -->"


def adapter_of(github: FakeGithub, *, token: str = "good", base_url: str = "") -> ForgeAdapter:
    return forge_adapter(
        "github",
        base_url=base_url or github.interface.base,
        project="net/fabric",
        token=token,
        http=github,
        clock=JumpingClock(),
    )


@pytest.fixture
def adapter(github: FakeGithub) -> ForgeAdapter:
    github.branches[HEAD] = TIP
    return adapter_of(github)


async def test_the_project_its_branches_and_what_the_token_may(github, adapter):
    repo = await adapter.repo()
    assert (repo.id, repo.default_branch, repo.can_push, repo.archived) == ("7", "main", True, False)
    github.protected.add("main")
    branch = await adapter.branch("main")
    assert (branch.sha, branch.protected) == ("b" * 40, True)
    assert await adapter.branch("no/such") is None


async def test_a_project_that_answers_under_another_name_was_moved(github, adapter):
    github.full_name = "net/fabric"
    assert (await adapter.repo()).full_name == "net/fabric"
    moved = adapter_of(github)
    github.full_name = "NET/Fabric"
    assert (await moved.repo()).full_name == "NET/Fabric"


async def test_a_redirected_project_of_another_name_is_refused(github):
    adapter = forge_adapter(
        "github",
        base_url=github.interface.base,
        project="old/fabric",
        token="good",
        http=Renamed(github),
        clock=JumpingClock(),
    )
    with pytest.raises(RepositoryUnavailable, match="moved to net/fabric") as caught:
        await adapter.repo()
    assert caught.value.code is ErrorCode.REPOSITORY_UNAVAILABLE


class Renamed:
    """What the client gives after it followed the redirect of a renamed project."""

    def __init__(self, github: FakeGithub) -> None:
        self.github = github

    async def request(self, method: str, url: str, **more: Any) -> HttpAnswer:
        return await self.github.request(method, url.replace("old/fabric", "net/fabric"), **more)


async def test_create_then_find_update_close_and_reopen(github, adapter):
    made = await adapter.create(HEAD, base="main", title="Cilium takes over", body="why", labels=("network",))
    assert (made.number, made.state, made.head.branch, made.head.sha, made.base.branch) == (
        1,
        "open",
        HEAD,
        TIP,
        "main",
    )
    assert made.labels == ("network",)
    assert github.sent[0][1]["maintainer_can_modify"] is False
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == 1
    changed = await adapter.update(found, title="new", body="newer")
    assert (changed.title, changed.body, changed.version) == ("new", "newer", None)
    closed = await adapter.close(changed, reason="already in base")
    assert closed.state == "closed"
    assert [comment.text for comment in await adapter.comments(closed)] == [
        "already in base\n\n<!-- gitops-ctl:closed -->"
    ]
    assert await adapter.find_open(HEAD, base="main") is None
    assert (await adapter.reopen(closed)).state == "open"
    assert (await adapter.get(1)).state == "open"


async def test_a_branch_that_was_deleted_is_not_opened_again(github, adapter):
    made = await adapter.create(HEAD, base="main", title="t", body="b")
    closed = await adapter.close(made, reason="r")
    del github.branches[HEAD]
    with pytest.raises(Gone) as caught:
        await adapter.reopen(closed)
    assert caught.value.code is ErrorCode.HEAD_MISSING
    assert github.pulls[0].state == "closed"


async def test_P12_what_a_422_means_stands_in_its_text(github, adapter):
    await adapter.create(HEAD, base="main", title="t", body="b")
    with pytest.raises(AlreadyExists, match="already exists for net") as caught:
        await adapter.create(HEAD, base="main", title="t", body="b")
    assert caught.value.code is ErrorCode.PULL_REQUEST_EXISTS
    github.branches["same"] = "b" * 40
    github.without_difference.add(("same", "main"))
    with pytest.raises(NoDiff) as nothing:
        await adapter.create("same", base="main", title="t", body="b")
    assert nothing.value.code is ErrorCode.NO_DIFFERENCE
    with pytest.raises(Gone):
        await adapter.create("never-pushed", base="main", title="t", body="b")
    with pytest.raises(BaseMissing) as missing:
        await adapter.create(HEAD, base="renamed", title="t", body="b")
    assert missing.value.code is ErrorCode.BASE_MISSING


async def test_another_422_is_a_refusal_with_its_words(github, adapter):
    github.failing["POST /repos/{owner}/{repo}/pulls"] = (422, "title is too long")
    with pytest.raises(Refused, match="title is too long"):
        await adapter.create(HEAD, base="main", title="t", body="b")


async def test_P13_a_missing_right_is_told_with_the_call_and_the_right(github, adapter):
    github.failing["POST /repos/{owner}/{repo}/pulls"] = (403, "Resource not accessible by personal access token")
    with pytest.raises(ForbiddenOrMissing, match=r"POST .*/pulls.*pull requests: write"):
        await adapter.create(HEAD, base="main", title="t", body="b")
    github.failing["GET /repos/{owner}/{repo}"] = (404, "Not Found")
    with pytest.raises(ForbiddenOrMissing, match="not found or not permitted"):
        await adapter.repo()


async def test_an_archived_project_is_no_missing_right(github, adapter):
    github.failing["POST /repos/{owner}/{repo}/pulls"] = (403, "Repository was archived so is read-only.")
    with pytest.raises(RepositoryUnavailable):
        await adapter.create(HEAD, base="main", title="t", body="b")


async def test_a_token_that_is_not_known(github):
    with pytest.raises(TokenRejected) as caught:
        await adapter_of(github, token="stale").repo()
    assert caught.value.code is ErrorCode.TOKEN_REJECTED


@pytest.mark.parametrize("ignored", [False, True], ids=["filter works", "filter is ignored"])
async def test_the_open_one_is_found_on_page_4_of_5_and_never_that_of_a_fork(github, adapter, ignored):
    github.most_per_page = 3
    github.ignores_head_filter = ignored
    github.open(HEAD, owner="stranger", repository=99)
    github.open(HEAD, owner="gone", repository=None)
    for number in range(12):
        github.branches[f"other-{number}"] = OLD
        github.open(f"other-{number}")
        if number == 2:
            wanted = github.open(HEAD)
    assert len(github.pulls) == 15
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == wanted.number
    pages = github.calls.count("GET /repos/{owner}/{repo}/pulls")
    assert pages == (4 if ignored else 1)


async def test_the_head_filter_names_the_owner(github, adapter):
    github.open(HEAD)
    asked: list[str] = []
    original = github.answer
    github.answer = lambda method, url, headers, body: asked.append(url) or original(method, url, headers, body)
    await adapter.find_open(HEAD, base="main")
    assert "head=net%3Agitops-ctl%2Fcni-fabric-3f1c9a52e07b6d84" in asked[0]


async def test_the_newest_open_ones_come_first_and_no_more_than_asked_for(github, adapter):
    github.most_per_page = 2
    for number in range(9):
        github.open(f"topic-{number}", repository=None if number == 8 else 7)
    listed = await adapter.list_open("main", most=3)
    assert [pr.number for pr in listed] == [9, 8, 7]
    assert [pr.is_fork for pr in listed] == [True, False, False]
    assert github.calls.count("GET /repos/{owner}/{repo}/pulls") == 2


async def test_the_marker_is_found_in_any_state_within_bounds(github, adapter):
    for number in range(6):
        github.open(f"topic-{number}", body=f"text\n{MARK}" if number in (0, 3) else "text", state="closed")
    assert [pr.number for pr in await adapter.find_by_marker(MARK)] == [4, 1]
    assert [pr.number for pr in await adapter.find_by_marker(MARK, most=3)] == [4]


async def test_one_comment_per_marker_found_by_author_and_marker(github, adapter):
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    github.comment(pr.number, "person", f"I copied it {MARK}")
    number = await adapter.put_comment(pr, marker=MARK, text="first")
    assert await adapter.put_comment(pr, marker=MARK, text="second") == number
    assert await adapter.put_comment(pr, marker=MARK, text="second") == number
    texts = [comment.text for comment in await adapter.comments(pr)]
    assert texts == [f"I copied it {MARK}", f"second\n\n{MARK}"]
    assert github.calls.count("PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}") == 1


async def test_an_app_that_may_not_ask_for_its_account_still_has_one_comment(github, adapter):
    github.user = ""
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    github.comment(pr.number, "person", f"I copied it {MARK}")
    number = await adapter.put_comment(pr, marker=MARK, text="first")
    assert await adapter.put_comment(pr, marker=MARK, text="second") == number
    assert len(await adapter.comments(pr)) == 2


async def test_labels_that_cannot_be_set_do_not_matter(github, adapter):
    github.failing["POST /repos/{owner}/{repo}/labels"] = (403, "no")
    made = await adapter.create(HEAD, base="main", title="t", body="b", labels=("network",))
    assert (made.state, made.labels) == ("open", ())


async def test_labels_are_added_and_none_is_taken_away(github, adapter):
    github.labels.add("network")
    made = await adapter.create(HEAD, base="main", title="t", body="b", labels=("network",))
    github.pulls[0].labels.append("a-persons")
    changed = await adapter.update(await adapter.get(made.number), labels=("network", "cni"))
    assert changed.labels == ("network", "a-persons", "cni")
    assert github.labels == {"network", "cni"}


async def test_reviews_in_neutral_words(github, adapter):
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    github.review(1, "ann", "APPROVED", commit=OLD, hour=1)
    github.review(1, "bob", "APPROVED", commit=TIP, hour=2)
    github.review(1, "bob", "COMMENTED", commit=TIP, hour=3)
    github.review(1, "cid", "APPROVED", commit=TIP, hour=4)
    github.review(1, "cid", "CHANGES_REQUESTED", commit=TIP, hour=5)
    github.review(1, "dan", "DISMISSED", commit=TIP, hour=6)
    reviews = await adapter.reviews(pr)
    assert [review.stale for review in reviews] == [True, False, False, False, False, False]
    assert reviews[5].dismissed
    assert reviews[1].at == datetime(2026, 1, 1, 2, tzinfo=UTC)
    assert [(r.user.login, r.state) for r in latest_reviews(reviews)] == [
        ("ann", "approved"),
        ("bob", "approved"),
        ("cid", "changes_requested"),
        ("dan", "dismissed"),
    ]
    assert [review.user.login for review in approvals(reviews, head=TIP)] == ["bob"]


async def test_the_merge_of_a_commit_is_found_with_the_head_that_was_merged(github, adapter):
    github.open(HEAD)
    github.open("other", state="closed", merge_sha=MERGE, merged_by="ann", sha=OLD)
    found = await adapter.pr_of_merge(MERGE)
    assert found is not None
    assert (found.number, found.state, found.head.sha, found.merge_sha) == (2, "merged", OLD, MERGE)
    assert found.merged_by is not None
    assert (found.merged_by.login, found.merged_at.hour) == ("ann", 9)
    assert await adapter.pr_of_merge(OLD) is None  # the head of one is not its merge
    assert await adapter.pr_of_merge("e" * 40) is None  # the trial merge of an open one, or a commit that nobody knows


async def test_the_merge_state_names_what_is_in_the_way(github, adapter):
    pull = github.open(HEAD, mergeable=None, mergeable_state="unknown")
    pr = await adapter.get(pull.number)
    assert ((await adapter.merge_state(pr)).mergeable, (await adapter.merge_state(pr)).blocked) == (None, ())
    pull.mergeable, pull.mergeable_state, pull.draft = False, "dirty", True
    assert (await adapter.merge_state(pr)).blocked == ("draft", "conflicts")
    pull.mergeable, pull.mergeable_state, pull.draft = True, "blocked", False
    github.review(1, "cid", "CHANGES_REQUESTED", commit=TIP, hour=5)
    github.review(1, "bob", "APPROVED", commit=TIP, hour=2)
    github.rules = [
        {
            "type": "pull_request",
            "parameters": {
                "required_approving_review_count": 2,
                "require_code_owner_review": True,
                "dismiss_stale_reviews_on_push": True,
                "require_last_push_approval": False,
                "required_review_thread_resolution": False,
            },
        },
        {"type": "required_signatures"},
        {
            "type": "required_status_checks",
            "parameters": {
                "required_status_checks": [{"context": "lint"}],
                "strict_required_status_checks_policy": False,
            },
        },
    ]
    assert (await adapter.merge_state(pr)).blocked == (
        "blocked by the rules of the branch",
        "changes requested by cid",
        "approvals missing: 1 of 2",
        "a code owner has to approve",
        "all commits have to be signed",
        "needs the check lint",
    )
    github.failing["GET /repos/{owner}/{repo}/rules/branches/{branch}"] = (404, "Not Found")
    assert (await adapter.merge_state(pr)).blocked[-1] == "protection not readable"


async def test_a_status_is_sent_when_it_changes(github, adapter):
    put = {"context": "gitops-ctl/check", "state": "failure", "text": "2 findings\nin 1 file", "url": ""}
    assert await adapter.set_status(TIP, **put) is True
    assert await adapter.set_status(TIP, **put) is False
    assert await adapter.set_status(TIP, **{**put, "text": "x" * 500}) is True
    assert await adapter.set_status(TIP, **{**put, "state": "success", "url": "https://git.example.net/x"}) is True
    assert [status["state"] for status in github.statuses[TIP]] == ["failure", "failure", "success"]
    assert len(github.statuses[TIP][1]["description"]) == 140


async def test_what_the_forge_says_about_a_signature(github, adapter):
    github.verifications[TIP] = {
        "verified": True,
        "reason": "valid",
        "signature": "s",
        "payload": "p",
        "verified_at": None,
    }
    assert (await adapter.verification(TIP), await adapter.verification(OLD)) == ("verified", "unsigned")


async def test_P13_calls_that_create_keep_a_second_between_them(github, adapter):
    await adapter.create(HEAD, base="main", title="t", body="b")
    await adapter.find_open(HEAD, base="main")
    assert [terms.gap_s for terms in github.terms] == [1.0, 0.0]


async def test_an_enterprise_server_is_spoken_to_by_its_own_description(enterprise_interface: Interface):
    github = FakeGithub(enterprise_interface)
    github.branches[HEAD] = TIP
    adapter = adapter_of(github, base_url="https://ghe.example.net")
    made = await adapter.create(HEAD, base="main", title="t", body="b", labels=("network",))
    await adapter.put_comment(made, marker=MARK, text="hello")
    github.review(1, "bob", "APPROVED", commit=TIP, hour=2)
    assert len(await adapter.reviews(made)) == 1
    assert await adapter.set_status(TIP, context="gitops-ctl/check", state="success", text="good")
    assert (await adapter.close(made, reason="done")).state == "closed"
    assert enterprise_interface.seen >= {
        "POST /repos/{owner}/{repo}/pulls",
        "PATCH /repos/{owner}/{repo}/pulls/{pull_number}",
    }


async def test_another_reader_sees_the_double_as_we_do(github, adapter):
    github.user = "bot"
    made = await adapter.create(HEAD, base="main", title="Cilium takes over", body="why", labels=("network",))
    await adapter.put_comment(made, marker=MARK, text="hello")
    github.review(1, "bob", "APPROVED", commit=TIP, hour=2)
    await adapter.set_status(TIP, context="gitops-ctl/check", state="success", text="good")

    def read(url: str) -> list[Any]:
        client = pygithub.Github(auth=pygithub.Auth.Token("good"), base_url=url, retry=None, lazy=True)
        repo = client.get_repo("net/fabric")
        pull = next(iter(repo.get_pulls(state="open", head=f"net:{HEAD}", base="main")))
        review = pull.get_reviews()[0]
        return [
            (repo.default_branch, repo.archived, repo.permissions.push),
            (pull.number, pull.title, pull.body, pull.head.sha, pull.head.repo.id, pull.base.ref, pull.merged),
            [label.name for label in pull.labels],
            [comment.body for comment in pull.get_issue_comments()],
            (review.user.login, review.state, review.commit_id),
            [(status.context, status.state) for status in repo.get_commit(TIP).get_combined_status().statuses],
        ]

    async with Served(github, base=github.interface.base) as served:
        github.address = served.url
        seen = await served.read(lambda: read(served.url))
    assert seen == [
        ("main", False, True),
        (1, "Cilium takes over", "why", TIP, 7, "main", False),
        ["network"],
        [f"hello\n\n{MARK}"],
        ("bob", "APPROVED", TIP),
        [("gitops-ctl/check", "success")],
    ]


def test_no_operation_is_described_that_the_adapter_does_not_use():
    assert len(set(OPERATIONS)) == 19

"""The GitLab adapter against the shapes of its documentation, with python-gitlab as a witness (forges.md, sections 5, 8, 11.2 and 15)."""

from typing import Any

import gitlab as python_gitlab
import pytest

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.errors import (
    AlreadyExists,
    BaseMissing,
    ForbiddenOrMissing,
    Gone,
    Refused,
    RepositoryUnavailable,
    TokenRejected,
)
from gitops_ctl.forge.neutral import approvals
from tests.support.forge_gitlab import BASE, FakeGitlab, account
from tests.support.forge_served import Served
from tests.support.kube_clock import JumpingClock

HEAD = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84"
TIP, OLD, MERGE = "a" * 40, "c" * 40, "f" * 40
MARK = "<!-- gitops-ctl:check -->"
LIST = "GET /projects/:id/merge_requests"


def adapter_of(gitlab: FakeGitlab, *, token: str = "good", project: str = "net/eu/fabric") -> ForgeAdapter:
    return forge_adapter(
        "gitlab", base_url="https://gitlab.example.net", project=project, token=token, http=gitlab, clock=JumpingClock()
    )


@pytest.fixture
def gitlab() -> FakeGitlab:
    made = FakeGitlab()
    made.branches[HEAD] = TIP
    return made


@pytest.fixture
def adapter(gitlab: FakeGitlab) -> ForgeAdapter:
    return adapter_of(gitlab)


@pytest.mark.parametrize(("access", "can_push"), [(40, True), (30, True), (20, False), (None, None)])
async def test_the_project_and_what_the_token_may(gitlab, adapter, access, can_push):
    gitlab.access = access
    repo = await adapter.repo()
    assert (repo.id, repo.full_name, repo.default_branch, repo.can_push) == ("12", "net/eu/fabric", "main", can_push)
    assert repo.clone_url == "https://gitlab.example.net/net/eu/fabric.git"


async def test_a_project_is_also_found_by_its_number(gitlab):
    assert (await adapter_of(gitlab, project="12").repo()).full_name == "net/eu/fabric"


async def test_a_number_that_is_answered_with_another_project_is_refused(gitlab):
    original = gitlab._project
    gitlab._project = lambda *_: {**original(), "id": 13}
    with pytest.raises(RepositoryUnavailable, match="for the project 12 with the project 13"):
        await adapter_of(gitlab, project="12").repo()


async def test_a_project_that_answers_under_another_name_was_moved(gitlab, adapter):
    original = gitlab._project
    gitlab._project = lambda *_: {**original(), "path_with_namespace": "net/us/fabric"}
    with pytest.raises(RepositoryUnavailable, match="moved to net/us/fabric"):
        await adapter.repo()


async def test_a_branch_with_a_slash_is_one_part_of_the_path(adapter):
    branch = await adapter.branch(HEAD)
    assert (branch.sha, branch.can_push, branch.protected) == (TIP, True, False)
    assert await adapter.branch("no/such") is None


async def test_create_then_find_update_close_and_reopen(gitlab, adapter):
    made = await adapter.create(HEAD, base="main", title="Cilium takes over", body="why", labels=("network", "cni"))
    assert (made.number, made.state, made.head.branch, made.head.sha, made.labels) == (
        1,
        "open",
        HEAD,
        TIP,
        ("network", "cni"),
    )
    assert made.base.sha == "b" * 40
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    changed = await adapter.update(found, title="new", body="newer", labels=("cni", "third"))
    assert (changed.title, changed.body, changed.labels) == ("new", "newer", ("network", "cni", "third"))
    assert gitlab.sent[-1][1] == {"title": "new", "description": "newer", "add_labels": "third"}
    assert await adapter.update(changed, labels=("cni",)) is changed
    closed = await adapter.close(changed, reason="already in base")
    assert closed.state == "closed"
    assert [note.text for note in await adapter.comments(closed)] == ["already in base\n\n<!-- gitops-ctl:closed -->"]
    assert await adapter.find_open(HEAD, base="main") is None
    assert (await adapter.reopen(closed)).state == "open"


async def test_a_branch_that_was_deleted_is_not_opened_again(gitlab, adapter):
    closed = await adapter.close(await adapter.create(HEAD, base="main", title="t", body="b"), reason="r")
    del gitlab.branches[HEAD]
    with pytest.raises(Gone):
        await adapter.reopen(closed)


async def test_P12_why_a_creation_was_refused(gitlab, adapter):
    await adapter.create(HEAD, base="main", title="t", body="b")
    with pytest.raises(AlreadyExists, match="!1"):
        await adapter.create(HEAD, base="main", title="t", body="b")
    with pytest.raises(Gone):
        await adapter.create("never-pushed", base="main", title="t", body="b")
    with pytest.raises(BaseMissing):
        await adapter.create(HEAD, base="renamed", title="t", body="b")
    gitlab.failing["POST /projects/:id/merge_requests"] = (422, {"message": {"title": ["is too long"]}})
    with pytest.raises(Refused, match="title is too long"):
        await adapter.create(HEAD, base="main", title="t", body="b")


async def test_P13_a_missing_right_is_told_with_the_call_and_the_right(gitlab, adapter):
    gitlab.failing["POST /projects/:id/merge_requests"] = (403, {"message": "403 Forbidden"})
    with pytest.raises(ForbiddenOrMissing, match=r"POST .*merge_requests.*scope api and the role Developer"):
        await adapter.create(HEAD, base="main", title="t", body="b")
    with pytest.raises(TokenRejected):
        await adapter_of(gitlab, token="stale").repo()


async def test_the_open_one_is_found_on_page_4_of_5_and_never_that_of_a_fork(gitlab, adapter):
    gitlab.most_per_page = 3
    for number in range(15):
        gitlab.open(HEAD, source_project=12 if number == 4 else 99)
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == 5
    assert gitlab.calls.count(LIST) == 4


async def test_one_that_is_being_merged_is_open(gitlab, adapter):
    gitlab.open(HEAD, state="locked")
    assert (await adapter.get(1)).state == "open"


async def test_the_newest_open_ones_come_first(gitlab, adapter):
    gitlab.most_per_page = 2
    for number in range(5):
        gitlab.open(f"topic-{number}", state="closed" if number == 4 else "opened")
    assert [pr.number for pr in await adapter.list_open("main", most=3)] == [4, 3, 2]


async def test_the_marker_is_found_in_any_state(gitlab, adapter):
    for number in range(4):
        gitlab.open(f"topic-{number}", description=MARK if number == 1 else "", state="closed")
    assert [pr.number for pr in await adapter.find_by_marker(MARK)] == [2]
    assert await adapter.find_by_marker(MARK, most=2) == ()


async def test_one_comment_per_marker_found_by_author_and_marker(gitlab, adapter):
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    gitlab.note(1, "person", f"I copied it {MARK}")
    gitlab.note(1, "bot", f"changed the description {MARK}", system=True)
    number = await adapter.put_comment(pr, marker=MARK, text="first")
    assert await adapter.put_comment(pr, marker=MARK, text="second") == number
    assert await adapter.put_comment(pr, marker=MARK, text="second") == number
    assert [note.text for note in await adapter.comments(pr)] == [f"I copied it {MARK}", f"second\n\n{MARK}"]
    assert gitlab.calls.count("PUT /projects/:id/merge_requests/:iid/notes/:note") == 1


async def test_an_approval_binds_the_head_where_pushes_take_approvals_away(gitlab, adapter):
    request = gitlab.open(HEAD)
    request.approved_by = [
        {"user": account("bob"), "approved_at": "2026-01-01T02:00:00.000Z"},
        {"user": account("ann")},
    ]
    reviews = await adapter.reviews(await adapter.get(1))
    assert [(r.user.login, r.state, r.commit, r.stale, r.at.hour) for r in reviews] == [
        ("bob", "approved", TIP, False, 2),
        ("ann", "approved", TIP, False, 3),
    ]
    assert len(approvals(reviews, head=TIP)) == 2


@pytest.mark.parametrize("setting", [False, None], ids=["pushes keep approvals", "the setting cannot be read"])
async def test_an_approval_without_a_head_counts_nowhere(gitlab, adapter, setting):
    gitlab.resets_approvals = setting
    gitlab.open(HEAD).approved_by = [{"user": account("bob")}]
    reviews = await adapter.reviews(await adapter.get(1))
    assert [(review.commit, review.stale) for review in reviews] == [("", True)]
    assert approvals(reviews, head=TIP) == ()


async def test_a_push_between_two_reads_never_moves_an_approval_to_another_head(gitlab, adapter):
    request = gitlab.open(HEAD)
    request.approved_by = [{"user": account("bob")}]
    pr = await adapter.get(1)

    def push() -> None:
        request.sha, request.approved_by = OLD, []

    gitlab.before["GET /projects/:id/merge_requests/:iid/approvals"] = push
    with pytest.raises(Unavailable, match="head moved"):
        await adapter.reviews(pr)


@pytest.mark.parametrize("complete", [True, False], ids=["list is complete", "list misses it"])
async def test_the_merge_of_a_commit_is_found(gitlab, adapter, complete):
    gitlab.commit_lists_are_complete = complete
    gitlab.open("other", state="merged", merge_sha="1" * 40, sha="2" * 40)
    gitlab.open(HEAD, state="merged", merge_sha=MERGE, merged_by="ann", sha=OLD)
    gitlab.open("open-one", sha="3" * 40)
    found = await adapter.pr_of_merge(MERGE)
    assert found is not None
    assert (found.number, found.state, found.head.sha, found.merge_sha) == (2, "merged", OLD, MERGE)
    assert found.merged_by is not None
    assert found.merged_by.login == "ann"
    assert await adapter.pr_of_merge(OLD) is None
    assert await adapter.pr_of_merge("9" * 40) is None


async def test_a_squash_is_the_merge_that_lands(gitlab, adapter):
    gitlab.open(HEAD, state="merged", squash_sha=MERGE, sha=OLD)
    assert (await adapter.get(1)).merge_sha == MERGE
    found = await adapter.pr_of_merge(MERGE)
    assert found is not None
    assert found.number == 1


@pytest.mark.parametrize(
    ("status", "conflicts", "mergeable", "blocked"),
    [
        ("mergeable", False, True, ()),
        ("checking", False, None, ()),
        ("conflict", True, False, ("conflicts",)),
        ("not_approved", False, True, ("approvals missing: 1 of 2",)),
        ("ci_must_pass", False, True, ("the pipeline has to succeed",)),
        ("draft_status", False, True, ("draft",)),
        ("requested_changes", False, True, ("changes requested",)),
        ("something_new", False, True, ()),
    ],
)
async def test_the_merge_state_names_what_is_in_the_way(gitlab, adapter, status, conflicts, mergeable, blocked):
    gitlab.open(HEAD, status=status, conflicts=conflicts, approvals_required=2, approved_by=[{"user": account("bob")}])
    state = await adapter.merge_state(await adapter.get(1))
    assert (state.mergeable, state.blocked, state.head_sha) == (mergeable, blocked, TIP)


async def test_a_status_is_sent_when_it_changes(gitlab, adapter):
    put = {"context": "gitops-ctl/check", "state": "error", "text": "2 findings"}
    assert await adapter.set_status(TIP, **put) is True
    assert await adapter.set_status(TIP, **put) is False
    assert (
        await adapter.set_status(TIP, **{**put, "text": "3 findings"}) is False
    )  # GitLab takes no second one of the state
    assert await adapter.set_status(TIP, **{**put, "state": "success", "url": "https://git.example.net/x"}) is True
    assert [status["status"] for status in gitlab.statuses[TIP]] == ["failed", "success"]


async def test_what_the_forge_says_about_a_signature(gitlab, adapter):
    gitlab.signatures[TIP] = "verified"
    assert (await adapter.verification(TIP), await adapter.verification(OLD)) == ("verified", "unsigned")


async def test_another_reader_sees_the_double_as_we_do(gitlab, adapter):
    made = await adapter.create(HEAD, base="main", title="Cilium takes over", body="why", labels=("network",))
    await adapter.put_comment(made, marker=MARK, text="hello")
    gitlab.requests[0].approved_by = [{"user": account("bob")}]
    await adapter.set_status(TIP, context="gitops-ctl/check", state="failure", text="bad")

    def read(url: str) -> list[Any]:
        with python_gitlab.Gitlab(url.removesuffix("/api/v4"), private_token="good") as client:
            project = client.projects.get("net/eu/fabric")
            request = project.mergerequests.list(state="opened", source_branch=HEAD, get_all=True)[0]
            whole = project.mergerequests.get(request.iid)
            return [
                (project.default_branch, project.archived, project.permissions["project_access"]["access_level"]),
                (whole.iid, whole.title, whole.description, whole.sha, whole.source_project_id, whole.labels),
                [note.body for note in whole.notes.list(get_all=True)],
                [given["user"]["username"] for given in whole.approvals.get().approved_by],
                [(status.name, status.status) for status in project.commits.get(TIP).statuses.list(get_all=True)],
            ]

    async with Served(gitlab, base=BASE) as served:
        seen = await served.read(lambda: read(served.url))
    assert seen == [
        ("main", False, 40),
        (1, "Cilium takes over", "why", TIP, 12, ["network"]),
        [f"hello\n\n{MARK}"],
        ["bob"],
        [("gitops-ctl/check", "failed")],
    ]

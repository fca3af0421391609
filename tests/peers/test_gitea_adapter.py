"""The Gitea adapter on the real server, each exchange judged by the server's own description (forges.md, sections 6, 8, 15 and 16.1).

In scope: every call and what the server does that one would not expect.  Out of scope: reviews and merges (test_gitea_adapter_reviews.py), what
a network does (test_gitea_adapter_faults.py).
"""

import pytest

from gitops_ctl.forge.errors import (
    AlreadyExists,
    BaseMissing,
    Conflict,
    ForbiddenOrMissing,
    Gone,
    Refused,
    RepositoryUnavailable,
    TokenRejected,
)
from tests.support.forge_gitea import Forge, described_by, forge_on, writes_of
from tests.support.forge_openapi import Interface
from tests.support.gitea import GiteaHandle

pytestmark = pytest.mark.peers

HEAD = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84"
MARK = "<!-- gitops-ctl:check -->"
CHANGE = {"values.yaml": "kubeProxyReplacement: true\n"}


@pytest.fixture(scope="module")
def interface(gitea: GiteaHandle) -> Interface:
    return described_by(gitea)


@pytest.fixture
async def forge(gitea: GiteaHandle, interface: Interface):
    async with forge_on(gitea, interface) as made:
        yield made


async def opened(forge: Forge, *, branch: str = HEAD, title: str = "Cilium takes over", body: str = "why"):
    forge.repo.push(branch, CHANGE, base="main")
    return await forge.adapter.create(branch, base="main", title=title, body=body)


async def test_the_project_its_branches_and_what_the_token_may(forge):
    repo = await forge.adapter.repo()
    assert (repo.full_name, repo.default_branch, repo.can_push, repo.archived) == (
        forge.repo.project,
        "main",
        True,
        False,
    )
    assert repo.clone_url == forge.repo.clone_url
    assert repo.id == str(forge.repo.id)
    assert forge.adapter.name == "gitea"
    tip = forge.repo.push(HEAD, CHANGE, base="main")
    branch = await forge.adapter.branch(HEAD)
    assert (branch.sha, branch.protected, branch.can_push, branch.required_approvals) == (tip, False, True, 0)
    assert await forge.adapter.branch("no/such") is None


async def test_create_find_update_close_and_reopen(forge):
    made = await opened(forge)
    assert (made.state, made.title, made.body, made.author.login) == ("open", "Cilium takes over", "why", "bot")
    assert (made.head.branch, made.head.sha) == (HEAD, forge.repo.tip(HEAD))
    assert (made.base.branch, made.base.sha, made.is_fork) == ("main", forge.repo.tip(), False)
    found = await forge.adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == made.number
    changed = await forge.adapter.update(found, title="new", body="newer")
    assert (changed.title, changed.body) == ("new", "newer")
    closed = await forge.adapter.close(changed, reason="already in base")
    assert closed.state == "closed"
    assert [comment.text for comment in await forge.adapter.comments(closed)] == [
        "already in base\n\n<!-- gitops-ctl:closed -->"
    ]
    assert await forge.adapter.find_open(HEAD, base="main") is None
    assert (await forge.adapter.reopen(closed)).state == "open"
    assert (await forge.adapter.get(made.number)).state == "open"


async def test_P12_a_second_one_is_a_409_and_a_missing_branch_is_told_from_a_missing_right(forge):
    await opened(forge)
    with pytest.raises(AlreadyExists, match="already exists for these targets"):
        await forge.adapter.create(HEAD, base="main", title="t", body="b")
    with pytest.raises(Gone):
        await forge.adapter.create("never-pushed", base="main", title="t", body="b")
    with pytest.raises(BaseMissing):
        await forge.adapter.create(HEAD, base="renamed", title="t", body="b")
    with pytest.raises(Refused):
        await forge.adapter.create("main", base="main", title="t", body="b")


async def test_P12_one_without_any_difference_is_opened_too_so_the_check_is_ours(forge):
    forge.repo.git("push", "--quiet", "origin", "HEAD:refs/heads/same")
    made = await forge.adapter.create("same", base="main", title="t", body="b")
    assert made.state == "open"
    assert forge.repo.pull(made.number)["changed_files"] == 0


async def test_the_text_has_an_optimistic_lock(forge):
    first = await opened(forge)
    second = await forge.adapter.update(first, body="ours")
    assert second.version == first.version + 1
    forge.repo.api("PATCH", f"/pulls/{first.number}", {"body": "a person wrote this"})
    with pytest.raises(Conflict, match="already changed"):
        await forge.adapter.update(second, body="ours again")
    assert forge.repo.pull(first.number)["body"] == "a person wrote this"
    fresh = await forge.adapter.get(first.number)
    assert (await forge.adapter.update(fresh, body="ours again")).body == "ours again"


async def test_a_deleted_branch_closes_and_only_the_label_keeps_its_name(forge):
    made = await opened(forge)
    forge.repo.delete_branch(HEAD)
    raw = forge.repo.pull(made.number)
    assert (raw["state"], raw["head"]["ref"], raw["head"]["label"]) == ("closed", f"refs/pull/{made.number}/head", HEAD)
    closed = await forge.adapter.get(made.number)
    assert (closed.state, closed.head.branch) == ("closed", HEAD)
    with pytest.raises(Gone):
        await forge.adapter.reopen(closed)
    assert forge.repo.api("PATCH", f"/pulls/{made.number}", {"state": "open"}).status == 201  # the server would do it
    forge.repo.api("PATCH", f"/pulls/{made.number}", {"state": "closed"})
    forge.repo.push(HEAD, CHANGE, base="main")
    assert (await forge.adapter.reopen(closed)).state == "open"


async def test_a_branch_that_is_pushed_back_to_base_stays_open(forge):
    made = await opened(forge)
    forge.repo.git("push", "--quiet", "--force", "origin", f"origin/main:refs/heads/{HEAD}")
    assert (await forge.adapter.get(made.number)).state == "open"
    found = await forge.adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == made.number


async def test_the_open_one_is_found_on_page_4_of_5(forge, monkeypatch):
    monkeypatch.setattr("gitops_ctl.forge.gitea._PAGE", "2")
    forge.repo.push("topic-0", CHANGE, base="main")
    forge.repo.git("push", "--quiet", "origin", *(f"HEAD:refs/heads/topic-{number}" for number in range(1, 10)))
    made = [await forge.adapter.create(f"topic-{number}", base="main", title="t", body="b") for number in range(10)]
    # The list begins with what changed last: the third one of all is then on the fourth page of two each.
    found = await forge.adapter.find_open("topic-3", base="main")
    assert found is not None
    assert found.number == made[3].number
    listed = [call for call in forge.calls if call.endswith("/pulls") and call.startswith("GET")]
    assert len(listed) == 4
    assert [pr.number for pr in await forge.adapter.list_open("main", most=3)] == [pr.number for pr in made[:6:-1]]
    marked = await forge.adapter.update(made[1], body=f"text\n{MARK}")
    assert [pr.number for pr in await forge.adapter.find_by_marker(MARK)] == [marked.number]


async def test_one_of_a_fork_is_listed_as_such_and_never_ours(forge):
    gitea, repo = forge.gitea, forge.repo
    gitea.token_of("stranger")
    fork = gitea.call("POST", f"/repos/{repo.project}/forks", {"name": f"{repo.name}-fork"}, user="stranger")
    assert fork.status == 202
    content = {"branch": "main", "new_branch": HEAD, "content": "YTogMQo=", "message": "theirs"}
    made = gitea.call("POST", f"/repos/stranger/{repo.name}-fork/contents/a.yaml", content, user="stranger")
    assert made.status == 201
    wanted = {"head": f"stranger:{HEAD}", "base": "main", "title": "theirs"}
    assert repo.api("POST", "/pulls", wanted, user="stranger").status == 201
    assert await forge.adapter.find_open(HEAD, base="main") is None
    theirs = (await forge.adapter.list_open("main"))[0]
    assert (theirs.is_fork, theirs.head.branch, theirs.author.login) == (True, HEAD, "stranger")
    ours = await opened(forge)
    found = await forge.adapter.find_open(HEAD, base="main")
    assert found is not None
    assert found.number == ours.number


async def test_one_comment_per_marker_found_by_author_and_marker(forge):
    made = await opened(forge)
    copied = {"body": f"I copied it {MARK}"}
    forge.repo.api("POST", f"/issues/{made.number}/comments", copied, user="network-author")
    number = await forge.adapter.put_comment(made, marker=MARK, text="first")
    assert await forge.adapter.put_comment(made, marker=MARK, text="second") == number
    writes = len(list(writes_of(forge.calls)))
    assert await forge.adapter.put_comment(made, marker=MARK, text="second") == number
    assert len(list(writes_of(forge.calls))) == writes
    comments = await forge.adapter.comments(made)
    assert [(each.author.login, each.text) for each in comments] == [
        ("network-author", f"I copied it {MARK}"),
        ("bot", f"second\n\n{MARK}"),
    ]


async def test_labels_are_made_and_added_and_none_is_taken_away(forge):
    forge.repo.push(HEAD, CHANGE, base="main")
    made = await forge.adapter.create(HEAD, base="main", title="t", body="b", labels=("network", "cni"))
    assert sorted(made.labels) == ["cni", "network"]
    forge.repo.api("POST", "/labels", {"name": "a-persons", "color": "#ff0000"})
    forge.repo.api("POST", f"/issues/{made.number}/labels", {"labels": ["a-persons"]})
    changed = await forge.adapter.update(await forge.adapter.get(made.number), labels=("network", "third"))
    assert sorted(changed.labels) == ["a-persons", "cni", "network", "third"]


async def test_labels_that_the_token_may_not_set_do_not_matter(forge):
    token = forge.gitea.limited_token("bot", "write:repository", "read:issue", "read:user")
    forge.repo.push(HEAD, CHANGE, base="main")
    made = await forge.adapter_of(token).create(HEAD, base="main", title="t", body="b", labels=("network",))
    assert (made.state, made.labels) == ("open", ())


async def test_a_status_is_sent_when_it_changes(forge):
    tip = forge.repo.push(HEAD, CHANGE, base="main")
    put = {"context": "gitops-ctl/check", "state": "failure", "text": "2 findings\nin 1 file"}
    assert await forge.adapter.set_status(tip, **put) is True
    assert await forge.adapter.set_status(tip, **put) is False
    assert await forge.adapter.set_status(tip, **{**put, "context": "gitops-ctl/verdict"}) is True
    assert (
        await forge.adapter.set_status(tip, **{**put, "state": "success", "url": "https://git.example.net/x"}) is True
    )
    latest = {each["context"]: each for each in forge.repo.api("GET", f"/commits/{tip}/status").body["statuses"]}
    assert {name: each["status"] for name, each in latest.items()} == {
        "gitops-ctl/check": "success",
        "gitops-ctl/verdict": "failure",
    }


async def test_what_the_forge_says_about_a_signature(forge):
    signed = forge.repo.push("signed", CHANGE, base="main", sign=True)
    unsigned = forge.repo.push("unsigned", CHANGE, base="main")
    assert await forge.adapter.verification(signed) == "verified"
    assert await forge.adapter.verification(unsigned) == "gpg.error.not_signed_commit"


async def test_a_token_that_is_not_known(forge):
    with pytest.raises(TokenRejected):
        await forge.adapter_of("0" * 40).repo()


async def test_P13_a_missing_right_is_told_with_the_call_and_the_right(forge):
    token = forge.gitea.limited_token("bot", "read:repository", "read:user")
    forge.repo.push(HEAD, CHANGE, base="main")
    with pytest.raises(ForbiddenOrMissing, match=r"POST .*/pulls.*write access to pull requests"):
        await forge.adapter_of(token).create(HEAD, base="main", title="t", body="b")
    with pytest.raises(ForbiddenOrMissing, match="not found or not permitted"):
        await forge.adapter_of(forge.gitea.bot_token, project="owner/no-such").repo()


async def test_a_renamed_project_is_told_and_not_followed(forge):
    assert forge.repo.api("PATCH", "", {"name": f"{forge.repo.name}-moved"}).status == 200
    with pytest.raises(RepositoryUnavailable, match=f"moved to {forge.repo.project}-moved"):
        await forge.adapter.repo()


async def test_an_archived_project_takes_nothing(forge):
    forge.repo.push(HEAD, CHANGE, base="main")
    assert forge.repo.api("PATCH", "", {"archived": True}).status == 200
    assert (await forge.adapter.repo()).archived
    with pytest.raises(RepositoryUnavailable, match="is archived"):
        await forge.adapter.create(HEAD, base="main", title="t", body="b")


def test_no_operation_is_described_that_the_adapter_does_not_use(interface):
    """The last of this module: by now each operation was judged at least once, but those that other modules use."""
    unused = {f"{method.upper()} {path}" for path, item in interface.tree["paths"].items() for method in item}
    assert unused - interface.seen <= {
        "GET /repos/{owner}/{repo}/pulls/{index}/reviews",
        "GET /repos/{owner}/{repo}/commits/{sha}/pull",
    }

"""Plain Git behind the same protocol: branches, and nothing that Git has not (forges.md, section 7)."""

from collections.abc import Mapping

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.http import HttpAnswer
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.errors import Gone, NotOffered
from tests.support.kube_clock import JumpingClock

HEAD, TIP, BASE = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84", "a" * 40, "b" * 40
URL = "https://git.example.net/net/fabric.git"


class Branches:
    def __init__(self) -> None:
        self.known = {"main": BASE, HEAD: TIP}
        self.contained = {BASE}

    async def tips(self) -> Mapping[str, str]:
        return self.known

    async def contains(self, base: str, *, commit: str) -> bool:
        return base == "main" and commit in self.contained

    async def default_branch(self) -> str:
        return "main"


class NoHttp:
    async def request(self, method: str, url: str, **_: object) -> HttpAnswer:
        raise AssertionError("plain Git has no API")


@pytest.fixture
def branches() -> Branches:
    return Branches()


@pytest.fixture
def adapter(branches: Branches) -> ForgeAdapter:
    return forge_adapter(
        "plain", base_url=URL, project="net/fabric", token="", http=NoHttp(), clock=JumpingClock(), branches=branches
    )


async def test_a_branch_that_base_does_not_contain_is_an_open_proposal(branches, adapter):
    found = await adapter.find_open(HEAD, base="main")
    assert found is not None
    assert (found.number, found.state, found.head.sha, found.base.sha, found.is_fork) == (0, "open", TIP, BASE, False)
    branches.contained.add(TIP)
    assert await adapter.find_open(HEAD, base="main") is None
    assert await adapter.find_open("never-pushed", base="main") is None
    assert await adapter.find_open(HEAD, base="renamed") is None


async def test_creating_needs_the_pushed_branch_and_nothing_more(adapter):
    made = await adapter.create(HEAD, base="main", title="Cilium takes over", body="why", labels=("network",))
    assert (made.title, made.labels, made.head.branch) == ("Cilium takes over", (), HEAD)
    assert await adapter.update(made, title="new") == made
    with pytest.raises(Gone):
        await adapter.create("never-pushed", base="main", title="t", body="b")


async def test_merged_closed_and_open_are_told_by_commits(branches, adapter):
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    assert (await adapter.merge_state(pr)).state == "open"
    assert (await adapter.merge_state(pr)).blocked == ("merge it by hand",)
    branches.contained.add(TIP)
    assert (await adapter.merge_state(pr)).state == "merged"
    branches.contained.discard(TIP)
    del branches.known[HEAD]
    assert (await adapter.merge_state(pr)).state == "closed"
    with pytest.raises(Gone):
        await adapter.reopen(pr)


async def test_what_git_has_not_is_empty_or_said(adapter):
    pr = await adapter.create(HEAD, base="main", title="t", body="b")
    assert (adapter.name, (await adapter.repo()).default_branch) == ("plain", "main")
    assert await adapter.branch("no-such") is None
    assert await adapter.reopen(pr) == pr
    assert (await adapter.list_open("main"), await adapter.find_by_marker("x")) == ((), ())
    assert (await adapter.comments(pr), await adapter.reviews(pr), await adapter.pr_of_merge(TIP)) == ((), (), None)
    assert await adapter.put_comment(pr, marker="<!-- x -->", text="t") == 0
    assert await adapter.set_status(TIP, context="gitops-ctl/check", state="success", text="t") is False
    assert await adapter.verification(TIP) == "not checked by a forge"
    with pytest.raises(NotOffered, match=f"delete the branch {HEAD} by hand") as caught:
        await adapter.close(pr, reason="r")
    assert caught.value.code is ErrorCode.NOT_OFFERED
    with pytest.raises(NotOffered):
        await adapter.get(1)

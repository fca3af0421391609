"""What a real Gitea shows of verdicts and checks (forges.md, sections 11.3, 18 and 21.15).

In scope: fork and unsigned heads, hostile heads, one comment updated in place, one status, a restart, missing rights.  The rules of pace and
the texts are judged without a server (tests/unit/source/test_telling_*.py).
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitops_ctl.source.pulltext import MARKER
from tests.support.gitea import GiteaHandle
from tests.support.sync_cluster import until
from tests.support.telling_gitea import NAMESPACE, SOURCE, Lab, lab_on
from tests.support.trust import POLICY_PATH, config_map

pytestmark = pytest.mark.peers

CHECK, VERDICT = "gitops-ctl/check", "gitops-ctl/verdict"
CHANGE = {"clusters/b.yaml": config_map("b", v="1")}
BROKEN = {"clusters/b.yaml": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"v": 1}}\n'}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
DEEP = "/".join(["d"] * 70) + "/a.yaml"


@pytest.fixture
async def lab(gitea: GiteaHandle, tmp_path: Path) -> AsyncIterator[Lab]:
    async with lab_on(gitea, tmp_path) as made:
        yield made


async def test_the_watched_branch_shows_accepted_then_what_waits_then_refused(lab):
    assert await lab.told(lab.root, VERDICT, "success") == "accepted; no Sync uses this source"
    await lab.sync("site", suspend=True)
    assert await lab.told(lab.root, VERDICT, "pending") == "accepted; waiting for Sync site (Suspended)"
    unsigned = lab.commit("main", CHANGE)
    lab.poke()
    assert (await lab.told(unsigned, VERDICT, "failure")).startswith("refused: Unsigned; ")
    assert len(lab.statuses(unsigned, VERDICT)) == 1


async def test_a_signed_change_of_a_person_is_told_once_and_updated_in_place(lab):
    first = lab.commit("topic", CHANGE, key=lab.team["ann"])
    number = lab.open("topic")
    text = await lab.commented(number, first)
    assert "`edit` on `clusters/b.yaml`: one of `ann`; signed already by `ann`" in text
    assert "- added: `ConfigMap/demo/b`" in text
    assert (await lab.told(first, CHECK, "success")) == "0 errors, 0 warnings"
    second = lab.commit("topic", BROKEN, key=lab.team["ann"])
    text = await lab.commented(number, second)
    assert "clusters/b.yaml:1" in text
    await lab.told(second, CHECK, "failure")
    [comment] = lab.comments(number)
    assert comment["user"]["login"] == "bot"
    assert comment["body"].endswith(MARKER)
    assert [len(lab.statuses(head, CHECK)) for head in (first, second)] == [1, 1]


async def test_21_15_a_fork_and_an_unsigned_head_are_read_and_nothing_of_them_is_used(lab):
    """Both bring a policy that makes everybody an author, and hide their files."""
    policy = lab.team.policy({"author": ["ann", "eve"], "approver": ["eve"], "admin": ["eve"], "nobody": []})
    files = {POLICY_PATH: policy, ".gitops-ctlignore": "clusters/\n", **BROKEN}
    address = lab.fork("stranger")
    fork = lab.commit("theirs", files, key=lab.team["eve"], start="origin/main", remote=address, user="stranger")
    forked = lab.open("stranger:theirs", user="stranger")
    unsigned = lab.commit("topic", files, start="origin/main")
    own = lab.open("topic")
    for number, head in ((forked, fork), (own, unsigned)):
        text = await lab.commented(number, head)
        await lab.told(head, CHECK, "failure")
        assert "Holds `ConfigMap/b`" in text
        assert "`trust` on `.gitops-ctl/trust.yaml`: one of `adm`" in text
        assert "What it touches" not in text
    assert "**PathNotAuthorised**" in await lab.commented(forked, fork)
    assert "**Unsigned**" in await lab.commented(own, unsigned)
    again = lab.commit("theirs", CHANGE, remote=address, user="stranger")
    await lab.commented(forked, again)
    assert len(lab.comments(forked)) == len(lab.comments(own)) == 1
    assert len(lab.statuses(again, CHECK)) == 1
    read = {
        entry.name for entry in lab.server.api.audit if entry.resource == "secrets" and "tests" not in entry.user_agent
    }
    assert read == {"forge", "git"}
    source = await lab.admin.get(lab.path("gitsources", SOURCE))
    assert source["status"]["accepted"]["revision"] == lab.root
    assert (await lab.admin.list_all(lab.path("proposals"))).items == []


async def test_21_15_a_hostile_head_ends_in_a_finding(lab):
    lab.repo.git("fetch", "--quiet", "origin")
    lab.repo.git("checkout", "--quiet", "-B", "hostile", "origin/main")
    (lab.repo.checkout / "linked.yaml").symlink_to("/etc/passwd")
    huge = b"a: " + b"x" * (17 * 2**20)
    head = lab.commit("hostile", {"clusters/bomb.yaml": BOMB, "clusters/huge.yaml": huge})
    number = lab.open("hostile")
    text = await lab.commented(number, head)
    assert all(name in text for name in ("expansion-limit", "document-too-large", "path-refused")), text
    await lab.told(head, CHECK, "failure")
    deep = lab.commit("hostile", {DEEP: "a: 1\n"})
    assert "tree-limit" in await lab.commented(number, deep)
    await lab.told(deep, CHECK, "failure")
    assert len(lab.comments(number)) == 1


async def test_a_restarted_manager_sends_nothing_again(lab):
    head = lab.commit("topic", BROKEN, key=lab.team["ann"])
    number = lab.open("topic")
    await lab.commented(number, head)
    await lab.told(head, CHECK, "failure")
    before = lab.comments(number)
    await lab.stop()
    await lab.start()
    other = lab.commit("other", CHANGE)
    await lab.commented(lab.open("other"), other)
    await until(lambda: len(lab.statuses(other, CHECK)) == 1)
    assert lab.comments(number) == before
    assert len(lab.statuses(head, CHECK)) == 1
    assert len(lab.statuses(lab.root, VERDICT)) == 1


async def test_a_token_that_may_not_comment_is_told_once_and_the_status_goes_on(gitea, tmp_path):
    token = gitea.limited_token("bot", "write:repository", "read:issue", "read:user")
    async with lab_on(gitea, tmp_path, token=token) as lab:
        heads = [lab.commit(branch, CHANGE, start="origin/main") for branch in ("one", "two")]
        numbers = [lab.open(branch) for branch in ("one", "two")]
        for head in heads:
            await lab.told(head, CHECK, "success")

        async def warned():
            events = (await lab.admin.list_all(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")).items
            return [each for each in events if each["reason"] == "ForbiddenOrMissing"]

        [event] = await until(warned)
        assert "comments" in event["note"]
        assert token not in str(event)
        assert [lab.comments(number) for number in numbers] == [[], []]

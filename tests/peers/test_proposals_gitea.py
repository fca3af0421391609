"""Proposals on the real Gitea: what people and its rules do to a pull request of ours (forges.md, sections 6, 10, 12 and 13; acceptance
checks 1, 5, 6, 7, 8 and 14).

In scope: the whole path from the object to the pull request and back.  Out of scope: each call of the adapter (test_gitea_adapter.py).
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.git_keys import SshKey
from tests.support.gitea import GiteaHandle
from tests.support.proposal_gitea import FILE, PORT, SWITCH, GiteaDesk, gitea_desk
from tests.support.sync_cluster import until

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]


@pytest.fixture
async def desk(gitea: GiteaHandle, tmp_path: Path) -> AsyncIterator[GiteaDesk]:
    async with gitea_desk(gitea, tmp_path) as made:
        yield made


async def test_one_signed_commit_in_one_pull_request_and_then_silence(desk: GiteaDesk):
    status = await desk.opened()
    pull = desk.repo.pull(status["number"])
    assert pull["head"]["sha"] == status["headCommit"] == desk.repo.tip(status["branch"])
    assert pull["changed_files"] == 1
    assert (pull["additions"], pull["deletions"]) == (1, 1)
    assert [label["name"] for label in pull["labels"]] == ["gitops-ctl"]
    assert pull["user"]["login"] == "bot"
    commit = desk.repo.api("GET", f"/git/commits/{status['headCommit']}").body
    assert commit["commit"]["verification"]["verified"] is True
    assert len(commit["parents"]) == 1
    updated = pull["updated_at"]
    for _ in range(3):
        desk.wake()
        await until(lambda: desk.room.queue.gauges()["unfinished_work_seconds"] == 0)  # type: ignore[union-attr]
    pulls = desk.repo.api("GET", "/pulls?state=all").body
    assert [(found["number"], found["updated_at"]) for found in pulls] == [(status["number"], updated)]


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
async def test_a_merge_with_the_button_is_seen_by_its_content(desk: GiteaDesk, how: str):
    status = await desk.opened()
    desk.repo.merge(status["number"], how=how)
    merged = await desk.woken_until("Merged")
    assert merged["status"]["phase"] == "Merged"
    assert "kubeProxyReplacement: true" in desk.repo.git("show", f"{_fetched(desk)}:{FILE}")


def _fetched(desk: GiteaDesk) -> str:
    desk.repo.git("fetch", "--quiet", "origin")
    return "origin/main"


async def test_P04_a_base_that_conflicts_is_followed_with_one_commit_and_one_pull_request(desk: GiteaDesk):
    status = await desk.opened()
    desk.repo.push("main", {FILE: "kubeProxyReplacement: false  # really\n"})

    async def rebuilt() -> bool:
        desk.wake()
        return (await desk.get())["status"]["headCommit"] != status["headCommit"]

    await until(rebuilt, what="the branch is rebuilt")
    after = (await desk.woken_until("Open"))["status"]
    assert after["number"] == status["number"]
    pull = desk.repo.pull(after["number"])
    assert pull["head"]["sha"] == after["headCommit"]
    assert len(desk.repo.api("GET", f"/pulls/{after['number']}/commits").body) == 1


async def test_P10_an_open_one_stays_on_its_base_until_a_person_asks_and_follows_each_move_where_the_source_says_so(
    desk: GiteaDesk,
):
    status = await desk.opened()
    tips = [desk.repo.push("main", {"README.md": "# one\n"})]
    await desk.annotate(reopen_at="1")

    async def on_base(number: int) -> bool:
        desk.wake()
        return (await desk.get())["status"]["baseCommit"] == tips[number]

    await until(lambda: on_base(0), what="it is rebuilt on request")
    await desk.admin.patch_merge(desk.path("gitsources", "network"), {"spec": {"proposer": {"refresh": "Always"}}})
    tips.append(desk.repo.push("main", {"README.md": "# two\n"}))
    await until(lambda: on_base(1), what="it follows the base")
    after = (await desk.woken_until("Open"))["status"]
    assert (after["number"], after["branch"]) == (status["number"], status["branch"])
    assert desk.repo.pull(after["number"])["head"]["sha"] == after["headCommit"]
    assert len(desk.repo.api("GET", f"/pulls/{after['number']}/commits").body) == 1


async def test_P09_a_branch_that_a_person_forced_is_left_alone(desk: GiteaDesk):
    status = await desk.opened()
    person = desk.repo.push(status["branch"], {"mine.yaml": "a: 1\n"}, base="main", user="network-author")
    await desk.woken_until("ModifiedByOthers")
    await desk.ask(changes=(SWITCH, PORT))
    await desk.woken_until("ModifiedByOthers")
    assert desk.repo.tip(status["branch"]) == person
    comments = desk.repo.api("GET", f"/issues/{status['number']}/comments").body
    assert len(comments) == 1
    assert "Not touched any more" in comments[0]["body"]


async def test_P11_closed_by_hand_is_remembered_and_opened_again_by_hand_is_heard(desk: GiteaDesk):
    status = await desk.opened()
    place = f"/pulls/{status['number']}"
    assert desk.repo.api("PATCH", place, {"state": "closed"}, user="change-approver").status == 201
    await desk.woken_until("DeclinedByHuman")
    assert desk.repo.api("PATCH", place, {"state": "open"}, user="change-approver").status == 201
    again = await desk.woken_until("Open")
    assert again["status"]["number"] == status["number"]
    assert len(desk.repo.api("GET", "/pulls?state=all").body) == 1


async def test_a_deleted_branch_closes_it_and_the_command_goes_on_under_a_new_name(desk: GiteaDesk):
    status = await desk.opened()
    branch = status["branch"].replace("/", "%2F")
    assert desk.repo.api("DELETE", f"/branches/{branch}").status == 204
    await desk.woken_until("DeclinedByHuman")
    assert desk.repo.tip(status["branch"]) == ""
    await desk.annotate(reopen_at="1")
    again = (await desk.woken_until("Open"))["status"]
    assert again["number"] != status["number"]
    assert again["branch"] == f"{status['branch']}-2"
    assert desk.repo.pull(again["number"])["head"]["sha"] == again["headCommit"]


async def test_the_command_opens_a_closed_one_again_with_our_commit_as_its_head(desk: GiteaDesk):
    status = await desk.opened()
    desk.repo.api("PATCH", f"/pulls/{status['number']}", {"state": "closed"}, user="change-approver")
    await desk.woken_until("DeclinedByHuman")
    await desk.annotate(reopen_at="1")
    again = (await desk.woken_until("Open"))["status"]
    assert again["number"] == status["number"]
    assert desk.repo.pull(again["number"])["state"] == "open"


async def test_a_revert_after_the_merge_is_told(desk: GiteaDesk):
    status = await desk.opened()
    desk.repo.merge(status["number"])
    await desk.woken_until("Merged")
    desk.repo.push("main", {FILE: "kubeProxyReplacement: false\n"})
    reverted = await desk.woken_until("MergedButNotEffective")
    assert reverted["status"]["phase"] == "Pending"


async def test_protection_of_our_names_is_shown_with_the_words_of_the_server(desk: GiteaDesk):
    await desk.protect("gitops-ctl/**", enable_push=False)
    await desk.ask(changes=(SWITCH,))
    await desk.until_reason("PushRefused")
    message = (await desk.ready())["message"]
    assert "Not allowed to push to protected branch" in message
    assert desk.gitea.bot_token not in message
    assert desk.repo.api("GET", "/pulls?state=all").body == []


async def test_rule_05_where_force_is_forbidden_the_next_name_is_used(desk: GiteaDesk):
    await desk.protect("gitops-ctl/**", enable_push=True, enable_force_push=False)
    status = await desk.opened()
    await desk.ask(changes=(SWITCH, PORT))

    async def moved_on() -> bool:
        desk.wake()
        return (await desk.get())["status"]["number"] != status["number"]

    await until(moved_on, what="another pull request")
    after = (await desk.woken_until("Open"))["status"]
    assert after["branch"] == f"{status['branch']}-2"
    assert desk.repo.pull(status["number"])["state"] == "closed"
    assert desk.repo.pull(after["number"])["state"] == "open"


async def test_required_signatures_take_the_bots_key_and_refuse_another(desk: GiteaDesk, tmp_path: Path):
    await desk.protect("gitops-ctl/**", enable_push=True, require_signed_commits=True)
    await desk.secret("proposer", identity=SshKey.generate(tmp_path).path.read_text())
    await desk.ask(changes=(SWITCH,))
    await desk.until_reason("PushRefused")
    assert "hook declined" in (await desk.ready())["message"] or "verify" in (await desk.ready())["message"]
    await desk.secret("proposer", identity=desk.gitea.bot_key.read_text())
    status = (await desk.woken_until("Open"))["status"]
    assert desk.repo.tip(status["branch"]) == status["headCommit"]


async def test_a_persons_branch_of_our_name_stays_untouched(desk: GiteaDesk):
    status = await desk.opened()
    desk.repo.api("PATCH", f"/pulls/{status['number']}", {"state": "closed"}, user="change-approver")
    await desk.woken_until("DeclinedByHuman")
    person = desk.repo.push(status["branch"], {"mine.yaml": "a: 1\n"}, base="main", user="network-author")
    await desk.admin.delete(desk.path("proposals", "site-1-cni"))
    await desk.ask("other", changes=(SWITCH, PORT))
    after = (await desk.until_reason("Open", name="other"))["status"]
    assert after["branch"] == f"{status['branch']}-2"
    assert desk.repo.tip(status["branch"]) == person


async def test_a_project_that_was_moved_or_archived_is_told_and_the_redirect_is_not_followed(desk: GiteaDesk):
    status = await desk.opened()
    name = desk.repo.name
    place = f"/pulls/{status['number']}"
    before = desk.repo.pull(status["number"])["updated_at"]
    assert desk.repo.api("PATCH", "", {"name": f"{name}-moved"}).status == 200
    await desk.ask(changes=(SWITCH, PORT))
    await desk.woken_until("RepositoryUnavailable")
    assert f"was moved to {desk.repo.project}-moved" in (await desk.ready())["message"]
    desk.repo.name = f"{name}-moved"
    assert desk.repo.api("GET", place).body["updated_at"] == before
    assert desk.repo.api("PATCH", "", {"name": name, "archived": True}).status == 200
    desk.repo.name = name
    await desk.woken_until("RepositoryUnavailable")
    await until(lambda: _says(desk, f"{desk.repo.project} is archived"), what="it is said that it is archived")
    assert desk.repo.tip(status["branch"]) == status["headCommit"]
    assert desk.repo.api("PATCH", "", {"archived": False}).status == 200
    assert (await desk.woken_until("Open"))["status"]["number"] == status["number"]


async def test_a_base_branch_that_was_renamed_is_told_with_its_new_name_and_not_guessed(desk: GiteaDesk):
    said = desk.repo.api("PATCH", "/branches/main", {"name": "trunk"})
    assert said.status == 204, said
    await desk.ask(changes=(SWITCH,))
    await desk.woken_until("BaseMissing")
    assert f"the default branch of {desk.repo.project} is trunk now" in (await desk.ready())["message"]
    assert desk.repo.api("GET", "/pulls?state=all").body == []


async def _says(desk: GiteaDesk, text: str) -> bool:
    desk.wake()
    return text in (await desk.ready()).get("message", "")


async def test_P13_a_token_that_may_only_read_is_told_with_the_right_that_is_missing(desk: GiteaDesk):
    await desk.secret("forge", token=desk.gitea.limited_token("bot", "read:repository", "read:user", "read:issue"))
    await desk.ask(changes=(SWITCH,))
    refused = await until(lambda: _refused(desk), what="a refusal")
    assert refused["reason"] in ("PushRefused", "ForbiddenOrMissing")
    await desk.secret("forge", token="0" * 40)
    await desk.woken_until("TokenRejected")
    await desk.secret("forge", token=desk.gitea.bot_token)
    await desk.woken_until("Open")


async def _refused(desk: GiteaDesk) -> dict[str, str]:
    found = dict(await desk.ready())
    return found if found.get("status") == "False" else {}


async def test_P15_the_token_is_in_no_argument_environment_file_status_or_log(
    desk: GiteaDesk, capfd: pytest.CaptureFixture[str]
):
    token, seen = desk.gitea.bot_token.encode(), set()

    async def watch() -> None:
        while True:
            for place in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    try:
                        seen.add((token in (text := (place / name).read_bytes()), b"gitops_ctl.git" in text))
                    except OSError:
                        continue
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    await desk.opened()
    watching.cancel()
    assert (False, True) in seen  # a child was looked at
    assert not any(has_token and is_child for has_token, is_child in seen)
    for file in desk.folder.rglob("*"):
        assert not file.is_file() or token not in file.read_bytes(), file
    out, err = capfd.readouterr()
    assert desk.gitea.bot_token not in out + err + str(await desk.get())

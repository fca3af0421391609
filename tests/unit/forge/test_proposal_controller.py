"""Proposals as objects: what their status says, what wakes them, and how they go (forges.md, sections 3.1 and 18)."""

import errno
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pygit2
import pytest

from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.controller import repository_key
from gitops_ctl.forge.errors import ForbiddenOrMissing, RateLimited, TokenRejected
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver import ApiServer, FakeApiServer
from tests.support.git_keys import SshKey
from tests.support.proposal_room import TOKEN, Tenant, tenant
from tests.support.proposals import ADD, REPLACE, TEXT, VALUES
from tests.support.sync_cluster import until


async def _running(tmp_path: Path, key: SshKey, *, plain: bool) -> AsyncIterator[Tenant]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FakeApiServer(ApiServer(lag=0)))
        config = ClusterConfig(server.url)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="manager"))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
        yield await stack.enter_async_context(tenant(admin, manager, "lab", tmp_path, key=key, plain=plain))


@pytest.fixture
async def lab(tmp_path: Path, key: SshKey) -> AsyncIterator[Tenant]:
    async for found in _running(tmp_path, key, plain=False):
        yield found


@pytest.fixture
async def plain(tmp_path: Path, key: SshKey) -> AsyncIterator[Tenant]:
    async for found in _running(tmp_path, key, plain=True):
        yield found


async def test_an_asked_change_becomes_a_pull_request_and_the_status_says_which(lab: Tenant):
    await lab.ask()
    tree = await lab.until_reason("Open")
    status = tree["status"]
    assert (status["phase"], status["number"]) == ("Open", 1)
    assert status["branch"].startswith("gitops-ctl/taloscluster-site-1-")
    assert status["headCommit"] == lab.remote.head(status["branch"])
    assert status["baseCommit"] == lab.remote.head("main")
    assert status["contentHash"].startswith("sha256:")
    assert "pushing" not in status
    assert {item["type"]: item["status"] for item in status["conditions"]} == {"Ready": "True", "Mergeable": "True"}
    assert "site-1 waits for the new values" in lab.forge.pulls[1].body
    assert lab.tokens == [TOKEN]


async def test_P05_an_idle_proposal_writes_nothing(lab: Tenant):
    await lab.ask()
    version = (await lab.until_reason("Open"))["metadata"]["resourceVersion"]
    gets = lab.forge.calls["get"]
    for number in range(1, 4):
        lab.wake()
        await until(lambda count=gets + number: lab.forge.calls["get"] >= count)
    assert (await lab.get())["metadata"]["resourceVersion"] == version
    assert len(lab.git.pushes) == 1


async def test_a_killed_manager_leaves_one_pull_request(lab: Tenant):
    await lab.ask()
    await until(lambda: lab.git.pushes)
    await lab.kill()
    await lab.start()
    await lab.until_reason("Open")
    assert len(lab.forge.pulls) == len(lab.git.pushes) == 1


async def test_a_merge_a_revert_and_the_command_are_shown_one_after_the_other(lab: Tenant):
    await lab.ask()
    await lab.until_reason("Open")
    lab.forge.merged_by_person(1)
    lab.wake()
    assert (await lab.until_reason("Merged"))["status"]["phase"] == "Merged"
    lab.remote.commit({VALUES: TEXT})
    lab.wake()
    reverted = await lab.until_reason("MergedButNotEffective")
    assert reverted["status"]["phase"] == "Pending"
    assert any(item["type"] == "Stalled" for item in reverted["status"]["conditions"])
    await lab.annotate(reopen_at="1")
    again = await lab.until_reason("Open")
    assert (again["status"]["number"], again["status"]["lastHandledReopenAt"]) == (2, "1")


async def test_the_refresh_policy_of_the_source_and_a_request_say_when_a_moved_base_is_followed(lab: Tenant):
    first = (await opened(lab))["headCommit"]
    lab.remote.commit({"README.md": "# one\n"})
    await lab.annotate(reopen_at="1")
    asked = await until(lambda: rebuilt(lab, first), what="it is rebuilt on request")
    assert asked["lastHandledReopenAt"] == "1"
    lab.remote.commit({"README.md": "# two\n"})
    await lab.admin.patch_merge(lab.path("gitsources", "network"), {"spec": {"proposer": {"refresh": "Always"}}})
    always = await until(lambda: rebuilt(lab, asked["headCommit"]), what="it is rebuilt for every move")
    assert always["baseCommit"] == lab.remote.head("main")
    assert len(lab.git.pushes) == 3
    assert list(lab.forge.pulls) == [1]


async def opened(lab: Tenant) -> Any:
    await lab.ask()
    return (await lab.until_reason("Open"))["status"]


async def rebuilt(lab: Tenant, before: str) -> Any:
    """The status once another commit than `before` is the head."""
    status = (await lab.get())["status"]
    return status if status["headCommit"] != before and "pushing" not in status else None


async def test_a_declined_one_is_opened_again_only_once_for_each_request(lab: Tenant):
    await lab.ask()
    await lab.until_reason("Open")
    lab.forge.closed_by_person(1)
    lab.wake()
    declined = await lab.until_reason("DeclinedByHuman")
    assert declined["status"]["phase"] == "Closed"
    assert declined["status"]["declined"]
    await lab.annotate(reopen_at="1")
    await lab.until_reason("Open")
    lab.forge.closed_by_person(1)
    lab.wake()
    await lab.until_reason("DeclinedByHuman")
    assert len(lab.forge.pulls) == 1


async def test_a_new_tip_of_the_source_wakes_its_proposals(lab: Tenant):
    await lab.ask()
    await lab.until_reason("Open")
    lab.forge.merged_by_person(1)
    observed = {"revision": lab.remote.head("main"), "at": "2026-11-30T08:00:00Z"}
    await lab.admin.patch_merge(
        lab.path("gitsources", "network"), {"status": {"observed": observed}}, subresource="status"
    )
    await lab.until_reason("Merged")


async def test_withdrawn_closes_and_keeps_the_object_to_be_seen(lab: Tenant):
    await lab.ask()
    await lab.until_reason("Open")
    await lab.ask(changes=())
    assert (await lab.until_reason("Superseded"))["status"]["phase"] == "Superseded"
    assert lab.forge.open() == []


async def test_deleting_the_object_closes_its_pull_request_first(lab: Tenant):
    await lab.ask()
    tree = await lab.until_reason("Open")
    assert tree["metadata"]["finalizers"] == ["gitops-ctl.dev/finalizer"]
    await lab.admin.delete(lab.path("proposals", "site-1-cni"))

    async def gone() -> bool:
        return await lab.get() is None

    await until(gone, what="the object goes")
    assert lab.forge.open() == []
    assert len(lab.forge.pulls) == 1


async def test_deleting_while_the_forge_is_away_waits_and_then_goes(lab: Tenant):
    await lab.ask()
    await lab.until_reason("Open")

    def away(_call: str, _when: str) -> None:
        raise RateLimited("slow down", retry_after_s=0.01)

    lab.forge.point = away
    await lab.admin.delete(lab.path("proposals", "site-1-cni"))
    looks = lab.forge.calls["repo"]
    await until(lambda: lab.forge.calls["repo"] > looks + 1)
    assert await lab.get() is not None
    lab.forge.point = lambda _call, _when: None

    async def gone() -> bool:
        return await lab.get() is None

    await until(gone, what="the object goes")
    assert lab.forge.open() == []


async def test_an_expired_one_is_closed_at_its_time(lab: Tenant):
    await lab.ask(expires=datetime.now(UTC) + timedelta(seconds=2))
    await lab.until_reason("Open")
    assert (await lab.until_reason("Expired"))["status"]["phase"] == "Expired"
    assert lab.forge.open() == []


async def test_a_younger_one_of_the_same_purpose_takes_the_pull_request_over(lab: Tenant):
    await lab.ask("first")
    await lab.until_reason("Open", name="first")
    await until(lambda: _now_differs(lab), what="a second passes")
    await lab.ask("second", changes=(REPLACE, ADD))
    await lab.until_reason("Open", name="second")
    await lab.until_reason("Superseded", name="first")
    (pull,) = lab.forge.open()
    assert "k8sServicePort" in pull.body
    assert len(lab.forge.pulls) == 1
    await lab.admin.delete(lab.path("proposals", "first"))

    async def gone() -> bool:
        return await lab.get("first") is None

    await until(gone, what="the older object goes")
    assert len(lab.forge.open()) == 1


async def _now_differs(lab: Tenant) -> bool:
    created: str = (await lab.get("first"))["metadata"]["creationTimestamp"]
    return datetime.now(UTC) - datetime.fromisoformat(created) > timedelta(seconds=1)


async def test_a_merged_one_stays_merged_when_a_younger_one_of_its_purpose_goes_on(lab: Tenant):
    await lab.ask("first")
    await lab.until_reason("Open", name="first")
    lab.forge.merged_by_person(1)
    await lab.ask("first", changes=())
    await lab.until_reason("Merged", name="first")
    await until(lambda: _now_differs(lab), what="a second passes")
    await lab.ask("second", changes=(REPLACE, ADD))
    await lab.until_reason("Open", name="second")
    first = await until(lambda: _message_has(lab, "not watched any more"), what="the older one was looked at again")
    assert (first["status"]["phase"], first["status"]["number"]) == ("Merged", 1)


async def _message_has(lab: Tenant, text: str) -> Any:
    tree = await lab.get("first")
    return tree if text in tree["status"]["conditions"][0]["message"] else None


async def test_a_younger_one_with_another_subject_closes_the_older_pull_request(lab: Tenant):
    await lab.ask("first")
    await lab.until_reason("Open", name="first")
    await until(lambda: _now_differs(lab), what="a second passes")
    subject = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosOperation", "namespace": "lab", "name": "op-2"}
    await lab.ask("second", subject=subject)
    await lab.until_reason("Open", name="second")
    await lab.until_reason("Superseded", name="first")
    assert [pull.number for pull in lab.forge.open()] == [2]


async def test_P06_two_spellings_of_one_repository_do_not_fight(lab: Tenant):
    await lab.ask("first")
    await lab.until_reason("Open", name="first")
    await until(lambda: _now_differs(lab), what="a second passes")
    source = await lab.admin.get(lab.path("gitsources", "network"))
    spec = {**source["spec"], "url": f"{lab.remote.url}/"}
    tree = {"apiVersion": source["apiVersion"], "kind": "GitSource", "metadata": {"name": "same"}, "spec": spec}
    await lab.admin.create(lab.path("gitsources"), tree)
    await lab.ask("second", source="same", changes=(REPLACE, ADD))
    await lab.until_reason("Open", name="second")
    lab.wake("first")
    await lab.until_reason("Superseded", name="first")
    for name in ("first", "second"):
        lab.wake(name)
    assert len(lab.forge.open()) == 1
    assert len(lab.git.pushes) == 2


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.net/net/fabric",
        "https://git.example.net/net/fabric.git",
        "https://GIT.example.net:443/net/fabric.git/",
        "ssh://git@git.example.net/net/fabric.git",
        "ssh://git@git.example.net:22/net/fabric",
    ],
)
def test_P06_every_spelling_of_an_address_is_one_repository(url: str):
    assert repository_key(url) == "git.example.net/net/fabric"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            ForbiddenOrMissing("POST /repos/net/fabric/pulls: 403; needs write access to pull requests"),
            "ForbiddenOrMissing",
        ),
        (RateLimited("wait", retry_after_s=3600), "Unavailable"),
    ],
)
async def test_P13_the_status_says_which_call_failed(lab: Tenant, error: Exception, reason: str):
    def fail(call: str, when: str) -> None:
        if (call, when) == ("create", "before"):
            raise error

    lab.forge.point = fail
    await lab.ask()
    tree = await lab.until_reason(reason)
    assert tree["status"]["phase"] == "Pending"
    assert str(error.args[0]) in (await lab.ready())["message"]
    kinds = {item["type"] for item in tree["status"]["conditions"]}
    assert ("Stalled" if isinstance(error, ForbiddenOrMissing) else "Reconciling") in kinds


async def test_a_full_disk_is_told_and_waited_for(lab: Tenant, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("gitops_ctl.forge.desk.borrow_objects", full)
        await lab.ask()
        await lab.until_reason("Unavailable")
        assert "disk cannot be worked on: No space left on device" in (await lab.ready())["message"]
    await lab.until_reason("Open")


async def test_a_full_disk_keeps_no_deleted_object_for_ever(lab: Tenant, monkeypatch: pytest.MonkeyPatch):
    await lab.ask()
    await lab.until_reason("Open")

    def full(*_: object, **__: object) -> str:
        raise pygit2.GitError("failed to write out file: No space left on device")

    monkeypatch.setattr("gitops_ctl.forge.desk.borrow_objects", full)
    monkeypatch.setattr("gitops_ctl.forge.controller.DELETION_S", 0.5)
    await lab.admin.delete(lab.path("proposals", "site-1-cni"))

    async def gone() -> bool:
        return await lab.get() is None

    await until(gone, what="the object goes", timeout_s=30)


async def test_a_rejected_token_is_never_tried_again_until_it_changes(lab: Tenant):
    def reject(_call: str, _when: str) -> None:
        raise TokenRejected("GET /repos/net/fabric/pulls: 401")

    lab.forge.point = reject
    await lab.ask()
    await lab.until_reason("TokenRejected")
    calls = sum(lab.forge.calls.values())
    tokens = len(lab.tokens)
    for _ in range(3):
        lab.wake()
        await until(lambda: not lab.room.queue.gauges()["unfinished_work_seconds"])  # type: ignore[union-attr]
    assert sum(lab.forge.calls.values()) == calls
    lab.forge.point = lambda _call, _when: None
    await lab.secret("forge", token=f"{TOKEN}-new")
    lab.wake()
    await lab.until_reason("Open")
    assert lab.tokens[tokens:] == [f"{TOKEN}-new"]


async def test_what_cannot_be_edited_waits_with_instructions_for_a_person(lab: Tenant):
    await lab.ask(changes=((VALUES, Edit(0, "/kubeProxyReplacement", "replace", "strict", True)),))
    tree = await lab.until_reason("FromMismatch")
    message = (await lab.ready())["message"]
    assert tree["status"]["phase"] == "Pending"
    assert f"by hand: in {VALUES} /kubeProxyReplacement set true" in message
    assert lab.git.pushes == []
    # The base changes so that it fits: it goes on by itself.
    lab.remote.commit({VALUES: TEXT.replace("false", "strict")})
    lab.wake()
    await lab.until_reason("Open")


@pytest.mark.parametrize(
    ("spec", "reason", "told"),
    [
        ({"proposer": None}, "ProposerMissing", "has no spec.proposer"),
        ({"ref": {"branch": None, "tag": "v1"}}, "ProposerMissing", "follows a tag"),
        ({"suspend": True}, "Suspended", "suspended"),
        ({"ref": {"branch": "trunk"}}, "BaseMissing", "the branch trunk is not there"),
        ({"forge": {"credentialsSecretRef": None}}, "CredentialsMissing", "no Secret with a token"),
        ({"forge": {"credentialsSecretRef": {"name": "none"}}}, "CredentialsMissing", "does not exist"),
    ],
)
async def test_what_the_source_lacks_is_named(lab: Tenant, spec: Any, reason: str, told: str):
    await lab.admin.patch_merge(lab.path("gitsources", "network"), {"spec": spec})
    await lab.ask()
    await lab.until_reason(reason)
    assert told in (await lab.ready())["message"]
    assert lab.forge.pulls == {}


async def test_a_source_that_is_not_there_is_waited_for(lab: Tenant):
    await lab.ask(source="other")
    await lab.until_reason("SourceNotFound")


async def test_a_bad_signing_key_is_told_without_a_byte_of_it(lab: Tenant):
    await lab.secret("proposer", identity="-----BEGIN OPENSSH PRIVATE KEY-----\nSECRETBYTES\n")
    await lab.ask()
    await lab.until_reason("SigningKeyInvalid")
    assert "SECRETBYTES" not in str(await lab.get())
    assert lab.git.pushes == []


async def test_plain_git_pushes_the_branch_and_says_how_to_open_it_by_hand(plain: Tenant):
    await plain.ask()
    tree = await plain.until_reason("Open")
    message = (await plain.ready())["message"]
    branch = tree["status"]["branch"]
    for part in (
        "branch pushed, open a change by hand",
        branch,
        plain.remote.head(branch),
        "+kubeProxyReplacement: true",
    ):
        assert part in message
    assert "number" not in tree["status"]
    plain.remote.merge(branch, how="squash")
    plain.wake()
    await plain.until_reason("Merged")
    assert branch in plain.remote.branches()


async def test_plain_git_respects_a_branch_that_a_person_deleted_or_changed(plain: Tenant):
    await plain.ask()
    branch = (await plain.until_reason("Open"))["status"]["branch"]
    person = plain.remote.commit_on(branch, {"mine.yaml": "a: 1\n"})
    plain.wake()
    await plain.until_reason("ModifiedByOthers")
    assert plain.remote.head(branch) == person
    plain.remote.delete(branch)
    plain.wake()
    await plain.until_reason("DeclinedByHuman")
    assert plain.remote.branches() == ["main"]
    await plain.annotate(reopen_at="again")
    await plain.until_reason("Open")

"""The Forgejo dialect against recorded replies: no Forgejo can be built from Go modules, so Gitea stands in for all else (forges.md, sections 6, 16.3)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, Terms
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.errors import AlreadyExists, Conflict
from tests.support.kube_clock import JumpingClock

BASE = "https://git.example.net"
REPO = "/api/v1/repos/net/fabric"
HEAD, TIP = "gitops-ctl/cni-fabric-3f1c9a52e07b6d84", "a" * 40


def pull(**members: Any) -> dict[str, Any]:
    return {
        "number": 7,
        "html_url": f"{BASE}/net/fabric/pulls/7",
        "state": "open",
        "merged": False,
        "title": "t",
        "body": "b",
        "user": {"id": 3, "login": "bot"},
        "head": {"label": HEAD, "ref": HEAD, "sha": TIP, "repo_id": 5},
        "base": {"label": "main", "ref": "main", "sha": "b" * 40, "repo_id": 5},
        "labels": [],
        "mergeable": True,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        **members,
    }


class Recorded:
    """Replies by method and path; what was sent is kept."""

    def __init__(self, version: str, *, own_version: bool = False) -> None:
        self.replies: dict[str, tuple[int, Any]] = {
            "GET /api/v1/version": (200, {"version": version}),
            f"GET {REPO}": (200, {"id": 5, "full_name": "net/fabric", "default_branch": "main"}),
            f"GET {REPO}/pulls/7": (200, pull()),
        }
        if own_version:
            self.replies["GET /api/forgejo/v1/version"] = (200, {"version": "15.0.0"})
        self.sent: list[tuple[str, Any]] = []

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        idempotent: bool | None = None,
        terms: Terms = USUAL_TERMS,
    ) -> HttpAnswer:
        call = f"{method} {url.removeprefix(BASE).partition('?')[0]}"
        if body:
            self.sent.append((call, json.loads(body)))
        status, tree = self.replies.get(call, (404, {"message": "not found"}))
        return HttpAnswer(status, {}, json.dumps(tree).encode())


def adapter_of(recorded: Recorded) -> ForgeAdapter:
    return forge_adapter("gitea", base_url=BASE, project="net/fabric", token="t", http=recorded, clock=JumpingClock())


@pytest.mark.parametrize(
    ("version", "own_version", "name"),
    [
        ("11.0.1+gitea-1.22.0", False, "forgejo"),
        ("15.0.0", True, "forgejo"),
        ("1.26.0", False, "gitea"),
        ("1.27.3+dev-12-gabc", False, "gitea"),
    ],
)
async def test_the_two_are_told_apart_by_their_versions(version, own_version, name):
    adapter = adapter_of(Recorded(version, own_version=own_version))
    assert adapter.name == "gitea"  # until it was asked
    await adapter.repo()
    assert adapter.name == name


async def test_forgejo_gets_no_lock_and_an_update_that_answers_201_is_good():
    recorded = Recorded("11.0.1+gitea-1.22.0")
    recorded.replies[f"PATCH {REPO}/pulls/7"] = (201, pull(body="new"))
    adapter = adapter_of(recorded)
    await adapter.repo()
    pr = await adapter.get(7)
    assert pr.version is None
    assert (await adapter.update(pr, body="new")).body == "new"
    assert recorded.sent == [(f"PATCH {REPO}/pulls/7", {"body": "new"})]


async def test_gitea_gets_its_lock_back_and_a_stale_one_is_a_conflict():
    recorded = Recorded("1.26.0")
    recorded.replies[f"GET {REPO}/pulls/7"] = (200, pull(content_version=4))
    recorded.replies[f"PATCH {REPO}/pulls/7"] = (409, {"message": "the issue is already changed"})
    adapter = adapter_of(recorded)
    await adapter.repo()
    with pytest.raises(Conflict, match="already changed"):
        await adapter.update(await adapter.get(7), body="new")
    assert recorded.sent == [(f"PATCH {REPO}/pulls/7", {"body": "new", "content_version": 4})]


async def test_a_duplicate_is_a_409_without_numbers():
    recorded = Recorded("11.0.1+gitea-1.22.0")
    recorded.replies[f"POST {REPO}/pulls"] = (409, {"message": "pull request already exists for these targets"})
    with pytest.raises(AlreadyExists):
        await adapter_of(recorded).create(HEAD, base="main", title="t", body="b")


async def test_a_deleted_fork_has_no_repository_and_is_none_of_ours():
    recorded = Recorded("11.0.1+gitea-1.22.0")
    fork = {"label": HEAD, "ref": "refs/pull/7/head", "sha": TIP, "repo_id": -1}
    recorded.replies[f"GET {REPO}/pulls"] = (200, [pull(head=fork)])
    adapter = adapter_of(recorded)
    assert await adapter.find_open(HEAD, base="main") is None
    assert [(pr.head.repository, pr.is_fork) for pr in await adapter.list_open("main")] == [("", True)]

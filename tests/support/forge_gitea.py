"""The adapter under test on a real Gitea, judged by the description that the server itself gives."""

import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.http import HttpClient
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.adapters import forge_adapter
from gitops_ctl.forge.http import HttpxClient
from tests.support.forge_openapi import NIL, Interface, JudgedHttp, openapi_of_swagger
from tests.support.gitea import GiteaHandle, GiteaRepo

_REPO = "/repos/{owner}/{repo}"
OPERATIONS = (
    "GET /version",
    "GET /user",
    f"GET {_REPO}",
    f"GET {_REPO}/branches/{{branch}}",
    f"GET {_REPO}/pulls",
    f"POST {_REPO}/pulls",
    f"GET {_REPO}/pulls/{{index}}",
    f"PATCH {_REPO}/pulls/{{index}}",
    f"GET {_REPO}/pulls/{{index}}/reviews",
    f"GET {_REPO}/labels",
    f"POST {_REPO}/labels",
    f"POST {_REPO}/issues/{{index}}/labels",
    f"GET {_REPO}/issues/{{index}}/comments",
    f"POST {_REPO}/issues/{{index}}/comments",
    f"PATCH {_REPO}/issues/comments/{{id}}",
    f"GET {_REPO}/commits/{{sha}}/pull",
    f"GET {_REPO}/commits/{{ref}}/status",
    f"POST {_REPO}/statuses/{{sha}}",
    f"GET {_REPO}/git/commits/{{sha}}",
)


def described_by(gitea: GiteaHandle) -> Interface:
    """The interface as the running server describes it."""
    context = ssl.create_default_context(cafile=str(gitea.ca_file))
    with urllib.request.urlopen(f"{gitea.url}/swagger.v1.json", context=context, timeout=30) as reply:
        tree = openapi_of_swagger(json.loads(reply.read()))
    return Interface(tree, operations=OPERATIONS, base=f"{gitea.url}/api/v1", tolerated=NIL)


@dataclass
class Forge:
    """A repository, the adapter with the bot's token, and what it did.

    Attributes:
        calls: of the adapter, in order, `METHOD PATH`.
    """

    gitea: GiteaHandle
    repo: GiteaRepo
    adapter: ForgeAdapter
    http: JudgedHttp

    @property
    def calls(self) -> list[str]:
        return self.http.calls

    def adapter_of(
        self, token: str, *, project: str = "", http: HttpClient | None = None, url: str = ""
    ) -> ForgeAdapter:
        """Another adapter of this project."""
        return adapter_of(self.gitea, project or self.repo.project, token=token, http=http or self.http, url=url)


def adapter_of(gitea: GiteaHandle, project: str, *, token: str, http: HttpClient, url: str = "") -> ForgeAdapter:
    return forge_adapter(
        "gitea",
        base_url=url or gitea.url,
        project=project,
        token=token,
        http=http,
        clock=SystemClock(),
        ca=gitea.ca,
    )


@asynccontextmanager
async def forge_on(gitea: GiteaHandle, interface: Interface) -> AsyncIterator[Forge]:
    """A new repository, and the adapter for it."""
    repo = gitea.create_repo()
    async with HttpxClient(clock=SystemClock()) as client:
        http = JudgedHttp(client, interface)
        yield Forge(gitea, repo, adapter_of(gitea, repo.project, token=gitea.bot_token, http=http), http)


def writes_of(calls: list[str]) -> Iterator[str]:
    """Those that write."""
    return (call for call in calls if not call.startswith("GET "))

"""The proposals room on a real Gitea: its API over https, pushes in child processes, the bot's token and key."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.forge.room import Options, ProposalRoom
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver import ApiServer, FakeApiServer
from tests.support.forge_run import run_with
from tests.support.gitea import GiteaHandle, GiteaRepo
from tests.support.proposal_room import PROPOSER, TIMING, Desk, ready_of
from tests.support.sync_cluster import install_crds, until

FILE = "values.yaml"
SWITCH = (FILE, Edit(0, "/kubeProxyReplacement", "replace", False, True))
PORT = (FILE, Edit(0, "/k8sServicePort", "add", after=7445))


@dataclass
class GiteaDesk(Desk):
    """A tenant whose repository is on Gitea."""

    gitea: GiteaHandle
    repo: GiteaRepo

    async def prepare(self) -> None:
        """Secrets, the authority and the GitSource."""
        # The server notices the first push in the background; before that it has no pull requests.
        await until(lambda: self.repo.api("GET", "/pulls").status == 200, what="the repository is not empty")
        await self.secret("proposer", identity=self.gitea.bot_key.read_text())
        await self.secret("forge", token=self.gitea.bot_token)
        config_maps = f"/api/v1/namespaces/{self.namespace}/configmaps"
        await self.admin.create(config_maps, {"metadata": {"name": "ca"}, "data": {"ca.crt": self.gitea.ca.decode()}})
        await self.secret("git", username="bot", password=self.gitea.bot_token)
        await self.source(
            url=self.repo.clone_url,
            caConfigMapRef={"name": "ca"},
            credentialsSecretRef={"name": "git"},
            proposer={**PROPOSER, "email": "bot@example.net"},
            forge={
                "provider": "gitea",
                "baseURL": self.gitea.url,
                "project": self.repo.project,
                "credentialsSecretRef": {"name": "forge"},
            },
        )

    async def start(self) -> None:
        """A manager begins."""
        http = HttpxClient(clock=self.manager.clock)
        self.room = ProposalRoom(
            self.manager,
            git=ChildTransport(),
            clones=CloneCache(self.folder / "cache"),
            events=EventRecorder(self.manager, instance="tests"),
            http=http,
            options=Options(namespace=self.namespace, timing=TIMING),
        )
        self.running = asyncio.create_task(run_with(http, self.room.run()))

    async def opened(self, **more: Any) -> Any:
        """Ask for the switch, and the status once the pull request is open."""
        await self.ask(changes=(SWITCH,), **more)
        return (await self.until_reason("Open"))["status"]

    async def protect(self, rule: str, **members: Any) -> None:
        said = self.repo.api("POST", "/branch_protections", {"rule_name": rule, **members})
        assert said.status == 201, said

    async def woken_until(self, reason: str) -> Any:
        """Look again, and again, until Ready has that reason: a forge works on what was done to it in the background."""

        async def has() -> Any:
            self.wake()
            tree = await self.get()
            return tree if ready_of(tree).get("reason") == reason else None

        found: Any = await until(has, what=f"{reason}; it is {await self.ready()}")
        return found


@asynccontextmanager
async def gitea_desk(gitea: GiteaHandle, folder: Path) -> AsyncIterator[GiteaDesk]:
    """A tenant with a repository of its own and a running room; objects are in a server in memory."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FakeApiServer(ApiServer(lag=0)))
        config = ClusterConfig(server.url)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="manager"))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
        await install_crds(admin)
        repo = gitea.create_repo(f"fabric-{secrets.token_hex(4)}")
        desk = GiteaDesk(admin, manager, "lab", folder, gitea, repo)
        await desk.prepare()
        await desk.start()
        try:
            yield desk
        finally:
            await desk.stop()

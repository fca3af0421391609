"""A source on a real Gitea with the rooms that judge it and tell about it, on an API server in memory."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitops_ctl.api.names import GROUP, VERSION
from gitops_ctl.api.watched import without_managers
from gitops_ctl.cli.pullcheck import MODULE
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import ChildTransport
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.source.pullchild import PullChild
from gitops_ctl.source.pulltelling import Pace
from gitops_ctl.source.room import Options as SourceOptions
from gitops_ctl.source.room import SourceRoom
from gitops_ctl.source.tellingroom import Options, Places, TellingRoom
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.doubles.apiserver import ApiServer, FakeApiServer
from tests.support.forge_run import run_with
from tests.support.git_keys import SshKey
from tests.support.gitea import GiteaHandle, GiteaRepo
from tests.support.sync_cluster import install_crds, until
from tests.support.trust import POLICY_PATH, Team, config_map

NAMESPACE, SOURCE = "lab", "network"
SYNC = Resource(GroupVersionKind(GROUP, VERSION, "Sync"), "syncs", namespaced=True)
TIMING = Timing(absent_s=0.2, absent_cap_s=0.4, backoff_s=0.1, confirm_s=0.5)
QUICK = Pace(poll_s=0.3, status_s=0.1, comment_s=0.1, refused_s=0.5)
FIRST = {"clusters/a.yaml": config_map("a", v="1")}


@dataclass
class Lab:
    """One tenant, its repository on the forge, its people, and the rooms at work."""

    gitea: GiteaHandle
    repo: GiteaRepo
    team: Team
    folder: Path
    server: FakeApiServer
    admin: KubeClient
    manager: KubeClient
    token: str
    root: str = ""
    rooms: tuple[SourceRoom, TellingRoom] | None = None
    running: "list[asyncio.Task[None]]" = field(default_factory=list)

    # -- people ------------------------------------------------------------------------------------------------------

    def commit(
        self,
        branch: str,
        files: Mapping[str, str | bytes],
        *,
        key: SshKey | None = None,
        start: str = "",
        remote: str = "origin",
        user: str = "bot",
    ) -> str:
        """Commit on a branch and push it; gives the commit."""
        repo = self.repo
        repo.git("fetch", "--quiet", "origin")
        known = repo.git("branch", "--list", branch).strip()
        repo.git("checkout", "--quiet", *([branch] if known and not start else ["-B", branch, start or "origin/main"]))
        for name, content in files.items():
            path = repo.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        repo.git("add", "--all")
        sign = ["-c", f"user.signingKey={key.path}"] if key else []
        repo.git(*sign, "commit", "--quiet", "--allow-empty", *(["-S"] if key else []), "-m", "change")
        repo.git("push", "--quiet", "--force", remote, f"HEAD:refs/heads/{branch}", user=user)
        return repo.git("rev-parse", "HEAD").strip()

    def open(self, head: str, *, user: str = "bot") -> int:
        """Somebody opens a pull request; gives its number."""
        said = self.repo.api("POST", "/pulls", {"head": head, "base": "main", "title": "a change"}, user=user)
        assert said.status == 201, said
        return int(said.body["number"])

    def fork(self, user: str) -> str:
        """That account's fork; gives the address for a push."""
        said = self.repo.api("POST", "/forks", {}, user=user)
        assert said.status in (202, 409), said
        return f"{self.gitea.url}/{user}/{self.repo.name}.git"

    # -- what the forge shows ----------------------------------------------------------------------------------------

    def comments(self, number: int) -> list[dict[str, Any]]:
        return list(self.repo.api("GET", f"/issues/{number}/comments").body)

    def statuses(self, commit: str, context: str) -> list[tuple[str, str]]:
        """(state, text) of every status that was ever sent for that context, newest first."""
        listed = self.repo.api("GET", f"/commits/{commit}/statuses?limit=50").body
        found = sorted(listed, key=lambda each: -int(each["id"]))
        return [(each["status"], each["description"]) for each in found if each["context"] == context]

    async def commented(self, number: int, text: str) -> str:
        """The one comment of ours, once it holds the text."""

        async def found() -> str:
            said = await asyncio.to_thread(self.comments, number)
            return next((each["body"] for each in said if text in each["body"]), "")

        return str(await until(found, what=f"a comment with {text!r} on {number}"))

    async def told(self, commit: str, context: str, state: str) -> str:
        """The text of the status, once it has that state."""

        async def found() -> str:
            said = await asyncio.to_thread(self.statuses, commit, context)
            return said[0][1] if said and said[0][0] == state else ""

        return str(await until(found, what=f"{context} is {state} on {commit}"))

    # -- objects -----------------------------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "") -> str:
        return f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{plural}" + (f"/{name}" if name else "")

    async def prepare(self) -> None:
        """The policy as pinned root, Secrets, the authority, the GitSource."""
        policy = self.team.policy()
        self.root = self.commit("main", {POLICY_PATH: policy, **FIRST}, key=self.team["adm"])
        core = f"/api/v1/namespaces/{NAMESPACE}"
        for name, data in (
            ("git", {"username": "bot", "password": self.gitea.bot_token}),
            ("forge", {"token": self.token}),
        ):
            coded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
            await self.admin.create(
                f"{core}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": coded}
            )
        await self.admin.create(
            f"{core}/configmaps",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "ca"},
                "data": {"ca.crt": self.gitea.ca.decode()},
            },
        )
        spec: JsonObject = {
            "url": self.repo.clone_url,
            "ref": {"branch": "main"},
            "interval": "1h",
            "credentialsSecretRef": {"name": "git"},
            "caConfigMapRef": {"name": "ca"},
            "trust": {"root": {"commit": self.root, "policyDigest": digest_bytes(policy.encode())}},
            "forge": {
                "provider": "gitea",
                "baseURL": self.gitea.url,
                "project": self.repo.project,
                "credentialsSecretRef": {"name": "forge"},
            },
        }
        await self.admin.create(self.path("gitsources"), self._object("GitSource", SOURCE, spec))

    async def sync(self, name: str, **spec: Any) -> None:
        least: JsonObject = {"sourceRef": {"name": SOURCE}, "serviceAccountName": "applier", "path": "clusters"}
        await self.admin.create(self.path("syncs"), self._object("Sync", name, {**least, **spec}))

    def _object(self, kind: str, name: str, spec: JsonObject) -> JsonObject:
        return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}

    # -- process -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """A manager begins; it remembers nothing."""
        git, clones, revisions = ChildTransport(), CloneCache(self.folder / "cache"), AcceptedRevisions()
        events = EventRecorder(self.manager, instance="tests")
        http = HttpxClient(clock=self.manager.clock)
        sources = SourceRoom(
            self.manager,
            git=git,
            clones=clones,
            revisions=revisions,
            events=events,
            documents=DocumentCache(),
            http=http,
            options=SourceOptions(timing=TIMING),
        )
        syncs: Informer[JsonObject] = Informer(self.manager, SYNC, trim=without_managers, timing=TIMING)
        places = Places(sources.informer, syncs, git, clones, revisions)
        check = PullChild(MODULE, deadline_s=60.0)
        tellings = TellingRoom(self.manager, places, events=events, check=check, http=http, options=Options(pace=QUICK))
        self.rooms = (sources, tellings)
        self.running = [
            asyncio.create_task(work)
            for work in (syncs.run(), events.run(), sources.run(), run_with(http, tellings.run()))
        ]

    async def stop(self) -> None:
        """It ends in order."""
        if self.rooms is None:
            return
        for room in self.rooms:
            room.stop()
        await asyncio.gather(*self.running[2:])
        for task in self.running[:2]:
            task.cancel()
        await asyncio.gather(*self.running[:2], return_exceptions=True)
        self.rooms = None

    def poke(self) -> None:
        """What a webhook does."""
        assert self.rooms is not None
        self.rooms[0].poke(NamespacedName(NAMESPACE, SOURCE))


@asynccontextmanager
async def lab_on(gitea: GiteaHandle, folder: Path, *, token: str = "") -> AsyncIterator[Lab]:
    """A tenant with a repository of its own and running rooms."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FakeApiServer(ApiServer(lag=0)))
        config = ClusterConfig(server.url)
        admin = await stack.enter_async_context(KubeClient(config, component="tests"))
        manager = await stack.enter_async_context(KubeClient(config, component="manager"))
        await admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await install_crds(admin)
        repo = await asyncio.to_thread(gitea.create_repo)
        lab = Lab(gitea, repo, Team(folder), folder, server, admin, manager, token or gitea.bot_token)
        await lab.prepare()
        await lab.start()
        try:
            yield lab
        finally:
            await lab.stop()

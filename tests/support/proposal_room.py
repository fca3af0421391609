"""The running proposals room of one tenant: on an API server, real or the double, with a real bare repository and a forge in memory."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitops_ctl.api.names import API_VERSION
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.forge.room import Options, ProposalRoom
from gitops_ctl.forge.wanted import WantedProposal, proposal_tree
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Timing
from gitops_ctl.kube.transport import KubeClient
from tests.support.forge_fake import FakeForge
from tests.support.forge_run import run_with
from tests.support.git_bare import BareRemote
from tests.support.git_keys import SshKey
from tests.support.proposals import PURPOSE, REPLACE, TEXT, VALUES, LocalGit
from tests.support.sync_cluster import install_crds, until

TIMING = Timing(absent_s=0.2, absent_cap_s=0.4, backoff_s=0.1, confirm_s=0.5)
SUBJECT = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster", "namespace": "lab", "name": "site-1"}
TOKEN = "only-for-tests-0123456789abcdef"


PROPOSER = {
    "name": "gitops-ctl",
    "email": "gitops-ctl@example.net",
    "signingKeySecretRef": {"name": "proposer"},
}


def ready_of(tree: Any) -> Mapping[str, Any]:
    """The condition Ready of an object; empty when it has none, or is not there."""
    conditions = (tree or {}).get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == "Ready"), {})


@dataclass
class Desk:
    """What a tenant and its people do through the API server, and the room that carries out the tenant's Proposals."""

    admin: KubeClient
    manager: KubeClient
    namespace: str
    folder: Path
    room: ProposalRoom | None = field(default=None, init=False)
    running: "asyncio.Task[None] | None" = field(default=None, init=False)

    def path(self, plural: str, name: str = "") -> str:
        return f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def source(self, **spec: Any) -> None:
        """Make the GitSource."""
        least = {"ref": {"branch": "main"}, "proposer": PROPOSER}
        tree = {
            "apiVersion": API_VERSION,
            "kind": "GitSource",
            "metadata": {"name": "network"},
            "spec": {**least, **spec},
        }
        await self.admin.create(self.path("gitsources"), tree)

    async def secret(self, name: str, **data: str) -> None:
        """Make or change a Secret."""
        place = f"/api/v1/namespaces/{self.namespace}/secrets"
        encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
        tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}
        if await self.admin.find(f"{place}/{name}") is None:
            await self.admin.create(place, tree)
        else:
            await self.admin.patch_merge(f"{place}/{name}", {"data": encoded})

    async def stop(self) -> None:
        """It ends in order."""
        if self.room is not None and self.running is not None:
            self.room.stop()
            await self.running
        self.room = self.running = None

    async def kill(self) -> None:
        """It ends at once."""
        if self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)
        self.room = self.running = None

    async def ask(self, name: str = "site-1-cni", **changes: Any) -> Any:
        """What a domain controller applies."""
        least: dict[str, Any] = {
            "namespace": self.namespace,
            "name": name,
            "source": "network",
            "subject": SUBJECT,
            "purpose": PURPOSE,
            "reason": "site-1 waits for the new values",
            "changes": (REPLACE,),
        }
        tree = proposal_tree(WantedProposal(**{**least, **changes}))
        return await self.admin.apply(self.path("proposals", name), tree, manager="tests", force=True)

    async def annotate(self, name: str = "site-1-cni", **annotations: str) -> None:
        marks = {f"gitops-ctl.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.admin.patch_merge(self.path("proposals", name), {"metadata": {"annotations": marks}})

    async def get(self, name: str = "site-1-cni") -> Any:
        return await self.admin.find(self.path("proposals", name))

    async def ready(self, name: str = "site-1-cni") -> Mapping[str, Any]:
        return ready_of(await self.get(name))

    async def until_reason(self, reason: str, *, name: str = "site-1-cni") -> Any:
        """The object once Ready has that reason."""

        async def has() -> Any:
            tree = await self.get(name)
            return tree if ready_of(tree).get("reason") == reason else None

        async def shown() -> str:
            return str(await self.ready(name))

        try:
            return await until(has, what=f"{name} is {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {await shown()}") from None

    def wake(self, name: str = "site-1-cni") -> None:
        """Look again now, as a moved base would."""
        assert self.room is not None
        self.room.queue.add(NamespacedName(self.namespace, name))


@dataclass
class Tenant(Desk):
    """With a bare repository on this machine and a forge in memory."""

    remote: BareRemote
    forge: FakeForge
    git: LocalGit
    key: SshKey
    plain: bool = False
    tokens: list[str] = field(default_factory=list)

    async def prepare(self) -> None:
        """Secrets and the GitSource."""
        await self.secret("proposer", identity=self.key.path.read_text())
        await self.secret("forge", token=TOKEN)
        forge = {
            "provider": "gitea",
            "baseURL": "https://git.example.net",
            "project": "net/fabric",
            "credentialsSecretRef": {"name": "forge"},
        }
        await self.source(url=self.remote.url, **({} if self.plain else {"forge": forge}))

    async def start(self) -> None:
        """A manager begins."""

        def adapter(_source: object, token: str, _ca: bytes | None) -> ForgeAdapter | None:
            self.tokens.append(token)
            return None if self.plain else self.forge

        http = HttpxClient(clock=self.manager.clock)
        self.room = ProposalRoom(
            self.manager,
            git=self.git,
            clones=CloneCache(self.folder / "cache"),
            events=EventRecorder(self.manager, instance="tests"),
            http=http,
            options=Options(allow_file=True, namespace=self.namespace, timing=TIMING, adapter=adapter),
        )
        self.running = asyncio.create_task(run_with(http, self.room.run()))


@asynccontextmanager
async def tenant(
    admin: KubeClient, manager: KubeClient, namespace: str, folder: Path, *, key: SshKey, plain: bool = False
) -> AsyncIterator[Tenant]:
    """A tenant with a running room."""
    await install_crds(admin)
    remote = BareRemote(folder)
    remote.commit({VALUES: TEXT})
    made = Tenant(admin, manager, namespace, folder, remote, FakeForge(remote), LocalGit(), key, plain=plain)
    await made.prepare()
    await made.start()
    try:
        yield made
    finally:
        await made.stop()

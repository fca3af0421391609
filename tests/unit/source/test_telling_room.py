"""The room that tells forges beside that of the sources: what wakes it, and that a forge which hangs delays no source (forges.md, 11.3 and 18)."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.http import HttpxClient
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.kube.config import ClusterConfig
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.informer import Informer
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.source.pulltelling import Pace
from gitops_ctl.source.room import Options as SourceOptions
from gitops_ctl.source.room import SourceRoom
from gitops_ctl.source.tellingroom import Options, Places, TellingRoom
from gitops_ctl.trust.provenance import AcceptedRevisions
from tests.doubles.apiserver import ApiServer, FakeApiServer
from tests.support.forge_run import run_with
from tests.support.git_bare import BareRemote
from tests.support.proposals import LocalGit
from tests.support.sync_cluster import install_crds, until
from tests.support.telling_forge import DirectCheck, TellForge
from tests.support.telling_gitea import SYNC, TIMING
from tests.support.trust import POLICY_PATH, Team, config_map

API = "/apis/gitops-ctl.dev/v1alpha1/namespaces/lab"
CONTEXT = "gitops-ctl/verdict"


class Hanging(TellForge):
    """A forge that takes a connection and never answers."""

    async def set_status(self, sha: str, *, context: str, state: str, text: str, url: str = "") -> bool:
        self.calls["set_status"] += 1
        await asyncio.Event().wait()
        return False


@dataclass
class Running:
    """Both rooms at work."""

    admin: KubeClient
    remote: BareRemote
    team: Team
    root: str
    forge: TellForge
    sources: SourceRoom

    async def accepted(self, commit: str) -> None:
        async def is_accepted() -> bool:
            tree: Any = await self.admin.get(f"{API}/gitsources/network")
            return bool(tree.get("status", {}).get("accepted", {}).get("revision") == commit)

        await until(is_accepted, what=f"{commit} is accepted", timeout_s=15)

    def verdict(self, commit: str) -> tuple[str, str] | None:
        return self.forge.statuses.get((commit, CONTEXT))


async def running(folder: Path, forge: TellForge, stack: AsyncExitStack) -> Running:
    server = await stack.enter_async_context(FakeApiServer(ApiServer(lag=0)))
    admin, manager = [
        await stack.enter_async_context(KubeClient(ClusterConfig(server.url), component=name))
        for name in ("tests", "manager")
    ]
    await admin.create("/api/v1/namespaces", {"metadata": {"name": "lab"}})
    await install_crds(admin)
    team, remote = Team(folder), BareRemote(folder)
    policy = team.policy()
    root = remote.commit({POLICY_PATH: policy, "clusters/a.yaml": config_map("a")}, signer=team["adm"])
    token: JsonObject = {"token": b64encode(b"only-for-tests").decode()}
    await admin.create("/api/v1/namespaces/lab/secrets", {"metadata": {"name": "forge"}, "data": token})
    spec: JsonObject = {
        "url": remote.url,
        "ref": {"branch": "main"},
        "interval": "1h",
        "trust": {"root": {"commit": root, "policyDigest": digest_bytes(policy.encode())}},
        "forge": {
            "provider": "gitea",
            "baseURL": "https://git.example.net",
            "project": "net/fabric",
            "credentialsSecretRef": {"name": "forge"},
        },
    }
    await admin.create(f"{API}/gitsources", _object("GitSource", "network", spec))
    git, clones, revisions = LocalGit(), CloneCache(folder / "cache"), AcceptedRevisions()
    events = EventRecorder(manager, instance="tests")
    http = HttpxClient(clock=manager.clock)
    sources = SourceRoom(
        manager,
        git=git,
        clones=clones,
        revisions=revisions,
        events=events,
        documents=DocumentCache(),
        http=http,
        options=SourceOptions(allow_file=True, timing=TIMING),
    )
    syncs: Informer[JsonObject] = Informer(manager, SYNC, trim=without_managers, timing=TIMING)
    options = Options(
        allow_file=True, adapter=lambda _source, _token, _ca: cast("ForgeAdapter", forge), pace=Pace(status_s=0.05)
    )
    places = Places(sources.informer, syncs, git, clones, revisions)
    tellings = TellingRoom(manager, places, events=events, check=DirectCheck(), http=http, options=options)
    tasks = [asyncio.create_task(work) for work in (syncs.run(), sources.run(), run_with(http, tellings.run()))]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)
    return Running(admin, remote, team, root, forge, sources)


def _object(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": "gitops-ctl.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


async def test_a_forge_that_hangs_delays_no_source(tmp_path: Path, stack: AsyncExitStack) -> None:
    forge = Hanging()
    lab = await running(tmp_path, forge, stack)
    await lab.accepted(lab.root)
    await until(lambda: forge.calls["set_status"] == 1, what="the forge is asked")
    for number in range(3):
        commit = lab.remote.commit({"clusters/a.yaml": config_map("a", v=str(number))}, signer=lab.team["ann"])
        lab.sources.poke(NamespacedName("lab", "network"))
        await lab.accepted(commit)
    assert forge.calls["set_status"] == 1


async def test_sources_and_syncs_that_change_are_told(tmp_path: Path, stack: AsyncExitStack) -> None:
    lab = await running(tmp_path, TellForge(), stack)
    await until(lambda: lab.verdict(lab.root) == ("success", "accepted; no Sync uses this source"))
    spec: JsonObject = {"sourceRef": {"name": "network"}, "serviceAccountName": "applier", "suspend": True}
    await lab.admin.create(f"{API}/syncs", _object("Sync", "site", spec))
    await until(lambda: lab.verdict(lab.root) == ("pending", "accepted; waiting for Sync site (Suspended)"))
    await lab.admin.delete(f"{API}/syncs/site")
    await until(lambda: lab.verdict(lab.root) == ("success", "accepted; no Sync uses this source"))
    unsigned = lab.remote.commit({"clusters/a.yaml": config_map("a", v="9")})
    lab.sources.poke(NamespacedName("lab", "network"))
    await until(lambda: (lab.verdict(unsigned) or ("", ""))[0] == "failure")

"""A source with a forge in memory, a real bare repository with heads of pull requests, and the teller between them, pass by pass."""

import asyncio
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.neutral import Account, Base, Head, PullRequest, Repository
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import FetchRequest, Ref
from gitops_ctl.git.url import parse_url
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.source.pullcheck import check_pull
from gitops_ctl.source.pullreport import Order, PullReport
from gitops_ctl.source.pulltelling import Pace, Ports, PullCheck
from gitops_ctl.source.teller import Teller
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions, Provenance
from tests.support.git_bare import BareRemote
from tests.support.git_repos import Signer
from tests.support.proposals import LocalGit, ManualClock
from tests.support.trust import POLICY_PATH, Team, config_map

KEY = NamespacedName("team-a", "network")
TOKEN = "only-for-tests-0123456789abcdef"
HERE = Repository("1", "net/fabric", "main", "https://git.example.net/net/fabric.git")
AT = datetime(2026, 11, 30, 8, tzinfo=UTC)


@dataclass
class TellForge:
    """What people see at the forge, and how often it was written.

    Attributes:
        fails: asked with the name of each call before it is carried out; an error that it gives is raised.
        project: what stands under the name that the source gives.
    """

    project: Repository = HERE

    pulls: list[PullRequest] = field(default_factory=list)
    statuses: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    fails: Callable[[str], GitopsError | None] = lambda _call: None

    async def repo(self) -> Repository:
        if (error := self.fails("repo")) is not None:
            raise error
        return self.project

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        self._called("list_open")
        return tuple(pr for pr in self.pulls if pr.base.branch == base)[:most]

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        self._called("put_comment")
        wanted = f"{text}\n\n{marker}"
        if self.comments.get(pr.number) != wanted:
            self.comments[pr.number] = wanted
            self.writes.append(f"comment {pr.number}")
        return pr.number

    async def set_status(self, sha: str, *, context: str, state: str, text: str, url: str = "") -> bool:
        self._called("set_status")
        if self.statuses.get((sha, context)) == (state, text):
            return False
        self.statuses[(sha, context)] = (state, text)
        self.writes.append(f"{context} {sha[:7]}")
        return True

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        if (error := self.fails(name)) is not None:
            raise error


@dataclass
class DirectCheck:
    """The check without its process; `orders` are those that were given."""

    orders: list[Order] = field(default_factory=list)
    answer: PullReport | None = None

    async def check(self, order: Order) -> PullReport:
        self.orders.append(order)
        return await asyncio.to_thread(check_pull, order) if self.answer is None else self.answer


class Secrets:
    """An API server that knows the token, and notes what was read."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.read: list[str] = []

    async def get(self, path: str) -> JsonObject:
        self.read.append(path)
        return {"data": {"token": b64encode(self.token.encode()).decode()}}


class Events:
    """Events that were told, as (reason, note)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def emit(self, regarding: JsonObject, *, type: str, reason: str, action: str, note: str) -> None:
        self.told.append((reason, note))


@dataclass
class Office:
    """One source at work.  `status` is that of the GitSource, `syncs` those that name it."""

    folder: Path
    team: Team
    remote: BareRemote
    root: str
    digest: str
    forge: TellForge = field(default_factory=TellForge)
    clock: ManualClock = field(default_factory=ManualClock)
    api: Secrets = field(default_factory=Secrets)
    events: Events = field(default_factory=Events)
    git: LocalGit = field(default_factory=LocalGit)
    check: PullCheck = field(default_factory=DirectCheck)
    pace: Pace = field(default_factory=Pace)
    revisions: AcceptedRevisions = field(default_factory=AcceptedRevisions)
    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    syncs: list[JsonObject] = field(default_factory=list)
    teller: Teller = field(init=False)

    @classmethod
    async def make(cls, folder: Path, **members: Any) -> "Office":
        team = Team(folder)
        policy = team.policy()
        remote = BareRemote(folder)
        root = remote.commit({POLICY_PATH: policy, "clusters/a.yaml": config_map("a", v="1")}, signer=team["adm"])
        office = cls(folder, team, remote, root, digest_bytes(policy.encode()), **members)
        await office.accept(root)
        office.restart()
        return office

    def restart(self) -> None:
        """A new process: what it knew is gone."""
        clones = CloneCache(self.folder / "clones")
        ports = Ports(
            client=cast("KubeClient", self.api),
            git=self.git,
            clones=clones,
            revisions=self.revisions,
            events=cast("EventRecorder", self.events),
            clock=self.clock,
            require_leader=lambda: None,
            adapter=lambda _source, _token, _ca: cast("ForgeAdapter", self.forge),
            check=self.check,
            pace=self.pace,
            allow_file=True,
        )
        self.teller = Teller(ports, lookup=lambda _key: self.tree, syncs=lambda _key: self.syncs)

    async def accept(self, commit: str, **status: Any) -> None:
        """The source has fetched and accepted a commit of main."""
        url = parse_url(self.remote.url, allow_file=True)
        copy = CloneCache(self.folder / "clones").path_for(url, tenant="")
        await self.git.fetch(FetchRequest(url, copy, Ref("branch", "main"), known=self.root))
        condition = {
            "type": "Verified",
            "status": "True",
            "reason": "Accepted",
            "message": "",
            "lastTransitionTime": "2026-11-30T08:00:00Z",
        }
        self.status = {
            "observed": {"revision": commit, "at": "2026-11-30T08:00:00Z"},
            "accepted": {
                "revision": commit,
                "policyDigest": self.digest,
                "keySetDigest": self.digest,
                "root": self.root,
                "verifierVersion": "2",
                "at": "2026-11-30T08:00:00Z",
            },
            "conditions": [condition],
            **status,
        }
        self.revisions.publish(
            AcceptedRevision(
                source=KEY,
                uid="u",
                url=url.display,
                ref="refs/heads/main",
                commit=commit,
                tree="",
                store_path=copy,
                provenance=Provenance(),
                generation=1,
                trusted=True,
                effects_allowed=True,
            )
        )

    @property
    def tree(self) -> JsonObject:
        trust = {"root": {"commit": self.root, "policyDigest": self.digest}}
        forge = {
            "provider": "gitea",
            "baseURL": "https://git.example.net",
            "project": "net/fabric",
            "credentialsSecretRef": {"name": "forge"},
        }
        spec = {"url": self.remote.url, "ref": {"branch": "main"}, "trust": trust, "forge": forge, **self.spec}
        return {
            "apiVersion": "gitops-ctl.dev/v1alpha1",
            "kind": "GitSource",
            "metadata": {"name": KEY.name, "namespace": KEY.namespace, "uid": "u", "generation": 1},
            "spec": spec,
            "status": self.status,
        }

    def pull(
        self,
        number: int,
        files: Mapping[str, str | bytes],
        *,
        signer: Signer | None = None,
        fork: bool = False,
        branch: str = "",
        body: str = "",
    ) -> str:
        """Somebody opens a pull request, or pushes to it; gives its head."""
        person = self.remote.person
        known = next((pr for pr in self.forge.pulls if pr.number == number), None)
        person.branch(f"pull-{number}", at=known.head.sha if known else "main")
        head = person.commit(files, signer=signer, message="change")
        person.git("push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/head")
        person.switch("main")
        made = PullRequest(
            number=number,
            url=f"https://git.example.net/net/fabric/pulls/{number}",
            state="open",
            title="t",
            body=body,
            head=Head("2" if fork else "1", branch or f"topic-{number}", head),
            base=Base("main", self.root, "1"),
            author=Account("network-author", 2),
            created=AT,
            updated=AT,
        )
        self.forge.pulls = [pr for pr in self.forge.pulls if pr.number != number] + [made]
        return head

    def passes(self, seconds: float) -> None:
        """Time goes by."""
        self.clock.now += timedelta(seconds=seconds)

    async def tell(self) -> float | None:
        """One pass."""
        return await self.teller.reconcile(KEY)

    def status_of(self, head: str) -> tuple[str, str] | None:
        return self.forge.statuses.get((head, "gitops-ctl/check"))

    @property
    def verdict(self) -> tuple[str, str] | None:
        return self.forge.statuses.get((self.status["observed"]["revision"], "gitops-ctl/verdict"))

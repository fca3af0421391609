"""One Proposal at work on a real bare repository and a forge in memory, pass by pass, with a crash at any point."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.splice import Edit
from gitops_ctl.forge.carrier import Asked, Carrier, Outcome
from gitops_ctl.forge.content import FileEdit
from gitops_ctl.forge.desk import Authorship, Desk
from gitops_ctl.forge.model import Remembered
from gitops_ctl.forge.text import Told
from gitops_ctl.git import fetch_child, push_child
from gitops_ctl.git.layout import exclusive, prepare_repository
from gitops_ctl.git.pushing import Pushed, PushRefused, PushRequest, result_of
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import Fetched, FetchRequest, Ref, RemoteTip
from gitops_ctl.git.url import parse_url
from gitops_ctl.git.writing import Identity, Signs
from gitops_ctl.trust.signing import load_signer
from tests.support.forge_fake import FakeForge
from tests.support.git_bare import BareRemote
from tests.support.git_keys import SshKey

VALUES = "clusters/site-1/cilium.yaml"
TEXT = "# the CNI of site-1\nkubeProxyReplacement: false  # for now\nhubble:\n  enabled: true\n"
SUBJECT = ObjectId("ichor.maesh.dev", "TalosCluster", "team-a", "site-1")
PURPOSE = "cni/site-1/replaced"
CREATED = datetime(2026, 11, 30, 8, tzinfo=UTC)
ROBOT = Identity("gitops-ctl", "gitops-ctl@example.net")
REPLACE: FileEdit = (VALUES, Edit(0, "/kubeProxyReplacement", "replace", False, True))
ADD: FileEdit = (VALUES, Edit(0, "/k8sServicePort", "add", after=7445))


class Crash(Exception):
    """The process ends here."""


def no_point(_call: str, _when: str) -> None:
    """Nothing happens."""


class LocalGit:
    """The product's fetch and push without their processes.  `pushes` are those that the server took."""

    def __init__(self, point: Callable[[str, str], None] = no_point) -> None:
        self.point = point
        self.pushes: list[PushRequest] = []
        self.refuse: Callable[[PushRequest], str] = lambda _request: ""
        self.between: Callable[[PushRequest], None] = lambda _request: None

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        self.point("resolve", "before")
        bare = BareRemoteReader(request)
        return RemoteTip(bare.tip(), None)

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.point("fetch", "before")
        with exclusive(request.repository):
            prepare_repository(request.repository)
            found = fetch_child.fetch(request)
        self.point("fetch", "after")
        return Fetched(str(found["tip"]), None, bool(found["changed"]), False, 0, True)

    async def push(self, request: PushRequest) -> Pushed:
        self.point("push", "before")
        self.between(request)
        if why := self.refuse(request):
            raise PushRefused(why)
        pushed = result_of(push_child.push(request), request)
        self.pushes.append(request)
        self.point("push", "after")
        return pushed

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None:
        raise AssertionError("a small copy is never collected")


@dataclass(frozen=True)
class BareRemoteReader:
    """Refs of the repository that a request names."""

    request: FetchRequest

    def tip(self) -> str | None:
        place = Path(self.request.url.path) / self.request.ref.full
        return place.read_text().strip() if place.exists() else None


class ManualClock:
    """Sleeps return at once; `slept` are their seconds."""

    def __init__(self) -> None:
        self.now = CREATED
        self.slept: list[float] = []

    def boot_s(self) -> float:
        return (self.now - CREATED).total_seconds()

    def wall(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Desktop:
    """What a manager and the world hold: `status` is the stored memory of the one Proposal."""

    folder: Path
    remote: BareRemote
    forge: FakeForge
    git: LocalGit
    signer: Signs
    edits: tuple[FileEdit, ...] = (REPLACE,)
    operation: str = "op-1"
    status: Remembered = field(default_factory=Remembered)
    clock: ManualClock = field(default_factory=ManualClock)
    point: Callable[[str, str], None] = no_point
    plain: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    written: list[Remembered] = field(default_factory=list)
    lives: Iterable[int] = field(default_factory=itertools.count)
    clones: CloneCache | None = None

    @classmethod
    def make(cls, folder: Path, *, key: SshKey, **more: Any) -> "Desktop":
        remote = BareRemote(folder)
        remote.commit({VALUES: TEXT, "README.md": "# network\n"})
        signer = load_signer({"identity": key.path.read_bytes()})
        return cls(folder, remote, FakeForge(remote), LocalGit(), signer, **more)

    @property
    def branch(self) -> str:
        return self.asked().first_branch

    def asked(self, **more: Any) -> Asked:
        told = Told(SUBJECT, PURPOSE, "site-1 waits", self.edits, (), "", "", None)
        return Asked(told, self.operation, **{**self.options, **more})

    def watch(self, point: Callable[[str, str], None]) -> None:
        """`point` sees each I/O of the next passes."""
        self.point = self.forge.point = self.git.point = point

    def restart(self) -> None:
        """A new process: memory is what the status holds; the copies on disk are what they are."""
        self.clones = None

    async def run(self, **more: Any) -> Outcome:
        """One pass, and what it remembers."""
        self.clones = self.clones or CloneCache(self.folder / "cache")
        request = FetchRequest(parse_url(self.remote.url, allow_file=True), Path(), Ref("branch", "main"))
        async with Desk(self.git, self.clones, request, push_credentials=None, tenant="t") as desk:
            carrier = Carrier(
                self.asked(**more),
                desk=desk,
                forge=None if self.plain else self.forge,
                by=Authorship(ROBOT, CREATED, self.signer),
                remembered=self.status,
                record=self._record,
                clock=self.clock,
            )
            try:
                outcome = await carrier.run()
            except Exception as error:
                if not isinstance(error, Crash):
                    self.status = replace(carrier.remembered)
                raise
            await self._record(carrier.remembered)
            return outcome

    async def _record(self, remembered: Remembered) -> None:
        self.point("record", "before")
        if remembered != self.status:
            self.status = remembered
            self.written.append(remembered)
        self.point("record", "after")

    async def settle(self, **more: Any) -> Outcome:
        """Passes until one changes nothing."""
        while True:
            before = (len(self.git.pushes), self.status, dict(self.forge.pulls))
            outcome = await self.run(**more)
            if before == (len(self.git.pushes), self.status, dict(self.forge.pulls)):
                return outcome

    def commits_of(self, branch: str) -> int:
        """Commits that the branch has and main lacks."""
        return int(self.remote.git("rev-list", "--count", f"main..{branch}"))


def require_one_of_everything(desk: Desktop, where: str, *, pushes: int = 1) -> None:
    """One pull request with one commit of ours, and no push more than there had to be."""
    assert len(desk.forge.pulls) == 1, where
    assert desk.commits_of(desk.branch) == 1, where
    assert len(desk.git.pushes) == pushes, where

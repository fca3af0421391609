"""Tells the authors of open pull requests what a check says: one comment and one commit status for each (forges.md, section 11.3).

Rules:
  * One check per head; the newest 50 pull requests; at most one edit of a comment in a minute.  Nothing is sent twice.
  * The comment is made once and then updated in place.  Our own proposals get the status alone.
  * A head that cannot be fetched or read is a finding where that is the head's fault, and is tried again with a backoff where it is not.
  * A right that is missing is told once per repository; the check and what needs no such right go on.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from gitops_ctl.api.gitops import GitSource
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.errors import Forbidden, GitopsError, TransientError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.forge import access
from gitops_ctl.forge.adapter import ForgeAdapter
from gitops_ctl.forge.controller import Adapter
from gitops_ctl.forge.errors import TokenRejected
from gitops_ctl.forge.marker import MarkerState, read_marker
from gitops_ctl.forge.neutral import PullRequest, Repository, StatusState
from gitops_ctl.forge.project import of_project
from gitops_ctl.git.repository import CloneCache
from gitops_ctl.git.transport import FetchLimits, FetchRequest, GitTransport, Ref
from gitops_ctl.git.url import parse_url
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.source.durable import first_seen_of
from gitops_ctl.source.pullheads import HeadWanted, fetched_head
from gitops_ctl.source.pullreport import Order, PullReport, report_of_error
from gitops_ctl.source.pulltext import CONTEXT, MARKER, check_status, comment_of
from gitops_ctl.source.summarise import error_text
from gitops_ctl.trust.provenance import AcceptedRevision, AcceptedRevisions

MOST_PULLS: Final = 50
CHECKS_PER_PASS: Final = 4
"""Then the verdict is looked at again: a forge full of pull requests does not hold it back."""

OWN_BRANCHES: Final = "gitops-ctl/"
_LONGEST_RETRY_S: Final = 3600.0
_FAULTS_OF_HEADS: Final = frozenset(
    {ErrorCode.FETCH_TOO_LARGE, ErrorCode.MALFORMED_OBJECT, ErrorCode.OBJECT_TOO_LARGE, ErrorCode.TREE_LIMIT}
)

log = structlog.get_logger(__name__)


class PullCheck(Protocol):
    """What looks at a head; `PullChild` does it in a process of its own."""

    async def check(self, order: Order) -> PullReport: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two looks at the list, two statuses of a tip, two edits of a comment, and two tries of what was refused."""

    poll_s: float = 60.0
    status_s: float = 10.0
    comment_s: float = 60.0
    refused_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a pass reaches the world through."""

    client: KubeClient
    git: GitTransport
    clones: CloneCache
    revisions: AcceptedRevisions
    events: EventRecorder
    clock: Clock
    require_leader: Callable[[], None]
    adapter: Adapter
    check: PullCheck
    pace: Pace = field(default_factory=Pace)
    allow_file: bool = False


@dataclass(slots=True)
class Pull:
    """One open pull request between passes; `status` is empty while its head is not checked."""

    head: str = ""
    status: tuple[StatusState, str] | None = None
    status_sent: bool = False
    status_due_s: float = 0.0
    comment: str = ""
    comment_sent: str = ""
    comment_due_s: float = 0.0
    failures: int = 0
    retry_due_s: float = 0.0


@dataclass(slots=True)
class Told:
    """What a process remembers of one source; a restarted one asks the forge.

    Attributes:
        refused: calls whose refusal was told already, and `project` when that is not to be had.
    """

    due_s: float = 0.0
    pulls: dict[int, Pull] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Post:
    """Sends one thing to the forge of one source."""

    ports: Ports
    tree: JsonObject
    told: Told

    async def send(self, what: str, work: Callable[[], Awaitable[object]]) -> bool:
        """Whether it was taken; a missing right is told, once.

        Args:
            what: `comments` or `statuses`.
            work: the call.

        Raises:
            GitopsError: any other error of the call.
        """
        self.ports.require_leader()
        try:
            await work()
        except Forbidden as error:
            if what not in self.told.refused:
                self.told.refused.add(what)
                note = f"the forge takes no {what} from us: {error_text(error)}"
                log.warning("forge refuses", what=what, source=str(NamespacedName.of(self.tree)), error=note)
                self.ports.events.emit(self.tree, type="Warning", reason=error.reason, action="Tell", note=note)
            return False
        self.told.refused.discard(what)
        return True


class PullTelling:
    """One look at the pull requests of one source."""

    def __init__(
        self, post: Post, *, source: GitSource, adapter: ForgeAdapter, project: Repository, revision: AcceptedRevision
    ) -> None:
        """`revision` is the accepted base, `project` what the forge shows under the name that the source gives."""
        self._post = post
        self._ports, self._told = post.ports, post.told
        self._source = source
        self._adapter = adapter
        self._project = project
        self._revision = revision
        self._request: FetchRequest | None = None

    async def run(self) -> float:
        """Tell what is new; gives the seconds until the next look.

        Raises:
            GitopsError: the forge cannot be asked at all.
        """
        told, pace = self._told, self._ports.pace
        pulls = await self._adapter.list_open(self._source.spec.ref.branch or "", most=MOST_PULLS)
        for pr in pulls:
            of_project(pr, self._project)
        told.pulls = {pr.number: told.pulls.get(pr.number) or Pull() for pr in pulls}
        checks = CHECKS_PER_PASS
        for pr in pulls:
            pull = told.pulls[pr.number]
            if self._is_check_due(pr, pull):
                if not checks:
                    return 0.0
                checks -= 1
                await self._check(pr, pull)
            await self._tell(pr, pull)
        return min((pace.poll_s, *self._waits(told.pulls.values())))

    def _now_s(self) -> float:
        return self._ports.clock.boot_s()

    def _waits(self, pulls: Iterable[Pull]) -> Iterable[float]:
        """Seconds until a text that is ready may be sent."""
        now_s = self._now_s()
        return (
            max(0.0, pull.comment_due_s - now_s) for pull in pulls if pull.comment and pull.comment != pull.comment_sent
        )

    def _is_check_due(self, pr: PullRequest, pull: Pull) -> bool:
        if pull.head != pr.head.sha:
            pull.head, pull.status, pull.status_sent = pr.head.sha, None, False
            pull.failures, pull.retry_due_s = 0, 0.0
        return pull.status is None and self._now_s() >= pull.retry_due_s

    async def _check(self, pr: PullRequest, pull: Pull) -> None:
        try:
            report = await self._report(pr)
        except GitopsError as error:
            if error.code not in _FAULTS_OF_HEADS:
                self._put_off(pr, pull, error_text(error))
                return
            report = report_of_error(error)
        if report.unready:
            self._put_off(pr, pull, report.unready)
            return
        pull.status, pull.failures = check_status(report), 0
        if not is_own(pr):
            pull.comment = comment_of(report, head=pr.head.sha, base_branch=pr.base.branch)

    def _put_off(self, pr: PullRequest, pull: Pull, why: str) -> None:
        pull.failures += 1
        wait_s = min(_LONGEST_RETRY_S, self._ports.pace.poll_s * 2.0 ** min(pull.failures - 1, 10))
        pull.retry_due_s = self._now_s() + wait_s
        log.info("pull request not checked", source=str(self._revision.source), number=pr.number, error=why)

    async def _tell(self, pr: PullRequest, pull: Pull) -> None:
        """Send what differs; what one pull request does not take is tried again later and stops no other one."""
        try:
            await self._tell_status(pr, pull)
            await self._tell_comment(pr, pull)
        except (TokenRejected, TransientError):
            raise
        except GitopsError as error:
            later_s = self._now_s() + self._ports.pace.refused_s
            pull.status_due_s = pull.comment_due_s = later_s
            log.warning("pull request not told", source=str(self._revision.source), error=error_text(error))

    async def _tell_status(self, pr: PullRequest, pull: Pull) -> None:
        if pull.status is None or pull.status_sent or self._now_s() < pull.status_due_s:
            return
        state, text = pull.status

        async def send() -> None:
            await self._adapter.set_status(pr.head.sha, context=CONTEXT, state=state, text=text)

        pull.status_sent = await self._post.send("statuses", send)
        if not pull.status_sent:
            pull.status_due_s = self._now_s() + self._ports.pace.refused_s

    async def _tell_comment(self, pr: PullRequest, pull: Pull) -> None:
        if not pull.comment or pull.comment == pull.comment_sent or self._now_s() < pull.comment_due_s:
            return

        async def send() -> None:
            await self._adapter.put_comment(pr, marker=MARKER, text=pull.comment)

        taken = await self._post.send("comments", send)
        if taken:
            pull.comment_sent = pull.comment
        pull.comment_due_s = self._now_s() + (self._ports.pace.comment_s if taken else self._ports.pace.refused_s)

    async def _report(self, pr: PullRequest) -> PullReport:
        trust, forge = self._source.spec.trust, self._source.spec.forge
        assert trust is not None
        assert forge is not None
        if self._request is None:
            self._request = await self._fetch_request()
        wanted = HeadWanted(
            request=self._request,
            copy=self._revision.store_path,
            base=self._revision.commit,
            root=trust.root.commit,
            provider=forge.provider,
            number=pr.number,
            head=pr.head.sha,
        )
        async with fetched_head(wanted, git=self._ports.git, clones=self._ports.clones) as repository:
            return await self._ports.check.check(self._order(pr, repository=str(repository)))

    def _order(self, pr: PullRequest, *, repository: str) -> Order:
        spec, metadata = self._source.spec, self._source.metadata
        assert spec.trust is not None
        return Order(
            repository=repository,
            base=self._revision.commit,
            head=pr.head.sha,
            url=self._revision.url,
            ref=self._revision.ref,
            root=spec.trust.root.commit,
            root_digest=spec.trust.root.policy_digest,
            policy_path=spec.trust.policy_path,
            source=(metadata.namespace, metadata.name),
            first_seen=tuple((seen.tip, seen.at) for seen in first_seen_of(self._source.status).tips),
            now=self._ports.clock.wall(),
            entries=spec.limits.entries,
            depth=spec.limits.depth,
            is_fork=pr.is_fork,
        )

    async def _fetch_request(self) -> FetchRequest:
        spec, client = self._source.spec, self._ports.client
        return FetchRequest(
            url=parse_url(spec.url, allow_file=self._ports.allow_file),
            repository=self._revision.store_path,
            ref=Ref("branch", spec.ref.branch or ""),
            credentials=await access.read_credentials(client, source=self._source),
            ca=await access.read_authorities(client, source=self._source),
            known_hosts=await access.read_known_hosts(client, source=self._source),
            limits=FetchLimits(
                objects=spec.limits.objects, bytes=spec.limits.bytes, timeout_s=to_seconds(spec.timeout)
            ),
        )


def is_own(pr: PullRequest) -> bool:
    """Whether it is one of our proposals: a branch of ours in this very repository, and a text with our marker."""
    ours = pr.head.branch.startswith(OWN_BRANCHES) and read_marker(pr.body) is not MarkerState.ABSENT
    return ours and not pr.is_fork

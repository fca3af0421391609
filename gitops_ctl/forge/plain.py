"""Plain Git: no forge, only branches (forges.md, section 7).

A pushed branch is the proposal; a person opens and merges the change by hand.  "Open" means that the branch exists and base does not contain
its tip; whether base has the change is decided from content by whoever knows it, never here.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from gitops_ctl.core.clock import Clock
from gitops_ctl.forge.errors import Gone, NotOffered
from gitops_ctl.forge.neutral import (
    Account,
    Base,
    Branch,
    Comment,
    Head,
    MergeState,
    PullRequest,
    PullState,
    Repository,
    Review,
    StatusState,
)

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HERE: Final = "plain"


class BranchReader(Protocol):
    """The remote's branches, as the last fetch saw them."""

    async def tips(self) -> Mapping[str, str]:
        """Branch name to commit id."""
        ...

    async def contains(self, base: str, *, commit: str) -> bool:
        """Whether the branch `base` has `commit` in its history."""
        ...

    async def default_branch(self) -> str:
        """The branch that the remote's HEAD names, empty when it names none."""
        ...


class PlainAdapter:
    """One repository without a forge.  Texts, comments, reviews and statuses have no place there: they are dropped or empty."""

    name = "plain"

    def __init__(self, branches: BranchReader, *, url: str, clock: Clock) -> None:
        self._branches = branches
        self._url = url
        self._clock = clock

    async def repo(self) -> Repository:
        return Repository(_HERE, self._url, await self._branches.default_branch(), self._url)

    async def branch(self, name: str) -> Branch | None:
        sha = (await self._branches.tips()).get(name)
        return None if sha is None else Branch(name, sha)

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        tips = await self._branches.tips()
        sha = tips.get(head_branch)
        if sha is None or base not in tips or await self._branches.contains(base, commit=sha):
            return None
        return self._request(head_branch, base=base, tips=tips)

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        """None: which branches are meant for `base` nobody knows."""
        return ()

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        """None: there are no bodies; the branch name finds it."""
        return ()

    async def get(self, number: int) -> PullRequest:
        raise NotOffered(f"{self._url}: plain Git has no pull request {number}; look at the branch")

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        """The pushed branch itself; the change is opened by hand."""
        tips = await self._branches.tips()
        if head not in tips:
            raise Gone(f"{self._url}: the branch {head} is not there")
        return self._request(head, base=base, tips=tips, title=title, body=body)

    async def update(
        self,
        pr: PullRequest,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: tuple[str, ...] | None = None,
    ) -> PullRequest:
        return pr

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        return ()

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        return 0

    async def close(self, pr: PullRequest, *, reason: str) -> PullRequest:
        """The branch stays: it may have moved since."""
        raise NotOffered(f"{self._url}: plain Git cannot close a proposal; delete the branch {pr.head.branch} by hand")

    async def reopen(self, pr: PullRequest) -> PullRequest:
        if await self.branch(pr.head.branch) is None:
            raise Gone(f"{self._url}: the branch {pr.head.branch} is not there")
        return pr

    async def reviews(self, pr: PullRequest) -> tuple[Review, ...]:
        return ()

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        return None

    async def merge_state(self, pr: PullRequest) -> MergeState:
        """Merged as far as commits tell: base contains the tip.  A squash is seen only by its content."""
        tips = await self._branches.tips()
        base = tips.get(pr.base.branch, "")
        head = tips.get(pr.head.branch)
        if base and await self._branches.contains(pr.base.branch, commit=head or pr.head.sha):
            return MergeState("merged", head or pr.head.sha, base, None)
        state: PullState = "open" if head else "closed"
        return MergeState(state, head or pr.head.sha, base, None, blocked=("merge it by hand",) if head else ())

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        return False

    async def verification(self, sha: str) -> str:
        return "not checked by a forge"

    def _request(
        self, head: str, *, base: str, tips: Mapping[str, str], title: str = "", body: str = ""
    ) -> PullRequest:
        now = self._clock.wall()
        return PullRequest(
            number=0,
            url="",
            state="open",
            title=title,
            body=body,
            head=Head(_HERE, head, tips[head]),
            base=Base(base, tips.get(base, ""), _HERE),
            author=Account(),
            created=_LONG_AGO,
            updated=now,
        )

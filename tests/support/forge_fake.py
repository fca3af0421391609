"""A forge in memory over a real bare repository: pull requests whose heads are the repository's branches.

It behaves as forges do where that matters: a deleted head branch closes, a merge button is not pressed by us, an update with an older
version is a conflict.  `point` is told each call before and after, and may raise: a crash, or a lost reply.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from gitops_ctl.forge.conversation import CLOSE_MARKER, with_marker
from gitops_ctl.forge.errors import AlreadyExists, Conflict, ForbiddenOrMissing, Gone
from gitops_ctl.forge.neutral import (
    Account,
    Base,
    Branch,
    Comment,
    Head,
    MergeState,
    PullRequest,
    Repository,
    Review,
    StatusState,
)
from tests.support.git_bare import BareRemote

BOT = Account("bot", 1)
PERSON = Account("change-approver", 2)
START = datetime(2026, 11, 30, 8, tzinfo=UTC)
Value = TypeVar("Value")


class FakeForge:
    """One project; `calls` counts by name, `changes` those that write."""

    name = "fake"

    def __init__(self, remote: BareRemote, *, point: Callable[[str, str], None] = lambda _call, _when: None) -> None:
        self.remote = remote
        self.point = point
        self.calls: Counter[str] = Counter()
        self.pulls: dict[int, PullRequest] = {}
        self.said: dict[int, list[Comment]] = {}
        self.reviewed: dict[int, list[Review]] = {}
        self.labels_allowed = True
        self.stale_heads = 0
        self.project = Repository("here", "net/fabric", "main", "https://git.example.net/net/fabric.git")
        self._minutes = 0

    # -- what people do ----------------------------------------------------------------------------------------------

    def closed_by_person(self, number: int) -> None:
        self.pulls[number] = replace(self.pulls[number], state="closed")

    def reopened_by_person(self, number: int) -> None:
        self.pulls[number] = replace(self.pulls[number], state="open")

    def merged_by_person(self, number: int, *, how: str = "merge") -> str:
        sha = self.remote.merge(self.pulls[number].head.branch, how=how)
        self.pulls[number] = replace(self._fresh(number), state="merged", merge_sha=sha, merged_by=PERSON)
        return sha

    def edited_by_person(self, number: int, body: str) -> None:
        pr = self.pulls[number]
        self.pulls[number] = replace(pr, body=body, version=(pr.version or 0) + 1)

    def opened_by_person(self, branch: str, *, body: str, fork: bool = False) -> int:
        return self._new(
            branch, "main", title="t", body=body, author=PERSON, repository="fork" if fork else "here"
        ).number

    def open(self) -> list[PullRequest]:
        return [pr for number in sorted(self.pulls) if (pr := self._fresh(number)).state == "open"]

    # -- the protocol ------------------------------------------------------------------------------------------------

    async def repo(self) -> Repository:
        return await self._call("repo", lambda: self.project)

    async def branch(self, name: str) -> Branch | None:
        return Branch(name, self.remote.head(name)) if name in self.remote.branches() else None

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        def find() -> PullRequest | None:
            return next((pr for pr in self.open() if pr.head.branch == head_branch and not pr.is_fork), None)

        return await self._call("find_open", find)

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        return tuple(self.open()[:most])

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        def find() -> tuple[PullRequest, ...]:
            newest = [self._fresh(number) for number in sorted(self.pulls, reverse=True)][:most]
            return tuple(pr for pr in newest if marker in pr.body)

        return await self._call("find_by_marker", find)

    async def get(self, number: int) -> PullRequest:
        return await self._call("get", lambda: self._shown(self._fresh(number)))

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        def make() -> PullRequest:
            if head not in self.remote.branches():
                raise Gone(f"the branch {head} is not there")
            if any(pr.head.branch == head and not pr.is_fork for pr in self.open()):
                raise AlreadyExists(f"there is one of {head} already")
            kept = labels if self.labels_allowed else ()
            return self._shown(self._new(head, base, title=title, body=body, author=BOT, labels=kept))

        return await self._call("create", make)

    async def update(
        self,
        pr: PullRequest,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: tuple[str, ...] | None = None,
    ) -> PullRequest:
        def change() -> PullRequest:
            now = self._fresh(pr.number)
            if now.version != pr.version:
                raise Conflict("the text was changed meanwhile")
            self.pulls[pr.number] = replace(
                now, body=now.body if body is None else body, version=(now.version or 0) + 1
            )
            return self._shown(self._fresh(pr.number))

        return await self._call("update", change)

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        return await self._call("comments", lambda: tuple(self.said.get(pr.number, ())))

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        def put() -> int:
            said = self.said.setdefault(pr.number, [])
            wanted = Comment(len(said) + 1, BOT, with_marker(text, marker), START)
            for place, comment in enumerate(said):
                if marker in comment.text and comment.author == BOT:
                    said[place] = replace(wanted, id=comment.id)
                    return comment.id
            said.append(wanted)
            return wanted.id

        return await self._call("put_comment", put)

    async def close(self, pr: PullRequest, *, reason: str) -> PullRequest:
        await self.put_comment(pr, marker=CLOSE_MARKER, text=reason)

        def close() -> PullRequest:
            self.pulls[pr.number] = replace(self._fresh(pr.number), state="closed")
            return self.pulls[pr.number]

        return await self._call("close", close)

    async def reopen(self, pr: PullRequest) -> PullRequest:
        def reopen() -> PullRequest:
            if pr.head.branch not in self.remote.branches():
                raise Gone("its branch is gone")
            self.pulls[pr.number] = replace(self._fresh(pr.number), state="open")
            return self._fresh(pr.number)

        return await self._call("reopen", reopen)

    async def reviews(self, pr: PullRequest) -> tuple[Review, ...]:
        return await self._call("reviews", lambda: tuple(self.reviewed.get(pr.number, ())))

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        return next((pr for pr in self.pulls.values() if pr.merge_sha == sha), None)

    async def merge_state(self, pr: PullRequest) -> MergeState:
        now = self._fresh(pr.number)
        return await self._call("merge_state", lambda: MergeState(now.state, now.head.sha, now.base.sha, True))

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        return True

    async def verification(self, sha: str) -> str:
        return "verified"

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _call(self, name: str, work: Callable[[], Value]) -> Value:
        self.calls[name] += 1
        self.point(name, "before")
        found = work()
        self.point(name, "after")
        return found

    def _new(
        self,
        branch: str,
        base: str,
        *,
        title: str,
        body: str,
        author: Account,
        labels: tuple[str, ...] = (),
        repository: str = "here",
    ) -> PullRequest:
        number = len(self.pulls) + 1
        self._minutes += 1
        now = START + timedelta(minutes=self._minutes)
        sha = self.remote.head(branch) if branch in self.remote.branches() else "0" * 40
        self.pulls[number] = PullRequest(
            number=number,
            url=f"https://git.example.net/net/fabric/pulls/{number}",
            state="open",
            title=title,
            body=body,
            head=Head(repository, branch, sha),
            base=Base(base, self.remote.head(base), "here"),
            author=author,
            created=now,
            updated=now,
            labels=labels,
            version=1,
        )
        return self.pulls[number]

    def _fresh(self, number: int) -> PullRequest:
        """As the forge sees it now: heads move with their branch, and a deleted one closes."""
        if number not in self.pulls:
            raise ForbiddenOrMissing(f"pulls/{number}: not found or not permitted")
        pr = self.pulls[number]
        if pr.state != "merged" and not pr.is_fork:
            if pr.head.branch not in self.remote.branches():
                pr = replace(pr, state="closed")
            elif pr.state == "open":
                pr = replace(pr, head=replace(pr.head, sha=self.remote.head(pr.head.branch)))
            self.pulls[number] = pr
        return pr

    def _shown(self, pr: PullRequest) -> PullRequest:
        """Forges show a new head late."""
        if self.stale_heads:
            self.stale_heads -= 1
            return replace(pr, head=replace(pr.head, sha="0" * 40))
        return pr

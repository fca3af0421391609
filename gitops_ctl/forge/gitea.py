"""Gitea and Forgejo, REST `/api/v1` (forges.md, section 6).

What differs from what one expects, each seen on the real server: the list of pull requests has no filter for the head; an open one can be
without any difference; after its branch was deleted the head's ref is rewritten and only its label keeps the name; an update answers 201;
`mergeable: false` also means that the server still compares.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from gitops_ctl.core.errors import Forbidden, Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.forge.calls import Calls, Reply, first, moment, moment_or_none, next_link, segment
from gitops_ctl.forge.conversation import (
    CLOSE_MARKER,
    LABEL_COLOUR,
    LABEL_TEXT,
    account_at,
    account_or_none,
    own_comment,
    status_text,
    with_marker,
)
from gitops_ctl.forge.errors import AlreadyExists, BaseMissing, Conflict, Gone, RepositoryUnavailable
from gitops_ctl.forge.neutral import (
    Base,
    Branch,
    Comment,
    Head,
    MergeState,
    PullRequest,
    Repository,
    Review,
    ReviewState,
    StatusState,
    approvals,
    latest_reviews,
)

_READ: Final = "read access to the repository"
_PULLS: Final = "write access to pull requests"
_ISSUES: Final = "write access to issues"
_USER: Final = "the scope read:user"
_STATUSES: Final = "write access to the repository"
_PAGE: Final = "50"

_REVIEW_STATES: Final[dict[str, ReviewState]] = {
    "APPROVED": "approved",
    "REQUEST_CHANGES": "changes_requested",
    "COMMENT": "commented",
    "PENDING": "pending",
}
"""A requested review is none."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the two servers do differently: the name, and whether a body has an optimistic lock."""

    name: Literal["gitea", "forgejo"]
    locks: bool


GITEA: Final = Dialect("gitea", locks=True)
FORGEJO: Final = Dialect("forgejo", locks=False)


class GiteaAdapter:
    """One project of a Gitea or Forgejo server."""

    def __init__(self, calls: Calls, *, project: str) -> None:
        self._calls = calls
        self._project = project
        self._root = "/repos/" + "/".join(segment(part) for part in project.split("/"))
        self._dialect: Dialect | None = None
        self._login = ""

    @property
    def name(self) -> str:
        return (self._dialect or GITEA).name

    async def repo(self) -> Repository:
        await self._know_dialect()
        tree = (await self._calls.get(self._root, right=_READ)).object
        full_name = text_at(tree, "full_name")
        if full_name.lower() != self._project.lower():
            raise RepositoryUnavailable(f"the project {self._project} was moved to {full_name}")
        return Repository(
            id=str(int_at(tree, "id")),
            full_name=full_name,
            default_branch=text_at(tree, "default_branch"),
            clone_url=text_at(tree, "clone_url"),
            archived=bool_at(tree, "archived"),
            can_push=bool_at(tree, "permissions", "push"),
        )

    async def branch(self, name: str) -> Branch | None:
        tree = await self._branch_tree(name)
        if tree is None:
            return None
        return Branch(
            name=name,
            sha=text_at(tree, "commit", "id"),
            protected=bool_at(tree, "protected"),
            can_push=bool_at(tree, "user_can_push"),
            required_approvals=int_at(tree, "required_approvals"),
        )

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        async for pr in self._listed("open", base=base):
            if pr.head.branch == head_branch and not pr.is_fork:
                return pr
        return None

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        return tuple([pr async for pr in first(self._listed("open", base=base), most)])

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        return tuple([pr async for pr in first(self._listed("all"), most) if marker in pr.body])

    async def get(self, number: int) -> PullRequest:
        return self._pull((await self._calls.get(f"{self._root}/pulls/{number}", right=_READ)).object)

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        wanted: JsonObject = {"head": head, "base": base, "title": title, "body": body}
        reply = await self._calls.try_send("POST", f"{self._root}/pulls", wanted)
        if reply.status != 201:
            await self._refuse_create(reply, head=head, base=base)
        pr = self._pull(reply.object)
        return await self._labelled(pr, labels)

    async def update(
        self,
        pr: PullRequest,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: tuple[str, ...] | None = None,
    ) -> PullRequest:
        wanted: dict[str, JsonValue] = {}
        if title is not None:
            wanted["title"] = title
        if body is not None:
            wanted["body"] = body
        if wanted:
            if pr.version is not None:
                wanted["content_version"] = pr.version
            pr = await self._patched(pr, wanted)
        return await self._labelled(pr, labels or ())

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        # This list has no pages: it is always whole.
        found = (await self._calls.get(f"{self._root}/issues/{pr.number}/comments", right=_READ)).objects
        return tuple(
            Comment(int_at(tree, "id"), account_at(tree, "user"), text_at(tree, "body"), moment(tree, "updated_at"))
            for tree in found
        )

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        wanted = with_marker(text, marker)
        found = own_comment(await self.comments(pr), own=await self._own_login(), marker=marker)
        if found is None:
            path = f"{self._root}/issues/{pr.number}/comments"
            return int_at((await self._calls.send("POST", path, {"body": wanted}, right=_ISSUES)).object, "id")
        if found.text != wanted:
            path = f"{self._root}/issues/comments/{found.id}"
            await self._calls.send("PATCH", path, {"body": wanted}, right=_ISSUES)
        return found.id

    async def close(self, pr: PullRequest, *, reason: str) -> PullRequest:
        await self.put_comment(pr, marker=CLOSE_MARKER, text=reason)
        return await self._patched(pr, {"state": "closed"})

    async def reopen(self, pr: PullRequest) -> PullRequest:
        if await self.branch(pr.head.branch) is None:
            raise Gone(f"the branch {pr.head.branch} of pull request {pr.number} is not there")
        return await self._patched(pr, {"state": "open"})

    async def reviews(self, pr: PullRequest) -> tuple[Review, ...]:
        found = [
            _review(tree, head=pr.head.sha)
            async for tree in self._pages(f"/pulls/{pr.number}/reviews")
            if text_at(tree, "state") in _REVIEW_STATES
        ]
        return tuple(sorted(found, key=lambda each: each.at))

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        reply = await self._calls.find(f"{self._root}/commits/{segment(sha)}/pull", right=_READ)
        if reply is None:
            return None
        pr = self._pull(reply.object)
        return pr if pr.state == "merged" and pr.merge_sha == sha else None

    async def merge_state(self, pr: PullRequest) -> MergeState:
        fresh = await self.get(pr.number)
        return MergeState.of(fresh, blocked=await self._blocked(fresh) if fresh.state == "open" else ())

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        line = status_text(text)
        now = [
            tuple(text_at(tree, name) for name in ("context", "status", "description", "target_url"))
            for tree in objects_at(await self._statuses(sha), "statuses")
        ]
        if (context, state, line, url) in now:
            return False
        wanted: JsonObject = {"context": context, "state": state, "description": line, "target_url": url}
        await self._calls.send("POST", f"{self._root}/statuses/{segment(sha)}", wanted, right=_STATUSES)
        return True

    async def verification(self, sha: str) -> str:
        tree = (await self._calls.get(f"{self._root}/git/commits/{segment(sha)}", right=_READ)).object
        said = object_at(tree, "commit", "verification")
        return "verified" if bool_at(said, "verified") else text_at(said, "reason", default="unverified")

    async def _know_dialect(self) -> None:
        if self._dialect is not None:
            return
        version = text_at((await self._calls.get("/version", right=_READ)).object, "version")
        if "+gitea-" in version:
            self._dialect = FORGEJO
            return
        own = replace(self._calls, base=self._calls.base.removesuffix("/v1") + "/forgejo/v1")
        self._dialect = GITEA if await own.find("/version", right=_READ) is None else FORGEJO

    async def _own_login(self) -> str:
        if not self._login:
            self._login = text_at((await self._calls.get("/user", right=_USER)).object, "login")
        return self._login

    async def _branch_tree(self, name: str) -> JsonObject | None:
        reply = await self._calls.find(f"{self._root}/branches/{segment(name)}", right=_READ)
        return None if reply is None else reply.object

    async def _statuses(self, sha: str) -> JsonObject:
        query = {"limit": _PAGE}
        return (await self._calls.get(f"{self._root}/commits/{segment(sha)}/status", right=_READ, query=query)).object

    def _pages(self, path: str, **query: str) -> AsyncIterator[JsonObject]:
        return self._calls.pages(
            f"{self._root}{path}", right=_READ, query={"limit": _PAGE, **query}, next_page=next_link
        )

    async def _listed(self, state: str, *, base: str = "") -> AsyncIterator[PullRequest]:
        narrowed = {"base_branch": base} if base else {}
        async for tree in self._pages("/pulls", state=state, sort="recentupdate", **narrowed):
            pr = self._pull(tree)
            if not base or pr.base.branch == base:
                yield pr

    async def _patched(self, pr: PullRequest, wanted: JsonObject) -> PullRequest:
        reply = await self._calls.send("PATCH", f"{self._root}/pulls/{pr.number}", wanted, right=_PULLS)
        return self._pull(reply.object)

    async def _refuse_create(self, reply: Reply, *, head: str, base: str) -> None:
        """Raise what a refused creation means; a missing branch is a 404, as a missing right is."""
        if reply.status == 409:
            raise AlreadyExists(f"{reply.call}: {self._calls.said(reply)}")
        if reply.status == 404:
            if await self.branch(base) is None:
                raise BaseMissing(f"{reply.call}: the base branch {base} is not there")
            if await self.branch(head) is None:
                raise Gone(f"{reply.call}: the head branch {head} is not there")
        self._calls.refuse(reply, right=_PULLS)

    async def _labelled(self, pr: PullRequest, labels: tuple[str, ...]) -> PullRequest:
        """With the labels; a label that cannot be set is left out, since it is the least part."""
        if set(labels) <= set(pr.labels):
            return pr
        with suppress(Forbidden, Refused, Conflict):
            ids = {text_at(tree, "name"): int_at(tree, "id") async for tree in self._pages("/labels")}
            for name in labels:
                if name not in ids:
                    wanted = {"name": name, "color": f"#{LABEL_COLOUR}", "description": LABEL_TEXT}
                    made = await self._calls.send("POST", f"{self._root}/labels", wanted, right=_ISSUES)
                    ids[name] = int_at(made.object, "id")
            chosen: JsonObject = {"labels": [ids[name] for name in labels]}
            await self._calls.send("POST", f"{self._root}/issues/{pr.number}/labels", chosen, right=_ISSUES)
        return await self.get(pr.number)

    async def _blocked(self, pr: PullRequest) -> tuple[str, ...]:
        """What stands between an open one and its merge, for people."""
        reviews = await self.reviews(pr)
        given = len(approvals(reviews, head=pr.head.sha))
        branch = await self._branch_tree(pr.base.branch) or {}
        needed = int_at(branch, "required_approvals")
        reasons = ["draft"] if pr.draft else []
        if given < needed:
            reasons.append(f"approvals missing: {given} of {needed}")
        reasons += [
            f"changes requested by {review.user.login}"
            for review in latest_reviews(reviews)
            if review.state == "changes_requested" and not review.dismissed
        ]
        if bool_at(branch, "enable_status_check"):
            reasons += await self._checks_missing(pr.head.sha, branch)
        if pr.mergeable is None:
            reasons.append("conflicts, or the forge is still comparing")
        return tuple(reasons)

    async def _checks_missing(self, sha: str, branch: JsonObject) -> list[str]:
        good = {
            text_at(tree, "context")
            for tree in objects_at(await self._statuses(sha), "statuses")
            if text_at(tree, "status") == "success"
        }
        wanted = [name for name in list_at(branch, "status_check_contexts") if isinstance(name, str)]
        return [f"check not successful: {name}" for name in wanted if name not in good]

    def _pull(self, tree: JsonObject) -> PullRequest:
        """From the server's form; the head's label keeps the branch name when its ref is rewritten."""
        merged = bool_at(tree, "merged")
        return PullRequest(
            number=int_at(tree, "number"),
            url=text_at(tree, "html_url"),
            state="merged" if merged else "open" if text_at(tree, "state") == "open" else "closed",
            title=text_at(tree, "title"),
            body=text_at(tree, "body"),
            head=Head(
                _repository(tree, "head"),
                text_at(tree, "head", "label").rpartition(":")[2],
                text_at(tree, "head", "sha"),
            ),
            base=Base(text_at(tree, "base", "ref"), text_at(tree, "base", "sha"), _repository(tree, "base")),
            author=account_at(tree, "user"),
            created=moment(tree, "created_at"),
            updated=moment(tree, "updated_at"),
            draft=bool_at(tree, "draft"),
            labels=tuple(text_at(label, "name") for label in objects_at(tree, "labels")),
            mergeable=True if bool_at(tree, "mergeable") else None,
            merge_sha=text_at(tree, "merge_commit_sha") if merged else "",
            merged_at=moment_or_none(tree, "merged_at") if merged else None,
            merged_by=account_or_none(tree, "merged_by") if merged else None,
            version=self._version(tree),
        )

    def _version(self, tree: JsonObject) -> int | None:
        locks = (self._dialect or GITEA).locks and "content_version" in tree
        return int_at(tree, "content_version") if locks else None


def _repository(tree: JsonObject, side: str) -> str:
    """Id of the repository on one side, empty when it was deleted."""
    number = int_at(tree, side, "repo_id")
    return str(number) if number > 0 else ""


def _review(tree: JsonObject, *, head: str) -> Review:
    commit = text_at(tree, "commit_id")
    dismissed = bool_at(tree, "dismissed")
    return Review(
        user=account_at(tree, "user"),
        state="dismissed" if dismissed else _REVIEW_STATES[text_at(tree, "state")],
        commit=commit,
        at=moment(tree, "submitted_at"),
        stale=bool_at(tree, "stale") or commit != head,
        dismissed=dismissed,
        official=bool_at(tree, "official"),
    )

"""GitHub, github.com and Enterprise Server (forges.md, section 4).

What differs from what one expects: the filter for the head needs `owner:branch` and is ignored otherwise; why a creation was refused is only
in its text; labels cannot be given at creation; `mergeable` is computed when it is asked for; a right that is missing is often a 404.  Between
two calls that create something lies a second at least.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, NoReturn

from gitops_ctl.core.errors import Conflict, Forbidden, Refused
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, object_at, objects_at, text_at
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
from gitops_ctl.forge.errors import (
    AlreadyExists,
    BaseMissing,
    ForbiddenOrMissing,
    Gone,
    NoDiff,
    RepositoryUnavailable,
)
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

GAP_S: Final = 1.0

_READ: Final = "metadata: read and contents: read"
_PULLS: Final = "pull requests: write"
_ISSUES: Final = "issues: write"
_STATUSES: Final = "commit statuses: write"
_PAGE: Final = "100"
_APP: Final = "[bot]"

_REVIEW_STATES: Final[dict[str, ReviewState]] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes_requested",
    "COMMENTED": "commented",
    "DISMISSED": "dismissed",
    "PENDING": "pending",
}

_MERGE_WORDS: Final = {
    "behind": "head is behind base",
    "blocked": "blocked by the rules of the branch",
    "dirty": "conflicts",
    "unstable": "a check is not successful",
}


class GithubAdapter:
    """One project at github.com or at an Enterprise Server."""

    name = "github"

    def __init__(self, calls: Calls, *, project: str) -> None:
        self._calls = calls
        self._project = project
        self._owner = project.partition("/")[0]
        self._root = "/repos/" + "/".join(segment(part) for part in project.split("/"))
        self._login = ""

    async def repo(self) -> Repository:
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
            can_push=bool_at(tree, "permissions", "push") if "permissions" in tree else None,
        )

    async def branch(self, name: str) -> Branch | None:
        reply = await self._calls.find(f"{self._root}/branches/{segment(name)}", right=_READ)
        if reply is None:
            return None
        return Branch(name, text_at(reply.object, "commit", "sha"), protected=bool_at(reply.object, "protected"))

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        # Compared again: were the filter ignored, the list would hold everything.
        async for pr in self._listed(state="open", base=base, head=f"{self._owner}:{head_branch}"):
            if pr.head.branch == head_branch and pr.base.branch == base and not pr.is_fork:
                return pr
        return None

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        listed = self._listed(state="open", base=base, sort="updated", direction="desc")
        return tuple([pr async for pr in first(listed, most)])

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        listed = self._listed(state="all", sort="updated", direction="desc")
        return tuple([pr async for pr in first(listed, most) if marker in pr.body])

    async def get(self, number: int) -> PullRequest:
        return _pull((await self._calls.get(f"{self._root}/pulls/{number}", right=_READ)).object)

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        wanted: JsonObject = {"head": head, "base": base, "title": title, "body": body, "maintainer_can_modify": False}
        reply = await self._calls.try_send("POST", f"{self._root}/pulls", wanted)
        if reply.status != 201:
            await self._refuse_create(reply, head=head, base=base)
        return await self._labelled(_pull(reply.object), labels)

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
            pr = await self._patched(pr, wanted)
        return await self._labelled(pr, labels or ())

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        return tuple(
            [
                Comment(int_at(tree, "id"), account_at(tree, "user"), text_at(tree, "body"), moment(tree, "updated_at"))
                async for tree in self._pages(f"/issues/{pr.number}/comments")
            ]
        )

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        wanted = with_marker(text, marker)
        found = await self._own_comment(pr, marker)
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
        try:
            async for tree in self._pages(f"/commits/{segment(sha)}/pulls"):
                merged = text_at(tree, "merge_commit_sha") == sha and text_at(tree, "merged_at")
                if merged and text_at(tree, "base", "repo", "full_name").lower() == self._project.lower():
                    return await self.get(int_at(tree, "number"))
        except Refused:
            return None  # 422: the forge does not know the commit (yet)
        return None

    async def merge_state(self, pr: PullRequest) -> MergeState:
        tree = (await self._calls.get(f"{self._root}/pulls/{pr.number}", right=_READ)).object
        fresh = _pull(tree)
        return MergeState.of(fresh, blocked=await self._blocked(fresh, tree) if fresh.state == "open" else ())

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        line = status_text(text)
        path = f"{self._root}/commits/{segment(sha)}/status"
        combined = (await self._calls.get(path, right=_STATUSES, query={"per_page": _PAGE})).object
        now = [
            tuple(text_at(tree, name) for name in ("context", "state", "description", "target_url"))
            for tree in objects_at(combined, "statuses")
        ]
        if (context, state, line, url) in now:
            return False
        wanted: dict[str, JsonValue] = {"context": context, "state": state, "description": line}
        if url:
            wanted["target_url"] = url
        await self._calls.send("POST", f"{self._root}/statuses/{segment(sha)}", wanted, right=_STATUSES)
        return True

    async def verification(self, sha: str) -> str:
        tree = (await self._calls.get(f"{self._root}/commits/{segment(sha)}", right=_READ)).object
        said = object_at(tree, "commit", "verification")
        return "verified" if bool_at(said, "verified") else text_at(said, "reason", default="unverified")

    async def _own_comment(self, pr: PullRequest, marker: str) -> Comment | None:
        """Ours.  The token of an App may not ask for its account: then one that some App wrote with our marker."""
        comments = await self.comments(pr)
        if not self._login:
            try:
                self._login = text_at((await self._calls.get("/user", right="a user's token")).object, "login")
            except ForbiddenOrMissing:
                apps = (each for each in comments if each.author.login.endswith(_APP) and marker in each.text)
                return next(apps, None)
        return own_comment(comments, own=self._login, marker=marker)

    def _pages(self, path: str, **query: str) -> AsyncIterator[JsonObject]:
        return self._calls.pages(
            f"{self._root}{path}", right=_READ, query={"per_page": _PAGE, **query}, next_page=next_link
        )

    async def _listed(self, **query: str) -> AsyncIterator[PullRequest]:
        async for tree in self._pages("/pulls", **query):
            yield _pull(tree)

    async def _patched(self, pr: PullRequest, wanted: JsonObject) -> PullRequest:
        reply = await self._calls.send("PATCH", f"{self._root}/pulls/{pr.number}", wanted, right=_PULLS)
        return _pull(reply.object)

    async def _refuse_create(self, reply: Reply, *, head: str, base: str) -> NoReturn:
        """Raise what a refused creation means: all of it is 422, so the text decides."""
        said = self._calls.said(reply)
        message = f"{reply.call}: {said}"
        if reply.status == 422:
            if "already exists" in said:
                raise AlreadyExists(message)
            if "No commits between" in said:
                raise NoDiff(message)
            if await self.branch(base) is None:
                raise BaseMissing(f"{reply.call}: the base branch {base} is not there")
            if await self.branch(head) is None:
                raise Gone(f"{reply.call}: the head branch {head} is not there")
        self._calls.refuse(reply, right=_PULLS)

    async def _labelled(self, pr: PullRequest, labels: tuple[str, ...]) -> PullRequest:
        """With the labels; a label that cannot be set is left out, since it is the least part."""
        missing = [name for name in labels if name not in pr.labels]
        if not missing:
            return pr
        with suppress(Forbidden, Refused, Conflict):
            for name in missing:
                if await self._calls.find(f"{self._root}/labels/{segment(name)}", right=_READ) is None:
                    wanted = {"name": name, "color": LABEL_COLOUR, "description": LABEL_TEXT}
                    await self._calls.send("POST", f"{self._root}/labels", wanted, right=_ISSUES)
            path = f"{self._root}/issues/{pr.number}/labels"
            await self._calls.send("POST", path, {"labels": missing}, right=_ISSUES)
        return await self.get(pr.number)

    async def _blocked(self, pr: PullRequest, tree: JsonObject) -> tuple[str, ...]:
        """What stands between an open one and its merge, for people."""
        state = text_at(tree, "mergeable_state")
        reasons = ["draft"] if pr.draft else []
        if word := _MERGE_WORDS.get(state):
            reasons.append(word)
        reviews = await self.reviews(pr)
        reasons += [
            f"changes requested by {review.user.login}"
            for review in latest_reviews(reviews)
            if review.state == "changes_requested"
        ]
        if state == "blocked":
            reasons += await self._rules(pr, given=len(approvals(reviews, head=pr.head.sha)))
        return tuple(reasons)

    async def _rules(self, pr: PullRequest, *, given: int) -> list[str]:
        """The rules of the base branch, as far as the token may read them."""
        path = f"{self._root}/rules/branches/{segment(pr.base.branch)}"
        reply = await self._calls.find(path, right=_READ)
        return ["protection not readable"] if reply is None else _rule_words(reply.objects, given=given)


def _rule_words(rules: tuple[JsonObject, ...], *, given: int) -> list[str]:
    reasons = []
    for rule in rules:
        match text_at(rule, "type"):
            case "pull_request":
                needed = int_at(rule, "parameters", "required_approving_review_count")
                if given < needed:
                    reasons.append(f"approvals missing: {given} of {needed}")
                if bool_at(rule, "parameters", "require_code_owner_review"):
                    reasons.append("a code owner has to approve")
            case "required_signatures":
                reasons.append("all commits have to be signed")
            case "merge_queue":
                reasons.append("goes through the merge queue")
            case "required_status_checks":
                checks = objects_at(rule, "parameters", "required_status_checks")
                reasons += [f"needs the check {text_at(check, 'context')}" for check in checks]
    return reasons


def _pull(tree: JsonObject) -> PullRequest:
    """From GitHub's form; in lists `merged` is missing and `merged_at` tells."""
    merged = bool(text_at(tree, "merged_at"))
    mergeable = tree.get("mergeable")
    return PullRequest(
        number=int_at(tree, "number"),
        url=text_at(tree, "html_url"),
        state="merged" if merged else "open" if text_at(tree, "state") == "open" else "closed",
        title=text_at(tree, "title"),
        body=text_at(tree, "body"),
        head=Head(_repository(tree, "head"), text_at(tree, "head", "ref"), text_at(tree, "head", "sha")),
        base=Base(text_at(tree, "base", "ref"), text_at(tree, "base", "sha"), _repository(tree, "base")),
        author=account_at(tree, "user"),
        created=moment(tree, "created_at"),
        updated=moment(tree, "updated_at"),
        draft=bool_at(tree, "draft"),
        labels=tuple(text_at(label, "name") for label in objects_at(tree, "labels")),
        mergeable=mergeable if isinstance(mergeable, bool) else None,
        merge_sha=text_at(tree, "merge_commit_sha") if merged else "",
        merged_at=moment_or_none(tree, "merged_at"),
        merged_by=account_or_none(tree, "merged_by"),
    )


def _repository(tree: JsonObject, side: str) -> str:
    """Id of the repository on one side, empty when it was deleted."""
    number = int_at(tree, side, "repo", "id")
    return str(number) if number else ""


def _review(tree: JsonObject, *, head: str) -> Review:
    commit = text_at(tree, "commit_id")
    state = _REVIEW_STATES[text_at(tree, "state")]
    return Review(
        user=account_at(tree, "user"),
        state=state,
        commit=commit,
        at=moment(tree, "submitted_at"),
        stale=commit != head,
        dismissed=state == "dismissed",
    )

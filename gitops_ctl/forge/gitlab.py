"""GitLab, REST v4 (forges.md, sections 5 and 11.2).

What differs from what one expects: an approval names no commit, so it counts only where the project takes approvals away at each push; the
list of merge requests of a commit can miss one; `locked` is open while merging; a merge may land as a squash or a rebase; a status that is
set again to the same state is a 400.
"""

from collections.abc import AsyncIterator
from typing import Final, NoReturn
from urllib.parse import urlencode

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, list_at, object_at, objects_at, text_at
from gitops_ctl.forge.calls import Calls, Reply, first, moment, moment_or_none, segment
from gitops_ctl.forge.conversation import (
    CLOSE_MARKER,
    account_at,
    account_or_none,
    own_comment,
    status_text,
    with_marker,
)
from gitops_ctl.forge.errors import AlreadyExists, BaseMissing, ForbiddenOrMissing, Gone, RepositoryUnavailable
from gitops_ctl.forge.neutral import (
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

_READ: Final = "the scope read_api and the role Reporter"
_WRITE: Final = "the scope api and the role Developer"
_PAGE: Final = "100"
_DEVELOPER: Final = 30
_LOOKED_BACK: Final = 200
"""Merged ones that are looked at when the list of a commit misses the one that made it."""

_USER: Final = "username"
_STATES: Final[dict[str, PullState]] = {"opened": "open", "locked": "open", "closed": "closed", "merged": "merged"}
_STATUS: Final[dict[StatusState, str]] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "failed",
}
_UNKNOWN_YET: Final = ("checking", "unchecked", "preparing", "approvals_syncing", "")
_MERGE_WORDS: Final = {
    "blocked_status": "blocked by another merge request",
    "ci_must_pass": "the pipeline has to succeed",
    "ci_still_running": "the pipeline is still running",
    "conflict": "conflicts",
    "discussions_not_resolved": "discussions are not resolved",
    "draft_status": "draft",
    "need_rebase": "head is behind base",
    "not_approved": "approvals missing",
    "policies_denied": "blocked by a policy of the project",
    "requested_changes": "changes requested",
    "status_checks_must_pass": "a check is not successful",
}


class GitlabAdapter:
    """One project of a GitLab server."""

    name = "gitlab"

    def __init__(self, calls: Calls, *, project: str) -> None:
        self._calls = calls
        self._project = project
        self._root = f"/projects/{segment(project)}"
        self._login = ""

    async def repo(self) -> Repository:
        tree = (await self._calls.get(self._root, right=_READ)).object
        full_name = text_at(tree, "path_with_namespace")
        if not self._project.isdigit() and full_name.lower() != self._project.lower():
            raise RepositoryUnavailable(f"the project {self._project} was moved to {full_name}")
        number = str(int_at(tree, "id"))
        if self._project.isdigit() and number != self._project:
            raise RepositoryUnavailable(f"the forge answers for the project {self._project} with the project {number}")
        levels = [
            int_at(tree, "permissions", kind, "access_level")
            for kind in ("project_access", "group_access")
            if object_at(tree, "permissions", kind)
        ]
        return Repository(
            id=number,
            full_name=full_name,
            default_branch=text_at(tree, "default_branch"),
            clone_url=text_at(tree, "http_url_to_repo"),
            archived=bool_at(tree, "archived"),
            can_push=max(levels) >= _DEVELOPER if levels else None,
        )

    async def branch(self, name: str) -> Branch | None:
        reply = await self._calls.find(f"{self._root}/repository/branches/{segment(name)}", right=_READ)
        if reply is None:
            return None
        tree = reply.object
        return Branch(
            name=name,
            sha=text_at(tree, "commit", "id"),
            protected=bool_at(tree, "protected"),
            can_push=bool_at(tree, "can_push") if "can_push" in tree else None,
        )

    async def find_open(self, head_branch: str, *, base: str) -> PullRequest | None:
        async for pr in self._listed(state="opened", source_branch=head_branch, target_branch=base):
            if pr.head.branch == head_branch and pr.base.branch == base and not pr.is_fork:
                return pr
        return None

    async def list_open(self, base: str, *, most: int = 50) -> tuple[PullRequest, ...]:
        listed = self._listed(state="opened", target_branch=base, order_by="updated_at", sort="desc")
        return tuple([pr async for pr in first(listed, most)])

    async def find_by_marker(self, marker: str, *, most: int = 200) -> tuple[PullRequest, ...]:
        listed = self._listed(state="all", order_by="updated_at", sort="desc")
        return tuple([pr async for pr in first(listed, most) if marker in pr.body])

    async def get(self, number: int) -> PullRequest:
        return _pull(await self._tree(number))

    async def create(self, head: str, *, base: str, title: str, body: str, labels: tuple[str, ...] = ()) -> PullRequest:
        wanted: dict[str, JsonValue] = {
            "source_branch": head,
            "target_branch": base,
            "title": title,
            "description": body,
            "remove_source_branch": False,
        }
        if labels:
            wanted["labels"] = ",".join(labels)
        reply = await self._calls.try_send("POST", f"{self._root}/merge_requests", wanted)
        if reply.status != 201:
            await self._refuse_create(reply, head=head, base=base)
        return _pull(reply.object)

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
            wanted["description"] = body
        if missing := [name for name in labels or () if name not in pr.labels]:
            wanted["add_labels"] = ",".join(missing)
        return await self._put(pr, wanted) if wanted else pr

    async def comments(self, pr: PullRequest) -> tuple[Comment, ...]:
        found = self._pages(f"{self._own(pr)}/notes", sort="asc", order_by="created_at")
        return tuple(
            [
                Comment(
                    int_at(tree, "id"),
                    account_at(tree, "author", login=_USER),
                    text_at(tree, "body"),
                    moment(tree, "updated_at"),
                )
                async for tree in found
                if not bool_at(tree, "system")
            ]
        )

    async def put_comment(self, pr: PullRequest, *, marker: str, text: str) -> int:
        wanted = with_marker(text, marker)
        found = own_comment(await self.comments(pr), own=await self._own_login(), marker=marker)
        path = f"{self._own(pr)}/notes"
        if found is None:
            return int_at((await self._calls.send("POST", path, {"body": wanted}, right=_WRITE)).object, "id")
        if found.text != wanted:
            await self._calls.send("PUT", f"{path}/{found.id}", {"body": wanted}, right=_WRITE)
        return found.id

    async def close(self, pr: PullRequest, *, reason: str) -> PullRequest:
        await self.put_comment(pr, marker=CLOSE_MARKER, text=reason)
        return await self._put(pr, {"state_event": "close"})

    async def reopen(self, pr: PullRequest) -> PullRequest:
        if await self.branch(pr.head.branch) is None:
            raise Gone(f"the branch {pr.head.branch} of merge request {pr.number} is not there")
        return await self._put(pr, {"state_event": "reopen"})

    async def reviews(self, pr: PullRequest) -> tuple[Review, ...]:
        bound = await self._approvals_bind()
        tree = (await self._calls.get(f"{self._own(pr)}/approvals", right=_READ)).object
        # An approval belongs to the head that the request had when the approvals were read: it must be the one that was asked about.
        head = (await self.get(pr.number)).head.sha
        if head != pr.head.sha:
            message = f"merge request {pr.number}: the head moved while its approvals were read"
            raise Unavailable(message, code=ErrorCode.FORGE_UNAVAILABLE)
        given_at = moment(tree, "updated_at")
        found = [
            Review(
                user=account_at(given, "user", login=_USER),
                state="approved",
                commit=head if bound else "",
                at=moment_or_none(given, "approved_at") or given_at,
                stale=not bound,
            )
            for given in objects_at(tree, "approved_by")
        ]
        return tuple(sorted(found, key=lambda each: each.at))

    async def pr_of_merge(self, sha: str) -> PullRequest | None:
        path = f"{self._root}/repository/commits/{segment(sha)}"
        if await self._calls.find(path, right=_READ) is None:
            return None
        async for tree in self._pages(f"{path}/merge_requests"):
            if text_at(tree, "merge_commit_sha") == sha and text_at(tree, "state") == "merged":
                return await self.get(int_at(tree, "iid"))
        async for pr in first(self._listed(state="merged", order_by="updated_at", sort="desc"), _LOOKED_BACK):
            if pr.merge_sha == sha:
                return await self.get(pr.number)
        return None

    async def merge_state(self, pr: PullRequest) -> MergeState:
        tree = await self._tree(pr.number)
        fresh = _pull(tree)
        word = _MERGE_WORDS.get(text_at(tree, "detailed_merge_status"), "")
        if word == _MERGE_WORDS["not_approved"]:
            word = await self._approvals_missing(fresh)
        return MergeState.of(fresh, blocked=(word,) if word and fresh.state == "open" else ())

    async def set_status(self, sha: str, *, context: str, state: StatusState, text: str, url: str = "") -> bool:
        line, word = status_text(text), _STATUS[state]
        now = [
            tuple(text_at(tree, name) for name in ("name", "status", "description", "target_url"))
            async for tree in self._pages(f"{self._root}/repository/commits/{segment(sha)}/statuses", name=context)
        ]
        if (context, word, line, url) in now:
            return False
        wanted: dict[str, JsonValue] = {"name": context, "state": word, "description": line}
        if url:
            wanted["target_url"] = url
        reply = await self._calls.try_send("POST", f"{self._root}/statuses/{segment(sha)}", wanted)
        if reply.status == 400 and "Cannot transition" in reply.said:
            return False  # the state is the wanted one already; GitLab takes no new text for it
        if reply.status >= 300:
            self._calls.refuse(reply, right=_WRITE)
        return True

    async def verification(self, sha: str) -> str:
        path = f"{self._root}/repository/commits/{segment(sha)}/signature"
        reply = await self._calls.find(path, right=_READ)
        return "unsigned" if reply is None else text_at(reply.object, "verification_status", default="unverified")

    def _own(self, pr: PullRequest) -> str:
        return f"{self._root}/merge_requests/{pr.number}"

    async def _tree(self, number: int) -> JsonObject:
        return (await self._calls.get(f"{self._root}/merge_requests/{number}", right=_READ)).object

    async def _own_login(self) -> str:
        if not self._login:
            self._login = text_at((await self._calls.get("/user", right="the scope read_user")).object, _USER)
        return self._login

    async def _approvals_bind(self) -> bool:
        """Whether each push takes the approvals away; a project that does not let us read that is taken as one that does not."""
        try:
            reply = await self._calls.find(f"{self._root}/approvals", right=_READ)
        except ForbiddenOrMissing:
            return False
        return reply is not None and bool_at(reply.object, "reset_approvals_on_push")

    async def _approvals_missing(self, pr: PullRequest) -> str:
        tree = (await self._calls.get(f"{self._own(pr)}/approvals", right=_READ)).object
        needed = int_at(tree, "approvals_required")
        return f"approvals missing: {needed - int_at(tree, 'approvals_left')} of {needed}"

    def _pages(self, path: str, **query: str) -> AsyncIterator[JsonObject]:
        asked = {"per_page": _PAGE, **query}

        def next_page(reply: Reply, _: int) -> str:
            number = reply.headers.get("x-next-page", "")
            return f"?{urlencode({**asked, 'page': number})}" if number else ""

        return self._calls.pages(path, right=_READ, query=asked, next_page=next_page)

    async def _listed(self, **query: str) -> AsyncIterator[PullRequest]:
        async for tree in self._pages(f"{self._root}/merge_requests", **query):
            yield _pull(tree)

    async def _put(self, pr: PullRequest, wanted: JsonObject) -> PullRequest:
        return _pull((await self._calls.send("PUT", self._own(pr), wanted, right=_WRITE)).object)

    async def _refuse_create(self, reply: Reply, *, head: str, base: str) -> NoReturn:
        """Raise what a refused creation means."""
        if reply.status == 409:
            raise AlreadyExists(f"{reply.call}: {self._calls.said(reply)}")
        if reply.status in (400, 404, 422):
            if await self.branch(base) is None:
                raise BaseMissing(f"{reply.call}: the base branch {base} is not there")
            if await self.branch(head) is None:
                raise Gone(f"{reply.call}: the head branch {head} is not there")
        self._calls.refuse(reply, right=_WRITE)


def _pull(tree: JsonObject) -> PullRequest:
    """From GitLab's form; lists have no `diff_refs`."""
    state = _STATES.get(text_at(tree, "state"), "closed")
    merge_sha = text_at(tree, "merge_commit_sha") or text_at(tree, "squash_commit_sha")
    return PullRequest(
        number=int_at(tree, "iid"),
        url=text_at(tree, "web_url"),
        state=state,
        title=text_at(tree, "title"),
        body=text_at(tree, "description"),
        head=Head(_project(tree, "source_project_id"), text_at(tree, "source_branch"), text_at(tree, "sha")),
        base=Base(
            text_at(tree, "target_branch"), text_at(tree, "diff_refs", "start_sha"), _project(tree, "target_project_id")
        ),
        author=account_at(tree, "author", login=_USER),
        created=moment(tree, "created_at"),
        updated=moment(tree, "updated_at"),
        draft=bool_at(tree, "draft"),
        labels=tuple(name for name in list_at(tree, "labels") if isinstance(name, str)),
        mergeable=_mergeable(tree),
        merge_sha=merge_sha if state == "merged" else "",
        merged_at=moment_or_none(tree, "merged_at"),
        merged_by=account_or_none(tree, "merge_user", login=_USER),
    )


def _mergeable(tree: JsonObject) -> bool | None:
    """Whether Git can merge it; approvals and pipelines are another matter."""
    if bool_at(tree, "has_conflicts"):
        return False
    return None if text_at(tree, "detailed_merge_status") in _UNKNOWN_YET else True


def _project(tree: JsonObject, name: str) -> str:
    number = int_at(tree, name)
    return str(number) if number else ""

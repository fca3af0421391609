"""GitHub's REST interface in memory: one project, changed directly by a test, spoken to in process or over HTTP.

Every reply is filled up and judged by the published description (tests/support/forge_openapi.py), so the double cannot have members that
GitHub has not.  What it plays beyond shapes is what people found out: see forges.md, sections 4 and 8.

    github.branches["topic"] = "a" * 40
    github.without_difference.add(("topic", "main"))        # no commits between
    github.failing["POST /repos/{owner}/{repo}/pulls"] = 403
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, Terms
from tests.support.forge_openapi import Interface, Tree

OPERATIONS = (
    "GET /user",
    "GET /repos/{owner}/{repo}",
    "GET /repos/{owner}/{repo}/branches/{branch}",
    "GET /repos/{owner}/{repo}/pulls",
    "POST /repos/{owner}/{repo}/pulls",
    "GET /repos/{owner}/{repo}/pulls/{pull_number}",
    "PATCH /repos/{owner}/{repo}/pulls/{pull_number}",
    "GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews",
    "GET /repos/{owner}/{repo}/labels/{name}",
    "POST /repos/{owner}/{repo}/labels",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
    "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
    "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
    "GET /repos/{owner}/{repo}/commits/{ref}",
    "GET /repos/{owner}/{repo}/commits/{ref}/status",
    "GET /repos/{owner}/{repo}/commits/{commit_sha}/pulls",
    "POST /repos/{owner}/{repo}/statuses/{sha}",
    "GET /repos/{owner}/{repo}/rules/branches/{branch}",
)
_DAY = "2026-01-01T{:02d}:{:02d}:00Z"


@dataclass
class Pull:
    number: int
    head: str
    base: str
    title: str
    body: str
    sha: str
    owner: str = "net"
    state: str = "open"
    merge_sha: str = ""
    merged_by: str = ""
    mergeable: bool | None = True
    mergeable_state: str = "clean"
    draft: bool = False
    labels: list[str] = field(default_factory=list)
    updated: int = 0
    repository: int | None = 7


class FakeGithub:
    """An `HttpClient` that is the server itself.

    Attributes:
        token: the only one that is known.
        user: whose it is; empty for an App, which may not ask.
        failing: operation to the status that it answers, and optionally the text.
        calls: operations in order.
        address: where it is reached, for the addresses in its replies.
    """

    def __init__(self, interface: Interface, *, token: str = "good", user: str = "bot") -> None:
        self.interface = interface
        self.token = token
        self.user = user
        self.address = interface.base
        self.full_name = "net/fabric"
        self.archived = False
        self.permissions = {"admin": False, "push": True, "pull": True}
        self.branches = {"main": "b" * 40}
        self.protected: set[str] = set()
        self.without_difference: set[tuple[str, str]] = set()
        self.pulls: list[Pull] = []
        self.comments: dict[int, list[Tree]] = {}
        self.reviews: dict[int, list[Tree]] = {}
        self.statuses: dict[str, list[Tree]] = {}
        self.labels: set[str] = set()
        self.verifications: dict[str, Tree] = {}
        self.rules: list[Tree] = []
        self.failing: dict[str, tuple[int, str]] = {}
        self.ignores_head_filter = False
        self.most_per_page = 100
        self.calls: list[str] = []
        self.sent: list[tuple[str, Tree]] = []
        self.terms: list[Terms] = []
        self._ticks = 0
        self._ids = 100

    def open(self, head: str, **members: Any) -> Pull:
        """A pull request that is there already."""
        made = Pull(len(self.pulls) + 1, head, "main", "title", "", self.branches.get(head, "d" * 40))
        for name, value in members.items():
            setattr(made, name, value)
        made.updated = self._tick()
        self.pulls.append(made)
        return made

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        idempotent: bool | None = None,
        terms: Terms = USUAL_TERMS,
    ) -> HttpAnswer:
        self.terms.append(terms)
        answer = self.answer(method, url, headers or {}, body)
        self.interface.judge(method, url, headers or {}, body, answer)
        return answer

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        split = urlsplit(url)
        path = split.path.removeprefix(urlsplit(self.interface.base).path)
        template, places = self.interface.operation(method, path)
        operation = f"{method} {template}"
        self.calls.append(operation)
        tree: Tree = json.loads(body) if body else {}
        if body:
            self.sent.append((operation, tree))
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        given = {name.lower(): value for name, value in headers.items()}.get("authorization", "")
        status, values, more = self._answered(operation, places, query, tree, given)
        filled = self.interface.whole(method, path, status, values)
        link = {"link": more} if more else {}
        return HttpAnswer(status, {"content-type": "application/json", **link}, json.dumps(filled).encode())

    def _answered(
        self, operation: str, places: Mapping[str, str], query: Mapping[str, str], tree: Tree, given: str
    ) -> tuple[int, Any, str]:
        if given.partition(" ")[2] != self.token:
            return 401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"}, ""
        if operation in self.failing:
            status, text = self.failing[operation]
            return status, {"message": text, "documentation_url": "https://docs.github.com/rest"}, ""
        project = f"{places.get('owner', '')}/{places.get('repo', '')}"
        if "{owner}" in operation and project.lower() != self.full_name.lower():
            return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, ""
        name = _ROUTES[operation]
        found = getattr(self, name)(places, query, tree)
        status, values = found if isinstance(found, tuple) else (200, found)
        if isinstance(values, list):
            return self._paged(operation, places, query, status, values)
        return status, values, ""

    def _paged(
        self, operation: str, places: Mapping[str, str], query: Mapping[str, str], status: int, values: list[Tree]
    ) -> tuple[int, list[Tree], str]:
        size = min(int(query.get("per_page", "30")), self.most_per_page)
        number = int(query.get("page", "1"))
        shown = values[(number - 1) * size : number * size]
        path = operation.partition(" ")[2].format(**places)
        following = urlencode({**query, "page": str(number + 1)})
        more = f'<{self.interface.base}{path}?{following}>; rel="next"' if number * size < len(values) else ""
        return status, shown, more

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _user(self, *_: Any) -> Any:
        if not self.user:
            return 403, {"message": "Resource not accessible by integration"}
        return _account(self.user)

    def _repo(self, *_: Any) -> Tree:
        return {
            "id": 7,
            "url": f"{self.address}/repos/net/fabric",
            "name": "fabric",
            "full_name": self.full_name,
            "default_branch": "main",
            "archived": self.archived,
            "permissions": self.permissions,
            "clone_url": "https://github.com/net/fabric.git",
        }

    def _branch(self, places: Mapping[str, str], *_: Any) -> Any:
        name = places["branch"]
        if name not in self.branches:
            return _missing("Branch not found")
        return {"name": name, "commit": {"sha": self.branches[name]}, "protected": name in self.protected}

    def _list(self, _: Any, query: Mapping[str, str], __: Any) -> list[Tree]:
        found = [pull for pull in self.pulls if query.get("base") in (None, pull.base)]
        if query.get("state", "open") != "all":
            found = [pull for pull in found if pull.state == query.get("state", "open")]
        head = query.get("head", "")
        # A head without its owner is ignored, as the real one does.
        if ":" in head and not self.ignores_head_filter:
            found = [pull for pull in found if f"{pull.owner}:{pull.head}" == head]
        by_update = query.get("sort") == "updated"
        found.sort(key=lambda pull: pull.updated if by_update else pull.number, reverse=query.get("direction") != "asc")
        return [self._short(pull) for pull in found]

    def _create(self, _: Any, __: Any, tree: Tree) -> Any:
        head, base = tree["head"], tree["base"]
        for name, field_ in ((base, "base"), (head, "head")):
            if name not in self.branches:
                return _invalid({"resource": "PullRequest", "field": field_, "code": "invalid"})
        if any((pull.head, pull.base, pull.state) == (head, base, "open") for pull in self.pulls):
            return _invalid(_custom(f"A pull request already exists for net:{head}."))
        if (head, base) in self.without_difference:
            return _invalid(_custom(f"No commits between {base} and {head}"))
        made = self.open(head, base=base, title=tree["title"], body=tree["body"])
        return 201, self._full(made)

    def _get(self, places: Mapping[str, str], *_: Any) -> Any:
        pull = self._numbered(places["pull_number"])
        return self._full(pull) if pull else _missing("Not Found")

    def _update(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        pull = self._numbered(places["pull_number"])
        if pull is None:
            return _missing("Not Found")
        for name, value in tree.items():
            setattr(pull, name, value)
        pull.updated = self._tick()
        return self._full(pull)

    def _reviews_of(self, places: Mapping[str, str], *_: Any) -> list[Tree]:
        return self.reviews.get(int(places["pull_number"]), [])

    def review(self, number: int, login: str, state: str, *, commit: str, hour: int) -> None:
        """A review that somebody gave."""
        made = {
            "id": self._id(),
            "user": _account(login),
            "state": state,
            "commit_id": commit,
            "submitted_at": _DAY.format(hour, 0),
        }
        self.reviews.setdefault(number, []).append(made)

    def _label(self, places: Mapping[str, str], *_: Any) -> Any:
        return {"name": places["name"]} if places["name"] in self.labels else _missing("Not Found")

    def _new_label(self, _: Any, __: Any, tree: Tree) -> Any:
        self.labels.add(tree["name"])
        return 201, {"name": tree["name"], "color": tree["color"], "description": tree["description"]}

    def _add_labels(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        pull = self._numbered(places["issue_number"])
        assert pull is not None
        pull.labels += [name for name in tree["labels"] if name not in pull.labels]
        return [{"name": name} for name in pull.labels]

    def _comments_of(self, places: Mapping[str, str], *_: Any) -> list[Tree]:
        return self.comments.get(int(places["issue_number"]), [])

    def comment(self, number: int, login: str, text: str) -> Tree:
        """A comment that somebody wrote."""
        at = _DAY.format(0, self._tick() % 60)
        made = {"id": self._id(), "user": _account(login), "body": text, "created_at": at, "updated_at": at}
        self.comments.setdefault(number, []).append(made)
        return made

    def _new_comment(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        return 201, self.comment(int(places["issue_number"]), self.user or "app[bot]", tree["body"])

    def _edit_comment(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        for comments in self.comments.values():
            for comment in comments:
                if comment["id"] == int(places["comment_id"]):
                    comment["body"] = tree["body"]
                    return comment
        return _missing("Not Found")

    def _commit(self, places: Mapping[str, str], *_: Any) -> Any:
        sha = places["ref"]
        said = self.verifications.get(
            sha, {"verified": False, "reason": "unsigned", "signature": None, "payload": None}
        )
        return {"sha": sha, "url": f"{self.address}/repos/net/fabric/commits/{sha}", "commit": {"verification": said}}

    def _status(self, places: Mapping[str, str], *_: Any) -> Any:
        latest = {status["context"]: status for status in self.statuses.get(places["ref"], [])}
        return {"sha": places["ref"], "total_count": len(latest), "statuses": list(latest.values())}

    def _new_status(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        made = {"description": None, "target_url": None, **tree}
        self.statuses.setdefault(places["sha"], []).append(made)
        return 201, made

    def _pulls_of(self, places: Mapping[str, str], *_: Any) -> Any:
        sha = places["commit_sha"]
        if sha not in {pull.merge_sha for pull in self.pulls} | set(self.branches.values()):
            return 422, {"message": f"No commit found for SHA: {sha}"}
        return [self._short(pull) for pull in self.pulls if sha in (pull.merge_sha, pull.sha)]

    def _rules_of(self, *_: Any) -> list[Tree]:
        return self.rules

    def _numbered(self, number: str) -> Pull | None:
        return next((pull for pull in self.pulls if pull.number == int(number)), None)

    def _short(self, pull: Pull) -> Tree:
        merged = bool(pull.merge_sha)
        repository = None if pull.repository is None else {"id": pull.repository, "full_name": f"{pull.owner}/fabric"}
        return {
            "number": pull.number,
            "url": f"{self.address}/repos/net/fabric/pulls/{pull.number}",
            "issue_url": f"{self.address}/repos/net/fabric/issues/{pull.number}",
            "html_url": f"https://github.com/net/fabric/pull/{pull.number}",
            "state": pull.state,
            "draft": pull.draft,
            "title": pull.title,
            "body": pull.body,
            "user": _account("bot"),
            "labels": [{"name": name} for name in pull.labels],
            "head": {"ref": pull.head, "sha": pull.sha, "label": f"{pull.owner}:{pull.head}", "repo": repository},
            "base": {
                "ref": pull.base,
                "sha": self.branches.get(pull.base, "b" * 40),
                "label": f"net:{pull.base}",
                "repo": {"id": 7, "full_name": self.full_name},
            },
            "created_at": _DAY.format(0, 0),
            "updated_at": _DAY.format(pull.updated // 60, pull.updated % 60),
            # An open one has the sha of a trial merge here.
            "merge_commit_sha": pull.merge_sha or "e" * 40,
            "merged_at": _DAY.format(9, 0) if merged else None,
        }

    def _full(self, pull: Pull) -> Tree:
        merged = bool(pull.merge_sha)
        return {
            **self._short(pull),
            "merged": merged,
            "merged_by": _account(pull.merged_by) if pull.merged_by else None,
            "mergeable": pull.mergeable,
            "mergeable_state": pull.mergeable_state,
        }


def _account(login: str) -> Tree:
    return {"login": login, "id": sum(login.encode()), "type": "Bot" if login.endswith("[bot]") else "User"}


def _missing(text: str) -> tuple[int, Tree]:
    return 404, {"message": text, "documentation_url": "https://docs.github.com/rest"}


def _custom(text: str) -> Tree:
    return {"resource": "PullRequest", "code": "custom", "message": text}


def _invalid(error: Tree) -> tuple[int, Tree]:
    return 422, {"message": "Validation Failed", "errors": [error], "documentation_url": "https://docs.github.com/rest"}


_ROUTES = dict(
    zip(
        OPERATIONS,
        (
            *(
                "_user",
                "_repo",
                "_branch",
                "_list",
                "_create",
                "_get",
                "_update",
                "_reviews_of",
                "_label",
                "_new_label",
            ),
            *("_add_labels", "_comments_of", "_new_comment", "_edit_comment", "_commit", "_status", "_pulls_of"),
            *("_new_status", "_rules_of"),
        ),
        strict=True,
    )
)

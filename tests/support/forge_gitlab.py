"""GitLab's REST interface in memory: one project, changed directly by a test, spoken to in process or over HTTP.

GitLab publishes no whole description, so the shapes are those of its documentation, and python-gitlab reads the double as a witness.

    gitlab.branches["topic"] = "a" * 40
    gitlab.resets_approvals = False                 # an approval then binds no head
    gitlab.commit_lists_are_complete = False        # the list of a commit's merge requests misses one
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, Terms

Tree = dict[str, Any]
BASE = "https://gitlab.example.net/api/v4"
_DAY = "2026-01-01T{:02d}:{:02d}:00.000Z"


@dataclass
class Request:
    iid: int
    source: str
    target: str
    title: str
    description: str
    sha: str
    source_project: int = 12
    state: str = "opened"
    merge_sha: str | None = None
    squash_sha: str | None = None
    merged_by: str = ""
    status: str = "mergeable"
    conflicts: bool = False
    draft: bool = False
    labels: list[str] = field(default_factory=list)
    approved_by: list[Tree] = field(default_factory=list)
    approvals_required: int = 0
    updated: int = 0


class FakeGitlab:
    """An `HttpClient` that is the server itself."""

    def __init__(self, *, token: str = "good", user: str = "bot") -> None:
        self.token = token
        self.user = user
        self.path = "net/eu/fabric"
        self.access: int | None = 40
        self.branches = {"main": "b" * 40}
        self.requests: list[Request] = []
        self.notes: dict[int, list[Tree]] = {}
        self.statuses: dict[str, list[Tree]] = {}
        self.signatures: dict[str, str] = {}
        self.resets_approvals: bool | None = True
        self.commit_lists_are_complete = True
        self.most_per_page = 100
        self.failing: dict[str, tuple[int, Any]] = {}
        self.calls: list[str] = []
        self.sent: list[tuple[str, Tree]] = []
        self.before: dict[str, Any] = {}
        self._ticks = 0
        self._ids = 100

    def open(self, source: str, **members: Any) -> Request:
        """A merge request that is there already."""
        made = Request(len(self.requests) + 1, source, "main", "title", "", self.branches.get(source, "d" * 40))
        for name, value in members.items():
            setattr(made, name, value)
        made.updated = self._tick()
        self.requests.append(made)
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
        return self.answer(method, url, headers or {}, body)

    def answer(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        split = urlsplit(url)
        path = split.path.removeprefix(urlsplit(BASE).path)
        tree: Tree = json.loads(body) if body else {}
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        for pattern, name in _ROUTES:
            asked, _, template = pattern.partition(" ")
            found = re.fullmatch(re.sub(r":(\w+)", r"(?P<\1>[^/]+)", template), path)
            if asked == method and found:
                places = {key: unquote(value) for key, value in found.groupdict().items()}
                return self._answered(pattern, name, places, query, tree, headers)
        return _json(404, {"error": "404 Not Found"})

    def _answered(
        self,
        pattern: str,
        name: str,
        places: Mapping[str, str],
        query: Mapping[str, str],
        tree: Tree,
        headers: Mapping[str, str],
    ) -> HttpAnswer:
        self.calls.append(pattern)
        if tree:
            self.sent.append((pattern, tree))
        given = {key.lower(): value for key, value in headers.items()}
        if self.token not in (given.get("authorization", "").partition(" ")[2], given.get("private-token")):
            return _json(401, {"message": "401 Unauthorized"})
        if places.get("id", self.path) not in (self.path, "12"):
            return _json(404, {"message": "404 Project Not Found"})
        if pattern in self.failing:
            return _json(*self.failing[pattern])
        if pattern in self.before:
            self.before.pop(pattern)()
        found = getattr(self, name)(places, query, tree)
        status, values = found if isinstance(found, tuple) else (200, found)
        return self._paged(query, status, values) if isinstance(values, list) else _json(status, values)

    def _paged(self, query: Mapping[str, str], status: int, values: list[Tree]) -> HttpAnswer:
        size, number = min(int(query.get("per_page", "20")), self.most_per_page), int(query.get("page", "1"))
        more = str(number + 1) if number * size < len(values) else ""
        told = {"x-next-page": more, "x-page": str(number), "x-per-page": str(size), "x-total": str(len(values))}
        return _json(status, values[(number - 1) * size : number * size], **told)

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _user(self, *_: Any) -> Tree:
        return account(self.user)

    def _project(self, *_: Any) -> Tree:
        access = None if self.access is None else {"access_level": self.access, "notification_level": 3}
        return {
            "id": 12,
            "path_with_namespace": self.path,
            "default_branch": "main",
            "archived": False,
            "http_url_to_repo": f"https://gitlab.example.net/{self.path}.git",
            "merge_method": "merge",
            "permissions": {"project_access": access, "group_access": None},
        }

    def _branch(self, places: Mapping[str, str], *_: Any) -> Any:
        name = places["branch"]
        if name not in self.branches:
            return 404, {"message": "404 Branch Not Found"}
        return {"name": name, "commit": {"id": self.branches[name]}, "protected": name == "main", "can_push": True}

    def _list(self, _: Any, query: Mapping[str, str], __: Any) -> list[Tree]:
        found = [
            each
            for each in self.requests
            if query.get("state", "all") in ("all", each.state)
            and query.get("source_branch", each.source) == each.source
            and query.get("target_branch", each.target) == each.target
        ]
        by_update = query.get("order_by") == "updated_at"
        found.sort(
            key=lambda each: each.updated if by_update else each.iid, reverse=query.get("sort", "desc") == "desc"
        )
        return [self._short(each) for each in found]

    def _create(self, _: Any, __: Any, tree: Tree) -> Any:
        source, target = tree["source_branch"], tree["target_branch"]
        if source not in self.branches or target not in self.branches:
            return 422, {"message": {"base": ["Source or target branch does not exist"]}}
        for each in self.requests:
            if (each.source, each.target, each.state) == (source, target, "opened"):
                return 409, {
                    "message": [f"Another open merge request already exists for this source branch: !{each.iid}"]
                }
        made = self.open(source, target=target, title=tree["title"], description=tree["description"])
        made.labels = [name for name in tree.get("labels", "").split(",") if name]
        return 201, self._full(made)

    def _get(self, places: Mapping[str, str], *_: Any) -> Any:
        found = self._numbered(places)
        return self._full(found) if found else (404, {"message": "404 Not found"})

    def _update(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        found = self._numbered(places)
        assert found is not None
        found.title = tree.get("title", found.title)
        found.description = tree.get("description", found.description)
        found.labels += [name for name in tree.get("add_labels", "").split(",") if name and name not in found.labels]
        event = tree.get("state_event")
        found.state = {"close": "closed", "reopen": "opened", None: found.state}[event]
        found.updated = self._tick()
        return self._full(found)

    def _notes(self, places: Mapping[str, str], query: Mapping[str, str], _: Any) -> list[Tree]:
        notes = list(self.notes.get(int(places["iid"]), []))
        return notes if query.get("sort") == "asc" else notes[::-1]

    def note(self, iid: int, login: str, text: str, *, system: bool = False) -> Tree:
        """A note that somebody, or the server itself, wrote."""
        at = _DAY.format(0, self._tick() % 60)
        made = {
            "id": self._id(),
            "body": text,
            "author": account(login),
            "created_at": at,
            "updated_at": at,
            "system": system,
        }
        self.notes.setdefault(iid, []).append(made)
        return made

    def _new_note(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        return 201, self.note(int(places["iid"]), self.user, tree["body"])

    def _edit_note(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        for note in self.notes.get(int(places["iid"]), []):
            if note["id"] == int(places["note"]):
                note["body"] = tree["body"]
                return note
        return 404, {"message": "404 Note Not Found"}

    def _rules(self, *_: Any) -> Any:
        if self.resets_approvals is None:
            return 403, {"message": "403 Forbidden"}
        return {
            "reset_approvals_on_push": self.resets_approvals,
            "disable_overriding_approvers_per_merge_request": False,
        }

    def _approvals(self, places: Mapping[str, str], *_: Any) -> Any:
        found = self._numbered(places)
        assert found is not None
        given = len(found.approved_by)
        return {
            "approved": given >= found.approvals_required,
            "approvals_required": found.approvals_required,
            "approvals_left": max(0, found.approvals_required - given),
            "approved_by": found.approved_by,
            "updated_at": _DAY.format(3, 0),
        }

    def _commit(self, places: Mapping[str, str], *_: Any) -> Any:
        known = {sha for each in self.requests for sha in (each.sha, each.merge_sha, each.squash_sha)}
        if places["sha"] not in known | set(self.branches.values()):
            return 404, {"message": "404 Commit Not Found"}
        return {"id": places["sha"]}

    def _requests_of(self, places: Mapping[str, str], *_: Any) -> list[Tree]:
        sha = places["sha"]
        found = [each for each in self.requests if sha in (each.sha, each.merge_sha)]
        return [self._short(each) for each in found] if self.commit_lists_are_complete else []

    def _statuses(self, places: Mapping[str, str], query: Mapping[str, str], _: Any) -> list[Tree]:
        found = [
            each for each in self.statuses.get(places["sha"], []) if each["name"] == query.get("name", each["name"])
        ]
        return found[-1:]

    def _new_status(self, places: Mapping[str, str], _: Any, tree: Tree) -> Any:
        present = self.statuses.setdefault(places["sha"], [])
        if any(each["name"] == tree["name"] and each["status"] == tree["state"] for each in present[-1:]):
            return 400, {"message": f"Cannot transition status via :enqueue from :{tree['state']}"}
        made = {
            "id": self._id(),
            "name": tree["name"],
            "status": tree["state"],
            "description": tree.get("description"),
            "target_url": tree.get("target_url"),
        }
        present.append(made)
        return 201, made

    def _signature(self, places: Mapping[str, str], *_: Any) -> Any:
        if places["sha"] not in self.signatures:
            return 404, {"message": "404 Signature Not Found"}
        return {"signature_type": "SSH", "verification_status": self.signatures[places["sha"]]}

    def _numbered(self, places: Mapping[str, str]) -> Request | None:
        return next((each for each in self.requests if each.iid == int(places["iid"])), None)

    def _short(self, each: Request) -> Tree:
        return {
            "id": 1000 + each.iid,
            "iid": each.iid,
            "project_id": 12,
            "web_url": f"https://gitlab.example.net/{self.path}/-/merge_requests/{each.iid}",
            "state": each.state,
            "title": each.title,
            "description": each.description,
            "draft": each.draft,
            "source_branch": each.source,
            "target_branch": each.target,
            "source_project_id": each.source_project,
            "target_project_id": 12,
            "sha": each.sha,
            "merge_commit_sha": each.merge_sha,
            "squash_commit_sha": each.squash_sha,
            "merged_at": _DAY.format(9, 0) if each.state == "merged" else None,
            "merge_user": account(each.merged_by) if each.merged_by else None,
            "detailed_merge_status": each.status,
            "has_conflicts": each.conflicts,
            "labels": each.labels,
            "author": account("bot"),
            "created_at": _DAY.format(0, 0),
            "updated_at": _DAY.format(each.updated // 60, each.updated % 60),
        }

    def _full(self, each: Request) -> Tree:
        start = self.branches.get(each.target, "b" * 40)
        return {**self._short(each), "diff_refs": {"base_sha": start, "head_sha": each.sha, "start_sha": start}}


def account(login: str) -> Tree:
    return {"id": sum(login.encode()), "username": login, "name": login, "state": "active"}


def _json(status: int, values: Any, **headers: str) -> HttpAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status, {"content-type": "application/json", **named}, json.dumps(values).encode())


_P = "/projects/:id"
_MR = f"{_P}/merge_requests/:iid"
_ROUTES = (
    ("GET /user", "_user"),
    (f"GET {_P}", "_project"),
    (f"GET {_P}/approvals", "_rules"),
    (f"GET {_P}/repository/branches/:branch", "_branch"),
    (f"GET {_P}/repository/commits/:sha", "_commit"),
    (f"GET {_P}/repository/commits/:sha/merge_requests", "_requests_of"),
    (f"GET {_P}/repository/commits/:sha/statuses", "_statuses"),
    (f"GET {_P}/repository/commits/:sha/signature", "_signature"),
    (f"POST {_P}/statuses/:sha", "_new_status"),
    (f"GET {_P}/merge_requests", "_list"),
    (f"POST {_P}/merge_requests", "_create"),
    (f"GET {_MR}", "_get"),
    (f"PUT {_MR}", "_update"),
    (f"GET {_MR}/approvals", "_approvals"),
    (f"GET {_MR}/notes", "_notes"),
    (f"POST {_MR}/notes", "_new_note"),
    (f"PUT {_MR}/notes/:note", "_edit_note"),
)

"""JSON calls: strict parsing, pages, what a refusal means, and addresses (forges.md, sections 2 and 18)."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Conflict, GitopsError, InternalError, Refused
from gitops_ctl.core.http import USUAL_TERMS, HttpAnswer, Terms
from gitops_ctl.forge.adapters import api_address, forge_adapter
from gitops_ctl.forge.calls import Calls, checked_token, first, moment, moment_or_none, next_link, parsed
from gitops_ctl.forge.errors import (
    AnswerRefused,
    AnswerTooLong,
    ForbiddenOrMissing,
    RepositoryUnavailable,
    TokenRejected,
)
from tests.support.kube_clock import JumpingClock

TOKEN = "not-for-anybody-5f1c"
BASE = "https://git.example.net/api/v1"


class Answers:
    """Gives answers by address; keeps what was asked."""

    def __init__(self, answers: Mapping[str, HttpAnswer]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

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
        self.asked.append((method, url))
        return self.answers[url.removeprefix(BASE)]


def answer(status: int, tree: object, **headers: str) -> HttpAnswer:
    return HttpAnswer(status, headers, json.dumps(tree).encode())


def calls(answers: Mapping[str, HttpAnswer]) -> tuple[Calls, Answers]:
    http = Answers(answers)
    return Calls(http, BASE, {"Authorization": f"token {TOKEN}"}, TOKEN), http


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1',
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": "\xff"}',
        b"<html>sign in</html>",
        b"[" * 200_000,
        b"1" * 5000,
        b'{"a": "\\ud800"}',
    ],
    ids=["cut", "twice", "NaN", "no UTF-8", "a page", "deep", "huge number", "half a pair"],
)
def test_an_answer_that_is_no_strict_json_is_refused(body):
    with pytest.raises(AnswerRefused):
        parsed(HttpAnswer(200, {}, body), call="GET https://git.example.net/")


def test_a_refusal_that_is_no_json_is_still_a_refusal():
    assert parsed(HttpAnswer(502, {}, b"<html>"), call="GET x") is None
    assert parsed(HttpAnswer(204, {}, b""), call="GET x") is None


@pytest.mark.parametrize(("path", "tree"), [("/o", []), ("/o", "text"), ("/l", {"message": "x"}), ("/l", ["x"])])
async def test_an_answer_of_another_shape_is_refused(path, tree):
    made, _ = calls({path: answer(200, tree)})
    reply = await made.get(path, right="reading")
    with pytest.raises(AnswerRefused):
        _ = reply.object if path == "/o" else reply.objects


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, TokenRejected, ErrorCode.TOKEN_REJECTED),
        (403, ForbiddenOrMissing, ErrorCode.FORBIDDEN_OR_MISSING),
        (404, ForbiddenOrMissing, ErrorCode.FORBIDDEN_OR_MISSING),
        (409, Conflict, ErrorCode.CONFLICT),
        (412, Conflict, ErrorCode.CONFLICT),
        (410, RepositoryUnavailable, ErrorCode.REPOSITORY_UNAVAILABLE),
        (423, RepositoryUnavailable, ErrorCode.REPOSITORY_UNAVAILABLE),
        (451, RepositoryUnavailable, ErrorCode.REPOSITORY_UNAVAILABLE),
        (422, Refused, ErrorCode.FORGE_REFUSED),
        (400, Refused, ErrorCode.FORGE_REFUSED),
    ],
)
async def test_P13_a_refusal_names_the_call_and_what_the_forge_says(status, kind, code):
    made, _ = calls({"/x": answer(status, {"message": "because of this"})})
    with pytest.raises(kind) as caught:
        await made.get("/x", right="the right to look")
    assert caught.value.code is code
    assert "GET https://git.example.net/api/v1/x" in caught.value.message
    assert "because of this" in caught.value.message
    assert ("the right to look" in caught.value.message) == (status in (403, 404))


async def test_a_project_that_is_archived_is_told_from_a_missing_right():
    made, _ = calls({"/x": answer(403, {"message": "Repository was archived so is read-only."})})
    with pytest.raises(RepositoryUnavailable):
        await made.send("POST", "/x", {"a": 1}, right="writing")


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"message": "Validation Failed", "errors": [{"message": "A pull request already exists"}]}, "already exists"),
        ({"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}, "head invalid"),
        ({"message": "Bad", "errors": ["plain words"]}, "plain words"),
        ({"message": ["Another open merge request already exists"]}, "Another open"),
        ({"message": {"title": ["can't be blank"]}}, "title can't be blank"),
        ({"error": "404 Not Found"}, "404 Not Found"),
    ],
)
async def test_each_form_of_an_error_is_read(tree, said):
    made, _ = calls({"/x": answer(422, tree)})
    with pytest.raises(Refused, match=said):
        await made.get("/x", right="")


async def test_promise_09_what_the_forge_says_is_redacted_and_cut():
    words = f"bad token {TOKEN} at https://user:pw-9d2e@git.example.net/ " + "x" * 5000
    made, _ = calls({"/x": answer(422, {"message": words})})
    with pytest.raises(GitopsError) as caught:
        await made.get("/x", right="")
    assert TOKEN not in caught.value.message
    assert "pw-9d2e" not in caught.value.message
    assert len(caught.value.message) < 700
    assert TOKEN not in repr(made)


async def test_a_list_is_read_page_by_page_and_only_as_far_as_needed():
    link = (
        '<https://elsewhere.example.net/repositories/7/l?page={}&limit=2>; rel="next", <https://x/?page=9>; rel="last"'
    )
    made, http = calls(
        {
            "/l?limit=2": answer(200, [{"n": 1}, {"n": 2}], link=link.format(2)),
            "/l?page=2&limit=2": answer(200, [{"n": 3}, {"n": 4}], link=link.format(3)),
            "/l?page=3&limit=2": answer(200, [{"n": 5}], link='<https://x/?page=1>; rel="first"'),
        }
    )
    pages = made.pages("/l", right="", query={"limit": "2"}, next_page=next_link)
    assert [item["n"] async for item in first(pages, 3)] == [1, 2, 3]
    assert len(http.asked) == 2
    pages = made.pages("/l", right="", query={"limit": "2"}, next_page=next_link)
    assert [item["n"] async for item in pages] == [1, 2, 3, 4, 5]
    assert all(url.startswith(BASE) for _, url in http.asked)  # an address in an answer moves no call to another host


async def test_pages_without_end_end():
    made, http = calls({"/l?p=1": answer(200, [{"n": 1}], link='<https://x/?p=1>; rel="next"')})
    pages = made.pages("/l", right="", query={"p": "1"}, next_page=next_link)
    assert len([item async for item in pages]) == 100
    assert len(http.asked) == 100


class LongList:
    """A list of `count` objects, some of which are so long that no answer with them is read."""

    def __init__(self, count: int, *, long: frozenset[int], most: int = 10**9) -> None:
        self.count, self.long, self.most = count, long, most
        self.asked: list[tuple[int, int]] = []

    async def request(self, method: str, url: str, **_: object) -> HttpAnswer:
        query = dict(parse_qsl(urlsplit(url).query))
        size, page = int(query["limit"]), int(query.get("page", "1"))
        self.asked.append((size, page))
        found = range((page - 1) * size, min(page * size, self.count))
        if self.long & set(found) or len(found) > self.most:
            raise AnswerTooLong("longer than is read")
        link = {"link": f'<https://x/?limit={size}&page={page + 1}>; rel="next"'} if page * size < self.count else {}
        return answer(200, [{"n": number} for number in found], **link)


@pytest.mark.parametrize("long", [{0}, {3}, {49}, {50}, {119}, {3, 4, 60}, set(range(120))])
async def test_an_object_that_is_too_long_hides_no_other(long):
    http = LongList(120, long=frozenset(long))
    made = Calls(http, BASE, {}, TOKEN)
    pages = made.pages("/l", right="", query={"limit": "50", "state": "open"}, next_page=next_link)
    assert [item["n"] async for item in pages] == [number for number in range(120) if number not in long]


async def test_a_page_that_is_too_long_only_as_a_whole_is_read_in_parts():
    http = LongList(120, long=frozenset(), most=30)
    pages = Calls(http, BASE, {}, TOKEN).pages("/l", right="", query={"limit": "50"}, next_page=next_link)
    assert [item["n"] async for item in pages] == list(range(120))
    assert http.asked[:3] == [(50, 1), (25, 1), (25, 2)]


@pytest.mark.parametrize("token", ["", "  \n", "two words", "line\nend", "naïve", "nul\0"])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token):
    with pytest.raises(TokenRejected) as caught:
        checked_token(token)
    assert not token.strip() or token not in caught.value.message


def test_the_line_end_of_a_file_is_no_part_of_the_token():
    assert checked_token("abc\n") == "abc"


@pytest.mark.parametrize(
    ("provider", "given", "address"),
    [
        ("gitea", "https://git.example.net", "https://git.example.net/api/v1"),
        ("gitea", "https://git.example.net/gitea/api/v1/", "https://git.example.net/gitea/api/v1"),
        ("gitlab", "https://git.example.net/", "https://git.example.net/api/v4"),
        ("github", "https://github.com", "https://api.github.com"),
        ("github", "https://api.github.com/", "https://api.github.com"),
        ("github", "https://ghe.example.net", "https://ghe.example.net/api/v3"),
        ("github", "https://ghe.example.net/api/v3", "https://ghe.example.net/api/v3"),
    ],
)
def test_the_address_of_the_api_is_found_from_that_of_the_forge(provider, given, address):
    assert api_address(provider, given) == address


@pytest.mark.parametrize("project", ["fabric", "net/", "/net", "net/../admin", "net/a/b", "12", ""])
def test_a_project_that_cannot_be_one_is_refused(project):
    with pytest.raises(Refused, match="no owner/name"):
        forge_adapter("gitea", base_url=BASE, project=project, token="t", http=Answers({}), clock=JumpingClock())


@pytest.mark.parametrize(
    ("provider", "project"), [("gitlab", "12"), ("gitlab", "net/eu/fabric"), ("github", "net/fabric")]
)
def test_each_provider_has_its_adapter(provider, project):
    made = forge_adapter(provider, base_url=BASE, project=project, token="t", http=Answers({}), clock=JumpingClock())
    assert made.name == provider


@pytest.mark.parametrize("provider", ["plain", "svn"])
def test_what_the_schema_does_not_let_through_is_a_bug_of_ours(provider):
    with pytest.raises(InternalError):
        forge_adapter(provider, base_url=BASE, project="a/b", token="t", http=Answers({}), clock=JumpingClock())


def test_a_time_that_cannot_be_read_is_long_ago():
    assert moment_or_none({"at": "yesterday"}, "at") is None
    assert moment({"at": "2026-01-01T00:00:00"}, "at").year == 1970
    assert moment({"at": "2026-01-01T01:00:00.000+01:00"}, "at").isoformat() == "2026-01-01T00:00:00+00:00"

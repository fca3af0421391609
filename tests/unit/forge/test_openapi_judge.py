"""The judge of requests and replies can say no: without that, a test that it passes shows nothing."""

import json
from typing import Any

import pytest

from gitops_ctl.core.http import HttpAnswer
from tests.support.forge_github import FakeGithub
from tests.support.forge_openapi import NIL, Interface, openapi_of_swagger

PULLS = "/repos/net/fabric/pulls"
GOOD = {"head": "topic", "base": "main", "title": "t", "body": "b"}


def judged(
    github: FakeGithub, method: str, path: str, *, body: Any = None, answer: Any = None, status: int = 200
) -> None:
    reply = HttpAnswer(status, {"content-type": "application/json"}, json.dumps(answer).encode())
    sent = json.dumps(body).encode() if body is not None else b""
    headers = {"Content-Type": "application/json"}
    github.interface.judge(method, f"{github.interface.base}{path}", headers, sent, reply)


def whole(github: FakeGithub, **members: Any) -> Any:
    github.branches["topic"] = "a" * 40
    made = github.open("topic")
    return github.interface.whole("POST", PULLS, 201, {**github._full(made), **members})


def test_what_is_right_passes(github):
    judged(github, "POST", PULLS, body=GOOD, answer=whole(github), status=201)


@pytest.mark.parametrize(
    "body",
    [{**GOOD, "labels": ["network"]}, {**GOOD, "title": 7}, {"title": "t"}, {**GOOD, "draft": "yes"}],
    ids=["unknown member", "wrong type", "missing member", "no boolean"],
)
def test_a_wrong_request_is_refused(github, body):
    with pytest.raises(AssertionError):
        judged(github, "POST", PULLS, body=body, answer=whole(github), status=201)


@pytest.mark.parametrize("query", ["?source_branch=topic", "?state=opened", "?page=first"])
def test_a_wrong_query_is_refused(github, query):
    with pytest.raises(AssertionError):
        judged(github, "GET", f"{PULLS}{query}", answer=[])


@pytest.mark.parametrize("members", [{"number": "seven"}, {"state": "locked"}, {"labels": None}])
def test_a_wrong_reply_is_refused(github, members):
    with pytest.raises(AssertionError):
        judged(github, "POST", PULLS, body=GOOD, answer={**whole(github), **members}, status=201)


def test_a_reply_that_is_never_given_is_refused(github):
    with pytest.raises(AssertionError):
        judged(github, "POST", PULLS, body=GOOD, answer=whole(github), status=200)


def test_a_double_cannot_have_members_that_the_real_one_has_not(github):
    with pytest.raises(AssertionError, match="content_version"):
        whole(github, content_version=3)


def test_an_operation_that_is_not_named_is_refused(github):
    with pytest.raises(AssertionError):
        judged(github, "DELETE", f"{PULLS}/1", answer={})


SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/things": {
            "post": {
                "parameters": [{"name": "body", "in": "body", "schema": {"$ref": "#/definitions/Thing"}}],
                "responses": {"201": {"$ref": "#/responses/Thing"}},
            }
        }
    },
    "definitions": {
        "Thing": {"type": "object", "properties": {"size": {"type": "integer"}, "name": {"type": "string"}}}
    },
    "responses": {"Thing": {"description": "", "schema": {"$ref": "#/definitions/Thing"}}},
}


@pytest.mark.parametrize(
    ("body", "answer", "good"),
    [
        ({"size": 1}, {"size": 1}, True),
        ({"size": 1}, {"size": None}, True),
        ({"size": "1"}, {"size": 1}, False),
        ({"colour": 1}, {"size": 1}, False),
        ({"size": 1}, {"size": "1"}, False),
        ({"size": 1}, {"size": "1", "name": None}, False),
    ],
)
def test_swagger_is_judged_the_same_way_and_only_null_is_let_through(body, answer, good):
    base = "https://git.example.net/api/v1"
    interface = Interface(openapi_of_swagger(SWAGGER), operations=["POST /things"], base=base, tolerated=NIL)
    reply = HttpAnswer(201, {"content-type": "application/json"}, json.dumps(answer).encode())
    sent = (f"{base}/things", {"Content-Type": "application/json"}, json.dumps(body).encode(), reply)
    if good:
        interface.judge("POST", *sent)
    else:
        with pytest.raises(AssertionError):
            interface.judge("POST", *sent)

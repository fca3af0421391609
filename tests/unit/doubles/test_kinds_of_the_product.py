"""The double judges the product's own kinds as the real server does: the same table of rules, the same violations.

The table is proven on a real server in tests/cluster/test_crds.py.
"""

import json
from typing import Any

import pytest

from gitops_ctl.api.crd import crd_of, kind_of
from gitops_ctl.api.kinds import ALL_KINDS
from tests.doubles.apiserver import Answer, ApiServer, Request
from tests.support.api_case import Case, answers, born
from tests.support.api_rules import CASES
from tests.support.api_violations import LARGE, Violation, full_objects, violations

CRDS = {kind_of(model).kind: crd_of(model) for model in ALL_KINDS}
PLACES = {
    kind_of(model).kind: f"{kind_of(model).group}/{{}}{'/namespaces/{}' if kind_of(model).namespaced else ''}/"
    + kind_of(model).plural
    for model in ALL_KINDS
}
FULL = full_objects()
VIOLATIONS = [
    (kind, broken)
    for kind, crd in CRDS.items()
    if kind not in LARGE
    for broken in violations(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], FULL[kind])  # type: ignore[index,call-overload,arg-type]
]


@pytest.fixture(scope="module")
def api() -> ApiServer:
    """A server with our kinds and the namespace of the examples."""
    server = ApiServer(lag=0)
    for crd in CRDS.values():
        made = send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", dict(crd))
        assert made.code == 201, made.body
    send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    return server


def send(server: ApiServer, method: str, path: str, body: Any = None, **query: str) -> Answer:
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    data = b"" if body is None else json.dumps(body).encode()
    return server.handle(Request(method, path, {"fieldValidation": "Strict", **query}, headers, data))


def says(server: ApiServer, tree: dict[str, Any]) -> str:
    """Empty when the object is accepted, else code and message; nothing stays behind."""
    version = tree["apiVersion"].rpartition("/")[2]
    path = f"/apis/{PLACES[tree['kind']].format(version, tree['metadata'].get('namespace'))}"
    if "status" not in tree and not answers(tree):
        return told(send(server, "POST", path, tree, dryRun="All"))
    name = f"{path}/{tree['metadata']['name']}"
    assert send(server, "POST", path, born(tree)).code in (201, 409)
    try:
        status = {"status": tree.get("status", FULL[tree["kind"]]["status"])}
        if not answers(tree):
            return told(send(server, "PATCH", f"{name}/status", status, dryRun="All"))
        said = told(send(server, "PATCH", f"{name}/status", status))
        return said or told(send(server, "PATCH", name, {"spec": tree["spec"]}, dryRun="All"))
    finally:
        send(server, "DELETE", name)


def told(answer: Answer) -> str:
    if answer.code < 300:
        return ""
    assert isinstance(answer.body, dict)
    return f"{answer.code} {answer.body['message']}"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_good_is_accepted_and_the_bad_refused(api: ApiServer, case: Case) -> None:
    assert says(api, case.good) == ""
    assert case.told in says(api, case.bad)
    for bad in case.extra_bad:
        assert says(api, bad).startswith("422"), bad


@pytest.mark.parametrize("kind", FULL)
def test_an_object_with_every_member_is_accepted(api: ApiServer, kind: str) -> None:
    assert says(api, {key: value for key, value in FULL[kind].items() if key != "status"}) == ""
    assert says(api, FULL[kind]) == ""


@pytest.mark.parametrize(
    ("kind", "broken"), VIOLATIONS, ids=[f"{kind} {broken.path} {broken.keyword}" for kind, broken in VIOLATIONS]
)
def test_every_keyword_holds(api: ApiServer, kind: str, broken: Violation) -> None:
    tree = broken.tree if broken.path.startswith("status") else {k: v for k, v in broken.tree.items() if k != "status"}
    answer = says(api, tree)
    assert answer.startswith(("422", "400")), answer or "accepted"
    assert broken.path.split("[")[0] in answer

"""Our kinds on a real API server: what is sent is what is stored, and every rule holds there.

In scope: CustomResourceDefinitions, defaults, each keyword and each CEL rule.  The same table against the models and the JSON
Schema is in tests/unit/api/test_rules.py.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gitops_ctl.api.crd import crd_of, kind_of
from gitops_ctl.api.generate import SCHEMAS
from gitops_ctl.api.kinds import ALL_KINDS
from gitops_ctl.api.model import parse
from tests.support.api import a_condition, a_source, a_sync, an_inventory
from tests.support.api_case import Case, answers, born
from tests.support.api_rules import CASES
from tests.support.api_talos import a_cluster, a_machine
from tests.support.api_violations import LARGE, Violation, full_objects, violations
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import CRDS_PATH, PlainApi, install_crds

pytestmark = pytest.mark.cluster

MODELS = {kind_of(model).kind: model for model in ALL_KINDS}
CRDS = {kind: crd_of(model) for kind, model in MODELS.items()}
FULL = full_objects()
VIOLATIONS = [
    (kind, broken)
    for kind, crd in CRDS.items()
    if kind not in LARGE
    for broken in violations(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], FULL[kind])  # type: ignore[index,call-overload]
]


@pytest.fixture(scope="module")
def server(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    """The API server with our kinds, and the namespace of the examples."""
    api = PlainApi(control_plane)
    install_crds(api)
    api.post("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    yield api
    api.close()


def place_of(tree: dict[str, Any]) -> str:
    kind = kind_of(MODELS[tree["kind"]])
    place = f"/namespaces/{tree['metadata']['namespace']}" if kind.namespaced else ""
    return f"/apis/{tree['apiVersion']}{place}/{kind.plural}"


class Judge:
    """Says what the server thinks of an object, without leaving anything behind."""

    def __init__(self, server: PlainApi) -> None:
        self.server = server

    def says(self, tree: dict[str, Any]) -> str:
        """Empty when the server accepts the object, else its message."""
        if "status" in tree or answers(tree):
            return self._says_of_status(tree)
        return self.server.post(f"{place_of(tree)}?dryRun=All&fieldValidation=Strict", tree).message

    def _says_of_status(self, tree: dict[str, Any]) -> str:
        """A status counts only at its own address, and only for an object that is there; what answers to it comes last."""
        named = f"{place_of(tree)}/{tree['metadata']['name']}"
        made = self.server.post(place_of(tree), born(tree))
        assert made.status in (201, 409), made.body
        try:
            written = {"status": tree.get("status", FULL[tree["kind"]]["status"])}
            dry = "" if answers(tree) else "&dryRun=All"
            said = self.server.merge(f"{named}/status?fieldValidation=Strict{dry}", written).message
            if said or not answers(tree):
                return said
            return self.server.merge(f"{named}?dryRun=All&fieldValidation=Strict", {"spec": tree["spec"]}).message
        finally:
            self.server.delete(named)


@pytest.fixture(scope="module")
def judge(server: PlainApi) -> Judge:
    return Judge(server)


@pytest.mark.parametrize("kind", CRDS)
def test_what_is_stored_is_what_was_sent(server: PlainApi, kind: str):
    sent: Any = CRDS[kind]
    stored = server.get(f"{CRDS_PATH}/{sent['metadata']['name']}").body
    assert stored["spec"]["versions"] == sent["spec"]["versions"]
    assert {key: stored["spec"][key] for key in sent["spec"]} == sent["spec"]
    conditions = {item["type"]: item["status"] for item in stored["status"]["conditions"]}
    assert conditions["NamesAccepted"] == conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("crds/*.yaml")), ids=lambda path: path.stem)
def test_the_committed_file_is_accepted_without_a_warning(server: PlainApi, path):
    sent = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    reply = server.apply(f"{CRDS_PATH}/{sent['metadata']['name']}?fieldValidation=Strict&dryRun=All", sent)
    assert (reply.status, reply.warning) == (200, "")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_server_accepts_the_good_and_refuses_the_bad(judge: Judge, case: Case):
    assert judge.says(case.good) == ""
    assert case.told in judge.says(case.bad)
    for bad in case.extra_bad:
        assert judge.says(bad).startswith("422"), bad


@pytest.mark.parametrize("kind", FULL)
def test_an_object_with_every_member_is_accepted(judge: Judge, kind: str):
    assert judge.says({key: value for key, value in FULL[kind].items() if key != "status"}) == ""
    assert judge.says(FULL[kind]) == ""


@pytest.mark.parametrize(
    ("kind", "broken"), VIOLATIONS, ids=[f"{kind} {broken.path} {broken.keyword}" for kind, broken in VIOLATIONS]
)
def test_every_keyword_holds_on_the_server(judge: Judge, kind: str, broken: Violation):
    tree = broken.tree if broken.path.startswith("status") else {k: v for k, v in broken.tree.items() if k != "status"}
    answer = judge.says(tree)
    assert answer.startswith(("422", "400")), answer or "accepted"
    assert broken.path.split("[")[0] in answer


@pytest.mark.parametrize("tree", [a_source(), a_sync(), a_cluster(), a_machine()], ids=lambda tree: tree["kind"])
def test_the_server_fills_in_the_defaults_of_the_models(server: PlainApi, tree: dict[str, Any]):
    model = MODELS[tree["kind"]]
    stored = server.post(f"{place_of(tree)}?dryRun=All", tree).body
    filled = parse(model, tree).to_tree()["spec"]
    # An empty text or list is not stored: absent means the same.
    assert stored["spec"] == without_empty(filled)
    assert parse(model, stored).to_tree()["spec"] == filled


def without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: without_empty(member) for key, member in value.items() if member not in ("", [])}


def test_the_server_adds_nothing_to_an_inventory(server: PlainApi):
    tree = an_inventory()
    assert server.post(f"{place_of(tree)}?dryRun=All", tree).body["spec"] == tree["spec"]


def test_a_null_counts_as_absent(server: PlainApi):
    tree = a_sync(targetNamespace=None, interval=None)
    stored = server.post(f"{place_of(tree)}?dryRun=All", tree).body
    assert (stored["spec"]["interval"], "targetNamespace" in stored["spec"]) == ("10m", False)
    assert parse(MODELS["Sync"], tree).to_tree()["spec"]["interval"] == "10m"  # type: ignore[index,call-overload]


def test_a_misspelt_member_is_refused_when_the_caller_is_strict(judge: Judge):
    assert 'unknown field "spec.pathh"' in judge.says(a_sync(pathh="a"))


def test_a_status_in_a_written_object_is_ignored_and_changes_no_generation(server: PlainApi, namespace: str):
    tree = a_sync(namespace=namespace)
    made = server.post(place_of(tree), {**tree, "status": {"observedGeneration": 7}}).body
    assert "status" not in made
    status = {"status": {"observedGeneration": 1}}
    written = server.merge(f"{place_of(tree)}/fabric/status", status).body
    assert (written["status"], written["metadata"]["generation"]) == (status["status"], 1)


def test_the_table_answers_is_it_fine_which_revision_since_when_and_why_not(server: PlainApi, namespace: str):
    tree = a_sync(namespace=namespace)
    server.post(place_of(tree), tree)
    ready = a_condition(lastTransitionTime="2024-02-01T00:00:00Z")
    status = {**full_objects()["Sync"]["status"], "conditions": [ready]}
    assert server.merge(f"{place_of(tree)}/fabric/status", {"status": status}).message == ""
    wide = table_of(server, place_of(tree))
    assert wide["Ready"] == "True"
    assert wide["Reason"] == "Succeeded"
    assert wide["Revision"] == status["lastAppliedRevision"]
    # The server shows a date as the time since then.
    assert re.fullmatch(r"[0-9]+(y[0-9]+)?d?", wide["Since"])
    assert (wide["Objects"], wide["Held"], wide["Drifted"]) == (1, 1, 1)


def table_of(server: PlainApi, path: str) -> dict[str, Any]:
    """The only row of the table that kubectl would print, by column."""
    table = server.get(f"{path}?includeObject=None", accept="application/json;as=Table;g=meta.k8s.io;v=v1").body
    columns = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(columns, table["rows"][0]["cells"], strict=True))

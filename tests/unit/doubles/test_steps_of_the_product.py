"""What may follow a version of a device, a rollout or a leaf, on the in-memory server; the same table runs on a real one.

The table is proven on a real server in tests/cluster/test_rollout_kinds.py.
"""

import json
from typing import Any

import pytest

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.kinds import ALL_KINDS
from tests.doubles.apiserver import ApiServer, Request
from tests.support.api_device_steps import DEVICE_STEPS
from tests.support.api_leaf_steps import LEAF_STEPS
from tests.support.api_rollout_steps import ROLLOUT_STEPS
from tests.support.api_step import PLACES, Call, Stage, Step

STEPS = (*DEVICE_STEPS, *ROLLOUT_STEPS, *LEAF_STEPS)
CRDS = [crd_of(model) for model in ALL_KINDS if model.__name__ in PLACES]


@pytest.fixture(scope="module")
def call() -> Call:
    server = ApiServer(lag=0)

    def send(method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        place, _, query = path.partition("?")
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        data = b"" if body is None else json.dumps(body).encode()
        answer = server.handle(Request(method, place, {"dryRun": "All"} if query else {}, headers, data))
        assert isinstance(answer.body, dict)
        return answer.code, answer.body

    for crd in CRDS:
        code, body = send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        assert code == 201, body
    send("POST", "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    return send


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_only_what_the_contract_allows_follows(call: Call, step: Step) -> None:
    with Stage(call, step.old) as stage:
        assert stage.says(step.good, part=step.part) == ""
        for bad in step.bad:
            assert step.told in stage.says(bad, part=step.part), bad.get(step.part, "gone")


def rules(node: Any) -> list[str]:
    found = [item["message"] for item in node.get("x-kubernetes-validations", ()) if "oldSelf" in item["rule"]]
    for part in (*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])):
        found += rules(part)
    return found


def test_every_rule_about_the_old_version_has_a_step_that_breaks_it() -> None:
    crds: Any = CRDS
    said = [text for crd in crds for text in rules(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])]
    assert len(said) > 50
    assert [text for text in said if not any(step.told in text for step in STEPS)] == []

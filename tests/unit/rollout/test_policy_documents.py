"""Policy and ledger in Git: a text that breaks a rule holds the object, at its line (rollouts.md, 2.6 and 7)."""

import json
import re
from pathlib import Path

import pytest
import yaml

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.rules import check_rules
from gitops_ctl.fleet import names
from gitops_ctl.rollout.policydocuments import policy_flaws
from tests.support.documents import document
from tests.support.fleet_objects import policy_tree

ANNOTATIONS = {
    names.MANAGED_POLICY: "true",
    names.APP_HOSTING_ACCOUNT: "release-app-hosting",
    names.NETWORK_MANAGEMENT_ACCOUNT: "release-network-management",
    names.CONFIG_LEASE_NAMESPACE: "",
}


def problems(*, annotations=ANNOTATIONS, labels=None, data=None):
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "release-topology-policy",
            "namespace": "gitops-ctl-system",
            "annotations": annotations,
            "labels": labels or {},
        },
        "data": {"policy.json": json.dumps(policy_tree())} if data is None else data,
    }
    read = document(yaml.safe_dump(tree))
    found = [(flaw.code, flaw.message) for flaw in policy_flaws(read)]
    assert [(problem.code, problem.message) for problem in check_rules(read)] == found
    return found


def test_a_policy_that_keeps_every_rule_is_none_to_speak_of():
    assert problems() == []


def test_the_policy_of_the_manual_keeps_every_rule():
    page = (Path(__file__).parents[3] / "docs/howto/fleet-policy.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert list(policy_flaws(document(example))) == []


def test_a_policy_that_breaks_a_bound_is_told_with_the_place_in_its_text():
    text = json.dumps(policy_tree(globalMaxUnavailable=0))
    assert problems(data={"policy.json": text}) == [
        (
            ErrorCode.FLEET_POLICY_INVALID,
            "policy.json#/globalMaxUnavailable: globalMaxUnavailable must be 1 to 100, not 0",
        )
    ]


def test_a_policy_without_its_text_is_told():
    assert problems(data={}) == [(ErrorCode.FLEET_POLICY_INVALID, "policy.json#: the document is empty")]


@pytest.mark.parametrize(
    "key", [names.APP_HOSTING_ACCOUNT, names.NETWORK_MANAGEMENT_ACCOUNT, names.CONFIG_LEASE_NAMESPACE]
)
def test_an_annotation_that_says_something_else_than_the_text_is_told(key):
    ((code, message),) = problems(annotations={**ANNOTATIONS, key: "other"})
    assert code is ErrorCode.FLEET_POLICY_INVALID
    assert key in message
    assert "'other'" in message


def test_a_policy_is_also_known_by_its_component():
    without = {key: value for key, value in ANNOTATIONS.items() if key != names.MANAGED_POLICY}
    assert problems(annotations=without) == []
    ((_, message),) = problems(annotations=without, labels={names.COMPONENT: "topology-policy"})
    assert names.MANAGED_POLICY in message


def test_another_configmap_may_have_such_a_key():
    assert problems(annotations={"example.net/a": "b"}, data={"policy.json": "{}", "ledger.json": "{}"}) == []


def test_reservations_in_git_are_refused():
    marks = {names.MANAGED_LEDGER: "true"}
    ((code, message),) = problems(annotations=marks, data={"ledger.json": "{}"})
    assert code is ErrorCode.LEDGER_INVALID
    assert "written by the manager alone" in message
    assert problems(annotations=marks, data={}) == []

"""`gitops-ctl verify plan`: from files and from a cluster to what agrees and what does not."""

import json
from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.main import run
from gitops_ctl.rollout.freeze import freeze
from tests.support.rollout_cluster import rollout_server, stored, talking_to
from tests.support.rollout_planning import NOW, SITE, changed, fleet, given, node, policy_map, policy_record, rollout

VECTORS = Path(__file__).parents[2] / "vectors" / "rollouts"
RISK = [
    {"name": "pair", "selector": {"matchLabels": {SITE: "site-a"}}, "maxConcurrentTransfers": 1, "maxUnavailable": 1}
]


@pytest.fixture(autouse=True)
def _no_cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)


def written(name, tree, form=json.dumps):
    Path(name).write_text(form(tree))
    return name


def published(name):
    return json.loads((VECTORS / f"{name}.json").read_text())["derived_from"]


def test_published_objects_of_the_reference_verify(capsys):
    files = [
        written("plan.json", published("plan-hash")),
        written("policy.yaml", published("policy-structural-hash"), yaml.safe_dump),
        written("node.json", published("projection-hash")),
    ]
    assert run(["verify", "plan", *files]) == 0
    told = capsys.readouterr().out
    assert "22 of 22 published values are those of their objects." in told
    assert "status.frozenPlan.policy.name" not in told
    assert run(["verify", "plan", "-o", "wide", *files]) == 0
    assert "status.frozenPlan.policy.name" in capsys.readouterr().out


def test_an_edited_plan_differs_and_the_member_is_named(capsys):
    edited = changed(published("plan-hash"), "spec", "plan", "pauseAfterCanary", to=True)
    assert run(["verify", "plan", "-o", "json", written("plan.json", edited)]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "PlanVerification"
    (wrong,) = [one for one in found["findings"] if one["member"] == "status.frozenPlan.hash"]
    assert wrong["verdict"] == "Differs"
    assert wrong["detail"] == "the published hash comes out with /plan/pauseAfterCanary = false"


def test_the_input_of_the_hash_can_be_looked_at(capsys):
    assert run(["verify", "plan", "-o", "json", "--show-input", written("plan.json", published("plan-hash"))]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["inputs"].values()
    assert shown == json.loads((VECTORS / "plan-hash.json").read_text())["input"]


def test_a_list_of_kubectl_is_several_objects(capsys):
    trees = {"kind": "List", "apiVersion": "v1", "items": [published("projection-hash"), published("conditions-hash")]}
    assert run(["verify", "plan", written("list.yaml", trees, yaml.safe_dump)]) == 0
    assert "1 of 1 published values" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.yaml"], "missing.yaml: there is no such file"),
        (["spring"], "no namespace is named"),
        (["secret.json"], "no object that publishes a hash"),
        (["broken.yaml"], "it is not YAML"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_cannot_be_verified_is_an_error(arguments, message, capsys):
    written("secret.json", {"kind": "Secret", "metadata": {"name": "x"}})
    Path("broken.yaml").write_text("a: [")
    assert run(["verify", "plan", *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.fixture
def cluster(monkeypatch):
    """A frozen rollout over two of three devices, with risk groups."""
    api = rollout_server()
    devices, elsewhere = fleet(2), changed(fleet(3)[2], "metadata", "namespace", to="lab")
    everywhere = [*devices, elsewhere]
    policy = stored(api, policy_map(riskGroups=RISK))
    nodes = [node(tree) for tree in everywhere]
    for tree in (*everywhere, *nodes):
        stored(api, tree)
    record = policy_record(riskGroups=RISK, version=policy["metadata"]["resourceVersion"])
    plan = freeze(given(devices, nodes=nodes, everywhere=everywhere, policy=record))
    stored(api, {**rollout(), "status": {"frozenPlan": plan.to_json(created_at=NOW)}})
    monkeypatch.setattr("gitops_ctl.cli.verifyplan.connected", talking_to(api))
    return api


def test_a_rollout_of_a_cluster_is_verified_with_all_that_belongs_to_it(cluster, capsys):
    assert run(["verify", "plan", "spring", "-n", "prod", "-o", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {one["verdict"] for one in findings} == {"Same", "Computed"}
    members = {one["member"] for one in findings}
    assert {"status.frozenPlan.riskGroupMembershipHash", "status.frozenPlan.policy.semanticHash"} <= members
    assert {one["object"].split("/")[0] for one in findings} == {
        "IOSXESoftwareRollout",
        "ConfigMap",
        "Node",
        "CiscoDevice",
    }
    assert not any("edge-3" in one["object"] for one in findings)


def test_a_device_that_changed_since_the_plan_was_frozen_is_named(cluster, capsys):
    stored(cluster, changed(fleet(2)[1], "metadata", "generation", to=4))
    assert run(["verify", "plan", "spring", "-n", "prod", "-o", "name"]) == 2
    assert capsys.readouterr().out == "IOSXESoftwareRollout/prod/spring\n"


def test_a_rollout_that_is_not_there_is_an_error(cluster, capsys):
    assert run(["verify", "plan", "autumn", "-n", "prod"]) == 1
    assert "there is no rollout prod/autumn" in capsys.readouterr().err

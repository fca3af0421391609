"""`gitops-ctl plan rollout`: from documents, files of kubectl or a cluster to who is in, who is out and who blocks."""

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.main import run
from gitops_ctl.cli.rolloutplan import stored_form
from gitops_ctl.fleet.encoding import compact_json
from gitops_ctl.rollout.freeze import freeze
from gitops_ctl.rollout.planorder import ordered_plan
from tests.support.rollout_cluster import rollout_server, stored, talking_to
from tests.support.rollout_planning import (
    NOW,
    SHA256,
    ZONE,
    changed,
    device,
    fleet,
    given,
    labels_of,
    node,
    policy_map,
    policy_record,
    rollout,
    source,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "rollouts"
ANNOTATIONS = {
    "topology.cisco.vk/app-hosting-service-account": "app-hosting",
    "topology.cisco.vk/network-management-service-account": "network-management",
    "topology.cisco.vk/config-lease-namespace": "",
}
INTENT = {
    "apiVersion": "ops.cisco.vk/v1alpha1",
    "kind": "IOSXESoftwareRollout",
    "metadata": {"name": "spring", "namespace": "prod"},
    "spec": {
        "plan": {
            "targets": {"selector": {"matchLabels": {"topology.cisco.vk/managed": "true"}}},
            "image": {
                "sha256": SHA256,
                "imageFamily": "cat9k",
                "sources": [source(), source("a", selector={"matchLabels": {ZONE: "a"}})],
            },
            "targetVersion": "17.18.03",
            "canaries": [{"name": "c9300", "devices": ["edge-1"]}],
            "health": {"canarySoakSeconds": 0},
        }
    },
}


@pytest.fixture(autouse=True)
def _checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr("gitops_ctl.cli.rolloutplan.SystemClock", Stopped)
    Path("spring.yaml").write_text(yaml.safe_dump(INTENT))


class Stopped:
    """The clock of the tests' objects."""

    def wall(self):
        return NOW


def policy(**more):
    tree = policy_map(**more)
    tree["metadata"]["annotations"] |= ANNOTATIONS
    tree["metadata"]["labels"] = {"app.kubernetes.io/component": "topology-policy"}
    return tree


def files(devices, *, nodes=None, fleet_policy=None):
    """The options for a cluster in files."""
    trees = {
        "devices": devices,
        "nodes": list(map(node, devices)) if nodes is None else nodes,
        "policy": [fleet_policy or policy()],
    }
    found = []
    for name, items in trees.items():
        file = Path("..") / f"{name}.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        found += [f"--{name}", str(file)]
    return found


def document(tree):
    """A device as it is committed."""
    meta = {name: tree["metadata"][name] for name in ("name", "namespace", "labels")}
    return {**{name: tree[name] for name in ("apiVersion", "kind", "spec")}, "metadata": meta}


def test_a_plan_over_files_names_waves_sources_and_who_is_out(capsys):
    spare = {**labels_of("edge-8"), "topology.cisco.vk/managed": "no"}
    devices = [*fleet(2), device("edge-3", zone="b"), device("edge-8", labels=spare)]
    assert run(["plan", "rollout", "spring.yaml", *files(devices)]) == 2
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert told[1][:6] == ["edge-1", "In", "canary", "c9300", "a", "17.12.4"]
    assert told[2][:5] == ["edge-2", "In", "1", "c9300", "a"]
    assert told[3][:5] == ["edge-3", "In", "1", "c9300", "north"]
    assert told[4][:2] == ["edge-8", "Out"]
    lines = [" ".join(words) for words in told]
    assert "3 devices to 17.18.03 by Reload: 1 canary first, then 2 more after a resume." in lines
    assert "Budgets: 1 transfer and 1 unavailable at once. Soak: 600 s after a canary, 300 s after any other." in lines
    assert any(line.startswith("Warning: health.canarySoakSeconds is 0") for line in lines)
    assert "Plan hash: told once the rollout exists, since it holds the UID." in lines


def test_who_blocks_and_why_is_told_and_the_exit_code_says_so(capsys):
    devices = fleet(3)
    devices[2]["status"]["phase"] = "Error"
    assert run(["plan", "rollout", "spring.yaml", "-o", "json", *files(devices)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "RolloutPlan"
    assert [one["place"] for one in found["devices"]] == ["In", "In", "Blocked"]
    first = found["devices"][2]["problems"][0]
    assert (first["reason"], first["device"]) == ("DeviceNotReady", "prod/edge-3")
    assert run(["plan", "rollout", "spring.yaml", *files(devices)]) == 1
    assert "Blocked: prod/edge-3: its phase is Error (DeviceNotReady)" in capsys.readouterr().out


def test_the_documents_of_a_checkout_alone_say_what_they_can(capsys):
    devices = [document(tree) for tree in fleet(2)]
    Path("devices.yaml").write_text(yaml.safe_dump_all([*devices, policy()]))
    assert run(["plan", "rollout", "spring.yaml", "--offline"]) == 2
    told = capsys.readouterr().out
    assert "2 devices to 17.18.03 by Reload: 1 canary first, then 1 more after a resume." in told
    assert "Not looked at: the state of the devices and of their Nodes in a cluster." in told
    assert "hash" not in told


def test_a_document_with_another_image_family_blocks_offline_too(capsys):
    devices = [document(tree) for tree in fleet(2)]
    devices[1]["metadata"]["labels"]["operations.cisco.vk/image-family"] = "cat8k"
    Path("devices.yaml").write_text(yaml.safe_dump_all([*devices, policy()]))
    assert run(["plan", "rollout", "spring.yaml", "--offline"]) == 1
    assert "Blocked: prod/edge-2: its image family is cat8k, the plan's is cat9k" in capsys.readouterr().out


def test_two_targets_that_are_one_chassis_block_each_other(capsys):
    devices = fleet(2)
    devices[1] = changed(devices[1], "spec", "physicalIdentity", to=devices[0]["spec"]["physicalIdentity"])
    devices[1] = changed(devices[1], "status", "nodeIdentity", "physicalIdentity", to="foc-edge-1-uid")
    assert run(["plan", "rollout", "spring.yaml", "-o", "json", *files(devices)]) == 1
    found = json.loads(capsys.readouterr().out)["devices"]
    assert [one["problems"][0]["reason"] for one in found] == ["PhysicalIdentityRepeated"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--offline"], "there is no ConfigMap with policy.json"),
        (["--offline", "--name", "autumn"], "spring.yaml holds no rollout"),
        (["--devices", "spring.yaml"], "it holds IOSXESoftwareRollout, not CiscoDevice"),
    ],
    ids=["no policy", "another name", "another kind"],
)
def test_what_cannot_be_said_is_an_error(arguments, message, capsys):
    assert run(["plan", "rollout", "spring.yaml", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_document_that_breaks_its_schema_is_refused_with_the_place(capsys):
    Path("spring.yaml").write_text(yaml.safe_dump(changed(INTENT, "spec", "plan", "targetVersion", to="17-18")))
    assert run(["plan", "rollout", "spring.yaml", *files(fleet(1))]) == 1
    assert "spec.plan.targetVersion" in capsys.readouterr().err


def test_the_defaults_that_are_filled_in_are_those_that_are_hashed():
    published = json.loads((VECTORS / "plan-hash.json").read_text())
    stored_plan = stored_form(published["derived_from"], now=NOW)["spec"]["plan"]
    assert compact_json(ordered_plan(stored_plan)) == compact_json(published["input"]["plan"])
    least = stored_form(INTENT, now=NOW)["spec"]["plan"]
    filled = ordered_plan(least)
    assert filled["rollbackOnFailure"] is True
    assert filled["pauseAfterCanary"] is True
    assert filled["health"] == {"maxObservationAgeSeconds": 300, "waveSoakSeconds": 300}
    assert (filled["installTimeoutSeconds"], filled["rebootTimeoutSeconds"]) == (3600, 1800)


@pytest.fixture
def cluster(monkeypatch):
    api = rollout_server([policy(), *fleet(3), *map(node, fleet(3))])
    monkeypatch.setattr("gitops_ctl.cli.rolloutplan.connected", talking_to(api))
    return api


def test_a_cluster_is_asked_with_the_rights_of_the_user(cluster, capsys):
    assert run(["plan", "rollout", "spring.yaml"]) == 2
    assert "3 devices to 17.18.03 by Reload: 1 canary first, then 2 more after a resume." in capsys.readouterr().out


def test_a_rollout_that_is_frozen_already_changes_nothing_and_tells_its_hash(cluster, capsys):
    tree = rollout(sources=INTENT["spec"]["plan"]["image"]["sources"])
    tree["spec"]["plan"]["health"]["canarySoakSeconds"] = 0
    tree["spec"]["plan"]["budgets"] = {"maxConcurrentTransfers": 1, "maxUnavailable": 1}
    live = cluster.store.get(("", "configmaps"), ("topology-system", "topology-policy"))
    record = policy_record(version=live["metadata"]["resourceVersion"])
    plan = freeze(given(plan=tree, policy=record, now=NOW + timedelta(seconds=1)))
    stored(cluster, {**tree, "status": {"frozenPlan": plan.to_json(created_at=NOW)}})
    assert run(["plan", "rollout", "spring.yaml"]) == 0
    assert f"Plan hash: {plan.hash}" in capsys.readouterr().out


def test_another_plan_under_the_name_of_a_live_rollout_is_refused(cluster, capsys):
    stored(cluster, rollout(targetVersion="17.18.04"))
    assert run(["plan", "rollout", "spring.yaml"]) == 1
    assert "use a new name" in capsys.readouterr().err


def test_two_policies_ask_which_one_is_meant(cluster, capsys):
    second = policy()
    second["metadata"] |= {"name": "other-policy", "uid": "other"}
    stored(cluster, second)
    assert run(["plan", "rollout", "spring.yaml"]) == 1
    assert "there are several fleet policies: topology-system/other-policy, topology-system/topology-policy" in (
        capsys.readouterr().err
    )
    assert run(["plan", "rollout", "spring.yaml", "--policy-name", "topology-system/other-policy"]) == 2

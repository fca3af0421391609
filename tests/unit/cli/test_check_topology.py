"""`gitops-ctl check` with topology documents: all rules offline, by Nodes from a file, each finding once (topology-scheduling.md, D4, D9)."""

import json
import subprocess

import pytest

from gitops_ctl.api.manifests import manifest
from gitops_ctl.cli.main import run
from tests.support.scheduling_objects import SOURCE_DOCUMENT

SNAPSHOT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: hall-7, namespace: gpustack-system}
data:
  snapshot.yaml: |
    apiVersion: topology.gpustack.ai/v1alpha1
    revision: r1
    nodes:
      gpu-n01: {topology.gpustack.ai/region: north, topology.gpustack.ai/zone: hall7}
"""
NODES = """\
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Node, metadata: {name: gpu-n02, labels: {}}}
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    (root / "topology").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    (root / "topology/source.yaml").write_text(SOURCE_DOCUMENT)
    (root / "topology/hall.yaml").write_text(SNAPSHOT)
    (tmp_path / "nodes.yaml").write_text(NODES)
    return root


def found(capsys, *flags):
    code = run(["check", "-o", "json", *flags])
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert code == (1 if any(one["severity"] == "error" for one in problems) else 0)
    return [(one["file"], one["line"], one["code"], one["message"]) for one in problems]


def test_a_sound_source_and_its_snapshot_pass_in_both_versions(checkout, capsys):
    assert found(capsys) == []
    (checkout / "topology/source.yaml").write_text(SOURCE_DOCUMENT.replace("/v1\n", "/v1alpha1\n"))
    assert found(capsys) == []


def test_an_error_in_a_snapshot_names_the_line_of_its_file_also_when_every_file_is_known(checkout, capsys):
    (checkout / "topology/hall.yaml").write_text(SNAPSHOT.replace("topology.gpustack.ai/region: north, ", ""))
    for _ in range(2):
        ((file, line, code, message),) = found(capsys)
        assert (file, line, code) == ("topology/hall.yaml", 9, "GC1017")
        assert message.startswith("snapshot of source hall-7, rule 12: ")


def test_a_change_of_the_source_judges_a_snapshot_that_did_not_change(checkout, capsys):
    assert found(capsys) == []
    (checkout / "topology/source.yaml").write_text(SOURCE_DOCUMENT.replace("gpustack.ai/zone]", "gpustack.ai/block]"))
    assert [line for _, line, _, message in found(capsys) if "rule 9" in message] == [9]


def test_each_problem_of_a_source_is_told_once_and_an_unknown_member_too(checkout, capsys):
    bad = SOURCE_DOCUMENT.replace("  nodeSelector: {}\n", "").replace(
        "[topology.gpustack.ai/region", "[kubernetes.io/hostname"
    )
    (checkout / "topology/source.yaml").write_text(bad + "  extra: 1\n")
    assert [(line, code, message.partition(":")[0]) for _, line, code, message in found(capsys)] == [
        (4, "GC1017", "spec.nodeSelector"),
        (5, "GC1017", "spec.levels[0]"),
        (10, "GC1015", "extra is no member here"),
    ]


def test_nodes_from_a_file_are_judged_too(checkout, capsys):
    ((file, line, _, message),) = found(capsys, "--nodes", str(checkout.parent / "nodes.yaml"))
    assert (file, line) == ("topology/hall.yaml", 9)
    assert message == "snapshot of source hall-7, rule 8: node gpu-n01 does not exist"
    assert found(capsys) == []


def test_another_worker_namespace_is_said_by_its_flag(checkout, capsys):
    ((file, line, _, message),) = found(capsys, "--worker-namespace", "topology")
    assert (file, line) == ("topology/source.yaml", 8)
    assert message == "spec.configMap.configMapRef.namespace: forbidden: must be topology"


def test_missing_nodes_are_an_error_unless_the_reference_is_asked_for(checkout, capsys):
    (checkout / "topology/hall.yaml").write_text(SNAPSHOT.partition("    nodes:")[0])
    assert [message.partition(":")[0] for _, _, _, message in found(capsys)] == ["snapshot of source hall-7, rule B3"]
    assert found(capsys, "--reference-defaults") == []


def test_a_file_that_holds_no_nodes_is_refused(checkout, capsys):
    (checkout.parent / "nodes.yaml").write_text("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n")
    assert run(["check", "--nodes", str(checkout.parent / "nodes.yaml")]) == 1
    assert "kubectl get nodes -o yaml" in capsys.readouterr().err


def test_nodes_come_from_a_file_or_from_a_cluster(checkout, capsys):
    assert run(["check", "--cluster", "--nodes", str(checkout.parent / "nodes.yaml")]) == 1
    assert "exclude each other" in capsys.readouterr().err


def test_the_policy_about_references_is_evaluated_with_the_worker_namespace_in_place_of_its_parameter(checkout, capsys):
    policy = manifest("policies") / "topology-references.yaml"
    told = found(capsys, "--policies", str(policy), "--worker-namespace", "topology")
    assert [message for _, _, _, message in told if message.startswith("policy ")] == [
        "policy gitops-ctl-topology-references: spec.configMap.configMapRef.namespace must be topology"
    ]
    assert found(capsys, "--policies", str(policy)) == []
    assert run(["check", "--policies", str(policy)]) == 0
    assert "left to the API server" not in capsys.readouterr().out

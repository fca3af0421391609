"""Levels that workloads in Git require (topology-scheduling.md, 11, D32; case 20 of section 15)."""

import pytest

from gitops_ctl.cli.main import run
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.rules import check_rules
from gitops_ctl.scheduling.required_documents import local_queue_of, required_level_flaws, requirements_of

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: users}
spec:
  template:
    metadata:
      annotations:
        kueue.x-k8s.io/podset-required-topology: LEVEL
    spec: {restartPolicy: Never, containers: [{name: main, image: registry.example.net/train:1}]}
"""


def job(level):
    (document,) = load(JOB.replace("LEVEL", level).encode(), file="jobs/train.yaml").documents
    return document


def test_a_label_key_of_a_level_is_accepted():
    assert list(required_level_flaws(job("topology.kubernetes.io/zone"))) == []
    assert [one.level for one in requirements_of(job("topology.kubernetes.io/zone").tree)] == [
        "topology.kubernetes.io/zone"
    ]


@pytest.mark.parametrize(
    ("level", "why"),
    [
        ("kubernetes.io/hostname", "implicit"),
        ("not a label", "label key"),
        (f"topology.gpustack.ai/{'x' * 60}", "63 characters"),
    ],
)
def test_what_cannot_be_required_is_an_error_at_its_line(level, why):
    (problem,) = check_rules(job(level))
    assert (problem.code, problem.file, problem.line) == (ErrorCode.RULE, "jobs/train.yaml", 11)
    assert why in problem.message
    assert "label key" in problem.advice


def test_the_annotation_is_found_in_any_kind_and_in_the_object_itself():
    text = """\
apiVersion: example.net/v1
kind: Gang
metadata: {name: g, annotations: {kueue.x-k8s.io/podset-required-topology: a.example.net/x}}
spec:
  roles:
    - template: {metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: kubernetes.io/hostname}}}
"""
    (document,) = load(text.encode(), file="gang.yaml").documents
    assert [one.pointer for one in requirements_of(document.tree)] == [
        "/metadata/annotations/kueue.x-k8s.io~1podset-required-topology",
        "/spec/roles/0/template/metadata/annotations/kueue.x-k8s.io~1podset-required-topology",
    ]
    (flaw,) = required_level_flaws(document)
    assert flaw.pointer.startswith("/spec/roles/0/")


def test_the_queue_of_a_workload_is_that_of_its_namespace():
    assert local_queue_of(job("a").tree) == "default/users"
    assert local_queue_of({"metadata": {"name": "x"}}) == ""


def test_check_refuses_it_where_a_person_meets_it(tmp_path, capsys):
    (tmp_path / "train.yaml").write_text(JOB.replace("LEVEL", "kubernetes.io/hostname"))
    assert run(["check", "--no-cache", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "error GC1017 rule" in told
    assert "train.yaml:11:" in told
    (tmp_path / "train.yaml").write_text(JOB.replace("LEVEL", "topology.gpustack.ai/rack"))
    assert run(["check", "--no-cache", str(tmp_path)]) == 0

"""Managed queues in Git, and levels that workloads require (topology-scheduling.md, 1.4 and 11; case 20)."""

import copy

import pytest

from gitops_ctl.scheduling.queue_documents import carried, first_apply, give_back, queue_flaws
from gitops_ctl.scheduling.required_level import check_required_level, unknown_level

MARK = "resource.gpustack.ai/type"
POOL = {MARK: "instancetypes", "feature.gpustack.ai/acceleratable": "false", "kubernetes.io/os": "linux"}
WANTED = "topology.gpustack.ai/wanted-stop-policy"


def document(spec=None, *, labels=None, annotations=None):
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "pool", "labels": POOL if labels is None else labels, "annotations": annotations or {}},
        "spec": {"namespaceSelector": {}, **(spec or {})},
    }


def pointers(tree, live=None):
    return [flaw.pointer for flaw in queue_flaws(tree, live)]


def test_a_managed_queue_says_who_it_is_and_nothing_that_is_written_for_it():
    """D5."""
    assert pointers(document({"stopPolicy": "Hold", "preemption": {}})) == []
    bad = document(
        {"resourceGroups": [], "admissionChecksStrategy": {}, "cohortName": "c", "stopPolicy": "Never"},
        annotations={WANTED: "Hold", "gitops-ctl.dev/allow-drain": "sha256:x"},
    )
    assert pointers(bad) == [
        "/spec/resourceGroups",
        "/spec/admissionChecksStrategy",
        "/spec/cohortName",
        "/metadata/annotations/topology.gpustack.ai~1wanted-stop-policy",
        "/spec/stopPolicy",
    ]


def test_no_version_lends_quota_to_a_managed_queue_or_gives_it_checks():
    """v1beta1 has other names for the two."""
    tree = {**document({"cohort": "c", "admissionChecks": ["a"]}), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    assert pointers(tree) == ["/spec/admissionChecks", "/spec/cohort"]


@pytest.mark.parametrize("labels", [{}, {MARK: "instancetypes", "kubernetes.io/os": "linux"}])
def test_a_managed_queue_stays_managed(labels):
    tree = document({"resourceGroups": []}, labels=labels)
    assert pointers(tree, document()) == ["/metadata/labels/resource.gpustack.ai~1type"]
    assert pointers(tree) == pointers(tree, document(labels=labels)) == []


def test_the_policy_of_git_becomes_an_annotation():
    tree = document({"stopPolicy": "HoldAndDrain"}, annotations={"a": "b"})
    before = copy.deepcopy(tree)
    found = carried(tree)
    assert tree == before
    assert found["spec"] == {"namespaceSelector": {}}
    assert found["metadata"]["annotations"] == {"a": "b", WANTED: "HoldAndDrain"}
    assert carried(found) == found


def test_other_documents_come_back_as_they_are():
    for tree in (
        document(),
        document({"stopPolicy": "Hold"}, labels={}),
        {"kind": "ConfigMap", "spec": {"stopPolicy": "x"}},
    ):
        assert carried(tree) is tree
        assert list(queue_flaws(tree, None)) == []


def test_a_queue_is_created_held_and_marked():
    """D6."""
    assert first_apply(document({"stopPolicy": "None"})) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "pool", "annotations": {"topology.gpustack.ai/empty-plan-hold": "true"}},
        "spec": {"stopPolicy": "Hold"},
    }
    assert set(give_back(document())) == {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize(
    ("key", "accepted"),
    [
        ("topology.kubernetes.io/zone", True),
        ("kubernetes.io/hostname", False),
        ("not a label", False),
        ("zone", True),
        (f"{'a' * 40}.example.net/{'b' * 10}", True),
        (f"{'a' * 40}.example.net/{'b' * 11}", False),
        ("topology.kubernetes.io/zone\n", False),
    ],
)
def test_a_workload_requires_a_level_by_its_key(key, accepted):
    """Case 20, D32: a key over 63 characters is a valid level that cannot be requested."""
    assert (check_required_level(key) == "") == accepted


def test_a_level_that_no_flavor_has_warns():
    assert unknown_level("a", [("b",), ("a", "c")]) == ""
    assert "a" in unknown_level("a", [("b",)])
    assert unknown_level("a", []) != ""

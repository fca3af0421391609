"""Topology documents in Git: everything that is wrong at once, at its line, holding the one object (topology-scheduling.md, D4, D5, 4.6)."""

import base64
import json

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.annotations import check_annotations
from gitops_ctl.documents.holds import HoldQuestion, hold_of
from gitops_ctl.documents.loader import load
from gitops_ctl.documents.rules import check_rules
from gitops_ctl.documents.setrules import judge_set
from gitops_ctl.scheduling import documentrules
from gitops_ctl.scheduling.options import Options

SOURCE = """\
apiVersion: worker.gpustack.ai/v1alpha1
kind: TopologySource
metadata: {name: hall-7}
spec:
  nodeSelector: {matchLabels: {hall: "7"}}
  levels: [topology.kubernetes.io/zone, topology.gpustack.ai/rack]
  configMap:
    configMapRef: {namespace: gpustack-system, name: hall-7}
    key: snapshot.yaml
    maxStaleness: 1h
"""
BAD = """\
apiVersion: worker.gpustack.ai/v1
kind: TopologySource
metadata: {name: bad}
spec:
  nodeSelector:
    matchLabels: {example.net/hall: "not a value"}
  levels:
    - kubernetes.io/hostname
    - topology.gpustack.ai/rack
    - topology.gpustack.ai/rack
  webhook:
    url: https://user@inventory.example.net/
    pollInterval: 1m
    timeout: 2m
    maxStaleness: 10s
"""
SNAPSHOT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: hall-7, namespace: gpustack-system}
data:
  snapshot.yaml: |
    apiVersion: topology.gpustack.ai/v1alpha1
    revision: r1
    nodes:
      gpu-n01: {topology.kubernetes.io/zone: z1, topology.gpustack.ai/rack: h7r01}
"""
QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {
        "name": "pool",
        "labels": {"resource.gpustack.ai/type": "instancetypes", "feature.gpustack.ai/acceleratable": "false"},
    },
    "spec": {"namespaceSelector": {}},
}


@pytest.fixture(autouse=True)
def _defaults_afterwards():
    yield
    documentrules.register(Options())


def documents(*texts):
    return [
        document for place, text in enumerate(texts) for document in load(text.encode(), file=f"{place}.yaml").documents
    ]


def said(*texts, namespace=""):
    found = judge_set(documents(*texts), namespace=namespace)
    return [(problem.file, problem.line, problem.severity, problem.message.partition(": ")[0]) for problem in found]


def test_all_problems_of_a_source_are_told_at_once_at_their_lines():
    assert said(BAD) == [
        ("0.yaml", 6, "error", "spec.nodeSelector.matchLabels[example.net/hall]"),
        ("0.yaml", 8, "error", "spec.levels[0]"),
        ("0.yaml", 10, "error", "spec.levels[2]"),
        ("0.yaml", 12, "error", "spec.webhook.url"),
        ("0.yaml", 14, "error", "spec.webhook.timeout"),
        ("0.yaml", 11, "error", "spec.webhook"),
        ("0.yaml", 15, "warning", "spec.webhook.maxStaleness"),
    ]


def test_a_finding_holds_the_object_of_its_document():
    problems = judge_set(documents(BAD))
    assert {problem.object for problem in problems} == {ObjectId("worker.gpustack.ai", "TopologySource", "", "bad")}
    assert {problem.code for problem in problems} == {ErrorCode.RULE}


def test_a_source_whose_snapshot_is_sound_has_no_problems():
    assert said(SOURCE, SNAPSHOT) == []


def test_a_bad_snapshot_holds_the_config_map_and_not_the_source():
    (problem,) = judge_set(documents(SOURCE, SNAPSHOT.replace("topology.kubernetes.io/zone: z1, ", "")))
    assert problem.object == ObjectId("", "ConfigMap", "gpustack-system", "hall-7")
    assert (problem.file, problem.line) == ("1.yaml", 9)
    assert "rule 12" in problem.message


def test_a_snapshot_is_found_by_the_namespace_that_a_sync_gives():
    bad = SNAPSHOT.replace("r1", '" "').replace(", namespace: gpustack-system", "")
    assert said(SOURCE, bad, namespace="gpustack-system")[0][3] == "snapshot of source hall-7, rule 7"
    assert said(SOURCE, bad, namespace="elsewhere") == said(SOURCE, bad) == []


def test_the_worker_namespace_is_an_option():
    assert said(SOURCE) == []
    documentrules.register(Options(worker_namespace="topology"))
    assert said(SOURCE) == [("0.yaml", 8, "error", "spec.configMap.configMapRef.namespace")]


@pytest.mark.parametrize(("options", "told"), [(Options(), 1), (Options.reference(), 0)])
def test_missing_nodes_are_judged_by_the_options(options, told):
    documentrules.register(options)
    assert len(said(SOURCE, SNAPSHOT.partition("    nodes:")[0])) == told


def test_reference_defaults_do_not_look_at_a_short_staleness():
    documentrules.register(Options.reference())
    assert all(severity == "error" for _, _, severity, _ in said(BAD))


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ({"gpu-n01": {"hall": "7", "topology.kubernetes.io/zone": "z1"}}, []),
        ({}, ["rule 8"]),
        ({"gpu-n01": {"hall": "8", "topology.kubernetes.io/zone": "z1"}}, ["rule 8"]),
        ({"gpu-n01": {"hall": "7"}}, ["rule 14"]),
        ({"gpu-n01": {"hall": "7", "topology.kubernetes.io/zone": "z2"}}, ["rule 14"]),
    ],
)
def test_with_nodes_the_rules_that_need_them_are_asked_too(nodes, told):
    documentrules.register(Options(), nodes=nodes)
    found = judge_set(documents(SOURCE, SNAPSHOT))
    assert [problem.message.partition(", ")[2].partition(":")[0] for problem in found] == told


def test_two_sources_that_write_to_one_node_are_told_at_both():
    other = SOURCE.replace("name: hall-7}\nspec", "name: other}\nspec").replace('{matchLabels: {hall: "7"}}', "{}")
    documentrules.register(Options(), nodes={"gpu-n01": {"hall": "7"}, "gpu-n02": {}})
    found = judge_set(documents(SOURCE, other))
    assert [(problem.object.name, problem.line) for problem in found] == [("hall-7", 5), ("other", 5)]
    assert "writes to 1 Nodes of other sources (other)" in found[0].message


def test_labels_that_are_no_tree_are_told_at_the_source_that_reads_them():
    reads = SOURCE.partition("  configMap:")[0] + "  nodeLabels: {}\n"
    rack, zone = "topology.gpustack.ai/rack", "topology.kubernetes.io/zone"
    nodes = {name: {"hall": "7", zone: zone_of, rack: "r"} for name, zone_of in (("a", "z1"), ("b", "z2"))}
    documentrules.register(Options(), nodes=nodes)
    (problem,) = judge_set(documents(reads))
    assert problem.message.startswith("the labels are no tree: topology.gpustack.ai/rack=r has other parents")


@pytest.mark.parametrize(
    ("data", "binary", "is_told"),
    [
        ({"a": "x" * 2**20}, {}, False),
        ({"a": "x" * 2**19, "b": "x" * (2**19 + 1)}, {}, True),
        ({"a": "ä" * (2**19 + 1)}, {}, True),
        ({}, {"a": base64.b64encode(bytes(2**20)).decode()}, False),
        ({"a": "x"}, {"b": base64.b64encode(bytes(2**20)).decode()}, True),
    ],
    ids=["as much as can be", "two values", "counted in bytes", "decoded", "both"],
)
def test_a_config_map_that_no_server_takes_is_told(data, binary, is_told):
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data, "binaryData": binary}
    (document,) = load(json.dumps(tree).encode(), file="large.json").documents
    problems = [problem for problem in check_rules(document) if "bytes" in problem.message]
    assert [problem.code for problem in problems] == [ErrorCode.RULE] * is_told
    assert all(f"{2**20} are possible" in problem.message and "split" in problem.advice for problem in problems)


def test_a_set_without_a_source_is_not_asked():
    assert said(SNAPSHOT.replace("r1", '" "')) == []


def queue(labels=None, annotations=None, **spec):
    metadata = {**QUEUE["metadata"], **({"labels": labels} if labels is not None else {})}
    return {**QUEUE, "metadata": {**metadata, "annotations": annotations or {}}, "spec": {**QUEUE["spec"], **spec}}


def test_what_the_controller_writes_is_an_error_in_the_document_of_a_managed_queue():
    text = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: pool
  labels: {resource.gpustack.ai/type: instancetypes, feature.gpustack.ai/acceleratable: "false"}
spec:
  namespaceSelector: {}
  cohortName: all
"""
    (document,) = documents(text)
    assert [(problem.line, problem.message) for problem in check_rules(document)] == [
        (8, "spec.cohortName of a managed queue is written by the controller")
    ]


@pytest.mark.parametrize(
    "labels", [{}, {"resource.gpustack.ai/type": "instancetypes"}, {"feature.gpustack.ai/acceleratable": "false"}]
)
def test_a_managed_queue_that_would_lose_its_mark_is_held(labels):
    held = hold_of(HoldQuestion(queue(labels), queue()))
    assert held is not None
    assert "delete the queue instead" in held.message
    assert hold_of(HoldQuestion(queue(), queue())) is None
    assert hold_of(HoldQuestion(queue(labels), None)) is None


def test_what_the_transform_wrote_into_a_managed_queue_holds_nothing():
    carried = queue(annotations={"topology.gpustack.ai/wanted-stop-policy": "Hold"})
    assert hold_of(HoldQuestion(carried, queue())) is None


def noted(kind, **annotations):
    trees = {
        "ClusterQueue": QUEUE,
        "TopologySource": {"apiVersion": "worker.gpustack.ai/v1", "kind": kind, "metadata": {"name": "a"}},
    }
    tree = trees[kind]
    named = {f"gitops-ctl.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return [flaw.message for flaw in check_annotations({**tree, "metadata": {"name": "a", "annotations": named}})]


DIGEST = "sha256:" + "0a" * 32


def test_consents_are_known_on_the_kind_that_they_are_for():
    assert noted("ClusterQueue", allow_drain=DIGEST) == []
    assert noted("ClusterQueue", drain_window="2026-11-30T22:00:00Z/2026-12-01T04:00:00+01:00") == []
    assert noted("TopologySource", allow_node_drop=DIGEST) == []
    assert "belongs on a TopologySource" in noted("ClusterQueue", allow_node_drop=DIGEST)[0]
    assert "belongs on a ClusterQueue" in noted("TopologySource", allow_drain=DIGEST)[0]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"allow_drain": "yes"}, "needs the digest"),
        ({"drain_window": "2026-11-30T22:00:00Z"}, "needs <start>/<end>"),
        ({"drain_window": "tonight/tomorrow"}, "needs <start>/<end>"),
        ({"drain_window": "2026-11-30T22:00:00Z/2026-11-30T22:00:00Z"}, "ends before it begins"),
    ],
)
def test_a_consent_that_can_mean_nothing_is_an_error(annotations, told):
    assert told in noted("ClusterQueue", **annotations)[0]

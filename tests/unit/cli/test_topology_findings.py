"""What `gitops-ctl diff` says of sources by the Nodes of a cluster: rules 8 and 14, the drop guard, conflicts (topology-scheduling.md, D4)."""

from datetime import UTC, datetime

import pytest

from gitops_ctl.cli.comparison import Comparison, Finding
from gitops_ctl.cli.diff import detail_lines, result_of
from gitops_ctl.cli.topologyfindings import findings
from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.documents.loader import load
from gitops_ctl.scheduling.nodefeature import feature_name
from gitops_ctl.scheduling.options import Options

RACK, ZONE = "topology.gpustack.ai/rack", "topology.kubernetes.io/zone"
SOURCE = f"""\
apiVersion: worker.gpustack.ai/v1alpha1
kind: TopologySource
metadata: {{name: hall-7}}
spec:
  nodeSelector: {{}}
  levels: [{ZONE}, {RACK}]
  configMap:
    configMapRef: {{namespace: gpustack-system, name: hall-7}}
    key: snapshot.yaml
    maxStaleness: 1h
"""
NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)


def snapshot(*nodes, zone="z1"):
    lines = "".join(f"      {node}: {{{ZONE}: {zone}, {RACK}: r1}}\n" for node in nodes)
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hall-7, namespace: gpustack-system}\ndata:\n"
        "  snapshot.yaml: |\n    apiVersion: topology.gpustack.ai/v1alpha1\n    revision: r1\n"
        f"    nodes:{' {}' if not nodes else ''}\n{lines}"
    )


def told(*texts, nodes=("n1",), live=(), features=(), options=None):
    documents = [
        document for place, text in enumerate(texts) for document in load(text.encode(), file=f"{place}.yaml").documents
    ]
    found = findings(
        documents,
        nodes={name: {ZONE: "z1"} for name in nodes},
        live={tree["metadata"]["name"]: tree for tree in live},
        features=features,
        options=options or Options(),
        namespace="",
        now=NOW,
    )
    return [(item.object.name, item.reason, item.message) for item in found]


def test_what_passes_is_not_told():
    assert told(SOURCE, snapshot("n1")) == []


@pytest.mark.parametrize(
    ("text", "rule"), [(snapshot("n1", "gone"), "rule 8"), (snapshot("n1", zone="z2"), "rule 14")], ids=["8", "14"]
)
def test_rules_that_need_nodes_are_told_at_the_source(text, rule):
    ((name, reason, message),) = told(SOURCE, text)
    assert (name, reason) == ("hall-7", "SnapshotInvalid")
    assert message.startswith(rule)


def test_a_large_removal_is_told_with_the_digest_that_agrees_to_it():
    stored = {"apiVersion": "worker.gpustack.ai/v1alpha1", "kind": "TopologySource"}
    stored |= {
        "metadata": {"name": "hall-7", "uid": "7f1c"},
        "spec": load(SOURCE.encode(), file="a").documents[0].tree["spec"],
    }
    nodes = [f"n{number}" for number in range(8)]
    features = [
        {
            "metadata": {
                "name": feature_name("7f1c", node),
                "labels": {"nfd.node.kubernetes.io/node-name": node, "topology.gpustack.ai/source-uid": "7f1c"},
            }
        }
        for node in nodes
    ]
    given = {"nodes": nodes, "live": [stored], "features": features}
    ((_, reason, message),) = told(SOURCE, snapshot("n0"), **given)
    assert reason == "SnapshotInvalid"
    assert "would remove 7 of 8 NodeFeatures" in message
    digest = message.partition("allow-node-drop: ")[2].partition(";")[0]
    agreed = SOURCE.replace(
        "{name: hall-7}\nspec", f'{{name: hall-7, annotations: {{gitops-ctl.dev/allow-node-drop: "{digest}"}}}}\nspec'
    )
    assert told(agreed, snapshot("n0"), **given) == []
    assert told(SOURCE, snapshot("n0"), options=Options.reference(), **given) == []


def test_a_conflict_with_a_source_of_the_cluster_is_told():
    spec = load(SOURCE.encode(), file="a").documents[0].tree["spec"]
    other = {"kind": "TopologySource", "metadata": {"name": "other", "uid": "90ce"}, "spec": spec}
    assert told(SOURCE, snapshot("n1"), live=[other]) == [
        ("hall-7", "OverlappingSources", "other sources write to the same Nodes: other")
    ]


def test_what_a_document_error_holds_already_is_not_judged_again():
    assert told(SOURCE.replace(RACK, "kubernetes.io/hostname"), snapshot("gone")) == []
    assert told(SOURCE, snapshot("gone").replace("revision: r1", 'revision: " "')) == []
    assert told(SOURCE) == []


def test_a_finding_is_shown_with_its_place_and_holds_nothing():
    source = ObjectId("worker.gpustack.ai", "TopologySource", "", "hall-7")
    found = Comparison(
        NamespacedName("team-a", "fabric"), (), findings=(Finding(source, "a.yaml", 3, "SnapshotInvalid", "rule 8"),)
    )
    assert "\nTopologySource.worker.gpustack.ai/hall-7 (a.yaml:3) would be SnapshotInvalid: rule 8" in [
        *detail_lines(found)
    ]
    assert result_of(found).data["findings"] == [
        {"object": str(source), "file": "a.yaml", "line": 3, "reason": "SnapshotInvalid", "message": "rule 8"}
    ]
    assert found.exit_code == 0

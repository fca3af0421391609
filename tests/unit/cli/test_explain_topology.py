"""`gitops-ctl explain node`, `explain queue`, and `plan topology` beside a cluster.

What the explanations say is tested in tests/unit/scheduling; here is how they are asked for, and what a mistake is answered with.
"""

import json
import subprocess

import pytest
import yaml

from gitops_ctl.cli.main import run
from tests.support.listed_cluster import listed_cluster
from tests.support.scheduling_objects import (
    RACK,
    REGION,
    ZONE,
    ZONED,
    ZONED_FLAVOR,
    feature,
    flavors,
    local_queue,
    nodes,
    queue,
    snapshot,
    source,
    topology,
    workload,
)

HALL = {"region": "north", "zone": "hall7"}
PLAIN_QUEUE = {"metadata": {"name": "plain"}, "spec": {}}
OBJECTS = {
    "nodes": tuple(nodes("a", "b").values()),
    "sources": (source(REGION, ZONE),),
    "features": (feature("a", **HALL), feature("b", **HALL)),
    "flavors": flavors(nodes("a", "b")),
    "topologies": (topology(REGION, ZONE),),
    "queues": (queue(nodes("a", "b"), reserved=1), PLAIN_QUEUE),
    "local_queues": (local_queue(),),
    "workloads": (workload("train-1", queue="pool", flavor=ZONED_FLAVOR),),
}
READS = {"/api/v1/namespaces/gpustack-system/configmaps/hall": snapshot("hall-7/1", {"a": HALL, "b": HALL})}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A cluster with everything installed."""
    with listed_cluster(tmp_path_factory.mktemp("whole"), OBJECTS, reads=READS) as kubeconfig:
        yield str(kubeconfig)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A cluster without Kueue and NFD."""
    few = {"nodes": OBJECTS["nodes"], "sources": ()}
    with listed_cluster(tmp_path_factory.mktemp("bare"), few, reads={}) as kubeconfig:
        yield str(kubeconfig)


def test_a_node_is_explained(whole, capsys):
    assert run(["explain", "node", "a", "--kubeconfig", whole]) == 0
    told = capsys.readouterr().out
    assert "revision hall-7/1" in told
    assert ZONED in told
    assert f"serves it by flavor {ZONED_FLAVOR}" in told


def test_a_queue_is_explained_in_json(whole, capsys):
    assert run(["explain", "queue", "pool", "-o", "json", "--kubeconfig", whole]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["name"]) == ("QueueExplanation", "pool")
    facts = {one["fact"]: one["value"] for one in found["facts"]}
    assert facts["pool"] == "2 managed Nodes: a, b"
    assert facts["holds quota default/train-1"].startswith("since 2031-04-02T05:00:00Z")


def test_options_of_the_manager_count(whole, capsys):
    assert run(["explain", "node", "a", "--kubeconfig", whole, "--worker-namespace", "elsewhere"]) == 0
    # There are no NodeFeatures in that namespace.
    assert "north, a label that somebody else set" in capsys.readouterr().out


DEPLOYMENT = "/apis/apps/v1/namespaces/gitops-ctl-system/deployments/gitops-ctl-manager"


def deployed(*arguments):
    """The Deployment of a manager with these arguments."""
    container = {"name": "manager", "args": ["manager", "--namespace=$(POD_NAMESPACE)", *arguments]}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def test_options_are_read_from_the_manager_and_those_that_are_given_go_before(tmp_path, capsys):
    reads = {**READS, DEPLOYMENT: deployed("--worker-namespace=elsewhere")}
    with listed_cluster(tmp_path, OBJECTS, reads=reads) as kubeconfig:
        assert run(["explain", "node", "a", "--kubeconfig", str(kubeconfig)]) == 0
        first = capsys.readouterr()
        assert run(["explain", "node", "a", "--kubeconfig", str(kubeconfig), "--worker-namespace=gpustack-system"]) == 0
        second = capsys.readouterr()
    assert "north, a label that somebody else set" in first.out
    assert "north, by NodeFeature" in second.out
    assert first.err + second.err == ""


def test_a_manager_whose_options_cannot_be_read_is_told(tmp_path, whole, capsys):
    assert run(["explain", "node", "a", "--kubeconfig", whole]) == 0
    assert "note: options of the manager are not known" in capsys.readouterr().err
    reads = {**READS, DEPLOYMENT: deployed("--short-staleness=newer")}
    with listed_cluster(tmp_path, OBJECTS, reads=reads) as kubeconfig:
        assert run(["explain", "queue", "pool", "--kubeconfig", str(kubeconfig)]) == 0
    told = capsys.readouterr().err
    assert "note: options of the manager are not known" in told
    assert "newer" in told


def test_a_node_without_sources_and_kueue_is_explained_too(bare, capsys):
    assert run(["explain", "node", "b", "--kubeconfig", bare]) == 0
    told = capsys.readouterr().out
    assert "0 sources count, one is needed" in told
    assert "no managed queue has the Node in its pool" in told


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (
            ["node", "ghost"],
            ["error GC2006", "there is no Node ghost", "name one of these: a, b", "/api/v1/nodes/ghost"],
        ),
        (["queue", "ghost"], ["error GC2006", "there is no managed ClusterQueue ghost", "name one of these: pool"]),
        (["queue", "plain"], ["error GC9002", "plain is not managed", "resource.gpustack.ai/type=instancetypes"]),
    ],
)
def test_a_name_that_is_not_there_is_one_clear_error(whole, capsys, arguments, texts):
    assert run(["explain", *arguments, "--kubeconfig", whole]) == 1
    told = capsys.readouterr().err
    assert [text for text in texts if text not in told] == []


def test_a_queue_is_asked_for_where_kueue_is_not_installed(bare, capsys):
    assert run(["explain", "queue", "pool", "--kubeconfig", bare]) == 1
    assert "there is none in this cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["node"], ["queue"], ["node", "a", "b"], ["node", "a", "--drain-warn-after", "x"]]
)
def test_wrong_arguments_are_a_mistake(arguments, capsys):
    assert run(["explain", *arguments]) == 1
    assert "GC9002" in capsys.readouterr().err


def test_a_code_is_still_explained_without_a_word_before_it(capsys):
    assert run(["explain", "GC1017"]) == 0
    assert run(["explain", "-o", "name", "GC1017"]) == 0
    assert run(["explain", "object", "GC1017", "-o", "name"]) == 0
    assert capsys.readouterr().out.count("GC1017") == 3
    assert run(["explain", "no such thing"]) == 1
    assert "GC1003" in capsys.readouterr().err


def test_a_plan_beside_a_cluster_reads_it_with_the_snapshots_of_its_sources(whole, tmp_path, monkeypatch, capsys):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    wider = source(REGION, ZONE, RACK, live=False)
    (tmp_path / "hall.yaml").write_text(yaml.safe_dump(wider))
    assert run(["plan", "topology", "--kubeconfig", whole, "-o", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["change"], one["revision"]) for one in found["sources"]] == [
        ("hall", "changed", "hall-7/1")
    ]
    # The snapshot has no racks yet: no profile changes before it does.
    assert found["nodes"] == []
    # Its Sync owns the queue as well, and the checkout does not declare that any more.
    assert found["goneQueues"] == ["pool"]
    assert [one["workload"] for one in found["evicted"]] == ["default/train-1"]

"""`gitops-ctl plan topology`, offline: from a checkout and files of kubectl to what would change."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.main import run
from tests.support.scheduling_objects import (
    RACK,
    RACKED,
    REGION,
    ZONE,
    ZONED,
    ZONED_FLAVOR,
    as_json,
    as_list,
    feature,
    flavors,
    local_queue,
    nodes,
    queue,
    queue_document,
    snapshot,
    source,
    workload,
)

HALL = {"region": "north", "zone": "hall7"}
LIVE = {
    "nodes": tuple(nodes("a", "b").values()),
    "flavors": flavors(nodes("a", "b")),
    "queues": (queue(nodes("a", "b"), reserved=2),),
    "workloads": (workload("train-1", queue="pool", flavor=ZONED_FLAVOR), workload("train-2", queue="pool")),
    "sources": (source(REGION, ZONE),),
    "features": (feature("a", **HALL), feature("b", **HALL)),
}


@pytest.fixture(autouse=True)
def _checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)
    monkeypatch.delenv("KUBECONFIG", raising=False)


def committed(*trees, levels=(REGION, ZONE, RACK), racks=True):
    """The checkout: source, snapshot, queue, and whatever else."""
    described = {name: {**HALL, **({"rack": f"r-{name}"} if racks else {})} for name in ("a", "b")}
    text = snapshot("hall-7/2", described)
    block = "".join(f"    {line}\n" for line in text["data"]["snapshot.yaml"].splitlines())
    Path("snapshot.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hall, namespace: gpustack-system}\n"
        f"data:\n  snapshot.yaml: |\n{block}"
    )
    documents = (source(*levels, live=False), queue_document(), *trees)
    Path("hall.yaml").write_text(yaml.safe_dump_all(documents))


def given(tmp_path, form=as_list, **more):
    """The options for a cluster in files."""
    found = []
    for name, items in {**LIVE, **more}.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(form(items))
        found += [f"--{name}", str(file)]
    return found


@pytest.mark.parametrize("form", [as_list, as_json])
def test_a_new_level_names_nodes_flavors_the_drain_and_who_is_evicted(tmp_path, capsys, form):
    committed()
    assert run(["plan", "topology", *given(tmp_path, form)]) == 2
    told = capsys.readouterr().out
    assert f"{ZONED} -> {RACKED}" in told
    assert "gitops-ctl.dev/allow-drain: sha256:" in told
    assert "default/train-1" in told
    assert (
        "2 Nodes would change the profile; 1 flavor would come and 1 go; 1 queue would drain; "
        "2 Workloads would be evicted." in told
    )


def test_a_consent_in_the_document_is_seen(tmp_path, capsys):
    committed()
    assert run(["plan", "topology", "-o", "json", *given(tmp_path)]) == 2
    (before,) = json.loads(capsys.readouterr().out)["queues"]
    assert before["isConsented"] is False
    agreed = queue_document()
    agreed["metadata"] |= {"annotations": {"gitops-ctl.dev/allow-drain": before["digest"]}}
    Path("hall.yaml").write_text(yaml.safe_dump_all((source(REGION, ZONE, RACK, live=False), agreed)))
    assert run(["plan", "topology", *given(tmp_path)]) == 2
    assert "consent is given" in capsys.readouterr().out


def test_json_has_all_of_it(tmp_path, capsys):
    committed()
    assert run(["plan", "topology", "-o", "json", *given(tmp_path)]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "TopologyPlan"
    assert found["nodes"] == [{"name": name, "before": ZONED, "after": RACKED} for name in ("a", "b")]
    assert found["profiles"][RACKED] == [REGION, ZONE, RACK, "kubernetes.io/hostname"]
    assert [(one["name"], one["fate"], one["busy"]) for one in found["queues"]] == [("pool", "drain", [ZONED_FLAVOR])]
    assert [one["workload"] for one in found["evicted"]] == ["default/train-1", "default/train-2"]


def test_the_documents_as_they_are_change_nothing(tmp_path, capsys):
    committed(levels=(REGION, ZONE), racks=False)
    assert run(["plan", "topology", *given(tmp_path)]) == 0
    assert "Nothing would change." in capsys.readouterr().out


def test_nodes_alone_are_enough(tmp_path, capsys):
    committed()
    file = tmp_path / "nodes.yaml"
    file.write_text(as_list(LIVE["nodes"]))
    assert run(["plan", "topology", "-o", "name", "--nodes", str(file)]) == 2
    assert capsys.readouterr().out.split() == ["a", "b"]


def test_a_job_that_requires_a_level_which_its_queue_does_not_have_is_named(tmp_path, capsys):
    annotations = {"kueue.x-k8s.io/podset-required-topology": "topology.gpustack.ai/block"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "users"}},
        "spec": {"template": {"metadata": {"annotations": annotations}}},
    }
    committed(local_queue(), job)
    assert run(["plan", "topology", *given(tmp_path)]) == 2
    told = capsys.readouterr().out
    assert "requires topology.gpustack.ai/block, which no flavor of queue pool would have" in told
    assert "Job.batch/default/train" in told


def test_options_of_the_manager_count(tmp_path, capsys):
    committed()
    assert run(["plan", "topology", "--worker-namespace", "elsewhere", *given(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "GC1017" in told
    assert "must be elsewhere" in told


def test_without_drain_when_no_flavors_a_busy_queue_without_a_pool_is_kept_and_nobody_evicted(tmp_path, capsys):
    committed(levels=(REGION, ZONE), racks=False)
    bare = nodes("a", "b")
    for tree in bare.values():
        del tree["metadata"]["labels"]["gpustack.ai/managed"]
    cluster = given(tmp_path, nodes=tuple(bare.values()))
    assert run(["plan", "topology", *cluster]) == 2
    assert "train-1" in capsys.readouterr().out
    assert run(["plan", "topology", "--no-drain-when-no-flavors", "-o", "json", *cluster]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["fate"], one["after"] == one["before"]) for one in found["queues"]] == [("kept", True)]
    assert found["evicted"] == []
    assert run(["plan", "topology", "--no-drain-when-no-flavors", *cluster]) == 0
    assert "2 Workloads now (drain-when-no-flavors)" in capsys.readouterr().out


def refused(*arguments, capsys):
    assert run(["plan", "topology", *arguments]) == 1
    return capsys.readouterr().err


def test_a_document_with_an_error_is_named_with_its_place_and_the_way_to_all_of_them(tmp_path, capsys):
    committed(levels=("kubernetes.io/hostname",))
    told = refused(*given(tmp_path), capsys=capsys)
    assert "error GC1017 rule" in told
    assert "hall.yaml:" in told
    assert "gitops-ctl check" in told


def test_a_snapshot_with_an_error_is_named_at_its_line(tmp_path, capsys):
    committed(levels=(REGION, ZONE))
    told = refused(*given(tmp_path), capsys=capsys)
    assert "rule 9" in told
    assert "snapshot.yaml:" in told


def test_a_file_that_is_no_yaml_hides_nothing(tmp_path, capsys):
    committed()
    Path("broken.yaml").write_text("a: [")
    assert "broken.yaml:2" in refused(*given(tmp_path), capsys=capsys)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("a: [", "it is not YAML"),
        ('{"a": ', "it is not JSON"),
        ("NAME   STATUS\nn1     Ready\n", "it holds no objects"),
        ("- 1\n", "it holds no objects"),
        ("kind: Pod\nmetadata: {name: x}\n", "it holds Pod, not Node"),
        ("kind: Node\nmetadata: {}\n", "without a name"),
        ("\xff", "it is not UTF-8"),
    ],
)
def test_a_file_that_kubectl_did_not_write_is_one_clear_error(tmp_path, capsys, text, why):
    committed()
    file = tmp_path / "nodes.yaml"
    file.write_bytes(text.encode("latin-1"))
    told = refused("--nodes", str(file), capsys=capsys)
    assert "error GC9002 usage" in told
    assert why in told
    assert str(file) in told
    assert "kubectl get nodes -o yaml" in told


def test_files_without_nodes_are_a_mistake(tmp_path, capsys):
    committed()
    file = tmp_path / "queues.yaml"
    file.write_text(as_list(LIVE["queues"]))
    told = refused("--queues", str(file), capsys=capsys)
    assert "--queues without --nodes" in told
    assert "add --nodes FILE" in told


def test_a_file_that_is_not_there_is_a_mistake(capsys):
    assert "does not exist" in refused("--nodes", "nowhere.yaml", capsys=capsys)


def test_a_typed_list_gives_its_kind_to_its_items(tmp_path):
    committed()
    items = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in LIVE["nodes"]]
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items}))
    assert run(["plan", "topology", "--nodes", str(file)]) == 2

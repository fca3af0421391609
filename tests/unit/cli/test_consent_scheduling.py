"""`gitops-ctl consent drain` and `consent node-drop` (topology-scheduling.md, 8.2: D38, and 12: D41)."""

from pathlib import Path

import pytest
import yaml

from gitops_ctl.cli.main import run
from tests.support.scheduling_objects import REGION, ZONE, queue_document, source

DIGEST = "sha256:" + "0a" * 32


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("command", "tree", "annotation"),
    [
        ("drain", queue_document(namespaceSelector={}), "gitops-ctl.dev/allow-drain"),
        ("node-drop", source(REGION, ZONE, live=False), "gitops-ctl.dev/allow-node-drop"),
    ],
)
def test_a_consent_stands_on_its_document(command, tree, annotation, capsys):
    file = Path("it.yaml")
    file.write_text(yaml.safe_dump(tree, sort_keys=False))
    assert run(["consent", command, DIGEST, "it.yaml"]) == 2
    told = capsys.readouterr().out
    assert f"+    {annotation}: {DIGEST}" in told
    assert "git commit -S" in told
    written = yaml.safe_load(file.read_text())
    assert written["metadata"].pop("annotations") == {annotation: DIGEST}
    assert written == tree
    assert run(["consent", command, DIGEST, "it.yaml"]) == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["drain", "node-drop"])
def test_what_is_no_digest_is_refused(command, capsys):
    trees = (queue_document(), source(REGION, ZONE, live=False))
    Path("both.yaml").write_text(yaml.safe_dump_all(trees, sort_keys=False))
    before = Path("both.yaml").read_text()
    assert run(["consent", command, "sha256:00", "both.yaml"]) == 1
    told = capsys.readouterr().err
    assert "GC1021" in told
    assert "64 hex digits" in told
    assert Path("both.yaml").read_text() == before


@pytest.mark.parametrize(("command", "kind"), [("drain", "ClusterQueue"), ("node-drop", "TopologySource")])
def test_a_file_without_such_a_document_is_refused(command, kind, capsys):
    Path("other.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert run(["consent", command, DIGEST, "other.yaml"]) == 1
    assert f"the file holds no {kind}" in capsys.readouterr().err

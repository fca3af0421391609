"""`gitops-ctl check` warns of what would hold an object, in the words of the admission policy, and never fails for it."""

import os
import subprocess

import pytest
import yaml

from gitops_ctl.api.manifests import manifest
from gitops_ctl.cli.main import run
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.documents.holds import HoldQuestion, hold_of, may_hold, register_hold
from tests.support.api_talos import a_cluster

CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
AUTHOR = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.net", "GIT_COMMITTER_NAME": "a"}


def written(path, mode, *, consent=""):
    tree = a_cluster(cni={"kubeProxy": mode})
    if consent:
        tree["metadata"]["annotations"] = {CONFIRM: consent}
    path.write_text(yaml.safe_dump(tree, sort_keys=False))


@pytest.fixture
def cluster_file(tmp_path, monkeypatch):
    """The file of a cluster whose accepted version is in mode `enabled`."""
    root = tmp_path / "repo"
    root.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(root)
    written(root / "north.yaml", "enabled")
    environment = {**os.environ, **AUTHOR, "GIT_COMMITTER_EMAIL": "a@example.net"}
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "north"]):
        subprocess.run(["git", *command], check=True, env=environment)
    return root / "north.yaml"


def test_a_change_without_consent_is_a_warning_with_the_line_that_is_missing(cluster_file, capsys):
    written(cluster_file, "replaced")
    assert run(["check", "--against", "HEAD"]) == 0
    told = capsys.readouterr().out
    assert "warning GC2116 consent-missing" in told
    assert (
        "nobody consents; under metadata.annotations belongs ichor.maesh.dev/confirm-kube-proxy-switch: replaced"
        in told
    )


def test_a_consent_to_the_other_mode_is_named(cluster_file, capsys):
    written(cluster_file, "replaced", consent="enabled")
    assert run(["check", "--against", "HEAD"]) == 0
    assert "the consent is for enabled; under metadata.annotations belongs" in capsys.readouterr().out


def test_with_consent_and_without_an_older_version_there_is_nothing_to_say(cluster_file, capsys):
    written(cluster_file, "replaced", consent="replaced")
    assert run(["check", "--against", "HEAD", "--strict"]) == 0
    written(cluster_file, "replaced")
    assert run(["check", "--strict"]) == 0
    assert "GC2116" not in capsys.readouterr().out


def test_the_same_text_is_what_an_installation_enforces():
    policy = yaml.safe_load((manifest("policies") / "kube-proxy-consent.yaml").read_text())
    assert "paramKind" not in policy["spec"]
    assert "params" not in str(policy["spec"]["validations"])


def test_the_first_rule_of_a_kind_that_finds_something_speaks():
    kind = GroupKind("holds.example.net", "Thing")
    tree = {"apiVersion": "holds.example.net/v1", "kind": "Thing", "metadata": {"name": "a"}}
    asked = []
    assert not may_hold(kind)
    register_hold(kind, lambda question: asked.append(question.old))
    assert may_hold(kind)
    assert hold_of(HoldQuestion(tree, None)) is None
    assert asked == [None]

"""The switches of the example repository: every document passes, the rollout plans them all, and the roles are separate."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gitops_ctl.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
ROLLOUT = "clusters/campus/rollouts/to-17-18.yaml"


@pytest.fixture(autouse=True)
def _checkout(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    for part in (".gitops-ctl", "clusters/campus"):
        shutil.copytree(EXAMPLES / part, root / part)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)


def test_every_document_passes_without_a_warning(capsys):
    assert run(["check"]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


def test_the_rollout_plans_twelve_devices_with_two_canaries_in_two_zones(capsys):
    assert run(["plan", "rollout", ROLLOUT, "--offline"]) == 2
    told = capsys.readouterr().out
    assert "12 devices to 17.18.03 by Reload: 2 canaries first, then 10 more after a resume." in told
    lines = [line.split() for line in told.splitlines() if line.startswith("access-")]
    assert [words[0] for words in lines if words[2] == "canary"] == ["access-a1", "access-b1"]


@pytest.mark.parametrize(
    ("person", "verb", "may"),
    [
        ("network-author", "plan", True),
        ("network-author", "control", True),
        ("network-author", "approve", False),
        ("change-approver", "approve", True),
        ("change-approver", "plan", False),
        ("platform-author", "plan", False),
        ("platform-author", "approve", False),
    ],
)
def test_who_asks_for_a_rollout_does_not_approve_it(capsys, person, verb, may):
    run(["trust", "test", person, verb, ROLLOUT])
    answer = capsys.readouterr().out.splitlines()[1].split()[0]
    assert answer == ("yes" if may else "no")

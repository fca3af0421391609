"""Where the commands that prepare a commit read and write: never through a link, never for ever, never over another consent."""

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from gitops_ctl.cli.main import run
from gitops_ctl.documents.splicetext import LARGEST_BYTES

CONSENTS = Path(".gitops-ctl/consents")
CLUSTER = """\
apiVersion: ichor.maesh.dev/v1alpha1
kind: TalosCluster
metadata:
  name: north
  namespace: net
spec:
  cni:
    kubeProxy: enabled
"""
SWITCH = ["consent", "switch", "replaced", "north.yaml"]
CHANGE = ["consent", "change", "--verb", "policy", "--path"]


@pytest.fixture(autouse=True)
def _checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.chdir(root)


@pytest.mark.parametrize("command", [SWITCH, ["approve", "north.yaml", "a=b"], [*CHANGE, "north.yaml"]])
def test_a_link_is_neither_followed_nor_replaced(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text(CLUSTER)
    Path("north.yaml").symlink_to(outside)
    assert run(command) == 1
    assert "symbolic link" in capsys.readouterr().err
    assert Path("north.yaml").is_symlink()
    assert outside.read_text() == CLUSTER


@pytest.mark.parametrize("command", [SWITCH, ["approve", "north.yaml", "a=b"], [*CHANGE, "north.yaml"]])
def test_a_pipe_is_refused_and_not_waited_for(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("north.yaml")
    assert run(command) == 1
    assert "no regular file" in capsys.readouterr().err


def test_a_file_of_very_many_documents_is_read_in_one_go() -> None:
    text = "a: 1\n---\n" * 3000 + CLUSTER
    Path("north.yaml").write_text(text)
    began_s = time.monotonic()
    assert run(SWITCH) == 2
    assert time.monotonic() - began_s < 20


def test_a_file_that_is_too_large_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("north.yaml").write_text(CLUSTER + "#" * LARGEST_BYTES)
    assert run(SWITCH) == 1
    assert "larger" in capsys.readouterr().err


def test_two_clusters_of_one_name_are_told_apart_by_their_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    Path("north.yaml").write_text(f"{CLUSTER}---\n{CLUSTER.replace('namespace: net', 'namespace: lab')}")
    assert run(SWITCH) == 1
    assert "NAMESPACE/NAME" in capsys.readouterr().err
    assert run([*SWITCH, "--name", "lab/north"]) == 2
    assert "lab/north" in capsys.readouterr().out
    assert run(["cni", "kube-proxy", "replaced", "--cluster", "north"]) == 1
    error = capsys.readouterr().err
    assert "lab/north in north.yaml" in error
    assert "NAMESPACE/NAME" in error
    assert run(["cni", "kube-proxy", "replaced", "--cluster", "net/north"]) == 2


def test_consents_to_two_paths_that_read_alike_do_not_overwrite_each_other() -> None:
    for path in ("a/b.yaml", "a-b.yaml"):
        assert run([*CHANGE, path, "--delete"]) == 2
    found = sorted(file.read_text().partition("path: ")[2].partition("\n")[0] for file in CONSENTS.iterdir())
    assert found == ["a-b.yaml", "a/b.yaml"]
    for path in ("a/b.yaml", "a-b.yaml"):
        assert run([*CHANGE, path, "--delete"]) == 0


@pytest.mark.parametrize("link", [".gitops-ctl", ".gitops-ctl/consents"])
def test_a_consent_is_not_written_through_a_folder_that_is_a_link(
    link: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(outside, target_is_directory=True)
    assert run([*CHANGE, "a.yaml", "--delete"]) == 1
    assert "symbolic link" in capsys.readouterr().err
    assert list(outside.iterdir()) == []


def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("north.yaml")
    file.write_text(CLUSTER)

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as begun:
            begun.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run(SWITCH) == 1
    assert file.read_text() == CLUSTER
    assert sorted(path.name for path in Path().iterdir()) == [".git", "north.yaml"]


def test_a_repository_that_git_cannot_read_is_told_and_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".git/HEAD").write_text("garbage")
    assert run([*CHANGE, "a.yaml", "--delete"]) == 1
    error = capsys.readouterr().err
    assert "the last commit cannot be read" in error
    assert "GC9001" not in error

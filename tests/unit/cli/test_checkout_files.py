"""What a search for values reads of a checkout, and what it refuses before reading."""

from pathlib import Path

import pytest

from gitops_ctl.cli import checkoutfiles
from gitops_ctl.cli.checkoutfiles import files_below
from gitops_ctl.cli.main import run
from gitops_ctl.core.errors import Refused


def test_regular_files_are_read_and_links_and_what_others_keep_there_are_not(tmp_path: Path) -> None:
    for name in ("a.yaml", "sub/b.tpl", ".hidden/c", ".git/config", "node_modules/d.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    (tmp_path / "large.yaml").write_bytes(b" " * (2**20 + 1))
    assert files_below(tmp_path) == {name: name.encode() for name in ("a.yaml", "sub/b.tpl", ".hidden/c")}


def test_a_folder_with_too_many_entries_is_refused_before_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        (tmp_path / f"folder{number}").mkdir()
    (tmp_path / "file").touch(mode=0o000)
    monkeypatch.setattr(checkoutfiles, "MOST_ENTRIES", 5)
    monkeypatch.chdir(tmp_path)
    for command in (["cni", "values", str(tmp_path)], ["cni", "kube-proxy", "replaced"]):
        assert run(command) == 1
        told = capsys.readouterr().err
        assert "the folder holds more than 5 files and folders" in told
        assert "name a checkout of the repository, or a folder in one" in told


def test_more_bytes_than_a_search_reads_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("12345")
    (tmp_path / "b").write_text("12345")
    monkeypatch.setattr(checkoutfiles, "MOST_BYTES", 9)
    with pytest.raises(Refused, match="files of more than 0 MiB"):
        files_below(tmp_path)

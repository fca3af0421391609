"""The generator of the stubs says what is stale, and takes no other module than the pinned one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import generate_stubs
from tools.generate_stubs import TARGET, differences


def test_a_changed_a_missing_and_a_superfluous_file_are_stale(tmp_path: Path) -> None:
    for name, folder in (("same.py", "ab"), ("changed.py", "ab"), ("missing.py", "a"), ("superfluous.py", "b")):
        for one in folder:
            path = tmp_path / one / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{name} {one if name == 'changed.py' else ''}")
    assert differences(tmp_path / "a", tmp_path / "b") == ["changed.py", "missing.py", "superfluous.py"]


def test_a_module_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 0, json.dumps({"Sum": "h1:other", "Dir": "/nowhere"}).encode())

    monkeypatch.setattr(generate_stubs.subprocess, "run", answer)
    with pytest.raises(SystemExit, match="pinned is h1:"):
        generate_stubs.module_folder()


def test_every_stub_says_where_it_is_from_and_under_which_licence() -> None:
    stubs = [path for path in TARGET.rglob("*_pb2*.py*") if "__pycache__" not in path.parts]
    assert len(stubs) > 20
    for path in stubs:
        first, second = path.read_text().splitlines()[:2]
        assert first.startswith("# Generated from ")
        expected = "MPL-2.0" if "talos" in path.relative_to(TARGET).parts else "Apache-2.0"
        assert second == f"# SPDX-License-Identifier: {expected}"


def test_the_stubs_live_beside_another_copy_of_the_same_file_and_hide_no_module_of_python() -> None:
    program = (
        "from gitops_ctl.netpb.talos.machine import machine_pb2_grpc\n"
        "from google.rpc import status_pb2\n"
        "import common"  # a module of that name would be one of ours
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    assert "No module named 'common'" in done.stderr

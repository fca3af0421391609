"""What a person sees of a long build, and the manifests that come from Go modules."""

import io
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local import published
from gitops_ctl.local.progress import LineProgress
from gitops_ctl.local.published import Published, published_files
from tests.support.fake_go import FakeGo


class StandingClock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def boot_s(self) -> float:
        return self.now_s


def test_lines_come_when_the_text_changes_and_otherwise_at_intervals() -> None:
    stream, clock = io.StringIO(), StandingClock()
    progress = LineProgress(stream, clock=clock, interval_s=15)  # type: ignore[arg-type]
    progress.update("compiling", done=1, total=9)
    progress.update("compiling", done=2, total=9)
    clock.now_s += 15
    progress.update("compiling", done=3, total=9)
    progress.update("linking")
    assert stream.getvalue() == "compiling (1 of 9)\ncompiling (3 of 9)\nlinking\n"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_a_bar_is_drawn_on_a_terminal_only(terminal: bool) -> None:
    script = (
        "import sys; from gitops_ctl.local.progress import progress_for\n"
        "with progress_for(sys.stderr) as progress: progress.update('compiling', done=3, total=9)"
    )
    reader, writer = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", script], stderr=writer, env=environment, check=True)
    os.close(writer)
    said = b""
    try:
        while part := os.read(reader, 4096):
            said += part
    except OSError:
        # The other end of a terminal that is closed.
        pass
    os.close(reader)
    assert b"3 of 9" in said
    assert (b"\x1b[" in said) is terminal
    assert (said == b"compiling (3 of 9)\n") is not terminal


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    """A module that a stand-in for Go finds in a folder."""
    root = tmp_path / "module"
    for name in ("crd/b.yaml", "crd/a.yaml", "crd/kustomization.yaml", "crd/README.md", "other/c.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    go = FakeGo(tmp_path / "go", module=root)
    monkeypatch.setenv("PATH", f"{go.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pinned = tmp_path / "pinned"
    pinned.mkdir()
    return Published(pinned, "example.net/module", "v1.2.3", ("crd/*.yaml",))


async def test_the_files_are_copied_once_and_found_again_without_go(
    module: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = await published_files(module)
    assert {name: path.read_text() for name, path in files.items()} == {
        "crd/a.yaml": "crd/a.yaml",
        "crd/b.yaml": "crd/b.yaml",
    }
    assert list(files) == ["crd/a.yaml", "crd/b.yaml"]
    monkeypatch.setattr(published, "find_go", lambda: None)
    assert await published_files(module) == files


async def test_another_choice_of_the_same_module_is_another_copy(module: Published) -> None:
    await published_files(module)
    assert list(await published_files(replace(module, patterns=("other/*.yaml",)))) == ["other/c.yaml"]
    assert list(await published_files(module)) == ["crd/a.yaml", "crd/b.yaml"]


async def test_without_go_and_files_the_error_names_the_command(
    module: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "find_go", lambda: None)
    with pytest.raises(BlockedError, match="come from its Go module and Go is not installed") as caught:
        await published_files(module)
    assert "go.dev/dl" in caught.value.hint

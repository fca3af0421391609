"""The recipe of the real forge: parts of it are in C, so a compiler is needed; what others build stays as it was."""

import os
from pathlib import Path

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.local.build import Builder
from gitops_ctl.local.recipes import ETCD, GITEA, KWOK
from tests.support.fake_go import FakeGo


class Quiet:
    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        pass


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """The only tool on PATH, beside those of the system that `CC` may name."""
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", str(fake.folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    return fake


def test_it_is_pinned_and_built_as_upstream_builds_it():
    assert GITEA.version == "v1.26.0"
    assert GITEA.linker_flags == "-s -w -X main.Version=1.26.0"
    assert GITEA.tag_arguments == ("-tags", "sqlite,sqlite_unlock_notify")
    assert GITEA.environment["CGO_ENABLED"] == "1"


def test_what_is_built_without_c_stays_so():
    assert {recipe.environment["CGO_ENABLED"] for recipe in (ETCD, KWOK)} == {"0"}
    assert ETCD.tag_arguments == ()
    assert GITEA.key() != ETCD.key()


async def test_a_missing_compiler_is_named_with_the_command_that_installs_it(go):
    with pytest.raises(BlockedError, match="gitea has to be built and gcc is not installed") as caught:
        await Builder(progress=Quiet()).programs((GITEA,))
    assert caught.value.code is ErrorCode.TOOL_MISSING
    assert "apt-get install gcc" in caught.value.hint
    assert go.built == []


async def test_another_compiler_may_be_named(go, tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"{compiler} -m64")
    assert os.path.exists((await Builder(progress=Quiet()).programs((GITEA,)))["gitea"])
    assert go.built == ["gitea"]


async def test_what_needs_no_c_needs_no_compiler(go):
    await Builder(progress=Quiet()).programs((ETCD,))
    assert go.built == ["etcd"]

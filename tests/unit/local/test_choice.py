"""What `up` is made of: the first that works, and never something that was not asked for.

In scope: the choice, and the command lines given to `kind` (a stand-in that writes down what it gets).  Out of scope: real clusters.
"""

import os
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import BlockedError, TerminalError
from gitops_ctl.local.binaries import ASSETS_VARIABLE, PROGRAMS
from gitops_ctl.local.kind import find_kind
from gitops_ctl.local.state import SystemFolder
from gitops_ctl.local.system import Provider, Request, bring_up, job_for, take_down

_KIND = """#!/bin/sh
echo "$@" >> "{folder}/calls"
if [ "$1 $2" = "get clusters" ]; then cat "{folder}/clusters"; fi
if [ -f "{folder}/refuse" ] && [ "$1" != get ]; then echo "no space for the image" >&2; exit 1; fi
"""


class Silent:
    def update(self, text: str, *, done: int = 0, total: int = 0) -> None:
        """Nobody looks."""


class FakePrograms:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "clusters").touch()

    def add_kind(self) -> None:
        self._script("kind", _KIND.format(folder=self.folder))

    def add_engine(self, name: str, *, answers: bool) -> None:
        self._script(name, f"#!/bin/sh\nexit {0 if answers else 1}\n")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def _script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    """PATH with nothing but what the test adds, and the plainest tools."""
    fake = FakePrograms(tmp_path / "bin")
    (fake.folder / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(fake.folder))
    return fake


async def test_a_system_that_has_an_owner_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv(ASSETS_VARIABLE, str(tmp_path))
    assert (await job_for(Request(tmp_path, owner=7), progress=Silent())).owner == 7
    assert (await job_for(Request(tmp_path), progress=Silent())).owner == 0


async def test_kind_counts_only_with_an_engine_that_answers(programs: FakePrograms) -> None:
    programs.add_engine("docker", answers=False)
    programs.add_kind()
    assert await find_kind() is None
    programs.add_engine("podman", answers=True)
    assert await find_kind() == programs.folder / "kind"


async def test_up_makes_a_kind_cluster_and_down_deletes_it(programs: FakePrograms, tmp_path: Path) -> None:
    programs.add_engine("docker", answers=True)
    programs.add_kind()
    folder = SystemFolder(tmp_path / "system")
    request = Request(folder.path, environment={})
    state = await bring_up(request, progress=Silent(), clock=SystemClock())
    kubeconfig = str(folder.admin_kubeconfig)
    assert (state.kind, state.kubeconfig) == ("kind", kubeconfig)
    assert await bring_up(request, progress=Silent(), clock=SystemClock()) == state
    assert programs.calls == [
        "get clusters",
        f"create cluster --name gitops-ctl --kubeconfig {kubeconfig} --wait 180s",
    ]
    assert await take_down(folder, purge=True)
    assert programs.calls[-1] == f"delete cluster --name gitops-ctl --kubeconfig {kubeconfig}"
    assert not folder.path.exists()


async def test_a_kind_cluster_that_is_there_already_is_used(programs: FakePrograms, tmp_path: Path) -> None:
    programs.add_engine("docker", answers=True)
    programs.add_kind()
    (programs.folder / "clusters").write_text("other\ngitops-ctl\n")
    await bring_up(Request(tmp_path / "system", environment={}), progress=Silent(), clock=SystemClock())
    kubeconfig = tmp_path / "system" / "admin.kubeconfig"
    assert programs.calls[1:] == [f"export kubeconfig --name gitops-ctl --kubeconfig {kubeconfig}"]


async def test_what_kind_says_when_it_refuses_reaches_the_person(programs: FakePrograms, tmp_path: Path) -> None:
    programs.add_engine("docker", answers=True)
    programs.add_kind()
    (programs.folder / "refuse").touch()
    with pytest.raises(TerminalError, match="no space for the image"):
        await bring_up(Request(tmp_path / "system", environment={}), progress=Silent(), clock=SystemClock())
    assert SystemFolder(tmp_path / "system").state() is None


async def test_assets_come_before_kind(programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.add_engine("docker", answers=True)
    programs.add_kind()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    request = Request(tmp_path / "system", environment=dict(os.environ))
    with pytest.raises(BlockedError, match="KUBEBUILDER_ASSETS lacks etcd"):
        await bring_up(request, progress=Silent(), clock=SystemClock())


async def test_kind_that_was_asked_for_and_is_not_there_is_an_error(programs: FakePrograms, tmp_path: Path) -> None:
    request = Request(tmp_path / "system", provider=Provider.KIND, environment={})
    with pytest.raises(BlockedError, match="kind is not installed, or no container engine answers"):
        await bring_up(request, progress=Silent(), clock=SystemClock())


async def test_down_says_so_when_kind_is_gone(
    programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.add_engine("docker", answers=True)
    programs.add_kind()
    await bring_up(Request(tmp_path / "system", environment={}), progress=Silent(), clock=SystemClock())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BlockedError, match="made with kind, which is not installed any more"):
        await take_down(SystemFolder(tmp_path / "system"), purge=False)

"""The loopback Git server serves what real git pushes and clones, to its one user only."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.certificates import Authority
from gitops_ctl.local.gitserver import GitServer, Login, git_environment

LOGIN = Login("controller", "demo-password")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    authority = Authority(tmp_path, "git-ca", clock=SystemClock())
    running = GitServer.start(tmp_path / "repositories", certificate=authority.server("git"), login=LOGIN)
    yield running
    running.stop()


def git(server: GitServer, *arguments: str, cwd: Path, login: Login = LOGIN) -> subprocess.CompletedProcess[str]:
    authority = server.root.parent / "git-ca.crt"
    helper = f"!f() {{ echo username={login.user}; echo password={login.password}; }}; f"
    options = ["-c", f"http.sslCAInfo={authority}", "-c", f"credential.helper={helper}"]
    names = ["-c", "user.name=network-author", "-c", "user.email=network-author@example.net"]
    return subprocess.run(
        ["git", *options, *names, *arguments],
        cwd=cwd,
        env=git_environment(cwd),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_push_of_real_git_comes_back_in_a_clone(server: GitServer, tmp_path: Path) -> None:
    url = server.create("network")
    work = tmp_path / "work"
    assert git(server, "init", "-q", "-b", "main", str(work), cwd=tmp_path).returncode == 0
    (work / "a.yaml").write_text("a: 1\n" * 100_000)
    for step in (["add", "."], ["commit", "-qm", "first"], ["push", "-q", url, "main"]):
        done = git(server, *step, cwd=work)
        assert done.returncode == 0, done.stderr
    assert git(server, "clone", "-q", url, "copy", cwd=tmp_path).returncode == 0
    assert (tmp_path / "copy" / "a.yaml").read_text() == (work / "a.yaml").read_text()


def test_another_password_reads_nothing(server: GitServer, tmp_path: Path) -> None:
    url = server.create("network")
    done = git(server, "ls-remote", url, cwd=tmp_path, login=Login("controller", "wrong"))
    assert done.returncode != 0
    assert "Authentication failed" in done.stderr

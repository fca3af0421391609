"""A bare repository as a server has it, and a person's clone of it that commits and pushes with the real git."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.git_repos import RepoBuilder


class BareRemote:
    """`path` is the server's repository; `person` the clone of somebody who works on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "network.git"
        self.person = RepoBuilder(folder / "person")
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(self.path)], check=True)
        self.person.git("remote", "add", "origin", str(self.path))

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def git(self, *arguments: str) -> str:
        """Standard output of git in the server's repository."""
        done = subprocess.run(
            ["git", f"--git-dir={self.path}", *arguments], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str] | None = None, *, delete: Sequence[str] = (), **more: Any) -> str:
        """A person commits on main and pushes."""
        self.person.switch("main") if self.refs() else None
        commit = self.person.commit(files, delete=delete, **more)
        self.person.git("push", "--quiet", "origin", "main")
        return commit

    def commit_on(self, branch: str, files: Mapping[str, str], **more: Any) -> str:
        """A person commits on top of a branch of the server and pushes."""
        self.person.git("fetch", "--quiet", "origin")
        self.person.branch("work", at=f"origin/{branch}")
        commit = self.person.commit(files, **more)
        self.person.git("push", "--quiet", "origin", f"work:refs/heads/{branch}")
        self.person.switch("main")
        return commit

    def merge(self, branch: str, *, how: str = "merge") -> str:
        """A person merges a branch of the server into main: `merge`, `squash` or `rebase`; the new tip of main."""
        self.person.git("fetch", "--quiet", "origin")
        self.person.switch("main")
        if how == "merge":
            self.person.merge(f"origin/{branch}")
        elif how == "squash":
            self.person.git("merge", "--squash", f"origin/{branch}")
            self.person.commit(message="squashed")
        else:
            self.person.git("cherry-pick", f"main..origin/{branch}", date="2026-01-02T00:00:00+00:00")
        self.person.git("push", "--quiet", "origin", "main")
        return self.head("main")

    def head(self, ref: str) -> str:
        """Commit of a branch of the server."""
        return self.git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")

    def point(self, branch: str, commit: str) -> None:
        """Move or make a branch of the server by force, with any commit that the person's clone has."""
        self.person.git("push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{branch}")

    def delete(self, branch: str) -> None:
        self.git("update-ref", "-d", f"refs/heads/{branch}")

    def refs(self) -> list[str]:
        """Full names of everything that the server has."""
        return self.git("for-each-ref", "--format=%(refname)").split()

    def branches(self) -> list[str]:
        return [ref.removeprefix("refs/heads/") for ref in self.refs() if ref.startswith("refs/heads/")]

    def show(self, ref: str, path: str) -> str:
        """Text of a file at a ref, with its last newline cut."""
        return self.git("show", f"{ref}:{path}")

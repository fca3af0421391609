"""Repositories made by the real git binary, with no configuration of this machine.

`RepoBuilder` makes commits, merges and tags, signed when a signer is given; `write_object` stores any bytes as an object,
well-formed or not, for what git itself would not make.
"""

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol

GIT_TIMEOUT_S = 120
START = datetime(2026, 1, 1, tzinfo=UTC)
"""Date of the first commit of each builder; each later commit is one minute after the one before."""


class Signer(Protocol):
    """What makes git sign: `SshKey` and `GpgKey` are."""

    def git_config(self) -> tuple[str, ...]: ...

    def sign(self, data: bytes) -> bytes: ...


class RepoBuilder:
    """One repository with a work tree at `path`, branch `main`."""

    def __init__(self, path: Path, *, author: str = "network-author <network-author@example.net>") -> None:
        self.path = path
        self.author = author
        self._minutes = 0
        path.mkdir(parents=True, exist_ok=True)
        if not (path / ".git").exists():
            shutil.copytree(_fresh(), path / ".git")

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    @property
    def git_dir(self) -> Path:
        return self.path / ".git"

    def git(
        self, *arguments: str, data: bytes = b"", config: Sequence[str] = (), author: str = "", date: str = ""
    ) -> str:
        """Standard output of git, stripped at its end.

        Raises:
            RuntimeError: git ended with another exit code than 0.
        """
        options = [part for setting in config for part in ("-c", setting)]
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=self.path,
            input=data,
            env=_environment(author or self.author, date),
            capture_output=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def commit(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        delete: Sequence[str] = (),
        author: str = "",
        signer: Signer | None = None,
        date: datetime | None = None,
        message: str = "change",
    ) -> str:
        """Commit on the current branch and return its id.

        Args:
            files: path to content; text is written as UTF-8.
            delete: paths to remove.
            author: `Name <e-mail>` of author and committer; the builder's when empty.
            signer: signs the commit.
            date: author and committer date; the builder's own clock when None.
            message: commit message.
        """
        for name in delete:
            self.git("rm", "-r", "--quiet", "--", name)
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "--all")
        config, options = self._signing(signer)
        arguments = ["commit", "--quiet", "--allow-empty", "--allow-empty-message", *options, f"--message={message}"]
        self.git(*arguments, config=config, author=author, date=self._date(date))
        return self.head()

    def line(self, count: int, *, start: int = 0) -> list[str]:
        """Many unsigned commits at once on the current branch, each adding `d<n % 7>/f<n>`; ids, oldest first.

        Far faster than `commit`.  The builder's clock goes on.
        """
        branch = self.git("symbolic-ref", "HEAD")
        before = self.git("rev-parse", "--quiet", "--verify", "HEAD") if self.git("for-each-ref", branch) else ""
        stream = [f"reset {branch}\n" + (f"from {before}\n" if before else "") + "\n"]
        name = self.author
        for number in range(start, start + count):
            self._minutes += 1
            when = int((START + timedelta(minutes=self._minutes)).timestamp())
            stream.append(f"commit {branch}\ncommitter {name} {when} +0000\ndata 6\nchange\n")
            content = str(number)
            stream.append(f"M 100644 inline d{number % 7}/f{number}\ndata {len(content)}\n{content}\n")
        self.git("fast-import", "--quiet", data="".join(stream).encode())
        self.git("reset", "--quiet", "--hard")
        return self.git("rev-list", "--reverse", f"--max-count={count}", "--first-parent", "HEAD").splitlines()

    def write(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def head(self, ref: str = "HEAD") -> str:
        return self.git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")

    def tree(self, ref: str = "HEAD") -> str:
        return self.git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{tree}}")

    def branch(self, name: str, *, at: str = "") -> None:
        """Create (or move) the branch and switch to it."""
        self.git("checkout", "--quiet", "-B", name, *([at] if at else []))

    def switch(self, name: str) -> None:
        self.git("checkout", "--quiet", name)

    def merge(
        self,
        *others: str,
        author: str = "",
        signer: Signer | None = None,
        date: datetime | None = None,
        message: str = "merge",
        options: Sequence[str] = (),
        resolve: Mapping[str, str | bytes] | None = None,
    ) -> str:
        """Merge into the current branch with a merge commit, and return its id.

        Args:
            others: branches or commits; more than one makes an octopus.
            resolve: files to write after the merge and before the commit; also resolves conflicts (an "evil merge").
            options: more options of `git merge`, for example `--strategy=ours`.
        """
        config, signing = self._signing(signer)
        when = self._date(date)
        try:
            self.git("merge", "--no-ff", "--no-commit", *options, *others, author=author, date=when)
        except RuntimeError:
            if not resolve:
                raise
        for name, content in (resolve or {}).items():
            self.write(name, content)
        self.git("add", "--all")
        self.git(
            "commit",
            "--quiet",
            "--allow-empty",
            *signing,
            f"--message={message}",
            config=config,
            author=author,
            date=when,
        )
        return self.head()

    def tag(
        self, name: str, *, target: str = "HEAD", signer: Signer | None = None, annotated: bool = True, author: str = ""
    ) -> str:
        """Create or move a tag; the id of the tag object, or of the commit for a lightweight tag."""
        if not annotated:
            self.git("tag", "--force", name, target)
            return self.git("rev-parse", f"refs/tags/{name}")
        config, _ = self._signing(signer)
        kind = "--sign" if signer else "--annotate"
        self.git(
            "tag",
            "--force",
            kind,
            f"--message={name}",
            name,
            target,
            config=config,
            author=author,
            date=self._date(None),
        )
        return self.git("rev-parse", f"refs/tags/{name}")

    def raw(self, object_id: str, kind: str = "commit") -> bytes:
        """Stored bytes of an object."""
        done = subprocess.run(
            ["git", "cat-file", kind, object_id], cwd=self.path, env=_environment(), capture_output=True, check=True
        )
        return done.stdout

    def write_object(self, kind: str, data: bytes) -> str:
        """Store the bytes as they are, without any check by git, and return the object id."""
        return write_object(self.git_dir, kind, data)

    def point(self, ref: str, object_id: str) -> None:
        """Write a ref file without any check by git."""
        path = self.git_dir / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{object_id}\n")

    def signed_object(self, payload: bytes, signer: Signer, *, header: bytes = b"gpgsig") -> str:
        """Store a commit with these payload bytes and a genuine signature over exactly them."""
        head, _, body = payload.partition(b"\n\n")
        folded = signer.sign(payload).rstrip(b"\n").replace(b"\n", b"\n ")
        return self.write_object("commit", head + b"\n" + header + b" " + folded + b"\n\n" + body)

    def _signing(self, signer: Signer | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (signer.git_config(), ("--gpg-sign",)) if signer else ((), ("--no-gpg-sign",))

    def _date(self, date: datetime | None) -> str:
        self._minutes += 1
        return (date or START + timedelta(minutes=self._minutes)).strftime("%Y-%m-%dT%H:%M:%S+00:00")


@cache
def _fresh() -> Path:
    """What `git init` makes, with our settings; made once in a process, and copied."""
    folder = Path(tempfile.mkdtemp(prefix="fresh-repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=folder, env=_environment(), check=True, timeout=GIT_TIMEOUT_S)

    git("init", "--quiet", "--initial-branch=main", "--template=")
    for key in ("uploadpack.allowAnySHA1InWant", "uploadpack.allowFilter", "http.receivepack"):
        git("config", key, "true")
    # Nothing here grows old enough to be packed, and to look takes longer than the commit.
    for key, value in {"gc.auto": "0", "maintenance.auto": "false"}.items():
        git("config", key, value)
    return folder / ".git"


def write_object(git_dir: Path, kind: str, data: bytes) -> str:
    """Write a loose object of any content into a repository."""
    whole = f"{kind} {len(data)}".encode() + b"\0" + data
    object_id = hashlib.sha1(whole).hexdigest()
    path = git_dir / "objects" / object_id[:2] / object_id[2:]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(whole, 1))
    return object_id


def tree_bytes(*entries: tuple[int, bytes, str]) -> bytes:
    """Raw tree of (mode, name, object id), in the order given."""
    return b"".join(
        f"{mode:o} ".encode() + name + b"\0" + bytes.fromhex(object_id) for mode, name, object_id in entries
    )


def _environment(author: str = "network-author <network-author@example.net>", date: str = "") -> dict[str, str]:
    name, _, email = author.rstrip(">").partition(" <")
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        **({"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}),
    }

"""People with signing keys and a checkout, made by the real tools: what the demo commits and pushes with.

Every person gets an SSH key of the moment; commits are signed by git itself.  No configuration of the user is read or changed.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import TerminalError
from gitops_ctl.local.gitserver import Login, git_binary, git_environment


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who signs: name, address and key files."""

    name: str
    key: Path

    @property
    def email(self) -> str:
        return f"{self.name}@example.net"

    @property
    def public_key(self) -> str:
        """`<type> <base64>`, as the trust policy takes it."""
        return " ".join(self.key.with_suffix(".pub").read_text(encoding="utf-8").split()[:2])


@dataclass(slots=True)
class Workshop:
    """One checkout and the people who commit in it.

    Args:
        folder: where keys and checkout are made.
        authority: certificate file of the Git server.
        login: for the Git server.
    """

    folder: Path
    authority: Path
    login: Login
    _people: dict[str, Person] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What somebody left behind who was killed: its history and its keys are nobody's.
        for name in ("checkout", "keys"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    def person(self, name: str) -> Person:
        """The person of that name; gets a key when seen for the first time.

        Raises:
            TerminalError: ssh-keygen is missing (TOOL_MISSING).
        """
        if name not in self._people:
            key = self.folder / "keys" / name
            key.parent.mkdir(parents=True, exist_ok=True)
            keygen = shutil.which("ssh-keygen")
            if keygen is None:
                hint = "apt-get install openssh-client, or dnf install openssh"
                raise TerminalError("ssh-keygen is not installed", code=ErrorCode.TOOL_MISSING, hint=hint)
            self._run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)])
            self._people[name] = Person(name, key)
        return self._people[name]

    def start(self, url: str) -> None:
        """Make the checkout with the branch `main` and the remote `origin`."""
        self.checkout.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", url)

    def commit(self, message: str, *, author: str, paths: Sequence[str] = (".",)) -> str:
        """Commit what changed below `paths`, signed by `author`; gives the commit id."""
        self.git("add", "--all", "--", *paths)
        self.git("commit", "--quiet", "-S", "-m", message, author=author)
        return self.git("rev-parse", "HEAD").strip()

    def push(self, *, force: bool = False) -> None:
        """Push `main`; `force` is what somebody does who takes a refused commit back."""
        self.git("push", "--quiet", *(["--force"] if force else []), "origin", "main")

    def git(self, *arguments: str, author: str = "") -> str:
        """Run git in the checkout, with the identity and key of `author`; gives its output.

        Raises:
            TerminalError: git failed; the message is its own.
        """
        settings: dict[str, str] = {"http.sslCAInfo": str(self.authority), "credential.helper": self._helper()}
        if author:
            person = self.person(author)
            settings |= {
                "user.name": person.name,
                "user.email": person.email,
                "user.signingKey": str(person.key),
                "gpg.format": "ssh",
            }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return self._run([git_binary(), *options, *arguments], cwd=self.checkout)

    def product(self, *arguments: str) -> tuple[int, str]:
        """Run `gitops-ctl` in the checkout as a person does; gives its exit code and output, the checkout's own path as `.`."""
        argv = [sys.executable, "-m", "gitops_ctl", *arguments]
        environment: Mapping[str, str] = git_environment(self.folder)
        done = subprocess.run(argv, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, (done.stdout + done.stderr).replace(str(self.checkout), ".")

    def _helper(self) -> str:
        return f"!f() {{ echo username={self.login.user}; echo password={self.login.password}; }}; f"

    def _run(self, argv: Sequence[str], *, cwd: Path | None = None) -> str:
        environment: Mapping[str, str] = git_environment(self.folder)
        done = subprocess.run(
            argv, cwd=cwd or self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            what = f"{Path(argv[0]).name} failed: {done.stderr.strip() or done.stdout.strip()}"
            raise TerminalError(what, code=ErrorCode.LOCAL_SYSTEM, subject=str(cwd or self.folder))
        return done.stdout


def run_kubectl(program: Path, *arguments: str, kubeconfig: Path) -> str:
    """Output of kubectl.

    Raises:
        TerminalError: it failed; the message is its own.
    """
    # Beside the kubeconfig, so that nothing is left in the home folder.
    cache = kubeconfig.with_name("kubectl-cache")
    argv = [str(program), f"--kubeconfig={kubeconfig}", f"--cache-dir={cache}", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TerminalError(f"kubectl failed: {done.stderr.strip()}", code=ErrorCode.LOCAL_SYSTEM)
    return done.stdout

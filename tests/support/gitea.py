"""A real Gitea for tests: one per test process, gone with it.

`gitea` signs what its merge button makes; `gitea_unsigned` does not.  Repositories, branches, reviews and merges are made here by its own
API and by git, apart from the adapter under test.

    repo = gitea.create_repo()
    repo.push("topic", {"a.yaml": "a: 2\n"})
    pull = repo.api("POST", "/pulls", {"head": "topic", "base": "main", "title": "t"}, user="bot")
"""

import asyncio
import json
import secrets
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.local.gitea import BOT, OWNER, GiteaServer, find_gitea
from gitops_ctl.local.gitserver import git_environment
from gitops_ctl.local.progress import LineProgress
from tests.support.processes import until

REVIEWERS = ("network-author", "change-approver", "second-approver", "stranger")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Said:
    """An answer of the server."""

    status: int
    body: Any


class GiteaHandle:
    """The running server.

    Attributes:
        url: its address, https.
        ca_file, ca: its authority, as a file and as PEM.
        certificate: files of its certificate and key, for a proxy before it.
        bot_key: private SSH key whose signatures it shows as verified.
        signing_key_pub: public SSH key that signs its merges.
        pid: of its process.
    """

    def __init__(self, server: GiteaServer, loop: "_Loop") -> None:
        self._server = server
        self._loop = loop
        folder = server.folder
        self.folder = folder.path
        self.url = server.url
        self.ca_file = folder.ca_file
        self.ca = folder.ca_file.read_bytes()
        self.certificate = (folder.certs / "gitea.crt", folder.certs / "gitea.key")
        self.bot_key = folder.bot_key
        self.signing_key_pub = folder.instance_key.read_text().strip()
        self.pid = server.pids["gitea"]
        self._context = ssl.create_default_context(cafile=str(self.ca_file))

    @property
    def admin_token(self) -> str:
        return self.token_of(OWNER)

    @property
    def bot_token(self) -> str:
        return self.token_of(BOT)

    def token_of(self, user: str) -> str:
        """The token of an account; the account is made when it is not there."""
        if not self._server.folder.knows(user):
            self._loop.run(self._server.have_account(user))
        return self._server.folder.token(user)

    def account_id(self, user: str) -> int:
        return int(self.call("GET", f"/users/{user}").body["id"])

    def limited_token(self, user: str, *scopes: str) -> str:
        """A token of that account that may do less."""
        self.token_of(user)
        login = b64encode(f"{user}:{self._server.folder.password(user)}".encode()).decode()
        wanted = {"name": secrets.token_hex(4), "scopes": list(scopes)}
        made = self.call("POST", f"/users/{user}/tokens", wanted, authorization=f"Basic {login}")
        assert made.status == 201, made
        return str(made.body["sha1"])

    def call(self, method: str, path: str, tree: object = None, *, user: str = OWNER, authorization: str = "") -> Said:
        """One plain call of the API as that account, apart from the client under test."""
        data = None if tree is None else json.dumps(tree).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=data, method=method)
        request.add_header("Authorization", authorization or f"token {self.token_of(user)}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=30) as reply:
                return _said(reply.status, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return _said(error.code, error.read())

    def create_repo(self, name: str = "", *, owner: str = OWNER) -> "GiteaRepo":
        """A repository with one commit on main, in which the bot and the reviewers may write."""
        name = name or f"fabric-{secrets.token_hex(4)}"
        made = self.call("POST", "/user/repos", {"name": name, "default_branch": "main"}, user=owner)
        assert made.status == 201, made
        repo = GiteaRepo(self, owner, name)
        for user in (BOT, *REVIEWERS[:3]):
            self.token_of(user)
            repo.api("PUT", f"/collaborators/{user}", {"permission": "write"})
        repo.push("main", {"values.yaml": "kubeProxyReplacement: false\n"}, message="first")
        # The server finds out by itself, a moment later, that a repository is empty no longer; until then it takes no pull request.
        until(lambda: not repo.api("GET", "").body["empty"], what="the repository is not empty")
        return repo


@dataclass
class GiteaRepo:
    """One repository on it."""

    server: GiteaHandle
    owner: str
    name: str
    _folder: Path | None = field(default=None, repr=False)

    @property
    def project(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def clone_url(self) -> str:
        return f"{self.server.url}/{self.project}.git"

    @property
    def id(self) -> int:
        return int(self.api("GET", "").body["id"])

    def api(self, method: str, path: str, tree: object = None, *, user: str = "") -> Said:
        """A call below this repository."""
        return self.server.call(method, f"/repos/{self.project}{path}", tree, user=user or self.owner)

    @property
    def checkout(self) -> Path:
        """A work tree whose remote is this repository."""
        if self._folder is None:
            self._folder = self.server.folder / "checkouts" / self.name
            self._folder.mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch=main")
            self.git("remote", "add", "origin", self.clone_url)
        return self._folder

    def git(self, *arguments: str, user: str = BOT, check: bool = True) -> str:
        """Git in the checkout, as that account; with `check` off the errors are given back."""
        folder = self._folder or self.checkout
        header = b64encode(f"{user}:{self.server.token_of(user)}".encode()).decode()
        options = {
            "http.sslCAInfo": str(self.server.ca_file),
            "http.extraHeader": f"Authorization: Basic {header}",
            "user.name": user,
            "user.email": f"{user}@example.net",
            "user.signingKey": str(self.server.bot_key),
            "gpg.format": "ssh",
        }
        given = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        done = subprocess.run(
            ["git", *given, *arguments],
            cwd=folder,
            env=git_environment(self.server.folder),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done.stdout + done.stderr

    def push(
        self,
        branch: str,
        files: Mapping[str, str],
        *,
        base: str = "",
        user: str = BOT,
        message: str = "change",
        sign: bool = False,
    ) -> str:
        """Commit files on `branch`, which starts at `base` (the branch itself, else main), and push it; gives the commit id."""
        self.git("fetch", "--quiet", "--prune", "origin") if self._folder else self.checkout
        remote = self.git("branch", "--remotes", "--format=%(refname:short)").split()
        start = base or next((name for name in (branch, "main") if f"origin/{name}" in remote), "")
        if start:
            self.git("checkout", "--quiet", "-B", branch, f"origin/{start}" if f"origin/{start}" in remote else start)
        for name, text in files.items():
            path = self.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", *(["-S"] if sign else []), "-m", message, user=user)
        self.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}", user=user)
        commit = self.git("rev-parse", "HEAD").strip()
        until(lambda: self._heads_of(branch) <= {commit}, what="the open pull requests of the branch show the push")
        return commit

    def delete_branch(self, branch: str, *, user: str = BOT) -> None:
        """Delete a branch, and wait until the server has closed what was open for it."""
        self.git("push", "--quiet", "origin", f":refs/heads/{branch}", user=user)
        until(lambda: not self._heads_of(branch), what="no pull request of the branch is open")

    def _heads_of(self, branch: str) -> set[str]:
        """Head commits of the open pull requests of a branch of this repository; the server works on them after the push."""
        said = self.api("GET", "/pulls?state=open&limit=50")
        listed = said.body if said.status == 200 else ()
        own = [each for each in listed if each["head"]["repo_id"] == each["base"]["repo_id"]]
        return {each["head"]["sha"] for each in own if each["head"]["label"] == branch}

    def tip(self, branch: str = "main") -> str:
        """Commit id of a branch, empty when there is none."""
        said = self.api("GET", f"/branches/{branch.replace('/', '%2F')}")
        return str(said.body["commit"]["id"]) if said.status == 200 else ""

    def pull(self, number: int) -> Any:
        return self.api("GET", f"/pulls/{number}").body

    def review(self, number: int, user: str, event: str, *, body: str = "looked at it") -> Said:
        """A review by that account: APPROVED, REQUEST_CHANGES or COMMENT."""
        return self.api("POST", f"/pulls/{number}/reviews", {"event": event, "body": body}, user=user)

    def merge(self, number: int, user: str = "", *, how: str = "merge") -> str:
        """Merge it with the button, as soon as the server has compared; gives the merge commit."""

        def merged() -> bool:
            said = self.api("POST", f"/pulls/{number}/merge", {"Do": how}, user=user)
            again = said.status == 405 and "try again" in str(said.body).lower()
            assert said.status == 200 or again, said
            return said.status == 200

        until(merged, what=f"pull request {number} is merged")
        return str(self.pull(number)["merge_commit_sha"])


def _said(status: int, body: bytes) -> Said:
    try:
        return Said(status, json.loads(body) if body.strip() else None)
    except ValueError:
        return Said(status, body.decode("utf-8", "replace"))


class _Loop:
    """An event loop on a thread that lives as long as the servers, since the kernel ends them with the thread that started them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="gitea")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        done: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(timeout=1200)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GiteaHandle]:
    """The server of this test process, with an instance key."""
    yield from _running(tmp_path_factory.mktemp("gitea"), signs_merges=True)


@pytest.fixture(scope="session")
def gitea_unsigned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GiteaHandle]:
    """A second one that signs nothing."""
    yield from _running(tmp_path_factory.mktemp("gitea-unsigned"), signs_merges=False)


def _running(folder: Path, *, signs_merges: bool) -> Iterator[GiteaHandle]:
    loop = _Loop()
    try:
        program = loop.run(find_gitea(progress=LineProgress(sys.__stderr__ or sys.stderr)))
        server = GiteaServer(program, folder, clock=SystemClock(), signs_merges=signs_merges)
        loop.run(server.start())
        try:
            yield GiteaHandle(server, loop)
        finally:
            loop.run(server.stop())
    finally:
        loop.close()

"""Commits and ranges of the checkout that a command runs in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pygit2

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import NotFound, Refused
from gitops_ctl.git.history import is_ancestor
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import entry_at
from gitops_ctl.trust.chain import RangeRequest, Root
from gitops_ctl.trust.firstseen import FirstSeen
from gitops_ctl.trust.policy import policy_digest


@dataclass(frozen=True, slots=True)
class RangeText:
    """What the user wrote: `A..B` or `B`, and the root."""

    text: str | None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Checkout:
    """An open repository."""

    path: Path
    repository: pygit2.Repository
    store: ObjectStore

    def commit(self, text: str) -> str:
        """Id of the commit that a revision names.

        Raises:
            NotFound: there is no such commit.
        """
        try:
            found, _ = self.repository.resolve_refish(text)
        except (KeyError, ValueError, pygit2.GitError):
            hint = "commit first" if text == "HEAD" else "fetch it, or name another one: `git log` shows what is there"
            raise NotFound(f"there is no commit {text!r} in {self.path}", subject=str(self.path), hint=hint) from None
        return str(found.id)

    def request(self, wanted: RangeText, *, policy_path: str, now: datetime) -> RangeRequest:
        """The range as the judge takes it.  Without a root the oldest commit of the line with a policy is the root.

        Raises:
            NotFound: a revision is not there, or no commit has a policy.
        """
        before, dots, after = (wanted.text or "").partition("..")
        tip = self.commit((after if dots else before) or "HEAD")
        base = self.commit(before) if dots and before else (None if wanted.text else self._upstream(tip))
        root = self.commit(wanted.root) if wanted.root else self._oldest_with_policy(base or tip, policy_path)
        if base is not None and not is_ancestor(self.store, root, base):
            base = None
        return RangeRequest(
            url=str(self.path),
            ref="HEAD",
            root=Root(root, self.digest_at(root, policy_path)),
            accepted=base,
            tip=tip,
            first_seen=FirstSeen(),
            now=now,
            policy_path=policy_path,
        )

    def policy_at(self, commit: str, policy_path: str) -> bytes:
        """Bytes of the policy file in a commit.

        Raises:
            NotFound: there is none.
        """
        entry = entry_at(self.store, self.store.links(commit).tree, policy_path)
        if entry is None or not entry.is_file:
            raise NotFound(
                f"commit {commit} has no trust policy at {policy_path}",
                subject=policy_path,
                hint="write one with `gitops-ctl trust init`",
            )
        return self.store.blob(entry.id)

    def digest_at(self, commit: str, policy_path: str) -> str:
        """Digest of the policy in a commit, as it is pinned."""
        return policy_digest(self.policy_at(commit, policy_path))

    def _upstream(self, tip: str) -> str | None:
        """The upstream branch of HEAD, where it is an ancestor."""
        if self.repository.head_is_detached or self.repository.head_is_unborn:
            return None
        name = f"{self.repository.head.shorthand}@{{upstream}}"
        try:
            commit = self.commit(name)
        except NotFound:
            return None
        return commit if is_ancestor(self.store, commit, tip) else None

    def _oldest_with_policy(self, tip: str, policy_path: str) -> str:
        found, commit = "", tip
        while entry_at(self.store, self.store.links(commit).tree, policy_path) is not None:
            found = commit
            parents = self.store.links(commit).parents
            if not parents or not self.store.contains(parents[0]):
                break
            commit = parents[0]
        if not found:
            raise NotFound(
                f"commit {tip} has no trust policy at {policy_path}",
                subject=policy_path,
                hint="write one with `gitops-ctl trust init`, and commit it",
            )
        return found


@contextmanager
def open_checkout(directory: Path) -> Iterator[Checkout]:
    """The repository at or above a folder.

    Raises:
        Refused: there is none.
    """
    found = pygit2.discover_repository(str(directory))
    if found is None:
        raise Refused(
            f"{directory.resolve()} lies in no Git repository",
            code=ErrorCode.USAGE,
            hint="run it in a checkout, or name one with -C",
        )
    repository = pygit2.Repository(found)
    with ObjectStore.open(_common_directory(Path(repository.path))) as store:
        yield Checkout(Path(repository.workdir or repository.path), repository, store)


def _common_directory(git_directory: Path) -> Path:
    """Where the objects are: of a linked work tree that is its main repository."""
    pointer = git_directory / "commondir"
    return (git_directory / pointer.read_text().strip()).resolve() if pointer.is_file() else git_directory

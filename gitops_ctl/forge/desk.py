"""The Git side of one pass: what base and branch hold now, and the one commit that is pushed (forges.md, sections 9.1, 9.2, 9.6 and 9.7).

Always from the remote's present state (rule 7), always on objects: what we write goes into a repository of its own that borrows the
objects of the copy and is gone after the pass.  Reading runs in threads, one store each.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pygit2
from pygit2.enums import FileMode

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import GitopsError, NotFound, Refused
from gitops_ctl.forge.content import Edited, FileEdit, edited
from gitops_ctl.forge.errors import BaseMissing
from gitops_ctl.forge.model import Tip
from gitops_ctl.git.fetching import Credentials
from gitops_ctl.git.history import is_ancestor
from gitops_ctl.git.pushing import GitPusher, PushRequest
from gitops_ctl.git.repository import CloneCache, Collector, Snapshot
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.transport import FetchRequest, GitTransport, Ref
from gitops_ctl.git.tree import tree_changes
from gitops_ctl.git.writing import Identity, Signs, borrow_objects, commit_files, content_hash, read_file


class Git(GitTransport, GitPusher, Collector, Protocol):
    """What proposals need of Git."""


@dataclass(frozen=True, slots=True)
class BaseView:
    """The base branch as it is now, with the edits made on it.

    Attributes:
        content: digest of the files as they will be.
    """

    commit: str
    edited: Edited
    content: str


@dataclass(frozen=True, slots=True)
class Authorship:
    """Whose commits these are."""

    author: Identity
    at: datetime
    signer: Signs


class Desk:
    """One pass over one branch of one repository; a context manager that leaves nothing behind."""

    def __init__(
        self, git: Git, clones: CloneCache, request: FetchRequest, *, push_credentials: Credentials | None, tenant: str
    ) -> None:
        """`request` names the base branch and how it is fetched; its `repository` is chosen here."""
        self._git = git
        self._clones = clones
        self._tenant = tenant
        self._push_credentials = push_credentials
        self._request = replace(request, repository=clones.path_for(request.url, tenant=tenant))
        self._place = Path(tempfile.mkdtemp(prefix="gitops-ctl-proposal-"))
        self._lease: Snapshot | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lease is not None:
            self._lease.close()
        await asyncio.to_thread(shutil.rmtree, self._place, ignore_errors=True)

    @property
    def base_branch(self) -> str:
        return self._request.ref.name

    async def fetch_base(self, *, keep: tuple[str, ...] = ()) -> str:
        """The base tip as the server names it now, fetched.

        Raises:
            BaseMissing: the branch is gone or renamed; nothing is guessed.
            TransientError, Refused: with 30xx codes.
        """
        try:
            tip = (await self._git.fetch(replace(self._request, shallow_only=True))).tip
        except NotFound as error:
            if error.code is not ErrorCode.REF_NOT_FOUND:
                raise
            what = f"the branch {self.base_branch} is not there: it was renamed or deleted"
            raise BaseMissing(what, subject=self._request.url.display) from error
        repository = await self._clones.collect(self._request, keep=keep, collector=self._git)
        self._request = replace(self._request, repository=repository)
        if self._lease is None:
            self._lease = self._clones.snapshot(repository)
            await asyncio.to_thread(borrow_objects, self._place / "objects.git", of=repository)
        return tip

    async def view(self, commit: str, edits: tuple[FileEdit, ...]) -> BaseView:
        """The edits on that commit.

        Raises:
            SpliceRefused, Refused: see `content.edited`.
        """
        return await asyncio.to_thread(self._view, commit, edits)

    async def content_at(self, commit: str, edits: tuple[FileEdit, ...]) -> str:
        """Digest of the edited files on an older base; empty when that cannot be said any more."""
        try:
            return (await self.view(commit, edits)).content
        except GitopsError:
            return ""

    async def is_in(self, base: str, commit: str) -> bool:
        """Whether the history of the base holds a commit, as far as it is known here."""
        return await asyncio.to_thread(self._is_in, base, commit)

    async def tip_of(self, branch: str) -> str | None:
        """Where the server's branch is now."""
        return (await self._git.resolve(replace(self._request, ref=Ref("branch", branch)))).commit

    async def look(self, branch: str, commit: str, *, base: BaseView, edits: tuple[FileEdit, ...]) -> Tip:
        """What one of our own commits holds, compared with what is wanted."""
        wanted = replace(self._request, ref=Ref("branch", branch))
        fetched = await self._git.fetch(replace(wanted, shallow_only=True))
        if fetched.tip != commit:
            return Tip(fetched.tip, ours=False)
        parent = await asyncio.to_thread(self._missing_parent, commit)
        if parent:
            await self._git.fetch(replace(wanted, known=parent, shallow_only=False))
        return await asyncio.to_thread(self._look, commit, base, edits)

    async def commit(self, base: BaseView, *, message: str, by: Authorship) -> str:
        """Id of the commit that makes the change on `base`."""
        return await asyncio.to_thread(self._commit, base, message, by)

    async def is_made_twice(self, branch: str, commit: str, *, made: str, signer: Signs) -> bool:
        """Whether the tip of the branch is `made` but for its signature, which is by the same key and never comes out the same."""
        if signer.repeats:
            return False
        try:
            fetched = await self._git.fetch(replace(self._request, ref=Ref("branch", branch), shallow_only=True))
        except (NotFound, Refused):
            return False
        return fetched.tip == commit and await asyncio.to_thread(self._is_made_twice, commit, made, signer)

    async def push(self, branch: str, commit: str, *, base: BaseView, expected: str | None) -> None:
        """Move the server's branch from `expected` to `commit`.

        Raises:
            LeaseLost, PushRefused, TransientError: see `ChildTransport.push`.
        """
        place = self._place / "objects.git"
        remote = replace(self._request, repository=place, credentials=self._push_credentials)
        files = tuple(sorted(base.edited.changed))
        await self._git.push(PushRequest(remote, f"{commit}:refs/heads/{branch}", expected, base.commit, files))

    def _store(self) -> ObjectStore:
        edges = self._request.repository / "shallow"
        if edges.exists():
            # libgit2 walks by this list; fetches of this pass may have moved it.
            shutil.copyfile(edges, self._place / "objects.git" / "shallow")
        return ObjectStore.open(self._place / "objects.git")

    def _view(self, commit: str, edits: tuple[FileEdit, ...]) -> BaseView:
        with self._store() as store:
            tree = store.links(commit).tree
            done = edited(lambda path: read_file(store, tree, path), edits)
            return BaseView(commit, done, content_hash(done.files))

    def _is_in(self, base: str, commit: str) -> bool:
        with self._store() as store, suppress(NotFound):
            return store.contains(commit) and is_ancestor(store, commit, base)
        return False

    def _is_made_twice(self, commit: str, made: str, signer: Signs) -> bool:
        with self._store() as store, suppress(NotFound, Refused):
            there = store.commit(commit)
            same = there.payload == store.commit(made).payload
            return same and there.signature is not None and signer.made(there.payload, there.signature)
        return False

    def _missing_parent(self, commit: str) -> str:
        with self._store() as store:
            parents = store.links(commit).parents
            return next((parent for parent in parents if not store.contains(parent)), "")

    def _look(self, commit: str, base: BaseView, edits: tuple[FileEdit, ...]) -> Tip:
        with self._store() as store:
            links = store.links(commit)
            if len(links.parents) != 1 or not store.contains(links.parents[0]):
                return Tip(commit, ours=True)
            parent = links.parents[0]
            tree = store.links(parent).tree
            try:
                done = edited(lambda path: read_file(store, tree, path), edits)
            except GitopsError:
                return Tip(commit, ours=True)
            same = _holds(store, links.tree, done) and {
                change.path for change in tree_changes(store, tree, links.tree)
            } <= set(done.changed)
            return Tip(
                commit,
                ours=True,
                is_current=same and parent == base.commit,
                same_edit=same,
                conflicts=any(_conflicts(store, path, (parent, commit, base.commit)) for path in done.changed),
            )

    def _commit(self, base: BaseView, message: str, by: Authorship) -> str:
        changes: Mapping[str, bytes] = {path: base.edited.files[path][1] for path in base.edited.changed}
        with self._store() as store:
            return commit_files(
                store,
                base=base.commit,
                changes=changes,
                message=message,
                author=by.author,
                at=by.at,
                signer=by.signer,
            )


def _holds(store: ObjectStore, tree: str, done: Edited) -> bool:
    """Whether the tree has the files exactly so."""
    return all(read_file(store, tree, path) == found for path, found in done.files.items())


def _conflicts(store: ObjectStore, path: str, commits: tuple[str, str, str]) -> bool:
    """Whether our change of a file cannot be merged with what the base did to it: (its parent, ours, the base now)."""
    sides = []
    for commit in commits:
        try:
            found = read_file(store, store.links(commit).tree, path)
        except (Refused, NotFound):
            return True
        if found is None:
            return True
        blob = store.repository.create_blob(found[1])
        sides.append(pygit2.IndexEntry(path, blob, FileMode(found[0])))
    if sides[0].id == sides[2].id:
        return False
    try:
        parent, ours, theirs = sides
        return not store.repository.merge_file_from_index(parent, ours, theirs).automergeable
    except UnicodeDecodeError:
        return True

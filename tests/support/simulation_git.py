"""A Git server in memory: real commits made once by git, given out object by object.  Where its branch points is part of the world."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.index import DocumentCache, load_set
from gitops_ctl.git.fetching import Fetched, FetchRequest, RemoteTip
from gitops_ctl.git.layout import exclusive, prepare_repository
from gitops_ctl.git.pushing import Pushed, PushRequest
from gitops_ctl.git.store import ObjectStore
from tests.support.git_repos import RepoBuilder

FOLDERS = ("site", "extra")


@dataclass
class Book:
    """Commits by name, what each declares, and the objects that each reaches."""

    repo: RepoBuilder
    commits: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    declared: dict[str, dict[str, Mapping[ObjectId, JsonObject]]] = field(default_factory=dict)
    objects: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, name: str, commit: str) -> None:
        """Take a commit into the book; per folder it is read as the product reads it."""
        self.commits[name], self.names[commit] = commit, name
        listed = self.repo.git("rev-list", "--objects", "--no-object-names", commit)
        self.objects[commit] = tuple(listed.split())
        cache = DocumentCache()
        with ObjectStore.open(self.repo.git_dir) as store:
            tree = self.repo.tree(commit)
            self.declared[commit] = {}
            for folder in FOLDERS:
                found = load_set(store, tree=tree, path=folder, cache=cache)
                assert not found.problems, found.problems
                self.declared[commit][folder] = {item.id: item.tree for item in found.documents}


class SimulatedGit:
    """The transport of one process.  `point` is passed before and after each call and may raise."""

    def __init__(self, book: Book, *, tip: Callable[[], str], point: Callable[[str, str], None]) -> None:
        self._book = book
        self._tip = tip
        self._point = point

    async def resolve(self, request: FetchRequest) -> RemoteTip:
        self._point("git resolve", "before")
        tip = RemoteTip(self._tip(), None)
        self._point("git resolve", "after")
        return tip

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Copy what the tip reaches and the copy lacks."""
        self._point("git fetch", "before")
        tip = self._tip()
        with exclusive(request.repository):
            prepare_repository(request.repository)
            for object_id in self._book.objects[tip]:
                _copy(self._book.repo.git_dir, request.repository, object_id)
                if object_id == self._book.objects[tip][0]:
                    self._point("git fetch of one object", "after")
        self._point("git fetch", "after")
        return Fetched(tip, None, changed=True, shallow=False, received_bytes=1, complete=True)

    async def push(self, request: PushRequest) -> Pushed:
        raise AssertionError("nobody proposes anything here")

    async def collect(self, request: FetchRequest, *, keep: tuple[str, ...], into: Path) -> None:
        raise AssertionError("no copy of a simulation grows that large")


def _copy(source: Path, target: Path, object_id: str) -> None:
    place = Path("objects", object_id[:2], object_id[2:])
    if not (target / place).exists():
        (target / place).parent.mkdir(exist_ok=True)
        os.link(source / place, target / place)

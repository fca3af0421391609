"""Fixtures of the git room: one fresh repository per test, and stores that close with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitops_ctl.git.store import ObjectStore
from tests.support.git_repos import RepoBuilder


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo")


@pytest.fixture
def open_store() -> Iterator[Callable[[RepoBuilder], ObjectStore]]:
    opened: list[ObjectStore] = []

    def open_one(repo: RepoBuilder) -> ObjectStore:
        opened.append(ObjectStore.open(repo.git_dir))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()

"""A proposer's key and desk, and the published description of GitHub's interface: fetched once into the user's cache; a run without it fails."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.forge_github import OPERATIONS, FakeGithub
from tests.support.forge_openapi import Interface
from tests.support.git_keys import SshKey
from tests.support.proposals import Desktop
from tools.peers.descriptions import GITHUB, described


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SshKey:
    return SshKey.generate(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def desk(tmp_path: Path, key: SshKey) -> Desktop:
    return Desktop.make(tmp_path, key=key)


def _interface(name: str, base: str) -> Interface:
    folder = asyncio.run(described(GITHUB))
    return Interface(json.loads((folder / name).read_bytes()), operations=OPERATIONS, base=base)


@pytest.fixture(scope="session")
def github_interface() -> Interface:
    return _interface("api.github.com.json", "https://api.github.com")


@pytest.fixture(scope="session")
def enterprise_interface() -> Interface:
    return _interface("ghes-3.19.json", "https://ghe.example.net/api/v3")


@pytest.fixture
def github(github_interface: Interface) -> FakeGithub:
    return FakeGithub(github_interface)

"""Keys and repositories that the tests of this room share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_keys import GpgHome
from tests.support.trust import Story, Team


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """One key per person for all tests: making one costs a process."""
    return Team(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def gpg_home() -> Iterator[GpgHome]:
    with GpgHome() as home:
        yield home


@pytest.fixture
def story(tmp_path: Path, team: Team) -> Story:
    """A repository whose root holds the policy of `Team.policy`."""
    return Story.begin(tmp_path / "repo", team.policy(), signer=team["adm"])

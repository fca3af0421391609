"""What was taken up stands after a new root is pinned, until its person's key is revoked (rollouts.md, section 2.6)."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.api.names import POLICY_PATH
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.withdrawn import TakenUp, is_withdrawn
from tests.support.trust import NOW, Story, Team

LATER = NOW + timedelta(days=1)


def asked(story: Story, taken: TakenUp, tip: str, *, without: bool = False) -> bool:
    """The answer about a commit, with the policy of the tip; `without` looks at a store that lacks the commit."""
    found = TakenUp("f" * 40, taken.person, taken.at) if without else taken
    with ObjectStore.open(story.repo.git_dir) as store:
        return is_withdrawn(store, found, tip=tip, policy_path=POLICY_PATH)


def approved(team: Team, path: Path) -> tuple[Story, TakenUp]:
    """A history in which bob approved something, and who took it up remembers that."""
    story = Story.begin(path, team.policy())
    commit = story.repo.commit({"rollouts/spring.yaml": "approval: 1\n"}, signer=team["bob"])
    return story, TakenUp(commit, "bob", NOW)


@pytest.mark.parametrize(
    ("revoked", "since", "answer"),
    [
        ("bob", to_rfc3339(NOW - timedelta(days=1)), True),
        ("bob", to_rfc3339(LATER), False),
        ("ann", to_rfc3339(NOW - timedelta(days=1)), False),
        ("", "", False),
    ],
    ids=["the key from before on", "the key from later on", "somebody else", "nobody"],
)
def test_only_a_revocation_that_covers_the_commit_ends_it(
    team: Team, tmp_path: Path, revoked: str, since: str, answer: bool
) -> None:
    story, taken = approved(team, tmp_path / "site")
    entries = [{"fingerprint": team[revoked].fingerprint, "from": since}] if revoked else []
    tip = story.repo.commit({POLICY_PATH: team.policy(revoked=entries)} if entries else {"a": "1"}, signer=team["adm"])
    assert asked(story, taken, tip) is answer


def test_a_key_that_left_the_policy_and_is_revoked_ends_it(team: Team, tmp_path: Path) -> None:
    story, taken = approved(team, tmp_path / "site")
    entries = [{"fingerprint": team["bob"].fingerprint, "from": to_rfc3339(NOW - timedelta(days=1))}]
    people: list[dict[str, Any]] = [
        {"name": name, "keys": [{"ssh": " ".join(team[key].public.split()[:2])}]}
        for name, key in (("ann", "ann"), ("bob", "bob-new"), ("eve", "eve"), ("adm", "adm"))
    ]
    tip = story.repo.commit({POLICY_PATH: team.policy(people=people, revoked=entries)}, signer=team["adm"])
    assert asked(story, taken, tip) is True


def test_a_revocation_from_a_commit_on_spares_what_came_before(team: Team, tmp_path: Path) -> None:
    story, taken = approved(team, tmp_path / "site")
    after = story.repo.commit({"a": "1"}, signer=team["adm"])
    entries = [{"fingerprint": team["bob"].fingerprint, "from": after}]
    tip = story.repo.commit({POLICY_PATH: team.policy(revoked=entries)}, signer=team["adm"])
    assert asked(story, taken, tip) is False
    entries = [{"fingerprint": team["bob"].fingerprint, "from": taken.commit}]
    tip = story.repo.commit({POLICY_PATH: team.policy(revoked=entries)}, signer=team["adm"])
    assert asked(story, taken, tip) is True


def test_of_a_commit_that_is_not_there_any_more_the_keys_of_the_person_tell(team: Team, tmp_path: Path) -> None:
    story, taken = approved(team, tmp_path / "site")
    for name, answer in (("bob", True), ("ann", False)):
        entries = [{"fingerprint": team[name].fingerprint, "from": to_rfc3339(NOW - timedelta(days=1))}]
        tip = story.repo.commit({POLICY_PATH: team.policy(revoked=entries)}, signer=team["adm"])
        assert asked(story, taken, tip, without=True) is answer

"""Histories that are made to be hard to judge: proposers above proposers, and branches that merged each other again and again.

Every verdict comes within moments and is the right one; how long a chain is does not matter (rules A3, A4 and A9).
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.trust import Story, person, policy_text
from tests.support.trust_software import SoftKey

LONGER_THAN_ANY_STACK = 600


@pytest.fixture(scope="module")
def keys() -> dict[str, SoftKey]:
    return {name: SoftKey.ed25519() for name in ("ann", "adm", "robot")}


@pytest.fixture
def crossed(tmp_path: Path, keys: dict[str, SoftKey]) -> Story:
    policy = policy_text(
        [person(name, {"ssh": keys[name].line}) for name in ("ann", "adm")],
        roles={"author": ["ann"], "approver": ["ann"], "admin": ["adm"]},
        proposers=[{"name": "robot", "keys": [{"ssh": keys["robot"].line}], "paths": ["clusters/**"]}],
    )
    return Story.begin(tmp_path / "repo", policy)


def _commit(story: Story, parents: Sequence[str], *, key: SoftKey, minute: int, tree: str) -> str:
    stamp = f"ann <ann@example.net> {1767225600 + 60 * minute} +0000"
    lines = [f"tree {tree}", *(f"parent {each}" for each in parents)]
    payload = "\n".join((*lines, f"author {stamp}", f"committer {stamp}", "", "change", "")).encode()
    head, _, body = payload.partition(b"\n\n")
    folded = key.sign(payload).rstrip(b"\n").replace(b"\n", b"\n ")
    return story.repo.write_object("commit", head + b"\ngpgsig " + folded + b"\n\n" + body)


def _proposed_merges(story: Story, keys: dict[str, SoftKey], *, count: int, merger: str) -> str:
    """A proposer's commit below that many merges by the proposer, each inside the next, and one by somebody else."""
    root, tree = story.root.commit, story.repo.tree()
    commit = _commit(story, [root], key=keys["robot"], minute=1, tree=tree)
    for minute in range(2, count + 2):
        commit = _commit(story, [root, commit], key=keys["robot"], minute=minute, tree=tree)
    return _commit(story, [root, commit], key=keys[merger], minute=count + 2, tree=tree)


def test_a_proposer_may_merge_its_own_merges_for_as_long_as_it_likes(crossed: Story, keys: dict[str, SoftKey]) -> None:
    tip = _proposed_merges(crossed, keys, count=LONGER_THAN_ANY_STACK, merger="ann")
    verdict = crossed.judge(tip, limit=LONGER_THAN_ANY_STACK * 2)
    assert (verdict.verdict, verdict.accepted, verdict.judged) == ("Accepted", tip, LONGER_THAN_ANY_STACK + 2)


def test_merges_by_a_proposer_count_for_nothing_without_a_person_above_them(
    crossed: Story, keys: dict[str, SoftKey]
) -> None:
    tip = _proposed_merges(crossed, keys, count=LONGER_THAN_ANY_STACK, merger="robot")
    refused = crossed.judge(tip, limit=LONGER_THAN_ANY_STACK * 2).refused
    assert refused is not None
    assert (refused.commit, refused.reason) == (tip, "PathNotAuthorised")
    assert "a commit by proposer robot counts only through a merge" in refused.message

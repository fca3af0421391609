"""A file that some checkout takes for the policy is refused, whoever may change its path; other paths are left alone (X12, X14)."""

from pathlib import Path

import pytest

from gitops_ctl.trust.lookalike import is_lookalike
from tests.support.trust import POLICY_PATH, Story, Team, config_map

ANYWHERE = (
    {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
    {"paths": ["**"], "verbs": ["edit", "delete", "trust"], "roles": ["author"]},
    {"verbs": ["merge"], "roles": ["author"]},
)
LOOKALIKES = [
    ".GITOPS-CTL/trust.yaml",
    ".gitops-ctl/Trust.YAML",
    ".gitops-ctl\u200d/trust.yaml",
    ".gitops-ctl./trust.yaml",
    ".gitops-ctl/trust.yaml ",
    ".gitops-ct\u217c/trust.yaml",
    ".Gitops-Ctl/consents/agreed.yaml",
    ".GITOPS-CTL",
    ".gitops-ctl\\u202e/trust.yaml",
]
OTHERS = [POLICY_PATH, ".gitops-ctl/consents/agreed.yaml", ".gitops-ctl2/trust.yaml", "x/.GITOPS-CTL/trust.yaml"]


@pytest.mark.parametrize("path", LOOKALIKES)
def test_a_path_that_a_file_system_takes_for_the_policys_is_told_from_it(path: str) -> None:
    assert is_lookalike(path, of=POLICY_PATH)


@pytest.mark.parametrize("path", OTHERS)
def test_other_paths_are_no_lookalikes(path: str) -> None:
    assert not is_lookalike(path, of=POLICY_PATH)


@pytest.fixture
def free(tmp_path: Path, team: Team) -> Story:
    """An author may change everything but the policy."""
    return Story.begin(tmp_path / "repo", team.policy(rules=ANYWHERE), files={"Old.yaml": config_map("old")})


@pytest.mark.parametrize("path", LOOKALIKES[:3])
def test_nobody_puts_a_policy_beside_the_policy(free: Story, team: Team, path: str) -> None:
    free.repo.commit({path: team.policy()}, signer=team["ann"])
    refused = free.judge().refused
    assert refused is not None
    assert (refused.reason, refused.hint) == ("MalformedObject", "give the file another name")
    assert f"{path!r}" in refused.message


def test_a_merge_brings_none_in_either(free: Story, team: Team) -> None:
    free.repo.branch("side")
    free.repo.commit({"x.yaml": config_map("x")}, signer=team["ann"])
    free.repo.switch("main")
    free.repo.merge("side", signer=team["ann"], resolve={".GITOPS-CTL/trust.yaml": team.policy()})
    assert free.judge().verdict == "MalformedObject"


def test_one_that_stood_in_the_root_may_go(tmp_path: Path, team: Team) -> None:
    path = ".GITOPS-CTL/trust.yaml"
    story = Story.begin(tmp_path / "repo", team.policy(rules=ANYWHERE), files={path: config_map("old")})
    gone = story.repo.commit(delete=[path], signer=team["ann"])
    assert story.judge().accepted == gone

"""What bootstrap shows before a person trusts a root (gitops.md, section 23.1, step 4)."""

from pathlib import Path

from gitops_ctl.cli.introduce import Introduction
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.policy import load_policy
from tests.support.trust import Story, Team, person, policy_text, ssh_line


def test_the_root_is_shown_with_every_person_role_and_key_fingerprint(tmp_path: Path) -> None:
    team = Team(tmp_path)
    text = policy_text(
        [person("ann", team["ann"], team["ann-second"]), person("bob", team["bob"])],
        roles={"author": ["ann"], "approver": ["ann"], "admin": ["ann"]},
        merges={"forgeKeys": [{"ssh": ssh_line(team["forge"])}]},
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["**"]}],
    )
    story = Story.begin(tmp_path / "repo", text)
    with ObjectStore.open(story.repo.git_dir) as store:
        root = store.commit(story.root.commit)
    shown = Introduction(root, "nobody", load_policy(text.encode()), tmp_path).lines()
    assert f"root commit    {story.root.commit}" in shown
    assert f"  digest       {story.root.policy_digest}" in shown
    assert shown[shown.index("people") + 1 :] == [
        "  ann (admin, approver, author)",
        *(f"    {key}" for key in sorted((team["ann"].fingerprint, team["ann-second"].fingerprint))),
        "  bob (no role)",
        f"    {team['bob'].fingerprint}",
        "other key, of the forge",
        f"    {team['forge'].fingerprint}",
        "other key, of the proposer robot",
        f"    {team['robot'].fingerprint}",
    ]

"""Merges: what they may bring, what they change by themselves, and whom they may not hide (rules A3, A4; section 4.6)."""

from pathlib import Path

import pytest

from gitops_ctl.trust.reviews import ReviewEvidence
from tests.support.git_repos import tree_bytes
from tests.support.trust import POLICY_PATH, Story, Team, config_map, person, ssh_line

A, B = "clusters/a.yaml", "clusters/b.yaml"


def _branch(story: Story, team: Team, *, signer: str | None = "ann", path: str = B) -> str:
    """A commit on the branch `side`, and one on `main` beside it."""
    story.repo.branch("side")
    commit = story.repo.commit({path: config_map("b")}, signer=team[signer] if signer else None)
    story.repo.switch("main")
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    return commit


def test_a_clean_merge_needs_only_the_verb_merge(story: Story, team: Team) -> None:
    _branch(story, team)
    merge = story.repo.merge("side", signer=team["adm"])  # adm may merge and may not edit
    verdict = story.judge()
    assert (verdict.verdict, verdict.accepted, verdict.judged) == ("Accepted", merge, 3)


def test_a_merge_without_the_verb_merge_is_refused(story: Story, team: Team) -> None:
    _branch(story, team)
    story.repo.merge("side", signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.reason, refused.verb) == ("PathNotAuthorised", "merge")


def test_a_merged_in_commit_is_judged_like_any_other(story: Story, team: Team) -> None:
    bad = _branch(story, team, signer="bob")
    story.repo.merge("side", signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.commit, refused.reason) == (bad, "PathNotAuthorised")


def test_X17_a_signed_merge_does_not_cover_unsigned_commits_below_it_and_the_message_names_them(
    story: Story, team: Team
) -> None:
    story.repo.branch("side")
    unsigned = [story.repo.commit({B: config_map("b", x=str(count))}) for count in range(12)]
    story.repo.switch("main")
    story.repo.merge("side", signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.reason, refused.commit) == ("Unsigned", unsigned[0])
    newest = ", ".join(reversed(unsigned[2:]))
    assert f"unsigned are: {newest} and 2 more" in refused.message


def test_X16_what_a_merge_changes_beside_the_replay_is_judged_for_its_signer(story: Story, team: Team) -> None:
    _branch(story, team)
    story.repo.merge("side", signer=team["adm"], resolve={"clusters/evil.yaml": config_map("evil")})
    refused = story.judge().refused
    assert refused is not None
    assert (refused.path, refused.verb, refused.reason) == ("clusters/evil.yaml", "edit", "PathNotAuthorised")


def test_a_merge_with_own_changes_by_a_person_who_may_make_them_is_accepted(story: Story, team: Team) -> None:
    _branch(story, team)
    merge = story.repo.merge("side", signer=team["ann"], resolve={"clusters/more.yaml": config_map("more")})
    assert story.judge().accepted == merge


def test_a_resolved_conflict_is_a_change_of_the_merger(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a", x="0")}, signer=team["ann"])
    story.repo.branch("side")
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    story.repo.switch("main")
    story.repo.commit({A: config_map("a", x="2")}, signer=team["ann"])
    story.repo.merge("side", signer=team["adm"], resolve={A: config_map("a", x="3")})
    refused = story.judge().refused
    assert refused is not None
    assert (refused.path, refused.reason) == (A, "PathNotAuthorised")


def test_a_rename_on_one_side_never_lets_an_edit_land_in_a_protected_path(tmp_path: Path, team: Team) -> None:
    rules = (
        {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
        {"paths": ["protected/**"], "verbs": ["edit"], "roles": ["admin"]},
        {"paths": ["free/**"], "verbs": ["edit", "delete"], "roles": ["author", "admin"]},
        {"verbs": ["merge"], "roles": ["author", "admin"]},
    )
    story = Story.begin(tmp_path / "repo", team.policy(rules=rules), files={"free/x.txt": "line\n" * 30})
    story.repo.branch("side")
    story.repo.commit({"free/x.txt": "line\n" * 30 + "attack\n"}, signer=team["ann"])
    story.repo.switch("main")
    story.repo.write("protected/x.txt", "line\n" * 30)
    story.repo.commit(delete=["free/x.txt"], signer=team["adm"])
    assert story.judge().verdict == "Accepted"
    story.repo.merge("side", signer=team["ann"])  # git follows the rename
    assert "attack" in story.repo.git("show", "HEAD:protected/x.txt")
    refused = story.judge().refused
    assert refused is not None
    assert (refused.path, refused.verb) == ("protected/x.txt", "edit")


def test_an_octopus_merge_is_refused(story: Story, team: Team) -> None:
    for name in ("one", "two"):
        story.repo.branch(name, at=story.root.commit)
        story.repo.commit({f"clusters/{name}.yaml": config_map(name)}, signer=team["ann"])
    story.repo.switch("main")
    story.repo.merge("one", "two", signer=team["ann"])
    assert story.judge().verdict == "MalformedObject"


def test_a_tip_that_reaches_the_accepted_commit_only_through_its_second_parent_is_refused(
    story: Story, team: Team
) -> None:
    story.repo.branch("old", at=story.root.commit)
    story.repo.commit({B: config_map("b")}, signer=team["ann"])
    story.repo.switch("main")
    accepted = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge().accepted == accepted
    story.repo.switch("old")
    turned = story.repo.merge("main", signer=team["ann"])
    verdict = story.judge(turned)
    assert (verdict.verdict, verdict.accepted) == ("MalformedObject", accepted)
    assert verdict.refused is not None
    assert "rebase" in verdict.refused.hint


def test_a_key_that_was_removed_on_main_is_of_no_use_on_an_older_branch(story: Story, team: Team) -> None:
    story.repo.branch("side")
    late = story.repo.commit({B: config_map("b")}, signer=team["ann"])
    story.repo.switch("main")
    people = [person(name, team[name]) for name in ("bob", "adm", "new")]
    roles = {"author": ["new"], "approver": ["bob"], "admin": ["adm"]}
    story.repo.commit({POLICY_PATH: team.policy(roles, people=people)}, signer=team["adm"])
    assert story.judge().verdict == "Accepted"
    story.repo.merge("side", signer=team["adm"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.commit, refused.reason) == (late, "UnknownSigner")


def test_a_branch_that_began_before_its_authors_key_was_added_must_be_rebased(story: Story, team: Team) -> None:
    early = _branch(story, team, signer="new")
    people = [person(name, team[name]) for name in ("ann", "bob", "adm", "new")]
    roles = {"author": ["ann", "new"], "approver": ["bob"], "admin": ["adm"]}
    story.repo.commit({POLICY_PATH: team.policy(roles, people=people)}, signer=team["adm"])
    story.repo.merge("side", signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.commit, refused.reason) == (early, "UnknownSigner")


def test_a_branch_that_began_below_the_pinned_root_is_judged_by_the_policy_of_the_root(
    tmp_path: Path, team: Team
) -> None:
    story = Story.begin(tmp_path / "repo", team.policy())
    before = story.repo.commit({"clusters/old.yaml": config_map("old")})
    story.repo.branch("side")
    story.repo.git("rm", "--quiet", "--cached", POLICY_PATH)
    story.repo.commit({B: config_map("b")}, signer=team["ann"])
    story.repo.commit({B: config_map("b", x="1")}, signer=team["ann"])
    story.repo.git("checkout", "--quiet", "--force", "main")
    root = story.repo.commit({A: config_map("a")})
    story.pin(root)
    assert before != root
    merge = story.repo.merge("side", signer=team["ann"])
    assert story.judge().accepted == merge


def test_a_second_root_in_the_range_is_refused(story: Story, team: Team) -> None:
    tree = story.repo.tree()
    payload = (
        f"tree {tree}\nauthor ann <a@example.net> 1767225600 +0000\n"
        "committer ann <a@example.net> 1767225600 +0000\n\norphan\n"
    ).encode()
    orphan = story.repo.signed_object(payload, team["ann"])
    story.repo.merge(orphan, signer=team["ann"], options=["--allow-unrelated-histories"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.commit, refused.reason) == (orphan, "MalformedObject")


def test_a_policy_that_merges_cleanly_into_a_third_text_is_judged_as_trust(tmp_path: Path, team: Team) -> None:
    spaced = team.policy().replace('"roles": {', '"roles": {\n' + "\n" * 12)
    story = Story.begin(tmp_path / "repo", spaced)
    story.repo.branch("side")
    story.repo.commit(
        {POLICY_PATH: spaced.replace('"name": "ann"', '"kubernetesUser": "a",\n"name": "ann"')}, signer=team["adm"]
    )
    story.repo.switch("main")
    story.repo.commit({POLICY_PATH: spaced.replace('"nobody": []', '"nobody": [],\n"later": []')}, signer=team["adm"])
    story.repo.merge("side", signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.verb, refused.path, refused.reason) == ("trust", POLICY_PATH, "PathNotAuthorised")


@pytest.fixture
def forged(tmp_path: Path, team: Team) -> Story:
    """A source whose policy lists the forge's key and a proposer."""
    policy = team.policy(
        people=[person(name, team[name], forgeAccounts=[name]) for name in ("ann", "bob", "eve", "adm")],
        merges={"forgeKeys": [{"ssh": ssh_line(team["forge"])}]},
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["clusters/**"]}],
    )
    return Story.begin(tmp_path / "forged", policy)


def test_X16_the_forge_may_sign_a_clean_merge_of_signed_commits(forged: Story, team: Team) -> None:
    _branch(forged, team)
    merge = forged.repo.merge("side", signer=team["forge"])
    assert forged.judge().accepted == merge


def test_X16_the_forge_may_not_sign_a_merge_that_is_not_clean(forged: Story, team: Team) -> None:
    _branch(forged, team)
    forged.repo.merge("side", signer=team["forge"], resolve={"clusters/evil.yaml": config_map("evil")})
    refused = forged.judge().refused
    assert refused is not None
    assert refused.reason == "PathNotAuthorised"
    assert "use merge commits" in refused.hint


def test_X16_the_forge_may_not_sign_an_ordinary_commit(forged: Story, team: Team) -> None:
    forged.repo.commit({A: config_map("a")}, signer=team["forge"])
    refused = forged.judge().refused
    assert refused is not None
    assert (refused.reason, "use merge commits" in refused.hint) == ("PathNotAuthorised", True)


def test_X16_an_unsigned_web_merge_is_refused_with_a_hint_about_the_forges_key(forged: Story, team: Team) -> None:
    _branch(forged, team)
    merge = forged.repo.merge("side")
    refused = forged.judge().refused
    assert refused is not None
    assert (refused.reason, refused.commit) == ("Unsigned", merge)
    assert "merges.forgeKeys" in refused.hint


def test_X16_without_the_merges_member_no_key_of_a_forge_counts(story: Story, team: Team) -> None:
    _branch(story, team)
    story.repo.merge("side", signer=team["forge"])
    assert story.judge().verdict == "UnknownSigner"


def test_X16_a_forge_merge_of_proposed_changes_needs_a_reviewer_who_may_make_them(forged: Story, team: Team) -> None:
    from gitops_ctl.trust.reviews import Review

    head = _branch(forged, team, signer="robot")
    merge = forged.repo.merge("side", signer=team["forge"])

    def evidence(login: str, *, approves: bool = True) -> dict[str, ReviewEvidence]:
        return {merge: ReviewEvidence(merge, head, (Review(login, 1, head, approves, forged.now),))}

    assert forged.judge(reviews=evidence("bob")).verdict == "PathNotAuthorised"  # bob may not edit
    assert forged.judge(reviews=evidence("ann", approves=False)).verdict == "PathNotAuthorised"
    assert forged.judge(reviews=evidence("ann")).accepted == merge


def test_a_proposer_may_not_change_a_path_that_is_not_its_own(forged: Story, team: Team) -> None:
    outside = _branch(forged, team, signer="robot", path="other/x.yaml")
    forged.repo.merge("side", signer=team["ann"])
    refused = forged.judge().refused
    assert refused is not None
    assert refused.commit == outside
    assert "may not propose a change of other/x.yaml" in refused.message


def test_the_nearest_merge_brings_in_a_proposed_commit_and_its_signer_is_judged(forged: Story, team: Team) -> None:
    forged.repo.branch("robot")
    forged.repo.commit({B: config_map("b")}, signer=team["robot"])
    forged.repo.branch("side", at=forged.root.commit)
    forged.repo.commit({A: config_map("a")}, signer=team["ann"])
    forged.repo.merge("robot", signer=team["ann"])  # ann may edit
    forged.repo.switch("main")
    merge = forged.repo.merge("side", signer=team["adm"])  # adm may only merge
    assert forged.judge().accepted == merge


def test_a_merge_whose_signer_may_not_make_the_proposed_change_is_refused(forged: Story, team: Team) -> None:
    proposed = _branch(forged, team, signer="robot")
    forged.repo.merge("side", signer=team["adm"])
    refused = forged.judge().refused
    assert refused is not None
    assert (refused.commit, refused.verb) == (proposed, "edit")


def test_a_squash_by_a_person_is_that_persons_own_commit(forged: Story, team: Team) -> None:
    _branch(forged, team, signer="robot")
    forged.repo.git("merge", "--quiet", "--squash", "side")
    squash = forged.repo.commit(signer=team["ann"])
    assert forged.judge().accepted == squash


def test_a_symlink_or_a_submodule_in_place_of_a_file_is_a_change_of_that_path(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    (story.repo.path / A).unlink()
    (story.repo.path / A).symlink_to("/etc/passwd")
    story.repo.commit(signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert refused.path == A


def test_a_change_of_mode_is_a_change_of_that_path(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    (story.repo.path / A).chmod(0o755)
    story.repo.commit(signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.path, refused.verb) == (A, "edit")


def test_X12_a_tree_with_a_name_that_a_file_system_takes_for_git_refuses_its_commit(story: Story, team: Team) -> None:
    blob = story.repo.write_object("blob", b"x")
    tree = story.repo.write_object("tree", tree_bytes((0o100644, b".GIT", blob)))
    payload = (
        f"tree {tree}\nparent {story.root.commit}\nauthor ann <a@example.net> 1767225600 +0000\n"
        "committer ann <a@example.net> 1767225600 +0000\n\nodd\n"
    ).encode()
    odd = story.repo.signed_object(payload, team["ann"])
    verdict = story.judge(odd)
    assert (verdict.verdict, verdict.accepted) == ("MalformedObject", story.root.commit)

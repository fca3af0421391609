"""`gitops-ctl trust` and `gitops-ctl verify` in a checkout: output, JSON, exit codes."""

import json
from pathlib import Path

import pytest

from gitops_ctl.cli.main import run
from gitops_ctl.trust.policy import load_policy
from tests.support.git_keys import GpgHome, GpgKey
from tests.support.git_repos import RepoBuilder
from tests.support.trust import POLICY_PATH, Story, Team, config_map, person, ssh_line

A = "clusters/a.yaml"


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    assert run([*arguments, "-o", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_verify_tells_per_commit_who_which_changes_and_which_rule(story: Story, team: Team, capsys) -> None:
    commit = story.repo.commit({A: config_map("a")}, signer=team["ann"], message="add a")
    found = _json(capsys, "verify", "-C", str(story.repo.path))
    assert found["apiVersion"] == "cli.gitops-ctl.dev/v1"
    assert (found["kind"], found["verdict"], found["tip"], found["base"]) == (
        "Verification",
        "Accepted",
        commit,
        story.root.commit,
    )
    (told,) = found["commits"]
    assert (told["signer"], told["key"], told["subject"]) == ("ann", team["ann"].fingerprint, "add a")
    assert told["changes"] == [
        {
            "path": A,
            "verb": "edit",
            "kind": "ConfigMap",
            "object": "ConfigMap/demo/a",
            "rule": "rule 4 (verbs delete, edit; roles author)",
            "persons": ["ann"],
        }
    ]


def test_verify_goes_on_after_a_refusal_names_all_and_exits_with_1(story: Story, team: Team, capsys) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["eve"])
    story.repo.commit({A: config_map("a", x="1")})
    found = _json(capsys, "verify", "-C", str(story.repo.path), code=1)
    assert [told["verdict"] for told in found["commits"]] == ["PathNotAuthorised", "Unsigned"]
    assert found["commits"][0]["refusal"]["person"] == "eve"
    assert found["verdict"] == "PathNotAuthorised"


def test_verify_of_a_range_starts_after_its_first_commit(story: Story, team: Team, capsys) -> None:
    first = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    second = story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    found = _json(capsys, "verify", f"{first}..main", "-C", str(story.repo.path))
    assert [told["commit"] for told in found["commits"]] == [second]


def test_verify_without_a_range_starts_at_the_upstream_branch(story: Story, team: Team, tmp_path: Path, capsys) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    clone = RepoBuilder(tmp_path / "clone")
    clone.git("remote", "add", "origin", story.repo.url)
    clone.git("fetch", "--quiet", "origin")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.git("branch", "--quiet", "--set-upstream-to=origin/main")
    mine = clone.commit({A: config_map("a", x="mine")}, signer=team["ann"])
    found = _json(capsys, "verify", "-C", str(clone.path))
    assert [told["commit"] for told in found["commits"]] == [mine]


def test_verify_shows_a_table_and_a_merged_in_commit_is_indented(story: Story, team: Team, capsys) -> None:
    story.repo.branch("side")
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.switch("main")
    story.repo.merge("side", signer=team["adm"])
    assert run(["verify", "-C", str(story.repo.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["COMMIT", "VERDICT", "WHO", "CHANGES", "RULES", "OR", "REASON"]
    assert lines[1].startswith("  ")
    assert "edit clusters/a.yaml" in lines[1]
    assert "rule 5" in lines[2]


def test_verify_of_the_root_says_that_nothing_was_judged(story: Story, capsys) -> None:
    assert run(["verify", "-C", str(story.repo.path)]) == 0
    assert f"nothing to judge: {story.root.commit} is the root" in capsys.readouterr().err


def test_verify_with_nothing_new_names_the_upstream_branch(story: Story, team: Team, tmp_path: Path, capsys) -> None:
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    clone = RepoBuilder(tmp_path / "clone")
    clone.git("remote", "add", "origin", story.repo.url)
    clone.git("fetch", "--quiet", "origin")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.git("branch", "--quiet", "--set-upstream-to=origin/main")
    assert run(["verify", "-C", str(clone.path)]) == 0
    assert f"nothing to judge: {tip} is at the upstream branch" in capsys.readouterr().err


def test_verify_before_the_first_commit_says_to_commit(tmp_path: Path, capsys) -> None:
    RepoBuilder(tmp_path / "empty")
    assert run(["verify", "-C", str(tmp_path / "empty")]) == 1
    assert "hint:  commit first" in capsys.readouterr().err


def test_a_verb_that_does_not_exist_is_an_error_and_not_a_no(story: Story, capsys) -> None:
    assert run(["trust", "test", "ann", "paint", A, "-C", str(story.repo.path)]) == 1
    text = capsys.readouterr().err
    assert "there is no verb paint" in text
    assert "known: edit" in text


def test_verify_outside_of_a_repository_is_one_clear_error(tmp_path: Path, capsys) -> None:
    assert run(["verify", "-C", str(tmp_path)]) == 1
    assert "lies in no Git repository" in capsys.readouterr().err


def test_verify_of_an_unknown_revision_is_one_clear_error(story: Story, capsys) -> None:
    assert run(["verify", "nowhere", "-C", str(story.repo.path)]) == 1
    assert "there is no commit 'nowhere'" in capsys.readouterr().err


def test_verify_with_commit_time_reads_old_history_as_git_does(tmp_path: Path, team: Team, capsys) -> None:
    policy = team.policy().replace('"keys": [', '"keys": [', 1)
    tree = json.loads(policy)
    tree["people"][0]["keys"][0]["validUntil"] = "2026-06-01T00:00:00Z"
    story = Story.begin(tmp_path / "old", json.dumps(tree))
    story.repo.commit({A: config_map("a")}, signer=team["ann"])  # the builder's clock is in January
    assert run(["verify", "-C", str(story.repo.path)]) == 1
    assert run(["verify", "--commit-time", "-C", str(story.repo.path)]) == 0


def test_trust_show_prints_what_an_operator_pins_and_who_may_sign(story: Story, team: Team, capsys) -> None:
    found = _json(capsys, "trust", "show", "-C", str(story.repo.path))
    assert found["root"] == {"commit": story.root.commit, "policyDigest": story.root.policy_digest}
    assert found["lockout"] == ""
    assert found["people"][0] == {
        "name": "ann",
        "kubernetesUser": "gitops-ctl:ann",
        "roles": ["author"],
        "fingerprints": [team["ann"].fingerprint],
    }
    assert run(["trust", "show", "-C", str(story.repo.path)]) == 0
    text = capsys.readouterr().out
    assert story.root.policy_digest in text
    assert team["bob"].fingerprint in text


def test_trust_show_warns_of_a_policy_that_nobody_could_change(tmp_path: Path, team: Team, capsys) -> None:
    revoked = [{"fingerprint": team["adm"].fingerprint, "from": "2026-01-01T00:00:00Z"}]
    story = Story.begin(tmp_path / "locked", team.policy(revoked=revoked))
    assert run(["trust", "show", "-C", str(story.repo.path)]) == 0
    assert "warning: nobody could change the policy any more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("question", "code", "rule"),
    [
        (("ann", "edit", A), 0, "rule 4"),
        (("bob", "edit", A), 1, "rule 4"),
        (("ann", "edit", "elsewhere.txt"), 1, ""),
        (("adm", "merge", "."), 0, "rule 5"),
    ],
)
def test_trust_test_says_whether_a_person_may_and_by_which_rule(story: Story, capsys, question, code, rule) -> None:
    found = _json(capsys, "trust", "test", *question, "-C", str(story.repo.path), code=code)
    assert found["may"] is (code == 0)
    assert found["rule"].startswith(rule)


def test_trust_test_names_the_commits_that_another_policy_would_judge_differently(
    story: Story, team: Team, tmp_path: Path, capsys
) -> None:
    lost = story.repo.commit({A: config_map("a")}, signer=team["ann"], message="by ann")
    story.repo.commit({A: config_map("a", x="1")}, signer=team["bob"], message="by bob")
    other = tmp_path / "other.yaml"
    other.write_text(team.policy({"author": ["bob"], "approver": ["bob"], "admin": ["adm"]}))
    where = ("--history", f"{story.root.commit}..HEAD", "-C", str(story.repo.path))
    found = _json(capsys, "trust", "test", *where, "--policy", str(other), code=2)
    assert (found["different"], [told["differs"] for told in found["commits"]]) == (2, [True, True])
    assert [(told["verdictNow"], told["verdict"]) for told in found["commits"]] == [
        ("Accepted", "PathNotAuthorised"),
        ("PathNotAuthorised", "Accepted"),
    ]
    assert run(["trust", "test", *where, "--policy", str(other)]) == 2
    told = capsys.readouterr()
    assert "2 commits, 2 of them would be judged differently" in told.err
    assert lost[:12] in told.out


def test_trust_test_is_content_with_a_policy_that_changes_no_verdict(
    story: Story, team: Team, tmp_path: Path, capsys
) -> None:
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    wider = tmp_path / "wider.yaml"
    wider.write_text(team.policy({"author": ["ann", "bob"], "approver": ["bob"], "admin": ["adm"]}))
    where = ("--history", f"{story.root.commit}..HEAD", "-C", str(story.repo.path))
    assert _json(capsys, "trust", "test", *where, "--policy", str(wider))["different"] == 0
    assert _json(capsys, "trust", "test", *where)["commits"][0]["verdict"] == "Accepted"


def test_verify_never_calls_a_merge_that_needs_reviews_good_and_says_what_they_must_satisfy(
    tmp_path: Path, team: Team, capsys
) -> None:
    policy = team.policy(
        people=[person(name, team[name], forgeAccounts=[name]) for name in ("ann", "bob", "eve", "adm")],
        merges={"forgeKeys": [{"ssh": ssh_line(team["forge"])}], "requireReviews": 2},
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["clusters/**"]}],
    )
    story = Story.begin(tmp_path / "forged", policy)
    story.repo.branch("robot")
    head = story.repo.commit({A: config_map("a")}, signer=team["robot"])
    story.repo.switch("main")
    merge = story.repo.merge("robot", signer=team["forge"])
    found = _json(capsys, "verify", "-C", str(story.repo.path), code=1)
    assert found["verdict"] == "NeedsForgeReviews"
    proposed, merged = found["commits"]
    assert (proposed["refusal"]["pending"], proposed["refusal"]["merge"], proposed["refusal"]["head"]) == (
        True,
        merge,
        head,
    )
    assert f"needs forge reviews: 2 approving reviews by persons of {head}" in proposed["refusal"]["message"]
    assert f"edit {A}: 1 of the roles author (rule 4)" in proposed["refusal"]["message"]
    assert merged["verdict"] == "Accepted"


def test_trust_init_writes_a_sound_policy_from_gits_own_signing_key(tmp_path: Path, team: Team, capsys) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    for name, value in {
        "gpg.format": "ssh",
        "user.signingKey": str(team["ann"].path),
        "user.name": "Ann Author",
        "user.email": "ann@example.net",
    }.items():
        repo.git("config", name, value)
    assert run(["trust", "init", "-C", str(repo.path)]) == 0
    policy = load_policy((repo.path / POLICY_PATH).read_bytes())
    assert policy.fingerprints == {"ann-author": (team["ann"].fingerprint,)}
    assert policy.people["ann-author"].emails == {"ann@example.net"}
    assert run(["trust", "init", "-C", str(repo.path)]) == 1
    assert "is there already" in capsys.readouterr().err


def test_trust_init_takes_several_people_and_both_kinds_of_keys(
    tmp_path: Path, team: Team, gpg_home: GpgHome, capsys
) -> None:
    key = GpgKey.generate(gpg_home, name="init")
    certificate = tmp_path / "bob.asc"
    certificate.write_text(key.public)
    keys = ("--key", f"ann={team['ann'].path}.pub", "--key", f"bob={certificate}", "--email", "bob=bob@example.net")
    assert run(["trust", "init", *keys, "-C", str(tmp_path)]) == 0
    policy = load_policy((tmp_path / POLICY_PATH).read_bytes())
    assert policy.fingerprints == {"ann": (team["ann"].fingerprint,), "bob": (key.fingerprint,)}


def test_trust_init_without_a_usable_key_says_what_to_do(tmp_path: Path, capsys) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    repo.git("config", "user.signingKey", "")
    repo.git("config", "gpg.format", "openpgp")
    assert run(["trust", "init", "-C", str(repo.path)]) == 1
    assert "gpg --armor --export" in capsys.readouterr().err


def test_a_first_policy_from_init_lets_its_author_go_on(tmp_path: Path, team: Team) -> None:
    repo = RepoBuilder(tmp_path / "repo")
    assert run(["trust", "init", "--key", f"ann={team['ann'].path}.pub", "-C", str(repo.path)]) == 0
    repo.commit(signer=team["ann"])
    repo.commit({A: config_map("a")}, signer=team["ann"])
    assert run(["verify", "-C", str(repo.path)]) == 0

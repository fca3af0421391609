"""Consents for rules with a threshold: every clause that makes one count, and every clause that makes it void (rule A8)."""

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import to_rfc3339
from tests.support.trust import NOW, POLICY_PATH, Story, Team, config_map, person, ssh_line

A = "clusters/a.yaml"
FOLDER = ".gitops-ctl/consents"
RULES = (
    {"paths": [POLICY_PATH], "verbs": ["trust"], "roles": ["admin"]},
    {"paths": [f"{FOLDER}/**"], "verbs": ["consent", "edit"], "roles": ["author", "approver", "visitor"]},
    {"paths": ["clusters/**"], "verbs": ["edit", "delete"], "roles": ["author", "approver"], "threshold": 2},
    {"verbs": ["merge"], "roles": ["author"]},
)
ROLES = {"author": ["ann"], "approver": ["bob"], "visitor": ["eve"], "admin": ["adm"]}


@pytest.fixture
def story(tmp_path: Path, team: Team) -> Story:
    policy = team.policy(
        ROLES,
        rules=RULES,
        proposers=[{"name": "robot", "keys": [{"ssh": ssh_line(team["robot"])}], "paths": ["clusters/**"]}],
    )
    return Story.begin(tmp_path / "repo", policy)


def blob_of(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def consent(text: str, *, verb: str = "edit", path: str = A, not_after: str = "2026-12-31T00:00:00Z") -> str:
    blob = blob_of(text) if text else "0" * 40
    return (
        "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\n"
        f'verb: {verb}\npath: {path}\nblob: "{blob}"\nnotAfter: "{not_after}"\n'
    )


WANTED = config_map("a", x="wanted")


def test_a_matching_consent_by_another_person_reaches_the_threshold(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    tip = story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().accepted == tip


def test_without_a_consent_one_person_of_two_is_counted(story: Story, team: Team) -> None:
    story.repo.commit({A: WANTED}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert "needs 2 persons, counted are 1 (ann)" in refused.message


def test_one_persons_consent_and_signature_count_once(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["ann"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(consent(config_map("a", x="other")), id="another blob"),
        pytest.param(consent(WANTED, path="clusters/b.yaml"), id="another path"),
        pytest.param(consent(WANTED, verb="delete"), id="another verb"),
        pytest.param(consent(WANTED, not_after=to_rfc3339(NOW)), id="too late"),
        pytest.param(consent(WANTED).replace("notAfter", "notafter"), id="malformed"),
        pytest.param(consent(WANTED) + "---\n" + consent(WANTED), id="two in one file"),
    ],
)
def test_a_consent_that_does_not_match_counts_for_nothing(story: Story, team: Team, text: str) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": text}, signer=team["bob"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_a_consent_outside_its_folder_counts_for_nothing(tmp_path: Path, team: Team) -> None:
    rules = ({"paths": ["notes/**"], "verbs": ["consent"], "roles": ["approver"]}, *RULES)
    story = Story.begin(tmp_path / "other", team.policy(ROLES, rules=rules))
    story.repo.commit({"notes/1.yaml": consent(WANTED)}, signer=team["bob"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_a_consent_by_a_person_without_a_role_of_the_rule_counts_for_nothing(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["eve"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert "counted are 1 (ann)" in refused.message


def test_a_consent_in_the_same_commit_as_the_change_counts_for_nothing(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED), A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_a_consent_is_spent_once(story: Story, team: Team) -> None:
    other = config_map("a", x="other")
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    story.repo.commit({f"{FOLDER}/2.yaml": consent(other)}, signer=team["bob"])
    back = story.repo.commit({A: other}, signer=team["ann"])
    assert story.judge().accepted == back
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_a_consent_that_was_removed_counts_for_nothing(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    story.repo.commit(delete=[f"{FOLDER}/1.yaml"], signer=team["bob"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_the_introducer_is_who_gave_the_consent_its_present_content(story: Story, team: Team) -> None:
    story.repo.commit({f"{FOLDER}/1.yaml": consent(config_map("a", x="other"))}, signer=team["bob"])
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["ann"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_forty_zeros_agree_to_the_removal_of_the_file(tmp_path: Path, team: Team) -> None:
    story = Story.begin(tmp_path / "removal", team.policy(ROLES, rules=RULES), files={A: WANTED})
    story.repo.commit({f"{FOLDER}/1.yaml": consent("", verb="delete")}, signer=team["bob"])
    tip = story.repo.commit(delete=[A], signer=team["ann"])
    assert story.judge().accepted == tip


def test_a_consent_in_the_tree_of_the_pinned_root_has_no_introducer(tmp_path: Path, team: Team) -> None:
    story = Story.begin(
        tmp_path / "rooted", team.policy(ROLES, rules=RULES), files={f"{FOLDER}/1.yaml": consent(WANTED)}
    )
    story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_for_a_proposed_change_the_merge_is_the_changing_commit(story: Story, team: Team) -> None:
    story.repo.branch("robot")
    story.repo.commit({A: WANTED}, signer=team["robot"])
    story.repo.switch("main")
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    merge = story.repo.merge("robot", signer=team["ann"])
    assert story.judge().accepted == merge


def test_a_rule_that_asks_for_somebody_else_does_not_count_the_signer(tmp_path: Path, team: Team) -> None:
    rules = tuple(
        {**rule, "threshold": 1, "distinctFromAuthor": True}
        if "edit" in rule["verbs"] and "delete" in rule["verbs"]
        else rule
        for rule in RULES
    )
    story = Story.begin(tmp_path / "distinct", team.policy(ROLES, rules=rules))
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    tip = story.repo.commit({A: WANTED}, signer=team["ann"])
    assert story.judge().accepted == tip
    story.repo.commit({A: config_map("a", x="alone")}, signer=team["ann"])
    assert story.judge().verdict == "PathNotAuthorised"


def test_two_keys_of_one_person_count_once(tmp_path: Path, team: Team) -> None:
    people = [
        person("ann", team["ann"], team["ann-second"]),
        person("bob", team["bob"]),
        person("adm", team["adm"]),
        person("eve", team["eve"]),
    ]
    story = Story.begin(tmp_path / "two", team.policy(ROLES, rules=RULES, people=people))
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["ann-second"])
    story.repo.commit({A: WANTED}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert "counted are 1 (ann)" in refused.message


def test_the_limit_is_compared_with_the_first_sight_of_the_changing_commit(story: Story, team: Team) -> None:
    story.repo.commit(
        {f"{FOLDER}/1.yaml": consent(WANTED, not_after=to_rfc3339(NOW + timedelta(hours=1)))}, signer=team["bob"]
    )
    story.repo.commit({A: WANTED}, signer=team["ann"])
    story.first_seen = story.first_seen.observed(story.repo.head(), at=NOW)
    story.now = NOW + timedelta(days=30)  # judged late, seen in time
    assert story.judge().verdict == "Accepted"


def test_a_consent_that_was_spent_on_main_is_spent_on_a_branch_that_began_before(story: Story, team: Team) -> None:
    before = config_map("a", x="before")
    story.repo.commit({f"{FOLDER}/0.yaml": consent(before)}, signer=team["bob"])
    story.repo.commit({A: before}, signer=team["ann"])
    story.repo.commit({f"{FOLDER}/1.yaml": consent(WANTED)}, signer=team["bob"])
    story.repo.branch("side")
    again = story.repo.commit({A: WANTED}, signer=team["ann"], message="kept for later")
    story.repo.switch("main")
    story.repo.commit({A: WANTED}, signer=team["ann"])
    story.repo.commit({f"{FOLDER}/2.yaml": consent(before)}, signer=team["bob"])
    taken_back = story.repo.commit({A: before}, signer=team["ann"])
    assert story.judge().accepted == taken_back
    story.repo.merge("side", signer=team["ann"])
    assert story.repo.git("show", f"HEAD:{A}") == WANTED.strip(), "the merge would bring it back"
    refused = story.judge().refused
    assert refused is not None
    assert (refused.commit, refused.path, refused.reason) == (again, A, "PathNotAuthorised")

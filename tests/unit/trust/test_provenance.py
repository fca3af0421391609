"""Who introduced the present value of a field, and what changed an object last (section 4.6, "Introducer")."""

from pathlib import Path

import pytest

from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.index import load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.provenance import Provenance
from tests.support.trust import DEFAULT_RULES, NOW, URL, Story, Team, config_map, person
from tests.support.trust_rollouts import rollout

ROLLOUT = ObjectId("ops.cisco.vk", "IOSXESoftwareRollout", "demo", "r")
MAP = ObjectId("", "ConfigMap", "demo", "a")
RECREATE = "/metadata/annotations/gitops-ctl.dev~1recreate"
RULES = (
    *DEFAULT_RULES,
    {"paths": ["**"], "verbs": ["plan", "edit", "delete"], "roles": ["author"]},
    {"paths": ["**"], "verbs": ["approve", "activate"], "roles": ["approver"]},
)


@pytest.fixture
def told(tmp_path: Path, team: Team) -> Story:
    people = [
        person("ann", team["ann"], kubernetesUser="ann@example.net"),
        *(person(name, team[name]) for name in ("bob", "eve", "adm")),
    ]
    return Story.begin(
        tmp_path / "told", team.policy(rules=RULES, people=people), files={"clusters/old.yaml": config_map("old")}
    )


def provenance(story: Story, previous: tuple[str, Provenance] | None = None) -> Provenance:
    tip = story.repo.head("main")
    verdict = story.judge(tip)
    assert verdict.verdict == "Accepted"
    request = RangeRequest(
        url=URL, ref="main", root=story.root, accepted=tip, tip=tip, first_seen=story.first_seen, now=story.now
    )
    with ObjectStore.open(story.repo.git_dir) as store:
        documents = load_set(store, tree=store.links(tip).tree, cache=story.cache.documents).documents
        return provenance_of(
            store, request=request, commit=tip, documents=documents, cache=story.cache, previous=previous
        )


def test_the_introducer_of_a_field_is_the_person_judged_for_its_present_value(told: Story, team: Team) -> None:
    told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1})}, signer=team["ann"])
    approved = told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    found = provenance(told).of(ROLLOUT, "/spec/approval")
    assert found is not None
    assert (found.commit, found.person, found.verb, found.kubernetes_user) == (
        approved,
        "bob",
        "approve",
        "gitops-ctl:bob",
    )
    assert found.first_seen == NOW


def test_moving_a_document_introduces_none_of_its_fields_anew(told: Story, team: Team) -> None:
    text = rollout(plan={"a": 1}, approval={"x": 1})
    told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1})}, signer=team["ann"])
    approved = told.repo.commit({"clusters/r.yaml": text}, signer=team["bob"])
    told.repo.commit({"clusters/moved.yaml": text}, delete=["clusters/r.yaml"], signer=team["ann"])
    answers = provenance(told)
    found = answers.of(ROLLOUT, "/spec/approval")
    assert found is not None
    assert found.commit == approved
    assert answers.touched(ROLLOUT) == approved


def test_a_value_that_was_changed_and_brought_back_is_introduced_anew(told: Story, team: Team) -> None:
    told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1})}, signer=team["ann"])
    for value in (1, 2):
        told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": value})}, signer=team["bob"])
    last = told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    found = provenance(told).of(ROLLOUT, "/spec/approval")
    assert found is not None
    assert found.commit == last


def test_an_introducer_is_found_through_the_merge_that_brought_it_in(told: Story, team: Team) -> None:
    told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1})}, signer=team["ann"])
    told.repo.branch("side")
    approved = told.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    told.repo.switch("main")
    told.repo.commit({"clusters/other.yaml": config_map("other")}, signer=team["ann"])
    told.repo.merge("side", signer=team["adm"])
    answers = provenance(told)
    found = answers.of(ROLLOUT, "/spec/approval")
    assert found is not None
    assert (found.commit, found.person) == (approved, "bob")
    assert answers.touched(ROLLOUT) == approved


def test_what_stands_in_the_tree_of_the_root_has_no_introducer(tmp_path: Path, team: Team) -> None:
    text = rollout(plan={"a": 1}, approval={"x": 1})
    story = Story.begin(tmp_path / "rooted", team.policy(rules=RULES), files={"clusters/r.yaml": text})
    story.repo.commit({"clusters/a.yaml": config_map("a")}, signer=team["ann"])
    answers = provenance(story)
    assert answers.of(ROLLOUT, "/spec/approval") is None
    assert answers.touched(ROLLOUT) is None


def test_an_approval_of_a_plan_that_stood_in_the_root_waits_for_the_plan_anew(tmp_path: Path, team: Team) -> None:
    story = Story.begin(
        tmp_path / "rooted", team.policy(rules=RULES), files={"clusters/r.yaml": rollout(plan={"a": 1})}
    )
    story.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert "nobody introduced what it authorises since the pinned root" in refused.message


def test_who_introduced_the_plan_may_not_approve_it_whatever_roles_that_person_has(tmp_path: Path, team: Team) -> None:
    roles = {"author": ["ann", "bob"], "approver": ["bob"], "admin": ["adm"]}
    story = Story.begin(tmp_path / "both", team.policy(roles, rules=RULES))
    story.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1})}, signer=team["bob"])
    story.repo.commit({"clusters/r.yaml": rollout(plan={"a": 1}, approval={"x": 1})}, signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert "bob introduced what it authorises" in refused.message


def test_each_document_of_a_file_has_its_own_author(tmp_path: Path, team: Team) -> None:
    roles = {"author": ["ann", "bob"], "approver": ["bob"], "admin": ["adm"]}
    story = Story.begin(tmp_path / "each", team.policy(roles, rules=RULES))

    def file(**approval: object) -> str:
        return "---\n".join(rollout(name, plan={"a": 1}, **approval) for name in ("first", "second"))

    story.repo.commit({"clusters/r.yaml": rollout("first", plan={"a": 1})}, signer=team["ann"])
    story.repo.commit({"clusters/r.yaml": file()}, signer=team["bob"])
    assert story.judge().verdict == "Accepted"
    story.repo.commit({"clusters/r.yaml": file(approval={"x": 1})}, signer=team["bob"])
    refused = story.judge().refused
    assert refused is not None
    assert "bob introduced what it authorises" in refused.message


def test_a_consent_annotation_has_an_introducer(told: Story, team: Team) -> None:
    told.repo.commit({"clusters/a.yaml": config_map("a")}, signer=team["ann"])
    marked = config_map("a").replace('"name": "a"', '"name": "a", "annotations": {"gitops-ctl.dev/recreate": "uid-1"}')
    consent = told.repo.commit({"clusters/a.yaml": marked}, signer=team["bob"])
    found = provenance(told).of(MAP, RECREATE)
    assert found is not None
    assert (found.commit, found.person, found.verb) == (consent, "bob", "consent")


def test_the_commit_that_touched_each_object_last_is_known_and_kept_between_revisions(told: Story, team: Team) -> None:
    a = told.repo.commit({"clusters/a.yaml": config_map("a")}, signer=team["ann"])
    b = told.repo.commit({"clusters/b.yaml": config_map("b")}, signer=team["ann"])
    first = provenance(told)
    other = ObjectId("", "ConfigMap", "demo", "b")
    assert (first.touched(MAP), first.touched(other)) == (a, b)
    again = told.repo.commit({"clusters/b.yaml": config_map("b", x="1")}, signer=team["ann"])
    for previous in (None, (b, first)):
        answers = provenance(told, previous)
        assert (answers.touched(MAP), answers.touched(other)) == (a, again)
    assert answers.touched(ObjectId("", "ConfigMap", "demo", "old")) is None

"""When a consent in Git authorises nothing: it refuses no commit, it is listed as void with the reason (sections 4.4 and 4.6)."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.documents.index import load_set
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest
from gitops_ctl.trust.introduced import provenance_of
from gitops_ctl.trust.kindverbs import CONFIRM_SWITCH, TALOS_CLUSTER
from gitops_ctl.trust.provenance import Provenance
from tests.support.trust import DEFAULT_RULES, NOW, POLICY_PATH, URL, Story, Team, person

FILE = "clusters/one.yaml"
CLUSTER = ObjectId(TALOS_CLUSTER.group, TALOS_CLUSTER.kind, "demo", "one")
MODE = "/spec/cni/kubeProxy"
ROLES = {"author": ["ann", "bob"], "approver": ["ann", "bob"], "admin": ["adm"]}
DISTINCT = tuple(
    {**rule, "distinctFromAuthor": True} if rule["verbs"] == ["consent"] else rule for rule in DEFAULT_RULES
)


def cluster(mode: str, confirm: str = "", note: str = "") -> str:
    metadata: dict[str, object] = {"name": "one", "namespace": "demo"}
    metadata |= {"annotations": {"ichor.maesh.dev/confirm-kube-proxy-switch": confirm}} if confirm else {}
    spec: dict[str, object] = {"cni": {"kubeProxy": mode}} | ({"note": note} if note else {})
    tree = {"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster", "metadata": metadata, "spec": spec}
    return json.dumps(tree, indent=1) + "\n"


def provenance(story: Story) -> Provenance:
    verdict = story.judge()
    assert verdict.verdict == "Accepted", verdict.message
    tip = story.repo.head("main")
    request = RangeRequest(URL, "main", story.root, tip, tip, story.first_seen, story.now)
    with ObjectStore.open(story.repo.git_dir) as store:
        documents = load_set(store, tree=store.links(tip).tree, cache=story.cache.documents).documents
        return provenance_of(store, request=request, commit=tip, documents=documents, cache=story.cache)


@pytest.fixture
def story(tmp_path: Path, team: Team) -> Story:
    return Story.begin(tmp_path / "repo", team.policy(ROLES), files={FILE: cluster("enabled")})


@pytest.fixture
def strict(tmp_path: Path, team: Team) -> Story:
    return Story.begin(tmp_path / "strict", team.policy(ROLES, rules=DISTINCT), files={FILE: cluster("enabled")})


def test_a_consent_names_its_introducer_and_so_does_the_field_that_it_is_about(story: Story, team: Team) -> None:
    field = story.repo.commit({FILE: cluster("replaced")}, signer=team["ann"])
    agreed = story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["bob"])
    story.repo.commit({FILE: cluster("replaced", "replaced", note="later")}, signer=team["ann"])
    found = provenance(story)
    consent, mode = found.of(CLUSTER, CONFIRM_SWITCH), found.of(CLUSTER, MODE)
    assert consent is not None
    assert mode is not None
    assert (consent.person, consent.verb, consent.commit) == ("bob", "consent", agreed)
    assert (mode.person, mode.verb, mode.commit) == ("ann", "edit", field)
    assert found.why_void(CLUSTER, CONFIRM_SWITCH) == ""


def test_one_person_may_do_both_unless_the_rule_asks_for_two(story: Story, team: Team) -> None:
    story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["ann"])
    assert provenance(story).of(CLUSTER, CONFIRM_SWITCH) is not None


def test_where_two_are_asked_for_one_is_accepted_and_void_and_both_are_named(strict: Story, team: Team) -> None:
    tip = strict.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["ann"])
    found = provenance(strict)
    assert strict.accepted == tip
    assert found.of(CLUSTER, CONFIRM_SWITCH) is None
    reason = found.why_void(CLUSTER, CONFIRM_SWITCH)
    assert f"ann introduced it in {tip}, and {MODE} was introduced by ann" in reason
    assert "asks for two persons" in reason


@pytest.mark.parametrize("order", ["before", "after"])
def test_two_persons_are_enough_in_either_order(strict: Story, team: Team, order: str) -> None:
    first, second = (cluster("enabled", "replaced"), "bob") if order == "before" else (cluster("replaced"), "ann")
    strict.repo.commit({FILE: first}, signer=team[second])
    strict.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["ann" if order == "before" else "bob"])
    consent = provenance(strict).of(CLUSTER, CONFIRM_SWITCH)
    assert consent is not None
    assert consent.person == "bob"


def test_a_field_that_stood_in_the_root_has_nobody_to_be_distinct_from(strict: Story, team: Team) -> None:
    strict.repo.commit({FILE: cluster("enabled", "enabled")}, signer=team["bob"])
    assert "nobody since the pinned root" in provenance(strict).why_void(CLUSTER, CONFIRM_SWITCH)


def test_a_consent_that_stood_in_the_root_is_nobodys(tmp_path: Path, team: Team) -> None:
    story = Story.begin(tmp_path / "old", team.policy(ROLES), files={FILE: cluster("replaced", "replaced")})
    story.repo.commit({FILE: cluster("replaced", "replaced", note="n")}, signer=team["ann"])
    found = provenance(story)
    assert found.of(CLUSTER, CONFIRM_SWITCH) is None
    assert "since the pinned root" in found.why_void(CLUSTER, CONFIRM_SWITCH)


def test_a_policy_that_takes_the_role_away_voids_a_consent_that_is_not_spent(story: Story, team: Team) -> None:
    agreed = story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["bob"])
    assert provenance(story).of(CLUSTER, CONFIRM_SWITCH) is not None
    narrower = team.policy({**ROLES, "approver": ["ann"]})
    story.repo.commit({POLICY_PATH: narrower}, signer=team["adm"])
    found = provenance(story)
    assert found.of(CLUSTER, CONFIRM_SWITCH) is None
    assert f"bob, who introduced it in {agreed}, holds no role of rule" in found.why_void(CLUSTER, CONFIRM_SWITCH)


def test_a_policy_without_such_a_rule_voids_it_too(story: Story, team: Team) -> None:
    story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["bob"])
    rules = tuple(rule for rule in DEFAULT_RULES if rule["verbs"] != ["consent"])
    story.repo.commit({POLICY_PATH: team.policy(ROLES, rules=rules)}, signer=team["adm"])
    assert "to nobody any more" in provenance(story).why_void(CLUSTER, CONFIRM_SWITCH)


def test_a_revoked_key_ends_the_effects_and_after_a_new_root_the_consent_is_nobodys(story: Story, team: Team) -> None:
    story.repo.commit({FILE: cluster("replaced", "replaced")}, signer=team["bob"])
    assert provenance(story).of(CLUSTER, CONFIRM_SWITCH) is not None
    story.now = NOW + timedelta(hours=1)
    people = [person(name, team[name]) for name in ("ann", "bob", "eve", "adm")]
    revoked = [{"fingerprint": team["bob"].fingerprint, "from": to_rfc3339(NOW)}]
    policy = team.policy(ROLES, people=people, revoked=revoked)
    tip = story.repo.commit({POLICY_PATH: policy}, signer=team["adm"])
    verdict = story.judge()
    assert (verdict.verdict, verdict.effects_allowed) == ("RevokedSigner", False)
    story.pin(tip)
    story.accepted = None
    found = provenance(story)
    assert found.of(CLUSTER, CONFIRM_SWITCH) is None

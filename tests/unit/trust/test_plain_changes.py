"""Commits whose bytes alone tell that they are ordinary: the verdict is the one that reading the documents gives (section 4.4).

`survey` reads the documents of every commit; `judge_range` need not.  What each says about the same commit is compared.
"""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.ids import GroupKind
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.chain import RangeRequest, Root, VerdictCache, judge_range
from gitops_ctl.trust.firstseen import FirstSeen
from gitops_ctl.trust.survey import survey
from gitops_ctl.trust.verbs import registered_kinds
from tests.support.git_repos import RepoBuilder
from tests.support.trust import NOW, URL, Story, Team, config_map
from tests.support.trust_random import History
from tests.support.trust_software import SoftKey

COMMITS = 8
A, B = "clusters/a.yaml", "clusters/b.yaml"
KEYS = (SoftKey.ed25519(), SoftKey.ed25519())


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> RepoBuilder:
    """One repository for all histories: they share nothing but the place."""
    return RepoBuilder(tmp_path_factory.mktemp("histories"))


def verdicts(store: ObjectStore, *, request: RangeRequest, cache: VerdictCache) -> None:
    """Both verdicts on the one commit of the range, which must agree in everything that anybody can see."""
    found = judge_range(store, request=request, cache=cache)
    (report,) = survey(store, request=request, cache=VerdictCache())
    if report.accepted is not None:
        seen = (found.verdict, found.accepted, found.refused, found.signer)
        assert seen == ("Accepted", request.tip, None, report.accepted.signer_text)
        return
    refused, expected = found.refused, report.refused
    assert refused is not None
    assert expected is not None
    assert (found.accepted, found.verdict) == (request.accepted, expected.reason)
    where = expected.where
    assert (refused.reason, refused.path, refused.verb, refused.rule) == (
        expected.reason,
        where.path,
        where.verb,
        where.rule,
    )
    assert refused.hint == expected.hint
    assert expected.message in refused.message


@pytest.mark.property
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_the_verdict_is_the_one_that_reading_the_documents_gives(builder: RepoBuilder, seed: int) -> None:
    history = History(builder, random.Random(seed), KEYS)
    history.begin()
    root, cache = Root(history.root, digest_bytes(history.policy.encode())), VerdictCache()
    before = history.root
    for _ in range(COMMITS):
        commit = history.grow(before)
        seen = FirstSeen().observed(commit, at=NOW)
        with ObjectStore.open(builder.git_dir) as store:
            request = RangeRequest(URL, "refs/heads/main", root, before, commit, seen, NOW)
            parsed = cache.documents.parsed
            verdicts(store, request=request, cache=cache)
        event("documents were read" if cache.documents.parsed > parsed else "documents were not read")
        before = commit


def test_ordinary_changes_are_judged_without_reading_a_document(story: Story, team: Team) -> None:
    story.repo.commit({A: config_map("a"), B: config_map("b")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    story.repo.commit({A: config_map("b", x="2")}, delete=[B], signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    assert story.cache.documents.parsed == 0


HIDDEN = {
    "an escape": 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {"gitops-ctl.dev/r\\x65create": "1"}\n',
    "an escaped line break": 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {? "gitops-ctl.dev/re\\\n     create" : "1"}\n',
    "an alias": 'x: &n gitops-ctl.dev/recreate\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {*n : "1"}\n',
    "a merge key": 'x: &n {gitops-ctl.dev/recreate: "1"}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {<<: *n}\n',
    "a JSON escape": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"gitops-ctl.dev/\\u0072ecreate":"1"}}}',
}


@pytest.mark.parametrize("how", HIDDEN)
def test_a_consent_behind_another_spelling_is_found(story: Story, team: Team, how: str) -> None:
    path = "clusters/a.json" if "JSON" in how else A
    story.repo.commit({path: HIDDEN[how]}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.reason, refused.verb) == ("PathNotAuthorised", "consent")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_json_file_in_another_encoding_hides_nothing(story: Story, team: Team, encoding: str) -> None:
    text = (
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"gitops-ctl.dev/recreate":"1"}}}'
    )
    story.repo.write("clusters/a.json", text.encode(encoding))
    story.repo.git("add", "clusters/a.json")
    story.repo.commit({}, signer=team["ann"])
    story.judge()
    assert story.cache.documents.parsed == 1


def test_a_rule_about_a_kind_decides_before_the_rule_about_the_path(tmp_path: Path, team: Team) -> None:
    rules = (
        {"paths": [".gitops-ctl/trust.yaml"], "verbs": ["trust"], "roles": ["admin"]},
        {"kinds": ["Service"], "verbs": ["edit"], "roles": ["approver"]},
        {"paths": ["clusters/**"], "verbs": ["edit", "delete"], "roles": ["author"]},
    )
    story = Story.begin(tmp_path / "repo", team.policy(rules=rules))
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    assert story.cache.documents.parsed == 0
    story.repo.commit({B: config_map("b").replace("ConfigMap", "Service")}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert refused.rule.startswith("rule 2 ")


def test_a_change_without_the_right_to_delete_is_told_by_its_documents(tmp_path: Path, team: Team) -> None:
    rules = (
        {"paths": [".gitops-ctl/trust.yaml"], "verbs": ["trust"], "roles": ["admin"]},
        {"paths": ["clusters/**"], "verbs": ["edit"], "roles": ["author"]},
    )
    story = Story.begin(tmp_path / "repo", team.policy(rules=rules))
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.repo.commit({A: config_map("a", x="1")}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    story.repo.commit({A: config_map("other")}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.verb, refused.path) == ("delete", A)


def test_what_is_remembered_of_files_is_bounded(monkeypatch: pytest.MonkeyPatch, story: Story, team: Team) -> None:
    monkeypatch.setattr("gitops_ctl.trust.chain.KNOWN_BLOBS", 3)
    story.cache = VerdictCache()
    story.repo.commit({f"clusters/{number}.yaml": config_map(f"a{number}") for number in range(9)}, signer=team["ann"])
    assert story.judge().verdict == "Accepted"
    assert len(story.cache.plain) == 3


OWN_VERBS = {
    "TalosCluster.ichor.maesh.dev": ("control", {"spec": {"cni": {"operation": {"resume": "1"}}}}),
    "IOSXESoftwareRollout.ops.cisco.vk": ("plan", {}),
    "CiscoDevice.cisco.vk": ("topology", {}),
    "NetworkController.cisco.vk": ("endpoint", {"spec": {"endpoint": "https://controller.example.net"}}),
    "TopologySource.worker.gpustack.ai": ("endpoint", {"spec": {"webhook": {"url": "https://source.example.net"}}}),
    "ClusterQueue.kueue.x-k8s.io": ("consent", {"metadata": {"annotations": {"gitops-ctl.dev/allow-drain": "1"}}}),
    "ConfigMap": ("policy", {"metadata": {"name": "a-topology-policy"}, "data": {"policy.json": "{}"}}),
    "Consent.gitops-ctl.dev": ("consent", {}),
    "TrustPolicy.gitops-ctl.dev": ("trust", {}),
}


def document_of(kind: GroupKind, members: Mapping[str, Mapping[str, object]]) -> str:
    version = f"{kind.group}/v1alpha1" if kind.group else "v1"
    metadata = {"name": "a", **members.get("metadata", {})}
    return json.dumps({"apiVersion": version, "kind": kind.kind, **members, "metadata": metadata})


def test_every_kind_with_verbs_of_its_own_has_a_case_here() -> None:
    assert {str(kind) for kind in registered_kinds()} <= set(OWN_VERBS)


@pytest.mark.parametrize("kind", OWN_VERBS)
def test_a_change_with_a_verb_of_its_own_is_never_ordinary(story: Story, team: Team, kind: str) -> None:
    verb, members = OWN_VERBS[kind]
    story.repo.commit({A: document_of(GroupKind.parse(kind), members)}, signer=team["ann"])
    refused = story.judge().refused
    assert refused is not None
    assert (refused.reason, refused.verb) == ("PathNotAuthorised", verb)

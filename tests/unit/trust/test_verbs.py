"""Verbs of a change, from the versions of documents and never from file names (section 4.4, Verbs)."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitops_ctl.documents.index import DocumentCache
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.git.tree import tree_changes
from gitops_ctl.trust.changes import BlobDocuments, changes_of
from gitops_ctl.trust.verbs import register_verbs, verbs_between
from tests.support.git_repos import RepoBuilder
from tests.support.trust import POLICY_PATH, config_map
from tests.support.trust_rollouts import ROLLOUT, rollout

CONSENT = "apiVersion: gitops-ctl.dev/v1alpha1\nkind: Consent\nverb: edit\npath: a\nblob: x\nnotAfter: x\n"


def sync(annotations: Mapping[str, str] | None = None, **spec: object) -> str:
    return json.dumps(
        {
            "apiVersion": "gitops-ctl.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": "s", "namespace": "n", "annotations": dict(annotations or {})},
            "spec": spec,
        }
    )


@pytest.fixture
def repo(tmp_path: Path) -> RepoBuilder:
    return RepoBuilder(tmp_path / "repo")


def verbs_of(repo: RepoBuilder, old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(path, verb, kind) of the changes between two sets of files."""
    first = repo.commit({"keep": "x", **old})
    second = repo.commit(new, delete=[name for name in old if name not in new])
    with ObjectStore.open(repo.git_dir) as store:
        documents = BlobDocuments(store, cache=DocumentCache(), policy_path=POLICY_PATH)
        changed = tree_changes(store, repo.tree(first), repo.tree(second))
        found = changes_of(documents, changed, policy_path=POLICY_PATH)
    return sorted((change.path, change.verb, str(change.kind or "")) for change in found)


CASES: dict[str, tuple[Mapping[str, str], Mapping[str, str], list[tuple[str, str, str]]]] = {
    "a new document": ({}, {"a.yaml": config_map("a")}, [("a.yaml", "edit", "ConfigMap")]),
    "a changed document": (
        {"a.yaml": config_map("a")},
        {"a.yaml": config_map("a", x="1")},
        [("a.yaml", "edit", "ConfigMap")],
    ),
    "a document that goes": ({"a.yaml": config_map("a")}, {}, [("a.yaml", "delete", "ConfigMap")]),
    "another name is a new document, and the old one goes": (
        {"a.yaml": config_map("a")},
        {"a.yaml": config_map("b")},
        [("a.yaml", "delete", "ConfigMap"), ("a.yaml", "edit", "ConfigMap")],
    ),
    "one of two documents goes": (
        {"a.yaml": config_map("a") + "---\n" + config_map("b")},
        {"a.yaml": config_map("b")},
        [("a.yaml", "delete", "ConfigMap")],
    ),
    "a moved document is one document, and both paths are edited": (
        {"a.yaml": config_map("a")},
        {"b.yaml": config_map("a")},
        [("a.yaml", "edit", "ConfigMap"), ("b.yaml", "edit", "ConfigMap")],
    ),
    "a document moved out of a file that goes on": (
        {"a.yaml": config_map("a") + "---\n" + config_map("b")},
        {"a.yaml": config_map("b"), "b.yaml": config_map("a")},
        [("a.yaml", "edit", "ConfigMap"), ("b.yaml", "edit", "ConfigMap")],
    ),
    "a comment": (
        {"a.yaml": config_map("a")},
        {"a.yaml": "# why\n" + config_map("a")},
        [("a.yaml", "edit", "ConfigMap")],
    ),
    "a file that is no document": ({}, {"a.txt": "x"}, [("a.txt", "edit", "")]),
    "a file that is no document goes": ({"a.txt": "x"}, {}, [("a.txt", "delete", "")]),
    "a file that cannot be read": ({}, {"a.yaml": "a: [\n"}, [("a.yaml", "edit", "")]),
    "a document that can no longer be read has gone, and something else was written": (
        {"a.yaml": config_map("a")},
        {"a.yaml": "a: [\n"},
        [("a.yaml", "delete", "ConfigMap"), ("a.yaml", "edit", "ConfigMap")],
    ),
    "a document hidden behind another suffix has gone": (
        {"a.yaml": config_map("a")},
        {"a.txt": config_map("a")},
        [("a.txt", "edit", ""), ("a.yaml", "delete", "ConfigMap")],
    ),
    "the trust policy, whatever it holds": (
        {},
        {POLICY_PATH: "no policy"},
        [(POLICY_PATH, "trust", "TrustPolicy.gitops-ctl.dev")],
    ),
    "a new consent": ({}, {"c.yaml": CONSENT}, [("c.yaml", "consent", "Consent.gitops-ctl.dev")]),
    "removing a consent": ({"c.yaml": CONSENT}, {}, [("c.yaml", "edit", "Consent.gitops-ctl.dev")]),
    "allow-prune on a Sync": (
        {"s.yaml": sync()},
        {"s.yaml": sync({"gitops-ctl.dev/allow-prune": "sha256:1"})},
        [("s.yaml", "consent", "Sync.gitops-ctl.dev")],
    ),
    "allow-prune and the spec": (
        {"s.yaml": sync()},
        {"s.yaml": sync({"gitops-ctl.dev/allow-prune": "sha256:1"}, path="x")},
        [("s.yaml", "consent", "Sync.gitops-ctl.dev"), ("s.yaml", "edit", "Sync.gitops-ctl.dev")],
    ),
    "taking allow-prune away": (
        {"s.yaml": sync({"gitops-ctl.dev/allow-prune": "sha256:1"})},
        {"s.yaml": sync()},
        [("s.yaml", "edit", "Sync.gitops-ctl.dev")],
    ),
    "allow-prune on another kind is an ordinary annotation": (
        {"a.yaml": config_map("a")},
        {
            "a.yaml": config_map("a").replace(
                '"name": "a"', '"name": "a", "annotations": {"gitops-ctl.dev/allow-prune": "x"}'
            )
        },
        [("a.yaml", "edit", "ConfigMap")],
    ),
    "recreate on any document": (
        {"a.yaml": config_map("a")},
        {
            "a.yaml": config_map("a").replace(
                '"name": "a"', '"name": "a", "annotations": {"gitops-ctl.dev/recreate": "u"}'
            )
        },
        [("a.yaml", "consent", "ConfigMap")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verbs_of_a_change(repo: RepoBuilder, name: str) -> None:
    old, new, expected = CASES[name]
    assert verbs_of(repo, old, new) == sorted(expected)


KIND = str(ROLLOUT)
TAUGHT: dict[str, tuple[str, str, list[str]]] = {
    "a new one": ("", rollout(plan={"a": 1}), ["plan"]),
    "a new one with an approval": ("", rollout(plan={"a": 1}, approval={"x": 1}), ["approve", "plan"]),
    "its plan": (rollout(plan={"a": 1}), rollout(plan={"a": 2}), ["plan"]),
    "an approval": (rollout(plan={"a": 1}), rollout(plan={"a": 1}, approval={"x": 1}), ["approve"]),
    "an approval and something else": (
        rollout(plan={"a": 1}),
        rollout(plan={"a": 1}, approval={"x": 1}, note="n"),
        ["approve", "edit"],
    ),
    "an approval beside a document that cannot be read": (
        rollout(plan={"a": 1}),
        rollout(plan={"a": 1}, approval={"x": 1}) + "---\na: [\n",
        ["approve", "edit"],
    ),
    "an approval beside a document that could not be read before either": (
        rollout(plan={"a": 1}) + "---\na: [\n",
        rollout(plan={"a": 1}, approval={"x": 1}) + "---\na: [\n",
        ["approve"],
    ),
    "an approval that is taken back": (rollout(plan={}, approval={"x": 1}), rollout(plan={}), ["approve"]),
    "a number that becomes a truth": (rollout(plan={"a": 1}), rollout(plan={"a": True}), ["plan"]),
    "removing it": (rollout(plan={"a": 1}), "", ["control", "delete"]),
}


@pytest.mark.parametrize("name", TAUGHT)
def test_a_kind_teaches_its_own_verbs(repo: RepoBuilder, name: str) -> None:
    old, new, expected = TAUGHT[name]
    found = verbs_of(repo, {"r.yaml": old} if old else {}, {"r.yaml": new} if new else {})
    assert found == [("r.yaml", verb, KIND) for verb in expected]


def test_a_moved_document_with_a_new_approval_still_needs_that_verb(repo: RepoBuilder) -> None:
    found = verbs_of(repo, {"a.yaml": rollout(plan={})}, {"b.yaml": rollout(plan={}, approval={"x": 1})})
    assert found == [("a.yaml", "edit", KIND), ("b.yaml", "approve", KIND), ("b.yaml", "edit", KIND)]


def test_two_copies_of_one_identity_cannot_hide_a_change(repo: RepoBuilder) -> None:
    found = verbs_of(
        repo,
        {"a.yaml": rollout(plan={})},
        {"a.yaml": rollout(plan={}), "b.yaml": rollout(plan={}, approval={"x": 1})},
    )
    assert found == [("b.yaml", "approve", KIND), ("b.yaml", "plan", KIND)]


def test_equal_versions_have_no_verbs() -> None:
    tree = json.loads(config_map("a"))
    assert verbs_between(tree, json.loads(config_map("a"))) == {}


def test_a_kind_is_taught_once() -> None:
    with pytest.raises(RuntimeError, match="registered twice"):
        register_verbs(ROLLOUT, lambda _old, _new: {})

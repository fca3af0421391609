"""How JSON trees become kinds: what is accepted, what is refused, and what the refusal says.

In scope: the parse functions.  Whether the API server says the same is in tests/cluster/test_crds.py.
"""

import pytest

from gitops_ctl.api.gitops import GitRef, GitSourceStatus, parse_git_source, parse_inventory, parse_sync
from gitops_ctl.api.trust_policy import parse_consent, parse_trust_policy
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused

COMMIT = "5f2b" * 10
DIGEST = "sha256:" + "0a" * 32


def a_source(**spec):
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "GitSource",
        "metadata": {"name": "network", "namespace": "team-a"},
        "spec": {"url": "https://git.example.net/net.git", "ref": {"branch": "main"}, **spec},
    }


def a_sync(**spec):
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "fabric", "namespace": "team-a"},
        "spec": {"sourceRef": {"name": "network"}, "serviceAccountName": "applier", **spec},
    }


def a_policy(**members):
    key = {"ssh": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAA"}
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "TrustPolicy",
        "people": [{"name": "network-author", "keys": [key]}],
        "roles": {"author": ["network-author"]},
        "rules": [{"paths": ["**"], "verbs": ["edit"], "roles": ["author"]}],
        **members,
    }


def a_consent(**members):
    return {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "Consent",
        "verb": "trust",
        "path": ".gitops-ctl/trust.yaml",
        "blob": COMMIT,
        "notAfter": "2026-12-15T00:00:00Z",
        **members,
    }


def test_a_minimal_source_gets_the_defaults_of_the_contract():
    spec = parse_git_source(a_source()).spec
    assert (spec.interval, spec.timeout, spec.suspend, spec.trust) == ("60s", "60s", False, None)
    assert spec.limits.commits_per_pass == 1000


def test_a_minimal_sync_gets_the_defaults_of_the_contract():
    spec = parse_sync(a_sync()).spec
    assert (spec.path, spec.interval, spec.timeout, spec.wait) == ("", "10m", "5m", False)
    assert (spec.prune.enabled, spec.prune.max_percent, spec.prune.allow_empty) == (False, 25, False)
    assert (spec.deletion_policy, spec.drift, spec.on_document_error) == ("Orphan", "Correct", "HoldObject")


def test_a_minimal_tree_is_written_back_as_it_was():
    assert parse_sync(a_sync()).to_tree(minimal=True) == a_sync()
    assert parse_git_source(a_source()).to_tree(minimal=True) == a_source()
    assert parse_trust_policy(a_policy()).to_tree(minimal=True) == a_policy()


def test_a_null_counts_as_absent_in_a_stored_kind():
    assert parse_git_source(a_source(trust=None, interval=None)).spec.interval == "60s"


def test_members_of_a_newer_release_are_left_out():
    assert "newer" not in parse_sync(a_sync(newer=1)).to_tree()["spec"]


def test_python_names_are_no_field_names_of_documents():
    with pytest.raises(Refused, match=r"spec\.serviceAccountName: Field required"):
        parse_sync(a_sync(serviceAccountName=None, service_account_name="applier"))


def test_every_wrong_field_is_named_by_its_path():
    with pytest.raises(Refused) as refused:
        parse_sync(a_sync(prune={"maxPercent": 101}, drift="Repair", dependsOn=["a", "B"]))
    for path in ("spec.prune.maxPercent: ", "spec.drift: ", "spec.dependsOn[1]: "):
        assert path in refused.value.message
    assert refused.value.subject == "Sync team-a/fabric"
    assert refused.value.code is ErrorCode.SCHEMA


def test_a_long_list_of_errors_is_cut_and_counted():
    with pytest.raises(Refused, match=r"; and 4 more$"):
        parse_sync(a_sync(dependsOn=[f"NOT-{n}" for n in range(14)]))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"url": "http://git.example.net/a"}, "spec.url: must start with https:// or ssh://"),
        ({"url": "https://me:word@git.example.net/a"}, "spec.url: must not hold credentials"),
        ({"url": "ssh://git@git.example.net/a"}, "spec: an ssh url needs knownHostsConfigMapRef"),
        ({"ref": {}}, "spec.ref: name exactly one of branch and tag"),
        ({"ref": {"branch": "main", "tag": "v1"}}, "spec.ref: name exactly one of branch and tag"),
        ({"ref": {"branch": "refs/heads/main"}}, "spec.ref.branch: must be the short name"),
        ({"ref": {"branch": "a..b"}}, "spec.ref.branch: "),
        ({"ref": {"tag": "v*"}}, "spec.ref.tag: "),
        ({"interval": "1s"}, "spec.interval: must be between 5s and 24h"),
        ({"interval": "soon"}, "spec.interval: "),
        ({"interval": 60}, "spec.interval: "),
        ({"trust": {"root": {"commit": "5f2b", "policyDigest": DIGEST}}}, "spec.trust.root.commit: "),
        (
            {"trust": {"policyPath": "../x", "root": {"commit": COMMIT, "policyDigest": DIGEST}}},
            "spec.trust.policyPath: ",
        ),
    ],
)
def test_a_wrong_source_is_refused_with_the_reason(spec, told):
    with pytest.raises(Refused) as refused:
        parse_git_source(a_source(**spec))
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"path": "/clusters"}, "spec.path: "),
        ({"path": "clusters/../x"}, "spec.path: "),
        ({"path": "./clusters"}, "spec.path: "),
        ({"dependsOn": ["fabric"]}, "document: a Sync must not depend on itself"),
        ({"dependsOn": ["a", "a"]}, "spec.dependsOn: must not name the same item twice"),
        ({"healthChecks": [{"kind": "Job"}]}, "spec.healthChecks[0]: give a name"),
        ({"healthChecks": [{"kind": "Job", "name": "a", "failed": "true"}]}, "need the expression current"),
    ],
)
def test_a_wrong_sync_is_refused_with_the_reason(spec, told):
    with pytest.raises(Refused) as refused:
        parse_sync(a_sync(**spec))
    assert told in refused.value.message


def test_an_inventory_entry_needs_no_uid_before_the_object_was_seen():
    tree = {
        "apiVersion": "gitops-ctl.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "fabric-0", "namespace": "team-a"},
        "spec": {
            "owner": {"sync": "fabric", "uid": "7f-1", "id": "c/team-a/network/fabric"},
            "entries": [{"version": "v1", "kind": "ConfigMap", "namespace": "team-a", "name": "a"}],
        },
    }
    entry = parse_inventory(tree).spec.entries[0]
    assert (entry.group, entry.uid, entry.applied_digest) == ("", "", "")


def test_status_members_are_built_by_their_python_names():
    status = GitSourceStatus(observed_generation=3, last_handled_reconcile_at="now")
    assert status.to_tree(minimal=True) == {"observedGeneration": 3, "lastHandledReconcileAt": "now"}
    assert GitRef(branch="main").branch == "main"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"unknown": 1}, "unknown: Extra inputs are not permitted"),
        ({"metadata": {"name": "a", "labels": {}}}, "metadata.labels: Extra inputs are not permitted"),
        ({"people": []}, "people: "),
        ({"merges": None, "proposers": None}, "proposers: "),
        ({"rules": [{"verbs": ["edit"], "roles": ["author"]}]}, "rules[0]: name paths, kinds or both"),
        (
            {"rules": [{"paths": ["a/**"], "verbs": ["merge"], "roles": ["author"]}]},
            "rules[0]: merge is asked for the whole tree",
        ),
        ({"rules": [{"paths": ["**"], "verbs": ["propose"], "roles": ["author"]}]}, "rules[0].verbs[0]: "),
        ({"people": [{"name": "a", "keys": [{}]}]}, "people[0].keys[0]: name exactly one of ssh, openpgp"),
        (
            {"people": [{"name": "a", "keys": [{"ssh": 'command="x" ssh-ed25519 ' + "A" * 40}]}]},
            "people[0].keys[0].ssh: ",
        ),
        ({"revoked": [{"fingerprint": "0" * 40}]}, "revoked[0].from: Field required"),
        ({"revoked": [{"fingerprint": "0" * 40, "from": "yesterday"}]}, "revoked[0].from: "),
    ],
)
def test_a_wrong_policy_is_refused_with_the_reason(members, told):
    with pytest.raises(Refused) as refused:
        parse_trust_policy(a_policy(**members))
    assert told in refused.value.message
    assert refused.value.code is ErrorCode.POLICY_INVALID


def test_a_rule_for_merge_alone_needs_no_scope():
    policy = parse_trust_policy(a_policy(rules=[{"verbs": ["merge"], "roles": ["author"]}]))
    assert policy.rules[0].paths is None


def test_the_kubernetes_user_of_a_person_has_a_default():
    assert parse_trust_policy(a_policy()).people[0].user == "gitops-ctl:network-author"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"verb": "merge"}, "verb: "),
        ({"path": "inventory/*.yaml"}, "path: must be one path, no glob"),
        ({"blob": "5F2B" * 10}, "blob: "),
        ({"notAfter": "2026-02-30T00:00:00Z"}, "notAfter: must be a day that exists"),
        ({"notAfter": "15 December"}, "notAfter: must be an RFC 3339 time such as"),
        ({"metadata": {"namespace": "a"}}, "metadata.namespace: "),
    ],
)
def test_a_wrong_consent_is_refused_with_the_reason(members, told):
    assert parse_consent(a_consent()).verb == "trust"
    with pytest.raises(Refused) as refused:
        parse_consent(a_consent(**members))
    assert told in refused.value.message

"""The objects that bootstrap wants for a tenant, and the options that it takes.  Out of scope: a server (tests/cluster)."""

import base64
from pathlib import Path

import pytest
import yaml

from gitops_ctl.api.gitops import parse_git_source, parse_sync
from gitops_ctl.cli.bootstrap import _wish
from gitops_ctl.cli.installing import (
    Planned,
    Tenant,
    applier_rights,
    git_source,
    required_rules,
    sync_accounts_of,
    sync_document,
    tenant_objects,
)
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.local.product import product_objects
from gitops_ctl.sync.diff import Difference

TENANT = Tenant(
    namespace="team-network",
    source="lab",
    sync="lab",
    url="https://git.example.net/lab.git",
    branch="main",
    path="clusters/lab",
    service_account="applier",
    root="a" * 40,
    policy_digest="sha256:" + "1" * 64,
    credentials={"username": "controller", "password": "hidden"},
    ca="-----BEGIN CERTIFICATE-----",
    known_hosts="git.example.net ssh-ed25519 AAAA",
)
OPTIONS: dict[str, object] = {
    "url": "https://git.example.net/lab.git",
    "branch": "main",
    "path": "/clusters/lab/",
    "policy_path": ".gitops-ctl/trust.yaml",
    "namespace": "team-network",
    "name": "lab",
    "service_account": "applier",
    "username": None,
    "password_file": None,
    "bearer_token_file": None,
    "ssh_key_file": None,
    "known_hosts_file": None,
    "ca_file": None,
    "allow_file_url": False,
    "expect_commit": "",
    "expect_digest": "",
    "yes": False,
    "no_install": False,
    "kubeconfig": None,
    "context": None,
}


def names(tenant: Tenant, **more: tuple[str, ...]) -> list[str]:
    return [f"{text_at(tree, 'kind')}/{text_at(tree, 'metadata', 'name')}" for tree in tenant_objects(tenant, **more)]


def one(kind: str, tenant: Tenant = TENANT) -> JsonObject:
    (found,) = [tree for tree in tenant_objects(tenant) if text_at(tree, "kind") == kind]
    return found


def test_what_others_need_comes_first() -> None:
    assert names(TENANT) == [
        "Namespace/team-network",
        "ServiceAccount/applier",
        "Secret/lab-git",
        "ConfigMap/lab-ca",
        "ConfigMap/lab-known-hosts",
        "Role/gitops-ctl-lab",
        "RoleBinding/gitops-ctl-lab",
        "ConfigMap/gitops-ctl-admission",
        "GitSource/lab",
        "Sync/lab",
    ]


def test_the_role_lets_the_manager_act_as_one_account_and_read_what_is_named() -> None:
    assert one("Role")["rules"] == [
        {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["applier"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["lab-git"], "verbs": ["get"]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["lab-ca", "lab-known-hosts"],
            "verbs": ["get"],
        },
    ]


def test_nothing_of_it_gives_the_account_of_the_sync_a_right() -> None:
    assert one("RoleBinding")["subjects"] == [
        {"kind": "ServiceAccount", "name": "gitops-ctl-manager", "namespace": "gitops-ctl-system"}
    ]
    assert not [name for name in names(TENANT) if name.startswith("Cluster")]


def test_the_secret_holds_the_credentials_and_no_representation_shows_them() -> None:
    data = object_at(one("Secret"), "data")
    assert base64.b64decode(str(data["password"])) == b"hidden"
    assert "hidden" not in repr(TENANT)


def test_source_and_sync_are_what_our_kinds_allow() -> None:
    source = parse_git_source(git_source(TENANT))
    assert source.spec.trust is not None
    assert source.spec.trust.root.commit == "a" * 40
    assert source.spec.credentials_secret_ref is not None
    assert source.spec.credentials_secret_ref.name == "lab-git"
    assert parse_sync(sync_document(TENANT)).spec.service_account_name == "applier"


def test_accounts_that_may_write_consents_already_stay() -> None:
    before = ("system:serviceaccount:z:z", "system:serviceaccount:team-network:applier")
    admission = next(
        tree
        for tree in tenant_objects(TENANT, sync_accounts=before)
        if text_at(tree, "metadata", "name") == "gitops-ctl-admission"
    )
    assert sync_accounts_of(admission) == tuple(sorted(before))
    assert sync_accounts_of(None) == ()


def test_the_least_rights_name_each_resource_once() -> None:
    kinds = [
        (GroupVersionKind("apps", "v1", "Deployment"), "deployments"),
        (GroupVersionKind("", "v1", "Service"), "services"),
        (GroupVersionKind("", "v1", "ConfigMap"), "configmaps"),
        (GroupVersionKind("", "v1", "ConfigMap"), "configmaps"),
    ]
    assert [(rule["apiGroups"], rule["resources"]) for rule in required_rules(kinds)] == [
        ([""], ["configmaps", "services"]),
        (["apps"], ["deployments"]),
    ]


def test_the_least_rights_have_the_verbs_that_admission_asks_for() -> None:
    kinds = [
        (GroupVersionKind("ops.cisco.vk", "v1alpha1", "IOSXESoftwareRollout"), "iosxesoftwarerollouts"),
        (GroupVersionKind("cisco.vk", "v1alpha1", "CiscoDevice"), "ciscodevices"),
    ]
    found = [(rule["resources"], rule["verbs"]) for rule in required_rules(kinds)]
    assert found[2:] == [
        (["ciscodevices"], ["topology"]),
        (["iosxesoftwarerollouts"], ["activate", "approve", "control", "recover"]),
    ]


def test_the_printed_rights_hold_the_syncs_of_the_own_namespace_and_of_no_other() -> None:
    kinds = [
        (GroupVersionKind("", "v1", "ConfigMap"), "configmaps"),
        (GroupVersionKind("gitops-ctl.dev", "v1alpha1", "Sync"), "syncs"),
    ]
    everywhere, bound, within, bound_within = applier_rights(
        TENANT.namespace, TENANT.service_account, rules=required_rules(kinds)
    )
    assert [rule["resources"] for rule in objects_at(everywhere, "rules")] == [["configmaps"]]
    assert [rule["resources"] for rule in objects_at(within, "rules")] == [["syncs"]]
    assert (within["kind"], text_at(within, "metadata", "namespace")) == ("Role", "team-network")
    for binding, role in ((bound, everywhere), (bound_within, within)):
        assert text_at(binding, "roleRef", "name") == text_at(role, "metadata", "name")
        assert [text_at(one, "name") for one in objects_at(binding, "subjects")] == ["applier"]


def test_what_is_only_added_is_missing_and_what_has_another_value_is_replaced() -> None:
    wanted = git_source(TENANT)
    added = Planned(wanted, wanted, (Difference("/data/a", None, "1"),))
    other = Planned(wanted, wanted, (Difference("/spec/trust/root/commit", "a", "b"),))
    assert (added.is_due, added.replaces) == (True, False)
    assert (other.is_due, other.replaces) == (True, True)
    assert not Planned(wanted, wanted).is_due
    assert Planned(wanted).lines() == ["create  GitSource.gitops-ctl.dev/team-network/lab"]
    assert other.lines() == [
        "change  GitSource.gitops-ctl.dev/team-network/lab",
        "          /spec/trust/root/commit: 'a' -> 'b'",
    ]


def test_the_product_begins_with_its_definitions() -> None:
    kinds = [text_at(tree, "kind") for tree in product_objects()]
    assert kinds.count("Deployment") == 1
    assert kinds.index("CustomResourceDefinition") < kinds.index("Deployment")


def test_a_password_ends_where_its_line_ends(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(" spaces count \n")
    wish = _wish({**OPTIONS, "username": "controller", "password_file": tmp_path / "password"})
    assert wish.tenant.credentials == {"username": "controller", "password": " spaces count "}
    assert wish.remote.credentials is not None
    assert "spaces count" not in repr(wish)
    assert wish.tenant.path == "clusters/lab"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"yes": True}, "--yes needs --expect-commit and --expect-digest"),
        ({"yes": True, "expect_commit": "a"}, "--yes needs --expect-commit and --expect-digest"),
        ({"url": "file:///srv/lab.git"}, "a file:// address is for one machine only"),
        ({"username": "a"}, "--username and --password-file belong together"),
        ({"password_file": Path("/dev/null")}, "--username and --password-file belong together"),
        (
            {"bearer_token_file": Path("/dev/null"), "ssh_key_file": Path("/dev/null")},
            "--bearer-token-file and --ssh-key-file exclude each other",
        ),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(Refused, match=said):
        _wish({**OPTIONS, **options})


def test_the_sync_is_printed_as_it_would_be_committed() -> None:
    assert yaml.safe_dump(sync_document(TENANT), sort_keys=False) == (
        "apiVersion: gitops-ctl.dev/v1alpha1\n"
        "kind: Sync\n"
        "metadata:\n"
        "  name: lab\n"
        "  namespace: team-network\n"
        "spec:\n"
        "  sourceRef:\n"
        "    name: lab\n"
        "  path: clusters/lab\n"
        "  serviceAccountName: applier\n"
        "  prune:\n"
        "    enabled: true\n"
    )

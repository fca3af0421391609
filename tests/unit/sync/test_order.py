"""Stages, dependency annotations and the order of deletion.  What an object waits for at run time is tested with the executor."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, NamespacedName, ObjectId
from gitops_ctl.sync.model import Entry, Stage, View
from gitops_ctl.sync.order import RBAC_GROUP, Deletion, in_deletion_waves, in_waves, stage_of
from tests.support.sync import config_map, state_of

ACCOUNT = NamespacedName("team", "applier")


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("CustomResourceDefinition.apiextensions.k8s.io", Stage.CRDS),
        ("Namespace", Stage.NAMESPACES),
        ("ResourceQuota", Stage.POLICIES),
        ("ValidatingAdmissionPolicy.admissionregistration.k8s.io", Stage.POLICIES),
        ("NetworkPolicy.networking.k8s.io", Stage.POLICIES),
        ("ServiceAccount", Stage.RBAC),
        ("ClusterRole.rbac.authorization.k8s.io", Stage.RBAC),
        ("ConfigMap", Stage.CONFIGURATION),
        ("Secret", Stage.CONFIGURATION),
        ("Deployment.apps", Stage.WORKLOADS),
        ("CronJob.batch", Stage.WORKLOADS),
        ("CiscoDevice.cisco.vk", Stage.CUSTOM),
        ("ValidatingWebhookConfiguration.admissionregistration.k8s.io", Stage.WEBHOOKS),
    ],
)
def test_each_kind_has_its_stage(kind: str, stage: Stage) -> None:
    assert stage_of(GroupKind.parse(kind)) is stage


def test_stages_come_in_order_and_roles_before_bindings() -> None:
    text = (
        "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: lab}}\n"
        "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: lab}}\n"
        "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: lab}}\n"
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: lab}}\n" + config_map()
    )
    waves = in_waves(state_of(text).objects).waves
    assert [[item.id.kind for item in wave] for wave in waves] == [
        ["Namespace"],
        ["Role"],
        ["RoleBinding"],
        ["ConfigMap"],
        ["Deployment"],
    ]


def test_an_object_comes_after_what_it_depends_on_also_across_stages() -> None:
    after = {"gitops-ctl.dev/depends-on": "Deployment.apps/lab/d"}
    text = (
        config_map("early")
        + config_map("late", annotations=after)
        + ("---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: lab}}\n")
    )
    waves = in_waves(state_of(text).objects).waves
    assert [[item.id.name for item in wave] for wave in waves] == [["early"], ["d"], ["late"]]


def test_a_cycle_holds_its_members_by_name_and_those_that_wait_for_it() -> None:
    text = (
        config_map("a", annotations={"gitops-ctl.dev/depends-on": "ConfigMap/lab/b"})
        + config_map("b", annotations={"gitops-ctl.dev/depends-on": "ConfigMap/lab/a"})
        + config_map("c", annotations={"gitops-ctl.dev/depends-on": "ConfigMap/lab/a"})
        + config_map("free")
    )
    state = state_of(text)
    held = {item.id.name: item for item in state.held}
    assert held["a"].code is ErrorCode.DEPENDENCY_CYCLE
    assert "ConfigMap/lab/a, ConfigMap/lab/b, ConfigMap/lab/a" in held["a"].message
    assert held["c"].code is ErrorCode.DEPENDENCY_NOT_READY
    assert [item.name for item in state.objects] == ["free"]
    assert not state.complete


def test_thousands_of_objects_in_a_cycle_or_in_a_chain_are_ordered_at_once() -> None:
    many = 4000
    after = "gitops-ctl.dev/depends-on"
    text = "".join(
        config_map(f"round-{place}", annotations={after: f"ConfigMap/lab/round-{(place + 1) % many}"})
        + config_map(f"chain-{place}", annotations={after: f"ConfigMap/lab/chain-{place + 1}"})
        for place in range(many)
    ) + config_map(f"chain-{many}")
    state = state_of(text)
    held = {item.id.name: item for item in state.held}
    assert len(held) == many
    first = ", ".join(f"ConfigMap/lab/round-{place}" for place in (3999, 0, 1, 2, 3, 4, 5, 6, 7, 8))
    assert held["round-3999"].message == f"depends on itself: {first} and 3991 more"
    waves = in_waves(state.objects).waves
    assert [item.id.name for wave in waves for item in wave] == [f"chain-{place}" for place in range(many, -1, -1)]


def _doomed(group: str, kind: str, name: str, *, namespace: str = "team", view: View | None = None) -> Deletion:
    return Deletion(Entry(ObjectId(group, kind, namespace, name), "v1"), view)


def test_R08_the_account_and_what_gives_it_rights_are_deleted_last() -> None:
    role = ObjectId(RBAC_GROUP, "Role", "team", "applier")
    own = View("u1", "1", "", binds=("team/applier",), role=role)
    foreign = View("u2", "1", "", binds=("team/somebody",))
    waves = in_deletion_waves(
        [
            _doomed(RBAC_GROUP, "RoleBinding", "own", view=own),
            _doomed(RBAC_GROUP, "RoleBinding", "foreign", view=foreign),
            _doomed(RBAC_GROUP, "Role", "applier"),
            _doomed("", "ServiceAccount", "applier"),
            _doomed("", "ServiceAccount", "somebody"),
            _doomed("", "Namespace", "team", namespace=""),
            _doomed("", "Namespace", "lab", namespace=""),
            _doomed("", "ConfigMap", "config"),
            _doomed("apps", "Deployment", "web"),
            _doomed("apiextensions.k8s.io", "CustomResourceDefinition", "x", namespace=""),
        ],
        account=ACCOUNT,
    )
    assert [[item.entry.id.kind + "/" + item.entry.id.name for item in wave] for wave in waves] == [
        ["Deployment/web"],
        ["ConfigMap/config"],
        ["Namespace/lab"],
        ["CustomResourceDefinition/x"],
        ["ServiceAccount/somebody"],
        ["RoleBinding/foreign"],
        ["Namespace/team"],
        ["ServiceAccount/applier"],
        ["Role/applier", "RoleBinding/own"],
    ]

"""Who may say what about a switch of kube-proxy, on a real API server (cni-switch.md, sections 3.3 and 4.4).

Every policy is tried with an identity that may and with one that may not; all have every right of RBAC, so that a refusal is the policy's.
`gitops-ctl check` and a Sync judge by the text of the same policy: tests/unit/documents/test_hold_check.py, tests/unit/sync/test_hold_switch.py.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gitops_ctl.cni.holds import consent_missing
from gitops_ctl.documents.holds import HoldQuestion
from tests.support.api import COMMIT, MOMENT
from tests.support.api_talos import ID, a_cluster, a_machine, an_operation, full_talos_objects
from tests.support.chart_install import Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, Reply, eventually, install_crds

pytestmark = pytest.mark.cluster

CONFIRM = "ichor.maesh.dev/confirm-kube-proxy-switch"
GROUP = "/apis/ichor.maesh.dev/v1alpha1/namespaces"
Identity = Callable[[str], PlainApi]


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    yield api
    api.close()


@pytest.fixture(scope="module")
def chart(admin: PlainApi) -> Iterator[Installation]:
    """The policies, at work in one namespace.  The server takes a moment to follow a new policy, so the module shares them."""
    namespace = f"switch-{secrets.token_hex(4)}"
    assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    values = {
        "tenants": [{"namespace": namespace, "serviceAccounts": ["applier"]}],
        "workers": [{"namespace": namespace, "clusters": [{"name": "north", "talosconfig": "north"}]}],
        "admission": {"restorers": ["restorer@example.net"]},
    }
    with installed_chart(admin, namespace, values) as installation:
        place = f"{GROUP}/{namespace}/talosclusters"
        eventually(lambda: admin.post(f"{place}?dryRun=All", agreed(a_cluster(namespace=namespace))).status == 403)
        operations = f"{GROUP}/{namespace}/talosoperations?dryRun=All"
        eventually(lambda: admin.post(operations, an_operation(namespace=namespace)).status == 403)
        assert admin.post(place, a_cluster(name="probe", namespace=namespace)).status == 201
        change = {"spec": {"cni": {"kubeProxy": "replaced"}}}
        eventually(lambda: admin.merge(f"{place}/probe?dryRun=All", change).status == 403)
        yield installation
    admin.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def namespace(chart: Installation, admin: PlainApi) -> Iterator[str]:
    """The namespace of the policies; what a test leaves there is removed."""
    yield chart.namespace
    for plural in ("talosclusters", "talosmachines", "talosoperations"):
        admin.delete(f"{GROUP}/{chart.namespace}/{plural}")


@pytest.fixture
def who(admin: PlainApi, chart: Installation) -> Iterator[Identity]:
    """Clients by role."""
    names = {
        "manager": chart.manager,
        "worker": f"system:serviceaccount:{chart.namespace}:gitops-ctl-worker",
        "applier": f"system:serviceaccount:{chart.namespace}:applier",
        "person": "network-author@example.net",
        "restorer": "restorer@example.net",
    }
    clients = {role: admin.acting_as(name, "system:masters") for role, name in names.items()}
    yield clients.__getitem__
    for client in clients.values():
        client.close()


def place(namespace: str, plural: str, name: str = "") -> str:
    return f"{GROUP}/{namespace}/{plural}{'/' + name if name else ''}"


def agreed(tree: dict[str, Any], mode: str = "replaced") -> dict[str, Any]:
    return {**tree, "metadata": {**tree["metadata"], "annotations": {CONFIRM: mode}}}


def refused(reply: Reply, policy: str) -> bool:
    return reply.status == 403 and f"'gitops-ctl-{policy}" in reply.message


def a_cluster_is_there(admin: PlainApi, namespace: str, **cni: Any) -> str:
    """The path of a cluster in mode `enabled`, without annotations."""
    made = admin.post(place(namespace, "talosclusters"), a_cluster(namespace=namespace, cni=cni))
    assert made.status == 201, made.message
    return place(namespace, "talosclusters", "north")


MODE = {"spec": {"cni": {"kubeProxy": "replaced"}}}


@pytest.mark.parametrize("role", ["person", "applier", "manager"])
def test_a_change_of_the_mode_without_consent_is_refused_to_everybody(admin, who: Identity, namespace: str, role: str):
    path = a_cluster_is_there(admin, namespace)
    assert refused(who(role).merge(path, MODE), "kube-proxy-consent")
    whole = a_cluster(namespace=namespace, cni={"kubeProxy": "replaced"})
    assert refused(who(role).apply(path, whole), "kube-proxy-consent")


def test_the_mode_and_its_consent_come_with_the_account_of_a_sync(admin: PlainApi, who: Identity, namespace: str):
    path = a_cluster_is_there(admin, namespace)
    change = {"metadata": {"annotations": {CONFIRM: "replaced"}}, **MODE}
    assert who("applier").merge(path, change).status == 200
    assert refused(who("person").merge(path, {"spec": {"cni": {"kubeProxy": None}}}), "kube-proxy-consent")
    assert who("person").merge(path, {"spec": {"cni": {"consentCleanup": False}}}).status == 200


def test_a_left_over_consent_admits_no_other_switch(admin: PlainApi, who: Identity, namespace: str):
    path = a_cluster_is_there(admin, namespace)
    applier = who("applier")
    assert applier.merge(path, {"metadata": {"annotations": {CONFIRM: "replaced"}}, **MODE}).status == 200
    assert refused(applier.merge(path, {"spec": {"cni": {"kubeProxy": "enabled"}}}), "kube-proxy-consent")


def test_the_server_and_the_documents_are_judged_by_the_same_words(admin: PlainApi, namespace: str):
    path = a_cluster_is_there(admin, namespace)
    live = admin.get(path).body
    flaw = consent_missing(HoldQuestion(a_cluster(namespace=namespace, cni={"kubeProxy": "replaced"}), live))
    assert flaw is not None
    assert flaw.message in admin.merge(path, MODE).message


@pytest.mark.parametrize("operation", ["create", "update"])
def test_a_consent_is_written_by_the_account_of_a_sync_only(admin, who: Identity, namespace: str, operation: str):
    def attempt(role: str) -> Reply:
        if operation == "create":
            return who(role).post(
                f"{place(namespace, 'talosclusters')}?dryRun=All", agreed(a_cluster(name="new", namespace=namespace))
            )
        note = {"metadata": {"annotations": {CONFIRM: "replaced"}}}
        return who(role).merge(f"{place(namespace, 'talosclusters', 'north')}?dryRun=All", note)

    a_cluster_is_there(admin, namespace)
    for role in ("person", "manager", "worker", "restorer"):
        assert refused(attempt(role), "switch-steering"), role
    assert attempt("applier").status in (200, 201)


def test_taking_a_consent_away_is_free(admin: PlainApi, who: Identity, namespace: str):
    made = who("applier").post(place(namespace, "talosclusters"), agreed(a_cluster(namespace=namespace)))
    assert made.status == 201
    path = place(namespace, "talosclusters", "north")
    assert who("person").merge(path, {"metadata": {"annotations": {CONFIRM: None}}}).status == 200


@pytest.mark.parametrize("steering", [{"resume": 1}, {"cancel": True}, {"breakLock": True}], ids=str)
def test_a_switch_is_steered_by_the_account_of_a_sync_only(admin, who: Identity, namespace: str, steering: Any):
    change = {"spec": {"cni": {"operation": steering}}}
    new = a_cluster(name="new", namespace=namespace, cni={"operation": steering})
    assert refused(who("person").post(place(namespace, "talosclusters"), new), "switch-steering")
    path = a_cluster_is_there(admin, namespace)
    for role in ("person", "manager", "worker"):
        assert refused(who(role).merge(path, change), "switch-steering"), role
    assert who("applier").merge(path, change).status == 200
    assert refused(who("person").merge(path, {"spec": {"cni": {"operation": None}}}), "switch-steering")


def test_defaults_that_the_server_fills_in_steer_nothing(who: Identity, namespace: str):
    made = who("person").post(place(namespace, "talosclusters"), a_cluster(namespace=namespace))
    assert made.status == 201, made.message
    assert made.body["spec"]["cni"]["operation"] == {"resume": 0, "cancel": False, "breakLock": False}
    path = place(namespace, "talosclusters", "north")
    note = {"metadata": {"labels": {"site": "north"}}}
    assert who("person").merge(path, note).status == 200


def test_an_operation_is_created_by_the_manager_only(who: Identity, namespace: str):
    for role in ("person", "applier", "worker"):
        made = who(role).post(place(namespace, "talosoperations"), an_operation(namespace=namespace))
        assert refused(made, "switch-records"), role
        assert "is created by the manager of gitops-ctl only" in made.message
    assert who("manager").post(place(namespace, "talosoperations"), an_operation(namespace=namespace)).status == 201


CLAIM = {"id": ID, "worker": "w", "at": MOMENT}
REQUEST = {"id": ID, "action": "observe", "mode": "replaced"}
SPENT = {"commit": COMMIT, "target": "replaced", "operationUID": "7f1c"}
LOCK = {"holder": "north-1", "operationUID": "7f1c", "kind": "cni", "since": MOMENT}


def an_object_is_there(who: Identity, namespace: str, plural: str) -> str:
    tree = {"talosoperations": an_operation, "talosmachines": a_machine, "talosclusters": a_cluster}[plural](
        namespace=namespace
    )
    made = who("manager").post(place(namespace, plural), tree)
    assert made.status == 201, made.message
    return f"{place(namespace, plural, tree['metadata']['name'])}/status"


@pytest.mark.parametrize(
    ("plural", "member", "writer"),
    [
        ("talosoperations", {"phase": "Preflight"}, "manager"),
        ("talosoperations", {"requests": [REQUEST]}, "manager"),
        ("talosoperations", {"machines": [{"name": "cp-1", "role": "worker", "state": "Done"}]}, "manager"),
        ("talosoperations", {"baseline": {"at": MOMENT}}, "manager"),
        ("talosoperations", {"claims": [CLAIM]}, "worker"),
        ("talosoperations", {"receipts": [{"id": ID, "result": "Done", "at": MOMENT}]}, "worker"),
        ("talosoperations", {"observed": {"at": MOMENT}}, "worker"),
        ("talosoperations", {"removed": [{"kind": "DaemonSet", "name": "a", "uid": "7", "at": MOMENT}]}, "worker"),
        ("talosmachines", {"rebootPaths": ["machine.install"]}, "manager"),
        ("talosmachines", {"observed": {"at": MOMENT}}, "worker"),
        ("talosclusters", {"lock": LOCK}, "manager"),
        ("talosclusters", {"cni": {"kubeProxy": "replaced"}}, "manager"),
        ("talosclusters", {"cni": {"consumedConsent": SPENT}}, "manager"),
        ("talosclusters", {"cni": {"observedMode": "mixed", "observedAt": MOMENT}}, "worker"),
    ],
    ids=str,
)
def test_each_member_of_a_record_has_one_writer(who: Identity, namespace: str, plural: str, member: Any, writer: str):
    path = an_object_is_there(who, namespace, plural)
    other = "worker" if writer == "manager" else "manager"
    for role in ("person", "applier", other):
        answer = who(role).merge(path, {"status": member})
        assert refused(answer, "switch-records"), (role, answer.message)
    assert who(writer).merge(path, {"status": member}).status == 200
    assert who(other).merge(path, {"status": {"observedGeneration": None}}).status == 200
    for gone in ("person", other):
        taken_away = who(gone).merge(path, {"status": dict.fromkeys(member)})
        assert refused(taken_away, "switch-records"), gone


def test_the_message_names_the_member_and_its_writer(who: Identity, namespace: str):
    path = an_object_is_there(who, namespace, "talosoperations")
    told = who("worker").merge(path, {"status": {"phase": "Succeeded", "requests": [REQUEST]}}).message
    assert "talosoperations/status: phase, requests is written by the manager only" in told
    told = who("manager").merge(path, {"status": {"claims": [CLAIM]}}).message
    assert "talosoperations/status: claims is written by the cluster worker only" in told


def test_every_member_of_a_status_is_somebodys(who: Identity, namespace: str):
    """A member that a policy forgot could be written by both."""
    for kind, plural in (
        ("TalosOperation", "talosoperations"),
        ("TalosMachine", "talosmachines"),
        ("TalosCluster", "talosclusters"),
    ):
        path = an_object_is_there(who, namespace, plural)
        for name, value in full_talos_objects()[kind]["status"].items():
            for part in value if kind == "TalosCluster" and name == "cni" else ("",):
                status = {name: {part: value[part]} if part else value}
                answers = {
                    role: who(role).merge(f"{path}?dryRun=All", {"status": status}) for role in ("manager", "worker")
                }
                assert sorted(answer.status for answer in answers.values()) == [200, 403], (kind, name, part)


def test_whoever_restores_a_backup_writes_all_of_it(who: Identity, namespace: str):
    path = an_object_is_there(who, namespace, "talosoperations")
    status = full_talos_objects()["TalosOperation"]["status"]
    assert who("restorer").merge(path, {"status": status}).status == 200

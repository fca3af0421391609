"""What only Git, or only the manager, may say is refused from everybody else, cluster administrators included.

Every policy is tried with an identity that may and with one that may not, on a real API server.  All identities have every right of RBAC, so
that a refusal is the policy's.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.api import COMMIT, a_source, a_sync, an_entry, an_inventory
from tests.support.chart_install import Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, Reply, eventually, install_crds

pytestmark = pytest.mark.cluster

ALLOW = "gitops-ctl.dev/allow-prune"
DIGEST = "sha256:" + "0a" * 32
GROUP = "/apis/gitops-ctl.dev/v1alpha1/namespaces"


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    yield api
    api.close()


@pytest.fixture(scope="module")
def chart(admin: PlainApi) -> Iterator[Installation]:
    """The policies, at work in one namespace.  The server takes a moment to follow a new policy, so the module shares them."""
    namespace = f"admission-{secrets.token_hex(4)}"
    assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    values = {
        "tenants": [{"namespace": namespace, "serviceAccounts": ["applier"]}],
        "admission": {"restorers": ["restorer@example.net"]},
    }
    with installed_chart(admin, namespace, values) as installation:
        for plural, probe in (
            ("syncs", annotated(a_sync(namespace=namespace), allow_prune=DIGEST)),
            ("syncs", annotated(a_sync(namespace=namespace), owner_id="a")),
            ("inventories", an_inventory(namespace=namespace)),
        ):
            place = f"{GROUP}/{namespace}/{plural}?dryRun=All"
            eventually(lambda place=place, probe=probe: admin.post(place, probe).status == 403)
        yield installation
    admin.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def namespace(chart: Installation, admin: PlainApi) -> Iterator[str]:
    """The namespace of the policies; what a test leaves there is removed."""
    yield chart.namespace
    for plural in ("syncs", "gitsources", "inventories"):
        admin.delete(f"{GROUP}/{chart.namespace}/{plural}")


Identity = Callable[[str], PlainApi]


@pytest.fixture
def who(admin: PlainApi, chart: Installation) -> Iterator[Identity]:
    """Clients by role: the manager, a Sync's account, another account, a person, the restorer."""
    names = {
        "manager": chart.manager,
        "applier": f"system:serviceaccount:{chart.namespace}:applier",
        "other account": f"system:serviceaccount:{chart.namespace}:default",
        "person": "network-author@example.net",
        "restorer": "restorer@example.net",
    }
    clients = {role: admin.acting_as(name, "system:masters") for role, name in names.items()}
    yield clients.__getitem__
    for client in clients.values():
        client.close()


def syncs(namespace: str, name: str = "") -> str:
    return f"{GROUP}/{namespace}/syncs{'/' + name if name else ''}"


def annotated(tree: dict[str, Any], **annotations: Any) -> dict[str, Any]:
    named = {f"gitops-ctl.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**tree, "metadata": {**tree["metadata"], "annotations": named}}


def refused(reply: Reply, policy: str) -> bool:
    return reply.status == 403 and f"gitops-ctl-{policy}" in reply.message


# Consents.


@pytest.mark.parametrize("role", ["person", "other account", "manager", "restorer"])
def test_a_consent_is_not_written_by_anybody_but_the_account_of_a_sync(who: Identity, namespace: str, role: str):
    created = who(role).post(syncs(namespace), annotated(a_sync(namespace=namespace), allow_prune=DIGEST))
    assert refused(created, "authorising-annotations")
    assert who(role).post(syncs(namespace), a_sync(namespace=namespace)).status == 201
    changed = who(role).merge(syncs(namespace, "fabric"), {"metadata": {"annotations": {ALLOW: DIGEST}}})
    assert refused(changed, "authorising-annotations")
    assert "sign the consent into Git" in changed.message


def test_the_account_of_a_sync_writes_a_consent(who: Identity, namespace: str):
    created = who("applier").post(syncs(namespace), annotated(a_sync(namespace=namespace), allow_prune=DIGEST))
    assert created.status == 201
    other = DIGEST.replace("0a", "0b")
    changed = who("applier").apply(
        syncs(namespace, "fabric"), annotated(a_sync(namespace=namespace), allow_prune=other)
    )
    assert changed.body["metadata"]["annotations"][ALLOW] == other


def test_a_person_may_change_a_sync_that_carries_a_consent_and_may_take_the_consent_away(who: Identity, namespace: str):
    who("applier").post(syncs(namespace), annotated(a_sync(namespace=namespace), allow_prune=DIGEST))
    kept = who("person").merge(syncs(namespace, "fabric"), {"spec": {"suspend": True}})
    assert (kept.status, kept.body["metadata"]["annotations"]) == (200, {ALLOW: DIGEST})
    other = who("person").merge(syncs(namespace, "fabric"), {"metadata": {"annotations": {ALLOW: DIGEST[:-1] + "b"}}})
    assert refused(other, "authorising-annotations")
    gone = who("person").merge(syncs(namespace, "fabric"), {"metadata": {"annotations": {ALLOW: None}}})
    assert (gone.status, "annotations" in gone.body["metadata"]) == (200, False)


def test_an_account_that_has_the_name_of_a_listed_one_elsewhere_is_not_listed(
    who: Identity, admin: PlainApi, namespace: str
):
    stranger = admin.acting_as(f"system:serviceaccount:{namespace}-b:applier", "system:masters")
    written = stranger.post(syncs(namespace), annotated(a_sync(namespace=namespace), allow_prune=DIGEST))
    stranger.close()
    assert refused(written, "authorising-annotations")


# Marks.

MARKS = [
    {"labels": {"gitops-ctl.dev/owner": "0123456789abcdef0123456789abcdef"}},
    {"annotations": {"gitops-ctl.dev/owner-id": "c1/team-a/network/fabric:gitops-ctl.dev/Sync:team-a/fabric"}},
    {"annotations": {"gitops-ctl.dev/introduced-by": "consent=change-approver"}},
    {"annotations": {"gitops-ctl.dev/introduced-commit": f"consent={COMMIT}"}},
]


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: next(iter(next(iter(mark.values())))))
def test_a_mark_is_written_changed_and_removed_by_the_controller_only(
    who: Identity, namespace: str, mark: dict[str, Any]
):
    (place, values), *_ = mark.items()
    (name, value), *_ = values.items()
    tree = a_sync(namespace=namespace)
    marked = {**tree, "metadata": {**tree["metadata"], **mark}}
    for role in ("person", "other account", "restorer"):
        reply = who(role).post(syncs(namespace), marked)
        # The restorer is one of the writers, and may bring objects back as they were.
        assert reply.status == 201 if role == "restorer" else refused(reply, "owner-marks"), role
    for changed in (f"{value}x"[1:], None):
        reply = who("person").merge(syncs(namespace, "fabric"), {"metadata": {place: {name: changed}}})
        assert refused(reply, "owner-marks")
    for role, changed in (("applier", value.upper()), ("manager", None)):
        reply = who(role).merge(syncs(namespace, "fabric"), {"metadata": {place: {name: changed}}})
        assert reply.status == 200, reply.message


def test_a_marked_object_may_be_changed_in_other_ways_by_anybody(who: Identity, namespace: str):
    tree = a_sync(namespace=namespace)
    who("applier").post(syncs(namespace), {**tree, "metadata": {**tree["metadata"], **MARKS[0]}})
    labelled = who("person").merge(syncs(namespace, "fabric"), {"metadata": {"labels": {"team": "net"}}})
    asked = who("person").merge(
        syncs(namespace, "fabric"), {"metadata": {"annotations": {"gitops-ctl.dev/requested-at": "now"}}}
    )
    assert (labelled.status, asked.status) == (200, 200)


# Records of the manager.


@pytest.mark.parametrize(("plural", "tree"), [("gitsources", a_source), ("syncs", a_sync)], ids=["GitSource", "Sync"])
def test_a_status_is_written_by_the_manager_only(who: Identity, namespace: str, plural: str, tree: Any):
    made = tree(namespace=namespace)
    place = f"{GROUP}/{namespace}/{plural}"
    assert who("person").post(place, made).status == 201
    status = f"{place}/{made['metadata']['name']}/status"
    for role in ("person", "applier", "other account"):
        assert refused(who(role).merge(status, {"status": {"observedGeneration": 1}}), "status-writers")
    for number, role in enumerate(("manager", "restorer")):
        assert who(role).merge(status, {"status": {"observedGeneration": number}}).status == 200


def test_a_record_is_written_by_the_manager_only(who: Identity, namespace: str):
    place = f"{GROUP}/{namespace}/inventories"
    tree = an_inventory(namespace=namespace)
    for role in ("person", "applier", "other account"):
        assert refused(who(role).post(place, tree), "status-writers")
    assert who("manager").post(place, tree).status == 201
    shorter = {"spec": {"entries": []}}
    for role in ("person", "applier", "other account"):
        assert refused(who(role).merge(f"{place}/fabric-0", shorter), "status-writers")
    longer = {"spec": {"entries": [an_entry(), an_entry(name="second")]}}
    assert who("manager").merge(f"{place}/fabric-0", longer).status == 200


def test_the_garbage_collector_may_release_and_remove_a_record(who: Identity, admin: PlainApi, namespace: str):
    place = f"{GROUP}/{namespace}/inventories"
    who("manager").post(place, an_inventory(namespace=namespace))
    collector = admin.acting_as("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
    released = collector.merge(f"{place}/fabric-0", {"metadata": {"finalizers": ["example.net/hold"]}})
    again = collector.merge(f"{place}/fabric-0", {"metadata": {"finalizers": None}})
    removed = collector.delete(f"{place}/fabric-0")
    collector.close()
    assert (released.status, again.status, removed.status) == (200, 200, 200)


def test_the_policies_are_understood_without_a_warning(chart: Installation, admin: PlainApi):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ours = [item for item in admin.get(path).body["items"] if item["metadata"]["name"].startswith("gitops-ctl-")]
    assert ours
    assert [item["status"]["typeChecking"] for item in ours if item.get("status", {}).get("typeChecking")] == []


# The list.  These change it, so they come last and put it back.


@pytest.fixture
def listing(admin: PlainApi, chart: Installation) -> Iterator[str]:
    """Place of the parameter object; it is put back as it was."""
    folder = f"/api/v1/namespaces/{chart.namespace}/configmaps"
    place = f"{folder}/gitops-ctl-admission"
    before = admin.get(place).body
    yield place
    admin.delete(place)
    bare = {"metadata": {"name": "gitops-ctl-admission"}, "data": before["data"]}
    assert admin.post(folder, bare).status == 201
    tree = annotated(a_sync(namespace=chart.namespace), allow_prune=DIGEST)
    applier = admin.acting_as(f"system:serviceaccount:{chart.namespace}:applier", "system:masters")
    eventually(lambda: applier.post(f"{syncs(chart.namespace)}?dryRun=All", tree).status == 201)
    applier.close()


def test_an_account_counts_from_the_moment_it_is_listed(who: Identity, admin: PlainApi, namespace: str, listing: str):
    listed = admin.get(listing).body["data"]["syncAccounts"] + f"\nsystem:serviceaccount:{namespace}:default"
    assert admin.merge(listing, {"data": {"syncAccounts": listed}}).status == 200
    tree = annotated(a_sync(namespace=namespace), allow_prune=DIGEST)
    eventually(lambda: who("other account").post(f"{syncs(namespace)}?dryRun=All", tree).status == 201)


def test_without_the_list_nothing_of_ours_is_written_at_all(
    who: Identity, admin: PlainApi, namespace: str, listing: str
):
    admin.delete(listing)
    tree = annotated(a_sync(namespace=namespace), allow_prune=DIGEST)
    eventually(lambda: "no params found" in who("applier").post(f"{syncs(namespace)}?dryRun=All", tree).message)
    for role in ("person", "manager"):
        assert "no params found" in who(role).post(syncs(namespace), a_sync(namespace=namespace)).message

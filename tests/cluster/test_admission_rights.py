"""What the API server lets the manager do with the rights that the chart gives it, and what not.

The manager is impersonated by its user name, without any group that has rights.  Beside each right stands its nearest neighbour, which is
refused.
"""

import secrets
from collections.abc import Iterator

import pytest

from tests.support.api import a_source, a_sync, an_inventory
from tests.support.chart_install import Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import PlainApi, Reply, eventually, install_crds
from tools.render_install import install_objects

pytestmark = pytest.mark.cluster

OURS = "/apis/gitops-ctl.dev/v1alpha1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    yield api
    api.close()


@pytest.fixture(scope="module")
def chart(admin: PlainApi) -> Iterator[Installation]:
    """The manager and its tenant share a namespace here; a second namespace belongs to nobody."""
    namespace = f"rights-{secrets.token_hex(4)}"
    for name in (namespace, f"{namespace}-other"):
        assert admin.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
        for secret in ("git", "unnamed"):
            admin.post(f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": secret}, "stringData": {"a": "b"}})
        admin.post(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "ca"}, "data": {"ca.crt": "a"}})
    tenant = {"namespace": namespace, "serviceAccounts": ["applier"], "secrets": ["git"], "configMaps": ["ca"]}
    with installed_chart(admin, namespace, {"tenants": [tenant]}) as installation:
        yield installation
    for name in (namespace, f"{namespace}-other"):
        admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def manager(admin: PlainApi, chart: Installation) -> Iterator[PlainApi]:
    client = admin.acting_as(chart.manager, "system:serviceaccounts", f"system:serviceaccounts:{chart.namespace}")
    eventually(lambda: client.get(f"{OURS}/syncs").status == 200)
    eventually(lambda: client.get(f"/api/v1/namespaces/{chart.namespace}/configmaps/ca").status == 200)
    yield client
    client.close()


def is_forbidden(reply: Reply) -> bool:
    return reply.status == 403 and "cannot" in reply.message


def test_the_manager_follows_its_kinds_and_changes_nothing_of_them_but_finalizers_of_syncs(
    admin: PlainApi, manager: PlainApi, chart: Installation
):
    for plural, tree in (("gitsources", a_source()), ("syncs", a_sync())):
        place = f"{OURS}/namespaces/{chart.namespace}/{plural}"
        named = f"{place}/{tree['metadata']['name']}"
        own = {**tree, "metadata": {**tree["metadata"], "namespace": chart.namespace}}
        assert is_forbidden(manager.post(place, own))
        assert admin.post(place, own).status == 201
        assert manager.get(f"{OURS}/{plural}?limit=1").status == 200
        assert is_forbidden(manager.delete(named))
        for finalizers in (["gitops-ctl.dev/finalizer"], None):
            reply = manager.merge(named, {"metadata": {"finalizers": finalizers}})
            assert reply.status == 200 if plural == "syncs" else is_forbidden(reply)


def test_the_manager_writes_statuses_by_server_side_apply(admin: PlainApi, manager: PlainApi, chart: Installation):
    place = f"{OURS}/namespaces/{chart.namespace}/syncs"
    tree = a_sync(namespace=chart.namespace, name="reported")
    assert admin.post(place, tree).status == 201
    status = {
        "apiVersion": tree["apiVersion"],
        "kind": "Sync",
        "metadata": {"name": "reported", "namespace": chart.namespace},
        "status": {"observedGeneration": 1},
    }
    written = manager.apply(f"{place}/reported/status", status, manager="gitops-ctl-status")
    assert (written.status, written.body["status"]) == (200, {"observedGeneration": 1})


def test_the_manager_keeps_inventories(manager: PlainApi, chart: Installation):
    place = f"{OURS}/namespaces/{chart.namespace}/inventories"
    tree = an_inventory(namespace=chart.namespace)
    assert manager.post(place, tree).status == 201
    stored = manager.get(f"{place}/fabric-0").body
    shorter = {**stored, "spec": {**stored["spec"], "entries": []}}
    assert manager.request("PUT", f"{place}/fabric-0", shorter).status == 200
    assert manager.get(f"{OURS}/inventories?limit=1").status == 200
    assert is_forbidden(manager.merge(f"{place}/fabric-0", {"metadata": {"labels": {"a": "b"}}}))
    assert manager.delete(f"{place}/fabric-0").status == 200


def test_the_manager_acts_as_the_accounts_of_its_tenants_and_nobody_else(admin: PlainApi, chart: Installation):
    """Asked of the authoriser itself: one request cannot impersonate twice."""

    def may(namespace: str, resource: str, name: str) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": chart.manager,
                "groups": ["system:authenticated", "system:serviceaccounts"],
                "resourceAttributes": {
                    "namespace": namespace,
                    "verb": "impersonate",
                    "resource": resource,
                    "name": name,
                },
            },
        }
        answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer.status == 201
        return bool(answer.body["status"]["allowed"])

    assert may(chart.namespace, "serviceaccounts", "applier")
    assert not may(chart.namespace, "serviceaccounts", "default")
    assert not may(chart.namespace, "serviceaccounts", "")
    assert not may(f"{chart.namespace}-other", "serviceaccounts", "applier")
    assert not may("kube-system", "serviceaccounts", "generic-garbage-collector")
    assert not may("", "users", "admin")
    assert not may("", "groups", "system:masters")


@pytest.mark.parametrize("plural", ["secrets", "configmaps"])
def test_the_manager_reads_what_a_tenant_names_and_no_neighbour_of_it(
    manager: PlainApi, chart: Installation, plural: str
):
    named, unnamed = ("git", "unnamed") if plural == "secrets" else ("ca", "kube-root-ca.crt")
    own = f"/api/v1/namespaces/{chart.namespace}/{plural}"
    assert manager.get(f"{own}/{named}").status == 200
    assert is_forbidden(manager.get(f"{own}/{unnamed}"))
    assert is_forbidden(manager.get(f"/api/v1/namespaces/{chart.namespace}-other/{plural}/{named}"))
    assert is_forbidden(manager.merge(f"{own}/{named}", {"metadata": {"labels": {"a": "b"}}}))


def test_no_secret_is_ever_listed_and_no_other_kind_is_written(manager: PlainApi, chart: Installation):
    assert is_forbidden(manager.get("/api/v1/secrets"))
    assert is_forbidden(manager.get(f"/api/v1/namespaces/{chart.namespace}/secrets"))
    assert manager.get("/api/v1/configmaps?limit=1").status == 200
    assert manager.get("/apis/apps/v1/deployments?limit=1").status == 200
    made = {"metadata": {"name": "new"}, "data": {}}
    assert is_forbidden(manager.post(f"/api/v1/namespaces/{chart.namespace}/configmaps", made))
    role = {"metadata": {"name": "more"}, "rules": []}
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{chart.namespace}/roles"
    assert is_forbidden(manager.post(roles, role))


def test_the_manager_holds_its_lease_and_no_other(admin: PlainApi, manager: PlainApi, chart: Installation):
    place = LEASES.format(chart.namespace)
    lease = {"metadata": {"name": "gitops-ctl-manager"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    assert manager.post(place, lease).status == 201
    held = manager.get(f"{place}/gitops-ctl-manager").body
    held["spec"]["holderIdentity"] = "b"
    assert manager.request("PUT", f"{place}/gitops-ctl-manager", held).status == 200
    assert is_forbidden(manager.delete(f"{place}/gitops-ctl-manager"))
    admin.post(place, {"metadata": {"name": "foreign"}, "spec": {}})
    assert is_forbidden(manager.get(f"{place}/foreign"))
    assert is_forbidden(manager.post(LEASES.format("kube-system"), lease))


def test_the_manager_reports_events_in_any_namespace(manager: PlainApi, chart: Installation):
    place = f"/apis/events.k8s.io/v1/namespaces/{chart.namespace}-other/events"
    event = {
        "metadata": {"name": f"fabric.{secrets.token_hex(4)}"},
        "eventTime": "2026-11-30T08:00:00.000000Z",
        "reportingController": "gitops-ctl.dev/manager",
        "reportingInstance": "a",
        "action": "Apply",
        "reason": "Succeeded",
        "type": "Normal",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": f"{chart.namespace}-other"},
    }
    assert manager.post(place, event).status == 201
    assert (
        manager.merge(
            f"{place}/{event['metadata']['name']}", {"series": {"count": 2, "lastObservedTime": event["eventTime"]}}
        ).status
        == 200
    )
    assert is_forbidden(manager.get(place))


def test_the_manager_knows_which_cluster_it_is_in(manager: PlainApi):
    assert manager.get("/api/v1/namespaces/kube-system").body["metadata"]["uid"]
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert manager.get(f"{crds}/syncs.gitops-ctl.dev").status == 200
    assert is_forbidden(manager.delete(f"{crds}/syncs.gitops-ctl.dev"))
    # Listing is the right of the informers; without them this would be forbidden too.
    assert is_forbidden(manager.get(f"{crds}/other.example.net"))


def test_the_shipped_manifests_can_be_installed_as_they_are(admin: PlainApi):
    """A dry run: the file is meant for a cluster, not for the namespaces of this one."""
    paths = {
        "Namespace": "/api/v1/namespaces/{1}",
        "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{1}",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles/{1}",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{1}",
        "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{1}",
        "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{1}",
    }
    namespaced = {
        "ServiceAccount": "/api/v1/namespaces/{0}/serviceaccounts/{1}",
        "ConfigMap": "/api/v1/namespaces/{0}/configmaps/{1}",
        "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{0}/roles/{1}",
        "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{0}/rolebindings/{1}",
        "Deployment": "/apis/apps/v1/namespaces/{0}/deployments/{1}",
    }
    for tree in install_objects():
        # A dry run makes no namespace, so what lives in ours is tried in `default`.
        metadata = {**tree["metadata"], **({"namespace": "default"} if "namespace" in tree["metadata"] else {})}
        path = {**paths, **namespaced}[tree["kind"]].format("default", metadata["name"])
        reply = admin.apply(f"{path}?dryRun=All&fieldValidation=Strict", {**tree, "metadata": metadata})
        assert reply.status in (200, 201), reply.message
        assert reply.warning == ""

"""Who may write what of a TopologySource, and which references it may have, on a real API server (topology-scheduling.md, 1.4, 3.2, 15).

The policies judge only objects with the label of this module's chart, because the kind has no namespace.  Rules of the definition itself are
in tests/cluster/test_crds.py, too; here they stand under the numbers of the contract.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.doubles.peer_crds import kueue_crds
from tests.support.api_topology import a_reference, a_topology_source, in_config_map, on_webhook
from tests.support.chart_install import CHART_LABEL, Installation, installed_chart
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import CRDS_PATH, PlainApi, Reply, eventually, install_crds

pytestmark = pytest.mark.cluster

SOURCES = "/apis/worker.gpustack.ai/v1alpha1/topologysources"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
DIGEST = "sha256:" + "0a" * 32
EDITOR, POINTER = "rack-editor@example.net", "inventory-owner@example.net"


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlaneHandle) -> Iterator[PlainApi]:
    api = PlainApi(control_plane)
    install_crds(api)
    (queues,) = (tree for tree in kueue_crds() if tree["spec"]["names"]["kind"] == "ClusterQueue")
    assert api.apply(f"{CRDS_PATH}/{queues['metadata']['name']}", queues).status in (200, 201)
    eventually(lambda: api.get(QUEUES).status == 200)
    yield api
    api.close()


@pytest.fixture(scope="module")
def chart(admin: PlainApi) -> Iterator[Installation]:
    namespace = f"topology-{secrets.token_hex(4)}"
    assert admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    values = {
        "tenants": [{"namespace": namespace, "serviceAccounts": ["applier"]}],
        "scheduling": {"workerNamespace": f"{namespace}-worker"},
    }
    with installed_chart(admin, namespace, values) as installation, _rights(admin, namespace):
        stranger = admin.acting_as(EDITOR)
        for probe in (
            labelled(in_config_map(configMapRef=a_reference("a", "default")), installation),
            labelled(on_webhook(bearerTokenSecretRef=a_reference("t", f"{namespace}-worker")), installation),
            labelled(annotated(a_topology_source(), **{"gitops-ctl.dev/allow-node-drop": DIGEST}), installation),
        ):
            eventually(lambda probe=probe: stranger.post(f"{SOURCES}?dryRun=All", probe).status == 403)
        stranger.close()
        yield installation
        _remove_all(admin, installation)
    admin.delete(f"/api/v1/namespaces/{namespace}")


class _rights:  # noqa: N801  a context manager that is used as one
    """Both persons may do everything with sources and queues; only one of them has the verb `endpoint`."""

    def __init__(self, admin: PlainApi, name: str) -> None:
        self.admin, self.name = admin, name

    def __enter__(self) -> None:
        everything = ["get", "list", "create", "update", "patch", "delete"]
        rules = [
            {"apiGroups": ["worker.gpustack.ai"], "resources": ["topologysources"], "verbs": everything},
            {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"], "verbs": everything},
        ]
        endpoint = {"apiGroups": ["worker.gpustack.ai"], "resources": ["topologysources"], "verbs": ["endpoint"]}
        for suffix, granted, people in (("edit", rules, [EDITOR, POINTER]), ("endpoint", [endpoint], [POINTER])):
            role = f"{self.name}-{suffix}"
            meta = {"metadata": {"name": role}}
            assert self.admin.post(ROLES, {**meta, "rules": granted}).status == 201
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name} for name in people]
            made = self.admin.post(BINDINGS, {**meta, "roleRef": reference, "subjects": subjects})
            assert made.status == 201, made.body

    def __exit__(self, *_: object) -> None:
        for suffix in ("edit", "endpoint"):
            self.admin.delete(f"{BINDINGS}/{self.name}-{suffix}")
            self.admin.delete(f"{ROLES}/{self.name}-{suffix}")


def _remove_all(admin: PlainApi, chart: Installation) -> None:
    for place in (SOURCES, QUEUES):
        admin.delete(f"{place}?labelSelector={CHART_LABEL}%3D{chart.namespace}")


Identity = Callable[[str], PlainApi]


@pytest.fixture
def who(admin: PlainApi, chart: Installation) -> Iterator[Identity]:
    """Clients by role; objects that a test left are removed afterwards."""
    clients = {
        "editor": admin.acting_as(EDITOR),
        "pointer": admin.acting_as(POINTER),
        "applier": admin.acting_as(f"system:serviceaccount:{chart.namespace}:applier", "system:masters"),
        "manager": admin.acting_as(chart.manager, "system:masters"),
        "person": admin.acting_as("network-author@example.net", "system:masters"),
    }
    yield clients.__getitem__
    for client in clients.values():
        client.close()
    _remove_all(admin, chart)


def labelled(tree: dict[str, Any], chart: Installation) -> dict[str, Any]:
    """The object where the policies of this module look, with a name of its own, and references to its worker namespace."""
    spec = _moved(tree["spec"], chart) if tree["kind"] == "TopologySource" else tree["spec"]
    name = f"{chart.namespace}-{tree['metadata']['name']}"
    metadata = {**tree["metadata"], "name": name, "labels": {CHART_LABEL: chart.namespace}}
    return {**tree, "metadata": metadata, "spec": spec}


def _moved(value: Any, chart: Installation) -> Any:
    """References to the usual worker namespace become references to that of the chart."""
    if not isinstance(value, dict):
        return value
    return {
        key: f"{chart.namespace}-worker" if (key, item) == ("namespace", "gpustack-system") else _moved(item, chart)
        for key, item in value.items()
    }


def annotated(tree: dict[str, Any], **annotations: str) -> dict[str, Any]:
    return {**tree, "metadata": {**tree["metadata"], "annotations": annotations}}


def refused(reply: Reply, policy: str) -> bool:
    return reply.status == 403 and f"gitops-ctl-topology-{policy}" in reply.message


ACCEPTED = {
    "case 1: base": a_topology_source(),
    "case 2: a write prefix": in_config_map(more={"additionalWritePrefix": "datacenter.example/"}),
    "case 3: configMap arm": in_config_map(),
    "case 4: webhook arm": on_webhook(),
    "case 9: 16 levels": a_topology_source(levels=[f"example.net/level-{number}" for number in range(16)]),
}
REFUSED = {
    "case 5: no arm": a_topology_source(nodeLabels=None),
    "case 6: two arms": a_topology_source(configMap=in_config_map()["spec"]["configMap"]),
    "case 7: hostname": a_topology_source(levels=["kubernetes.io/hostname"]),
    "case 8: 17 levels": a_topology_source(levels=[f"example.net/level-{number}" for number in range(17)]),
    "case 10: no levels": a_topology_source(levels=[]),
    "case 11: a prefix for a reading arm": a_topology_source(additionalWritePrefix="datacenter.example/"),
    "case 12: a kept prefix": in_config_map(more={"additionalWritePrefix": "fabric.topograph.run/"}),
    "case 13: below a kept prefix": in_config_map(more={"additionalWritePrefix": "private.kubernetes.io/"}),
    "case 14: user info": on_webhook(url="https://user:word@inventory.example.net/"),
    "case 15: http": on_webhook(url="http://inventory.example.net/"),
    "case 16: ftp": on_webhook(url="ftp://inventory.example.net/"),
    "case 17: a fragment": on_webhook(url="https://inventory.example.net/#hall"),
    "case 18: both credentials": on_webhook(tlsClientCertificateSecretRef=a_reference("pair")),
}


@pytest.mark.parametrize("version", ["v1alpha1", "v1"])
@pytest.mark.parametrize("case", ACCEPTED)
def test_the_good_cases_are_accepted_in_both_versions(who: Identity, chart: Installation, case: str, version: str):
    tree = {**labelled(ACCEPTED[case], chart), "apiVersion": f"worker.gpustack.ai/{version}"}
    place = SOURCES.replace("v1alpha1", version)
    assert who("pointer").post(f"{place}?dryRun=All&fieldValidation=Strict", tree).message == ""


@pytest.mark.parametrize("case", REFUSED)
def test_the_bad_cases_are_refused_by_the_definition(who: Identity, chart: Installation, case: str):
    assert who("pointer").post(f"{SOURCES}?dryRun=All", labelled(REFUSED[case], chart)).status == 422


REFERENCES = {
    "case 19: configMapRef": (in_config_map(configMapRef=a_reference("a", "default")), "configMap.configMapRef"),
    "caBundleConfigMapRef": (on_webhook(caBundleConfigMapRef=a_reference("a", "default")), "caBundleConfigMapRef"),
    "bearerTokenSecretRef": (on_webhook(bearerTokenSecretRef=a_reference("a", "default")), "bearerTokenSecretRef"),
    "tlsClientCertificateSecretRef": (
        on_webhook(bearerTokenSecretRef=None, tlsClientCertificateSecretRef=a_reference("a", "default")),
        "tlsClientCertificateSecretRef",
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_leads_into_the_worker_namespace_only(who: Identity, chart: Installation, name: str):
    tree, field = REFERENCES[name]
    reply = who("pointer").post(f"{SOURCES}?dryRun=All", labelled(tree, chart))
    assert refused(reply, "references")
    assert f"{field}.namespace must be {chart.namespace}-worker" in reply.message


def test_a_source_from_before_the_rule_can_lose_its_finalizer_and_nothing_else_wrong_can_come_in(
    admin: PlainApi, who: Identity, chart: Installation
):
    tree = labelled(in_config_map(configMapRef=a_reference("a", "default")), chart)
    tree["metadata"] = {"name": tree["metadata"]["name"], "finalizers": ["worker.gpustack.ai/topology-source"]}
    named = f"{SOURCES}/{tree['metadata']['name']}"
    assert admin.post(SOURCES, tree).status == 201  # without the label no policy of this chart judges it
    assert admin.merge(named, {"metadata": {"labels": {CHART_LABEL: chart.namespace}}}).status == 200
    changed = who("editor").merge(named, {"spec": {"levels": ["example.net/rack"]}})
    assert refused(changed, "references")
    assert who("editor").merge(named, {"metadata": {"finalizers": []}}).status == 200
    assert admin.delete(named).status == 200


def test_without_the_parameter_every_write_is_denied(admin: PlainApi, who: Identity, chart: Installation):
    place = f"/api/v1/namespaces/{chart.namespace}/configmaps/gitops-ctl-topology"
    kept = admin.get(place).body
    tree = labelled(a_topology_source(), chart)
    assert admin.delete(place).status == 200
    try:
        eventually(lambda: "no params found" in who("pointer").post(f"{SOURCES}?dryRun=All", tree).message)
    finally:
        body = {"metadata": {"name": kept["metadata"]["name"]}, "data": kept["data"]}
        assert admin.post(place.rpartition("/")[0], body).status == 201
    eventually(lambda: who("pointer").post(f"{SOURCES}?dryRun=All", tree).status == 201)


# The verb `endpoint`.


def test_a_webhook_is_created_only_with_the_verb_endpoint(who: Identity, chart: Installation):
    tree = labelled(on_webhook(), chart)
    reply = who("editor").post(SOURCES, tree)
    assert refused(reply, "endpoints")
    assert EDITOR in reply.message
    assert who("pointer").post(SOURCES, tree).status == 201


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://elsewhere.example.net/"},
        {"bearerTokenSecretRef": {"name": "other"}},
        {"caBundleConfigMapRef": {"namespace": "WORKER", "name": "other-ca"}},
        {"bearerTokenSecretRef": None, "tlsClientCertificateSecretRef": {"namespace": "WORKER", "name": "pair"}},
    ],
    ids=" ".join,
)
def test_where_a_webhook_points_and_what_it_shows_changes_only_with_the_verb(
    who: Identity, chart: Installation, change: dict[str, Any]
):
    tree = labelled(on_webhook(), chart)
    named = f"{SOURCES}/{tree['metadata']['name']}"
    assert who("pointer").post(SOURCES, tree).status == 201
    patch = {"spec": {"webhook": _worker(change, f"{chart.namespace}-worker")}}
    assert refused(who("editor").merge(f"{named}?dryRun=All", patch), "endpoints")
    assert who("pointer").merge(f"{named}?dryRun=All", patch).message == ""


def _worker(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _worker(item, namespace) for key, item in value.items()}
    return namespace if value == "WORKER" else value


@pytest.mark.parametrize(
    "change",
    [
        {"webhook": {"pollInterval": "5m"}},
        {"levels": ["example.net/rack"]},
        {"webhook": None, "nodeLabels": {}},
    ],
    ids=" ".join,
)
def test_everything_else_of_a_webhook_source_changes_without_the_verb(
    who: Identity, chart: Installation, change: dict[str, Any]
):
    tree = labelled(on_webhook(), chart)
    assert who("pointer").post(SOURCES, tree).status == 201
    reply = who("editor").merge(f"{SOURCES}/{tree['metadata']['name']}", {"spec": change})
    assert reply.message == ""


def test_taking_the_certificate_bundle_away_needs_the_verb_and_giving_it_back_too(who: Identity, chart: Installation):
    """Without it every authority of the system may vouch for whoever gets the token."""
    tree = labelled(on_webhook(caBundleConfigMapRef=a_reference("ca")), chart)
    named = f"{SOURCES}/{tree['metadata']['name']}"
    assert who("pointer").post(SOURCES, tree).status == 201
    gone = {"spec": {"webhook": {"caBundleConfigMapRef": None}}}
    assert refused(who("editor").merge(named, gone), "endpoints")
    assert who("pointer").merge(named, gone).status == 200
    assert who("editor").merge(named, {"spec": {"webhook": {"pollInterval": "5m"}}}).message == ""
    back = {"spec": {"webhook": {"caBundleConfigMapRef": tree["spec"]["webhook"]["caBundleConfigMapRef"]}}}
    assert refused(who("editor").merge(named, back), "endpoints")


# Consents.


def a_queue(chart: Installation) -> dict[str, Any]:
    return labelled(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "pool"},
            "spec": {"namespaceSelector": {}},
        },
        chart,
    )


CONSENTS = {
    "gitops-ctl.dev/allow-drain": (QUEUES, DIGEST),
    "gitops-ctl.dev/drain-window": (QUEUES, "2026-11-30T22:00:00Z/2026-12-01T04:00:00Z"),
    "gitops-ctl.dev/allow-node-drop": (SOURCES, DIGEST),
}


@pytest.mark.parametrize("key", CONSENTS)
def test_a_consent_is_written_by_the_account_of_a_sync_only_and_taken_away_by_anybody(
    who: Identity, chart: Installation, key: str
):
    place, value = CONSENTS[key]
    tree = a_queue(chart) if place == QUEUES else labelled(a_topology_source(), chart)
    named = f"{place}/{tree['metadata']['name']}"
    for role in ("person", "manager"):
        reply = who(role).post(f"{place}?dryRun=All", annotated(tree, **{key: value}))
        assert refused(reply, "consents")
        assert f"{key} is written by the ServiceAccount of a Sync only" in reply.message
    assert who("person").post(place, tree).status == 201
    written = {"metadata": {"annotations": {key: value}}}
    assert refused(who("person").merge(named, written), "consents")
    assert who("applier").merge(named, written).status == 200
    assert who("manager").merge(named, {"metadata": {"annotations": {"example.net/note": "a"}}}).status == 200
    other = {"metadata": {"annotations": {key: value.replace("0", "1")}}}
    assert refused(who("person").merge(named, other), "consents")
    assert who("person").merge(named, {"metadata": {"annotations": {key: None}}}).status == 200


def test_the_preferred_version_is_the_second_one(admin: PlainApi):
    group = admin.get("/apis/worker.gpustack.ai").body
    assert group["preferredVersion"]["version"] == "v1"
    assert {item["version"] for item in group["versions"]} == {"v1", "v1alpha1"}
    names = admin.get("/apis/worker.gpustack.ai/v1").body["resources"]
    (found,) = (item for item in names if item["name"] == "topologysources")
    assert (found["shortNames"], found["categories"], found["namespaced"]) == (["toposrc"], ["gpustack"], False)


def test_one_object_is_read_and_shown_in_both_versions(admin: PlainApi, who: Identity, chart: Installation):
    tree = labelled(a_topology_source(version="v1"), chart)
    name = tree["metadata"]["name"]
    v1 = SOURCES.replace("v1alpha1", "v1")
    assert who("pointer").post(v1, tree).status == 201
    condition = {"type": "Ready", "status": "True", "reason": "Observed", "lastTransitionTime": "2026-11-30T08:00:00Z"}
    status = {"sourceKind": "NodeLabels", "lastSuccessfulRevision": "r1", "conditions": [condition]}
    assert admin.merge(f"{SOURCES}/{name}/status", {"status": status}).status == 200
    for place in (SOURCES, v1):
        accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
        table = admin.get(f"{place}?includeObject=None&fieldSelector=metadata.name%3D{name}", accept=accept).body
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Kind", "Revision", "Ready"]
        assert table["rows"][0]["cells"] == [name, "NodeLabels", "r1", "True"]
        assert admin.get(f"{place}/{name}").body["spec"] == tree["spec"]

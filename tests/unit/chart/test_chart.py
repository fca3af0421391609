"""What the chart renders: valid objects, a confined pod, and the least rights.

In scope: rendering without a cluster.  That the API server enforces the policies is in tests/cluster/test_admission_*.py.
"""

import json
from typing import Any

import helm_python
import kubernetes_validate
import pytest

from gitops_ctl.api.crd import kind_of
from gitops_ctl.api.kinds import ALL_KINDS, definition_name
from gitops_ctl.cli.manager import manager
from gitops_ctl.cli.topologyoptions import topology_options
from tools.render_install import CHART, TARGET, chart_objects, install_objects, install_text, main

TENANTS = [
    {"namespace": "team-a", "serviceAccounts": ["applier", "reader"], "secrets": ["git"], "configMaps": ["ca"]},
    {"namespace": "team-b", "serviceAccounts": ["applier"]},
]
WORKERS = [
    {
        "namespace": "team-a",
        "clusters": [{"name": "north", "talosconfig": "north-talos", "kubeconfig": "north-kube"}],
        "machines": [{"name": "cp-1", "config": "cp-1-config"}],
    },
    {"namespace": "team-b", "clusters": [{"name": "south", "talosconfig": "south-talos"}]},
]
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "tenants": {"tenants": TENANTS},
    "everything": {
        "tenants": TENANTS,
        "workers": WORKERS,
        "replicas": 2,
        "webhook": {"enabled": True, "port": 8443},
        "scheduling": {
            "workerNamespace": "topology",
            "createNamespace": False,
            "options": {"reference-defaults": True, "mixed-on-node": False, "admission-checks": ["a", "b"]},
        },
        "admission": {"restorers": ["restorer@example.net"]},
        "image": {"repository": "images.example.net/gitops-ctl", "tag": "1.2.3"},
        "imagePullSecrets": [{"name": "pull"}],
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "net"},
        "podAnnotations": {"note": "a"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "resources": {"limits": {"memory": "2Gi"}},
    },
    "without admission and informers": {"admission": {"enabled": False}, "informers": []},
}


SCHEDULING = "gitops-ctl-scheduling"


def of_kind(objects: list[dict[str, Any]], kind: str, name: str = "") -> list[dict[str, Any]]:
    return [tree for tree in objects if tree["kind"] == kind and name in ("", tree["metadata"]["name"])]


def the(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    found = of_kind(objects, kind, name)
    assert len(found) == 1
    return found[0]


@pytest.fixture(params=VALUES, name="objects")
def _objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return chart_objects(VALUES[request.param])


def test_every_object_is_valid(objects):
    for tree in objects:
        kubernetes_validate.validate(tree, "1.36", strict=True)


def test_the_chart_passes_the_linter():
    warning = 2
    assert [item for item in helm_python.lint(CHART)["messages"] if item["severity"] >= warning] == []


def test_the_pod_is_confined(objects):
    pod = the(objects, "Deployment", "gitops-ctl-manager")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert len(pod["containers"]) == 1
    assert {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume} == {"cache", "tmp"}
    assert len(pod["volumes"]) == 2
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert "memory" in container["resources"]["limits"]


def test_the_pod_has_probes_and_hands_over_without_a_gap(objects):
    deployment = the(objects, "Deployment", "gitops-ctl-manager")["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}
    assert f"--health-address=0.0.0.0:{ports['health']}" in container["args"]
    assert f"--metrics-address=0.0.0.0:{ports['metrics']}" in container["args"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_the_selector_matches_the_pod_and_nothing_that_changes(objects):
    spec = the(objects, "Deployment", "gitops-ctl-manager")["spec"]
    chosen = spec["selector"]["matchLabels"]
    assert chosen.items() <= spec["template"]["metadata"]["labels"].items()
    assert "app.kubernetes.io/version" not in chosen


def rules_of(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rule for kind in ("ClusterRole", "Role") for tree in of_kind(objects, kind) for rule in tree["rules"]]


def test_no_rule_says_everything(objects):
    for rule in rules_of(objects):
        for part in ("verbs", "resources", "apiGroups"):
            assert "*" not in rule[part]


def test_secrets_are_read_by_name_in_a_tenant_only(objects):
    for tree in of_kind(objects, "ClusterRole"):
        assert all("secrets" not in rule["resources"] for rule in tree["rules"])
    for rule in rules_of([tree for tree in objects if tree["metadata"]["name"] != SCHEDULING]):
        if "secrets" in rule["resources"]:
            assert (rule["verbs"], rule["resourceNames"]) == (["get"], ["git"])


def test_scheduling_reads_secrets_of_the_worker_namespace_only(objects):
    role = the(objects, "Role", SCHEDULING)
    assert role["metadata"]["namespace"] in ("gpustack-system", "topology")
    assert {"secrets", "configmaps", "nodefeatures"} == {name for rule in role["rules"] for name in rule["resources"]}
    told = {name: rule["verbs"] for rule in role["rules"] for name in rule["resources"]}
    assert told["secrets"] == ["get", "list", "watch"]
    assert told["configmaps"] == ["get", "list", "watch"]


def test_the_worker_namespace_is_made_kept_and_named_once():
    objects = chart_objects()
    (namespace,) = of_kind(objects, "Namespace")
    assert namespace["metadata"]["name"] == "gpustack-system"
    assert namespace["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    other = chart_objects(VALUES["everything"])
    assert of_kind(other, "Namespace") == []
    assert the(other, "ConfigMap", "gitops-ctl-topology")["data"] == {"workerNamespace": "topology"}
    assert the(other, "Role", SCHEDULING)["metadata"]["namespace"] == "topology"
    assert "--worker-namespace=topology" in arguments(other)


def test_options_of_scheduling_become_flags_that_the_manager_takes():
    told = arguments(chart_objects(VALUES["everything"]))
    assert told[-5:] == [
        "--worker-namespace=topology",
        "--admission-checks=a",
        "--admission-checks=b",
        "--no-mixed-on-node",
        "--reference-defaults",
    ]
    with manager.make_context("manager", [text for text in told[1:] if "$" not in text]) as context:
        assert context.params["admission_checks"] == ("a", "b")


def test_every_flag_of_scheduling_can_be_set_by_a_value():
    schema = json.loads((CHART / "values.schema.json").read_text())
    named = set(schema["properties"]["scheduling"]["properties"]["options"]["properties"])

    @topology_options
    def probe(**_: object) -> None:
        """Only its options count."""

    flags = {parameter.opts[0].removeprefix("--") for parameter in probe.__click_params__}  # type: ignore[attr-defined]
    assert named == flags - {"worker-namespace"}


def arguments(objects: list[dict[str, Any]]) -> list[str]:
    deployment = the(objects, "Deployment", "gitops-ctl-manager")
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def test_nobody_is_impersonated_but_the_accounts_of_tenants(objects):
    for tree in (*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")):
        for rule in tree["rules"]:
            if "impersonate" in rule["verbs"]:
                assert tree["metadata"]["name"] == "gitops-ctl-tenant"
                assert rule["resources"] == ["serviceaccounts"]
                assert rule["resourceNames"]


def test_no_right_reaches_rbac_or_workloads(objects):
    """The manager applies as the accounts of Syncs, so beside looking it has no right over what is applied.

    What scheduling writes is its own: the next test names it.
    """
    for rule in rules_of([tree for tree in objects if tree["metadata"]["name"] != SCHEDULING]):
        ours = {"gitops-ctl.dev", "ichor.maesh.dev", "events.k8s.io", "coordination.k8s.io"}
        if not set(rule["apiGroups"]) <= ours:
            assert set(rule["verbs"]) <= {"get", "list", "watch", "impersonate"}


def test_the_rights_of_the_manager_are_these():
    rules = the(chart_objects(), "ClusterRole", "gitops-ctl-manager")["rules"]
    told = {
        (group, resource): rule["verbs"]
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    look = ["list", "watch"]
    assert told == {
        ("gitops-ctl.dev", "gitsources"): ["get", *look],
        ("gitops-ctl.dev", "syncs"): ["get", *look, "patch"],
        ("gitops-ctl.dev", "proposals"): ["get", *look, "create", "patch"],
        ("gitops-ctl.dev", "proposals/status"): ["patch"],
        ("gitops-ctl.dev", "gitsources/status"): ["patch"],
        ("gitops-ctl.dev", "syncs/status"): ["patch"],
        ("gitops-ctl.dev", "inventories"): ["get", *look, "create", "update", "delete"],
        ("ichor.maesh.dev", "talosclusters"): ["get", *look],
        ("ichor.maesh.dev", "talosmachines"): ["get", *look],
        ("ichor.maesh.dev", "talosconfigpatches"): ["get", *look],
        ("ichor.maesh.dev", "talosoperations"): ["get", *look, "create"],
        ("ichor.maesh.dev", "talosclusters/status"): ["patch"],
        ("ichor.maesh.dev", "talosmachines/status"): ["patch"],
        ("ichor.maesh.dev", "talosoperations/status"): ["patch"],
        ("events.k8s.io", "events"): ["create", "patch"],
        ("apiextensions.k8s.io", "customresourcedefinitions"): ["get"],
        ("", "namespaces"): ["get"],
    }


def test_the_rights_of_scheduling_are_these():
    rules = rules_of([tree for tree in chart_objects() if tree["metadata"]["name"] == SCHEDULING])
    told = {
        (group, resource): rule["verbs"]
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    look = ["list", "watch"]
    assert told == {
        ("worker.gpustack.ai", "topologysources"): ["get", *look, "patch"],
        ("worker.gpustack.ai", "topologysources/status"): ["patch"],
        ("", "nodes"): [*look, "patch"],
        ("kueue.x-k8s.io", "topologies"): ["get", *look, "create", "delete"],
        ("kueue.x-k8s.io", "resourceflavors"): [*look, "create", "update", "delete"],
        ("kueue.x-k8s.io", "clusterqueues"): ["get", *look, "patch"],
        ("kueue.x-k8s.io", "clusterqueues/status"): ["patch"],
        ("kueue.x-k8s.io", "admissionchecks"): look,
        ("", "configmaps"): ["get", *look],
        ("", "secrets"): ["get", *look],
        ("nfd.k8s-sigs.io", "nodefeatures"): [*look, "create", "update", "delete"],
    }


def test_every_kind_of_ours_that_is_stored_has_rights():
    told = {resource for rule in rules_of(chart_objects()) for resource in rule["resources"]}
    stored = {kind_of(model).plural for model in ALL_KINDS}
    # Stored, and read by no controller of this release: a right that nobody uses is not given.
    assert stored - told == {"ciscodevices", "iosxesoftwarerollouts", "iosxesoftwareupgrades"}


def test_every_binding_gives_its_role_to_the_manager_alone_or_to_the_worker_of_its_namespace(objects):
    for kind, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        for tree in of_kind(objects, kind):
            namespace = tree["metadata"].get("namespace")
            is_worker = tree["metadata"]["name"] == "gitops-ctl-worker"
            name = "gitops-ctl-worker" if is_worker else "gitops-ctl-manager"
            places = [namespace or "team-a", *([] if namespace else ["team-b"])] if is_worker else ["gitops-ctl-system"]
            wanted = [{"kind": "ServiceAccount", "name": name, "namespace": place} for place in places]
            assert tree["subjects"] == wanted
            named = of_kind(objects, role, tree["roleRef"]["name"])
            assert [item for item in named if item["metadata"].get("namespace") == namespace]


def test_a_tenant_gets_exactly_what_it_names():
    objects = chart_objects({"tenants": TENANTS})
    first, second = (tree for tree in of_kind(objects, "Role", "gitops-ctl-tenant"))
    assert (first["metadata"]["namespace"], second["metadata"]["namespace"]) == ("team-a", "team-b")
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in first["rules"]] == [
        (["serviceaccounts"], ["applier", "reader"], ["impersonate"]),
        (["secrets"], ["git"], ["get"]),
        (["configmaps"], ["ca"], ["get"]),
    ]
    assert [rule["verbs"] for rule in second["rules"]] == [["impersonate"]]


def test_the_definitions_that_are_read_are_those_of_our_kinds():
    rules = the(chart_objects(), "ClusterRole", "gitops-ctl-manager")["rules"]
    names = next(rule["resourceNames"] for rule in rules if "customresourcedefinitions" in rule["resources"])
    assert names == sorted(definition_name(model) for model in ALL_KINDS)


def test_a_worker_sees_the_talos_kinds_of_its_namespace_and_no_secret():
    objects = chart_objects({"workers": WORKERS})
    role = the([tree for tree in objects if tree["metadata"].get("namespace") == "team-a"], "Role", "gitops-ctl-worker")
    kinds = ["talosclusters", "talosmachines", "talosoperations"]
    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["ichor.maesh.dev"], kinds, ["get", "list", "watch"]),
        (["ichor.maesh.dev"], [f"{kind}/status" for kind in kinds], ["patch"]),
    ]
    assert the(objects, "ConfigMap", "gitops-ctl-admission")["data"]["workers"].split("\n") == [
        "system:serviceaccount:team-a:gitops-ctl-worker",
        "system:serviceaccount:team-b:gitops-ctl-worker",
    ]


def test_a_worker_sees_nothing_of_its_cluster_but_which_one_it_is():
    role = the(chart_objects({"workers": WORKERS}), "ClusterRole", "gitops-ctl-worker")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}
    ]
    assert not of_kind(chart_objects({}), "ClusterRole", "gitops-ctl-worker")


def test_a_worker_starts_without_its_secrets_and_is_told_how_to_probe():
    workers = [{**WORKERS[0], "serviceProbe": "on"}]
    pod = of_kind(chart_objects({"workers": workers}), "Deployment", "gitops-ctl-worker")[0]["spec"]["template"]["spec"]
    secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    secrets += [item["secret"] for volume in pod["volumes"] for item in volume.get("projected", {}).get("sources", ())]
    assert secrets
    assert all(secret["optional"] is True for secret in secrets)
    assert "--service-probe=on" in pod["containers"][0]["args"]


def test_a_worker_has_its_credentials_mounted_and_nothing_else_has_them():
    objects = chart_objects({"workers": WORKERS})
    first, second = of_kind(objects, "Deployment", "gitops-ctl-worker")
    pod = first["spec"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount.get("readOnly") for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {
        "/tmp": None,
        "/etc/gitops-ctl/clusters/north": True,
        "/etc/gitops-ctl/machines/cp-1": True,
    }
    cluster = next(volume for volume in pod["volumes"] if volume["name"] == "cluster-0")
    assert [source["secret"]["name"] for source in cluster["projected"]["sources"]] == ["north-talos", "north-kube"]
    assert len(second["spec"]["template"]["spec"]["volumes"]) == 2
    manager = the(objects, "Deployment", "gitops-ctl-manager")["spec"]["template"]["spec"]
    assert all("secret" not in volume and "projected" not in volume for volume in manager["volumes"])


def test_informers_look_and_nothing_else():
    role = the(
        chart_objects({"informers": [{"group": "apps", "resources": ["deployments"]}]}),
        "ClusterRole",
        "gitops-ctl-informers",
    )
    assert role["rules"] == [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list", "watch"]}]


def test_the_lists_of_the_policies_come_from_the_tenants():
    data = the(chart_objects(VALUES["everything"]), "ConfigMap", "gitops-ctl-admission")["data"]
    assert data["syncAccounts"].split("\n") == [
        "system:serviceaccount:team-a:applier",
        "system:serviceaccount:team-a:reader",
        "system:serviceaccount:team-b:applier",
    ]
    assert data["writers"].split("\n") == [
        "system:serviceaccount:gitops-ctl-system:gitops-ctl-manager",
        "restorer@example.net",
    ]


def test_without_tenants_the_list_is_left_to_whoever_names_the_first_account():
    assert set(the(chart_objects(), "ConfigMap", "gitops-ctl-admission")["data"]) == {"manager", "writers"}


def test_every_policy_denies_and_has_the_list_as_parameter_where_it_asks_who_writes():
    objects = chart_objects({"managedTopology": {"enabled": True, "namespaces": ["team-a"]}})
    policies = {tree["metadata"]["name"]: tree["spec"] for tree in of_kind(objects, "ValidatingAdmissionPolicy")}
    assert set(policies) == {f"gitops-ctl-{path.stem}" for path in (CHART / "policies").glob("*.yaml")}
    for binding in of_kind(objects, "ValidatingAdmissionPolicyBinding"):
        spec = binding["spec"]
        policy = policies.pop(spec["policyName"])
        assert policy["failurePolicy"] == "Fail"
        assert spec["validationActions"] == ["Deny"]
        is_about_namespaces = spec["policyName"] == "gitops-ctl-topology-references"
        # About Leases of everybody: the heartbeats of other Nodes must not depend on our ConfigMap.
        is_about_everybody = spec["policyName"] == "gitops-ctl-device-foreign-leases"
        reference = {
            "name": "gitops-ctl-topology" if is_about_namespaces else "gitops-ctl-admission",
            "namespace": "gitops-ctl-system",
            "parameterNotFoundAction": "Allow" if is_about_everybody else "Deny",
        }
        assert spec.get("paramRef") == (reference if "paramKind" in policy else None)
    assert policies == {}


def test_admission_can_be_left_out():
    objects = chart_objects({"admission": {"enabled": False}})
    assert not [tree for tree in objects if "Admission" in tree["kind"] or "admission" in tree["metadata"]["name"]]


@pytest.mark.parametrize(
    "values",
    [
        {"unknown": 1},
        {"replicas": 0},
        {"informers": [{"group": "", "resources": ["secrets"]}]},
        {"informers": [{"group": "", "resources": ["*"]}]},
        {"informers": [{"group": "*", "resources": ["pods"]}]},
        {"tenants": [{"namespace": "team-a", "serviceAccounts": []}]},
        {"tenants": [{"namespace": "team-a", "serviceAccounts": ["*"]}]},
        {"tenants": [{"namespace": "Team", "serviceAccounts": ["a"]}]},
        {"workers": [{"namespace": "team-a", "clusters": []}]},
        {"workers": [{"namespace": "team-a", "clusters": [{"name": "north"}]}]},
        {"admission": {"restorers": ["two words"]}},
        {"logLevel": "loud"},
        {"scheduling": {"options": {"no-such-option": True}}},
        {"scheduling": {"workerNamespace": "Two Words"}},
        {"scheduling": {"options": {"snapshot-drop-percent": 101}}},
    ],
    ids=str,
)
def test_wrong_values_are_refused(values):
    with pytest.raises(helm_python.HelmError):
        chart_objects(values)


def test_the_committed_manifests_are_fresh(capsys):
    assert TARGET.read_text() == install_text()
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_the_manifests_come_in_an_order_that_can_be_applied_and_belong_to_no_helm_release():
    kinds = [tree["kind"] for tree in install_objects()]
    assert kinds[: 1 + len(ALL_KINDS)] == ["Namespace", *["CustomResourceDefinition"] * len(ALL_KINDS)]
    assert kinds[-1] == "Deployment"
    assert "managed-by" not in install_text()

"""Who may do what to devices and rollouts, as the chart says it: roles, and where the policies are in force (rollouts.md, section 18).

That the API server enforces them is in tests/cluster/test_rollout_admission.py.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.api.ciscodevice_status import WORKER_MEMBERS
from gitops_ctl.api.softwareupgrade import MANAGER_MEMBERS
from gitops_ctl.fleet import names
from gitops_ctl.topology.options import Access, Options
from gitops_ctl.topology.worker_rights import WORKER_RIGHTS, role_problem
from gitops_ctl.topology.workers_plan import ROLE_PREFIX, Plane, Tenant, wanted_objects
from gitops_ctl.trust.kindverbs import device_verbs
from tools.render_install import CHART, chart_objects

ON: dict[str, Any] = {"managedTopology": {"enabled": True, "namespaces": ["team-a", "team-b"]}}
RW = {"get", "list", "watch", "update", "patch"}
ROLLOUTS, DEVICES = ("ops.cisco.vk", "iosxesoftwarerollouts"), ("cisco.vk", "ciscodevices")
DELEGATED = {
    "topology-author": (DEVICES, {*RW, "create", "topology"}, None),
    "rollout-planner": (ROLLOUTS, {*RW, "create", "delete", "control"}, None),
    "rollout-approver": (ROLLOUTS, {*RW, "approve"}, None),
    "rollout-activator": (ROLLOUTS, {*RW, "activate"}, None),
    "rollout-recoverer": (ROLLOUTS, {*RW, "recover"}, None),
    "topology-policy-admin": (
        ("", "configmaps"),
        {"get", "update", "patch", "topology"},
        ["gitops-ctl-topology-policy"],
    ),
    "topology-ledger-breakglass": (
        ("", "configmaps"),
        {"get", "update", "patch", "delete", "manage-ledger"},
        ["gitops-ctl-topology-ledger"],
    ),
}
READ = {"get", "list", "watch"}
OBSERVER = {
    DEVICES: READ,
    ROLLOUTS: {"list", "watch"},
    ("ops.cisco.vk", "iosxesoftwareupgrades"): READ,
    ("cisco.vk", "ciscodevices/status"): {"patch"},
}
LEASES = ("coordination.k8s.io", "leases")
WORKERS: dict[str, dict[tuple[str, str], set[str]]] = {
    "app-hosting-read-only": {("", "nodes"): {"get"}},
    "app-hosting-read-write": {("", "nodes"): {"get"}, ("", "nodes/status"): {"patch"}},
    "app-hosting-device-read": {DEVICES: {"list", "watch"}},
    "network-management-global-read": {("", "nodes"): {"get"}, ("", "pods"): {"list"}},
    "network-management-read-only": OBSERVER,
    "network-management-read-write": {**OBSERVER, ("ops.cisco.vk", "iosxesoftwareupgrades/status"): {"patch"}},
    "network-management-lease-read-only": {LEASES: {"get", "list"}},
    "network-management-lease-read-write": {LEASES: {"get", "list", "patch"}},
}


@cache
def rendered(*, on: bool) -> tuple[dict[str, Any], ...]:
    return tuple(chart_objects(ON if on else {}))


def the(kind: str, name: str) -> dict[str, Any]:
    [found] = [tree for tree in rendered(on=True) if (tree["kind"], tree["metadata"]["name"]) == (kind, name)]
    return found


def rights(role: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    return {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def policies() -> dict[str, dict[str, Any]]:
    files = [*(CHART / "policies").glob("rollout-*.yaml"), *(CHART / "policies").glob("device-*.yaml")]
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted(files)}


@pytest.mark.parametrize("name", DELEGATED)
def test_a_delegated_role_gives_its_action_and_is_bound_to_nobody(name: str) -> None:
    what, verbs, only = DELEGATED[name]
    role = the("ClusterRole", f"gitops-ctl-{name}")
    assert rights(role) == {what: verbs}
    assert [rule.get("resourceNames") for rule in role["rules"]] == [only]
    bindings = [tree for tree in rendered(on=True) if tree["kind"].endswith("RoleBinding")]
    assert role["metadata"]["name"] not in [tree["roleRef"]["name"] for tree in bindings]


@pytest.mark.parametrize("name", WORKERS)
def test_a_role_of_a_worker_gives_no_more_than_it_uses(name: str) -> None:
    assert rights(the("ClusterRole", f"{ROLE_PREFIX}{name}")) == WORKERS[name]
    assert role_problem(the("ClusterRole", f"{ROLE_PREFIX}{name}"), name) == ""
    assert WORKERS.keys() == WORKER_RIGHTS.keys()


def test_every_role_that_the_manager_binds_is_shipped_and_may_be_bound() -> None:
    shipped = {
        tree["metadata"]["name"]
        for tree in rendered(on=True)
        if tree["kind"] == "ClusterRole" and tree["metadata"]["name"].startswith(ROLE_PREFIX)
    }
    manager = the("ClusterRole", "gitops-ctl-managed-topology")
    [may_bind] = [rule["resourceNames"] for rule in manager["rules"] if "bind" in rule["verbs"]]
    tenant = Tenant(
        namespace="team-a",
        accounts={Plane.NODE: "app", Plane.NETWORK: "net"},
        secrets=(),
        lease_namespace="team-a",
    )
    bound = {
        str(one.tree["roleRef"]["name"])  # type: ignore[index,call-overload]
        for access in (Access.READ_ONLY, Access.READ_WRITE)
        for one in wanted_objects(tenant, Options(namespace="x", policy="y", app_hosting=access, network=access))
        if one.tree is not None and "roleRef" in one.tree
    }
    assert shipped == set(may_bind) == bound


def test_nothing_judges_kinds_of_kubernetes_until_managed_topology_is_switched_on() -> None:
    def judged(*, on: bool) -> set[str]:
        bound = {tree["spec"]["policyName"] for tree in rendered(on=on) if tree["kind"].endswith("PolicyBinding")}
        return {
            resource
            for tree in rendered(on=on)
            if tree["kind"] == "ValidatingAdmissionPolicy" and tree["metadata"]["name"] in bound
            for rule in tree["spec"]["matchConstraints"]["resourceRules"]
            if set(rule["apiGroups"]) & {"", "apps", "batch", "coordination.k8s.io"}
            for resource in rule["resources"]
        }

    assert judged(on=False) == {"configmaps"}
    assert {"nodes", "nodes/status", "leases", "secrets", "serviceaccounts/token", "pods"} <= judged(on=True)


def test_a_missing_parameter_can_stop_no_write_elsewhere() -> None:
    """A policy with a parameter denies when the parameter is missing, so it must not come near objects of others."""
    for stem, tree in policies().items():
        rules = tree["spec"]["matchConstraints"]["resourceRules"]
        if "paramKind" not in tree["spec"] or all("cisco.vk" in group for rule in rules for group in rule["apiGroups"]):
            continue
        binding = the("ValidatingAdmissionPolicyBinding", f"gitops-ctl-{stem}")["spec"]
        if binding["paramRef"]["parameterNotFoundAction"] == "Allow":
            assert "params.data" in tree["spec"]["matchConditions"][0]["expression"]
        elif "objectSelector" not in tree["spec"]["matchConstraints"]:
            [chosen] = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
            assert chosen == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]}


def test_what_is_deleted_with_a_namespace_asks_for_no_parameter() -> None:
    for stem, tree in policies().items():
        deletes = any("DELETE" in rule["operations"] for rule in tree["spec"]["matchConstraints"]["resourceRules"])
        ours = ("device-nodes", "device-leases", "device-foreign-leases")
        assert not deletes or "paramKind" not in tree["spec"] or stem in ours


def test_the_accounts_of_the_workers_are_known_to_the_policies_by_their_names() -> None:
    told = the("ConfigMap", "gitops-ctl-admission")["data"]
    assert told["appHosting"] == "gitops-ctl-app-hosting"
    assert told["networkManagement"] == "gitops-ctl-network-management"


def test_halves_of_a_status_are_those_of_the_kinds() -> None:
    text = (CHART / "policies" / "rollout-status.yaml").read_text()
    members = re.findall(r"name in\s+\[([^\]]+)\]", text)
    lists = [tuple(re.findall(r"'([^']+)'", part)) for part in members]
    assert sorted(lists[0]) == sorted(MANAGER_MEMBERS)
    assert sorted(lists[1]) == sorted(WORKER_MEMBERS)


@pytest.mark.parametrize("stem", ["device-lock", "device-topology"])
def test_protected_parts_of_a_device_are_those_that_need_the_verb_in_git(stem: str) -> None:
    text = (CHART / "policies" / f"{stem}.yaml").read_text()
    for prefix in (names.TOPOLOGY, names.OPERATIONS, names.DISTRIBUTION):
        assert f"'{prefix}'" in text
    for part in ("adopt-node-uid", "approve-reclassification-from", "request-legacy-handoff"):
        annotated: dict[str, Any] = {"metadata": {"name": "a", "annotations": {f"{names.TOPOLOGY}{part}": "x"}}}
        assert device_verbs({"metadata": {"name": "a"}}, annotated)
        assert f"'{part}'" in text
    if stem == "device-topology":
        for field in ("physicalIdentity", "nodeName", "driver", "labels", "region", "zone"):
            assert device_verbs({"metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "spec": {field: "x"}})
            assert f"'{field}'" in text


def test_no_expression_reads_a_subresource_that_may_be_absent() -> None:
    for path in Path(CHART / "policies").glob("*.yaml"):
        for line in path.read_text().splitlines():
            bare = line.replace("has(request.subResource)", "")
            assert "request.subResource" not in bare or "has(request.subResource)" in line

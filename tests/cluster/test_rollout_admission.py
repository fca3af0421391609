"""Who may do what to rollouts, leaves, devices, their Nodes and Leases, and to the accounts of the workers (rollouts.md, section 18).

On a real API server, with the chart's roles and policies and an identity of its own for each role: a table of what is allowed, and a table of
what is refused, with what the refusal says.  Nothing of a table is stored, so its rows do not depend on each other.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.fleet import names
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.admission_proof import Probe, policy_problem, probes, prove_refusals, shipped_policies
from tests.support.api_devices import a_health, a_lock, a_retirement, a_sample
from tests.support.api_leaves import a_claim, an_admission
from tests.support.api_rollouts import (
    a_device,
    a_frozen_plan,
    a_plan,
    a_recovery,
    a_rollout,
    an_activation,
    an_approval,
    an_invalidation,
)
from tests.support.chart_install import CHART_LABEL
from tests.support.cluster import ControlPlaneHandle
from tests.support.plain_api import eventually
from tests.support.rollout_admission import (
    APP,
    AUTHOR,
    LEDGER,
    NETWORK,
    OPERATOR,
    POLICY,
    Bench,
    a_pod,
    a_policy_map,
    rollout_bench,
)
from tests.support.rollout_node_rows import NODES_AND_LEASES
from tests.support.rollout_rows import (
    ALLOWED,
    DELETE,
    DEVICE_STATUS,
    DEVICES,
    LEAF_STATUS,
    LEAVES,
    ROLLOUTS,
    Row,
    a_deployment,
    a_token_secret,
    for_pod,
    half_a_leaf,
    labels,
    marks,
    new_device,
    new_leaf,
    new_rollout,
    preflight,
    report,
    sample,
    spec,
    status,
    stop,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

GIT = "sign the change into Git"
REFUSED: dict[str, Row] = {
    # Authorising fields.
    "a person requests a rollout": Row("person", ROLLOUTS, new_rollout(), "rollout-blocks", f"not by {AUTHOR}: {GIT}"),
    "a person with control requests a rollout": Row("operator", ROLLOUTS, new_rollout(), "rollout-blocks", GIT),
    "the manager requests a rollout": Row("restorer", ROLLOUTS, new_rollout(), "rollout-blocks", "spec.plan"),
    "a person approves": Row(
        "operator", f"{ROLLOUTS}/campaign", spec(approval=an_approval()), "rollout-blocks", "spec.approval"
    ),
    "a person recovers": Row(
        "person", f"{ROLLOUTS}/campaign", spec(recovery=a_recovery()), "rollout-blocks", "spec.recovery"
    ),
    "the manager approves": Row("manager", f"{ROLLOUTS}/campaign", spec(approval=an_approval()), "rollout-blocks", GIT),
    "a Sync without approve approves": Row(
        "planner", f"{ROLLOUTS}/campaign", spec(approval=an_approval()), "rollout-blocks", "has no verb approve"
    ),
    "a Sync without recover recovers": Row(
        "planner", f"{ROLLOUTS}/campaign", spec(recovery=a_recovery()), "rollout-blocks", "has no verb recover"
    ),
    "a Sync without control pauses": Row(
        "planner", f"{ROLLOUTS}/campaign", stop(1, AUTHOR, pause=True), "rollout-blocks", "has no verb control"
    ),
    # Control through the API.
    "a person without control pauses": Row(
        "person", f"{ROLLOUTS}/campaign", stop(1, AUTHOR, pause=True), "rollout-blocks", f"{AUTHOR} has no verb control"
    ),
    "a stop skips a revision": Row(
        "operator", f"{ROLLOUTS}/campaign", stop(2, pause=True), "rollout-blocks", "revision 1"
    ),
    "a stop stops nothing": Row("operator", f"{ROLLOUTS}/campaign", stop(1), "rollout-blocks", "may only tighten"),
    "a stop names somebody else": Row(
        "operator", f"{ROLLOUTS}/campaign", stop(1, AUTHOR, pause=True), "rollout-blocks", f"must be {OPERATOR}"
    ),
    "a stop brings an approval along": Row(
        "operator",
        f"{ROLLOUTS}/campaign",
        spec(approval=an_approval(), **stop(1, pause=True)["spec"]),
        "rollout-blocks",
        "spec.approval",
    ),
    "a person deletes a rollout": Row(
        "person", f"{ROLLOUTS}/campaign", DELETE, "rollout-deletion", "has no verb control"
    ),
    # Leaves.
    "a person makes a leaf": Row("person", LEAVES, new_leaf, "rollout-leaves", "sign an IOSXESoftwareRollout into Git"),
    "a Sync makes a leaf": Row("planner", LEAVES, new_leaf, "rollout-leaves", "by the manager"),
    "a worker makes a leaf": Row("unbound worker", LEAVES, new_leaf, "rollout-leaves", "by the manager"),
    "the manager makes half a leaf": Row(
        "manager", LEAVES, half_a_leaf, "rollout-leaves", "lacks topology.cisco.vk/ledger-uid"
    ),
    "a person rebinds a leaf": Row(
        "person", f"{LEAVES}/bound", marks(network_worker_pod_uid="p"), "rollout-leaves", "by the manager"
    ),
    "the manager rebinds a leaf to another device": Row(
        "manager", f"{LEAVES}/bound", marks(device_uid="y"), "rollout-leaves", "topology.cisco.vk/device-uid"
    ),
    "a label of a leaf changes": Row(
        "manager",
        f"{LEAVES}/bound",
        {"metadata": {"labels": {names.CAMPAIGN_UID: "y"}}},
        "rollout-leaves",
        "campaign-uid",
    ),
    # Finalizers.
    "a person frees a rollout": Row(
        "person",
        f"{ROLLOUTS}/going",
        {"metadata": {"finalizers": []}},
        "rollout-finalizers",
        "until the outcome is known",
    ),
    "a person frees a leaf": Row(
        "person", f"{LEAVES}/bound", {"metadata": {"finalizers": []}}, "rollout-finalizers", "by the manager"
    ),
    "the manager frees an open leaf": Row(
        "manager",
        f"{LEAVES}/bound",
        {"metadata": {"finalizers": []}},
        "rollout-finalizers",
        "until its admission is Settled",
    ),
    # Halves of statuses.
    "a person writes a rollout's status": Row(
        "person", f"{ROLLOUTS}/campaign/status", status(phase="Succeeded"), "rollout-status", AUTHOR
    ),
    "a Sync writes a rollout's status": Row(
        "planner", f"{ROLLOUTS}/campaign/status", status(phase="Succeeded"), "rollout-status", "only"
    ),
    "a person writes a leaf's status": Row(
        "person", f"{LEAVES}/bound/status", LEAF_STATUS, "rollout-status", "network worker"
    ),
    "a person writes a device's status": Row(
        "person", f"{DEVICES}/free/status", DEVICE_STATUS, "rollout-status", "network worker"
    ),
    "the manager ends a leaf": Row(
        "manager", f"{LEAVES}/bound/status", LEAF_STATUS, "rollout-status", "phase is written by the network"
    ),
    "the manager claims": Row(
        "manager",
        f"{LEAVES}/bound/status",
        status(managedMutationClaims=[a_claim()]),
        "rollout-status",
        "managedMutationClaims",
    ),
    "the manager samples": Row(
        "manager",
        f"{DEVICES}/locked/status",
        sample("network worker"),
        "rollout-status",
        "healthObservation.network is written",
    ),
    "the manager reports": Row(
        "manager", f"{DEVICES}/free/status", report("network worker"), "rollout-status", "workerReport"
    ),
    "the worker grants": Row(
        "network worker",
        f"{LEAVES}/bound/status",
        status(managerAdmission=an_admission("Granted")),
        "rollout-status",
        "managerAdmission is written by the manager only",
    ),
    "the worker accepts its own sample": Row(
        "network worker",
        f"{DEVICES}/locked/status",
        lambda bench: status(healthObservation=a_health(acceptedNetwork=a_sample())),
        "rollout-status",
        "healthObservation.acceptedNetwork",
    ),
    "the worker unlocks its device": Row(
        "network worker",
        f"{DEVICES}/locked/status",
        status(topologyLock={"state": "Releasing"}),
        "rollout-status",
        "topologyLock",
    ),
    "the account without a Pod writes a leaf": Row(
        "unbound worker", f"{LEAVES}/bound/status", LEAF_STATUS, "rollout-status", "is bound to no Pod"
    ),
    "the node worker writes a leaf": Row("app worker", f"{LEAVES}/bound/status", LEAF_STATUS, "", ""),
    "another Pod writes a leaf": Row(
        "second worker", f"{LEAVES}/bound/status", LEAF_STATUS, "rollout-status", "bound to another worker"
    ),
    "another Pod reports in its name": Row(
        "second worker", f"{DEVICES}/free/status", report("network worker"), "rollout-status", "names another Pod"
    ),
    "another Pod checks in its name": Row(
        "second worker", f"{DEVICES}/free/status", preflight("network worker"), "rollout-status", "names another Pod"
    ),
    "another Pod samples in its name": Row(
        "second worker", f"{DEVICES}/locked/status", sample("network worker"), "rollout-status", "names another Pod"
    ),
    # Devices.
    "a person makes a device": Row("person", DEVICES, new_device, "device-topology", "has no verb topology"),
    "a person moves a device": Row(
        "person",
        f"{DEVICES}/free",
        labels(topology_kubernetes_io__zone="hall-2"),
        "device-topology",
        "label topology.kubernetes.io/zone",
    ),
    "a person takes a risk label away": Row(
        "person",
        f"{DEVICES}/free",
        labels(operations_cisco_vk__tier="1"),
        "device-topology",
        f"{AUTHOR} has no verb topology",
    ),
    "a person adopts a Node": Row(
        "person", f"{DEVICES}/free", marks(adopt_node_uid="u"), "device-topology", "adopt-node-uid"
    ),
    "a person changes the driver": Row(
        "person", f"{DEVICES}/free", spec(driver="NX"), "device-topology", "spec.driver"
    ),
    "Git changes a locked device": Row(
        "applier", f"{DEVICES}/locked", spec(address="192.0.2.9"), "device-lock", "/campaign has the device: spec stays"
    ),
    "Git moves a locked device": Row(
        "applier", f"{DEVICES}/locked", labels(topology_kubernetes_io__zone="hall-2"), "device-lock", "waits in Git"
    ),
    "Git reclassifies a locked device": Row(
        "applier",
        f"{DEVICES}/locked",
        marks(approve_reclassification_from="h"),
        "device-lock",
        "approve-reclassification-from",
    ),
    "a locked device is deleted": Row("person", f"{DEVICES}/locked", DELETE, "device-lock", "/campaign has the device"),
    "a device in maintenance is deleted": Row(
        "person", f"{DEVICES}/busy", DELETE, "device-lock", "is Active, not Settled"
    ),
    # The fleet policy and its ledger.
    "a person changes the policy": Row(
        "person",
        f"configmaps/{POLICY}",
        {"data": {"policy.json": "{ }"}},
        "rollout-fleet-policy",
        f"no verb topology on that ConfigMap: {GIT}",
    ),
    "the manager changes the policy": Row(
        "manager", f"configmaps/{POLICY}", {"data": {"policy.json": "{ }"}}, "rollout-fleet-policy", "no verb topology"
    ),
    "a person unmarks the policy": Row(
        "person",
        f"configmaps/{POLICY}",
        {"metadata": {"labels": {names.COMPONENT: None}}},
        "rollout-fleet-policy",
        "no verb topology",
    ),
    "Git binds a ledger": Row(
        "applier", f"configmaps/{POLICY}", marks(ledger_uid="u"), "rollout-fleet-policy", "by the manager"
    ),
    "a person writes the ledger": Row(
        "person",
        f"configmaps/{LEDGER}",
        {"data": {"ledger.json": "{}"}},
        "rollout-fleet-policy",
        "no verb manage-ledger",
    ),
    "a person deletes the ledger": Row(
        "person", f"configmaps/{LEDGER}", DELETE, "rollout-fleet-deletion", "holds what is reserved"
    ),
    "a person deletes the policy": Row(
        "person", f"configmaps/{POLICY}", DELETE, "rollout-fleet-deletion", "remove the document from Git"
    ),
    **NODES_AND_LEASES,
    # Accounts.
    "a person asks for a worker's token": Row(
        "person",
        f"serviceaccounts/{NETWORK}/token",
        for_pod("network-worker"),
        "device-accounts",
        "given to a kubelet only",
    ),
    "the manager asks for a worker's token": Row(
        "restorer", f"serviceaccounts/{APP}/token", for_pod(), "device-accounts", "one Pod"
    ),
    "a kubelet asks for a token of no Pod": Row("kubelet", f"serviceaccounts/{NETWORK}/token", for_pod(), "", ""),
    "a token of a worker is kept in a Secret": Row(
        "person", "secrets", a_token_secret(NETWORK), "device-accounts", "bound to no Pod"
    ),
    "a person changes a worker's account": Row(
        "person", f"serviceaccounts/{APP}", labels(a="b"), "device-accounts", "reserved"
    ),
    "a person runs a Pod as a worker": Row(
        "person", "pods", a_pod("evil", NETWORK), "device-workloads", f"no pods of {AUTHOR}"
    ),
    "a person makes a Deployment as a worker": Row(
        "person", "deployments", a_deployment(APP), "device-workloads", "reserved"
    ),
}


@pytest.fixture(scope="module")
def bench(control_plane: ControlPlaneHandle) -> Iterator[Bench]:
    """The server follows a policy when it refuses with its words, and a role when it allows."""
    with rollout_bench(control_plane) as made:
        made.made("admin", "configmaps", a_policy_map())
        for row in {row.policy: row for row in reversed(REFUSED.values()) if row.policy}.values():
            eventually(lambda row=row: row.says in row.send(made).message, 60.0)
        for row in ALLOWED.values():
            eventually(lambda row=row: row.send(made).message == "", 60.0)
        yield made


@pytest.mark.parametrize("case", ALLOWED)
def test_it_is_allowed(bench: Bench, case: str) -> None:
    assert ALLOWED[case].send(bench).message == ""


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_and_told_why(bench: Bench, case: str) -> None:
    row = REFUSED[case]
    reply = row.send(bench)
    assert reply.status in (403, 422), reply.message
    assert row.says in reply.message
    assert not row.policy or f"'gitops-ctl-{row.policy}" in reply.message


def test_a_stop_is_followed_by_a_second_one_and_only_git_loosens_it(bench: Bench) -> None:
    path = bench.path(ROLLOUTS, "going")
    assert bench["operator"].merge(path, stop(1, pause=True)).message == ""
    assert "revision 2" in bench["operator"].merge(path, stop(2, pause=False)).message
    assert "revision 2" in bench["operator"].merge(path, stop(2, pause=False, cancel=True)).message
    assert bench["applier"].merge(path, stop(2, AUTHOR, pause=False)).message == ""
    assert bench["operator"].merge(path, stop(3, cancel=True)).message == ""


def test_activation_and_invalidation_need_a_verb_of_their_own(bench: Bench) -> None:
    name = "prepared"
    tree = a_rollout(name=name, namespace=bench.namespace, plan=a_plan(strategy="PrepareOnly"))
    bench.made("applier", ROLLOUTS, tree)
    path = bench.path(ROLLOUTS, name)
    bench.recorded("manager", ROLLOUTS, name, frozenPlan=a_frozen_plan(), phase="Succeeded")
    assert bench["applier"].merge(path, spec(approval=an_approval())).message == ""
    activation = spec(activationApproval=an_activation())
    assert "has no verb activate" in bench["planner"].merge(path, activation).message
    assert "sign the change into Git" in bench["operator"].merge(path, activation).message
    assert bench["applier"].merge(f"{path}?dryRun=All", activation).message == ""
    bench.recorded("manager", ROLLOUTS, name, phase="Cancelled")
    cancelled = stop(1, AUTHOR, cancel=True)["spec"]
    assert bench["applier"].merge(path, {"spec": cancelled}).message == ""
    invalidation = spec(preparationInvalidation=an_invalidation())
    assert "has no verb recover" in bench["planner"].merge(path, invalidation).message
    assert bench["applier"].merge(path, invalidation).message == ""


def test_a_leaf_with_a_claim_is_observed_by_whichever_pod_is_there(bench: Bench) -> None:
    path = f"{bench.path(LEAVES, 'claimed')}/status"
    claim = status(managedMutationClaims=[a_claim()])
    assert "bound to another worker" in bench["second worker"].merge(path, claim).message
    assert bench["network worker"].merge(path, claim).message == ""
    assert bench["second worker"].merge(path, status(phase="AwaitingReachability")).message == ""


def test_a_retired_device_takes_no_new_lock(bench: Bench) -> None:
    tree = a_device(name="retired", namespace=bench.namespace, physicalIdentity="foc-retired")
    bench.made("applier", DEVICES, tree)
    bench.recorded("manager", DEVICES, "retired", retired=a_retirement())
    reply = bench["manager"].merge(f"{bench.path(DEVICES, 'retired')}/status", status(topologyLock=a_lock()))
    assert "a retired device takes no new lock" in reply.message


async def test_the_server_proves_to_the_manager_that_the_policies_are_in_force(
    bench: Bench, control_plane: ControlPlaneHandle
) -> None:
    config = await load_cluster(control_plane.kubeconfig_for(bench.installation.manager), allow_exec=False)
    async with KubeClient(config, component="manager", clock=SystemClock()) as client:
        found = [_seen_here(probe, bench) for probe in probes(bench.namespace)]
        await prove_refusals(client, found)
        # In force for the objects of this chart only: the same write elsewhere is let in.
        for probe in probes("default"):
            with pytest.raises(BlockedError, match=r"has to be refused"):
                await prove_refusals(client, [probe])


def _seen_here(probe: Probe, bench: Bench) -> Probe:
    """With the label of the objects that have no namespace and that the policies of this chart judge."""
    metadata: Any = probe.tree["metadata"]
    labels = {**metadata.get("labels", {}), CHART_LABEL: bench.namespace}
    return replace(probe, tree={**probe.tree, "metadata": {**metadata, "labels": labels}})


def test_the_policies_that_the_server_keeps_are_those_that_the_manager_asks_for(bench: Bench) -> None:
    folder = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for name, wanted in shipped_policies().items():
        live = bench["admin"].get(f"{folder}/{name}{bench.installation.suffix}").body
        assert policy_problem(live, wanted) == ""


def test_the_ledger_of_a_policy_is_bound_once(bench: Bench) -> None:
    """Last, because it stays."""
    path = bench.path("configmaps", POLICY)
    assert bench["manager"].merge(path, marks(ledger_uid="first")).message == ""
    assert "bound once" in bench["manager"].merge(path, marks(ledger_uid="second")).message
    assert bench["applier"].merge(path, {"data": {"policy.json": "{  }"}}).message == ""
    whole: dict[str, Any] = {**a_policy_map("{   }")}
    assert bench["applier"].apply(path, whole, manager="sync").message == ""
    assert bench["admin"].get(path).body["metadata"]["annotations"][names.LEDGER_UID] == "first"


def test_the_server_finds_nothing_wrong_with_the_expressions(bench: Bench) -> None:
    """For kinds of its own; it looks at a policy some time after it was made."""
    folder = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def ours() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = bench["admin"].get(folder).body["items"]
        return [tree for tree in found if tree["metadata"]["name"].endswith(bench.installation.suffix)]

    eventually(lambda: all("typeChecking" in tree.get("status", {}) for tree in ours()), 60.0)
    warned = {tree["metadata"]["name"]: tree["status"]["typeChecking"].get("expressionWarnings") for tree in ours()}
    assert {name: what for name, what in warned.items() if what} == {}

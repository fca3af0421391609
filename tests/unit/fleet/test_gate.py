"""The worker's gate: the decision table row by row, and every binding (rollouts.md, section 13.1)."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.gate import Bindings, Gate, Runtime, bindings_of, gate_of
from gitops_ctl.fleet.leaf import STAGES, TERMINAL, leaf_of
from gitops_ctl.fleet.node import node_of
from tests.support.fleet_objects import POD_UID, REVISION, SETTLED, claim, device_tree, leaf_tree, node_tree

VALID = Bindings()
CLAIMED = {"managedMutationClaims": [claim("Staging")]}


def leaf(state="Granted", *, pause=False, cancel=False, reason="", **status):
    tree = leaf_tree(**status)
    tree["status"]["managerAdmission"] |= {"state": state, "revocationReason": reason}
    if "managerControl" in tree["status"]:
        tree["status"]["managerControl"] |= {"pause": pause, "cancel": cancel}
    return leaf_of(tree)


BY_HAND = {"managerRecovery": {"outcome": "OutcomeVerifiedByHand", "claims": [], "persons": ["a", "b"]}}
RETIRED = {"managerRecovery": {"outcome": "DeviceRetired", "claims": [], "persons": ["a", "b"]}}
ENDED = {"phase": "Failed"}

TABLE = {
    "terminal, no claim": (leaf(**ENDED), "Settled", True, False),
    "terminal, settled": (leaf(**ENDED, **CLAIMED, conditions=[SETTLED]), "Settled", True, False),
    "terminal, unresolved claim": (leaf(**ENDED, **CLAIMED), "Claimed", True, False),
    "terminal, whatever the admission": (leaf("Revoked", cancel=True, **ENDED), "Settled", True, False),
    "Pending with cancel": (leaf("Pending", cancel=True), "Cancelled", False, False),
    "Pending with pause": (leaf("Pending", pause=True), "Paused", False, False),
    "Pending with both": (leaf("Pending", pause=True, cancel=True), "Cancelled", False, False),
    "Pending, neutral": (leaf("Pending"), "Ready", False, False),
    "Pending without control": (leaf("Pending", managerControl=...), "Denied", False, False),
    "Revoked with a claim": (leaf("Revoked", **CLAIMED), "Claimed", True, False),
    "Revoked with a claim and cancel": (leaf("Revoked", cancel=True, **CLAIMED), "Claimed", True, False),
    "Revoked, verified by hand": (leaf("Revoked", **BY_HAND), "Claimed", True, False),
    "Revoked, retired": (leaf("Revoked", **RETIRED), "Denied", False, False),
    "Revoked and cancel": (leaf("Revoked", cancel=True), "Cancelled", False, False),
    "Revoked and pause": (leaf("Revoked", pause=True), "Denied", False, False),
    "Revoked": (leaf("Revoked"), "Denied", False, False),
    "Settled": (leaf("Settled"), "Settled", False, False),
    "Settled with cancel": (leaf("Settled", cancel=True), "Settled", False, False),
    "no admission": (leaf_of(leaf_tree(managerAdmission=...)), "Denied", False, False),
    "an admission that nobody knows": (leaf("Permitted"), "Denied", False, False),
    "Granted with cancel, claimed": (leaf(cancel=True, **CLAIMED), "Claimed", True, False),
    "Granted with pause, claimed": (leaf(pause=True, **CLAIMED), "Claimed", True, False),
    "Granted with cancel, idle": (leaf(cancel=True), "Cancelled", False, False),
    "Granted with pause, idle": (leaf(pause=True), "Paused", False, False),
    "Granted with both, idle": (leaf(pause=True, cancel=True), "Cancelled", False, False),
    "Granted without control": (leaf(managerControl=...), "Denied", False, False),
    "Granted without control, claimed": (leaf(managerControl=..., **CLAIMED), "Claimed", True, False),
    "Granted, neutral": (leaf(), "Ready", True, True),
    "Granted, neutral, claimed": (leaf(**CLAIMED), "Ready", True, True),
}


@pytest.mark.parametrize(("seen", "state", "may_progress", "may_claim"), TABLE.values(), ids=TABLE)
def test_a_row_of_the_table(seen, state, may_progress, may_claim):
    found = gate_of(seen, VALID)
    assert (found.effective_state, found.may_progress, found.may_claim) == (state, may_progress, may_claim)
    assert found.publishes


@pytest.mark.parametrize("seen", [row[0] for row in TABLE.values()], ids=TABLE)
def test_an_invalid_binding_is_denied_and_nothing_is_written(seen):
    found = gate_of(seen, Bindings(identity="another device"))
    assert found == Gate("Denied", publishes=False, message="another device")


@pytest.mark.parametrize("name", TABLE)
def test_another_runtime_forbids_claims_and_not_to_look_after_an_accepted_one(name):
    seen, _, may_progress, _ = TABLE[name]
    found = gate_of(seen, Bindings(runtime="a Secret changed"))
    assert not found.may_claim
    if not seen.has_unresolved_claim:
        assert found == Gate("Denied", publishes=False, message="a Secret changed")
    elif may_progress:
        assert found == Gate("Claimed", may_progress=True, message="a Secret changed")


LEAVES = st.builds(
    leaf,
    st.sampled_from(["Pending", "Granted", "Revoked", "Settled", ""]),
    pause=st.booleans(),
    cancel=st.booleans(),
    phase=st.sampled_from([*sorted(TERMINAL), "Pending", "Verifying", ""]),
    managedMutationClaims=st.lists(st.sampled_from(STAGES), unique=True, max_size=2).map(
        lambda stages: [claim(stage) for stage in stages]
    ),
    conditions=st.sampled_from([[], [SETTLED]]),
)


@pytest.mark.property
@settings(max_examples=60)
@given(LEAVES, st.sampled_from(["", "other"]), st.sampled_from(["", "other"]))
def test_only_a_granted_neutral_leaf_that_has_not_ended_may_claim(seen, identity, runtime):
    found = gate_of(seen, Bindings(identity, runtime))
    is_free = (
        seen.admission is not None
        and seen.admission.state == "Granted"
        and seen.manager_control is not None
        and not (seen.manager_control.pause or seen.manager_control.cancel)
        and not seen.is_terminal
        and not identity
        and not runtime
    )
    assert found.may_claim is is_free
    assert found.may_progress or not found.may_claim


# ---- bindings ----

ACCOUNT = "system:serviceaccount:plant:release-network-management"
RUNTIME = Runtime(
    namespace="plant",
    username=ACCOUNT,
    pod_name="network-0",
    pod_uid=POD_UID,
    loaded_revision=REVISION,
    has_current_secrets=True,
)


def compared(*, change_leaf=None, change_device=None, change_node=None, runtime=RUNTIME):
    trees = [leaf_tree(), device_tree(), node_tree()]
    for tree, change in zip(trees, (change_leaf, change_device, change_node), strict=True):
        if change is not None:
            change(tree)
    seen, device, node = trees
    return bindings_of(leaf_of(seen), device_of(device), node_of(node), runtime)


def test_a_leaf_is_bound_when_everything_agrees():
    assert compared() == Bindings()


def annotated(key, value):
    return lambda tree: tree["metadata"]["annotations"].update({key: value})


def admitted(**changes):
    return lambda tree: tree["status"]["managerAdmission"].update(changes)


IDENTITY = {
    "an incomplete binding": ({"change_leaf": lambda t: t["metadata"]["annotations"].pop(names.NODE_UID)}, "complete"),
    "an unmanaged leaf": ({"change_leaf": annotated(names.MANAGED, "false")}, "complete binding"),
    "another namespace": ({"change_leaf": annotated(names.DEVICE_NAMESPACE, "other")}, "another namespace"),
    "a worker of another namespace": ({"runtime": replace(RUNTIME, namespace="other")}, "another namespace"),
    "another device": ({"change_leaf": annotated(names.DEVICE_NAME, "switch-2")}, "another device"),
    "another device in the spec": (
        {"change_leaf": lambda t: t["spec"]["deviceRef"].update(name="x")},
        "another device",
    ),
    "a device made anew": ({"change_device": lambda t: t["metadata"].update(uid="new")}, "made anew"),
    "another generation": ({"change_device": lambda t: t["metadata"].update(generation=4)}, "generation 4.*bound to 3"),
    "another driver": ({"change_device": lambda t: t["spec"].update(driver="NXOS")}, "'NXOS', not XE"),
    "a retired device": ({"change_device": lambda t: t["status"].update(retired={"leafUID": "x"})}, "is retired"),
    "another account": ({"runtime": replace(RUNTIME, username="system:admin")}, "another worker account"),
    "no account": ({"runtime": replace(RUNTIME, username="")}, "another worker account"),
    "a Node made anew": ({"change_node": lambda t: t["metadata"].update(uid="new")}, "not the one that the leaf"),
    "another Node": ({"change_node": lambda t: t["metadata"].update(name="other")}, "not the one that the leaf"),
    "a device without a Node": ({"change_device": lambda t: t["status"].pop("nodeIdentity")}, "not bound to the Node"),
    "a device of another Node": (
        {"change_device": lambda t: t["status"]["nodeIdentity"].update(nodeUID="other")},
        "not bound to the Node",
    ),
    "a Node of another device": ({"change_node": annotated(names.DEVICE_UID, "other")}, "does not carry the UID"),
    "another chassis on the Node": (
        {"change_node": lambda t: t["status"]["nodeInfo"].update(machineID="FOC-2")},
        "seen as foc-2",
    ),
    "no chassis on the Node": ({"change_node": lambda t: t["status"]["nodeInfo"].update(machineID="")}, "no machineID"),
    "another chassis recorded": (
        {"change_device": lambda t: t["status"]["nodeIdentity"].update(physicalIdentity="foc-2")},
        "recorded as foc-2",
    ),
    "a chassis that is no identity": (
        {"change_device": lambda t: t["spec"].update(physicalIdentity=" x")},
        "is no physical identity",
    ),
    "another campaign": ({"change_leaf": admitted(campaignUID="x")}, "another campaign"),
    "another plan": ({"change_leaf": admitted(planHash="x")}, "another plan"),
    "another ledger": ({"change_leaf": admitted(ledgerUID="x")}, "another ledger"),
    "another reservation": ({"change_leaf": admitted(reservationID="x")}, "another reservation"),
    "another leaf": ({"change_leaf": admitted(leafUID="x")}, "another leaf"),
    "another device admitted": ({"change_leaf": admitted(deviceUID="x")}, "another device"),
    "another Node admitted": ({"change_leaf": admitted(nodeUID="x")}, "another Node"),
    "another generation admitted": ({"change_leaf": admitted(deviceGeneration=9)}, "another generation"),
    "an unknown protocol": ({"change_leaf": admitted(protocolVersion="rollout-v9")}, "'rollout-v9'"),
}


@pytest.mark.parametrize(("changes", "why"), IDENTITY.values(), ids=IDENTITY)
def test_a_difference_of_identity_makes_the_binding_invalid(changes, why):
    assert re.search(why, compared(**changes).identity)


def test_a_device_that_is_gone_or_has_no_node_is_no_device():
    assert "no CiscoDevice switch-1" in bindings_of(leaf_of(leaf_tree()), None, None, RUNTIME).identity
    found = bindings_of(leaf_of(leaf_tree()), device_of(device_tree()), None, RUNTIME)
    assert "is not the one that the leaf is bound to" in found.identity


RUNTIMES = {
    "another revision loaded": ({"runtime": replace(RUNTIME, loaded_revision="sha256:x")}, "is not proven"),
    "no revision": ({"change_device": lambda t: t["status"].pop("networkWorkerRevision")}, "is not proven"),
    "a revision that is not proven": (
        {"change_device": lambda t: t["status"]["networkWorkerRevision"].update(observedRevision="x")},
        "is not proven",
    ),
    "another proven Pod": (
        {"change_device": lambda t: t["status"]["networkWorkerRevision"].update(podUID="x")},
        "another Pod is the proven worker",
    ),
    "another Pod name": ({"change_leaf": annotated(names.NETWORK_WORKER_POD_NAME, "x")}, "bound to another Pod"),
    "another Pod": ({"change_leaf": annotated(names.NETWORK_WORKER_POD_UID, "x")}, "bound to another Pod"),
    "rotated Secrets": ({"runtime": replace(RUNTIME, has_current_secrets=False)}, "a Secret of the device changed"),
    "another source": ({"runtime": replace(RUNTIME, source_problem="the endpoint differs")}, "the endpoint differs"),
}


@pytest.mark.parametrize(("changes", "why"), RUNTIMES.values(), ids=RUNTIMES)
def test_a_difference_of_the_runtime_is_one_of_the_runtime(changes, why):
    found = compared(**changes)
    assert found.identity == ""
    assert why in found.runtime


@pytest.mark.parametrize(
    "protocol",
    ["rollout-v1", "rollout-byte-pacing-v1", "rollout-network-evidence-v1", "rollout-staged-activation-v1"],
)
def test_every_protocol_of_the_contract_is_known(protocol):
    assert compared(change_leaf=admitted(protocolVersion=protocol)) == Bindings()


def test_before_the_manager_admits_there_is_nothing_to_compare_with_its_admission():
    assert compared(change_leaf=lambda tree: tree["status"].pop("managerAdmission")) == Bindings()

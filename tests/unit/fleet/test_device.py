"""Devices, Nodes and leaves read from their trees: everything there is, and nothing from what has another shape."""

import copy
import dataclasses
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import LOCK_ACTIVE, WorkerRevision, device_of, lock_of
from gitops_ctl.fleet.leaf import (
    ACTIVATIONS,
    BEFORE_ACTIVATION,
    FAILED,
    FROM_ACTIVATION_ON,
    STAGES,
    SUCCEEDED,
    TERMINAL,
    binding_of,
    leaf_of,
)
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.trees import moment_at, part_at, strings_at
from tests.support.fleet_objects import (
    NOW,
    POD_UID,
    REVISION,
    SETTLED,
    before,
    claim,
    device_tree,
    leaf_tree,
    node_tree,
    sample_tree,
)
from tests.support.fleet_vectors import vector


def test_a_device_is_read_whole():
    tree = device_tree(spec={"nodeName": "edge-1"})
    tree["status"]["healthObservation"]["network"] = sample_tree()
    device = device_of(tree)
    assert (device.namespace, device.name, device.uid, device.generation) == ("plant", "switch-1", "device-switch-1", 3)
    assert (device.driver, device.physical_identity, device.node_name) == ("XE", "FOC-SWITCH-1", "edge-1")
    assert device.node_identity is not None
    assert device.node_identity.physical_identity == "foc-switch-1"
    assert device.health is not None
    assert device.health.heartbeat == datetime(2026, 10, 2, 11, 59, tzinfo=UTC)
    assert device.health.network == sample_tree()
    assert device.health.accepted is None
    assert device.network_worker_revision is not None
    assert device.network_worker_revision.is_proven
    assert [found.type for found in device.health.observations] == list(names.REQUIRED_CONDITIONS)
    assert (device.lock, device.session, device.worker_report, device.retired, device.preflight) == (None,) * 4 + ((),)
    assert not device.deleting


def test_a_node_is_named_after_its_device_unless_the_spec_says_otherwise():
    assert device_of(device_tree()).node_name == "switch-1"
    assert device_of({"metadata": {"name": "a"}, "spec": {"nodeName": ""}}).node_name == "a"


def test_the_published_device_is_read():
    device = device_of(vector("conditions-hash")["derived_from"])
    assert (device.phase, device.generation, len(device.conditions)) == ("Ready", 7, 6)
    found = device.condition(names.MAINTENANCE_READY)
    assert found is not None
    assert (found.reason, found.last_transition) == ("Idle", "2026-10-01T23:42:35Z")
    assert device.condition("Other") is None


def test_what_the_worker_and_the_manager_report_is_read():
    tree = device_tree()
    tree["status"] |= {
        "workerReport": {
            "podUID": POD_UID,
            "observedRevision": REVISION,
            "loadedAt": before(10),
            "materialValid": True,
            "message": "",
            "imageSourceAllow": ["192.0.2.0/24"],
            "journal": {"id": "j1", "sequence": 4, "state": "HistoryLost"},
        },
        "preflight": [
            {
                "rolloutUID": "r1",
                "planHash": "h",
                "observedAt": before(9),
                "workerPodUID": POD_UID,
                "workerRevision": REVISION,
                "result": "Failed",
                "imageSize": 9,
                "runningVersion": "17.15.1",
                "checks": [{"name": "Spool", "status": "Fail", "message": "full"}],
            }
        ],
        "retired": {"rolloutName": "r", "rolloutUID": "r1", "leafUID": "l1", "persons": ["a", "b"], "commit": "c"},
        "maintenanceSession": {
            "phase": "Active",
            "protocolVersion": "rollout-v1",
            "purpose": "SoftwareMutation",
            "sessionToken": "t" * 16,
            "lease": {"namespace": "plant", "name": "lease", "uid": "u", "holder": "software-upgrade/leaf-1"},
            "operation": {"namespace": "plant", "name": "leaf", "uid": "leaf-1"},
            "deviceUID": "d",
            "controlRevision": 2,
        },
    }
    tree["metadata"]["deletionTimestamp"] = before(1)
    device = device_of(tree)
    assert device.worker_report is not None
    assert device.worker_report.journal is not None
    assert device.worker_report.journal.state == "HistoryLost"
    assert device.worker_report.image_source_allow == ("192.0.2.0/24",)
    found = device.preflight_of("r1")
    assert found is not None
    assert found.checks[0].name == "Spool"
    assert device.preflight_of("r2") is None
    assert device.retired is not None
    assert device.retired.persons == ("a", "b")
    assert device.session is not None
    assert device.session.lease.holder == "software-upgrade/leaf-1"
    assert device.session.operation.uid == "leaf-1"
    assert device.deleting


@pytest.mark.parametrize(
    ("phase", "is_maintenance"),
    [("Acknowledged", True), ("Active", True), ("Recovering", False), ("Settled", False), ("", False)],
)
def test_a_session_counts_as_maintenance_until_it_recovers(phase, is_maintenance):
    tree = device_tree()
    tree["status"]["maintenanceSession"] = {"phase": phase, "sessionToken": "t" * 16}
    session = device_of(tree).session
    assert session is not None
    assert session.is_maintenance is is_maintenance


def test_a_lock_is_read_and_an_empty_one_is_none():
    tree = {
        "state": "Active",
        "policyEpoch": 2,
        "acquisitionID": "a" * 32,
        "campaignNamespace": "plant",
        "campaignName": "c",
        "campaignUID": "cu",
        "planHash": "h",
        "reservationID": "r",
        "deviceUID": "d",
        "deviceGeneration": 3,
        "nodeUID": "n",
        "projectionHash": "p",
        "acquiredAt": before(5),
    }
    lock = lock_of(tree)
    assert lock is not None
    assert (lock.state, lock.acquisition_id, lock.device_generation) == (LOCK_ACTIVE, "a" * 32, 3)
    assert lock_of({}) is None
    assert lock_of(None) is None


PROVEN = WorkerRevision(REVISION, REVISION, "d", 1, POD_UID, NOW, NOW, NOW)


@pytest.mark.parametrize(
    ("changes", "is_proven"),
    [
        ({}, True),
        ({"observed": "sha256:other"}, False),
        ({"desired": "", "observed": ""}, False),
        ({"deployment_uid": ""}, False),
        ({"pod_uid": ""}, False),
        ({"pod_started": None}, False),
        ({"ready_at": None}, False),
        ({"ready_at": datetime(2026, 10, 2, 11, 59, 59, tzinfo=UTC)}, False),
    ],
)
def test_a_worker_revision_is_proven_by_one_pod_that_answered_after_its_start(changes, is_proven):
    assert dataclasses.replace(PROVEN, **changes).is_proven is is_proven


def test_a_node_is_read_whole():
    tree = node_tree()
    tree["spec"]["taints"] = [
        {"key": names.UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        {"key": names.DEVICE_MAINTENANCE, "value": "gnoi", "effect": "NoSchedule"},
    ]
    node = node_of(tree)
    assert (node.name, node.uid, node.machine_id, node.kernel_version) == (
        "switch-1",
        "node-switch-1",
        "FOC-SWITCH-1",
        "17.18.3",
    )
    assert node.ready is not None
    assert (node.ready.status, node.ready.heartbeat) == ("True", datetime(2026, 10, 2, 11, 59, tzinfo=UTC))
    assert node.managed_writer is not None
    assert node.managed_writer.reason == names.MANAGED_WRITER_REASON
    assert node.app_inventory is None
    assert node.has_initialisation_guard
    taint = node.taint(names.DEVICE_MAINTENANCE)
    assert taint is not None
    assert taint.value == "gnoi"
    assert node.taint("other") is None


def test_a_zero_time_of_the_server_is_no_time():
    tree = node_tree()
    tree["status"]["conditions"][0]["lastTransitionTime"] = "0001-01-01T00:00:00Z"
    ready = node_of(tree).ready
    assert ready is not None
    assert ready.transition is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-10-02T12:00:00Z", NOW),
        ("2026-10-02T14:00:00+02:00", NOW),
        ("2026-10-02T12:00:00.000000Z", NOW),
        ("2026-10-02T12:00:00", None),
        ("yesterday", None),
        (7, None),
        (None, None),
    ],
)
def test_a_time_without_an_offset_or_of_another_form_proves_nothing(text, moment):
    assert moment_at({"at": text}, "at") == moment
    assert moment_at({}, "at") is None


def test_lists_and_parts_of_another_shape_are_absent():
    assert strings_at({"a": ["x", 1, None, "y"]}, "a") == ("x", "y")
    assert strings_at({"a": "x"}, "a") == ()
    assert part_at({"a": []}, "a") is None
    assert part_at({"a": {}}, "a") is None
    assert part_at({"a": {"b": 1}}, "a") == {"b": 1}


# ---- leaves ----


def test_a_leaf_is_read_whole():
    leaf = leaf_of(
        leaf_tree(
            managedMutationClaims=[claim("PrimaryActivation"), claim("Staging")],
            completionTime=before(3),
            installCommit={"state": "Requested", "requestedAt": before(4)},
            managerRecovery={
                "outcome": "DeviceRetired",
                "claims": [{"stage": "Staging", "claimedAt": before(40)}],
                "persons": ["a", "b"],
                "commit": "c",
            },
            workerControl={"observedAdmissionState": "Granted", "observedPolicyEpoch": 1, "effectiveState": "Ready"},
        )
    )
    assert (leaf.device_name, leaf.target_version, leaf.strategy, leaf.rollback_on_failure) == (
        "switch-1",
        "17.18.03",
        "Reload",
        True,
    )
    assert leaf.binding.is_complete
    assert leaf.binding.device_generation == 3
    assert leaf.admission is not None
    assert (leaf.admission.state, leaf.admission.policy_version, leaf.admission.network) == ("Granted", "55", None)
    assert leaf.manager_control is not None
    assert not leaf.manager_control.pause
    assert leaf.worker_control is not None
    assert leaf.worker_control.admission_state == "Granted"
    found = leaf.claim("Staging")
    assert found is not None
    assert found.claimed_at_text == before(40)
    assert leaf.claim("StandbyInstall") is None
    assert leaf.install_commit is not None
    assert leaf.install_commit.observed_at is None
    assert leaf.recovery is not None
    assert leaf.recovery.claims[0].claimed_at_text == before(40)


def test_an_absent_control_revision_is_not_revision_0():
    tree = leaf_tree()
    assert leaf_of(tree).admission.control_revision == 0
    del tree["status"]["managerAdmission"]["controlRevision"]
    assert leaf_of(tree).admission.control_revision is None


def test_evidence_fields_are_read_on_every_protocol_also_in_part():
    tree = leaf_tree()
    tree["status"]["managerAdmission"] |= {"protocolVersion": "rollout-byte-pacing-v1", "networkEvidenceHash": "h"}
    authority = leaf_of(tree).admission.network
    assert authority is not None
    assert (authority.evidence_hash, authority.not_after) == ("h", None)


def test_phases_are_sorted_by_what_they_mean():
    assert BEFORE_ACTIVATION.isdisjoint(FROM_ACTIVATION_ON | TERMINAL)
    assert FAILED.isdisjoint(SUCCEEDED)
    assert len(BEFORE_ACTIVATION | FROM_ACTIVATION_ON | TERMINAL) == 20
    assert set(STAGES) > ACTIVATIONS


@pytest.mark.parametrize(
    ("status", "is_resolved"),
    [
        ({"phase": "Succeeded", "completionTime": before(1)}, True),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Verifying", "completionTime": before(1)}, False),
        ({"phase": "Failed", "completionTime": before(1), "managedMutationClaims": [claim("Staging")]}, False),
        (
            {
                "phase": "Failed",
                "completionTime": before(1),
                "managedMutationClaims": [claim("Staging")],
                "conditions": [SETTLED],
            },
            True,
        ),
        (
            {
                "phase": "Failed",
                "completionTime": before(1),
                "managedMutationClaims": [claim("Staging")],
                "conditions": [{**SETTLED, "status": "Unknown"}],
            },
            False,
        ),
    ],
)
def test_an_outcome_is_resolved_by_its_end_its_time_and_proof_for_what_was_claimed(status, is_resolved):
    assert leaf_of(leaf_tree(**status)).is_outcome_resolved is is_resolved


BOUND_BY = [
    *(names.MANAGED, names.CAMPAIGN_NAMESPACE, names.CAMPAIGN_NAME, names.CAMPAIGN_UID, names.PLAN_HASH),
    *(names.LEDGER_UID, names.RESERVATION_ID, names.DEVICE_NAMESPACE, names.DEVICE_NAME, names.DEVICE_UID),
    *(names.DEVICE_GENERATION, names.NODE_NAME, names.NODE_UID, names.WORKER_USERNAME),
    *(names.NETWORK_WORKER_USERNAME, names.WORKER_PROTOCOL),
]


@pytest.mark.parametrize("key", BOUND_BY)
def test_a_binding_without_one_of_its_annotations_is_incomplete(key):
    annotations = dict(leaf_tree()["metadata"]["annotations"])
    assert binding_of(annotations).is_complete
    del annotations[key]
    assert not binding_of(annotations).is_complete


@pytest.mark.parametrize("text", ["", "0", "-1", "+3", "3 ", "03", "3.0", "٣", "9" * 20, "x"])
def test_a_generation_is_a_plain_decimal_number(text):
    assert binding_of({names.DEVICE_GENERATION: text}).device_generation == 0
    assert binding_of({names.DEVICE_GENERATION: "31"}).device_generation == 31


# ---- every tree can be read ----

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def places(tree, path=()):
    """The path of every member, however deep."""
    yield path
    if isinstance(tree, dict):
        for name, member in tree.items():
            yield from places(member, (*path, name))
    elif isinstance(tree, list):
        for index, member in enumerate(tree):
            yield from places(member, (*path, index))


READERS = {
    "device": (device_of, device_tree()),
    "node": (node_of, node_tree()),
    "leaf": (leaf_of, leaf_tree(managedMutationClaims=[claim("Staging")], conditions=[SETTLED])),
}


@pytest.mark.property
@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_tree_with_anything_in_the_place_of_a_member_is_read_without_an_error(kind, data):
    read, whole = READERS[kind]
    *path, last = data.draw(st.sampled_from([place for place in places(whole) if place]))
    tree = copy.deepcopy(whole)
    place = tree
    for step in path:
        place = place[step]
    place[last] = data.draw(JUNK)
    found = read(tree)
    assert type(found) is type(read(whole))
    assert found == read(copy.deepcopy(tree))

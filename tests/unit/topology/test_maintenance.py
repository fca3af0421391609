"""Request, guard, acknowledgement and end of a maintenance session, and what keeps a deleted device (rollouts.md, 13.6, 8.6)."""

from typing import Any

import pytest

from gitops_ctl.fleet import names
from gitops_ctl.topology.findings import Reason
from gitops_ctl.topology.maintenance_plan import (
    MaintenanceSeen,
    MaintenanceStep,
    deletion_problem,
    operation_to_read,
    plan_maintenance,
)
from tests.support.topology_devices import CLAIM, LEAF_UID, NOW, SETTLED, bound, device, leaf, lease

HOLDER = f"software-upgrade/{LEAF_UID}"


def plan(
    tree: Any = None, *, guarded: bool = True, held: Any = None, operation: Any = None, **more: Any
) -> MaintenanceStep:
    return plan_maintenance(
        MaintenanceSeen(
            device=tree or bound(device()),
            node_name="access-1",
            node_uid="node-uid-1",
            guarded=guarded,
            lease=held,
            leaf=operation,
            now=NOW,
            **more,
        )
    )


def session(phase: str = "Acknowledged") -> Any:
    """A device with the session that a good request leads to."""
    found: Any = plan(held=lease(), operation=leaf()).session
    return bound(device(), maintenanceSession={**found, "phase": phase})


def test_without_a_disruptive_holder_it_is_idle() -> None:
    for held in (None, lease("")):
        step = plan(held=held)
        assert (step.guard, step.session, step.condition.status, step.condition.reason) == (False, None, "True", "Idle")


def test_the_guard_comes_before_the_acknowledgement() -> None:
    first = plan(guarded=False, held=lease(), operation=leaf())
    assert (first.guard, first.session, first.condition.reason) == (True, None, Reason.MAINTENANCE_BLOCKED)
    second = plan(held=lease(), operation=leaf())
    assert second.guard
    assert second.session == {
        "phase": "Acknowledged",
        "protocolVersion": "rollout-v1",
        "purpose": "SoftwareMutation",
        "sessionToken": "0123456789abcdef",
        "lease": {"namespace": "campus", "name": lease()["metadata"]["name"], "uid": "lease-uid-1", "holder": HOLDER},
        "operation": {"namespace": "campus", "name": "leaf-1", "uid": LEAF_UID},
        "deviceUID": "device-uid-1",
        "nodeName": "access-1",
        "nodeUID": "node-uid-1",
        "requestedAt": "2026-02-01T00:00:00Z",
        "acknowledgedAt": "2026-02-01T00:00:00Z",
        "controlRevision": 0,
        "message": "the Node is guarded",
    }
    assert second.condition.reason == Reason.GUARD_ACKNOWLEDGED


def with_annotation(key: str, value: str) -> Any:
    tree = lease()
    tree["metadata"]["annotations"][key] = value
    return tree


def with_duration(seconds: int) -> Any:
    tree = lease()
    tree["spec"]["leaseDurationSeconds"] = seconds
    return tree


def of_another_device() -> Any:
    tree = lease()
    tree["metadata"]["labels"][names.LEASE_DEVICE] = "cvk-device-0000000000000000"
    return tree


@pytest.mark.parametrize(
    ("held", "operation", "says"),
    [
        (with_annotation(names.LEASE_PURPOSE, "config-family"), leaf(), "config-family"),
        (of_another_device(), leaf(), "another device"),
        (with_annotation(names.DEVICE_UID, "before"), leaf(), "another object"),
        (with_duration(0), leaf(), "leaseDurationSeconds"),
        (with_duration(7 * 86400 + 26 * 3600 + 1), leaf(), "leaseDurationSeconds"),
        (lease(f"software-drain/{LEAF_UID}"), leaf(), "drains"),
        (lease(purpose=""), leaf(), "lacks purpose"),
        (lease(**{"session-token": "", "requested-at": ""}), leaf(), "lacks session-token, requested-at"),
        (lease(**{"request-version": "pdb-drain-v1"}), leaf(), "request-version"),
        (lease(purpose="WorkloadDrain"), leaf(), "purpose"),
        (lease("software-upgrade/other"), leaf(), "another operation"),
        (lease(**{"session-token": "short"}), leaf(), "session-token"),
        (lease(**{"session-token": "0123456789abcdef\n"}), leaf(), "session-token"),
        (lease(**{"control-revision": "-1"}), leaf(), "control-revision"),
        (lease(**{"control-revision": "\u0661"}), leaf(), "control-revision"),
        (lease(**{"requested-at": "now"}), leaf(), "requested-at"),
        (lease(), None, "no IOSXESoftwareUpgrade"),
        (lease(), leaf(admission="Pending"), "Pending, not Granted"),
        (lease(), leaf(admission=""), "not admitted"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_bad_request_is_rejected_and_guarded_all_the_same(held: Any, operation: Any, says: str) -> None:
    step = plan(held=held, operation=operation)
    assert (step.guard, step.session, step.condition.status) == (True, None, "False")
    assert step.condition.reason == Reason.REQUEST_REJECTED
    assert says in step.condition.message


def test_a_leaf_of_another_device_or_another_incarnation_is_rejected() -> None:
    other, again = leaf(), leaf()
    other["metadata"]["annotations"][names.DEVICE_UID] = "device-uid-2"
    again["metadata"]["uid"] = "leaf-uid-2"
    for operation in (other, again):
        assert plan(held=lease(), operation=operation).condition.reason == Reason.REQUEST_REJECTED


def test_a_session_token_is_good_once() -> None:
    step = plan(session("Settled"), held=lease(), operation=leaf())
    assert step.condition.reason == Reason.REQUEST_REJECTED
    assert plan(session("Settled"), held=lease(**{"session-token": "f" * 16}), operation=leaf()).session is not None


def test_configuration_holds_the_lease_with_a_guard_and_no_session() -> None:
    step = plan(held=lease("device-write/config"))
    assert (step.guard, step.session, step.condition.reason) == (True, None, Reason.MAINTENANCE_BLOCKED)


def test_a_session_stays_as_it_is_while_its_worker_holds_the_lease() -> None:
    step = plan(session(), held=lease(), operation=leaf())
    assert (step.guard, step.session, step.condition.reason) == (True, None, Reason.GUARD_ACKNOWLEDGED)


def test_a_claim_makes_the_session_active() -> None:
    step = plan(session(), held=lease(), operation=leaf(managedMutationClaims=[CLAIM]))
    assert step.session is not None
    assert step.session["phase"] == "Active"
    assert plan(session("Active"), held=lease(), operation=leaf(managedMutationClaims=[CLAIM])).session is None


@pytest.mark.parametrize("held", [None, lease(""), lease("device-write/config")], ids=["absent", "free", "other"])
def test_a_lease_that_is_let_go_never_settles_an_accepted_mutation(held: Any) -> None:
    step = plan(session("Active"), held=held, operation=leaf(managedMutationClaims=[CLAIM]))
    assert (step.guard, step.session, step.condition.reason) == (True, None, Reason.MAINTENANCE_BLOCKED)
    assert HOLDER in step.condition.message


def ended(**status: Any) -> Any:
    return leaf(phase="Succeeded", completionTime="2026-02-01T00:10:00Z", **status)


@pytest.mark.parametrize(
    "operation",
    [
        ended(),
        ended(managedMutationClaims=[CLAIM], conditions=[SETTLED]),
        leaf(admission="Settled"),
        leaf(managerRecovery={"outcome": "DeviceRetired"}, managedMutationClaims=[CLAIM]),
        None,
    ],
    ids=["no-claim", "observed", "settled", "attested", "gone"],
)
def test_a_resolved_outcome_and_a_free_lease_settle_the_session(operation: Any) -> None:
    step = plan(session("Active"), held=lease(""), operation=operation)
    assert not step.guard
    assert step.session is not None
    assert step.session["phase"] == "Settled"
    assert step.condition.reason == Reason.IDLE


@pytest.mark.parametrize(
    "operation",
    [
        leaf(phase="Succeeded", managedMutationClaims=[CLAIM], conditions=[SETTLED]),
        ended(managedMutationClaims=[CLAIM]),
        leaf(phase="Verifying", completionTime="2026-02-01T00:10:00Z"),
    ],
    ids=["no-time", "unobserved", "running"],
)
def test_an_outcome_without_all_its_parts_settles_nothing(operation: Any) -> None:
    assert plan(session("Active"), held=lease(""), operation=operation).guard


def test_a_leaf_that_was_revoked_before_its_first_claim_ends_its_session_once_the_lease_is_let_go() -> None:
    assert plan(session(), held=lease(), operation=leaf(admission="Revoked")).session is None
    step = plan(session(), held=lease(""), operation=leaf(admission="Revoked"))
    assert (step.guard, step.condition.reason) == (False, Reason.IDLE)
    assert step.session is not None
    assert step.session["phase"] == "Settled"


@pytest.mark.parametrize(
    "status",
    [{"managedMutationClaims": [CLAIM]}, {"installCommit": {"state": "Requested"}}],
    ids=["claimed", "commit"],
)
def test_a_revoked_leaf_with_a_claim_in_flight_keeps_its_session(status: Any) -> None:
    assert plan(session("Active"), held=lease(""), operation=leaf(admission="Revoked", **status)).guard


def test_while_the_journal_is_lost_an_absent_claim_ends_no_session() -> None:
    tree = session()
    tree["status"]["workerReport"] = {"journal": {"id": "a", "sequence": 1, "state": "HistoryLost"}}
    assert plan(tree, held=lease(""), operation=leaf(admission="Revoked")).guard


def test_a_session_whose_leaf_is_gone_ends_though_nobody_lets_the_lease_go() -> None:
    step = plan(session(), held=lease(), operation=None)
    assert step.session is not None
    assert (step.guard, step.session["phase"]) == (False, "Settled")


def test_a_resolved_session_waits_for_its_worker_to_let_go() -> None:
    step = plan(session("Active"), held=lease(), operation=ended())
    assert (step.guard, step.session) == (True, None)


def test_a_missing_leaf_settles_nothing_while_the_device_is_locked() -> None:
    tree = session("Active")
    tree["status"]["topologyLock"] = {"campaignName": "spring"}
    assert plan(tree, held=lease(""), operation=None).session is None


def test_the_leaf_to_read_is_that_of_the_open_session_else_of_the_request() -> None:
    assert operation_to_read(device(), None) is None
    assert operation_to_read(device(), lease("")) is None
    asked = operation_to_read(device(), lease())
    assert asked is not None
    assert (asked.namespace, asked.name, asked.uid) == ("campus", "leaf-1", LEAF_UID)
    assert operation_to_read(session(), None) == asked
    assert operation_to_read(session("Settled"), None) is None


def test_a_deleted_device_stays_for_a_lock_and_for_an_open_session() -> None:
    assert deletion_problem(device()) == ""
    assert deletion_problem(session("Settled")) == ""
    assert HOLDER in deletion_problem(session("Active"))
    locked = device(status={"topologyLock": {"campaignNamespace": "campus", "campaignName": "spring"}})
    assert "campus/spring" in deletion_problem(locked)

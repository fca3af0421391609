"""What is kept of devices, Nodes and Leases says rightly whether anything has to be done, and gives the whole object back."""

from typing import Any

from gitops_ctl.fleet import names
from gitops_ctl.topology.seen import seen_device, seen_lease, seen_node
from tests.support.topology_devices import NODE_UID, bound, device, lease, node


def test_an_object_comes_back_whole_without_its_managers() -> None:
    tree = device(managedFields=[{"manager": "x"}])
    assert seen_device(tree).tree() == device()
    assert seen_node(node()).tree() == node()
    assert seen_lease(lease()).tree() == lease()


def observed(at: str, **members: Any) -> Any:
    return bound(device(resourceVersion=at[-3:]), healthObservation={"observedAt": at, **members})


def test_our_own_evidence_asks_for_nothing_and_everything_else_does() -> None:
    first = seen_device(observed("2026-02-01T00:00:00Z"))
    assert seen_device(observed("2026-02-01T00:01:40Z", deviceConditionsHash="sha256:1")).asked == first.asked
    others = (
        observed("2026-02-01T00:00:00Z", network={"sampleSequence": 1}),
        bound(device()),
        {**observed("2026-02-01T00:00:00Z"), "spec": {}},
        {**observed("2026-02-01T00:00:00Z"), "status": {**first.tree()["status"], "phase": "Error"}},  # type: ignore[dict-item]
    )
    assert first.asked not in {seen_device(other).asked for other in others}
    labelled = observed("2026-02-01T00:00:00Z")
    labelled["metadata"]["labels"] = {}
    assert seen_device(labelled).asked != first.asked


def beating(at: str, *, status: str = "True", **spec: Any) -> Any:
    ready = {"type": "Ready", "status": status, "lastHeartbeatTime": at, "lastTransitionTime": "2026-02-01T00:00:00Z"}
    return {**node(), "spec": spec, "status": {"conditions": [ready]}}


def test_a_heartbeat_asks_for_nothing_and_a_taint_or_another_status_does() -> None:
    first = seen_node(beating("2026-02-01T00:00:00Z"))
    assert seen_node(beating("2026-02-01T00:00:10Z")).asked == first.asked
    assert seen_node(beating("2026-02-01T00:00:00Z", status="Unknown")).asked != first.asked
    assert seen_node(beating("2026-02-01T00:00:00Z", taints=[{"key": "x"}])).asked != first.asked
    assert seen_node(node(uid=NODE_UID, **{names.DEVICE_UID: "x"})).asked != seen_node(node()).asked


def test_the_pulse_is_the_older_heartbeat_of_both_writers() -> None:
    ready = {"type": "Ready", "lastHeartbeatTime": "2026-02-01T00:00:20Z"}
    writer = {"type": names.MANAGED_WRITER, "lastHeartbeatTime": "2026-02-01T00:00:10Z"}

    def pulse(*conditions: Any) -> str:
        return seen_node({**node(), "status": {"conditions": [*conditions]}}).pulse

    assert pulse(ready, writer) == "2026-02-01T00:00:10Z"
    assert pulse(ready) == pulse(writer) == ""
    assert pulse(ready, {**writer, "lastHeartbeatTime": "2026-02-01T01:00:10+01:00"}) == ""


def test_the_floor_is_the_later_time_that_a_heartbeat_has_to_reach() -> None:
    projection = {"lastSuccessfulTime": "2026-02-01T00:00:30Z"}
    seen = observed("2026-02-01T00:01:40Z", nodeReadyHeartbeatTime="2026-02-01T00:01:30Z")
    assert seen_device(seen).floor == ""
    seen["status"]["topologyProjection"] = projection
    assert seen_device(seen).floor == "2026-02-01T00:01:30Z"
    projection["lastSuccessfulTime"] = "2026-02-01T00:02:00Z"
    assert seen_device(seen).floor == "2026-02-01T00:02:00Z"


def test_the_renewal_of_a_lease_asks_for_nothing_and_another_holder_or_request_does() -> None:
    first, renewed = seen_lease(lease()), lease()
    renewed["spec"]["renewTime"] = "2026-02-01T00:00:10.000000Z"
    assert seen_lease(renewed).asked == first.asked
    assert seen_lease(lease("")).asked != first.asked
    assert seen_lease(lease(purpose="WorkloadDrain")).asked != first.asked


def test_a_device_is_settled_once_it_is_ready_and_its_node_plane_is_proven() -> None:
    proven = {"readyHeartbeatTime": "2026-02-01T00:00:00Z"}
    assert seen_device(bound(device(), phase="Ready", workerRevision=proven)).is_settled
    assert not seen_device(bound(device(), phase="Ready")).is_settled
    assert not seen_device(bound(device(), phase="Provisioning", workerRevision=proven)).is_settled

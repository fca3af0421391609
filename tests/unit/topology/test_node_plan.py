"""The Node of a device: made, adopted, projected, bound and guarded (rollouts.md, section 16)."""

from datetime import timedelta
from typing import Any

import pytest

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.fleet import names
from gitops_ctl.fleet.projection import Projection
from gitops_ctl.topology.findings import Reason
from gitops_ctl.topology.node_plan import (
    NodeWanted,
    Worker,
    is_bound,
    is_projected,
    new_node,
    node_patch,
    ownership_problem,
    reclassification_problem,
    writer_problem,
)
from gitops_ctl.topology.taints import GUARD, MAINTENANCE
from tests.doubles.apiserver.patches import merge_patched
from tests.support.topology_devices import DEVICE_UID, NODE_UID, NOW, bound, device, node

APP, NETWORK = Worker("system:app"), Worker("system:network")
PROJECTION = Projection(labels={names.NODE_TYPE: names.TYPE_VIRTUAL, names.ZONE: "hall-1"}, hash="sha256:1")
OTHER = Projection(labels={names.NODE_TYPE: names.TYPE_VIRTUAL, names.REGION: "north"}, hash="sha256:2")


def wanted(**members: Any) -> NodeWanted:
    return NodeWanted(
        **{"projection": PROJECTION, "app": APP, "network": NETWORK, "guard": True, "maintenance": False, **members}
    )


def patched(tree: Any, patch: Any) -> Any:
    assert patch is not None
    return merge_patched(tree, patch)


def made() -> Any:
    """A Node that was made and bound."""
    tree: Any = new_node(device(), PROJECTION, app=APP, network=NETWORK)
    tree["metadata"] |= {"uid": NODE_UID, "resourceVersion": "20"}
    return patched(tree, node_patch(device(), tree, wanted()))


def test_a_new_node_is_guarded_and_carries_binding_and_projection() -> None:
    tree: Any = new_node(device(), PROJECTION, app=APP, network=NETWORK)
    assert tree["spec"]["taints"] == [GUARD.tree()]
    annotations = tree["metadata"]["annotations"]
    assert annotations[names.DEVICE_UID] == DEVICE_UID
    assert annotations[names.PROJECTED_KEYS] == "topology.kubernetes.io/zone,type"
    assert annotations[names.PROJECTION_HASH] == "sha256:1"
    assert annotations[names.MANAGED_TAINTS] == ""
    assert annotations[names.WORKER_USERNAME] == annotations[names.APP_WORKER_USERNAME] == "system:app"
    assert annotations[names.WORKER_PROTOCOL] == "rollout-v1"
    assert names.NODE_UID not in annotations


def test_the_nodes_own_uid_is_bound_by_the_next_write_and_then_nothing_is_written() -> None:
    tree = made()
    assert tree["metadata"]["annotations"][names.NODE_UID] == NODE_UID
    assert is_bound(device(), tree)
    assert is_projected(tree, PROJECTION)
    assert node_patch(device(), tree, wanted()) is None


def test_another_projection_replaces_labels_keys_and_hash_and_leaves_foreign_labels() -> None:
    tree = made()
    tree["metadata"]["labels"]["example.net/rack"] = "7"
    after = patched(tree, node_patch(device(), tree, wanted(projection=OTHER)))
    assert after["metadata"]["labels"] == {**OTHER.labels, "example.net/rack": "7"}
    assert is_projected(after, OTHER)
    assert not is_projected(after, PROJECTION)


def test_a_label_that_somebody_changed_is_put_back() -> None:
    tree = made()
    tree["metadata"]["labels"][names.ZONE] = "elsewhere"
    assert not is_projected(tree, PROJECTION)
    assert is_projected(patched(tree, node_patch(device(), tree, wanted())), PROJECTION)


def test_without_a_projection_labels_stay_and_the_guard_is_put_up() -> None:
    tree = made()
    tree["spec"]["taints"] = []
    after = patched(tree, node_patch(device(), tree, wanted(projection=None)))
    assert after["metadata"]["labels"] == tree["metadata"]["labels"]
    assert after["spec"]["taints"] == [GUARD.tree()]


def test_every_patch_is_bound_to_the_version_that_was_read() -> None:
    patch: Any = node_patch(device(), node(), wanted())
    assert {"uid": NODE_UID, "resourceVersion": "20"}.items() <= patch["metadata"].items()


def test_guards_come_and_go_and_taints_of_others_stay() -> None:
    tree = made()
    foreign = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-02-01T00:00:00Z"}
    tree["spec"]["taints"].append(foreign)
    after = patched(tree, node_patch(device(), tree, wanted(guard=False, maintenance=True)))
    assert after["spec"]["taints"] == [foreign, MAINTENANCE.tree()]
    again = patched(after, node_patch(device(), after, wanted(guard=False)))
    assert again["spec"]["taints"] == [foreign]


def test_static_taints_of_the_device_are_managed_and_removed_with_it() -> None:
    tree, mine = made(), device()
    mine["spec"]["taints"] = [{"key": "example.net/lab", "value": "yes", "effect": "NoExecute"}]
    after = patched(tree, node_patch(mine, tree, wanted(guard=False)))
    assert after["metadata"]["annotations"][names.MANAGED_TAINTS] == "example.net/lab|NoExecute"
    assert after["spec"]["taints"] == mine["spec"]["taints"]
    assert patched(after, node_patch(device(), after, wanted(guard=False)))["spec"]["taints"] == []


def test_an_unknown_pod_leaves_the_binding_of_the_last_one() -> None:
    tree = made()
    first = patched(tree, node_patch(device(), tree, wanted(network=Worker("system:network", "pod-1", "uid-1"))))
    assert node_patch(device(), first, wanted()) is None
    other = patched(first, node_patch(device(), first, wanted(network=Worker("system:network", "pod-2", "uid-2"))))
    assert other["metadata"]["annotations"][names.NETWORK_WORKER_POD_UID] == "uid-2"


def problem(tree: Any, seen: Any, *, is_others: bool = False) -> Reason | None:
    found = ownership_problem(tree, seen, is_others=is_others)
    return found.reason if found is not None else None


def test_a_node_is_made_when_none_was_bound_and_missed_when_one_was() -> None:
    assert problem(device(), None) is None
    assert problem(bound(device()), None) is Reason.NODE_MISSING


def test_a_node_with_another_uid_than_the_recorded_one_is_no_replacement() -> None:
    assert problem(bound(device()), node(uid="other", **{names.DEVICE_UID: DEVICE_UID})) is Reason.NODE_REPLACED


def test_a_node_of_ours_needs_no_adoption() -> None:
    assert problem(device(), node(**{names.DEVICE_UID: DEVICE_UID})) is None


def test_a_foreign_node_is_adopted_by_its_exact_uid_only() -> None:
    assert problem(device(), node()) is Reason.NODE_OCCUPIED
    assert problem(device(annotations={names.ADOPT_NODE_UID: "another"}), node()) is Reason.NODE_OCCUPIED
    assert problem(device(annotations={names.ADOPT_NODE_UID: NODE_UID}), node()) is None


def test_a_node_that_is_not_virtual_is_never_adopted() -> None:
    real = node()
    real["metadata"]["labels"] = {}
    assert problem(device(annotations={names.ADOPT_NODE_UID: NODE_UID}), real) is Reason.NODE_OCCUPIED


def test_the_node_of_another_live_device_is_never_adopted() -> None:
    seen = node(**{names.DEVICE_UID: "other", names.DEVICE_NAMESPACE: "campus", names.DEVICE_NAME: "two"})
    tree = device(annotations={names.ADOPT_NODE_UID: NODE_UID})
    found = ownership_problem(tree, seen, is_others=True)
    assert found is not None
    assert "campus/two" in found.message
    assert problem(tree, seen) is None


def test_another_projection_needs_approval_of_the_one_that_is_left() -> None:
    stored = {"topologyProjection": {"effectiveLabelHash": "sha256:2"}}
    assert reclassification_problem(device(), PROJECTION) is None
    found = reclassification_problem(device(status=stored), PROJECTION)
    assert found is not None
    assert f"{names.APPROVE_RECLASSIFICATION}: sha256:2" in found.message
    approved = device(status=stored, annotations={names.APPROVE_RECLASSIFICATION: "sha256:2"})
    assert reclassification_problem(approved, PROJECTION) is None


def test_an_approved_projection_waits_while_a_campaign_holds_the_device() -> None:
    stored = {
        "topologyProjection": {"effectiveLabelHash": "sha256:2"},
        "topologyLock": {"campaignNamespace": "campus", "campaignName": "spring"},
    }
    approved = device(status=stored, annotations={names.APPROVE_RECLASSIFICATION: "sha256:2"})
    found = reclassification_problem(approved, PROJECTION)
    assert found is not None
    assert "campus/spring" in found.message


def written(**condition: Any) -> Any:
    return {
        **node(),
        "status": {
            "conditions": [
                {
                    "type": names.MANAGED_WRITER,
                    "status": "True",
                    "reason": names.MANAGED_WRITER_REASON,
                    "lastHeartbeatTime": to_rfc3339(NOW),
                    **condition,
                }
            ]
        },
    }


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (node(), "no condition"),
        (written(status="False"), "False"),
        (written(reason="Other"), "Other"),
        (written(lastHeartbeatTime=to_rfc3339(NOW - timedelta(seconds=1))), "since the projection"),
        (written(lastHeartbeatTime="soon"), "since the projection"),
        (written(), ""),
    ],
    ids=["absent", "false", "reason", "older", "unreadable", "answered"],
)
def test_the_managed_writer_has_to_answer_after_the_projection(seen: Any, says: str) -> None:
    found = writer_problem(seen, projected_at=NOW)
    assert says in found if says else found == ""


def test_no_writer_answers_a_projection_that_is_not_recorded() -> None:
    assert writer_problem(written(), projected_at=None)


def test_a_binding_that_somebody_changed_is_put_back_on_the_recorded_node() -> None:
    tree, mine = made(), bound(device())
    tree["metadata"]["annotations"] |= {names.DEVICE_UID: "other", names.NODE_UID: "other"}
    assert problem(mine, tree) is None
    assert not is_bound(mine, tree)
    assert is_bound(mine, patched(tree, node_patch(mine, tree, wanted())))

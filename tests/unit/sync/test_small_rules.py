"""Field paths, edits of managedFields, fights and dependencies between units: the small pure rules of the room."""

from typing import Any

import pytest

from gitops_ctl.core.ids import NamespacedName, ObjectId
from gitops_ctl.sync.depends import cycle_of, waits_for
from gitops_ctl.sync.drift import Heat, cooled, due_s, repaired
from gitops_ctl.sync.fieldpath import declared_pointers, declares
from gitops_ctl.sync.takeover import migration_patch, needs_takeover, takeover_patch

TREE: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web"}, "finalizers": ["a/b"]},
    "spec": {
        "replicas": 1,
        "containers": [{"name": "web", "image": "w", "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.replicas", True),
        (".spec.paused", False),
        (".metadata.labels.app.kubernetes.io/name", True),
        (".metadata.labels.app.kubernetes.io/part-of", False),
        ('.spec.containers[name="web"].image', True),
        ('.spec.containers[name="side"].image', False),
        ('.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]', True),
        ('.spec.containers[name="web"].ports[containerPort=80,protocol="UDP"]', False),
        ('.metadata.finalizers[="a/b"]', True),
        (".spec", True),
        (".specific", False),
    ],
)
def test_whether_a_document_declares_a_field_that_the_server_names(path: str, expected: bool) -> None:
    assert declares(TREE, path) is expected


def test_the_leaves_of_managed_fields_in_the_notation_of_the_server() -> None:
    fields = {"f:spec": {".": {}, "f:ports": {'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}}}, "f:x": {}}}
    assert declared_pointers(fields) == ['.spec.ports[port=53,protocol="UDP"].port', ".spec.x"]


def managed(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "metadata": {"resourceVersion": "7", "managedFields": list(entries)}}


def of(manager: str, operation: str, **fields: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsV1": {f"f:{name}": {} for name in fields},
    }


def test_S03_the_fields_of_client_side_tools_become_ours_and_people_keep_theirs() -> None:
    tree = managed(
        of("kubectl-client-side-apply", "Update", a=1, b=1),
        of("gitops-ctl", "Apply", b=1),
        of("kubectl-edit", "Update", c=1),
    )
    assert needs_takeover(tree)
    test, change = takeover_patch(tree)
    assert test == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    merged, edited = change["value"]  # type: ignore[misc]
    assert (merged["manager"], merged["operation"], merged["fieldsV1"]) == (
        "gitops-ctl",
        "Apply",
        {"f:a": {}, "f:b": {}},
    )
    assert edited["manager"] == "kubectl-edit"


def test_S11_versions_that_are_not_served_are_renamed() -> None:
    tree = managed({**of("x", "Update", a=1), "apiVersion": "example.net/v1beta1"}, of("y", "Apply", b=1))
    _, change = migration_patch({**tree, "apiVersion": "example.net/v1"}, served=["example.net/v1", "v1"])
    assert [entry["apiVersion"] for entry in change["value"]] == ["example.net/v1", "v1"]  # type: ignore[union-attr,index,call-overload]
    assert migration_patch(tree, served=["example.net/v1beta1", "v1"]) == []


ITEM = ObjectId("apps", "Deployment", "lab", "web")


def test_S19_five_repairs_in_a_minute_are_a_fight_and_then_one_per_minute_is_allowed() -> None:
    heat = None
    for second in range(6):
        assert due_s(heat, now_s=second) == 0
        heat = repaired(heat, manager="autoscaler", now_s=second)
    assert heat is not None
    assert heat.fighting
    assert heat.manager == "autoscaler"
    assert due_s(heat, now_s=5) == 60
    assert due_s(heat, now_s=65) == 0


def test_a_fight_ends_when_the_object_is_left_alone() -> None:
    heat = Heat(6.0, 0.0, "autoscaler", fighting=True)
    assert cooled({ITEM: heat}, now_s=60)[ITEM].fighting
    assert not cooled({ITEM: heat}, now_s=180)[ITEM].fighting
    assert cooled({ITEM: heat}, now_s=600) == {}


def test_repairs_that_are_far_apart_are_no_fight() -> None:
    heat = None
    for minute in range(20):
        heat = repaired(heat, manager="", now_s=minute * 60)
    assert heat is not None
    assert not heat.fighting


def a_sync(name: str, *, revision: str = "r1", ready: str = "True", observed: int = 1) -> dict[str, Any]:
    status = {
        "lastAppliedRevision": revision,
        "observedGeneration": observed,
        "conditions": [{"type": "Ready", "status": ready}],
    }
    return {"metadata": {"name": name, "namespace": "team", "generation": 1}, "status": status}


@pytest.mark.parametrize(
    ("tree", "waits"),
    [
        (a_sync("base"), False),
        (a_sync("base", revision="r0"), True),
        (a_sync("base", ready="False"), True),
        (a_sync("base", observed=0), True),
        (None, True),
    ],
    ids=["ready", "old revision", "not ready", "old spec", "absent"],
)
def test_a_unit_waits_for_dependencies_at_their_newest_revision(tree: dict[str, Any] | None, waits: bool) -> None:
    reasons = waits_for(
        ["base"], namespace="team", find={NamespacedName("team", "base"): tree}.get, newest=lambda _: "r1"
    )
    assert bool(reasons) is waits


def test_a_cycle_between_units_is_named() -> None:
    edges = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
    assert cycle_of("a", edges=edges.__getitem__) == ("a", "b", "c")
    assert cycle_of("d", edges=edges.__getitem__) == ()

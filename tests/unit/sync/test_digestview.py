"""Which changes of a live object make its digest another one.  Faults S02, S06, S12, S14, S15 in the small."""

from copy import deepcopy
from typing import Any

from gitops_ctl.sync.digestview import view_of
from gitops_ctl.sync.model import HealthStatus

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "lab",
        "uid": "u1",
        "resourceVersion": "5",
        "generation": 1,
        "annotations": {"gitops-ctl.dev/prune": "disabled", "gitops-ctl.dev/propagation": "Orphan"},
        "finalizers": ["b", "a"],
        "managedFields": [
            {
                "manager": "gitops-ctl",
                "operation": "Apply",
                "time": "2026-11-30T08:00:00Z",
                "fieldsV1": {
                    "f:metadata": {"f:annotations": {"f:gitops-ctl.dev/prune": {}}, "f:finalizers": {'v:"a"': {}}},
                    "f:spec": {
                        "f:replicas": {},
                        "f:template": {
                            "f:spec": {
                                "f:containers": {
                                    'k:{"name":"web"}': {
                                        ".": {},
                                        "f:name": {},
                                        "f:image": {},
                                        "f:ports": {
                                            'k:{"containerPort":53,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                                            'k:{"containerPort":53,"protocol":"UDP"}': {".": {}, "f:containerPort": {}},
                                        },
                                    }
                                }
                            }
                        },
                    },
                },
            }
        ],
    },
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {
                "containers": [
                    {"name": "side", "image": "s"},
                    {
                        "name": "web",
                        "image": "w",
                        "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
                    },
                ]
            }
        },
    },
}


def digest_of(tree: dict[str, Any]) -> str:
    return view_of(tree).digest


def changed(edit: str) -> dict[str, Any]:
    tree = deepcopy(DEPLOYMENT)
    containers = tree["spec"]["template"]["spec"]["containers"]
    match edit:
        case "value":
            tree["spec"]["replicas"] = 2
        case "field lost":
            del tree["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:replicas"]
        case "element gone":
            del containers[1]["ports"][1]
        case "default added":
            containers[1]["imagePullPolicy"] = "Always"
        case "foreign element":
            containers.insert(0, {"name": "injected"})
        case "order":
            containers.reverse()
            containers[0]["ports"].reverse()
            tree["metadata"]["finalizers"].reverse()
        case "set member gone":
            tree["metadata"]["finalizers"] = ["b"]
        case "time and version":
            tree["metadata"]["resourceVersion"] = "6"
            tree["metadata"]["managedFields"][0]["time"] = "2026-11-30T09:00:00Z"
            tree["status"] = {"replicas": 1}
    return tree


def test_S12_S15_defaults_foreign_fields_order_and_status_make_no_difference() -> None:
    for edit in ("default added", "foreign element", "order", "time and version"):
        assert digest_of(changed(edit)) == digest_of(DEPLOYMENT), edit


def test_S02_values_lost_fields_and_missing_elements_make_a_difference() -> None:
    digests = [digest_of(changed(edit)) for edit in ("value", "field lost", "element gone", "set member gone")]
    assert len({digest_of(DEPLOYMENT), *digests}) == 5


def test_an_object_without_our_apply_has_no_digest() -> None:
    tree = deepcopy(DEPLOYMENT)
    tree["metadata"]["managedFields"][0]["operation"] = "Update"
    assert digest_of(tree) == ""


def test_only_annotations_that_we_applied_count() -> None:
    found = view_of(DEPLOYMENT)
    assert found.prune_disabled
    assert found.propagation == ""
    assert (found.uid, found.version) == ("u1", "5")
    assert found.health.status is HealthStatus.IN_PROGRESS


def test_a_binding_tells_whom_it_gives_which_role() -> None:
    found = view_of(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "team"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "ServiceAccount", "namespace": "team", "name": "applier"},
                {"kind": "User", "name": "x"},
            ],
        }
    )
    assert found.binds == ("team/applier",)
    assert str(found.role) == "Role.rbac.authorization.k8s.io/team/r"


def test_atomic_lists_and_scalars_are_compared_whole() -> None:
    def tree(values: list[int]) -> dict[str, Any]:
        entry = {"manager": "gitops-ctl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:list": {}, "f:gone": {}}}}
        return {"metadata": {"managedFields": [entry]}, "spec": {"list": values}}

    assert digest_of(tree([1, 2])) != digest_of(tree([2, 1]))

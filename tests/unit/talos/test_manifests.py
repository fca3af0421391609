"""Objects of kube-proxy are told from everything else, and are fit for the API server (cni-switch.md, 8.1, 8.3 and 15.6)."""

import json

import pytest
from google.protobuf import json_format, struct_pb2

from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.talos.manifests import (
    INVENTORY_NAME,
    LABELS,
    OWNING_INVENTORY,
    is_kube_proxy_object,
    kube_proxy_objects,
    with_integers,
    with_inventory,
)


def an_object(
    kind: str, name: str, *, namespace: str = "kube-system", labels=None, annotations=None
) -> dict[str, object]:
    versions = {"DaemonSet": "apps/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1"}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata}


OURS = [
    an_object("DaemonSet", "kube-proxy", labels=LABELS),
    an_object("ServiceAccount", "kube-proxy"),
    an_object("ClusterRoleBinding", "kube-proxy", namespace=""),
    an_object("ConfigMap", "kube-proxy-config-0123456789abcdef", labels=LABELS),
    an_object("ConfigMap", "kube-proxy-0a1b2c", annotations={OWNING_INVENTORY: INVENTORY_NAME}),
    an_object("ConfigMap", "kube-proxy"),
]
OTHERS = [
    an_object("ConfigMap", "kube-proxy-config-0123456789abcdef"),
    an_object("ConfigMap", "kube-proxy-config-0123456789abcdef", labels={"k8s-app": "kube-proxy"}),
    an_object("ConfigMap", "kube-proxy-config-0123456789abcdef", annotations={OWNING_INVENTORY: "another"}),
    an_object("ConfigMap", "kube-proxy-windows", labels=LABELS),
    an_object("ConfigMap", "kube-proxy-user-settings", labels=LABELS),
    an_object("ConfigMap", "kube-proxy-config-0123", labels=LABELS),
    an_object("ConfigMap", "kubeconfig-in-cluster", labels=LABELS),
    an_object("ConfigMap", "kube-proxy", namespace="team-network", labels=LABELS),
    an_object("DaemonSet", "kube-proxy", namespace="team-network"),
    an_object("DaemonSet", "kube-proxy-windows"),
    an_object("ServiceAccount", "kube-proxy", namespace="default"),
    an_object("ClusterRoleBinding", "kube-proxy-extra", namespace=""),
    an_object("Deployment", "kube-proxy") | {"apiVersion": "apps/v1"},
    an_object("DaemonSet", "kube-proxy") | {"apiVersion": "extensions/v1beta1"},
]


@pytest.mark.parametrize("tree", OURS, ids=lambda tree: f"{tree['kind']}-{tree['metadata']['name']}")
def test_what_talos_renders_for_kube_proxy_is_recognised(tree):
    assert is_kube_proxy_object(tree)


@pytest.mark.parametrize("tree", OTHERS, ids=lambda tree: f"{tree['kind']}-{tree['metadata']['name']}")
def test_what_only_looks_like_it_is_left_alone(tree):
    assert not is_kube_proxy_object(tree)


def test_a_pod_finds_everything_it_needs_when_it_is_restored():
    kinds = [text_at(tree, "kind") for tree in kube_proxy_objects([*OURS, *OTHERS])]
    assert kinds == ["ConfigMap"] * 3 + ["ServiceAccount", "ClusterRoleBinding", "DaemonSet"]


def test_integers_survive_the_protocol_that_has_only_floats():
    tree = {"spec": {"maxUnavailable": 1, "share": 0.5, "list": [{"port": 10256}, "text", True, None]}}
    carried = struct_pb2.Struct()
    carried.update(tree)
    assert '"maxUnavailable": 1.0' in json.dumps({"maxUnavailable": carried["spec"]["maxUnavailable"]})
    found = with_integers(json_format.MessageToDict(carried))
    assert json.dumps(found, sort_keys=True) == json.dumps(tree, sort_keys=True)


def test_integral_floats_become_integers_at_every_depth():
    tree = {"a": 1.0, "b": {"c": [2.0, {"d": 3.0}]}}
    assert json.dumps(with_integers(tree)) == '{"a": 1, "b": {"c": [2, {"d": 3}]}}'


def test_a_float_that_is_no_integer_or_too_large_stays():
    assert with_integers({"a": 1.5, "b": 1e300}) == {"a": 1.5, "b": 1e300}


def test_a_restored_object_names_its_inventory_and_keeps_its_other_annotations():
    tree = an_object("DaemonSet", "kube-proxy", annotations={"example.net/a": "b"})
    found = with_inventory(tree)
    assert found["metadata"]["annotations"] == {"example.net/a": "b", OWNING_INVENTORY: INVENTORY_NAME}
    assert tree["metadata"]["annotations"] == {"example.net/a": "b"}

"""The objects that Talos renders for kube-proxy, and how they are told from others (cni-switch.md, sections 8.1, 8.3 and 15.6)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gitops_ctl.core.canonical import MAX_SAFE_INTEGER
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at

NAMESPACE: Final = "kube-system"
INVENTORY_NAME: Final = "talos-bootstrap-manifests-inventory"
OWNING_INVENTORY: Final = "config.k8s.io/owning-inventory"
FIELD_MANAGER: Final = "talos"
LABELS: Final[Mapping[str, str]] = {"tier": "node", "k8s-app": "kube-proxy"}

_NAME: Final = "kube-proxy"
_CONFIG_NAME: Final = re.compile(r"kube-proxy(-config)?(-[0-9a-f]{6,64})?")
_RESTORE_ORDER: Final = ("ConfigMap", "ServiceAccount", "ClusterRoleBinding", "DaemonSet")
_FIXED: Final[Mapping[tuple[str, str], str]] = {
    ("apps/v1", "DaemonSet"): NAMESPACE,
    ("v1", "ServiceAccount"): NAMESPACE,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "",
}


def with_integers(value: JsonObject) -> JsonObject:
    """A copy in which integral floats are integers: the protocol has only floats, and the API server refuses `1.0`."""
    return {key: _with_integers(member) for key, member in value.items()}


def is_kube_proxy_object(tree: JsonObject) -> bool:
    """Whether an object, rendered or live, is one of those that Talos makes for kube-proxy.

    A ConfigMap whose name has more than `kube-proxy` must also carry Talos' labels or its inventory annotation.
    """
    kind = text_at(tree, "apiVersion"), text_at(tree, "kind")
    name, namespace = text_at(tree, "metadata", "name"), text_at(tree, "metadata", "namespace")
    if kind in _FIXED:
        return (name, namespace) == (_NAME, _FIXED[kind])
    if kind != ("v1", "ConfigMap") or namespace != NAMESPACE or not _CONFIG_NAME.fullmatch(name):
        return False
    return name == _NAME or _is_marked(tree)


def kube_proxy_objects(items: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Those of `items` that belong to kube-proxy, in the order in which they are restored."""
    found = [item for item in items if is_kube_proxy_object(item)]
    return tuple(sorted(found, key=restore_order))


def restore_order(tree: JsonObject) -> tuple[int, str]:
    """Sorts what a pod needs before the DaemonSet."""
    return _RESTORE_ORDER.index(text_at(tree, "kind")), text_at(tree, "metadata", "name")


def with_inventory(tree: JsonObject) -> JsonObject:
    """A copy that says to which inventory it belongs, as Talos' own apply does: a later sync would refuse it otherwise."""
    metadata = object_at(tree, "metadata")
    annotations = {**object_at(metadata, "annotations"), OWNING_INVENTORY: INVENTORY_NAME}
    return {**tree, "metadata": {**metadata, "annotations": annotations}}


def _is_marked(tree: JsonObject) -> bool:
    labels = object_at(tree, "metadata", "labels")
    owner = text_at(tree, "metadata", "annotations", OWNING_INVENTORY)
    return owner == INVENTORY_NAME or all(labels.get(key) == value for key, value in LABELS.items())


def _with_integers(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return with_integers(value)
    if isinstance(value, (list, tuple)):
        return [_with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return value

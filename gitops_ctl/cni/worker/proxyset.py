"""The objects of kube-proxy as the API server has them (cni-switch.md, sections 8.1 to 8.3).  Pure.

Which objects they are says `talos.manifests`; here are their kinds, their order, and how the status lists them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.talos_fields import ProxyObject as SeenObject
from gitops_ctl.api.talos_operation import ChangedObject
from gitops_ctl.core.ids import GroupVersionKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.talos.manifests import kube_proxy_objects, with_integers, with_inventory

NAME: Final = "kube-proxy"
POD_LABELS: Final = "k8s-app=kube-proxy,tier=node"

DAEMON_SETS: Final = Resource(GroupVersionKind("apps", "v1", "DaemonSet"), "daemonsets", namespaced=True)
SERVICE_ACCOUNTS: Final = Resource(GroupVersionKind("", "v1", "ServiceAccount"), "serviceaccounts", namespaced=True)
BINDINGS: Final = Resource(
    GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"), "clusterrolebindings", namespaced=False
)
CONFIG_MAPS: Final = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)

NAMED: Final = (DAEMON_SETS, SERVICE_ACCOUNTS, BINDINGS)
"""Kinds of which exactly one object is meant, in the order of their removal; the ConfigMaps come last."""


@dataclass(frozen=True, slots=True, order=True)
class ProxyObject:
    """One object of the set as it was found; `uid` is empty for one that is only rendered."""

    id: ObjectId
    uid: str = ""

    @staticmethod
    def of(tree: JsonObject) -> "ProxyObject":
        """The object of a stored tree with its kind."""
        return ProxyObject(ObjectId.of(tree), text_at(tree, "metadata", "uid"))

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return path_of(self.id)

    def seen(self) -> SeenObject:
        """As an observation lists it."""
        return SeenObject(group=self.id.group, kind=self.id.kind, namespace=self.id.namespace, name=self.id.name)

    def changed(self, *, at: str) -> ChangedObject:
        """As the record of what was removed or restored lists it."""
        return ChangedObject(**dict(self.seen()), uid=self.uid, at=at)

    def __str__(self) -> str:
        return f"{self.id.kind} {self.id.name}"


def path_of(id: ObjectId) -> str:
    """Path of an object of the set.

    Raises:
        KeyError: no such kind is in the set.
    """
    kinds = {resource.gvk.group_kind: resource for resource in (*NAMED, CONFIG_MAPS)}
    return kinds[id.group_kind].path(id.namespace, id.name)


def rendered_set(manifests: Iterable[JsonObject]) -> Mapping[ObjectId, JsonObject]:
    """The manifests of the set by object, in the order in which they are applied, ready to be applied."""
    return {ObjectId.of(tree): _as_applied(tree) for tree in kube_proxy_objects(manifests)}


def _as_applied(manifest: JsonObject) -> JsonObject:
    """With the mark of the inventory, without a status, and with integers where the protocol has floats."""
    return with_integers({name: value for name, value in with_inventory(manifest).items() if name != "status"})

"""The kinds that the scheduling room watches, at the versions that it understands (topology-scheduling.md, 1.5 and 7)."""

from typing import Final

from gitops_ctl.core.ids import GroupVersionKind
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.scheduling.sourceports import NODE_FEATURE, SOURCE

__all__ = ["CHECK", "CONFIG_MAP", "FLAVOR", "NODE", "NODE_FEATURE", "QUEUE", "SECRET", "SOURCE", "TOPOLOGY"]

KUEUE_GROUP: Final = "kueue.x-k8s.io"
KUEUE_VERSION: Final = "v1beta2"


def _kueue(kind: str, plural: str) -> Resource:
    return Resource(GroupVersionKind(KUEUE_GROUP, KUEUE_VERSION, kind), plural, namespaced=False)


NODE: Final = Resource(GroupVersionKind("", "v1", "Node"), "nodes", namespaced=False)
CONFIG_MAP: Final = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
SECRET: Final = Resource(GroupVersionKind("", "v1", "Secret"), "secrets", namespaced=True)
TOPOLOGY: Final = _kueue("Topology", "topologies")
FLAVOR: Final = _kueue("ResourceFlavor", "resourceflavors")
QUEUE: Final = _kueue("ClusterQueue", "clusterqueues")
CHECK: Final = _kueue("AdmissionCheck", "admissionchecks")

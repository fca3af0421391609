"""Names of the resources that are read: where they are, and which message they hold (cni-switch.md, section 14.5)."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from gitops_ctl.netpb.talos.resource.config import config_pb2
from gitops_ctl.netpb.talos.resource.definitions.k8s import k8s_pb2
from gitops_ctl.netpb.talos.resource.definitions.runtime import runtime_pb2
from gitops_ctl.netpb.talos.resource.definitions.v1alpha1 import v1alpha1_pb2

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class ResourceKind(Generic[M]):
    """One type of resource."""

    namespace: str
    name: str
    message: type[M]


MACHINE_CONFIGS = ResourceKind("config", "MachineConfigs.config.talos.dev", config_pb2.MachineConfigSpec)
MACHINE_TYPES = ResourceKind("config", "MachineTypes.config.talos.dev", config_pb2.MachineTypeSpec)
BOOTSTRAP_MANIFESTS = ResourceKind(
    "controlplane", "BootstrapManifestsConfigs.kubernetes.talos.dev", k8s_pb2.BootstrapManifestsConfigSpec
)
MANIFESTS = ResourceKind("controlplane", "Manifests.kubernetes.talos.dev", k8s_pb2.ManifestSpec)
KUBEPRISM_CONFIGS = ResourceKind("k8s", "KubePrismConfigs.kubernetes.talos.dev", k8s_pb2.KubePrismConfigSpec)
KUBEPRISM_STATUSES = ResourceKind("k8s", "KubePrismStatuses.kubernetes.talos.dev", k8s_pb2.KubePrismStatusesSpec)
NODENAMES = ResourceKind("k8s", "Nodenames.kubernetes.talos.dev", k8s_pb2.NodenameSpec)
STATIC_POD_STATUSES = ResourceKind("k8s", "StaticPodStatuses.kubernetes.talos.dev", k8s_pb2.StaticPodStatusSpec)
SERVICES = ResourceKind("runtime", "Services.v1alpha1.talos.dev", v1alpha1_pb2.ServiceSpec)
BOOT_IDS = ResourceKind("runtime", "BootIDs.runtime.talos.dev", runtime_pb2.BootIDSpec)

"""The kind TalosCluster: which side serves Services, and who steers the change (cni-switch.md, section 3.1)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import (
    UNIQUE,
    Conditions,
    Count,
    DnsLabel,
    DnsName,
    FilePath,
    FolderPath,
    Generation,
    KindName,
    ObjectMeta,
    SecretRef,
    Timestamp,
)
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model, rule
from gitops_ctl.api.names import ICHOR_GROUP
from gitops_ctl.api.talos_fields import Contract, LiveMode, Message, Mode, ObjectIdText, Reason, Uid

Shape = Literal["auto", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]
DEFAULT_PROXY_IMAGE = "registry.k8s.io/kube-proxy:v{version}"


class ValuesSource(Model):
    """A GitSource of the same namespace; without `trust` it feeds proposals only."""

    name: DnsName


class ValuesObject(Model):
    """The object that deploys Cilium."""

    kind: KindName
    name: DnsName
    namespace: DnsLabel | None = None


class ValuesLocator(Model):
    """Where the values of Cilium lie in Git (cni-switch.md, section 12.2)."""

    source_ref: ValuesSource
    path: FolderPath = ""
    """File or folder, relative to the root; empty for the root."""
    shape: Shape = "auto"
    """Form of the values; `auto` proposes only where exactly one place fits."""
    object: ValuesObject | None = None
    """The HelmRelease, Application or other object to look at."""
    document_index: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Document of the file, from 0."""
    key_prefix: Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.PRINTABLE)] | None = None
    """Keys above the values, with dots between them."""
    also_sets: Annotated[tuple[FilePath, ...], Field(max_length=16), UNIQUE] = ()
    """Further files that hold the same values and are changed with them."""


class DeniedVersion(Model):
    """Versions that a switch must not meet."""

    component: Literal["cilium", "talos", "kubernetes"]
    versions: Annotated[str, Field(min_length=1, max_length=256, pattern=patterns.VERSION_RANGE)]
    """Bounds with a space or a comma between them hold together, `||` starts another range."""
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    """Shown when the switch stops."""


class Steering(Model):
    """How people steer the operation that runs; each by a signed commit."""

    resume: Count = 0
    """Raised: the failed step is tried again."""
    cancel: bool = False
    """True: the operation ends while no machine was touched yet."""
    break_lock: bool = False
    """True: a paused operation ends and lets go of the cluster; nothing is undone."""


class ClusterCni(Model):
    """Who serves Services, and how a change of it is carried out."""

    kube_proxy: Mode = "enabled"
    """Wanted mode.  A change needs the annotation ichor.maesh.dev/confirm-kube-proxy-switch with the same value."""
    preset: Literal["cilium", "custom"] = "cilium"
    """The CNI; only `cilium` can be read, and so switched."""
    handover: Literal["disabled", "git"] = "disabled"
    """`git`: the CNI is an application from Git; `disabled`: it is an inline manifest of the machines."""
    values: ValuesLocator | None = None
    """Where the values of Cilium lie."""
    proxy_image: Annotated[str, Field(min_length=1, max_length=512, pattern=patterns.IMAGE_TEMPLATE)] = (
        DEFAULT_PROXY_IMAGE
    )
    """Image of kube-proxy where the configuration names none."""
    denied_versions: Annotated[tuple[DeniedVersion, ...], Field(max_length=64)] = ()
    """Versions that stop a switch before it begins."""
    max_parallel_workers: Annotated[int, Field(ge=1, le=1000)] = 1
    """Workers that are changed at the same time; control planes go one at a time."""
    consent_cleanup: bool = True
    """A pull request removes the consent once it is spent."""
    operation: Steering = Steering()
    """Resume, cancel, or break the lock."""

    @rule(
        "!has(self.values) || (has(self.handover) && self.handover == 'git')",
        message="values are looked for with handover: git only",
    )
    def _values_need_git(self) -> bool:
        return self.values is None or self.handover == "git"


class TalosClusterSpec(Model):
    """One cluster of Talos machines."""

    talosconfig_secret_ref: SecretRef
    """Secret with the key talosconfig, role os:admin; mounted by the cluster worker."""
    kubeconfig_secret_ref: SecretRef | None = None
    """Secret with the key kubeconfig, with narrow rights; left out: the one that Talos gives to administrators."""
    contract: Contract | None = None
    """Form of the machine configuration; left out: the form that the machines use already."""
    cni: ClusterCni = ClusterCni()
    """Who serves Services."""


class ConsumedConsent(Model):
    """The consent that was spent last."""

    commit: ObjectIdText
    """Commit that introduced the value of the annotation."""
    target: Mode
    operation_uid: Annotated[Uid, Field(alias="operationUID")]


class CniDrift(Model):
    """What differs from the mode after the switch has ended."""

    reason: Reason
    message: Message = ""
    since: Timestamp


class ClusterCniStatus(Model):
    """Which side serves Services."""

    kube_proxy: Mode | None = None
    """Mode that the machines are switched to; it wins over spec."""
    observed_mode: LiveMode | None = None
    """What the worker saw last."""
    observed_at: Timestamp | None = None
    """When that value was seen first."""
    consumed_consent: ConsumedConsent | None = None
    drift: CniDrift | None = None


class Lock(Model):
    """Who may change this cluster now; it has no expiry."""

    holder: Annotated[str, Field(min_length=1, max_length=317)]
    """Name of the object that holds it."""
    operation_uid: Annotated[Uid, Field(alias="operationUID")]
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Kind of the operation."""
    since: Timestamp


class TalosClusterStatus(Model):
    """Mode, consent and lock."""

    observed_generation: Generation = 0
    cni: ClusterCniStatus = ClusterCniStatus()
    lock: Lock | None = None
    conditions: Conditions = ()


class TalosCluster(Model):
    """A cluster of Talos machines, as far as its kube-proxy is concerned."""

    api_version: Literal["ichor.maesh.dev/v1alpha1"]
    kind: Literal["TalosCluster"]
    metadata: ObjectMeta
    spec: TalosClusterSpec
    status: TalosClusterStatus = TalosClusterStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="TalosCluster",
        plural="talosclusters",
        group=ICHOR_GROUP,
        columns=(
            Column("Wanted", ".spec.cni.kubeProxy", description="Mode that Git asks for"),
            Column("Set", ".status.cni.kubeProxy", description="Mode that the machines are switched to"),
            Column("Live", ".status.cni.observedMode", description="Mode that the cluster shows"),
            Column("Lock", ".status.lock.holder", description="Operation that holds the cluster"),
            AGE,
            Column("Drift", ".status.cni.drift.reason", priority=1),
            Column("Handover", ".spec.cni.handover", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
        ),
    )

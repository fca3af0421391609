"""The kinds TalosMachine and TalosConfigPatch (cni-switch.md, sections 3.2 and 3.4)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import (
    FIXED,
    UNIQUE,
    Conditions,
    DnsName,
    Generation,
    ObjectMeta,
    SecretRef,
    Timestamp,
)
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model
from gitops_ctl.api.names import ICHOR_GROUP
from gitops_ctl.api.talos_fields import ClusterRef, ConfigPath, Digest, Pending, Role, Version

DEFAULT_PORT = 50000


class TalosMachineSpec(Model):
    """One machine and where it answers."""

    cluster_ref: Annotated[ClusterRef, FIXED]
    """The cluster that it belongs to."""
    address: Annotated[str, Field(min_length=1, max_length=261, pattern=patterns.HOST_AND_PORT)]
    """IP address or name of the Talos API; the port is 50000 where none is given."""
    node_name: DnsName | None = None
    """Name of its Node; left out: the name of this object."""
    role: Role
    """Checked against what the machine says."""
    config_secret_ref: SecretRef | None = None
    """Secret with the key machineconfig.yaml: a configuration that somebody else rendered."""


class MachineObservation(Model):
    """What the worker saw of one machine; hashes and paths, never configuration."""

    at: Timestamp
    version: Version = ""
    """Version of Talos."""
    type: Annotated[str, Field(max_length=32)] = ""
    """Type that the machine says it has."""
    hash: Digest | None = None
    """Of the active configuration."""
    kube_proxy: Literal["enabled", "disabled"] | None = None
    """What the active configuration says."""
    pending: Annotated[tuple[Pending, ...], Field(max_length=200)] = ()
    """Differences to the supplied base."""


class TalosMachineStatus(Model):
    """What was seen, and what waits."""

    observed_generation: Generation = 0
    observed: MachineObservation | None = None
    reboot_paths: Annotated[tuple[ConfigPath, ...], Field(max_length=200)] = ()
    """Pending paths that need a reboot; empty while the only one is a pending switch."""
    conditions: Conditions = ()


class TalosMachine(Model):
    """One machine of a TalosCluster."""

    api_version: Literal["ichor.maesh.dev/v1alpha1"]
    kind: Literal["TalosMachine"]
    metadata: ObjectMeta
    spec: TalosMachineSpec
    status: TalosMachineStatus = TalosMachineStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="TalosMachine",
        plural="talosmachines",
        group=ICHOR_GROUP,
        columns=(
            Column("Cluster", ".spec.clusterRef.name"),
            Column("Role", ".spec.role"),
            Column("KubeProxy", ".status.observed.kubeProxy", description="What its configuration says"),
            condition_column("Ready", "Ready", "status"),
            condition_column("Reason", "Ready", "reason"),
            AGE,
            Column("Address", ".spec.address", priority=1),
            Column("Version", ".status.observed.version", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
        ),
    )


class PatchTargets(Model):
    """The machines that a patch is for; empty lists mean all of the cluster."""

    cluster_ref: ClusterRef
    roles: Annotated[tuple[Role, ...], Field(max_length=2), UNIQUE] = ()
    machines: Annotated[tuple[DnsName, ...], Field(max_length=1000), UNIQUE] = ()


class TalosConfigPatchSpec(Model):
    """A patch as its owner writes it."""

    patch: Annotated[str, Field(min_length=1, max_length=256 * 1024)]
    """Text in the legacy or in the document form."""
    targets: PatchTargets
    """Where its owner applies it."""


class TalosConfigPatch(Model):
    """A patch of machine configurations that somebody else applies; read to say where an entry lives."""

    api_version: Literal["ichor.maesh.dev/v1alpha1"]
    kind: Literal["TalosConfigPatch"]
    metadata: ObjectMeta
    spec: TalosConfigPatchSpec

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="TalosConfigPatch",
        plural="talosconfigpatches",
        group=ICHOR_GROUP,
        columns=(Column("Cluster", ".spec.targets.clusterRef.name"), AGE),
        has_status=False,
    )

"""The kind TalosOperation: one switch, its steps and its record (cni-switch.md, section 3.3).

Two processes write its status, each its own members: the executor everything but `WORKER_MEMBERS`.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import FIXED, Conditions, Count, DnsName, Generation, Keyed, ObjectMeta, Timestamp
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model
from gitops_ctl.api.names import ICHOR_GROUP
from gitops_ctl.api.talos_fields import (
    ClusterRef,
    Digest,
    Message,
    Mode,
    ObjectIdText,
    ProxyObject,
    RequestId,
    Role,
    ShortText,
    StepName,
    Uid,
)
from gitops_ctl.api.talos_observed import Observed

Phase = Literal[
    "Pending",
    "Preflight",
    "AwaitingCNIChange",
    "VerifyingNewSide",
    "SwitchingMachines",
    "RemovingKubeProxy",
    "Paused",
    "Succeeded",
    "Cancelled",
]
Action = Literal["observe", "apply-mode", "remove-kube-proxy", "restore-kube-proxy", "probe-service"]
MachineStateName = Literal["Pending", "Preparing", "Applying", "Verifying", "Done", "OnHold", "Failed"]

WORKER_MEMBERS: Final = ("claims", "receipts", "observed", "removed", "restored")
"""Members of the status that the cluster worker writes, and nobody else."""


class TalosOperationSpec(Model):
    """What is done to which cluster."""

    cluster_ref: Annotated[ClusterRef, FIXED]
    kind: Annotated[Literal["cni"], FIXED]
    target: Annotated[Mode, FIXED]
    """Mode that the cluster is switched to."""
    source_commit: Annotated[ObjectIdText, FIXED]
    """Accepted revision that completed the request."""


class SteeringMirror(Model):
    """The values of the cluster's spec.cni.operation that were acted on last."""

    resume: Count = 0
    cancel: bool = False
    break_lock: bool = False


class Clock(Model):
    """One wait; a restart never makes it longer."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.WAIT)]
    started_at: Timestamp
    deadline: Timestamp


class Request(Model):
    """One attempt at one effect, or one look."""

    id: RequestId
    action: Action
    machine: DnsName | None = None
    mode: Mode
    hash_before: Digest | None = None
    hash_wanted: Digest | None = None


class Claim(Model):
    """The worker is about to act; an id is claimed at most once."""

    id: RequestId
    worker: Annotated[str, Field(min_length=1, max_length=253)]
    at: Timestamp


class Receipt(Model):
    """What came of a request."""

    id: RequestId
    result: Literal["Done", "Refused", "Unknown"]
    at: Timestamp
    message: Message = ""
    hash_applied: Digest | None = None
    warnings: Annotated[tuple[Message, ...], Field(max_length=20)] = ()


class MachineProgress(Model):
    """One machine on its way."""

    name: DnsName
    role: Role
    state: MachineStateName
    hash_before: Digest | None = None
    hash_wanted: Digest | None = None
    hash_applied: Digest | None = None
    applied_at: Timestamp | None = None
    message: Message = ""


class ChangedObject(ProxyObject):
    """One object that was removed or restored."""

    uid: Uid
    at: Timestamp


class Baseline(Model):
    """How the CNI side looked when the operation began; a restart of the agents is proved against it."""

    checksum: ShortText | None = None
    generation: Generation = 0
    at: Timestamp


class OperationPullRequest(Model):
    """The pull request that proposes the change of the values; information only."""

    url: Annotated[str, Field(max_length=2048)] = ""
    number: Count = 0
    state: Annotated[str, Field(max_length=63)] = ""
    head_sha: Annotated[str, Field(max_length=64)] = ""
    values_hash: Annotated[str, Field(max_length=128)] = ""


_Requests = Annotated[tuple[Request, ...], Field(max_length=500), Keyed("id")]
_Claims = Annotated[tuple[Claim, ...], Field(max_length=500), Keyed("id")]
_Receipts = Annotated[tuple[Receipt, ...], Field(max_length=500), Keyed("id")]
_Changed = Annotated[tuple[ChangedObject, ...], Field(max_length=100), Keyed("uid")]


class TalosOperationStatus(Model):
    """Where the operation stands."""

    observed_generation: Generation = 0
    phase: Phase = "Pending"
    step: StepName | None = None
    operation: SteeringMirror | None = None
    clocks: Annotated[tuple[Clock, ...], Field(max_length=16), Keyed("name")] = ()
    requests: _Requests = ()
    claims: _Claims = ()
    receipts: _Receipts = ()
    observed: Observed | None = None
    baseline: Baseline | None = None
    machines: Annotated[tuple[MachineProgress, ...], Field(max_length=500), Keyed("name")] = ()
    removed: _Changed = ()
    restored: _Changed = ()
    conditions: Conditions = ()
    pull_request: OperationPullRequest | None = None


class TalosOperation(Model):
    """One supervised change of a cluster; made by the controller only."""

    api_version: Literal["ichor.maesh.dev/v1alpha1"]
    kind: Literal["TalosOperation"]
    metadata: ObjectMeta
    spec: TalosOperationSpec
    status: TalosOperationStatus = TalosOperationStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="TalosOperation",
        plural="talosoperations",
        group=ICHOR_GROUP,
        columns=(
            Column("Cluster", ".spec.clusterRef.name"),
            Column("Kind", ".spec.kind"),
            Column("Target", ".spec.target"),
            Column("Phase", ".status.phase"),
            Column("Step", ".status.step"),
            AGE,
            condition_column("Paused", "Paused", "reason", priority=1),
            Column("PullRequest", ".status.pullRequest.url", priority=1),
            Column("Commit", ".spec.sourceCommit", priority=1),
        ),
        has_defaults=False,
    )

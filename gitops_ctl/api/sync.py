"""The kind Sync: one folder of one source, applied as one ServiceAccount (gitops.md, section 22.2)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import (
    UNIQUE,
    CommitId,
    Conditions,
    Count,
    Digest,
    DnsLabel,
    DnsName,
    FolderPath,
    Generation,
    GroupName,
    KindName,
    LongText,
    ObjectMeta,
    ObjectName,
    SecretKeyRef,
    ShortText,
    SyncInterval,
    Timeout,
    Timestamp,
)
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model, rule

SHOWN = 50
"""Held and drifted objects that a status lists; the counts tell how many there are."""

Expression = Annotated[str, Field(min_length=1, max_length=1024)]


class SourceRef(Model):
    """A GitSource of the same namespace."""

    name: DnsName


class Prune(Model):
    """What happens to objects that left Git (gitops.md, section 9)."""

    enabled: bool = False
    """False: they stay and are listed as kept."""
    max_percent: Annotated[int, Field(ge=0, le=100)] = 25
    """Largest share of the inventory that goes without a consent, once more than five objects would go."""
    allow_empty: bool = False
    """True: an empty set of documents may remove everything without a consent."""


class HealthCheck(Model):
    """The health of one object, or the meaning of health for a kind."""

    group: GroupName = ""
    """API group; empty for the core group."""
    kind: KindName
    namespace: DnsLabel | None = None
    name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Waited for by name; left out: the expressions hold for every object of the kind."""
    in_progress: Expression | None = None
    """CEL over `object`; asked first."""
    failed: Expression | None = None
    """CEL over `object`; asked second."""
    current: Expression | None = None
    """CEL over `object`; asked last."""

    @rule("has(self.name) || has(self.current)", message="give a name, or the expression current, or both")
    def _says_something(self) -> bool:
        return self.name is not None or self.current is not None

    @rule(
        "has(self.current) || !(has(self.inProgress) || has(self.failed))",
        message="inProgress and failed need the expression current beside them",
    )
    def _expressions_are_complete(self) -> bool:
        return self.current is not None or (self.in_progress is None and self.failed is None)


class SyncSpec(Model):
    """What is applied, as whom, and how strictly."""

    source_ref: SourceRef
    """Where the documents come from."""
    path: FolderPath = ""
    """Folder of the documents, relative to the root; empty for the root."""
    target_namespace: DnsLabel | None = None
    """Namespace of namespaced documents that name none."""
    service_account_name: DnsName
    """Every apply, prune and Secret read is made as this ServiceAccount of the same namespace."""
    kube_config_secret_ref: SecretKeyRef | None = None
    """Sends the documents to another cluster; the ServiceAccount is then one there."""
    interval: SyncInterval = "10m"
    """Time between two safety comparisons; changes and drift do not wait for it."""
    prune: Prune = Prune()
    """Removal of objects that left Git."""
    deletion_policy: Literal["Orphan", "Delete"] = "Orphan"
    """What happens to the objects when the Sync is deleted."""
    drift: Literal["Correct", "Report"] = "Correct"
    """Whether a foreign change is repaired or only shown."""
    on_document_error: Literal["HoldObject", "HoldUnit"] = "HoldObject"
    """Whether a document error holds its object, or everything."""
    dry_run: bool = False
    """A dry run of each stage before its apply."""
    depends_on: Annotated[tuple[DnsName, ...], Field(max_length=32), UNIQUE] = ()
    """Syncs of the same namespace that must be Ready at their newest revision."""
    wait: bool = False
    """Ready only when every object is healthy."""
    timeout: Timeout = "5m"
    """How long objects may take to become healthy."""
    health_checks: Annotated[tuple[HealthCheck, ...], Field(max_length=64)] = ()
    """Objects to wait for, and CEL rules of health."""
    suspend: bool = False
    """No apply, no prune, no drift repair."""


class Counts(Model):
    """Objects of the Sync by what is true of them now."""

    objects: Count = 0
    """Declared in the attempted revision."""
    applied: Count = 0
    """In the cluster as declared."""
    held: Count = 0
    """Held back; see `held`."""
    drifted: Count = 0
    """Different in the cluster; see `drift`."""
    unhealthy: Count = 0
    """Not, or not yet, healthy."""
    kept: Count = 0
    """No longer declared, and kept on purpose."""
    terminating: Count = 0
    """Pruned, and not gone yet."""


class InventoryRef(Model):
    """The Inventory objects of the Sync: `<name>-0` and following."""

    name: DnsName
    shards: Count = 0
    entries: Count = 0


class HeldObject(Model):
    """One object that stays as it is in the cluster, and why."""

    object: ObjectName
    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.KIND)]
    message: LongText = ""
    file: Annotated[str, Field(max_length=4096)] = ""
    line: Count = 0
    since: Timestamp


class DriftedObject(Model):
    """One object whose live state differs from what was applied."""

    object: ObjectName
    change: Literal["Missing", "Changed"]
    pointers: Annotated[tuple[Annotated[str, Field(max_length=512)], ...], Field(max_length=20)] = ()
    """Declared fields that differ; values are never shown here."""
    more: Count = 0
    """Fields that differ beside these."""
    manager: ShortText = ""
    """Field manager that wrote last, when it is known."""
    since: Timestamp


class LastPrune(Model):
    """The last removal that was carried out; a consent for its set is spent with it."""

    digest: Digest
    """Digest of the set, as the annotation allow-prune names it."""
    count: Count
    at: Timestamp
    consent_commit: CommitId | None = None
    """Commit that introduced the consent, when one was needed."""


class SyncStatus(Model):
    """What was tried, what is in the cluster, and what waits."""

    observed_generation: Generation = 0
    last_handled_reconcile_at: ShortText | None = None
    """The last `requested-at` annotation that was answered."""
    last_attempted_revision: CommitId | None = None
    last_applied_revision: CommitId | None = None
    counts: Counts = Counts()
    inventory: InventoryRef | None = None
    held: Annotated[tuple[HeldObject, ...], Field(max_length=SHOWN)] = ()
    """The first fifty; `counts.held` is the number."""
    drift: Annotated[tuple[DriftedObject, ...], Field(max_length=SHOWN)] = ()
    """The first fifty; `counts.drifted` is the number."""
    last_prune: LastPrune | None = None
    conditions: Conditions = ()


class Sync(Model):
    """A folder of a verified source, kept equal to the cluster."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["Sync"]
    metadata: ObjectMeta
    spec: SyncSpec
    status: SyncStatus = SyncStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="Sync",
        plural="syncs",
        short_names=("gsync",),
        columns=(
            condition_column("Ready", "Ready", "status"),
            condition_column("Reason", "Ready", "reason"),
            Column("Revision", ".status.lastAppliedRevision", description="Commit that the cluster shows"),
            condition_column("Since", "Ready", "lastTransitionTime"),
            AGE,
            Column("Source", ".spec.sourceRef.name", priority=1),
            Column("Path", ".spec.path", priority=1),
            Column("Objects", ".status.counts.objects", "integer", priority=1),
            Column("Held", ".status.counts.held", "integer", priority=1),
            Column("Drifted", ".status.counts.drifted", "integer", priority=1),
            Column("Suspended", ".spec.suspend", "boolean", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
        ),
    )

    @rule(
        "!has(self.spec.dependsOn) || !self.spec.dependsOn.exists(name, name == self.metadata.name)",
        message="a Sync must not depend on itself",
    )
    def _depends_on_others_only(self) -> bool:
        return self.metadata.name not in self.spec.depends_on

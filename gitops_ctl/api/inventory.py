"""The kind Inventory: a superset of what a Sync may have in its cluster, in shards (gitops.md, section 6).

It has no status: its one writer is the manager, and every write is a change of the record itself.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import Count, DnsName, GroupName, KindName, ObjectMeta
from gitops_ctl.api.kind import AGE, Column, CustomKind
from gitops_ctl.api.model import Model

MAX_ENTRIES = 2000
"""Entries of one shard."""

MAX_BYTES = 512 * 1024
"""Bytes of one shard as canonical JSON."""

_Uid = Annotated[str, Field(max_length=64, pattern=patterns.OPTIONAL_UID)]
_EntryDigest = Annotated[str, Field(max_length=71, pattern=patterns.OPTIONAL_DIGEST)]


class InventoryOwner(Model):
    """Whose objects these are."""

    sync: DnsName
    """Name of the Sync, in the namespace of the Inventory."""
    uid: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.UID)]
    """UID of the Sync."""
    id: Annotated[str, Field(min_length=1, max_length=700)]
    """`<UID of kube-system>/<namespace>/<GitSource>/<Sync>`."""


class InventoryEntry(Model):
    """One object that may exist."""

    group: GroupName = ""
    version: Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.LABEL)]
    kind: KindName
    namespace: Annotated[str, Field(max_length=63, pattern=patterns.OPTIONAL_LABEL)] = ""
    """Empty for cluster-scoped objects."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    uid: _Uid = ""
    """Empty until the object was seen."""
    declared_digest: _EntryDigest = ""
    """Of what Git declares."""
    applied_digest: _EntryDigest = ""
    """Of the live values of the declared fields, as the server returned them."""
    prune_disabled: bool | None = None
    """True: the document last applied said that the object is never pruned."""
    file: Annotated[str, Field(max_length=4096)] | None = None
    line: Count | None = None


class InventorySpec(Model):
    """One shard of the record."""

    owner: InventoryOwner
    shard: Annotated[int, Field(ge=0, le=9999)] = 0
    entries: Annotated[tuple[InventoryEntry, ...], Field(max_length=MAX_ENTRIES)] = ()


class Inventory(Model):
    """Which objects a Sync may have in its cluster; written by the manager only."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["Inventory"]
    metadata: ObjectMeta
    spec: InventorySpec

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="Inventory",
        plural="inventories",
        columns=(
            Column("Sync", ".spec.owner.sync"),
            Column("Shard", ".spec.shard", "integer"),
            AGE,
        ),
        has_status=False,
        has_defaults=False,
    )

"""The kind Proposal: one change of files in Git that a controller asks for, as one pull request (forges.md, section 3.1).

Controllers write it, the proposals controller carries it out, people read it.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from gitops_ctl.api import patterns
from gitops_ctl.api.fields import (
    CommitId,
    Conditions,
    Count,
    Digest,
    DnsLabel,
    DnsName,
    FilePath,
    Generation,
    KindName,
    ObjectMeta,
    ShortText,
    Timestamp,
)
from gitops_ctl.api.kind import AGE, Column, CustomKind, condition_column
from gitops_ctl.api.model import Model

MAX_CHANGES = 64
"""Edits of one Proposal."""

MAX_REVIEWS = 50
"""Reviews that a status lists."""

Phase = Literal["Pending", "Open", "Merged", "Closed", "Superseded", "Expired"]


@dataclass(frozen=True, slots=True)
class _AnyJson:
    """Any value; the API server stores it as it is and knows nothing about it.  A null is not stored: it counts as absent."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"x-kubernetes-preserve-unknown-fields": True}


AnyJson = Annotated[object, _AnyJson()]
Pointer = Annotated[str, Field(max_length=1024, pattern=patterns.POINTER)]
Document = Annotated[int, Field(ge=0, le=100_000)]
Purpose = Annotated[str, Field(min_length=1, max_length=253, pattern=patterns.PURPOSE)]


class ProposalSource(Model):
    """A GitSource of the same namespace; one without `trust` is enough."""

    name: DnsName


class Subject(Model):
    """The object that the change is for."""

    api_version: Annotated[str, Field(min_length=1, max_length=317, pattern=patterns.API_VERSION)]
    kind: KindName
    namespace: DnsLabel | None = None
    """Left out for cluster-scoped objects."""
    name: DnsName
    uid: Annotated[str, Field(min_length=1, max_length=64, pattern=patterns.UID)] | None = None
    """The one operation that asks; the Proposal's own UID when left out."""


class InnerPlace(Model):
    """A place inside the text that the scalar before it holds."""

    document: Document = 0
    """Index of the document in that text, from 0."""
    pointer: Pointer


class Change(Model):
    """One edit of one file."""

    file: FilePath
    """Path inside the repository."""
    document: Document = 0
    """Index of the document in the file, from 0."""
    pointer: Pointer
    """JSON pointer in the document."""
    inner: Annotated[tuple[InnerPlace, ...], Field(max_length=4)] = ()
    """Way into text inside text, outermost first."""
    op: Literal["add", "replace", "remove"]
    """`add`: the key is missing and its mapping is there; `replace`: one scalar; `remove`: a key, and parents left empty."""
    before: Annotated[AnyJson, Field(alias="from")] = None
    """Value that the place must hold now; not for `add`."""
    after: Annotated[AnyJson, Field(alias="to")] = None
    """Value that it shall hold; not for `remove`."""


class ProposalSpec(Model):
    """What shall change in Git, for what, and until when."""

    source_ref: ProposalSource
    subject: Subject
    reason: Purpose
    """Purpose, such as `cni/<cluster>/<target>`; with the subject it names the branch."""
    changes: Annotated[tuple[Change, ...], Field(max_length=MAX_CHANGES)] = ()
    """Empty: nothing is wanted any more; an open pull request that nobody changed is closed."""
    expires: Timestamp | None = None
    """An open pull request is closed then."""


class ProposalReview(Model):
    """One review as the forge tells it."""

    user: ShortText
    state: Annotated[str, Field(max_length=32)]
    commit: Annotated[str, Field(max_length=64)] = ""
    """Head that was reviewed."""
    at: Timestamp
    counts: bool = False
    """The present head is the one that was reviewed, and the review was not taken back."""


class Pushing(Model):
    """A push that was begun: written before it, so that its commit is known as ours whatever happens then."""

    branch: Annotated[str, Field(min_length=1, max_length=128)]
    commit: CommitId


class ProposalStatus(Model):
    """How far the pull request is."""

    observed_generation: Generation = 0
    last_handled_reopen_at: ShortText | None = None
    """The last `reopen-at` annotation that was answered."""
    phase: Phase | None = None
    branch: Annotated[str, Field(max_length=128)] = ""
    number: Count = 0
    """Of the pull request; 0 while there is none, and for plain Git."""
    url: Annotated[str, Field(max_length=2048)] = ""
    head_commit: CommitId | None = None
    """The commit that we pushed last."""
    base_commit: CommitId | None = None
    """Tip of the base branch that it was made on."""
    content_hash: Digest | None = None
    """Over path, mode and bytes of the changed files."""
    pushing: Pushing | None = None
    declined: Annotated[tuple[Digest, ...], Field(max_length=20)] = ()
    """Content that a person has closed a pull request for."""
    reviews: Annotated[tuple[ProposalReview, ...], Field(max_length=MAX_REVIEWS)] = ()
    conditions: Conditions = ()


class Proposal(Model):
    """One change of files in Git, proposed as one signed commit on one branch in one pull request."""

    api_version: Literal["gitops-ctl.dev/v1alpha1"]
    kind: Literal["Proposal"]
    metadata: ObjectMeta
    spec: ProposalSpec
    status: ProposalStatus = ProposalStatus()

    custom_kind: ClassVar[CustomKind] = CustomKind(
        kind="Proposal",
        plural="proposals",
        short_names=("prop",),
        columns=(
            Column("Phase", ".status.phase"),
            Column("Number", ".status.number", "integer"),
            condition_column("Reason", "Ready", "reason"),
            Column("Purpose", ".spec.reason"),
            AGE,
            Column("Branch", ".status.branch", priority=1),
            Column("Url", ".status.url", priority=1),
            condition_column("Message", "Ready", "message", priority=1),
        ),
        has_defaults=False,
    )

"""The values that pass between the parts of a sync.  Frozen; nothing here does I/O.

`Desired` is what Git asks for, `Entry` is what the inventory remembers, `View` is what the cluster shows.  Planning compares
the three; every decision about one object is made from them (gitops.md, sections 6 to 9).
"""

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, ANNOTATION_PRUNE, LABEL_OWNER, PRUNE_DISABLED
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, GroupVersionKind, NamespacedName, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at, text_at
from gitops_ctl.trust.provenance import Introduced


def short_digest(data: bytes) -> str:
    """Half of a SHA-256: enough to tell two versions of one object apart, and two of them fit into an inventory entry."""
    return f"sha256:{hashlib.sha256(data).hexdigest()[:32]}"


class Stage(enum.IntEnum):
    """The eight stages: they order and wait, nothing more (gitops.md, section 8)."""

    CRDS = 0
    NAMESPACES = 1
    POLICIES = 2
    RBAC = 3
    CONFIGURATION = 4
    WORKLOADS = 5
    CUSTOM = 6
    WEBHOOKS = 7


class Mode(enum.StrEnum):
    """How an object is applied (`gitops-ctl.dev/apply`, gitops.md, section 7.2)."""

    SHARED = ""
    """Only fields that are free or were ours; the default."""
    OVERRIDE = "Override"
    IF_NOT_PRESENT = "IfNotPresent"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True)
class OwnerId:
    """Who a managed object belongs to; unique over clusters, repositories and units (R12)."""

    cluster: str
    namespace: str
    source: str
    sync: str
    label: str = field(init=False, compare=False, repr=False)
    """First 32 hex digits of the SHA-256 over the owner id (gitops.md, section 22.4)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", hashlib.sha256(str(self).encode()).hexdigest()[:32])

    def __str__(self) -> str:
        return f"{self.cluster}/{self.namespace}/{self.source}/{self.sync}"

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.sync)

    def mark(self, identity: ObjectId) -> str:
        """Value of the owner annotation of one object."""
        return f"{self}:{identity.group}/{identity.kind}:{identity.namespace}/{identity.name}"

    @classmethod
    def of_mark(cls, mark: str, *, identity: ObjectId) -> Self | None:
        """The owner that a mark names; None for no mark and for one that names another object than it sits on."""
        owner, _, named = mark.partition(":")
        parts = owner.split("/")
        if len(parts) != 4 or named != f"{identity.group}/{identity.kind}:{identity.namespace}/{identity.name}":
            return None
        return cls(*parts)


@dataclass(frozen=True, slots=True)
class Consented:
    """The value of a consent annotation and the commit that introduced it."""

    value: str
    commit: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Who stands behind the authorising fields of one object, by JSON pointer, and which of them count for nothing."""

    introduced: Mapping[str, Introduced] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)

    def of(self, pointer: str) -> Introduced | None:
        return self.introduced.get(pointer)

    def why_void(self, pointer: str) -> str:
        return self.void.get(pointer, "")


@dataclass(frozen=True, slots=True)
class Desired:
    """One object as Git declares it.

    Attributes:
        tree: the document without our marks; shared with the document cache, never changed.
        digest: the declared digest: another one whenever anything that would be sent is another.
        introduced: the annotations that say who stands behind authorising fields.
        consents: consent annotations that a person introduced, by name; others count for nothing.
        standing: for kinds with rules that ask for it: who stands behind their fields.
    """

    id: ObjectId
    gvk: GroupVersionKind
    tree: JsonObject
    digest: str
    file: str
    line: int
    stage: Stage
    owner: OwnerId
    introduced: Mapping[str, str] = field(default_factory=dict)
    depends_on: tuple[ObjectId, ...] = ()
    mode: Mode = Mode.SHARED
    consents: Mapping[str, Consented] = field(default_factory=dict)
    standing: Standing = field(default_factory=Standing)

    @property
    def keep(self) -> bool:
        """Whether the document says that the object is never pruned."""
        return text_at(self.tree, "metadata", "annotations", ANNOTATION_PRUNE) == PRUNE_DISABLED

    def body(self) -> dict[str, JsonValue]:
        """What is sent to the API server: the document with its namespace and our marks."""
        metadata: dict[str, JsonValue] = {
            **object_at(self.tree, "metadata"),
            "labels": {**object_at(self.tree, "metadata", "labels"), LABEL_OWNER: self.owner.label},
            "annotations": {
                **object_at(self.tree, "metadata", "annotations"),
                ANNOTATION_OWNER_ID: self.owner.mark(self.id),
                **self.introduced,
            },
        }
        if self.id.namespace:
            metadata["namespace"] = self.id.namespace
        return {**self.tree, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Held:
    """An object that waits, and why (gitops.md, section 5.2).  `file` is empty where the cause is not a document."""

    id: ObjectId
    code: ErrorCode
    message: str
    file: str = ""
    line: int = 0
    reason: str = ""

    @property
    def why(self) -> str:
        """The reason word; domains may register reasons that no code has."""
        return self.reason or self.code.reason


@dataclass(frozen=True)
class DesiredState:
    """Everything that one revision asks of one unit.

    Attributes:
        held: objects that a document error or a missing condition holds; they are not in `objects`.
        hidden: identities whose file is ignored: kept, never pruned for that.
        hidden_files: ignored files that may hold more identities than could be read.
        broken_files: files that could not be read, with the reason; what came from them is held.
        complete: no document of the unit has an error; prune needs it.
        unit_held: nothing of the unit may be applied (`onDocumentError: HoldUnit`).
        definitions: the CustomResourceDefinitions of the unit by the kind that they define.
        unsettled: the scope of some kind is not known yet, so that another discovery may give other identities.
    """

    objects: Mapping[ObjectId, Desired]
    held: tuple[Held, ...] = ()
    hidden: frozenset[ObjectId] = frozenset()
    hidden_files: frozenset[str] = frozenset()
    broken_files: Mapping[str, Held] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    complete: bool = True
    unit_held: bool = False
    definitions: Mapping[GroupKind, ObjectId] = field(default_factory=dict)
    unsettled: bool = False

    @cached_property
    def lists(self) -> frozenset[ObjectId]:
        """Every identity that the unit speaks of, held and hidden ones included."""
        return frozenset(self.objects) | {item.id for item in self.held} | self.hidden


@dataclass(frozen=True, slots=True)
class Entry:
    """What the inventory remembers of one object.  An empty `uid` means: it may exist, nobody has seen it yet.

    Attributes:
        keep: the document last applied said that the object is never pruned.
    """

    id: ObjectId
    version: str
    uid: str = ""
    declared: str = ""
    applied: str = ""
    file: str = ""
    keep: bool = False

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.id.group, self.version, self.id.kind)


class HealthStatus(enum.StrEnum):
    """The six statuses of kstatus (gitops.md, section 10.1)."""

    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    CURRENT = "Current"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Health:
    """Health of one object.  `turns` is what it becomes by the passing of time alone: status and wall-clock seconds."""

    status: HealthStatus
    message: str = ""
    turns: tuple[HealthStatus, float] | None = None

    def at(self, now_s: float) -> HealthStatus:
        """The status at a moment, in seconds since the epoch."""
        return self.turns[0] if self.turns is not None and now_s >= self.turns[1] else self.status


CURRENT = Health(HealthStatus.CURRENT)


class Unseen(enum.Enum):
    """That nothing is known of a live object, which is not the same as its absence."""

    UNSEEN = "unseen"


UNSEEN = Unseen.UNSEEN


@dataclass(frozen=True, slots=True)
class View:
    """All that is kept of a live object.

    Attributes:
        digest: over the live values of the fields in our manager's entry and over the entry; empty when we have none.
        owner: the owner annotation as it stands on the object.
        prune_disabled, propagation: annotations that our manager set, so that Git asked for them.
        binds: ServiceAccounts (`namespace/name`) that a binding names.
        role: what a binding refers to.
    """

    uid: str
    version: str
    digest: str
    owner: str = ""
    health: Health = CURRENT
    terminating: bool = False
    prune_disabled: bool = False
    propagation: str = ""
    binds: tuple[str, ...] = ()
    role: ObjectId | None = None


Seen = View | Unseen | None
"""What is known of a live object: facts, nothing, or that it is not there."""


class Why(enum.StrEnum):
    """Why an object is applied."""

    NEW = "new"
    CHANGED = "changed"
    MISSING = "missing"
    REPLACED = "replaced"
    DRIFTED = "drifted"


@dataclass(frozen=True, slots=True)
class Apply:
    """Send one object.

    Attributes:
        was_ours: every declared field was ours before, so a conflict is drift and may be forced.
        look_first: nothing is known of the live object: read it before the first apply.
    """

    desired: Desired
    why: Why
    was_ours: bool = False
    look_first: bool = False

    @property
    def id(self) -> ObjectId:
        return self.desired.id


@dataclass(frozen=True, slots=True)
class Applied:
    """What one apply led to: a view, a reason to hold the object, or neither (nothing of ours is on it).

    Attributes:
        took_from: managers whose fields were taken by force.
        recreated: UID of the object that was deleted to make this one, with consent.
        retry: the reason may go by itself soon.
        transient: the server could not be asked.
    """

    action: Apply
    view: View | None = None
    held: Held | None = None
    took_from: tuple[str, ...] = ()
    recreated: str = ""
    retry: bool = False
    transient: bool = False

    @property
    def id(self) -> ObjectId:
        return self.action.desired.id

"""Names and times of people inside a document, which Git may leave out (gitops.md, section 4.6, "Identity members").

They are filled before schema, CEL and any dry run, from whoever introduced the block that they stand in, so that each pass gives
the same document.  A written name must be the introducer's; a written time is kept and not compared.  What the cluster has
stored already stays for the life of the object, or as long as the value at `while_same` does.  Decisions about time never use
these values.  A checkout has no introducer yet: there `uncommitted` gives what stands for whoever will sign, so that nothing is
called missing or different that a Sync fills in.  The kinds that have such members are registered here: pure data, known before
their controllers are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.documents.pointer import steps_of
from gitops_ctl.documents.shape import Flaw


class Introducer(Protocol):
    """Who gave a block its present value, and when the commit was made."""

    @property
    def kubernetes_user(self) -> str: ...

    @property
    def commit(self) -> str: ...

    @property
    def at(self) -> datetime: ...


IntroducerOf: TypeAlias = Callable[[str], Introducer | None]
"""From the JSON pointer of a block to its introducer; None when nobody introduced it since the pinned root."""


TO_COME: Final = "gitops-ctl:whoever-signs-this"
"""The name in a checkout that stands for the person who will sign; no person can have it, it is never sent to be stored."""

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Whoever:
    """Signs what is no commit yet: any name that is written may be theirs."""

    at: datetime
    kubernetes_user: str = TO_COME
    commit: str = ""


def uncommitted(at: datetime = _LONG_AGO) -> IntroducerOf:
    """The introducer of every block in a checkout; `at` is the time that is filled in where none is known."""
    whoever = _Whoever(at)
    return lambda _pointer: whoever


@dataclass(frozen=True, slots=True)
class IdentityMember:
    """A name in a block, and the time beside it.

    Attributes:
        block: JSON pointer of the block; without it nothing is filled.
        name, time: members of the block; `time` is empty where there is none.
        while_same: member of the block; the stored values stay as long as it has the stored value.  Empty: for good.
        once: member of the block; while it is zero or absent nobody asked for anything, and nothing is filled in.
    """

    block: str
    name: str
    time: str = ""
    while_same: str = ""
    once: str = ""


@dataclass(frozen=True, slots=True)
class _Taught:
    members: tuple[IdentityMember, ...]
    historic: tuple[str, ...] = field(default=())


_REGISTRY: Final[dict[GroupKind, _Taught]] = {}


def register_identity(
    group_kind: GroupKind, members: tuple[IdentityMember, ...], *, historic: tuple[str, ...] = ()
) -> None:
    """Teach the identity members of a kind.

    Args:
        group_kind: the kind, at every version.
        members: in any order.
        historic: pointers of blocks that answer a request; an absent object that has one already is history, no request.

    Raises:
        RuntimeError: the kind was taught already.
    """
    if group_kind in _REGISTRY:
        raise RuntimeError(f"the identity members of {group_kind} are registered twice")
    _REGISTRY[group_kind] = _Taught(members, historic)


def has_identity(group_kind: GroupKind) -> bool:
    """Whether documents of the kind are filled."""
    return group_kind in _REGISTRY


def fill_identity(tree: JsonObject, *, provenance: IntroducerOf, live: JsonObject | None) -> JsonObject | Flaw:
    """The document with its identity members, or why it is held: IDENTITY_MISMATCH.

    Args:
        tree: the document as it is in Git; it stays as it is.
        provenance: who introduced a block; `uncommitted()` for a checkout, where a written name is no mismatch.
        live: the object in the cluster, None when there is none.
    """
    taught = _REGISTRY.get(GroupVersionKind.of(tree).group_kind)
    for member in taught.members if taught else ():
        block = _at(tree, member.block)
        if block is None or (member.once and not block.get(member.once)):
            continue
        stored = _stored(member, block=block, live=live)
        filled = _filled(member, block=block, stored=stored, by=provenance(member.block))
        if isinstance(filled, Flaw):
            return filled
        tree = _with(tree, steps_of(member.block), filled)
    return tree


def historic_flaw(tree: JsonObject, *, live: JsonObject | None) -> Flaw | None:
    """Why an absent object is not created: HISTORIC_ROLLOUT; None when it may be, or when it exists."""
    taught = _REGISTRY.get(GroupVersionKind.of(tree).group_kind)
    found = [pointer for pointer in taught.historic if _at(tree, pointer) is not None] if taught else []
    if live is not None or not found:
        return None
    return Flaw(
        ErrorCode.HISTORIC_ROLLOUT,
        f"the object does not exist and its document already carries {', '.join(found)}: history is no request",
        found[0],
        f"remove {' and '.join(found)} and request it anew",
    )


def _stored(member: IdentityMember, *, block: JsonObject, live: JsonObject | None) -> JsonObject | None:
    """The block in the cluster whose identity members stay; None when they are filled anew."""
    found = _at(live, member.block) if live is not None else None
    if found is None or found.get(member.name) is None:
        return None
    if member.while_same and found.get(member.while_same) != block.get(member.while_same):
        return None
    return found


def _filled(
    member: IdentityMember, *, block: JsonObject, stored: JsonObject | None, by: Introducer | None
) -> JsonObject | Flaw:
    written = block.get(member.name)
    kept = stored.get(member.name) if stored is not None else None
    wanted: JsonValue = by.kubernetes_user if by is not None else kept
    if isinstance(by, _Whoever) and written is not None:
        wanted = written
    elif isinstance(by, _Whoever) and kept is not None:
        wanted = kept
    pointer = f"{member.block}/{member.name}"
    if wanted is None:
        return Flaw(
            ErrorCode.IDENTITY_MISMATCH,
            f"nobody introduced {member.block} since the pinned root, so {member.name} can be nobody",
            pointer,
            f"take {member.block} out of Git and commit it anew",
        )
    if written is not None and written != wanted:
        origin = f"the commit {by.commit} introduced the block for" if by is not None else "the cluster stores"
        return Flaw(
            ErrorCode.IDENTITY_MISMATCH,
            f"{member.name} names {written!r}, and {origin} {wanted!r}",
            pointer,
            f"write {wanted}, or leave {member.name} out",
        )
    found: dict[str, JsonValue] = {**block, member.name: kept if kept is not None else wanted}
    if member.time:
        time = stored.get(member.time) if stored is not None else None
        if time is None:
            time = block.get(member.time) or (to_rfc3339(by.at) if by is not None else None)
        found |= {member.time: time} if time is not None else {}
    return found


def _at(tree: JsonObject | None, pointer: str) -> JsonObject | None:
    """The mapping at a pointer; None when something else, or nothing, is there."""
    value: JsonValue = tree
    for step in steps_of(pointer):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else None


def _with(tree: JsonObject, steps: tuple[str, ...], value: JsonObject) -> JsonObject:
    """A copy with the mapping at a place that exists replaced."""
    if not steps:
        return value
    inner = tree[steps[0]]
    assert isinstance(inner, Mapping)
    return {**tree, steps[0]: _with(inner, steps[1:], value)}


_ROLLOUT: Final = GroupKind("ops.cisco.vk", "IOSXESoftwareRollout")

register_identity(
    _ROLLOUT,
    (
        IdentityMember("/spec/plan", "requestedBy", "requestedAt"),
        IdentityMember("/spec/approval", "approvedBy", "approvedAt"),
        IdentityMember("/spec/activationApproval", "approvedBy", "approvedAt"),
        IdentityMember("/spec/preparationInvalidation", "requestedBy", "requestedAt"),
        IdentityMember("/spec/control", "requestedBy", "requestedAt", while_same="revision", once="revision"),
    ),
    historic=("/spec/approval", "/spec/activationApproval"),
)

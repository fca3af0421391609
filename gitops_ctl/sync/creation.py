"""Kinds whose objects must not exist for a moment as their document says (topology-scheduling.md, 1.4, D6 and D35).

Such an object is created by two applies: the first, under another field manager, makes it safe, the second brings the document.
Killed in between, the next pass finds the object present and applies the document.  An object that was there before and becomes one of
these is made safe too: the other manager becomes an owner of what the document says no longer, before the document lets go of it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.ids import GroupKind
from gitops_ctl.core.jsonvalue import JsonObject, object_at, objects_at, text_at
from gitops_ctl.kube.answers import FieldConflict
from gitops_ctl.sync.model import Desired
from gitops_ctl.sync.takeover import is_applied_by, owned_by_documents


@dataclass(frozen=True, slots=True)
class Creation:
    """How objects of a kind come into being.

    Attributes:
        manager: field manager of the first apply; what it owns is never in a document.
        applies: whether a document asks for this.
        first: the body of the first apply.
        give_back: the body that takes its fields back.
        take_along: the body of the apply that has to come before a document lets go of fields, None for most; from the live object, the
            fields that our own applies own, and those of client-side tools, which become ours.
    """

    manager: str
    applies: Callable[[JsonObject], bool]
    first: Callable[[JsonObject], JsonObject]
    give_back: Callable[[JsonObject], JsonObject]
    take_along: Callable[[JsonObject, JsonObject, JsonObject], JsonObject | None] = lambda _live, _ours, _theirs: None


Send = Callable[[JsonObject, str], Awaitable[JsonObject]]
"""Applies a body under a field manager, without force, and gives the object as it is then."""

_CREATIONS: Final[dict[GroupKind, Creation]] = {}


def register_creation(kind: GroupKind, creation: Creation) -> None:
    """Give a kind its way of coming into being.

    Raises:
        ValueError: the kind has one.
    """
    if kind in _CREATIONS:
        raise ValueError(f"{kind} has a way of being created")
    _CREATIONS[kind] = creation


def creation_of(desired: Desired) -> Creation | None:
    """What has to come before the first apply of an object; None for most."""
    found = _CREATIONS.get(desired.id.group_kind)
    return found if found is not None and found.applies(desired.tree) else None


async def make_safe(creation: Creation, desired: Desired, *, send: Send) -> None:
    """The first of the two applies, for an object that was just seen to be absent.

    Somebody else may have created it in between; then it stays theirs, and the document is applied as to any other object.

    Raises:
        GitopsError: the server does not take it.
    """
    try:
        answer = await send(creation.first(desired.tree), creation.manager)
    except FieldConflict:
        return  # somebody holds these fields, so nothing of the body was taken
    # A lost reply may hide that an earlier attempt created it: only content of others shows that somebody else did.
    entries = objects_at(answer, "metadata", "managedFields")
    if any(text_at(entry, "manager") != creation.manager and _is_content(entry) for entry in entries):
        await send(creation.give_back(desired.tree), creation.manager)


async def keep_safe(creation: Creation, live: JsonObject, *, send: Send) -> None:
    """What comes before the document of an object that is there.

    Raises:
        GitopsError: the server does not take it.
    """
    entries = objects_at(live, "metadata", "managedFields")
    if any(is_applied_by(entry, creation.manager) for entry in entries):
        return
    body = creation.take_along(live, *owned_by_documents(live))
    if body is not None:
        with suppress(FieldConflict):  # somebody else has set the field since, and holds it
            await send(body, creation.manager)


def _is_content(entry: JsonObject) -> bool:
    """Whether a writer set more than a status and finalizers: those come to every new object, from whoever serves its kind."""
    if text_at(entry, "subresource"):
        return False
    fields = object_at(entry, "fieldsV1")
    return set(fields) != {"f:metadata"} or set(object_at(fields, "f:metadata")) != {"f:finalizers"}

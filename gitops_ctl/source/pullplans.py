"""What the plan of an object says that a pull request adds, changes or removes (forges.md, section 11.3).

Which kinds have a plan is known in higher rooms: they register how it is foreseen.  It is foreseen from the documents of the checkout alone,
with the functions of `gitops-ctl plan`, and said about trusted heads only.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from gitops_ctl.core.conditions import cut
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.collection import DocumentSet

MOST_PLANS: Final = 10
MOST_LINES: Final = 20
_LINE: Final = 500


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A plan as far as documents tell it.

    Attributes:
        devices: names in the namespace of the object, those that block the plan among them.
        lines: for people.
    """

    devices: tuple[ObjectId, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What is said about the plan of one object."""

    object: str
    lines: tuple[str, ...]


Foresee: TypeAlias = Callable[[JsonObject, tuple[JsonObject, ...], datetime], Foreseen]
"""From an object, all documents beside it, and the time, to its plan; raises GitopsError when it cannot be foreseen."""

_PLANNED: Final[dict[GroupKind, Foresee]] = {}


def register_plan(group_kind: GroupKind, foresee: Foresee) -> None:
    """Say how the plan of a kind is foreseen."""
    _PLANNED[group_kind] = foresee


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a pull request.

    Attributes:
        shown: of what it adds and changes, the first ones of `count`.
        devices: of all, those of removed objects too.
    """

    shown: tuple[PullPlan, ...] = ()
    count: int = 0
    devices: frozenset[ObjectId] = frozenset()


def plans_of(touched: Iterable[tuple[str, ObjectId]], base: DocumentSet, head: DocumentSet, *, now: datetime) -> Plans:
    """The plans of the objects that are touched; what is removed is looked at in the base."""
    devices: set[ObjectId] = set()
    shown: list[PullPlan] = []
    for action, name in touched:
        there = base if action == "removed" else head
        foresee, document = _PLANNED.get(name.group_kind), there.by_id.get(name)
        if foresee is None or document is None:
            continue
        found = _foreseen(foresee, document.tree, there, now)
        devices.update(found.devices)
        if action != "removed":
            shown.append(PullPlan(str(name), tuple(_bounded(found.lines))))
    return Plans(tuple(shown[:MOST_PLANS]), len(shown), frozenset(devices))


def _foreseen(foresee: Foresee, tree: JsonObject, there: DocumentSet, now: datetime) -> Foreseen:
    try:
        return foresee(tree, tuple(document.tree for document in there.documents), now)
    except GitopsError as error:
        return Foreseen(lines=(f"It cannot be foreseen from the documents: {error.message}.",))


def _bounded(lines: tuple[str, ...]) -> Iterator[str]:
    yield from (cut(line, limit=_LINE) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES} more lines"

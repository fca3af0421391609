"""Rules that hold one object as it is in the cluster while everything else of its commit goes on (gitops.md, section 5.2).

A domain registers what may hold objects of its kinds.  The same function answers `gitops-ctl check`, where the old version is
that of another revision and nobody is asked who introduced a field, and a Sync, where it is the live object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from gitops_ctl.core.ids import GroupKind, GroupVersionKind
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.identity import has_identity
from gitops_ctl.documents.shape import Flaw


class Author(Protocol):
    """Who gave a field its present value, as far as a rule needs it."""

    @property
    def commit(self) -> str: ...

    @property
    def person(self) -> str: ...


class Authors(Protocol):
    """Who stands behind the values of one object."""

    def of(self, pointer: str) -> Author | None:
        """Who introduced the value at a JSON pointer; None when it authorises nothing."""
        ...

    def why_void(self, pointer: str) -> str:
        """Why a value that stands in Git authorises nothing; empty when it does, or when that is all that is known."""
        ...


@dataclass(frozen=True, slots=True)
class HoldQuestion:
    """What a rule looks at.

    Attributes:
        new: the object as Git declares it.
        old: the accepted version; None for an object that does not exist yet.
        authors: None where nobody can be asked.
    """

    new: JsonObject
    old: JsonObject | None
    authors: Authors | None = None


HoldCheck: TypeAlias = Callable[[HoldQuestion], Flaw | None]

_CHECKS: Final[dict[GroupKind, list[HoldCheck]]] = {}


def register_hold(group_kind: GroupKind, check: HoldCheck) -> None:
    """Add a rule for a kind; the first one that finds something speaks, in the order of registration."""
    _CHECKS.setdefault(group_kind, []).append(check)


def may_hold(group_kind: GroupKind) -> bool:
    """Whether any rule looks at objects of this kind."""
    return group_kind in _CHECKS


def has_rules(group_kind: GroupKind) -> bool:
    """Whether an object of this kind is looked at before it is sent: for a rule, or for the names of people in it."""
    return may_hold(group_kind) or has_identity(group_kind)


def hold_of(question: HoldQuestion) -> Flaw | None:
    """Why the object has to stay as it is; None when nothing holds it."""
    for check in _CHECKS.get(GroupVersionKind.of(question.new).group_kind, ()):
        found = check(question)
        if found is not None:
            return found
    return None

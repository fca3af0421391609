"""What a CustomResourceDefinition says beside the schema: names, columns, subresources."""

from dataclasses import dataclass
from typing import Literal

from gitops_ctl.api.names import GROUP, VERSION

CATEGORY = "gitops"


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; priority 0 is always shown, 1 with `-o wide`."""

    name: str
    path: str
    type: Literal["string", "integer", "date", "boolean"] = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class CustomKind:
    """Names and views of one kind."""

    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    group: str = GROUP
    has_status: bool = True
    has_defaults: bool = True
    """False for kinds that only controllers write: the server adds nothing to them."""
    namespaced: bool = True
    categories: tuple[str, ...] = (CATEGORY,)
    versions: tuple[str, ...] = (VERSION,)
    """Served versions, all with one schema; the first is the stored one."""

    filled_in: tuple[str, ...] = ()
    """Dotted paths below `spec` of required members that Git may leave out, because a Sync fills them in."""

    @property
    def singular(self) -> str:
        return self.kind.lower()


def condition_column(name: str, condition: str, member: str, *, priority: int = 0) -> Column:
    """A column that shows one member of one condition."""
    kind: Literal["string", "date"] = "date" if member == "lastTransitionTime" else "string"
    return Column(name, f'.status.conditions[?(@.type=="{condition}")].{member}', kind, priority)


AGE = Column("Age", ".metadata.creationTimestamp", "date")

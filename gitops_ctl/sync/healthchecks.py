"""`spec.healthChecks`: health in CEL, and objects to wait for by name (gitops.md, section 10.2).

The order is that of `inProgress`, `failed`, `current`: the first that is true decides; none of them means InProgress.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gitops_ctl.api.sync import HealthCheck
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.expressions import EvaluationError, Expression, compile_condition
from gitops_ctl.sync.health import health_of
from gitops_ctl.sync.model import CURRENT, Health, HealthStatus


@dataclass(frozen=True, slots=True)
class Check:
    """One compiled check; `name` is empty when it holds for every object of the kind."""

    kind: GroupKind
    namespace: str
    name: str
    in_progress: Expression | None = None
    failed: Expression | None = None
    current: Expression | None = None

    def judge(self, tree: JsonObject) -> Health:
        """The health of a live object by this check."""
        plain = health_of(tree)
        if plain.status is HealthStatus.TERMINATING or self.current is None:
            return plain
        try:
            if self.in_progress is not None and self.in_progress.is_true({"object": tree}):
                return Health(HealthStatus.IN_PROGRESS, "the expression inProgress is true")
            if self.failed is not None and self.failed.is_true({"object": tree}):
                return Health(HealthStatus.FAILED, "the expression failed is true")
            if self.current.is_true({"object": tree}):
                return CURRENT
        except EvaluationError as error:
            # An expression that fails says nothing: what it waits for may not be there yet.
            return Health(HealthStatus.IN_PROGRESS, f"an expression of its health check failed: {error}")
        return Health(HealthStatus.IN_PROGRESS, "the expression current is not true yet")


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks of one unit."""

    by_kind: dict[GroupKind, Check]
    by_name: dict[ObjectId, Check]

    def of(self, identity: ObjectId) -> Check | None:
        """The check whose expressions judge an object; that by name goes before that of the kind."""
        named = self.by_name.get(identity)
        if named is not None and named.current is not None:
            return named
        return self.by_kind.get(identity.group_kind) or named

    @property
    def named(self) -> Iterable[ObjectId]:
        return self.by_name


def compile_checks(checks: Iterable[HealthCheck], *, namespace: str) -> Checks:
    """Compile the checks of a Sync; `namespace` is meant where a check by name has none.

    Raises:
        Refused: an expression is not CEL; the message says which.
    """
    by_kind: dict[GroupKind, Check] = {}
    by_name: dict[ObjectId, Check] = {}
    for number, item in enumerate(checks):
        compiled = _compiled(item, number=number)
        if item.name is None:
            by_kind[compiled.kind] = compiled
        else:
            where = item.namespace if item.namespace is not None else namespace
            by_name[ObjectId(item.group, item.kind, where, item.name)] = compiled
    return Checks(by_kind, by_name)


def _compiled(item: HealthCheck, *, number: int) -> Check:
    found: dict[str, Expression | None] = {}
    for member in ("in_progress", "failed", "current"):
        text = getattr(item, member)
        try:
            found[member] = compile_condition(text, variables=("object",)) if text is not None else None
        except Refused as error:
            place = f"spec.healthChecks[{number}].{member}"
            raise Refused(f"{place}: {error.message}", code=error.code, subject=place) from None
    kind = GroupKind(item.group, item.kind)
    return Check(
        kind,
        item.namespace or "",
        item.name or "",
        in_progress=found["in_progress"],
        failed=found["failed"],
        current=found["current"],
    )

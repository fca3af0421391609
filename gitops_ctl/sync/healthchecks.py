"""`spec.healthChecks`: health in CEL, and objects to wait for by name (gitops.md, section 10.2).

The order is that of `inProgress`, `failed`, `current`: the first that is true decides; none of them means InProgress.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gitops_ctl.api.sync import HealthCheck
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.ids import GroupKind, ObjectId
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.documents.conditions import ConditionGuard
from gitops_ctl.documents.expressions import EvaluationError, compile_condition
from gitops_ctl.sync.health import health_of
from gitops_ctl.sync.model import CURRENT, Health, HealthStatus


@dataclass(frozen=True, slots=True)
class Check:
    """One check whose expressions compile; `name` is empty when it holds for every object of the kind."""

    kind: GroupKind
    namespace: str
    name: str
    in_progress: str | None = None
    failed: str | None = None
    current: str | None = None

    def judge(self, tree: JsonObject, *, guard: ConditionGuard) -> Health:
        """The health of a live object by this check.  May take as long as the guard allows: call it in a thread."""
        plain = health_of(tree)
        if plain.status is HealthStatus.TERMINATING or self.current is None:
            return plain
        asked = [
            (text, verdict)
            for text, verdict in (
                (self.in_progress, Health(HealthStatus.IN_PROGRESS, "the expression inProgress is true")),
                (self.failed, Health(HealthStatus.FAILED, "the expression failed is true")),
                (self.current, CURRENT),
            )
            if text is not None
        ]
        try:
            place = guard.first_true([text for text, _ in asked], {"object": tree})
        except EvaluationError as error:
            # An expression that fails says nothing: what it waits for may not be there yet.
            return Health(HealthStatus.IN_PROGRESS, f"an expression of its health check failed: {error}")
        if place is None:
            return Health(HealthStatus.IN_PROGRESS, "the expression current is not true yet")
        return asked[place][1]


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
    for member in ("in_progress", "failed", "current"):
        text = getattr(item, member)
        try:
            if text is not None:
                compile_condition(text, variables=("object",))
        except Refused as error:
            place = f"spec.healthChecks[{number}].{member}"
            raise Refused(f"{place}: {error.message}", code=error.code, subject=place) from None
    return Check(
        GroupKind(item.group, item.kind),
        item.namespace or "",
        item.name or "",
        in_progress=item.in_progress,
        failed=item.failed,
        current=item.current,
    )

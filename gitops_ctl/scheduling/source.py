"""A TopologySource as the planners read it (topology-scheduling.md, 3.1).  Only for specs without problems."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Self

from gitops_ctl.core.goduration import nanoseconds
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.scheduling.selectors import Labels, selects
from gitops_ctl.scheduling.source_rules import chooses_soundly

SourceKind = Literal["NodeLabels", "ConfigMap", "Webhook"]
_KINDS: Final[tuple[tuple[str, SourceKind], ...]] = (
    ("nodeLabels", "NodeLabels"),
    ("configMap", "ConfigMap"),
    ("webhook", "Webhook"),
)
_SECOND: Final = 10**9
_NEVER_OVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TopologySource:
    """One source.

    Attributes:
        selector: a label selector; `{}` chooses every Node.
        ready: status word and reason of its condition Ready; empty texts before the first pass.
        max_staleness_s: how long the last revision stays usable; None when it cannot be read, and for nodeLabels.
        poll_interval_s: of a webhook; None for the others.
        outlives_its_spec_until: the spec has problems, its selector and levels have none: until its last revision is over, profiles
            may be kept by it; None for every other source.
    """

    name: str
    uid: str
    kind: SourceKind | None
    levels: tuple[str, ...]
    selector: JsonObject
    write_prefix: str = ""
    ready: tuple[str, str] = ("", "")
    max_staleness_s: float | None = None
    poll_interval_s: float | None = None
    outlives_its_spec_until: datetime | None = None

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        """From the object."""
        spec = object_at(tree, "spec")
        found = next(((arm, kind) for arm, kind in _KINDS if spec.get(arm) is not None), None)
        arm = object_at(spec, found[0]) if found is not None else {}
        ready = next((item for item in _conditions(tree) if text_at(item, "type") == "Ready"), {})
        staleness_s = _seconds(arm.get("maxStaleness"))
        is_in_doubt = text_at(ready, "reason") == "InvalidSpec"
        return cls(
            name=text_at(tree, "metadata", "name"),
            uid=text_at(tree, "metadata", "uid"),
            kind=None if found is None else found[1],
            levels=tuple(level for level in list_at(spec, "levels") if isinstance(level, str)),
            selector=object_at(spec, "nodeSelector"),
            write_prefix=text_at(spec, "additionalWritePrefix"),
            ready=(text_at(ready, "status"), text_at(ready, "reason")),
            max_staleness_s=staleness_s,
            poll_interval_s=_seconds(arm.get("pollInterval")),
            outlives_its_spec_until=_end(tree, staleness_s) if is_in_doubt and chooses_soundly(spec) else None,
        )

    def at(self, now: datetime) -> Self:
        """The source as profiles see it at this moment: one whose last revision is over outlives its spec no longer."""
        until = self.outlives_its_spec_until
        return self if until is None or now < until else replace(self, outlives_its_spec_until=None)

    @property
    def writes(self) -> bool:
        """Whether its snapshots become NodeFeatures."""
        return self.kind in ("ConfigMap", "Webhook")

    def chooses(self, labels: Labels) -> bool:
        """Whether its selector matches a Node with these labels."""
        return selects(self.selector, labels)


def last_success(source: JsonObject) -> datetime | None:
    """When the last revision was applied; None when there was none, or when its time cannot be read."""
    try:
        return from_rfc3339(text_at(source, "status", "lastSuccessfulRefreshTime"))
    except ValueError:
        return None


def _end(tree: JsonObject, staleness_s: float | None) -> datetime | None:
    """When the last revision is over, None where there is none; never, where nobody can tell how long it stays usable."""
    succeeded_at = last_success(tree)
    if succeeded_at is None:
        return None
    return _NEVER_OVER if staleness_s is None else succeeded_at + timedelta(seconds=staleness_s)


def _conditions(tree: JsonObject) -> list[JsonObject]:
    return [item for item in list_at(tree, "status", "conditions") if isinstance(item, dict)]


def _seconds(text: JsonValue) -> float | None:
    try:
        length = nanoseconds(text) if isinstance(text, str) else 0
    except ValueError:
        return None
    return length / _SECOND if length > 0 else None

"""A TopologySource as the planners read it (topology-scheduling.md, 3.1).  Only for specs without problems."""

from dataclasses import dataclass
from typing import Final, Literal, Self

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, text_at
from gitops_ctl.scheduling.goduration import nanoseconds
from gitops_ctl.scheduling.selectors import Labels, selects
from gitops_ctl.scheduling.source_rules import chooses_soundly

SourceKind = Literal["NodeLabels", "ConfigMap", "Webhook"]
_KINDS: Final[tuple[tuple[str, SourceKind], ...]] = (
    ("nodeLabels", "NodeLabels"),
    ("configMap", "ConfigMap"),
    ("webhook", "Webhook"),
)
_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class TopologySource:
    """One source.

    Attributes:
        selector: a label selector; `{}` chooses every Node.
        ready: status word and reason of its condition Ready; empty texts before the first pass.
        max_staleness_s: how long the last revision stays usable; None when it cannot be read, and for nodeLabels.
        poll_interval_s: of a webhook; None for the others.
        outlives_its_spec: the spec has problems, its selector and levels have none, and a revision of it was applied before.
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
    outlives_its_spec: bool = False

    @classmethod
    def of(cls, tree: JsonObject) -> Self:
        """From the object."""
        spec = object_at(tree, "spec")
        found = next(((arm, kind) for arm, kind in _KINDS if spec.get(arm) is not None), None)
        arm = object_at(spec, found[0]) if found is not None else {}
        ready = next((item for item in _conditions(tree) if text_at(item, "type") == "Ready"), {})
        return cls(
            name=text_at(tree, "metadata", "name"),
            uid=text_at(tree, "metadata", "uid"),
            kind=None if found is None else found[1],
            levels=tuple(level for level in list_at(spec, "levels") if isinstance(level, str)),
            selector=object_at(spec, "nodeSelector"),
            write_prefix=text_at(spec, "additionalWritePrefix"),
            ready=(text_at(ready, "status"), text_at(ready, "reason")),
            max_staleness_s=_seconds(arm.get("maxStaleness")),
            poll_interval_s=_seconds(arm.get("pollInterval")),
            outlives_its_spec=text_at(ready, "reason") == "InvalidSpec"
            and bool(text_at(tree, "status", "lastSuccessfulRefreshTime"))
            and chooses_soundly(spec),
        )

    @property
    def writes(self) -> bool:
        """Whether its snapshots become NodeFeatures."""
        return self.kind in ("ConfigMap", "Webhook")

    def chooses(self, labels: Labels) -> bool:
        """Whether its selector matches a Node with these labels."""
        return selects(self.selector, labels)


def _conditions(tree: JsonObject) -> list[JsonObject]:
    return [item for item in list_at(tree, "status", "conditions") if isinstance(item, dict)]


def _seconds(text: JsonValue) -> float | None:
    try:
        length = nanoseconds(text) if isinstance(text, str) else 0
    except ValueError:
        return None
    return length / _SECOND if length > 0 else None

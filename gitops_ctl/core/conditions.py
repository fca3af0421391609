"""Conditions in the kstatus convention (gitops.md, section 12.2).

A planner says what holds as `Condition` values; `merge_conditions` carries over the transition times of what did not
change, so that an unchanged status is an unchanged document and no write follows (promise P8).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gitops_ctl.core.jsonvalue import JsonObject, objects_at, text_at
from gitops_ctl.core.moment import to_rfc3339

MESSAGE_LIMIT = 2000
"""Characters of one condition message (gitops.md, section 12.2)."""

LIST_LIMIT = 10
"""Items that a message names before it says how many more there are."""

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition without its times."""

    type: str
    status: Status
    reason: str
    message: str = ""


def merge_conditions(
    previous: JsonObject, *, wanted: Iterable[Condition], generation: int, now: datetime
) -> list[dict[str, str | int]]:
    """The `conditions` list of a status: `wanted`, ordered by type.

    Args:
        previous: the status as it is stored now; its transition times are kept where the status word is the same.
        wanted: every condition that holds; a type that is not listed disappears.
        generation: the generation that was read; becomes `observedGeneration`.
        now: wall clock, used for conditions whose status word changed.
    """
    before = {text_at(item, "type"): item for item in objects_at(previous, "conditions")}
    return [_with_times(item, before.get(item.type), generation, now) for item in sorted(wanted, key=lambda c: c.type)]


def _with_times(wanted: Condition, before: JsonObject | None, generation: int, now: datetime) -> dict[str, str | int]:
    same = before is not None and text_at(before, "status") == wanted.status
    since = text_at(before, "lastTransitionTime") if same and before is not None else ""
    return {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": cut(wanted.message, limit=MESSAGE_LIMIT),
        "observedGeneration": generation,
        "lastTransitionTime": since or to_rfc3339(now),
    }


def condition_of(status: JsonObject, kind: str) -> JsonObject | None:
    """The condition of that type, or None."""
    return next((item for item in objects_at(status, "conditions") if text_at(item, "type") == kind), None)


def is_true(status: JsonObject, kind: str) -> bool:
    """Whether that condition is there and True."""
    found = condition_of(status, kind)
    return found is not None and text_at(found, "status") == "True"


def cut(text: str, *, limit: int) -> str:
    """At most `limit` characters, ended by a mark when something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(items: Sequence[str], *, limit: int = LIST_LIMIT) -> str:
    """The first items joined by commas, then "and N more"."""
    shown = ", ".join(items[:limit])
    return f"{shown} and {len(items) - limit} more" if len(items) > limit else shown

"""Which flavors lose Nodes or go, and who allowed a drain that evicts (topology-scheduling.md, 7.6 and 8.2: D37, D38)."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Final

from gitops_ctl.core.moment import from_rfc3339
from gitops_ctl.scheduling.quantity import text_of
from gitops_ctl.scheduling.queue import HOLD_AND_DRAIN, Groups, Queue, quotas_of

ALLOW_DRAIN: Final = "gitops-ctl.dev/allow-drain"
"""Consent to one drain; the value is the digest of the plan."""
DRAIN_WINDOW: Final = "gitops-ctl.dev/drain-window"
"""`<start>/<end>`: a drain may start from the first moment on and before the second."""


def dropped_flavors(groups: Groups, plan: Groups) -> frozenset[str]:
    """Flavors that are referenced now and not in the plan."""
    return frozenset(quotas_of(groups)) - frozenset(quotas_of(plan))


def left_flavors(
    groups: Groups, plan: Groups, *, before: Mapping[str, str] | None, members: Mapping[str, str]
) -> frozenset[str]:
    """Flavors that stay and from which a Node has moved to another flavor of the queue.

    Args:
        before: the flavor of each Node when groups and plan last agreed; None after a restart, when a smaller quota beside
            one that is added or grows has to be taken for a move.
        members: the flavor of each Node in the plan.
    """
    old, new = quotas_of(groups), quotas_of(plan)
    staying = old.keys() & new.keys()
    if before is None:
        grows = any(quota > old.get(name, Fraction(0)) for name, quota in new.items())
        return frozenset(name for name in staying if grows and new[name] < old[name])
    moved = {flavor for node, flavor in before.items() if members.get(node, flavor) != flavor}
    return frozenset(moved & staying)


def plan_digest(queue: Queue, plan: Groups) -> str:
    """What a consent names: from these quotas to those, of this queue; another plan has another digest."""
    lines = [f"from/{name}/{text_of(quota)}" for name, quota in quotas_of(queue.managed.groups).items()]
    lines += [f"to/{name}/{text_of(quota)}" for name, quota in quotas_of(plan).items()]
    text = "".join(f"{line}\n" for line in sorted([*lines, f"queue/{queue.uid}"]))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def evicts(queue: Queue, going: frozenset[str]) -> bool:
    """Whether a drain would take anything away: something is reserved, or Kueue does not list a flavor that goes."""
    return queue.usage.is_anything_reserved or not all(queue.usage.lists(name) for name in going)


def is_approved(queue: Queue, plan: Groups, *, now: datetime) -> bool:
    """Whether a consent fits this change, or a window is open now by our own clock.

    A `HoldAndDrain` that Git wants and that was carried out evicts already: that commit was the approval.
    """
    if queue.wanted == queue.applied == queue.managed.policy == HOLD_AND_DRAIN:
        return True
    if queue.annotations.get(ALLOW_DRAIN) == plan_digest(queue, plan):
        return True
    window = window_of(queue.annotations.get(DRAIN_WINDOW, ""))
    return window is not None and window[0] <= now < window[1]


def window_of(text: str) -> tuple[datetime, datetime] | None:
    """Start and end of a window; None for a text that is none."""
    start, slash, end = text.partition("/")
    try:
        return (from_rfc3339(start), from_rfc3339(end)) if slash else None
    except ValueError:
        return None

"""When a source is polled, and when silence is an alarm.  Pure: the caller brings the clock and the dice."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.duration import to_seconds
from gitops_ctl.core.errors import BlockedError, GitopsError, TerminalError, TransientError
from gitops_ctl.core.moment import from_rfc3339

JITTER: Final = 0.1
"""Polls come within a tenth of the interval, so that many sources do not ask one server at once (fault G20)."""

FIRST_RETRY_S: Final = 2.0
RETRY_CAP_S: Final = 300.0
STALE_FLOOR_S: Final = 600.0
STALE_INTERVALS: Final = 3

NO_FETCH: Final = "NoFetch"
"""Reason of the alarm about silence."""

PENDING_RETRY_S: Final = 15.0
"""A pending verdict is looked at again at least this often: it clears without a new commit."""


def next_poll_s(interval_s: float, *, draw: float) -> float:
    """Seconds until the next poll; `draw` lies in [0, 1)."""
    return interval_s * (1 - JITTER + 2 * JITTER * draw)


def retry_s(error: GitopsError, *, failures: int, interval_s: float, draw: float) -> float:
    """Seconds until a failed pass is tried again.

    A transient fault backs off from two seconds and is never final after one answer (fault G04); what waits for somebody
    is looked at again at each interval, because nothing tells us when a Secret or a branch appears.

    Args:
        error: what ended the pass.
        failures: failed passes in a row, this one included.
        interval_s: the poll interval.
        draw: in [0, 1).
    """
    match error:
        case TransientError():
            backoff = min(RETRY_CAP_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10)) * (0.5 + 0.5 * draw)
            return max(backoff, error.retry_after_s or 0.0)
        case BlockedError() | TerminalError():
            return next_poll_s(interval_s, draw=draw)
        case _:
            return RETRY_CAP_S


def reviews_retry_s(failures: int, *, draw: float, retry_after_s: float | None = None) -> float:
    """Seconds until a forge that could not be read is asked again: it doubles from 15 s, and is never above five minutes.

    Args:
        failures: readings that failed in a row, at least one.
        draw: in [0, 1).
        retry_after_s: what the forge asked for; longer waits than ours are honoured.
    """
    backoff = min(RETRY_CAP_S, PENDING_RETRY_S * 2.0 ** min(failures - 1, 10)) * (0.5 + 0.5 * draw)
    return max(backoff, retry_after_s or 0.0)


def stale_after_s(interval_s: float) -> float:
    """Seconds without a successful fetch after which `SourceStale` is raised (gitops.md, section 4.5, "Freeze")."""
    return max(STALE_FLOOR_S, STALE_INTERVALS * interval_s)


_VERDICTS: Final = frozenset(code.reason for code in ErrorCode if 1100 <= code.value.number < 1200)
"""Words of Ready that say something about a tip: the server was reached then."""


def silence_at_start_s(conditions: Sequence[tuple[str, str, str, str]], *, interval_s: float, now: datetime) -> float:
    """Seconds without a successful poll that a stored status tells of: a restart must not silence the alarm.

    Args:
        conditions: (type, status, reason, lastTransitionTime) of each.
        interval_s: the poll interval.
        now: wall clock.
    """
    held = {kind: (reason, from_rfc3339(since)) for kind, status, reason, since in conditions if status == "True"}
    if "SourceStale" in held and held["SourceStale"][0] == NO_FETCH:
        return stale_after_s(interval_s) + _seconds(held["SourceStale"][1], now)
    failed = any(
        kind == "Ready" and status == "False" and reason not in _VERDICTS for kind, status, reason, _ in conditions
    )
    begun = [held[kind][1] for kind in ("Reconciling", "Stalled") if kind in held]
    return _seconds(begun[0], now) if failed and begun else 0.0


def old_tip(limit: str | None, *, first_seen: datetime | None, now: datetime) -> str:
    """The limit when the tip was first seen longer ago; empty when it was not, or when there is no limit."""
    if limit is None or first_seen is None or _seconds(first_seen, now) <= to_seconds(limit):
        return ""
    return limit


def _seconds(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())

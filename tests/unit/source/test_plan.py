"""When a source is polled again, and when silence is an alarm."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import BlockedError, InternalError, RateLimited, Refused, TransientError
from gitops_ctl.source.plan import RETRY_CAP_S, next_poll_s, old_tip, retry_s, silence_at_start_s, stale_after_s

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DRAWS = st.floats(0, 1, exclude_max=True)


@pytest.mark.property
@given(st.floats(5, 86_400), DRAWS)
def test_G20_polls_are_spread_over_a_tenth_of_the_interval(interval_s: float, draw: float) -> None:
    assert 0.9 * interval_s <= next_poll_s(interval_s, draw=draw) <= 1.1 * interval_s


@pytest.mark.property
@given(st.integers(1, 1000), DRAWS)
def test_G04_a_transient_fault_backs_off_and_is_never_final(failures: int, draw: float) -> None:
    delay_s = retry_s(TransientError("once"), failures=failures, interval_s=60, draw=draw)
    assert 1 <= delay_s <= RETRY_CAP_S


def test_the_back_off_doubles() -> None:
    delays = [retry_s(TransientError("x"), failures=n, interval_s=60, draw=0.999999) for n in (1, 2, 3)]
    assert delays == pytest.approx([2, 4, 8], rel=0.01)


def test_G20_a_wait_that_the_server_asked_for_is_kept() -> None:
    error = RateLimited("slow down", retry_after_s=120)
    assert retry_s(error, failures=1, interval_s=60, draw=0.0) == 120


@pytest.mark.parametrize("error", [BlockedError("no Secret"), Refused("bad url")], ids=["blocked", "refused"])
def test_what_waits_for_a_person_is_looked_at_again_at_each_interval(error: BlockedError | Refused) -> None:
    assert retry_s(error, failures=9, interval_s=60, draw=0.5) == pytest.approx(60)


def test_a_bug_is_tried_again_slowly() -> None:
    assert retry_s(InternalError("ours"), failures=1, interval_s=60, draw=0.0) == RETRY_CAP_S


@pytest.mark.parametrize(("interval_s", "limit_s"), [(60, 600), (300, 900)], ids=["ten minutes", "three intervals"])
def test_silence_is_an_alarm_after_the_longer_of_two_limits(interval_s: float, limit_s: float) -> None:
    assert stale_after_s(interval_s) == limit_s


def _conditions(**held: tuple[str, str, int]) -> list[tuple[str, str, str, str]]:
    """Type to (status, reason, minutes ago)."""
    return [
        (kind, status, reason, to_rfc3339(NOW - timedelta(minutes=minutes)))
        for kind, (status, reason, minutes) in held.items()
    ]


def test_an_alarm_that_was_raised_stands_after_a_restart() -> None:
    found = _conditions(Ready=("False", "FetchFailed", 40), SourceStale=("True", "NoFetch", 30))
    assert silence_at_start_s(found, interval_s=60, now=NOW) == stale_after_s(60) + 1800


@pytest.mark.parametrize("kind", ["Reconciling", "Stalled"])
def test_the_silence_before_a_restart_counts(kind: str) -> None:
    found = _conditions(Ready=("False", "FetchFailed", 300), **{kind: ("True", "ProgressingWithRetry", 9)})
    assert silence_at_start_s(found, interval_s=60, now=NOW) == 540


@pytest.mark.parametrize(
    "held",
    [
        {"Ready": ("True", "Succeeded", 300)},
        {"Ready": ("False", "PathNotAuthorised", 300), "Stalled": ("True", "PathNotAuthorised", 300)},
        {"Ready": ("False", "NeedsForgeReviews", 300), "Reconciling": ("True", "ProgressingWithRetry", 300)},
        {},
    ],
)
def test_a_server_that_was_reached_was_not_silent(held: dict[str, tuple[str, str, int]]) -> None:
    assert silence_at_start_s(_conditions(**held), interval_s=60, now=NOW) == 0.0


@pytest.mark.parametrize(("limit", "hours", "found"), [(None, 900, ""), ("24h", 24, ""), ("24h", 25, "24h")])
def test_a_tip_that_nobody_has_moved_for_too_long_is_an_alarm_where_the_spec_asks_for_it(
    limit: str | None, hours: int, found: str
) -> None:
    assert old_tip(limit, first_seen=NOW - timedelta(hours=hours), now=NOW) == found


def test_the_age_of_a_tip_is_no_silence() -> None:
    assert silence_at_start_s(_conditions(SourceStale=("True", "TipTooOld", 300)), interval_s=60, now=NOW) == 0.0

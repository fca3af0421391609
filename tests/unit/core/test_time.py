"""Durations, moments and the two clocks."""

import re
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.clock import SystemClock, from_rfc3339, to_rfc3339
from gitops_ctl.core.duration import DURATION_PATTERN, to_seconds, to_text

MOMENTS = st.integers(0, 315_000_000_000).map(lambda after: datetime(1, 1, 2, tzinfo=UTC) + timedelta(seconds=after))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1m30s", 90), ("24h", 86_400), ("1.5h", 5400), ("250ms", 0.25), ("0s", 0), ("1h1m1s1ms", 3661.001)],
)
def test_a_duration_is_read_in_seconds(text, seconds):
    assert to_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "s", "-1s", "1 s", "1d", "1m 30s", "1s\n", "٣s", ".5s", "1e3s"])
def test_this_is_no_duration(text):
    with pytest.raises(ValueError, match="is no duration such as"):
        to_seconds(text)


@pytest.mark.property
@given(seconds=st.integers(0, 10**7))
def test_a_text_of_whole_seconds_is_read_back(seconds):
    text = to_text(seconds)
    assert re.fullmatch(DURATION_PATTERN, text)
    assert to_seconds(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "0.5s"),
        (59, "59s"),
        (59.99, "59.99s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3661, "1h1m1s"),
    ],
)
def test_texts_are_short(seconds, text):
    assert to_text(seconds) == text


@pytest.mark.property
@given(moment=MOMENTS)
def test_a_moment_is_read_back(moment):
    assert from_rfc3339(to_rfc3339(moment)) == moment


@pytest.mark.property
@given(moment=MOMENTS, minutes=st.integers(-14 * 60, 14 * 60))
def test_the_offset_of_a_moment_does_not_count(moment, minutes):
    assert to_rfc3339(moment.astimezone(timezone(timedelta(minutes=minutes)))) == to_rfc3339(moment)


def test_a_moment_has_whole_seconds_and_a_z():
    assert to_rfc3339(datetime(2026, 11, 1, 8, 0, 0, 999_999, tzinfo=UTC)) == "2026-11-01T08:00:00Z"
    assert to_rfc3339(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-01T08:00:00", "2026-13-01T08:00:00Z"])
def test_this_is_no_moment(text):
    with pytest.raises(ValueError, match=r"offset|format|month"):
        from_rfc3339(text)


def test_the_clocks_of_this_machine_go_forward():
    clock = SystemClock()
    first = clock.boot_s()
    assert clock.boot_s() >= first
    assert clock.wall().utcoffset() == timedelta(0)


def test_H15_the_boot_clock_counts_through_suspend():
    assert SystemClock().boot_s() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)


async def test_sleeping_for_less_than_nothing_returns_at_once():
    await SystemClock().sleep(-1)
    await SystemClock().sleep(0)

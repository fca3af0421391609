"""What a planner waits for after its own writes, and what ends the waiting."""

import pytest

from gitops_ctl.kube.cache import Entry
from gitops_ctl.kube.expectations import Expectations, Written, has_reached


def entry(version: str, *, uid: str = "u") -> Entry[object]:
    return Entry(uid, version, None)


def waits(
    expectations: Expectations[str], seen: Entry[object] | None, *, now_s: float = 11.0, listed_s: float = 0.0
) -> bool:
    return expectations.waits("key", now_s=now_s, seen=lambda _: seen, listed_s=listed_s)


@pytest.fixture
def expectations() -> Expectations[str]:
    made: Expectations[str] = Expectations()
    made.wrote("key", target="object", written=Written("u", "100", at_s=10.0))
    return made


@pytest.mark.parametrize(
    ("seen", "waiting"),
    [
        (entry("99"), True),
        (entry("100"), False),
        (entry("101"), False),
        (entry("1", uid="other"), False),
        (None, True),
    ],
    ids=["older", "the same", "newer", "another object", "not there yet"],
)
def test_the_cache_must_show_the_write_or_something_newer(
    expectations: Expectations[str], seen: Entry[object] | None, waiting: bool
) -> None:
    assert waits(expectations, seen) is waiting
    assert waits(expectations, entry("99")) is waiting  # what was met once is forgotten


def test_a_list_that_began_after_the_write_ends_the_waiting(expectations: Expectations[str]) -> None:
    assert waits(expectations, entry("99"), listed_s=9.0)
    assert not waits(expectations, entry("99"), listed_s=10.5)


def test_the_deadline_ends_the_waiting(expectations: Expectations[str]) -> None:
    assert waits(expectations, entry("99"), now_s=39.9)
    assert not waits(expectations, entry("99"), now_s=40.0)


def test_a_later_write_of_the_same_object_is_what_counts(expectations: Expectations[str]) -> None:
    expectations.wrote("key", target="object", written=Written("u", "200", at_s=12.0))
    assert waits(expectations, entry("150"), now_s=13.0)


def test_other_keys_do_not_wait_and_a_forgotten_one_neither(expectations: Expectations[str]) -> None:
    assert not expectations.waits("other", now_s=11.0, seen=lambda _: None, listed_s=0.0)
    expectations.forget("key")
    assert not waits(expectations, entry("99"))


@pytest.mark.parametrize(
    ("version", "wanted", "reached"),
    [("10", "9", True), ("9", "10", False), ("007", "6", False), ("abc", "abc", True), ("abd", "abc", False)],
)
def test_versions_are_ordered_only_when_both_are_plain_decimals(version: str, wanted: str, reached: bool) -> None:
    assert has_reached(version, wanted=wanted) is reached

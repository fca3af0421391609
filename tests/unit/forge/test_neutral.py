"""Which reviews count, read the same way for every forge (forges.md, section 11.1)."""

from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.forge.conversation import own_comment, status_text, with_marker
from gitops_ctl.forge.neutral import Account, Comment, Review, ReviewState, approvals, latest_reviews

HEAD, OLD = "a" * 40, "b" * 40
START = datetime(2026, 1, 1, tzinfo=UTC)


def review(login: str, state: ReviewState, *, hour: int = 0, commit: str = HEAD, **members: bool) -> Review:
    user = Account(login, sum(login.encode()))
    return Review(user, state, commit, START + timedelta(hours=hour), **members)


def counted(*reviews: Review) -> list[str]:
    return [each.user.login for each in approvals(reviews, head=HEAD)]


def test_the_latest_review_of_an_account_counts_whatever_the_order_of_the_list():
    reviews = (review("ann", "changes_requested", hour=2), review("ann", "approved", hour=1))
    assert counted(*reviews) == []
    assert counted(*reversed(reviews)) == []
    assert counted(*reviews, review("ann", "approved", hour=3)) == ["ann"]


@pytest.mark.parametrize("state", ["commented", "pending"])
def test_a_comment_takes_no_approval_away(state):
    assert counted(review("ann", "approved", hour=1), review("ann", state, hour=2)) == ["ann"]
    assert counted(review("ann", state)) == []


def test_a_dismissed_one_takes_the_earlier_approval_of_that_account_with_it():
    assert counted(review("ann", "approved", hour=1), review("ann", "dismissed", hour=2, dismissed=True)) == []


@pytest.mark.parametrize(
    "one",
    [
        review("ann", "approved", commit=OLD),
        review("ann", "approved", commit=""),
        review("ann", "approved", stale=True),
        review("ann", "approved", dismissed=True),
    ],
    ids=["another head", "no head", "stale", "dismissed"],
)
def test_an_approval_of_anything_but_this_head_counts_nothing(one):
    assert counted(one) == []


def test_the_earliest_approval_comes_first():
    reviews = (review("cid", "approved", hour=3), review("ann", "approved", hour=1), review("bob", "approved", hour=2))
    assert counted(*reviews) == ["ann", "bob", "cid"]
    assert [each.user.login for each in latest_reviews(reviews)] == ["ann", "bob", "cid"]


def test_two_accounts_of_one_name_are_two():
    """A login can be given to somebody else, its number cannot."""
    first = Review(Account("ann", 1), "approved", HEAD, START)
    second = Review(Account("ann", 2), "changes_requested", HEAD, START + timedelta(hours=1))
    assert [each.user.id for each in approvals((first, second), head=HEAD)] == [1]


def test_a_comment_of_ours_is_one_of_our_account_with_the_marker():
    marker = "<!-- gitops-ctl:check -->"
    copied = Comment(1, Account("person", 9), f"copy {marker}", START)
    other = Comment(2, Account("bot", 3), "another", START)
    ours = Comment(3, Account("Bot", 3), with_marker("text", marker), START)
    later = Comment(4, Account("bot", 3), with_marker("text", marker), START)
    assert own_comment((copied, other, ours, later), own="bot", marker=marker) == ours
    assert own_comment((copied, other), own="bot", marker=marker) is None
    assert with_marker(f"text {marker}", marker) == f"text {marker}"


def test_a_status_is_one_short_line():
    assert status_text("two\n  lines") == "two lines"
    assert (len(status_text("x" * 500)), status_text("x" * 500)[-1]) == (140, "…")

"""The bounded list of observed tips, and what it says about a commit (section 4.5, "First seen"; fault X07)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.git.store import ObjectStore
from gitops_ctl.trust.firstseen import LIMIT, FirstSeen, SeenTip
from gitops_ctl.trust.sighting import times_of
from tests.support.trust import NOW, Story, Team, config_map, person

START = datetime(2026, 1, 1, tzinfo=UTC)
A = "clusters/a.yaml"


@pytest.mark.property
@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=2 * LIMIT))
def test_the_list_is_bounded_keeps_its_order_and_never_loses_the_newest(gaps: list[int]) -> None:
    listed, at = FirstSeen(), START
    for number, gap in enumerate(gaps):
        at += timedelta(seconds=gap)
        listed = listed.observed(f"{number:040x}", at=at)
    assert len(listed.tips) == min(len(gaps), LIMIT)
    assert [entry.at for entry in listed.tips] == sorted(entry.at for entry in listed.tips)
    assert listed.tips[-1] == SeenTip(f"{len(gaps) - 1:040x}", at)


def test_the_entry_goes_whose_time_is_nearest_to_that_of_its_successor() -> None:
    listed = FirstSeen()
    for number in range(LIMIT):
        listed = listed.observed(f"{number:040x}", at=START + timedelta(hours=number))
    near = START + timedelta(hours=LIMIT - 1, seconds=1)
    listed = listed.observed("f" * 40, at=near)
    assert [entry.tip for entry in listed.tips[-2:]] == [f"{LIMIT - 2:040x}", "f" * 40]


def test_a_tip_that_was_observed_keeps_its_first_time() -> None:
    listed = FirstSeen().observed("a" * 40, at=START)
    assert listed.observed("a" * 40, at=NOW) is listed


def test_the_time_of_a_commit_is_that_of_the_oldest_listed_tip_that_contains_it(story: Story, team: Team) -> None:
    commits = [story.repo.commit({A: config_map("a", x=str(count))}, signer=team["ann"]) for count in range(4)]
    listed = FirstSeen().observed(commits[1], at=START).observed(commits[2], at=NOW)
    with ObjectStore.open(story.repo.git_dir) as store:
        times = times_of(store, commits=frozenset(commits), first_seen=listed)
    assert times == {commits[0]: START, commits[1]: START, commits[2]: NOW}


def test_a_commit_that_survived_a_force_push_keeps_the_time_of_the_lost_tip(story: Story, team: Team) -> None:
    kept = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    lost = story.repo.commit({A: config_map("a", x="lost")}, signer=team["ann"])
    story.repo.git("reset", "--quiet", "--hard", kept)
    new = story.repo.commit({A: config_map("a", x="new")}, signer=team["ann"])
    listed = FirstSeen().observed(lost, at=START).observed(new, at=NOW)
    with ObjectStore.open(story.repo.git_dir) as store:
        times = times_of(store, commits=frozenset({kept, new}), first_seen=listed)
    assert times == {kept: START, new: NOW}


def _limited(tmp_path: Path, team: Team, **limits: str) -> Story:
    key = {"ssh": " ".join(team["ann"].public.split()[:2]), **limits}
    people = [person("ann", key), *(person(name, team[name]) for name in ("bob", "eve", "adm"))]
    return Story.begin(tmp_path / "limited", team.policy(people=people))


def test_X07_a_back_dated_commit_by_an_expired_key_is_judged_at_first_sight(tmp_path: Path, team: Team) -> None:
    story = _limited(tmp_path, team, validUntil=to_rfc3339(NOW - timedelta(days=1)))
    story.repo.commit({A: config_map("a")}, signer=team["ann"], date=NOW - timedelta(days=300))
    refused = story.judge().refused
    assert refused is not None
    assert refused.reason == "UnknownSigner"
    assert "ann was valid only until 2026-11-30T12:00:00Z" in refused.message


def test_X07_a_commit_seen_in_time_stays_good_after_its_key_has_expired(tmp_path: Path, team: Team) -> None:
    story = _limited(tmp_path, team, validUntil=to_rfc3339(NOW + timedelta(days=1)))
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.first_seen = story.first_seen.observed(tip, at=NOW)
    story.now = NOW + timedelta(days=30)
    assert story.judge().verdict == "Accepted"


def test_a_key_is_not_valid_before_its_first_moment(tmp_path: Path, team: Team) -> None:
    story = _limited(tmp_path, team, validFrom=to_rfc3339(NOW + timedelta(seconds=1)))
    story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge().verdict == "UnknownSigner"


def test_X07_a_back_dated_commit_by_a_revoked_key_is_refused(tmp_path: Path, team: Team) -> None:
    revoked = [{"fingerprint": team["ann"].fingerprint, "from": to_rfc3339(NOW)}]
    story = Story.begin(tmp_path / "revoked", team.policy(revoked=revoked))
    story.repo.commit({A: config_map("a")}, signer=team["ann"], date=NOW - timedelta(days=300))
    assert story.judge().verdict == "RevokedSigner"


def test_a_tip_that_is_no_readable_commit_spoils_no_later_pass(story: Story, team: Team) -> None:
    broken = story.repo.write_object("commit", b"no tree\n\nodd\n")
    assert story.judge(broken).verdict == "MalformedObject"
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    assert story.judge(tip).accepted == tip


def test_a_commit_that_a_clock_saw_far_in_the_future_is_accepted_once_it_is_signed_again(
    tmp_path: Path, team: Team
) -> None:
    story = _limited(tmp_path, team, validUntil=to_rfc3339(NOW + timedelta(days=30)))
    root = story.repo.git("rev-parse", "HEAD").strip()
    tip = story.repo.commit({A: config_map("a")}, signer=team["ann"])
    story.first_seen = story.first_seen.observed(tip, at=NOW + timedelta(days=400))
    refused = story.judge().refused
    assert refused is not None
    assert (refused.reason, "sign it again" in refused.hint) == ("UnknownSigner", True)
    story.repo.git("reset", "--quiet", "--hard", root)
    again = story.repo.commit({A: config_map("a")}, signer=team["ann"], date=NOW - timedelta(seconds=1))
    assert again != tip
    assert story.judge().accepted == again

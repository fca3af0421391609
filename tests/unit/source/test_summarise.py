"""From facts to the status of a GitSource.

In scope: the rules of conditions and what the durable members hold.  Out of scope: who writes it.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.api.gitops import GitSourceStatus
from gitops_ctl.core.canonical import canonical_json
from gitops_ctl.core.conditions import condition_of
from gitops_ctl.core.errors import NotFound, Refused, Unavailable
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.source.durable import acceptance_of, first_seen_of, observed_of
from gitops_ctl.source.model import Acceptance, Facts, Observed, Refusal
from gitops_ctl.source.summarise import status_of
from gitops_ctl.trust.firstseen import FirstSeen

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
L, T, ROOT = "a" * 40, "b" * 40, "c" * 40
DIGEST = "sha256:" + "0" * 64

ACCEPTED = Acceptance(L, "", DIGEST, DIGEST, ROOT, "1", NOW)
FACTS = Facts(
    trusted=True,
    observed=Observed(L, NOW),
    first_seen=FirstSeen().observed(L, at=NOW),
    accepted=ACCEPTED,
    verdict="Accepted",
    message="accepted",
)
REFUSAL = Refusal(T, "PathNotAuthorised", "b changes rbac/x", path="rbac/x", verb="edit", rule="3", hint="ask platform")


def status(facts: Facts, *, previous: JsonObject | None = None, now: datetime = NOW) -> JsonObject:
    return status_of(facts, previous=previous or {}, generation=3, interval_s=60, now=now)


def words(found: JsonObject, kind: str) -> tuple[str, str] | None:
    condition = condition_of(found, kind)
    return None if condition is None else (text_at(condition, "status"), text_at(condition, "reason"))


def message(found: JsonObject, kind: str) -> str:
    condition = condition_of(found, kind)
    assert condition is not None
    return text_at(condition, "message")


def test_an_accepted_tip_is_ready_and_verified() -> None:
    found = status(FACTS)
    assert words(found, "Ready") == ("True", "Succeeded")
    assert words(found, "Verified") == ("True", "Accepted")
    assert words(found, "Reconciling") is None
    assert words(found, "Stalled") is None


def test_a_refused_commit_is_named_with_path_and_rule_and_needs_a_person() -> None:
    found = status(replace(FACTS, verdict="PathNotAuthorised", refusal=REFUSAL))
    assert words(found, "Ready") == ("False", "PathNotAuthorised")
    assert words(found, "Verified") == ("False", "PathNotAuthorised")
    assert words(found, "Stalled") == ("True", "PathNotAuthorised")
    assert text_at(found, "rejected", "commit") == T
    assert text_at(found, "rejected", "rule") == "3"
    assert f"{L} stays in force" in message(found, "Ready")


def test_whatever_a_refused_commit_names_the_status_can_be_stored() -> None:
    endless = "x/" * 5000
    refusal = replace(REFUSAL, path=endless, rule=endless, hint=endless, message=endless)
    found = status(replace(FACTS, verdict="PathNotAuthorised", refusal=refusal))
    assert GitSourceStatus.model_validate_json(canonical_json(found)).accepted is not None
    assert text_at(found, "rejected", "path").startswith("x/x/")


def test_X01_a_refused_accepted_revision_says_that_nothing_is_rolled_back() -> None:
    found = status(replace(FACTS, verdict="RevokedSigner", refusal=REFUSAL, effects_allowed=False))
    assert words(found, "Verified") == ("False", "RevokedSigner")
    assert "nothing is rolled back" in message(found, "Ready")
    assert "stays in force" not in message(found, "Ready")


@pytest.mark.parametrize("verdict", ["SignatureInFuture", "HistoryUnavailable", "NeedsForgeReviews"])
def test_a_pending_verdict_is_no_refusal(verdict: str) -> None:
    found = status(replace(FACTS, verdict=verdict, refusal=replace(REFUSAL, reason=verdict), pending=True))
    assert words(found, "Ready") == ("False", verdict)
    assert words(found, "Verified") == ("Unknown", verdict)
    assert words(found, "Reconciling") == ("True", "ProgressingWithRetry")
    assert words(found, "Stalled") is None
    assert "rejected" not in found
    assert REFUSAL.message in message(found, "Ready")


def test_a_long_range_shows_its_counters_in_reconciling_only() -> None:
    facts = replace(FACTS, verdict="VerificationInProgress", pending=True, message="1000 commits judged, 49000 remain")
    found = status(facts)
    assert words(found, "Ready") == ("Unknown", "VerificationInProgress")
    assert "49000" in message(found, "Reconciling")
    assert "49000" not in message(found, "Ready")


def test_a_transient_fault_keeps_the_verdict_and_is_tried_again() -> None:
    found = status(
        replace(FACTS, error=Unavailable("the server answered 503", subject="https://git.example.net/a.git"))
    )
    assert words(found, "Ready") == ("False", "Unavailable")
    assert words(found, "Reconciling") == ("True", "ProgressingWithRetry")
    assert words(found, "Verified") == ("True", "Accepted")
    assert f"{L} stays in force" in message(found, "Ready")


@pytest.mark.parametrize("error", [NotFound("no Secret"), Refused("bad url")], ids=["missing", "wrong"])
def test_what_a_person_must_mend_is_stalled(error: NotFound | Refused) -> None:
    found = status(replace(FACTS, error=error))
    assert words(found, "Stalled") == ("True", error.reason)
    assert words(found, "Reconciling") is None


def test_promise_09_no_credential_of_a_foreign_text_reaches_the_status() -> None:
    error = Unavailable("cannot reach https://user:S3cr3tPlanted@git.example.net: token=S3cr3tPlanted")
    assert b"S3cr3tPlanted" not in canonical_json(status(replace(FACTS, error=error)))


def test_a_source_without_trust_is_ready_but_not_verified() -> None:
    found = status(replace(FACTS, trusted=False, accepted=None, verdict=""))
    assert words(found, "Ready") == ("True", "Succeeded")
    assert words(found, "Verified") is None


def test_a_suspended_source_says_so_and_keeps_its_revision() -> None:
    found = status(replace(FACTS, suspended=True))
    assert words(found, "Ready") == ("True", "Suspended")
    assert text_at(found, "accepted", "revision") == L


def test_silence_raises_an_alarm_whose_text_does_not_change_from_pass_to_pass() -> None:
    first = status(replace(FACTS, stale_since_s=601.0))
    later = status(replace(FACTS, stale_since_s=9001.0), previous=first, now=NOW + timedelta(hours=2))
    assert words(first, "SourceStale") == ("True", "NoFetch")
    assert first == later


def test_R15_the_same_facts_give_the_same_status_at_another_time() -> None:
    first = status(FACTS)
    assert status(FACTS, previous=first, now=NOW + timedelta(hours=1)) == first


def test_the_durable_members_come_back_as_they_were() -> None:
    stored = GitSourceStatus.model_validate_json(canonical_json(status(replace(FACTS, refusal=REFUSAL))))
    assert acceptance_of(stored) == ACCEPTED
    assert observed_of(stored) == FACTS.observed
    assert first_seen_of(stored) == FACTS.first_seen


def test_an_old_tip_raises_the_alarm_and_changes_nothing_else() -> None:
    found = status(replace(FACTS, old_tip="24h"))
    assert words(found, "SourceStale") == ("True", "TipTooOld")
    assert "serves an old state" in message(found, "SourceStale")
    assert words(found, "Ready") == words(status(FACTS), "Ready")

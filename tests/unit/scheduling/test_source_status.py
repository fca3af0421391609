"""Conditions, timers and status of a TopologySource (topology-scheduling.md, 3.3 and 9.1; cases 31 to 34, 39, 56, 57, 59)."""

from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.scheduling.nodefeature import Overlap
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.snapshot import SnapshotProblem
from gitops_ctl.scheduling.source import TopologySource, last_success
from gitops_ctl.scheduling.source_rules import SpecProblem
from gitops_ctl.scheduling.source_status import (
    Applied,
    Contested,
    Failed,
    Look,
    Misspecified,
    failure_of,
    judge,
    status_of,
)

NOW = datetime(2031, 4, 2, 6, tzinfo=UTC)
BOTH = pytest.mark.parametrize("options", [Options(), Options.reference()], ids=["ours", "reference-defaults"])


def source(kind="ConfigMap", *, staleness=60.0, poll=None):
    return TopologySource("hall-7", "uid", kind, ("a",), {}, max_staleness_s=staleness, poll_interval_s=poll)


def judged(outcome, of, *, age=None, options=None):
    at = None if age is None else NOW - timedelta(seconds=age)
    return judge(outcome, source=of, succeeded_at=at, now=NOW, options=options or Options())


def row(judgement):
    """Ready, Valid and OwnershipConflict as one row of the table."""
    found = {condition.type: f"{condition.status} {condition.reason}" for condition in judgement.conditions}
    assert set(found) == {"Ready", "Valid", "OwnershipConflict"}
    return found["Ready"], found["Valid"], found["OwnershipConflict"]


FAILED = Failed("SnapshotInvalid", "detail")


@BOTH
def test_a_read_only_source_that_is_a_tree_is_observed(options):
    """Case 31."""
    found = judged(Applied(), source("NodeLabels", staleness=None), options=options)
    assert row(found) == ("True Observed", "True Observed", "False ReadOnly")
    assert (found.removes, found.requeue_s, found.succeeded) == (False, None, False)


@BOTH
def test_a_read_only_source_that_is_no_tree_says_why(options):
    """Case 32."""
    found = judged(Applied(problem="two zones"), source("NodeLabels", staleness=None), options=options)
    assert row(found) == ("False InvalidHierarchy", "False InvalidHierarchy", "False ReadOnly")
    assert found.conditions[1].message == "two zones"


@BOTH
@pytest.mark.parametrize(("kind", "poll"), [("ConfigMap", None), ("Webhook", 10.0)])
def test_an_applied_snapshot_is_observed_and_only_a_webhook_polls(kind, poll, options):
    """Case 33."""
    found = judged(Applied(note="gone: n9"), source(kind, poll=poll), options=options)
    assert row(found) == ("True Observed", "True Observed", "False NoConflict")
    assert (found.requeue_s, found.succeeded) == (poll, True)
    assert found.conditions[1].message == "gone: n9"


@BOTH
@pytest.mark.parametrize(
    ("poll", "requeue"), [(None, 60.0), (10.0, 10.0), (600.0, 60.0)], ids=["configMap", "webhook", "case 57"]
)
def test_a_conflict_removes_the_features_and_is_looked_at_within_a_minute(poll, requeue, options):
    """Cases 39 and 57."""
    outcome = Contested(Overlap(("first", "second"), ("node-a",)))
    found = judged(outcome, source("Webhook" if poll else "ConfigMap", poll=poll), age=5, options=options)
    assert row(found) == ("False OwnershipConflict", "True Observed", "True OverlappingSources")
    assert "first, second" in found.conditions[2].message
    assert (found.removes, found.requeue_s, found.succeeded) == (True, requeue, False)


@BOTH
@pytest.mark.parametrize(("poll", "requeue"), [(None, None), (10.0, 10.0)])
def test_a_failure_before_any_success_removes_nothing(poll, requeue, options):
    """Case 59, first part."""
    found = judged(FAILED, source("Webhook" if poll else "ConfigMap", poll=poll), options=options)
    assert row(found) == ("False SnapshotInvalid", "False SnapshotInvalid", "False NoConflict")
    assert (found.removes, found.requeue_s) == (False, requeue)


@BOTH
@pytest.mark.parametrize(
    ("age", "poll", "ready", "removes", "requeue"),
    [
        (30, 10.0, "False Stale", False, 10.0),
        (55, 10.0, "False Stale", False, 5.0),
        (30, None, "False Stale", False, 30.0),
        (59.5, None, "False Stale", False, 0.5),
        (60, None, "False Expired", True, None),
        (60, 10.0, "False Expired", True, 10.0),
        (3600, 10.0, "False Expired", True, 10.0),
        (-5, 10.0, "False Stale", False, 10.0),
    ],
)
def test_a_failure_is_stale_until_the_age_reaches_the_limit(age, poll, ready, removes, requeue, options):
    """Cases 34, 56 and 59: the comparison is strict, and a webhook goes on polling."""
    found = judged(FAILED, source("Webhook" if poll else "ConfigMap", poll=poll), age=age, options=options)
    assert row(found) == (ready, "False SnapshotInvalid", "False NoConflict")
    assert (found.removes, found.requeue_s, found.succeeded) == (removes, requeue, False)


def test_a_stale_source_says_that_profiles_are_kept():
    """B1; with reference-defaults it does not."""
    assert "keep-profile-while-stale" in judged(FAILED, source(), age=30).conditions[0].message
    plain = judged(FAILED, source(), age=30, options=Options.reference()).conditions[0].message
    assert "keep-profile" not in plain
    assert "2031-04-02T06:00:30Z" in plain


def test_a_refused_drop_says_when_everything_goes():
    """B2."""
    outcome = failure_of([SnapshotProblem("B2", "would remove 9 of 10")], source())
    assert outcome.reason == "SnapshotInvalid"
    assert "2031-04-02T06:00:30Z" in judged(outcome, source(), age=30).conditions[1].message


@BOTH
def test_a_source_without_an_arm_waits_for_one(options):
    found = judged(Applied(), source(None), options=options)
    assert row(found) == ("False PendingInventoryAdapter", "Unknown PendingInventoryAdapter", "False NoConflict")


@pytest.mark.parametrize(
    ("age", "staleness", "removes", "requeue"),
    [(None, 60.0, False, None), (30, 60.0, False, 30.0), (60, 60.0, True, None), (600, None, False, None)],
)
def test_a_spec_with_problems_keeps_features_while_they_are_usable(age, staleness, removes, requeue):
    """D9: no destructive step on configuration that cannot be read."""
    problems = (SpecProblem("spec.levels", "is empty"), SpecProblem("spec", "no arm"))
    found = judged(Misspecified(problems), source(staleness=staleness), age=age)
    assert row(found) == ("False InvalidSpec", "False InvalidSpec", "False NoConflict")
    assert found.conditions[1].message == "spec.levels: is empty; spec: no arm"
    assert (found.removes, found.requeue_s) == (removes, requeue)


def test_a_source_with_problems_elsewhere_in_its_spec_says_that_profiles_are_kept():
    """B1: neither selector nor levels are in doubt."""
    key, levels = SpecProblem("spec.configMap.key", "is blank"), SpecProblem("spec.levels[1]", "is listed twice")
    kept = "profiles are kept (keep-profile-while-stale); spec.configMap.key: is blank"
    assert judged(Misspecified((key,)), source(), age=5).conditions[0].message == kept
    plain = judged(Misspecified((key,)), source(), age=5, options=Options.reference())
    assert plain.conditions[0].message == "spec.configMap.key: is blank"
    expired, never = judged(Misspecified((key,)), source(), age=90), judged(Misspecified((key,)), source())
    for found in (expired, never, judged(Misspecified((levels,)), source(), age=5)):
        assert "kept" not in found.conditions[0].message


@pytest.mark.parametrize(
    ("rule", "kind", "reason"),
    [
        ("1", "Webhook", "WebhookReadFailed"),
        ("5", "Webhook", "WebhookReadFailed"),
        ("1", "ConfigMap", "SnapshotInvalid"),
        ("6", "Webhook", "SnapshotInvalid"),
        ("14", "ConfigMap", "SnapshotInvalid"),
        ("B3", "Webhook", "SnapshotInvalid"),
    ],
)
def test_decoding_belongs_to_the_fetch_of_a_webhook_only(rule, kind, reason):
    problems = [SnapshotProblem(rule, "first"), SnapshotProblem("14", "second")]
    found = failure_of(problems, source(kind))
    assert found.reason == reason
    assert "first" in found.detail
    assert "second" not in found.detail


def tree(status=None):
    spec = {"levels": ["a"], "nodeSelector": {}, "configMap": {"maxStaleness": "1m"}}
    return {"metadata": {"name": "hall-7", "uid": "uid"}, "spec": spec, "status": status or {}}


def written(status, outcome, look, *, at=NOW, generation=3):
    stored = tree(status)
    of = TopologySource.of(stored)
    judgement = judge(outcome, source=of, succeeded_at=last_success(stored), now=at, options=Options())
    return status_of(stored, judgement, look, generation=generation, now=at)


def test_the_status_renews_the_time_at_every_success_and_keeps_it_through_failures():
    """Section 3.3; the clock is in the status, so a restart changes nothing."""
    first = written({}, Applied(), Look(revision="r1", selected=2, mutated=2))
    assert first["lastSuccessfulRefreshTime"] == to_rfc3339(NOW)
    assert {name: first.get(name) for name in ("sourceKind", "lastSuccessfulRevision", "selectedNodes")} == {
        "sourceKind": "ConfigMap",
        "lastSuccessfulRevision": "r1",
        "selectedNodes": 2,
    }
    assert (first["mutatedNodes"], first.get("conflictedNodes"), first["observedGeneration"]) == (2, None, 3)
    later = NOW + timedelta(seconds=30)
    again = written(first, Applied(), Look(revision="r1", selected=2), at=later)
    assert again["lastSuccessfulRefreshTime"] == to_rfc3339(later)
    assert "mutatedNodes" not in again
    failed = written(again, FAILED, Look(), at=later + timedelta(seconds=30))
    assert failed["lastSuccessfulRevision"] == "r1"
    assert failed["selectedNodes"] == 2
    expired = written(failed, FAILED, Look(mutated=1), at=later + timedelta(hours=1))
    assert expired["lastSuccessfulRefreshTime"] == to_rfc3339(later)
    assert {one["type"]: one["reason"] for one in expired["conditions"]}["Ready"] == "Expired"


def test_an_unchanged_pass_over_a_read_only_source_changes_no_status():
    spec = {"levels": ["a"], "nodeSelector": {}, "nodeLabels": {}}
    stored = {"metadata": {"name": "s", "uid": "u"}, "spec": spec}
    of = TopologySource.of(stored)
    assert of.kind == "NodeLabels"
    judgement = judge(Applied(), source=of, succeeded_at=None, now=NOW, options=Options())
    first = status_of(stored, judgement, Look(selected=1), generation=1, now=NOW)
    assert first["sourceKind"] == "NodeLabels"
    second = status_of({**stored, "status": first}, judgement, Look(selected=1), generation=1, now=NOW + timedelta(1))
    assert second == first


def test_a_time_that_cannot_be_read_is_no_success():
    assert last_success(tree({"lastSuccessfulRefreshTime": "yesterday"})) is None
    assert last_success(tree()) is None

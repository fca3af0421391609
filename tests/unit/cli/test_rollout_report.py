"""The timeline of the report: which parts of the work stand where, nothing foreign in the markup."""

import re

from gitops_ctl.cli.report import page_of
from gitops_ctl.cli.rolloutprogress import rollout_summary
from gitops_ctl.cli.rolloutreport import rollouts_html
from tests.support.rollout_progress import a_leaf, a_moving_rollout, a_summary, leaves

NOW = "2026-11-30T09:10:00Z"


def bars(html):
    """Word, left and width of each bar."""
    found = re.findall(r'<div title="([a-z ]+): [^"]*" style="[^"]*left:([0-9.]+)%;width:([0-9.]+)%', html)
    return [(word, float(left), float(width)) for word, left, width in found]


def one_device(phase, *, since, **status):
    tree = a_moving_rollout(targets=[a_summary(1, phase, lastTransitionTime=since)])
    tree["status"]["frozenPlan"]["targets"] = tree["status"]["frozenPlan"]["targets"][:1]
    return rollout_summary(tree, {"leaf-1": a_leaf(1, "Succeeded", **status)})


def test_each_part_of_the_work_is_a_bar_as_wide_as_it_took():
    times = {
        "startTime": "2026-11-30T08:00:00Z",
        "installStartTime": "2026-11-30T08:15:00Z",
        "activationStartTime": "2026-11-30T08:45:00Z",
        "completionTime": "2026-11-30T09:00:00Z",
    }
    html = rollouts_html(
        [one_device("Soaking", since="2026-11-30T09:00:01Z", **times)], generated="2026-11-30T09:40:00Z"
    )
    assert bars(html) == [
        ("prepares", 0.0, 15.0),
        ("installs", 15.0, 30.0),
        ("activates", 45.0, 15.0),
        ("is watched", 60.0, 40.0),
    ]
    assert "2026-11-30 08:00:00 to 2026-11-30 09:40:00" in html


def test_what_is_over_ends_with_its_target_and_not_now():
    times = {"startTime": "2026-11-30T08:00:00Z", "completionTime": "2026-11-30T08:50:00Z"}
    html = rollouts_html(
        [one_device("Succeeded", since="2026-11-30T09:00:00Z", **times)], generated="2027-01-01T00:00:00Z"
    )
    assert bars(html) == [("prepares", 0.0, 83.3), ("is watched", 83.3, 16.7)]


def test_devices_stand_below_their_wave():
    html = rollouts_html([rollout_summary(a_moving_rollout(), leaves())], generated=NOW)
    words = re.findall(r'<th colspan="3">([^<]+)</th>|<td class="id">([^<]+)</td>', html)
    assert [one or other for one, other in words] == [
        *("canaries: 2 of 2 succeeded", "switch-1", "switch-2"),
        "wave 1: 0 of 3 succeeded, 1 Blocked, 1 Running, 1 WaitingForAdmission",
        *("switch-3", "switch-4", "switch-5"),
    ]


def test_times_that_cannot_be_read_leave_the_row_without_a_bar():
    html = rollouts_html([one_device("Running", since="", startTime="yesterday")], generated=NOW)
    assert bars(html) == []
    assert "switch-1" in html


def test_texts_are_escaped():
    evil = "<script>alert(1)</script>"
    html = rollouts_html([rollout_summary(a_moving_rollout(message=evil), leaves())], generated=NOW)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_page_without_rollouts_has_no_heading_for_them():
    state = {"generated": NOW, "sources": [], "syncs": [], "events": []}
    assert "<h2>Rollouts</h2>" not in page_of(state)
    with_one = {**state, "rollouts": [rollout_summary(a_moving_rollout(), leaves())]}
    assert "<h2>Rollouts</h2>" in page_of(with_one)

"""The transition machine of a queue, row by row (topology-scheduling.md, 7.6 and 8.1)."""

import hashlib
from datetime import timedelta

import pytest

from gitops_ctl.core.conditions import merge_conditions
from gitops_ctl.scheduling.drain import left_flavors, plan_digest
from gitops_ctl.scheduling.migration import Desired, Unsettled
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import Queue
from gitops_ctl.scheduling.queue_plan import Refusal
from tests.support.scheduling_queue import (
    ALLOW,
    APPLIED,
    EMPTY,
    NOW,
    PHASE,
    SAVED,
    STARTED,
    STOPPED,
    TAS,
    WANTED,
    WINDOW,
    groups,
    plan,
    queue,
    row,
    step,
)

OURS = {TAS: "true"}
REFUSED = Refusal("NonConservedQuota", "node n is in no flavor")
UNSETTLED = Unsettled("n1", "its profile", 31.0)


def moving(phase="draining", saved="None", **more):
    return {**OURS, PHASE: phase, SAVED: saved, STARTED: "2031-04-02T05:59:00Z", **more}


def drained(marks, **quotas):
    return queue("HoldAndDrain", marks, active=STOPPED, **quotas)


def test_nothing_is_written_when_the_plan_is_there():
    found = step(queue(marks=OURS, a=4), plan(a=4))
    assert found.write is None
    assert row(found) == ("True/Ready", None)


@pytest.mark.parametrize("new", [{"a": 8}, {"a": 4, "b": 4}, {"b": 4, "a": 4}])
def test_more_quota_and_more_flavors_are_written_in_place(new):
    found = step(queue(marks=OURS, a=4), plan(**new))
    assert found.write.groups == groups(**new)
    assert (found.write.policy, found.write.marks) == ("None", OURS)
    assert row(found) == ("True/Ready", None)


def test_admission_checks_follow_in_place():
    found = step(queue(marks=OURS, a=4), Desired(plan(a=4), checks=("c",)))
    assert found.write.checks == ("c",)


def test_a_drop_waits_until_kueue_has_observed_the_queue():
    found = step(queue(marks=OURS, generation=4, a=4, b=4), plan(a=4))
    assert found.write is None
    assert row(found) == ("Unknown/AwaitingQueueStatus", 5.0)


def test_an_idle_flavor_is_dropped_in_place():
    found = step(queue(marks=OURS, reserved={"a": 2, "b": 0}, workloads=1, a=4, b=4), plan(a=4))
    assert (found.write.groups, found.write.policy) == (groups(a=4), "None")
    assert row(found) == ("True/Ready", None)


@pytest.mark.parametrize(
    ("reserved", "used"),
    [
        ({"a": 0, "b": 1}, None),
        ({"a": 0, "b": 0}, {"a": 0, "b": 1}),
        ({"a": 0}, None),
        ({"a": 0, "b": 0}, {"a": 0}),
        ({"b": "x"}, None),
    ],
)
def test_a_flavor_in_use_or_not_listed_is_drained_and_the_groups_stay(reserved, used):
    """Row (a)."""
    live = queue(marks=OURS, reserved=reserved, used=used, a=4, b=4)
    found = step(live, plan(a=4))
    assert found.write.policy == "HoldAndDrain"
    assert found.write.groups == live.managed.groups
    assert found.write.marks == {**OURS, PHASE: "draining", SAVED: "None", STARTED: "2031-04-02T06:00:00Z"}
    assert row(found) == ("False/Migrating", 5.0)


@pytest.mark.parametrize(("policy", "saved"), [("", "unset"), ("Hold", "Hold"), ("HoldAndDrain", "HoldAndDrain")])
def test_whatever_policy_stood_there_is_saved(policy, saved):
    """D25: an absent one as unset."""
    found = step(queue(policy, OURS, reserved={}, a=4), plan(b=4))
    assert found.write.marks[SAVED] == saved


def test_a_flavor_that_a_node_left_is_drained_like_a_dropped_one():
    """D37."""
    live = queue(marks=OURS, reserved={"a": 1, "b": 0}, workloads=1, a=8, b=4)
    desired = Desired(plan(a=4, b=8), left=frozenset({"a"}))
    assert step(live, desired).write.policy == "HoldAndDrain"
    assert step(live, Desired(plan(a=4, b=8))).write.policy == "None"
    assert step(queue(marks=OURS, a=8, b=4), desired).write.groups == groups(a=4, b=8)


def test_a_moved_node_is_seen_and_a_gone_one_moves_nowhere():
    before = {"n1": "a", "n2": "a", "n3": "b"}
    old, new = groups(a=8, b=4), groups(a=4, b=8)
    assert left_flavors(old, new, before=before, members={"n1": "a", "n2": "b", "n3": "b"}) == {"a"}
    assert left_flavors(old, groups(a=4, b=4), before=before, members={"n1": "a", "n3": "b"}) == frozenset()
    assert left_flavors(old, groups(b=12), before=before, members=dict.fromkeys(before, "b")) == frozenset()


def test_after_a_restart_a_smaller_quota_beside_a_larger_one_counts_as_a_move():
    assert left_flavors(groups(a=8, b=4), groups(a=4, b=8), before=None, members={}) == {"a"}
    assert left_flavors(groups(a=8), groups(a=4, c=4), before=None, members={}) == {"a"}
    assert left_flavors(groups(a=8, b=4), groups(a=4, b=4), before=None, members={}) == frozenset()


def test_a_pool_that_lost_all_flavors_is_held_first_even_when_idle():
    found = step(queue(marks=OURS, a=4), plan())
    assert found.write.policy == "HoldAndDrain"
    assert found.write.groups == groups(a=4)
    stale = step(queue(marks=OURS, generation=9, a=4), plan())
    assert stale.write.policy == "HoldAndDrain"


def test_without_the_option_a_lost_pool_waits_while_anything_is_reserved():
    """D27."""
    options = Options(drain_when_no_flavors=False)
    busy = step(queue(marks=OURS, reserved={"a": 1}, a=4), plan(), options=options)
    assert (busy.write, row(busy)) == (None, ("True/Ready", 60.0))
    assert "drain-when-no-flavors" in busy.condition.message
    assert step(queue(marks=OURS, a=4), plan(), options=options).write.policy == "HoldAndDrain"
    assert row(step(queue(marks=OURS, generation=9, a=4), plan(), options=options))[1] == 5.0


@pytest.mark.parametrize("phase", ["draining", "switched"])
def test_a_migration_stays_held_while_nodes_have_not_settled(phase):
    live = drained(moving(phase), a=4)
    found = step(live, Desired(plan(b=4), unsettled=UNSETTLED))
    assert found.write is None
    assert row(found) == ("False/Migrating", 5.0)
    assert "n1" in found.condition.message
    opened = step(queue("None", moving(phase), a=4), Desired(plan(b=4), unsettled=UNSETTLED))
    assert (opened.write.policy, opened.write.groups) == ("HoldAndDrain", groups(a=4))


def test_a_migration_stays_held_while_the_plan_is_refused():
    """D26: an edit of the policy is set back also then."""
    found = step(drained(moving(), a=4), REFUSED)
    assert found.write is None
    assert row(found) == ("False/NonConservedQuota", 30.0)
    opened = step(queue("None", moving(), a=4), REFUSED)
    assert opened.write.policy == "HoldAndDrain"
    assert row(opened) == ("False/NonConservedQuota", 30.0)


@pytest.mark.parametrize(
    "marks", [moving("other"), moving(saved="Never"), {**OURS, PHASE: "draining"}, {**OURS, PHASE: "", SAVED: "None"}]
)
def test_an_unknown_state_is_reported_and_touches_nothing(marks):
    for policy in ("None", "HoldAndDrain"):
        found = step(queue(policy, marks, active=STOPPED, a=4), plan(b=4))
        assert found.write is None
        assert row(found) == ("False/InvalidMigrationState", 30.0)
        assert step(queue(policy, marks, a=4), REFUSED).write is None


@pytest.mark.parametrize("policy", ["", "None", "Hold"])
def test_an_edit_of_the_policy_never_bypasses_the_hold(policy):
    for phase in ("draining", "switched"):
        live = queue(policy, moving(phase), active=STOPPED, a=4)
        found = step(live, Desired(plan(b=4), checks=("c",)))
        assert (found.write.policy, found.write.groups, found.write.checks) == ("HoldAndDrain", groups(a=4), ("c",))
        assert found.write.marks == live.managed.marks
        assert row(found) == ("False/Migrating", 5.0)


@pytest.mark.parametrize(
    "state",
    [
        {"workloads": 1},
        {"reserved": {"a": 1}},
        {"observed": 2},
        {"active": ("True", "Ready")},
        {"active": ("False", "FlavorNotFound")},
    ],
)
def test_nothing_is_switched_before_all_is_drained(state):
    live = queue("HoldAndDrain", moving(), **{"active": STOPPED, **state}, a=4)
    found = step(live, plan(b=4))
    assert found.write is None
    assert row(found) == ("False/Migrating", 5.0)
    assert "since 2031-04-02T05:59:00Z" in found.condition.message


def test_a_drained_queue_is_switched_whole_and_stays_held():
    """Row (b)."""
    found = step(drained(moving(), a=4, c=8), Desired(plan(b=4), checks=("c",)))
    assert (found.write.groups, found.write.policy, found.write.checks) == (groups(b=4), "HoldAndDrain", ("c",))
    assert found.write.marks[PHASE] == "switched"
    assert row(found) == ("False/Migrating", 5.0)


def test_a_newer_plan_is_switched_to_before_the_release():
    found = step(drained(moving("switched"), b=4), plan(c=4))
    assert found.write.groups == groups(c=4)
    assert found.write.marks[PHASE] == "switched"


def test_an_empty_plan_keeps_the_hold_and_the_annotations_and_is_ready():
    """Row (c)."""
    found = step(drained(moving("switched")), plan())
    assert found.write is None
    assert row(found) == ("True/Ready", None)
    returned = step(drained(moving("switched")), plan(b=4))
    assert returned.write.groups == groups(b=4)
    assert returned.write.policy == "HoldAndDrain"


@pytest.mark.parametrize(
    ("saved", "policy"), [("unset", ""), ("None", "None"), ("Hold", "Hold"), ("HoldAndDrain", "HoldAndDrain")]
)
def test_the_saved_policy_comes_back_once_the_new_groups_are_observed(saved, policy):
    """Row (d)."""
    waiting = queue("HoldAndDrain", moving("switched", saved), active=STOPPED, observed=2, b=4)
    assert step(waiting, plan(b=4)).write is None
    found = step(drained(moving("switched", saved), b=4), plan(b=4))
    assert (found.write.policy, found.write.marks, found.write.groups) == (policy, OURS, groups(b=4))
    assert row(found) == ("True/Ready", None)


def test_no_plan_is_followed_while_nodes_have_not_settled():
    """D36; the reason is said from the thirtieth second on."""
    live = queue(marks=OURS, reserved={"a": 1}, a=4)
    found = step(live, Desired(plan(b=4), unsettled=UNSETTLED))
    assert found.write is None
    assert row(found) == ("Unknown/AwaitingNodeProfiles", 5.0)
    assert "node n1 lacks its profile" in found.condition.message
    early = step(live, Desired(plan(), unsettled=Unsettled("n1", "x", 29.9)))
    assert (early.write, row(early)) == (None, (None, 5.0))


@pytest.mark.parametrize(
    ("reason", "requeue"),
    [("NonConservedQuota", 30.0), ("MissingTopology", 30.0), ("TooManyFlavors", None), ("MixedPool", None)],
)
def test_a_refused_plan_leaves_the_last_one_serving(reason, requeue):
    found = step(queue(marks=OURS, a=4), Refusal(reason, "why"))
    assert found.write is None
    assert row(found) == (f"False/{reason}", requeue)


def test_a_queue_that_is_deleted_is_drained_once():
    found = step(queue(marks=OURS, deleted=True, a=4), plan(a=4), options=Options(drain_when_no_flavors=False))
    assert (found.write.policy, found.write.groups, found.write.marks) == ("HoldAndDrain", groups(a=4), OURS)
    assert step(queue("HoldAndDrain", OURS, deleted=True, a=4), plan(b=4)).write is None


def test_a_queue_is_told_to_drain_once_after_its_deletion():
    """What somebody sets after that stays; in the second of the deletion nobody can tell which came first."""
    tree = {"metadata": {"name": "q", "uid": "u", "deletionTimestamp": "2031-01-01T00:00:00Z"}, "spec": {}}

    def written(*times, manager="gitops-ctl-scheduling", subresource=""):
        entries = [{"manager": manager, "subresource": subresource, "time": time} for time in times]
        live = Queue.of({**tree, "metadata": {**tree["metadata"], "managedFields": entries}})
        return step(live, plan()).write

    assert written("2031-01-01T00:00:01Z") is None
    for before in ("2030-12-31T23:59:59Z", "2031-01-01T00:00:00Z"):
        assert written(before).policy == "HoldAndDrain"
    assert written("2031-01-01T00:00:01Z", manager="kueue").policy == "HoldAndDrain"
    assert written("2031-01-01T00:00:01Z", subresource="status").policy == "HoldAndDrain"


HELD = Options(hold_before_drop=True)


@pytest.mark.parametrize(("policy", "saved"), [("None", "None"), ("", "unset")])
def test_an_idle_flavor_is_dropped_under_a_short_hold_on_request(policy, saved):
    """B17."""
    first = step(queue(policy, OURS, a=4, b=4), plan(a=4), options=HELD)
    assert (first.write.policy, first.write.marks) == ("Hold", {**OURS, SAVED: saved})
    assert first.write.groups == groups(a=4, b=4)
    assert row(first) == ("Unknown/AwaitingQueueStatus", 5.0)
    marks = {**OURS, SAVED: saved}
    assert step(queue("Hold", marks, observed=2, a=4, b=4), plan(a=4), options=HELD).write is None
    second = step(queue("Hold", marks, active=STOPPED, a=4, b=4), plan(a=4), options=HELD)
    assert (second.write.policy, second.write.marks, second.write.groups) == (policy, OURS, groups(a=4))
    busy = step(queue("Hold", marks, active=STOPPED, reserved={"a": 0, "b": 1}, a=4, b=4), plan(a=4), options=HELD)
    assert (busy.write.policy, busy.write.marks[PHASE], busy.write.marks[SAVED]) == ("HoldAndDrain", "draining", saved)


def test_a_short_hold_ends_when_its_reason_is_gone():
    marks = {**OURS, SAVED: "None"}
    live = queue("Hold", marks, active=STOPPED, a=4, b=4)
    for desired in (plan(a=4, b=4), REFUSED, Desired(plan(a=4), unsettled=UNSETTLED)):
        found = step(live, desired, options=HELD)
        assert (found.write.policy, found.write.marks, found.write.groups) == ("None", OURS, groups(a=4, b=4))
        assert found.events == ()
    opened = step(queue("None", marks, a=4, b=4), plan(a=4), options=HELD)
    assert opened.write.policy == "Hold"
    emptied = step(queue("Hold", marks, active=STOPPED), plan(a=4), options=HELD)
    assert (emptied.write.policy, emptied.write.marks) == ("Hold", {**OURS, EMPTY: "true"})


def test_a_queue_that_somebody_holds_needs_no_short_hold():
    found = step(queue("Hold", OURS, active=STOPPED, a=4, b=4), plan(a=4), options=HELD)
    assert (found.write.policy, found.write.marks, found.write.groups) == ("Hold", OURS, groups(a=4))


def test_a_short_hold_waits_for_no_approval():
    marks = {**OURS, SAVED: "None"}
    options = Options(hold_before_drop=True, require_drain_approval=True)
    busy = queue("Hold", marks, active=STOPPED, reserved={"a": 0, "b": 1}, workloads=1, a=4, b=4)
    found = step(busy, plan(a=4), options=options)
    assert (found.write.policy, found.write.marks, found.write.groups) == ("None", OURS, groups(a=4, b=4))
    assert row(found) == ("False/AwaitingDrainApproval", 60.0)


APPROVED = Options(require_drain_approval=True)


def busy(**annotations):
    return queue(marks={**OURS, **annotations}, reserved={"a": 3}, workloads=2, a=4)


def test_a_drain_that_evicts_waits_for_an_approval():
    """D38."""
    found = step(busy(), plan(b=4), options=APPROVED)
    assert found.write is None
    assert row(found) == ("False/AwaitingDrainApproval", 60.0)
    digest = hashlib.sha256(b"from/a/4\nqueue/uid\nto/b/4\n").hexdigest()
    assert plan_digest(busy(), groups(b=4)) == f"sha256:{digest}"
    for text in (f"{ALLOW}: sha256:{digest}", "take a away", "2 Workloads reserve"):
        assert text in found.condition.message


def test_the_digest_of_a_consent_is_whole_in_the_condition_however_many_flavors_go():
    names = [f"gpustack-accelerator-with-a-long-name-{number:02}-fnv64-0123456789abcdef" for number in range(64)]
    live = queue(marks=OURS, reserved={names[0]: 3}, workloads=2, **dict.fromkeys(names, 4))
    found = step(live, plan(b=4), options=APPROVED)
    (shown,) = merge_conditions({}, wanted=[found.condition], generation=3, now=NOW)
    assert f"{ALLOW}: {plan_digest(live, groups(b=4))}," in shown["message"]
    assert f"take {', '.join(names[:10])} and 54 more away" in shown["message"]
    assert shown["message"].endswith("2 Workloads reserve, 2 are admitted")


def test_a_consent_fits_one_change():
    digest = plan_digest(busy(), groups(b=4))
    assert step(busy(**{ALLOW: digest}), plan(b=4), options=APPROVED).write.policy == "HoldAndDrain"
    assert step(busy(**{ALLOW: digest}), plan(c=4), options=APPROVED).write is None


@pytest.mark.parametrize(
    ("window", "opens"),
    [
        ("2031-04-02T06:00:00Z/2031-04-02T07:00:00Z", True),
        ("2031-04-02T08:00:00+02:00/2031-04-02T08:00:01+02:00", True),
        ("2031-04-02T05:00:00Z/2031-04-02T06:00:00Z", False),
        ("2031-04-02T06:00:01Z/2031-04-02T07:00:00Z", False),
        ("2031-04-02T06:00:00/2031-04-02T07:00:00", False),
        ("2031-04-02T05:00:00Z", False),
        ("", False),
    ],
)
def test_a_window_includes_its_start_and_not_its_end(window, opens):
    found = step(busy(**{WINDOW: window}), plan(b=4), options=APPROVED)
    assert (found.write is not None) == opens


def test_a_drain_that_evicts_nobody_and_one_that_has_begun_need_no_approval():
    assert step(queue(marks=OURS, a=4), plan(), options=APPROVED).write.policy == "HoldAndDrain"
    assert step(queue(marks=OURS, reserved={}, a=4), plan(), options=APPROVED).write is None
    assert row(step(queue(marks=OURS, generation=9, a=4), plan(), options=APPROVED))[0] == "Unknown/AwaitingQueueStatus"
    assert step(drained(moving(), a=4), plan(b=4), options=APPROVED).write.groups == groups(b=4)
    wanted = queue(marks={**OURS, WANTED: "HoldAndDrain"}, reserved={"a": 1}, a=4)
    assert step(wanted, plan(a=4), options=APPROVED).write.policy == "HoldAndDrain"
    assert step(wanted, plan(a=4), options=APPROVED).write.marks == {**OURS, APPLIED: "HoldAndDrain"}


def test_a_drain_that_git_wants_anyway_needs_no_further_approval():
    marks = {**OURS, WANTED: "HoldAndDrain", APPLIED: "HoldAndDrain"}
    evicting = queue("HoldAndDrain", marks, active=STOPPED, reserved={"a": 1}, workloads=1, a=4)
    assert step(evicting, plan(b=4), options=APPROVED).write.marks[PHASE] == "draining"
    by_hand = queue("HoldAndDrain", OURS, active=STOPPED, reserved={"a": 1}, workloads=1, a=4)
    assert step(by_hand, plan(b=4), options=APPROVED).write is None


def test_an_old_drain_is_called_stuck():
    """D39; without a readable start the age is unknown, and nothing more."""
    live = queue("HoldAndDrain", moving(), active=STOPPED, workloads=1, a=4)
    assert step(live, plan(b=4), now=NOW + timedelta(minutes=14)).events[0].reason == "DrainStuck"
    assert step(live, plan(b=4)).events == ()
    lost = queue("HoldAndDrain", moving(**{STARTED: "soon"}), active=STOPPED, workloads=1, a=4)
    assert step(lost, plan(b=4), now=NOW + timedelta(days=1)).events == ()

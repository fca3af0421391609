"""Holds of empty queues, of Git and of other people (topology-scheduling.md, 8.2)."""

import pytest

from gitops_ctl.scheduling.migration import Desired, Unsettled
from gitops_ctl.scheduling.queue_plan import Refusal
from gitops_ctl.scheduling.settled import Published, patience_s, settling
from tests.support.scheduling_queue import (
    APPLIED,
    EMPTY,
    PHASE,
    RELEASE,
    SAVED,
    STOPPED,
    TAS,
    WANTED,
    groups,
    plan,
    queue,
    row,
    step,
)

OURS = {TAS: "true"}
MARKED = {EMPTY: "true"}
UNSETTLED = Desired(plan(), unsettled=Unsettled("n", "x", 0.0))
REFUSED = Refusal("MissingTopology", "why")


@pytest.mark.parametrize("policy", ["", "None"])
@pytest.mark.parametrize("desired", [plan(), REFUSED, UNSETTLED], ids=["no flavor", "refused", "unsettled"])
def test_an_open_queue_without_groups_is_held_with_our_mark(policy, desired):
    found = step(queue(policy), desired)
    assert (found.write.policy, found.write.marks, found.write.groups) == ("Hold", MARKED, ())
    assert step(queue("Hold", MARKED), desired).write is None


def test_an_empty_queue_without_flavors_is_ready():
    """D42."""
    assert row(step(queue("Hold", MARKED), plan())) == ("True/Ready", None)


@pytest.mark.parametrize("desired", [plan(), REFUSED, UNSETTLED])
def test_a_hold_of_an_administrator_is_left_unmarked(desired):
    found = step(queue("Hold"), desired)
    assert found.write is None
    assert [event.reason for event in found.events] == ["NotFromGit"]


def test_the_first_plan_takes_the_mark_and_keeps_the_hold_until_it_is_observed():
    """D24."""
    first = step(queue("Hold", MARKED), plan(a=4))
    assert (first.write.policy, first.write.groups) == ("Hold", groups(a=4))
    assert first.write.marks == {TAS: "true", RELEASE: "pending"}
    assert row(first) == ("True/Ready", 5.0)
    waiting = queue("Hold", {**OURS, RELEASE: "pending"}, observed=2, a=4)
    assert (step(waiting, plan(a=4)).write, step(waiting, plan(a=4)).requeue_s) == (None, 5.0)
    second = step(queue("Hold", {**OURS, RELEASE: "pending"}, active=STOPPED, a=4), plan(a=4))
    assert (second.write.policy, second.write.marks) == ("None", {**OURS, APPLIED: "None"})


def test_the_release_sets_the_newest_wanted_policy():
    live = queue("Hold", {**OURS, RELEASE: "pending", WANTED: "HoldAndDrain"}, a=4)
    found = step(live, plan(a=4))
    assert (found.write.policy, found.write.marks[APPLIED]) == ("HoldAndDrain", "HoldAndDrain")


@pytest.mark.parametrize("policy", ["None", "HoldAndDrain"])
def test_a_policy_that_changed_before_the_release_is_somebody_elses(policy):
    found = step(queue(policy, {**OURS, RELEASE: "pending"}, a=4), plan(a=4))
    assert (found.write.policy, found.write.marks) == (policy, OURS)


@pytest.mark.parametrize(("policy", "held"), [("None", "Hold"), ("Hold", "Hold"), ("HoldAndDrain", "HoldAndDrain")])
def test_a_release_never_opens_a_queue_whose_groups_are_gone(policy, held):
    found = step(queue(policy, {**OURS, RELEASE: "pending"}), plan(a=4))
    assert (found.write.policy, RELEASE in found.write.marks) == (held, False)


def test_an_administrators_hold_is_kept_by_the_first_plan_and_ever_after():
    first = step(queue("Hold"), plan(a=4))
    assert (first.write.policy, first.write.marks) == ("Hold", OURS)
    later = step(queue("Hold", OURS, a=4), plan(a=4))
    assert later.write is None
    assert [event.reason for event in later.events] == ["NotFromGit"]


def test_a_queue_that_an_older_version_drained_opens_with_its_first_plan():
    found = step(queue("HoldAndDrain"), plan(a=4))
    assert (found.write.policy, found.write.groups, found.write.marks[APPLIED]) == ("None", groups(a=4), "None")
    wanted = step(queue("HoldAndDrain", {WANTED: "Hold", APPLIED: "Hold"}), plan(a=4))
    assert wanted.write.policy == "Hold"


@pytest.mark.parametrize("wanted", ["Hold", "HoldAndDrain"])
def test_a_wanted_hold_takes_the_mark_of_an_empty_queue(wanted):
    """D28."""
    found = step(queue("Hold", {**MARKED, WANTED: wanted}), plan(a=4))
    assert (found.write.policy, found.write.marks, found.write.groups) == (wanted, {APPLIED: wanted}, ())
    after = step(queue(wanted, {APPLIED: wanted, WANTED: wanted}), plan(a=4))
    assert (after.write.policy, RELEASE in after.write.marks, after.events) == (wanted, False, ())


def test_an_empty_queue_that_git_opens_again_is_held_with_the_mark():
    found = step(queue("Hold", {APPLIED: "Hold"}), plan())
    assert (found.write.policy, found.write.marks) == ("Hold", {APPLIED: "None", EMPTY: "true"})


def test_a_queue_with_groups_follows_git_only_from_what_was_applied():
    live = queue("None", {**OURS, WANTED: "Hold"}, a=4)
    assert (step(live, plan(a=4)).write.policy, step(live, plan(a=4)).write.marks[APPLIED]) == ("Hold", "Hold")
    back = queue("Hold", {**OURS, APPLIED: "Hold"}, a=4)
    assert step(back, plan(a=4)).write.policy == "None"
    foreign = step(queue("HoldAndDrain", {**OURS, WANTED: "Hold"}, a=4), plan(a=4))
    assert foreign.write is None
    assert [event.reason for event in foreign.events] == ["NotFromGit"]


def test_an_administrators_hold_of_an_empty_queue_is_not_taken_for_ours():
    found = step(queue("Hold", {WANTED: "HoldAndDrain"}), plan())
    assert found.write is None


def test_a_wanted_policy_during_a_migration_goes_to_the_saved_one():
    marks = {**OURS, PHASE: "draining", SAVED: "unset", WANTED: "Hold"}
    found = step(queue("HoldAndDrain", marks, active=STOPPED, workloads=1, a=4), plan(b=4))
    assert (found.write.marks[SAVED], found.write.marks[APPLIED], found.write.policy) == (
        "Hold",
        "Hold",
        "HoldAndDrain",
    )
    theirs = {**marks, SAVED: "HoldAndDrain"}
    assert step(queue("HoldAndDrain", theirs, active=STOPPED, workloads=1, a=4), plan(b=4)).write is None
    released = step(queue("HoldAndDrain", {**marks, PHASE: "switched"}, active=STOPPED, b=4), plan(b=4))
    assert (released.write.policy, released.write.marks) == ("Hold", {**OURS, APPLIED: "Hold"})


def test_a_word_that_is_no_policy_changes_nothing():
    found = step(queue("None", {**OURS, WANTED: "Never"}, a=4), plan(a=4))
    assert (found.write, found.events) == (None, ())


def test_a_pool_without_managed_nodes_warns_and_changes_no_reason():
    """D40."""
    found = step(queue("Hold", MARKED), Desired(plan(), has_nodes=False))
    assert row(found) == ("True/Ready", None)
    assert "no managed Node" in found.condition.message
    assert [event.reason for event in found.events] == ["NoManagedNodes"]
    early = step(queue("Hold", MARKED), Desired(plan(), unsettled=Unsettled("n", "x", 0.0), has_nodes=False))
    assert (early.condition, [event.reason for event in early.events]) == (None, ["NoManagedNodes"])


PROFILE = "topology.gpustack.ai/profile"
RACK = {"topology.gpustack.ai/rack": "r1"}


def test_a_node_has_settled_when_it_has_its_profile_and_its_labels():
    """D36."""
    pool = {"a": {PROFILE: "p1", **RACK}, "b": {PROFILE: "p2"}, "c": {}}
    profiles = {"a": "p1", "b": "p1", "c": "p1"}
    published = [Published("a", RACK, 60.0), Published("gone", RACK, 60.0)]
    found = settling(pool, profiles=profiles, published=published, now_s=0.0)
    assert found.lacking == (("b", f"{PROFILE}=p1"), ("c", f"{PROFILE}=p1"))
    assert found.given_up == ()
    assert settling({}, profiles={}, published=published, now_s=0.0).lacking == ()


@pytest.mark.parametrize(("age_s", "waits"), [(0.0, True), (59.0, True), (60.0, False), (600.0, False)])
def test_labels_that_nfd_refuses_are_waited_for_a_minute(age_s, waits):
    published = [Published("a", RACK, patience_s(age_s))]
    found = settling({"a": {PROFILE: "p"}}, profiles={"a": "p"}, published=published, now_s=0.0)
    expected = (("a", "topology.gpustack.ai/rack=r1"),)
    assert (found.lacking, found.given_up) == ((expected, ()) if waits else ((), expected))


@pytest.mark.parametrize(("age_s", "left_s"), [(None, 60.0), (-3600.0, 60.0), (-1.0, 60.0), (20.0, 40.0), (1e9, 0.0)])
def test_labels_are_never_waited_for_longer_than_a_minute_whatever_the_clocks_say(age_s, left_s):
    """A write that is seen as it comes is new; a clock that is behind makes nothing older than it is."""
    assert patience_s(age_s) == left_s

"""Whether a device is healthy, since when that is known, and what that makes of it in the fleet (rollouts.md, 15.2 to 15.4, 8.3)."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.encoding import compact_json
from gitops_ctl.fleet.health import (
    HealthProblem,
    Member,
    conditions_hash,
    conditions_hash_input,
    effective_health_time,
    freshness_limit,
    health_problem,
    in_fleet,
    is_healthy,
    member_of,
    standing_of,
)
from gitops_ctl.fleet.node import node_of
from tests.support.fleet_objects import (
    CACHE,
    NOW,
    REDUNDANCY,
    SITE,
    a_policy,
    before,
    device_tree,
    node_tree,
    observed,
    pair,
)
from tests.support.fleet_policies import by, group
from tests.support.fleet_vectors import published_hash, vector


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


# ---- the hash of conditions (15.2) ----


def test_the_published_device_has_the_published_conditions_hash():
    published = vector("conditions-hash")
    status = published["derived_from"]["status"]
    found = conditions_hash_input(status["phase"], status["conditions"])
    assert compact_json(found) == compact_json(published["input"])
    assert conditions_hash(status["phase"], status["conditions"]) == published_hash("conditions-hash")


def test_all_conditions_take_part_and_each_of_their_members():
    status = device_tree()["status"]
    whole = conditions_hash(status["phase"], status["conditions"])
    assert conditions_hash("Error", status["conditions"]) != whole
    assert conditions_hash(status["phase"], status["conditions"][:-1]) != whole
    for member in ("status", "observedGeneration", "lastTransitionTime", "reason", "message"):
        other = [{**status["conditions"][-1], member: 9 if member == "observedGeneration" else "x"}]
        assert conditions_hash(status["phase"], [*status["conditions"][:-1], *other]) != whole


def test_a_generation_of_0_is_left_out_and_an_empty_message_is_not():
    tree = {
        "type": "A",
        "status": "True",
        "observedGeneration": 0,
        "lastTransitionTime": "t",
        "reason": "",
        "message": "",
    }
    (found,) = conditions_hash_input("", [tree])["conditions"]
    assert list(found) == ["type", "status", "lastTransitionTime", "reason", "message"]
    absent = {name: member for name, member in tree.items() if name != "observedGeneration"}
    assert conditions_hash("", [tree]) == conditions_hash("", [absent])


@pytest.mark.property
@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_the_hash_depends_neither_on_the_order_of_conditions_nor_of_their_members(seed):
    random, status = Random(seed), device_tree()["status"]
    mixed = [{name: item[name] for name in random.sample(list(item), len(item))} for item in status["conditions"]]
    random.shuffle(mixed)
    assert conditions_hash("Ready", mixed) == conditions_hash("Ready", status["conditions"])


# ---- the effective time (15.3) ----


def test_the_oldest_evidence_counts():
    device, node = pair()
    assert effective_health_time(device, node, NOW) == ago(60)
    for part, seconds in ((observed(device_tree(), seconds=90), 90), (observed(device_tree(), heartbeat=100), 100)):
        assert effective_health_time(device_of(part), node_with(heartbeat=50), NOW) == ago(seconds)
    tree = device_tree()
    tree["status"]["healthObservation"]["conditionObservations"][1]["observedAt"] = before(200)
    assert effective_health_time(device_of(tree), node, NOW) == ago(200)


def node_with(heartbeat=60, transition=7200, **changes):
    """The Node with another condition Ready."""
    tree = node_tree()
    times = {"lastHeartbeatTime": before(heartbeat), "lastTransitionTime": before(transition)}
    ready = {**tree["status"]["conditions"][0], **times, **changes}
    tree["status"]["conditions"][0] = {name: member for name, member in ready.items() if member is not ...}
    return node_of(tree)


def test_a_newer_heartbeat_of_the_node_never_helps():
    device, _ = pair()
    for heartbeat in (60, 30, 0, -3600):
        assert effective_health_time(device, node_with(heartbeat=heartbeat), NOW) == ago(60)


def test_evidence_from_the_future_is_capped_at_now():
    tree = observed(device_tree(), seconds=-3600)
    assert effective_health_time(device_of(tree), node_with(heartbeat=-7200), NOW) == NOW


def test_a_future_heartbeat_does_not_extend_what_was_observed():
    tree = observed(device_tree(), seconds=250, heartbeat=-3600)
    assert effective_health_time(device_of(tree), node_with(heartbeat=-3600), NOW) == ago(250)


def unobserved(kind):
    tree = device_tree()
    seen = tree["status"]["healthObservation"]["conditionObservations"]
    tree["status"]["healthObservation"]["conditionObservations"] = [item for item in seen if item["type"] != kind]
    return tree


def observed_otherwise(kind, **changes):
    tree = device_tree()
    for item in tree["status"]["healthObservation"]["conditionObservations"]:
        if item["type"] == kind:
            item.update(changes)
    return tree


def with_health(**changes):
    tree = device_tree()
    health = {**tree["status"]["healthObservation"], **changes}
    tree["status"]["healthObservation"] = {name: member for name, member in health.items() if member is not ...}
    return tree


def without_condition(kind):
    tree = device_tree()
    tree["status"]["conditions"] = [item for item in tree["status"]["conditions"] if item["type"] != kind]
    digest = conditions_hash(tree["status"]["phase"], tree["status"]["conditions"])
    tree["status"]["healthObservation"]["deviceConditionsHash"] = digest
    return tree


def with_phase(phase):
    tree = device_tree()
    tree["status"]["phase"] = phase
    return tree


NO_SNAPSHOT = device_tree()
del NO_SNAPSHOT["status"]["healthObservation"]

FAILING = {
    "no snapshot": (NO_SNAPSHOT, node_with(), "HealthObservationMissing"),
    "a snapshot without its time": (with_health(observedAt=...), node_with(), "HealthObservationMissing"),
    "a snapshot without a heartbeat": (
        with_health(nodeReadyHeartbeatTime=...),
        node_with(),
        "HealthObservationMissing",
    ),
    "no Node": (device_tree(), None, "NodeNotReady"),
    "no Ready": (device_tree(), replace(node_with(), ready=None), "NodeNotReady"),
    "Ready False": (device_tree(), node_with(status="False"), "NodeNotReady"),
    "Ready Unknown": (device_tree(), node_with(status="Unknown"), "NodeNotReady"),
    "a live heartbeat older than the snapshot's": (device_tree(), node_with(heartbeat=61), "NodeHeartbeatOlder"),
    "no live heartbeat": (device_tree(), node_with(lastHeartbeatTime=...), "NodeHeartbeatOlder"),
    "no transition time": (device_tree(), node_with(lastTransitionTime=...), "NodeReadyChanged"),
    "a zero transition time": (device_tree(), node_with(lastTransitionTime="0001-01-01T00:00:00Z"), "NodeReadyChanged"),
    "a transition after the snapshot": (device_tree(), node_with(transition=59), "NodeReadyChanged"),
    "another hash": (with_health(deviceConditionsHash="sha256:x"), node_with(), "DeviceConditionsChanged"),
    "another phase": (with_phase("Error"), node_with(), "DeviceConditionsChanged"),
    **{
        f"{kind} not observed": (unobserved(kind), node_with(), "ConditionNotObserved")
        for kind in names.REQUIRED_CONDITIONS
    },
    **{
        f"{kind} observed without a time": (
            observed_otherwise(kind, observedAt=""),
            node_with(),
            "ConditionNotObserved",
        )
        for kind in names.REQUIRED_CONDITIONS
    },
    **{
        f"{kind} observed with another status": (
            observed_otherwise(kind, status="False"),
            node_with(),
            "ConditionObservedOtherwise",
        )
        for kind in names.REQUIRED_CONDITIONS
    },
    **{
        f"{kind} observed at another generation": (
            observed_otherwise(kind, observedGeneration=2),
            node_with(),
            "ConditionObservedOtherwise",
        )
        for kind in names.REQUIRED_CONDITIONS
    },
    "a required condition that is gone": (without_condition(names.GNOI_READY), node_with(), "ConditionNotObserved"),
}


@pytest.mark.parametrize(("tree", "node", "reason"), FAILING.values(), ids=FAILING)
def test_health_is_not_proven_and_the_reason_says_why(tree, node, reason):
    found = effective_health_time(device_of(tree), node, NOW)
    assert isinstance(found, HealthProblem)
    assert found.reason == reason
    assert found.message


def test_a_transition_at_the_observed_heartbeat_is_no_change_after_it():
    device, _ = pair()
    assert effective_health_time(device, node_with(transition=60), NOW) == ago(60)


AGES = st.integers(-1000, 5000)


@pytest.mark.property
@settings(max_examples=50)
@given(AGES, AGES, st.tuples(AGES, AGES, AGES), st.integers(0, 5000))
def test_the_time_is_never_younger_than_any_evidence_and_never_after_now(observation, heartbeat, seen, later):
    tree = observed(device_tree(), seconds=observation, heartbeat=heartbeat)
    for item, age in zip(tree["status"]["healthObservation"]["conditionObservations"], seen, strict=True):
        item["observedAt"] = before(age)
    assume(heartbeat < 7200)
    found = effective_health_time(device_of(tree), node_with(heartbeat=heartbeat - later), NOW)
    assert isinstance(found, datetime)
    assert found == min(NOW, ago(max(observation, heartbeat, *seen)))


@pytest.mark.property
@settings(max_examples=50)
@given(st.tuples(AGES, AGES, AGES, AGES, AGES), st.integers(0, 4), st.integers(0, 5000))
def test_to_refresh_one_source_cannot_make_older_evidence_fresh(ages, source, gain):
    def time_of(by_source):
        observation, heartbeat, *seen = by_source
        tree = observed(device_tree(), seconds=observation, heartbeat=heartbeat)
        for item, age in zip(tree["status"]["healthObservation"]["conditionObservations"], seen, strict=True):
            item["observedAt"] = before(age)
        return effective_health_time(device_of(tree), node_with(heartbeat=heartbeat), NOW)

    refreshed = [age - gain if index == source else age for index, age in enumerate(ages)]
    others = [age for index, age in enumerate(ages) if index != source]
    assert time_of(refreshed) <= min(NOW, ago(max(others)))


@pytest.mark.parametrize(
    ("policy", "plan", "limit"), [(300, 0, 300), (3600, 0, 300), (60, 0, 60), (3600, 600, 600), (300, 86400, 300)]
)
def test_the_smaller_limit_of_policy_and_plan_holds_and_a_plan_without_one_means_300(policy, plan, limit):
    assert freshness_limit(policy, plan) == limit


# ---- healthy (15.4) ----


def test_a_device_is_healthy_when_both_objects_say_so():
    assert is_healthy(*pair())


def changed_device(change):
    tree = device_tree()
    change(tree)
    return device_of(tree)


def a_condition(kind, **changes):
    def change(tree):
        for item in tree["status"]["conditions"]:
            if item["type"] == kind:
                item.update(changes)

    return change


def a_writer(**changes):
    tree = node_tree()
    writer = {**tree["status"]["conditions"][1], **changes}
    tree["status"]["conditions"][1] = {name: member for name, member in writer.items() if member is not ...}
    return node_of(tree)


def guarded(effect="NoSchedule"):
    tree = node_tree()
    tree["spec"]["taints"] = [{"key": names.UNINITIALIZED, "value": "true", "effect": effect}]
    return node_of(tree)


UNHEALTHY = {
    "the phase": (changed_device(lambda t: t["status"].update(phase="Provisioning")), node_with(), "DeviceNotReady"),
    "no Node": (device_of(device_tree()), None, "NodeNotReady"),
    "the Node": (device_of(device_tree()), node_with(status="Unknown"), "NodeNotReady"),
    **{
        f"{kind} False": (changed_device(a_condition(kind, status="False")), node_with(), "ConditionNotTrue")
        for kind in names.REQUIRED_CONDITIONS
    },
    **{
        f"{kind} of an older generation": (
            changed_device(a_condition(kind, observedGeneration=2)),
            node_with(),
            "ConditionOutdated",
        )
        for kind in names.REQUIRED_CONDITIONS
    },
    "no gNOI readiness": (device_of(without_condition(names.GNOI_READY)), node_with(), "ConditionNotTrue"),
    "no worker revision": (
        changed_device(lambda t: t["status"].pop("networkWorkerRevision")),
        node_with(),
        "WorkerRevisionUnproven",
    ),
    "a worker that loaded something else": (
        changed_device(lambda t: t["status"]["networkWorkerRevision"].update(observedRevision="sha256:x")),
        node_with(),
        "WorkerRevisionUnproven",
    ),
    "another writer": (device_of(device_tree()), a_writer(reason="Other"), "ManagedWriterNotReady"),
    "a writer that says no": (device_of(device_tree()), a_writer(status="False"), "ManagedWriterNotReady"),
    "a writer that is silent since the projection": (
        device_of(device_tree()),
        a_writer(lastHeartbeatTime=before(3601)),
        "ManagedWriterNotReady",
    ),
    "a writer without a heartbeat": (
        device_of(device_tree()),
        a_writer(lastHeartbeatTime=...),
        "ManagedWriterNotReady",
    ),
    "no projection": (
        changed_device(lambda t: t["status"].pop("topologyProjection")),
        node_with(),
        "ManagedWriterNotReady",
    ),
    "the guard": (device_of(device_tree()), guarded(), "InitializationGuardActive"),
}


@pytest.mark.parametrize(("device", "node", "reason"), UNHEALTHY.values(), ids=UNHEALTHY)
def test_a_device_is_not_healthy_and_the_reason_says_why(device, node, reason):
    found = health_problem(device, node)
    assert found is not None
    assert found.reason == reason
    assert not is_healthy(device, node)


def test_a_writer_that_answered_at_the_moment_of_the_projection_has_answered():
    assert is_healthy(device_of(device_tree()), a_writer(lastHeartbeatTime=before(3600)))


def test_conditions_that_are_not_required_do_not_count():
    assert is_healthy(changed_device(a_condition(names.MAINTENANCE_READY, status="False")), node_with())


# ---- members (8.3, 11.4) ----


def test_a_retired_device_is_in_no_fleet():
    policy, retired = a_policy(), {"rolloutUID": "r", "leafUID": "l", "persons": ["a", "b"]}
    assert in_fleet(device_of(device_tree()), policy)
    assert not in_fleet(changed_device(lambda tree: tree["status"].update(retired=retired)), policy)
    assert not in_fleet(changed_device(lambda tree: tree["metadata"]["labels"].pop(names.MANAGED)), policy)


def test_a_healthy_device_is_an_available_member_with_its_budget_domains_and_groups():
    policy = a_policy(riskGroups=[group("b"), group("a"), group("other", selector=by(CACHE, "c2"))])
    assert member_of(*pair(), policy, NOW) == Member(
        physical_id="foc-switch-1",
        device_uid="device-switch-1",
        node_uid="node-switch-1",
        domains=((CACHE, "cache-1"), (names.ZONE, "zone-a")),
        groups=("a", "b"),
        unavailable=False,
    )


@pytest.mark.parametrize(
    ("freshness_s", "unavailable"),
    [(59, True), (60, False), (None, False)],
    ids=("too old", "just fresh", "of the policy"),
)
def test_a_member_is_unavailable_when_it_was_observed_before_the_limit(freshness_s, unavailable):
    found = member_of(*pair(), a_policy(), NOW, freshness_s=freshness_s)
    assert isinstance(found, Member)
    assert found.unavailable is unavailable


def test_the_limit_of_the_policy_holds_when_none_is_given():
    found = member_of(*pair(), a_policy(healthFreshnessSeconds=59), NOW)
    assert isinstance(found, Member)
    assert found.unavailable


def test_a_device_in_maintenance_is_unavailable_and_its_health_is_still_known():
    tree = device_tree()
    tree["status"]["maintenanceSession"] = {"phase": "Active", "sessionToken": "t" * 16}
    standing = standing_of(device_of(tree), node_of(node_tree(tree)), a_policy())
    assert not isinstance(standing, HealthProblem)
    assert standing.in_maintenance
    assert standing.health_time == ago(60)
    assert standing.member(NOW, freshness_s=300).unavailable


def broken_node(**changes):
    return replace(node_of(node_tree()), **changes)


UNAVAILABLE = {
    "unhealthy": (device_of(device_tree()), node_with(status="False")),
    "unknown": (device_of(NO_SNAPSHOT), node_with()),
    "guarded": (device_of(device_tree()), guarded()),
    "another chassis": (device_of(device_tree()), broken_node(machine_id="foc-other")),
    "no chassis seen": (device_of(device_tree()), broken_node(machine_id="")),
}


@pytest.mark.parametrize(("device", "node"), UNAVAILABLE.values(), ids=UNAVAILABLE)
def test_a_well_formed_device_without_proven_health_is_an_unavailable_member(device, node):
    standing = standing_of(device, node, a_policy())
    assert not isinstance(standing, HealthProblem)
    assert standing.problem is not None
    assert standing.health_time is None
    assert standing.member(NOW, freshness_s=300).unavailable


def stale_annotation():
    tree = node_tree()
    tree["metadata"]["annotations"][names.PROJECTION_HASH] = "sha256:old"
    return node_of(tree)


def changed_label():
    tree = node_tree()
    tree["metadata"]["labels"][names.ZONE] = "zone-b"
    return node_of(tree)


def of_another_device():
    tree = node_tree()
    tree["metadata"]["annotations"][names.DEVICE_UID] = "other"
    return node_of(tree)


def relabelled(**labels):
    return changed_device(lambda tree: tree["metadata"]["labels"].update(labels))


BADLY_FORMED = {
    "no identity": (changed_device(lambda t: t["status"].pop("nodeIdentity")), node_with(), "IdentityMissing"),
    "no declaration": (changed_device(lambda t: t["spec"].pop("physicalIdentity")), node_with(), "IdentityMissing"),
    "another declaration": (
        changed_device(lambda t: t["spec"].update(physicalIdentity="FOC-OTHER")),
        node_with(),
        "IdentityDiffers",
    ),
    "another incarnation": (changed_device(lambda t: t["metadata"].update(uid="new")), node_with(), "IdentityDiffers"),
    "no Node": (device_of(device_tree()), None, "NodeBindingInvalid"),
    "a new Node": (device_of(device_tree()), broken_node(uid="new"), "NodeBindingInvalid"),
    "another Node": (device_of(device_tree()), broken_node(name="other"), "NodeBindingInvalid"),
    "a Node of another device": (device_of(device_tree()), of_another_device(), "NodeBindingInvalid"),
    "no budget domain": (relabelled(**{CACHE: ""}), node_with(), "DomainLabelMissing"),
    "no required label": (relabelled(**{REDUNDANCY: ""}), node_with(), "RequiredLabelsMissing"),
    "a label that is not projected yet": (relabelled(**{SITE: "plant-2"}), node_with(), "ProjectionStale"),
    "no projection": (changed_device(lambda t: t["status"].pop("topologyProjection")), node_with(), "ProjectionStale"),
    "an older projection on the Node": (device_of(device_tree()), stale_annotation(), "ProjectionStale"),
    "a changed label on the Node": (device_of(device_tree()), changed_label(), "ProjectionStale"),
}


@pytest.mark.parametrize(("device", "node", "reason"), BADLY_FORMED.values(), ids=BADLY_FORMED)
def test_a_badly_formed_device_is_a_problem_of_the_whole_fleet_and_is_named(device, node, reason):
    found = member_of(device, node, a_policy(), NOW)
    assert isinstance(found, HealthProblem)
    assert found.reason == reason
    assert "switch-1" in found.message

"""What a change of the fleet policy means for a frozen plan: epochs only tighten, everything else ends the campaign."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.policy import parse_policy
from gitops_ctl.rollout.epochs import (
    Audit,
    Begin,
    Epoch,
    Fence,
    FenceReason,
    Keep,
    PolicySeen,
    Publish,
    decide_epoch,
    is_looser,
    next_to_rearm,
    strictest,
)
from gitops_ctl.rollout.snapshot import PolicyRecord, SnapshotDomain, snapshot_of

VECTOR = Path(__file__).parents[2] / "vectors" / "rollouts" / "policy-semantic-hash.json"
TEXT = json.loads(json.loads(VECTOR.read_text())["derived_from"]["data"]["policy.json"])
TRANSFERS, UNAVAILABLE = "distribution.cisco.vk/cache-domain", "topology.kubernetes.io/zone"


def record(uid="policy-uid", version="900", ledger="ledger-uid", **changed):
    """The policy of the vectors with some members changed; None leaves one out."""
    policy = {name: value for name, value in {**TEXT, **changed}.items() if value is not None}
    return PolicyRecord(parse_policy(json.dumps(policy)), "policy", "system", uid, version, ledger)


LOOSE = {"globalMaxConcurrentTransfers": 5, "globalMaxUnavailable": 5, "maxCampaignTargets": 50}
FROZEN = snapshot_of(record(**LOOSE))
FIRST = Epoch(1, FROZEN)


def decided(now, *, effective=FIRST, transition=None, targets=3, cap=100):
    seen = now if isinstance(now, PolicySeen) else PolicySeen(now.uid, now)
    return decide_epoch(
        seen, frozen=FROZEN, effective=effective, transition=transition, target_count=targets, requested_cap=cap
    )


def test_the_same_policy_changes_nothing():
    assert decided(record(**LOOSE)) == Keep()


def test_a_write_without_another_meaning_is_recorded_in_the_same_epoch():
    rewritten = record(version="901", requiredTopologyKeys=list(reversed(TEXT["requiredTopologyKeys"])), **LOOSE)
    assert decided(rewritten) == Audit(replace(FROZEN, resource_version="901"))


def test_a_tighter_number_begins_the_next_epoch():
    tighter = record(version="901", **{**LOOSE, "globalMaxUnavailable": 2})
    assert decided(tighter) == Begin(Epoch(2, snapshot_of(tighter)))


def test_a_looser_number_never_gets_in_force():
    looser = record(version="901", **{**LOOSE, "globalMaxUnavailable": 9, "healthFreshnessSeconds": 600})
    decision = decided(looser)
    assert isinstance(decision, Begin)
    now = snapshot_of(looser)
    assert decision.epoch.policy == replace(now, unavailable=5, freshness_s=300)
    assert decided(looser, effective=decision.epoch) == Keep()


def test_a_number_that_is_loosened_again_stays_tight():
    tight = Epoch(2, snapshot_of(record(version="901", **{**LOOSE, "globalMaxUnavailable": 2})))
    decision = decided(record(version="902", **LOOSE), effective=tight)
    assert isinstance(decision, Begin)
    assert (decision.epoch.number, decision.epoch.policy.unavailable) == (3, 2)
    assert decision.epoch.policy.semantic_hash == FROZEN.semantic_hash


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        pytest.param(PolicySeen("", None), FenceReason.POLICY_UNAVAILABLE, id="gone"),
        pytest.param(
            PolicySeen("other", None, "not JSON"), FenceReason.POLICY_CHANGED, id="another object, whatever its text"
        ),
        pytest.param(record(uid="other", **LOOSE), FenceReason.POLICY_CHANGED, id="another object"),
        pytest.param(record(ledger="other", **LOOSE), FenceReason.POLICY_CHANGED, id="another ledger"),
        pytest.param(record(ledgerName="other", **LOOSE), FenceReason.POLICY_CHANGED, id="another name of the ledger"),
        pytest.param(record(riskGroups=None, **LOOSE), FenceReason.POLICY_CHANGED, id="no risk group any more"),
        pytest.param(
            record(riskGroups=[{**TEXT["riskGroups"][0], "maxUnavailable": 2}], **LOOSE),
            FenceReason.POLICY_CHANGED,
            id="another number of a risk group",
        ),
        pytest.param(
            record(domainMaxUnavailable={UNAVAILABLE: 1}, **LOOSE), FenceReason.POLICY_CHANGED, id="a domain less"
        ),
        pytest.param(
            record(
                disruptionProtections=[
                    {
                        "name": "core",
                        "reason": "CriticalService",
                        "selector": {"matchLabels": {"topology.cisco.vk/site": "x"}},
                    }
                ],
                **LOOSE,
            ),
            FenceReason.POLICY_CHANGED,
            id="a protection more",
        ),
        pytest.param(
            record(**{**LOOSE, "maxCampaignTargets": 2}),
            FenceReason.POLICY_CHANGED,
            id="fewer targets than the plan has",
        ),
    ],
)
def test_what_cannot_be_compared_ends_the_admissions(seen, reason):
    decision = decided(seen)
    assert isinstance(decision, Fence)
    assert decision.reason is reason


def test_a_policy_that_cannot_be_read_allows_no_more_than_one_that_is_gone():
    found = decided(PolicySeen("policy-uid", None, "not JSON"))
    assert found == Fence(FenceReason.POLICY_UNAVAILABLE, "the policy system/policy cannot be read: not JSON")


def test_promise_a_pending_transition_is_published_before_the_next_one_begins():
    pending = Epoch(2, snapshot_of(record(version="901", **{**LOOSE, "globalMaxUnavailable": 3})))
    newer = record(version="902", **{**LOOSE, "globalMaxUnavailable": 1})
    assert decided(newer, transition=pending) == Publish(pending)
    following = decided(newer, effective=pending)
    assert isinstance(following, Begin)
    assert (following.epoch.number, following.epoch.policy.unavailable) == (3, 1)


@pytest.mark.parametrize(
    "pending",
    [
        pytest.param(Epoch(3, FROZEN), id="an epoch too far"),
        pytest.param(Epoch(1, FROZEN), id="an epoch back"),
        pytest.param(Epoch(2, replace(FROZEN, unavailable=6)), id="looser"),
        pytest.param(Epoch(2, replace(FROZEN, ledger_uid="other")), id="another ledger"),
        pytest.param(Epoch(2, replace(FROZEN, domains=FROZEN.domains[1:])), id="a domain less"),
    ],
)
def test_a_transition_that_does_not_follow_is_never_published(pending):
    decision = decided(record(**LOOSE), transition=pending)
    assert isinstance(decision, Fence)
    assert decision.reason is FenceReason.POLICY_CHANGED


numbers = st.integers(1, 9)


def snapshots():
    domains = st.tuples(numbers, numbers).map(
        lambda pair: (SnapshotDomain(TRANSFERS, pair[0], None), SnapshotDomain(UNAVAILABLE, None, pair[1]))
    )
    return st.builds(
        lambda targets, transfers, unavailable, freshness, both: replace(
            FROZEN,
            max_targets=targets,
            transfers=transfers,
            unavailable=unavailable,
            freshness_s=freshness,
            domains=both,
        ),
        numbers,
        numbers,
        numbers,
        numbers,
        domains,
    )


@settings(max_examples=200, deadline=None)
@pytest.mark.property
@given(snapshots(), snapshots(), snapshots())
def test_the_strictest_is_looser_than_none_and_does_not_depend_on_the_order(first, second, third):
    found = strictest(first, (second, third))
    assert found == strictest(first, (third, second))
    assert found is not None
    assert not any(is_looser(found, one) for one in (first, second, third))
    assert strictest(found, (first, second, third)) == found
    numbers_of = [(one.max_targets, one.transfers, one.unavailable, one.freshness_s) for one in (first, second, third)]
    assert (found.max_targets, found.transfers, found.unavailable, found.freshness_s) == tuple(
        map(min, zip(*numbers_of, strict=True))
    )


@settings(max_examples=100, deadline=None)
@pytest.mark.property
@given(st.lists(st.tuples(numbers, numbers, st.integers(30, 35)), min_size=1, max_size=6))
def test_epochs_only_tighten_whatever_is_written(writes):
    effective = FIRST
    for place, (transfers, unavailable, freshness) in enumerate(writes):
        numbers_now = {
            **LOOSE,
            "globalMaxConcurrentTransfers": transfers,
            "globalMaxUnavailable": unavailable,
            "healthFreshnessSeconds": freshness,
        }
        now = record(version=str(1000 + place), **numbers_now)
        decision = decided(now, effective=effective)
        if isinstance(decision, Begin):
            assert decided(now, effective=effective, transition=decision.epoch) == Publish(decision.epoch)
            assert decision.epoch.number == effective.number + 1
            assert not is_looser(decision.epoch.policy, effective.policy)
            effective = decision.epoch
        else:
            assert isinstance(decision, Keep | Audit)
        assert isinstance(decided(now, effective=effective), Keep | Audit)


def leaf(state="", *, reason="", epoch=1, claims=(), settled=False, **status):
    """A leaf with that admission."""
    admission = {"state": state, "revocationReason": reason, "policyEpoch": epoch} if state else {}
    conditions = [{"type": "DeviceMutationSettled", "status": "True"}] if settled else []
    return leaf_of(
        {
            "metadata": {"name": "spring-edge-1", "uid": "leaf-uid"},
            "status": {
                "managerAdmission": admission,
                "managedMutationClaims": [{"stage": stage} for stage in claims],
                "conditions": conditions,
                **status,
            },
        }
    )


def test_one_leaf_is_brought_back_at_a_time_in_plan_order():
    waiting = leaf("Revoked", reason="PolicyEpochTransition")
    leaves = {"b": waiting, "a": leaf("Pending", epoch=2), "c": waiting}
    assert next_to_rearm(("a", "b", "c"), leaves, epoch=2) is leaves["b"]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(leaf("Revoked", reason="CampaignCancelled"), id="cancelled"),
        pytest.param(leaf("Revoked", reason="SourceIdentityChanged"), id="another source"),
        pytest.param(leaf("Revoked", reason="PolicyEpochTransition", epoch=2), id="of this epoch"),
        pytest.param(leaf("Revoked", reason="PolicyEpochTransition", claims=("Staging",)), id="claimed"),
        pytest.param(leaf("Revoked", reason="PolicyEpochTransition", phase="Failed"), id="ended"),
        pytest.param(leaf("Settled"), id="settled"),
        pytest.param(leaf(), id="no admission"),
    ],
)
def test_nothing_else_is_brought_back(found):
    assert next_to_rearm(("a", "gone"), {"a": found}, epoch=2) is None

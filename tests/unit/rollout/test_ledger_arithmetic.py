"""Each numbered rule of the reserve arithmetic, and their order (rollouts.md, section 8.3)."""

import dataclasses

import pytest

from gitops_ctl.fleet.ledger import Ledger, State
from gitops_ctl.rollout.ledger_arithmetic import Limits, merged, reserve
from gitops_ctl.rollout.ledger_transitions import acquisition_of
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.ledger import (
    REGION,
    ZONE,
    a_fleet,
    a_member,
    a_policy,
    a_record,
    a_request,
    again,
    done,
    empty,
    fence_of,
    refused,
    reserved,
    with_records,
)


def _ask(record=None, *, ledger=None, policy=None, fleet=None, **request) -> Ledger | Refusal:
    return reserve(
        ledger or empty(), policy or a_policy(), fleet or a_fleet(8), a_request(record or a_record(), **request)
    )


def test_a_request_that_breaks_no_rule_is_inserted_as_reserved() -> None:
    ledger = done(_ask())

    assert ledger.reservations == (a_record(),)
    assert ledger.reservations[0].state is State.RESERVED


@pytest.mark.parametrize(
    "change",
    [
        {"policy_uid": "another"},
        {"policy_version": "8"},
        {"policy_epoch": 2},
        {"topology_lock_id": "A" * 32},
        {"topology_lock_id": "0" * 31},
        {"campaign_uid": ""},
        {"plan_hash": ""},
        {"physical_id": ""},
        {"device_uid": ""},
        {"node_uid": ""},
        {"child_namespace": ""},
        {"child_name": ""},
        {"domains": ((ZONE, "a"),)},
        {"control_revision": -1},
        {"state": State.GRANTED},
        {"child_uid": "leaf"},
    ],
    ids=lambda change: next(iter(change)) + "=" + str(next(iter(change.values())))[:12],
)
def test_rule_1_the_identity_of_policy_and_request_is_complete(change) -> None:
    refused(_ask(a_record(**change)), Reason.IDENTITY)


def test_rule_1_a_key_that_only_the_campaign_limits_has_to_be_there_too() -> None:
    refusal = refused(_ask(domains={"topology.cisco.vk/rack": Limits(1, 1)}), Reason.IDENTITY)

    assert "topology.cisco.vk/rack" in refusal.message


def test_rule_2_an_acquisition_that_was_released_does_not_come_back() -> None:
    record = a_record()
    fence = fence_of(acquisition_of(record))
    ledger = dataclasses.replace(empty(), last_release_fence=fence)

    refused(_ask(ledger=ledger), Reason.STALE)
    done(_ask(again(record), ledger=ledger))


def test_rule_3_the_identical_request_changes_nothing_whatever_the_record_became() -> None:
    ledger = with_records(a_record(state=State.GRANTED, child_uid="leaf"))

    assert _ask(ledger=ledger, campaign=Limits(1, 1)) is ledger


@pytest.mark.parametrize("change", [{"control_revision": 1}, {"child_name": "other"}], ids=str)
def test_rule_3_another_request_under_the_same_id_is_refused(change) -> None:
    refusal = refused(_ask(a_record(**change), ledger=reserved(a_record())), Reason.ALREADY_RESERVED)

    assert refusal.holders == ("lab/" + a_record().child_name,)


def test_rule_4_two_members_with_one_chassis_and_other_facts_block_everything() -> None:
    fleet = merged([a_member(), a_member("edge-2"), a_member("edge-2", device_uid="impostor")])

    refusal = refused(_ask(fleet=fleet), Reason.FLEET_AMBIGUOUS)
    assert "chassis-edge-2" in refusal.message
    assert "impostor" in refusal.message


def test_rule_4_equal_duplicates_only_make_health_worse() -> None:
    fleet = merged([a_member(unavailable=True), a_member()])
    other_order = merged([a_member(), a_member(unavailable=True)])

    assert fleet.members["chassis-edge-1"].unavailable
    assert other_order.members["chassis-edge-1"].unavailable
    assert len(fleet.unavailable) == len(other_order.unavailable) == 1


@pytest.mark.parametrize(
    "change",
    [{"physical_id": "gone"}, {"device_uid": "new"}, {"node_uid": "new"}],
    ids=str,
)
def test_rule_5_the_target_is_a_member_with_the_same_uids(change) -> None:
    refused(_ask(a_record(**change)), Reason.TARGET_UNAVAILABLE)


def test_rule_5_an_unavailable_target_waits() -> None:
    refusal = refused(_ask(fleet=merged([a_member(unavailable=True)])), Reason.TARGET_UNAVAILABLE)

    assert refusal.blocks_target


def test_rule_6_a_device_that_moved_to_another_domain_is_refused() -> None:
    refusal = refused(_ask(a_record(zone="b")), Reason.DOMAIN_CHANGED)

    assert "'a' now" in refusal.message
    assert not refusal.blocks_target


def test_rule_6_a_device_that_joined_a_risk_group_is_refused() -> None:
    fleet = merged([a_member(groups=("core",))])

    refusal = refused(_ask(fleet=fleet), Reason.DOMAIN_CHANGED)
    assert "core" in refusal.message


def test_rule_7_one_chassis_has_one_reservation_and_the_other_campaign_is_named() -> None:
    other = a_record(campaign="winter")

    refusal = refused(_ask(ledger=reserved(other)), Reason.ALREADY_RESERVED)
    assert other.child_name in refusal.message
    assert "uid-winter" in refusal.message


def test_rule_8_a_full_ledger_says_how_many_it_has() -> None:
    ledger = reserved(a_record("edge-2", zone="b"), a_record("edge-3"))

    refusal = refused(_ask(ledger=ledger, policy=a_policy(max_reservations=2)), Reason.LEDGER_FULL)
    assert (refusal.used, refusal.limit) == (2, 2)
    assert "2 of 2" in refusal.message


def test_rule_9_unhealthy_members_and_reservations_count_together_once_each() -> None:
    unhealthy = [a_member("edge-2", zone="b", unavailable=True), a_member("edge-3", unavailable=True)]
    fleet = merged([a_member(), *unhealthy, a_member("edge-4", zone="b")])
    ledger = with_records(a_record("edge-2", zone="b"), a_record("edge-4", zone="b"))

    policy = a_policy(fleet=Limits(9, 3), domains={REGION: Limits(transfers=9)})
    refusal = refused(_ask(ledger=ledger, fleet=fleet, policy=policy), Reason.UNAVAILABLE_BUDGET)
    assert refusal.message.startswith("3 of 3 unavailable in the fleet: chassis chassis-edge-3, lab/spring-edge-2-")
    done(_ask(ledger=ledger, fleet=fleet, policy=dataclasses.replace(policy, fleet=Limits(9, 4))))


def test_rule_10_the_campaign_may_be_stricter_than_the_fleet() -> None:
    ledger = reserved(a_record("edge-3"))

    refusal = refused(_ask(ledger=ledger, campaign=Limits(4, 1)), Reason.UNAVAILABLE_BUDGET)
    assert (refusal.scope, refusal.used, refusal.limit) == ("campaign", 1, 1)
    other = a_record(campaign="winter", device="edge-1")
    done(_ask(other, ledger=ledger, campaign=Limits(4, 1)))


def test_rule_10_the_campaign_is_never_looser_than_the_fleet() -> None:
    policy = a_policy(fleet=Limits(4, 1))

    refused(_ask(ledger=reserved(a_record("edge-3")), policy=policy, campaign=Limits(9, 9)), Reason.UNAVAILABLE_BUDGET)


def test_rule_11_every_record_is_a_transfer_also_a_revoked_one() -> None:
    ledger = with_records(a_record("edge-3", campaign="winter", state=State.REVOKED, child_uid="leaf"))
    policy = a_policy(fleet=Limits(1, 9))

    refusal = refused(_ask(ledger=ledger, policy=policy), Reason.TRANSFER_BUDGET)
    assert refusal.message == "1 of 1 transfers in use in the fleet: lab/" + ledger.reservations[0].child_name


def test_rule_11_unhealthy_members_are_no_transfers() -> None:
    fleet = merged([a_member(), a_member("edge-3", zone="b", unavailable=True)])

    done(_ask(fleet=fleet, policy=a_policy(fleet=Limits(1, 9))))


def test_rule_12_the_transfers_of_the_campaign() -> None:
    refusal = refused(_ask(ledger=reserved(a_record("edge-3")), campaign=Limits(1, 4)), Reason.TRANSFER_BUDGET)

    assert refusal.scope == "campaign"


def test_rule_13_the_zone_counts_only_what_is_in_it() -> None:
    fleet = merged([a_member(), a_member("edge-2", zone="b", unavailable=True), a_member("edge-3", unavailable=True)])
    policy = a_policy(domains={REGION: Limits(transfers=9), ZONE: Limits(unavailable=1)})

    refusal = refused(_ask(fleet=fleet, policy=policy), Reason.UNAVAILABLE_BUDGET)
    assert refusal.message == "1 of 1 unavailable in zone a: chassis chassis-edge-3"
    assert refusal.scope == "zone a"


def test_rule_13_the_campaign_may_be_stricter_in_a_domain() -> None:
    ledger = reserved(a_record("edge-3"))

    refusal = refused(_ask(ledger=ledger, domains={ZONE: Limits(unavailable=1)}), Reason.UNAVAILABLE_BUDGET)
    assert refusal.scope == "campaign in zone a"


def test_rule_13_transfers_in_a_domain_count_reservations_only() -> None:
    fleet = merged([a_member(), a_member("edge-2", zone="b", unavailable=True), a_member("edge-4", zone="b")])
    policy = a_policy(domains={REGION: Limits(transfers=1)})

    done(_ask(fleet=fleet, policy=policy))
    refusal = refused(
        _ask(ledger=with_records(a_record("edge-4", zone="b")), fleet=fleet, policy=policy), Reason.TRANSFER_BUDGET
    )
    assert refusal.scope == "region north"


def test_rule_13_keys_are_looked_at_in_their_order() -> None:
    policy = a_policy(domains={ZONE: Limits(1, 1), REGION: Limits(1, 1)})

    refusal = refused(_ask(ledger=reserved(a_record("edge-3")), policy=policy), Reason.UNAVAILABLE_BUDGET)
    assert refusal.scope == "region north"


def test_rule_13_a_record_that_does_not_say_its_zone_counts_in_every_zone() -> None:
    ledger = with_records(a_record("edge-3", campaign="old", domains=((REGION, "north"),)))
    policy = a_policy(domains={REGION: Limits(transfers=9), ZONE: Limits(unavailable=1)})

    refused(_ask(ledger=ledger, policy=policy), Reason.UNAVAILABLE_BUDGET)


def test_rule_14_the_risk_group_counts_all_campaigns_and_unhealthy_members() -> None:
    members = [a_member(groups=("core",)), a_member("edge-2", zone="b", groups=("core",), unavailable=True)]
    policy = a_policy(risk_groups={"core": Limits(2, 1)})

    refusal = refused(
        _ask(a_record(risk_groups=("core",)), fleet=merged(members), policy=policy), Reason.UNAVAILABLE_BUDGET
    )
    assert refusal.scope == "risk group core"

    other = a_record("edge-3", campaign="winter", risk_groups=("core",))
    policy = a_policy(risk_groups={"core": Limits(1, 9)})
    refusal = refused(
        _ask(
            a_record(risk_groups=("core",)),
            ledger=with_records(other),
            fleet=merged([members[0], a_member("edge-3", groups=("core",))]),
            policy=policy,
        ),
        Reason.TRANSFER_BUDGET,
    )
    assert refusal.holders == (f"lab/{other.child_name}",)


def test_rule_14_a_record_that_names_no_group_counts_by_its_device() -> None:
    fleet = merged([a_member(groups=("core",)), a_member("edge-3", groups=("core",))])
    policy = a_policy(risk_groups={"core": Limits(1, 9)})

    refused(
        _ask(a_record(risk_groups=("core",)), ledger=with_records(a_record("edge-3")), fleet=fleet, policy=policy),
        Reason.TRANSFER_BUDGET,
    )


def test_rule_15_the_size_limit_of_the_policy_holds_for_the_encoded_ledger() -> None:
    refusal = refused(_ask(policy=a_policy(max_ledger_bytes=300)), Reason.LEDGER_TOO_LARGE)

    assert refusal.limit == 300
    assert refusal.used > 300


def test_rule_15_a_record_that_breaks_the_document_is_not_inserted() -> None:
    refused(_ask(a_record(child_name="Not A Name")), Reason.IDENTITY)
    twin = a_record("edge-3", node_uid="node-edge-1")
    refused(_ask(ledger=with_records(twin)), Reason.IDENTITY)


def test_the_first_rule_that_fails_is_the_answer() -> None:
    record = a_record()
    fence = fence_of(acquisition_of(record))
    everything_wrong = dataclasses.replace(with_records(a_record(campaign="winter")), last_release_fence=fence)
    policy = a_policy(max_reservations=1, fleet=Limits(1, 1))
    broken = merged([a_member(unavailable=True), a_member(node_uid="other")])

    def ask(record, ledger, fleet) -> Refusal:
        answer = _ask(record, ledger=ledger, fleet=fleet, policy=policy)
        assert isinstance(answer, Refusal)
        return answer

    seen = [
        ask(a_record(policy_epoch=3), everything_wrong, broken).reason,
        ask(record, everything_wrong, broken).reason,
        ask(again(record), everything_wrong, broken).reason,
        ask(again(record), everything_wrong, merged([a_member(unavailable=True)])).reason,
        ask(again(record), everything_wrong, a_fleet()).reason,
        ask(again(record), with_records(a_record("edge-3")), a_fleet()).reason,
    ]
    assert seen == [
        Reason.IDENTITY,
        Reason.STALE,
        Reason.FLEET_AMBIGUOUS,
        Reason.TARGET_UNAVAILABLE,
        Reason.ALREADY_RESERVED,
        Reason.LEDGER_FULL,
    ]

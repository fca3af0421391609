"""Each row of the transitions with its guard, and each one twice (rollouts.md, section 8.4)."""

import dataclasses
from collections.abc import Callable

import pytest

from gitops_ctl.fleet.ledger import Ledger, Reservation, State
from gitops_ctl.rollout.ledger_transitions import (
    Acquisition,
    Attested,
    Recovered,
    Settled,
    Unclaimed,
    acquisition_of,
    begin_drain,
    bind_child,
    fence_unbound_acquisition,
    grant,
    promote_drain,
    release_unclaimed_at_epoch,
    revoke,
    revoke_unclaimed_at_epoch,
    settle,
    settle_by_attestation,
    settle_drained_reservation,
)
from gitops_ctl.rollout.refusal import Reason, Refusal
from tests.support.ledger import LEDGER_UID, a_record, again, done, empty, fence_of, refused, with_records

LEAF = "leaf-1"
TOKEN = "0f8fad5b-d9cb-469f-a165-70867728950e"
START, END = "2026-03-01T02:00:00Z", "2026-03-01T02:00:00.5Z"
WHICH = acquisition_of(a_record())


def record_in(state: State, **changes: object) -> Reservation:
    """The record as each state demands it."""
    members: dict[str, object] = {"state": state}
    if state is not State.RESERVED:
        members["child_uid"] = LEAF
    if state is State.DRAINING:
        members |= {"drain_session_token": TOKEN, "drain_started_at": START}
    return a_record(**(members | changes))


def drained(state: State) -> Reservation:
    return record_in(state, drain_session_token=TOKEN, drain_started_at=START, drain_completed_at=END)


CALLS: dict[str, Callable[[Ledger, Acquisition], Ledger | Refusal]] = {
    "bind": lambda ledger, which: bind_child(ledger, which, child_uid=LEAF),
    "begin-drain": lambda ledger, which: begin_drain(
        ledger, which, ledger_uid=LEDGER_UID, child_uid=LEAF, token=TOKEN, started_at=START, revision=0
    ),
    "promote-drain": lambda ledger, which: promote_drain(ledger, which, child_uid=LEAF, token=TOKEN, completed_at=END),
    "grant": lambda ledger, which: grant(ledger, which, ledger_uid=LEDGER_UID, child_uid=LEAF, revision=0),
    "revoke": lambda ledger, which: revoke(ledger, which, child_uid=LEAF, revision=1),
    "revoke-unclaimed": lambda ledger, which: revoke_unclaimed_at_epoch(
        ledger, which, proof=Unclaimed(LEAF), revision=0
    ),
    "release": lambda ledger, which: release_unclaimed_at_epoch(ledger, which, proof=Unclaimed(LEAF)),
    "fence": fence_unbound_acquisition,
    "settle": lambda ledger, which: settle(ledger, which, proof=Settled(LEAF)),
    "settle-drained": lambda ledger, which: settle_drained_reservation(ledger, which, proof=Recovered(LEAF, TOKEN)),
    "attest": lambda ledger, which: settle_by_attestation(ledger, which, proof=Attested(LEAF)),
}
GONE = "removed"
R, B, D, G, V = State.RESERVED, State.BOUND, State.DRAINING, State.GRANTED, State.REVOKED
ROWS: dict[str, dict[State, State | str]] = {
    "bind": {R: B, B: B, D: D, G: G, V: V},
    "begin-drain": {B: D, D: D},
    "promote-drain": {D: G},
    "grant": {B: G, G: G},
    "revoke": {R: V, B: V, G: V, V: V},
    "revoke-unclaimed": {B: V, G: V, V: V},
    "release": {R: GONE, V: GONE},
    "fence": {R: GONE},
    "settle": {G: GONE, V: GONE},
    "settle-drained": {B: GONE, D: GONE},
    "attest": {B: GONE, G: GONE, V: GONE},
}
LEAVES_A_FENCE = {"release", "fence", "settle", "settle-drained", "attest"}


@pytest.mark.parametrize("state", list(State), ids=str)
@pytest.mark.parametrize("call", list(ROWS))
def test_each_call_goes_from_its_states_to_its_state_and_from_no_other(call: str, state: State) -> None:
    before = with_records(record_in(state))
    answer = CALLS[call](before, WHICH)
    wanted = ROWS[call].get(state)

    if wanted is None:
        refused(answer, Reason.TRANSITION)
    elif wanted == GONE:
        fence = done(answer).last_release_fence
        assert done(answer).reservations == ()
        assert fence is not None
        assert (fence.reservation_id, fence.policy_epoch, fence.topology_lock_id) == WHICH
    else:
        assert [record.state for record in done(answer).reservations] == [wanted]


@pytest.mark.parametrize("state", [R, B, D, G, V], ids=str)
@pytest.mark.parametrize("call", list(ROWS))
def test_each_call_that_was_done_is_done_again_without_a_change(call: str, state: State) -> None:
    first = CALLS[call](with_records(record_in(state)), WHICH)
    if isinstance(first, Refusal):
        return

    assert CALLS[call](first, WHICH) is first


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize(
    "which",
    [WHICH._replace(policy_epoch=2), WHICH._replace(lock_id="f" * 32)],
    ids=["another epoch", "another lock"],
)
def test_no_call_hits_a_later_acquisition_of_the_same_reservation(call: str, which: Acquisition) -> None:
    state = min(ROWS[call], key=list(State).index)

    refused(CALLS[call](with_records(record_in(state)), which), Reason.STALE)


@pytest.mark.parametrize("call", list(CALLS))
def test_a_record_that_is_gone_only_gets_its_fence_or_is_stale(call: str) -> None:
    answer = CALLS[call](empty(), WHICH)

    if call not in LEAVES_A_FENCE:
        refused(answer, Reason.STALE)
        return
    fence = done(answer).last_release_fence
    assert fence is not None
    assert (fence.reservation_id, fence.policy_epoch, fence.topology_lock_id) == WHICH


@pytest.mark.parametrize("call", [call for call in CALLS if call != "fence"])
def test_no_call_takes_another_leaf(call: str) -> None:
    state = min(set(ROWS[call]) - {R}, key=list(State).index)

    refused(CALLS[call](with_records(record_in(state, child_uid="leaf-2")), WHICH), Reason.TRANSITION)


@pytest.mark.parametrize("call", ["grant", "revoke", "revoke-unclaimed", "release", "settle", "attest"])
@pytest.mark.parametrize("state", [G, V], ids=str)
def test_a_record_with_drain_data_goes_no_other_way(call: str, state: State) -> None:
    refused(CALLS[call](with_records(drained(state)), WHICH), Reason.TRANSITION)


def test_a_leaf_of_another_reservation_is_never_bound() -> None:
    other = a_record("edge-2", state=B, child_uid=LEAF)

    refused(bind_child(with_records(a_record(), other), WHICH, child_uid=LEAF), Reason.TRANSITION)
    refused(revoke(with_records(a_record(), other), WHICH, child_uid=LEAF, revision=1), Reason.TRANSITION)
    refused(bind_child(with_records(a_record()), WHICH, child_uid=""), Reason.TRANSITION)


def test_a_grant_is_of_this_ledger_and_of_no_older_control() -> None:
    ledger = with_records(record_in(B, control_revision=3))

    refused(grant(ledger, WHICH, ledger_uid="other", child_uid=LEAF, revision=3), Reason.IDENTITY)
    refused(grant(ledger, WHICH, ledger_uid=LEDGER_UID, child_uid=LEAF, revision=2), Reason.TRANSITION)
    granted = done(grant(ledger, WHICH, ledger_uid=LEDGER_UID, child_uid=LEAF, revision=3))
    raised = done(grant(granted, WHICH, ledger_uid=LEDGER_UID, child_uid=LEAF, revision=5))
    assert raised.reservations[0].control_revision == 5


def test_a_revocation_needs_a_larger_revision() -> None:
    ledger = with_records(record_in(G, control_revision=3))

    for revision in (2, 3):
        refused(revoke(ledger, WHICH, child_uid=LEAF, revision=revision), Reason.TRANSITION)
    gone = done(revoke(ledger, WHICH, child_uid=LEAF, revision=4))
    assert revoke(gone, WHICH, child_uid=LEAF, revision=4) is gone
    refused(revoke(gone, WHICH, child_uid=LEAF, revision=3), Reason.TRANSITION)


def test_an_unclaimed_revocation_takes_the_same_revision_and_no_lower_one() -> None:
    ledger = with_records(record_in(G, control_revision=3))

    refused(revoke_unclaimed_at_epoch(ledger, WHICH, proof=Unclaimed(LEAF), revision=2), Reason.TRANSITION)
    gone = done(revoke_unclaimed_at_epoch(ledger, WHICH, proof=Unclaimed(LEAF), revision=3))
    assert gone.reservations[0].state is V


def test_a_revoked_record_is_released_only_with_proof_about_its_leaf() -> None:
    refused(release_unclaimed_at_epoch(with_records(record_in(V)), WHICH, proof=None), Reason.TRANSITION)
    assert done(release_unclaimed_at_epoch(with_records(record_in(R)), WHICH, proof=None)).reservations == ()


@pytest.mark.parametrize("token", ["", "not-a-uuid", TOKEN.replace("-4", "-1"), TOKEN.upper()])
def test_a_drain_begins_under_a_random_uuid(token: str) -> None:
    answer = begin_drain(
        with_records(record_in(B)),
        WHICH,
        ledger_uid=LEDGER_UID,
        child_uid=LEAF,
        token=token,
        started_at=START,
        revision=0,
    )

    refused(answer, Reason.TRANSITION)


def test_a_drain_that_runs_takes_no_second_session_and_no_older_control() -> None:
    other = TOKEN.replace("0f", "1f", 1)
    ledger = with_records(record_in(D, control_revision=2))

    for token, revision in ((other, 2), (TOKEN, 1)):
        answer = begin_drain(
            ledger, WHICH, ledger_uid=LEDGER_UID, child_uid=LEAF, token=token, started_at=START, revision=revision
        )
        refused(answer, Reason.TRANSITION)
    refused(promote_drain(ledger, WHICH, child_uid=LEAF, token=other, completed_at=END), Reason.TRANSITION)


@pytest.mark.parametrize(
    ("completed", "works"),
    [
        (START, True),
        ("2026-03-01T02:00:00.000000001Z", True),
        ("2026-03-01T01:59:59.999999999Z", False),
    ],
)
def test_a_drain_is_not_complete_before_it_began(completed: str, works: bool) -> None:
    answer = promote_drain(with_records(record_in(D)), WHICH, child_uid=LEAF, token=TOKEN, completed_at=completed)

    if works:
        assert done(answer).reservations[0].drain_completed_at == completed
    else:
        refused(answer, Reason.TRANSITION)


def test_a_promoted_drain_is_promoted_again_only_with_the_same_completion() -> None:
    ledger = with_records(drained(G))

    assert promote_drain(ledger, WHICH, child_uid=LEAF, token=TOKEN, completed_at=END) is ledger
    refused(promote_drain(ledger, WHICH, child_uid=LEAF, token=TOKEN, completed_at=START), Reason.TRANSITION)


@pytest.mark.parametrize("state", [D, G, V], ids=str)
def test_a_drained_reservation_is_settled_under_its_own_session_and_the_fence_names_it(state: State) -> None:
    ledger = with_records(drained(state) if state is not D else record_in(D))

    refused(
        settle_drained_reservation(ledger, WHICH, proof=Recovered(LEAF, TOKEN.replace("0f", "1f", 1))),
        Reason.TRANSITION,
    )
    settled = done(settle_drained_reservation(ledger, WHICH, proof=Recovered(LEAF, TOKEN)))
    assert settled.last_release_fence == dataclasses.replace(
        fence_of(WHICH), drain_session_token=TOKEN, drain_child_uid=LEAF
    )


def test_only_the_last_release_is_kept() -> None:
    first, second = a_record(), a_record("edge-2", zone="b")
    ledger = with_records(first, second)
    for record in (first, second):
        ledger = done(fence_unbound_acquisition(ledger, acquisition_of(record)))

    assert ledger.last_release_fence == fence_of(acquisition_of(second))


def test_other_records_are_untouched() -> None:
    other = a_record("edge-2", zone="b", state=G, child_uid="leaf-2")
    for call, change in CALLS.items():
        state = min(ROWS[call], key=list(State).index)
        after = done(change(with_records(record_in(state), other), WHICH))
        assert other in after.reservations


def test_a_later_acquisition_is_not_stopped_by_the_fence_of_the_former() -> None:
    later = again(a_record())
    ledger = dataclasses.replace(with_records(later), last_release_fence=fence_of(WHICH))

    assert done(bind_child(ledger, acquisition_of(later), child_uid=LEAF)).reservations[0].state is B
    refused(fence_unbound_acquisition(ledger, WHICH), Reason.STALE)

"""The text of the reservation ledger (rollouts.md, section 8.1): strict to read, one form to write."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet import names
from gitops_ctl.fleet.ledger import (
    MAX_LEDGER_BYTES,
    Ledger,
    ReleaseFence,
    Reservation,
    State,
    decode_ledger,
    empty_ledger,
    encode_ledger,
    validate_ledger,
)

UID = "8587a09e-451e-43a1-b638-0b2c11af78b6"
TOKEN = "5f0d7f2e-98a4-4c3b-9a53-6d1a2f3b4c5d"
START, END = "2026-10-02T12:00:00.5Z", "2026-10-02T12:10:00Z"


def record(number=1, **changes):
    """A Reserved record."""
    found = Reservation(
        id=f"{number:032x}",
        campaign_uid="campaign-1",
        plan_hash=f"sha256:{'b' * 64}",
        policy_uid="policy-1",
        policy_version="55",
        policy_epoch=1,
        topology_lock_id=f"{number:032x}",
        physical_id=f"foc{number}",
        device_uid=f"device-{number}",
        node_uid=f"node-{number}",
        child_namespace="plant",
        child_name=f"campaign-switch-{number}-00000000",
        domains=(("topology.kubernetes.io/zone", "zone-a"),),
        control_revision=0,
        state=State.RESERVED,
    )
    return replace(found, **changes)


def bound(number=1, state=State.BOUND, **changes):
    """The same, once its leaf is there."""
    return record(number, state=state, child_uid=f"leaf-{number}", **changes)


def drained(state, completed=""):
    return bound(
        state=state, drain_session_token=TOKEN, drain_started_at=START, drain_completed_at=completed, control_revision=3
    )


def tree_of(*records, **members):
    """The decoded text of a ledger with these records."""
    text = encode_ledger(Ledger(uid=UID, reservations=records))
    return {**json.loads(text), **members}


def changed(**members):
    """The text of a ledger with one Bound record whose members are replaced, or with `...` removed."""
    tree = tree_of(bound())
    one = tree["reservations"][bound().id]
    one.update(members)
    tree["reservations"][bound().id] = {name: member for name, member in one.items() if member is not ...}
    return json.dumps(tree)


def refused(text, uid=UID):
    with pytest.raises(Refused) as caught:
        decode_ledger(text, uid)
    assert caught.value.code is ErrorCode.LEDGER_INVALID
    return caught.value


def test_an_empty_ledger_carries_its_own_uid():
    text = encode_ledger(empty_ledger(UID))
    assert text == f'{{"version":"v1","uid":"{UID}","reservations":{{}}}}'
    assert decode_ledger(text, UID) == empty_ledger(UID)


def test_records_are_written_in_the_order_of_their_ids_and_members_in_that_of_the_contract():
    risky = bound(1, risk_groups=("core", "path"), domains=(("a/b", "x"), ("c", "y")))
    text = encode_ledger(Ledger(uid=UID, reservations=(risky, record(2))))
    tree = json.loads(text)
    assert list(tree["reservations"]) == [risky.id, record(2).id]
    members = list(tree["reservations"][risky.id])
    assert members == [name for name in names.RESERVATION_MEMBERS if name in members]
    assert members[members.index("domains") + 1] == "riskGroups"
    assert list(tree["reservations"][risky.id]["domains"]) == ["a/b", "c"]
    assert not tree["reservations"][record(2).id].keys() & {"riskGroups", "childUID", "drainSessionToken"}
    assert tree["reservations"][record(2).id]["controlRevision"] == 0
    assert " " not in text
    assert decode_ledger(text, UID).reservations[0] == risky


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "i" * 64},
        {"policy_epoch": 2**63 - 1, "control_revision": 2**63 - 1},
        {"domains": (("k" * 96, "v" * 63),)},
        {"domains": tuple((f"k{number:02}", "v") for number in range(16))},
        {"risk_groups": tuple(f"g{number:02}" for number in range(16))},
        {
            "state": State.REVOKED,
            "child_uid": "u",
            "drain_session_token": TOKEN,
            "drain_started_at": END,
            "drain_completed_at": END,
        },
    ],
    ids=("id", "numbers", "domain", "domains", "groups", "a drain of no time"),
)
def test_a_record_at_its_bounds_comes_back_as_it_was(changes):
    ledger = Ledger(uid=UID, reservations=(record(**changes),))
    assert decode_ledger(encode_ledger(ledger), UID) == ledger


def test_a_fence_is_written_after_the_records_and_read_back():
    fence = ReleaseFence(reservation_id="r1", policy_epoch=2, topology_lock_id="a" * 32)
    text = encode_ledger(Ledger(uid=UID, reservations=(record(),), last_release_fence=fence))
    assert list(json.loads(text)) == ["version", "uid", "reservations", "lastReleaseFence"]
    assert list(json.loads(text)["lastReleaseFence"]) == ["reservationID", "policyEpoch", "topologyLockID"]
    assert decode_ledger(text, UID).last_release_fence == fence


@pytest.mark.parametrize(
    "whole",
    [
        record(),
        bound(),
        drained(State.DRAINING),
        bound(state=State.GRANTED),
        drained(State.GRANTED, END),
        bound(state=State.REVOKED),
        drained(State.REVOKED),
        drained(State.REVOKED, END),
    ],
    ids=lambda whole: (
        f"{whole.state}{'-drained' if whole.drain_session_token else ''}{'-done' * bool(whole.drain_completed_at)}"
    ),
)
def test_a_record_with_what_its_state_must_have_comes_back_as_it_was(whole):
    ledger = Ledger(uid=UID, reservations=(whole,))
    assert decode_ledger(encode_ledger(ledger), UID) == ledger


STATES = {
    "Reserved with a child": (bound(state=State.RESERVED), "childUID", "no childUID"),
    "Bound without a child": (record(state=State.BOUND), "childUID", "needs a childUID"),
    "Draining without a child": (record(state=State.DRAINING), "childUID", "needs a childUID"),
    "Granted without a child": (record(state=State.GRANTED), "childUID", "needs a childUID"),
    "Revoked without a child": (record(state=State.REVOKED), "childUID", "needs a childUID"),
    "Reserved with a drain": (record(drain_session_token=TOKEN), "drainSessionToken", "no drain data"),
    "Bound with a drain": (bound(drain_started_at=START), "drainSessionToken", "no drain data"),
    "Draining without a session": (bound(state=State.DRAINING), "drainSessionToken", "needs its session"),
    "Draining without a start": (
        bound(state=State.DRAINING, drain_session_token=TOKEN),
        "drainSessionToken",
        "a session token and a start",
    ),
    "Draining without a token": (
        bound(state=State.DRAINING, drain_started_at=START),
        "drainSessionToken",
        "a session token and a start",
    ),
    "Draining and complete": (drained(State.DRAINING, END), "drainCompletedAt", "is not complete"),
    "Granted before the drain was complete": (drained(State.GRANTED), "drainCompletedAt", "needs its completion"),
    "complete before it started": (
        drained(State.GRANTED, "2026-10-02T12:00:00.49Z"),
        "drainCompletedAt",
        "ends before it starts",
    ),
    "a completion without a session": (
        bound(state=State.REVOKED, drain_completed_at=END),
        "drainSessionToken",
        "a session token and a start",
    ),
}


@pytest.mark.parametrize(("whole", "member", "why"), STATES.values(), ids=STATES)
def test_a_record_with_what_its_state_must_not_have_is_never_written(whole, member, why):
    with pytest.raises(Refused, match=why) as caught:
        encode_ledger(Ledger(uid=UID, reservations=(whole,)))
    assert caught.value.code is ErrorCode.LEDGER_INVALID
    assert caught.value.subject == f"ledger.json#/reservations/{whole.id}/{member}"


@pytest.mark.parametrize(
    ("text", "is_an_instant"),
    [
        ("2026-10-02T12:00:00Z", True),
        ("2026-10-02T12:00:00.000000001Z", True),
        ("2026-10-02T12:00:00.10Z", False),
        ("2026-10-02T12:00:00.0Z", False),
        ("2026-10-02T12:00:00.1234567891Z", False),
        ("2026-10-02T12:00:00+00:00", False),
        ("2026-10-02T14:00:00+02:00", False),
        ("2026-10-02T12:00:00z", False),
        ("2026-02-30T12:00:00Z", False),
        ("2026-10-02T24:00:00Z", False),
        ("2026-10-02", False),
    ],
)
def test_a_drain_time_has_one_form(text, is_an_instant):
    whole = bound(state=State.DRAINING, drain_session_token=TOKEN, drain_started_at=text)
    if is_an_instant:
        validate_ledger(Ledger(uid=UID, reservations=(whole,)))
        return
    with pytest.raises(Refused, match="drainStartedAt must be a UTC time"):
        validate_ledger(Ledger(uid=UID, reservations=(whole,)))


BROKEN = {
    "an empty id": ({"id": ""}, "id", "1 to 64 characters"),
    "a long id": ({"id": "i" * 65}, "id", "1 to 64 characters"),
    "a blank in an id": ({"id": "a b"}, "id", "printable ASCII"),
    "no campaign": ({"campaign_uid": ""}, "campaignUID", "must not be empty"),
    "a line end": ({"plan_hash": "a\n"}, "planHash", "printable ASCII"),
    "a letter that is no ASCII": ({"physical_id": "föc"}, "physicalID", "printable ASCII"),
    "epoch 0": ({"policy_epoch": 0}, "policyEpoch", "at least 1"),
    "a negative revision": ({"control_revision": -1}, "controlRevision", "0 to 2\\^63"),
    "a revision beyond 64 bits": ({"control_revision": 2**63}, "controlRevision", "0 to 2\\^63"),
    "a short lock id": ({"topology_lock_id": "a" * 31}, "topologyLockID", "32 lower-case hex"),
    "an upper-case lock id": ({"topology_lock_id": "A" * 32}, "topologyLockID", "32 lower-case hex"),
    "a namespace that is none": ({"child_namespace": "a.b"}, "childNamespace", "DNS label"),
    "a child name that is none": ({"child_name": "A"}, "childName", "DNS subdomain"),
    "no domain": ({"domains": ()}, "domains", "1 to 16 members"),
    "too many domains": ({"domains": tuple((f"k{n:02}", "v") for n in range(17))}, "domains", "1 to 16 members"),
    "domains out of order": ({"domains": (("b", "x"), ("a", "x"))}, "domains", "sorted by key"),
    "a domain twice": ({"domains": (("a", "x"), ("a", "y"))}, "domains", "each key once"),
    "a long domain key": ({"domains": (("k" * 97, "v"),)}, "domains", "too long"),
    "a long domain value": ({"domains": (("k", "v" * 64),)}, "domains", "too long"),
    "an empty domain value": ({"domains": (("k", ""),)}, "domains", "empty"),
    "a blank in a domain": ({"domains": (("k", "a b"),)}, "domains", "printable"),
    "groups out of order": ({"risk_groups": ("b", "a")}, "riskGroups", "sorted"),
    "a group twice": ({"risk_groups": ("a", "a")}, "riskGroups", "each once"),
    "a group that is none": ({"risk_groups": ("A",)}, "riskGroups", "sorted"),
    "too many groups": ({"risk_groups": tuple(f"g{n:02}" for n in range(17))}, "riskGroups", "at most 16"),
    "a session token with a blank": (
        {"state": State.DRAINING, "child_uid": "u", "drain_session_token": "a b", "drain_started_at": START},
        "drainSessionToken",
        "printable ASCII",
    ),
}


@pytest.mark.parametrize(("changes", "member", "why"), BROKEN.values(), ids=BROKEN)
def test_a_record_that_breaks_a_bound_is_never_written(changes, member, why):
    whole = record(**changes)
    with pytest.raises(Refused, match=why) as caught:
        encode_ledger(Ledger(uid=UID, reservations=(whole,)))
    assert caught.value.subject.endswith(f"/{member}")


SAME = {
    "chassis": ({"physical_id": "foc1"}, "physicalID"),
    "device": ({"device_uid": "device-1"}, "deviceUID"),
    "Node": ({"node_uid": "node-1"}, "nodeUID"),
    "leaf name": ({"child_name": "campaign-switch-1-00000000"}, "childName"),
    "leaf": ({"child_uid": "leaf-1"}, "childUID"),
}


@pytest.mark.parametrize(("changes", "member"), SAME.values(), ids=SAME)
def test_two_records_never_share_a_thing(changes, member):
    ledger = Ledger(uid=UID, reservations=(bound(1), replace(bound(2), **changes)))
    with pytest.raises(Refused, match=f"has the same {member}") as caught:
        validate_ledger(ledger)
    assert caught.value.subject == f"ledger.json#/reservations/{bound(2).id}/{member}"


def test_the_same_leaf_name_in_another_namespace_is_another_leaf():
    first, second = bound(1), bound(2)
    other = replace(second, child_name=first.child_name, child_namespace="other")
    validate_ledger(Ledger(uid=UID, reservations=(first, other)))


def test_records_that_have_no_leaf_yet_do_not_share_one():
    validate_ledger(Ledger(uid=UID, reservations=(record(1), record(2))))


def test_records_out_of_order_or_with_one_id_are_no_ledger():
    for pair, why in (
        ((record(2), record(1)), "not sorted"),
        ((record(1), replace(record(2), id=record(1).id)), "same id"),
    ):
        with pytest.raises(Refused, match=why):
            validate_ledger(Ledger(uid=UID, reservations=pair))


def test_256_records_are_a_ledger_and_257_are_none():
    records = tuple(record(number) for number in range(257))
    full = Ledger(uid=UID, reservations=records[:256])
    assert decode_ledger(encode_ledger(full), UID) == full
    with pytest.raises(Refused, match="257 reservations, 256 are allowed"):
        encode_ledger(Ledger(uid=UID, reservations=records))


def test_a_text_beyond_the_absolute_limit_is_neither_written_nor_read():
    heavy = tuple(record(number, campaign_uid="c" * 2000) for number in range(130))
    with pytest.raises(Refused, match="262144 are allowed"):
        encode_ledger(Ledger(uid=UID, reservations=heavy))
    text = encode_ledger(empty_ledger(UID))
    assert "262144 are allowed" in refused(text + " " * MAX_LEDGER_BYTES).message


TEXTS = {
    "another uid": (json.dumps(tree_of(uid="other")), "/uid", "belongs to the ConfigMap 'other', not to"),
    "another version": (json.dumps(tree_of(version="v2")), "/version", "must be 'v1'"),
    "no version": (json.dumps({"uid": UID, "reservations": {}}), "/version", "is required"),
    "an unknown member": (json.dumps(tree_of(note="x")), "/note", "no member"),
    "no reservations": (json.dumps({"version": "v1", "uid": UID}), "/reservations", "is required"),
    "null reservations": (json.dumps(tree_of(reservations=None)), "/reservations", "must be an object"),
    "a list of reservations": (json.dumps(tree_of(reservations=[])), "/reservations", "must be an object"),
    "a null fence": (json.dumps(tree_of(lastReleaseFence=None)), "/lastReleaseFence", "must be an object"),
    "an unknown member of the fence": (
        json.dumps(
            tree_of(
                lastReleaseFence={"reservationID": "r", "policyEpoch": 1, "topologyLockID": "a" * 32, "why": "x"},
            )
        ),
        "/lastReleaseFence/why",
        "no member",
    ),
    "a fence without a lock": (
        json.dumps(tree_of(lastReleaseFence={"reservationID": "r", "policyEpoch": 1})),
        "/lastReleaseFence/topologyLockID",
        "is required",
    ),
    "a fence with another lock": (
        json.dumps(tree_of(lastReleaseFence={"reservationID": "r", "policyEpoch": 1, "topologyLockID": "x"})),
        "/lastReleaseFence/topologyLockID",
        "32 lower-case hex",
    ),
    "a fence of epoch 0": (
        json.dumps(tree_of(lastReleaseFence={"reservationID": "r", "policyEpoch": 0, "topologyLockID": "a" * 32})),
        "/lastReleaseFence/policyEpoch",
        "must be 1 to",
    ),
    "a record that is none": (json.dumps(tree_of(reservations={"a": 1})), "/reservations/a", "must be an object"),
    "a record under another name": (
        json.dumps(tree_of(reservations={"a": tree_of(record())["reservations"][record().id]})),
        "/reservations/a/id",
        "the name under which",
    ),
    "trailing data": (json.dumps(tree_of()) + "{}", "", "after the object"),
    "a repeated member": (
        json.dumps(tree_of()).replace('"version"', '"uid": "x", "version"', 1),
        "/uid",
        "twice",
    ),
    "an empty text": ("", "", "empty"),
}


@pytest.mark.parametrize(("text", "pointer", "why"), TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_no_ledger_is_an_identity_error_at_its_place(text, pointer, why):
    found = refused(text)
    assert why in found.message
    assert found.subject == f"ledger.json#{pointer}"


MEMBERS = {
    "an unknown member": ({"note": "x"}, "note", "no member"),
    "a missing member": ({"planHash": ...}, "planHash", "is required"),
    "missing domains": ({"domains": ...}, "domains", "is required"),
    "a number as text": ({"policyEpoch": "1"}, "policyEpoch", "another type"),
    "a boolean as number": ({"policyEpoch": True}, "policyEpoch", "another type"),
    "a fraction": ({"policyEpoch": 1.0}, "policyEpoch", "no whole number"),
    "a revision beyond 64 bits": ({"controlRevision": 2**63}, "controlRevision", "0 to 2^63"),
    "a text as number": ({"nodeUID": 7}, "nodeUID", "another type"),
    "null": ({"childUID": None}, "childUID", "another type"),
    "an empty optional member": ({"drainSessionToken": ""}, "drainSessionToken", "is empty"),
    "an empty list of groups": ({"riskGroups": []}, "riskGroups", "is empty"),
    "a group that is no text": ({"riskGroups": [1]}, "riskGroups", "another type"),
    "a domain that is no text": ({"domains": {"a": 1}}, "domains", "another type"),
    "domains as a list": ({"domains": ["a"]}, "domains", "another type"),
    "an unknown state": ({"state": "Settled"}, "state", "no state of a reservation"),
    "a state as a number": ({"state": 1}, "state", "another type"),
    "a bad lock": ({"topologyLockID": "x"}, "topologyLockID", "32 lower-case hex"),
}


@pytest.mark.parametrize(("members", "member", "why"), MEMBERS.values(), ids=MEMBERS)
def test_a_record_is_read_strictly(members, member, why):
    found = refused(changed(**members))
    assert why in found.message
    assert found.subject == f"ledger.json#/reservations/{bound().id}/{member}"


def test_domains_are_read_in_whatever_order_they_stand():
    text = changed(domains={"b": "2", "a": "1"})
    assert decode_ledger(text, UID).reservations[0].domains == (("a", "1"), ("b", "2"))


def test_a_record_that_was_read_before_is_refused_under_another_name():
    text = encode_ledger(Ledger(uid=UID, reservations=(record(1), record(2))))
    assert decode_ledger(text, UID).get(record(1).id) == record(1)
    with pytest.raises(Refused, match="the id must be the name under which the reservation stands"):
        decode_ledger(text.replace(f'"{record(1).id}":', f'"{record(3).id}":'), UID)


def test_a_record_that_stands_twice_in_a_text_that_we_could_have_written_is_refused():
    text = encode_ledger(Ledger(uid=UID, reservations=(record(1),)))
    one = text[text.index("{", 1) + 1 : text.rindex("}", 0, -1)]
    with pytest.raises(Refused, match="the member is there twice"):
        decode_ledger(text.replace(one, f"{one},{one}"), UID)


def test_a_reservation_is_found_by_its_id():
    ledger = Ledger(uid=UID, reservations=tuple(record(number) for number in range(5)))
    assert ledger.get(record(3).id) == record(3)
    assert ledger.get("zz") is None
    assert ledger.get("") is None
    assert empty_ledger(UID).get(record(3).id) is None


RECORDS = st.lists(st.integers(0, 400), unique=True, max_size=6).map(
    lambda numbers: tuple(bound(n, State.GRANTED if n % 2 else State.BOUND) for n in sorted(numbers))
)


@pytest.mark.property
@settings(max_examples=40)
@given(RECORDS, st.integers(0, 2**63 - 1))
def test_what_is_written_reads_back_and_its_order_in_the_text_does_not_matter(records, revision):
    ledger = Ledger(uid=UID, reservations=tuple(replace(one, control_revision=revision) for one in records))
    text = encode_ledger(ledger)
    assert decode_ledger(text, UID) == ledger
    tree = json.loads(text)
    backwards = {**tree, "reservations": dict(reversed(tree["reservations"].items()))}
    assert encode_ledger(decode_ledger(json.dumps(backwards), UID)) == text


@pytest.mark.property
@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda s: st.dictionaries(st.sampled_from(["id", "uid", "a"]), s),
    )
)
def test_nothing_else_is_ever_taken_for_a_ledger(value):
    with pytest.raises(Refused):
        decode_ledger(json.dumps({"version": "v1", "uid": UID, "reservations": {"a": value}}), UID)

"""The network gate, row by row and in order, and what a grant may rest on (rollouts.md, section 15.5)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.evidence import (
    Expected,
    Rules,
    authority_of,
    is_authority_current,
    network_problem,
    sample_hash,
    sample_of,
)
from gitops_ctl.fleet.identity import device_identity_hash
from tests.support.fleet_objects import NOW, POD_UID, REVISION, before, device_tree, neighbor, sample_tree
from tests.support.fleet_vectors import published_hash

FIRST, SECOND = "TenGigabitEthernet1/1/1", "TenGigabitEthernet1/1/2"
EXPECTED = Expected(REVISION, POD_UID, device_identity_hash("foc-switch-1"))
STRICT = {
    "enabled": True,
    "requireCompleteEvidence": True,
    "requiredInterfaces": [FIRST, SECOND],
    "requiredNeighbors": ["core-1", "core-2"],
    "requireInterfacesUp": True,
    "requireNeighborsFull": True,
    "minimumHeadroomPercent": 50,
}


def judged(sample=None, rules=STRICT, *, expected=EXPECTED, freshness_s=300):
    tree = sample_tree() if sample is None else sample
    return network_problem(tree, rules=Rules.of(rules), expected=expected, now=NOW, freshness_s=freshness_s)


def interfaces(*changes):
    whole = sample_tree()["interfaces"]
    return [
        {name: member for name, member in {**item, **change}.items() if member is not ...}
        for item, change in zip(whole, changes, strict=True)
    ]


# Each row breaks its own check and, where it can, every later one too: the first failure gives the reason.
ROWS = {
    "1 no sample": (None, "EvidenceMissing"),
    "1 an empty sample": ({}, "EvidenceMissing"),
    "2 no device identity": ({"deviceIdentityHash": ..., "producerRevision": "x"}, "DeviceIdentityMissing"),
    "3 another revision": ({"producerRevision": "sha256:x", "workerPodUID": "x"}, "ProducerRevisionMismatch"),
    "3 no revision": ({"producerRevision": ...}, "ProducerRevisionMismatch"),
    "4 another Pod": ({"workerPodUID": "x", "collectionStartedAt": ...}, "WorkerPodMismatch"),
    "5 no start": ({"collectionStartedAt": ..., "deviceIdentityHash": "x"}, "EvidenceProvenanceMissing"),
    "5 no end": ({"collectionEndedAt": ...}, "EvidenceProvenanceMissing"),
    "5 no sequence": ({"sampleSequence": ...}, "EvidenceProvenanceMissing"),
    "5 a start that is no time": ({"collectionStartedAt": "soon"}, "EvidenceProvenanceMissing"),
    "6 an end before the start": (
        {"collectionStartedAt": before(29), "deviceIdentityHash": "x"},
        "EvidenceProvenanceInvalid",
    ),
    "6 an end in the future": ({"collectionEndedAt": before(-31)}, "EvidenceProvenanceInvalid"),
    "7 a slow collection": ({"collectionStartedAt": before(91), "deviceIdentityHash": "x"}, "EvidenceCollectionSlow"),
    "8 another chassis": ({"deviceIdentityHash": "sha256:x", "observedAt": before(-31)}, "DeviceIdentityMismatch"),
    "9 a clock ahead": ({"observedAt": before(-31), "complete": False}, "EvidenceClockSkew"),
    "10 old": (
        {"observedAt": before(301), "collectionStartedAt": before(303), "collectionEndedAt": before(301)},
        "EvidenceStale",
    ),
    "10 old, though observed late": (
        {"collectionStartedAt": before(301), "collectionEndedAt": before(299), "observedAt": before(1)},
        "EvidenceStale",
    ),
    "10 never observed": ({"observedAt": ..., "complete": False}, "EvidenceStale"),
    "11 incomplete": ({"complete": False, "interfaces": [{}]}, "EvidenceIncomplete"),
    "12 an interface without a name": (
        {"interfaces": [{"name": " ", "operUp": True}], "neighbors": []},
        "EvidenceInvalid",
    ),
    "12 an interface without a state": ({"interfaces": [{"name": FIRST}]}, "EvidenceInvalid"),
    "12 headroom beyond 100": ({"interfaces": interfaces({"headroomPercent": 101}, {})}, "EvidenceInvalid"),
    "12 negative headroom": ({"interfaces": interfaces({"headroomPercent": -1}, {})}, "EvidenceInvalid"),
    "12 headroom that is no number": ({"interfaces": interfaces({"headroomPercent": "80"}, {})}, "EvidenceInvalid"),
    "12 an interface that is none": ({"interfaces": ["x"]}, "EvidenceInvalid"),
    "12 no list": ({"neighbors": {}}, "EvidenceInvalid"),
    "12 too many interfaces": (
        {"interfaces": [{"name": f"i{number}", "operUp": True} for number in range(65)]},
        "EvidenceInvalid",
    ),
    "12 too many neighbours": (
        {"neighbors": [neighbor(f"n{number}", FIRST) for number in range(65)]},
        "EvidenceInvalid",
    ),
    "12 a neighbour without identity": ({"neighbors": [{"id": "core-1", "state": "full"}]}, "EvidenceInvalid"),
    "12 complete with a reason why not": ({"unknownReason": "timeout"}, "EvidenceInvalid"),
    "12 an interface twice": ({"interfaces": interfaces({}, {"name": FIRST, "operUp": False})}, "EvidenceAmbiguous"),
    "12 a neighbour twice": (
        {"neighbors": [neighbor("core-1", FIRST), neighbor("core-1", FIRST)]},
        "EvidenceAmbiguous",
    ),
    "13 an interface that is absent": (
        {"interfaces": interfaces({"operUp": False}, {"name": "other"})},
        "InterfaceEvidenceMissing",
    ),
    "14 an interface down": (
        {"interfaces": interfaces({}, {"operUp": False, "headroomPercent": ...})},
        "InterfaceDown",
    ),
    "15 no headroom": ({"interfaces": interfaces({"headroomPercent": 1}, {"headroomPercent": ...})}, "HeadroomUnknown"),
    "16 too little headroom": (
        {"interfaces": interfaces({"headroomPercent": 49}, {}), "neighbors": []},
        "TransferHeadroomInsufficient",
    ),
    "17 a neighbour that is absent": (
        {"neighbors": [neighbor("core-1", FIRST), neighbor("core-1", SECOND)]},
        "AlternatePathUnavailable",
    ),
    "18 two adjacencies": (
        {"neighbors": [neighbor("core-1", FIRST), neighbor("core-1", SECOND, "down"), neighbor("core-2", SECOND)]},
        "EvidenceAmbiguous",
    ),
    "19 a neighbour that is not full": (
        {"neighbors": [neighbor("core-1", FIRST), neighbor("core-2", SECOND, "discovered")]},
        "NeighborUnhealthy",
    ),
    "20 all passed": (sample_tree(), ""),
}


@pytest.mark.parametrize(("changes", "reason"), ROWS.values(), ids=ROWS)
def test_the_first_check_that_fails_gives_the_reason(changes, reason):
    sample = sample_tree(**changes) if changes else changes
    found = network_problem(sample, rules=Rules.of(STRICT), expected=EXPECTED, now=NOW, freshness_s=300)
    assert found == reason


@pytest.mark.parametrize("member", ["producer_revision", "worker_pod_uid"])
def test_a_caller_without_a_worker_learns_so_before_anything_is_judged(member):
    texts = {"producer_revision": REVISION, "worker_pod_uid": POD_UID, "device_identity_hash": "x", member: ""}
    assert judged({}, expected=Expected(**texts)) == "ExpectedIdentityMissing"


def test_a_caller_without_a_chassis_gets_no_further_than_the_second_row():
    assert judged(expected=Expected(REVISION, POD_UID, "")) == "DeviceIdentityMissing"


@pytest.mark.parametrize(
    "changes",
    [
        {"collectionEndedAt": before(-30), "observedAt": before(-30), "collectionStartedAt": before(30)},
        {"collectionStartedAt": before(300), "collectionEndedAt": before(240), "observedAt": before(240)},
        {"neighbors": [neighbor("core-1", FIRST, "FULL"), neighbor("core-2", SECOND, "Full")]},
        {"interfaces": interfaces({"headroomPercent": 50}, {"headroomPercent": 100})},
        {"collectionStartedAt": before(30), "collectionEndedAt": before(30), "sampleSequence": 1},
    ],
    ids=("30 s ahead, 60 s long", "just fresh", "full in any case", "just enough", "the first, in one moment"),
)
def test_a_sample_passes_at_its_limits(changes):
    assert judged(sample_tree(**changes)) == ""


def test_without_rules_a_complete_fresh_sample_of_the_right_worker_is_enough():
    down = sample_tree(interfaces=interfaces({"operUp": False}, {"headroomPercent": ...}), neighbors=[])
    assert judged(down, {"enabled": True}) == ""


def test_incomplete_evidence_passes_only_where_the_plan_says_so_and_with_its_reason():
    partial = sample_tree(complete=False, unknownReason="NeighborsTimeout")
    assert judged(partial) == "EvidenceIncomplete"
    assert judged(partial, {**STRICT, "requireCompleteEvidence": False}) == ""
    assert judged(sample_tree(complete=False), {**STRICT, "requireCompleteEvidence": False}) == "EvidenceInvalid"


def test_a_rule_without_a_list_is_about_all_that_were_seen():
    rules = {"enabled": True, "requireInterfacesUp": True, "requireNeighborsFull": True}
    assert judged(sample_tree(), rules) == ""
    assert judged(sample_tree(interfaces=interfaces({}, {"operUp": False})), rules) == "InterfaceDown"
    assert judged(sample_tree(neighbors=[neighbor("n", FIRST, "down")]), rules) == "NeighborUnhealthy"


def test_interfaces_and_neighbours_that_are_not_required_do_not_count_beside_a_list():
    rules = {**STRICT, "requiredInterfaces": [FIRST], "requiredNeighbors": ["core-1"]}
    sample = sample_tree(
        interfaces=interfaces({}, {"operUp": False, "headroomPercent": 0}),
        neighbors=[neighbor("core-1", FIRST), neighbor("core-2", SECOND, "down")],
    )
    assert judged(sample, rules) == ""


def test_one_of_two_adjacencies_is_named_by_its_whole_identity():
    sample = sample_tree(neighbors=[neighbor("core-1", FIRST), neighbor("core-1", SECOND, "down")])
    assert judged(sample, {**STRICT, "requiredNeighbors": [f"ospf|core-1|{FIRST}|"]}) == ""
    assert judged(sample, {**STRICT, "requiredNeighbors": [f"ospf|core-1|{SECOND}|"]}) == "NeighborUnhealthy"


def test_a_cdp_neighbour_is_discovered_and_never_full():
    discovered = {**neighbor("core-1", FIRST, "discovered"), "identity": f"cdp|core-1|{FIRST}|", "source": "cdp"}
    rules = {**STRICT, "requiredNeighbors": ["core-1"]}
    assert judged(sample_tree(neighbors=[discovered]), rules) == "NeighborUnhealthy"
    assert judged(sample_tree(neighbors=[discovered]), {**rules, "requireNeighborsFull": False}) == ""


def test_a_minimum_of_0_is_a_minimum():
    rules = {**STRICT, "minimumHeadroomPercent": 0}
    unknown = sample_tree(interfaces=interfaces({}, {"headroomPercent": ...}))
    assert judged(unknown, rules) == "HeadroomUnknown"
    assert judged(unknown, {name: rule for name, rule in STRICT.items() if name != "minimumHeadroomPercent"}) == ""


def test_expected_is_the_proven_worker_and_the_recorded_chassis():
    assert Expected.of(device_of(device_tree())) == EXPECTED
    tree = device_tree()
    tree["status"]["networkWorkerRevision"]["observedRevision"] = "sha256:older"
    assert Expected.of(device_of(tree)) == Expected("", "", EXPECTED.device_identity_hash)
    assert Expected.of(device_of({})) == Expected("", "", "")


def test_the_published_chassis_is_expected_by_its_published_hash():
    tree = {"status": {"nodeIdentity": {"physicalIdentity": "foc2416u0mv"}}}
    assert Expected.of(device_of(tree)).device_identity_hash == published_hash("device-identity-hash")


# ---- authority of a grant ----


def test_the_hash_of_a_sample_is_in_our_order_and_depends_on_every_member():
    whole = sample_tree()
    backwards = {name: whole[name] for name in reversed(whole)}
    backwards["interfaces"] = [dict(reversed(item.items())) for item in whole["interfaces"]]
    assert sample_hash(backwards) == sample_hash(whole)
    for member in whole:
        changed = {**whole, member: [] if isinstance(whole[member], list) else "other"}
        assert sample_hash(changed) != sample_hash(whole)
    assert sample_hash(sample_tree(interfaces=list(reversed(whole["interfaces"])))) != sample_hash(whole)
    assert set(whole) <= set(names.SAMPLE_MEMBERS)


def test_an_authority_ends_a_freshness_after_the_collection_began():
    authority = authority_of(sample_tree(), freshness_s=300)
    assert authority is not None
    assert authority.not_after == NOW + timedelta(seconds=300 - 32)
    assert (authority.sample_sequence, authority.worker_pod_uid, authority.producer_revision) == (7, POD_UID, REVISION)
    assert authority_of(sample_tree(collectionStartedAt=...), freshness_s=300) is None


def test_an_authority_holds_for_exactly_the_accepted_sample_and_until_its_end():
    authority = authority_of(sample_tree(), freshness_s=300)
    assert authority is not None
    assert authority.not_after is not None
    assert is_authority_current(authority, sample_tree(), now=NOW)
    assert is_authority_current(authority, sample_tree(), now=authority.not_after - timedelta(microseconds=1))
    assert not is_authority_current(authority, sample_tree(), now=authority.not_after)
    assert not is_authority_current(authority, sample_tree(sampleSequence=8), now=NOW)
    assert not is_authority_current(authority, sample_tree(neighbors=[]), now=NOW)
    assert not is_authority_current(authority, None, now=NOW)
    assert not is_authority_current(None, sample_tree(), now=NOW)


@pytest.mark.parametrize("member", ["evidence_hash", "producer_revision", "worker_pod_uid", "sample_sequence"])
def test_an_authority_that_differs_in_one_member_is_none(member):
    authority = authority_of(sample_tree(), freshness_s=300)
    assert authority is not None
    other = replace(authority, **{member: 1 if member == "sample_sequence" else "other"})
    assert not is_authority_current(other, sample_tree(), now=NOW)


def test_a_sample_is_read_whole():
    sample = sample_of(sample_tree())
    assert sample.flaw == ""
    assert [item.headroom for item in sample.interfaces] == [80, 60]
    assert [item.id for item in sample.neighbors] == ["core-1", "core-2"]

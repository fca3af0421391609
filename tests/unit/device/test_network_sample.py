"""The network sample as it stands in the status of a device (rollouts.md, section 15.5)."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitops_ctl.api.ciscodevice_status import NetworkSample
from gitops_ctl.device.networksample import Collector, Look, failed_sample, sample_of
from gitops_ctl.device.operational import Interface, Neighbor, Seen, Surroundings
from gitops_ctl.fleet.evidence import Expected, Rules, network_problem

START = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
LOOK = Look(START, START + timedelta(seconds=2), sequence=7)
BY = Collector("pod-1", "sha256:" + "b" * 64, "sha256:" + "c" * 64)
UPLINK = Interface("Te1/1/1", up=True, speed=10**10, ingress=4 * 10**9, egress=10**9)
CORE = Neighbor("cdp", "core-1.example.net", "Te1/1/1")


def seen(
    *interfaces: Interface, neighbors: tuple[Neighbor, ...] = (), gaps: tuple[str, ...] = ()
) -> Seen[Surroundings]:
    return Seen(Surroundings(interfaces, neighbors), gaps)


def test_a_complete_look_has_the_members_of_the_contract_in_their_order():
    sample = sample_of(seen(UPLINK, neighbors=(CORE,)), by=BY, look=LOOK)
    assert sample == {
        "workerPodUID": "pod-1",
        "collectionStartedAt": "2026-11-30T18:00:00Z",
        "collectionEndedAt": "2026-11-30T18:00:02Z",
        "sampleSequence": 7,
        "observedAt": "2026-11-30T18:00:02Z",
        "complete": True,
        "producerRevision": BY.revision,
        "deviceIdentityHash": BY.identity_hash,
        "interfaces": [
            {
                "name": "Te1/1/1",
                "operUp": True,
                "headroomPercent": 60,
                "capacityBitsPerSecond": 10**10,
                "ingressBitsPerSecond": 4 * 10**9,
                "egressBitsPerSecond": 10**9,
                "rateSource": "cisco-ios-xe-interfaces-oper:statistics-kbps",
            }
        ],
        "neighbors": [
            {
                "identity": "cdp|core-1.example.net|Te1/1/1|",
                "id": "core-1.example.net",
                "interface": "Te1/1/1",
                "state": "discovered",
                "source": "cdp",
            }
        ],
    }
    order = ["workerPodUID", "collectionStartedAt", "collectionEndedAt", "sampleSequence", "observedAt", "complete"]
    assert list(sample) == [*order, "producerRevision", "deviceIdentityHash", "interfaces", "neighbors"]


def test_a_sample_is_what_the_kind_allows():
    for sample in (
        sample_of(seen(UPLINK, neighbors=(CORE,)), by=BY, look=LOOK),
        failed_sample("late", by=BY, look=LOOK),
    ):
        assert NetworkSample.model_validate_json(json.dumps(sample)).complete is sample["complete"]


def test_a_partial_look_is_incomplete_and_keeps_what_was_seen():
    sample = sample_of(seen(UPLINK, gaps=("Te1/1/2 has no oper-status",)), by=BY, look=LOOK)
    assert (sample["complete"], sample["unknownReason"]) == (False, "Te1/1/2 has no oper-status")
    assert len(sample["interfaces"]) == 1


def test_a_look_that_did_not_happen_says_why():
    sample = failed_sample("NetconfUnavailable: no connection to port 830", by=BY, look=LOOK)
    assert (sample["complete"], sample["interfaces"], sample["neighbors"]) == (False, [], [])
    assert sample["unknownReason"].startswith("NetconfUnavailable")
    assert failed_sample("", by=BY, look=LOOK)["unknownReason"]


@pytest.mark.parametrize(
    ("change", "headroom"),
    [
        ({}, 60),
        ({"egress": 9_999_999_999}, 0),
        ({"egress": 2 * 10**10}, 0),
        ({"ingress": 0, "egress": 0}, 100),
        ({"ingress": 1, "egress": 0}, 99),
        ({"speed": None}, None),
        ({"speed": 0}, None),
        ({"ingress": None}, None),
        ({"egress": None}, None),
    ],
)
def test_headroom_is_what_the_busier_direction_leaves_and_unknown_without_one_of_its_numbers(change, headroom):
    (entry,) = sample_of(seen(replace(UPLINK, **change)), by=BY, look=LOOK)["interfaces"]
    assert entry.get("headroomPercent") == headroom
    assert ("rateSource" in entry) is (headroom is not None)


def test_of_many_interfaces_the_required_and_the_adjacent_ones_stay():
    many = tuple(replace(UPLINK, name=f"Gi1/0/{number:03}") for number in range(200))
    look = replace(LOOK, required=frozenset({"Gi1/0/199"}))
    neighbors = (replace(CORE, interface="Gi1/0/150"),)
    sample = sample_of(seen(*many, neighbors=neighbors), by=BY, look=look)
    names = [entry["name"] for entry in sample["interfaces"]]
    assert len(names) == 64
    assert names == sorted(names)
    assert {"Gi1/0/199", "Gi1/0/150", "Gi1/0/000"} <= set(names)
    assert sample["complete"]


def test_what_does_not_fit_makes_the_sample_incomplete():
    many = tuple(replace(UPLINK, name=f"Gi1/0/{number:03}") for number in range(200))
    required = replace(LOOK, required=frozenset(item.name for item in many))
    assert not sample_of(seen(*many), by=BY, look=required)["complete"]
    neighbors = tuple(replace(CORE, id=f"core-{number}") for number in range(65))
    crowded = sample_of(seen(UPLINK, neighbors=neighbors), by=BY, look=LOOK)
    assert not crowded["complete"]
    assert len(crowded["neighbors"]) == 64


def test_one_neighbour_that_speaks_both_protocols_is_one_adjacency():
    both = (
        CORE,
        replace(CORE, source="lldp", id="Core-1.example.net"),
        replace(CORE, source="lldp", interface="Te1/1/2"),
    )
    sample = sample_of(seen(UPLINK, neighbors=both), by=BY, look=LOOK)
    assert [entry["identity"] for entry in sample["neighbors"]] == [
        "cdp|core-1.example.net|Te1/1/1|",
        "lldp|core-1.example.net|Te1/1/2|",
    ]


class TestGate:
    """The gate judges what is collected here."""

    RULES = Rules(
        required_interfaces=("Te1/1/1",),
        required_neighbors=("core-1.example.net",),
        interfaces_up=True,
        minimum_headroom=50,
    )
    EXPECTED = Expected(BY.revision, BY.pod_uid, BY.identity_hash)

    def judged(self, found, *, look=LOOK, later_s=10) -> str:
        sample = sample_of(found, by=BY, look=look)
        now = look.ended + timedelta(seconds=later_s)
        return network_problem(sample, rules=self.RULES, expected=self.EXPECTED, now=now, freshness_s=300)

    def test_a_complete_look_passes(self):
        assert self.judged(seen(UPLINK, neighbors=(CORE,))) == ""

    def test_a_partial_look_does_not(self):
        assert self.judged(seen(UPLINK, neighbors=(CORE,), gaps=("a gap",))) == "EvidenceIncomplete"

    def test_a_look_that_did_not_happen_does_not(self):
        sample = failed_sample("NetconfUnavailable", by=BY, look=LOOK)
        found = network_problem(sample, rules=self.RULES, expected=self.EXPECTED, now=LOOK.ended, freshness_s=300)
        assert found == "EvidenceIncomplete"

    def test_a_slow_look_does_not(self):
        slow = replace(LOOK, ended=START + timedelta(seconds=61))
        assert self.judged(seen(UPLINK, neighbors=(CORE,)), look=slow) == "EvidenceCollectionSlow"

    def test_an_old_look_does_not(self):
        assert self.judged(seen(UPLINK, neighbors=(CORE,)), later_s=301) == "EvidenceStale"

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"up": False}, "InterfaceDown"),
            ({"speed": None}, "HeadroomUnknown"),
            ({"ingress": 9 * 10**9}, "TransferHeadroomInsufficient"),
            ({"name": "Te9/9/9"}, "InterfaceEvidenceMissing"),
        ],
    )
    def test_what_the_device_says_counts(self, change, reason):
        assert self.judged(seen(replace(UPLINK, **change), neighbors=(CORE,))) == reason

    def test_a_required_neighbour_that_is_away_counts(self):
        assert self.judged(seen(UPLINK)) == "AlternatePathUnavailable"

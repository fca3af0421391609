"""The plan in the order of its hash: what is kept, what is left out, what is sorted."""

import json
import random
from pathlib import Path

import pytest

from gitops_ctl.fleet.encoding import compact_json, sha256_of
from gitops_ctl.rollout.intent import intent_hash
from gitops_ctl.rollout.planorder import ordered_intent, ordered_plan

VECTORS = Path(__file__).parents[2] / "vectors" / "rollouts"
VECTOR = json.loads((VECTORS / "plan-hash.json").read_text())
STORED = VECTOR["derived_from"]["spec"]["plan"]


def shuffled(tree, randomness):
    """The same tree with its members, not its lists, in another order."""
    if isinstance(tree, dict):
        members = list(tree.items())
        randomness.shuffle(members)
        return {name: shuffled(value, randomness) for name, value in members}
    return [shuffled(item, randomness) for item in tree] if isinstance(tree, list) else tree


def test_the_published_plan_is_encoded_byte_for_byte():
    assert compact_json(ordered_plan(STORED)) == compact_json(VECTOR["input"]["plan"])


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_members_in_the_object_says_nothing(seed):
    assert compact_json(ordered_plan(shuffled(STORED, random.Random(seed)))) == compact_json(VECTOR["input"]["plan"])


@pytest.mark.parametrize(
    "path",
    [("image", "sources"), ("canaries",), ("budgets", "domains"), ("targets", "selector", "matchExpressions")],
    ids="/".join,
)
def test_the_order_of_a_list_counts(path):
    first, second = (
        {"name": "b", "key": "b", "topologyKey": "b"},
        {"name": "a", "key": "a", "topologyKey": "a"},
    )

    def planned(items):
        tree = items
        for step in reversed(path):
            tree = {step: tree}
        return sha256_of(ordered_plan(tree))

    assert planned([first, second]) != planned([second, first])


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        pytest.param({"targets": {"allowAll": False}}, {"targets": {"selector": {}}}, id="allowAll false is left out"),
        pytest.param(
            {"targets": {"allowAll": True}}, {"targets": {"selector": {}, "allowAll": True}}, id="allowAll true"
        ),
        pytest.param({"rollbackOnFailure": False}, {"rollbackOnFailure": False}, id="rollbackOnFailure false is kept"),
        pytest.param({"pauseAfterCanary": False}, {"pauseAfterCanary": False}, id="pauseAfterCanary false is kept"),
        pytest.param(
            {"health": {"canarySoakSeconds": 0, "waveSoakSeconds": 5}},
            {"health": {"waveSoakSeconds": 5}},
            id="a soak of zero is left out",
        ),
        pytest.param(
            {"health": {"network": {"enabled": False, "requireCompleteEvidence": False}}},
            {"health": {"network": {"enabled": False}}},
            id="enabled is always written",
        ),
        pytest.param(
            {"health": {"network": {"enabled": True, "minimumHeadroomPercent": 0}}},
            {"health": {"network": {"enabled": True, "minimumHeadroomPercent": 0}}},
            id="no headroom is not the same as headroom zero",
        ),
        pytest.param(
            {"image": {"sources": [{"name": "a", "deviceSelector": {}, "priority": 0}]}},
            {"image": {"sources": [{"name": "a", "deviceSelector": {}, "priority": 0}]}},
            id="an empty deviceSelector is kept and priority zero written",
        ),
        pytest.param(
            {"image": {"sources": [{"name": "a"}]}},
            {"image": {"sources": [{"name": "a", "priority": 0}]}},
            id="priority is written when it is not there",
        ),
        pytest.param(
            {"requestedAt": "2026-10-02T01:28:00.5+02:00"}, {"requestedAt": "2026-10-01T23:28:00Z"}, id="times are UTC"
        ),
        pytest.param(
            {"maintenanceWindow": {"notAfter": "2026-10-01T23:28:00+00:00"}},
            {"maintenanceWindow": {"notAfter": "2026-10-01T23:28:00Z"}},
            id="half a window",
        ),
        pytest.param(
            {"workloads": {"policy": "Drain", "drain": {"maxPods": 2, "namespaces": ["b", "a"]}}},
            {"workloads": {"policy": "Drain", "drain": {"namespaces": ["b", "a"], "maxPods": 2}}},
            id="namespaces are not sorted",
        ),
        pytest.param({"unheardOf": 1}, {}, id="a member that is not hashed"),
    ],
)
def test_what_is_written_of_a_member(stored, written):
    empty = {"targets": {"selector": {}}, "image": {}, "budgets": {}, "workloads": {}, "health": {}}
    found = ordered_plan(stored)
    assert {name: found[name] for name in stored if name in found} == written
    assert {name: value for name, value in found.items() if name not in stored} == {
        name: value for name, value in empty.items() if name not in stored
    }
    assert list(found) == [name for name in ordered_plan({**STORED, **stored}) if name in found]


def test_labels_are_sorted_and_expressions_are_not():
    selector = {
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [{"values": ["y", "x"], "operator": "In", "key": "k"}, {"key": "e", "operator": "Exists"}],
    }
    text = compact_json(ordered_plan({"targets": {"selector": selector}})["targets"]).decode()
    assert text == (
        '{"selector":{"matchLabels":{"a":"2","b":"1"},"matchExpressions":'
        '[{"key":"k","operator":"In","values":["y","x"]},{"key":"e","operator":"Exists"}]}}'
    )


def test_the_characters_that_go_escapes_are_escaped_in_a_plan():
    text = compact_json(ordered_plan({"requestedBy": "<a&b>é"})["requestedBy"]).decode()
    assert text == '"\\u003ca\\u0026b\\u003eé"'


def test_the_intent_of_two_requests_of_the_same_thing_is_one():
    again = {**STORED, "requestedBy": "network-author", "requestedAt": "2026-11-01T00:00:00Z"}
    assert ordered_intent(again) == ordered_intent(STORED)
    devices = [("uid-b", 1), ("uid-a", 7)]
    said = intent_hash(STORED, semantic_hash="sha256:a", devices=devices)
    assert intent_hash(again, semantic_hash="sha256:a", devices=reversed(devices)) == said
    assert intent_hash(again, semantic_hash="sha256:b", devices=devices) != said
    assert intent_hash({**again, "targetVersion": "17.18.04"}, semantic_hash="sha256:a", devices=devices) != said
    assert intent_hash(again, semantic_hash="sha256:a", devices=[("uid-b", 2), ("uid-a", 7)]) != said

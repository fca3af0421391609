"""Which labels stand on the Node of a device (rollouts.md, section 16)."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.projection import (
    Projection,
    ProjectionProblem,
    identity_labels,
    projected_labels,
    projection_hash,
)
from tests.support.fleet_objects import CACHE, REDUNDANCY, SITE, a_policy, device_labels, device_tree
from tests.support.fleet_policies import by
from tests.support.fleet_vectors import published_hash, vector

IDENTITY = {
    names.HOSTNAME: "switch-1",
    "platform": "cisco-ios-xe",
    "provider": "cisco-apphosting",
    "type": "virtual-kubelet",
}
PROJECTED = {names.REGION: "north", names.ZONE: "zone-a", SITE: "plant-1"}


def projected(labels=None, spec=None):
    tree = device_tree()
    tree["metadata"]["labels"] = device_labels() if labels is None else labels
    tree["spec"] |= spec or {}
    return projected_labels(device_of(tree), a_policy())


def test_the_published_node_has_the_published_hash():
    node = vector("projection-hash")["derived_from"]["metadata"]
    keys = node["annotations"][names.PROJECTED_KEYS].split(",")
    assert projection_hash({key: node["labels"][key] for key in keys}) == published_hash("projection-hash")
    assert node["annotations"][names.PROJECTION_HASH] == published_hash("projection-hash")


def test_the_published_device_would_be_projected_onto_exactly_that_node():
    published = vector("projection-hash")["input"]
    lab = "topology.cisco.vk/lab-node"
    policy = a_policy(
        fleetSelector=by(lab, "cat9k-lab-103"),
        requiredTopologyKeys=[lab, SITE, names.REGION, names.ZONE],
        projectedTopologyKeys=[lab, SITE, names.REGION, names.ZONE],
        domainMaxConcurrentTransfers={names.REGION: 1},
    )
    labels = {key: value for key, value in published.items() if "/" in key and key != names.HOSTNAME}
    tree = device_tree("cat9k-lab-103", labels=labels, policy=policy)
    found = projected_labels(device_of(tree), policy)
    assert isinstance(found, Projection)
    assert list(found.labels.items()) == list(published.items())
    assert found.hash == published_hash("projection-hash")


def test_a_node_carries_identity_and_projected_labels_and_no_risk_fact():
    found = projected()
    assert isinstance(found, Projection)
    assert found.labels == {**IDENTITY, **PROJECTED}
    assert not {REDUNDANCY, CACHE, names.IMAGE_FAMILY, names.MANAGED} & set(found.labels)
    assert list(found.labels) == sorted(found.labels)
    assert found.hash == projection_hash(found.labels)


def test_the_hostname_is_that_of_the_node():
    assert identity_labels("edge-1")[names.HOSTNAME] == "edge-1"


def test_ordinary_labels_of_the_spec_are_projected_and_legacy_topology_that_agrees_is_not_twice():
    legacy = {names.ZONE: "zone-a", REDUNDANCY: "pair-1", "type": "virtual-kubelet"}
    spec = {"region": "north", "zone": "zone-a", "labels": {"example.net/owner": "network", **legacy}}
    found = projected(spec=spec)
    assert isinstance(found, Projection)
    assert found.labels == {**IDENTITY, **PROJECTED, "example.net/owner": "network"}


@pytest.mark.parametrize("key", [names.REGION, names.ZONE, SITE, CACHE, REDUNDANCY])
@pytest.mark.parametrize("value", ["", None], ids=("empty", "absent"))
def test_a_required_label_that_is_missing_is_incomplete(key, value):
    labels = device_labels(**{key: value})
    found = projected({name: text for name, text in labels.items() if text is not None})
    assert isinstance(found, ProjectionProblem)
    assert found.reason == "RequiredLabelsMissing"
    assert key in found.message
    assert not found.is_conflict


CONFLICTS = {
    "region": {"region": "south"},
    "zone": {"zone": "zone-b"},
    "a topology label": {"labels": {names.ZONE: "zone-b"}},
    "a topology label that the metadata lacks": {"labels": {"topology.cisco.vk/rack": "r1"}},
    "a risk fact that the metadata lacks": {"labels": {"operations.cisco.vk/tier": "1"}},
    "a locality that differs": {"labels": {CACHE: "other"}},
    "the identity": {"labels": {"platform": "other"}},
    "the host name": {"labels": {names.HOSTNAME: "other"}},
    "a label that is no label": {"labels": {"a b": "x"}},
    "a value that is no value": {"labels": {"example.net/owner": "a b"}},
}


@pytest.mark.parametrize("spec", CONFLICTS.values(), ids=CONFLICTS)
def test_legacy_topology_that_contradicts_the_metadata_blocks(spec):
    found = projected(spec=spec)
    assert isinstance(found, ProjectionProblem)
    assert found.reason == "LegacyTopologyDisagrees"
    assert found.is_conflict


def test_an_ordinary_label_that_the_metadata_gives_another_value_blocks():
    found = projected(device_labels(**{"example.net/owner": "a"}), {"labels": {"example.net/owner": "b"}})
    assert isinstance(found, ProjectionProblem)
    assert "example.net/owner=b" in found.message


@pytest.mark.property
@settings(max_examples=30)
@given(st.dictionaries(st.text("abc./", min_size=1, max_size=5), st.text("xyz", max_size=3)), st.integers(0, 2**32))
def test_the_hash_of_a_projection_depends_on_no_order(labels, seed):
    keys = list(labels)
    Random(seed).shuffle(keys)
    assert projection_hash({key: labels[key] for key in keys}) == projection_hash(labels)

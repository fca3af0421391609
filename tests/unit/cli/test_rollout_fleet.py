"""The fleet that software rollouts get from the room of the devices: which change of a Node makes another version of a device."""

from typing import Any

import pytest

from gitops_ctl.cli.rolloutfleet import ManagedFleet
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.cache import Change, Entry
from gitops_ctl.rollout.fleetlook import Version
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.seen import seen_device, seen_node
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.fleet_objects import device_tree, node_tree


def version(device: Any, node: Any) -> Version:
    client = direct_client(ApiServer(), component="manager", clock=SystemClock())
    caches = Caches(client, options=Options())
    key = NamespacedName.of(device)
    caches.devices.cache.change(Change("added", key, None, Entry("device-uid", "1", seen_device(device))))
    found = NamespacedName("", node["metadata"]["name"])
    value = Entry("node-uid", node["metadata"]["resourceVersion"], seen_node(node))
    caches.nodes.cache.change(Change("added", found, None, value))
    ((seen_key, seen),) = ManagedFleet(caches, Options()).seen()
    assert seen_key == key
    return seen


def beaten(node: Any, at: str) -> Any:
    """The Node after both writers wrote it at that time."""
    conditions = [{**one, "lastHeartbeatTime": at} for one in node["status"]["conditions"]]
    metadata = {**node["metadata"], "resourceVersion": f"{node['metadata']['resourceVersion']}1"}
    return {**node, "metadata": metadata, "status": {**node["status"], "conditions": conditions}}


@pytest.fixture
def device() -> Any:
    tree = device_tree("edge-1")
    tree["status"]["healthObservation"]["nodeReadyHeartbeatTime"] = "2026-02-01T00:00:00Z"
    tree["status"]["topologyProjection"]["lastSuccessfulTime"] = "2026-01-01T00:00:00Z"
    return tree


def test_a_heartbeat_that_proves_nothing_new_makes_no_other_version(device: Any) -> None:
    node = beaten(node_tree(device), "2026-02-01T00:00:00Z")
    assert version(device, node) == version(device, beaten(node, "2026-02-01T00:01:00Z"))


def test_a_heartbeat_from_before_the_observed_one_makes_another_version_each_time(device: Any) -> None:
    node = beaten(node_tree(device), "2026-01-31T23:59:59Z")
    assert version(device, node) != version(device, beaten(node, "2026-01-31T23:59:59Z"))
    assert version(device, beaten(node, "2026-02-01T00:01:00Z")) != version(device, node)


def test_anything_else_of_the_node_makes_another_version(device: Any) -> None:
    node = beaten(node_tree(device), "2026-02-01T00:00:00Z")
    guarded = {**node, "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    assert version(device, node) != version(device, guarded)


def test_without_an_observed_heartbeat_every_version_of_the_node_counts(device: Any) -> None:
    del device["status"]["healthObservation"]
    node = beaten(node_tree(device), "2026-02-01T00:00:00Z")
    assert version(device, node) != version(device, beaten(node, "2026-02-01T00:01:00Z"))

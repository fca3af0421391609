"""The shipped rule for machine types, through the real nfd-master: its Nodes get what a flavor is made from (topology-scheduling.md, D40)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gitops_ctl.scheduling.hardware import fed_by
from gitops_ctl.scheduling.options import Options
from tests.support.nfd import node_feature
from tests.support.processes import until
from tests.support.topology_plane import TopologyPlane

pytestmark = pytest.mark.peers

RULE = Path(__file__).resolve().parents[2] / "examples-repo/topology/machine-types.yaml"
GROUP = "/apis/nfd.k8s-sigs.io/v1alpha1"
AMD = {"vendor_id": "AMD", "family": "23", "id": "49"}
INTEL = {"vendor_id": "Intel", "family": "6", "id": "143"}


def _machine(plane: TopologyPlane, name: str, model: dict[str, str], **local: str) -> None:
    """A Node as nfd-worker describes it: in an object of its own name, in the namespace of Node Feature Discovery."""
    plane.add_node(name, {})
    tree = node_feature(name, name, {})
    tree["spec"]["features"]["attributes"] = {
        "cpu.model": {"elements": model},
        "local.feature": {"elements": {key.replace("_", "-"): value for key, value in local.items()}},
    }
    made = plane.plane.request("POST", f"{GROUP}/namespaces/node-feature-discovery/nodefeatures", tree)
    assert made.status == 201, made.body


def _labels(plane: TopologyPlane, name: str) -> dict[str, str]:
    tree: Any = plane.plane.request("GET", f"/api/v1/nodes/{name}").body
    labels = tree["metadata"]["labels"]
    return {key: value for key, value in labels.items() if "gpustack.ai" in key}


def test_machines_of_a_known_type_become_part_of_a_pool_and_others_do_not(peer_plane: TopologyPlane) -> None:
    _machine(peer_plane, "rule-amd", AMD)
    _machine(peer_plane, "rule-intel", INTEL, machine_cores="112")
    _machine(peer_plane, "rule-intel-untold", INTEL)
    _machine(peer_plane, "rule-other", {**AMD, "family": "25"})
    made = peer_plane.plane.request("POST", f"{GROUP}/nodefeaturerules", yaml.safe_load(RULE.read_text()))
    assert made.status == 201, made.body
    until(lambda: _labels(peer_plane, "rule-amd") and _labels(peer_plane, "rule-intel"), what="the rule has its effect")

    labels = {**_labels(peer_plane, "rule-amd"), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    (flavor,) = fed_by({**labels, "topology.gpustack.ai/profile": "fnv64-0"}, options=Options()).flavors
    assert flavor.base == "gpustack--amd-23-49-linux-amd64-96c"

    general = "general.feature.gpustack.ai"
    assert _labels(peer_plane, "rule-amd") == {
        "gpustack.ai/managed": "true",
        f"{general}/amd-23-49": "true",
        f"{general}/amd-23-49.count": "96",
    }
    assert _labels(peer_plane, "rule-intel")[f"{general}/intel-6-143.count"] == "112"
    assert _labels(peer_plane, "rule-intel-untold") == _labels(peer_plane, "rule-other") == {}

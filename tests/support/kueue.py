"""Kueue for tests: its programs, and its objects as people write them.

A Workload without a Job behind it is evicted in two halves: Kueue marks it, and whoever runs it takes the reservation away.  Here that
is `eviction_finished`, for the real Kueue and the stand-in alike.
"""

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest

from gitops_ctl.local.kueue import find_kueue
from gitops_ctl.local.progress import stderr_progress
from tests.doubles.kueue_objects import condition, set_condition
from tools.peers.kueue_manager import find_kueue_manager

API_VERSION = "kueue.x-k8s.io/v1beta2"
BASE = f"/apis/{API_VERSION}"
ZONE, RACK = "topology.gpustack.ai/zone", "topology.gpustack.ai/rack"
HOSTNAME = "kubernetes.io/hostname"


@pytest.fixture(scope="session")
def kueue() -> Path:
    """The small program, built when it is missing."""
    return asyncio.run(find_kueue(progress=stderr_progress()))


@pytest.fixture(scope="session")
def kueue_manager() -> Path:
    """The full manager with its webhooks, built when it is missing."""
    return asyncio.run(find_kueue_manager(progress=stderr_progress()))


def topology(name: str, *levels: str) -> dict[str, Any]:
    """A Topology with these level keys and the host name."""
    return _object("Topology", name, {"levels": [{"nodeLabel": key} for key in (*levels, HOSTNAME)]})


def flavor(name: str, labels: dict[str, str], *, levels: str = "") -> dict[str, Any]:
    """A ResourceFlavor that tolerates everything; `levels` is the name of its Topology."""
    spec: dict[str, Any] = {"nodeLabels": labels, "tolerations": [{"operator": "Exists"}]}
    return _object("ResourceFlavor", name, {**spec, "topologyName": levels} if levels else spec)


def cluster_queue(name: str, quotas: dict[str, int], **spec: Any) -> dict[str, Any]:
    """A ClusterQueue for every namespace: CPUs by flavor."""
    return _object("ClusterQueue", name, {"namespaceSelector": {}, **groups(quotas), **spec})


def groups(quotas: dict[str, int]) -> dict[str, Any]:
    """The resource groups of a queue, none without a flavor."""
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]} for name, cpus in quotas.items()
    ]
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]} if flavors else {}


def local_queue(name: str, queue: str) -> dict[str, Any]:
    """A LocalQueue that leads to a ClusterQueue."""
    return _object("LocalQueue", name, {"clusterQueue": queue})


def workload(name: str, queue: str, *, count: int = 1, required: str = "", **requests: str) -> dict[str, Any]:
    """A Workload of `count` pods, each with these requests; `required` is the level that must hold all of them."""
    container = {"name": "main", "image": "example.net/main:1", "resources": {"requests": requests}}
    pods: dict[str, Any] = {
        "name": "main",
        "count": count,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    if required:
        pods["topologyRequest"] = {"required": required}
    return _object("Workload", name, {"queueName": queue, "podSets": [pods]})


def eviction_finished(tree: dict[str, Any]) -> dict[str, Any] | None:
    """The Workload after whoever ran it has stopped it; None when it is not being evicted."""
    if condition(tree, "Evicted") != "True" or "admission" not in tree["status"]:
        return None
    done = copy.deepcopy(tree)
    del done["status"]["admission"]
    now = next(each["lastTransitionTime"] for each in done["status"]["conditions"] if each["type"] == "Evicted")
    generation = int(done["metadata"]["generation"])
    for kind, reason in (("QuotaReserved", "Pending"), ("Admitted", "NoReservation")):
        done["status"]["conditions"] = set_condition(
            done["status"]["conditions"], kind, "False", reason, "stopped", generation=generation, now=now
        )
    return done


def reason(tree: dict[str, Any], kind: str) -> str:
    """`Status/Reason` of a condition, empty when it is not there."""
    found = tree.get("status", {}).get("conditions", ())
    return next((f"{each['status']}/{each['reason']}" for each in found if each["type"] == kind), "")


def is_observed(queue: dict[str, Any]) -> bool:
    """Whether Active speaks of the newest spec, so that the counters are current too."""
    found = queue.get("status", {}).get("conditions", ())
    seen = next((each.get("observedGeneration", 0) for each in found if each["type"] == "Active"), 0)
    return bool(seen >= queue["metadata"]["generation"])


def totals(queue: dict[str, Any], member: str) -> dict[str, str]:
    """CPUs by flavor in `flavorsReservation` or `flavorsUsage`."""
    return {each["name"]: each["resources"][0]["total"] for each in queue.get("status", {}).get(member, ())}


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}

"""The cluster worker as a process, on a real target cluster with Talos peers: what it sees, and that it writes nothing else."""

import asyncio
from typing import Any

import pytest

from gitops_ctl.core.errors import NotFound
from gitops_ctl.local.targetcluster import CONTROL_PLANES, WORKERS, CiliumValues, roll_out
from tests.support.sync_cluster import until
from tests.support.target_cluster import (
    APPS,
    CLUSTER,
    TargetWorld,
    kwok,
    peers,
    target_plane,
    target_world,
)

__all__ = ["kwok", "peers", "target_plane", "target_world"]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ALL = (*CONTROL_PLANES, *WORKERS)


async def test_a_look_shows_machines_cilium_and_kube_proxy(target_world: TargetWorld) -> None:
    target_world.start_worker()
    await target_world.begin()
    seen = await target_world.observed(1)
    assert "problems" not in seen or seen["problems"] == []
    machines = {item["name"]: item for item in seen["machines"]}
    assert set(machines) == set(ALL)
    for name, item in machines.items():
        assert item["reachable"], item
        assert "problem" not in item, item
        assert item["hashActive"] == item["hashPersistent"]
        assert (item["hashWanted"] != item["hashActive"]) == (name in CONTROL_PLANES)
        assert item["kubePrism"] == {"healthy": True, "port": 7445}
        assert {gate["name"]: gate["passed"] for gate in item["gates"]}["node"], item["gates"]
    assert machines["cp-1"]["contract"] == "v1.14"
    assert (seen["cilium"]["value"], seen["cilium"]["mode"]) == ("false", "enabled")
    assert seen["cilium"]["agents"]["ready"] == len(ALL)
    assert (seen["cilium"]["serviceHost"], seen["cilium"]["servicePort"]) == ("localhost", "7445")
    assert seen["kubeProxy"]["present"]
    assert seen["kubeProxy"]["pods"] == len(ALL)
    assert sorted(item["kind"] for item in seen["kubeProxy"]["objects"]) == [
        "ClusterRoleBinding",
        "ConfigMap",
        "DaemonSet",
        "ServiceAccount",
    ]
    cluster: Any = await target_world.own.get(target_world.path("talosclusters", CLUSTER))
    assert cluster["status"]["cni"]["observedMode"] == "enabled"
    machine: Any = await target_world.own.get(target_world.path("talosmachines", "cp-2"))
    assert machine["status"]["observed"]["hash"] == machines["cp-2"]["hashActive"]
    assert machine["status"]["observed"]["kubeProxy"] == "enabled"


async def test_trap_1_a_changed_configuration_without_a_restart_shows_old_agents(target_world: TargetWorld) -> None:
    target_world.start_worker()
    await target_world.begin()
    before = (await target_world.observed(1))["cilium"]
    await target_world.cilium(True, roll_out_pods=False)
    seen = (await target_world.observed(2))["cilium"]
    assert (seen["value"], seen["mode"]) == ("true", "replaced")
    assert seen["agents"]["updated"] == seen["agents"]["ready"] == len(ALL)
    assert seen["oldestAgentStart"] == before["oldestAgentStart"] <= seen["configWrittenAt"]
    assert seen["templateGeneration"] == before["templateGeneration"]

    await asyncio.sleep(1.1)  # times of the API server have whole seconds
    await target_world.cilium(True, roll_out_pods=True)
    after = (await target_world.observed(3))["cilium"]
    assert after["checksum"]
    assert after["oldestAgentStart"] > after["configWrittenAt"]
    assert after["templateGeneration"] > seen["templateGeneration"]


async def test_trap_2_an_operator_that_is_not_rolled_out_shows(target_world: TargetWorld) -> None:
    target_world.start_worker()
    await target_world.begin()
    await target_world.admin.patch_merge(f"{APPS}/deployments/cilium-operator", {"spec": {"replicas": 3}})

    async def rolled_out() -> bool:
        tree: Any = await target_world.admin.get(f"{APPS}/deployments/cilium-operator")
        return bool(tree["status"].get("readyReplicas") == 3)

    await until(rolled_out, what="the operator has three replicas")
    pod = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}}}}
    await target_world.admin.patch_merge(f"{APPS}/deployments/cilium-operator", pod)
    seen = (await target_world.observed(1))["cilium"]["operator"]
    assert seen["updated"] < seen["desired"] or seen["observedGeneration"] < seen["generation"]
    await target_world.admin.delete(f"{APPS}/deployments/cilium-operator")


async def test_trap_3_an_override_names_its_nodes(target_world: TargetWorld) -> None:
    await _define_node_configs(target_world)
    path = "/apis/cilium.io/v2/namespaces/kube-system/ciliumnodeconfigs/canary"
    tree = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNodeConfig",
        "metadata": {"name": "canary", "namespace": "kube-system"},
        "spec": {
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "worker-2"}},
            "defaults": {"kube-proxy-replacement": "true"},
        },
    }
    await target_world.admin.apply(path, tree, manager="tests", force=True)
    target_world.start_worker()
    await target_world.begin()
    seen = await target_world.observed(1)
    await target_world.admin.delete(path)
    assert seen["cilium"]["overrides"] == [{"object": "kube-system/canary", "value": "true", "nodes": ["worker-2"]}]


async def test_a_change_of_cilium_is_seen_without_being_asked(target_world: TargetWorld) -> None:
    target_world.start_worker("--observation-interval=30")
    await target_world.begin()
    await target_world.observed(1)
    await roll_out(target_world.admin, CiliumValues(True, False))

    async def live() -> bool:
        tree: Any = await target_world.own.get(target_world.path("talosclusters", CLUSTER))
        return bool(tree["status"]["cni"]["observedMode"] == "replaced")

    await until(live, what="the changed mode is seen", timeout_s=20)


async def test_one_hanging_machine_delays_no_other(target_world: TargetWorld) -> None:
    target_world.machines["cp-3"].fault("delay", seconds=20, times=1000)
    target_world.start_worker()
    await target_world.begin()

    async def others() -> bool:
        seen = (await target_world.status()).get("observed", {})
        names = {item["name"] for item in seen.get("machines", ()) if item["reachable"]}
        return names == set(ALL) - {"cp-3"}

    await until(others, what="the other machines are seen", timeout_s=15)
    target_world.machines["cp-3"].clear_faults()


async def test_an_idle_worker_writes_nothing(target_world: TargetWorld) -> None:
    worker = target_world.start_worker()
    await target_world.begin()
    await target_world.observed(1)
    await target_world.ask()
    await asyncio.sleep(2 * 0.5)  # what the last change of the requests caused has been written
    target_world.audit.mark()
    looks = _looks(target_world)
    await until(lambda: _looks(target_world) >= looks + 3, what="three more looks")
    assert target_world.audit.writes(user=target_world.user) == []
    assert await worker.terminate() == 0


async def test_the_worker_asks_for_nothing_beyond_its_rights(target_world: TargetWorld) -> None:
    target_world.start_worker()
    await target_world.begin()
    await target_world.observed(1)
    entries = target_world.audit.entries(user=target_world.user)
    assert entries
    asked = {entry["objectRef"]["resource"] for entry in entries if "objectRef" in entry}
    assert "secrets" not in asked
    codes = {entry["responseStatus"]["code"] for entry in entries if "responseStatus" in entry}
    assert 403 not in codes
    narrow = target_world.audit.entries(user=f"target-worker-{target_world.namespace}")
    assert not [entry for entry in narrow if entry.get("responseStatus", {}).get("code") == 403]


async def test_a_credential_that_is_not_mounted_is_told(target_world: TargetWorld) -> None:
    (target_world.mounts / "clusters" / CLUSTER / "talosconfig").unlink()
    (target_world.mounts / "clusters" / CLUSTER / "kubeconfig").unlink()
    target_world.start_worker()
    await target_world.begin()
    seen = await target_world.observed(1)
    assert [item["reason"] for item in seen["problems"]] == ["CredentialNotMounted"]
    assert "north-kube" in seen["problems"][0]["message"]
    assert {item["problem"]["reason"] for item in seen["machines"]} == {"CredentialNotMounted"}
    assert "cilium" not in seen


def _looks(world: TargetWorld) -> int:
    return int(world.machines["worker-1"].state()["calls"]["Version"])


async def _define_node_configs(world: TargetWorld) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ciliumnodeconfigs.cilium.io"},
        "spec": {
            "group": "cilium.io",
            "names": {"kind": "CiliumNodeConfig", "plural": "ciliumnodeconfigs"},
            "scope": "Namespaced",
            "versions": [{"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnodeconfigs.cilium.io"
    await world.admin.apply(path, definition, manager="tests", force=True)

    async def served() -> bool:
        try:
            await world.admin.get("/apis/cilium.io/v2/ciliumnodeconfigs")
        except NotFound:
            return False
        return True

    await until(served, what="CiliumNodeConfigs are served")

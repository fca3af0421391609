"""The cluster worker's effects on real peers: both directions, lost replies, kills and withdrawals (cni-switch.md, 2.1, 7, 8, 9.3, 17)."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from gitops_ctl.local.targetcluster import CONTROL_PLANES, WORKERS
from tests.support.cluster import ControlPlaneHandle
from tests.support.sync_cluster import until
from tests.support.talos_configs import KEY, SECRET
from tests.support.target_cluster import (
    APPS,
    BINDING,
    CLUSTER,
    GROUP,
    INVENTORY,
    SYSTEM,
    Peers,
    TargetWorld,
    installed,
    kwok,
    peers,
    target_plane,
    target_world,
    target_world_on,
)

__all__ = ["kwok", "peers", "target_plane", "target_world"]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PLURALS = ("talosclusters", "talosmachines", "talosoperations")
REMOVE = {"id": f"replaced/6-remove/{CLUSTER}#90", "action": "remove-kube-proxy", "mode": "replaced"}
RESTORE = {"id": f"enabled/4-verify/{CLUSTER}#91", "action": "restore-kube-proxy", "mode": "enabled"}
PROBE = {"id": f"replaced/7-probe/{CLUSTER}#92", "action": "probe-service", "mode": "replaced"}


async def switch_machines(world: TargetWorld, mode: str) -> None:
    """Every machine, as the executor asks for it: with the hashes that were seen."""
    seen = await world.observed(10, mode=mode)
    for item in seen["machines"]:
        if item["hashActive"] == item["hashWanted"]:
            continue
        request = {
            "id": f"{mode}/5-switch-machines/{item['name']}#20",
            "action": "apply-mode",
            "machine": item["name"],
            "mode": mode,
            "hashBefore": item["hashActive"],
            "hashWanted": item["hashWanted"],
        }
        await world.ask(request)
        receipt = await world.receipt(request["id"])
        assert receipt["result"] == "Done", receipt
        assert receipt["hashApplied"] == item["hashWanted"]


async def set_baseline(world: TargetWorld) -> None:
    """What the executor records while the configuration does not say what is wanted."""
    seen = await world.observed(5)
    await world.write(baseline={"generation": seen["cilium"]["templateGeneration"], "at": seen["at"]})


async def proxy_objects(world: TargetWorld) -> list[str]:
    """Kinds of what is there of kube-proxy."""
    paths = {"DaemonSet": f"{APPS}/daemonsets/kube-proxy", "ServiceAccount": f"{SYSTEM}/serviceaccounts/kube-proxy"}
    found = [kind for kind, path in {**paths, "ClusterRoleBinding": BINDING}.items() if await world.admin.find(path)]
    listed: Any = (await world.admin.list_all(f"{SYSTEM}/configmaps")).items
    return found + ["ConfigMap" for item in listed if item["metadata"]["name"].startswith("kube-proxy")]


async def gone(world: TargetWorld) -> bool:
    return await proxy_objects(world) == []


async def test_both_directions(target_world: TargetWorld) -> None:
    """From kube-proxy to Cilium and back, each effect asked for as the executor does; the last machine is a worker."""
    world = target_world
    boots = {name: world.machines[name].state()["boot_id"] for name in world.machines}
    world.start_worker()
    await world.begin()
    await set_baseline(world)
    await world.cilium(True)
    await switch_machines(world, "replaced")
    assert all(not world.machines[name].state()["proxy_enabled"] for name in CONTROL_PLANES)
    assert all(len(world.machines[name].applies) == 1 for name in CONTROL_PLANES)
    assert all(world.machines[name].applies == [] for name in WORKERS)
    assert {name: world.machines[name].state()["boot_id"] for name in world.machines} == boots
    await world.observed(30)
    await world.ask(REMOVE)
    receipt = await world.receipt(REMOVE["id"])
    assert (receipt["result"], "until it reboots" in receipt["message"]) == ("Done", True), receipt
    assert await gone(world)
    assert {item["kind"] for item in (await world.status())["removed"]} == {
        "DaemonSet",
        "ServiceAccount",
        "ClusterRoleBinding",
        "ConfigMap",
    }
    await world.end()

    await world.begin(target="enabled")
    await switch_machines(world, "enabled")
    await world.ask(RESTORE)
    assert (await world.receipt(RESTORE["id"]))["result"] == "Done"
    await world.until_serves("kube-proxy")
    daemonset: Any = await world.admin.get(f"{APPS}/daemonsets/kube-proxy")
    assert (
        daemonset["metadata"]["annotations"]["config.k8s.io/owning-inventory"] == "talos-bootstrap-manifests-inventory"
    )
    managers = {
        entry["manager"] for entry in daemonset["metadata"]["managedFields"] if entry.get("subresource") != "status"
    }
    assert managers == {"talos"}
    assert sorted(await proxy_objects(world)) == ["ClusterRoleBinding", "ConfigMap", "DaemonSet", "ServiceAccount"]
    inventory: Any = await world.admin.get(INVENTORY)
    assert "kube-system_kube-proxy_apps_DaemonSet" in inventory["data"]
    await assert_no_secret(world)


async def test_after_a_manifest_sync_that_pruned_talos_makes_the_objects_itself(target_world: TargetWorld) -> None:
    """A Kubernetes upgrade between the two directions cleans the inventory: nothing is left for us to restore (8.4)."""
    world = target_world
    world.start_worker()
    await world.begin()
    await set_baseline(world)
    await world.cilium(True)
    await switch_machines(world, "replaced")
    await world.observed(30)
    await world.ask(REMOVE)
    assert (await world.receipt(REMOVE["id"]))["result"] == "Done"
    await world.end()
    state = world.machines["cp-1"].state_file
    argv = [
        sys.executable,
        "-m",
        "tools.peers.talos.sync",
        f"--state={state}",
        f"--kubeconfig={world.plane.kubeconfig}",
    ]
    assert (await asyncio.to_thread(subprocess.run, argv, check=False)).returncode == 0
    inventory: Any = await world.admin.get(INVENTORY)
    assert not [key for key in inventory.get("data", {}) if "kube-proxy" in key]

    await world.begin(target="enabled")
    await switch_machines(world, "enabled")
    await world.until_serves("kube-proxy")
    await world.ask(RESTORE)
    receipt = await world.receipt(RESTORE["id"])
    assert (receipt["result"], receipt["message"]) == ("Done", "nothing is missing")
    assert RESTORE["id"] not in [item["id"] for item in (await world.status())["claims"]]


async def test_trap_8_the_service_is_asked_where_the_worker_runs(target_world: TargetWorld) -> None:
    world = target_world
    await world.forwarder.stop()
    world.start_worker()
    await world.begin()
    await world.ask(PROBE)

    async def says(result: str) -> bool:
        service = (await world.status()).get("observed", {}).get("service", {})
        return bool(service.get("request") == PROBE["id"] and service["result"] == result)

    await until(lambda: says("NotAnswered"), what="the Service does not answer")
    await world.forwarder.start()
    await until(lambda: says("Answered"), what="the Service answers")
    message = (await world.status())["observed"]["service"]["message"]
    assert "nothing about other nodes" in message
    assert (await world.status()).get("claims", []) == []


async def test_a_removal_waits_until_the_agents_have_restarted(target_world: TargetWorld) -> None:
    world = target_world
    world.start_worker()
    await world.begin()
    await set_baseline(world)
    await world.cilium(True, roll_out_pods=False)
    await switch_machines(world, "replaced")
    await world.ask(REMOVE)
    receipt = await world.receipt(REMOVE["id"])
    assert receipt["result"] == "Refused"
    assert receipt["message"].startswith("NewSideNotReady: ")
    assert len(await proxy_objects(world)) == 4
    assert REMOVE["id"] not in [item["id"] for item in (await world.status()).get("claims", ())]


async def claimed(world: TargetWorld, request_id: str) -> None:
    """Wait for the claim; a delay of the machine's applies keeps the apply itself away from it."""

    async def found() -> bool:
        return request_id in [item["id"] for item in (await world.status()).get("claims", ())]

    await until(found, what=f"claim of {request_id}", timeout_s=60)


async def test_a_lost_reply_is_settled_by_reading_back(target_world: TargetWorld) -> None:
    world = target_world
    machine = world.machines["cp-1"]
    machine.fault("delay", method="ApplyConfiguration", seconds=2, times=10)
    world.start_worker()
    await world.begin()
    request = world.apply_request("cp-1")
    await world.ask(request)
    await claimed(world, request["id"])
    machine.fault("drop-after", method="ApplyConfiguration")
    receipt = await world.receipt(request["id"])
    assert (receipt["result"], "reply was lost" in receipt["message"]) == ("Done", True), receipt
    assert len(machine.applies) == 1


async def test_a_worker_that_is_killed_after_its_claim_never_acts_twice(target_world: TargetWorld) -> None:
    world = target_world
    machine = world.machines["cp-2"]
    machine.fault("delay", method="ApplyConfiguration", seconds=2, times=10)
    first = world.start_worker()
    await world.begin()
    request = world.apply_request("cp-2")
    await world.ask(request)
    await claimed(world, request["id"])
    await until(lambda: machine.state()["calls"]["ApplyConfiguration"] == 2, what="dry run and apply are sent")
    os.kill(first.process.pid, signal.SIGSTOP)
    await until(lambda: len(machine.applies) == 1, what="the apply takes effect")
    first.kill()
    assert "receipts" not in await world.status()
    world.start_worker()
    receipt = await world.receipt(request["id"])
    assert receipt["result"] == "Done"
    assert len(machine.applies) == 1
    assert [item["id"] for item in (await world.status())["claims"]] == [request["id"]]


async def test_a_withdrawn_request_has_no_effect_or_a_receipt(target_world: TargetWorld) -> None:
    """Withdrawn at a random moment of the way to the claim: at most one effect, and never one without a receipt."""
    world = target_world
    world.start_worker()
    await world.begin()
    await world.observed(1)
    for n, name in enumerate(CONTROL_PLANES, start=1):
        request = world.apply_request(name, n=n)
        await world.ask(request)
        await asyncio.sleep(0.15 * n)
        await world.ask()
        await world.observed(10 + n)
        status = await world.status()
        claims = [item["id"] for item in status.get("claims", ())]
        if request["id"] in claims:
            assert (await world.receipt(request["id"]))["result"] in ("Done", "Unknown")
        else:
            assert world.machines[name].applies == []
        assert len(world.machines[name].applies) <= 1


async def test_a_staged_change_of_somebody_else_is_left_alone(target_world: TargetWorld) -> None:
    world = target_world
    world.machines["cp-1"].stage_config(installed("cp-1", enabled=True, image=world.image) + b"# staged by hand\n")
    before = world.machines["cp-1"].state()
    world.start_worker()
    await world.begin()
    await world.ask(world.apply_request("cp-1"))
    receipt = await world.receipt(world.apply_request("cp-1")["id"])
    assert receipt["message"].startswith("StagedConfigPending: ")
    after = world.machines["cp-1"].state()
    assert (after["applies"], after["persistent"]) == (before["applies"], before["persistent"])
    assert "ApplyConfiguration" not in after["calls"]


async def test_without_a_kubeconfig_the_one_of_talos_is_used(
    target_plane: ControlPlaneHandle, peers: Peers, tmp_path: Any
) -> None:
    async with target_world_on(target_plane, target_plane, peers, tmp_path) as world:
        await world.install(narrow=False)
        worker = world.start_worker()
        await world.begin()
        seen = await world.observed(1)
        assert seen["cilium"]["present"]
        assert seen.get("problems", []) == []
        assert await worker.terminate() == 0
        await assert_no_secret(world)


async def test_the_worker_may_run_in_another_cluster(
    control_plane: ControlPlaneHandle, target_plane: ControlPlaneHandle, peers: Peers, tmp_path: Any
) -> None:
    async with target_world_on(target_plane, control_plane, peers, tmp_path) as world:
        await world.install()
        world.start_worker(probe="auto")
        await world.begin()
        await world.observed(1)
        await world.ask(PROBE)

        async def not_possible() -> bool:
            service = (await world.status()).get("observed", {}).get("service", {})
            return bool(service.get("result") == "NotPossible" and service["reason"] == "ProbeNotPossible")

        await until(not_possible, what="the probe is not possible from outside")
        request = world.apply_request("cp-1")
        await world.ask(request)
        assert (await world.receipt(request["id"]))["result"] == "Done"


async def assert_no_secret(world: TargetWorld) -> None:
    """Nothing of a configuration or of a credential is in a log or in what is stored."""
    stored = [await world.own.list_all(f"{GROUP}/{world.namespace}/{plural}") for plural in PLURALS]
    texts = [str(page.items) for page in stored] + [worker.log.read_text() for worker in world.workers]
    for text in texts:
        assert text
        for secret in (SECRET, KEY, "client-key-data", "PRIVATE KEY"):
            assert secret not in text

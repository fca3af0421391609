"""The two planes of a device worker with a manager, on virtual time: from a new device to one that is ready, and at rest."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gitops_ctl.device.worker.place import Intervals
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.evidence import Expected, Rules, network_problem
from gitops_ctl.fleet.health import effective_health_time
from gitops_ctl.fleet.node import node_of
from tests.support.device_planes import PASSWORD, Planes, in_planes


def test_both_planes_together_make_a_new_device_ready(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()

        async def has_sample() -> bool:
            return bool(await planes.sample())

        await planes.world.until(has_sample, what="a sample is there")
        node, report = await planes.node_of(), await planes.status("workerReport")
        assert node["status"]["capacity"]["pods"] == node["status"]["allocatable"]["pods"] == "0"
        assert node["status"]["nodeInfo"]["machineID"] == "FOC-access-1"
        assert (await planes.condition(names.APP_INVENTORY))["reason"] == "Empty"
        assert report["materialValid"]
        assert report["journal"]["state"] == "Ready"
        revision: Any = await planes.status("networkWorkerRevision")
        assert revision["desiredRevision"] == revision["observedRevision"] == report["observedRevision"]
        device = device_of(await planes.world.seen())
        sample, now = await planes.sample(), planes.world.clock.wall()
        problem = network_problem(sample, rules=Rules(), expected=Expected.of(device), now=now, freshness_s=300)
        assert problem == ""
        assert sample["complete"]
        assert sample["producerRevision"] == report["observedRevision"]

    in_planes(tmp_path, story)


def test_at_rest_only_evidence_that_is_due_is_written(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        await planes.world.clock.sleep(60)
        planes.writes.clear()
        await planes.world.clock.sleep(900)
        device = "/apis/cisco.vk/v1alpha1/namespaces/campus/ciscodevices/access-1/status"
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/access-1"
        node = "/api/v1/nodes/access-1/status"
        assert {path for _, path in planes.writes} == {device, lease, node}
        count = {path: sum(one == path for _, one in planes.writes) for path in (device, lease, node)}
        assert count[device] in (8, 9, 10)
        assert count[node] in (14, 15, 16)
        assert 85 <= count[lease] <= 91

    in_planes(tmp_path, story)


def test_under_a_strict_policy_a_device_stays_fresh_all_the_time(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.world.policy(healthFreshnessSeconds=60)
        planes.intervals = Intervals(heartbeat_s=12)
        await planes.switch()
        await planes.node()
        await planes.network(freshness_s=60)
        await planes.world.ready()
        await planes.world.clock.sleep(60)
        for _ in range(60):
            await planes.world.clock.sleep(5)
            now, seen = planes.world.clock.wall(), device_of(await planes.world.seen())
            healthy_at = effective_health_time(seen, node_of(await planes.node_of()), now)
            assert isinstance(healthy_at, datetime), healthy_at
            assert now - healthy_at < timedelta(seconds=60)
            sample = await planes.sample()
            rules, expected = Rules(), Expected.of(seen)
            assert network_problem(sample, rules=rules, expected=expected, now=now, freshness_s=60) == ""

    in_planes(tmp_path, story)


def test_no_object_of_the_cluster_shows_a_password(tmp_path: Path) -> None:
    async def story(planes: Planes) -> None:
        await planes.switch()
        await planes.node()
        await planes.network()
        await planes.world.ready()
        planes.netconf.away.add("access-1")
        await planes.world.clock.sleep(300)
        shown = [await planes.world.seen(), await planes.node_of()]
        assert PASSWORD not in str(shown)

    in_planes(tmp_path, story)

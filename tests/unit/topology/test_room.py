"""The topology room: from a device in the cluster to a guarded, projected, proven Node, and what keeps it from writing."""

from typing import Any

from gitops_ctl.fleet import names
from tests.support.api_devices import a_lock
from tests.support.device_world import (
    DEPLOYMENTS,
    DEVICES,
    LEASES,
    NODES,
    POLICY_NAME,
    SECRETS,
    SYSTEM,
    DeviceWorld,
    in_device_world,
)
from tests.support.topology_devices import APP_ACCOUNT, NAMESPACE, NETWORK_ACCOUNT


def test_a_device_becomes_a_ready_node_with_leases_and_workers() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        device, node = await world.seen(), await world.get(f"{NODES}/access-1")
        assert device["metadata"]["finalizers"] == [names.DEVICE_FINALIZER]
        assert device["status"]["phase"] == "Ready"
        assert device["status"]["nodeIdentity"] == {
            "nodeName": "access-1",
            "nodeUID": node["metadata"]["uid"],
            "deviceUID": device["metadata"]["uid"],
            "physicalIdentity": "foc-access-1",
        }
        annotations = node["metadata"]["annotations"]
        assert annotations[names.PROJECTION_HASH] == device["status"]["topologyProjection"]["effectiveLabelHash"]
        assert annotations[names.WORKER_USERNAME] == f"system:serviceaccount:{NAMESPACE}:{APP_ACCOUNT}"
        assert annotations[names.NETWORK_WORKER_POD_UID]
        assert node["metadata"]["labels"][names.ZONE] == "hall-1"
        assert node["spec"].get("taints", []) == []
        for account in (APP_ACCOUNT, NETWORK_ACCOUNT):
            assert await world.get(f"{DEPLOYMENTS}/{account}")
        leases: Any = (await world.admin.list_all(LEASES)).items
        assert [lease["metadata"]["annotations"][names.LEASE_PURPOSE] for lease in leases] == [names.LEASE_MUTATION]
        assert await world.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/access-1")

    in_device_world(story)


def test_promise_08_an_idle_fleet_writes_its_due_evidence_and_nothing_else() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        for number in (1, 2, 3):
            await world.device(f"access-{number}")
        await world.start()
        for number in (1, 2, 3):
            await world.ready(f"access-{number}")
        await world.clock.sleep(60.0)
        world.writes.clear()
        await world.clock.sleep(500.0)
        assert {call.path.removeprefix(DEVICES) for call in world.writes} == {
            f"/access-{number}/status" for number in (1, 2, 3)
        }
        # A third of 300 s is 100 s, and heartbeats come every 10 s.
        assert 3 * 4 <= len(world.writes) <= 3 * 5

    in_device_world(story)


def test_without_a_policy_or_without_devices_two_kinds_are_watched_and_nothing_is_asked() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.start()
        await world.clock.sleep(600.0)
        asked = {entry.resource for entry in world.api.audit if "manager" in entry.user_agent}
        assert asked == {"ciscodevices", "configmaps"}
        await world.policy()
        await world.clock.sleep(60.0)
        assert world.writes == []
        await world.device()
        await world.ready()

    in_device_world(story)


def test_a_policy_that_breaks_a_rule_stops_everything_and_is_told() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy(globalMaxUnavailable=0)
        await world.device()
        await world.start()
        await world.clock.sleep(60.0)
        assert world.writes == []
        assert ("Warning", "FleetPolicyInvalid", POLICY_NAME) in {entry[:3] for entry in world.told}
        await world.policy()
        await world.ready()
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps/{POLICY_NAME}"
        assert (await world.get(path))["metadata"]["annotations"][names.LEDGER_UID]

    in_device_world(story)


def test_nothing_is_written_beside_the_leader_of_the_reference() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        path = "/apis/coordination.k8s.io/v1/namespaces/campus/leases"
        spec: Any = {
            "holderIdentity": "cvk-manager-0",
            "leaseDurationSeconds": 60,
            "renewTime": world.clock.wall().isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        lease: Any = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "ciscodevice.cisco.vk"},
        }
        await world.admin.create(path, {**lease, "spec": spec})
        await world.start()
        await world.clock.sleep(50.0)
        assert world.writes == []
        [note] = {entry[3] for entry in world.told if entry[1] == "ReferenceManagerActive"}
        assert "campus/ciscodevice.cisco.vk" in note
        assert "cvk-manager-0" in note
        await world.ready()

    in_device_world(story)


def test_a_second_device_with_the_same_chassis_gets_no_node_and_comes_up_when_the_first_is_gone() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device("access-1", physicalIdentity="FOC1")
        await world.start()
        await world.ready("access-1")
        await world.device("access-2", physicalIdentity="foc1")

        async def is_refused() -> bool:
            found = await world.condition(names.NODE_IDENTITY_READY, device="access-2")
            return found == "False/PhysicalIdentityDuplicate"

        await world.until(is_refused, what="the second is refused")
        assert not await world.get(f"{NODES}/access-2")
        assert await world.is_ready("access-1")
        await world.admin.delete(f"{DEVICES}/access-1")
        await world.ready("access-2")

    in_device_world(story)


def test_a_deleted_device_takes_its_node_and_leases_along_and_the_last_one_the_workers() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        await world.admin.delete(f"{DEVICES}/access-1")

        async def is_gone() -> bool:
            left = [
                await world.seen(),
                await world.get(f"{NODES}/access-1"),
                *(await world.admin.list_all(LEASES)).items,
            ]
            accounts = (await world.admin.list_all(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts")).items
            return not any(left) and not (await world.admin.list_all(DEPLOYMENTS)).items and not accounts

        await world.until(is_gone, what="nothing is left")

    in_device_world(story)


def test_a_rotated_secret_is_not_ready_until_the_worker_has_loaded_it() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        pod = (await world.seen())["status"]["networkWorkerRevision"]["podUID"]
        world.workers.loads = False
        await world.admin.patch_merge(f"{SECRETS}/login", {"stringData": {"username": "other"}})

        async def is_pending() -> bool:
            return await world.condition(names.GNOI_READY) == "False/WorkerRolloutPending"

        await world.until(is_pending, what="the proof is gone", timeout_s=5.0)
        assert (await world.seen())["status"]["phase"] == "Ready"
        world.workers.loads = True
        await world.ready()
        assert (await world.seen())["status"]["networkWorkerRevision"]["podUID"] == pod

    in_device_world(story)


def test_a_foreign_node_is_left_alone_until_its_uid_is_named() -> None:
    async def story(world: DeviceWorld) -> None:
        labels = {names.NODE_TYPE: names.TYPE_VIRTUAL, "example.net/rack": "7"}
        node: Any = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "access-1", "labels": labels}}
        made: Any = await world.admin.create(NODES, node)
        await world.policy()
        await world.device()
        await world.start()

        async def is_refused() -> bool:
            return await world.condition(names.NODE_IDENTITY_READY) == "False/NodeOccupied"

        await world.until(is_refused, what="the Node is not taken")
        assert (await world.get(f"{NODES}/access-1"))["metadata"]["resourceVersion"] == made["metadata"][
            "resourceVersion"
        ]
        await world.device(annotations={names.ADOPT_NODE_UID: made["metadata"]["uid"]})
        await world.ready()
        after = await world.get(f"{NODES}/access-1")
        assert after["metadata"]["uid"] == made["metadata"]["uid"]
        assert after["metadata"]["labels"]["example.net/rack"] == "7"

    in_device_world(story)


def test_a_sample_is_accepted_by_the_next_pass() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        await world.workers.sample("access-1", 1)

        async def is_accepted() -> bool:
            health = (await world.seen())["status"]["healthObservation"]
            return "acceptedNetwork" in health and health["acceptedNetwork"] == health["network"]

        await world.until(is_accepted, what="the sample is accepted", timeout_s=5.0)

    in_device_world(story)


def test_an_account_of_somebody_else_is_never_taken_over() -> None:
    async def story(world: DeviceWorld) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        account: Any = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NETWORK_ACCOUNT}}
        await world.admin.create(path, account)
        await world.policy()
        await world.device()
        await world.start()
        await world.clock.sleep(60.0)
        assert not await world.get(f"{DEPLOYMENTS}/{NETWORK_ACCOUNT}")
        assert "ObjectOccupied" in {entry[1] for entry in world.told}
        await world.admin.delete(f"{path}/{NETWORK_ACCOUNT}")
        await world.ready()

    in_device_world(story)


def test_a_device_goes_without_a_policy_too() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        await world.stop()
        await world.admin.delete(f"/api/v1/namespaces/{SYSTEM}/configmaps/{POLICY_NAME}")
        await world.admin.delete(f"{DEVICES}/access-1")
        await world.start()

        async def is_gone() -> bool:
            return not await world.seen() and not await world.get(f"{NODES}/access-1")

        await world.until(is_gone, what="the device and its Node are gone")

    in_device_world(story)


def test_a_deleted_device_stays_until_its_lock_is_gone() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        await world.start()
        await world.ready()
        lock = a_lock()
        await world.admin.patch_merge(f"{DEVICES}/access-1", {"status": {"topologyLock": lock}}, subresource="status")
        await world.admin.delete(f"{DEVICES}/access-1")
        await world.clock.sleep(120.0)
        assert (await world.seen())["status"]["phase"] == "Deleting"
        assert await world.get(f"{NODES}/access-1")
        [note] = {entry[3] for entry in world.told if entry[1] == "DeletionBlocked"}
        assert lock["campaignName"] in note
        for change in ({**lock, "state": "Releasing"}, None):
            body = {"status": {"topologyLock": change}}
            await world.admin.patch_merge(f"{DEVICES}/access-1", body, subresource="status")

        async def is_gone() -> bool:
            return not await world.seen()

        await world.until(is_gone, what="the device is gone")

    in_device_world(story)


def test_what_could_not_be_seen_for_a_while_is_made_up_for() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        room = await world.start()
        await world.ready()
        room.caches.pods.synced.clear()
        world.workers.loads = False
        await world.admin.patch_merge(f"{SECRETS}/login", {"stringData": {"username": "other"}})
        await world.clock.sleep(60.0)
        assert await world.condition(names.GNOI_READY) == "True/Validated"
        room.caches.pods.synced.set()

        async def is_pending() -> bool:
            return await world.condition(names.GNOI_READY) == "False/WorkerRolloutPending"

        await world.until(is_pending, what="the rotation is seen", timeout_s=20.0)

    in_device_world(story)


def test_a_policy_that_cannot_be_read_for_a_while_stays_in_force() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        room = await world.start()
        await world.ready()
        world.unreadable = POLICY_NAME
        await world.policy(healthFreshnessSeconds=60)
        await world.clock.sleep(30.0)
        assert room.policy is not None
        assert room.policy.health_freshness_s == 300
        world.unreadable = ""

        async def is_taken() -> bool:
            return room.policy is not None and room.policy.health_freshness_s == 60

        await world.until(is_taken, what="the new policy is in force")

    in_device_world(story)

"""The manager with managed topology: its room runs beside the others, on the policy that reserves, and is measured."""

import asyncio
from pathlib import Path

from gitops_ctl.cli.manager import Rooms, make_rooms
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.room import TopologyRoom
from tests.doubles.apiserver.direct import direct_client
from tests.support.admission_proof import proven
from tests.support.device_world import OPTIONS, POLICY_NAME, SYSTEM, DeviceWorld, in_device_world


def rooms_of(client: KubeClient, folder: Path, devices: Options | None) -> Rooms:
    events = EventRecorder(client, instance="tests")
    return make_rooms(client, cache=folder, events=events, require=lambda: None, devices=devices)


def test_a_manager_without_the_switch_has_no_such_room(tmp_path: Path) -> None:
    async def story(world: DeviceWorld) -> None:
        rooms = rooms_of(world.admin, tmp_path, None)
        assert rooms.devices is None
        assert not [room for room in rooms.running if isinstance(room, TopologyRoom)]

    in_device_world(story)


def test_a_manager_with_the_switch_makes_nodes_by_the_policy_and_binds_its_ledger(tmp_path: Path) -> None:
    async def story(world: DeviceWorld) -> None:
        await world.policy()
        await world.device()
        async with direct_client(world.api, component="manager", clock=world.clock) as client:
            rooms = rooms_of(client, tmp_path, OPTIONS)
            assert rooms.devices in rooms.running
            assert rooms.devices is not None
            rooms.devices.prove = proven
            running = asyncio.create_task(rooms.devices.run())
            await world.ready()
            rooms.devices.stop()
            await running
        policy = await world.get(f"/api/v1/namespaces/{SYSTEM}/configmaps/{POLICY_NAME}")
        assert policy["metadata"]["annotations"]["topology.cisco.vk/ledger-uid"]
        assert rooms.devices.passes()["Ready"] > 0
        assert set(rooms.devices.queues) == {"fleetpolicy", "ciscodevice", "deviceworkers"}

    in_device_world(story)

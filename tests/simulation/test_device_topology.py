"""The topology room dies, or loses a compare-and-swap, at each write of a device's life in turn (rollouts.md, 5.4, 13.6, 16; promise P7).

A life: a device appears, becomes ready, a worker asks for maintenance, claims, finishes and lets go, the device is deleted.  Whatever happens,
the life ends the same way, and on the way nothing holds that must not: no Node without the guard before its writer answered, no acknowledged
session without the maintenance guard, no identity that changes.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from gitops_ctl.core.errors import Conflict, ReplyLost
from gitops_ctl.fleet import names
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS
from tests.doubles.apiserver.direct import Side
from tests.support.api_leaves import an_admission
from tests.support.api_rollouts import an_upgrade
from tests.support.device_world import DEVICES, LEASES, LEAVES, NODES, Crash, DeviceWorld, in_device_world
from tests.support.topology_devices import NAMESPACE

pytestmark = pytest.mark.simulation

Fault = Callable[[Call, Side], None]
TOKEN = "0123456789abcdef"


class Life:
    """One life of a device, with what must always hold looked at after every change of the cluster."""

    def __init__(self, world: DeviceWorld) -> None:
        self.world = world
        self.identities: set[str] = set()

    async def run(self) -> None:
        await self.world.policy()
        await self.world.device()
        await self.world.ready()
        await self._ask()
        await self.world.until(self._acknowledged, what="the session is acknowledged")
        await self._work()
        await self.world.until(self._settled, what="the session is settled and the guard is gone")
        await self.world.admin.delete(f"{DEVICES}/access-1")
        await self.world.until(self._gone, what="the device, its Node and its Leases are gone")

    async def _ask(self) -> None:
        """A granted leaf whose worker takes the Lease."""
        admin = self.world.admin
        leaf: Any = an_upgrade()
        device = await self.world.seen()
        annotations = {
            names.DEVICE_UID: device["metadata"]["uid"],
            names.DEVICE_NAMESPACE: NAMESPACE,
            names.DEVICE_NAME: "access-1",
        }
        leaf["metadata"] = {"name": "leaf-1", "namespace": NAMESPACE, "annotations": annotations}
        status = leaf.pop("status", None)
        assert status is None or not status
        made: Any = await admin.create(LEAVES, leaf)
        admission = {"status": {"managerAdmission": an_admission(state="Granted")}}
        await admin.patch_merge(f"{LEAVES}/leaf-1", admission, subresource="status")
        self.uid = made["metadata"]["uid"]
        self.lease = await self._lease_name()
        asked = {
            "request-version": "rollout-v1",
            "session-token": TOKEN,
            "requested-at": "2026-02-01T00:00:00Z",
            "operation-namespace": NAMESPACE,
            "operation-name": "leaf-1",
            "operation-uid": self.uid,
            "control-revision": "0",
            "purpose": "SoftwareMutation",
        }
        held: Any = {"holderIdentity": f"software-upgrade/{self.uid}", "leaseDurationSeconds": 3600}
        marks = {f"{names.MAINTENANCE}{member}": value for member, value in asked.items()}
        await admin.patch_merge(f"{LEASES}/{self.lease}", {"metadata": {"annotations": marks}, "spec": held})

    async def _lease_name(self) -> str:
        leases: Any = (await self.world.admin.list_all(LEASES)).items
        [name] = [each["metadata"]["name"] for each in leases]
        return str(name)

    async def _work(self) -> None:
        """The leaf ends, and its worker lets go."""
        end = {"phase": "Failed", "completionTime": "2026-02-01T00:30:00Z"}
        await self.world.admin.patch_merge(f"{LEAVES}/leaf-1", {"status": end}, subresource="status")
        body = {"spec": {"holderIdentity": None, "leaseDurationSeconds": None}}
        await self.world.admin.patch_merge(f"{LEASES}/{self.lease}", body)

    async def _acknowledged(self) -> bool:
        session = (await self._checked()).get("status", {}).get("maintenanceSession", {})
        return bool(session.get("phase") == "Acknowledged")

    async def _settled(self) -> bool:
        device = await self._checked()
        node: Any = await self.world.get(f"{NODES}/access-1")
        is_free = names.DEVICE_MAINTENANCE not in {each["key"] for each in node["spec"].get("taints", ())}
        return is_free and device["status"]["maintenanceSession"]["phase"] == "Settled"

    async def _gone(self) -> bool:
        return (
            not await self.world.seen()
            and not await self.world.get(f"{NODES}/access-1")
            and not (await self.world.admin.list_all(LEASES)).items
        )

    async def _checked(self) -> Any:
        """The device, after a look at what must hold."""
        device, node = await self.world.seen(), await self.world.get(f"{NODES}/access-1")
        self.check(device, node)
        return device

    def check(self, device: Any, node: Any) -> None:
        status = device.get("status", {})
        if identity := status.get("nodeIdentity"):
            self.identities.add(str(identity))
            assert len(self.identities) == 1
        taints = {each["key"] for each in node.get("spec", {}).get("taints", ())}
        if status.get("maintenanceSession", {}).get("phase") in ("Acknowledged", "Active"):
            assert names.DEVICE_MAINTENANCE in taints
        if node and names.UNINITIALIZED not in taints:
            conditions = {each["type"] for each in node["status"]["conditions"]}
            assert names.MANAGED_WRITER in conditions
            assert identity
            assert node["metadata"]["annotations"][names.NODE_UID] == node["metadata"]["uid"]


def lived(fault: Fault | None = None) -> tuple[list[str], bool]:
    """One whole life under a fault; after a crash a new manager goes on.  Returns the writes, and whether it died."""
    writes: list[str] = []
    died = False

    async def story(world: DeviceWorld) -> None:
        nonlocal died

        async def keep_managing() -> None:
            nonlocal died
            while True:
                await world.start()
                if await world.crashed(timeout_s=1e6):
                    died = True
                    await world.stop()

        world.fault = fault or world.fault
        managing = asyncio.create_task(keep_managing())
        try:
            await Life(world).run()
            await world.clock.sleep(60.0)
        finally:
            managing.cancel()
            await asyncio.gather(managing, return_exceptions=True)
        writes.extend(f"{call.verb} {call.path}" for call in world.writes)

    with contextlib.suppress(Crash):
        in_device_world(story)
    return writes, died


KINDS: tuple[tuple[type[BaseException], Side], ...] = (
    (Crash, "before"),
    (Crash, "after"),
    (Conflict, "before"),
    (ReplyLost, "after"),
)
MOST = 57
"""Writes of one life without a fault, at most."""
APART = 7
"""Writes between two faults of one life."""


def at_each(first: int, turn: int) -> Fault:
    """Every 7th write from `first` (from 1) ends in one of the four ways, in turn."""
    count = 0
    due: BaseException | None = None

    def fault(call: Call, side: Side) -> None:
        nonlocal count, due
        if call.verb not in WRITE_VERBS:
            return
        if side == "before":
            count += 1
            is_due = count >= first and (count - first) % APART == 0
            error, when = KINDS[(count // APART + turn) % len(KINDS)]
            due = (error() if error is Crash else error("the network")) if is_due else None
            if due is None or when != "before":
                return
        if due is not None:
            error_now, due = due, None
            raise error_now

    return fault


def test_one_life_takes_few_writes() -> None:
    writes, died = lived()
    assert not died
    assert len(writes) <= MOST, writes


@pytest.mark.parametrize("first", range(1, APART + 1))
def test_promise_07_a_fault_at_any_write_is_made_up_for(first: int) -> None:
    _, died = lived(at_each(first, first))
    assert died

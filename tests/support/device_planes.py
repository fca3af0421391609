"""Both planes of the device workers as they are, on the server in memory, with the manager's room and switches in memory; on virtual time.

A stand-in is only left for whoever makes the Pods.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.journal import Journal
from gitops_ctl.device.spool import Spool
from gitops_ctl.device.worker.identity import Who
from gitops_ctl.device.worker.networkroom import NetworkRoom
from gitops_ctl.device.worker.noderoom import NodeRoom
from gitops_ctl.device.worker.place import Equipment, Intervals, Place, Served
from gitops_ctl.device.worker.secretreader import SecretReader
from gitops_ctl.fleet import names
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tests.doubles.netconf import DirectNetconf
from tests.support.api_rollouts import HTTPS, a_frozen_plan, a_planned_target, a_rollout
from tests.support.device_world import DEPLOYMENTS, NODES, SECRETS, DeviceWorld
from tests.support.simulation_loop import run_virtually
from tests.support.topology_devices import APP_ACCOUNT, NAMESPACE, NETWORK_ACCOUNT
from tools.peers.iosxe.state import new_device

Tree = dict[str, Any]
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEV5JSvVX5uVLM/3mUG1rTBnqGxRfNJ7M5Wcr2tOwBXP"
IMAGE = b"an image of a switch" * 50
SHA256 = hashlib.sha256(IMAGE).hexdigest()
ROLLOUTS = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwarerollouts"
JOURNAL_ID = "5a0dd3a1-9f0c-4f1e-8f60-0d3ad0f3a6c1"
PASSWORD = "a-password-that-nobody-may-see"


class GivenImages:
    """Takes the place of ImageSources: every source has one image, or what `fault` raises."""

    def __init__(self) -> None:
        self.content = IMAGE
        self.asked = 0
        self.away = False

    @contextlib.asynccontextmanager
    async def download(self, _endpoint: Any, _login: Any) -> AsyncIterator[Download]:
        self.asked += 1
        if self.away:
            raise Unavailable("the image server does not answer: away", code=ErrorCode.IMAGE_SOURCE_UNREACHABLE)

        async def chunks() -> AsyncIterator[bytes]:
            yield self.content

        yield Download(len(self.content), chunks())


class NoExecutor:
    """Remembers which upgrades it was asked to carry out."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    async def step(self, place: Place, leaf: NamespacedName) -> float | None:
        self.steps.append(f"{place.key.name}: {leaf.name}")
        return None


class Planes:
    """The workers of the namespace.

    Attributes:
        writes: requests of the workers that changed something, in their order, as (verb, path).
        reads: the same for Secrets that were read.
    """

    def __init__(self, world: DeviceWorld, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.switches: dict[str, MemorySwitch] = {}
        self.by_target: dict[str, MemorySwitch] = {}
        self.netconf, self.gnoi = DirectNetconf(self.switches), DirectGnoi(self.by_target)
        self.images, self.executor = GivenImages(), NoExecutor()
        self.writes: list[tuple[str, str]] = []
        self.secret_reads: list[str] = []
        self.refused = ""
        self.intervals = Intervals()
        self.rooms: dict[str, NetworkRoom | NodeRoom] = {}
        self.journal: Journal | None = None
        self._ends = contextlib.AsyncExitStack()

    async def switch(self, name: str = "access-1", *, number: int = 1, **spec: Any) -> MemorySwitch:
        """A device with a switch behind it, and a Secret that fits."""
        made = new_device(f"FOC-{name}")
        switch = MemorySwitch(made, now=lambda: self.world.clock.wall().timestamp())
        address = f"192.0.2.{number}"
        self.switches[name] = self.by_target[f"{address}:50052"] = switch
        await self.secret(f"{name}-login", address=address)
        wanted: Any = {
            "credentialSecretRef": {"name": f"{name}-login"},
            "gnoi": {"transportSecurity": "plaintext"},
            **spec,
        }
        await self.world.device(name, address=address, **wanted)
        return switch

    async def secret(self, name: str, *, address: str, **data: str) -> None:
        """The login of a device, made or replaced."""
        known = f"[{address}]:830 {HOST_KEY}\n"
        values = {"username": "operator", "password": PASSWORD, "known_hosts": known, **data}
        tree: Tree = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": values,
        }
        if await self.world.get(f"{SECRETS}/{name}"):
            await self.world.admin.patch_merge(f"{SECRETS}/{name}", {"stringData": values})
        else:
            await self.world.admin.create(SECRETS, tree)

    async def rollout(self, name: str = "to-17-18", *, devices: tuple[str, ...] = ("access-1",), **spec: Any) -> Tree:
        """A campaign whose plan is frozen, with these devices."""
        made: Any = await self.world.admin.create(ROLLOUTS, a_rollout(name=name, namespace=NAMESPACE, **spec))
        targets = []
        for number, device in enumerate(devices):
            seen: Any = await self.world.seen(device)
            target = a_planned_target(
                deviceName=device, deviceUID=seen["metadata"]["uid"], childName=f"{name}-{number}"
            )
            source = {"name": "everywhere", "priority": 10, "url": HTTPS, "sha256": SHA256}
            targets.append({**target, "source": source})
        status = {"phase": "AwaitingApproval", "frozenPlan": a_frozen_plan(targets=targets)}
        await self.world.admin.patch_merge(f"{ROLLOUTS}/{name}", {"status": status}, subresource="status")
        return dict(made)

    # -- the workers ----------------------------------------------------------------------------------------------

    async def network(self, **members: Any) -> NetworkRoom:
        """The network plane runs."""
        served = await self._served(NETWORK_ACCOUNT)
        self.journal = Journal.open(self.folder / "journal", new_id=members.pop("journal_id", JOURNAL_ID))
        self._ends.callback(self.journal.close)
        parts = {name: getattr(served, name) for name in Served.__dataclass_fields__}
        given: Any = {
            **{"lease_namespace": NAMESPACE, "netconf": self.netconf, "gnoi": self.gnoi, "journal": self.journal},
            **{"spool": Spool(self.folder / "spool"), "sources": self.images, "new_id": lambda: JOURNAL_ID},
            **members,
        }
        self.equipment = Equipment(**parts, **given)
        executor = None if self.equipment.read_only else self.executor
        room = NetworkRoom(self.equipment, executor=executor)
        await self._run("network", room)
        return room

    async def node(self) -> NodeRoom:
        """The node plane runs."""
        served = await self._served(APP_ACCOUNT)
        netconf: Any = self.netconf
        room = NodeRoom(served, netconf=netconf)
        await self._run("node", room)
        return room

    async def stop(self) -> None:
        """Both end in order."""
        ends, self._ends = self._ends, contextlib.AsyncExitStack()
        await ends.aclose()
        self.rooms.clear()

    async def _run(self, plane: str, room: NetworkRoom | NodeRoom) -> None:
        self.rooms[plane] = room
        task = asyncio.create_task(room.run(), name=plane)

        async def ended() -> None:
            room.stop()
            await task

        self._ends.push_async_callback(ended)

    async def _served(self, account: str) -> Served:
        await self.world.until(lambda: self._pod(account), what=f"the Pod of {account}")
        pod = await self.world.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{account}-x")
        deployment: Any = await self.world.get(f"{DEPLOYMENTS}/{account}")
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        client = direct_client(self.world.api, component=account, clock=self.world.clock, point=self._point)
        await self._ends.enter_async_context(client)
        metadata: Any = pod["metadata"]
        return Served(
            client=client,
            namespace=NAMESPACE,
            who=Who(f"system:serviceaccount:{NAMESPACE}:{account}", metadata["name"], metadata["uid"]),
            template_digest=annotations[names.WORKER_TEMPLATE_DIGEST],
            secrets=SecretReader(client, namespace=NAMESPACE),
            intervals=self.intervals,
        )

    async def _pod(self, account: str) -> bool:
        return bool(await self.world.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{account}-x"))

    def _point(self, call: Call, side: Side) -> None:
        if self.refused and call.path.endswith(self.refused) and side == "before":
            raise Unavailable(f"{call.path} is away")
        if side == "after" and call.verb in WRITE_VERBS:
            self.writes.append((call.verb, call.path.partition("?")[0]))
        if side == "after" and "/secrets/" in call.path:
            self.secret_reads.append(call.path.rpartition("/")[2])

    # -- what is seen ---------------------------------------------------------------------------------------------

    async def status(self, member: str, name: str = "access-1") -> Any:
        """A member of a device's status; empty when it is not there."""
        seen: Any = await self.world.seen(name)
        return seen.get("status", {}).get(member, {})

    async def node_of(self, name: str = "access-1") -> Any:
        """The Node of a device."""
        return await self.world.get(f"{NODES}/{name}")

    async def condition(self, kind: str, name: str = "access-1") -> Tree:
        """A condition of the Node; empty without."""
        node = await self.node_of(name)
        found = [one for one in node.get("status", {}).get("conditions", ()) if one["type"] == kind]
        return found[0] if found else {}

    async def sample(self, name: str = "access-1") -> Tree:
        """The latest sample of the network plane."""
        health = await self.status("healthObservation", name)
        return dict(health.get("network", {}))

    async def preflight(self, name: str = "access-1") -> Tree:
        """The newest entry of the preflight."""
        entries = await self.status("preflight", name)
        return dict(entries[-1]) if entries else {}


def in_planes(
    folder: Path,
    story: Callable[[Planes], Coroutine[Any, Any, None]],
    *,
    prepare: Callable[[Planes], None] | None = None,
) -> None:
    """Run a story with a manager, whose Pods are there; the planes are started by the story."""

    async def run() -> None:
        async with DeviceWorld().living() as world:
            planes = Planes(world, folder)
            workers: Any = world.workers
            workers.beats = False
            workers._report = _nothing
            if prepare is not None:
                prepare(planes)
            await world.policy()
            await world.start()
            try:
                await story(planes)
            finally:
                await planes.stop()

    run_virtually(run())


async def _nothing(*_arguments: Any) -> None:
    return None

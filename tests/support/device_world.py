"""The topology room on an API server in memory, on virtual time, with stand-ins for the workers.

The room can be stopped, or killed at any write, and started anew.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache
from typing import Any

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.core.errors import Unavailable
from gitops_ctl.fleet import names
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.controller import Pace
from gitops_ctl.kube.exchange import JSON, Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.rollout.bootstrap import bind
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.ports import Prove
from gitops_ctl.topology.room import TopologyRoom
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.apiserver.request import Request
from tests.doubles.peer_crds import install
from tests.support.admission_proof import proven
from tests.support.device_workers import Workers
from tests.support.simulation_loop import LoopClock, run_virtually
from tests.support.topology_devices import NAMESPACE, POLICY, device, policy_objects

Tree = dict[str, Any]
SYSTEM = "gitops-ctl-system"
POLICY_NAME, LEDGER_NAME = "gitops-ctl-topology-policy", POLICY["ledgerName"]
DEVICES = f"/apis/cisco.vk/v1alpha1/namespaces/{NAMESPACE}/ciscodevices"
CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
LEAVES = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwareupgrades"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
NODES = "/api/v1/nodes"
OPTIONS = Options(namespace=SYSTEM, worker_image="gitops-ctl:test")


class Crash(BaseException):
    """The manager ends here."""


class DeviceWorld:
    """One cluster.

    Attributes:
        told: what the room said, as (type, reason, name of the object, note).
        fault: what happens at each write of the manager.
        unreadable: end of the paths that the manager cannot read now; empty for none.
    """

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.api = ApiServer(now=self.clock.wall, lag=0)
        self.api.restore(_prepared())
        self.told: list[tuple[str, str, str, str]] = []
        self.writes: list[Call] = []
        self.sent_secrets: list[str] = []
        """Paths of Secrets whose values the server sent to the manager."""
        self.fault: Callable[[Call, Side], None] = lambda _call, _side: None
        self.unreadable = ""
        self.prove: Prove = proven
        self.room: TopologyRoom | None = None
        self._running: asyncio.Task[None] | None = None
        self._client: KubeClient | None = None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator["DeviceWorld"]:
        """With workers at work; whatever runs at the end is stopped."""
        self.admin = direct_client(self.api, component="admin", clock=self.clock)
        async with self.admin, direct_client(self.api, component="worker", clock=self.clock) as client:
            self.workers = Workers(client, namespace=NAMESPACE)
            working = asyncio.create_task(self.workers.run())
            try:
                yield self
            finally:
                await self.stop()
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    # -- the room -------------------------------------------------------------------------------------------------

    async def start(self, options: Options = OPTIONS) -> TopologyRoom:
        """A manager leads."""
        client = direct_client(self.api, component="manager", clock=self.clock, point=self._point)
        await client.__aenter__()
        self._client = client

        async def bound(namespace: str, name: str) -> FleetPolicy:
            return (await bind(client, namespace=namespace, name=name)).record.policy

        self.room = TopologyRoom(
            client,
            bind=bound,
            options=options,
            emit=self._tell,
            pace=Pace(blocked_s=5.0, bug_s=5.0),
            prove=self.prove,
        )
        self._running = asyncio.create_task(self.room.run())
        return self.room

    async def stop(self) -> None:
        """It ends in order."""
        if self.room is not None and self._running is not None and self._client is not None:
            self.room.stop()
            with contextlib.suppress(BaseExceptionGroup, Crash):
                await self._running
            await self._client.__aexit__(None, None, None)
        self.room = self._running = None

    async def crashed(self, *, timeout_s: float = 600.0) -> bool:
        """Wait until the process died; False when it did not in that time."""
        assert self._running is not None
        done, _ = await asyncio.wait({self._running}, timeout=timeout_s)
        return bool(done)

    def _point(self, call: Call, side: Side) -> None:
        if call.verb not in WRITE_VERBS:
            if self.unreadable and call.path.endswith(self.unreadable):
                raise Unavailable("away")
            if "/secrets/" in call.path and call.accept == JSON:
                self.sent_secrets.append(call.path)
            return
        if side == "after":
            self.writes.append(call)
        self.fault(call, side)

    def _tell(self, tree: Any, kind: str, reason: str, note: str) -> None:
        self.told.append((kind, reason, tree["metadata"]["name"], note))

    # -- the cluster ----------------------------------------------------------------------------------------------

    async def policy(self, **members: Any) -> None:
        """The fleet policy and its empty ledger, or other members of the policy."""
        policy, ledger = policy_objects(SYSTEM, name=POLICY_NAME, **members)
        await self.admin.apply(f"{CONFIG_MAPS}/{POLICY_NAME}", policy, manager="admin", force=True)
        if not await self.get(f"{CONFIG_MAPS}/{LEDGER_NAME}"):
            await self.admin.create(CONFIG_MAPS, ledger)

    async def device(self, name: str = "access-1", *, annotations: Tree | None = None, **spec: Any) -> None:
        """A device of the fleet, with its Secret."""
        if not await self.get(f"{SECRETS}/login"):
            secret: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": NAMESPACE}}
            await self.admin.create(SECRETS, {**secret, "stringData": {"username": "operator"}})
        tree = device(name)
        metadata = {"name": name, "namespace": NAMESPACE, "labels": tree["metadata"]["labels"]}
        wanted = {
            **{member: tree[member] for member in ("apiVersion", "kind")},
            "metadata": {**metadata, "annotations": annotations or {}},
            "spec": {**tree["spec"], **spec},
        }
        await self.admin.apply(f"{DEVICES}/{name}", wanted, manager="admin", force=True)

    async def get(self, path: str) -> Tree:
        """An object; empty when it is not there."""
        return dict(await self.admin.find(path) or {})

    async def seen(self, name: str = "access-1") -> Tree:
        """A device."""
        return await self.get(f"{DEVICES}/{name}")

    async def condition(self, kind: str, *, device: str = "access-1") -> str:
        """Status and reason of a condition."""
        status: Any = (await self.seen(device)).get("status", {})
        found = [each for each in status.get("conditions", ()) if each["type"] == kind]
        return f"{found[0]['status']}/{found[0]['reason']}" if found else ""

    async def is_ready(self, device: str = "access-1") -> bool:
        """Whether everything of a device is good, evidence included."""
        status: Any = (await self.seen(device)).get("status", {})
        good = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        health = status.get("healthObservation", {}).get("conditionObservations", ())
        told = {each["type"] for each in health if each["status"] == "True"}
        required = set(names.REQUIRED_CONDITIONS)
        return required <= good and required <= told and names.MAINTENANCE_READY in good

    async def until(
        self, holds: Callable[[], Coroutine[Any, Any, bool]], *, what: str, timeout_s: float = 300.0
    ) -> None:
        """Wait until it holds, on virtual time."""
        end_s = self.clock.boot_s() + timeout_s
        while not await holds():
            assert self.clock.boot_s() < end_s, f"not in {timeout_s:g} s: {what}"
            await self.clock.sleep(1.0)

    async def ready(self, device: str = "access-1") -> None:
        """Wait until a device is good."""
        await self.until(lambda: self.is_ready(device), what=f"{device} is ready")


@cache
def _prepared() -> Snapshot:
    """A server with the definitions and the namespaces; made once."""
    api = ApiServer(lag=0)
    install(
        api,
        [json.loads(json.dumps(crd_of(kind))) for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade)],
    )
    for name in (SYSTEM, NAMESPACE):
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode()
        made = api.handle(Request("POST", "/api/v1/namespaces", {}, {"content-type": "application/json"}, body))
        assert made.code == 201, made.body
    return api.snapshot()


def in_device_world(story: Callable[[DeviceWorld], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a new cluster, on virtual time."""

    async def run() -> None:
        async with DeviceWorld().living() as world:
            await story(world)

    run_virtually(run())

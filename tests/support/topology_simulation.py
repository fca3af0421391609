"""The scheduling room on an API server in memory, on virtual time, with stand-ins for Kueue and NFD and faults at every I/O point.

The manager is the only process that dies here; Kueue and NFD are sent away by the stories.  The rules after each write:
tests/support/topology_rules.py.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import yaml

from gitops_ctl.core.errors import Unavailable
from gitops_ctl.kube.exchange import Call, Limits
from gitops_ctl.kube.lease import Leader
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.room import SchedulingRoom
from gitops_ctl.scheduling.source_status import Failed
from gitops_ctl.scheduling.webhook import Inquiry
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.kueue import KueueStandIn, Variant
from tests.support.scheduling_world import REGION, SOURCES, ZONE, World
from tests.support.simulation import STOPPED_S, Broken
from tests.support.simulation_faults import WRITES, Crash, FaultPlan, Kind, Side
from tests.support.simulation_loop import LoopClock, run_virtually
from tests.support.simulation_process import Process
from tests.support.topology_rules import PROFILE, Rules, quotas

Tree = dict[str, Any]
KUEUE = "kueue.x-k8s.io"
REST_S = 70.0
"""Silence after which the world counts as being at rest: every look that comes again by itself does so earlier."""

DEADLINE_S = 3600.0
NAMESPACE = "gpustack-system"
SEED = 20


@dataclass
class Inventory:
    """The service that a webhook source asks; without an answer it is down."""

    answer: str = ""
    asked: int = 0

    async def get(self, manager: "Manager") -> bytes | Failed:
        """One question; its way there and back are I/O points."""
        try:
            manager.pass_by("get the inventory", Side.BEFORE)
            self.asked += 1
            manager.pass_by("get the inventory", Side.AFTER)
        except Unavailable:
            return Failed("WebhookReadFailed", "no answer")
        return self.answer.encode() if self.answer else Failed("WebhookReadFailed", "the service answered 503")


@dataclass
class Simulation:
    """Everything that outlives a process.

    Attributes:
        leased: two managers and one Lease.
        jumped_s: by how much the wall clock of the manager's machine is wrong.
        told: Events, as reason and name.
        others: what runs beside the managers.
    """

    hands: World
    plan: FaultPlan
    rules: Rules
    options: Options = field(default_factory=Options)
    leased: bool = False
    jumped_s: float = 0.0
    inventory: Inventory = field(default_factory=Inventory)
    managers: list["Manager"] = field(default_factory=list)
    deaths: int = 0
    told: list[str] = field(default_factory=list)
    others: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def server_back_s(self) -> float:
        """Until then the API server does not answer."""
        return self.rules.server_back_s

    @server_back_s.setter
    def server_back_s(self, value: float) -> None:
        self.rules.server_back_s = value

    @property
    def api(self) -> ApiServer:
        return self.hands.api

    @property
    def clock(self) -> LoopClock:
        return self.hands.clock

    # -- the story's hands -------------------------------------------------------------------------------------------

    async def snapshot(self, *levels: str, name: str = "hall", racks: bool = False) -> None:
        """The ConfigMap that Git holds: the places of all Nodes, as far as these levels go."""
        await self.hands.put(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "data": {"snapshot.yaml": snapshot_text(levels, racks=racks)},
            }
        )

    async def source(self, *levels: str, name: str = "hall", **arm: Any) -> None:
        """A source over that ConfigMap, or with another arm."""
        reference = {"namespace": NAMESPACE, "name": name}
        own = {"configMap": {"configMapRef": reference, "key": "snapshot.yaml", "maxStaleness": "10m"}}
        await self.hands.source(*levels, name=name, **(arm or own))

    async def delete_source(self, name: str) -> None:
        await self.hands.admin.delete(f"{SOURCES}/{name}")

    # -- time --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """A manager, or two."""
        self.others = self.others or asyncio.all_tasks()
        for number in range(2 if self.leased else 1):
            if len(self.managers) <= number:
                self.managers.append(self._started(number))
                await asyncio.sleep(1.0)

    def _started(self, number: int) -> "Manager":
        manager = Manager(self, identity=f"manager-{number}" if self.leased else "")
        manager.start()
        return manager

    async def stop(self) -> None:
        """Throw the processes away."""
        for manager in self.managers:
            manager.dead = True
            await manager.end()
        for task in asyncio.all_tasks() - self.others:
            task.cancel()
        await asyncio.sleep(0.1)

    async def until(self, reached: Callable[[], bool], *, quiet_s: float = 0.0) -> None:
        """Let the time run until the state is reached and nothing was written for a while; dead processes are replaced.

        Raises:
            Broken: a rule did not hold, or the deadline is over.
        """
        end_s, collected = self.clock.boot_s() + DEADLINE_S, 0
        while True:
            await asyncio.sleep(1.0)
            if self.rules.broken:
                raise Broken("\n".join(self.rules.broken[:5]))
            await self._replace_dead()
            self.rules.writer = "story"
            if self.api.store.version != collected:
                self.api.collect()
                collected = self.api.store.version
            now_s = self.clock.boot_s()
            if reached() and now_s - self.rules.last_write_s >= quiet_s:
                return
            if now_s >= end_s:
                raise Broken(f"no progress: {self.summary()}")

    async def _replace_dead(self) -> None:
        for number, manager in enumerate(self.managers):
            if manager.dead:
                self.deaths += 1
                await manager.end()
                self.managers[number] = self._started(number)

    async def rest(self, seconds: float) -> None:
        """For so long nothing is written.

        Raises:
            Broken: something was.
        """
        before, end_s = len(self.rules.writes), self.clock.boot_s() + seconds
        await self.until(lambda: self.clock.boot_s() >= end_s)
        if self.rules.writes[before:]:
            raise Broken(f"at rest this was written: {self.rules.writes[before:][:5]}")

    # -- what is there -----------------------------------------------------------------------------------------------

    def all(self, group: str, plural: str) -> dict[str, Tree]:
        """Objects of a kind by name."""
        return {key[1]: tree for key, tree in self.api.store.all((group, plural))}

    @property
    def queue(self) -> Tree:
        """The one queue; empty before it is made."""
        return self.all(KUEUE, "clusterqueues").get("cpu", {})

    def says(self, kind: str = "TopologyReady", *, source: str = "") -> str:
        """Status and reason of a condition of the queue, or of a source."""
        tree = self.all("worker.gpustack.ai", "topologysources").get(source, {}) if source else self.queue
        return _told(tree, kind)

    @property
    def quotas(self) -> dict[str, int]:
        """The plan of the queue: by profile."""
        return (
            {name.rpartition("-fnv64-")[2]: int(value) for name, value in quotas(self.queue).items()}
            if self.queue
            else {}
        )

    @property
    def marks(self) -> dict[str, str]:
        """Our annotations of the queue, by their short names, with the policy."""
        found = self.queue.get("metadata", {}).get("annotations", {})
        short = {key.rpartition("/")[2]: value for key, value in found.items()}
        return {**short, "policy": self.queue.get("spec", {}).get("stopPolicy", "")}

    def reserved(self) -> dict[str, str]:
        """Workloads with a reservation, and the profile of their flavor."""
        found = {}
        for name, tree in self.all(KUEUE, "workloads").items():
            for item in (tree.get("status", {}).get("admission") or {}).get("podSetAssignments", ()):
                found[name] = "".join(each.rpartition("-fnv64-")[2] for each in item.get("flavors", {}).values())
        return found

    def serves(self, profile: str, *, policy: str = "None", cpus: int = 16) -> bool:
        """Whether the queue has this one flavor and no transition is under way."""
        marks = self.marks
        return (
            self.says() == "True/Ready"
            and self.quotas == {profile.removeprefix("fnv64-"): cpus}
            and marks["policy"] == policy
            and not {"migration-phase", "hold-release", "migration-stop-policy"} & set(marks)
            and all(name.endswith(profile) for name in self.all(KUEUE, "resourceflavors"))
            and set(self.all(KUEUE, "topologies")) == {f"gpustack-{profile}"}
        )

    def summary(self) -> dict[str, Any]:
        """The state without what differs from run to run."""
        nodes, features = self.all("", "nodes"), self.all("nfd.k8s-sigs.io", "nodefeatures")
        sources = self.all("worker.gpustack.ai", "topologysources")
        queue = {**self.marks, "says": self.says(), "active": self.says("Active"), "quotas": self.quotas}
        queue.pop("migration-started-at", None)
        return {
            "nodes": {
                name: {key: value for key, value in tree["metadata"]["labels"].items() if "topology.gpustack" in key}
                for name, tree in nodes.items()
            },
            "features": sorted(
                (tree["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"], sorted(tree["spec"]["labels"].items()))
                for tree in features.values()
            ),
            "topologies": sorted(self.all(KUEUE, "topologies")),
            "flavors": {
                name: {key: value for key, value in tree["metadata"]["labels"].items() if key.endswith(".capacity")}
                for name, tree in self.all(KUEUE, "resourceflavors").items()
            },
            "queue": queue,
            "sources": {
                name: [
                    *(_told(tree, kind) for kind in ("Ready", "Valid", "OwnershipConflict")),
                    tree["metadata"].get("finalizers"),
                    tree.get("status", {}).get("lastSuccessfulRevision"),
                    tree.get("status", {}).get("selectedNodes"),
                ]
                for name, tree in sources.items()
            },
            "workloads": self.reserved(),
        }


class _WrongClock(LoopClock):
    """The clock of the manager's machine."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def wall(self) -> datetime:
        return super().wall() + timedelta(seconds=self._world.jumped_s)


class Manager(Process[Simulation]):
    """One process; with an identity it works only while it holds the Lease."""

    def __init__(self, world: Simulation, *, identity: str = "") -> None:
        self._awake_s = 0.0
        super().__init__(world, name="manager", clock=_WrongClock(world))
        self.leader = Leader(self.client, namespace=NAMESPACE, name="manager", identity=identity) if identity else None
        more = {"require": self.leader.require} if self.leader is not None else {}
        self.room = SchedulingRoom(self.client, options=world.options, emit=self._tell, **more)
        sources: Any = self.room._sources
        sources._ports = replace(sources._ports, http=self._ask)

    def _tell(self, tree: Any, _kind: str, reason: str, _note: str) -> None:
        self._world.told.append(f"{reason} {tree['metadata']['name']}")

    async def _ask(self, _inquiry: Inquiry) -> bytes | Failed:
        return await self._world.inventory.get(self)

    def _make_client(self, *, component: str, limits: Limits | None = None) -> KubeClient:
        client: Any = super()._make_client(component=component, limits=limits)
        send = client._exchange._once

        async def once(call: Call, authorization: str) -> bytes:
            writes = self._world.leased and call.verb in WRITES and "/leases" not in call.path
            if writes and self._world.plan.pass_by(f"sending {call.subject}", Side.BEFORE, state="") is Kind.STOPPED:
                self._awake_s = self._world.clock.boot_s() + STOPPED_S
            await self._world.clock.sleep(self._awake_s - self._world.clock.boot_s())
            return bytes(await send(call, authorization))

        client._exchange._once = once
        made: KubeClient = client
        return made

    def start(self) -> None:
        self.run(self._work)

    async def _work(self) -> None:
        try:
            await (self.room.run() if self.leader is None else self._lead(self.leader))
        except BaseExceptionGroup as group:
            if group.subgroup(Crash) is None:
                raise
        self.dead = True  # a process that ended is started anew

    async def _lead(self, leader: Leader) -> None:
        holding = asyncio.create_task(leader.run(), name="lease")
        leading = asyncio.create_task(leader.leading.wait(), name="leading")
        self._tasks += [holding, leading]
        await asyncio.wait([holding, leading], return_when=asyncio.FIRST_COMPLETED)
        if leading.done():
            working = asyncio.create_task(self.room.run(), name="room")
            self._tasks.append(working)
            await asyncio.wait([working, holding], return_when=asyncio.FIRST_COMPLETED)
            self.room.stop()
            await working
        leading.cancel()


def snapshot_text(levels: tuple[str, ...], *, racks: bool = False) -> str:
    """A revision: four Nodes in two zones of one region, and two racks in each zone."""
    places = {
        f"n{number}": (("topology.gpustack.ai/region", "north"), (ZONE, zone), ("topology.gpustack.ai/rack", rack))
        for number, (zone, rack) in enumerate((("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")), start=1)
    }
    nodes = {name: {key: value for key, value in place if key in levels or racks} for name, place in places.items()}
    text = {"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": f"levels-{len(levels)}", "nodes": nodes}
    return str(yaml.safe_dump(text))


def _told(tree: Tree, kind: str) -> str:
    found = tree.get("status", {}).get("conditions", ())
    return next((f"{each['status']}/{each['reason']}" for each in found if each["type"] == kind), "")


async def _grow() -> Snapshot:
    """A cluster at rest: four Nodes, a source with two levels, a queue that serves them, and a Workload in it."""
    sim = new_simulation(None, FaultPlan(), seed=3)
    async with sim.hands.living():
        for number in range(1, 5):
            await sim.hands.node(f"n{number}")
        await sim.snapshot(REGION, ZONE)
        await sim.source(REGION, ZONE)
        await sim.hands.queue()
        await sim.start()
        await sim.until(lambda: sim.says() == "True/Ready" and sim.marks["policy"] == "None", quiet_s=REST_S)
        await sim.stop()
        return sim.api.snapshot()


def serving() -> Snapshot:
    """The store of a cluster that serves."""
    return run_virtually(_grow())


def new_simulation(
    snapshot: Snapshot | None, plan: FaultPlan, *, seed: int = SEED, variant: Variant = Variant.V0_17
) -> Simulation:
    """A world that goes on from a store; in another seed no uid comes twice."""
    hands = World()
    hands.api.seed = seed
    if snapshot is not None:
        hands.api.restore(snapshot)
    hands.kueue = KueueStandIn(hands.api, variant=variant)
    hands.nfd.restart()
    rules = Rules(hands.api.store, hands.clock.boot_s)
    rules.begin()
    return Simulation(hands, plan, rules)


Play = Callable[[Simulation], Awaitable[None]]
__all__ = ["PROFILE", "Inventory", "Manager", "Play", "Simulation", "new_simulation", "serving", "snapshot_text"]

"""The scheduling room on an API server in memory, on virtual time, with the stand-ins for Kueue and Node Feature Discovery beside it.

A room can be stopped, or killed at any write, and started anew.  Workloads have no Job behind them: as soon as Kueue evicts one, whoever
ran it takes its reservation away, unless `clings` is set.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gitops_ctl.kube.controller import Pace
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue_documents import carried, first_apply
from gitops_ctl.scheduling.room import SchedulingRoom
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.apiserver.request import Request
from tests.doubles.kueue import KueueStandIn, Variant, variant_crds
from tests.doubles.nfd import NfdStandIn
from tests.doubles.peer_crds import install, nfd_crds
from tests.support.kueue import BASE, eviction_finished, local_queue, workload
from tests.support.simulation_loop import LoopClock, run_virtually

Tree = dict[str, Any]
SOURCE_CRD = Path(__file__).resolve().parents[2] / "schemas" / "crds" / "worker.gpustack.ai_topologysources.yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SOURCES = "/apis/worker.gpustack.ai/v1alpha1/topologysources"
NODES = "/api/v1/nodes"
QUEUES, FLAVORS, TOPOLOGIES = (f"{BASE}/{plural}" for plural in ("clusterqueues", "resourceflavors", "topologies"))
WORKLOADS = f"{BASE}/namespaces/team/workloads"
REGION, ZONE, RACK = (f"topology.gpustack.ai/{name}" for name in ("region", "zone", "rack"))
PROFILE = "topology.gpustack.ai/profile"
CPU = "general.feature.gpustack.ai/amd-25"
GPU = "acceleratable.feature.gpustack.ai/nvidia-a10g"
HARDWARE = {
    "gpustack.ai/managed": "true",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    CPU: "true",
    f"{CPU}.count": "4",
}
POOL = {
    "resource.gpustack.ai/type": "instancetypes",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "feature.gpustack.ai/acceleratable": "false",
    CPU: "true",
}
HOSTNAME_ONLY = "fnv64-87bf574bea2a4f23"
ZONED, RACKED = "fnv64-29c7d645fad688b1", "fnv64-dde125aa4572179a"
"""Profiles of host name; region, zone; region, zone, rack."""


def flavor_name(profile: str, *, count: int = 4) -> str:
    """The CPU flavor of the Nodes here."""
    return f"gpustack--amd-25-linux-amd64-{count}c-{profile}"


class _ManagersClock(LoopClock):
    """That of the manager's machine, whose wall clock may be wrong."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def wall(self) -> datetime:
        return super().wall() + timedelta(seconds=self._world.skew_s)


class Crash(BaseException):
    """The process ends here."""


class World:
    """One cluster.

    Attributes:
        warnings: the Warning events, as (reason, name of the object, note).
        skew_s: by how much the wall clock of the manager is ahead of everybody else's.
    """

    def __init__(
        self,
        *,
        kueue: bool = True,
        nfd: bool = True,
        base: Snapshot | None = None,
        variant: Variant = Variant.V0_17,
    ) -> None:
        """`base` is what the server has at the beginning, instead of definitions only."""
        self.clock = LoopClock()
        self.api = ApiServer(now=self.clock.wall, lag=0)
        self.api.restore(base or _prepared(kueue=variant if kueue else None, nfd=nfd))
        self.kueue, self.nfd = KueueStandIn(self.api, variant=variant), NfdStandIn(self.api)
        self.warnings: list[tuple[str, str, str]] = []
        self.writes: list[Call] = []
        self.clings = False
        self.skew_s = 0.0
        self.crash_at: Callable[[Call, Side], bool] = lambda _call, _side: False
        self.room: SchedulingRoom | None = None
        self._running: asyncio.Task[None] | None = None
        self._client: KubeClient | None = None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator["World"]:
        """With Kueue and NFD at work; whatever runs at the end is stopped."""
        self.admin = direct_client(self.api, component="admin", clock=self.clock)
        async with self.admin:
            others = [
                asyncio.create_task(self.kueue.run(self.clock)),
                asyncio.create_task(self.nfd.run(self.clock)),
                asyncio.create_task(self._stop_evicted()),
            ]
            try:
                yield self
            finally:
                await self.stop()
                for task in others:
                    task.cancel()
                await asyncio.gather(*others, return_exceptions=True)

    # -- the room -------------------------------------------------------------------------------------------------

    async def start(self, options: Options | None = None, **more: Any) -> SchedulingRoom:
        """A manager leads."""
        self._client = direct_client(self.api, component="manager", clock=_ManagersClock(self), point=self._point)
        await self._client.__aenter__()
        self.room = SchedulingRoom(
            self._client, options=options, emit=self._tell, pace=Pace(blocked_s=5.0, bug_s=5.0), **more
        )
        self._running = asyncio.create_task(self.room.run())
        return self.room

    async def stop(self) -> None:
        """It ends in order."""
        if self.room is not None and self._running is not None and self._client is not None:
            self.room.stop()
            with contextlib.suppress(BaseExceptionGroup):
                await self._running
            await self._client.__aexit__(None, None, None)
        self.room = self._running = None

    async def crashed(self, *, timeout_s: float = 600.0) -> bool:
        """Wait until the process died; False when it came to rest first."""
        assert self._running is not None
        done, _ = await asyncio.wait({self._running}, timeout=timeout_s)
        if done:
            assert isinstance(self._running.exception(), BaseExceptionGroup)
        return bool(done)

    def _point(self, call: Call, side: Side) -> None:
        is_write = call.verb in WRITE_VERBS
        if is_write and side == "after":
            self.writes.append(call)
        if is_write and self.crash_at(call, side):
            raise Crash

    def _tell(self, tree: Any, kind: str, reason: str, note: str) -> None:
        if kind == "Warning":
            self.warnings.append((reason, tree["metadata"]["name"], note))

    # -- the cluster ----------------------------------------------------------------------------------------------

    async def put(self, tree: Tree) -> Tree:
        """Apply an object as an administrator."""
        made: Any = await self.admin.apply(path_of(tree), tree, manager="admin", force=True)
        return dict(made)

    async def node(self, name: str, **labels: str) -> Tree:
        """A Ready Node with hardware labels; `labels` are those of the inventory, by their short names."""
        topology = {f"topology.gpustack.ai/{key}": value for key, value in labels.items()}
        tree = await self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "annotations": {"example.net/rack": "any"},
                    "labels": {**HARDWARE, "kubernetes.io/hostname": name, **topology},
                },
            }
        )
        amounts = {"cpu": "4", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await self.admin.patch_merge(f"{NODES}/{name}", {"status": status}, subresource="status")
        await self.admin.patch_merge(f"{NODES}/{name}", {"spec": {"taints": None}})
        return tree

    async def label(self, node: str, **labels: str | None) -> None:
        """Other inventory labels."""
        named = {f"topology.gpustack.ai/{key}": value for key, value in labels.items()}
        await self.admin.patch_merge(f"{NODES}/{node}", {"metadata": {"labels": named}})

    async def source(self, *levels: str, name: str = "hall", **spec: Any) -> None:
        """A source over labels that are on the Nodes already."""
        await self.put(
            {
                "apiVersion": "worker.gpustack.ai/v1alpha1",
                "kind": "TopologySource",
                "metadata": {"name": name},
                "spec": {"nodeSelector": {}, "levels": list(levels), **(spec or {"nodeLabels": {}})},
            }
        )

    async def queue(self, name: str = "cpu", *, labels: Tree | None = None, **spec: Any) -> None:
        """A managed queue as a Sync creates it, with a LocalQueue."""
        document: Tree = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": name, "labels": POOL if labels is None else labels},
            "spec": {"namespaceSelector": {}, **spec},
        }
        path = f"{QUEUES}/{name}"
        if await self.admin.find(path) is None:
            await self.admin.apply(path, first_apply(document), manager="gitops-ctl-scheduling", force=True)
        await self.git(document)
        leading = local_queue(name, name)
        await self.put({**leading, "metadata": {"name": name, "namespace": "team"}})

    async def git(self, document: Tree) -> None:
        """What a Sync applies of a queue's document."""
        path = f"{QUEUES}/{document['metadata']['name']}"
        await self.admin.apply(path, carried(document), manager="gitops-ctl", force=True)

    async def workload(self, name: str, *, queue: str = "cpu", count: int = 1, required: str = "") -> None:
        """A Workload of pods with one CPU each."""
        tree = workload(name, queue, count=count, required=required, cpu="1")
        await self.put({**tree, "metadata": {"name": name, "namespace": "team"}})

    async def get(self, path: str) -> Tree:
        """An object; empty when it is not there."""
        found: Any = await self.admin.find(path)
        return dict(found or {})

    async def names(self, path: str) -> set[str]:
        """The names of all objects of a kind."""
        page: Any = await self.admin.list_all(path)
        return {tree["metadata"]["name"] for tree in page.items}

    async def profile(self, node: str) -> str:
        """The profile label of a Node."""
        tree = await self.get(f"{NODES}/{node}")
        return str(tree["metadata"]["labels"].get(PROFILE, ""))

    async def marks(self, queue: str = "cpu") -> dict[str, str]:
        """Our annotations of a queue, by their short names, with the policy."""
        tree = await self.get(f"{QUEUES}/{queue}")
        annotations: dict[str, str] = tree["metadata"].get("annotations", {})
        found = {key.rpartition("/")[2]: value for key, value in annotations.items()}
        return {**found, "policy": tree["spec"].get("stopPolicy", "")}

    async def quotas(self, queue: str = "cpu") -> dict[str, str]:
        """Flavors and quotas of a queue."""
        tree = await self.get(f"{QUEUES}/{queue}")
        return {
            flavor["name"]: flavor["resources"][0]["nominalQuota"]
            for group in tree["spec"].get("resourceGroups", ())
            for flavor in group["flavors"]
        }

    async def condition(self, queue: str = "cpu") -> str:
        """Status, reason and message of TopologyReady."""
        tree = await self.get(f"{QUEUES}/{queue}")
        found = [each for each in tree.get("status", {}).get("conditions", ()) if each["type"] == "TopologyReady"]
        return f"{found[0]['status']}/{found[0]['reason']}: {found[0]['message']}" if found else ""

    async def reserved(self, name: str) -> dict[str, str]:
        """The flavors in which a Workload has its reservation."""
        tree = await self.get(f"{WORKLOADS}/{name}")
        admission = tree.get("status", {}).get("admission") or {"podSetAssignments": []}
        return dict(admission["podSetAssignments"][0]["flavors"]) if admission["podSetAssignments"] else {}

    async def until(
        self, holds: Callable[[], Coroutine[Any, Any, Any]], *, what: str, timeout_s: float = 900.0
    ) -> None:
        """Wait for a condition, looking each second of virtual time."""
        end_s = self.clock.boot_s() + timeout_s
        while not await holds():
            if self.clock.boot_s() >= end_s:
                raise AssertionError(f"never: {what}; {await self._state()}")
            await self.clock.sleep(1.0)

    async def until_condition(self, text: str, queue: str = "cpu") -> None:
        """Wait until TopologyReady begins like this."""

        async def holds() -> bool:
            return (await self.condition(queue)).startswith(text)

        await self.until(holds, what=f"TopologyReady of {queue} is {text}")

    async def until_serves(self, quotas: Mapping[str, str], queue: str = "cpu") -> None:
        """Wait until the queue is open with these quotas."""

        async def holds() -> bool:
            marks = await self.marks(queue)
            is_open = marks["policy"] == "None" and "migration-phase" not in marks
            return is_open and await self.quotas(queue) == quotas

        await self.until(holds, what=f"the queue serves {quotas}")
        await self.until_condition("True/Ready", queue)

    async def at_rest(self, seconds: float = 120.0) -> list[Call]:
        """What the room writes from now on."""
        before = len(self.writes)
        await self.clock.sleep(seconds)
        return self.writes[before:]

    async def _state(self) -> str:
        tree = await self.get(f"{QUEUES}/cpu")
        return json.dumps({name: tree.get(name) for name in ("metadata", "spec", "status")}, default=str)[:3000]

    async def _stop_evicted(self) -> None:
        while True:
            await self.clock.sleep(2.0)
            for _, tree in () if self.clings else self.api.store.all(("kueue.x-k8s.io", "workloads"), "team"):
                done = eviction_finished(tree)
                if done is not None:
                    name = tree["metadata"]["name"]
                    await self.admin.replace(f"{WORKLOADS}/{name}", done, subresource="status")


@cache
def _prepared(*, kueue: Variant | None, nfd: bool) -> Snapshot:
    """A server with the definitions and two namespaces; made once."""
    api = ApiServer(lag=0)
    own = yaml.load(SOURCE_CRD.read_text(), yaml.CSafeLoader)
    install(api, [own, *(variant_crds(kueue) if kueue is not None else []), *(nfd_crds() if nfd else [])])
    for name in ("gpustack-system", "team"):
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode()
        assert (
            api.handle(Request("POST", "/api/v1/namespaces", {}, {"content-type": "application/json"}, body)).code
            == 201
        )
    return api.snapshot()


def path_of(tree: Tree) -> str:
    """Where an object of a test lies."""
    plurals = {"Topology": "topologies"}
    group = tree["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    metadata = tree["metadata"]
    scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = plurals.get(tree["kind"], f"{tree['kind'].lower()}s")
    return f"{root}{scope}/{plural}/{metadata['name']}"


def in_world(story: Callable[[World], Coroutine[Any, Any, None]], **more: Any) -> None:
    """Run a story in a new cluster, on virtual time."""

    async def run() -> None:
        async with World(**more).living() as world:
            await story(world)

    run_virtually(run())


async def hall(world: World, *levels: str, options: Options | None = None) -> None:
    """Four Nodes in two zones, a source over their labels, a queue, and the room at work until the queue serves."""
    for number, zone in enumerate(("a", "a", "b", "b"), start=1):
        await world.node(f"n{number}", region="north", zone=zone)
    await world.source(*(levels or (REGION, ZONE)))
    await world.queue()
    await world.start(options)

    async def is_open() -> bool:
        return (await world.condition()).startswith("True/Ready") and (await world.marks())["policy"] == "None"

    with contextlib.suppress(AssertionError):
        await world.until(is_open, what="the queue is open", timeout_s=60.0)

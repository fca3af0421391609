"""Topology-aware scheduling in a large cluster: 5,000 Nodes, 64 flavors, one queue, ten sources whose snapshots are ConfigMaps.

The manager is the product's own process with its shipped rights, on a real API server with the definitions of Kueue and NFD.  These two are
played here, at once and with the same requests, since their time is not ours: labels of NodeFeatures are put on Nodes, and a queue is
told that its spec is observed and that nothing is reserved.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.kube.mapper import Mapper
from gitops_ctl.local.kueue import KUEUE_CRDS
from gitops_ctl.local.nfd import NFD_CRDS
from gitops_ctl.local.product import put
from gitops_ctl.local.published import published_files
from gitops_ctl.scheduling.names import WORKER_NAMESPACE
from gitops_ctl.scheduling.options import Options
from gitops_ctl.scheduling.queue import Queue
from gitops_ctl.scheduling.queue_documents import first_apply
from gitops_ctl.scheduling.queue_plan import Plan, plan_queue
from gitops_ctl.scheduling.queue_plan import World as Seen
from gitops_ctl.scheduling.selectors import labels_of
from tools.bench.cold import bare_loop
from tools.bench.figures import Figure, Report, Target
from tools.bench.process import rss_mib
from tools.bench.steady import settled
from tools.bench.world import MANAGER_AGENT, World

SOURCES, FLAVORS, CHANGED = 10, 64, 100
QUEUE = "cpu"
LEVELS = tuple(f"topology.gpustack.ai/{name}" for name in ("region", "zone", "rack"))
CPU = "general.feature.gpustack.ai/amd-25"
HARDWARE = {"gpustack.ai/managed": "true", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", CPU: "true"}
POOL = {
    "resource.gpustack.ai/type": "instancetypes",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "feature.gpustack.ai/acceleratable": "false",
    CPU: "true",
}
_KUEUE, _WORKER = "/apis/kueue.x-k8s.io/v1beta2", "/apis/worker.gpustack.ai/v1alpha1"
_QUEUE = f"{_KUEUE}/clusterqueues/{QUEUE}"
_FEATURES = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{WORKER_NAMESPACE}/nodefeatures"
_BENCH = {"query": "?fieldManager=bench&force=true"}
_ELSEWHERE = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/default/nodefeatures"
"""Where nobody looks at NodeFeatures."""
_WRITES = ("create", "update", "patch", "delete")


@dataclass
class Halls:
    """The Nodes by hall, one hall a source, and where each Node stands."""

    count: int
    places: dict[int, dict[str, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(self.count):
            hall = number % SOURCES
            place = ("north", f"hall-{hall}", f"hall-{hall}-{number // SOURCES % 20}")
            # The last flavor: Nodes of the smallest kind that have no rack.
            is_short = self.cpus(number) == 1 and hall == SOURCES - 1
            self.places.setdefault(hall, {})[self.node(number)] = place[:2] if is_short else place

    @staticmethod
    def node(number: int) -> str:
        return f"node-{number:05d}"

    @staticmethod
    def cpus(number: int) -> int:
        """A quarter of each hall is of the smallest kind; all others share the rest of the kinds."""
        return 1 if number // SOURCES % 4 == 0 else number % (FLAVORS - 2) + 2

    def is_small(self, node: str) -> bool:
        """Whether it is of the smallest kind."""
        return self.cpus(int(node[-5:])) == 1

    @property
    def without_rack(self) -> int:
        """How many Nodes have no rack; all of them are of the smallest kind."""
        return sum(len(place) < len(LEVELS) for places in self.places.values() for place in places.values())

    def labels(self, hall: int, node: str) -> dict[str, str]:
        return dict(zip(LEVELS, self.places[hall][node], strict=False))

    def request(self, node: str) -> dict[str, str]:
        """Makes a Node as NFD would leave it; what the same manager named before and names no more goes."""
        hall = int(node[-5:]) % SOURCES
        labels = HARDWARE | {f"{CPU}.count": str(self.cpus(int(node[-5:]))), "example.net/hall": str(hall)}
        labels |= {"kubernetes.io/hostname": node, **self.labels(hall, node)}
        metadata = {"name": node, "labels": labels, "annotations": {"example.net/made-by": "bench"}}
        return _request("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})

    def config_map(self, hall: int, revision: str) -> dict[str, Any]:
        nodes = {node: self.labels(hall, node) for node in self.places[hall]}
        text = {"apiVersion": "topology.gpustack.ai/v1alpha1", "revision": revision, "nodes": nodes}
        metadata = {"name": f"hall-{hall}", "namespace": WORKER_NAMESPACE}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"snapshot.json": json.dumps(text)},
        }

    def source(self, hall: int) -> dict[str, Any]:
        reference = {"namespace": WORKER_NAMESPACE, "name": f"hall-{hall}"}
        spec = {
            "nodeSelector": {"matchLabels": {"example.net/hall": str(hall)}},
            "levels": list(LEVELS),
            "configMap": {"configMapRef": reference, "key": "snapshot.json", "maxStaleness": "1h"},
        }
        metadata = {"name": f"hall-{hall}"}
        return {
            "apiVersion": "worker.gpustack.ai/v1alpha1",
            "kind": "TopologySource",
            "metadata": metadata,
            "spec": spec,
        }


async def topology(made: World, report: Report, *, count: int, rounds: int, window_s: float) -> None:
    """All figures, in one cluster."""
    await _definitions(made)
    await made.start_manager()
    await settled(made)
    empty_mib = rss_mib(made.manager_pid)
    await made.stop_manager()
    halls = Halls(count)
    await bare_loop(made, [halls.request(halls.node(number)) for number in range(count)], **_BENCH)
    await _documents(made, halls)
    async with _kueue(made):
        await _cold(made, halls, report)
        await _rest(made, report, count=count, window_s=window_s, empty_mib=empty_mib)
        await _values(made, halls, report, rounds=rounds)
        await _levels(made, halls, report)
        await _plans(made, report, rounds=rounds)
        report.add(
            Figure(f"{count} Nodes, most memory since the start", "MiB", (rss_mib(made.manager_pid, peak=True),))
        )
        await made.stop_manager()


async def _cold(made: World, halls: Halls, report: Report) -> None:
    """From a manager that starts to an open queue: NodeFeatures, profiles, flavors and a plan for every Node."""
    made.audit.mark()
    began = time.monotonic()
    await made.start_manager()
    await _until_open(made, flavors=len(_flavors_of(halls)))
    took = time.monotonic() - began
    await settled(made)
    writes = _writes(made)
    report.counts["scheduling, cold: requests"] = made.audit.counts(MANAGER_AGENT)
    features = [
        _request(_ELSEWHERE, _feature(node, halls.labels(hall, node)))
        for hall, places in halls.places.items()
        for node in places
    ]
    labels = [
        _request("/api/v1/nodes", _label(halls.node(number), {"example.net/bench": "1"}))
        for number in range(halls.count)
    ]
    floor = await bare_loop(made, [*features, *labels], query="?fieldManager=reference&force=true")
    report.add(
        Figure(
            f"{halls.count} Nodes, {SOURCES} sources, {FLAVORS} flavors: start to an open queue",
            "s",
            (took,),
            (floor["seconds"],),
            "bare loop, as many NodeFeatures and Node labels",
            inverse=True,
        ),
        Figure(
            "the same, writes",
            "",
            (float(writes),),
            (2.0 * halls.count,),
            "a NodeFeature and a label a Node",
            inverse=True,
        ),
    )


async def _rest(made: World, report: Report, *, count: int, window_s: float, empty_mib: float) -> None:
    await settled(made)
    made.audit.mark()
    await asyncio.sleep(window_s)
    report.counts[f"scheduling, requests at rest in {window_s:g} s"] = made.audit.counts(MANAGER_AGENT)
    memory = (rss_mib(made.manager_pid),)
    report.add(
        Figure(f"at rest with {count} Nodes, writes beside Leases", "", (float(_writes(made)),), target=Target(0)),
        Figure(
            f"at rest with {count} Nodes, memory",
            "MiB",
            memory,
            (empty_mib,),
            "the same process in an empty cluster",
            inverse=True,
            target=Target(200),
        ),
    )


async def _values(made: World, halls: Halls, report: Report, *, rounds: int) -> None:
    """A snapshot moves some Nodes to another rack: from the ConfigMap to the last write."""
    for share in (10, CHANGED):
        took, writes, floor, moved = [], [], [], min(share, halls.count // SOURCES // 2)
        for number in range(rounds):
            changed = _move(halls, hall := 1 + number % (SOURCES - 1), moved, rack=f"r-{share}-{number}")
            made.audit.mark()
            took.append(await _revision(made, halls, hall, f"{share}-{number}"))
            writes.append(float(_writes(made)))
            # NFD's part; the labels change no profile, so nothing follows.
            result = await bare_loop(made, [halls.request(node) for node in changed], **_BENCH)
            floor.append(result["seconds"])
            await settled(made)
        report.add(
            Figure(
                f"snapshot that moves {moved} Nodes, to the last write",
                "s",
                tuple(took),
                tuple(floor),
                "bare loop, one write a Node",
                inverse=True,
                note="with the window of 1 s",
            ),
            Figure(
                f"snapshot that moves {moved} Nodes, writes",
                "",
                tuple(writes),
                (moved + 1.0,) * rounds,
                "changed Nodes and one status",
                inverse=True,
                target=Target(moved + 1.0),
            ),
        )


async def _levels(made: World, halls: Halls, report: Report) -> None:
    """A snapshot takes the racks of some Nodes away: other profiles, another flavor, another plan."""
    hall = 0
    chosen = [name for name, place in halls.places[hall].items() if halls.is_small(name) and len(place) == len(LEVELS)]
    for node in chosen:
        halls.places[hall][node] = halls.places[hall][node][:2]
    made.audit.mark()
    await _revision(made, halls, hall, "shorter")
    began = time.monotonic()
    floor = await bare_loop(made, [halls.request(node) for node in chosen], **_BENCH)

    async def planned() -> bool:
        quotas = _quotas(await made.client.get(_QUEUE))
        return str(halls.without_rack) in quotas.values() and await _serves(made, len(quotas))

    await made.until(planned, "the plan follows", poll_s=0.1)
    took = time.monotonic() - began
    await settled(made)
    report.counts["scheduling, levels change: requests"] = made.audit.counts(MANAGER_AGENT)
    report.add(
        Figure(
            f"{len(chosen)} Nodes with fewer levels, labels on the Nodes to the plan",
            "s",
            (took,),
            (floor["seconds"],),
            "bare loop, the labels alone",
            inverse=True,
            note="with windows of 5 s and 3 s",
        ),
        Figure(
            f"{len(chosen)} Nodes with fewer levels, writes",
            "",
            (float(_writes(made)),),
            (2.0 * len(chosen),),
            "a NodeFeature and a label a Node",
            inverse=True,
            note="beside the status of source and queue, flavors and the plan",
        ),
    )


async def _plans(made: World, report: Report, *, rounds: int) -> None:
    """The pure planner over the whole cluster, beside the plain loop that counts the Nodes of each flavor."""
    live: Any = await made.client.get(_QUEUE)
    pages: list[Any] = [
        await made.client.list_all(path)
        for path in (f"{_KUEUE}/resourceflavors", f"{_KUEUE}/topologies", "/api/v1/nodes")
    ]
    flavors, topologies, nodes = (tuple({**tree} for tree in page.items) for page in pages)
    labels = {tree["metadata"]["name"]: labels_of(tree) for tree in nodes}
    seen = Seen(flavors, frozenset(tree["metadata"]["name"] for tree in topologies), labels)
    queue, took, floor = Queue.of(live), [], []
    for _ in range(max(rounds, 3)):
        began = time.perf_counter()
        plan = plan_queue(queue, seen, options=Options())
        took.append((time.perf_counter() - began) * 1000)
        assert isinstance(plan, Plan), plan
        began = time.perf_counter()
        counted = [
            sum(tree["spec"]["nodeLabels"].items() <= one.items() for one in labels.values()) for tree in flavors
        ]
        floor.append((time.perf_counter() - began) * 1000)
        assert sum(counted) == len(labels)
    report.add(
        Figure(
            f"one plan of {len(flavors)} flavors and {len(labels)} Nodes, every check included",
            "ms",
            tuple(took),
            tuple(floor),
            "a plain loop that counts the Nodes of each flavor",
            inverse=True,
            target=Target(200),
        )
    )


# -- the cluster -------------------------------------------------------------------------------------------------------


async def _definitions(made: World) -> None:
    mapper = Mapper(made.client)
    for source in (KUEUE_CRDS, NFD_CRDS):
        for path in (await published_files(source)).values():
            for tree in yaml.load_all(await asyncio.to_thread(path.read_bytes), yaml.CSafeLoader):
                if tree and tree["kind"] == "CustomResourceDefinition":
                    await put(made.client, mapper, wanted=tree, manager="bench")

    async def served() -> bool:
        with suppress(GitopsError):
            for path in (f"{_KUEUE}/clusterqueues", f"{_KUEUE}/topologies", f"{_KUEUE}/resourceflavors", _FEATURES):
                await made.client.list_all(path)
            return True
        return False

    await made.until(served, "the kinds of Kueue and NFD are served")


async def _documents(made: World, halls: Halls) -> None:
    """Snapshots, sources and the queue, as a Sync would apply them."""
    for hall in halls.places:
        await _apply(made, f"/api/v1/namespaces/{WORKER_NAMESPACE}/configmaps", halls.config_map(hall, "first"))
        await _apply(made, f"{_WORKER}/topologysources", halls.source(hall))
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": QUEUE, "labels": POOL},
        "spec": {"namespaceSelector": {}},
    }
    await made.client.apply(_QUEUE, first_apply(queue), manager="gitops-ctl-scheduling", force=True)
    await _apply(made, f"{_KUEUE}/clusterqueues", queue)


async def _apply(made: World, collection: str, tree: Mapping[str, Any]) -> None:
    await made.client.apply(f"{collection}/{tree['metadata']['name']}", tree, manager="bench", force=True)


@asynccontextmanager
async def _kueue(made: World) -> AsyncIterator[None]:
    """Meanwhile the queue is told that its spec is observed, and that nothing is reserved."""

    async def observe() -> None:
        while True:
            with suppress(GitopsError):
                await _observe(made)
            await asyncio.sleep(0.2)

    task = asyncio.create_task(observe())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _observe(made: World) -> None:
    live: Any = await made.client.get(_QUEUE)
    status = live.get("status", {})
    seen = [one.get("observedGeneration") for one in status.get("conditions", ()) if one["type"] == "Active"]
    if seen == [live["metadata"]["generation"]]:
        return
    is_open = live["spec"].get("stopPolicy", "None") == "None"
    active = {
        "type": "Active",
        "status": "True" if is_open else "False",
        "reason": "Ready" if is_open else "Stopped",
        "message": "",
        "observedGeneration": live["metadata"]["generation"],
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    idle = [{"name": name, "resources": [{"name": "cpu", "total": "0", "borrowed": "0"}]} for name in _quotas(live)]
    counted = {"conditions": [active], "flavorsReservation": idle, "flavorsUsage": idle}
    body = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {"name": QUEUE}, "status": counted}
    await made.client.apply(_QUEUE, body, manager="kueue", force=True, subresource="status")


async def _until_open(made: World, *, flavors: int) -> None:
    """However long it takes: there are two or three writes for each Node."""
    while True:
        if await _serves(made, flavors):
            return
        await asyncio.sleep(0.2)


async def _serves(made: World, flavors: int) -> bool:
    """Whether the queue is open with so many flavors."""
    live: Any = await made.client.get(_QUEUE)
    ready = any(
        one["type"] == "TopologyReady" and one["status"] == "True"
        for one in live.get("status", {}).get("conditions", ())
    )
    return ready and len(_quotas(live)) == flavors and live["spec"].get("stopPolicy") == "None"


async def _revision(made: World, halls: Halls, hall: int, revision: str) -> float:
    """Change a ConfigMap; seconds until the source has named the revision, which is its last write."""
    began = time.monotonic()
    await _apply(made, f"/api/v1/namespaces/{WORKER_NAMESPACE}/configmaps", halls.config_map(hall, revision))

    async def named() -> bool:
        live: Any = await made.client.get(f"{_WORKER}/topologysources/hall-{hall}")
        return bool(live.get("status", {}).get("lastSuccessfulRevision") == revision)

    await made.until(named, f"revision {revision} is applied", poll_s=0.02)
    return time.monotonic() - began


def _move(halls: Halls, hall: int, count: int, *, rack: str) -> list[str]:
    """Put some Nodes of a hall into another rack."""
    chosen = [node for node, place in halls.places[hall].items() if len(place) == len(LEVELS)][:count]
    for node in chosen:
        halls.places[hall][node] = (*halls.places[hall][node][:2], f"hall-{hall}-{rack}")
    return chosen


def _flavors_of(halls: Halls) -> set[tuple[int, int]]:
    """Cores and number of levels: what tells the flavors apart."""
    return {
        (halls.cpus(int(node[-5:])), len(place)) for places in halls.places.values() for node, place in places.items()
    }


def _writes(made: World) -> int:
    counts = made.audit.counts(MANAGER_AGENT)
    return sum(
        n for name, n in counts.items() if name.split()[0] in _WRITES and "leases" not in name and "events" not in name
    )


def _quotas(queue: Any) -> dict[str, str]:
    return {
        flavor["name"]: flavor["resources"][0]["nominalQuota"]
        for group in queue["spec"].get("resourceGroups", ())
        for flavor in group["flavors"]
    }


def _request(collection: str, tree: dict[str, Any]) -> dict[str, str]:
    return {"path": f"{collection}/{tree['metadata']['name']}", "body": json.dumps(tree)}


def _label(node: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}}


def _feature(name: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": metadata,
        "spec": {"labels": labels},
    }

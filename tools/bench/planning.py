"""The contestants of planning and of the ledger, each a process of its own: `python -m tools.bench.planning NAME JOB.json` prints one JSON line.

    freeze       the first plan after a start: the whole fleet is judged, the targets are read again, the plan is frozen and encoded
    pass         planning again and again, a hundredth of the fleet changed since the time before
    parse        reference of freeze: every object of the fleet parsed, and hashed in the canonical encoding
    loop         reference of pass: a loop over the fleet that compares versions; the targets and their Nodes parsed and hashed
    ledger       transitions of a full ledger, each a compare-and-swap
    text         reference of ledger: the same reads and writes; the text is parsed, changed in one member and printed

Each prints seconds of wall and of CPU, one of both for each time.

Objects are as the API server sends them: bytes of JSON.  No socket is opened; what the store answers is parsed each time.
"""

import asyncio
import dataclasses
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gitops_ctl.cli.rolloutfleet import ManagedFleet
from gitops_ctl.core.canonical import digest
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet import names
from gitops_ctl.fleet.encoding import compact_json
from gitops_ctl.fleet.ledger import Ledger, Reservation, encode_ledger
from gitops_ctl.kube.cache import Cache, Change, Entry
from gitops_ctl.rollout.bootstrap import BoundPolicy
from gitops_ctl.rollout.inventory import FleetBook
from gitops_ctl.rollout.ledger_arithmetic import EffectivePolicy, Fleet, Limits, ReserveRequest, reserve
from gitops_ctl.rollout.ledger_store import LedgerAt, LedgerStore
from gitops_ctl.rollout.ledger_transitions import Settled, acquisition_of, bind_child, grant, settle
from gitops_ctl.rollout.planning import PlanningPorts, plan_rollout
from gitops_ctl.rollout.refusal import Refusal
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.seen import seen_device, seen_node
from tests.support import ledger as records
from tests.support import rollout_planning as objects
from tools.bench.process import rss_mib

Tree = dict[str, Any]
RECORDS = 256
CYCLE_SEARCH = (50_000, 20, 20)
MARK = {"example.net/campaign": "spring"}
"""What the targets of the plan have in common."""
_ZONES = 40
_LEDGER = LedgerAt("topology-system", "topology-ledger", records.LEDGER_UID)
_GROUP = {
    "name": "all",
    "selector": {"matchLabels": {objects.REGION: "north"}},
    "maxUnavailable": 100,
    "maxConcurrentTransfers": 100,
}


# -- the fleet ---------------------------------------------------------------------------------------------------------


def device_name(number: int) -> str:
    return f"edge-{number:05d}"


def fleet(count: int, *, targets: int) -> Iterator[tuple[Tree, Tree]]:
    """Devices with their Nodes; the targets are spread over the whole list."""
    step = max(count // targets, 1)
    for number in range(count):
        name, zone = device_name(number), f"z{number % _ZONES}"
        marked = MARK if number % step == 0 and number // step < targets else {}
        tree = objects.device(name, labels={**objects.labels_of(name, zone=zone), **marked})
        tree["metadata"]["resourceVersion"] = str(1000 + number)
        yield tree, objects.node(tree)


def write_fleet(folder: Path, count: int, *, targets: int) -> None:
    """The fleet as lines of JSON, a device and its Node each."""
    lines = (json.dumps(pair, separators=(",", ":")) for pair in fleet(count, targets=targets))
    (folder / "fleet.jsonl").write_text("".join(f"{line}\n" for line in lines))


class Lap(NamedTuple):
    """Seconds of one time."""

    wall_s: float
    cpu_s: float


class Watch:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def read(self) -> Lap:
        return Lap(time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s)


class Stored:
    """As much of a client as planning and the ledger use: what is asked for is parsed anew."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.texts: dict[str, bytes] = {}

    def put(self, path: str, tree: Tree) -> None:
        self.texts[path] = msgspec.json.encode(tree)

    async def find(self, path: str) -> Tree | None:
        text = self.texts.get(path)
        return None if text is None else msgspec.json.decode(text)

    async def get(self, path: str) -> Tree:
        found: Tree = msgspec.json.decode(self.texts[path])
        return found

    async def list_all(self, _path: str, **_query: str) -> Any:
        return dataclasses.make_dataclass("Page", ["items"])(())

    async def patch_merge(self, path: str, change: Tree, **_how: str) -> Tree:
        """Only `data` is changed; the version grows by one."""
        sent = msgspec.json.decode(msgspec.json.encode(change))
        tree = await self.get(path)
        if sent["metadata"]["resourceVersion"] != tree["metadata"]["resourceVersion"]:
            raise AssertionError("a conflict, where nobody else writes")
        tree["data"].update(sent["data"])
        tree["metadata"]["resourceVersion"] = str(int(tree["metadata"]["resourceVersion"]) + 1)
        self.put(path, tree)
        return tree

    def draw(self) -> float:
        return 0.5


class Planner:
    """The product's planner over caches that hold the fleet as its informers keep it."""

    def __init__(self, folder: Path) -> None:
        client: Any = Stored()
        self.client, self._written = client, asyncio.Event()
        self.caches = Caches(client, options=Options())
        self.names: list[str] = []
        for line in (folder / "fleet.jsonl").read_bytes().splitlines():
            for tree in msgspec.json.decode(line):
                self._keep(tree)
        inventory = _Loaded(self.caches, Options())
        self.book = FleetBook(inventory, clock=_At(objects.NOW), learned=self._written.set)
        self.rollout = objects.rollout(
            first=(device_name(0),),
            selector={"matchLabels": MARK},
            canaries=[{"name": "c9300", "devices": [device_name(0)]}],
        )
        record = objects.policy_record(riskGroups=[_GROUP])

        async def policy() -> BoundPolicy:
            return BoundPolicy(record, _LEDGER)

        async def no_secrets(_rollout: object) -> Any:
            return {}

        self.ports = PlanningPorts(client, _At(objects.NOW), policy, self.book.for_planning, no_secrets)

    def _keep(self, tree: Tree) -> None:
        meta = tree["metadata"]
        if tree["kind"] == "Node":
            self.client.put(f"/api/v1/nodes/{meta['name']}", tree)
            _take(self.caches.nodes.cache, NamespacedName("", meta["name"]), tree, seen_node(tree))
        else:
            path = f"/apis/cisco.vk/v1alpha1/namespaces/{meta['namespace']}/ciscodevices/{meta['name']}"
            self.client.put(path, tree)
            self.names.append(path)
            _take(self.caches.devices.cache, NamespacedName.of(tree), tree, seen_device(tree))

    def renew(self, paths: Iterable[str]) -> None:
        """These devices were written again and say the same."""
        for path in paths:
            tree = msgspec.json.decode(self.client.texts[path])
            tree["metadata"]["resourceVersion"] = str(int(tree["metadata"]["resourceVersion"]) + 100_000)
            self._keep(tree)
            self.names.pop()

    async def plan(self) -> str:
        """Plan until there is a plan; its hash, after it was encoded for publication."""
        while (found := await plan_rollout(self.ports, self.rollout)) is None:
            self._written.clear()
            await self._written.wait()
        if found.frozen is None:
            raise AssertionError(found.problem)
        compact_json(found.status)
        return found.frozen.hash


class _Loaded(ManagedFleet):
    """Everything was seen."""

    @property
    def usable(self) -> bool:
        return True


class _At(SystemClock):
    """Stands still where people read clocks."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._now = now

    def wall(self) -> datetime:
        return self._now


def _take(cache: Cache[Any], key: NamespacedName, tree: Tree, value: Any) -> None:
    entry = Entry(tree["metadata"]["uid"], tree["metadata"]["resourceVersion"], value)
    cache.change(Change("added", key, None, entry))


# -- contestants -------------------------------------------------------------------------------------------------------


async def freeze_once(folder: Path, _job: Tree) -> list[Lap]:
    planner = Planner(folder)
    watch = Watch()
    await planner.plan()
    return [watch.read()]


async def plan_again(folder: Path, job: Tree) -> list[Lap]:
    planner, took = Planner(folder), []
    first = await planner.plan()
    for number in range(job["rounds"]):
        planner.renew(planner.names[number::100])
        watch = Watch()
        again = await planner.plan()
        took.append(watch.read())
        if again != first:
            raise AssertionError("another plan of the same fleet")
    return took


async def parse_all(folder: Path, _job: Tree) -> list[Lap]:
    lines = (folder / "fleet.jsonl").read_bytes().splitlines()
    watch = Watch()
    hashes = [digest(tree) for line in lines for tree in json.loads(line)]
    took = watch.read()
    if len(set(hashes)) != 2 * len(lines):
        raise AssertionError("two objects are the same")
    return [took]


async def loop_all(folder: Path, job: Tree) -> list[Lap]:
    lines = (folder / "fleet.jsonl").read_bytes().splitlines()
    versions = [(pair[0]["metadata"]["uid"], pair[0]["metadata"]["resourceVersion"]) for pair in map(json.loads, lines)]
    chosen = [line for line in lines if b'"example.net/campaign"' in line]
    known, took = dict(versions), []
    for _ in range(job["rounds"]):
        watch = Watch()
        changed = [uid for uid, version in sorted(versions) if known[uid] != version]
        hashes = [digest(tree) for line in chosen for tree in json.loads(line)]
        took.append(watch.read())
        if changed or len(hashes) != 2 * job["targets"]:
            raise AssertionError("another fleet than was written")
    return took


def full_ledger(count: int) -> Ledger:
    """A ledger with so many records of campaigns that are under way."""
    made = (records.a_record(f"edge-{number}", campaign=f"campaign-{number // 64}") for number in range(count))
    return records.with_records(*(dataclasses.replace(one, **_bound(one)) for one in made))


def _bound(record: Reservation) -> dict[str, Any]:
    ledger = bind_child(records.with_records(record), acquisition_of(record), child_uid=f"leaf-of-{record.id}")
    assert isinstance(ledger, Ledger), ledger
    found = ledger.reservations[0]
    return {"state": found.state, "child_uid": found.child_uid}


def _ledger_map() -> Tree:
    """The ConfigMap, one record short of full."""
    metadata = {"name": _LEDGER.name, "namespace": _LEDGER.namespace, "uid": _LEDGER.uid, "resourceVersion": "1"}
    return {
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {names.LEDGER_KEY: encode_ledger(full_ledger(RECORDS - 1))},
    }


def life_of(record: Reservation, fleet: Fleet) -> Sequence[Callable[[Ledger], Ledger | Refusal]]:
    """The transitions of one target that is upgraded."""
    limits, which, child = Limits(300, 300), acquisition_of(record), f"leaf-of-{record.id}"
    policy = EffectivePolicy(
        uid=record.policy_uid,
        version=record.policy_version,
        epoch=1,
        fleet=limits,
        domains={objects.REGION: limits, objects.ZONE: limits},
        risk_groups={},
        max_reservations=RECORDS,
        max_ledger_bytes=262144,
    )
    return (
        lambda ledger: reserve(ledger, policy, fleet, ReserveRequest(record, limits)),
        lambda ledger: bind_child(ledger, which, child_uid=child),
        lambda ledger: grant(ledger, which, ledger_uid=_LEDGER.uid, child_uid=child, revision=0),
        lambda ledger: settle(ledger, which, proof=Settled(child)),
    )


async def swap_ledger(_folder: Path, job: Tree) -> list[Lap]:
    client: Any = Stored()
    client.put(_LEDGER.path, _ledger_map())
    store, took = LedgerStore(client, _LEDGER), []
    fleet = records.merged(records.a_member(f"new-{number}") for number in range(job["rounds"]))
    for number in range(job["rounds"]):
        for step in life_of(records.a_record(f"new-{number}", campaign="spring"), fleet):
            watch = Watch()
            await _swapped(store, step)
            took.append(watch.read())
    return took


async def _swapped(store: LedgerStore, step: Callable[[Ledger], Ledger | Refusal]) -> None:
    async def decide(ledger: Ledger) -> Ledger | Refusal:
        return step(ledger)

    found = await store.update(decide)
    if isinstance(found, Refusal) or not found.written:
        raise AssertionError(found)


async def print_text(_folder: Path, job: Tree) -> list[Lap]:
    client, took = Stored(), []
    client.put(_LEDGER.path, _ledger_map())
    for number in range(4 * job["rounds"]):
        watch = Watch()
        tree = await client.get(_LEDGER.path)
        ledger = json.loads(tree["data"][names.LEDGER_KEY])
        ledger["changed"] = number
        change = {"metadata": tree["metadata"], "data": {names.LEDGER_KEY: json.dumps(ledger, separators=(",", ":"))}}
        await client.patch_merge(_LEDGER.path, change)
        took.append(watch.read())
    return took


CONTESTANTS: dict[str, Callable[[Path, Tree], Awaitable[list[Lap]]]] = {
    "freeze": freeze_once,
    "pass": plan_again,
    "parse": parse_all,
    "loop": loop_all,
    "ledger": swap_ledger,
    "text": print_text,
}


def main(arguments: Sequence[str]) -> None:
    """The program."""
    name, file = arguments
    # As in the manager.
    gc.freeze()
    gc.set_threshold(*CYCLE_SEARCH)
    job: Tree = json.loads(Path(file).read_bytes())
    took = asyncio.run(CONTESTANTS[name](Path(job["folder"]), job))
    print(json.dumps({"took": took, "cpu_s": time.process_time(), "peak_mib": rss_mib(os.getpid(), peak=True)}))


if __name__ == "__main__":
    main(sys.argv[1:])

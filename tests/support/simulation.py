"""Source, verification and sync of the product on an API server and a Git server in memory, on virtual time, with faults at I/O points.

A `World` is what lasts: the store, the repository, the local copies, the clock.  An `Image` is one process: the rooms of the manager with
everything that they remember.  A crash throws the image away; the next one begins with what lasts.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitops_ctl.cli.manager import make_rooms, run_rooms
from gitops_ctl.core.errors import Conflict, ReplyLost, Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.kube.events import EventRecorder
from gitops_ctl.kube.exchange import Call, Limits
from gitops_ctl.kube.lease import Leader
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.apiserver.request import Request
from tests.doubles.apiserver.streams import Streams
from tests.support.simulation_faults import WRITES, Crash, FaultPlan, Kind, Side
from tests.support.simulation_git import Book, SimulatedGit
from tests.support.simulation_loop import LoopClock
from tests.support.simulation_rules import SILENT, Rules

NAMESPACE, SOURCE = "lab", "network"
AWAY_S = 20.0
"""How long the server stays away: longer than the client is patient."""

LATE_S = 3.0
STOPPED_S = 25.0
"""How long a process stands still: another one has the Lease then, and the drain deadline of this one is not over."""

QUIET_S = 65.0
"""Silence after which a world counts as being at rest: a pass that looks again does so earlier."""

LONG_QUIET_S = 700.0
DEADLINE_S = 1500.0


class Broken(AssertionError):
    """A rule was broken, or the story did not come to its end."""


class _Events(Streams):
    """Watches whose events are I/O points: they may come twice, or later than those of other watches."""

    def __init__(self, api: ApiServer, plan: FaultPlan) -> None:
        super().__init__(api)
        self._plan = plan

    async def events(self, watch: Any, query: Mapping[str, str], *, fault: Any = None) -> AsyncIterator[Any]:
        async for event in super().events(watch, query, fault=fault):
            if event["type"] == "BOOKMARK":
                yield event
                continue
            metadata = event["object"]["metadata"]
            name = f"event {event['type']} {event['object']['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
            kind = self._plan.pass_by(name, Side.BEFORE, state="")
            if kind is Kind.LATE:
                await asyncio.sleep(LATE_S)
            yield event
            if kind is Kind.REPEATED:
                yield event


@dataclass
class World:
    """Everything that outlives a process."""

    book: Book
    api: ApiServer
    folder: Path
    plan: FaultPlan
    rules: Rules
    tip: str
    clock: LoopClock = field(default_factory=LoopClock)
    leased: bool = False
    image: "Image | None" = None
    standby: "Image | None" = None
    deaths: int = 0
    _server_back_s: float = 0.0

    # -- the story's hands -------------------------------------------------------------------------------------------

    def push(self, name: str) -> None:
        """Move the branch, and tell the product as a webhook does."""
        self.tip = self.book.commits[name]
        for image in (self.image, self.standby):
            if image is not None:
                image.poke()

    def push_later(self, name: str, *, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.push, name)

    def ask(self, method: str, path: str, body: Any = None, *, media: str = "application/json", **query: str) -> Any:
        """A request of a person with all rights."""
        self.rules.writer = "story"
        data = json.dumps(body).encode() if body is not None else b""
        headers = {"content-type": media, "accept": "application/json", "user-agent": "story"}
        answer = self.api.handle(Request(method, path, query, headers, data))
        if answer.code >= 300:
            raise AssertionError(f"{method} {path}: {answer.code} {answer.body}")
        return answer.body

    def merge(self, path: str, patch: Any) -> None:
        self.ask("PATCH", path, patch, media="application/merge-patch+json")

    # -- points ------------------------------------------------------------------------------------------------------

    def pass_by(self, name: str, side: Side, image: "Image") -> None:
        """One side of one I/O point of a process; raises what happens there."""
        if image.dead:
            raise Crash(name)
        if side is Side.BEFORE and self.clock.boot_s() < self._server_back_s and not name.startswith("git"):
            raise Unavailable("the server is away", subject=name)
        match self.plan.pass_by(name, side, state=""):
            case Kind.CRASH:
                image.die()
                raise Crash(name)
            case Kind.LOST:
                raise ReplyLost("no answer", subject=name)
            case Kind.CONFLICT:
                raise Conflict("the object has been modified", subject=name)
            case Kind.AWAY:
                self._server_back_s = self.clock.boot_s() + AWAY_S
                raise Unavailable("the server is away", subject=name)

    # -- time --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start a process; with `leased`, one that has the Lease and one that waits for it."""
        self.image = Image(self, identity="first" if self.leased else "")
        self.image.start()
        if self.leased:
            await asyncio.sleep(1.0)
            self.standby = Image(self, identity="second")
            self.standby.start()

    async def stop(self) -> None:
        """Throw every process away, with whatever still runs in it; nothing of it can reach the world."""
        for image in (self.standby, self.image):
            if image is not None:
                image.die()
        current = asyncio.current_task()
        while left := [task for task in asyncio.all_tasks() if task is not current]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=1.0)
        self.image = self.standby = None

    async def rest(self, *, reached: Callable[[], bool], quiet_s: float = QUIET_S) -> None:
        """Let the time run until the product is silent in the state that is waited for; dead processes are replaced.

        Raises:
            Broken: a rule did not hold, or the deadline is over.
        """
        end_s = self.clock.boot_s() + DEADLINE_S
        self.rules.last_write_s = self.clock.boot_s()
        while True:
            await asyncio.sleep(1.0)
            if self.rules.broken:
                raise Broken("\n".join(self.rules.broken[:5]))
            if self.image is not None and self.image.dead:
                self.deaths += 1
                await self.stop()
                await self.start()
            self.rules.writer = "story"
            self.api.collect()
            self.api._hidden.clear()  # a new definition is served within a second, whether or not anybody asks
            now_s = self.clock.boot_s()
            if now_s - self.rules.last_write_s >= quiet_s and reached():
                return
            if now_s >= end_s:
                raise Broken("no progress: the end was not reached, or the product never stops writing")

    def summary(self) -> dict[str, Any]:
        """The state of the world without what differs from run to run: uids, versions, times."""
        return {
            f"{collection[1]} {key[0]}/{key[1]}": _plain(tree)
            for collection, key, tree in self.api.store.everything()
            if collection not in SILENT and tree["kind"] not in ("Event", "CustomResourceDefinition")
        }


class Image:
    """One process: client, rooms, events.  After `die` nothing of it reaches the world any more."""

    def __init__(self, world: World, *, identity: str = "") -> None:
        """With an identity it leads by a Lease, else always."""
        self.dead = False
        self._awake_s = 0.0
        self._world = world
        self._tasks: list[asyncio.Task[Any]] = []
        self.client = self._make_client()
        git = SimulatedGit(
            world.book, tip=lambda: world.tip, point=lambda name, side: world.pass_by(name, Side(side), self)
        )
        self.events = EventRecorder(self.client, instance=f"process-{world.deaths}")
        self.leader = Leader(self.client, namespace=NAMESPACE, name="manager", identity=identity) if identity else None
        require = self.leader.require if self.leader is not None else _always
        folder = world.folder / (identity or "only")
        self.rooms = make_rooms(
            self.client, cache=folder, events=self.events, require=require, allow_file=True, git=git
        )

    def _make_client(self, *, component: str = "simulated", limits: Limits | None = None) -> KubeClient:
        world = self._world

        def point(call: Call, side: str) -> None:
            if side == "before":
                world.rules.asked(world.clock.boot_s())
            world.rules.writer = "story"
            world.pass_by(call.subject, Side(side), self)
            if side == "before":
                world.rules.writer = "product"
                world.rules.replaced = self.leader is not None and self.leader.lost.is_set()
                if call.verb not in ("get", "list", "watch") and "/leases" not in call.path:
                    world.rules.last_write_s = world.clock.boot_s()

        client: Any = direct_client(world.api, component=component, clock=world.clock, point=point, limits=limits)
        exchange = client._exchange
        exchange._streams = _Events(world.api, world.plan)
        send = exchange._once

        async def once(call: Call, authorization: str) -> bytes:
            name = f"sending {call.subject}"
            writes = call.verb in WRITES and "/leases" not in call.path
            if writes and world.plan.pass_by(name, Side.BEFORE, state="") is Kind.STOPPED:
                self._awake_s = world.clock.boot_s() + STOPPED_S
            await world.clock.sleep(self._awake_s - world.clock.boot_s())
            return await send(call, authorization)  # type: ignore[no-any-return]

        exchange._once = once
        client.dedicated = self._make_client
        made: KubeClient = client
        return made

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(), name="process"),
            asyncio.create_task(self.events.run(), name="events"),
        ]

    async def _run(self) -> None:
        try:
            async with self.client, self.rooms.syncs:
                await (run_rooms(self.rooms, until=()) if self.leader is None else self._lead(self.leader))
        except Unavailable:
            self.die()  # the manager exits before it has begun, and is started again
        except Exception as error:
            self._world.rules.broken.append(f"the process ended with {error!r}")

    async def _lead(self, leader: Leader) -> None:
        """Wait for the Lease, and work while it is held."""
        holding = asyncio.create_task(leader.run(), name="lease")
        leading = asyncio.create_task(leader.leading.wait(), name="leading")
        await asyncio.wait([holding, leading], return_when=asyncio.FIRST_COMPLETED)
        if leading.done():
            await run_rooms(self.rooms, until=[holding])
        leading.cancel()

    def poke(self) -> None:
        self.rooms.sources.poke(NamespacedName(NAMESPACE, SOURCE))

    def die(self) -> None:
        self.dead = True


_UNSTABLE = frozenset(
    [
        *("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp"),
        *("lastTransitionTime", "at", "since", "firstSeenAt"),
        # A removal is told once; a process that died in between tells of what it still had to do.
        "lastPrune",
    ]
)


def _always() -> None:
    """Leadership is not part of the story."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items() if name not in _UNSTABLE}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def new_world(book: Book, snapshot: Snapshot, *, folder: Path, plan: FaultPlan, seed: int, **more: Any) -> World:
    """A world that goes on from a snapshot of its store; `seed` differs from those before it, so that no uid comes twice."""
    clock = LoopClock()
    api = ApiServer(seed=seed, now=clock.wall)
    api.restore(snapshot)
    tip = more.pop("tip")
    rules = Rules(api.store, book, **more)
    rules.begin()
    return World(book, api, folder, plan, rules, tip, clock)

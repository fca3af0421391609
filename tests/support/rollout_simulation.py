"""A campaign with its manager, its worker and its switches on the API server in memory, one turn of one process after another.

Every request of a process, and every call to a switch, is a point with a number within its turn: there a process dies, a reply is lost, somebody
else writes first, the server is away, the others go on, a second manager takes a turn, or a person does something.  Everything that a process
remembers is in the store, in the journal and in the switches, so a run begins at the turn of its fault and shares what was before.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from gitops_ctl.core.errors import Conflict, GitopsError, ReplyLost, Unavailable
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.device.journalrecords import Claim, ClaimKey
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.node import node_of
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.rollout.authority import Authority
from gitops_ctl.rollout.bootstrap import BoundPolicy, bind
from gitops_ctl.rollout.controller import RolloutController, RolloutPorts
from gitops_ctl.rollout.fleetlook import FleetMemo
from gitops_ctl.rollout.planning import FleetSeen, PlanningPorts
from gitops_ctl.rollout.sources import SourceSecret
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.apiserver.direct import direct_client
from tests.doubles.gnoi import MemorySwitch
from tests.support.admission_world import CONFIG_MAPS, DEVICES, NODES, ROLLOUTS, SYSTEM, AdmissionWorld
from tests.support.rollout_laws import Laws
from tests.support.rollout_persons import Persons
from tests.support.rollout_planning import NAMESPACE
from tests.support.rollout_worker import OLD, POD, Equipment, MemoryJournal, WaitingClock, Worker, image
from tests.support.simulation_faults import Crash
from tools.peers.gnoi import switch
from tools.peers.iosxe.state import new_device

NAME = NamespacedName(NAMESPACE, "spring")
ROUND_S = 20.0
QUIET_ROUNDS = 4
LONG_S = 2000.0
OUTAGE_S = 300.0
MOST_ROUNDS = 120
ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})
AFTER = frozenset({"crash after", "lost reply"})
"""Faults that happen when the effect is there."""
_KEYS = {names.NETWORK_WORKER_POD_NAME: POD, names.NETWORK_WORKER_POD_UID: "pod-uid"}


class Broken(AssertionError):
    """A law does not hold, or a run does not come to an end."""


@dataclass(frozen=True, slots=True)
class At:
    """One point: request or call number `index`, from 0, of turn number `turn`."""

    turn: int
    index: int
    what: str = field(compare=False, default="")
    """Actor, verb and path, for people."""

    @property
    def verb(self) -> str:
        return self.what.split(" ")[1]

    @property
    def is_call(self) -> bool:
        """Whether it is a call to a device."""
        return self.verb[0].isupper()

    @property
    def is_write(self) -> bool:
        return self.verb in WRITE_VERBS or self.verb in {"Install", "Activate", "Commit"}

    @property
    def actor(self) -> str:
        return self.what.split(" ")[0]


@dataclass(frozen=True, slots=True)
class Event:
    """What happens at a point: `kind` is a fault of FAULTS, or what a person does (ACTIONS)."""

    kind: str
    at: At

    def __str__(self) -> str:
        return f"{self.kind} at {self.at.what} (turn {self.at.turn}, point {self.at.index})"


@dataclass(frozen=True)
class Checkpoint:
    """A world between two turns."""

    store: Snapshot
    switches: Mapping[str, bytes]
    journal: Mapping[ClaimKey, Claim]
    now_s: float
    turn: int
    ids: int
    persons: Mapping[str, Any]
    quiet: int


class Process:
    """A manager or a worker; after `dead` nothing of it reaches the world any more."""

    def __init__(self, world: "RolloutWorld", actor: str, *, watched: bool = True) -> None:
        self.dead = False
        self.actor = actor
        self._world = world
        self.client = self._client(watched=watched)

    def _client(self, *, watched: bool) -> KubeClient:
        client = direct_client(self._world.api, component=self.actor, clock=self._world.clock)
        exchange: Any = client._exchange
        send = exchange._once

        async def once(call: Call, authorization: str) -> bytes:
            what = f"{self.actor} {call.verb} {call.path}"
            index = await self._world.before(self, what) if watched else -1
            answer: bytes = await send(call, authorization)
            if call.verb in WRITE_VERBS:
                self._world.laws.after_write(self.actor)
            if watched:
                await self._world.after(self, what, index)
            return answer

        exchange._once = once
        return client


class RolloutWorld(AdmissionWorld):
    """One run.  `event` is what happens to it, at most once; `acts` are what a person can do, by name."""

    def __init__(self, count: int = 2, *, boots: bool = True, decides: bool = False, **plan: Any) -> None:
        package = image(boots=boots)
        source = {"name": "north", "priority": 10, "url": "https://images.example.net/cat9k.bin"}
        super().__init__(
            count,
            health={"maxObservationAgeSeconds": 300, "canarySoakSeconds": 1, "waveSoakSeconds": 1},
            image={"sha256": package.sha256, "imageFamily": "cat9k", "sources": [source]},
            **plan,
        )
        self.clock = WaitingClock(self.clock)
        self.devices = tuple(f"edge-{number}" for number in range(1, count + 1))
        for name in self.devices:
            self._bind_worker(name)
        switches = {name: self._switch(name) for name in self.devices}
        self.equipment = Equipment(switches, self._called, package, package.path.parent / "spool", MemoryJournal())
        self.event: Event | None = None
        self.happened = False
        self.acts: Mapping[str, Callable[[RolloutWorld], Awaitable[None]]] = {}
        self.points: list[At] = []
        self.turn, self.quiet = 0, 0
        self.persons = Persons(self, decides=decides)
        self.budget, self.is_restored = 2, False
        self.laws = Laws(self)
        self._calls: dict[str, int] = {}
        self._index = 0
        self._ids_given = 0
        self._down_until_s = 0.0
        self._acting: Process | None = None
        self._worker: tuple[Process, Worker] | None = None
        self._away = False
        self.log: list[str] = []

    def _bind_worker(self, name: str) -> None:
        tree = self.tree(NODES, name, "")
        tree["metadata"]["annotations"] |= _KEYS
        self.put(NODES, tree)

    def _switch(self, name: str) -> MemorySwitch:
        return MemorySwitch(new_device(name, version=OLD), now=lambda: self.clock.wall().timestamp(), rebootS=30.0)

    # ---- points ----

    async def _called(self, what: str, method: str, side: Literal["before", "after"]) -> None:
        process = self._acting
        if process is None:
            return
        text = f"worker {method} {what}"
        if side == "before":
            self.laws.before_call(what, method)
            self._calls[text] = await self.before(process, text)
        else:
            await self.after(process, text, self._calls.get(text, -1))

    async def before(self, process: Process, what: str) -> int:
        """A process is about to ask or change something; the number of the point.  What is to happen there, happens."""
        if process.dead:
            raise Crash
        if self._acting is not process:
            return -1
        index, self._index = self._index, self._index + 1
        self.points.append(At(self.turn, index, what))
        if self._is_due(index, after=False):
            await self._happen(process, what)
        if self._away or self.is_down:
            raise Unavailable("the server does not answer", subject=what)
        return index

    async def after(self, process: Process, what: str, index: int) -> None:
        """It is done, and the answer is on its way."""
        if process.dead:
            raise Crash
        if index >= 0 and self._is_due(index, after=True):
            await self._happen(process, what)

    def _is_due(self, index: int, *, after: bool) -> bool:
        event = self.event
        if event is None or self.happened or (event.kind in AFTER) != after:
            return False
        return (event.at.turn, event.at.index) == (self.turn, index)

    async def _happen(self, process: Process, what: str) -> None:
        assert self.event is not None
        self.happened = True
        match self.event.kind:
            case "crash" | "crash after":
                process.dead = True
                raise Crash
            case "lost reply":
                raise ReplyLost("no answer", subject=what)
            case "conflict":
                raise Conflict("somebody wrote first", subject=what)
            case "away":
                self._away = True
            case "outage":
                self._down_until_s = self.clock.now_s + OUTAGE_S
            case "killed in the stream":
                self._tear(what)
                process.dead = True
                raise Crash
            case "others":
                await self._others_go_on(process)
            case "twin":
                await self._twin_takes_turns()
            case act:
                await self.acts[act](self)

    @property
    def is_down(self) -> bool:
        """Whether the API server does not answer anybody."""
        return self.clock.now_s < self._down_until_s

    def _tear(self, what: str) -> None:
        """A device has the order and a part of the image, and its stream ends with the worker."""
        name = what.split(" ")[2]
        arguments = {"version": "17.18.03", "standby": False, "size": self.equipment.package.size}
        with self.equipment.switches[name].change() as device:
            switch.record(device, "Install", arguments, now=self.clock.wall().timestamp())

    async def _others_go_on(self, process: Process) -> None:
        """The request is delayed: meanwhile everybody else takes turns."""
        for _ in range(2):
            self.clock.now_s += 1
            if process.actor == "worker":
                await self._twin_takes_turns()
            else:
                living, worker = self._living_worker()
                async with living.client:
                    for name in self.devices:
                        await _quietly(worker.step(name))

    async def _twin_takes_turns(self) -> None:
        """A second manager that believes to lead takes two turns before the first one goes on."""
        twin = Process(self, "twin", watched=False)
        async with twin.client:
            controller = RolloutController(self._ports(twin.client))
            for _ in range(2):
                await _quietly(controller.reconcile(NAME))

    # ---- turns ----

    async def take_turn(self) -> None:
        """The next process in the round takes its turn."""
        self._index, self._away = 0, False
        actors = ("manager", *self.devices, "rest")
        actor = actors[self.turn % len(actors)]
        if actor == "manager":
            await self._manage()
        elif actor == "rest":
            await self._rest()
        else:
            await self._work(actor)
        self.turn += 1

    async def _manage(self) -> None:
        process = Process(self, "manager")
        self._acting = process
        async with process.client:
            await self._guarded(RolloutController(self._ports(process.client)).reconcile(NAME))

    async def _work(self, device: str) -> None:
        process, worker = self._living_worker()
        self._acting = process
        async with process.client:
            await self._guarded(worker.step(device))

    def _living_worker(self) -> tuple[Process, Worker]:
        """The worker's process; the next one, with its journal, when it died."""
        if self._worker is None or self._worker[0].dead:
            process = Process(self, "worker")
            self._worker = process, Worker(process.client, self.equipment, self.clock)
        return self._worker

    async def _guarded(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except GitopsError as error:
            self.log.append(f"turn {self.turn}: {type(error).__name__}: {error.message}")
        except Crash:
            self.log.append(f"turn {self.turn}: died")
        finally:
            self._acting = None

    async def _rest(self) -> None:
        """Time goes on, healthy devices say so, garbage is collected, and a person resumes what waits for that."""
        wrote = self.laws.take_writes()
        # Nobody can write while the server is away: that is no rest after which hours may pass at once.
        self.quiet = 0 if wrote or self.is_down else self.quiet + 1
        self.clock.now_s += LONG_S if self.quiet == QUIET_ROUNDS else ROUND_S
        if self.is_down:
            return
        for name in self.devices:
            self.equipment.report_journal(self, name)
            if self.equipment.switches[name].read()["downUntil"] <= self.clock.wall().timestamp():
                self.heal(name)
        self.api.collect()
        await self.persons.rest()

    async def finish(self) -> None:
        """Take turns until the campaign ended and nobody has anything to do, or everybody waits for good.

        Raises:
            Broken: it does neither.
        """
        for _ in range(MOST_ROUNDS * (len(self.devices) + 2)):
            await self.take_turn()
            self.laws.after_turn()
            is_over = self.rollout is None or (self.status.get("phase") in ENDED and not self.persons.has_to_decide)
            if self.quiet >= (2 if is_over and not self.has_open_claims else QUIET_ROUNDS * 3):
                return
        raise Broken(f"no end after {MOST_ROUNDS} rounds: {self.status.get('phase')} {self.status.get('message')}")

    @property
    def has_open_claims(self) -> bool:
        return bool(self.ledger.reservations)

    # ---- ports of the manager ----

    def _ports(self, client: KubeClient) -> RolloutPorts:
        async def policy() -> BoundPolicy:
            return await bind(client, namespace=SYSTEM, name="topology-policy")

        async def secrets(_rollout: JsonObject) -> Mapping[str, SourceSecret]:
            return {}

        async def authority(_rollout: JsonObject) -> Authority:
            return self.persons.authority()

        planning = PlanningPorts(client, self.clock, policy, self._seen, secrets)
        steps = replace(self.ports(client), new_id=self._new_id)
        return RolloutPorts(steps, planning, authority, lambda *_: None, lambda: None)

    def _new_id(self) -> str:
        self._ids_given += 1
        return f"{self._ids_given:032x}"

    async def _seen(self, policy: Any, _rollout: Any) -> FleetSeen | None:
        devices = tuple(device_of(tree) for _, tree in self.api.store.all(DEVICES))
        nodes = {one.name: one for one in (node_of(tree) for _, tree in self.api.store.all(NODES))}
        return FleetSeen(devices, nodes, self.memo.look(devices, nodes, policy=policy, now=self.clock.wall()))

    # ---- what is there ----

    @property
    def rollout(self) -> Any:
        """The object; None once it is gone."""
        return self.api.store.get(ROLLOUTS, (NAMESPACE, "spring"))

    @property
    def status(self) -> Any:
        tree = self.rollout
        return {} if tree is None else tree.get("status", {})

    @cached_property
    def ledger_key(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return CONFIG_MAPS, (SYSTEM, "topology-ledger")

    # ---- checkpoints ----

    def checkpoint(self) -> Checkpoint:
        """Everything that a run goes on from."""
        switches = {name: one._text for name, one in self.equipment.switches.items()}
        return Checkpoint(
            self.api.snapshot(),
            switches,
            self.equipment.journal.claims,
            self.clock.now_s,
            self.turn,
            self._ids_given,
            self.persons.memory(),
            self.quiet,
        )

    async def restore(self, to: Snapshot, *, with_journal: bool) -> None:
        """The store is an older one; devices and time go on, and Git is applied anew.

        Args:
            with_journal: the worker's directory survived as well.
        """
        self.api.seed += 1000
        self.api.restore(to)
        self.is_restored, self.memo, self._worker = True, FleetMemo(), None
        if not with_journal:
            self.equipment.journal = MemoryJournal(new_id="another-journal")
        for name in self.devices:
            self.equipment.report_journal(self, name)
        await self.persons.apply()
        self.laws.begin_anew()

    def go_back(self, to: Checkpoint) -> None:
        """Be as it was then; the process memory is new."""
        self.api.seed += 1000
        self.api.restore(to.store)
        for name, text in to.switches.items():
            self.equipment.switches[name]._text = text
        self.equipment.journal = MemoryJournal(to.journal)
        self.clock.now_s, self.turn, self._ids_given = to.now_s, to.turn, to.ids
        self.quiet = to.quiet
        self.persons.remember(to.persons)
        self.memo = FleetMemo()
        self.laws.begin_anew()


async def _quietly(work: Awaitable[Any]) -> None:
    """A turn that fails is taken again by the next one."""
    try:
        await work
    except GitopsError:
        return

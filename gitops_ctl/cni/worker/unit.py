"""Everything that the worker does for one TalosCluster: looks, effects, and the three statuses that it writes.

A look is written when something other than its time differs, and an operation's at most once per 10 s (cni-switch.md, sections 3.2 and
3.3).  A standing question is answered by a look that began wholly after the question was seen.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from gitops_ctl.api.talos_observed import ServiceObservation
from gitops_ctl.cni.model import Action, Mode, Operation, Request, Result
from gitops_ctl.cni.reading import operation_of
from gitops_ctl.cni.worker.cilium import live_mode
from gitops_ctl.cni.worker.credentials import Credentials
from gitops_ctl.cni.worker.desk import Desk, Outcome, Owned, Withdrawn
from gitops_ctl.cni.worker.effects import Effects, Waits
from gitops_ctl.cni.worker.machine import Connect, Look
from gitops_ctl.cni.worker.observation import asked_mode, chosen_operation, is_same, observed_tree
from gitops_ctl.cni.worker.probe import ProbeOptions, probe
from gitops_ctl.cni.worker.rounds import Rounds, wait_for_either
from gitops_ctl.cni.worker.statuses import Statuses
from gitops_ctl.cni.worker.target import Target, TargetLook
from gitops_ctl.cni.worker.wanted import Question, machine_observation, question_of
from gitops_ctl.cni.worker.watch import MachineWatch
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError, NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, object_at, text_at
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.talos.model import Mode as TalosMode

HOLD_S: Final = 3.0
"""How long a write waits for the looks that answer a question."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds.

    Attributes:
        look_s: between two looks while an operation runs.
        idle_s: between two looks otherwise.
        write_s: between two writes of one operation's observation.
        drain_s: how long effects may go on after the worker was asked to end.
    """

    look_s: float = 10.0
    idle_s: float = 600.0
    write_s: float = 10.0
    drain_s: float = 25.0
    waits: Waits = field(default_factory=Waits)


@dataclass(frozen=True, slots=True)
class Ports:
    """What the process gives to each unit.

    Attributes:
        own: client of the worker's own cluster.
        worker: the identity that stands in claims.
        connect: opens a connection to a machine.
        settled: is told action and result of each request that got its receipt.
    """

    own: KubeClient
    worker: str
    credentials: Credentials
    connect: Connect
    probe: ProbeOptions
    pace: Pace = field(default_factory=Pace)
    settled: Callable[[str, str], None] = lambda _action, _result: None


class World(Protocol):
    """The objects of the worker's namespace, from its caches."""

    def cluster(self, key: NamespacedName) -> JsonObject | None: ...
    def machines(self, key: NamespacedName) -> Sequence[JsonObject]: ...
    def operations(self, key: NamespacedName) -> Sequence[JsonObject]: ...


class ClusterUnit:
    """One TalosCluster.  `run` until it is told to `stop`."""

    def __init__(self, key: NamespacedName, *, ports: Ports, world: World) -> None:
        self.key = key
        self._ports = ports
        self._world = world
        self._clock = ports.own.clock
        self._woken = asyncio.Event()
        self._stopping = False
        self._watches: dict[str, MachineWatch] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._effects: dict[str, asyncio.Task[None]] = {}
        self._again_s: dict[str, float] = {}
        self._seen_s: dict[str, float] = {}
        self._written_s = -ports.pace.write_s
        self._statuses = Statuses(ports.own)
        self._admin = b""
        self._look: TargetLook | None = None
        self._service: ServiceObservation | None = None
        self.target = Target(kubeconfig=self._kubeconfig, changed=self._target_changed, clock=self._clock)
        self._target_rounds = Rounds(self._look_at_target, clock=self._clock)
        self._probe_rounds = Rounds(self._probe, clock=self._clock)

    def wake(self) -> None:
        """Something in the caches may differ."""
        self._woken.set()

    def stop(self) -> None:
        """Begin nothing new; `run` ends when the effects that run are over."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        """Work until stopped or cancelled."""
        self._start("target", self._target_rounds.run(self._every_s))
        try:
            while not (self._stopping and not self._effects):
                self._woken.clear()
                await self._pass()
                await wait_for_either(self._woken, clock=self._clock, seconds=self._pause_s())
        finally:
            tasks = [*self._tasks.values(), *self._effects.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.target.close()

    @property
    def running(self) -> int:
        """Requests that are being carried out."""
        return len(self._effects)

    def machine_states(self) -> Counter[str]:
        """How many machines were `reachable` at the newest look at them, `unreachable`, or are `unseen` yet."""
        looks = [watch.latest for watch in self._watches.values()]
        return Counter("unseen" if one is None else "reachable" if one.reachable else "unreachable" for one in looks)

    # What effects work on.

    def machine(self, name: str) -> MachineWatch | None:
        """The machine of that name in this cluster."""
        return self._watches.get(name)

    def control_planes(self) -> Sequence[MachineWatch]:
        """The control planes, those that answered last first."""
        found = [watch for watch in self._watches.values() if watch.spec.is_control_plane]
        return sorted(found, key=lambda watch: watch.latest is None or not watch.latest.reachable)

    def looks(self) -> Sequence[Look]:
        """The newest look at each machine, by name."""
        return [watch.latest for _, watch in sorted(self._watches.items()) if watch.latest is not None]

    def question(self, mode: Mode) -> Question:
        """What an operation to `mode` wants of the machines."""
        word: TalosMode = "replaced" if mode is Mode.REPLACED else "enabled"
        return question_of(self._cluster(), mode=word, kubernetes=self._look.version if self._look is not None else "")

    @property
    def is_ending(self) -> bool:
        """Whether nothing new may begin."""
        return self._stopping

    def nodes(self) -> Sequence[str]:
        """Names of the Nodes of the machines."""
        return sorted({watch.spec.node for watch in self._watches.values()})

    # One pass: what is to be looked at, to be done, and to be written.

    async def _pass(self) -> None:
        if self._world.cluster(self.key) is None:
            return
        self._follow_machines()
        operation = self._operation()
        try:
            if operation is not None:
                self._follow_requests(operation)
                await self._settle_orphans(operation)
            await self._write_looks()
            if operation is not None:
                await self._write_operation(operation)
        except NotFound:
            log.info("an object is gone", cluster=str(self.key))
        except GitopsError as error:
            log.warning("pass ended with an error", cluster=str(self.key), code=error.code.name, error=error.message)

    def _cluster(self) -> JsonObject:
        return self._world.cluster(self.key) or EMPTY

    def _operation(self) -> Operation | None:
        found = [
            operation for tree in self._world.operations(self.key) if (operation := operation_of(tree)) is not None
        ]
        return chosen_operation(found, lock=text_at(self._cluster(), "status", "lock", "operationUID"))

    def _operations(self) -> Sequence[JsonObject]:
        return self._world.operations(self.key)

    def _desk(self, operation: Operation) -> Desk:
        return Desk(self._ports.own, operation.key, worker=self._ports.worker)

    def _every_s(self) -> float:
        operation = self._operation()
        is_running = operation is not None and not operation.is_over
        return self._ports.pace.look_s if is_running else self._ports.pace.idle_s

    def _pause_s(self) -> float:
        """Until the next pass, when nothing wakes it: what waits for its turn to be written must not wait longer."""
        due_s = self._written_s + self._ports.pace.write_s - self._clock.boot_s()
        if self._is_answer_near():
            due_s = max(due_s, HOLD_S)
        return min(self._every_s(), due_s) if due_s > 0 else self._every_s()

    def _is_answer_near(self) -> bool:
        """Whether a question was asked so lately that its answer should not have to wait for the turn after this write."""
        newest = max(self._seen_s.items(), key=lambda item: item[1], default=None)
        return newest is not None and newest[0] != self._answered() and self._clock.boot_s() - newest[1] < HOLD_S

    def _follow_machines(self) -> None:
        trees = {text_at(tree, "metadata", "name"): tree for tree in self._world.machines(self.key)}
        for name in self._watches.keys() - trees.keys():
            del self._watches[name]
            self._tasks.pop(f"machine {name}").cancel()
        for name, tree in trees.items():
            if (watch := self._watches.get(name)) is not None:
                is_changed = object_at(watch.tree, "spec") != object_at(tree, "spec")
                watch.tree = tree
                if is_changed:
                    watch.rounds.ask()
                continue
            watch = MachineWatch(
                tree,
                cluster=self._cluster,
                credentials=self._ports.credentials,
                connect=self._ports.connect,
                clock=self._clock,
                looked=self.wake,
            )
            self._watches[name] = watch
            self._start(f"machine {name}", watch.rounds.run(self._every_s))

    def _follow_requests(self, operation: Operation) -> None:
        standing = {request.id: request for request in operation.state.requests} if not operation.is_over else {}
        for known in (self._seen_s, self._again_s):
            for gone in known.keys() - standing.keys():
                del known[gone]
        for request in standing.values():
            if request.action is Action.OBSERVE and request.id not in self._seen_s:
                self._seen_s[request.id] = self._clock.boot_s()
                self._ask_all()
            elif request.action.is_effect and request.id not in operation.receipts and not self._stopping:
                self._begin(request, operation)
        self._follow_probe(operation)

    def _ask_all(self) -> None:
        self._target_rounds.ask()
        for watch in self._watches.values():
            watch.rounds.ask()

    def _begin(self, request: Request, operation: Operation) -> None:
        if request.id in self._effects or self._again_s.get(request.id, 0.0) > self._clock.boot_s():
            return
        desk = self._desk(operation)
        effects = Effects(desk, own=self._ports.own, cluster=self.key, scene=self, waits=self._ports.pace.waits)
        self._effects[request.id] = asyncio.create_task(self._carry_out(request, effects), name=request.id)

    async def _carry_out(self, request: Request, effects: Effects) -> None:
        try:
            outcome = await effects.perform(request)
            log.info("request carried out", request=request.id, result=outcome.result.value)
            self._ports.settled(request.action.value, outcome.result.value)
        except Withdrawn:
            log.info("request withdrawn", request=request.id)
        except GitopsError as error:
            log.warning("request not carried out", request=request.id, code=error.code.name, error=error.message)
        except Exception:  # a bug in one effect must not end the others; what it began is settled by looking
            log.exception("request failed", request=request.id)
        finally:
            self._again_s[request.id] = self._clock.boot_s() + self._ports.pace.look_s
            del self._effects[request.id]
            self._target_rounds.ask()
            self.wake()

    async def _settle_orphans(self, operation: Operation) -> None:
        """A claim whose request is gone gets a receipt: nobody will ever act on it."""
        standing = {request.id for request in operation.state.requests} if not operation.is_over else set()
        for orphan in operation.claims - operation.receipts.keys() - standing - self._effects.keys():
            await self._desk(operation).settle(
                orphan, Outcome(Result.UNKNOWN, "the request was taken away before its end was known")
            )

    # The target cluster.

    async def _kubeconfig(self) -> bytes:
        """The mounted credential, or the one that a control plane gives; that one is kept while it is used."""
        mounted = self._ports.credentials.kubeconfig(self._cluster())
        if mounted is not None:
            return mounted
        self._admin = self._admin or await self._ask_for_admin()
        return self._admin

    async def _ask_for_admin(self) -> bytes:
        failure: GitopsError = NotFound("the cluster has no control plane that could give a kubeconfig")
        for watch in self.control_planes():
            try:
                async with watch.turn, watch.link() as machine:
                    await machine.require_identity()
                    return await machine.kubeconfig()
            except GitopsError as error:
                failure = error
        raise failure

    def _target_changed(self) -> None:
        self._target_rounds.ask()

    async def _look_at_target(self) -> None:
        self._follow_machines()
        self._look = await self.target.look(nodes=self.nodes())
        operation = self._operation()
        is_idle = operation is None or operation.is_over
        if self._admin and (is_idle or self._look.problem is not None):
            self._admin = b""
            await self.target.close()
        self.wake()

    # The probe.

    def _follow_probe(self, operation: Operation) -> None:
        request = operation.state.request(Action.PROBE) if not operation.is_over else None
        asked = request.id if request is not None else ""
        if self._service is not None and self._service.request != asked:
            self._service = None
        is_answered = self._service is not None and self._service.result == "Answered"
        if asked and not is_answered and "probe" not in self._tasks:
            self._start("probe", self._probe_rounds.run(lambda: self._ports.pace.look_s))
        elif (not asked or is_answered) and "probe" in self._tasks:
            self._tasks.pop("probe").cancel()

    async def _probe(self) -> None:
        operation = self._operation()
        request = operation.state.request(Action.PROBE) if operation is not None else None
        if request is None:
            return
        try:
            client = await self.target.client()
        except GitopsError as error:
            log.info("the target cannot be asked for its Service", code=error.code.name)
            return
        answer = await probe(self._ports.own, client, tls=self.target.tls, options=self._ports.probe)
        self._service = ServiceObservation(
            request=request.id,
            result=answer.result,
            reason=answer.reason or None,
            message=answer.message,
            at=self._now(),
        )
        self.wake()

    # Statuses.

    async def _write_looks(self) -> None:
        for _, watch in sorted(self._watches.items()):
            seen = machine_observation(watch.latest, at=self._now()) if watch.latest is not None else None
            if seen is not None:
                await self._statuses.machine(watch.tree, seen)
        if self._look is not None and self._look.cilium is not None:
            await self._statuses.cluster(self._cluster(), live_mode(self._look.cilium.config))

    async def _write_operation(self, operation: Operation) -> None:
        is_due = self._clock.boot_s() - self._written_s >= self._ports.pace.write_s
        if self._look is None or not is_due or self._is_answer_near():
            return
        looks, target, answered = self.looks(), self._look, self._answered()
        question = self.question(asked_mode(operation))

        def write(tree: JsonObject, _: Operation, owned: Owned) -> bool:
            old = object_at(tree, "status", "observed")
            new = observed_tree(
                target,
                looks,
                question=question,
                request=answered or text_at(old, "request"),
                service=self._service,
                at=self._now(),
            )
            owned["observed"] = new
            return not is_same(old, new)

        cached = next((tree for tree in self._operations() if text_at(tree, "metadata", "uid") == operation.uid), EMPTY)
        if write(cached, operation, {}):
            await self._desk(operation).change(write)
            self._written_s = self._clock.boot_s()

    def _answered(self) -> str:
        """The newest question that every look is younger than; empty when there is none."""
        looks = [watch.latest for watch in self._watches.values()]
        if self._look is None or not all(looks):
            return ""
        began_s = min([self._look.began_s, *(look.began_s for look in looks if look is not None)])
        ids = [id for id, seen_s in self._seen_s.items() if seen_s <= began_s]
        return ids[-1] if ids else ""

    def _now(self) -> str:
        return to_rfc3339(self._clock.wall())

    def _start(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = asyncio.create_task(work, name=f"{self.key} {name}")

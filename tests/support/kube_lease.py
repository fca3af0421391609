"""Candidates for one Lease in one simulated world: processes with clocks of their own, and a server that a test disturbs."""

import asyncio
import copy
from typing import Any, Self, cast

from gitops_ctl.core.errors import Conflict, ReplyLost, Unavailable
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.kube.answers import AlreadyExists
from gitops_ctl.kube.exchange import Limits
from gitops_ctl.kube.lease import Leader, LeadershipLost, LeaseTiming
from gitops_ctl.kube.transport import KubeClient
from tests.support.kube_clock import SteppedClock


class LeaseStore:
    """The server's side of one Lease, with compare-and-swap."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 1
        self.delayed: list[dict[str, Any]] = []

    def put(self, body: JsonObject, *, create: bool = False) -> JsonObject:
        if create and self.lease is not None:
            raise AlreadyExists("exists")
        if not create and (
            self.lease is None
            or text_at(self.lease, "metadata", "resourceVersion") != text_at(body, "metadata", "resourceVersion")
        ):
            raise Conflict("modified")
        self.version += 7
        self.lease = copy.deepcopy(cast("dict[str, Any]", body))
        self.lease["metadata"] = {**self.lease["metadata"], "resourceVersion": str(self.version)}
        return copy.deepcopy(self.lease)

    def apply_delayed(self) -> None:
        """What was stuck in the server's queue is carried out now, long after its sender gave up."""
        for body in self.delayed:
            try:
                self.put(body)
            except Conflict:
                continue
        self.delayed.clear()


class LeaseClient:
    """One process's way to the store.

    Attributes:
        mode: "ok"; "stall": nothing is carried out and no answer comes; "lost": carried out, no answer; "delay": carried out
            when the test says so, no answer; "slow": carried out, answered when `answer` is set.
        writes: writes that were sent.
    """

    def __init__(self, store: LeaseStore, clock: SteppedClock) -> None:
        self.store = store
        self.clock = clock
        self.mode = "ok"
        self.writes = 0
        self.answer = asyncio.Event()
        self.limits = Limits()

    def draw(self) -> float:
        return 0.5

    def dedicated(self, *, component: str, limits: Limits) -> "LeaseClient":
        assert component
        self.limits = limits
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def find(self, _: str) -> JsonObject | None:
        if self.mode != "ok":
            await self.clock.sleep(self.limits.timeout_s)
            raise Unavailable("no answer")
        return copy.deepcopy(self.store.lease)

    async def create(self, _: str, body: JsonObject) -> JsonObject:
        return await self._write(body, create=True)

    async def replace(self, _: str, body: JsonObject) -> JsonObject:
        return await self._write(body, create=False)

    async def _write(self, body: JsonObject, *, create: bool) -> JsonObject:
        self.writes += 1
        mode = self.mode
        if mode in ("ok", "lost", "slow"):
            done = self.store.put(body, create=create)
            if mode == "ok":
                return done
            if mode == "slow":
                await self.answer.wait()
                return done
        elif mode == "delay" and not create:
            self.store.delayed.append(copy.deepcopy(cast("dict[str, Any]", body)))
        await self.clock.sleep(self.limits.timeout_s)
        raise ReplyLost("no answer")


class Process:
    """One candidate: its clock may run fast or slow, and the process may be stopped."""

    def __init__(self, store: LeaseStore, name: str, *, rate: float = 1.0, timing: LeaseTiming | None = None) -> None:
        self.clock = SteppedClock()
        self.client = LeaseClient(store, self.clock)
        self.rate = rate
        self.stopped = False
        self.leader = Leader(
            cast("KubeClient", self.client), namespace="system", name="manager", identity=name, timing=timing
        )
        self.task = asyncio.create_task(self.leader.run())

    async def pass_time(self, seconds: float) -> None:
        if self.stopped:
            self.clock.now_s += seconds * self.rate  # the clock goes on, no task runs
        else:
            await self.clock.advance(seconds * self.rate, settle=6)

    def may_write(self) -> bool:
        if self.stopped:
            return False
        try:
            self.leader.require()
        except LeadershipLost:
            return False
        return True

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def pass_time(*processes: Process, seconds: float, step_s: float = 0.25) -> list[list[str]]:
    """Let time go on for all; at each step, the names of those that may write."""
    history = []
    for _ in range(round(seconds / step_s)):
        for process in processes:
            await process.pass_time(step_s)
        history.append([process.leader.identity for process in processes if process.may_write()])
    return history

"""One process of a simulated world: a client whose every request and event is an I/O point, and tasks that end with a crash."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import Conflict, ReplyLost, Unavailable
from gitops_ctl.kube.exchange import Call, Limits
from gitops_ctl.kube.transport import KubeClient
from tests.doubles.apiserver.api import ApiServer
from tests.doubles.apiserver.direct import direct_client
from tests.support.simulation import AWAY_S, LATE_S
from tests.support.simulation_faults import WRITES, Crash, FaultPlan, Kind, Side
from tests.support.switch_streams import FaultyStreams


class Watching(Protocol):
    """The part of the rules that a process tells who writes."""

    writer: str
    broken: list[str]
    last_write_s: float


class Around(Protocol):
    """What a process lives in.

    Attributes:
        server_back_s: until then the API server does not answer.
    """

    server_back_s: float

    @property
    def api(self) -> ApiServer: ...

    @property
    def plan(self) -> FaultPlan: ...

    @property
    def rules(self) -> Watching: ...

    @property
    def clock(self) -> Clock: ...


W = TypeVar("W", bound=Around)


class Process(Generic[W]):
    """After `dead` is set nothing of it reaches the world any more."""

    def __init__(self, world: W, *, name: str, clock: Clock | None = None) -> None:
        self.dead = False
        self._world = world
        self._name = name
        self._clock = clock or world.clock
        self._tasks: list[asyncio.Task[Any]] = []
        self.client = self._make_client(component=name)

    def _make_client(self, *, component: str, limits: Limits | None = None) -> KubeClient:
        client: Any = direct_client(
            self._world.api, component=component, clock=self._clock, point=self.point, limits=limits
        )
        client._exchange._streams = FaultyStreams(self._world.api, self._world.plan, late_s=LATE_S)
        client.dedicated = self._make_client
        made: KubeClient = client
        return made

    def point(self, call: Call, side: str) -> None:
        """Before or after the effect of a request."""
        world = self._world
        world.rules.writer = "story"
        self.pass_by(call.subject, Side(side))
        if side == "before" and call.verb in WRITES:
            world.rules.writer = self._name
            if "/leases" not in call.path:
                world.rules.last_write_s = world.clock.boot_s()

    def pass_by(self, name: str, side: Side) -> None:
        """One side of one I/O point; raises what happens there."""
        if self.dead:
            raise Crash(name)
        world = self._world
        if side is Side.BEFORE and world.clock.boot_s() < world.server_back_s:
            raise Unavailable("the server is away", subject=name)
        match world.plan.pass_by(name, side, state=f"{self._name} {world.api.store.version}"):
            case Kind.CRASH:
                self.dead = True
                raise Crash(name)
            case Kind.LOST:
                raise ReplyLost("no answer", subject=name)
            case Kind.CONFLICT:
                raise Conflict("the object has been modified", subject=name)
            case Kind.AWAY:
                world.server_back_s = world.clock.boot_s() + AWAY_S
                raise Unavailable("the server is away", subject=name)

    def start(self) -> None:
        """Begin to work."""
        raise NotImplementedError

    async def end(self) -> None:
        """Throw away what still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this until it ends or dies."""

        async def guarded() -> None:
            try:
                async with self.client:
                    await work()
            except Crash:
                self.dead = True
            except Exception as error:
                self._world.rules.broken.append(f"{self._name} ended with {error!r}")

        self._tasks.append(asyncio.create_task(guarded(), name=self._name))

"""Stories of a switch, each played once without faults and then again and again with one at a point; all must end alike."""

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gitops_ctl.cni.model import Mode
from tests.doubles.apiserver.api import Snapshot
from tests.support.simulation import Broken
from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind, faults_at
from tests.support.simulation_loop import run_virtually
from tests.support.switch_scripted import RealWorker, Scripted
from tests.support.switch_simulation import NAMESPACE, REST_S, World, first_store, new_world

Play = Callable[[World], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """What people do, and when."""

    name: str
    target: str
    play: Play
    real_worker: bool = False


async def to_replaced(world: World) -> None:
    """The pull request is merged, and the owner's tool rolls the values out."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    merged(world)
    world.live.change_cni("true")
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


async def to_enabled(world: World) -> None:
    """The values are changed by hand: the pull request is not needed any more."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    world.live.change_cni("false")
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


async def old_agents(world: World) -> None:
    """The values are merged and no agent restarts: only when somebody restarts them the machines follow."""
    world.live.rolls_out = False
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange")
    world.live.change_cni("true")
    await world.until(lambda: world.phase == "VerifyingNewSide", quiet_s=20.0)
    if world.live.effects:
        world.rules.broken.append("a machine was touched while the agents run the old mode")
    world.live.restart_agents()
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


async def resumed(world: World) -> None:
    """A machine refuses; a person looks at it and lets the operation go on."""
    world.live.machines["cp-2"].refuses = "ApplyRefused: proxy image cannot be empty"
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange")
    world.live.change_cni("true")
    await world.until(lambda: world.phase == "Paused", quiet_s=20.0)
    world.live.machines["cp-2"].refuses = ""
    world.commit(steering={"resume": 1})
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


async def lost_apply(world: World) -> None:
    """The apply of one machine is lost on the way and had no effect."""
    world.live.machines["cp-1"].loses = 1
    await to_replaced(world)


async def cancelled(world: World) -> None:
    """A person thinks better of it before anything was touched."""
    world.commit()
    await world.until(lambda: world.phase == "AwaitingCNIChange" and bool(world.get("proposals")))
    world.commit(steering={"cancel": True})
    await world.until(lambda: world.phase == "Cancelled", quiet_s=REST_S)


async def there_and_back(world: World) -> None:
    """To replaced, and back with a consent of its own."""
    await to_replaced(world)
    world.commit(target="enabled", consent="b" * 40)
    await world.until(lambda: len(world.get("talosoperations")) == 2 and world.phase == "AwaitingCNIChange")
    world.live.change_cni("false")
    await world.until(lambda: world.phase == "Succeeded", quiet_s=REST_S)


def merged(world: World) -> None:
    """A person merged the open pull request."""
    for name in world.get("proposals"):
        path = f"/apis/gitops-ctl.dev/v1alpha1/namespaces/{NAMESPACE}/proposals/{name}/status"
        body = {"status": {"phase": "Merged", "number": 7, "url": "https://git.example.net/network/pulls/7"}}
        world.ask("PATCH", path, body, media="application/merge-patch+json")


STORIES = (
    Story("to replaced", "replaced", to_replaced),
    Story("to enabled", "enabled", to_enabled),
    Story("old agents", "replaced", old_agents),
    Story("paused and resumed", "replaced", resumed),
    Story("lost apply", "replaced", lost_apply),
    Story("cancelled", "replaced", cancelled),
    Story("there and back", "replaced", there_and_back),
    Story("to replaced, real worker", "replaced", to_replaced, real_worker=True),
    Story("to enabled, real worker", "enabled", to_enabled, real_worker=True),
)


@dataclass
class Explorer:
    """Runs of one story."""

    story: Story
    runs: int = 0
    points: tuple[IoPoint, ...] = ()
    end: dict[str, Any] = field(default_factory=dict)
    _store: Snapshot | None = None

    def begin(self) -> None:
        """The run without faults, once."""
        if not self.end:
            plan = FaultPlan()
            self.end = self._run(plan)
            self.points = tuple(plan.seen)
            assert self.points, "a story without an I/O point shows nothing"

    def singles(self, kinds: Iterable[Kind]) -> list[Fault]:
        """One fault of these kinds at every point where it means something."""
        self.begin()
        wanted = tuple(kinds)
        return [Fault(kind, point) for point in self.points for kind in faults_at(point) if kind in wanted]

    def explore(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A seeded sample of the single faults, or all of them; what went wrong."""
        singles = self.singles(kinds)
        chosen = random.Random(seed).sample(singles, min(count, len(singles)))
        return [text for fault in chosen if (text := self._wrong(fault))]

    def explore_pairs(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A second fault during the recovery from the first."""
        draw, wrong = random.Random(seed), []
        singles = self.singles(kinds)
        for first in draw.sample(singles, min(count, len(singles))):
            plan = FaultPlan((first,))
            wrong.append(self._wrong(first, plan))
            later = plan.seen[plan.seen.index(first.point) + 1 :] if first.point in plan.seen else []
            if later:
                point = draw.choice(later)
                wrong.append(self._wrong(first, FaultPlan((first, Fault(draw.choice(list(faults_at(point))), point)))))
        return [text for text in wrong if text]

    def _wrong(self, fault: Fault, plan: FaultPlan | None = None) -> str:
        plan = plan or FaultPlan((fault,))
        what = f"{self.story.name}, {' and '.join(map(str, plan.faults))}"
        try:
            end = self._run(plan)
        except (Broken, AssertionError) as error:
            return f"{what}: {error}"
        if not plan.happened:
            return f"{what}: the run never came there"
        differing = [name for name in self.end if end.get(name) != self.end[name]]
        return f"{what}: another end: {[(end.get(name), self.end[name]) for name in differing]}" if differing else ""

    def _run(self, plan: FaultPlan) -> dict[str, Any]:
        self.runs += 1
        if self._store is None:
            self._store = first_store(self.story.target)
        return run_virtually(self._play(plan, self._store))

    async def _play(self, plan: FaultPlan, store: Snapshot) -> dict[str, Any]:
        world = new_world(store, target=self.story.target, plan=plan, seed=20)
        if self.story.real_worker:
            world.live = Scripted(world.api, Mode(self.story.target).other.value)
            world.make_worker = RealWorker
        plan.armed = True
        try:
            await world.start()
            await self.story.play(world)
            return world.summary()
        finally:
            plan.armed = False
            await world.stop()

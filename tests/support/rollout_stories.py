"""Campaigns that are run again and again, and what happens to them (tests/simulation/test_rollout.py)."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.support.rollout_laws import LawBroken
from tests.support.rollout_planning import REGION, ZONE
from tests.support.rollout_simulation import At, Broken, Checkpoint, Event, RolloutWorld
from tests.support.simulation_loop import run_virtually

FAULTS = ("crash after", "lost reply", "conflict", "crash", "away", "others", "twin", "outage", "killed in the stream")
EVERYTHING = 1_000_000


async def _stop(world: RolloutWorld) -> None:
    await world.persons.ask(pause=True, in_git=False)


async def _cancel(world: RolloutWorld) -> None:
    await world.persons.ask(cancel=True)


async def _tighten(world: RolloutWorld) -> None:
    world.persons.rewrite_policy(globalMaxConcurrentTransfers=2, globalMaxUnavailable=2)


async def _restructure(world: RolloutWorld) -> None:
    world.persons.rewrite_policy(projectedTopologyKeys=[REGION, ZONE])


async def _spoil(world: RolloutWorld) -> None:
    world.persons.rewrite_policy(requiredTopologyKeys=[])


async def _unpolicy(world: RolloutWorld) -> None:
    world.persons.drop_policy()


ACTIONS: Mapping[str, Callable[[RolloutWorld], Awaitable[None]]] = {
    "pause": lambda world: world.persons.pause(),
    "emergency stop": _stop,
    "cancel": _cancel,
    "delete": lambda world: world.persons.delete(),
    "tighter policy": _tighten,
    "other policy": _restructure,
    "unreadable policy": _spoil,
    "policy gone": _unpolicy,
}
"""By name; an emergency stop is never taken back, a pause is, a policy of another structure ends the campaign."""


@dataclass(frozen=True)
class Story:
    """A campaign: how its world is made, and what its run without an event comes to.

    Attributes:
        phase: of the campaign at the end.
        faults: that devices have from the beginning, by name of the device.
    """

    name: str
    make: Callable[[], RolloutWorld]
    phase: str = "Succeeded"


def _faulty(kind: str, on: str, **members: Any) -> RolloutWorld:
    world = RolloutWorld()
    world.equipment.switches["edge-1"].order(kind, on=on, **members)
    return world


STORIES = (
    Story("reload", RolloutWorld),
    Story("prepare", lambda: RolloutWorld(strategy="PrepareOnly")),
    Story("prepare and activate", lambda: RolloutWorld(strategy="PrepareOnly", decides=True)),
    Story("no boot", lambda: RolloutWorld(boots=False), "Failed"),
    Story("reply of an install is lost", lambda: _faulty("drop", "Install:stored")),
    Story("torn install", lambda: _faulty("drop", "Install:content"), "Failed"),
    Story("reply of an activation is lost", lambda: _faulty("drop", "Activate:done")),
    Story("refused install", lambda: _faulty("answer", "Install:asked", type="TOO_LARGE"), "Failed"),
    Story("one wave of three", lambda: RolloutWorld(3, first=("edge-1", "edge-2", "edge-3"))),
)


@dataclass(frozen=True, slots=True)
class Restore:
    """At the beginning of `turn` the store goes back to that of turn `to`; the journal of the worker survives or not."""

    turn: int
    to: int
    with_journal: bool

    def __str__(self) -> str:
        journal = "with" if self.with_journal else "without"
        return f"turn {self.turn} with the store of turn {self.to}, {journal} the journal"


@dataclass
class Search:
    """The runs of one story.  `runs` counts them by what happened."""

    story: Story
    runs: Counter[str] = field(default_factory=Counter)
    _points: list[At] = field(default_factory=list)
    _checkpoints: list[Checkpoint] = field(default_factory=list)

    @property
    def points(self) -> Sequence[At]:
        """Every point of the run without an event."""
        if not self._points:
            run_virtually(self._reference())
            self.runs["reference"] += 1
        return self._points

    async def _reference(self) -> None:
        world = self.story.make()
        self._checkpoints = []
        taking = world.take_turn

        async def take_turn() -> None:
            self._checkpoints.append(world.checkpoint())
            await taking()

        world.take_turn = take_turn  # type: ignore[method-assign]
        await world.finish()
        world.laws.at_the_end()
        phase = world.status["phase"]
        if phase != self.story.phase:
            raise Broken(f"{self.story.name} ends {phase}: {world.status}\n" + "\n".join(world.log))
        self._points = world.points

    def events(self, kinds: Iterable[str]) -> list[Event]:
        """One of these kinds at every point where it means something."""
        wanted = tuple(kinds)
        return [Event(kind, at) for at in self.points for kind in wanted if _means_something(kind, at)]

    def run(self, event: Event) -> None:
        """One run.

        Raises:
            Broken: with the event, so that the run can be repeated.
        """
        self.runs[event.kind] += 1
        checkpoint = self._checkpoints[event.at.turn]
        run_virtually(self._played(event, checkpoint))

    async def _played(self, event: Event, checkpoint: Checkpoint) -> None:
        world = self.story.make()
        world.go_back(checkpoint)
        world.event, world.acts = event, ACTIONS
        try:
            await world.finish()
            if not world.happened:
                raise Broken("the run never came there")
            world.laws.at_the_end()
            if event.kind in FAULTS and event.at.actor == "manager" and world.status["phase"] != self.story.phase:
                raise Broken(f"it ends {world.status['phase']}: {world.status.get('message')}")
        except (Broken, LawBroken, AssertionError) as error:
            told = "\n  ".join(world.log[-12:])
            raise Broken(f"{self.story.name}, {event}: {error}\n  {told}") from error

    def restores(self) -> list[Restore]:
        """Every turn at which the store could go back to that of any earlier turn."""
        assert self.points
        turns = range(len(self._checkpoints))
        pairs = [(turn, to) for turn in turns for to in turns[:turn]]
        news = [(turn, to) for turn, to in pairs if to == 0 or self._version(to) != self._version(to - 1)]
        return [Restore(turn, to, with_journal) for turn, to in news for with_journal in (True, False)]

    def _version(self, turn: int) -> int:
        return self._checkpoints[turn].store.version

    def restore(self, what: Restore) -> RolloutWorld:
        """One run in which the store went back.

        Raises:
            Broken: with what was done, so that the run can be repeated.
        """
        self.runs["restored store" if what.with_journal else "restored store, lost journal"] += 1
        return run_virtually(self._restored(what))

    async def _restored(self, what: Restore) -> RolloutWorld:
        world = self.story.make()
        world.go_back(self._checkpoints[what.turn])
        await world.restore(self._checkpoints[what.to].store, with_journal=what.with_journal)
        try:
            await world.finish()
            world.laws.at_the_end()
        except (Broken, LawBroken, AssertionError) as error:
            told = "\n  ".join(world.log[-12:])
            raise Broken(f"{self.story.name}, {what}: {error}\n  {told}") from error
        return world

    def explore_restores(self, *, count: int = EVERYTHING, seed: int = 0) -> list[str]:
        """Every restore in turn, or a seeded sample; what went wrong."""
        found = self.restores()
        if count < len(found):
            found = random.Random(seed).sample(found, count)
        return _each(found, self.restore)

    def explore(self, kinds: Iterable[str], *, count: int = EVERYTHING, seed: int = 0) -> list[str]:
        """Every event of these kinds in turn, or a seeded sample; what went wrong."""
        events = self.events(kinds)
        if count < len(events):
            events = random.Random(seed).sample(events, count)
        return _each(events, self.run)


T = TypeVar("T")


def _each(items: Iterable[T], run: Callable[[T], object]) -> list[str]:
    wrong = []
    for item in items:
        try:
            run(item)
        except Broken as error:
            wrong.append(str(error))
    return wrong


def _means_something(kind: str, at: At) -> bool:
    """Two points at which a process dies with no write in between are the same state, so deaths follow writes only."""
    if kind in {"crash after", "lost reply"}:
        return at.is_write and not (kind == "lost reply" and at.is_call)
    if kind == "conflict":
        return at.is_write and not at.is_call and " create " not in at.what
    if kind == "crash":
        return at.is_call and at.is_write
    if kind == "killed in the stream":
        return at.verb == "Install"
    if kind in {"away", "outage"}:
        return not at.is_call
    return kind != "twin" or at.actor == "manager"

"""Runs a story once without faults, then again and again with one at each point; every run must end as the first one did."""

import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.doubles.apiserver.api import Snapshot
from tests.support.simulation import LONG_QUIET_S, Broken, World, new_world
from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind, faults_at
from tests.support.simulation_git import Book
from tests.support.simulation_loop import run_virtually
from tests.support.simulation_stories import Story, empty_cluster


@dataclass(frozen=True)
class Reference:
    """The run without faults: points in the order in which they were passed, and the state after each step."""

    points: tuple[IoPoint, ...]
    states: tuple[dict[str, Any], ...]


@dataclass
class Explorer:
    """Runs of one story.  `runs` counts them by the kind of their faults."""

    book: Book
    story: Story
    folder: Path
    runs: Counter[str] = field(default_factory=Counter)
    _base: Snapshot | None = None
    _reference: Reference | None = None

    @property
    def base(self) -> Snapshot:
        """The store at the beginning of the story."""
        if self._base is None:
            snapshot = empty_cluster(self.book, self.story.syncs)
            self._base = run_virtually(self._grown(snapshot)) if self.story.begin else snapshot
        return self._base

    async def _grown(self, snapshot: Snapshot) -> Snapshot:
        """The store once the first commit is applied and the product is at rest."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            world = self._world(snapshot, FaultPlan(), Path(folder), seed=10)
            await world.start()
            await world.rest(reached=lambda: True, quiet_s=LONG_QUIET_S)
            await world.stop()
            return world.api.snapshot()

    def _world(self, snapshot: Snapshot, plan: FaultPlan, folder: Path, *, seed: int) -> World:
        accepts = frozenset(self.book.commits[name] for name in self.story.accepts)
        tip = self.book.commits[self.story.begin or "root"]
        return new_world(self.book, snapshot, folder=folder, plan=plan, seed=seed, tip=tip, acceptable=accepts)

    @property
    def reference(self) -> Reference:
        if self._reference is None:
            plan, base = FaultPlan(), self.base
            states = run_virtually(self._play(plan, base, None))
            assert plan.seen, "a story without an I/O point shows nothing"
            self._reference = Reference(tuple(plan.seen), tuple(states))
            self.runs["reference"] += 1
        return self._reference

    async def _play(self, plan: FaultPlan, base: Snapshot, reference: Reference | None) -> list[dict[str, Any]]:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        world = self._world(base, plan, folder, seed=20)
        world.leased = self.story.leased
        states: list[dict[str, Any]] = []
        try:
            if self.story.begin:
                await world.start()
                await world.rest(reached=lambda: True, quiet_s=5.0)
            plan.armed = True
            for number, step in enumerate(self.story.steps):
                step.act(world)
                if world.image is None:
                    await world.start()
                if reference is None:
                    await world.rest(reached=lambda: True)
                    step.expect(world)
                else:
                    await self._reach(world, reference.states[number])
                states.append(world.summary())
            if reference is None:
                plan.armed = False  # what is asked at rest belongs to no step
                await world.rest(reached=lambda: world.summary() == states[-1], quiet_s=LONG_QUIET_S)
            return states
        finally:
            plan.armed = False
            await world.stop()
            shutil.rmtree(folder)

    async def _reach(self, world: World, wanted: dict[str, Any]) -> None:
        try:
            await world.rest(reached=lambda: world.summary() == wanted)
        except Broken as error:
            raise Broken(f"{error}\n{_difference(wanted, world.summary())}") from None

    def with_faults(self, *faults: Fault) -> FaultPlan:
        """One run.

        Raises:
            Broken: with the faults, so that the run can be repeated.
        """
        plan = FaultPlan(faults)
        self.runs[" and ".join(fault.kind for fault in faults)] += 1
        try:
            run_virtually(self._play(plan, self.base, self.reference))
        except Broken as error:
            raise Broken(f"{self.story.name}, {'; '.join(map(str, faults))}: {error}") from None
        return plan

    def singles(self, kinds: Iterable[Kind]) -> list[Fault]:
        """One fault of these kinds at every point where it means something."""
        wanted = tuple(kinds)
        return [Fault(kind, point) for point in self.reference.points for kind in faults_at(point) if kind in wanted]

    def explore(self, kinds: Iterable[Kind], *, stride: int) -> list[str]:
        """Every single fault in turn, or each so many; what went wrong."""
        return self._each(self.singles(kinds)[::stride], self.with_faults)

    def explore_pairs(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A second fault during the recovery from the first: a seeded sample."""
        draw = random.Random(seed)
        singles = self.singles(kinds)
        return self._each(draw.sample(singles, min(count, len(singles))), lambda fault: self._pair(fault, draw))

    def _pair(self, first: Fault, draw: random.Random) -> FaultPlan:
        seen = self.with_faults(first).seen
        later = seen[seen.index(first.point) + 1 :]
        if not later:
            return FaultPlan(happened=[first])
        point = draw.choice(later)
        return self.with_faults(first, Fault(draw.choice(list(faults_at(point))), point))

    @staticmethod
    def _each(faults: Iterable[Fault], run: Callable[[Fault], FaultPlan]) -> list[str]:
        wrong = []
        for fault in faults:
            try:
                if not run(fault).happened:
                    wrong.append(f"{fault}: the run never came there")
            except (Broken, AssertionError) as error:
                wrong.append(str(error))
        return wrong


def _difference(wanted: dict[str, Any], found: dict[str, Any]) -> str:
    lines = []
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            lines.append(f"{name}\n  wanted {json.dumps(wanted.get(name))}\n  found  {json.dumps(found.get(name))}")
    return "\n".join(lines)

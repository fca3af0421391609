"""One story without faults, then with one at a point, or with a second one during the recovery; every run must end as the first one did."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.simulation import Broken
from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind, faults_at

Run = Callable[[FaultPlan], dict[str, Any]]
"""Plays the story with these faults; gives its end without what differs from run to run."""


@dataclass
class Search:
    """Runs of one story."""

    name: str
    run: Run
    runs: int = 0
    points: tuple[IoPoint, ...] = ()
    states: dict[IoPoint, tuple[str, int]] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """The run without faults, once."""
        if not self.end:
            plan = FaultPlan()
            self.end = self._play(plan)
            self.points, self.states = tuple(plan.seen), plan.states
            assert self.points, "a story without an I/O point shows nothing"

    def singles(self, kinds: Iterable[Kind]) -> list[Fault]:
        """One fault of these kinds at every point where it means something.

        A crash forgets everything but the world: of the points of a process between two effects only the first and the last are taken.
        """
        self.begin()
        wanted = tuple(kinds)
        deadly = [point for point in self.points if Kind.CRASH in faults_at(point)]
        ends = {point for by in (deadly, deadly[::-1]) for point in {self.states[one]: one for one in by}.values()}
        return [
            Fault(kind, point)
            for point in self.points
            for kind in faults_at(point)
            if kind in wanted and (kind is not Kind.CRASH or point in ends)
        ]

    def explore(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A seeded sample of the single faults, or all of them; what went wrong."""
        singles = self.singles(kinds)
        chosen = random.Random(seed).sample(singles, min(count, len(singles)))
        return [text for fault in chosen if (text := self.wrong(fault))]

    def explore_pairs(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A second fault during the recovery from the first."""
        draw, wrong = random.Random(seed), []
        singles = self.singles(kinds)
        for first in draw.sample(singles, min(count, len(singles))):
            plan = FaultPlan((first,))
            wrong.append(self.wrong(first, plan))
            later = plan.seen[plan.seen.index(first.point) + 1 :] if first.point in plan.seen else []
            if later:
                point = draw.choice(later)
                wrong.append(self.wrong(first, FaultPlan((first, Fault(draw.choice(list(faults_at(point))), point)))))
        return [text for text in wrong if text]

    def wrong(self, fault: Fault, plan: FaultPlan | None = None) -> str:
        """What went wrong in one run, empty when nothing did."""
        plan = plan or FaultPlan((fault,))
        what = f"{self.name}, {' and '.join(map(str, plan.faults))}"
        try:
            end = self._play(plan)
        except (Broken, AssertionError) as error:
            return f"{what}: {error}"
        if not plan.happened:
            return f"{what}: the run never came there"
        differing = [name for name in self.end if end.get(name) != self.end[name]]
        return f"{what}: another end: {[(end.get(name), self.end[name]) for name in differing]}" if differing else ""

    def _play(self, plan: FaultPlan) -> dict[str, Any]:
        self.runs += 1
        return self.run(plan)

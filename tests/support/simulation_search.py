"""One story without faults, then with one at a point, or with a second one during the recovery; every run must end as the first one did."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.simulation import Broken
from tests.support.simulation_branches import Faults, Outcome, Trunk
from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind, faults_at

Run = Callable[[FaultPlan], dict[str, Any]]
"""Plays the story with these faults; gives its end without what differs from run to run."""

FEW = 3
"""Fewer runs than these are begun anew: a common beginning is a whole run itself."""


@dataclass
class Search:
    """Runs of one story.

    Attributes:
        one_process: the story's whole world is in this process, so that runs may leave a common beginning (simulation_branches.py).
    """

    name: str
    run: Run
    one_process: bool = False
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
        return [outcome.wrong for outcome in self._outcomes([(fault,) for fault in chosen]) if outcome.wrong]

    def explore_pairs(self, kinds: Iterable[Kind], *, count: int, seed: int) -> list[str]:
        """A second fault during the recovery from the first."""
        draw = random.Random(seed)
        singles = self.singles(kinds)
        firsts = draw.sample(singles, min(count, len(singles)))
        alone = self._outcomes([(first,) for first in firsts])
        pairs = []
        for first, outcome in zip(firsts, alone, strict=True):
            if outcome.later:
                point = draw.choice(outcome.later)
                pairs.append((first, Fault(draw.choice(list(faults_at(point))), point)))
        return [outcome.wrong for outcome in [*alone, *self._outcomes(pairs)] if outcome.wrong]

    def _outcomes(self, plans: Sequence[Faults]) -> list[Outcome]:
        """One run for each of these, from the same beginning where that saves time."""
        self.begin()
        if not self.one_process or len(plans) < FEW:
            return [self._outcome(FaultPlan(faults)) for faults in plans]
        found = Trunk(plans).play(self._outcome)
        self.runs += len(found)
        return [found.get(faults, Outcome(f"{self._said(faults)}: the run never came there")) for faults in plans]

    def _outcome(self, plan: FaultPlan) -> Outcome:
        try:
            end = self._play(plan)
        except (Broken, AssertionError) as error:
            return Outcome(f"{self._said(plan.faults)}: {error}", self._later(plan))
        differing = [name for name in self.end if end.get(name) != self.end[name]]
        if len(plan.happened) < len(plan.faults):
            wrong = "the run never came there"
        elif differing:
            wrong = f"another end: {[(end.get(name), self.end[name]) for name in differing]}"
        else:
            return Outcome("", self._later(plan))
        return Outcome(f"{self._said(plan.faults)}: {wrong}", self._later(plan))

    @staticmethod
    def _later(plan: FaultPlan) -> tuple[IoPoint, ...]:
        """What was passed after the first fault."""
        first = next((fault.point for fault in plan.happened), None)
        return tuple(plan.seen[plan.seen.index(first) + 1 :]) if first else ()

    def _said(self, faults: Faults) -> str:
        return f"{self.name}, {' and '.join(map(str, faults))}"

    def _play(self, plan: FaultPlan) -> dict[str, Any]:
        self.runs += 1
        return self.run(plan)

"""Runs that share their beginning: at the point of a fault the process is copied, and the copy goes on with the fault to its own end.

Only for stories whose whole world is in this process: nothing on disk that a run changes, no thread, no connection.  A run that leaves a trunk
is the run that would have begun anew with the same faults, since runs are the same each time up to their first fault.
"""

import asyncio
import gc
import os
import pickle
import signal
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Never, TypeAlias

from tests.support.simulation_faults import Fault, FaultPlan, IoPoint, Kind

Faults: TypeAlias = tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What went wrong in a run, empty when nothing did, and the points that it passed after its first fault."""

    wrong: str
    later: tuple[IoPoint, ...] = ()


class Trunk(FaultPlan):
    """The run without faults; each of the others leaves it at its first fault."""

    def __init__(self, others: Sequence[Faults]) -> None:
        super().__init__()
        self._leaving: defaultdict[IoPoint, list[Faults]] = defaultdict(list)
        for faults in others:
            self._leaving[faults[0].point].append(faults)
        self._outcomes: dict[Faults, Outcome] = {}
        self._told: int | None = None

    def play(self, run: Callable[[FaultPlan], Outcome]) -> dict[Faults, Outcome]:
        """Every run whose first fault was reached."""
        try:
            own = run(self)
        except BaseException as error:
            if self._told is None:
                raise
            own = Outcome(f"{' and '.join(map(str, self.faults))}: {error!r}")
        if self._told is not None:
            _end_of_branch(self._told, own)
        assert not own.wrong, own.wrong
        return self._outcomes

    def _happens(self, point: IoPoint) -> Kind | None:
        for faults in self._leaving.pop(point, ()):
            if self._is_branch(faults):
                break
        return super()._happens(point)

    def _is_branch(self, faults: Faults) -> bool:
        """Whether this is the copy now."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self.faults, self._told = faults, writing
            self._leaving.clear()
            gc.disable()  # it lives for a second
            asyncio._set_running_loop(loop)  # which loop runs is known of a process, and this is another one
            return True
        os.close(writing)
        try:
            with open(reading, "rb") as answer:
                data = answer.read()
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            os.waitpid(child, 0)
        lost = f"{' and '.join(map(str, faults))}: the process of the run ended without a word"
        self._outcomes[faults] = pickle.loads(data) if data else Outcome(lost)
        return False


def _end_of_branch(told: int, outcome: Outcome) -> Never:
    """Tell, and end without whatever the first process has yet to do at its end."""
    try:
        with open(told, "wb") as answer:
            answer.write(pickle.dumps(outcome))
    finally:
        os._exit(0)

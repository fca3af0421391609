"""What can go wrong, and where: I/O points with a name, a number and a side, and faults that happen at them, once each.

A point is named by what is asked (`apply /api/v1/…`), counted per name over the whole run, so that the name means the same in a run with
other faults before it.
"""

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


class Crash(BaseException):
    """The process is gone.  No `Exception`: no handler may survive it."""


class Side(enum.StrEnum):
    """Before or after the effect."""

    BEFORE = "before"
    AFTER = "after"


class Kind(enum.StrEnum):
    """What happens."""

    CRASH = "crash"
    LOST = "lost reply"
    CONFLICT = "conflict"
    AWAY = "server away"
    REPEATED = "repeated event"
    LATE = "late event"
    STOPPED = "stopped process"


@dataclass(frozen=True, slots=True)
class IoPoint:
    """One side of one request, of one call of Git, or of one event of a watch; `number` counts from 1 for its name."""

    name: str
    number: int
    side: Side

    def __str__(self) -> str:
        return f"{self.side} {self.name} no. {self.number}"

    @property
    def verb(self) -> str:
        return self.name.split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind at one point."""

    kind: Kind
    point: IoPoint

    def __str__(self) -> str:
        return f"{self.kind} {self.point}"


WRITES = frozenset({"create", "apply", "patch", "update", "delete"})
READS = frozenset({"get", "list", "watch", "target", "event", "sending"})


def faults_at(point: IoPoint) -> Iterable[Kind]:
    """Every kind that means something there."""
    if point.verb == "event":
        return (Kind.REPEATED, Kind.LATE)
    if point.verb == "sending":
        return (Kind.STOPPED,)
    if point.side is Side.AFTER:
        return (Kind.CRASH, Kind.LOST) if point.verb in WRITES else (Kind.CRASH,)
    # A create that finds its name taken is told so as such, never as a lost compare-and-swap.
    swap = (Kind.CONFLICT,) if point.verb in WRITES - {"create"} else ()
    return (Kind.CRASH, Kind.AWAY, *swap)


@dataclass
class FaultPlan:
    """Some faults, and a record of every point that is passed while it is armed."""

    faults: tuple[Fault, ...] = ()
    armed: bool = False
    seen: list[IoPoint] = field(default_factory=list)
    happened: list[Fault] = field(default_factory=list)
    states: dict[IoPoint, tuple[str, int]] = field(default_factory=dict)
    _numbers: Counter[tuple[str, Side]] = field(default_factory=Counter)
    _effects: int = 0

    def pass_by(self, name: str, side: Side, *, state: str) -> Kind | None:
        """Note the point; the kind of fault that happens here, if any.

        Args:
            state: the process, and what would be left in the world if it ended here; effects outside the store are counted here.
        """
        if not self.armed:
            return None
        self._numbers[name, side] += 1
        point = IoPoint(name, self._numbers[name, side], side)
        self.seen.append(point)
        self._effects += side is Side.AFTER and point.verb not in READS
        self.states[point] = (state, self._effects)
        return self._happens(point)

    def _happens(self, point: IoPoint) -> Kind | None:
        for fault in self.faults:
            if fault.point == point:
                self.happened.append(fault)
                return fault.kind
        return None

"""Repairs that meet another writer (gitops.md, section 11).  Pure; the clock is a parameter.

Each repair of an object adds one to a heat that decays exponentially, so that it estimates repairs per minute.  From five on
the two are fighting: our writes to the object slow down to one per minute and the other manager is named (S19).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.core.ids import ObjectId

FIGHT_HEAT: Final = 5.0
"""Repairs per minute from which on it is a fight."""

SLOW_S: Final = 60.0
"""Seconds between two repairs in a fight."""

COLD: Final = 0.05
"""Below this heat an object is forgotten."""


@dataclass(frozen=True, slots=True)
class Heat:
    """How often one object was repaired lately.  `manager` is the one that we last took a field from."""

    value: float = 0.0
    at_s: float = 0.0
    manager: str = ""
    fighting: bool = False

    def now(self, now_s: float) -> float:
        return self.value * math.exp(-(now_s - self.at_s) / 60.0)


def repaired(heat: Heat | None, *, manager: str, now_s: float) -> Heat:
    """The heat after one more repair.  A fight that has begun goes on until the object has been left alone for a while."""
    before = heat or Heat()
    value = before.now(now_s) + 1.0
    fighting = value >= FIGHT_HEAT or (before.fighting and now_s - before.at_s < 3 * SLOW_S)
    return Heat(value, now_s, manager or before.manager, fighting)


def due_s(heat: Heat | None, *, now_s: float) -> float:
    """Seconds until the object may be repaired again; zero outside of a fight."""
    if heat is None or not heat.fighting:
        return 0.0
    return max(0.0, heat.at_s + SLOW_S - now_s)


def cooled(heats: Mapping[ObjectId, Heat], *, now_s: float) -> dict[ObjectId, Heat]:
    """The heats that still matter: cold ones are dropped, ended fights are marked as ended."""
    kept: dict[ObjectId, Heat] = {}
    for item, heat in heats.items():
        if heat.fighting and now_s - heat.at_s >= 3 * SLOW_S:
            heat = replace(heat, fighting=False)  # noqa: PLW2901 - the same heat, cooler
        if heat.fighting or heat.now(now_s) > COLD:
            kept[item] = heat
    return kept

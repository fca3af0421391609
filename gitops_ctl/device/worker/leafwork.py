"""What one pass over a leaf works with, handed from step to step."""

from dataclasses import dataclass, field
from datetime import datetime

from gitops_ctl.device.worker.leafports import Access, LeafPorts
from gitops_ctl.device.worker.leafwriting import Facts, LeafDesk
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.gate import Gate
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.node import NodeSeen

AGAIN = 0.0
"""Seconds until the next pass when something was done."""


@dataclass(slots=True)
class Work:
    """One pass; `leaf` is replaced by each write.

    Attributes:
        answers: what devices answered and is not written yet, by UID of the leaf; it outlives the pass.
        sights: what the looks at the device of a leaf have shown alike, and since when; it outlives the pass too.
    """

    ports: LeafPorts
    desk: LeafDesk
    access: Access
    leaf: Leaf
    device: Device | None
    node: NodeSeen | None
    gate: Gate
    answers: dict[str, Facts]
    sights: dict[str, tuple[object, float]] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The present moment by our clock."""
        return self.ports.clock.wall()

    def still_s(self, sight: object) -> float:
        """For how long the looks at the device of the leaf have shown this sight; seconds by the clock that nobody sets."""
        now_s = self.ports.clock.boot_s()
        shown, since_s = self.sights.get(self.leaf.uid, (None, now_s))
        if shown != sight:
            since_s = now_s
        self.sights[self.leaf.uid] = (sight, since_s)
        return now_s - since_s

    async def answered(self, facts: Facts) -> None:
        """Record what the device answered; when that fails, the next pass of this process records it first."""
        self.answers[self.leaf.uid] = facts
        self.leaf = await self.desk.record(self.leaf, facts)
        del self.answers[self.leaf.uid]

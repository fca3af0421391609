"""What one pass over a leaf works with, handed from step to step."""

from dataclasses import dataclass
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
    """

    ports: LeafPorts
    desk: LeafDesk
    access: Access
    leaf: Leaf
    device: Device | None
    node: NodeSeen | None
    gate: Gate
    answers: dict[str, Facts]

    @property
    def now(self) -> datetime:
        """The present moment by our clock."""
        return self.ports.clock.wall()

    async def answered(self, facts: Facts) -> None:
        """Record what the device answered; when that fails, the next pass of this process records it first."""
        self.answers[self.leaf.uid] = facts
        self.leaf = await self.desk.record(self.leaf, facts)
        del self.answers[self.leaf.uid]

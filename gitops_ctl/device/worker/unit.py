"""One device of the network plane: its report, its samples and its preflights, each in a task of its own (rollouts.md, section 17.1)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gitops_ctl.device.worker.campaigns import Evidence, Order
from gitops_ctl.device.worker.images import Images
from gitops_ctl.device.worker.pace import Duty
from gitops_ctl.device.worker.place import Equipment, Place
from gitops_ctl.device.worker.preflight import Campaigns, Preflights
from gitops_ctl.device.worker.report import Reporter, Taken
from gitops_ctl.device.worker.samples import Sampler
from gitops_ctl.fleet.leaf import Leaf


@dataclass(frozen=True, slots=True)
class Known:
    """What the caches of the room say; the argument is the UID of a device."""

    evidence: Callable[[str], Evidence]
    orders: Callable[[str], tuple[Order, ...]]
    ended: Callable[[], frozenset[str]]
    absent: Callable[[str, str], str]
    leaves: Callable[[str], tuple[Leaf, ...]]
    has_begun: Callable[[str], bool]


class DeviceUnit:
    """The duties of one device; `run` until it is cancelled."""

    def __init__(self, equipment: Equipment, place: Place, *, images: Images, known: Known) -> None:
        self.place = place
        self._equipment = equipment
        taken = Taken(lambda: known.leaves(self._uid), lambda: known.has_begun(self._uid))
        reporter = Reporter(equipment, place, taken=taken)
        sampler = Sampler(equipment, place, evidence=known.evidence)
        preflights = Preflights(
            equipment, place, images=images, wanted=Campaigns(known.orders, known.ended, known.absent)
        )
        turns = (("report", reporter.turn), ("sample", sampler.turn), ("preflight", preflights.turn))
        retry_s = equipment.intervals.worker_poll_s
        self._duties = tuple(
            Duty(name, turn, clock=equipment.clock, retry_s=retry_s, told=str(place.key)) for name, turn in turns
        )
        place.loaded = self.campaigns_changed
        self._wanted = ""

    @property
    def _uid(self) -> str:
        device = self.place.device
        return device.uid if device is not None else ""

    async def run(self) -> None:
        """Work for the device; a start is spread, except for what is reported."""
        draw = self._equipment.client.draw
        spread_s = self._equipment.intervals.spread_s
        async with asyncio.TaskGroup() as group:
            for duty in self._duties:
                delay_s = 0.0 if duty.name == "report" else spread_s * draw()
                group.create_task(duty.run(delay_s=delay_s), name=f"{duty.name} {self.place.key}")

    def device_changed(self) -> None:
        """The CiscoDevice was changed, by us or somebody else."""
        device = self.place.device
        material = self.place.material
        report, sample, preflight = self._duties
        if device is None:
            return
        revision = device.network_worker_revision
        wanted = f"{device.uid} {device.generation} {revision.desired if revision is not None else ''}"
        is_other = material is None or (revision is not None and revision.desired != material.revision)
        if wanted != self._wanted or is_other:
            report.ask()
            preflight.ask()
        self._wanted = wanted
        sample.ask()

    def campaigns_changed(self) -> None:
        """A rollout or a leaf was changed."""
        for duty in self._duties[1:]:
            duty.ask()

    def journal_changed(self) -> None:
        """A claim of the device was recorded."""
        self._duties[0].ask()

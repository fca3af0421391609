"""What every worker of a simulated campaign has, the dead ones and the next one: switches, an image, and the journal that outlives them."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from gitops_ctl.device.gnoitarget import GnoiTarget
from gitops_ctl.device.journalrecords import Claim, ClaimKey, Step
from gitops_ctl.fleet.leaf import Leaf
from tests.doubles.gnoi import DirectGnoi, MemorySwitch
from tools.peers.gnoi.package import MAGIC

OLD, NEW = "17.12.04.0.1", "17.18.03.0.5496"
ACCOUNT: Final = "system:serviceaccount:prod:network-management"
POD = "network-worker-0"


def a_package(version: str = NEW, *, fails: bool = False) -> bytes:
    """An image that a switch in memory takes."""
    members = f', "fail_activation": {str(fails).lower()}' if fails else ""
    head = f'{{"version": "{version}", "platform": "C9300", "size": 0, "sha256": "{hashlib.sha256().hexdigest()}"{members}}}'
    return MAGIC + head.encode() + b"\n"


@dataclass(frozen=True)
class Bytes:
    """The content of an install."""

    data: bytes

    async def chunks(self, _size: int) -> AsyncIterator[bytes]:
        yield self.data


@dataclass
class MemoryJournal:
    """A claim journal without a disk; it outlives its worker."""

    claims: dict[ClaimKey, Claim] = field(default_factory=dict)

    def intend(self, claim: Claim) -> None:
        """As the real one: a claim that is known stays what it is."""
        if claim.key not in self.claims:
            self.claims[claim.key] = claim

    def claim(self, key: ClaimKey) -> None:
        self._goes_on(key, Step.CLAIMED)

    def settle(self, key: ClaimKey) -> None:
        self._goes_on(key, Step.SETTLED)

    def _goes_on(self, key: ClaimKey, step: Step) -> None:
        known = self.claims.get(key)
        if known is not None and known.step is not Step.SETTLED:
            self.claims[key] = replace(known, step=step)

    def sent(self, leaf: Leaf) -> tuple[Claim, ...]:
        """What may have been sent for the reservation of a leaf, whatever leaf it had."""
        wanted = (leaf.binding.device_uid, leaf.binding.plan_hash, leaf.binding.reservation_id)
        return tuple(one for key, one in self.claims.items() if key[:3] == wanted and one.step is not Step.INTENT)


@dataclass
class Equipment:
    """What every worker of the world has, the dead ones and the next one.

    Attributes:
        switches: by name of the device.
        tell: hears of each call to a device, before and after it: serial number or name, method, side.
        lost: the journal is a new one that knows nothing of these devices.
    """

    switches: dict[str, MemorySwitch]
    gnoi: DirectGnoi
    package: bytes
    tell: Callable[[str, str, Literal["before", "after"]], Awaitable[None]]
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    lost: bool = False


def target_of(device: str) -> GnoiTarget:
    """Where the switch of a device is."""
    return GnoiTarget(f"{device}.example.net", 9339)

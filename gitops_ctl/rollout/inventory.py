"""The fleet as the room that looks after devices has seen it, judged once and looked at as often as is needed (rollouts.md, section 11.4).

The objects are kept over there, once; here stay what each device counts as and its labels.  What is not judged yet is judged in small steps
beside the passes, so that ten thousand devices never stop the loop.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.strict import Malformed
from gitops_ctl.rollout.fleetlook import Ages, FleetLook, FleetMemo, Seen, Version
from gitops_ctl.rollout.planned import MOST_TARGETS, plan_of
from gitops_ctl.rollout.planning import FleetSeen

STEP: Final = 50
"""Devices that are read before others get their turn: some ten milliseconds."""
AT_ONCE: Final = 1000
"""With more that are not judged yet, a look says that it does not know and begins to find out."""

Wake = Callable[[NamespacedName], None]


class Inventory(Protocol):
    """Devices and Nodes by the informers of another room."""

    @property
    def usable(self) -> bool:
        """Whether everything was seen: only then may anything be concluded."""

    def seen(self) -> Iterable[Seen]:
        """Every device with its versions."""

    def read(self, key: NamespacedName) -> tuple[Device, NodeSeen | None] | None:
        """A device and its Node; None when the device is gone."""

    def subscribe(self, *, device: Wake, evidence: Wake, secret: Wake, policy: Callable[[], None]) -> None:
        """Hear of what a campaign may wait for.

        Args:
            device: it or its Node is another one, or says something else.
            evidence: nothing but the evidence about a device was renewed.
            secret: the metadata of a Secret of a namespace with devices.
            policy: the fleet policy.
        """


class FleetBook:
    """Looks over the fleet of an inventory.  For one event loop."""

    def __init__(self, inventory: Inventory, *, clock: Clock, learned: Callable[[], None]) -> None:
        """`learned` is called when a look that said None would say more."""
        self._inventory, self._clock, self._learned = inventory, clock, learned
        self._memo = FleetMemo()
        self._planned: dict[NamespacedName, tuple[Version, tuple[Device, NodeSeen | None] | None]] = {}
        self._learning: asyncio.Task[None] | None = None

    def look(self, policy: FleetPolicy, ages: Ages | None = None) -> FleetLook | None:
        """The fleet now; None until it was seen and judged."""
        if not self._inventory.usable or self._is_learning:
            return None
        seen = tuple(self._inventory.seen())
        unknown = self._memo.unknown(seen, policy)
        if len(unknown) > AT_ONCE:
            self._learning = asyncio.create_task(self._learn(unknown, policy), name="fleet")
            return None
        return self._memo.over(seen, self._inventory.read, policy=policy, now=self._clock.wall(), ages=ages)

    async def for_planning(self, policy: FleetPolicy, rollout: JsonObject) -> FleetSeen | None:
        """The devices that a plan may select, with their Nodes, and the look; None until the fleet was seen and judged."""
        look = self.look(policy)
        if look is None:
            return None
        try:
            plan = plan_of(object_at(rollout, "spec", "plan"))
        except Malformed:
            return FleetSeen((), {}, look)
        if plan.selector.is_empty and not plan.allow_all:
            return FleetSeen((), {}, look)
        keys = self._memo.matching(text_at(rollout, "metadata", "namespace"), plan.selector.matches)
        devices, nodes = [], {}
        for number, key in enumerate(keys, start=1):
            found = self._read(key)
            if found is not None:
                devices.append(found[0])
                if found[1] is not None:
                    nodes[found[1].name] = found[1]
            if number % STEP == 0:
                await asyncio.sleep(0)
        return FleetSeen(devices, nodes, look)

    def _read(self, key: NamespacedName) -> tuple[Device, NodeSeen | None] | None:
        """A device and its Node; those of the last plans are kept, because a plan that waits is made again and again."""
        version = self._memo.version(key)
        known = self._planned.get(key)
        if version is not None and known is not None and known[0] == version:
            return known[1]
        found = self._inventory.read(key)
        if version is not None and (key in self._planned or len(self._planned) < MOST_TARGETS):
            self._planned[key] = version, found
        return found

    def forget(self) -> None:
        """Nobody asks any more: what was judged is judged anew when somebody does."""
        self._planned.clear()
        if not self._is_learning:
            self._memo = FleetMemo()

    async def close(self) -> None:
        """End what runs beside the passes."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.gather(self._learning, return_exceptions=True)

    @property
    def _is_learning(self) -> bool:
        return self._learning is not None and not self._learning.done()

    async def _learn(self, unknown: Iterable[Seen], policy: FleetPolicy) -> None:
        for number, one in enumerate(unknown, start=1):
            self._memo.learn(one, self._inventory.read, policy)
            if number % STEP == 0:
                await asyncio.sleep(0)
        # Only after this task is over: whoever looks then is answered.
        asyncio.get_running_loop().call_soon(self._learned)

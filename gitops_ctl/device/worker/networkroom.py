"""The network plane of one namespace: a unit for each CiscoDevice, a task for each upgrade (rollouts.md, sections 13 and 17.1).

Nothing is concluded from what is missing before everything was read once.  Read-only, it looks, samples and reports, and claims nothing.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.device.worker import campaigns
from gitops_ctl.device.worker.images import Images
from gitops_ctl.device.worker.pace import Duty
from gitops_ctl.device.worker.place import Equipment, Place
from gitops_ctl.device.worker.unit import DeviceUnit, Known
from gitops_ctl.device.worker.watched import DEVICE, LEAF, ROLLOUT, Tasks
from gitops_ctl.fleet import names
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.kube.cache import Change, Entry
from gitops_ctl.kube.informer import Informer, Timing, running

DRAIN_S: Final = 25.0
"""How long an upgrade's step may go on after the end was asked for; what is cut off is looked at by the next worker."""


class StepsLeaves(Protocol):
    """Carries out upgrades."""

    async def step(self, place: Place, leaf: NamespacedName) -> float | None:
        """One pass; the seconds until the next look at the latest, None: when something changes."""
        ...


class NetworkRoom:
    """`run` until `stop`."""

    def __init__(self, equipment: Equipment, *, executor: StepsLeaves | None, timing: Timing | None = None) -> None:
        """Without an executor nothing is claimed."""
        self._equipment = equipment
        self._executor = executor
        self._informers = {
            resource: Informer(
                equipment.client, resource, trim=without_managers, namespace=equipment.namespace, timing=timing
            )
            for resource in (DEVICE, ROLLOUT, LEAF)
        }
        self._places: dict[NamespacedName, Place] = {}
        self._units: dict[NamespacedName, DeviceUnit] = {}
        self._leaves: dict[NamespacedName, tuple[NamespacedName, Duty]] = {}
        self._unit_tasks: Tasks[NamespacedName] = Tasks()
        self._leaf_tasks: Tasks[NamespacedName] = Tasks()
        self._images = Images(equipment)
        self._changed = asyncio.Event()
        self._stopping = False
        self._informers[DEVICE].add_handler(self._device_changed)
        self._informers[ROLLOUT].add_handler(self._campaign_changed)
        self._informers[LEAF].add_handler(self._leaf_changed)

    @property
    def is_ready(self) -> bool:
        """Whether every kind was read."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    @property
    def places(self) -> Iterable[Place]:
        """One for each device that is worked for."""
        return [unit.place for unit in self._units.values()]

    async def run(self) -> None:
        """Work until `stop`."""
        async with running(*self._informers.values()):
            try:
                while not self._stopping:
                    self._changed.clear()
                    if self.is_ready:
                        await self._follow()
                        await self._changed.wait()
                    else:
                        await self._equipment.clock.sleep(0.1)
                for _, duty in self._leaves.values():
                    duty.stop()
                await self._leaf_tasks.wait(seconds=DRAIN_S)
            finally:
                await self._leaf_tasks.end_all()
                await self._unit_tasks.end_all()

    def stop(self) -> None:
        """Begin nothing new and end."""
        self._stopping = True
        self._changed.set()

    async def _follow(self) -> None:
        """Begin with what is new, end with what is gone."""
        devices = set(self._informers[DEVICE].cache)
        for key in set(self._unit_tasks.keys) - devices:
            await self._unit_tasks.end(key)
            del self._units[key]
            self._places.pop(key, None)
        for key in sorted(devices - set(self._unit_tasks.keys)):
            self._begin_device(key)
        leaves = dict(self._informers[LEAF].cache.items()) if self._executor is not None else {}
        for key in set(self._leaf_tasks.keys) - set(leaves):
            await self._leaf_tasks.end(key)
            device, _ = self._leaves.pop(key)
            if device not in self._units and device not in {name for name, _ in self._leaves.values()}:
                self._places.pop(device, None)
        for key in sorted(set(leaves) - set(self._leaf_tasks.keys)):
            self._begin_leaf(key, leaves[key])
        trees = self._trees(LEAF)
        self._equipment.spool.keep(campaigns.needed_images(trees))
        self._images.forget(campaigns.sources_in_use(self._trees(ROLLOUT)))

    def _begin_device(self, key: NamespacedName) -> None:
        known = Known(
            evidence=lambda uid: campaigns.evidence_for(
                uid, self._trees(ROLLOUT), policy_s=self._equipment.freshness_s
            ),
            orders=lambda uid: campaigns.orders_for(uid, self._trees(ROLLOUT), self._trees(LEAF)),
            absent=lambda uid, running: campaigns.absent_call(uid, running, self._trees(LEAF)),
            ended=lambda: campaigns.ended_campaigns(self._trees(ROLLOUT)),
            leaves=self._leaves_of,
            has_begun=lambda uid: campaigns.has_begun(uid, self._trees(ROLLOUT)),
        )
        unit = DeviceUnit(self._equipment, self._place(key), images=self._images, known=known)
        self._units[key] = unit
        self._unit_tasks.start(key, unit.run(), name=f"device {key}")

    def _begin_leaf(self, key: NamespacedName, tree: JsonObject) -> None:
        device = NamespacedName(key.namespace, text_at(tree, "spec", "deviceRef", "name"))
        retry_s = self._equipment.intervals.worker_poll_s
        duty = Duty(
            "upgrade", lambda: self._step(device, key), clock=self._equipment.clock, retry_s=retry_s, told=str(key)
        )
        self._leaves[key] = device, duty
        self._leaf_tasks.start(key, duty.run(), name=f"upgrade {key}")

    async def _step(self, device: NamespacedName, leaf: NamespacedName) -> float | None:
        assert self._executor is not None
        uid, journal = self._uid(device), self._equipment.journal
        before = journal.sequence_of(uid)
        try:
            return await self._executor.step(self._place(device), leaf)
        finally:
            if journal.sequence_of(uid) != before and device in self._units:
                self._units[device].journal_changed()

    def _place(self, key: NamespacedName) -> Place:
        if key not in self._places:
            cache = self._informers[DEVICE].cache
            self._places[key] = self._equipment.place(key, tree=lambda: cache.get(key))
        return self._places[key]

    def _trees(self, resource: object) -> tuple[JsonObject, ...]:
        return tuple(tree for kind, informer in self._informers.items() if kind is resource for tree in _all(informer))

    def _uid(self, key: NamespacedName) -> str:
        return text_at(self._informers[DEVICE].cache.get(key) or {}, "metadata", "uid")

    def _leaves_of(self, uid: str) -> tuple[Leaf, ...]:
        """Upgrades of the device."""
        trees = self._trees(LEAF)
        mine = (tree for tree in trees if text_at(tree, "metadata", "annotations", names.DEVICE_UID) == uid)
        return tuple(map(leaf_of, mine))

    def _device_changed(self, change: Change[JsonObject]) -> None:
        if change.kind != "modified":
            self._changed.set()
        if change.key in self._units:
            self._units[change.key].device_changed()
        for device, duty in self._leaves.values():
            if device == change.key:
                duty.ask()

    def _campaign_changed(self, change: Change[JsonObject]) -> None:
        self._changed.set()
        for unit in self._units.values():
            unit.campaigns_changed()

    def _leaf_changed(self, change: Change[JsonObject]) -> None:
        if change.kind != "modified" or _phase(change.old) != _phase(change.new):
            self._changed.set()
        if change.key in self._leaves:
            self._leaves[change.key][1].ask()
        for entry in (change.old, change.new):
            if entry is not None:
                name = text_at(entry.value, "spec", "deviceRef", "name")
                unit = self._units.get(NamespacedName(change.key.namespace, name))
                if unit is not None:
                    unit.campaigns_changed()


def _all(informer: Informer[JsonObject]) -> list[JsonObject]:
    return [tree for _, tree in informer.cache.items()]


def _phase(entry: Entry[JsonObject] | None) -> str:
    return text_at(entry.value, "status", "phase") if entry is not None else ""

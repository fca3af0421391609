"""The preflight of a device for the campaigns that name it: read-only checks before anybody approves (rollouts.md, section 9.4).

Done for each new plan, again when the device, its Secrets or the plan change, and again after the preflight interval.  A check that cannot be
answered is Unknown and counts as failed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, objects_at, text_at
from gitops_ctl.device import imagechecks, preflightchecks, reads
from gitops_ctl.device.channel import GnoiUnavailable
from gitops_ctl.device.chassis import require_chassis
from gitops_ctl.device.operational import InstallState, Platform, SavedConfiguration, Seen
from gitops_ctl.device.preflightchecks import Check, Status, result_of
from gitops_ctl.device.worker.campaigns import Order
from gitops_ctl.device.worker.images import ImageAnswer, Images
from gitops_ctl.device.worker.material import Material
from gitops_ctl.device.worker.place import Equipment, Place, usable
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.identity import canonical_identity
from gitops_ctl.fleet.trees import moment_at

MOST_ENTRIES: Final = 8
_UNKNOWN_SIZE: Final = "the size of the image is not known"
_SOON_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Done:
    """A preflight of this process: when, with which inputs, and whether it failed."""

    at_s: float
    inputs: tuple[object, ...]
    has_failed: bool


@dataclass(frozen=True, slots=True)
class DeviceLook:
    """What one look at the device gave; a part that could not be read is a reading with a gap."""

    netconf: GitopsError | None
    install: Seen[InstallState]
    platform: Seen[Platform]
    saved: Seen[SavedConfiguration]
    gnoi: GitopsError | None
    running: str
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Campaigns:
    """What the campaigns of the room say; the first argument is the UID of a device.

    Attributes:
        orders: the preflights that are wanted.
        ended: UIDs of the campaigns that are over.
        absent: which call the version that is named does not have, as far as an upgrade found out.
    """

    orders: Callable[[str], tuple[Order, ...]]
    ended: Callable[[], frozenset[str]]
    absent: Callable[[str, str], str]


class Preflights:
    """Those of one device."""

    def __init__(self, equipment: Equipment, place: Place, *, images: Images, wanted: Campaigns) -> None:
        self._equipment = equipment
        self._place = place
        self._images = images
        self._wanted = wanted
        self._done: dict[str, _Done] = {}

    async def turn(self) -> float | None:
        """Do what is due; the seconds until the next one is, None when none is wanted.

        Raises:
            GitopsError: a result cannot be written.
        """
        device, material = self._place.device, self._place.material
        if device is None or material is None or device.deleting or device.retired is not None:
            return None
        orders = self._wanted.orders(device.uid)
        self._done = {uid: done for uid, done in self._done.items() if uid in {one.rollout_uid for one in orders}}
        for order in orders:
            if self._seconds_left(device, material, order) <= 0:
                await self._do(device, material, order)
        left = [self._seconds_left(device, material, order) for order in orders]
        return min(left, default=None)

    def _seconds_left(self, device: Device, material: Material, order: Order) -> float:
        done = self._done.get(order.rollout_uid)
        if done is None or done.inputs != _inputs(device, material, order):
            return 0.0
        interval_s = self._equipment.intervals.preflight_s
        # What failed may be in order soon: it is not left for the whole interval.
        wait_s = max(_SOON_S, interval_s / 60) if done.has_failed else interval_s
        return done.at_s + min(wait_s, interval_s) - self._equipment.clock.boot_s()

    async def _do(self, device: Device, material: Material, order: Order) -> None:
        looked = await self._look_at(material)
        image = ImageAnswer((), None) if order.preinstalled else await self._images.answer(order)
        looked = replace(looked, absent=self._wanted.absent(device.uid, looked.running))
        checks = checks_of(looked, image, is_preinstalled=order.preinstalled, block=self._equipment.unsaved_blocks)
        if self._place.material is not material:
            return  # loaded anew meanwhile: the next turn looks with what counts now
        entry: dict[str, JsonValue] = {
            "rolloutUID": order.rollout_uid,
            "planHash": order.plan_hash,
            "observedAt": to_rfc3339(self._equipment.clock.wall()),
            "workerPodUID": self._equipment.who.pod_uid,
            "workerRevision": material.revision,
            "result": result_of(checks),
        }
        if image.size is not None:
            entry["imageSize"] = image.size
        if looked.running:
            entry["runningVersion"] = looked.running
        entry["checks"] = [_tree(check) for check in checks]
        await self._write(device, entry)
        has_failed = entry["result"] == "Failed"
        at_s, inputs = self._equipment.clock.boot_s(), _inputs(device, material, order)
        self._done[order.rollout_uid] = _Done(at_s, inputs, has_failed)
        self._equipment.counted("preflight", not has_failed)

    async def _look_at(self, material: Material) -> DeviceLook:
        async with self._place.turn:
            running, gnoi = await self._verify(material)
            try:
                return await self._place.while_loaded(self._read(material, gnoi, running))
            except GitopsError as error:
                why = (f"{error.reason}: {error.message}",)
                return DeviceLook(
                    error,
                    Seen(InstallState(), why),
                    Seen(Platform(), why),
                    Seen(SavedConfiguration(saved=False), why),
                    gnoi,
                    running,
                )

    async def _read(self, material: Material, gnoi: GitopsError | None, running: str) -> DeviceLook:
        endpoint, device = usable(material, subject=str(self._place.key)), self._place.device
        declared = canonical_identity(device.physical_identity) if device is not None else ""
        async with self._equipment.netconf.session(endpoint) as session:
            require_chassis(await reads.serial(session), expected=declared, subject=endpoint.name)
            install = await reads.install_state(session)
            platform = await reads.platform(session)
            saved = await reads.saved_configuration(session)
        return DeviceLook(None, install, platform, saved, gnoi, running)

    async def _verify(self, material: Material) -> tuple[str, GitopsError | None]:
        try:
            return await self._place.while_loaded(self._verified(material)), None
        except GitopsError as error:
            return "", error

    async def _verified(self, material: Material) -> str:
        if material.target is None:
            raise GnoiUnavailable(material.problem, subject=str(self._place.key))
        async with self._equipment.gnoi.session(material.target) as session:
            return (await session.verify()).version

    async def _write(self, device: Device, entry: JsonObject) -> None:
        path = self._equipment.device_path(self._place.key)
        stored = objects_at(await self._equipment.client.get(path), "status", "preflight")
        if any(self._says_the_same(one, entry) for one in stored):
            return
        body: JsonObject = {
            "metadata": {"uid": device.uid},
            "status": {"preflight": list(entries_with(stored, entry, ended=self._wanted.ended()))},
        }
        await self._equipment.client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER, subresource="status")

    def _says_the_same(self, stored: JsonObject, entry: JsonObject) -> bool:
        """Whether nothing but the time differs, and the time is no older than the interval."""
        observed = moment_at(stored, "observedAt")
        if observed is None or {**stored, "observedAt": ""} != {**entry, "observedAt": ""}:
            return False
        return (self._equipment.clock.wall() - observed).total_seconds() < self._equipment.intervals.preflight_s


def checks_of(looked: DeviceLook, image: ImageAnswer, *, is_preinstalled: bool, block: bool) -> tuple[Check, ...]:
    """All checks of one preflight, in the order of the contract."""
    found = [
        preflightchecks.netconf(looked.netconf),
        imagechecks.gnoi(looked.gnoi, running=looked.running, absent=looked.absent),
    ]
    if not is_preinstalled:
        found += [*image.checks, _flash(looked, image)]
    found.append(preflightchecks.install_mode(looked.install))
    found.append(preflightchecks.quiescent(looked.install, verified=looked.running))
    found.append(preflightchecks.saved_configuration(looked.saved, block=block))
    return tuple(found)


def _flash(looked: DeviceLook, image: ImageAnswer) -> Check:
    if image.size is None:
        return Check("FlashSpace", Status.UNKNOWN, "FlashSpaceInsufficient", _UNKNOWN_SIZE)
    return preflightchecks.flash_space(looked.platform, looked.install, needed=image.size)


def entries_with(stored: Iterable[JsonObject], entry: JsonObject, *, ended: frozenset[str]) -> tuple[JsonObject, ...]:
    """The stored entries with this one in the place of its campaign's; of too many, the oldest of an ended campaign goes first."""
    others = [one for one in stored if one.get("rolloutUID") != entry["rolloutUID"]]
    others.sort(key=lambda one: (text_at(one, "rolloutUID") in ended, _age(one)))
    return (*others[: MOST_ENTRIES - 1], entry)


def _age(entry: JsonObject) -> float:
    """Larger for what was observed earlier; what has no time is the oldest."""
    observed = moment_at(entry, "observedAt")
    return -observed.timestamp() if observed is not None else float("inf")


def _inputs(device: Device, material: Material, order: Order) -> tuple[object, ...]:
    """What a preflight rests on: another one of these is a reason to look again."""
    return device.uid, device.generation, material.revision, material.problem, order


def _tree(check: Check) -> JsonObject:
    words = f"{check.reason}: {check.message}" if check.reason and check.message else check.reason or check.message
    members: dict[str, JsonValue] = {"name": check.name, "status": check.status.value}
    if words:
        members["message"] = words[:256]
    return members

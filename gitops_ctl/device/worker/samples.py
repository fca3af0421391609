"""Network samples of a device: collected over NETCONF, renewed at a third of the limit of their age (rollouts.md, sections 15.1 and 15.5).

A sample is written only into a healthObservation that the manager has made.  A device that does not answer gets one sample that says so and
then nothing before the next one is due.
"""

from collections.abc import Callable

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, int_at, text_at
from gitops_ctl.device import reads
from gitops_ctl.device.networksample import Collector, Look, failed_sample, sample_of
from gitops_ctl.device.operational import Seen, Surroundings
from gitops_ctl.device.worker.campaigns import Evidence
from gitops_ctl.device.worker.material import Material
from gitops_ctl.device.worker.place import Equipment, Place, usable
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.identity import canonical_identity, device_identity_hash
from gitops_ctl.fleet.trees import moment_at

OPTIONAL = ("unknownReason",)
"""Members that a sample may lack; one of the sample before must not stay."""


class Sampler:
    """Collects the samples of one device."""

    def __init__(self, equipment: Equipment, place: Place, *, evidence: Callable[[str], Evidence]) -> None:
        """`evidence` gives what is asked of the device with that UID."""
        self._equipment = equipment
        self._place = place
        self._evidence = evidence
        self._latest: JsonObject = {}

    async def turn(self) -> float | None:
        """Collect and write when a sample is due; the seconds until the next one is.

        Raises:
            GitopsError: it cannot be written.
        """
        device, material = self._place.device, self._place.material
        if device is None or material is None or not _takes_samples(device):
            return None
        asked = self._evidence(device.uid)
        if (left_s := self._seconds_left(device, material, asked)) > 0:
            return left_s
        sample = await self._collect(device, material, asked)
        await self._write(device, sample)
        self._latest = sample
        self._equipment.counted("sample", bool(sample["complete"]))
        return asked.freshness_s / 3

    def _seconds_left(self, device: Device, material: Material, asked: Evidence) -> float:
        """Until the stored sample is due to be renewed; a sample of another Pod or configuration is due now."""
        stored = device.health.network if device.health is not None else None
        sample = max((stored or {}, self._latest), key=lambda one: int_at(one, "sampleSequence"))
        ours = (self._equipment.who.pod_uid, material.revision)
        if (text_at(sample, "workerPodUID"), text_at(sample, "producerRevision")) != ours:
            return 0.0
        observed = moment_at(sample, "observedAt")
        if stored is None or observed is None:
            return 0.0
        age_s = (self._equipment.clock.wall() - observed).total_seconds()
        return asked.freshness_s / 3 - age_s if age_s >= 0 else 0.0

    async def _collect(self, device: Device, material: Material, asked: Evidence) -> JsonObject:
        chassis, started, why = canonical_identity(device.physical_identity), self._equipment.clock.wall(), ""
        seen: Seen[Surroundings] | None = None
        try:
            around, serial = await self._place.while_loaded(self._look(material))
            if serial.value:
                chassis = canonical_identity(serial.value)
            seen = around if serial.value else Seen(around.value, (*serial.gaps, *around.gaps))
        except GitopsError as error:
            seen, why = None, f"{error.reason}: {error.message}"
        by = Collector(self._equipment.who.pod_uid, material.revision, device_identity_hash(chassis))
        look = Look(started, self._equipment.clock.wall(), self._next(device), asked.interfaces)
        return failed_sample(why, by=by, look=look) if seen is None else sample_of(seen, by=by, look=look)

    async def _look(self, material: Material) -> tuple[Seen[Surroundings], Seen[str]]:
        """What is around the device, and which chassis says so."""
        endpoint = usable(material, subject=str(self._place.key))
        async with self._place.turn, self._equipment.netconf.session(endpoint) as session:
            serial = await reads.serial(session)
            return await reads.surroundings(session), serial

    def _next(self, device: Device) -> int:
        """Numbers rise also across Pods, so that nobody has to ask which Pod counts."""
        stored = device.health.network if device.health is not None else None
        return max(int_at(stored or {}, "sampleSequence"), int_at(self._latest, "sampleSequence")) + 1

    async def _write(self, device: Device, sample: JsonObject) -> None:
        whole: JsonObject = {**dict.fromkeys(OPTIONAL), **sample}
        body: JsonObject = {
            "metadata": {"uid": device.uid},
            "status": {"healthObservation": {"network": whole}},
        }
        path = self._equipment.device_path(self._place.key)
        await self._equipment.client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER, subresource="status")


def _takes_samples(device: Device) -> bool:
    is_gone = device.deleting or device.retired is not None
    return not is_gone and device.health is not None and bool(device.physical_identity)

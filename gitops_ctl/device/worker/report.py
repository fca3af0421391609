"""`status.workerReport`: what this worker loaded for a device, and whether its journal knows all that was sent (rollouts.md, 5.2, 13.9, 17.2).

Written when one of its members changes, never on a timer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.device import reads
from gitops_ctl.device.chassis import require_chassis
from gitops_ctl.device.journal import Reported
from gitops_ctl.device.preflightchecks import quiescence_problem
from gitops_ctl.device.worker.history import NOBODYS, reported_of, unknown_claims
from gitops_ctl.device.worker.material import Material
from gitops_ctl.device.worker.place import Equipment, Place, usable
from gitops_ctl.fleet.device import JOURNAL_READY, Device, device_of
from gitops_ctl.fleet.identity import canonical_identity
from gitops_ctl.fleet.leaf import Leaf

HISTORY_LOST: Final = "HistoryLost"


@dataclass(frozen=True, slots=True)
class Taken:
    """What the caches of the room say about who has a device.

    Attributes:
        leaves: upgrades of the device.
        by_campaign: whether the status of a campaign says that it has begun with the device, which then has a reservation.
    """

    leaves: Callable[[], tuple[Leaf, ...]]
    by_campaign: Callable[[], bool]


class Reporter:
    """Writes the report of one device."""

    def __init__(self, equipment: Equipment, place: Place, *, taken: Taken) -> None:
        self._equipment = equipment
        self._place = place
        self._taken = taken

    async def turn(self) -> float | None:
        """Load and report; the seconds until the Secrets are read again at the latest.

        Raises:
            GitopsError: something cannot be read or written; what can be said is written before.
        """
        unreadable: GitopsError | None = None
        try:
            material = await self._place.reload()
        except GitopsError as error:
            unreadable, kept = error, self._place.material
            if kept is None:
                raise
            material = kept
        device = self._place.device
        if device is not None:
            await self._write(device, material)
        if unreadable is not None:
            raise unreadable
        intervals = self._equipment.intervals
        return intervals.secrets_s if self._is_current(device, material) else intervals.worker_poll_s

    def _is_current(self, device: Device | None, material: Material) -> bool:
        """Whether the manager wants what is loaded; while it wants something else, Secrets or Pods are being changed."""
        wanted = device.network_worker_revision if device is not None else None
        return wanted is not None and wanted.desired == material.revision and not material.problem

    async def _write(self, device: Device, material: Material) -> None:
        stored = object_at(device.status, "workerReport")
        report = await self._report(device, material)
        if {**report, "loadedAt": ""} == {**stored, "loadedAt": ""}:
            return
        at = to_rfc3339(self._equipment.clock.wall())
        gone: dict[str, JsonValue] = {name: None for name in stored if name not in report}
        body: JsonObject = {
            "metadata": {"uid": device.uid},
            "status": {"workerReport": {**gone, **report, "loadedAt": at}},
        }
        path = self._equipment.device_path(self._place.key)
        await self._equipment.client.patch_merge(path, body, manager=FIELD_MANAGER_DEVICE_WORKER, subresource="status")

    async def _report(self, device: Device, material: Material) -> dict[str, JsonValue]:
        report: dict[str, JsonValue] = {
            "podUID": self._equipment.who.pod_uid,
            "observedRevision": material.revision,
            "materialValid": not material.problem,
            "journal": await self._journal(device),
        }
        if material.problem:
            report["message"] = material.problem
        if self._equipment.allow:
            report["imageSourceAllow"] = list(self._equipment.allow)
        return report

    async def _journal(self, device: Device) -> JsonObject:
        """The member `journal`.  A lost history keeps the id of the journal that was lost, until nothing is open and the device is quiet."""
        journal = self._equipment.journal
        if journal.problem:
            await asyncio.to_thread(journal.mend)
        ours: JsonObject = {
            "id": journal.id,
            "sequence": journal.sequence_of(device.uid),
            "state": JOURNAL_READY,
        }
        if reported_of(device) is not None and self._knows_all(device):
            return ours
        # The cache may be older than what this worker wrote last.
        live = await self._live()
        reported = reported_of(live)
        if self._knows_all(live) and (reported is not None or not self._is_taken(live)):
            return ours
        lost = reported or Reported(journal.id if journal.problem else NOBODYS, 0)
        told: JsonObject = {"id": lost.id, "sequence": lost.sequence, "state": HISTORY_LOST}
        if journal.problem or reported is None or self._is_taken(live) or not await self._is_quiet():
            return told
        # An upgrade may have begun while the device was looked at.
        return told if self._is_taken(await self._live()) else ours

    async def _live(self) -> Device:
        return device_of(await self._equipment.client.get(self._equipment.device_path(self._place.key)))

    def _knows_all(self, device: Device) -> bool:
        """Whether the journal knows all that the cluster remembers; a device that nothing is known of has nothing to remember."""
        journal = self._equipment.journal
        if journal.state_for(device.uid, reported_of(device)) != JOURNAL_READY:
            return False
        return not unknown_claims(journal, self._taken.leaves())

    def _is_taken(self, device: Device) -> bool:
        """Whether a campaign has the device, as far as it is known."""
        return device.lock is not None or self._taken.by_campaign() or any(map(_is_open, self._taken.leaves()))

    async def _is_quiet(self) -> bool:
        """Whether the device was seen quiescent at a known version."""
        try:
            return await self._place.while_loaded(self._look())
        except GitopsError:
            return False

    async def _look(self) -> bool:
        material, name = self._place.material, str(self._place.key)
        endpoint, device = usable(material, subject=name), self._place.device
        declared = canonical_identity(device.physical_identity) if device is not None else ""
        if material is None or material.target is None:
            return False
        async with self._place.turn:
            async with self._equipment.netconf.session(endpoint) as session:
                require_chassis(await reads.serial(session), expected=declared, subject=name)
                install = await reads.install_state(session)
            async with self._equipment.gnoi.session(material.target) as software:
                verified = await software.verify()
        return not quiescence_problem(install, verified=verified.version)


def _is_open(leaf: Leaf) -> bool:
    """Whether an upgrade has no resolved outcome, or was not settled by the manager."""
    return not leaf.is_outcome_resolved or leaf.has_unresolved_claim

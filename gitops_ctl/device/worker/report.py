"""`status.workerReport`: what this worker loaded for a device, and whether its journal knows all that was sent (rollouts.md, 5.2, 13.9, 17.2).

Written when one of its members changes, never on a timer.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, object_at
from gitops_ctl.device import reads
from gitops_ctl.device.chassis import require_chassis
from gitops_ctl.device.journal import Reported
from gitops_ctl.device.preflightchecks import quiescence_problem
from gitops_ctl.device.worker.material import Material
from gitops_ctl.device.worker.place import Equipment, Place, usable
from gitops_ctl.fleet.device import JOURNAL_READY, Device, device_of
from gitops_ctl.fleet.identity import canonical_identity

HISTORY_LOST: Final = "HistoryLost"


class Reporter:
    """Writes the report of one device."""

    def __init__(self, equipment: Equipment, place: Place, *, has_open_leaf: Callable[[], bool]) -> None:
        """`has_open_leaf` says whether an upgrade of the device is open, as far as it is known."""
        self._equipment = equipment
        self._place = place
        self._has_open_leaf = has_open_leaf

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
        if journal.state_for(device.uid, _reported(device)) == JOURNAL_READY:
            return ours
        # The cache may be older than what this worker wrote last.
        live = device_of(await self._equipment.client.get(self._equipment.device_path(self._place.key)))
        reported = _reported(live)
        if journal.state_for(device.uid, reported) == JOURNAL_READY:
            return ours
        if reported is None:
            return {**ours, "state": HISTORY_LOST}
        if journal.problem:
            return {"id": reported.id, "sequence": reported.sequence, "state": HISTORY_LOST}
        if live.lock is None and not self._has_open_leaf() and await self._is_quiet():
            # An upgrade may have begun while the device was looked at.
            live = device_of(await self._equipment.client.get(self._equipment.device_path(self._place.key)))
            if live.lock is None and not self._has_open_leaf():
                return ours
        return {"id": reported.id, "sequence": reported.sequence, "state": HISTORY_LOST}

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


def _reported(device: Device) -> Reported | None:
    journal = device.worker_report.journal if device.worker_report is not None else None
    return Reported(journal.id, journal.sequence) if journal is not None and journal.id else None

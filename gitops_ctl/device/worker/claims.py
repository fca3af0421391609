"""A claim: what has to hold directly before a request that changes a device, and its record (rollouts.md, sections 13.2 and 13.9).

The claim and its at-most-once marker are one compare-and-swap on the leaf as the gate saw it.  Around it stand the two records of the
journal; the request may be sent when `claim` has returned, and only by who called it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.journal import ClaimHistoryLost, Reported
from gitops_ctl.device.journalrecords import Claim, Step
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.deadlines import window_problem
from gitops_ctl.device.worker.decision import PREPARE_ONLY
from gitops_ctl.device.worker.leafstatus import INSTALL_COMMIT, MARKERS, claim_of, key_of, last_stage
from gitops_ctl.device.worker.leafwork import Work
from gitops_ctl.device.worker.looking import apps_of, look
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.evidence import is_authority_current
from gitops_ctl.fleet.gate import Gate
from gitops_ctl.fleet.leaf import ACTIVATIONS, Leaf

_ENDED_PODS: Final = ("Succeeded", "Failed")
_WINDOWED: Final = frozenset({"StandbyActivation", "PrimaryActivation"})


@dataclass(frozen=True, slots=True)
class Denial:
    """Why the claim is not made; `is_final`: it never will be, so the leaf ends as one that may claim nothing any more."""

    reason: str
    message: str
    is_final: bool = False


async def denial(work: Work, stage: str) -> Denial | None:
    """The first thing that is missing; None when the claim may be made now."""
    checks: tuple[Callable[[Work, str], Awaitable[Denial | None]], ...] = (
        *(_journal, _window, _maintenance, _authority, _siblings, _pods, _inventory, _quiescent),
    )
    for check in checks:
        if (found := await check(work, stage)) is not None:
            return found
    return None


async def claim(work: Work, stage: str) -> Leaf:
    """Make the claim, or take up one that was made and never sent; the leaf as it is then.

    Raises:
        Conflict: somebody wrote in between: nothing is claimed.
        TransientError: it may be claimed; nothing was sent.
        JournalUnavailable: nothing may be sent.
    """
    leaf, made = work.leaf, work.leaf.claim(stage)
    claimed_at = made.claimed_at_text if made is not None else to_rfc3339(work.now)
    record = claim_of(leaf, stage, claimed_at=claimed_at)
    await asyncio.to_thread(work.ports.journal.intend, record)
    if made is None:
        published = leafstatus.control(
            leaf, Gate("Claimed"), revision=work.access.runtime.loaded_revision, now=work.now
        )
        leaf = await work.desk.write(leaf, leafstatus.claimed(leaf, record, now=work.now) | published)
    await asyncio.to_thread(work.ports.journal.claim, record.key)
    return leaf


async def claim_commit(work: Work) -> Leaf:
    """The same for the marker of the install commit; errors as of `claim`."""
    leaf, made = work.leaf, work.leaf.install_commit
    stored = text_at(leaf.status, "installCommit", "requestedAt")
    record = claim_of(leaf, INSTALL_COMMIT, claimed_at=stored or to_rfc3339(work.now))
    await asyncio.to_thread(work.ports.journal.intend, record)
    if made is None:
        requested = {"installCommit": {"state": "Requested", "requestedAt": record.claimed_at}}
        leaf = await work.desk.write(leaf, requested)
    await asyncio.to_thread(work.ports.journal.claim, record.key)
    return leaf


def is_unsent(work: Work, leaf: Leaf, stage: str) -> bool:
    """Whether the journal proves that the claim of the leaf was made and its request never sent."""
    if stage == INSTALL_COMMIT:
        claimed_at = text_at(leaf.status, "installCommit", "requestedAt")
    else:
        made = leaf.claim(stage)
        claimed_at = made.claimed_at_text if made is not None else ""
    found = work.ports.journal.claims.get(key_of(leaf, stage))
    if not claimed_at or found is None or _history_problem(work, work.device):
        return False
    return found.step is Step.INTENT and (found.claimed_at, found.leaf_uid) == (claimed_at, leaf.uid)


def forgotten(work: Work, leaf: Leaf) -> tuple[Claim, ...]:
    """Claims that the journal knows and the leaf does not: the cluster was restored."""
    if leaf.is_terminal or not leaf.binding.is_complete:
        return ()
    journal = work.ports.journal
    known = (journal.known(key_of(leaf, stage)) for stage in _stages_of(leaf) if leaf.claim(stage) is None)
    return tuple(found for found in known if found is not None)


def forgotten_commit(work: Work, leaf: Leaf) -> Claim | None:
    """The same for the marker of the install commit."""
    if leaf.is_terminal or not leaf.binding.is_complete or leaf.install_commit is not None:
        return None
    return work.ports.journal.known(key_of(leaf, INSTALL_COMMIT))


def _stages_of(leaf: Leaf) -> tuple[str, ...]:
    """The stages that this leaf can have: preparation and activation of a device share their reservation."""
    if leaf.strategy == PREPARE_ONLY:
        return tuple(stage for stage in MARKERS if stage not in ACTIVATIONS)
    return tuple(stage for stage in MARKERS if stage in ACTIVATIONS or not leaf.is_preinstalled)


async def _journal(work: Work, _stage: str) -> Denial | None:
    why = _history_problem(work, work.device)
    return Denial("ClaimHistoryLost", why) if why else None


def _history_problem(work: Work, device: Device | None) -> str:
    if device is None:
        return "there is no device"
    report = device.worker_report
    reported = (
        None if report is None or report.journal is None else Reported(report.journal.id, report.journal.sequence)
    )
    try:
        work.ports.journal.require_history(device.uid, reported, name=device.name)
    except ClaimHistoryLost as error:
        return error.message
    return ""


async def _window(work: Work, stage: str) -> Denial | None:
    is_first = not work.leaf.claims
    if not is_first and stage not in _WINDOWED:
        return None
    why, is_final = window_problem(work.leaf, work.now)
    return Denial("MaintenanceWindowClosed" if is_final else "MaintenanceWindowNotOpen", why, is_final) if why else None


async def _maintenance(work: Work, _stage: str) -> Denial | None:
    if await work.access.maintenance.ask(work.leaf):
        return None
    return Denial("MaintenancePending", "the maintenance session of the device is not acknowledged")


async def _authority(work: Work, _stage: str) -> Denial | None:
    admission, health = work.leaf.admission, work.device.health if work.device is not None else None
    authority = admission.network if admission is not None else None
    if not work.leaf.require_network_evidence and authority is None:
        return None
    if is_authority_current(authority, health.accepted if health is not None else None, now=work.now):
        return None
    why = "the network evidence of the grant is not the accepted sample, or is not valid any more"
    return Denial("NetworkEvidenceAuthorityInvalid", why)


async def _siblings(work: Work, _stage: str) -> Denial | None:
    failed = sorted(
        one.name for one in await work.desk.siblings(work.leaf) if one.is_failed and one.uid != work.leaf.uid
    )
    if not failed:
        return None
    return Denial("CampaignTargetFailed", f"{listed(failed)} of the campaign failed", is_final=bool(work.leaf.claims))


async def _pods(work: Work, _stage: str) -> Denial | None:
    if work.node is None:
        return Denial("WorkloadGateUnavailable", "the Node of the device cannot be read")
    try:
        pods = await work.desk.pods(work.node.name)
    except TransientError:
        raise
    except GitopsError as error:
        return Denial("WorkloadCheckFailed", error.message)
    active = sorted(
        f"{text_at(pod, 'metadata', 'namespace')}/{text_at(pod, 'metadata', 'name')}"
        for pod in pods
        if text_at(pod, "status", "phase") not in _ENDED_PODS
    )
    return Denial("WorkloadsRunning", f"active on the Node: {listed(active)}") if active else None


async def _inventory(work: Work, _stage: str) -> Denial | None:
    try:
        seen = await apps_of(work.ports, work.access)
    except GitopsError as error:
        return Denial("DeviceWorkloadCheckFailed", error.message)
    if not seen.complete:
        return Denial("DeviceWorkloadCheckFailed", seen.why)
    if seen.value.none:
        return None
    found = sorted({*seen.value.configured, *(name for name, _ in seen.value.present)})
    return Denial("DeviceWorkloadsRunning", f"applications of the device: {listed(found)}")


async def _quiescent(work: Work, stage: str) -> Denial | None:
    if work.leaf.claims and last_stage(work.leaf) != stage:
        return None
    seen = await look(work.ports, work.access)
    return Denial("DeviceNotQuiescent", seen.unrest) if seen.unrest else None

"""A claim: what has to hold directly before a request that changes a device, and its record (rollouts.md, sections 13.2 and 13.9).

The claim and its at-most-once marker are one compare-and-swap on the leaf as the gate saw it.  Around it stand the two records of the
journal; the request may be sent when `claim` has returned, and only by who called it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import Conflict, GitopsError, TransientError
from gitops_ctl.core.jsonvalue import JsonObject, bool_at, text_at
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device import preflightchecks
from gitops_ctl.device.journalrecords import Claim, Step
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.deadlines import window_problem
from gitops_ctl.device.worker.decision import PREPARE_ONLY
from gitops_ctl.device.worker.history import history_problem
from gitops_ctl.device.worker.leafstatus import INSTALL_COMMIT, MARKERS, claim_of, key_of
from gitops_ctl.device.worker.leafwork import Work
from gitops_ctl.device.worker.looking import Look, apps_of, look, saved_of, standby_problem
from gitops_ctl.device.worker.observing import third_version_problem
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.evidence import is_authority_current
from gitops_ctl.fleet.gate import Gate, bindings_of, gate_of
from gitops_ctl.fleet.leaf import ACTIVATIONS, Leaf
from gitops_ctl.fleet.receipt import matches_target

_ENDED_PODS: Final = ("Succeeded", "Failed")
_WINDOWED: Final = frozenset({"StandbyActivation", "PrimaryActivation"})
_Check: TypeAlias = Callable[["Work", str], Awaitable["Denial | None"]]


@dataclass(frozen=True, slots=True)
class Denial:
    """Why the claim is not made; `is_final`: it never will be, so the leaf ends as one that may claim nothing any more."""

    reason: str
    message: str
    is_final: bool = False
    begins_again: bool = False
    """Nothing is claimed, and what the leaf began with is not so any more: it is to be looked at anew."""


async def early_denial(work: Work, stage: str) -> Denial | None:
    """The first thing that is missing before image and session are made ready: who waits for hours reads no image all the while."""
    return await _first(work, stage, _EARLY)


async def denial(work: Work, stage: str) -> Denial | None:
    """The first thing that is missing; None when the claim may be made now.

    Leaf, device and Node are read anew, so it is to be called directly before `claim`.

    Raises:
        Conflict: the leaf is another one than the one of this pass.
    """
    await _refresh(work)
    if not work.gate.may_claim:
        return Denial("ClaimNotAllowed", work.gate.message or f"the gate says {work.gate.effective_state}")
    return await _first(work, stage, (*_EARLY, _quiescent))


async def commit_denial(work: Work) -> Denial | None:
    """Why the install commit may not be sent now, as `denial`: it belongs to an accepted claim, which may go on without new ones."""
    await _refresh(work)
    if not work.gate.may_progress:
        return Denial("CommitNotAllowed", work.gate.message or f"the gate says {work.gate.effective_state}")
    return await _journal(work, INSTALL_COMMIT)


async def _refresh(work: Work) -> None:
    """Judge the leaf of this pass by what stands in the cluster now."""
    fresh = await work.desk.leaf(work.leaf.namespace, work.leaf.name)
    if fresh is None or (fresh.uid, fresh.resource_version) != (work.leaf.uid, work.leaf.resource_version):
        raise Conflict("the leaf changed since it was read", subject=work.leaf.name)
    work.device, work.node = await work.desk.device(fresh), await work.desk.node(fresh)
    bindings = bindings_of(fresh, work.device, work.node, work.access.runtime)
    if bindings.identity:
        raise Conflict(f"the leaf is bound otherwise: {bindings.identity}", subject=fresh.name)
    work.leaf, work.gate = fresh, gate_of(fresh, bindings)


async def _first(work: Work, stage: str, checks: tuple[_Check, ...]) -> Denial | None:
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
    # One that was made before is written too: the leaf has to be the one that the gate saw.
    members = leafstatus.claimed(leaf, record, now=work.now)
    if made is not None:
        members.pop("managedMutationClaims")
    revision = work.access.runtime.loaded_revision
    members |= leafstatus.control(leaf, Gate("Claimed"), revision=revision, now=work.now)
    leaf = await work.desk.write(leaf, members)
    await asyncio.to_thread(work.ports.journal.claim, record.key)
    return leaf


async def claim_commit(work: Work) -> Leaf:
    """The same for the marker of the install commit; errors as of `claim`."""
    leaf = work.leaf
    stored = text_at(leaf.status, "installCommit", "requestedAt")
    record = claim_of(leaf, INSTALL_COMMIT, claimed_at=stored or to_rfc3339(work.now))
    await asyncio.to_thread(work.ports.journal.intend, record)
    requested: JsonObject = {"installCommit": {"state": "Requested", "requestedAt": record.claimed_at}}
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
    if leaf.strategy == PREPARE_ONLY:
        # It commits nothing: the marker is of the activation that shares its reservation.
        return None
    return work.ports.journal.known(key_of(leaf, INSTALL_COMMIT))


def is_given_up(work: Work) -> bool:
    """Whether the leaf was stopped before its first claim, and the journal proves that nothing was sent for it either."""
    leaf = work.leaf
    return leaf.is_given_up and not (forgotten(work, leaf) or _history_problem(work, work.device))


def _stages_of(leaf: Leaf) -> tuple[str, ...]:
    """The stages that this leaf can have: preparation and activation of a device share their reservation."""
    if leaf.strategy == PREPARE_ONLY:
        return tuple(stage for stage in MARKERS if stage not in ACTIVATIONS)
    return tuple(stage for stage in MARKERS if stage in ACTIVATIONS or not leaf.is_preinstalled)


async def _journal(work: Work, _stage: str) -> Denial | None:
    why = _history_problem(work, work.device)
    return Denial("ClaimHistoryLost", why) if why else None


def _history_problem(work: Work, device: Device | None) -> str:
    return history_problem(work.ports.journal, device, work.leaf)


async def _window(work: Work, stage: str) -> Denial | None:
    is_first = {one.stage for one in work.leaf.claims} <= {stage}
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
    seen, previous = await look(work.ports, work.access), text_at(work.leaf.status, "previousVersion")
    if stage == "RollbackActivation":
        return _third_version(work, seen, previous)
    is_first = {one.stage for one in work.leaf.claims} <= {stage}
    why = seen.unrest
    if is_first and why:
        return Denial("DeviceNotQuiescent", why)
    if seen.running == previous:
        return await _unfit(work, stage, seen, is_first=is_first)
    if why:
        return Denial("DeviceNotQuiescent", why)
    message = f"the device runs {seen.running}, and ran {previous} when the leaf began"
    return Denial("RunningVersionChanged", message, is_final=bool(work.leaf.claims), begins_again=not work.leaf.claims)


async def _unfit(work: Work, stage: str, seen: Look, *, is_first: bool) -> Denial | None:
    """What the preflight found in order and may not be so any more: before the first claim, and before every reload (9.4)."""
    assert seen.verified is not None
    if bool_at(work.leaf.status, "individualSupervisorInstall") and (why := standby_problem(seen.verified.standby)):
        return Denial("StandbyUnavailable", why)
    if not is_first and stage not in ACTIVATIONS:
        return None
    try:
        saved = await saved_of(work.ports, work.access)
    except GitopsError as error:
        return Denial(error.reason, error.message)
    checks = (
        preflightchecks.install_mode(seen.install),
        preflightchecks.saved_configuration(saved, block=work.ports.unsaved_blocks),
    )
    bad = next((one for one in checks if one.blocks), None)
    return Denial(bad.reason, bad.message) if bad is not None else None


def _third_version(work: Work, seen: Look, previous: str) -> Denial | None:
    """A way back is for a device that runs, proven, another version than the two that were expected."""
    why = third_version_problem(seen)
    if not why and (seen.running == previous or matches_target(seen.running, work.leaf.target_version)):
        why = f"the device runs {seen.running} meanwhile"
    return Denial("DeviceNotQuiescent", why) if why else None


_EARLY: Final[tuple[_Check, ...]] = (_journal, _window, _maintenance, _authority, _siblings, _pods, _inventory)
"""What can be missing for long."""

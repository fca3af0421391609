"""The requests that change a device: install, activation, rollback, install commit (rollouts.md, section 13.3, steps 3 to 10).

Each is sent once, after its claim.  The session stands before the claim is made, so that nothing is claimed that cannot be sent.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Final

from gitops_ctl.core.conditions import Condition, condition_of, is_true
from gitops_ctl.core.errors import Conflict, GitopsError
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, text_at
from gitops_ctl.device.gnoi import SoftwareSession
from gitops_ctl.device.gnoianswers import UNIMPLEMENTED
from gitops_ctl.device.installcommit import CommitNeed, commit_need, send_commit
from gitops_ctl.device.installstream import InstallOrder, InstallTerms
from gitops_ctl.device.outcome import Accepted, Outcome, Refused, Unknown
from gitops_ctl.device.reads import install_state
from gitops_ctl.device.spool import Image
from gitops_ctl.device.worker import leafstatus
from gitops_ctl.device.worker.beside import GateClosed, OutOfTime, answering, while_allowed
from gitops_ctl.device.worker.claims import Denial, claim, claim_commit, commit_denial, denial, early_denial
from gitops_ctl.device.worker.deadlines import (
    activation_deadline,
    install_deadline,
    install_s,
    is_over,
    rollback_deadline,
)
from gitops_ctl.device.worker.decision import NO_REBOOT
from gitops_ctl.device.worker.leafwork import AGAIN, Work
from gitops_ctl.device.worker.looking import gnoi_of, netconf_of
from gitops_ctl.device.worker.progress import ProgressTeller
from gitops_ctl.device.worker.settling import give_up
from gitops_ctl.device.worker.starting import pacer_of, wanted_image
from gitops_ctl.fleet.leaf import ACTIVATIONS, Leaf
from gitops_ctl.fleet.receipt import matches_target

INSTALLS: Final = {"PrimaryInstall": "primarySupervisorInstalled", "StandbyInstall": "standbySupervisorInstalled"}


async def send(work: Work, stage: str) -> float:
    """Claim the stage and send its request, when everything for it holds."""
    if late := _too_late(work, stage):
        return await give_up(work, *late)
    if (found := await early_denial(work, stage)) is not None:
        return await _denied(work, found)
    try:
        await (_install(work, stage) if stage in INSTALLS else _activate(work, stage))
    except _NotSent as error:
        return await _denied(work, error.denial)
    except GateClosed:
        pass
    return AGAIN


async def _denied(work: Work, found: Denial) -> float:
    if found.is_final:
        return await give_up(work, found.reason, found.message)
    if found.begins_again:
        work.leaf = await work.desk.write(work.leaf, {"previousVersion": None})
        return AGAIN
    return await _told(work, found.reason, found.message)


class _NotSent(Exception):
    """Something for the claim is missing, or there is no session or no image: nothing was claimed."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(denial.message)
        self.denial = denial


async def _require(work: Work, stage: str) -> None:
    """Everything that has to hold directly before the claim; it takes the turn of the device for its looks.

    Raises:
        _NotSent: something does not.
    """
    if late := _too_late(work, stage):
        raise _NotSent(Denial(*late, is_final=True))
    if (found := await denial(work, stage)) is not None:
        raise _NotSent(found)


async def _require_version(work: Work, session: SoftwareSession, stage: str) -> None:
    """That the device runs what it ran when that was judged, else _NotSent."""
    member = "runningVersion" if stage == "RollbackActivation" else "previousVersion"
    expected, seen = text_at(work.leaf.status, member), await session.verify()
    if seen.version != expected:
        raise _NotSent(Denial("DeviceNotQuiescent", f"the device runs {seen.version}, not {expected}"))


def _too_late(work: Work, stage: str) -> tuple[str, str] | None:
    """Why a further claim comes after the deadline that it shares with those before it."""
    if stage in INSTALLS and is_over(install_deadline(work.leaf), work.now):
        return "InstallTimeout", "the time for all installs is over"
    if stage == "RollbackActivation":
        is_late = is_over(rollback_deadline(work.leaf), work.now)
        return ("RollbackTimeout", "the time for the way back is over") if is_late else None
    if stage in ACTIVATIONS and is_over(activation_deadline(work.leaf), work.now):
        return "ActivationTimeout", "the time for all activations is over"
    return None


async def _told(work: Work, reason: str, message: str) -> float:
    work.leaf = await work.desk.write(work.leaf, leafstatus.told(work.leaf, reason, message, now=work.now))
    return work.ports.poll_s


async def _install(work: Work, stage: str) -> None:
    claimed = False
    try:
        async with AsyncExitStack() as stack:
            image = await _image(work, stack)
            session = await stack.enter_async_context(gnoi_of(work.ports, work.access))
            await _require(work, stage)
            await _require_version(work, session, stage)
            claimed = True
            work.leaf = await claim(work, stage)
            outcome = await _streamed(work, session, image, stage)
    except Conflict:
        raise
    except GitopsError as error:
        if claimed:
            raise
        raise _NotSent(Denial(error.reason, error.message)) from error
    await work.answered(lambda fresh: _installed(work, fresh, stage, outcome))


async def _image(work: Work, stack: AsyncExitStack) -> Image:
    """The image that was pinned, read once more from the spool, or fetched once more where it went from there.

    Raises:
        _NotSent: it takes longer than an install may take, or than is left for all of them.
        GateClosed, GitopsError: as of `while_allowed` and of the spool.
    """
    deadline = install_deadline(work.leaf)
    seconds = install_s(work.leaf) if deadline is None else (deadline - work.now).total_seconds()
    opened = work.ports.spool.image(wanted_image(work.leaf), work.access.opening, pacer=pacer_of(work))
    try:
        return await while_allowed(work, stack.enter_async_context(opened), seconds=seconds)
    except OutOfTime as error:
        why = f"the image was not read from the spool, or fetched once more, within {seconds:.0f} s"
        raise _NotSent(Denial("InstallTimeout", why)) from error


async def _streamed(work: Work, session: SoftwareSession, image: Image, stage: str) -> Outcome:
    """The install, with its progress told beside it; a stream that breaks in our own code is torn as well."""
    leaf = work.leaf
    wanted = wanted_image(leaf)
    order = InstallOrder(leaf.target_version, image.size, wanted.sha256, standby=stage == "StandbyInstall")
    deadline = install_deadline(leaf)
    left_s = (deadline - work.now).total_seconds() if deadline is not None else float(install_s(leaf))
    teller = ProgressTeller(work.desk, leaf, total=image.size, clock=work.ports.clock)
    terms = InstallTerms(work.ports.clock.boot_s() + left_s, pacer_of(work), teller.tell)
    beside = (asyncio.create_task(teller.run()), asyncio.create_task(answering(work)))
    try:
        return await session.install(order, image, terms=terms)
    except GitopsError as error:
        return Unknown(error.message)
    finally:
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _installed(work: Work, leaf: Leaf, stage: str, outcome: Outcome) -> JsonObject:
    now = work.now
    match outcome:
        case Accepted(version, sent) if matches_target(version, leaf.target_version):
            validated = Condition("Validated", "True", "Validated", f"the device made {version} available")
            facts = [*_transferred(leaf, stage, version, sent), validated]
            flags: dict[str, JsonValue] = {INSTALLS[stage]: True, "validatedVersion": version, "phase": "Validating"}
            return flags | _progress(sent, sent) | leafstatus.conditions(leaf, *facts, now=now)
        case Accepted(version, _):
            message = f"the image holds {version}, the plan says {leaf.target_version}"
            return leafstatus.ended(leaf, "ValidationFailed", now=now, reason="WrongVersion", message=message)
        case Refused(kind, message, _):
            return leafstatus.ended(leaf, "Failed", now=now, reason=_reason("Install", kind), message=message)
        case Unknown(message, sent, completed):
            size = leaf.status.get("sourceSize")
            known = sent if not completed or not isinstance(size, int) else size
            return {"phase": "TransferInterrupted", "message": message, **_progress(known, size)}


def _transferred(leaf: Leaf, stage: str, version: str, sent: int) -> list[Condition]:
    """Whether what the device made available is known to be the image of the plan; the copy on a second supervisor is what the first one is."""
    stored = condition_of(leaf.status, "Transferred")
    if stage == "StandbyInstall" and stored is not None and not (sent and is_true(leaf.status, "Transferred")):
        return []
    if sent:
        return [Condition("Transferred", "True", "Transferred", f"{sent} bytes were sent")]
    why = f"the device had {version} before; no byte was sent, and what it has is not compared with the digest of the plan"
    return [Condition("Transferred", "False", leafstatus.PRESENT_BEFORE, why)]


def _progress(sent: int, total: object) -> dict[str, JsonValue]:
    if not sent or not isinstance(total, int):
        return {}
    return {
        "transferProgress": {"bytesTransferred": sent, "totalBytes": total, "percent": min(100, sent * 100 // total)}
    }


async def _activate(work: Work, stage: str) -> None:
    claimed = False
    version = text_at(work.leaf.status, "previousVersion" if stage == "RollbackActivation" else "validatedVersion")
    if stage != "RollbackActivation" and not matches_target(version, work.leaf.target_version):
        message = f"the device validated {version or 'no version'}, the plan says {work.leaf.target_version}"
        raise _NotSent(Denial("ValidatedVersionMismatch", message, is_final=True))
    no_reboot = work.leaf.strategy == NO_REBOOT and stage != "RollbackActivation"
    try:
        async with gnoi_of(work.ports, work.access) as session:
            await _require(work, stage)
            async with work.access.turn:
                await _require_version(work, session, stage)
                claimed = True
                work.leaf = await claim(work, stage)
                try:
                    outcome = await session.activate(version, standby=stage == "StandbyActivation", no_reboot=no_reboot)
                except GitopsError as error:
                    outcome = Unknown(error.message)
    except Conflict:
        raise
    except GitopsError as error:
        if claimed:
            raise
        raise _NotSent(Denial(error.reason, error.message)) from error
    await work.answered(lambda fresh: _activated(work, fresh, stage, outcome))


def _activated(work: Work, leaf: Leaf, stage: str, outcome: Outcome) -> JsonObject:
    now = work.now
    phase: JsonValue = "RollingBack" if stage == "RollbackActivation" else "AwaitingReachability"
    match outcome:
        case Accepted():
            said = Condition("Activated", "True", "ActivationRecorded", "the device accepted the activation")
            is_quiet = leaf.strategy == NO_REBOOT and stage == "PrimaryActivation"
            flags: dict[str, JsonValue] = {"noRebootActivationAccepted": True} if is_quiet else {}
            return {"phase": phase, **flags} | leafstatus.conditions(leaf, said, now=now)
        case Refused(kind, message, _):
            return leafstatus.ended(leaf, "Failed", now=now, reason=_reason("Activation", kind), message=message)
        case Unknown(message, _, _):
            said = Condition("Activated", "Unknown", "ActivationRecorded", message)
            return {"phase": phase} | leafstatus.conditions(leaf, said, now=now)


async def commit(work: Work) -> float:
    """Have the device keep what runs: the marker first, then the one request; the next look tells what became of it."""
    marked = False
    if (found := await commit_denial(work)) is not None:
        return await _told(work, found.reason, found.message)
    try:
        async with work.access.turn, netconf_of(work.ports, work.access) as session:
            sight = commit_need(await install_state(session), version=_kept_version(work.leaf))
            if sight.need is not CommitNeed.NEEDED:
                return await _told(work, "CommitNotNeededNow", sight.message)
            marked = True
            work.leaf = await claim_commit(work)
            await send_commit(session, operation_id=work.ports.new_id())
    except Conflict:
        raise
    except GitopsError as error:
        if marked:
            raise
        return await _told(work, error.reason, error.message)
    return AGAIN


def _kept_version(leaf: Leaf) -> str:
    """The version that a commit is to keep."""
    is_back = leaf.claim("RollbackActivation") is not None
    return text_at(leaf.status, "previousVersion") if is_back else leaf.target_version


def _reason(what: str, kind: str) -> str:
    """`InstallRefused`, with the word of the device in the message; a call that the device does not have is a reason of its own."""
    if kind == UNIMPLEMENTED:
        return f"{what}Unsupported"
    return f"{what}Refused" if kind else f"{what}Failed"

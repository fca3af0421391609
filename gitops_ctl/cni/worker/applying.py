"""Applies one mode to one machine: read, compute, compare, try, claim, apply once, read back (cni-switch.md, section 7).

The executor judged two hashes; the machine is touched only when reading and computing again gives exactly these.  A reply that is lost is
answered by reading back, never by a second apply: the configuration is as wanted, or as before once the time of an apply is over, or it is
not known.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from gitops_ctl.cni.model import Request, Result
from gitops_ctl.cni.worker.desk import Claim, Outcome, Unfit, refused
from gitops_ctl.cni.worker.machine import Configuration, Look, MachineLink, read_configuration
from gitops_ctl.cni.worker.wanted import Question, contract_for, wanted_of
from gitops_ctl.cni.worker.watch import MachineWatch
from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import GitopsError, TransientError
from gitops_ctl.talos.errors import ApplyRefused
from gitops_ctl.talos.machineconfig import config_hash
from gitops_ctl.talos.pending import redacted_diff

POLL_S: Final = 2.0


class Found(enum.Enum):
    """What both configurations of the machine are now."""

    WANTED = "as wanted"
    BEFORE = "as before"
    OTHER = "neither as before nor as wanted"
    UNREAD = "not known: it does not answer"


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of the apply: `accepted`, or refused for good with `errors`; neither when nobody knows."""

    accepted: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class MachineAway(Exception):
    """The machine could not be talked to before the claim: nothing was done, and what stands in `error` clears by itself."""

    def __init__(self, error: TransientError) -> None:
        super().__init__(error.message)
        self.error = error


async def apply_mode(
    request: Request,
    watch: MachineWatch,
    *,
    question: Question,
    looks: Iterable[Look],
    claim: Callable[[], Awaitable[Claim]],
    settle: Callable[[Sent], Awaitable[Outcome]],
) -> Outcome:
    """Carry the request out; whoever calls holds the machine's turn.

    Args:
        looks: the newest looks at the machines of the cluster; they say which form of the configuration it uses.
        claim: writes the claim; only after it the machine is changed.
        settle: reads back.

    Raises:
        MachineAway: before the claim.
        Withdrawn: the claim was lost to a withdrawal; nothing was done.
    """
    try:
        link = watch.link()
        async with link as machine:
            wanted, difference = await _prepared(request, watch, machine=machine, question=question, looks=looks)
            if config_hash(wanted) == request.hash_before:
                return Outcome(Result.DONE, "nothing to apply: the machine is as wanted", request.hash_wanted)
            tried = await machine.apply_configuration(wanted, dry_run=True)
    except TransientError as error:
        raise MachineAway(error) from error
    except GitopsError as error:
        return refused(error)
    claimed = await claim()
    try:
        claimed.require_fresh()
    except Unfit as error:
        return refused(error)
    sent = await _send(watch, wanted)
    outcome = await settle(Sent(sent.accepted, sent.errors, (*tried.warnings, *sent.warnings)))
    watch.rounds.ask()
    if outcome.result is not Result.DONE:
        return outcome
    return replace(outcome, message=f"{outcome.message}: {difference}")


async def _prepared(
    request: Request, watch: MachineWatch, *, machine: MachineLink, question: Question, looks: Iterable[Look]
) -> tuple[bytes, str]:
    """The configuration to apply and what it changes, for people, when everything is as the executor judged it.

    Raises:
        GitopsError: it is not.
    """
    identity = await machine.require_identity()
    configuration = await read_configuration(machine, base=watch.base())
    if not configuration.is_settled:
        raise Unfit(
            "StagedConfigPending", "active and saved configuration differ: somebody else staged or tries a change"
        )
    _require_hash("the machine has", configuration.hash_active, request.hash_before)
    spec = watch.spec
    others = [look for look in looks if look.spec.name != spec.name]
    own = Look(spec, 0.0, identity=identity, configuration=configuration)
    contract = contract_for(question, [*others, own])
    wanted = wanted_of(configuration, spec, question=question, contract=contract)
    _require_hash("the wanted configuration is", config_hash(wanted), request.hash_wanted)
    return wanted, "; ".join(redacted_diff(configuration.active, wanted).splitlines())


def _require_hash(what: str, found: str, judged: str) -> None:
    if found != judged:
        raise Unfit("HashChanged", f"{what} {found[:19]}, and {judged[:19]} was judged")


async def _send(watch: MachineWatch, wanted: bytes) -> Sent:
    """The one call that changes the machine, over a connection of its own."""
    try:
        async with watch.link() as machine:
            result = await machine.apply_configuration(wanted, dry_run=False)
    except ApplyRefused as error:
        return Sent(errors=error.errors)
    except GitopsError:
        return Sent()
    return Sent(accepted=True, warnings=result.warnings)


async def read_back(request: Request, watch: MachineWatch, *, sent: Sent, clock: Clock, settle_s: float) -> Outcome:
    """How the apply ended, from what the machine has; never raises for what the machine does.

    An apply without a reply may go on in the machine, so "as before" counts only when its time is over.
    """
    end_s = clock.boot_s() + settle_s
    while True:
        found = await _found(request, watch)
        if found is Found.WANTED:
            message = (
                "applied without a reboot" if sent.accepted else "applied; its reply was lost, the machine was read"
            )
            return Outcome(Result.DONE, message, request.hash_wanted, sent.warnings)
        if found is Found.BEFORE and sent.errors:
            return Outcome(Result.REFUSED, f"ApplyRefused: {'; '.join(sent.errors)}", warnings=sent.warnings)
        if clock.boot_s() >= end_s:
            return _given_up(found, sent)
        await clock.sleep(POLL_S)


def _given_up(found: Found, sent: Sent) -> Outcome:
    if found is Found.BEFORE and not sent.accepted:
        return Outcome(
            Result.REFUSED, "NotApplied: no reply came, and the machine is as before", warnings=sent.warnings
        )
    said = "was accepted" if sent.accepted else "has no known end"
    return Outcome(Result.UNKNOWN, f"the apply {said}, and the machine is {found.value}", warnings=sent.warnings)


async def _found(request: Request, watch: MachineWatch) -> Found:
    try:
        async with watch.link() as machine:
            await machine.require_identity()
            configuration = await read_configuration(machine, base=None)
    except GitopsError:
        return Found.UNREAD
    return _compared(configuration, request)


def _compared(configuration: Configuration, request: Request) -> Found:
    hashes = {configuration.hash_active, configuration.hash_persistent}
    if hashes == {request.hash_wanted}:
        return Found.WANTED
    return Found.BEFORE if hashes == {request.hash_before} else Found.OTHER

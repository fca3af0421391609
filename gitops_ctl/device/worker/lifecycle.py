"""One leaf after the other on its device, one step after the other in its leaf (rollouts.md, section 13).

`step` is called whenever something may have changed.  Each round reads the leaf, passes the gate and does the one thing that is next,
until there is nothing to do but wait.  Two leaves of one device never work at the same time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gitops_ctl.core.errors import Conflict
from gitops_ctl.device.journal import JournalUnavailable
from gitops_ctl.device.journalrecords import Claim, ClaimKey
from gitops_ctl.device.worker import leafstatus, preparing, sending, settling, starting
from gitops_ctl.device.worker.claims import forgotten, forgotten_commit, is_given_up, is_unsent
from gitops_ctl.device.worker.deadlines import activation_deadline, is_over
from gitops_ctl.device.worker.decision import Next, Step, next_step
from gitops_ctl.device.worker.gatepass import pass_gate
from gitops_ctl.device.worker.leafports import Accesses, LeafPorts
from gitops_ctl.device.worker.leafqueue import is_first
from gitops_ctl.device.worker.leafstatus import INSTALL_COMMIT, MARKERS, key_of, last_stage
from gitops_ctl.device.worker.leafwork import AGAIN, Work
from gitops_ctl.device.worker.leafwriting import Facts, LeafDesk
from gitops_ctl.device.worker.observing import Commit, RollBack
from gitops_ctl.fleet.leaf import Leaf

_ROUNDS: Final = 64
"""Of one call; a leaf needs less than twenty."""


class Lifecycle:
    """All leaves of one worker process."""

    def __init__(self, ports: LeafPorts) -> None:
        self._ports = ports
        self._desk = LeafDesk(ports.client)
        self._answers: dict[str, Facts] = {}
        self._sights: dict[str, tuple[object, float]] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def step(self, accesses: Accesses, *, namespace: str, name: str) -> float | None:
        """Bring the leaf as far as it goes now.

        Returns:
            Seconds until the next look at the latest; None: when leaf, device or Secrets change.

        Raises:
            TransientError, Conflict: try again; nothing is forgotten.
        """
        for _ in range(_ROUNDS):
            try:
                wait_s = await self._round(accesses, namespace, name)
            except Conflict:
                continue
            if wait_s is None or wait_s > AGAIN:
                return wait_s
        return self._ports.poll_s

    async def _round(self, accesses: Accesses, namespace: str, name: str) -> float | None:
        leaf = await self._desk.leaf(namespace, name)
        if leaf is None:
            return None
        access = await accesses(leaf)
        passed = await pass_gate(self._ports, self._desk, access, leaf)
        work = Work(
            *(self._ports, self._desk, access, passed.leaf, passed.device, passed.node, passed.gate),
            *(self._answers, self._sights),
        )
        if not passed.is_ours:
            return await self._left_alone(work)
        turn = self._turns.setdefault(f"{namespace}/{leaf.device_name}", asyncio.Lock())
        if turn.locked() or not await is_first(work):
            return self._ports.poll_s
        async with turn:
            return await self._worked(work)

    async def _left_alone(self, work: Work) -> float:
        """A leaf that is not, or not any more, this worker's; what two persons or its outcome settled is history all the same."""
        leaf = work.leaf
        if leaf.is_outcome_resolved or leaf.recovery is not None:
            await _settle_journal(self._ports, leaf)
        if leaf.is_outcome_resolved or is_given_up(work):
            await work.access.maintenance.let_go(leaf)
        return self._ports.poll_s

    async def _worked(self, work: Work) -> float | None:
        try:
            return await self._acted(work)
        except JournalUnavailable as error:
            told = leafstatus.told(work.leaf, error.reason, error.message, now=work.now)
            await self._desk.record(work.leaf, lambda _: told)
            return self._ports.poll_s

    async def _acted(self, work: Work) -> float | None:
        if (facts := self._answers.get(work.leaf.uid)) is not None:
            await work.answered(facts)
            return AGAIN
        if members := _restored(work):
            work.leaf = await self._desk.write(work.leaf, members)
            return AGAIN
        stage = last_stage(work.leaf)
        unsent = bool(stage) and not work.leaf.is_terminal and is_unsent(work, work.leaf, stage)
        return await _carried_out(work, next_step(work.leaf, work.gate, unsent=unsent))


async def _carried_out(work: Work, what: Next) -> float | None:
    if what.step in _PLAIN:
        return await _PLAIN[what.step](work)
    match what.step:
        case Step.WAIT:
            return work.ports.poll_s
        case Step.CLAIM:
            return await sending.send(work, what.stage)
        case Step.SETTLE_INSTALL:
            return await settling.settle_install(work, what.stage)
        case Step.GIVE_UP:
            return await settling.give_up(work, what.reason)
    await _done(work)
    return None


async def _settle_activation(work: Work) -> float:
    """Look at what was sent; commit it, or claim the way back, where that follows."""
    wait_s, judgement = await settling.settle_activation(work)
    if isinstance(judgement, Commit):
        return await sending.commit(work)
    if not isinstance(judgement, RollBack):
        return wait_s
    if work.gate.may_claim:
        return await sending.send(work, "RollbackActivation")
    admission = work.leaf.admission
    if admission is not None and admission.state == "Revoked":
        return await settling.give_up(work, admission.revocation_reason, judgement.message)
    held = work.gate.message or "the campaign is paused or cancelled"
    if work.gate.message and is_over(activation_deadline(work.leaf), work.now):
        # Another worker, or another configuration of it, may never be able to claim the way back for this leaf.
        return await settling.give_up(work, "WrongVersion", f"{judgement.message}; {held}")
    return await settling.waiting(work, "RollbackHeld", f"{judgement.message}; no way back is claimed: {held}")


async def _settle_rollback(work: Work) -> float:
    wait_s, judgement = await settling.settle_rollback(work)
    return await sending.commit(work) if isinstance(judgement, Commit) else wait_s


async def _let_go(work: Work) -> float | None:
    """Give the maintenance back; while the journal is lost, an absent claim proves nothing and the device stays guarded."""
    if not is_given_up(work):
        return work.ports.poll_s
    await work.access.maintenance.let_go(work.leaf)
    return None


_PLAIN: Final[dict[Step, Callable[[Work], Awaitable[float | None]]]] = {
    Step.BEGIN: starting.begin,
    Step.CHECK: starting.check,
    Step.PIN: starting.pin,
    Step.SETTLE_STANDBY: settling.settle_standby,
    Step.SETTLE_ACTIVATION: _settle_activation,
    Step.SETTLE_ROLLBACK: _settle_rollback,
    Step.PREPARED: preparing.finish,
    Step.INVALIDATE: preparing.invalidate,
    Step.BY_HAND: settling.by_hand,
    Step.LOOK_ON: settling.look_on,
    Step.LET_GO: _let_go,
}


def _restored(work: Work) -> leafstatus.Members:
    """What the journal knows and the leaf does not, to be written before anything else is done."""
    found: tuple[Claim, ...] = forgotten(work, work.leaf)
    members = leafstatus.with_claims(work.leaf, found) if found else {}
    commit = forgotten_commit(work, work.leaf)
    if commit is not None:
        members["installCommit"] = {"state": "Requested", "requestedAt": commit.claimed_at}
    return members


async def _done(work: Work) -> None:
    """The outcome is known for good: the claims are history, and the device may be changed by others."""
    work.sights.pop(work.leaf.uid, None)
    await _settle_journal(work.ports, work.leaf)
    await work.access.maintenance.let_go(work.leaf)


async def _settle_journal(ports: LeafPorts, leaf: Leaf) -> None:
    open_claims = {one.key for one in ports.journal.open_claims(leaf.binding.device_uid)}
    for key in _keys(leaf):
        if key in open_claims:
            await asyncio.to_thread(ports.journal.settle, key)


def _keys(leaf: Leaf) -> list[ClaimKey]:
    stages = [*(stage for stage in MARKERS if leaf.claim(stage) is not None)]
    return [key_of(leaf, stage) for stage in (*stages, *([INSTALL_COMMIT] if leaf.install_commit is not None else []))]

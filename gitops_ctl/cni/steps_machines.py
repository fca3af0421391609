"""Machine by machine: control planes one at a time, then workers (cni-switch.md, section 7).

At most one machine is between its request and its passed gates.  Where a cluster allows more, its workers go in waves: the gates of a
wave are looked at when all of it is applied, and the next one begins when all have passed, so that one clock for a check is the same
for each machine.  A machine is asked for with exactly the hashes that were judged; the worker refuses when it finds others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gitops_ctl.cni.model import Action, Machine, MachineSeen, Mode, Observed, Progress, Receipt, Request, Result, Row
from gitops_ctl.cni.preflight import trouble_of, unreachable
from gitops_ctl.cni.steps import MINUTE_S, Limit, Outcome, View, asked, passed, pauses, waits, worker_limit
from gitops_ctl.cni.steps_cni import agents_wait
from gitops_ctl.core.conditions import listed

GATES = {"api": 2, "services": 5, "node": 5}
"""Minutes for each check on every machine (section 7.6)."""

CONTROL_PLANE_GATES = {"proxy": 2, "manifest": 2, "static-pods": 5}
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{1,62}")
_IN_FLIGHT = frozenset({Progress.APPLYING, Progress.PREPARING, Progress.VERIFYING})


@dataclass
class _Pass:
    """What one pass makes of the machines."""

    rows: dict[str, Row]
    asks: list[Request] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)
    message: str = ""
    look: bool = False
    stop: Outcome | None = None

    def outcome(self) -> Outcome:
        rows, asks = tuple(self.rows.values()), tuple(self.asks)
        if self.stop is not None:
            return replace(self.stop, rows=rows, asks=asks)
        if all(row.state in (Progress.DONE, Progress.ON_HOLD) for row in rows):
            return replace(passed(), rows=rows)
        return replace(waits(self.message, *self.limits), rows=rows, asks=asks, look=self.look)


def switch_machines(view: View, seen: Observed) -> Outcome:
    """One step forward for the machines; through when every one that is not on hold is done."""
    work = _Pass({row.name: row for row in _rows(view)})
    if (absent := absent_machines(view)) is not None:
        return replace(absent, rows=tuple(work.rows.values()))
    for request in view.state.requests:
        if request.action is Action.APPLY and request.machine in work.rows:
            _settle(view, work, request)
    if work.stop is None and not work.look and not work.asks:
        for machine in view.machines:
            _verify(view, work, machine, seen.machines.get(machine.name))
    if work.stop is None and not work.look:
        for machine in view.machines:
            _begin(view, work, machine, seen)
    return work.outcome()


def absent_machines(view: View) -> Outcome | None:
    """A pause when nothing says any more that kube-proxy stays away; None when every machine that matters is declared.

    A control plane that was taken out of the cluster, or a machine that was being switched, may still render kube-proxy.  The pass
    that tells of it drops it from the machines, so that a resume goes on without it.
    """
    if not any(machine.is_control_plane for machine in view.machines):
        return pauses("NoControlPlane", "no TalosMachine of this cluster is a control plane any more")
    there = {machine.name for machine in view.machines}
    gone = [row.name for row in view.state.rows if row.name not in there and _matters(row)]
    if not gone:
        return None
    what = "its TalosMachine is" if len(gone) == 1 else "their TalosMachines are"
    return pauses(
        "MachineGone",
        f"{listed(gone)}: {what} not there any more, and the switch was not done there; look at what that node runs: "
        "a resume goes on without it",
    )


def _matters(row: Row) -> bool:
    return row.state is not Progress.DONE and (row.role == "controlplane" or row.state in _IN_FLIGHT)


def resumed(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The machines when a person lets a paused operation go on: what failed begins anew."""
    again = (Progress.FAILED, Progress.PREPARING)
    return tuple(replace(row, state=Progress.PENDING, message="") if row.state in again else row for row in rows)


def _rows(view: View) -> Iterator[Row]:
    known = {row.name: row for row in view.state.rows}
    standing = {request.machine for request in view.state.requests if request.action is Action.APPLY}
    for machine in view.machines:
        row = known.get(machine.name) or Row(machine.name, machine.role)
        if row.state is Progress.APPLYING and row.name not in standing:
            row = replace(row, state=Progress.PENDING, message="")  # it was taken back before anybody claimed it
        if machine.held and row.state is Progress.PENDING:
            row = replace(row, state=Progress.ON_HOLD, message="on hold")
        elif not machine.held and row.state is Progress.ON_HOLD:
            row = replace(row, state=Progress.PENDING, message="")
        yield row


def _settle(view: View, work: _Pass, request: Request) -> None:
    """A request that stands: wait for its receipt, or take it in."""
    row, receipt = work.rows[request.machine], view.operation.receipts.get(request.id)
    if receipt is None:
        work.asks.append(request)
        work.message = f"the cluster worker switches {request.machine}"
        work.limits.append(worker_limit(f"{request.id} has no receipt"))
        return
    work.look = True
    match receipt.result:
        case Result.DONE:
            applied = receipt.hash_applied or request.hash_wanted
            work.rows[row.name] = replace(
                row, state=Progress.VERIFYING, hash_applied=applied, applied_at=receipt.at, message=""
            )
            work.message = f"{row.name} is looked at before the next machine"
        case Result.REFUSED if request.id in view.operation.claims and row.state is Progress.APPLYING:
            work.rows[row.name] = replace(row, state=Progress.PREPARING, message=receipt.message)
            work.message = f"{row.name} is asked once more: the first attempt changed nothing"
        case _:
            _fail(work, row, *_reason(receipt))


def _reason(receipt: Receipt) -> tuple[str, str]:
    word, colon, _ = receipt.message.partition(": ")
    if receipt.result is Result.UNKNOWN:
        return "ApplyUnknown", receipt.message or "the reply was lost and reading back does not settle it"
    return (word if colon and _REASON.fullmatch(word) else "ApplyRefused"), receipt.message or "the worker refused"


def _verify(view: View, work: _Pass, machine: Machine, seen: MachineSeen | None) -> None:
    """The gates of a machine that was switched, and whether a machine that is done still is."""
    row = work.rows[machine.name]
    if row.state is Progress.DONE:
        if _is_undone(view, seen) and not machine.held:
            _fail(work, row, "ConfigChangedByOthers", f"{row.name}: its kube-proxy part was changed after the switch")
        return
    if row.state is not Progress.VERIFYING:
        return
    if seen is not None and seen.reachable and seen.hash_active and not _is_as_applied(row, seen):
        _fail(work, row, "ConfigChangedByOthers", f"{row.name}: its configuration is not the one that was applied")
        return
    failing = list(_failing(machine, seen))
    if not failing:
        work.rows[row.name] = replace(row, state=Progress.DONE, message="")
        return
    work.message = f"waits for {row.name} before the next machine"
    for name, minutes, message in failing:
        text = f"{row.name}: {name}: {message or 'not passed'}"
        work.limits.append(Limit(f"gate/{name}", minutes * MINUTE_S, "GateFailed", text))


def _failing(machine: Machine, seen: MachineSeen | None) -> Iterator[tuple[str, int, str]]:
    wanted = {**GATES, **(CONTROL_PLANE_GATES if machine.is_control_plane else {})}
    gates = {gate.name: gate for gate in seen.gates} if seen is not None and seen.reachable else {}
    for name, minutes in wanted.items():
        gate = gates.get(name)
        if gate is None or not gate.passed:
            yield name, minutes, gate.message if gate is not None else ""


def _is_as_applied(row: Row, seen: MachineSeen) -> bool:
    return seen.hash_active == seen.hash_persistent == (row.hash_applied or row.hash_wanted)


def _is_undone(view: View, seen: MachineSeen | None) -> bool:
    return (
        seen is not None
        and seen.reachable
        and bool(seen.hash_wanted)
        and seen.hash_wanted != seen.hash_active
        and seen.proxy != view.target.proxy_word
    )


def _begin(view: View, work: _Pass, machine: Machine, seen: Observed) -> None:
    """Ask for the next machine, when its turn has come."""
    row = work.rows[machine.name]
    waiting = row.state is Progress.PENDING or (row.state is Progress.PREPARING and not _stands(work, row))
    if work.stop is not None or not waiting or not _has_turn(view, work, machine):
        return
    if view.target is Mode.REPLACED and (agents := agents_wait(view, seen)) is not None:
        work.message = agents.said.message
        work.limits += agents.limits
        return
    found = seen.machines.get(machine.name)
    if found is None or not found.reachable:
        problem = found.problem if found is not None and found.problem else unreachable(machine)
        work.message = problem.message
        work.limits.append(Limit("gate/api", GATES["api"] * MINUTE_S, problem.reason, problem.message))
        return
    if (trouble := trouble_of(machine, found)) is not None:
        _fail(work, row, trouble.reason, trouble.message)
        return
    _ask(view, work, row, found)


def _ask(view: View, work: _Pass, row: Row, found: MachineSeen) -> None:
    hashes = (found.hash_active, found.hash_wanted)
    work.begun.add(row.name)
    fresh = replace(row, hash_before=hashes[0], hash_wanted=hashes[1], message="")
    work.message = f"the cluster worker switches {row.name}"
    if hashes[0] == hashes[1]:
        work.rows[row.name] = replace(fresh, state=Progress.VERIFYING, message="nothing to apply")
        work.look = True
        return
    state = Progress.PREPARING if row.state is Progress.PREPARING else Progress.APPLYING
    work.rows[row.name] = replace(fresh, state=state)
    request = asked(view, Action.APPLY, machine=row.name, hashes=hashes, ahead=len(work.asks))
    work.asks.append(request)
    work.limits.append(worker_limit(f"{request.id} has no receipt"))


def _has_turn(view: View, work: _Pass, machine: Machine) -> bool:
    """Control planes alone and in order; workers after all of them, as many at a time as the cluster allows."""
    busy = [row for row in work.rows.values() if row.state in _IN_FLIGHT and row.name != machine.name]
    if machine.is_control_plane:
        return not busy
    finished = (Progress.DONE, Progress.ON_HOLD)
    planes = [row for row in work.rows.values() if row.role == "controlplane"]
    is_one_wave = all(row.name in work.begun for row in busy)
    return all(row.state in finished for row in planes) and is_one_wave and len(busy) < view.cluster.parallel


def _stands(work: _Pass, row: Row) -> bool:
    return any(request.machine == row.name for request in work.asks)


def _fail(work: _Pass, row: Row, reason: str, message: str) -> None:
    work.rows[row.name] = replace(row, state=Progress.FAILED, message=message)
    work.stop = work.stop or pauses(reason, message)

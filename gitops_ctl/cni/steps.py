"""What a step of a switch answers, and the questions that it stands on (cni-switch.md, sections 2.1, 6.2, 6.3 and 6.5).

A step is a pure function of the view and a fresh look at the cluster.  Fresh means that the look was asked for in this step, after the
last receipt and after the last resume; the request `observe` that stands says for which one.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.cni.messages import Place
from gitops_ctl.cni.model import (
    Action,
    Authority,
    Clock,
    Cluster,
    Machine,
    Mode,
    Observed,
    Operation,
    Request,
    Row,
    Said,
    State,
    number_of,
)

MINUTE_S: Final = 60.0
AWAIT_S: Final = 24 * 3600.0
VERIFY_S: Final = 30 * MINUTE_S
WORKER_S: Final = 10 * MINUTE_S
"""How long a request may stay without an answer, and how often a long wait asks whether somebody is there (section 2.1)."""

WORKER_CLOCK: Final = "worker"
REQUEST_CLOCK: Final = "request"
_NOTHING: Final = Said("", "")
SOMEWHERE: Final = Place("the Cilium values")


class Verdict(enum.Enum):
    """What a step says."""

    PASS = enum.auto()
    BACK = enum.auto()
    """To the step before: it is not through any more."""
    WAIT = enum.auto()
    PAUSE = enum.auto()
    FINISH = enum.auto()


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a step may wait for one thing, and what is said when that is over."""

    name: str
    seconds: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a step.

    Attributes:
        asks: requests that stand from now on beside the look; a claimed one that is not named here stays all the same.
        look: a fresh look is needed before anything else is decided.
        rows: the machines as they are now; None: unchanged.
        noted: a remark for the end.
        set_mode: the mode of the cluster's status must be the target's before this outcome counts.
    """

    verdict: Verdict
    said: Said = _NOTHING
    asks: tuple[Request, ...] = ()
    look: bool = False
    limits: tuple[Limit, ...] = ()
    rows: tuple[Row, ...] | None = None
    noted: str = ""
    set_mode: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a step looks at.

    Attributes:
        machines: those of the cluster, control planes first, each part by name.
        place: where the values of Cilium are changed.
    """

    cluster: Cluster
    machines: tuple[Machine, ...]
    operation: Operation
    authority: Authority
    now: datetime
    place: Place = SOMEWHERE

    @property
    def state(self) -> State:
        return self.operation.state

    @property
    def target(self) -> Mode:
        return self.operation.target

    def is_claimed(self, request: Request) -> bool:
        """Whether the worker may have acted on a request whose outcome is not known yet."""
        return request.id in self.operation.claims and request.id not in self.operation.receipts


def passed(noted: str = "") -> Outcome:
    """The step is through."""
    return Outcome(Verdict.PASS, noted=noted)


def waits(message: str, *limits: Limit, reason: str = "") -> Outcome:
    """The step goes on when something changes, or ends with the first limit that is over."""
    return Outcome(Verdict.WAIT, Said(reason, message), limits=limits)


def pauses(reason: str, message: str) -> Outcome:
    """The operation stops here until a person says how it goes on."""
    return Outcome(Verdict.PAUSE, Said(reason, message))


def asked(
    view: View, action: Action, *, machine: str = "", hashes: tuple[str, str] = ("", ""), ahead: int = 0
) -> Request:
    """A request with a number that no other one of this operation ever had; `ahead` are others made in the same pass."""
    subject = machine or view.cluster.key.name
    identity = f"{view.state.step}/{subject}#{next_number(view.operation) + ahead}"
    return Request(identity, action, view.target, machine, hashes[0], hashes[1])


def next_number(operation: Operation) -> int:
    """One more than every number that stands in the operation's status."""
    identities = [request.id for request in operation.state.requests]
    identities += [*operation.claims, *operation.receipts]
    if operation.observed is not None:
        identities.append(operation.observed.request)
        if operation.observed.service is not None:
            identities.append(operation.observed.service.request)
    return max(map(number_of, identities), default=0) + 1


def fresh_look(view: View) -> Observed | None:
    """The look that answers the standing question of this step; None while there is none."""
    look, seen = view.state.request(Action.OBSERVE), view.operation.observed
    if look is None or seen is None or not look.id.startswith(f"{view.state.step}/") or seen.request != look.id:
        return None
    return seen


def with_look(state: State, look: Request, *, now: datetime) -> State:
    """The state with another question, whose clock begins now."""
    others = tuple(request for request in state.requests if request.action is not Action.OBSERVE)
    clocks = tuple(clock for clock in state.clocks if clock.name != WORKER_CLOCK)
    return replace(state, requests=(look, *others), clocks=(*clocks, clock_of(WORKER_CLOCK, WORKER_S, now=now)))


def clock_of(name: str, seconds: float, *, now: datetime) -> Clock:
    """A clock that begins now; whole seconds, as they are stored."""
    started = now.replace(microsecond=0)
    return Clock(name, started, started + timedelta(seconds=seconds))


def wound(state: State, limits: Iterable[Limit], *, now: datetime) -> tuple[Clock, ...]:
    """The clocks of these limits: running ones keep their times, others begin; the worker's stays as it is."""
    kept = [clock for clock in state.clocks if clock.name == WORKER_CLOCK]
    running = {clock.name: clock for clock in state.clocks}
    by_name = {limit.name: limit for limit in limits}
    for name, limit in by_name.items():
        kept.append(running.get(name) or clock_of(name, limit.seconds, now=now))
    return tuple(kept)


def overdue(state: State, limits: Iterable[Limit], *, now: datetime) -> Limit | None:
    """The first limit whose clock has run out."""
    for limit in limits:
        clock = state.clock(limit.name)
        if clock is not None and now >= clock.deadline:
            return limit
    return None


def worker_limit(message: str, *, name: str = REQUEST_CLOCK) -> Limit:
    """How long the worker may leave a question without an answer."""
    return Limit(name, WORKER_S, "WorkerUnavailable", f"no cluster worker answers: {message}")

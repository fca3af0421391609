"""The steps that look and touch nothing: preflight, and the waits for the CNI's owner (cni-switch.md, sections 6.4, 9.1 and 11)."""

from gitops_ctl.cni import messages
from gitops_ctl.cni.mode import is_asked, serves
from gitops_ctl.cni.model import Mode, Observed, Said
from gitops_ctl.cni.preflight import is_done_already, refusals
from gitops_ctl.cni.steps import (
    AWAIT_S,
    VERIFY_S,
    WORKER_S,
    Limit,
    Outcome,
    Verdict,
    View,
    passed,
    pauses,
    waits,
)

NOT_READY = "NewSideNotReady"

PASSING = frozenset({"MachineUnreachable", "RateLimited", "ReplyLost", "Unavailable"})
"""Reasons of a look that failed and may succeed when it is repeated."""

REACHABLE_S = 120.0


def preflight(view: View, seen: Observed) -> Outcome:
    """Every refusal at once, unless all of them may pass by themselves; nothing to do ends the operation."""
    found = refusals(view.cluster, view.machines, seen, target=view.target)
    if found:
        reason, message = found[0].reason, messages.problems(found)
        if all(problem.reason in PASSING for problem in found):
            return waits(message, Limit("reachable", REACHABLE_S, reason, message), reason=reason)
        return pauses(reason, message)
    if is_done_already(view.cluster, view.machines, seen, target=view.target):
        return Outcome(Verdict.FINISH, Said("NothingToDo", messages.NOTHING_TO_DO), set_mode=True)
    return passed()


def await_cni(view: View, seen: Observed) -> Outcome:
    """Until the live value is the target's; whoever changed it, and whatever became of the pull request."""
    if is_asked(seen.cilium, view.target):
        return passed()
    message = messages.awaiting(seen, target=view.target, place=view.place)
    touched = "no node was touched" if view.target is Mode.REPLACED else "both sides run"
    over = f"the CNI was not changed in time, {touched}; {message}"
    return waits(message, Limit("await-cni", AWAIT_S, "CNIChangeTimeout", over))


def verify_cni(view: View, seen: Observed) -> Outcome:
    """Until every agent runs the target's mode."""
    return agents_wait(view, seen) or passed()


def unread(seen: Observed) -> Outcome | None:
    """What is waited for while the objects of the target cannot be read; nothing is concluded from that."""
    if seen.proxy is not None:
        return None
    reason = seen.problems[0].reason if seen.problems else "ClusterNotReadable"
    message = messages.problems(seen.problems) or "the objects of kube-proxy were not read"
    return waits(message, Limit("target", WORKER_S, reason, message))


def agents_wait(view: View, seen: Observed) -> Outcome | None:
    """What is waited for while an agent may still run the other mode; None when none does (section 9.1)."""
    missing = serves(seen, view.target, view.state.baseline)
    if not missing:
        return None
    return waits(
        "; ".join(missing),
        Limit("verify-cni", VERIFY_S, NOT_READY, messages.not_ready(seen, missing)),
        reason=NOT_READY,
    )

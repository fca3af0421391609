"""The steps about the kube-proxy objects and the Service that they stood for (cni-switch.md, sections 8, 9.2 and 9.3)."""

from dataclasses import replace

from gitops_ctl.cni import messages
from gitops_ctl.cni.mode import is_proxy_gone, proxy_missing
from gitops_ctl.cni.model import Action, Observed, Progress, Receipt, Request, Result
from gitops_ctl.cni.preflight import on_hold
from gitops_ctl.cni.steps import VERIFY_S, Limit, Outcome, Verdict, View, asked, passed, pauses, waits, worker_limit
from gitops_ctl.cni.steps_cni import agents_wait, unread
from gitops_ctl.cni.steps_machines import absent_machines

_VERIFY = "verify"


def remove(view: View, seen: Observed) -> Outcome:
    """Once, after every machine: while an agent may run the old mode, or a control plane would bring it back, nothing is removed.

    Objects that are gone already are no way around the hold: a control plane that still renders them brings them back at the next sync.
    """
    request = view.state.request(Action.REMOVE)
    if (blind := unread(seen)) is not None:
        return blind if request is None else replace(blind, asks=(request,))
    if request is not None and (outcome := _standing(view, request)) is not None:
        return outcome
    if _unswitched(view) or absent_machines(view) is not None:
        return Outcome(Verdict.BACK)
    if is_proxy_gone(seen.proxy):
        held = on_hold([machine for machine in view.machines if machine.name not in _done(view)])
        return pauses(held.reason, held.message) if held is not None else passed()
    receipt = view.operation.receipts.get(request.id) if request is not None else None
    if receipt is not None and (stop := _stops(view, receipt, reason="KubeProxyNotRemoved")) is not None:
        return stop
    blocked = _before_removal(view, seen)
    return blocked if blocked is not None else _asks(view, Action.REMOVE, "removing the objects of kube-proxy")


def restore(view: View, seen: Observed) -> Outcome:
    """Until kube-proxy serves; what is missing of it is restored, once a control plane renders it."""
    missing = proxy_missing(seen.proxy)
    if not missing:
        return passed()
    limit = Limit(_VERIFY, VERIFY_S, "KubeProxyNotReady", messages.both_sides(seen, missing))
    request = view.state.request(Action.RESTORE)
    if request is not None and (outcome := _standing(view, request)) is not None:
        # The worker waits for the manifests as long as the clock of this step runs.
        return replace(outcome, limits=(limit,), said=replace(outcome.said, message="; ".join(missing)))
    absent = seen.proxy is not None and (not seen.proxy.present or bool(seen.proxy.missing))
    if not absent:
        return waits("; ".join(missing), limit)
    receipt = view.operation.receipts.get(request.id) if request is not None else None
    if receipt is not None and (stop := _stops(view, receipt, reason="KubeProxyNotRestored")) is not None:
        return stop
    return replace(_asks(view, Action.RESTORE, "; ".join(missing)), limits=(limit,))


def probe(view: View, seen: Observed) -> Outcome:
    """Until the Service `kubernetes` answers the worker; where that cannot be asked, it is said and not held against anybody."""
    request, service = view.state.request(Action.PROBE), seen.service
    limit = Limit(
        _VERIFY,
        VERIFY_S,
        "ServiceNotReachable",
        messages.service_failed(view.operation, service.message if service is not None else ""),
    )
    message = f"waits for the Service kubernetes to answer the cluster worker; {messages.RULES_STAY}"
    if request is None:
        return replace(waits(message, limit), asks=(asked(view, Action.PROBE),))
    if service is None or service.request != request.id:
        return replace(waits(message, limit), asks=(request,))
    if service.result == "Answered":
        return passed("the Service kubernetes answered the cluster worker, which proves its own node only")
    if service.result == "NotPossible":
        return passed(f"ProbeNotPossible: {service.message or service.reason}")
    return replace(waits(message, limit), asks=(request,))


def _standing(view: View, request: Request) -> Outcome | None:
    """What a request that stands is waiting for; None once a look that began after its receipt is there."""
    if request.id not in view.operation.receipts:
        message = f"the cluster worker has {request.action}"
        limits = () if view.is_claimed(request) else (worker_limit(f"{request.id} is not claimed"),)
        return replace(waits(message, *limits), asks=(request,))
    look = view.state.request(Action.OBSERVE)
    if look is None or look.number < request.number:
        return Outcome(Verdict.WAIT, asks=(request,), look=True)
    return None


def _stops(view: View, receipt: Receipt, *, reason: str) -> Outcome | None:
    """A pause, when the work is not done after a receipt; a first failure is tried once more under a new id."""
    if receipt.result is Result.DONE:
        return pauses(reason, f"objects of kube-proxy are as before although the worker was done: {receipt.message}")
    place = receipt.id.rpartition("#")[0]
    failed = sum(
        one.result is not Result.DONE for one in view.operation.receipts.values() if one.id.startswith(f"{place}#")
    )
    return None if failed % 2 else pauses(reason, receipt.message or "the worker could not do it")


def _before_removal(view: View, seen: Observed) -> Outcome | None:
    """What must not be when kube-proxy goes: an agent in the old mode, or a control plane that would bring it back."""
    if (held := on_hold(view.machines)) is not None:
        return pauses(held.reason, held.message)
    return agents_wait(view, seen) or _rendering(view, seen)


def _unswitched(view: View) -> bool:
    """Whether a machine is left that was on hold, or not there, while the others were switched."""
    return any(not machine.held and machine.name not in _done(view) for machine in view.machines)


def _done(view: View) -> frozenset[str]:
    """Machines that this operation has switched."""
    return frozenset(row.name for row in view.state.rows if row.state is Progress.DONE)


def _rendering(view: View, seen: Observed) -> Outcome | None:
    """A control plane that renders kube-proxy now would bring back what is removed."""
    for machine in view.machines:
        found = seen.machines.get(machine.name)
        if machine.is_control_plane and (found is None or not found.reachable or found.proxy != view.target.proxy_word):
            message = f"{machine.name} is not known to have kube-proxy disabled"
            return waits(message, Limit("control-plane", 120.0, "ControlPlaneStillRenders", message))
    return None


def _asks(view: View, action: Action, message: str) -> Outcome:
    request = asked(view, action)
    limit = worker_limit(f"{request.id} is not claimed")
    return replace(waits(message, limit), asks=(request,))

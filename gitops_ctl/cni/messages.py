"""What an operation says to people (cni-switch.md, sections 5.3, 6.6 and 11).  No text holds a counter: progress is in status.observed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gitops_ctl.cni.mode import Replacement, is_asked, replacement_of, shown_value
from gitops_ctl.cni.model import CiliumSeen, Cluster, Lock, Mode, Observed, Operation, Problem, RollOut, Row
from gitops_ctl.core.conditions import listed

DEFAULT_PORT: Final = 7445
"""Port of KubePrism where no machine names another (section 11)."""

RULES_STAY: Final = "the old kube-proxy rules stay on each node until it reboots"
NOTHING_TO_DO: Final = "nothing to do: the cluster runs in this mode already"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of Cilium are changed, and how far the proposal of it is.

    Attributes:
        where: repository, file and path; or what holds the values where they were not found.
        why: why they were not found or cannot be changed; empty when they were.
        url: of the pull request.
    """

    where: str
    why: str = ""
    url: str = ""


def awaiting(observed: Observed, *, target: Mode, place: Place) -> str:
    """What the CNI's owner has to set, and where."""
    parts = [f"live kube-proxy-replacement is {shown_value(observed.cilium)}", f"set {wanted(observed, target=target)}"]
    if observed.cilium is not None and replacement_of(observed.cilium.value) is Replacement.MIXED:
        parts.append("the live value is neither mode")
    parts.append(f"in {place.where}")
    if place.why:
        parts.append(place.why)
    if place.url:
        parts.append(f"proposed by {place.url}")
    return "; ".join(parts)


def wanted(observed: Observed, *, target: Mode) -> str:
    """The values that the target needs (section 11): host and port stay where they work, and when kube-proxy comes back."""
    cilium = observed.cilium
    if target is Mode.ENABLED:
        text = "kubeProxyReplacement: false"
    elif cilium is not None and cilium.service_host:
        text = "kubeProxyReplacement: true"
    else:
        text = f"kubeProxyReplacement: true, with k8sServiceHost: localhost and k8sServicePort: {prism_port(observed)}"
    if asks_roll_out(cilium):
        text += ", and rollOutCiliumPods: true so that the agents restart"
    return text


def asks_roll_out(cilium: CiliumSeen | None) -> bool:
    """Whether the values must ask for a restart: only when the live pod template has no checksum."""
    return cilium is None or not cilium.checksum


def prism_port(observed: Observed) -> int:
    """The port of KubePrism that the machines use."""
    return next((seen.prism_port for seen in observed.machines.values() if seen.prism_port), DEFAULT_PORT)


def counts(name: str, found: RollOut | None, lagging: Iterable[str] = ()) -> str:
    """How far a roll-out is, for a message that stays: when an operation has paused."""
    if found is None:
        return f"{name}: not there"
    pods = listed(tuple(lagging))
    late = f", lagging: {pods}" if pods else ""
    return f"{name}: {found.updated} of {found.desired} updated, {found.ready} of {found.desired} ready{late}"


def not_ready(observed: Observed, missing: Iterable[str]) -> str:
    """Why the new side is not taken for ready, with counts and names."""
    parts = list(missing)
    if observed.cilium is not None:
        parts.append(counts("Cilium agents", observed.cilium.agents, observed.cilium.lagging))
    return "; ".join(parts)


def both_sides(observed: Observed, missing: Iterable[str]) -> str:
    """Why kube-proxy is not back, and that Cilium still serves."""
    proxy, cilium = observed.proxy, observed.cilium
    parts = list(missing)
    if proxy is not None:
        parts.append(counts("kube-proxy", proxy.roll_out, proxy.lagging))
    if cilium is not None:
        parts.append(counts("Cilium agents", cilium.agents, cilium.lagging))
        if is_asked(cilium, Mode.REPLACED):
            parts.append("Cilium still serves Services")
    return "; ".join(parts)


def problems(found: Iterable[Problem]) -> str:
    """Every refusal with its reason."""
    return "; ".join(f"{problem.reason}: {problem.message}" for problem in found)


def waits_for_lock(lock: Lock) -> str:
    """Who holds the cluster."""
    return f"waits for the lock of the cluster, which {lock.kind} {lock.holder} holds since {lock.since}"


def pending_steering(name: str) -> str:
    """Which value keeps a new operation from starting."""
    return f"remove spec.cni.operation.{name} from the TalosCluster in Git, or set it to false; it is still true"


def resume_hint(cluster: Cluster, acted: int) -> str:
    """How a person goes on after a pause."""
    value = max(cluster.steering.resume, acted) + 1
    return f"to try this step again set spec.cni.operation.resume: {value} in Git"


def cancel_refused(target: Mode) -> str:
    """Why it goes on, and how to go back."""
    return (
        f"spec.cni.operation.cancel is not honoured: machines were already switched; start the switch back to "
        f"{target.other} instead"
    )


def break_refused() -> str:
    """Why the lock stays."""
    return "spec.cni.operation.breakLock is honoured only while the operation is Paused"


def lock_broken(operation: Operation, rows: Iterable[Row], open_claims: Iterable[str]) -> str:
    """What is left behind when a person breaks the lock."""
    switched = [row.name for row in rows if row.hash_applied or row.applied_at]
    text = f"the lock was broken by a signed commit; nothing was undone; switched: {listed(switched) or 'no machine'}"
    left = list(open_claims)
    return f"{text}; claimed and without a receipt: {listed(left)}" if left else text


def service_failed(operation: Operation, message: str) -> str:
    """The way back after the removal."""
    return (
        f"the Service kubernetes does not answer the cluster worker: {message or 'no answer'}; the objects of kube-proxy "
        f"were deleted; {RULES_STAY}; to go back set spec.cni.operation.breakLock: true, then switch to "
        f"{operation.target.other} with its own consent"
    )


def succeeded(target: Mode, *, noted: str = "") -> str:
    """The end; never a claim that the nodes are clean."""
    text = (
        f"Cilium serves Services and kube-proxy is removed; {RULES_STAY}; UDP clients that were connected may have to be restarted"
        if target is Mode.REPLACED
        else "kube-proxy serves Services"
    )
    return f"{text}; {noted}" if noted else text

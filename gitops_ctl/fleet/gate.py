"""The worker's gate: whether a leaf may go on, and whether it may claim the next mutation (rollouts.md, section 13.1).

Pure: the worker reads leaf, device and Node uncached, looks at itself, and asks here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.errors import Refused
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.identity import canonical_identity, observed_identity
from gitops_ctl.fleet.leaf import Admission, Leaf, ManagerControl
from gitops_ctl.fleet.node import NodeSeen

VERIFIED_BY_HAND: Final = "OutcomeVerifiedByHand"
DRIVER_XE: Final = "XE"
PROTOCOLS: Final = frozenset({names.PROTOCOL, names.PROTOCOL_PACING, names.PROTOCOL_EVIDENCE, names.PROTOCOL_STAGED})
"""What this worker understands; another protocol is denied."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What the worker may do, and what it publishes.

    Attributes:
        effective_state: Denied, Ready, Paused, Cancelled, Claimed or Settled.
        may_progress: go on with accepted work.
        may_claim: make a new claim.
        publishes: write `workerControl`; a leaf whose binding is invalid is left alone.
        message: why, for people; empty where the state says it all.
    """

    effective_state: str
    may_progress: bool = False
    may_claim: bool = False
    publishes: bool = True
    message: str = ""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the worker knows about itself and its inputs for the device.

    Attributes:
        namespace: the one that it serves.
        username: its account, as the server knows it.
        pod_name: its Pod.
        pod_uid: of that Pod.
        loaded_revision: computed from the template and the Secrets that it loaded.
        has_current_secrets: the loaded Secrets have the resourceVersions of the live ones.
        source_problem: why Secret or endpoint of the image source differ from what is bound; empty when they do not.
    """

    namespace: str
    username: str
    pod_name: str
    pod_uid: str
    loaded_revision: str
    has_current_secrets: bool
    source_problem: str = ""


@dataclass(frozen=True, slots=True)
class Bindings:
    """What is wrong with the bindings of a leaf; `runtime` alone forbids claims but not to look after an accepted one."""

    identity: str = ""
    runtime: str = ""


def gate_of(leaf: Leaf, bindings: Bindings) -> Gate:
    """The row of the decision table that holds."""
    if bindings.identity:
        return Gate("Denied", publishes=False, message=bindings.identity)
    if not bindings.runtime:
        return _by_table(leaf)
    if not leaf.has_unresolved_claim:
        return Gate("Denied", publishes=False, message=bindings.runtime)
    found = _by_table(leaf)
    return Gate("Claimed", may_progress=True, message=bindings.runtime) if found.may_progress else found


def _by_table(leaf: Leaf) -> Gate:
    if leaf.is_terminal:
        return Gate("Claimed" if leaf.has_unresolved_claim else "Settled", may_progress=True)
    state = leaf.admission.state if leaf.admission is not None else ""
    match state:
        case "Pending":
            return Gate(_idle_state(leaf.manager_control))
        case "Granted":
            return _granted(leaf)
        case "Revoked":
            return _revoked(leaf)
        case "Settled":
            return Gate("Settled")
        case _:
            return Gate("Denied")


def _idle_state(control: ManagerControl | None) -> str:
    """A leaf for which the manager has not said what it wants is not free to go."""
    if control is None:
        return "Denied"
    if control.cancel:
        return "Cancelled"
    return "Paused" if control.pause else "Ready"


def _granted(leaf: Leaf) -> Gate:
    state = _idle_state(leaf.manager_control)
    if state == "Ready":
        return Gate("Ready", may_progress=True, may_claim=True)
    return Gate("Claimed", may_progress=True) if leaf.has_unresolved_claim else Gate(state)


def _revoked(leaf: Leaf) -> Gate:
    by_hand = leaf.recovery is not None and leaf.recovery.outcome == VERIFIED_BY_HAND
    if leaf.has_unresolved_claim or by_hand:
        return Gate("Claimed", may_progress=True)
    is_cancelled = leaf.manager_control is not None and leaf.manager_control.cancel
    return Gate("Cancelled" if is_cancelled else "Denied")


def bindings_of(leaf: Leaf, device: Device | None, node: NodeSeen | None, runtime: Runtime) -> Bindings:
    """Compare every member of the binding with the live objects and with the worker itself; the first difference of each sort."""
    if device is None:
        return Bindings(identity=f"there is no CiscoDevice {leaf.device_name}")
    identity = next(_identity_problems(leaf, device, node, runtime), "")
    return Bindings(identity=identity, runtime=next(_runtime_problems(leaf, device, runtime), ""))


def _identity_problems(leaf: Leaf, device: Device, node: NodeSeen | None, runtime: Runtime) -> Iterator[str]:
    bound = leaf.binding
    if not bound.is_complete:
        yield "the leaf does not carry a complete binding"
    if leaf.namespace != bound.device_namespace or leaf.namespace != runtime.namespace:
        yield "the leaf is bound to another namespace"
    if not leaf.device_name == bound.device_name == device.name or device.namespace != leaf.namespace:
        yield "the leaf is bound to another device"
    if bound.device_uid != device.uid:
        yield "the CiscoDevice was made anew since the leaf was bound"
    if bound.device_generation != device.generation:
        yield f"the CiscoDevice has generation {device.generation}, the leaf is bound to {bound.device_generation}"
    if device.driver.upper() != DRIVER_XE:
        yield f"the driver of the device is {device.driver!r}, not {DRIVER_XE}"
    if device.retired is not None:
        yield "the device is retired"
    if runtime.username != bound.network_worker_username:
        yield "the leaf is bound to another worker account"
    yield from _node_problems(leaf, device, node)
    yield from _admission_problems(leaf, leaf.admission)


def _node_problems(leaf: Leaf, device: Device, node: NodeSeen | None) -> Iterator[str]:
    bound, recorded = leaf.binding, device.node_identity
    if node is None or node.uid != bound.node_uid or node.name != bound.node_name:
        yield f"the Node {bound.node_name} is not the one that the leaf is bound to"
        return
    if recorded is None or recorded.node_uid != node.uid or recorded.device_uid != device.uid:
        yield "the device is not bound to the Node of the leaf"
        return
    if node.annotations.get(names.DEVICE_UID) != device.uid:
        yield "the Node does not carry the UID of the device"
    try:
        declared = canonical_identity(device.physical_identity)
        observed = observed_identity(node.machine_id, node.system_uuid)
    except Refused as error:
        yield error.message
        return
    if not declared == recorded.physical_identity == observed:
        yield f"the chassis is declared as {declared}, recorded as {recorded.physical_identity} and seen as {observed}"


def _admission_problems(leaf: Leaf, admission: Admission | None) -> Iterator[str]:
    """Before the manager has bound the leaf there is nothing to compare; the table then denies."""
    if admission is None:
        return
    bound = leaf.binding
    pairs = (
        (admission.campaign_uid, bound.campaign_uid, "campaign"),
        (admission.plan_hash, bound.plan_hash, "plan"),
        (admission.ledger_uid, bound.ledger_uid, "ledger"),
        (admission.reservation_id, bound.reservation_id, "reservation"),
        (admission.leaf_uid, leaf.uid, "leaf"),
        (admission.device_uid, bound.device_uid, "device"),
        (admission.node_uid, bound.node_uid, "Node"),
        (admission.device_generation, bound.device_generation, "generation"),
    )
    yield from (f"admission and binding name another {what}" for said, held, what in pairs if said != held)
    if admission.protocol_version not in PROTOCOLS:
        yield f"this worker does not know the protocol {admission.protocol_version!r}"


def _runtime_problems(leaf: Leaf, device: Device, runtime: Runtime) -> Iterator[str]:
    bound, revision = leaf.binding, device.network_worker_revision
    if revision is None or not revision.is_proven or revision.desired != runtime.loaded_revision:
        yield "the revision that this worker loaded is not proven"
    if revision is not None and revision.pod_uid != runtime.pod_uid:
        yield "another Pod is the proven worker"
    if (bound.network_worker_pod_name, bound.network_worker_pod_uid) != (runtime.pod_name, runtime.pod_uid):
        yield "the leaf is bound to another Pod"
    if not runtime.has_current_secrets:
        yield "a Secret of the device changed since this worker loaded it"
    if runtime.source_problem:
        yield runtime.source_problem

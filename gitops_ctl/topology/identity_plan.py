"""Which chassis a device is: declared once, recorded once, seen on the Node, and claimed by no other device (rollouts.md, section 5.4)."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet.forms import is_subdomain
from gitops_ctl.fleet.identity import canonical_identity, observed_identity
from gitops_ctl.topology.findings import Finding, Reason

LONGEST_NODE_NAME = 63


class Claim(NamedTuple):
    """What one device says about the chassis and the Node that it wants; the smaller of two claims wins.

    Attributes:
        is_unbound: False once a Node was bound: a device that is bound keeps its identity.
        created: when the object was made, as the server wrote it.
    """

    is_unbound: bool
    created: str
    namespace: str
    name: str
    uid: str
    identity: str
    node_name: str
    is_retired: bool

    @classmethod
    def of(cls, device: JsonObject) -> Self:
        """The claim of a CiscoDevice; an identity without canonical form claims nothing."""
        metadata, status = object_at(device, "metadata"), object_at(device, "status")
        try:
            identity = canonical_identity(text_at(device, "spec", "physicalIdentity"))
        except Refused:
            identity = text_at(status, "nodeIdentity", "physicalIdentity")
        return cls(
            is_unbound="nodeIdentity" not in status,
            created=text_at(metadata, "creationTimestamp"),
            namespace=text_at(metadata, "namespace"),
            name=text_at(metadata, "name"),
            uid=text_at(metadata, "uid"),
            identity=identity,
            node_name=node_name_of(device),
            is_retired="retired" in status,
        )

    def __str__(self) -> str:
        return f"CiscoDevice {self.namespace}/{self.name}"


def node_name_of(device: JsonObject) -> str:
    """Name of the device's Node."""
    return text_at(device, "spec", "nodeName") or text_at(device, "metadata", "name")


def declaration_problem(device: JsonObject) -> Finding | None:
    """Why the declared identity or the name of the Node cannot be used, also when it is another one than what was recorded."""
    declared = text_at(device, "spec", "physicalIdentity")
    recorded = text_at(device, "status", "nodeIdentity", "physicalIdentity")
    try:
        canonical = canonical_identity(declared)
    except Refused as error:
        return Finding(Reason.IDENTITY_INVALID, f"spec.physicalIdentity: {error.message}")
    if recorded and canonical != recorded:
        return Finding(
            Reason.IDENTITY_CHANGED,
            f"spec.physicalIdentity is {canonical}, and {recorded} was recorded for this device: put it back",
        )
    node_name = node_name_of(device)
    if len(node_name) > LONGEST_NODE_NAME or not is_subdomain(node_name):
        return Finding(
            Reason.NODE_NAME_INVALID,
            f"{node_name!r} cannot be the name of a Node: set spec.nodeName to at most {LONGEST_NODE_NAME} characters",
        )
    return None


def rival_problem(claim: Claim, others: Iterable[Claim]) -> Finding | None:
    """Why another device has the better claim to the same chassis or Node; names both.  Retired devices claim nothing."""
    for other in sorted(others):
        if other.uid == claim.uid or other.is_retired or other > claim:
            continue
        if claim.identity and other.identity == claim.identity:
            return Finding(
                Reason.IDENTITY_DUPLICATE,
                f"{other} has the physical identity {claim.identity} already, so {claim} is refused: "
                f"correct spec.physicalIdentity, or remove one of the two",
            )
        if other.node_name == claim.node_name:
            return Finding(
                Reason.NODE_OCCUPIED,
                f"{other} uses the Node name {claim.node_name} already, so {claim} is refused: set spec.nodeName",
            )
    return None


def agreement_problem(device: JsonObject, node: JsonObject) -> str:
    """Why declaration, record and Node do not name the same chassis; empty when they do."""
    recorded = text_at(device, "status", "nodeIdentity", "physicalIdentity")
    if not recorded:
        return "no identity is recorded yet"
    info = object_at(node, "status", "nodeInfo")
    machine_id, system_uuid = text_at(info, "machineID"), text_at(info, "systemUUID")
    if not machine_id and not system_uuid:
        return "the worker has not reported the chassis yet"
    try:
        seen = observed_identity(machine_id, system_uuid)
    except Refused as error:
        return error.message
    return "" if seen == recorded else f"the Node reports the chassis {seen}, and {recorded} is declared"

"""The network gate: whether a sample of a device's interfaces and neighbours lets an upgrade begin (rollouts.md, section 15.5).

The checks run in the contract's order and the first that fails gives the reason.  A sample proves what was seen from one device, not a path
through the network.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, bool_at, int_at, list_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.encoding import ordered, sha256_of
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.leaf import NetworkAuthority
from gitops_ctl.fleet.trees import moment_at, strings_at

READY: Final = "NetworkHealthReady"
MOST_ENTRIES: Final = 64
"""Interfaces, and neighbours, of one sample."""
SKEW_S: Final = 30
SLOW_S: Final = 60
FULL: Final = "full"


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface; `headroom` in percent, None when it is not known."""

    name: str
    oper_up: bool
    headroom: int | None


@dataclass(frozen=True, slots=True)
class Neighbor:
    """One adjacency; `identity` names it with its interface, `id` names the other device."""

    identity: str
    id: str
    state: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One collection.  `flaw` is the reason why its lists cannot be used, empty when they can."""

    worker_pod_uid: str
    started_at: datetime | None
    ended_at: datetime | None
    sequence: int
    observed_at: datetime | None
    complete: bool
    unknown_reason: str
    producer_revision: str
    device_identity_hash: str
    interfaces: tuple[Interface, ...]
    neighbors: tuple[Neighbor, ...]
    flaw: str


@dataclass(frozen=True, slots=True)
class Rules:
    """`health.network` of a plan; without a list, a rule about interfaces or neighbours is about all that were seen."""

    require_complete: bool = True
    required_interfaces: tuple[str, ...] = ()
    required_neighbors: tuple[str, ...] = ()
    interfaces_up: bool = False
    neighbors_full: bool = False
    minimum_headroom: int | None = None

    @classmethod
    def of(cls, tree: JsonObject) -> "Rules":
        """From the stored tree, in which the server has filled in the default of `requireCompleteEvidence`."""
        return cls(
            require_complete=bool_at(tree, "requireCompleteEvidence", default=True),
            required_interfaces=strings_at(tree, "requiredInterfaces"),
            required_neighbors=strings_at(tree, "requiredNeighbors"),
            interfaces_up=bool_at(tree, "requireInterfacesUp"),
            neighbors_full=bool_at(tree, "requireNeighborsFull"),
            minimum_headroom=int_at(tree, "minimumHeadroomPercent") if "minimumHeadroomPercent" in tree else None,
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """Who may have collected the sample, and from which chassis."""

    producer_revision: str
    worker_pod_uid: str
    device_identity_hash: str

    @classmethod
    def of(cls, device: Device) -> "Expected":
        """The proven network worker and the recorded chassis of a device; empty texts where there is none."""
        worker, bound = device.network_worker_revision, device.node_identity
        is_proven = worker is not None and worker.is_proven
        return cls(
            producer_revision=worker.observed if worker is not None and is_proven else "",
            worker_pod_uid=worker.pod_uid if worker is not None and is_proven else "",
            device_identity_hash=device_identity_hash(bound.physical_identity)
            if bound is not None and bound.physical_identity
            else "",
        )


def sample_of(tree: JsonObject) -> Sample:
    """Read a sample; its lists are checked here (row 12)."""
    interfaces, neighbors = _interfaces(tree), _neighbors(tree)
    return Sample(
        worker_pod_uid=text_at(tree, "workerPodUID"),
        started_at=moment_at(tree, "collectionStartedAt"),
        ended_at=moment_at(tree, "collectionEndedAt"),
        sequence=int_at(tree, "sampleSequence"),
        observed_at=moment_at(tree, "observedAt"),
        complete=bool_at(tree, "complete"),
        unknown_reason=text_at(tree, "unknownReason"),
        producer_revision=text_at(tree, "producerRevision"),
        device_identity_hash=text_at(tree, "deviceIdentityHash"),
        interfaces=interfaces,
        neighbors=neighbors,
        flaw=_flaw(tree, interfaces, neighbors),
    )


def _interfaces(tree: JsonObject) -> tuple[Interface, ...]:
    return tuple(
        Interface(
            text_at(item, "name"),
            bool_at(item, "operUp"),
            int_at(item, "headroomPercent", default=-1) if "headroomPercent" in item else None,
        )
        for item in objects_at(tree, "interfaces")
    )


def _neighbors(tree: JsonObject) -> tuple[Neighbor, ...]:
    return tuple(
        Neighbor(text_at(item, "identity"), text_at(item, "id"), text_at(item, "state"))
        for item in objects_at(tree, "neighbors")
    )


def _flaw(tree: JsonObject, interfaces: tuple[Interface, ...], neighbors: tuple[Neighbor, ...]) -> str:
    for name, read in (("interfaces", len(interfaces)), ("neighbors", len(neighbors))):
        value = tree.get(name, [])
        if not isinstance(value, (list, tuple)) or len(value) != read or read > MOST_ENTRIES:
            return "EvidenceInvalid"
    named = all(item.name.strip() for item in interfaces) and all(item.identity.strip() for item in neighbors)
    bounded = all(item.headroom is None or 0 <= item.headroom <= 100 for item in interfaces)
    typed = all(isinstance(item.get("operUp"), bool) for item in objects_at(tree, "interfaces"))
    reasoned = bool_at(tree, "complete") != bool(text_at(tree, "unknownReason"))
    if not (named and bounded and typed and reasoned):
        return "EvidenceInvalid"
    keys = Counter(
        [("interface", item.name) for item in interfaces] + [("neighbor", item.identity) for item in neighbors]
    )
    return "EvidenceAmbiguous" if any(count > 1 for count in keys.values()) else ""


def network_problem(
    tree: JsonObject | None, *, rules: Rules, expected: Expected, now: datetime, freshness_s: int
) -> str:
    """The reason of the first check that the sample fails; empty when it passes all (NetworkHealthReady)."""
    if not expected.producer_revision or not expected.worker_pod_uid:
        return "ExpectedIdentityMissing"
    if not tree:
        return "EvidenceMissing"
    sample = sample_of(tree)
    checks = (
        _provenance_reasons(sample, expected, now),
        _age_reasons(sample, rules, now, freshness_s),
        _interface_reasons(sample, rules),
        _neighbor_reasons(sample, rules),
    )
    return next((reason for check in checks for reason in check), "")


def accepted_problem(device: Device, *, rules: Rules, now: datetime, freshness_s: int) -> str:
    """What `network_problem` says of the sample that the manager accepted for a device."""
    accepted = device.health.accepted if device.health is not None else None
    return network_problem(accepted, rules=rules, expected=Expected.of(device), now=now, freshness_s=freshness_s)


def _provenance_reasons(sample: Sample, expected: Expected, now: datetime) -> Iterator[str]:
    """Rows 2 to 8: who collected it, when, and from what."""
    if not expected.device_identity_hash or not sample.device_identity_hash:
        yield "DeviceIdentityMissing"
    if sample.producer_revision != expected.producer_revision:
        yield "ProducerRevisionMismatch"
    if sample.worker_pod_uid != expected.worker_pod_uid:
        yield "WorkerPodMismatch"
    if sample.started_at is None or sample.ended_at is None or sample.sequence < 1:
        yield "EvidenceProvenanceMissing"
        return
    if sample.ended_at < sample.started_at or sample.ended_at > now + timedelta(seconds=SKEW_S):
        yield "EvidenceProvenanceInvalid"
    if sample.ended_at - sample.started_at > timedelta(seconds=SLOW_S):
        yield "EvidenceCollectionSlow"
    if sample.device_identity_hash != expected.device_identity_hash:
        yield "DeviceIdentityMismatch"


def _age_reasons(sample: Sample, rules: Rules, now: datetime, freshness_s: int) -> Iterator[str]:
    """Rows 9 to 12: how old it is, and whether it can be read."""
    seen = sample.observed_at
    if seen is None:
        yield "EvidenceStale"
        return
    if seen > now + timedelta(seconds=SKEW_S):
        yield "EvidenceClockSkew"
    if min(seen, sample.started_at or seen) < now - timedelta(seconds=freshness_s):
        yield "EvidenceStale"
    if not sample.complete and rules.require_complete:
        yield "EvidenceIncomplete"
    if sample.flaw:
        yield sample.flaw


def _interface_reasons(sample: Sample, rules: Rules) -> Iterator[str]:
    """Rows 13 to 16."""
    found = {item.name: item for item in sample.interfaces}
    if any(name not in found for name in rules.required_interfaces):
        yield "InterfaceEvidenceMissing"
        return
    judged = [found[name] for name in rules.required_interfaces] or list(sample.interfaces)
    if rules.interfaces_up and not all(item.oper_up for item in judged):
        yield "InterfaceDown"
    if rules.minimum_headroom is None:
        return
    if any(item.headroom is None for item in judged):
        yield "HeadroomUnknown"
    if any(item.headroom is not None and item.headroom < rules.minimum_headroom for item in judged):
        yield "TransferHeadroomInsufficient"


def _neighbor_reasons(sample: Sample, rules: Rules) -> Iterator[str]:
    """Rows 17 to 19; a required neighbour is named by its id or by the whole identity of the adjacency."""
    matches = [
        [item for item in sample.neighbors if name in (item.id, item.identity)] for name in rules.required_neighbors
    ]
    if not all(matches):
        yield "AlternatePathUnavailable"
    if any(len(found) > 1 for found in matches):
        yield "EvidenceAmbiguous"
    judged = [item for found in matches for item in found] if rules.required_neighbors else list(sample.neighbors)
    if rules.neighbors_full and any(item.state.casefold() != FULL for item in judged):
        yield "NeighborUnhealthy"


def sample_hash(tree: JsonObject) -> str:
    """Hash of a stored sample, members in our order; it is only compared inside one system.

    Raises:
        ValueError: the sample holds a number that is not whole.
    """
    parts: dict[str, JsonValue] = {
        "interfaces": [ordered(item, names.SAMPLE_INTERFACE_MEMBERS) for item in objects_at(tree, "interfaces")],
        "neighbors": [ordered(item, names.SAMPLE_NEIGHBOR_MEMBERS) for item in objects_at(tree, "neighbors")],
    }
    held = {name: part for name, part in parts.items() if list_at(tree, name)}
    return sha256_of(ordered({**tree, **held}, names.SAMPLE_MEMBERS))


def authority_of(tree: JsonObject, *, freshness_s: int) -> NetworkAuthority | None:
    """What a grant may rest on, from an accepted sample; None when the sample does not say when its collection began."""
    sample = sample_of(tree)
    if sample.started_at is None:
        return None
    return NetworkAuthority(
        evidence_hash=sample_hash(tree),
        producer_revision=sample.producer_revision,
        worker_pod_uid=sample.worker_pod_uid,
        sample_sequence=sample.sequence,
        not_after=sample.started_at + timedelta(seconds=freshness_s),
    )


def is_authority_current(authority: NetworkAuthority | None, accepted: JsonObject | None, *, now: datetime) -> bool:
    """Whether a grant's authority is exactly that of the sample accepted now, and not over."""
    if authority is None or not accepted or authority.not_after is None or now >= authority.not_after:
        return False
    sample = sample_of(accepted)
    return (
        authority.evidence_hash == sample_hash(accepted)
        and authority.producer_revision == sample.producer_revision
        and authority.worker_pod_uid == sample.worker_pod_uid
        and authority.sample_sequence == sample.sequence
    )

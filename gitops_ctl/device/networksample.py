"""The network sample of a device, from one look at its interfaces and neighbours (rollouts.md, section 15.5).

Pure.  Members stand in the order of the contract, because the sample is hashed as it stands.  A look with a gap, a look that did
not happen, and one that does not fit are incomplete and say why.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gitops_ctl.core.jsonvalue import JsonObject, JsonValue
from gitops_ctl.core.moment import to_rfc3339
from gitops_ctl.device.operational import Interface, Neighbor, Seen, Surroundings

RATE_SOURCE: Final = "cisco-ios-xe-interfaces-oper:statistics-kbps"
_MOST: Final = 64
_LONGEST_NAME: Final = 256
_LONGEST_REASON: Final = 256


@dataclass(frozen=True, slots=True)
class Collector:
    """Who looks at which device: the Pod, the revision that it proved, the identity hash of the device."""

    pod_uid: str
    revision: str
    identity_hash: str


@dataclass(frozen=True, slots=True)
class Look:
    """One collection: when it ran, its number (rising per device), and names of interfaces that somebody requires."""

    started: datetime
    ended: datetime
    sequence: int
    required: frozenset[str] = frozenset()


def sample_of(seen: Seen[Surroundings], *, by: Collector, look: Look) -> JsonObject:
    """The sample as it stands in `healthObservation.network`."""
    interfaces, neighbors = seen.value.interfaces, _adjacencies(seen.value.neighbors)
    chosen, gaps = _chosen(interfaces, neighbors, look.required), list(seen.gaps)
    if look.required - {interface.name for interface in chosen} and len(interfaces) > _MOST:
        gaps.append(f"more than {_MOST} interfaces are required")
    if len(neighbors) > _MOST:
        gaps.append(f"the device has {len(neighbors)} neighbours, a sample holds {_MOST}")
    sample: dict[str, JsonValue] = {
        "workerPodUID": by.pod_uid,
        "collectionStartedAt": to_rfc3339(look.started),
        "collectionEndedAt": to_rfc3339(look.ended),
        "sampleSequence": look.sequence,
        "observedAt": to_rfc3339(look.ended),
        "complete": not gaps,
    }
    if gaps:
        sample["unknownReason"] = "; ".join(gaps)[:_LONGEST_REASON]
    sample["producerRevision"] = by.revision
    sample["deviceIdentityHash"] = by.identity_hash
    sample["interfaces"] = [_interface(interface) for interface in chosen]
    sample["neighbors"] = [_neighbor(neighbor) for neighbor in neighbors[:_MOST]]
    return sample


def failed_sample(why: str, *, by: Collector, look: Look) -> JsonObject:
    """The sample of a look that gave nothing: incomplete, with the reason."""
    return sample_of(Seen(Surroundings(), (why or "the device was not read",)), by=by, look=look)


def _adjacencies(neighbors: tuple[Neighbor, ...]) -> tuple[Neighbor, ...]:
    """One for each device on each interface: a device that speaks both protocols is no second path.  CDP comes first."""
    found: dict[tuple[str, str], Neighbor] = {}
    for neighbor in neighbors:
        found.setdefault((neighbor.id.casefold(), neighbor.interface), neighbor)
    return tuple(found.values())


def _chosen(
    interfaces: tuple[Interface, ...], neighbors: tuple[Neighbor, ...], required: frozenset[str]
) -> list[Interface]:
    """All of them, or the most wanted that a sample can hold: required ones, then those with a neighbour, then by name."""
    adjacent = {neighbor.interface for neighbor in neighbors}
    wanted = sorted(interfaces, key=lambda item: (item.name not in required, item.name not in adjacent, item.name))
    return sorted(wanted[:_MOST], key=lambda item: item.name)


def _interface(interface: Interface) -> JsonObject:
    entry: dict[str, JsonValue] = {"name": interface.name[:_LONGEST_NAME], "operUp": interface.up}
    headroom = _headroom(interface)
    numbers = {
        "headroomPercent": headroom,
        "capacityBitsPerSecond": interface.speed or None,
        "ingressBitsPerSecond": interface.ingress,
        "egressBitsPerSecond": interface.egress,
        "rateSource": RATE_SOURCE if headroom is not None else None,
    }
    entry.update({name: value for name, value in numbers.items() if value is not None})
    return entry


def _headroom(interface: Interface) -> int | None:
    """Per cent of the capacity that the busier direction leaves free, rounded down; None where one of the numbers is missing."""
    if not interface.speed or interface.ingress is None or interface.egress is None:
        return None
    free = interface.speed - max(interface.ingress, interface.egress)
    return max(0, free * 100 // interface.speed)


def _neighbor(neighbor: Neighbor) -> JsonObject:
    return {
        "identity": f"{neighbor.source}|{neighbor.id}|{neighbor.interface}|"[:512],
        "id": neighbor.id[:_LONGEST_NAME],
        "interface": neighbor.interface[:_LONGEST_NAME],
        "state": neighbor.state,
        "source": neighbor.source,
    }

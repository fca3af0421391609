"""What is kept of devices, Nodes and Leases: the whole object, packed, and beside it the little that tells whether anything has to be done.

A fleet has ten thousand of each.  Packed, an object takes a tenth of its tree; it is unpacked for a pass, and never to find out that only a
heartbeat changed.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, JsonValue, list_at, object_at, objects_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.revision import secrets_of
from gitops_ctl.kube.cache import Cache
from gitops_ctl.topology.identity_plan import Claim
from gitops_ctl.topology.maintenance_plan import has_open_claim

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode
_LEVEL: Final = 1
_PLAIN: Final = len("2026-01-01T00:00:00Z")


class Packed(NamedTuple):
    """One object, as small as it gets."""

    data: bytes

    def tree(self) -> JsonObject:
        """The object."""
        found: JsonObject = _decode(zlib.decompress(self.data))  # type: ignore[assignment]
        return found


def packed(tree: JsonObject) -> Packed:
    """Pack an object without its managedFields."""
    return Packed(zlib.compress(_encode(without_managers(tree)), _LEVEL))


def _mark(value: JsonValue) -> int:
    """Equal for equal values, in this process."""
    return hash(_encode(value))


class SeenDevice(NamedTuple):
    """A device.

    Attributes:
        asked: everything but our own evidence: two versions with the same ask for nothing new.
        spec: of the spec alone.
        claim: to chassis and Node.
        is_ours: whether it has our finalizer.
        secrets: those that it names.
        is_settled: whether it is ready and the node plane is proven: then a heartbeat means nothing before evidence is due.
        observed_at: when its evidence was renewed last.
        floor: a heartbeat of its Node from then on, or later, proves as much as any other; empty when there is no such time.
    """

    packed: Packed
    asked: int
    spec: int
    claim: Claim
    is_ours: bool
    secrets: tuple[str, ...]
    is_settled: bool
    observed_at: str
    floor: str

    def tree(self) -> JsonObject:
        """The device."""
        return self.packed.tree()


def seen_device(tree: JsonObject) -> SeenDevice:
    """Trim a device."""
    metadata, status = object_at(tree, "metadata"), object_at(tree, "status")
    health = object_at(status, "healthObservation")
    own: JsonObject = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")}
    rest: JsonObject = {key: value for key, value in status.items() if key != "healthObservation"}
    spec = object_at(tree, "spec")
    is_proven = bool(text_at(status, "workerRevision", "readyHeartbeatTime"))
    return SeenDevice(
        packed=packed(tree),
        asked=_mark([own, spec, rest, object_at(health, "network"), bool(health)]),
        spec=_mark(spec),
        claim=Claim.of(tree),
        is_ours=names.DEVICE_FINALIZER in list_at(metadata, "finalizers"),
        secrets=tuple(name for name in secrets_of(spec) if name),
        is_settled=text_at(status, "phase") == "Ready" and is_proven,
        observed_at=text_at(health, "observedAt"),
        floor=_latest(
            text_at(health, "nodeReadyHeartbeatTime"), text_at(status, "topologyProjection", "lastSuccessfulTime")
        ),
    )


class SeenNode(NamedTuple):
    """A Node; `asked` is everything but what each heartbeat changes, `pulse` the older heartbeat of its two writers, empty without both."""

    packed: Packed
    asked: int
    pulse: str

    def tree(self) -> JsonObject:
        """The Node."""
        return self.packed.tree()


def seen_node(tree: JsonObject) -> SeenNode:
    """Trim a Node."""
    metadata, status = object_at(tree, "metadata"), object_at(tree, "status")
    members = ("type", "status", "reason", "lastTransitionTime")
    words: list[JsonValue] = [[item.get(name) for name in members] for item in objects_at(status, "conditions")]
    parts: list[JsonValue] = [
        *(metadata.get(name) for name in ("labels", "annotations", "deletionTimestamp")),
        *(tree.get("spec"), status.get("nodeInfo"), words),
    ]
    beats = {text_at(item, "type"): text_at(item, "lastHeartbeatTime") for item in objects_at(status, "conditions")}
    pulse = _earliest(beats.get("Ready", ""), beats.get(names.MANAGED_WRITER, ""))
    return SeenNode(packed(tree), _mark(parts), pulse)


def _latest(*times: str) -> str:
    return max(times) if all(map(_is_plain, times)) else ""


def _earliest(*times: str) -> str:
    return min(times) if all(map(_is_plain, times)) else ""


def _is_plain(time: str) -> bool:
    """Whether it has the form whose order is that of its characters: whole seconds in UTC."""
    return len(time) == _PLAIN and time.endswith("Z")


class SeenLease(NamedTuple):
    """A Lease of a device; `asked` is everything but its renewal."""

    packed: Packed
    asked: int
    device: NamespacedName
    key: str
    purpose: str

    def tree(self) -> JsonObject:
        """The Lease."""
        return self.packed.tree()


def seen_lease(tree: JsonObject) -> SeenLease:
    """Trim a Lease."""
    metadata = object_at(tree, "metadata")
    annotations = object_at(metadata, "annotations")
    held: list[JsonValue] = [text_at(tree, "spec", "holderIdentity"), metadata.get("labels"), annotations]
    return SeenLease(
        packed(tree),
        _mark(held),
        NamespacedName(text_at(annotations, names.DEVICE_NAMESPACE), text_at(annotations, names.DEVICE_NAME)),
        text_at(metadata, "labels", names.LEASE_DEVICE),
        text_at(annotations, names.LEASE_PURPOSE),
    )


class SeenLeaf(NamedTuple):
    """What is kept of a leaf: whose it is, and how far it is, so that a step of it wakes its device."""

    device: NamespacedName
    step: tuple[str, ...]
    is_claimed: bool


def seen_leaf(tree: JsonObject) -> SeenLeaf:
    """Trim a leaf."""
    annotations, status = object_at(tree, "metadata", "annotations"), object_at(tree, "status")
    device = NamespacedName(text_at(annotations, names.DEVICE_NAMESPACE), text_at(annotations, names.DEVICE_NAME))
    step = (
        text_at(status, "phase"),
        text_at(status, "managerAdmission", "state"),
        str(len(list_at(status, "managedMutationClaims"))),
        str("managerRecovery" in status),
        text_at(status, "completionTime"),
    )
    return SeenLeaf(device, step, has_open_claim(tree))


class Versions(Mapping[str, str]):
    """The resourceVersions of a namespace's Secrets by name, looked up where they are kept."""

    def __init__(self, namespace: str, cache: Cache[str]) -> None:
        self._namespace, self._cache = namespace, cache

    def __getitem__(self, name: str) -> str:
        found = self._cache.get(NamespacedName(self._namespace, name))
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._cache)

    def __len__(self) -> int:
        return len(self._cache)

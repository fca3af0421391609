"""Which labels the Node of a device has to carry, and their hash (rollouts.md, section 16)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.core.canonical import digest_bytes
from gitops_ctl.core.jsonvalue import text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.encoding import encoded, sorted_map
from gitops_ctl.fleet.forms import is_label_value, is_qualified_name
from gitops_ctl.fleet.policytypes import FleetPolicy
from gitops_ctl.fleet.trees import texts_at

LABELS_MISSING: Final = "RequiredLabelsMissing"
LABELS_DISAGREE: Final = "LegacyTopologyDisagrees"
_TOPOLOGY_PREFIXES: Final = (names.TOPOLOGY, names.OPERATIONS, names.DISTRIBUTION)
_LEGACY: Final = (("region", names.REGION), ("zone", names.ZONE))


@dataclass(frozen=True, slots=True)
class Projection:
    """Labels that the Node carries, projected and of identity, sorted by key, and their hash."""

    labels: Mapping[str, str]
    hash: str


@dataclass(frozen=True, slots=True)
class ProjectionProblem:
    """Why nothing can be projected: something is missing, or two places of the object contradict each other."""

    reason: str
    message: str

    @property
    def is_conflict(self) -> bool:
        return self.reason == LABELS_DISAGREE


def projected_labels(device: Device, policy: FleetPolicy) -> Projection | ProjectionProblem:
    """Identity labels, ordinary labels of the spec, and the metadata labels that the policy projects."""
    missing = [key for key in policy.required_keys if not device.labels.get(key)]
    if missing:
        return ProjectionProblem(LABELS_MISSING, f"the device lacks the label {', '.join(sorted(missing))}")
    identity = identity_labels(device.node_name)
    conflict = next(label_conflicts(device, identity), "")
    if conflict:
        return ProjectionProblem(LABELS_DISAGREE, conflict)
    labels = {**_ordinary(device), **{key: device.labels[key] for key in policy.projected_keys}, **identity}
    return Projection(sorted_map(labels), projection_hash(labels))


def projection_hash(labels: Mapping[str, str]) -> str:
    """Hash of a map of labels, whatever its order."""
    return digest_bytes(encoded(sorted_map(labels)))


def identity_labels(node_name: str) -> dict[str, str]:
    """What says that a Node is a device of ours."""
    return {
        names.HOSTNAME: node_name,
        names.PLATFORM: names.PLATFORM_XE,
        names.PROVIDER: names.PROVIDER_APPHOSTING,
        names.NODE_TYPE: names.TYPE_VIRTUAL,
    }


def _ordinary(device: Device) -> dict[str, str]:
    """Labels of the spec that are no topology: that of the spec is legacy, the metadata decides."""
    return {key: value for key, value in texts_at(device.spec, "labels").items() if not _is_topology(key)}


def _is_topology(key: str) -> bool:
    return key in (names.REGION, names.ZONE) or key.startswith(_TOPOLOGY_PREFIXES)


def label_conflicts(device: Device, identity: Mapping[str, str]) -> Iterator[str]:
    """Where the spec names labels or topology that the metadata, or the identity of the Node, names otherwise."""
    for member, key in _LEGACY:
        value = text_at(device.spec, member)
        if value and value != device.labels.get(key):
            yield f"spec.{member} is {value!r}, the label {key} is {device.labels.get(key, '')!r}"
    for key, value in texts_at(device.spec, "labels").items():
        if not is_qualified_name(key) or not is_label_value(value):
            yield f"spec.labels: {key[:128]!r} with the value {value[:64]!r} is no label"
            continue
        # What stands in neither place may be added by the spec, but never a topology of its own.
        ours = identity.get(key, device.labels.get(key, "" if _is_topology(key) else value))
        if ours != value:
            yield f"spec.labels has {key}={value}, which is {ours!r} elsewhere"

"""Differences between what a machine has and what it should have, and what each of them needs to take effect.

Pure.  Paths and classes are for people and statuses; values never are (cni-switch.md, sections 5.2 and 7.4).  What Talos takes without a
reboot is its own documentation of `apply-config`; a path that is not known to be safe is not safe.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gitops_ctl.api.talos_fields import PathClass
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, JsonValue
from gitops_ctl.talos.configdocuments import LEGACY, split_documents
from gitops_ctl.talos.machineconfig import DOCUMENT, kube_proxy_part

_MOST_PATHS: Final = 200
_LONGEST_PATH: Final = 512
_PLAIN_STEP: Final = re.compile(r"[\w/@-][\w/@-]*")

_CLASSES: Final[Mapping[str, PathClass]] = {
    "cluster.proxy": "kube-proxy",
    DOCUMENT: "kube-proxy",
    # Manifests that the control planes render, and facts that agents read when they change.
    "cluster.inlineManifests": "safe",
    "cluster.extraManifests": "safe",
    "cluster.extraManifestHeaders": "safe",
    "cluster.externalCloudProvider.manifests": "safe",
    "cluster.coreDNS": "safe",
    "cluster.discovery": "safe",
    "cluster.allowSchedulingOnControlPlanes": "safe",
    "cluster.adminKubeconfig": "safe",
    "machine.nodeLabels": "safe",
    "machine.nodeAnnotations": "safe",
    "machine.nodeTaints": "safe",
    "machine.sysctls": "safe",
    "machine.sysfs": "safe",
    "machine.logging": "safe",
    "machine.time": "safe",
    "machine.certSANs": "safe",
    "machine.acceptedCAs": "safe",
    "machine.features.kubernetesTalosAPIAccess": "safe",
    "debug": "safe",
    "KubeFlannelCNIConfig": "safe",
    "EventSinkConfig": "safe",
    "KmsgLogConfig": "safe",
    # Taken without a reboot, but never along with a switch: Cilium may look for the API server there.
    "machine.features.kubePrism": "unknown",
    "KubePrismConfig": "unknown",
    # Used while a machine is installed or upgraded.
    "machine.install": "install",
    "machine.disks": "install",
    # The API server is started anew with these.
    "cluster.apiServer": "api-server",
    "cluster.controlPlane": "api-server",
    "cluster.etcd": "api-server",
    "cluster.ca": "api-server",
    "cluster.acceptedCAs": "api-server",
    "cluster.aggregatorCA": "api-server",
    "cluster.serviceAccount": "api-server",
    "cluster.aescbcEncryptionSecret": "api-server",
    "cluster.secretboxEncryptionSecret": "api-server",
    "cluster.network.serviceSubnets": "api-server",
    "cluster.network.dnsDomain": "api-server",
    # Read at boot only.
    "machine.type": "reboot",
    "machine.token": "reboot",
    "machine.env": "reboot",
    "machine.files": "reboot",
    "machine.udev": "reboot",
    "machine.seccompProfiles": "reboot",
    "machine.baseRuntimeSpecOverrides": "reboot",
    "machine.systemDiskEncryption": "reboot",
    "machine.registries": "reboot",
    "machine.features.rbac": "reboot",
    "machine.features.stableHostname": "reboot",
    "machine.features.apidCheckExtKeyUsage": "reboot",
    "machine.features.diskQuotaSupport": "reboot",
}
_SINCE: Final[Mapping[str, tuple[int, int]]] = {
    DOCUMENT: (1, 14),
    "KubePrismConfig": (1, 14),
    "KubeFlannelCNIConfig": (1, 14),
}
"""First version of Talos that knows a document."""


@dataclass(frozen=True, slots=True)
class PendingPath:
    """One difference.  `path` is dotted, after the kind of its document unless that is the older one; `cls` as in section 7.4."""

    path: str
    cls: PathClass


def pending_paths(active: bytes, wanted: bytes, *, version: str = "") -> tuple[PendingPath, ...]:
    """What differs, sorted; at most 200.  `version` is the machine's Talos: documents that it does not know are `unsupported`.

    Raises:
        ConfigRefused: one of the two cannot be read.
    """
    before, after = _by_label(active), _by_label(wanted)
    paths = (
        path
        for label in sorted({*before, *after})
        for path in _differences(label, before.get(label, EMPTY), after.get(label, EMPTY))
    )
    found = sorted({path[:_LONGEST_PATH] for path in paths})
    return tuple(PendingPath(path, path_class(path, version=version)) for path in found[:_MOST_PATHS])


def path_class(path: str, *, version: str = "") -> PathClass:
    """What a change at `path` needs."""
    kind = re.split(r"[.\[]", path, maxsplit=1)[0]
    known = re.match(r"v?(\d+)\.(\d+)", version)
    if known is not None and kind in _SINCE and (int(known[1]), int(known[2])) < _SINCE[kind]:
        return "unsupported"
    prefix = path
    while prefix:
        if prefix in _CLASSES:
            return _CLASSES[prefix]
        shorter = max(prefix.rfind("."), prefix.rfind("["))
        prefix = prefix[:shorter] if shorter > 0 else ""
    return "unknown"


def is_kube_proxy_path(path: str) -> bool:
    """Whether a path belongs to the part that the switch itself changes."""
    return (
        re.split(r"[.\[]", path, maxsplit=1)[0] == DOCUMENT
        or path == "cluster.proxy"
        or path.startswith("cluster.proxy.")
    )


def redacted_diff(active: bytes, wanted: bytes) -> str:
    """What an apply would change, a line each: kube-proxy's flag and image before and after, of everything else the path only.

    Raises:
        ConfigRefused: one of the two cannot be read.
    """
    before, after = kube_proxy_part(active), kube_proxy_part(wanted)
    lines = [
        f"kube-proxy {what}: {old or 'none'} -> {new or 'none'}"
        for what, old, new in (
            ("form", before.form, after.form),
            ("mode", "enabled" if before.enabled else "disabled", "enabled" if after.enabled else "disabled"),
            ("image", before.image, after.image),
        )
        if old != new
    ]
    others = [one.path for one in pending_paths(active, wanted) if not is_kube_proxy_path(one.path)]
    return "\n".join([*lines, *(f"{path} changes" for path in others)])


def _by_label(text: bytes) -> Mapping[str, JsonObject]:
    """Documents by kind and name; several with the same label are told apart by their number."""
    found: dict[str, JsonObject] = {}
    for document in split_documents(text):
        label = document.label or "?"
        if document.tree or label != "?":
            number = sum(known == label or known.startswith(f"{label}#") for known in found)
            found[f"{label}#{number}" if number else label] = document.tree
    return found


def _differences(label: str, before: JsonObject, after: JsonObject) -> Iterator[str]:
    start = "" if label == LEGACY else label
    if start and not (before and after):
        yield start
        return
    yield from _below(start, before, after)


def _below(path: str, before: JsonValue, after: JsonValue) -> Iterator[str]:
    """Paths of the members that differ; of a member that only one side has, those below it."""
    sides = [side if isinstance(side, Mapping) else EMPTY for side in (before, after)]
    comparable = all(side is None or isinstance(side, Mapping) for side in (before, after))
    if comparable and any(sides):
        for key in sorted({*sides[0], *sides[1]}):
            yield from _below(_joined(path, key), sides[0].get(key), sides[1].get(key))
    elif type(before) is not type(after) or before != after:
        yield path


def _joined(path: str, step: str) -> str:
    shown = step if _PLAIN_STEP.fullmatch(step) else f'"{step}"'
    return f"{path}.{shown}" if path else shown

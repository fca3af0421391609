"""What the cluster roles of the device workers give, which the manager binds and does not write (rollouts.md, sections 17.1 and 18.3).

Pure.  A role that gives more than this, or that others may add to, is not bound: whoever widened it would widen every worker.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gitops_ctl.core.conditions import listed
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, objects_at

Rights = Mapping[tuple[str, str], frozenset[str]]
"""Verbs by API group and resource."""

_DEVICES: Final = ("cisco.vk", "ciscodevices")
_LEASES: Final = ("coordination.k8s.io", "leases")
_NODES: Final = ("", "nodes")
_GET: Final = frozenset({"get"})
_READ: Final = frozenset({"get", "list", "watch"})
_PATCH: Final = frozenset({"patch"})
_SEEN: Final[Rights] = MappingProxyType(
    {
        _DEVICES: _READ,
        ("cisco.vk", "ciscodevices/status"): _PATCH,
        ("ops.cisco.vk", "iosxesoftwarerollouts"): frozenset({"list", "watch"}),
        ("ops.cisco.vk", "iosxesoftwareupgrades"): _READ,
    }
)
WORKER_RIGHTS: Final[Mapping[str, Rights]] = MappingProxyType(
    {
        "app-hosting-read-only": {_NODES: _GET},
        "app-hosting-read-write": {_NODES: _GET, ("", "nodes/status"): _PATCH},
        "app-hosting-device-read": {_DEVICES: frozenset({"list", "watch"})},
        "network-management-global-read": {_NODES: _GET, ("", "pods"): frozenset({"list"})},
        "network-management-read-only": _SEEN,
        "network-management-read-write": {**_SEEN, ("ops.cisco.vk", "iosxesoftwareupgrades/status"): _PATCH},
        "network-management-lease-read-only": {_LEASES: frozenset({"get", "list"})},
        "network-management-lease-read-write": {_LEASES: frozenset({"get", "list", "patch"})},
    }
)
"""By name of the role without its prefix."""


def role_problem(live: JsonObject | None, name: str) -> str:
    """Why a cluster role is not the one of this release; empty when it is.

    Args:
        name: without its prefix.
    """
    if live is None:
        return "it is not there"
    if object_at(live, "aggregationRule"):
        return "it is put together from other roles"
    rules = objects_at(live, "rules")
    if any(rule.get(member) for rule in rules for member in ("resourceNames", "nonResourceURLs")):
        return "it has rules that are not those of this release"
    found: dict[tuple[str, str], set[str]] = {}
    for rule in rules:
        for group in list_at(rule, "apiGroups"):
            for resource in list_at(rule, "resources"):
                found.setdefault((str(group), str(resource)), set()).update(map(str, list_at(rule, "verbs")))
    wanted = WORKER_RIGHTS[name]
    more = [
        f"{verb} {resource}"
        for (group, resource), verbs in found.items()
        for verb in verbs - wanted.get((group, resource), frozenset())
    ]
    less = [
        f"{verb} {resource}"
        for key, verbs in wanted.items()
        for resource in key[1:]
        for verb in verbs - found.get(key, set())
    ]
    parts = [
        f"it {word} {listed(sorted(what), limit=5)}"
        for word, what in (("also gives", more), ("does not give", less))
        if what
    ]
    return "; ".join(parts)

"""Optional parts of a fleet policy, for tests of its bounds and its hashes."""

from gitops_ctl.fleet import names
from tests.support.fleet_objects import SITE

DRAIN = {
    "enabled": True,
    "allowedNamespaces": ["apps"],
    "maxTimeoutSeconds": 720,
    "maxPods": 4,
    "maxTerminationGraceSeconds": 600,
}


def by(key, value):
    return {"matchLabels": {key: value}}


def group(name="path-1", **changes):
    return {"name": name, "selector": by(SITE, "plant-1"), "maxConcurrentTransfers": 2, "maxUnavailable": 1, **changes}


def protection(name="core", **changes):
    return {"name": name, "reason": "CriticalService", "selector": by(SITE, "plant-1"), **changes}


def keys(count, prefix=names.TOPOLOGY):
    return [f"{prefix}k{number}" for number in range(count)]

"""Which topology level a workload may require (topology-scheduling.md, 11, D32)."""

from collections.abc import Iterable
from typing import Final

from gitops_ctl.scheduling.names import HOSTNAME, LONGEST_LABEL, is_label_key

REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
"""Annotation on every Pod of a replica group: the key of a level, never a value of it."""


def check_required_level(key: str) -> str:
    """Why a workload cannot require this level; empty when it can."""
    if not is_label_key(key):
        return "must be a label key such as topology.kubernetes.io/zone"
    if key == HOSTNAME:
        return f"{HOSTNAME} is the implicit last level and cannot be required"
    if len(key) > LONGEST_LABEL:
        return f"Kueue takes at most {LONGEST_LABEL} characters: the level is valid, and cannot be required"
    return ""


def unknown_level(key: str, topologies: Iterable[tuple[str, ...]]) -> str:
    """A warning when no flavor of the target queue has this level; `topologies` are the level keys of each of its flavors."""
    if any(key in levels for levels in topologies):
        return ""
    return f"no flavor of the queue has the level {key}: the workload would wait for ever"

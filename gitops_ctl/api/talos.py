"""The API group `ichor.maesh.dev`: Talos clusters, their machines, and what is done to them (cni-switch.md, section 3)."""

from gitops_ctl.api.model import Model, parse
from gitops_ctl.api.names import ICHOR_API_VERSION, ICHOR_GROUP
from gitops_ctl.api.talos_cluster import ClusterCni, ClusterCniStatus, Lock, Steering, TalosCluster, ValuesLocator
from gitops_ctl.api.talos_machine import MachineObservation, TalosConfigPatch, TalosMachine
from gitops_ctl.api.talos_observed import Observed
from gitops_ctl.api.talos_operation import WORKER_MEMBERS, TalosOperation, TalosOperationStatus
from gitops_ctl.core.jsonvalue import JsonObject

__all__ = [
    "ICHOR_API_VERSION",
    "ICHOR_GROUP",
    "TALOS_KINDS",
    "WORKER_MEMBERS",
    "ClusterCni",
    "ClusterCniStatus",
    "Lock",
    "MachineObservation",
    "Observed",
    "Steering",
    "TalosCluster",
    "TalosConfigPatch",
    "TalosMachine",
    "TalosOperation",
    "TalosOperationStatus",
    "ValuesLocator",
    "parse_talos_cluster",
    "parse_talos_config_patch",
    "parse_talos_machine",
    "parse_talos_operation",
]

TALOS_KINDS: tuple[type[Model], ...] = (TalosCluster, TalosMachine, TalosOperation, TalosConfigPatch)
"""Kinds of this group that the API server stores."""


def parse_talos_cluster(tree: JsonObject) -> TalosCluster:
    """The TalosCluster that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(TalosCluster, tree)


def parse_talos_machine(tree: JsonObject) -> TalosMachine:
    """The TalosMachine that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(TalosMachine, tree)


def parse_talos_operation(tree: JsonObject) -> TalosOperation:
    """The TalosOperation that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(TalosOperation, tree)


def parse_talos_config_patch(tree: JsonObject) -> TalosConfigPatch:
    """The TalosConfigPatch that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(TalosConfigPatch, tree)

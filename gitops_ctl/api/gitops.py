"""The API group `gitops-ctl.dev`: its kinds, and how a JSON tree becomes one of them."""

from gitops_ctl.api.fields import ConditionEntry, ObjectMeta
from gitops_ctl.api.git_source import (
    Accepted,
    FirstSeenTip,
    Forge,
    GitRef,
    GitSource,
    GitSourceSpec,
    GitSourceStatus,
    Limits,
    Observation,
    Proposer,
    Rejected,
    Reviewer,
    ReviewEvidence,
    Trust,
    TrustRoot,
)
from gitops_ctl.api.inventory import Inventory, InventoryEntry, InventoryOwner, InventorySpec
from gitops_ctl.api.model import Model, parse
from gitops_ctl.api.names import API_VERSION, GROUP, VERSION
from gitops_ctl.api.proposal import Change, Proposal, ProposalReview, ProposalSpec, ProposalStatus, Pushing, Subject
from gitops_ctl.api.sync import (
    Counts,
    DriftedObject,
    HealthCheck,
    HeldObject,
    InventoryRef,
    LastPrune,
    Prune,
    SourceRef,
    Sync,
    SyncSpec,
    SyncStatus,
)
from gitops_ctl.core.jsonvalue import JsonObject

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "VERSION",
    "Accepted",
    "Change",
    "ConditionEntry",
    "Counts",
    "DriftedObject",
    "FirstSeenTip",
    "Forge",
    "GitRef",
    "GitSource",
    "GitSourceSpec",
    "GitSourceStatus",
    "HealthCheck",
    "HeldObject",
    "Inventory",
    "InventoryEntry",
    "InventoryOwner",
    "InventoryRef",
    "InventorySpec",
    "LastPrune",
    "Limits",
    "ObjectMeta",
    "Observation",
    "Proposal",
    "ProposalReview",
    "ProposalSpec",
    "ProposalStatus",
    "Proposer",
    "Prune",
    "Pushing",
    "Rejected",
    "ReviewEvidence",
    "Reviewer",
    "SourceRef",
    "Subject",
    "Sync",
    "SyncSpec",
    "SyncStatus",
    "Trust",
    "TrustRoot",
    "parse_git_source",
    "parse_inventory",
    "parse_proposal",
    "parse_sync",
]

KINDS: tuple[type[Model], ...] = (GitSource, Sync, Inventory, Proposal)
"""Kinds that the API server stores."""


def parse_git_source(tree: JsonObject) -> GitSource:
    """The GitSource that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(GitSource, tree)


def parse_sync(tree: JsonObject) -> Sync:
    """The Sync that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(Sync, tree)


def parse_inventory(tree: JsonObject) -> Inventory:
    """The Inventory that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(Inventory, tree)


def parse_proposal(tree: JsonObject) -> Proposal:
    """The Proposal that `tree` holds.

    Raises:
        Refused: wrong fields; the message names each by its path.
    """
    return parse(Proposal, tree)

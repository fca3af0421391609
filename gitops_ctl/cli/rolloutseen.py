"""What `explain rollout` has read, and what it says: values that the pure part works on (rollouts.md, sections 11.2 and 11.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet.device import Device
from gitops_ctl.fleet.leaf import Leaf
from gitops_ctl.fleet.ledger import Ledger
from gitops_ctl.fleet.node import NodeSeen
from gitops_ctl.rollout.campaignstate import CampaignState, Control
from gitops_ctl.rollout.epochs import PolicySeen
from gitops_ctl.rollout.fleetlook import FleetLook
from gitops_ctl.rollout.freeze import history_is_lost
from gitops_ctl.rollout.sources import SourceSecret
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.validation import Facts


@dataclass(frozen=True, slots=True)
class Unmet:
    """A condition that does not hold yet.

    Attributes:
        reason: a word, that of the contract where it has one.
        message: what is missing, with its numbers.
        remedy: what a person can do; "" where only waiting helps.
    """

    reason: str
    message: str
    remedy: str = ""

    def to_json(self) -> JsonObject:
        """Empty members are left out."""
        tree = {"reason": self.reason, "message": self.message, "remedy": self.remedy}
        return {name: value for name, value in tree.items() if value}


@dataclass(frozen=True, slots=True)
class Hold:
    """A Sync keeps the document from the cluster."""

    sync: str
    reason: str
    message: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was read.

    Attributes:
        policy: what stands where the policy of the plan should be; None where it could not be read.
        devices: of the namespace, by UID.
        nodes: by name; None where they could not be read.
        secrets: source Secrets by name; None where they could not be read.
        pods: of each Node that was asked for, those that run there.
        ledger: None where it could not be read.
        hold: of the document, by its Sync; None when it is not held.
        accepted: revision that the source has accepted; "" where no source is known.
        requests: address of each open pull request by its purpose.
    """

    rollout: JsonObject
    now: datetime
    policy: PolicySeen | None = None
    devices: Mapping[str, Device] = field(default_factory=dict)
    nodes: Mapping[str, NodeSeen] | None = None
    leaves: tuple[Leaf, ...] = ()
    fleet: FleetLook | None = None
    secrets: Mapping[str, SourceSecret] | None = None
    pods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ledger: Ledger | None = None
    hold: Hold | None = None
    accepted: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)

    def leaf_of(self, campaign: CampaignState, target: Target) -> Leaf | None:
        """The leaf of this run."""
        found = (leaf for leaf in self.leaves if leaf.name == target.child_name)
        return next((leaf for leaf in found if leaf.binding.campaign_uid == campaign.uid), None)

    def facts(self, campaign: CampaignState, target: Target) -> Facts | None:
        """What an admission of the target would look at; None where a part of it could not be read."""
        if self.policy is None or self.nodes is None or self.secrets is None:
            return None
        device = self.devices.get(target.device_uid)
        return Facts(
            campaign=campaign,
            policy=self.policy,
            device=device,
            node=self.nodes.get(target.node_name),
            active_pods=self.pods.get(target.node_name, ()),
            leaves=self.leaves,
            secrets=self.secrets,
            fleet=self.fleet,
            history_lost=device is not None and history_is_lost(self.leaves, device),
            now=self.now,
        )


def unhindered(campaign: CampaignState) -> CampaignState:
    """The campaign as if nothing about it as a whole stood in the way: what is said about a target is then about the target."""
    free = Control(campaign.control.revision)
    return replace(campaign, approved=True, deleting=False, transition=None, control=free, live_control=free)

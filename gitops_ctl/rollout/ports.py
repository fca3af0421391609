"""What the steps of a campaign reach out to, and one uncached look at everything that a target depends on (rollouts.md, section 11.4)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from gitops_ctl.core.clock import Clock
from gitops_ctl.core.errors import Refused
from gitops_ctl.core.jsonvalue import JsonObject, text_at
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import policy_record
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.epochs import PolicySeen
from gitops_ctl.rollout.fleetlook import Ages, FleetLook
from gitops_ctl.rollout.freeze import history_is_lost
from gitops_ctl.rollout.leafplan import API_VERSION, leaf_path
from gitops_ctl.rollout.ledger_store import LedgerAt, LedgerSize, LedgerStore, config_map_path
from gitops_ctl.rollout.lock import DeviceLocks, device_path
from gitops_ctl.rollout.sources import SourceSecret
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.validation import Facts, active_pods

LookAtFleet = Callable[[FleetPolicy, Ages], FleetLook | None]
"""The fleet by the informers, for a policy and the limits of a campaign; None until they have seen everything."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Of one manager.

    Attributes:
        new_id: 32 lower-case hex characters, new at each call.
        fleet: see `LookAtFleet`.
        secrets: the source Secrets that the campaign names, by name: metadata and the keys `allowed*`, read live.
        ledger_size: of the ledger as it was seen last.
    """

    client: KubeClient
    clock: Clock
    new_id: Callable[[], str]
    fleet: LookAtFleet
    secrets: Callable[[CampaignState], Awaitable[Mapping[str, SourceSecret]]]
    ledger_size: LedgerSize = field(default_factory=LedgerSize)

    @property
    def locks(self) -> DeviceLocks:
        return DeviceLocks(self.client, clock=self.clock, new_id=self.new_id)

    def ledger(self, campaign: CampaignState) -> LedgerStore:
        """The ledger that the plan was frozen with."""
        frozen = campaign.frozen
        at = LedgerAt(frozen.ledger_namespace, frozen.ledger_name, frozen.ledger_uid)
        return LedgerStore(self.client, at, seen=self.ledger_size)

    async def campaign(self, begun: CampaignState) -> CampaignState | None:
        """The campaign as it stands now; None when it is gone, or another object has its name."""
        tree = await self.client.find(rollout_path(begun.namespace, begun.name))
        found = campaign_state(tree) if tree is not None else None
        return found if found is not None and found.uid == begun.uid else None

    async def policy(self, begun: CampaignState) -> PolicySeen:
        """What stands where the policy of the plan should be."""
        tree = await self.client.find(config_map_path(begun.frozen.namespace, begun.frozen.name))
        if tree is None:
            return PolicySeen("", None, "it is gone")
        try:
            return PolicySeen(text_at(tree, "metadata", "uid"), policy_record(tree))
        except Refused as error:
            return PolicySeen(text_at(tree, "metadata", "uid"), None, error.message)

    async def leaf(self, namespace: str, name: str) -> Leaf | None:
        """A leaf as it stands now."""
        tree = await self.client.find(leaf_path(namespace, name))
        return None if tree is None else leaf_of(tree)

    async def look(self, begun: CampaignState, target: Target) -> Facts:
        """Everything that the target depends on, read now; only the fleet is that of the informers."""
        campaign, policy = await self.campaign(begun), await self.policy(begun)
        device = await self.client.find(device_path(begun.namespace, target.device_name))
        node = await self.client.find(node_path(target.node_name))
        leaves = tuple(map(leaf_of, (await self.client.list_all(leaf_path(begun.namespace))).items))
        seen = None if device is None else device_of(device)
        return Facts(
            campaign=campaign,
            policy=policy,
            device=seen,
            node=None if node is None else node_of(node),
            active_pods=active_pods(await self._pods(target)),
            leaves=leaves,
            secrets=await self.secrets(begun),
            fleet=self._fleet(policy, begun),
            history_lost=seen is not None and history_is_lost(leaves, seen),
            now=self.clock.wall(),
        )

    def _fleet(self, policy: PolicySeen, begun: CampaignState) -> FleetLook | None:
        return None if policy.record is None else self.fleet(policy.record.policy, begun.ages(policy.record.policy))

    async def _pods(self, target: Target) -> list[JsonObject]:
        """The Pods that are bound to the Node of a target, in all namespaces."""
        found: list[JsonObject] = []
        async for page in self.client.list_pages("/api/v1/pods", field_selector=f"spec.nodeName={target.node_name}"):
            found.extend(page.items)
        return found


def node_path(name: str) -> str:
    """Where the API server has that Node."""
    return f"/api/v1/nodes/{quote(name)}"


def rollout_path(namespace: str, name: str) -> str:
    """Where the API server has that rollout."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/iosxesoftwarerollouts/{name}"

"""Keeps the Proposals of a rollout what they should be: asked for, brought up to date, taken back (rollouts.md, section 11.7).

Where the rollout stands in Git is read from the accepted revision.  While that is not known, nothing is asked for and nothing taken back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from gitops_ctl.api.names import GROUP, VERSION
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.documents.loader import Document
from gitops_ctl.documents.splice import SpliceRefused, documents_in
from gitops_ctl.fleet.device import Device, Preflight
from gitops_ctl.fleet.leaf import Leaf, leaf_of
from gitops_ctl.fleet.names import CAMPAIGN_UID
from gitops_ctl.forge.wanted import WantedProposal, asked_of, is_watched, proposal_tree, withdrawn
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.activation import PREPARE_ONLY
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.leafplan import leaf_path
from gitops_ctl.rollout.ledger_store import FIELD_MANAGER
from gitops_ctl.rollout.ports import rollout_path
from gitops_ctl.rollout.proposals import PURPOSES, Place, Seen, approval_due, proposal_name, wanted_proposals
from gitops_ctl.rollout.targets import Target
from gitops_ctl.trust.declared import Declared
from gitops_ctl.trust.provenance import AcceptedRevision

PROPOSAL: Final = Resource(GroupVersionKind(GROUP, VERSION, "Proposal"), "proposals", namespaced=True)
_ENDED: Final = frozenset({"Succeeded", "Cancelled"})

ReadFile = Callable[[AcceptedRevision, str], bytes]
"""The bytes of a file of a revision; called from a thread."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeskPorts:
    """What the desk reaches out to.

    Attributes:
        declared: what stands behind an object in Git.
        read_file: see `ReadFile`.
        device: a device as it was seen last; None when it is gone.
        stored: a Proposal as it was seen last.
        is_seen: whether all Proposals were seen.
    """

    client: KubeClient
    declared: Callable[[JsonObject], Awaitable[Declared]]
    read_file: ReadFile
    device: Callable[[NamespacedName], Device | None]
    stored: Callable[[NamespacedName], JsonObject | None]
    is_seen: Callable[[], bool]
    preflight_s: float


class ProposalDesk:
    """Looks after the Proposals of rollouts, one rollout at a time for each name."""

    def __init__(self, ports: DeskPorts) -> None:
        self._ports = ports
        self._places: dict[str, tuple[tuple[str, str], int | None]] = {}
        """UID of a rollout to (commit, file) and the place of its document there."""

    async def look_after(self, name: NamespacedName) -> float | None:
        """Ask for what is needed and take back what is not; seconds until the time alone changes it, None when nothing does."""
        if not self._ports.is_seen():
            return None
        tree = await self._ports.client.find(rollout_path(name.namespace, name.name))
        campaign = campaign_state(tree) if tree is not None else None
        if campaign is None:
            return None
        try:
            return await self._keep(campaign)
        except GitopsError as error:
            # A proposal is a convenience: the campaign never waits for it.
            log.info("proposals not looked after", rollout=str(name), code=error.code.label, error=error.message)
            return None

    async def _keep(self, campaign: CampaignState) -> float | None:
        place = await self._place(campaign)
        if place is None:
            return None
        seen = await self._seen(campaign)
        wanted = {one.name: one for one in wanted_proposals(seen, place)}
        for one in wanted.values():
            await self._ask(campaign, one)
        for purpose in PURPOSES:
            name = proposal_name(campaign, purpose, place)
            if name not in wanted:
                await self._take_back(campaign, NamespacedName(place.namespace, name))
        due = approval_due(seen)
        return max(0.0, (due - seen.now).total_seconds()) if due is not None and due > seen.now else None

    async def _seen(self, campaign: CampaignState) -> Seen:
        leaves: tuple[Leaf, ...] = ()
        if campaign.plan.strategy == PREPARE_ONLY and text_at(campaign.tree, "status", "phase") in _ENDED:
            listed = await self._ports.client.list_all(
                leaf_path(campaign.namespace), label_selector=f"{CAMPAIGN_UID}={campaign.uid}"
            )
            leaves = tuple(map(leaf_of, listed.items))
        now = self._ports.client.clock.wall()
        allowed = {
            target.device_name: report.image_source_allow
            for target in campaign.targets
            if (device := self._device(campaign, target)) is not None and (report := device.worker_report) is not None
        }
        return Seen(campaign, self._preflights(campaign), leaves, now, self._ports.preflight_s, allowed)

    def _device(self, campaign: CampaignState, target: Target) -> Device | None:
        return self._ports.device(NamespacedName(campaign.namespace, target.device_name))

    def _preflights(self, campaign: CampaignState) -> Mapping[str, Preflight]:
        """What the workers found out for this plan, by name of the device."""
        found: dict[str, Preflight] = {}
        for target in campaign.targets:
            device = self._device(campaign, target)
            preflight = device.preflight_of(campaign.uid) if device is not None else None
            if preflight is not None and preflight.plan_hash == campaign.plan_hash:
                found[target.device_name] = preflight
        return found

    async def _place(self, campaign: CampaignState) -> Place | None:
        """Where the rollout stands in the accepted revision; None while that cannot be said."""
        declared = await self._ports.declared(campaign.tree)
        document, revision = declared.document, declared.revision
        if document is None or revision is None:
            return None
        number = await self._number(campaign, document, revision)
        if number is None:
            return None
        return Place(
            namespace=revision.source.namespace,
            source=revision.source.name,
            file=document.file,
            document=number,
            base=document.base,
            spec=object_at(document.tree, "spec"),
        )

    async def _number(self, campaign: CampaignState, document: Document, revision: AcceptedRevision) -> int | None:
        at = (revision.commit, document.file)
        known = self._places.get(campaign.uid)
        if known is None or known[0] != at:
            data = await asyncio.to_thread(self._ports.read_file, revision, document.file)
            known = (at, document_number(data, document))
            self._places[campaign.uid] = known
        return known[1]

    async def _ask(self, campaign: CampaignState, wanted: WantedProposal) -> None:
        tree = proposal_tree(wanted, owner=_owner(campaign, wanted.namespace))
        stored = self._ports.stored(NamespacedName.of(tree))
        if stored is None or asked_of(stored) != tree:
            await self._ports.client.apply(
                PROPOSAL.path(wanted.namespace, wanted.name), tree, manager=FIELD_MANAGER, force=True
            )

    async def _take_back(self, campaign: CampaignState, key: NamespacedName) -> None:
        stored = self._ports.stored(key)
        ours = stored is not None and text_at(stored, "spec", "subject", "uid") == campaign.uid
        if stored is not None and ours and is_watched(stored):
            path = PROPOSAL.path(key.namespace, key.name)
            await self._ports.client.apply(path, withdrawn(stored), manager=FIELD_MANAGER, force=True)


def rollout_of(proposal: JsonObject) -> NamespacedName | None:
    """The rollout that a Proposal is for; None for one of somebody else."""
    subject = object_at(proposal, "spec", "subject")
    if text_at(proposal, "spec", "reason").partition("/")[0] not in PURPOSES:
        return None
    return NamespacedName(text_at(subject, "namespace"), text_at(subject, "name"))


def document_number(data: bytes, document: Document) -> int | None:
    """The place of a document among all of its file, from 0, empty ones included; None when the file cannot be edited."""
    try:
        documents = documents_in(data)
    except SpliceRefused:
        return None
    filled = [number for number, tree in enumerate(documents) if tree is not None]
    return filled[document.index - 1] if 0 < document.index <= len(filled) else None


def _owner(campaign: CampaignState, namespace: str) -> JsonObject | None:
    """The rollout as the owner of its Proposal, which then goes with it; only inside one namespace."""
    if namespace != campaign.namespace:
        return None
    return {
        "apiVersion": text_at(campaign.tree, "apiVersion"),
        "kind": text_at(campaign.tree, "kind"),
        "name": campaign.name,
        "uid": campaign.uid,
    }

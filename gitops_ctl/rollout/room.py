"""The running rollout room: which change wakes which campaign, and the ports of its controller (rollouts.md, sections 9.1, 11.8 and 13.8).

A campaign is looked at when it, a leaf, a device or a Node of it, a source Secret, the fleet policy or the accepted revision changes.  Devices
and Nodes are those of the room that looks after them.  While there is no rollout, one kind is watched and nothing else happens.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import Device
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.events import Emit, silent
from gitops_ctl.kube.informer import Informer, Timing, running
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.rollout.bootstrap import BoundPolicy, bind
from gitops_ctl.rollout.campaignstate import CampaignState
from gitops_ctl.rollout.controller import Intervals, RolloutController, RolloutPorts
from gitops_ctl.rollout.gitauthority import GitAuthority, Withdrawn
from gitops_ctl.rollout.inventory import FleetBook, Inventory
from gitops_ctl.rollout.planning import PlanningPorts
from gitops_ctl.rollout.ports import Ports
from gitops_ctl.rollout.proposaldesk import PROPOSAL, DeskPorts, ProposalDesk, ReadFile, rollout_of
from gitops_ctl.rollout.sources import SourceSecret, is_source_secret, source_secret_of
from gitops_ctl.rollout.watched import SeenRollout, campaign_of_leaf, secrets_of, seen_rollout
from gitops_ctl.trust.declared import DeclaredReader, Read
from gitops_ctl.trust.provenance import AcceptedRevisions

ROLLOUT: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.ROLLOUT_KIND), "iosxesoftwarerollouts", namespaced=True
)
LEAF: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.LEAF_KIND), "iosxesoftwareupgrades", namespaced=True
)
BY_DEVICE: Final = "device"
BY_SECRET: Final = "named secret"  # noqa: S105  an index


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the manager may choose.

    Attributes:
        namespace, policy: the ConfigMap with the fleet policy.
        intervals: latest times of the next look (11.8).
        evidence_s: seconds in which evidence of several devices wakes a campaign once.
        require: raises when the manager may not write: it may not lead any more, or the reference leads.
        new_id: 32 lower-case hex characters, new at each call.
    """

    namespace: str
    policy: str
    workers: int = 4
    intervals: Intervals = field(default_factory=Intervals)
    evidence_s: float = 1.0
    emit: Emit = silent
    require: Callable[[], None] = lambda: None
    new_id: Callable[[], str] = lambda: secrets.token_hex(16)
    timing: Timing | None = None
    pace: Pace = field(default_factory=lambda: Pace(blocked_s=15.0))


class RolloutRoom:
    """Carries out the software rollouts of a cluster until `stop`."""

    def __init__(  # noqa: PLR0913  what it reaches out to
        self,
        client: KubeClient,
        *,
        revisions: AcceptedRevisions,
        read: Read,
        read_file: ReadFile,
        inventory: Inventory,
        options: Options,
        withdrawn: Withdrawn | None = None,
    ) -> None:
        """`read` gives the documents of a revision below a folder, `read_file` the bytes of a file, both from any thread."""
        self._client, self._options = client, options
        self.rollouts: Informer[SeenRollout] = Informer(client, ROLLOUT, trim=seen_rollout, timing=options.timing)
        self.rollouts.cache.add_index(BY_DEVICE, _devices_of)
        self.rollouts.cache.add_index(BY_SECRET, _secrets_of)
        self.leaves: Informer[NamespacedName] = Informer(
            client, LEAF, trim=campaign_of_leaf, selector=names.CAMPAIGN_UID, timing=options.timing
        )
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=options.workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        self.queue: AsyncQueue[NamespacedName] = AsyncQueue(queue, clock=client.clock)
        self.book = FleetBook(inventory, clock=client.clock, learned=self._wake_open)
        declared = DeclaredReader(client, revisions=revisions, read=read)
        authority = GitAuthority(declared, withdrawn=withdrawn)
        self.controller = RolloutController(
            RolloutPorts(
                steps=self._steps(),
                planning=self._planning(),
                authority=authority.of,
                emit=options.emit,
                require=options.require,
                intervals=options.intervals,
            )
        )
        self.proposals: Informer[JsonObject] = Informer(client, PROPOSAL, trim=without_managers, timing=options.timing)
        self.desk = ProposalDesk(self._desk_ports(declared, read_file, inventory))
        self._needed = asyncio.Event()
        self.rollouts.add_handler(self._rollout_changed, rescue=self.queue.add)
        self.leaves.add_handler(self._leaf_changed)
        self.proposals.add_handler(self._proposal_changed)
        inventory.subscribe(
            device=self._device_changed,
            evidence=self._evidence_changed,
            secret=self._secret_changed,
            policy=self._wake_open,
        )
        revisions.subscribe(self._accepted)

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        work = Controller(
            "iosxesoftwarerollout",
            self.queue,
            self._look,
            workers=self._options.workers,
            pace=self._options.pace,
        )
        watching = asyncio.create_task(self._watch_more(), name="rollout leaves")
        try:
            await work.run_over(self.rollouts)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self.book.close()

    def stop(self) -> None:
        """Begin no further pass."""
        self.queue.close()

    async def _look(self, key: NamespacedName) -> float | None:
        """One step of a campaign, and what it asks of Git."""
        step_s = await self.controller.reconcile(key)
        if step_s == 0.0:
            return step_s
        due_s = await self.desk.look_after(key)
        known = [one for one in (step_s, due_s) if one is not None]
        return min(known, default=None)

    async def _watch_more(self) -> None:
        """Once there is a rollout, or a leaf that one has left behind, leaves and Proposals are watched until the end."""
        await self.rollouts.settled.wait()
        if not self.rollouts.cache and not await self._has_leaves():
            await self._needed.wait()
        async with running(self.leaves, self.proposals):
            await self.proposals.synced.wait()
            self._wake(self.rollouts.cache)
            await asyncio.Event().wait()

    async def _has_leaves(self) -> bool:
        """Whether there is any leaf; when nobody can say, there may be one."""
        try:
            async for page in self._client.list_pages(LEAF.path()):
                return bool(page.items)
        except GitopsError:
            return True
        return False

    # ---- ports ----

    def _steps(self) -> Ports:
        async def secrets_by(campaign: CampaignState) -> Mapping[str, SourceSecret]:
            return await self.source_secrets(campaign.tree)

        return Ports(
            client=self._client,
            clock=self._client.clock,
            new_id=self._options.new_id,
            fleet=self.book.look,
            secrets=secrets_by,
        )

    def _planning(self) -> PlanningPorts:
        async def policy() -> BoundPolicy:
            return await bind(self._client, namespace=self._options.namespace, name=self._options.policy)

        return PlanningPorts(self._client, self._client.clock, policy, self.book.for_planning, self.source_secrets)

    def _desk_ports(self, declared: DeclaredReader, read_file: ReadFile, inventory: Inventory) -> DeskPorts:
        def device(key: NamespacedName) -> Device | None:
            found = inventory.read(key)
            return found[0] if found is not None else None

        return DeskPorts(
            client=self._client,
            declared=declared.of,
            read_file=read_file,
            device=device,
            stored=self.proposals.cache.get,
            is_seen=lambda: self.proposals.usable,
            preflight_s=self._options.intervals.preflight_s,
        )

    async def source_secrets(self, rollout: JsonObject) -> Mapping[str, SourceSecret]:
        """The Secrets that the image sources of a rollout name, read live: metadata and what they allow as an endpoint.

        A plan may name any Secret of the namespace: no value is asked for before the label says that it is one of image sources.  Every
        other value of such a one is dropped as it came, undecoded; nothing of it is kept, logged or written.
        """
        found: dict[str, SourceSecret] = {}
        namespace = NamespacedName.of(rollout).namespace
        for name in secrets_of(rollout):
            path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
            tree = await self._client.find(path, metadata_only=True)
            if tree is not None and is_source_secret(tree):
                tree = await self._client.find(path)
            if tree is not None:
                found[name] = source_secret_of(tree)
        return found

    # ---- what wakes what ----

    def _rollout_changed(self, change: Change[SeenRollout]) -> None:
        self._needed.set()
        self.queue.add(change.key)
        if not self.rollouts.cache:
            self.book.forget()

    def _leaf_changed(self, change: Change[NamespacedName]) -> None:
        for campaign in {value for value in change.values if value is not None}:
            self.queue.add(campaign)

    def _proposal_changed(self, change: Change[JsonObject]) -> None:
        for tree in (one for one in change.values if one is not None):
            rollout = rollout_of(tree)
            if rollout is not None:
                self.queue.add(rollout)

    def _device_changed(self, key: NamespacedName) -> None:
        """Those that it is a target of, and those that may select it."""
        named = self.rollouts.cache.by_index(BY_DEVICE, str(key))
        planned_anew = self.rollouts.cache.by_index(BY_DEVICE, key.namespace)
        for campaign in (*named, *planned_anew):
            self.queue.add(campaign)

    def _evidence_changed(self, key: NamespacedName) -> None:
        """Those that wait for the health of a target, at most once in a while: a campaign may have a hundred of them."""
        for campaign in self.rollouts.cache.by_index(BY_DEVICE, str(key)):
            seen = self.rollouts.cache.get(campaign)
            if seen is not None and seen.is_moving:
                self.queue.add_after(campaign, self._options.evidence_s)

    def _secret_changed(self, key: NamespacedName) -> None:
        for campaign in self.rollouts.cache.by_index(BY_SECRET, str(key)):
            self.queue.add(campaign)

    def _wake_open(self) -> None:
        self._wake(key for key, seen in self.rollouts.cache.items() if not seen.is_ended)

    def _accepted(self, source: NamespacedName) -> None:
        self._wake(key for key, seen in self.rollouts.cache.items() if seen.source == source)

    def _wake(self, keys: Iterable[NamespacedName]) -> None:
        for key in list(keys):
            self.queue.add(key)


def _devices_of(key: NamespacedName, seen: SeenRollout) -> Iterable[str]:
    """The targets of a campaign; the whole namespace before they are frozen."""
    if seen.is_ended:
        return ()
    return (f"{key.namespace}/{name}" for name in seen.devices) if seen.is_planned else (key.namespace,)


def _secrets_of(key: NamespacedName, seen: SeenRollout) -> Iterable[str]:
    return () if seen.is_ended else (f"{key.namespace}/{name}" for name in seen.secrets)

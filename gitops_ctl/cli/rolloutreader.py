"""Reads everything that a rollout depends on, for `explain rollout`; with the user's own rights (rollouts.md, section 11.4)."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from gitops_ctl.api.names import ANNOTATION_OWNER_ID, GROUP, VERSION
from gitops_ctl.cli.kinds import GIT_SOURCE, SYNC
from gitops_ctl.cli.rolloutseen import Hold, Seen
from gitops_ctl.cli.rolloutworld import DEVICES, Looking
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.conditions import listed
from gitops_ctl.core.errors import BlockedError, Forbidden, NotFound, Refused
from gitops_ctl.core.ids import ObjectId
from gitops_ctl.core.jsonvalue import EMPTY, JsonObject, int_at, object_at, objects_at, text_at
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.leaf import leaf_of
from gitops_ctl.fleet.ledger import Ledger, decode_ledger
from gitops_ctl.fleet.names import LEDGER_KEY, OPERATIONS_GROUP, ROLLOUT_KIND
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.rollout.bootstrap import policy_record
from gitops_ctl.rollout.campaignstate import CampaignState, campaign_state
from gitops_ctl.rollout.epochs import PolicySeen
from gitops_ctl.rollout.fleetlook import FleetLook, FleetMemo
from gitops_ctl.rollout.ledger_store import config_map_path
from gitops_ctl.rollout.sources import SourceSecret
from gitops_ctl.rollout.targets import Target
from gitops_ctl.rollout.validation import active_pods

if TYPE_CHECKING:
    from gitops_ctl.kube.transport import KubeClient

T = TypeVar("T")
_API: Final = f"/apis/{OPERATIONS_GROUP}/v1alpha1"
_AT_ONCE: Final = 8
"""Requests for Pods at a time."""


class RolloutReader:
    """One look.

    Attributes:
        unseen: what could not be read, in words; known once `read` is through.
    """

    def __init__(self, client: "KubeClient") -> None:
        self._client = client
        self._unseen: dict[str, None] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)

    @property
    def unseen(self) -> tuple[str, ...]:
        return tuple(self._unseen)

    async def read(self, namespace: str, name: str) -> Seen:
        """The rollout and what it depends on.

        Raises:
            NotFound: there is no such rollout, neither in the cluster nor held by a Sync.
            Refused: several namespaces have one of this name.
        """
        tree = await self._rollout(namespace, name)
        hold, accepted = await self._declared(tree, namespace, name)
        if not tree:
            return self._absent(namespace, name, hold, accepted)
        place, campaign = text_at(tree, "metadata", "namespace"), campaign_state(tree)
        devices = tuple(map(device_of, await self._devices(place)))
        nodes = await self._if_allowed("the Nodes", self._nodes())
        policy = await self._policy(campaign, place)
        leaves = await self._list(f"{_API}/namespaces/{place}/iosxesoftwareupgrades")
        return Seen(
            rollout=tree,
            now=self._client.clock.wall(),
            policy=policy,
            devices={one.uid: one for one in devices if one.namespace == place},
            nodes=nodes,
            leaves=tuple(map(leaf_of, leaves)),
            fleet=self._fleet(devices, nodes, policy, campaign),
            secrets=await self._secrets(tree, place),
            pods=await self._pods(campaign, {text_at(leaf, "metadata", "name") for leaf in leaves}),
            ledger=None if campaign is None else await self._if_allowed("the ledger", self._ledger(campaign)),
            hold=hold,
            accepted=accepted,
            requests=await self._if_allowed("the proposals", self._requests()) or {},
        )

    def _absent(self, namespace: str, name: str, hold: Hold | None, accepted: str) -> Seen:
        if hold is None:
            where = f"in namespace {namespace}" if namespace else "in any namespace"
            hint = "see `gitops-ctl status`, or name its namespace with --namespace"
            raise NotFound(f"there is no rollout {name} {where}, and no Sync holds one", subject=name, hint=hint)
        tree: JsonObject = {"metadata": {"name": name, "namespace": namespace}}
        return Seen(tree, self._client.clock.wall(), hold=hold, accepted=accepted)

    async def _rollout(self, namespace: str, name: str) -> JsonObject:
        if namespace:
            return await self._client.find(f"{_API}/namespaces/{namespace}/iosxesoftwarerollouts/{name}") or EMPTY
        every = await self._list(f"{_API}/iosxesoftwarerollouts")
        found = [tree for tree in every if text_at(tree, "metadata", "name") == name]
        if len(found) > 1:
            where = listed([text_at(tree, "metadata", "namespace") for tree in found])
            message, hint = f"there are several rollouts {name}: in {where}", "name one with --namespace"
            raise Refused(message, code=ErrorCode.USAGE, subject=name, hint=hint)
        return found[0] if found else EMPTY

    # ---- Git ----

    async def _declared(self, tree: JsonObject, namespace: str, name: str) -> tuple[Hold | None, str]:
        """The Sync that holds the document, and what the source of its Sync has accepted."""
        wanted = ObjectId(OPERATIONS_GROUP, ROLLOUT_KIND, text_at(tree, "metadata", "namespace") or namespace, name)
        for sync in await self._if_allowed("the Syncs", self._list(SYNC.path())) or ():
            for held in objects_at(sync, "status", "held"):
                if _is_of(text_at(held, "object"), wanted):
                    return _hold(sync, held), await self._accepted(sync)
        owner = text_at(tree, "metadata", "annotations", ANNOTATION_OWNER_ID).partition(":")[0].split("/")
        if len(owner) != len(("cluster", "namespace", "source", "sync")):
            return None, ""
        source = await self._if_allowed("the source", self._client.find(GIT_SOURCE.path(owner[1], owner[2])))
        return None, text_at(source or EMPTY, "status", "accepted", "revision")

    async def _accepted(self, sync: JsonObject) -> str:
        path = GIT_SOURCE.path(text_at(sync, "metadata", "namespace"), text_at(sync, "spec", "sourceRef", "name"))
        source = await self._if_allowed("the source", self._client.find(path))
        return text_at(source or EMPTY, "status", "accepted", "revision")

    async def _requests(self) -> Mapping[str, str]:
        """Address of each open pull request by its purpose."""
        found = await self._list(f"/apis/{GROUP}/{VERSION}/proposals")
        open_ones = (tree for tree in found if text_at(tree, "status", "phase") == "Open")
        return {text_at(tree, "spec", "reason"): text_at(tree, "status", "url") for tree in open_ones}

    # ---- the fleet ----

    async def _devices(self, namespace: str) -> tuple[JsonObject, ...]:
        everywhere = await self._if_allowed("the devices of other namespaces", self._list(f"{DEVICES}/ciscodevices"))
        if everywhere is not None:
            return everywhere
        return await self._list(f"{DEVICES}/namespaces/{namespace}/ciscodevices")

    async def _nodes(self) -> Mapping[str, NodeSeen]:
        return {one.name: one for one in map(node_of, await self._list("/api/v1/nodes"))}

    def _fleet(
        self,
        devices: tuple[Device, ...],
        nodes: Mapping[str, NodeSeen] | None,
        policy: PolicySeen | None,
        campaign: CampaignState | None,
    ) -> FleetLook | None:
        if nodes is None or policy is None or policy.record is None:
            return None
        ages = campaign.ages(policy.record.policy) if campaign is not None else None
        now = self._client.clock.wall()
        return FleetMemo().look(devices, nodes, policy=policy.record.policy, now=now, ages=ages)

    async def _policy(self, campaign: CampaignState | None, namespace: str) -> PolicySeen | None:
        """That of the frozen plan by its name, or the one that a plan would be frozen with."""
        if campaign is None:
            try:
                found = await self._if_allowed("the fleet policy", Looking(self._client, namespace).find_policy(""))
            except (Refused, NotFound) as error:
                return PolicySeen("", None, error.message)
            return None if found is None else _policy_seen(found)
        path = config_map_path(campaign.frozen.namespace, campaign.frozen.name)
        what = "the fleet policy"
        found = await self._if_allowed(what, self._client.find(path))
        if found is None:
            return None if what in self._unseen else PolicySeen("", None, "it is gone")
        return _policy_seen(found)

    async def _secrets(self, tree: JsonObject, namespace: str) -> Mapping[str, SourceSecret] | None:
        found = await Looking(self._client, namespace).source_secrets(tree)
        if found is None:
            self._unseen["the Secrets of the image sources"] = None
        return found

    async def _ledger(self, campaign: CampaignState) -> Ledger | None:
        frozen = campaign.frozen
        tree = await self._client.find(config_map_path(frozen.ledger_namespace, frozen.ledger_name))
        if tree is None:
            return None
        return decode_ledger(text_at(object_at(tree, "data"), LEDGER_KEY), frozen.ledger_uid)

    async def _pods(self, campaign: CampaignState | None, leaves: set[str]) -> Mapping[str, tuple[str, ...]]:
        """Pods that run on the Nodes of targets which have no leaf yet."""
        if campaign is None:
            return {}
        waiting = [target for target in campaign.targets if target.child_name not in leaves]
        found = await self._if_allowed("the Pods", self._on(waiting))
        return found or {}

    async def _on(self, targets: list[Target]) -> Mapping[str, tuple[str, ...]]:
        return dict(await asyncio.gather(*(self._on_node(target.node_name) for target in targets)))

    async def _on_node(self, name: str) -> tuple[str, tuple[str, ...]]:
        async with self._gate:
            found: list[JsonObject] = []
            async for page in self._client.list_pages("/api/v1/pods", field_selector=f"spec.nodeName={name}"):
                found.extend(page.items)
            return name, active_pods(found)

    # ---- rights ----

    async def _list(self, path: str) -> tuple[JsonObject, ...]:
        return tuple((await self._client.list_all(path)).items)

    async def _if_allowed(self, what: str, asked: Awaitable[T]) -> T | None:
        """The answer; None, and a note, where the user may not see it or the kind is not served."""
        try:
            return await asked
        except Forbidden:
            self._unseen[what] = None
            return None
        except BlockedError as error:
            if error.code not in (ErrorCode.KIND_NOT_SERVED, ErrorCode.NOT_FOUND):
                raise
            return None


def _policy_seen(tree: JsonObject) -> PolicySeen:
    uid = text_at(tree, "metadata", "uid")
    try:
        return PolicySeen(uid, policy_record(tree))
    except Refused as error:
        return PolicySeen(uid, None, error.message)


def _is_of(text: str, wanted: ObjectId) -> bool:
    try:
        found = ObjectId.parse(text)
    except ValueError:
        return False
    same = (found.group, found.kind, found.name) == (wanted.group, wanted.kind, wanted.name)
    return same and wanted.namespace in ("", found.namespace)


def _hold(sync: JsonObject, held: JsonObject) -> Hold:
    meta = object_at(sync, "metadata")
    place = f"{text_at(held, 'file')}:{int_at(held, 'line')}" if text_at(held, "file") else ""
    name = f"Sync {text_at(meta, 'namespace')}/{text_at(meta, 'name')}"
    return Hold(name, text_at(held, "reason"), text_at(held, "message"), place)

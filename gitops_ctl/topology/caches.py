"""What the topology room watches, and what of it is kept (rollouts.md, sections 2.5, 15, 16 and 17.2).

At rest, without a fleet policy or without devices, two kinds are watched and nothing else.  Secrets are seen by their metadata only, in the
namespaces of devices only.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.ids import GroupVersionKind, NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_key
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.mapper import Resource
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.topology.evidence_plan import Campaign, campaign_of
from gitops_ctl.topology.identity_plan import Claim
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.seen import (
    SeenDevice,
    SeenLeaf,
    SeenLease,
    SeenNode,
    Versions,
    seen_device,
    seen_leaf,
    seen_lease,
    seen_node,
)
from gitops_ctl.topology.workers_plan import ACCOUNT, DEPLOYMENT, OWNED

DEVICE: Final = Resource(GroupVersionKind(names.GROUP, "v1alpha1", names.DEVICE_KIND), "ciscodevices", namespaced=True)
ROLLOUT: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.ROLLOUT_KIND), "iosxesoftwarerollouts", namespaced=True
)
LEAF: Final = Resource(
    GroupVersionKind(names.OPERATIONS_GROUP, "v1alpha1", names.LEAF_KIND), "iosxesoftwareupgrades", namespaced=True
)
NODE: Final = Resource(GroupVersionKind("", "v1", "Node"), "nodes", namespaced=False)
CONFIG_MAP: Final = Resource(GroupVersionKind("", "v1", "ConfigMap"), "configmaps", namespaced=True)
SECRET: Final = Resource(GroupVersionKind("", "v1", "Secret"), "secrets", namespaced=True)
POD: Final = Resource(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
LEASE: Final = Resource(GroupVersionKind("coordination.k8s.io", "v1", "Lease"), "leases", namespaced=True)

BY_CLAIM: Final = "claim"
BY_DEVICE: Final = "device"
BY_SECRET: Final = "named secret"  # noqa: S105  an index
_OWNED: Final = ",".join(f"{key}={value}" for key, value in OWNED.items())


class Caches:
    """One informer for each kind, and one for the Secrets of each namespace with devices."""

    def __init__(self, client: KubeClient, *, options: Options, timing: Timing | None = None) -> None:
        self._client, self._timing = client, timing

        def whole(resource: Resource, selector: str | None = None, namespace: str = "") -> Informer[JsonObject]:
            return Informer(
                client, resource, trim=without_managers, selector=selector, namespace=namespace, timing=timing
            )

        self.policies = whole(CONFIG_MAP, f"{names.COMPONENT}={names.COMPONENT_POLICY}", options.namespace)
        self.devices: Informer[SeenDevice] = Informer(client, DEVICE, trim=seen_device, timing=timing)
        self.devices.cache.add_index(BY_CLAIM, lambda _key, device: _index_of(device.claim))
        self.devices.cache.add_index(BY_SECRET, lambda key, device: [f"{key.namespace}/{n}" for n in device.secrets])
        virtual = f"{names.NODE_TYPE}={names.TYPE_VIRTUAL}"
        self.nodes: Informer[SeenNode] = Informer(client, NODE, trim=seen_node, selector=virtual, timing=timing)
        self.leases: Informer[SeenLease] = Informer(
            client, LEASE, trim=seen_lease, selector=names.LEASE_DEVICE, timing=timing
        )
        self.leases.cache.add_index(BY_DEVICE, lambda _key, lease: [lease.key])
        self.pods = whole(POD, _OWNED)
        self.deployments = whole(DEPLOYMENT, _OWNED)
        self.accounts: Informer[None] = Informer(
            client, ACCOUNT, trim=lambda _tree: None, selector=_OWNED, timing=timing, metadata_only=True
        )
        self.campaigns: Informer[Campaign | None] = Informer(client, ROLLOUT, trim=campaign_of, timing=timing)
        self.leaves: Informer[SeenLeaf] = Informer(client, LEAF, trim=seen_leaf, timing=timing)
        self.leaves.cache.add_index(BY_DEVICE, lambda _key, leaf: [str(leaf.device)])
        self.secrets: dict[str, Informer[str]] = {}
        self._secret_handlers: list[Callable[[Change[str]], None]] = []

    @property
    def inventory(self) -> tuple[Informer[Any], ...]:
        """What is watched once there are a policy and a device."""
        return (
            *(self.nodes, self.leases, self.pods, self.deployments, self.accounts),
            *(self.campaigns, self.leaves),
        )

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do: devices and a policy, or devices that only go with our help."""
        if self.policies.cache:
            return bool(self.devices.cache)
        return any(device.is_ours for _, device in self.devices.cache.items())

    def device(self, key: NamespacedName) -> JsonObject | None:
        """A device as it was seen last."""
        found = self.devices.cache.get(key)
        return found.tree() if found is not None else None

    def node(self, name: str) -> JsonObject | None:
        """A virtual Node as it was seen last."""
        found = self.nodes.cache.get(NamespacedName("", name))
        return found.tree() if found is not None else None

    @property
    def usable(self) -> bool:
        """Whether everything but Secrets is seen as a whole: only then may anything be concluded."""
        needed: tuple[Informer[Any], ...] = (self.policies, self.devices, *self.inventory)
        return all(informer.usable for informer in needed)

    def secrets_of(self, namespace: str) -> Informer[str]:
        """The informer of a namespace's Secrets, made when it is asked for first: it keeps their resourceVersions."""
        if namespace not in self.secrets:
            self.secrets[namespace] = Informer(
                self._client, SECRET, trim=_version, namespace=namespace, timing=self._timing, metadata_only=True
            )
            for handler in self._secret_handlers:
                self.secrets[namespace].add_handler(handler)
        return self.secrets[namespace]

    def hear_of_secrets(self, handler: Callable[[Change[str]], None]) -> None:
        """Call `handler` for each change of a Secret's metadata in a namespace with devices, now and later."""
        self._secret_handlers.append(handler)
        for informer in self.secrets.values():
            informer.add_handler(handler)

    def versions(self, namespace: str) -> Mapping[str, str] | None:
        """The resourceVersion of each Secret of a namespace by name; None when they are not all seen."""
        informer = self.secrets.get(namespace)
        if informer is None or not informer.usable:
            return None
        return Versions(namespace, informer.cache)

    def users_of(self, secret: NamespacedName) -> Iterable[NamespacedName]:
        """Keys of the devices that name a Secret."""
        return self.devices.cache.by_index(BY_SECRET, str(secret))

    def rivals(self, claim: Claim) -> Iterable[Claim]:
        """Claims of the devices that want the same chassis or the same Node, its own among them."""
        found = (self.devices.cache.get(key) for key in self.rival_keys(claim))
        return [device.claim for device in found if device is not None]

    def rival_keys(self, claim: Claim) -> Iterable[NamespacedName]:
        """Keys of the devices that want the same chassis or the same Node."""
        return {key for value in _index_of(claim) for key in self.devices.cache.by_index(BY_CLAIM, value)}

    def source_secrets(self, namespace: str) -> frozenset[str]:
        """Secrets that image sources of campaigns in the namespace name."""
        return frozenset(
            name
            for key, campaign in self.campaigns.cache.items()
            if key.namespace == namespace and campaign is not None
            for name in campaign.secrets
        )

    def is_device(self, key: NamespacedName, uid: str) -> bool:
        """Whether the device of that name exists and has that UID."""
        entry = self.devices.cache.entry(key)
        return entry is not None and entry.uid == uid

    def devices_of_node(self, name: str) -> Iterable[NamespacedName]:
        """Keys of the devices that want the Node of that name."""
        return self.devices.cache.by_index(BY_CLAIM, f"node {name}")

    def leases_of(self, device: NamespacedName, *, purpose: str) -> list[SeenLease]:
        """The device's Leases for a purpose, by name."""
        keys = sorted(self.leases.cache.by_index(BY_DEVICE, device_key(device.namespace, device.name)))
        found = (self.leases.cache.get(key) for key in keys)
        return [lease for lease in found if lease is not None and lease.purpose == purpose]

    def pods_of(self, namespace: str, labels: Mapping[str, object]) -> tuple[JsonObject, ...]:
        """Pods of a namespace with all of these labels."""
        return tuple(
            tree
            for key, tree in sorted(self.pods.cache.items())
            if key.namespace == namespace and labels.items() <= dict(object_at(tree, "metadata", "labels")).items()
        )

    def asked(self) -> list[Campaign]:
        """What the campaigns that are under way ask of evidence."""
        return [campaign for _, campaign in self.campaigns.cache.items() if campaign is not None]


def _version(tree: JsonObject) -> str:
    return text_at(tree, "metadata", "resourceVersion")


def _index_of(claim: Claim) -> tuple[str, ...]:
    chassis = (f"chassis {claim.identity}",) if claim.identity else ()
    return (f"node {claim.node_name}", *chassis)


class Sight:
    """Runs the informers that are needed; what was needed once is watched until the end."""

    def __init__(
        self, caches: Caches, *, changed: Callable[[], None], connect: Callable[[str, Informer[str]], None]
    ) -> None:
        """`changed` is called when everything can be seen that could not be before; `connect` gets new informers of Secrets."""
        self._caches, self._changed, self._connect = caches, changed, connect
        self._running: dict[Informer[Any], asyncio.Task[None]] = {}
        self._stirred = asyncio.Event()
        for informer in (caches.policies, caches.devices):
            informer.add_handler(self._stir)

    def _stir(self, change: Change[Any]) -> None:
        if change.kind != "modified":
            self._stirred.set()

    async def run(self) -> None:
        """Start what is needed, until cancelled."""
        saw = False
        waits: set[asyncio.Task[Any]] = set()
        try:
            self._start((self._caches.policies, self._caches.devices))
            while True:
                self._stirred.clear()
                self._start_needed()
                if (sees := self._sees()) and not saw:
                    self._changed()
                saw = sees
                waits = {asyncio.create_task(self._stirred.wait()), *self._awaited()}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in waits:
                    task.cancel()
        finally:
            tasks = [*self._running.values(), *waits]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _sees(self) -> bool:
        return self._caches.usable and all(informer.usable for informer in self._caches.secrets.values())

    def _awaited(self) -> Iterable[asyncio.Task[Any]]:
        """Of the informers that run and have not seen everything."""
        return [asyncio.create_task(one.synced.wait()) for one in self._running if not one.synced.is_set()]

    def _start_needed(self) -> None:
        caches = self._caches
        if not caches.is_needed:
            return
        self._start(caches.inventory)
        for namespace in sorted({key.namespace for key in caches.devices.cache}):
            is_new = namespace not in caches.secrets
            informer = caches.secrets_of(namespace)
            if is_new:
                self._connect(namespace, informer)
            self._start((informer,))

    def _start(self, informers: Iterable[Informer[Any]]) -> None:
        for informer in informers:
            if informer not in self._running:
                name = f"informer {informer.resource.plural}"
                self._running[informer] = asyncio.create_task(informer.run(), name=name)

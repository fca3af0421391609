"""Software rollouts get the fleet of the room that manages the devices: one copy for both, and nothing that either has to know of the other."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.kube.cache import Change, Entry
from gitops_ctl.rollout.fleetlook import Seen, Version
from gitops_ctl.rollout.inventory import Wake
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.seen import SeenDevice, SeenNode


class _Known(NamedTuple):
    """What was said of a device at the last look, and of which versions; the objects themselves are not kept alive."""

    versions: tuple[str, str]
    node_key: NamespacedName
    seen: Seen


def _known(key: NamespacedName, device: Entry[SeenDevice], nodes: Mapping[NamespacedName, Entry[SeenNode]]) -> _Known:
    node_key = NamespacedName("", device.value.claim.node_name)
    node = nodes.get(node_key)
    return _Known((device.version, _version_of(node)), node_key, Seen(key, _judged_by(device, node)))


def _version_of(node: Entry[SeenNode] | None) -> str:
    return "" if node is None else node.version


def _judged_by(device: Entry[SeenDevice], node: Entry[SeenNode] | None) -> Version:
    """A heartbeat that proves nothing new makes no other version."""
    if node is None:
        return device.uid, device.version, "", ""
    says_more = not device.value.floor or node.value.pulse < device.value.floor
    return device.uid, device.version, node.uid, node.version if says_more else node.value.asked


class ManagedFleet:
    """The inventory of the rollout room, over the caches of the topology room."""

    def __init__(self, caches: Caches, options: Options) -> None:
        self._caches = caches
        self._policy = NamespacedName(options.namespace, options.policy)
        self._seen: dict[NamespacedName, _Known] = {}

    @property
    def usable(self) -> bool:
        """Without devices nothing else is watched, and there is nothing to see."""
        caches = self._caches
        is_empty = caches.policies.usable and caches.devices.usable and not caches.devices.cache
        return caches.usable or is_empty

    def seen(self) -> Iterable[Seen]:
        """Every device with its versions and those of its Node."""
        nodes, before, self._seen = self._caches.nodes.cache.entries(), self._seen, {}
        for key, device in self._caches.devices.cache.entries().items():
            known = before.get(key)
            if known is None or known.versions != (device.version, _version_of(nodes.get(known.node_key))):
                known = _known(key, device, nodes)
            self._seen[key] = known
            yield known.seen

    def read(self, key: NamespacedName) -> tuple[Device, NodeSeen | None] | None:
        """A device and its Node as they were seen last."""
        tree = self._caches.device(key)
        if tree is None:
            return None
        device = device_of(tree)
        node = self._caches.node(device.node_name)
        return device, None if node is None else node_of(node)

    def subscribe(self, *, device: Wake, evidence: Wake, secret: Wake, policy: Callable[[], None]) -> None:
        """Hear of changes; a heartbeat of a Node alone is none."""

        def device_changed(change: Change[SeenDevice]) -> None:
            old, new = change.values
            is_evidence = old is not None and new is not None and old.asked == new.asked
            (evidence if is_evidence else device)(change.key)

        def node_changed(change: Change[SeenNode]) -> None:
            old, new = change.values
            if old is None or new is None or old.asked != new.asked:
                for key in self._caches.devices_of_node(change.key.name):
                    device(key)

        def policy_changed(change: Change[Any]) -> None:
            if change.key == self._policy:
                policy()

        self._caches.devices.add_handler(device_changed)
        self._caches.nodes.add_handler(node_changed)
        self._caches.policies.add_handler(policy_changed)
        self._caches.hear_of_secrets(lambda change: secret(change.key))

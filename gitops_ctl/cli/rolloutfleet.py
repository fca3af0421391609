"""Software rollouts get the fleet of the room that manages the devices: one copy for both, and nothing that either has to know of the other."""

from collections.abc import Callable, Iterable
from typing import Any

from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.fleet.device import Device, device_of
from gitops_ctl.fleet.node import NodeSeen, node_of
from gitops_ctl.kube.cache import Change
from gitops_ctl.rollout.fleetlook import Seen
from gitops_ctl.rollout.inventory import Wake
from gitops_ctl.topology.caches import Caches
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.seen import SeenDevice, SeenNode


class ManagedFleet:
    """The inventory of the rollout room, over the caches of the topology room."""

    def __init__(self, caches: Caches, options: Options) -> None:
        self._caches = caches
        self._policy = NamespacedName(options.namespace, options.policy)

    @property
    def usable(self) -> bool:
        """Without devices nothing else is watched, and there is nothing to see."""
        caches = self._caches
        is_empty = caches.policies.usable and caches.devices.usable and not caches.devices.cache
        return caches.usable or is_empty

    def seen(self) -> Iterable[Seen]:
        """Every device with its versions and those of its Node; a heartbeat that proves nothing new makes no other version."""
        nodes = self._caches.nodes.cache.entries()
        for key, entry in self._caches.devices.cache.entries().items():
            device = entry.value
            node = nodes.get(NamespacedName("", device.claim.node_name))
            if node is None:
                yield Seen(key, (entry.uid, entry.version, "", ""))
            else:
                says_more = not device.floor or node.value.pulse < device.floor
                yield Seen(key, (entry.uid, entry.version, node.uid, node.version if says_more else node.value.asked))

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

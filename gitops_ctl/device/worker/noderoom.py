"""The node plane of one namespace: the status-only writer of the Nodes of its devices (rollouts.md, section 17.1).

A Node is written only after the manager has bound it to this Pod.  The Lease of a Node says that the worker lives, the condition Ready that
the device answered.  Sessions are read-only.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from gitops_ctl.api.names import FIELD_MANAGER_DEVICE_WORKER
from gitops_ctl.api.watched import without_managers
from gitops_ctl.core.errors import GitopsError, NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.device import reads
from gitops_ctl.device.worker.material import Material
from gitops_ctl.device.worker.nodestatus import NodeLook, failed_look, node_tree, writer_problem
from gitops_ctl.device.worker.pace import Duty
from gitops_ctl.device.worker.place import NetconfSessions, Place, Served, usable
from gitops_ctl.device.worker.watched import DEVICE, Tasks
from gitops_ctl.fleet.device import Device
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.informer import Informer, Timing, running
from gitops_ctl.kube.lease import micro_time

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_DURATION_S: Final = 40
"""As that of a kubelet."""


class NodeUnit:
    """The Node of one device."""

    def __init__(self, served: Served, place: Place, *, netconf: NetconfSessions) -> None:
        self.place = place
        self._served = served
        self._netconf = netconf
        self._bound = ""
        self._seen = ""
        retry_s = served.intervals.worker_poll_s
        told = str(place.key)
        self._status = Duty("node", self._write, clock=served.clock, retry_s=retry_s, told=told)
        self._lease = Duty("node lease", self._renew, clock=served.clock, retry_s=retry_s, told=told)

    @property
    def is_bound(self) -> bool:
        """Whether this worker writes the Node."""
        return bool(self._bound)

    async def run(self) -> None:
        """Look and write until cancelled."""
        delay_s = self._served.intervals.spread_s * self._served.client.draw()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._status.run(delay_s=delay_s), name=f"node {self.place.key}")
            group.create_task(self._lease.run(), name=f"node lease {self.place.key}")

    def device_changed(self) -> None:
        """The CiscoDevice was changed: look at once when the manager waits for an answer."""
        device = self.place.device
        seen = _awaited(device) if device is not None else ""
        if seen != self._seen:
            self._seen = seen
            self._status.ask()

    async def _write(self) -> float | None:
        intervals = self._served.intervals
        device = self.place.device
        if device is None or device.deleting:
            self._bound = ""
            return None
        path = f"/api/v1/nodes/{device.node_name}"
        node = await self._served.client.find(path)
        if node is None or writer_problem(node, device_uid=device.uid, pod_uid=self._served.who.pod_uid):
            self._bound = ""
            return min(intervals.worker_poll_s, intervals.heartbeat_s)
        material, look = await self._look()
        # The Node again: the look may have taken its time, and a condition keeps the time of its last change.
        node = await self._served.client.get(path)
        if writer_problem(node, device_uid=device.uid, pod_uid=self._served.who.pod_uid):
            return intervals.worker_poll_s
        tree = node_tree(node, look, revision=material.revision, now=self._served.clock.wall())
        await self._served.client.apply(
            path, tree, manager=FIELD_MANAGER_DEVICE_WORKER, force=True, subresource="status"
        )
        if not self._bound:
            self._bound = device.node_name
            self._lease.ask()
        self._served.counted("node", not look.why)
        return intervals.heartbeat_s

    async def _look(self) -> tuple[Material, NodeLook]:
        """What is loaded, and one look with it.

        Raises:
            GitopsError: the Secrets cannot be read, and nothing was loaded before.
        """
        try:
            material = await self.place.reload()
        except GitopsError:
            if self.place.material is None:
                raise
            material = self.place.material
        try:
            return material, await self.place.while_loaded(self._read(material))
        except GitopsError as error:
            return material, failed_look(f"{error.reason}: {error.message}")

    async def _read(self, material: Material) -> NodeLook:
        endpoint = usable(material, subject=str(self.place.key))
        async with self.place.turn, self._netconf.session(endpoint) as session:
            platform = await reads.platform(session)
            install = await reads.install_state(session)
            apps = await reads.apps(session)
        return NodeLook(platform, install, apps)

    async def _renew(self) -> float | None:
        """Say that the worker lives; a Lease is made by the manager."""
        if not self._bound:
            return None
        spec: JsonObject = {
            "holderIdentity": self._bound,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": micro_time(self._served.clock.wall()),
        }
        try:
            await self._served.client.patch_merge(
                f"{LEASES}/{self._bound}", {"spec": spec}, manager=FIELD_MANAGER_DEVICE_WORKER
            )
        except NotFound:
            return self._served.intervals.worker_poll_s
        return self._served.intervals.lease_s


def _awaited(device: Device) -> str:
    """What the manager waits for an answer to: another configuration, projection or Node."""
    wanted = device.worker_revision.desired if device.worker_revision is not None else ""
    projected = device.projection
    at = f"{projected.label_hash} {projected.last_successful}" if projected is not None else ""
    node = device.node_identity.node_uid if device.node_identity is not None else ""
    return f"{device.uid} {device.generation} {wanted} {at} {node} {device.deleting}"


class NodeRoom:
    """`run` until `stop`."""

    def __init__(self, served: Served, *, netconf: NetconfSessions, timing: Timing | None = None) -> None:
        self._served = served
        self._netconf = netconf
        self._devices = Informer(
            served.client, DEVICE, trim=without_managers, namespace=served.namespace, timing=timing
        )
        self._devices.add_handler(self._device_changed)
        self._units: dict[NamespacedName, NodeUnit] = {}
        self._tasks: Tasks[NamespacedName] = Tasks()
        self._changed = asyncio.Event()
        self._stopping = False

    @property
    def is_ready(self) -> bool:
        """Whether the devices were read."""
        return self._devices.synced.is_set()

    @property
    def places(self) -> Iterable[Place]:
        """One for each device that is worked for."""
        return [unit.place for unit in self._units.values()]

    async def run(self) -> None:
        """Work until `stop`."""
        async with running(self._devices):
            try:
                while not self._stopping:
                    self._changed.clear()
                    if self.is_ready:
                        await self._follow()
                        await self._changed.wait()
                    else:
                        await self._served.clock.sleep(0.1)
            finally:
                await self._tasks.end_all()

    def stop(self) -> None:
        """End; a Node whose worker ends goes silent and is found out by its Lease."""
        self._stopping = True
        self._changed.set()

    async def _follow(self) -> None:
        devices = set(self._devices.cache)
        for key in set(self._tasks.keys) - devices:
            await self._tasks.end(key)
            del self._units[key]
        for key in sorted(devices - set(self._tasks.keys)):
            place = self._served.place(key, tree=self._tree_of(key))
            self._units[key] = NodeUnit(self._served, place, netconf=self._netconf)
            self._tasks.start(key, self._units[key].run(), name=f"node {key}")

    def _tree_of(self, key: NamespacedName) -> Callable[[], JsonObject | None]:
        return lambda: self._devices.cache.get(key)

    def _device_changed(self, change: Change[JsonObject]) -> None:
        if change.kind != "modified":
            self._changed.set()
        if change.key in self._units:
            self._units[change.key].device_changed()

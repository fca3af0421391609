"""The running topology room: the policy, the devices and the workers of their namespaces; what the manager starts and stops.

A device is looked at when it, its Node, its Leases, its leaf, the worker of its namespace, a Secret of it or the policy changes, and when its
evidence is due.  Nothing is written beside the leader of the reference, nor before the admission policies are proven (rollouts.md, sections
2.5, 7.4, 11.8 and 18.3).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from gitops_ctl.core.errors import BlockedError, GitopsError, TransientError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, int_at
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.asyncqueue import AsyncQueue
from gitops_ctl.kube.cache import Change
from gitops_ctl.kube.controller import Controller, Pace
from gitops_ctl.kube.events import Emit, silent
from gitops_ctl.kube.informer import Informer, Timing
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.kube.workqueue import WorkQueue
from gitops_ctl.topology.admission_proof import prove_policies
from gitops_ctl.topology.caches import Caches, Sight
from gitops_ctl.topology.devicecontroller import DeviceController
from gitops_ctl.topology.evidence_plan import Campaign, freshness_of, is_due
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.ports import Bind, Ports, Prove
from gitops_ctl.topology.reference import require_alone
from gitops_ctl.topology.seen import SeenDevice, SeenLeaf, SeenLease, SeenNode
from gitops_ctl.topology.workerscontroller import WorkersController
from gitops_ctl.topology.workplaces import Workplaces

_WORKERS: Final[Mapping[str, int]] = {"fleetpolicy": 1, "ciscodevice": 8, "deviceworkers": 2}

log = structlog.get_logger(__name__)


class TopologyRoom:
    """Keeps Nodes, evidence and workers of managed devices in step until `stop`.

    Attributes:
        policy: the fleet policy in force; None while there is none that can be used.
        timing: of the informers.
        prove: asked before the first write; raises as long as an admission policy is not in force.
    """

    def __init__(  # noqa: PLR0913  what a manager may choose
        self,
        client: KubeClient,
        *,
        bind: Bind,
        options: Options | None = None,
        emit: Emit = silent,
        require: Callable[[], None] = lambda: None,
        timing: Timing | None = None,
        pace: Pace | None = None,
        prove: Prove = prove_policies,
    ) -> None:
        """`require` raises LeadershipLost when the manager may not write any more."""
        self.options, self.timing = options or Options(), timing
        self.policy: FleetPolicy | None = None
        self.caches = Caches(client, options=self.options, timing=timing)
        self._client, self._bind, self._emit = client, bind, emit
        self._pace = pace or Pace(blocked_s=self.options.resync_s)
        self._may_write = False
        self._require_leader, self.prove = require, prove
        self._workplaces = Workplaces(self.caches, self.options)
        ports = Ports(
            client=client,
            caches=self.caches,
            workplaces=self._workplaces,
            clock=client.clock,
            emit=emit,
            policy=lambda: self.policy,
            require=self.require,
            options=self.options,
        )
        self._devices, self._workers = DeviceController(ports), WorkersController(ports)
        self.queues = {name: self._queue(client, workers) for name, workers in _WORKERS.items()}
        self._sight = Sight(self.caches, changed=self._look_at_everything, connect=self._connect_secrets)
        self._connect()

    def passes(self) -> Mapping[str, int]:
        """Passes over devices by the phase that they left, for metrics."""
        return self._devices.counts

    def require(self) -> None:
        """Before any write.

        Raises:
            LeadershipLost: another replica may lead.
            BlockedError: nobody has asked yet whether the reference leads, or the admission policies are not proven.
        """
        self._require_leader()
        if not self._may_write:
            raise BlockedError(
                "it is not known yet whether another manager of this fleet leads, and what the server refuses"
            )

    async def run(self) -> None:
        """Work until `stop`; passes that run then are finished."""
        looking = asyncio.create_task(self._sight.run(), name="topology sight")
        working = asyncio.create_task(self._work_all(), name="topology work")
        try:
            await asyncio.wait({working, looking}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await working
        finally:
            working.cancel()
            looking.cancel()
            ended, _ = await asyncio.gather(looking, working, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    def stop(self) -> None:
        """Begin no further pass."""
        for queue in self.queues.values():
            queue.close()

    async def _work_all(self) -> None:
        passes = {
            "fleetpolicy": self._take_policy,
            "ciscodevice": self._devices.reconcile,
            "deviceworkers": self._workers.reconcile,
        }
        controllers = (
            Controller(name, self.queues[name], passes[name], workers=workers, pace=self._pace)
            for name, workers in _WORKERS.items()
        )
        await asyncio.gather(*(controller.run() for controller in controllers))

    # -- the policy ------------------------------------------------------------------------------------------------

    async def _take_policy(self, key: NamespacedName) -> float | None:
        """Take up the policy; one that cannot be used stops everything until it can."""
        tree = self.caches.policies.cache.get(key)
        try:
            if self.caches.is_needed and not self._may_write:
                self._require_leader()
                await require_alone(self._client)
                await self.prove(self._client, self.options.namespace)
                self._may_write = True
                self._look_at_devices()
            policy = await self._bind(key.namespace, key.name) if tree is not None and self._may_write else None
        except TransientError:
            raise  # says nothing about the policy: the one in force stays
        except GitopsError as error:
            self.policy = None
            log.warning("no fleet policy in force", code=error.code.name, error=error.message)
            if tree is not None:
                self._emit(tree, "Warning", error.reason, f"{error.message}; {error.hint}")
            raise
        if policy != self.policy:
            self.policy = policy
            self._look_at_everything()
        return None

    def _look_at_everything(self) -> None:
        self._poke_policy()
        self._look_at_devices()

    def _look_at_devices(self) -> None:
        for key in list(self.caches.devices.cache):
            self.queues["ciscodevice"].add(key)
            self._poke_workers(key.namespace)
        for key in list(self.caches.accounts.cache):
            self._poke_workers(key.namespace)

    def _poke_policy(self) -> None:
        if self.policy is None:
            self.queues["fleetpolicy"].add(NamespacedName(self.options.namespace, self.options.policy))

    def _poke_workers(self, namespace: str) -> None:
        self.queues["deviceworkers"].add(NamespacedName(namespace, ""))

    # -- what wakes what -------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        caches, devices = self.caches, self.queues["ciscodevice"]
        caches.policies.add_handler(self._policy_changed)
        caches.devices.add_handler(self._device_changed, rescue=devices.add)
        caches.nodes.add_handler(self._node_changed)
        caches.leases.add_handler(self._lease_changed)
        caches.leaves.add_handler(self._leaf_changed)
        caches.campaigns.add_handler(self._campaign_changed)
        for informer in (caches.pods, caches.deployments):
            informer.add_handler(self._worker_changed)
        caches.accounts.add_handler(lambda change: self._poke_workers(change.key.namespace))

    def _connect_secrets(self, namespace: str, informer: Informer[str]) -> None:
        def changed(change: Change[str]) -> None:
            for key in self.caches.users_of(change.key):
                self.queues["ciscodevice"].add(key)

        informer.add_handler(changed)

    def _policy_changed(self, change: Change[JsonObject]) -> None:
        if change.key == NamespacedName(self.options.namespace, self.options.policy):
            self.queues["fleetpolicy"].add(change.key)

    def _device_changed(self, change: Change[SeenDevice]) -> None:
        old, new = change.values
        if old is not None and new is not None and old.asked == new.asked:
            return  # nothing but our own evidence: the pass that wrote it knows when to look again
        self._poke_policy()
        self.queues["ciscodevice"].add(change.key)
        if old is not None and new is not None and old.spec == new.spec:
            return
        self._poke_workers(change.key.namespace)
        # Whoever lost against this device may win now.
        for device in (one for one in (old, new) if one is not None):
            for key in self.caches.rival_keys(device.claim):
                self.queues["ciscodevice"].add(key)

    def _node_changed(self, change: Change[SeenNode]) -> None:
        old, new = change.values
        is_pulse = old is not None and new is not None and old.asked == new.asked
        for key in self.caches.devices_of_node(change.key.name):
            if not is_pulse or self._waits_for_pulse(key):
                self.queues["ciscodevice"].add(key)

    def _waits_for_pulse(self, key: NamespacedName) -> bool:
        """Whether a heartbeat alone means anything for the device now."""
        device = self.caches.devices.cache.get(key)
        if device is None or self.policy is None or not device.is_settled:
            return True
        observed, claim = {"observedAt": device.observed_at}, device.claim
        limit_s = freshness_of(claim, policy_s=self.policy.health_freshness_s, campaigns=self.caches.asked())
        return is_due(observed, now=self._client.clock.wall(), freshness_s=limit_s)

    def _lease_changed(self, change: Change[SeenLease]) -> None:
        old, new = change.values
        if old is not None and new is not None and old.asked == new.asked:
            return  # it was renewed, nothing else
        for lease in (one for one in (old, new) if one is not None):
            self.queues["ciscodevice"].add(lease.device)

    def _leaf_changed(self, change: Change[SeenLeaf]) -> None:
        old, new = change.values
        if old == new:
            return
        for leaf in (one for one in (old, new) if one is not None):
            self.queues["ciscodevice"].add(leaf.device)
        if old is not None and old.is_claimed and not (new is not None and new.is_claimed):
            self._poke_workers(change.key.namespace)

    def _campaign_changed(self, change: Change[Campaign | None]) -> None:
        """Another limit of evidence, or other Secrets of image sources."""
        old, new = change.values
        if old == new:
            return
        self._poke_workers(change.key.namespace)
        limits = {one.policy_s if one is not None else 0 for one in (old, new)}
        # Stricter than the policy now: evidence of every device has to be younger, and nobody else tells them.
        is_strict = self.policy is not None and 0 < max(limits) < self.policy.health_freshness_s and len(limits) > 1
        for key in list(self.caches.devices.cache):
            if is_strict or key.namespace == change.key.namespace:
                self.queues["ciscodevice"].add(key)

    def _worker_changed(self, change: Change[JsonObject]) -> None:
        self._workplaces.forget(change.key.namespace)
        for key in list(self.caches.devices.cache):
            if key.namespace == change.key.namespace:
                self.queues["ciscodevice"].add(key)
        old, new = change.values
        generations = [int_at(tree, "metadata", "generation") for tree in (old, new) if tree is not None]
        if len(generations) < 2 or generations[0] != generations[1]:
            self._poke_workers(change.key.namespace)

    @staticmethod
    def _queue(client: KubeClient, workers: int) -> AsyncQueue[NamespacedName]:
        queue: WorkQueue[NamespacedName] = WorkQueue(
            workers=workers, tenant_of=lambda key: key.namespace, draw=client.draw
        )
        return AsyncQueue(queue, clock=client.clock)

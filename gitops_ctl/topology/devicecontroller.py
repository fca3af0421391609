"""One pass over one device: its Node, its Leases, its status (rollouts.md, sections 5, 13.6, 15 and 16).

Every write carries the version of what it was planned from.  Order: the guard goes up before anything relies on it, and down only after the
status says so; a Node is bound before its identity is recorded; a session is acknowledged on a guarded Node only.
"""

from collections import Counter
from collections.abc import Hashable
from datetime import datetime
from functools import partial
from typing import Any

from gitops_ctl.api.names import FIELD_MANAGER_TOPOLOGY
from gitops_ctl.core.errors import NotFound
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, list_at, object_at, text_at
from gitops_ctl.fleet import names
from gitops_ctl.fleet.policy import FleetPolicy, matches_fleet
from gitops_ctl.fleet.trees import moment_at, texts_at
from gitops_ctl.kube.answers import KindNotServed
from gitops_ctl.kube.cache import Entry
from gitops_ctl.kube.expectations import Expectations
from gitops_ctl.kube.expectations import Written as WrittenVersion
from gitops_ctl.topology import leases
from gitops_ctl.topology.caches import DEVICE, LEAF, NODE
from gitops_ctl.topology.condition_plan import Topology
from gitops_ctl.topology.evidence_plan import freshness_of, seconds_left
from gitops_ctl.topology.findings import Finding, Reason
from gitops_ctl.topology.identity_plan import Claim, declaration_problem, node_name_of, rival_problem
from gitops_ctl.topology.maintenance_plan import (
    MaintenanceSeen,
    MaintenanceStep,
    deletion_problem,
    is_open,
    operation_to_read,
    plan_maintenance,
)
from gitops_ctl.topology.node_plan import NodeWanted, is_ours, new_node, node_patch, ownership_problem, projection_of
from gitops_ctl.topology.ports import Ports
from gitops_ctl.topology.revision_plan import (
    Gnoi,
    Workplace,
    app_proof,
    desired_revision,
    gnoi_condition,
    network_proof,
    spec_problem,
)
from gitops_ctl.topology.status_plan import Found, status_of, status_patch, told
from gitops_ctl.topology.taints import MAINTENANCE, has_taint


class DeviceController:
    """Reconciles CiscoDevices.

    Attributes:
        counts: passes by the phase that they left, for metrics.
    """

    def __init__(self, ports: Ports) -> None:
        self.counts: Counter[str] = Counter()
        self._ports = ports
        self._written = Written(ports)

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Bring one device and its Node to what the policy and the evidence say.

        Returns:
            Seconds until it has to be looked at again, None when only an event can change anything.
        """
        device = self._ports.caches.device(key)
        if device is None:
            self._written.forget(key)
            return None
        caches, later_s = self._ports.caches, self._ports.options.resync_s
        if not caches.usable or caches.versions(key.namespace) is None:
            return later_s if caches.is_needed else None
        if self._written.is_unseen(key):
            return later_s
        return await self._step(device)

    async def _step(self, device: JsonObject) -> float | None:
        policy = self._ports.policy()
        is_ours = names.DEVICE_FINALIZER in list_at(device, "metadata", "finalizers")
        if text_at(device, "metadata", "deletionTimestamp"):
            why = deletion_problem(device)
            if is_ours and not why:
                await self._remove(device)
            if not is_ours or not why:
                return None
            self._ports.emit(device, "Warning", "DeletionBlocked", why)
        if policy is None or not (is_ours or matches_fleet(policy, texts_at(device, "metadata", "labels"))):
            return None
        if not is_ours:
            device = await self._protected(device)
        found = _Pass(self._ports, policy, self._written, device)
        again_s = await found.run()
        self.counts[found.phase] += 1
        return again_s

    async def _protected(self, device: JsonObject) -> JsonObject:
        """With our finalizer, before anything of the device is made."""
        finalizers = [*list_at(device, "metadata", "finalizers"), names.DEVICE_FINALIZER]
        self._ports.require()
        written = await self._ports.client.patch_merge(
            _path(device), {"metadata": {**_versions(device), "finalizers": finalizers}}, manager=FIELD_MANAGER_TOPOLOGY
        )
        self._written.add(NamespacedName.of(device), written)
        return written

    async def _remove(self, device: JsonObject) -> None:
        """The Node, the Leases, and then the finalizer; needs no policy."""
        ports, key = self._ports, NamespacedName.of(device)
        ports.require()
        name = node_name_of(device)
        node = await ports.client.find(NODE.path("", name))
        if node is not None and is_ours(device, node):
            await ports.client.delete(NODE.path("", name), uid=text_at(node, "metadata", "uid"))
        await leases.remove(ports, key)
        finalizers = [one for one in list_at(device, "metadata", "finalizers") if one != names.DEVICE_FINALIZER]
        try:
            await ports.client.patch_merge(
                _path(device),
                {"metadata": {**_versions(device), "finalizers": finalizers}},
                manager=FIELD_MANAGER_TOPOLOGY,
            )
        except KindNotServed:
            raise
        except NotFound:
            return


class _Pass:
    """What one pass knows of one device that stays."""

    def __init__(self, ports: Ports, policy: FleetPolicy, written: "Written", device: JsonObject) -> None:
        self._ports, self._policy, self._written, self._device = ports, policy, written, device
        self._key = key = NamespacedName.of(device)
        self.phase = ""
        self._now: datetime = ports.clock.wall()
        self._planes = ports.workplaces.of(policy, key.namespace)

    async def run(self) -> float | None:
        client, device = self._ports.client, self._device
        name = node_name_of(device)
        # A Node that lost its label, or was never ours, is not in the cache.
        node = self._ports.caches.node(name) or await client.find(NODE.path("", name))
        operation = operation_to_read(device, self._lease())
        leaf = await client.find(LEAF.path(operation.namespace, operation.name)) if operation is not None else None
        topology = self._judge(node)
        step = self._maintenance(topology, leaf)
        written = await self._write_node(topology, step)
        if topology.identity is None and written is not None:
            await leases.ensure(self._ports, self._policy, device, written)
        if written is not node:
            topology = self._judge(written)
            step = self._maintenance(topology, leaf)
        status = status_of(self._found(topology, step))
        await self._write_status(status)
        self.phase = text_at(status, "phase")
        return self._again(status)

    # -- judging ---------------------------------------------------------------------------------------------------

    def _judge(self, node: JsonObject | None) -> Topology:
        device = self._device
        projection, problem = projection_of(device, self._policy)
        stored = object_at(device, "status", "topologyProjection")
        is_current = projection is not None and text_at(stored, "effectiveLabelHash") == projection.hash
        return Topology(
            device=device,
            node=node,
            identity=self._identity_problem(node),
            problem=problem,
            projection=projection,
            projected_at=moment_at(stored, "lastSuccessfulTime") if is_current else None,
        )

    def _identity_problem(self, node: JsonObject | None) -> Finding | None:
        device, claim = self._device, Claim.of(self._device)
        if claim.is_retired or not matches_fleet(self._policy, texts_at(device, "metadata", "labels")):
            why = "the device is retired" if claim.is_retired else "the selector of the fleet policy does not match"
            return Finding(Reason.OUTSIDE_FLEET, f"{why}, so the device is in no fleet and its Node stays guarded")
        return (
            declaration_problem(device)
            or rival_problem(claim, self._ports.caches.rivals(claim))
            or ownership_problem(device, node, is_others=self._is_others(node))
        )

    def _is_others(self, node: JsonObject | None) -> bool:
        annotations = texts_at(node or {}, "metadata", "annotations")
        other = NamespacedName(annotations.get(names.DEVICE_NAMESPACE, ""), annotations.get(names.DEVICE_NAME, ""))
        return other != self._key and self._ports.caches.is_device(other, annotations.get(names.DEVICE_UID, ""))

    def _lease(self) -> JsonObject | None:
        found = self._ports.caches.leases_of(self._key, purpose=names.LEASE_MUTATION)
        return found[0].tree() if found else None

    def _maintenance(self, topology: Topology, leaf: JsonObject | None) -> MaintenanceStep:
        node = topology.node or {}
        return plan_maintenance(
            MaintenanceSeen(
                device=self._device,
                node_name=text_at(node, "metadata", "name"),
                node_uid=text_at(node, "metadata", "uid"),
                guarded=topology.is_identified and has_taint(node, MAINTENANCE),
                lease=self._lease(),
                leaf=leaf,
                now=self._now,
            )
        )

    def _found(self, topology: Topology, step: MaintenanceStep) -> Found:
        device = self._device
        versions = self._ports.caches.versions(self._key.namespace) or {}
        app, network = self._planes
        node_proof = app_proof(device, topology.node, app, desired=self._desired(app), now=self._now)
        proof = network_proof(device, network, desired=self._desired(network), now=self._now)
        gnoi = Gnoi(device=device, spec_problem=spec_problem(device), versions=versions, proof=proof)
        return Found(
            topology=topology,
            maintenance=step,
            gnoi=gnoi_condition(gnoi),
            app=node_proof,
            network=proof,
            now=self._now,
            freshness_s=self._freshness_s,
        )

    def _desired(self, plane: Workplace) -> str:
        versions = self._ports.caches.versions(self._key.namespace) or {}
        return desired_revision(self._device, digest=plane.digest, versions=versions)

    @property
    def _freshness_s(self) -> int:
        asked, policy_s = self._ports.caches.asked(), self._policy.health_freshness_s
        return freshness_of(Claim.of(self._device), policy_s=policy_s, campaigns=asked)

    # -- writing ---------------------------------------------------------------------------------------------------

    async def _write_node(self, topology: Topology, step: MaintenanceStep) -> JsonObject | None:
        """The Node as it is after this; one that is not ours stays as it is."""
        client, device, node = self._ports.client, self._device, topology.node
        app, network = (plane.worker for plane in self._planes)
        if node is None:
            if topology.identity is not None or topology.projection is None:
                return None
            self._ports.require()
            made = new_node(device, topology.projection, app=app, network=network)
            node = await client.create(NODE.path(), made, manager=FIELD_MANAGER_TOPOLOGY)
            self._written.add(self._key, node)
        elif topology.identity is not None and not is_ours(device, node):
            return node
        wanted = NodeWanted(
            projection=topology.projection if topology.identity is None else None,
            app=app,
            network=network,
            guard=bool(topology.guard_problem()[1]),
            # It goes only after the session is settled in the status.
            maintenance=step.guard or is_open(object_at(device, "status", "maintenanceSession")),
        )
        patch = node_patch(device, node, wanted)
        if patch is None:
            return node
        self._ports.require()
        node = await client.patch_merge(NODE.path("", node_name_of(device)), patch, manager=FIELD_MANAGER_TOPOLOGY)
        self._written.add(self._key, node)
        return node

    async def _write_status(self, status: JsonObject) -> None:
        patch = status_patch(self._device, status)
        if patch is None:
            return
        self._ports.require()
        written = await self._ports.client.patch_merge(
            _path(self._device), patch, manager=FIELD_MANAGER_TOPOLOGY, subresource="status"
        )
        self._written.add(self._key, written)
        for kind, (word, reason, message) in told(object_at(self._device, "status"), status).items():
            is_bad = (word == "True") is (kind in (names.TOPOLOGY_INCOMPLETE, names.TOPOLOGY_CONFLICT))
            if is_bad or kind in (names.TOPOLOGY_READY, names.MAINTENANCE_READY):
                self._ports.emit(self._device, "Warning" if is_bad else "Normal", reason, message)

    def _again(self, status: JsonObject) -> float | None:
        """Soon while something is not ready; else when the evidence is due."""
        settled = {
            text_at(one, "type")
            for one in list_at(status, "conditions")
            if isinstance(one, dict) and text_at(one, "status") == "True"
        }
        if not {*names.REQUIRED_CONDITIONS, names.MAINTENANCE_READY} <= settled:
            return self._ports.options.resync_s
        health = object_at(status, "healthObservation")
        left_s = seconds_left(health, now=self._now, freshness_s=self._freshness_s)
        return left_s or None  # due, and nothing new was seen: the next heartbeat wakes it


class Written:
    """Our writes to devices and Nodes that the caches have yet to show: nothing is planned from what was there before them."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._expected: Expectations[NamespacedName] = Expectations()

    def add(self, device: NamespacedName, tree: JsonObject) -> None:
        """A device or a Node that was written for `device`, as the server answered."""
        metadata, now_s = object_at(tree, "metadata"), self._ports.clock.boot_s()
        version = WrittenVersion(text_at(metadata, "uid"), text_at(metadata, "resourceVersion"), now_s)
        self._expected.wrote(device, target=NamespacedName.of(tree), written=version)

    def is_unseen(self, device: NamespacedName) -> bool:
        """Whether a write for `device` is not in the caches yet."""
        caches = self._ports.caches
        return self._expected.waits(
            device,
            now_s=self._ports.clock.boot_s(),
            seen=partial(self._entry, device),
            listed_s=min(caches.devices.listed_s, caches.nodes.listed_s),
        )

    def _entry(self, device: NamespacedName, target: Hashable) -> Entry[Any] | None:
        assert isinstance(target, NamespacedName)
        informer = self._ports.caches.devices if target == device else self._ports.caches.nodes
        return informer.cache.entry(target)

    def forget(self, device: NamespacedName) -> None:
        """The device is gone."""
        self._expected.forget(device)


def _path(device: JsonObject) -> str:
    return DEVICE.path(text_at(device, "metadata", "namespace"), text_at(device, "metadata", "name"))


def _versions(device: JsonObject) -> dict[str, str]:
    return {name: text_at(device, "metadata", name) for name in ("uid", "resourceVersion")}

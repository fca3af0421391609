"""One pass over one namespace: the accounts, rights and Deployments of its workers (rollouts.md, sections 17.1, 17.2 and 18.2)."""

from gitops_ctl.api.names import FIELD_MANAGER_TOPOLOGY
from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject, object_at, text_at
from gitops_ctl.topology.caches import LEAF
from gitops_ctl.topology.maintenance_plan import has_open_claim
from gitops_ctl.topology.merge import covers
from gitops_ctl.topology.ports import Ports
from gitops_ctl.topology.workers_plan import (
    DEPLOYMENT,
    OWNED,
    Plane,
    Wanted,
    digest_of,
    no_objects,
    wanted_objects,
)
from gitops_ctl.topology.workplaces import tenant_of


class WorkersController:
    """Reconciles the workers of a namespace; the key is `(namespace, "")`."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def reconcile(self, key: NamespacedName) -> float | None:
        """Make, change or remove what the workers of the namespace need.

        Raises:
            BlockedError: an object of a needed name was made by somebody else; nothing more is written in this namespace.
        """
        ports, policy = self._ports, self._ports.policy()
        if policy is None or not ports.options.worker_image:
            return None
        if not ports.caches.usable:
            return ports.options.resync_s
        seen = ports.caches.devices.cache.items()
        devices = [device for found, device in seen if found.namespace == key.namespace]
        secrets = ports.caches.source_secrets(key.namespace)
        named = {name for device in devices for name in device.secrets}
        tenant = tenant_of(policy, key.namespace, secrets={*secrets, *named})
        wanted = wanted_objects(tenant, ports.options) if devices else no_objects(tenant, ports.options)
        network = tenant.accounts[Plane.NETWORK]
        for one in wanted:
            if one.resource is DEPLOYMENT and one.name == network and (leaf := await self._claimed(one)):
                ports.emit(_namespace(key), "Normal", "WorkerRolloutPending", f"Deployment {one.name} waits for {leaf}")
                return ports.options.resync_s
            await self._bring(one)
        return None

    async def _claimed(self, wanted: Wanted) -> str:
        """The leaf that a change of the network plane's template waits for; empty when it need not wait."""
        ports = self._ports
        live = ports.caches.deployments.cache.get(NamespacedName(wanted.namespace, wanted.name))
        if live is None or (wanted.tree is not None and digest_of(live) == digest_of(wanted.tree)):
            return ""
        page = await ports.client.list_all(LEAF.path(wanted.namespace))
        claimed = sorted(text_at(leaf, "metadata", "name") for leaf in page.items if has_open_claim(leaf))
        return f"IOSXESoftwareUpgrade {wanted.namespace}/{claimed[0]}" if claimed else ""

    async def _bring(self, wanted: Wanted) -> None:
        """One object to what it has to be; an object of somebody else is never touched."""
        client, path = self._ports.client, wanted.resource.path(wanted.namespace, wanted.name)
        live = await client.find(path)
        if live is not None and not _is_ours(live):
            if wanted.tree is None:
                return
            self._refuse(wanted, live)
        if wanted.tree is None:
            if live is not None:
                self._ports.require()
                await client.delete(path, uid=text_at(live, "metadata", "uid"))
            return
        if live is not None and covers(live, wanted.tree):
            return
        self._ports.require()
        if live is not None and live.get("roleRef", {}) != wanted.tree.get("roleRef", {}):
            # A binding never changes its role.
            await client.delete(path, uid=text_at(live, "metadata", "uid"))
        await client.apply(path, wanted.tree, manager=FIELD_MANAGER_TOPOLOGY, force=True)

    def _refuse(self, wanted: Wanted, live: JsonObject) -> None:
        kind = wanted.resource.gvk.kind
        place = f"{wanted.namespace}/{wanted.name}" if wanted.namespace else wanted.name
        error = BlockedError(
            f"the {kind} {place} was not made by gitops-ctl",
            code=ErrorCode.OBJECT_OCCUPIED,
            subject=f"{kind}/{place}",
        )
        self._ports.emit(
            {"apiVersion": wanted.resource.gvk.api_version, "kind": kind, "metadata": object_at(live, "metadata")},
            "Warning",
            error.reason,
            f"{error.message}; {error.hint}",
        )
        raise error


def _is_ours(live: JsonObject) -> bool:
    labels = object_at(live, "metadata", "labels")
    return all(labels.get(key) == value for key, value in OWNED.items())


def _namespace(key: NamespacedName) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}}

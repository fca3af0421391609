"""A device's life on a real API server: what only that shows (rollouts.md, 5, 6.3, 13.6, 15.1, 16 and 17.2).

The rights of the chart, which are all that the room has here; strict field validation of every write, the server's own taints on a new Node,
defaults in the workers' objects that must not look like drift, transition rules of the status, and the audit log of an idle hour in small.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.core.clock import SystemClock
from gitops_ctl.core.errors import NotFound
from gitops_ctl.fleet import names
from gitops_ctl.fleet.device import device_of
from gitops_ctl.fleet.health import is_healthy
from gitops_ctl.fleet.node import node_of
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.kube.config import load_cluster
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.rollout.bootstrap import bind
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.room import TopologyRoom
from tests.support.admission_proof import proven
from tests.support.api_leaves import an_admission
from tests.support.api_rollouts import an_upgrade
from tests.support.cluster import AuditLog, ControlPlaneHandle
from tests.support.device_workers import Workers
from tests.support.sync_cluster import TIMING, until
from tests.support.topology_devices import APP_ACCOUNT, NETWORK_ACCOUNT, POLICY, REGION, ZONE, device, policy_objects
from tools.render_install import chart_objects

pytestmark = pytest.mark.cluster

HALL = f"{names.TOPOLOGY}hall"
POLICY_NAME = "topology-policy"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGENT = "topology-room"


class Hall:
    """One device of a fleet of its own, in a namespace of its own, with the room and its workers at work."""

    ENTITLED = ("gitops-ctl-managed-topology", "gitops-ctl-device-workers")
    HEARTBEATS = "gitops-ctl-node-heartbeats"
    WORKERS = Workers

    def __init__(self, admin: KubeClient, namespace: str) -> None:
        self.admin, self.namespace = admin, namespace
        self.name = f"access-{secrets.token_hex(4)}"
        self.mark = {HALL: self.name}
        self.devices = f"/apis/cisco.vk/v1alpha1/namespaces/{namespace}/ciscodevices"
        self.leaves = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{namespace}/iosxesoftwareupgrades"
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    async def entitle(self) -> None:
        """Give the room's user what the chart gives the manager, under names of this test."""
        values = {
            "enabled": True,
            "namespaces": [self.namespace],
            "fleetPolicy": POLICY_NAME,
            "ledger": POLICY["ledgerName"],
        }
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.name}
        root = "/apis/rbac.authorization.k8s.io/v1"
        for tree in chart_objects({"managedTopology": values}):
            if tree["metadata"]["name"] not in (*self.ENTITLED, self.HEARTBEATS):
                continue
            text = json.dumps(tree).replace(self.ENTITLED[0], f"topology-{self.name}")
            own: Any = json.loads(text.replace(self.HEARTBEATS, f"heartbeats-{self.name}"))
            scope = ""
            if namespace := own["metadata"].get("namespace", ""):
                where = namespace if namespace == "kube-node-lease" else self.namespace
                own["metadata"]["namespace"] = where
                scope = f"/namespaces/{where}"
            if "subjects" in own:
                own["subjects"] = [user]
            await self.admin.create(f"{root}{scope}/{own['kind'].lower()}s", own)

    @contextlib.asynccontextmanager
    async def working(self, control_plane: ControlPlaneHandle) -> AsyncIterator["Hall"]:
        config = await load_cluster(control_plane.kubeconfig, allow_exec=False)
        limited = await load_cluster(control_plane.kubeconfig_for(self.name), allow_exec=False)
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(KubeClient(limited, component=AGENT, clock=SystemClock()))
            workers = await stack.enter_async_context(KubeClient(config, component="workers", clock=SystemClock()))

            async def bound(namespace: str, name: str) -> FleetPolicy:
                return (await bind(client, namespace=namespace, name=name)).record.policy

            options = Options(namespace=self.namespace, policy=POLICY_NAME, worker_image="gitops-ctl:test")
            room = TopologyRoom(client, bind=bound, options=options, timing=TIMING, prove=proven)
            self.workers = self.WORKERS(workers, namespace=self.namespace, has_controllers=True)
            tasks = [asyncio.create_task(room.run()), asyncio.create_task(self.workers.run(every_s=0.2))]
            try:
                yield self
            finally:
                room.stop()
                tasks[1].cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def prepare(self) -> None:
        """The policy, a Secret and the device."""
        maps = f"/api/v1/namespaces/{self.namespace}/configmaps"
        for tree in policy_objects(self.namespace, name=POLICY_NAME, fleetSelector={"matchLabels": self.mark}):
            await self.admin.create(maps, tree)
        secret: Any = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "login"},
            "stringData": {"username": "x"},
        }
        await self.admin.create(f"/api/v1/namespaces/{self.namespace}/secrets", secret)
        tree = device(self.name)
        labels = {**self.mark, REGION: "north", ZONE: "hall-1"}
        taint = {"key": "example.net/lab", "effect": "NoSchedule"}
        await self.admin.create(
            self.devices,
            {
                **{member: tree[member] for member in ("apiVersion", "kind")},
                "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
                "spec": {**tree["spec"], "taints": [taint]},
            },
        )

    async def seen(self) -> Any:
        return await self.admin.find(f"{self.devices}/{self.name}")

    async def node(self) -> Any:
        return await self.admin.find(f"/api/v1/nodes/{self.name}")

    async def is_healthy(self) -> bool:
        tree, node = await self.seen(), await self.node()
        return node is not None and is_healthy(device_of(tree), node_of(node))

    async def taints(self) -> set[str]:
        return {each["key"] for each in (await self.node())["spec"].get("taints", ())}

    async def ask(self) -> str:
        """A granted leaf takes the Lease and asks for maintenance; returns the Lease's path."""
        leaf: Any = an_upgrade()
        tree = await self.seen()
        annotations = {
            names.DEVICE_UID: tree["metadata"]["uid"],
            names.DEVICE_NAMESPACE: self.namespace,
            names.DEVICE_NAME: self.name,
        }
        leaf["metadata"] = {"name": "leaf-1", "namespace": self.namespace, "annotations": annotations}
        made: Any = await self.admin.create(self.leaves, leaf)
        admission = {"status": {"managerAdmission": an_admission(state="Granted")}}
        await self.admin.patch_merge(f"{self.leaves}/leaf-1", admission, subresource="status")
        uid = made["metadata"]["uid"]
        asked = {
            "request-version": "rollout-v1",
            "session-token": secrets.token_hex(16),
            "requested-at": "2026-02-01T00:00:00Z",
            "operation-namespace": self.namespace,
            "operation-name": "leaf-1",
            "operation-uid": uid,
            "control-revision": "0",
            "purpose": "SoftwareMutation",
        }
        leases: Any = (await self.admin.list_all(self.leases)).items
        path = f"{self.leases}/{leases[0]['metadata']['name']}"
        held: Any = {"holderIdentity": f"software-upgrade/{uid}", "leaseDurationSeconds": 3600}
        marks = {f"{names.MAINTENANCE}{member}": value for member, value in asked.items()}
        await self.admin.patch_merge(path, {"metadata": {"annotations": marks}, "spec": held})
        return path

    async def session(self) -> str:
        return str((await self.seen())["status"].get("maintenanceSession", {}).get("phase", ""))


@pytest.fixture
async def hall(kube_admin: KubeClient, control_plane: ControlPlaneHandle, namespace: str) -> AsyncIterator[Hall]:
    for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade):
        tree: Any = json.loads(json.dumps(crd_of(kind)))
        await kube_admin.apply(f"{CRDS}/{tree['metadata']['name']}", tree, manager="tests", force=True)
    found = Hall(kube_admin, namespace)
    for path in (found.devices, found.leaves):
        await until(partial(_is_served, kube_admin, path), what=path)
    await found.prepare()
    await found.entitle()
    async with found.working(control_plane):
        yield found
    root = "/apis/rbac.authorization.k8s.io/v1"
    for plural in ("clusterroles", "clusterrolebindings"):
        await kube_admin.delete(f"{root}/{plural}/topology-{found.name}")
    for plural in ("roles", "rolebindings"):
        await kube_admin.delete(f"{root}/namespaces/kube-node-lease/{plural}/heartbeats-{found.name}")


async def _is_served(client: KubeClient, path: str) -> bool:
    try:
        await client.get(f"{path}?limit=1")
    except NotFound:
        return False
    return True


async def test_a_device_lives_from_its_guard_to_its_last_lease(hall: Hall, audit_log: AuditLog) -> None:
    await until(hall.is_healthy, what="healthy by the gate's own reading")
    assert "example.net/lab" in await hall.taints()
    assert names.UNINITIALIZED not in await hall.taints()
    assert (await hall.node())["metadata"]["annotations"][names.MANAGED_TAINTS] == "example.net/lab|NoSchedule"
    await _is_at_rest(hall, audit_log)

    lease = await hall.ask()
    await until(lambda: _has(hall.session, "Acknowledged"), what="acknowledged")
    assert names.DEVICE_MAINTENANCE in await hall.taints()
    end = {"phase": "Failed", "completionTime": "2026-02-01T00:30:00Z"}
    await hall.admin.patch_merge(f"{hall.leaves}/leaf-1", {"status": end}, subresource="status")
    await hall.admin.patch_merge(lease, {"spec": {"holderIdentity": None}})
    await until(lambda: _has(hall.session, "Settled"), what="settled")
    await until(lambda: _lacks(hall.taints, names.DEVICE_MAINTENANCE), what="the guard is gone")

    await hall.admin.delete(f"{hall.devices}/{hall.name}")
    await until(lambda: _is_gone(hall), what="device, Node, Leases, accounts and cluster bindings are gone")


async def _is_at_rest(hall: Hall, audit_log: AuditLog) -> None:
    """For two seconds of heartbeats the room writes nothing and asks for nothing."""

    async def is_silent() -> bool:
        audit_log.mark()
        await asyncio.sleep(2.0)
        return not audit_log.entries(user_agent=AGENT, verbs=("get", "list", "create", "update", "patch", "delete"))

    await until(is_silent, what="two seconds without a request of the room")


async def _has(read: Any, wanted: str) -> bool:
    return bool(await read() == wanted)


async def _lacks(read: Any, key: str) -> bool:
    return key not in await read()


async def _is_gone(hall: Hall) -> bool:
    accounts = f"/api/v1/namespaces/{hall.namespace}/serviceaccounts"
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    left = [
        await hall.seen(),
        await hall.node(),
        *(await hall.admin.list_all(hall.leases)).items,
        *[await hall.admin.find(f"{accounts}/{name}") for name in (APP_ACCOUNT, NETWORK_ACCOUNT)],
        await hall.admin.find(f"{bindings}/{hall.namespace}-{APP_ACCOUNT}"),
        await hall.admin.find(f"{bindings}/{hall.namespace}-{NETWORK_ACCOUNT}-read"),
    ]
    return not any(left)

"""The topology room on an API server in memory, on virtual time, with a stand-in for the workers and for whoever runs their Pods.

The stand-in answers as the two planes do: the node plane writes the status of the Nodes that its Pod is bound to, the network plane reports what
it loaded.  The room can be stopped, or killed at any write, and started anew.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache
from typing import Any

from gitops_ctl.api.ciscodevice import CiscoDevice
from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.rollout import IOSXESoftwareRollout
from gitops_ctl.api.softwareupgrade import IOSXESoftwareUpgrade
from gitops_ctl.core.clock import to_rfc3339
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.fleet import names
from gitops_ctl.fleet.identity import device_identity_hash
from gitops_ctl.fleet.policy import FleetPolicy
from gitops_ctl.fleet.revision import secrets_of, worker_revision
from gitops_ctl.kube.controller import Pace
from gitops_ctl.kube.exchange import Call
from gitops_ctl.kube.transport import WRITE_VERBS, KubeClient
from gitops_ctl.rollout.bootstrap import bind
from gitops_ctl.topology.options import Options
from gitops_ctl.topology.room import TopologyRoom
from tests.doubles.apiserver.api import ApiServer, Snapshot
from tests.doubles.apiserver.direct import Side, direct_client
from tests.doubles.apiserver.request import Request
from tests.doubles.peer_crds import install
from tests.support.simulation_loop import LoopClock, run_virtually
from tests.support.topology_devices import APP_ACCOUNT, NAMESPACE, NETWORK_ACCOUNT, POLICY, REGION, ZONE

Tree = dict[str, Any]
SYSTEM = "gitops-ctl-system"
POLICY_NAME, LEDGER_NAME = "gitops-ctl-topology-policy", POLICY["ledgerName"]
DEVICES = f"/apis/cisco.vk/v1alpha1/namespaces/{NAMESPACE}/ciscodevices"
LEAVES = f"/apis/ops.cisco.vk/v1alpha1/namespaces/{NAMESPACE}/iosxesoftwareupgrades"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
OPTIONS = Options(namespace=SYSTEM, worker_image="gitops-ctl:test")


class Crash(BaseException):
    """The manager ends here."""


class Workers:
    """Both planes, and the Deployments' Pods.

    Attributes:
        beats: whether the node plane writes heartbeats.
        loads: whether a Secret that changed is loaded.
        chassis: what the devices answer instead of their own identity, by device.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.beats = self.loads = True
        self.chassis: dict[str, str] = {}
        self._loaded: dict[str, str] = {}

    async def run(self, *, every_s: float = 10.0) -> None:
        """Step for ever; what fails is done in the next step."""
        while True:
            with contextlib.suppress(GitopsError):
                await self.step()
            await self._client.clock.sleep(every_s)

    async def step(self) -> None:
        """Whatever is due."""
        pods = {account: await self._pod(account) for account in (APP_ACCOUNT, NETWORK_ACCOUNT)}
        for tree in (await self._client.list_all(DEVICES)).items:
            device: Any = tree
            versions = await self._versions(device)
            if (app := pods[APP_ACCOUNT]) is not None and self.beats:
                await self._beat(device, app, versions)
            if (network := pods[NETWORK_ACCOUNT]) is not None:
                await self._report(device, network, versions)

    async def _versions(self, device: Any) -> dict[str, str]:
        found = {}
        for member, name in secrets_of(device["spec"])._asdict().items():
            secret: Any = await self._client.find(f"{SECRETS}/{name}") if name else None
            key = f"{device['metadata']['name']}/{member}"
            if self.loads or key not in self._loaded:
                self._loaded[key] = secret["metadata"]["resourceVersion"] if secret else ""
            found[member] = self._loaded[key]
        return found

    async def _pod(self, account: str) -> Tree | None:
        """The ready Pod of a Deployment, made anew when the template is another one."""
        deployment: Any = await self._client.find(f"{DEPLOYMENTS}/{account}")
        if deployment is None:
            return None
        template = deployment["spec"]["template"]
        path = f"{PODS}/{account}-x"
        pod: Any = await self._client.find(path)
        digest = template["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST]
        if pod is not None and pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST] != digest:
            await self._client.delete(path)
            pod = None
        if pod is None:
            owner = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{account}-1",
                "uid": "rs",
                "controller": True,
            }
            metadata = {
                **template["metadata"],
                "name": f"{account}-x",
                "namespace": NAMESPACE,
                "ownerReferences": [owner],
            }
            await self._client.create(
                PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            )
            at = to_rfc3339(self._client.clock.wall())
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}
            status = {"phase": "Running", "startTime": at, "conditions": [ready]}
            pod = await self._client.patch_merge(path, {"status": status}, subresource="status")
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": deployment["metadata"]["generation"], **counts}
        if deployment.get("status", {}).items() < status.items() or deployment.get("status") != status:
            await self._client.patch_merge(f"{DEPLOYMENTS}/{account}", {"status": status}, subresource="status")
        return dict(pod)

    def _digest(self, pod: Tree) -> str:
        return str(pod["metadata"]["annotations"][names.WORKER_TEMPLATE_DIGEST])

    async def _beat(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        """The node plane writes the Node that the manager has bound its Pod to."""
        path = f"{NODES}/{device['metadata']['name']}"
        node: Any = await self._client.find(path)
        annotations = node["metadata"].get("annotations", {}) if node is not None else {}
        if annotations.get(names.APP_WORKER_POD_UID) != pod["metadata"]["uid"]:
            return
        revision = worker_revision(template_digest=self._digest(pod), **versions)
        if annotations.get(names.WORKER_OBSERVED_REVISION) != revision:
            await self._client.patch_merge(
                path, {"metadata": {"annotations": {names.WORKER_OBSERVED_REVISION: revision}}}
            )
        at = to_rfc3339(self._client.clock.wall())
        old = {each["type"]: each for each in node.get("status", {}).get("conditions", [])}
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "lastHeartbeatTime": at,
                "lastTransitionTime": old.get(kind, {}).get("lastTransitionTime", at),
            }
            for kind, reason in (("Ready", "DeviceReachable"), (names.MANAGED_WRITER, names.MANAGED_WRITER_REASON))
        ]
        chassis = self.chassis.get(device["metadata"]["name"], device["spec"]["physicalIdentity"])
        status = {"nodeInfo": {"machineID": chassis, "systemUUID": chassis}, "conditions": conditions}
        await self._client.patch_merge(path, {"status": status}, subresource="status")

    async def _report(self, device: Any, pod: Tree, versions: dict[str, str]) -> None:
        """The network plane reports what it loaded, when that changes."""
        report = {
            "podUID": pod["metadata"]["uid"],
            "observedRevision": worker_revision(template_digest=self._digest(pod), **versions),
            "materialValid": True,
            "journal": {"id": "5a0dd3a1-9f0c-4f1e-8f60-0d3ad0f3a6c1", "sequence": 0, "state": "Ready"},
        }
        stored = device.get("status", {}).get("workerReport", {})
        if {key: value for key, value in stored.items() if key != "loadedAt"} == report:
            return
        loaded = {**report, "loadedAt": to_rfc3339(self._client.clock.wall())}
        await self._client.patch_merge(
            f"{DEVICES}/{device['metadata']['name']}", {"status": {"workerReport": loaded}}, subresource="status"
        )

    async def sample(self, device: str, sequence: int) -> None:
        """One sample of the network around a device."""
        tree: Any = await self._client.get(f"{DEVICES}/{device}")
        report, at = tree["status"]["workerReport"], to_rfc3339(self._client.clock.wall())
        sample = {
            "workerPodUID": report["podUID"],
            "collectionStartedAt": at,
            "collectionEndedAt": at,
            "observedAt": at,
            "sampleSequence": sequence,
            "complete": True,
            "producerRevision": report["observedRevision"],
            "deviceIdentityHash": device_identity_hash(tree["spec"]["physicalIdentity"].lower()),
            "interfaces": [{"name": "TenGigabitEthernet1/1/1", "operUp": True}],
        }
        body = {"status": {"healthObservation": {"network": sample}}}
        await self._client.patch_merge(f"{DEVICES}/{device}", body, subresource="status")


class DeviceWorld:
    """One cluster.  `told` has what the room said, as (type, reason, name of the object, note)."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.api = ApiServer(now=self.clock.wall, lag=0)
        self.api.restore(_prepared())
        self.told: list[tuple[str, str, str, str]] = []
        self.writes: list[Call] = []
        self.fault: Callable[[Call, Side], None] = lambda _call, _side: None
        self.room: TopologyRoom | None = None
        self._running: asyncio.Task[None] | None = None
        self._client: KubeClient | None = None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator["DeviceWorld"]:
        """With workers at work; whatever runs at the end is stopped."""
        self.admin = direct_client(self.api, component="admin", clock=self.clock)
        async with self.admin, direct_client(self.api, component="worker", clock=self.clock) as client:
            self.workers = Workers(client)
            working = asyncio.create_task(self.workers.run())
            try:
                yield self
            finally:
                await self.stop()
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    # -- the room -------------------------------------------------------------------------------------------------

    async def start(self, options: Options = OPTIONS) -> TopologyRoom:
        """A manager leads."""
        client = direct_client(self.api, component="manager", clock=self.clock, point=self._point)
        await client.__aenter__()
        self._client = client

        async def bound(namespace: str, name: str) -> FleetPolicy:
            return (await bind(client, namespace=namespace, name=name)).record.policy

        self.room = TopologyRoom(
            client, bind=bound, options=options, emit=self._tell, pace=Pace(blocked_s=5.0, bug_s=5.0)
        )
        self._running = asyncio.create_task(self.room.run())
        return self.room

    async def stop(self) -> None:
        """It ends in order."""
        if self.room is not None and self._running is not None and self._client is not None:
            self.room.stop()
            with contextlib.suppress(BaseExceptionGroup, Crash):
                await self._running
            await self._client.__aexit__(None, None, None)
        self.room = self._running = None

    async def crashed(self, *, timeout_s: float = 600.0) -> bool:
        """Wait until the process died; False when it did not in that time."""
        assert self._running is not None
        done, _ = await asyncio.wait({self._running}, timeout=timeout_s)
        return bool(done)

    def _point(self, call: Call, side: Side) -> None:
        if call.verb not in WRITE_VERBS:
            return
        if side == "after":
            self.writes.append(call)
        self.fault(call, side)

    def _tell(self, tree: Any, kind: str, reason: str, note: str) -> None:
        self.told.append((kind, reason, tree["metadata"]["name"], note))

    # -- the cluster ----------------------------------------------------------------------------------------------

    async def policy(self, **members: Any) -> None:
        """The fleet policy and its empty ledger, or other members of the policy."""
        text = json.dumps({**POLICY, **members})
        annotations = {
            names.MANAGED_POLICY: "true",
            names.APP_HOSTING_ACCOUNT: APP_ACCOUNT,
            names.NETWORK_MANAGEMENT_ACCOUNT: NETWORK_ACCOUNT,
            names.CONFIG_LEASE_NAMESPACE: POLICY["configLeaseNamespace"],
            names.ADMISSION_POLICY_PREFIX: "gitops-ctl",
        }
        await self._config_map(POLICY_NAME, names.COMPONENT_POLICY, annotations, {names.POLICY_KEY: text})
        if await self.get(f"/api/v1/namespaces/{SYSTEM}/configmaps/{LEDGER_NAME}"):
            return
        await self._config_map(LEDGER_NAME, names.COMPONENT_LEDGER, {names.MANAGED_LEDGER: "true"}, {})

    async def _config_map(self, name: str, component: str, annotations: Tree, data: Tree) -> None:
        metadata = {
            "name": name,
            "namespace": SYSTEM,
            "labels": {names.COMPONENT: component},
            "annotations": annotations,
        }
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        await self.admin.apply(f"/api/v1/namespaces/{SYSTEM}/configmaps/{name}", tree, manager="admin", force=True)

    async def device(self, name: str = "access-1", *, annotations: Tree | None = None, **spec: Any) -> None:
        """A device of the fleet, with its Secret."""
        labels = {names.MANAGED: "true", REGION: "north", ZONE: "hall-1"}
        if not await self.get(f"{SECRETS}/login"):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": NAMESPACE}}
            await self.admin.create(SECRETS, {**secret, "stringData": {"username": "operator"}})
        tree = {
            "apiVersion": "cisco.vk/v1alpha1",
            "kind": "CiscoDevice",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations or {}},
            "spec": {
                "driver": "XE",
                "address": "192.0.2.1",
                "physicalIdentity": f"FOC-{name}",
                "credentialSecretRef": {"name": "login"},
                **spec,
            },
        }
        await self.admin.apply(f"{DEVICES}/{name}", tree, manager="admin", force=True)

    async def get(self, path: str) -> Tree:
        """An object; empty when it is not there."""
        return dict(await self.admin.find(path) or {})

    async def seen(self, name: str = "access-1") -> Tree:
        """A device."""
        return await self.get(f"{DEVICES}/{name}")

    async def condition(self, kind: str, *, device: str = "access-1") -> str:
        """Status and reason of a condition."""
        status: Any = (await self.seen(device)).get("status", {})
        found = [each for each in status.get("conditions", ()) if each["type"] == kind]
        return f"{found[0]['status']}/{found[0]['reason']}" if found else ""

    async def is_ready(self, device: str = "access-1") -> bool:
        """Whether everything of a device is good, evidence included."""
        status: Any = (await self.seen(device)).get("status", {})
        good = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        health = status.get("healthObservation", {}).get("conditionObservations", ())
        told = {each["type"] for each in health if each["status"] == "True"}
        required = set(names.REQUIRED_CONDITIONS)
        return required <= good and required <= told and names.MAINTENANCE_READY in good

    async def until(
        self, holds: Callable[[], Coroutine[Any, Any, bool]], *, what: str, timeout_s: float = 300.0
    ) -> None:
        """Wait until it holds, on virtual time."""
        end_s = self.clock.boot_s() + timeout_s
        while not await holds():
            assert self.clock.boot_s() < end_s, f"not in {timeout_s:g} s: {what}"
            await self.clock.sleep(1.0)

    async def ready(self, device: str = "access-1") -> None:
        """Wait until a device is good."""
        await self.until(lambda: self.is_ready(device), what=f"{device} is ready")


@cache
def _prepared() -> Snapshot:
    """A server with the definitions and the namespaces; made once."""
    api = ApiServer(lag=0)
    install(
        api,
        [json.loads(json.dumps(crd_of(kind))) for kind in (CiscoDevice, IOSXESoftwareRollout, IOSXESoftwareUpgrade)],
    )
    for name in (SYSTEM, NAMESPACE):
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode()
        made = api.handle(Request("POST", "/api/v1/namespaces", {}, {"content-type": "application/json"}, body))
        assert made.code == 201, made.body
    return api.snapshot()


def in_device_world(story: Callable[[DeviceWorld], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a new cluster, on virtual time."""

    async def run() -> None:
        async with DeviceWorld().living() as world:
            await story(world)

    run_virtually(run())

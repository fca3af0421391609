"""A worker's world in memory: its own API server, a target cluster on another one, and machines that are Python objects.

world = WorkerWorld(); async with world: await world.operation(requests=[...]); outcome = await world.effects().perform(request)
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gitops_ctl.api.crd import crd_of
from gitops_ctl.api.talos import TalosCluster, TalosMachine, TalosOperation
from gitops_ctl.cni.model import Mode
from gitops_ctl.cni.worker.credentials import Credentials
from gitops_ctl.cni.worker.desk import Desk
from gitops_ctl.cni.worker.effects import Effects, Waits
from gitops_ctl.cni.worker.machine import Look, MachineLink
from gitops_ctl.cni.worker.probe import ProbeOptions
from gitops_ctl.cni.worker.target import TargetLook, look_at_target
from gitops_ctl.cni.worker.unit import Pace, Ports
from gitops_ctl.cni.worker.wanted import Question
from gitops_ctl.cni.worker.watch import MachineWatch
from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import JsonObject
from gitops_ctl.kube.transport import KubeClient
from gitops_ctl.talos.errors import ApplyRefused, ApplyUnknown, MachineUnreachable, WrongMachine
from gitops_ctl.talos.machineconfig import config_hash, edited, kube_proxy_part
from gitops_ctl.talos.model import ApplyResult, Expected, Identity, KubePrism, MachineType, ServiceState, StaticPod
from tests.doubles.apiserver import ApiServer, Request
from tests.doubles.apiserver.api import Snapshot
from tests.doubles.apiserver.direct import Point, direct_client
from tests.support.kube_clock import JumpingClock
from tests.support.talos_configs import machine_config

NAMESPACE, CLUSTER, OPERATION = "team-a", "north", "north-replaced"
KEY = NamespacedName(NAMESPACE, OPERATION)
IMAGE = "registry.k8s.io/kube-proxy:v1.36.3"
GROUP = f"/apis/ichor.maesh.dev/v1alpha1/namespaces/{NAMESPACE}"
OPERATION_PATH = f"{GROUP}/talosoperations/{OPERATION}"
CLUSTER_PATH = f"{GROUP}/talosclusters/{CLUSTER}"
SYSTEM = "/api/v1/namespaces/kube-system"
APPS = "/apis/apps/v1/namespaces/kube-system"
MARK = {"config.k8s.io/owning-inventory": "talos-bootstrap-manifests-inventory"}
PROXY_LABELS = {"tier": "node", "k8s-app": "kube-proxy"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeMachine:
    """A machine; set its attributes to stage something.

    Attributes:
        lose: the reply of the next apply is lost, `before` or `after` it takes effect.
        refuse: errors with which applies are refused.
        hangs: no call ever ends.
        claims: what `claimed` said at the moment of each real apply.
    """

    name: str
    role: MachineType = "controlplane"
    active: bytes = b""
    persistent: bytes = b""
    version: str = "v1.14.0"
    answers_as: str = ""
    lose: Literal["", "before", "after"] = ""
    refuse: tuple[str, ...] = ()
    unreachable: bool = False
    hangs: bool = False
    renders_late: bool = False
    applies: int = 0
    dry_runs: int = 0
    calls: int = 0
    busy: int = 0
    at_apply: Callable[[], None] = lambda: None
    admin_kubeconfig: bytes = b""

    def __post_init__(self) -> None:
        role = "worker" if self.role == "worker" else "controlplane"
        self.active = self.active or machine_config(role, form="none" if role == "worker" else "document", image=IMAGE)
        self.persistent = self.persistent or self.active

    async def _called(self) -> None:
        self.calls += 1
        self.busy += 1
        assert self.busy == 1, f"{self.name}: two calls at once"
        try:
            await asyncio.sleep(0)
            if self.hangs:
                await asyncio.Event().wait()
        finally:
            self.busy -= 1
        if self.unreachable:
            raise MachineUnreachable("no route to host", subject=self.name)

    async def require_identity(self) -> Identity:
        await self._called()
        if self.answers_as:
            raise WrongMachine(f"it is {self.answers_as}, not {self.name}")
        return Identity(self.version, self.name, self.role)

    async def machine_config(self, which: Literal["v1alpha1", "persistent"]) -> bytes:
        await self._called()
        return self.active if which == "v1alpha1" else self.persistent

    async def apply_configuration(self, data: bytes, *, dry_run: bool) -> ApplyResult:
        await self._called()
        if self.refuse:
            raise ApplyRefused(self.refuse)
        if dry_run:
            self.dry_runs += 1
            return ApplyResult("NO_REBOOT", "Dry run summary", (), changed=data != self.active)
        self.applies += 1
        self.at_apply()
        if self.lose == "before":
            raise ApplyUnknown("no reply")
        self.active = self.persistent = data
        if self.lose == "after":
            raise ApplyUnknown("no reply")
        return ApplyResult("NO_REBOOT", "Applied configuration without a reboot", ("proxy mode is not recommended",))

    async def services(self) -> Mapping[str, ServiceState]:
        await self._called()
        return {
            name: ServiceState(running=True, healthy=True, unknown=False)
            for name in ("kubelet", "etcd", "apid", "machined")
        }

    async def kube_prism(self) -> KubePrism | None:
        await self._called()
        return KubePrism("127.0.0.1", 7445, healthy=True)

    async def bootstrap_proxy_enabled(self) -> bool | None:
        await self._called()
        return kube_proxy_part(self.active).enabled

    async def kube_proxy_manifests(self) -> tuple[JsonObject, ...] | None:
        await self._called()
        return manifests() if kube_proxy_part(self.active).enabled and not self.renders_late else None

    async def static_pods(self) -> tuple[StaticPod, ...]:
        await self._called()
        return (StaticPod("kube-apiserver", ready=True),)

    async def kubeconfig(self) -> bytes:
        await self._called()
        return self.admin_kubeconfig


def manifests() -> tuple[JsonObject, ...]:
    """What a control plane renders for kube-proxy, with one object that is not one of its."""
    labels: dict[str, Any] = dict(PROXY_LABELS)
    container = {"name": "kube-proxy", "image": IMAGE}
    return (
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kube-proxy"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        },
        config_map("kube-proxy-config-0123456789abcdef", labels=labels),
        config_map("kubeconfig-in-cluster"),
    )


def config_map(name: str, *, labels: JsonObject | None = None, annotations: JsonObject | None = None) -> JsonObject:
    """A ConfigMap of kube-system."""
    metadata = {"name": name, "namespace": "kube-system", "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}


def rolled_out(replicas: int = 5, *, generation: int = 1) -> dict[str, Any]:
    """The status of a DaemonSet whose pods all run its newest spec."""
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
    )
    return {"observedGeneration": generation, "numberMisscheduled": 0, **dict.fromkeys(names, replicas)}


class FakeTarget:
    """The target as effects see it: a client, and nothing to open."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.failure: GitopsError | None = None
        self.tls = None

    async def client(self) -> KubeClient:
        if self.failure is not None:
            raise self.failure
        return self._client

    async def look(self, *, nodes: Sequence[str]) -> TargetLook:
        return await look_at_target(await self.client(), nodes=nodes)

    async def close(self) -> None:
        """Nothing is open."""


@cache
def _server_with_our_kinds() -> tuple[ApiServer, Snapshot]:
    """Definitions take a second to understand: one server for all worlds, put back to its beginning for each."""
    api = ApiServer(lag=0)
    for model in (TalosCluster, TalosMachine, TalosOperation):
        WorkerWorld.send(api, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd_of(model))
    WorkerWorld.send(api, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return api, api.snapshot()


@dataclass
class WorkerWorld:
    """Three control planes and two workers, all in the document form with kube-proxy enabled.  An async context manager."""

    folder: Path
    clock: JumpingClock = field(default_factory=JumpingClock)
    point: Point = lambda call, side: None
    target_point: Point = lambda call, side: None
    machines: dict[str, FakeMachine] = field(default_factory=dict)
    is_ending: bool = False

    async def __aenter__(self) -> "WorkerWorld":
        self._stack = AsyncExitStack()
        self.own_api, snapshot = _server_with_our_kinds()
        self.own_api.restore(snapshot)
        self.target_api = ApiServer(lag=0)
        self.own = await self._enter(self.own_api, self._own_point)
        self.executor = await self._enter(self.own_api, lambda call, side: None)
        self.on_target = await self._enter(self.target_api, self._on_target_point)
        self.target: Any = FakeTarget(self.on_target)
        names = [(f"cp-{n}", "controlplane") for n in (1, 2, 3)] + [(f"worker-{n}", "worker") for n in (1, 2)]
        self.machines = {name: FakeMachine(name, role) for name, role in names}  # type: ignore[arg-type]
        mounted = self.folder / "clusters" / CLUSTER
        mounted.mkdir(parents=True)
        (mounted / "talosconfig").write_text("context: north\n")
        self._cluster_objects()
        self.watches = {name: self._watch(name) for name in self.machines}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _enter(self, api: ApiServer, point: Point) -> KubeClient:
        return await self._stack.enter_async_context(direct_client(api, component="t", clock=self.clock, point=point))

    def _own_point(self, call: Any, side: Any) -> None:
        self.point(call, side)

    def _on_target_point(self, call: Any, side: Any) -> None:
        self.target_point(call, side)

    @staticmethod
    def send(api: ApiServer, method: str, path: str, body: Any = None, **query: str) -> Any:
        """One request; it must be accepted."""
        media = "application/apply-patch+yaml" if "fieldManager" in query else "application/merge-patch+json"
        headers = {"content-type": media if method == "PATCH" else "application/json"}
        answer = api.handle(
            Request(method, path, dict(query), headers, b"" if body is None else json.dumps(body).encode())
        )
        assert answer.code < 300, answer.body
        return answer.body

    # The worker's own cluster.

    def _cluster_objects(self) -> None:
        spec = {"talosconfigSecretRef": {"name": "north-talos"}, "cni": {"kubeProxy": "replaced"}}
        self._make("talosclusters", "TalosCluster", CLUSTER, spec)
        for name, machine in self.machines.items():
            spec = {"clusterRef": {"name": CLUSTER}, "address": f"{name}.example.net", "role": machine.role}
            self._make("talosmachines", "TalosMachine", name, spec)

    def _make(self, plural: str, kind: str, name: str, spec: Any) -> Any:
        tree = {
            "apiVersion": "ichor.maesh.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        return self.send(self.own_api, "POST", f"{GROUP}/{plural}", tree)

    def operation(self, *requests: JsonObject, target: str = "replaced", **status: Any) -> str:
        """Make the operation with the lock; returns its uid."""
        spec = {"clusterRef": {"name": CLUSTER}, "kind": "cni", "target": target, "sourceCommit": COMMIT}
        uid = self._make("talosoperations", "TalosOperation", OPERATION, spec)["metadata"]["uid"]
        lock = {"holder": OPERATION, "operationUID": uid, "kind": "cni", "since": "2026-01-01T00:00:00Z"}
        self.status(CLUSTER_PATH, {"lock": lock, "cni": {"kubeProxy": target}})
        self.status(OPERATION_PATH, {"phase": "SwitchingMachines", "requests": list(requests), **status})
        return str(uid)

    def status(self, path: str, members: JsonObject) -> None:
        """Write members of a status, as the executor does."""
        self.send(self.own_api, "PATCH", f"{path}/status", {"status": members})

    def stored(self, path: str = OPERATION_PATH) -> Any:
        """The status that is stored."""
        return self.send(self.own_api, "GET", path).get("status", {})

    def receipt(self, request_id: str) -> Any:
        """The receipt of a request, None while there is none."""
        return next((item for item in self.stored().get("receipts", ()) if item["id"] == request_id), None)

    def claims(self) -> list[str]:
        return [item["id"] for item in self.stored().get("claims", ())]

    def apply_request(self, machine: str, *, n: int = 1, mode: Any = "replaced") -> dict[str, Any]:
        """A request with the hashes that an observation would give."""
        fake = self.machines[machine]
        role: Any = "worker" if fake.role == "worker" else "controlplane"
        wanted = edited(fake.active, mode=mode, contract="v1.14", role=role, image=IMAGE)
        return {
            "id": f"{mode}/5-switch-machines/{machine}#{n}",
            "action": "apply-mode",
            "machine": machine,
            "mode": mode,
            "hashBefore": config_hash(fake.active),
            "hashWanted": config_hash(wanted),
        }

    # The target cluster.

    def put(self, path: str, tree: JsonObject, *, status: JsonObject | None = None, manager: str = "owner") -> Any:
        """Create or change an object of the target."""
        made = self.send(self.target_api, "PATCH", path, tree, fieldManager=manager, force="true")
        if status is not None:
            made = self.send(self.target_api, "PATCH", f"{path}/status", {"status": status})
        return made

    def there(self, path: str) -> bool:
        """Whether the target has an object."""
        return self.target_api.handle(Request("GET", path, {}, {}, b"")).code == 200

    def cilium(self, value: str = "true", *, checksum: str = "new") -> None:
        """Cilium in this mode, rolled out."""
        labels = {"k8s-app": "cilium"}
        annotations = {"cilium.io/cilium-configmap-checksum": checksum} if checksum else {}
        containers = [{"name": "cilium-agent", "image": "quay.io/cilium/cilium:v1.18.2@sha256:00"}]
        template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers}}
        selector = {"matchLabels": labels}
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cilium-config", "namespace": "kube-system"},
        }
        self.put(f"{SYSTEM}/configmaps/cilium-config", {**config, "data": {"kube-proxy-replacement": value}})
        agents = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "cilium", "namespace": "kube-system"},
            "spec": {"selector": selector, "template": template},
        }
        made = self.put(f"{APPS}/daemonsets/cilium", agents)
        self.put(f"{APPS}/daemonsets/cilium", agents, status=rolled_out(generation=made["metadata"]["generation"]))
        operator = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
            "spec": {"replicas": 2, "selector": selector, "template": template},
        }
        made = self.put(f"{APPS}/deployments/cilium-operator", operator)
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
        status = {"observedGeneration": made["metadata"]["generation"], **counts}
        self.put(f"{APPS}/deployments/cilium-operator", operator, status=status)

    def kube_proxy(self) -> None:
        """The objects that Talos made once."""
        for tree in manifests():
            self.put(path_of(tree), {**tree, "metadata": {**tree["metadata"], "annotations": MARK}}, manager="talos")  # type: ignore[dict-item]

    # What effects work on.

    def _watch(self, name: str) -> MachineWatch:
        tree = self.send(self.own_api, "GET", f"{GROUP}/talosmachines/{name}")
        return MachineWatch(
            tree,
            cluster=lambda: self.send(self.own_api, "GET", CLUSTER_PATH),
            credentials=Credentials(self.folder),
            connect=self.connect,
            clock=self.clock,
            looked=lambda: None,
        )

    @asynccontextmanager
    async def connect(self, address: str, talosconfig: bytes, expected: Expected) -> AsyncIterator[MachineLink]:
        """A connection to the fake behind an address."""
        assert talosconfig
        fake = self.machines[address.partition(".")[0]]
        assert expected.nodename == fake.name
        yield fake

    def machine(self, name: str) -> MachineWatch | None:
        return self.watches.get(name)

    def control_planes(self) -> Sequence[MachineWatch]:
        return [watch for watch in self.watches.values() if watch.spec.is_control_plane]

    def looks(self) -> Sequence[Look]:
        return [watch.latest for watch in self.watches.values() if watch.latest is not None]

    def question(self, mode: Mode) -> Question:
        return Question("replaced" if mode is Mode.REPLACED else "enabled", None, IMAGE)

    def nodes(self) -> Sequence[str]:
        return list(self.machines)

    def effects(self, *, worker: str = "worker-a", waits: Waits | None = None) -> Effects:
        """The effects of the operation, in a worker of that name."""
        desk = Desk(self.own, KEY, worker=worker)
        waits = waits or Waits()
        return Effects(desk, own=self.own, cluster=NamespacedName(NAMESPACE, CLUSTER), scene=self, waits=waits)

    def ports(self, **pace: Any) -> Ports:
        """For a whole unit."""
        return Ports(
            own=self.own,
            worker="worker-a",
            credentials=Credentials(self.folder),
            connect=self.connect,
            probe=ProbeOptions("off"),
            pace=Pace(**pace),
        )


def path_of(tree: Any) -> str:
    """Where an object of kube-proxy lies."""
    name, namespace = tree["metadata"]["name"], tree["metadata"].get("namespace", "")
    plural = f"{tree['kind'].lower()}s"
    root = "/api/v1" if tree["apiVersion"] == "v1" else f"/apis/{tree['apiVersion']}"
    return f"{root}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{root}/{plural}/{name}"
